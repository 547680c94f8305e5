"""Caches that lose their lines little by little: pages at random places, shared caches, and what thresholds become."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernmodel as km
from kernmodel.machine.load import find_machine, load_machine
from kernmodel.studies.predict.ecm import predict_ecm
from kernmodel.studies.predict.nests import read_nest
from kernmodel.studies.predict.request import CodeRequest, KernelRequest, TrafficAnswer
from kernmodel.studies.predict.traffic import predict_traffic_sweep, traffic_method
from kernmodel.traffic.gradual import survival, usable_share

LOOP = """.L1:
vmovupd (%rdi,%rax,8), %ymm0
vaddpd %ymm0, %ymm1, %ymm1
addq $4, %rax
cmpq %rcx, %rax
jb .L1
"""
SUM = "double sum(int n, double a[restrict n], double s) { for (int i = 0; i < n; i++) s += a[i]; return s; }"


def swept_again(pages: int, groups: int, ways: int, random: Random) -> float:
    """The share of pages found again in the third sweep, each at a random place in a least-recently-used cache."""
    cache: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(groups)]
    places = [random.randrange(groups) for _ in range(pages)]
    hits = 0
    for sweep in range(3):
        for page, group in enumerate(places):
            hits += sweep == 2 and page in cache[group]
            cache[group].pop(page, None)
            cache[group][page] = None
            if len(cache[group]) > ways:
                cache[group].popitem(last=False)
    return hits / pages


@pytest.mark.parametrize(("pages", "groups", "ways"), [(40, 8, 8), (64, 8, 8), (80, 8, 8), (30, 4, 8), (70, 16, 4)])
def test_pages_survive_as_in_a_cache(pages: int, groups: int, ways: int) -> None:
    random = Random(7)
    found = [swept_again(pages, groups, ways, random) for _ in range(300)]
    assert survival(pages, groups, ways) == pytest.approx(sum(found) / len(found), abs=0.03)


@given(st.integers(2, 700), st.integers(1, 24), st.integers(1, 9))
def test_fewer_pages_survive_the_more_there_are(groups: int, ways: int, tenths: int) -> None:
    counts = [survival(pages, groups, ways) for pages in range(1, 4 * ways * groups, max(1, ways * groups // 5))]
    assert counts == sorted(counts, reverse=True)
    assert 0 <= counts[-1] <= counts[0] == 1
    assert usable_share(groups, ways, tenths / 10) >= usable_share(groups, ways, (tenths + 0.5) / 10)


def test_thresholds_are_gradual_unless_pages_are_huge(tmp_path) -> None:
    (tmp_path / "sum.c").write_text(SUM)
    (tmp_path / "sum.s").write_text(LOOP)
    code = CodeRequest(asm=str(tmp_path / "sum.s"))

    def lines(share: float, pages=None, *, classic: bool = False, cache="lc"):
        n = int(load_machine("hsw").level("L2").size_bytes * share) // 8
        request = KernelRequest(str(tmp_path / "sum.c"), "hsw", {"n": n}, cache=cache, pages=pages)
        answer = predict_ecm(request, CodeRequest(asm=code.asm, classic=classic))
        path = answer.traffic.path("L2L3")
        return path.loads, path.intervals["loads"], {note.code for note in answer.notes}

    shares = (0.5, 0.7, 0.9, 1.05, 1.3, 1.6)
    found = [lines(share) for share in shares]
    assert [loads for loads, *_ in found] == [0, 0.25, 0.5, 0.5, 0.75, 1]
    assert [interval is not None for _, interval, _ in found] == [False, True, True, True, True, False]
    assert ["page-placement" in codes for *_, codes in found] == [False, True, True, True, True, False]
    assert [lines(share, "huge")[0] for share in shares] == [0, 0, 0, 1, 1, 1]
    assert [lines(share, classic=True)[0] for share in shares] == [0, 0, 0, 1, 1, 1]
    assert lines(0.9, cache="auto")[0] == 0.5
    assert lines(0.9, cache="sim")[0] == 0


@given(
    st.lists(
        st.tuples(st.integers(1, 999), st.integers(0, 100)), min_size=2, max_size=6, unique_by=lambda pair: pair[0]
    ),
    st.integers(1, 100),
)
def test_a_cache_has_room_for_as_much_as_it_keeps_that_share_of(pairs: list[tuple[int, int]], percent: int) -> None:
    sizes, shares = sorted(size for size, _ in pairs), sorted((share / 100 for _, share in pairs), reverse=True)
    level = replace(load_machine("zen3").level("L3"), kept=tuple(zip(map(float, sizes), shares, strict=True)))
    room, share = level.room(percent / 100), percent / 100
    assert sizes[0] <= room <= sizes[-1]
    assert level.room(share / 2) >= room
    if shares[-1] < share < shares[0]:
        assert np.interp(room, sizes, shares) == pytest.approx(share)
    assert replace(level, kept=()).room(share) == level.size_bytes


KEPT = "kept: [[6 MiB, 1], [12 MiB, 0.8], [24 MiB, 0.2], [32 MiB, 0]]"


@pytest.mark.parametrize("pages", [None, "huge"])
def test_a_shared_cache_keeps_the_share_that_was_measured(tmp_path, pages) -> None:
    """Neither all lines up to the size of the cache nor none beyond it; pages have no part in it."""
    (tmp_path / "sum.c").write_text(SUM)
    (tmp_path / "sum.s").write_text(LOOP)
    text = find_machine("hsw").read_text(encoding="utf-8")
    before, outermost = text.split("  L3:\n")
    (tmp_path / "mine.yml").write_text(f"{before}  L3:\n    {KEPT}\n{outermost}")
    machine = load_machine(str(tmp_path / "mine.yml"))

    def lines(mib: float, *, classic: bool = False, cache="lc"):
        request = KernelRequest(
            str(tmp_path / "sum.c"), machine.file, {"n": int(mib * 2**20) // 8}, cache=cache, pages=pages
        )
        answer = predict_ecm(request, CodeRequest(asm=str(tmp_path / "sum.s"), classic=classic))
        path = answer.traffic.path("L3Mem")
        return path.loads, path.intervals["loads"], {note.code for note in answer.notes}

    found = [lines(mib) for mib in (5, 13, 17, 23, 40)]
    assert [loads for loads, *_ in found] == [0, 0.25, 0.5, 0.75, 1]
    assert ["shared-cache" in codes for *_, codes in found] == [False, True, True, True, False]
    assert (found[1][1].low, found[1][1].high) == (0, 1)
    assert [lines(mib, classic=True)[0] for mib in (13, 23, 40)] == [0, 0, 1]
    assert lines(23, cache="sim")[0] == 0


def test_traffic_says_with_what_ecm_counts() -> None:
    """`traffic` is of whole caches: near a threshold it must not contradict `ecm` silently."""
    near = KernelRequest("stencil", "clx", {"N": 30_000})
    answers = (answer_of(one) for one in (near, replace(near, sizes={"N": 5000}), replace(near, pages="huge")))
    told = [[note.text for note in answer.notes if note.code == "page-placement"] for answer in answers]
    path = predict_ecm(near, CodeRequest()).traffic.path("L2L3")
    ends = f"{path.at('low').lines:.3g} to {path.at('high').lines:.3g}"
    assert f"L2L3 {ends} lines, {path.lines:.3g} on average" in told[0][0]
    assert told[1:] == [[], []]


FIVE = """double x0[N], x1[N], x2[N], x3[N], x4[N];
for (int i = 0; i < N; ++i) x0[i] = x1[i] + x2[i] + x3[i] + x4[i];
"""
ROWS = """double a[N][N], b[N][N];
for (int j = 2; j < N - 2; ++j)
  for (int i = 2; i < N - 2; ++i)
    b[j][i] = a[j][i] + a[j][i-1] + a[j][i+1] + a[j-2][i] + a[j+2][i];
