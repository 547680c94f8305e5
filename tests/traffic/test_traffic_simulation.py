"""Simulated traffic: against the naive reference, against layer conditions, and by its own laws."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace
from math import prod

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from traffic_reference import LINE, stencils, toy_machine
from traffic_reference import simulate as follow

from kernmodel.cachesim.engine import Simulator
from kernmodel.errors import InputError, UsageError
from kernmodel.formulas.formula import Formula, constant, maximum, minimum, variable
from kernmodel.machine.load import load_machine
from kernmodel.machine.model import Machine
from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.sizes import sizes_of
from kernmodel.traffic.conditions.layer_conditions import layer_conditions
from kernmodel.traffic.model import Traffic
from kernmodel.traffic.options import Distribution, SimulationOptions
from kernmodel.traffic.simulation.array_layout import place_arrays
from kernmodel.traffic.simulation.bounds import bound_of
from kernmodel.traffic.simulation.hierarchy import hierarchy_of
from kernmodel.traffic.simulation.simulate import placed_work, simulate
from kernmodel.traffic.simulation.steady_state import Effort
from kernmodel.traffic.simulation.work import Runner

EXACT = SimulationOptions(exact=True)
SLOW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])

CLX = load_machine("clx")


def kernel(name: str, **defines: int) -> tuple[LoopNest, dict[str, int]]:
    nest = load_kernel(name, defines)
    return nest, sizes_of(nest, defines)


def numbers(traffic: Traffic) -> dict[str, tuple[float, float, float]]:
    return {path.path: (path.loads, path.stores, path.clean_victims) for path in traffic.paths}


# Against the naive reference


SLOW_TO_FILL = """void f(float a[restrict M][N], float b[M][N], float c[restrict N]) {
for (int j = M - 2 - 1; j >= 2; j -= 2) for (int i = N - 2 - 1; i >= 2; i -= 1)
a[j][i] = a[j][i+1] + a[j-1][i+2] + a[j+1][i+2] + a[j-2][i+1] + a[j-2][i+2]; }"""
"""Through caches of 274, 284 and 393 lines: the last one counts the same from the fourth sweep on only."""


def settled_sweep(nest: LoopNest, machine: Machine, sizes: dict[str, int]) -> dict[str, tuple[float, float, float]]:
    """What the reference counts in a sweep once two in a row count the same, as in every one that follows.

    A cache hardly larger than the one inside takes more than two sweeps to fill, since it sees little in each.
    """
    before = follow(nest, machine, sizes, warm_up=2)
    for sweeps in range(3, 12):
        found = follow(nest, machine, sizes, warm_up=sweeps)
        if found == before:
            break
        before = found
    return before


@pytest.mark.thorough
@SLOW
@given(case=stencils(), lines=st.lists(st.integers(4, 400), min_size=1, max_size=3), victim=st.booleans())
@example(case=(SLOW_TO_FILL, {"M": 40, "N": 176}, 1.0), lines=[393, 284, 274], victim=False)
def test_whole_sweeps_count_what_the_reference_counts(
    case: tuple[str, dict[str, int], float], lines: list[int], victim: bool
) -> None:
    text, sizes, _ = case
    nest = parse_kernel(text, "stencil.c", sizes)
    machine = toy_machine(*(LINE * n for n in sorted(lines)), victim=victim and len(lines) > 1)
    # the reference lets arrays start on lines, as an unpadded layout does where their extents are whole lines
    traffic = simulate(nest, machine, sizes, options=EXACT)
    assume(traffic.sampling is not None and traffic.sampling.settled)
    expected = settled_sweep(nest, machine, sizes)
    for path, found in numbers(traffic).items():
        per_iteration = [count / traffic.iterations_per_unit for count in found]
        assert per_iteration == pytest.approx(expected[path], rel=1e-9, abs=1e-12), path


# Windows against whole sweeps

WINDOWS = Effort(sweep=0, window=4e4, block=2e3, warm_up=4e5, measured=2e5, total=2e6)

NESTS = {
    "matmul-ijk": ("double a[M][K], double b[K][N], double c[M][N]", "i:M j:N k:K", "c[i][j] += a[i][k] * b[k][j]"),
    "matmul-ikj": ("double a[M][K], double b[K][N], double c[M][N]", "i:M k:K j:N", "c[i][j] += a[i][k] * b[k][j]"),
    "matmul-kij": ("double a[M][K], double b[K][N], double c[M][N]", "k:K i:M j:N", "c[i][j] += a[i][k] * b[k][j]"),
    "transpose": ("double a[N][M], float b[M][N]", "j:M i:N", "b[j][i] = a[i][j]"),
    "matvec": ("double a[M][N], double x[N], double y[M]", "j:M i:N", "y[j] += a[j][i] * x[i]"),
    "stencil": ("double a[M+2][N+1], double b[M+2][N+1]", "j:M i:N", "b[j+1][i] = a[j][i] + a[j+2][i] + a[j+1][i+1]"),
    "in-place": ("double a[M+1][N]", "j:M i:N", "a[j][i] = a[j+1][i] * 2"),
}
NEST_SIZES = {"M": 96, "N": 160, "K": 64}


def nest_of(name: str) -> LoopNest:
    parameters, loops, statement = NESTS[name]
    heads = "".join(f"for (int {v} = 0; {v} < {n}; ++{v}) " for v, n in (loop.split(":") for loop in loops.split()))
    return parse_kernel(f"void f({parameters}) {{ {heads} {statement}; }}", f"{name}.c", NEST_SIZES)


def in_sets(machine: Machine, ways: int = 8) -> Machine:
    """The toy machine with caches of that many ways: fast to simulate, and no threshold is sharp."""
    levels = tuple(
        replace(level, ways=min(ways, level.ways), sets=max(1, level.ways // ways)) for level in machine.levels
    )
    return replace(machine, levels=levels)


def agree(windows: Traffic, sweeps: Traffic, share: float = 0.02) -> None:
    """Within `share`, or that share of the largest flow where a flow is small beside it."""
    largest = max(count for found in numbers(sweeps).values() for count in found)
    for path, found in numbers(sweeps).items():
        other = numbers(windows)[path]
        # lines away from the core count together: which of them are modified depends on what is older than the window
        pairs = [(found[0], other[0]), (found[1] + found[2], other[1] + other[2])]
        for exact, sampled in pairs:
            assert abs(exact - sampled) <= share * max(exact, sampled, largest / 4) + 1e-3, (path, found, other)


def away_from_thresholds(nest: LoopNest, sizes: Mapping[str, int], capacity: float) -> bool:
    wide = layer_conditions(nest, toy_machine(1e12), sizes)
    return all(not 0.6 < condition.required / capacity < 1.6 for condition in wide.conditions)


@pytest.mark.thorough
@pytest.mark.parametrize("name", NESTS)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(lines=st.integers(1, 400).map(lambda eights: 8 * eights), victim=st.booleans())
def test_windows_agree_with_whole_sweeps(name: str, lines: int, victim: bool) -> None:
    nest = nest_of(name)
    sizes = {symbol: NEST_SIZES[symbol] for symbol in nest.symbols}
    capacities = (LINE * 8.0, LINE * float(lines)) if lines > 32 else (LINE * float(lines),)
    assume(all(away_from_thresholds(nest, sizes, capacity) for capacity in capacities))
    machine = in_sets(toy_machine(*capacities, victim=victim and len(capacities) > 1))
    sweeps = simulate(nest, machine, sizes, options=EXACT)
    windows = simulate(nest, machine, sizes, spend=WINDOWS)
    assert windows.sampling is not None
    assert not windows.sampling.whole_sweep
    agree(windows, sweeps, 0.045 if name in ("stencil", "in-place") else 0.02)  # boundaries are 2 % of the rows


TRIANGULAR = """void f(double a[restrict N][N], double x[restrict N], double y[restrict N]) {
  for (int j = 0; j < N; ++j) for (int i = 0; i <= j; ++i) y[j] += a[j][i] * x[i]; }"""
TILED = """void f(double a[restrict M][N], double b[restrict M][N]) {
  for (int ii = 1; ii < N - 1; ii += 40) for (int j = 1; j < M - 1; ++j)
    for (int i = ii; i < (ii + 40 < N - 1 ? ii + 40 : N - 1); ++i)
      b[j][i] = a[j][i-1] + a[j][i+1] + a[j-1][i] + a[j+1][i]; }"""
FACTORISATION = """void f(double a[restrict N][N]) {
  for (int k = 0; k < N; ++k) for (int i = k + 1; i < N; ++i) for (int j = k + 1; j < N; ++j)
    a[i][j] -= a[i][k] * a[k][j]; }"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "sizes", "capacities"),
    [
        (TRIANGULAR, {"N": 400}, (1024.0,)),
        (TRIANGULAR, {"N": 400}, (512.0, 64000.0)),
        (TILED, {"M": 120, "N": 642}, (2048.0, 16384.0)),
        (FACTORISATION, {"N": 90}, (1024.0, 200000.0)),
    ],
)
@pytest.mark.parametrize("victim", (False, True))
def test_windows_of_nests_that_vary(
    text: str, sizes: dict[str, int], capacities: tuple[float, ...], victim: bool
) -> None:
    nest = parse_kernel(text, "varying.c", sizes)
    machine = in_sets(toy_machine(*capacities, victim=victim and len(capacities) > 1))
    windows = simulate(nest, machine, sizes, spend=replace(WINDOWS, total=1e7))
    assert windows.sampling is not None
    assert windows.sampling.windows >= 8
    agree(windows, simulate(nest, machine, sizes, options=EXACT), 0.03)


