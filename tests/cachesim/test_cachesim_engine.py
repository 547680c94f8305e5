"""Both engines against each other, against the naive simulation, and against the cases handed down to the project."""

from __future__ import annotations

import gc
import json
from array import array
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from cachesim_strategies import LONG_LINES, Trace, alike_rows, constant, hierarchies, programs, streams, touch, traces
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import Naive

from kernmodel.cachesim.engine import Engine, Simulator, check_hierarchy, compiled_available
from kernmodel.cachesim.model import (
    CacheSpec,
    Counters,
    Form,
    Hierarchy,
    Indirection,
    Position,
    Program,
    ProgramBound,
    ProgramLoop,
    ProgramReference,
    Progress,
)
from kernmodel.errors import InputError, ToolError

ENGINES: list[Engine] = ["python", *(["compiled"] if compiled_available() else [])]
CASES = Path(__file__).resolve().parents[2] / "../shared/data/cachesim/cases.json"
needs_compiled = pytest.mark.skipif(not compiled_available(), reason="the compiled engine was not built")
differential = settings(max_examples=60, deadline=None)

TWO_LEVELS = Hierarchy(
    (CacheSpec("L1", 4, 2, load_from="L2", store_to="L2"), CacheSpec("L2", 8, 4)), combining_buffers=2
)


def feed(simulator: Simulator, trace: Trace) -> None:
    kinds, addresses, sizes = zip(*trace, strict=True)
    simulator.run_trace(kinds, addresses, sizes)


def nest(*trips: int) -> tuple[ProgramLoop, ...]:
    return tuple(ProgramLoop(constant("max", 0, len(trips)), constant("min", t, len(trips)), 1) for t in trips)


def load(constant: int, *coefficients: int, **more: Any) -> ProgramReference:
    return ProgramReference("load", 8, Form(constant, coefficients), more.pop("depth", len(coefficients)), **more)


# The cases


def sequence(case: dict[str, Any]) -> Iterator[tuple[int, int, int]]:
    what = case["sequence"]
    match what["kind"]:
        case "stencil2d5":
            m, n = what["M"], what["N"]
            for j in range(1, m - 1):
                for i in range(1, n - 1):
                    at = 8 * (j * n + i)
                    yield from ((0, at + offset, 8) for offset in (-8, 8, -8 * n, 8 * n))
                    yield 1, at + 8 * m * n, 8
        case "streams":
            size, spacing = what["element"], what["n"] * what["element"] + what.get("pad", 0)
            for i in range(0, what["n"], what.get("step", 1)):
                for stream in range(what["loads"] + 1):
                    yield int(stream == what["loads"]), stream * spacing + i * size, size
        case "columns":
            yield from ((0, 8 * (j * what["N"] + i), 8) for i in range(what["N"]) for j in range(what["M"]))
        case "lcg":
            x = what["seed"]
            for t in range(what["count"]):
                x = (1103515245 * x + 12345) % 2**31
                address = (x >> 3) % what["range"] * what["size"] + what.get("offset", 0)
                yield int(t % what["store_every"] == 0), address, what["size"]


def flat(counters: Counters) -> dict[str, dict[str, int]]:
    levels = {name: asdict(level) for name, level in counters.levels.items()}
    return levels | {"MEM": {"memory_loads": counters.memory_loads, "memory_stores": counters.memory_stores}}


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ENGINES)
def test_every_case_is_exact(engine: Engine) -> None:
    if not CASES.is_file():
        pytest.skip("../shared/data/cachesim/cases.json is not here")
    for case in json.loads(CASES.read_text())["cases"]:
        trace = list(sequence(case))
        if engine == "python" and len(trace) > 12_000:
            continue  # seconds each; the compiled engine does them, and is held against this one below
        simulator = Simulator(Hierarchy(tuple(CacheSpec(**level) for level in case["levels"])), engine=engine)
        for number, expected in enumerate(case["phases"]):
            simulator.reset_counters()
            feed(simulator, trace)
            counted = flat(simulator.counters())
            found = {level: {what: counted[level][what] for what in expected[level]} for level in expected}
            assert found == expected, f"{case['id']}, phase {number}"


# Against the naive simulation


