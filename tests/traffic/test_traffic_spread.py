"""Arrays that meet in few sets by their addresses in the program: where pages lie anywhere, beyond L1 they do not."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from kernmodel.cachesim.engine import Simulator
from kernmodel.cachesim.model import CacheSpec, Hierarchy
from kernmodel.machine.load import load_machine
from kernmodel.report.html.traffic import paths_chart
from kernmodel.report.json.traffic import traffic_json
from kernmodel.report.layout import Table
from kernmodel.report.text.traffic import path_table
from kernmodel.studies.predict.nests import read_nest
from kernmodel.studies.predict.request import KernelRequest
from kernmodel.studies.predict.traffic import TrafficMethod, predict_traffic_sweep, traffic_method
from kernmodel.traffic.model import QUANTITIES, Traffic
from kernmodel.traffic.spread import SPREAD, spread_caches

STREAMS, EXTENT = 12, 65536
"""Arrays of 512 KiB: all begin in the same set of caches of up to 4096 sets."""
SUM = f"""\
void sum(int n, double W[restrict {STREAMS}][n], double b[restrict n]) {{
    for (int i = 0; i < n; ++i)
        b[i] = {" + ".join(f"W[{number}][i]" for number in range(STREAMS))};
}}
"""
LANES = 4


def method_of(path: Path, pages: str | None = None, machine: str = "bdw", extent: int = EXTENT) -> TrafficMethod:
    path.write_text(SUM)
    request = KernelRequest(str(path), machine, {"n": extent}, pages=pages)
    return traffic_method(read_nest(request), load_machine(machine), request)


def traffics(method: TrafficMethod, extent: int = EXTENT) -> tuple[Traffic, Traffic]:
    """By the addresses of the program, and as `ecm` takes it."""
    found = method.found({"n": extent}, 1, "regular", LANES)
    return found, method.placed(found, {"n": extent}, 1, "regular", LANES)


def lines_loaded(sets: int, ways: int, place: dict[int, int]) -> float:
    """Loads that miss a cache which is as good as the only one, per line of each array, of arrays whose pages lie at
    these places: an access touches half a line of each array at a time."""
    kept: list[OrderedDict[int, None]] = [OrderedDict() for _ in range(sets)]
    missed, lines = 0, 64 * 64
    for half in range(2 * lines):
        for array in range(STREAMS):
            address = array * 8 * EXTENT + 32 * half
            line = (place[address // 4096] * 4096 + address % 4096) // 64
            group = kept[line % sets]
            missed += line not in group
            group[line] = None
            group.move_to_end(line)
            if len(group) > ways:
                group.popitem(last=False)
    return missed / lines


def test_pages_at_random_places_let_nothing_meet_beyond_the_first_cache(tmp_path: Path) -> None:
    """Sets by a hash of the page are what pages at random places come to, seen here page by page."""
    level = load_machine("bdw").level("L2")
    pages = [array * 8 * EXTENT // 4096 + page for array in range(STREAMS) for page in range(64)]
    places = Random(3).sample(range(1 << 20), len(pages))
    met = lines_loaded(level.sets, level.ways, {page: page for page in pages})
    apart = lines_loaded(level.sets, level.ways, dict(zip(pages, places, strict=True)))
    assert (met, apart) == (2 * STREAMS, pytest.approx(STREAMS, rel=0.1))
    found, taken = traffics(method_of(tmp_path / "sum.c", "4k"))
    written = 1  # b is loaded because it is written
    assert found.path("L2L3").loads == pytest.approx(met + written, rel=0.01)
    assert taken.path("L2L3").loads == pytest.approx(apart + written, rel=0.1)
    # the first cache finds its sets within a page
    assert taken.path("L1L2").loads == pytest.approx(found.path("L1L2").loads, rel=0.01)
    assert SPREAD in taken.notes and not any(taken.path("L2L3").intervals.values())


@pytest.mark.parametrize("streams", [12, 40, 100])
def test_sets_by_a_hash_of_the_page_lose_what_random_pages_lose(streams: int) -> None:
    """The lines at one place of many pages share eight sets of L2, which pages at random places fill unevenly."""
    level, random, rounds = load_machine("bdw").level("L2"), Random(5), 600
    lost = found = 0
    for begin in range(rounds):
        groups = [random.randrange(level.sets // 64) for _ in range(streams)]
        lost += sum(groups.count(group) for group in set(groups) if groups.count(group) > level.ways)
        simulator = Simulator(Hierarchy((CacheSpec("L2", level.sets, level.ways, hashed=True, hashed_lines=64),)))
        addresses = [4096 * (1000 * begin + 8 * array) for array in range(streams)]
        simulator.run_trace([0] * 2 * streams, 2 * addresses, [8] * 2 * streams)
        found += simulator.counters().levels["L2"].load_misses - streams
    assert found / rounds == pytest.approx(lost / rounds, rel=0.1, abs=1)


def test_pages_that_are_not_known_give_an_interval(tmp_path: Path) -> None:
    found, taken = traffics(method_of(tmp_path / "sum.c"))
    loads = taken.path("L2L3").intervals["loads"]
    assert loads is not None
    assert (loads.low, loads.high) == (taken.path("L2L3").loads, pytest.approx(found.path("L2L3").loads, rel=0.01))
    assert loads.cause == "huge pages and pages of 4 KiB"
    # what layer conditions say of L2 holds again
    assert {one.path for one in taken.differences} == {"L1L2"}
    assert {one.path for one in found.differences} == {"L1L2", "L2L3"}


@pytest.mark.parametrize("pages", [None, "4k"])
def test_reports_have_quantities_without_an_interval_too(tmp_path: Path, pages: str | None) -> None:
    _, taken = traffics(method_of(tmp_path / "sum.c", pages))
    assert all(tuple(path.intervals) == QUANTITIES for path in taken.paths)
    unsure = {path.path: [name for name in QUANTITIES if path.intervals[name]] for path in taken.paths}
    assert unsure["L2L3"] == ([] if pages else ["loads"])
    machine = load_machine("bdw")
    for blocks in (path_table(taken, machine), paths_chart(taken, machine).table):
        (table,) = (block for block in blocks if isinstance(block, Table))
        assert all(len(row) == len(table.columns) for row in table.rows)
    found = {path["path"]: path for path in traffic_json(taken, machine)["paths"]}
    assert {path: [name for name in QUANTITIES if f"{name}_interval" in found[path]] for path in found} == unsure


def test_in_huge_pages_they_meet_but_in_a_cache_that_is_hashed(tmp_path: Path) -> None:
    found, taken = traffics(method_of(tmp_path / "sum.c", "huge"))
    assert taken.path("L2L3").loads == pytest.approx(found.path("L2L3").loads, rel=0.01)
    machine = load_machine("bdw")
    assert spread_caches(machine, huge=True) == ("L3",)
    assert spread_caches(machine, huge=False) == ("L2", "L3")
    plain = replace(machine, levels=tuple(replace(level, hashed=False) for level in machine.levels))
    assert spread_caches(plain, huge=True) == ()


def test_arrays_that_do_not_meet_stay_as_they_were_found(tmp_path: Path) -> None:
    found, taken = traffics(method_of(tmp_path / "sum.c", extent=EXTENT + 8), EXTENT + 8)
    assert taken is found


def test_traffic_says_what_ecm_counts_with(tmp_path: Path) -> None:
    (tmp_path / "sum.c").write_text(SUM)
    request = KernelRequest(str(tmp_path / "sum.c"), "bdw", {"n": EXTENT})
    (answer,) = predict_traffic_sweep(request, [request.sizes])
    (note,) = (note for note in answer.notes if note.code == SPREAD.code)
    assert "and `ecm` counts with that: " in note.text and "L2L3" in note.text
    assert note.text.endswith(" taken")  # one size of pages, no mean of parts of the lines