def test_data_that_fit_stay_however_long_the_sweep_is() -> None:
    """A matrix product of which all fits the last cache, but whose sweep is too long to simulate whole."""
    nest, sizes = kernel("matmul", N=600, M=600, K=600)
    traffic = simulate(nest, CLX, sizes)
    assert traffic.sampling is not None
    assert not traffic.sampling.whole_sweep
    assert traffic.sampling.settled
    assert numbers(traffic)["L3Mem"] == (0.0, 0.0, 0.0)


def test_lines_of_earlier_outer_iterations_leave() -> None:
    """Of a matrix product whose second factor fits, but not the rows of the others from all outer iterations."""
    nest, sizes = kernel("matmul", N=900, M=900, K=900)
    traffic, symbolic = simulate(nest, CLX, sizes), layer_conditions(nest, CLX, sizes)
    memory, expected = traffic.path("L3Mem"), symbolic.path("L3Mem")
    assert memory.loads == pytest.approx(expected.loads, rel=0.02)
    assert memory.stores == pytest.approx(expected.stores, rel=0.02)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ("stencil", "long-range", "copy", "matvec", "3d-7pt"))
def test_large_sizes_cost_what_small_ones_cost(name: str) -> None:
    nest, default = kernel(name)
    executed = []
    for size in (1000, 100000):
        sizes = dict.fromkeys(default, size) if len(default) > 1 else {"N": 1000 * size}
        work = placed_work(nest, CLX, sizes, hierarchy_of(CLX), "regular", SimulationOptions())
        sampling = simulate(nest, CLX, sizes).sampling
        assert sampling is not None
        executed.append((sampling.warm_up + sampling.measured) * work.touches(-1) / work.iterations)
    assert executed[1] < max(2 * executed[0], 6e7)