"""


def test_a_victim_cache_keeps_lines_of_overfull_sets(tmp_path) -> None:
    """A hit takes its line out of a victim cache: of 1.25 times its room a quarter stays. Layer conditions, by which
    nothing does, were believed for their count of the lines in each set."""
    (tmp_path / "five.c").write_text(FIVE)
    found = answer_of(KernelRequest(str(tmp_path / "five.c"), "clx", {"N": 483_328})).traffic
    assert (found.method, found.symbolic is not None) == ("simulation", True)
    assert found.path("L2L3").loads > 1
    assert found.path("L3Mem").loads < 4


def test_places_of_pages_that_change_nothing_are_left_out(tmp_path) -> None:
    """Near a threshold a ten-thousandth of a line was another number than that of `traffic`, and an interval whose two
    ends were printed alike."""
    (tmp_path / "rows.c").write_text(ROWS)
    sizes = {"N": 8100}
    request = KernelRequest(str(tmp_path / "rows.c"), "tx2", sizes, cache="lc")
    method = traffic_method(read_nest(request), load_machine("tx2"), request)
    found = method.found(sizes, 1, "regular")
    assert method.placed(found, sizes, 1, "regular") is found


def answer_of(request: KernelRequest) -> TrafficAnswer:
    (answer,) = predict_traffic_sweep(request, [request.sizes])
    return answer


@pytest.mark.parametrize(("n", "kept"), [(400, 1.0), (700, 0.75), (1000, 0.5), (1100, 0.25), (1300, 0.0)])
def test_a_first_cache_gives_up_lines_before_it_is_full(n: int, kept: float) -> None:
    """Three rows of a and one of b pass before a row comes again, of which Zen 4 keeps the more the less they are: in
    quarters of the lines, as the core's figure says, since the machine file says nothing."""
    code = km.CodeOptions(flags="-O3 -march=znver3 -fno-loop-unroll-and-jam")
    answer = km.ecm("stencil", "zen4", N=n, M=50_000_000 // n, code=code).answer
    assert answer.machine.levels[0].kept
    # two of three rows are found again, or loaded from L2
    assert answer.traffic.path("L1L2").loads == pytest.approx(4 - 2 * kept, abs=0.05)
    gradual = [note for note in answer.notes if note.code == "gradual-replacement"]
    assert len(gradual) == (0 < kept < 1)
