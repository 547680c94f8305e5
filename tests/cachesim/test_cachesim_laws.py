"""Laws that every simulation obeys, whatever its caches."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from cachesim_strategies import Trace, hierarchies, touch, traces
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.cachesim.engine import Engine, Simulator, compiled_available
from kernmodel.cachesim.model import CacheSpec, Counters, Hierarchy, LevelCounters

ENGINES: list[Engine] = ["python", *(["compiled"] if compiled_available() else [])]
engines = st.sampled_from(ENGINES)
law = settings(max_examples=60)


def simulated(hierarchy: Hierarchy, trace: Trace, engine: Engine) -> Counters:
    simulator = Simulator(hierarchy, engine=engine)
    kinds, addresses, sizes = zip(*trace, strict=True)
    simulator.run_trace(kinds, addresses, sizes)
    simulator.flush()
    return simulator.counters()


@law
@given(hierarchies(), traces(), engines)
def test_requests_add_up(hierarchy: Hierarchy, trace: Trace, engine: Engine) -> None:
    """Hits and misses are all requests, no more lines leave a cache than came, one level serves each touch."""
    counters = simulated(hierarchy, trace, engine)
    for level in counters.levels.values():
        assert level.load_hits + level.load_misses == level.loads
        assert level.store_hits + level.store_misses == level.stores
        left = level.dirty_evictions + level.clean_evictions + level.invalidations
        assert left <= level.load_misses + level.store_misses
    line = hierarchy.levels[0].line_bytes
    touches = Counter[int]()
    for kind, address, size in trace:
        touches[kind] += (address + size - 1) // line - address // line + 1
    assert sum(counters.served[0]) == sum(touches.values())
    first = counters.levels["L1"]
    assert (first.loads, first.stores) == (touches[0], touches[1])
    assert counters.served[0][-1] >= touches[2]
    assert counters.accesses == len(trace)


def fetches(spec: CacheSpec, level: LevelCounters, is_first: bool) -> int:
    """Lines that a cache asks for, where all stores that come from inside are whole lines."""
    return level.load_misses + (level.store_misses if is_first and spec.write_allocate else 0)


@law
@given(hierarchies(plain=True), traces(kinds=2), engines)
def test_loads_of_a_level_are_the_misses_that_name_it(hierarchy: Hierarchy, trace: Trace, engine: Engine) -> None:
    levels = tuple(replace(spec, write_back=True, victim_level=None) for spec in hierarchy.levels)
    levels = (levels[0], *(replace(spec, write_allocate=True) for spec in levels[1:]))
    levels = (replace(levels[0], write_allocate=True), *levels[1:])
    counters = simulated(replace(hierarchy, levels=levels), trace, engine)
    asked, given_ = Counter[str](), Counter[str]()
    for index, spec in enumerate(levels):
        level = counters.levels[spec.name]
        asked[spec.load_from] += fetches(spec, level, index == 0)
        given_[spec.store_to] += level.dirty_evictions
    for spec in levels[1:]:
        assert counters.levels[spec.name].loads == asked[spec.name]
        assert counters.levels[spec.name].stores == given_[spec.name]
    assert (counters.memory_loads, counters.memory_stores) == (asked["MEM"], given_["MEM"])


@law
@given(traces(kinds=2), st.integers(1, 4), st.integers(1, 4), engines)
def test_a_victim_level_gets_what_its_level_gives_up(trace: Trace, sets: int, ways: int, engine: Engine) -> None:
    levels = (
        CacheSpec("L1", sets, ways, line_bytes=32, victim_level="L2", load_from="MEM", store_to="L2"),
        CacheSpec("L2", sets, 2 * ways, line_bytes=32, write_allocate=False),
    )
    counters = simulated(Hierarchy(levels), trace, engine)
    first, second = counters.levels["L1"], counters.levels["L2"]
    assert second.loads == first.load_misses + first.store_misses
    assert second.stores == first.dirty_evictions + first.clean_evictions
    assert second.store_hits == 0  # exclusive: a line is in one of the two
    assert counters.memory_loads == second.load_misses
    assert counters.memory_stores == second.dirty_evictions


@law
@given(hierarchies(plain=True), traces(kinds=2), engines)
def test_more_ways_of_recency_never_miss_more(hierarchy: Hierarchy, trace: Trace, engine: Engine) -> None:
    """LRU is a stack algorithm (Mattson et al. 1970)."""
    spec = replace(
        hierarchy.levels[0], policy="LRU", load_from="MEM", store_to="MEM", victim_level=None, write_allocate=True
    )
    misses = []
    for ways in (spec.ways, spec.ways + 1, spec.ways + 3):
        level = simulated(Hierarchy((replace(spec, ways=ways),)), trace, engine).levels["L1"]
        misses.append(level.load_misses + level.store_misses)
    assert misses == sorted(misses, reverse=True)


@law
@given(hierarchies(), st.lists(st.integers(0, 40), min_size=1, max_size=200), engines)
def test_an_inclusive_level_has_all_lines_of_the_caches_inside(
    hierarchy: Hierarchy, lines: list[int], engine: Engine
) -> None:
    inner = CacheSpec("L1", 3, 4, line_bytes=32, load_from="L2", store_to="L2")
    outer = CacheSpec("L2", 2, 2, line_bytes=32, policy=hierarchy.levels[0].policy, inclusive=True)
    simulator = Simulator(Hierarchy((inner, outer)), engine=engine)
    for number, line in enumerate(lines):
        touch(simulator, "store" if number % 3 == 0 else "load", 32 * line, 4)
    counters = simulator.counters()
    assert counters.levels["L2"].store_misses == 0  # what L1 writes back is still there
    evicted = counters.levels["L2"].dirty_evictions + counters.levels["L2"].clean_evictions
    assert counters.levels["L1"].invalidations <= evicted
    assert counters.memory_stores == counters.levels["L2"].dirty_evictions


@law
@given(traces(kinds=1), st.sampled_from([1, 2, 4]), engines)
def test_sub_blocks_add_up_to_the_bytes_loaded(trace: Trace, sub_blocks: int, engine: Engine) -> None:
    levels = (CacheSpec("L1", 400, 1, line_bytes=32, sub_blocks=sub_blocks),)  # holds everything
    counters = simulated(Hierarchy(levels), trace, engine)
    block = 32 // sub_blocks
    touched = {b for _, address, size in trace for b in range(address // block, (address + size - 1) // block + 1)}
    assert counters.memory_loads == len(touched)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("policy", "hits"),
    [
        ("LRU", ""),
        ("FIFO", ""),
        ("MRU", "5 6 7 9 10 11 13 14 15"),  # three of the lines stay
        ("PLRU", "6"),  # derived by hand on a tree of three nodes
    ],
)
def test_a_cyclic_sweep_just_too_large(engine: Engine, policy: Any, hits: str) -> None:
    """Five lines in turn through four ways."""
    simulator = Simulator(Hierarchy((CacheSpec("L1", 1, 4, policy=policy),)), engine=engine)
    found = []
    for access in range(16):
        before = simulator.counters().levels["L1"].load_hits
        touch(simulator, "load", access % 5 * 64, 8)
        if simulator.counters().levels["L1"].load_hits > before:
            found.append(str(access))
    assert " ".join(found) == hits


@pytest.mark.parametrize("engine", ENGINES)
def test_random_replacement_follows_its_seed(engine: Engine) -> None:
    def misses(seed: int) -> list[int]:
        simulator = Simulator(Hierarchy((CacheSpec("L1", 1, 4, policy="RANDOM"),), seed=seed), engine=engine)
        found = []
        for access in range(200):
            touch(simulator, "load", access * 7 % 11 * 64, 8)
            found.append(simulator.counters().levels["L1"].load_misses)
        return found

    assert misses(1) == misses(1)
    assert misses(1) != misses(2)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_hashed_index_spreads_a_power_of_two_stride(engine: Engine) -> None:
    misses = {}
    for hashed in (False, True):
        simulator = Simulator(Hierarchy((CacheSpec("L1", 64, 4, hashed=hashed),)), engine=engine)
        for _ in range(3):
            for line in range(64):
                touch(simulator, "load", line * 64 * 64, 8)
        misses[hashed] = simulator.counters().levels["L1"].load_misses
    assert misses[False] == 192
    assert misses[True] < 90


@pytest.mark.parametrize("engine", ENGINES)
def test_lines_that_stay_together_keep_their_place_in_pages(engine: Engine) -> None:
    """The lines at one place of pages share one set in 64, wherever the pages lie; those of a page have one each."""
    spec = CacheSpec("L1", 512, 8, hashed=True, hashed_lines=64)
    misses = []
    for lines in ([64 * page for page in range(200)], list(range(64))):
        simulator = Simulator(Hierarchy((spec,)), engine=engine)
        for line in 2 * lines:
            touch(simulator, "load", 64 * line, 8)
        misses.append(simulator.counters().levels["L1"].load_misses)
    # 512 / 64 sets of 8 ways have room for 64 of 200 lines
    assert misses[0] >= 400 - 64 and misses[1] == 64