# Laws


@SLOW
@given(case=stencils(), lines=st.lists(st.integers(4, 400), min_size=2, max_size=3), victim=st.booleans())
def test_conservation(case: tuple[str, dict[str, int], float], lines: list[int], victim: bool) -> None:
    text, sizes, _ = case
    nest = parse_kernel(text, "stencil.c", sizes)
    machine = toy_machine(*(LINE * n for n in sorted(lines)), victim=victim)
    last = replace(machine.levels[-1], loads_pass_by=False)
    machine = replace(machine, levels=(*machine.levels[:-1], last))
    traffic = simulate(nest, machine, sizes, options=EXACT)
    first, second = traffic.levels[:2]
    assert second.loads == pytest.approx(first.load_misses + first.store_misses)
    for level in traffic.levels:
        assert level.loads == pytest.approx(level.load_hits + level.load_misses)
        assert level.stores == pytest.approx(level.store_hits + level.store_misses)
    beyond = sum(sum(list(row.served_by.values())[1:]) for row in traffic.accesses)
    assert beyond == pytest.approx(traffic.paths[0].loads)
    assert sum(row.served_by["Mem"] for row in traffic.accesses) == pytest.approx(traffic.paths[-1].loads)
    for path in traffic.paths:
        assert path.write_allocates <= path.loads + 1e-9


