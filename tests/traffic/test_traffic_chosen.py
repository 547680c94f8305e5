"""Traffic and FLOP of references whose indices conditions choose, against the lines that the code touches."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import pytest
from traffic_reference import LINE, Cache, toy_machine

from kernmodel.errors import SourceError
from kernmodel.source.load import find_nests, parse_kernel
from kernmodel.source.model import LoopNest, Stated
from kernmodel.traffic.conditional import executed_traffic
from kernmodel.traffic.conditions.layer_conditions import layer_conditions
from kernmodel.traffic.model import Traffic
from kernmodel.traffic.simulation.simulate import simulate
from kernmodel.user_files import GivenText

M, N = 60, 400
CACHES = 1 << 10, 20 << 10, 64 << 10
HEAD = """
#define MIN(a, b) ((a) < (b) ? (a) : (b))
static inline int clamp(int k, int last) { return k < 0 ? 0 : k > last ? last : k; }
void f(int m, int n, double *restrict x, double *restrict y, const double *restrict u)
{
    for (int j = 0; j < m; ++j)
        for (int i = 0; i < n; ++i) {
            int c = j * n + i;
            %s
        }
}
"""
Touch = tuple[str, int]
_OUTCOMES = random.Random(1)
POSITIVE = [_OUTCOMES.random() < 0.5 for _ in range(M * N)]


def wrapped(j: int, i: int) -> list[Touch]:
    return [("x", j * N + (i - 1) % N), ("x", (j - 1) % M * N + i), ("x", (j + 1) % M * N + i), ("y", j * N + i)]


def clamped(j: int, i: int) -> list[Touch]:
    return [("x", max(j - 1, 0) * N + i), ("x", min(j + 1, M - 1) * N + min(i + 1, N - 1)), ("y", j * N + i)]


def own(j: int, i: int) -> list[Touch]:
    c = j * N + i
    return [("x", c if i == 0 else c - 1), ("x", c if j == M - 1 else c + N), ("y", c)]


def upwind(j: int, i: int) -> list[Touch]:
    row = min(j + 1, M - 1) if POSITIVE[j * N + i] else j
    return [("u", j * N + i), ("x", row * N + i), ("y", j * N + i)]


CASES: dict[str, tuple[Callable[[int, int], list[Touch]], float]] = {
    """int w = i == 0 ? n - 1 : i - 1, s = j == 0 ? m - 1 : j - 1, t = j < m - 1 ? j + 1 : 0;
    y[c] = x[j * n + w] + x[s * n + i] + x[t * n + i];""": (wrapped, 2),
    "y[c] = 2.0 * (x[(j > 0 ? j - 1 : 0) * n + i] + x[MIN(j + 1, m - 1) * n + MIN(i + 1, n - 1)]);": (clamped, 2),
    "y[c] = x[clamp(j - 1, m - 1) * n + i] + x[clamp(j + 1, m - 1) * n + clamp(i + 1, n - 1)];": (clamped, 1),
    "int w = (i == 0) ? c : c - 1; int s; if (j == m - 1) s = c; else s = c + n; y[c] = x[w] + x[s];": (own, 1),
    "const double *p = x + c; if (i > 0) p = x + c - 1; y[c] = p[0] + x[j == m - 1 ? c : c + n];": (own, 1),
    "int row; if (u[c] > 0.0) row = MIN(j + 1, m - 1); else row = j; y[c] = x[row * n + i];": (upwind, 0),
}


@cache
def lines(touched: Callable[[int, int], list[Touch]], sizes: tuple[int, ...]) -> tuple[tuple[float, float], ...]:
    """Lines that each path loads and stores in an iteration, of the second sweep."""
    caches: list[Cache] = []
    for size in reversed(sizes):
        caches.insert(0, Cache(size, caches[0] if caches else None, "miss"))
    trace = [
        ((ord(array) << 34) + 8 * element, array == "y")
        for j in range(M)
        for i in range(N)
        for array, element in touched(j, i)
    ]
    for _ in range(2):
        for level in caches:
            level.loads = level.stores = 0
        for address, modify in trace:
            caches[0].access(address // LINE, modify)
    return tuple((level.loads / (M * N), level.stores / (M * N)) for level in caches)


@pytest.mark.parametrize("by", [layer_conditions, simulate])
@pytest.mark.parametrize("code", CASES)
def test_traffic_is_that_of_the_lines_that_are_touched(code: str, by: Callable[..., Traffic]) -> None:
    touched, flops = CASES[code]
    sizes, machine = {"m": M, "n": N}, toy_machine(*CACHES)
    nest = parse_kernel(HEAD % code, "x.c", sizes, function="f")
    assert nest.operations.flops_per_iteration == flops
    traffic = executed_traffic(by(nest, machine, sizes), nest, sizes, machine)
    for path, expected in zip(traffic.paths, lines(touched, CACHES), strict=True):
        found = path.loads / traffic.iterations_per_unit, path.stores / traffic.iterations_per_unit
        assert found == pytest.approx(expected, rel=0.04, abs=0.001)


def test_borders_are_counted_and_said() -> None:
    nest = parse_kernel(HEAD % "y[c] = x[i == 0 ? c : c - 1];", "x.c", {"m": 9, "n": 100}, function="f")
    assert [(str(one.offset), one.executed) for one in nest.reads()] == [("i + j*n - 1", pytest.approx(1.0))]
    (note,) = [note for note in nest.notes if note.code == "chosen-index"]
    assert "cases that hold in less than 12.5% of the iterations, or never, are left out" in note.text
    halves = parse_kernel(HEAD % "y[c] = x[2 * i < n ? i : c];", "x.c", {"m": 9, "n": 100}, function="f")
    assert {str(one.offset): one.executed for one in halves.reads()} == {"i": 0.5, "i + j*n": 0.5}
    taken = parse_kernel(
        HEAD % "y[c] = x[u[c] > 0.0 ? c : c - 1];",
        "x.c",
        {"m": 9, "n": 100},
        function="f",
        stated=Stated(taken=((9, 0.25),)),
    )
    assert {str(one.offset): one.executed for one in taken.reads() if one.array == "x"} == {
        "i + j*n": 0.25,
        "i + j*n - 1": 0.75,
    }


def test_signs_of_sizes_are_known_and_values_of_sizes_choose() -> None:
    strided = """void axpy(int n, double a, const double *x, int sx, double *y, int sy) {
        int ix = sx > 0 ? 0 : (1 - n) * sx, iy = sy > 0 ? 0 : (1 - n) * sy;
        for (int i = 0; i < n; ++i) { y[iy] += a * x[ix]; ix += sx; iy += sy; } }"""
    assert [str(one.offset) for one in parse_kernel(strided, "x.c").accesses] == ["i*sx", "i*sy", "i*sy"]
    chosen = "void f(int n, double *x) { int k = n > 50 ? n : 2 * n; for (int i = 0; i < k; ++i) x[i] = 0; }"
    for n, stop in ((100, "n"), (20, "2*n")):
        nest = parse_kernel(chosen, "x.c", {"n": n})
        assert str(nest.loops[0].stop) == stop and nest.counted_at


def test_what_is_chosen_stands_in_no_bound_index_array_or_quotient() -> None:
    for code, why in {
        "int k = i > j ? i : 0; for (int l = 0; l < k; ++l) y[l] = x[l];": "which a condition chooses",
        "int k = i > j ? 0 : i; y[c] = x[k / 2];": "chosen by a condition already",
        "const double *p = x; if (u[c] > 0.0) p = u; y[c] = p[c];": "a branch lets it point elsewhere",
    }.items():
        found = find_nests(GivenText(HEAD % code), {}, function="f")
        assert any(isinstance(one.nest, SourceError) and why in one.nest.what for one in found), (code, found)
        assert not all(isinstance(one.nest, LoopNest) for one in found)