@differential
@given(hierarchies(policies=("LRU", "FIFO", "MRU", "PLRU")), traces(kinds=2), traces(kinds=2))
def test_engines_agree_with_the_naive_simulation(hierarchy: Hierarchy, warm: Trace, trace: Trace) -> None:
    levels = tuple(
        CacheSpec(**{**asdict(spec), "inclusive": False, "sub_blocks": 1, "hashed": False}) for spec in hierarchy.levels
    )
    hierarchy = Hierarchy(levels)
    naive, simulators = Naive(hierarchy), [Simulator(hierarchy, engine=engine) for engine in ENGINES]
    for phase in (warm, trace):
        naive.counts.clear()
        for access in phase:
            naive.access(*access)
        for simulator in simulators:
            simulator.reset_counters()
            feed(simulator, phase)
            counted = flat(simulator.counters())
            names = {"memory_loads": "loads", "memory_stores": "stores"}
            found = {(level, names.get(what, what)): n for level, all_ in counted.items() for what, n in all_.items()}
            assert {key: n for key, n in found.items() if n} == {key: n for key, n in naive.counts.items() if n}


# The two engines, and leaving out


@needs_compiled
@given(hierarchies(), traces(), traces())
def test_traces_give_the_same_in_both_engines(hierarchy: Hierarchy, first: Trace, second: Trace) -> None:
    python, compiled = (Simulator(hierarchy, engine=engine) for engine in ("python", "compiled"))
    for trace in (first, second):
        for simulator in (python, compiled):
            simulator.reset_counters()
            feed(simulator, trace)
        assert compiled.counters() == python.counters()
    for simulator in (python, compiled):
        simulator.flush()
    assert compiled.counters() == python.counters()


def attempt(simulator: Simulator, program: Program, start: Position | None, iterations: int | None) -> Progress | str:
    try:
        return simulator.run(program, start=start, iterations=iterations)
    except InputError as error:
        return str(error)


def run_all(simulators: list[Simulator], program: Program, runs: list[int | None], after: Trace) -> None:
    """Run pieces of a program and then a trace in all simulators; what they report must not differ."""
    position = None
    for iterations in runs:
        progress = [attempt(simulator, program, position, iterations) for simulator in simulators]
        assert all(each == progress[0] for each in progress)
        counters = [simulator.counters() for simulator in simulators]
        assert all(each == counters[0] for each in counters)
        if isinstance(progress[0], str):
            return
        position = progress[0].position
    for simulator in simulators:
        feed(simulator, after)
        simulator.flush()
    counters = [simulator.counters() for simulator in simulators]
    assert all(each == counters[0] for each in counters)


pieces = st.lists(st.none() | st.integers(0, 200), min_size=1, max_size=3)
later = traces(extent=3000, most=60).map(lambda trace: [(kind, 19_500 + at, size) for kind, at, size in trace])


@pytest.mark.thorough
@needs_compiled
@settings(max_examples=150, deadline=None)
@given(hierarchies(), programs(), pieces, later)
def test_programs_give_the_same_in_both_engines(
    hierarchy: Hierarchy, program: Program, runs: list[int | None], after: Trace
) -> None:
    compiled = [Simulator(hierarchy, engine="compiled", skip=skip) for skip in (False, True)]
    run_all([Simulator(hierarchy, engine="python"), *compiled], program, runs, after)


@pytest.mark.thorough
@needs_compiled
@differential
@given(hierarchies(lines=LONG_LINES), streams(), pieces, later)
def test_leaving_out_is_exact_with_all_rules(
    hierarchy: Hierarchy, program: Program, runs: list[int | None], after: Trace
) -> None:
    compiled = [Simulator(hierarchy, engine="compiled", skip=skip) for skip in (False, True)]
    run_all([Simulator(hierarchy, engine="python"), *compiled], program, runs, after)


@pytest.mark.thorough
@needs_compiled
@settings(max_examples=400, deadline=None)
@given(hierarchies(plain=True, lines=LONG_LINES), streams(kinds=2), pieces, later)
def test_leaving_out_is_exact_in_plain_hierarchies(
    hierarchy: Hierarchy, program: Program, runs: list[int | None], after: Trace
) -> None:
    run_all([Simulator(hierarchy, engine="compiled", skip=skip) for skip in (False, True)], program, runs, after)