@pytest.mark.thorough
@pytest.mark.parametrize("name", ("stencil", "matvec", "matvec-transposed", "long-range", "himeno", "update", "trmv"))
def test_unit_of_work_and_registers_are_those_of_layer_conditions(name: str) -> None:
    nest, sizes = kernel(name)
    traffic, symbolic = simulate(nest, CLX, sizes), layer_conditions(nest, CLX, sizes)
    assert (traffic.iterations_per_unit, traffic.unit_stream) == (symbolic.iterations_per_unit, symbolic.unit_stream)
    assert traffic.register_loads_bytes == pytest.approx(symbolic.register_loads_bytes, rel=1e-3)
    assert traffic.register_stores_bytes == pytest.approx(symbolic.register_stores_bytes, rel=1e-3)
    assert traffic.iterations_per_sweep == symbolic.iterations_per_sweep


def test_repeated_reads_of_an_element_are_hits() -> None:
    sizes = {"N": 4096}
    once = parse_kernel("void f(double a[N], double b[N]) { for (int i = 0; i < N; ++i) b[i] = a[i]; }", "a.c", sizes)
    twice = parse_kernel(
        "void f(double a[N], double b[N]) { for (int i = 0; i < N; ++i) b[i] = a[i] * a[i]; }", "a.c", sizes
    )
    one, two = (simulate(nest, CLX, sizes).levels[0] for nest in (once, twice))
    assert two.loads == 2 * one.loads
    assert (two.load_misses, two.store_misses) == (one.load_misses, one.store_misses)


def test_nest_without_arrays_moves_nothing() -> None:
    nest, sizes = kernel("pi")
    traffic = simulate(nest, CLX, sizes)
    assert set(numbers(traffic).values()) == {(0.0, 0.0, 0.0)}
    assert traffic.sampling is None


# Caches


def test_victim_cache_takes_what_the_inner_level_evicts() -> None:
    first, second, third = hierarchy_of(CLX).levels
    assert (first.load_from, first.victim_level) == ("L2", None)
    assert (second.load_from, second.store_to, second.victim_level, second.clean_victims) == ("MEM", "L3", "L3", True)
    assert (third.load_from, third.store_to) == ("MEM", "MEM")


def test_inclusive_cache() -> None:
    assert [spec.inclusive for spec in hierarchy_of(load_machine("hsw")).levels] == [False, False, True]


@given(cores=st.integers(1, 20))
def test_share_of_a_shared_cache_keeps_its_ways(cores: int) -> None:
    spec, level = hierarchy_of(CLX, cores).levels[-1], CLX.levels[-1]
    sharers = min(cores, level.cores_sharing)
    assert spec.ways == level.ways
    assert abs(spec.sets * sharers - level.sets) <= sharers / 2


def test_more_cores_than_there_are() -> None:
    with pytest.raises(UsageError, match="41 cores"):
        hierarchy_of(CLX, 41)


def test_policy_of_the_options_replaces_that_of_the_machine() -> None:
    hierarchy = hierarchy_of(CLX, 1, SimulationOptions(policy="FIFO"))
    assert {spec.policy for spec in hierarchy.levels} == {"FIFO"}


# Where arrays lie


@given(
    extents=st.lists(st.integers(1, 70000), min_size=1, max_size=6),
    layout=st.sampled_from(("padded", "packed", "alias")),
    pad=st.integers(0, 500),
)
def test_arrays_do_not_overlap_and_lie_as_stated(extents: list[int], layout: str, pad: int) -> None:
    parameters = ", ".join(f"double a{k}[{extent}]" for k, extent in enumerate(extents))
    statement = " ".join(f"a{k}[{extent} - 1 - i] = 1.0;" for k, extent in enumerate(extents))
    nest = parse_kernel(f"void f({parameters}) {{ for (int i = 0; i < 1; ++i) {{ {statement} }} }}", "a.c", {})
    options = SimulationOptions(
        layout="packed" if layout == "packed" else "padded", alias=layout == "alias", pad_bytes=8 * pad
    )
    hierarchy = hierarchy_of(CLX, 3)
    work = placed_work(nest, CLX, {}, hierarchy, "regular", options)
    bases = list(place_arrays(work.nest, hierarchy, options).values())
    ends = [base + 8 * extent for base, extent in zip(bases, extents, strict=True)]
    assert all(end + 8 * pad <= base for end, base in zip(ends, bases[1:], strict=False))
    if layout == "packed":
        assert bases[1:] == [end + 8 * pad for end in ends[:-1]]
    if layout == "alias" and not pad:
        for spec in hierarchy.levels:
            assert len({base // LINE % spec.sets for base in bases}) == 1
    if layout == "padded" and not pad and 64 % len(extents) == 0:
        assert len({base // LINE % 64 for base in bases}) == len(bases)


def test_aliased_columns_conflict() -> None:
    """Nine streams at the same set of an 8-way cache push each other out."""
    arrays = [f"a{k}" for k in range(9)]
    text = f"""void f({", ".join(f"double {a}[restrict N]" for a in arrays)}) {{
        for (int i = 0; i < N; ++i) a0[i] = {" + ".join(f"{a}[i]" for a in arrays[1:])}; }}"""
    sizes = {"N": 200_000}
    nest = parse_kernel(text, "nine.c", sizes)
    apart = simulate(nest, CLX, sizes)
    together = simulate(nest, CLX, sizes, options=SimulationOptions(alias=True))
    assert apart.paths[0].loads == pytest.approx(9, rel=0.01)
    assert together.paths[0].loads > 50


def test_undeclared_extents_are_what_the_loops_reach() -> None:
    sizes = {"N": 1000}
    nest = parse_kernel("void f(double *a) { for (int i = 0; i < N; ++i) a[i + 3] = 1.0; }", "a.c", sizes)
    note = next(note for note in simulate(nest, CLX, sizes).notes if note.code == "array-layout")
    assert "a as far as the loops reach" in note.text


# Loop bounds

VARIABLES = "kji"


@st.composite
def bounds(draw: st.DrawFn, depth: int = 3) -> Formula:
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        coefficients = draw(st.lists(st.integers(-3, 3), min_size=3, max_size=3))
        moving = (c * variable(name) for c, name in zip(coefficients, VARIABLES, strict=True))
        return sum(moving, constant(draw(st.integers(-9, 9))))
    parts = draw(st.lists(bounds(depth=depth - 1), min_size=2, max_size=2))
    kind = draw(st.sampled_from(("min", "max", "sum", "multiple")))
    if kind == "multiple":
        return draw(st.integers(-3, 3)) * parts[0]
    return {"min": minimum, "max": maximum, "sum": operator.add}[kind](*parts)


@pytest.mark.thorough
@settings(max_examples=60, deadline=None)
@given(bounds(), st.lists(st.integers(-20, 20), min_size=3, max_size=3))
def test_bounds_keep_their_value(expression: Formula, values: list[int]) -> None:
    from kernmodel.cachesim.programs import bound_value

    expected = expression.value(dict(zip(VARIABLES, values, strict=True)))
    bound = bound_of(expression, VARIABLES, {})
    assert bound is not None and bound_value(bound, values) == expected


@pytest.mark.parametrize("other", [variable("k"), minimum(variable("j"), variable("k"))])
def test_products_with_minima_are_no_bounds(other: Formula) -> None:
    assert bound_of(minimum(variable("i"), variable("j")) * other + 1, VARIABLES, {}) is None


# Index arrays

GATHER = """void f(double x[restrict M], double y[restrict N], int idx[restrict N]) {
  for (int i = 0; i < N; ++i) y[i] = x[idx[i]]; }"""


def gather(distribution: Distribution | None, **sizes: int) -> Traffic:
    nest = parse_kernel(GATHER, "gather.c", sizes)
    indirect = {} if distribution is None else {"idx": distribution}
    return simulate(nest, CLX, sizes, options=SimulationOptions(indirect=indirect))


def test_uniform_indices_miss_what_does_not_fit() -> None:
    traffic = gather(Distribution("uniform", "uniform"), M=100_000_000, N=50_000_000)
    assert traffic.path("L3Mem").loads == pytest.approx(8 + 1 + 0.5, rel=0.05)
    assert traffic.accesses[1].served_by["Mem"] > 7
    assert "idx[i]" in traffic.accesses[1].reason


def test_uniform_indices_hit_what_fits() -> None:
    traffic = gather(Distribution("uniform", "uniform"), M=50_000, N=2_000_000)
    served = traffic.accesses[1].served_by
    assert served["Mem"] == pytest.approx(0, abs=0.05)
    assert served["L2"] > 6


def test_banded_indices_run_along_the_diagonal() -> None:
    traffic = gather(Distribution("banded", "banded:50", width=50), M=20_000_000, N=20_000_000)
    assert traffic.path("L3Mem").loads == pytest.approx(1 + 1 + 0.5, rel=0.02)


def test_values_of_a_table() -> None:
    traffic = gather(Distribution("table", "file", values=tuple(range(0, 8000, 8))), M=8000, N=1_000_000)
    assert traffic.accesses[1].served_by["L2"] == pytest.approx(8, rel=0.01)


def test_index_array_without_a_distribution() -> None:
    with pytest.raises(InputError, match=r"--indirect idx=uniform\|banded:K\|FILE"):
        gather(None, M=1000, N=1000)


def test_distribution_that_names_no_index_array() -> None:
    nest, sizes = kernel("stencil")
    options = SimulationOptions(indirect={"a": Distribution("uniform", "uniform")})
    with pytest.raises(UsageError, match="a is no index array of stencil; it has no index arrays"):
        simulate(nest, CLX, sizes, options=options)


def test_values_beyond_the_array() -> None:
    with pytest.raises(InputError, match="reaches 999"):
        gather(Distribution("table", "file", values=(5, 999)), M=999, N=1000)


# Stores


def test_streaming_stores_go_past_the_caches() -> None:
    nest, sizes = kernel("copy")
    traffic = simulate(nest, CLX, sizes, stores="nt")
    assert numbers(traffic)["L1L2"] == pytest.approx((1, 0, 0), abs=0.01)
    assert numbers(traffic)["L3Mem"] == pytest.approx((1, 1, 0), abs=0.01)
    assert "streams" in traffic.accesses[1].reason


def test_evaded_write_allocates_are_not_loaded() -> None:
    nest, sizes = kernel("copy")
    regular, evading = (simulate(nest, CLX, sizes, stores=stores) for stores in ("regular", "evading"))
    assert regular.path("L3Mem").write_allocates == pytest.approx(1, rel=0.01)
    assert evading.path("L3Mem").loads == pytest.approx(1, rel=0.01)
    assert evading.path("L1L2").loads == pytest.approx(2, rel=0.01)


def test_updates_allocate_nothing_for_stores() -> None:
    nest, sizes = kernel("update")
    assert simulate(nest, CLX, sizes).path("L3Mem").write_allocates == 0


def test_sizes_beyond_the_address_space() -> None:
    text = "void f(double a[restrict N][N], double b[restrict N][N]) { for (int i = 0; i < N; ++i) a[i][i] = b[i][i]; }"
    sizes = {"N": 900_000_000}
    nest = parse_kernel(text, "huge.c", sizes)
    with pytest.raises(InputError, match="63 bits"):
        simulate(nest, CLX, sizes)


def test_every_answer_states_its_assumptions() -> None:
    nest, sizes = kernel("stencil")
    traffic = simulate(nest, CLX, sizes)
    codes = {note.code for note in traffic.notes}
    assert {"replacement", "array-layout", "victim-cache"} <= codes
    assert all(note.kind == "assumption" for note in traffic.notes)
    assert prod(row.reason != "" for row in traffic.accesses)


def test_streaming_stores_to_what_is_read_are_a_warning() -> None:
    nest, sizes = kernel("update")
    traffic = simulate(nest, CLX, sizes, stores="nt")
    note = next(note for note in traffic.notes if note.code == "streamed-and-read")
    assert note.kind == "warning"
    assert "a[i]" in note.text


@settings(max_examples=30, deadline=None)
@given(
    first=st.integers(1, 6),
    slope=st.sampled_from((0, 1, -1)),
    step=st.sampled_from((1, 2, -1)),
    count=st.integers(0, 20),
)
def test_earlier_iterations(first: int, slope: int, step: int, count: int) -> None:
    """Going back over the ends of inner loops, from the first iteration to the last of the sweep before."""
    bound = {0: f"{first}", 1: f"{first} + j", -1: f"{first} + 5 - j"}[slope]
    heads = {
        1: f"for (int i = 0; i < {bound}; ++i)",
        2: f"for (int i = 0; i < {bound}; i += 2)",
        -1: f"for (int i = {bound} - 1; i >= 0; --i)",
    }
    text = f"void f(double a[20][20]) {{ for (int j = 0; j < 5; ++j) {heads[step]} a[j][i] = 1.0; }}"
    nest = parse_kernel(text, "a.c", {})
    work = placed_work(nest, CLX, {}, hierarchy_of(CLX), "regular", SimulationOptions())
    order = []
    for j in range(5):
        stop = {0: first, 1: first + j, -1: first + 5 - j}[slope]
        order += [(j, i) for i in (range(stop - 1, -1, -1) if step < 0 else range(0, stop, step))]
    for number, values in enumerate(order):
        assert work.earlier(values, min(count, len(order))) == order[(number - min(count, len(order))) % len(order)]


def test_windows_go_on_where_iterations_of_an_outer_loop_execute_nothing() -> None:
    """The last iteration of `k` in a factorisation has no inner iteration: what follows is the next sweep."""
    text = """void f(double A[restrict N][N]) { for (int k = 0; k < N; ++k) for (int i = k + 1; i < N; ++i)
        for (int j = k + 1; j < N; ++j) A[i][j] -= A[i][k] * A[k][j]; }"""
    nest = parse_kernel(text, "lu.c", {"N": 9})
    work = placed_work(nest, CLX, {"N": 9}, hierarchy_of(CLX), "regular", SimulationOptions())
    runner = Runner(work, Simulator(hierarchy_of(CLX)), 0, work.position((8,)))
    assert [runner.run(1) for _ in range(3)] == [0, 64, 49]
    assert runner.run(2) == 36 + 25