@needs_compiled
@differential
@given(hierarchies(plain=True, lines=LONG_LINES), streams(kinds=3), pieces, later)
def test_leaving_out_is_exact_with_streaming_stores(
    hierarchy: Hierarchy, program: Program, runs: list[int | None], after: Trace
) -> None:
    run_all([Simulator(hierarchy, engine="compiled", skip=skip) for skip in (False, True)], program, runs, after)


@needs_compiled
@settings(max_examples=150, deadline=None)
@given(alike_rows(), pieces, later)
def test_rows_that_repeat_one_another_are_exact(
    case: tuple[Hierarchy, Program], runs: list[int | None], after: Trace
) -> None:
    hierarchy, program = case
    compiled = [Simulator(hierarchy, engine="compiled", skip=skip) for skip in (False, True)]
    for _ in range(2):
        run_all(compiled, program, runs, after)


@needs_compiled
@settings(max_examples=60, deadline=None)
@given(alike_rows(), st.integers(2048, 6000), st.lists(st.none() | st.integers(0, 9000), min_size=1, max_size=3), later)
def test_a_single_long_row_repeats_itself_exactly(
    case: tuple[Hierarchy, Program], trips: int, runs: list[int | None], after: Trace
) -> None:
    hierarchy, rows = case
    references = tuple(
        replace(each, address=Form(each.address.constant + 100_000, each.address.coefficients[-1:]), depth=1)
        for each in rows.references
    )
    compiled = [Simulator(hierarchy, engine="compiled", skip=skip) for skip in (False, True)]
    run_all(compiled, Program(nest(trips), references), runs, after)


@needs_compiled
def test_an_access_to_two_lines_is_left_out_line_by_line() -> None:
    """Of the reference at 20222 only the line in the set concerned was to be touched out of turn."""
    places = ((21356, 4), (20000, 0), (20000, -8), (20222, 0), (20000, 0), (20096, 0), (20000, 8))
    references = tuple(ProgramReference("load", 4, Form(base, (stride,)), 1) for base, stride in places)
    misses = []
    for skip in (False, True):
        simulator = Simulator(Hierarchy((CacheSpec("L1", 3, 3, hashed=True),)), engine="compiled", skip=skip)
        simulator.run(Program(nest(32), references))
        misses.append(simulator.counters().levels["L1"].load_misses)
    assert misses[0] == misses[1]


@pytest.mark.thorough
@needs_compiled
@pytest.mark.parametrize("policy", ["LRU", "FIFO", "RANDOM", "MRU", "PLRU"])
@pytest.mark.parametrize("ways", [1, 8, 20, 70])
def test_many_ways_give_the_same_in_both_engines(policy: Any, ways: int) -> None:
    levels = (
        CacheSpec("L1", 3, ways, policy=policy, load_from="L2", store_to="L2"),
        CacheSpec("L2", 5, 2 * ways, policy=policy),
    )
    x, trace = 7, []
    for _ in range(4000):
        x = (1103515245 * x + 12345) % 2**31
        trace.append((x >> 27 & 1, (x >> 7) % (45 * ways) * 64, 8))
    counted = []
    for engine in ENGINES:
        simulator = Simulator(Hierarchy(levels, seed=3), engine=engine)
        feed(simulator, trace)
        counted.append(simulator.counters())
    assert counted[0] == counted[1]
    assert counted[0].levels["L1"].dirty_evictions > 0


# Programs


def walk(program: Program) -> Trace:
    """The accesses of a sweep of a program without indirections, by recursion."""
    trace: Trace = []
    kinds = {"load": 0, "store": 1, "stream": 2}

    def value(form: Form, variables: list[int]) -> int:
        return form.constant + sum(c * v for c, v in zip(form.coefficients, variables, strict=False))

    def bound(which: ProgramBound, variables: list[int]) -> int:
        inner, outer = (max, min) if which.pick == "min" else (min, max)
        return outer(inner(value(form, variables) for form in group) for group in which.groups)

    def emit(depth: int, places: set[str], variables: list[int]) -> None:
        for r in program.references:
            if r.depth == depth and r.place in places:
                trace.append((kinds[r.kind], value(r.address, variables), r.size_bytes))

    def body(depth: int, variables: list[int]) -> None:
        if depth == len(program.loops):
            emit(depth, {"before", "after"}, variables)
            return
        emit(depth, {"before"}, variables)
        loop = program.loops[depth]
        for v in range(bound(loop.start, variables), bound(loop.stop, variables), loop.step):
            body(depth + 1, [*variables, v])
        emit(depth, {"after"}, variables)

    body(0, [])
    return trace


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ENGINES)
@differential
@given(hierarchy=hierarchies(), program=programs(indirect=False))
def test_a_program_is_its_trace(engine: Engine, hierarchy: Hierarchy, program: Program) -> None:
    trace, driven, fed = walk(program), Simulator(hierarchy, engine=engine), Simulator(hierarchy, engine=engine)
    progress = attempt(driven, program, None, None)
    if isinstance(progress, str):
        assert "no iteration" in progress
        return
    assert progress.sweeps == 1
    assert progress.position is None
    if trace:
        feed(fed, trace)
    one, other = driven.counters(), fed.counters()
    assert (flat(one), one.accesses) == (flat(other), other.accesses)
    assert [sum(column) for column in zip(*one.served, strict=True)] == list(other.served[0] if trace else ())


@pytest.mark.thorough
@pytest.mark.parametrize("engine", ENGINES)
@differential
@given(hierarchy=hierarchies(), program=programs(), cuts=st.lists(st.integers(0, 40), min_size=2, max_size=4))
def test_pieces_are_the_whole(engine: Engine, hierarchy: Hierarchy, program: Program, cuts: list[int]) -> None:
    whole, pieces_ = Simulator(hierarchy, engine=engine), Simulator(hierarchy, engine=engine)
    expected = attempt(whole, program, None, sum(cuts))
    position, iterations, sweeps = None, 0, 0
    for cut in cuts:
        progress = attempt(pieces_, program, position, cut)
        if isinstance(progress, str):
            assert progress == expected
            return
        position, iterations, sweeps = progress.position, iterations + progress.iterations, sweeps + progress.sweeps
    assert Progress(iterations, sweeps, position) == expected
    assert pieces_.counters() == whole.counters()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_position_begins_with_what_comes_before_its_loops(engine: Engine) -> None:
    program = Program(
        nest(5, 10),
        (
            load(0, 640, 8),
            load(1 << 20, 0, 0, depth=0),
            load(1 << 21, 64, 0, depth=1),
            load(1 << 22, 64, 0, depth=1, place="after"),
        ),
    )
    fresh, resumed = Simulator(TWO_LEVELS, engine=engine), Simulator(TWO_LEVELS, engine=engine)
    assert fresh.run(program, start=Position((2, 4)), iterations=5) == Progress(5, 0, Position((2, 9), False))
    assert [sum(row) for row in fresh.counters().served] == [5, 1, 1, 0]
    assert resumed.run(program, start=Position((2, 4), False), iterations=6) == Progress(6, 0, Position((3, 0), False))
    assert [sum(row) for row in resumed.counters().served] == [6, 0, 1, 1]
    assert resumed.run(program, start=Position((4, 9), False), iterations=1) == Progress(1, 1, None)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_position_between_iterations_means_the_next_one(engine: Engine) -> None:
    triangle = ProgramLoop(constant("max", 0, 2), ProgramBound("min", ((Form(0, (1, 0)),),)), 2)
    program = Program((nest(6, 1)[0], triangle), (load(0, 640, 8),))  # i < 6, j = 0, 2, … < i
    simulator = Simulator(TWO_LEVELS, engine=engine)
    for wanted, found in (((0, 0), (1, 0)), ((3, 1), (3, 2)), ((3, 3), (4, 0)), ((-9, 7), (1, 0)), ((4, -5), (4, 0))):
        progress = simulator.run(program, start=Position(wanted), iterations=1)
        expected = simulator.run(program, start=Position(found), iterations=1)
        assert progress == expected
    assert simulator.run(program, start=Position((9, 9))) == Progress(9, 1, None)


@pytest.mark.parametrize("engine", ENGINES)
def test_empty_inner_loops_leave_the_outer_references(engine: Engine) -> None:
    inner = ProgramLoop(constant("max", 0, 2), ProgramBound("min", ((Form(-3, (1, 0)),),)), 1)  # i − 3 iterations
    program = Program((nest(5, 1)[0], inner), (load(0, 0, 8), load(4096, 64, 0, depth=1)))
    simulator = Simulator(TWO_LEVELS, engine=engine)
    assert simulator.run(program) == Progress(1, 1, None)
    assert [sum(row) for row in simulator.counters().served] == [1, 5]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_program_without_loops_is_one_iteration(engine: Engine) -> None:
    simulator = Simulator(TWO_LEVELS, engine=engine)
    program = Program((), (load(64), ProgramReference("store", 8, Form(72, ()), 0, "after")))
    assert simulator.run(program) == Progress(1, 1, None)
    assert simulator.run(program, iterations=3) == Progress(3, 3, None)
    assert simulator.counters().served == ((3, 0, 1), (4, 0, 0))


@pytest.mark.parametrize("engine", ENGINES)
def test_index_arrays_hold_the_same_values_every_time(engine: Engine) -> None:
    def touched(**what: Any) -> list[int]:
        """The elements that 50 iterations of x[idx[i]] select: the only line in a cache of one line of one element."""
        indirection = Indirection(Form(0, (1,)), 8, **what)
        program = Program(nest(50), (ProgramReference("load", 8, Form(0, (0,)), 1, "before", (indirection,)),))
        elements = []
        for i in range(50):
            simulator = Simulator(Hierarchy((CacheSpec("L1", what["extent"], 1, line_bytes=8),)), engine=engine)
            simulator.run(program, start=Position((i,)), iterations=1)
            hits = []
            for element in range(what["extent"]):
                before = simulator.counters().levels["L1"].load_hits
                touch(simulator, "load", 8 * element, 8)
                hits.append(simulator.counters().levels["L1"].load_hits - before)
            elements.append(hits.index(1))
        return elements

    uniform = touched(kind="uniform", extent=20)
    assert uniform == touched(kind="uniform", extent=20)
    assert len(set(uniform)) > 12
    assert uniform != touched(kind="uniform", extent=20, seed=1)
    banded = touched(kind="banded", extent=25, width=2, positions=50)
    assert all(abs(element - i // 2) <= 2 for i, element in enumerate(banded))
    assert len({element - i // 2 for i, element in enumerate(banded)}) > 2
    assert touched(kind="table", extent=9, table=(3, 1, 8)) == [(3, 1, 8)[i % 3] for i in range(50)]


# Counting


@pytest.mark.parametrize("engine", ENGINES)
def test_served_says_which_level_had_the_line(engine: Engine) -> None:
    simulator = Simulator(TWO_LEVELS, engine=engine)
    for address in (0, 8, 256, 512, 0, 60):  # 0, 256 and 512 share a set of two ways; 60 … 67 are two lines
        touch(simulator, "load", address, 8)
    assert simulator.counters().served == ((2, 1, 4),)
    assert simulator.counters().accesses == 6


@pytest.mark.parametrize("engine", ENGINES)
def test_streaming_stores_gather_whole_lines(engine: Engine) -> None:
    simulator = Simulator(TWO_LEVELS, engine=engine)
    touch(simulator, "store", 0, 8)  # a modified copy, which goes to memory first
    for address in range(0, 64, 8):
        touch(simulator, "stream", address, 8)
    counters = simulator.counters()
    assert (counters.streamed_lines, counters.streamed_parts, counters.memory_stores) == (1, 0, 1)
    assert [level.invalidations for level in counters.levels.values()] == [1, 1]
    for line in (1, 2, 3):  # two buffers for three lines
        touch(simulator, "stream", 64 * line, 8)
    assert simulator.counters().streamed_parts == 1
    touch(simulator, "load", 128, 8)  # sends off its buffer
    assert simulator.counters().streamed_parts == 2
    simulator.flush()
    assert simulator.counters().streamed_parts == 3


@needs_compiled
def test_simulators_are_independent_and_give_back_their_memory() -> None:
    big = Hierarchy((CacheSpec("L1", 1 << 16, 16),))
    for _ in range(200):  # 2 GB if it stayed
        simulator = Simulator(big, engine="compiled")
        touch(simulator, "load", 0, 8)
        del simulator
    gc.collect()
    one, other = Simulator(TWO_LEVELS), Simulator(TWO_LEVELS)
    touch(one, "load", 0, 8)
    assert other.counters().accesses == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_traces_may_come_in_any_kind_of_sequence(engine: Engine) -> None:
    numpy = pytest.importorskip("numpy")
    frozen = numpy.array([0, 64, 128], dtype=numpy.uint64)
    frozen.flags.writeable = False
    counted = []
    for kinds, addresses, sizes in (
        ([0, 1, 2], [0, 64, 128], [8, 8, 8]),
        ((0, 1, 2), range(0, 192, 64), array("Q", [8, 8, 8])),
        (bytes([0, 1, 2]), frozen, numpy.full(3, 8)),
        (numpy.array([0, 1, 2]), numpy.array([0, 64, 128], dtype=numpy.int32), numpy.full(6, 8)[::2]),
    ):
        simulator = Simulator(TWO_LEVELS, engine=engine)
        simulator.run_trace(kinds, addresses, sizes)
        counted.append(simulator.counters())
    assert all(each == counted[0] for each in counted)
    assert counted[0].accesses == 3


# Bad input


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("trace", "message"),
    [
        (([0], [2**64 - 7], [8]), "access 1 of the trace: address 18446744073709551609 with 8 bytes leaves 64 bits"),
        (([0, 0], [0, -8], [8, 8]), "64 bits"),
        (([0], [2**64], [8]), "64 bits"),
        (([0], [0], [0]), "0 bytes"),
        (([0, 3], [0, 0], [8, 8]), "access 2 of the trace: there is no kind 3"),
        (([0, 0], [0], [8]), "differ in number"),
        (([0], [1.5], [8]), "whole numbers"),
    ],
)
def test_bad_traces_are_refused_before_anything_is_executed(engine: Engine, trace: Any, message: str) -> None:
    simulator = Simulator(TWO_LEVELS, engine=engine)
    with pytest.raises(InputError, match=message):
        simulator.run_trace(*trace)
    assert simulator.counters().accesses == 0


@pytest.mark.parametrize("engine", ENGINES)
def test_negative_numbers_in_arrays_are_refused(engine: Engine) -> None:
    for addresses, sizes in ((array("q", [-8]), array("q", [8])), (array("q", [8]), array("q", [-8]))):
        with pytest.raises(InputError):
            Simulator(TWO_LEVELS, engine=engine).run_trace(b"\0", addresses, sizes)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_last_byte_of_the_address_space_is_an_address(engine: Engine) -> None:
    simulator = Simulator(TWO_LEVELS, engine=engine)
    simulator.run_trace([0, 1], [2**64 - 8, 2**64 - 1], [8, 1])
    simulator.run(Program(nest(8), (load(2**60, 2**57),)))
    assert simulator.counters().levels["L1"].load_hits == 0
    assert simulator.counters().levels["L1"].store_hits == 1


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("program", "message"),
    [
        (Program(nest(17), (load(0, 8), load(0, 2**60))), "reference 2 of the program: the address leaves 64 bits"),
        (Program(nest(10), (load(64, -8),)), "reference 1 of the program: the address leaves 64 bits"),
        (Program(nest(4), (load(-8, 0, depth=0), load(0, 8))), "reference 1 of the program: the address leaves"),
        (Program(nest(0), (load(0, 8),)), "no iteration"),
        (Program(nest(4, 0), (load(0, 8, 0), load(0, 0, 0, depth=1))), "no iteration"),
        (Program(nest(2**61), (load(0, 0),)), "64 bits"),
        (Program(nest(32, 1), (load(0, 2**60, 0),)), "the address leaves 64 bits"),
        (
            Program(
                (
                    nest(32, 1)[0],
                    ProgramLoop(constant("max", 0, 2), ProgramBound("min", ((Form(1, (2**59, 0)),),)), 2**58),
                ),
                (load(0, 0, 0),),
            ),
            "a loop bound or factor leaves 64 bits",
        ),
        (
            Program(
                nest(4),
                (load(0, 0, indirections=(Indirection(Form(0, (1,)), -8, "uniform", 10),)),),
            ),
            "reference 1 of the program: the address leaves 64 bits",
        ),
    ],
)
def test_bad_programs_are_refused(engine: Engine, program: Program, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Simulator(TWO_LEVELS, engine=engine).run(program)


def spec(**changes: Any) -> CacheSpec:
    return CacheSpec(**{"name": "L1", "sets": 4, "ways": 2, **changes})


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ((), "h: has no cache; give at least one level"),
        ((spec(sets=0),), "h: L1: sets is 0; give a whole number of at least 1"),
        ((spec(ways=0),), "h: L1: ways is 0"),
        ((spec(ways=-1),), "h: L1: ways is -1"),
        ((spec(line_bytes=0),), "h: L1: line_bytes is 0"),
        ((spec(sets=2.5),), "h: L1: sets is 2.5"),
        ((spec(sub_blocks=3),), "h: L1: lines of 64 bytes do not divide into 3 sub-blocks"),
        ((spec(line_bytes=256, sub_blocks=128),), "h: L1: lines of 256 bytes do not divide into 128 sub-blocks"),
        ((spec(hashed_lines=3),), "h: L1: 3 lines that stay together; give a power of two"),
        ((spec(hashed_lines=0),), "h: L1: hashed_lines is 0"),
        ((spec(policy="lru"),), "h: L1: unknown replacement policy 'lru'; use one of LRU, FIFO, RANDOM, MRU, PLRU"),
        ((spec(sets=1 << 40),), "h: L1: 1099511627776 sets of 2 ways"),
        ((spec(line_bytes=1 << 31),), "h: L1: lines of 2147483648 bytes"),
        ((spec(), spec()), "h: level 2 is called 'L1'"),
        ((spec(name="MEM"),), "h: level 1 is called 'MEM'"),
        ((spec(load_from="L2"),), "h: L1: load_from names 'L2', which does not exist; name one of MEM"),
        ((spec(store_to="L1"),), "h: L1: store_to names 'L1', which is not further out"),
        ((spec(), spec(name="L2", load_from="L1")), "h: L2: load_from names 'L1', which is not further out"),
        ((spec(victim_level="L9"), spec(name="L2")), "h: L1: victim_level names 'L9', which does not exist"),
        ((spec(), spec(name="L2", victim_level="L1")), "h: L2: victim_level names 'L1', which is not further out"),
        ((spec(victim_level="MEM"), spec(name="L2")), "h: L1: victim_level names 'MEM', which is no cache"),
        ((spec(victim_level="L2"), spec(name="L2", line_bytes=128)), "h: L1: its victim level L2 has other lines"),
        (tuple(spec(name=f"L{n}") for n in range(40)), "h: has 40 caches"),
    ],
)
def test_hierarchies_that_cannot_be_are_refused(levels: tuple[CacheSpec, ...], message: str) -> None:
    with pytest.raises(InputError) as caught:
        check_hierarchy(Hierarchy(levels), "h")
    assert str(caught.value).startswith(message)


def test_buffers_and_seed_are_checked_too() -> None:
    with pytest.raises(InputError, match="combining_buffers is 0"):
        Simulator(Hierarchy((spec(),), combining_buffers=0))
    with pytest.raises(InputError, match="seed is 'x'"):
        Simulator(Hierarchy((spec(),), seed="x"))  # type: ignore[arg-type]


def test_the_engine_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernmodel.cachesim.engine.compiled_available", lambda: False)
    with pytest.raises(ToolError, match="was not built"):
        Simulator(TWO_LEVELS, engine="compiled")
    simulator = Simulator(TWO_LEVELS)
    touch(simulator, "load", 0, 8)
    assert simulator.counters().accesses == 1


def test_mistakes_of_the_caller_are_value_errors() -> None:
    simulator = Simulator(TWO_LEVELS)
    with pytest.raises(ValueError, match="one value per loop"):
        simulator.run(Program(nest(4), (load(0, 8),)), start=Position((0, 0)))
    with pytest.raises(ValueError, match="no step"):
        simulator.run(Program((ProgramLoop(constant("max", 0, 1), constant("min", 4, 1), 0),), (load(0, 8),)))
    with pytest.raises(ValueError, match="coefficient per loop"):
        simulator.run(Program(nest(4), (load(0, 8, 8, depth=1),)))
