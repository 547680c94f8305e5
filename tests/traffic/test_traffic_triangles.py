"""Nests whose trip counts follow outer loops: volumes and misses are sums over those, never more than the arrays."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from traffic_reference import LINE, toy_machine

from kernmodel.cachesim.engine import Simulator
from kernmodel.cachesim.model import Counters
from kernmodel.formulas.formula import Formula, size
from kernmodel.machine.load import load_machine
from kernmodel.source.load import parse_kernel
from kernmodel.source.model import LoopNest
from kernmodel.traffic.comparison.differences import compare_traffic
from kernmodel.traffic.conditions.affine_sets import AffineSet, Linear, variable
from kernmodel.traffic.conditions.layer_conditions import layer_conditions
from kernmodel.traffic.conditions.quantities import fixed
from kernmodel.traffic.model import LayerCondition, Traffic
from kernmodel.traffic.options import SimulationOptions
from kernmodel.traffic.simulation.hierarchy import hierarchy_of
from kernmodel.traffic.simulation.lru_history import _Segment, history
from kernmodel.traffic.simulation.simulate import placed_work, simulate

CLX = load_machine("clx")
N = size("N")

COLUMNS = "for (int j = 0; j < N; ++j) for (int i = j; i < N; ++i) a[i][j] = b[i][j];"
LU = """for (int k = 0; k < N; ++k) for (int i = k + 1; i < N; ++i) for (int j = k + 1; j < N; ++j)
        a[i][j] -= a[i][k] * a[k][j];"""
CHOLESKY = """for (int i = 0; i < N; ++i) for (int j = 0; j < i; ++j) for (int k = 0; k < j; ++k)
        a[i][j] -= a[i][k] * a[j][k];"""


def nest_of(loops: str, size: int) -> LoopNest:
    text = f"void f(double a[restrict N][N], double b[restrict N][N], double x[restrict N]) {{ {loops} }}"
    return parse_kernel(text, "triangle.c", {"N": size})


def conditions_of(loops: str, size: int) -> tuple[LayerCondition, ...]:
    return layer_conditions(nest_of(loops, size), CLX, {"N": size}).conditions


def required(loops: str, carried_by: str, size: int = 400) -> Formula:
    found = (c for c in conditions_of(loops, size) if c.reuses[0].carried_by == carried_by)
    return next(found).required_bytes


def assert_agree(one: Traffic, other: Traffic, tolerance: float) -> None:
    largest = max(path.loads + path.stores for path in other.paths)
    for a, b in zip(one.paths, other.paths, strict=True):
        assert a.loads == pytest.approx(b.loads, rel=tolerance, abs=0.02 * largest)
        assert a.stores == pytest.approx(b.stores, rel=tolerance, abs=0.02 * largest)


# By hand


def test_columns_of_a_triangle_are_loaded_once() -> None:
    traffic = layer_conditions(nest_of(COLUMNS, 2000), CLX, {"N": 2000})
    assert traffic.path("L3Mem").loads == pytest.approx(0.25, rel=0.01)
    assert max(condition.required for condition in traffic.conditions) <= 2 * 8 * 2000**2
    assert traffic.iterations_per_sweep == 2000 * 2001 / 2


def test_volumes_are_sums_in_closed_form() -> None:
    """A column of both arrays at most; all of their triangles, whose rows end in the middle of a line on average."""
    assert required(COLUMNS, "j") == 2 * 64 * N
    assert required(COLUMNS, "sweep") == 2 * (8 * N * (N + 1) / 2 + 28 * N)


def test_a_factorisation_needs_no_more_than_its_matrix() -> None:
    conditions = conditions_of(LU, 504)
    assert max(condition.required for condition in conditions) == 8 * 504**2
    over_k = next(c for c in conditions if c.cache == "L2" and c.reuses[0].carried_by == "k")
    # what is left of n rows and columns needs 8 n² + 28 n bytes, of 1 MiB: 360 rows fit, and (n − 1)² are iterations
    fitting = sum((n - 1) ** 2 for n in range(1, 361)) / sum((n - 1) ** 2 for n in range(1, 505))
    assert over_k.share == pytest.approx(fitting, rel=1e-9)


@pytest.mark.parametrize("loops", (LU, CHOLESKY))
@pytest.mark.parametrize("machine", ("clx", "zen2"))
def test_factorisations_as_simulated(loops: str, machine: str) -> None:
    nest, target = nest_of(loops, 90), load_machine(machine)
    symbolic, simulated = layer_conditions(nest, target, {"N": 90}), simulate(nest, target, {"N": 90})
    reasons = {one.reason_code for one in compare_traffic(symbolic, simulated, nest, target, {"N": 90})}
    assert reasons <= {"threshold", "triangle", "victims"}


def test_a_row_by_row_reuse_holds_for_a_share_of_the_iterations() -> None:
    """x survives from row to row while rows of a and x fit: in the first rows of the triangle."""
    loops = "for (int j = 0; j < N; ++j) for (int i = 0; i <= j; ++i) x[i] += a[j][i];"
    nest, machine = nest_of(loops, 600), toy_machine(100.0 * LINE)
    traffic = layer_conditions(nest, machine, {"N": 600})
    own = next(c for c in traffic.conditions if c.reuses[0].access == "x[i]")
    rows = (100 * LINE - 56) // 16  # that many elements of x and a, and the ends of both
    assert (own.required, own.holds) == (16 * 600 + 28, False)  # there is no line beyond all of x
    assert own.share == pytest.approx(rows * (rows + 1) / (600 * 601), rel=1e-9)
    assert_agree(traffic, simulate(nest, machine, {"N": 600}, options=SimulationOptions(exact=True)), 0.05)


def test_lines_between_iterations_of_other_parity_wait_for_two() -> None:
    """With steps of 2 from j on, a[i][j] and a[i][j + 2] share a line and a[i][j + 1] is not touched."""
    loops = "for (int j = 0; j < N; ++j) for (int i = j; i < N; i += 2) a[i][j] = b[i][j];"
    assert required(loops, "j").linear(["N"])[0]["N"] == 2 * (8 + 64)  # every row then, in two columns


def test_rows_that_steps_leave_to_the_other_reference_count_apart() -> None:
    """Of rows that alternate, each is read by one of the two references."""
    loops = "for (int j = 0; j < N - 1; ++j) for (int i = 0; i < j; i += 2) x[j] += b[i][j] + b[i + 1][j + 1];"
    nest, machine = nest_of(loops, 90), toy_machine(32.0 * LINE)
    simulated = simulate(nest, machine, {"N": 90}, options=SimulationOptions(exact=True))
    assert_agree(layer_conditions(nest, machine, {"N": 90}), simulated, 0.05)


def test_blocks_within_a_triangle_say_that_they_take_the_mean() -> None:
    loops = """for (int jj = 0; jj < N; jj += 16) for (int j = jj; j < jj + 16; ++j) for (int i = 0; i <= j; ++i)
        a[j][i] = b[j][i];"""
    codes = {note.code for note in layer_conditions(nest_of(loops, 160), CLX, {"N": 160}).notes}
    assert "mean-trip-count" in codes


# Laws


@given(size=st.integers(1, 9), low=st.integers(-3, 3), high=st.integers(-3, 3), slope=st.sampled_from((-1, 0, 1)))
@settings(max_examples=40, deadline=None)
def test_sums_over_sets_are_those_over_their_points(size: int, low: int, high: int, slope: int) -> None:
    """0 ≤ j < size, max(j + low, 0) ≤ i < min(size, slope j + high + size)."""
    i, j, last = variable("i"), variable("j"), Linear({}, fixed(size - 1))
    shortened = Linear({"j": slope} if slope else {}, fixed(high + size - 1))
    points = AffineSet(("j", "i"), [j, last - j, i, i - j.plus(low), last - i, shortened - i])
    counted = sum(piece.formula.value({}) for piece in points.count(0))
    places = product(range(size), repeat=2)
    assert counted == sum(j + low <= i < slope * j + high + size for j, i in places)


BOUNDS = (
    ("j", "N"),
    ("0", "j + 1"),
    ("j + 1", "N"),
    ("0", "N - j"),
    ("j", "j + 9"),
    ("j - 7 > 0 ? j - 7 : 0", "j + 1"),
)
STATEMENTS = (
    "a[j][i] = b[j][i];",
    "a[i][j] = b[i][j];",
    "a[j][i] = b[i][j];",
    "a[j][i] += x[i];",
    "x[j] += a[i][j];",
    "a[j + 1][i + 1] = b[j][i + 1] + b[j + 2][i + 1];",
)


@st.composite
def triangles(draw: st.DrawFn) -> str:
    start, stop = draw(st.sampled_from(BOUNDS))
    outer = draw(st.sampled_from(("int j = 0; j < N - 10; ++j", "int j = N - 11; j >= 0; --j")))
    inner = draw(st.sampled_from((f"int i = {start}; i < {stop}; ++i", f"int i = {stop} - 1; i >= {start}; --i")))
    assume("?" not in inner or "--i" not in inner)
    return f"for ({outer}) for ({inner}) {draw(st.sampled_from(STATEMENTS))}".replace("i < N", "i < N - 10")


@pytest.mark.thorough
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(loops=triangles(), size=st.integers(60, 120), lines=st.integers(8, 3000))
def test_triangles_as_simulated(loops: str, size: int, lines: int) -> None:
    nest, machine, sizes = nest_of(loops, size), toy_machine(float(lines * LINE)), {"N": size}
    traffic = layer_conditions(nest, machine, sizes)
    arrays = {access.array for access in nest.accesses}
    assert all(
        c.required <= sum(8 * size ** len(nest.arrays[name].shape) for name in arrays) for c in traffic.conditions
    )
    assume(all(not 0.6 < c.required / c.capacity_bytes < 1.6 for c in traffic.conditions))
    assert_agree(traffic, simulate(nest, machine, sizes, options=SimulationOptions(exact=True)), 0.08)


SYRK = """for (int i = 0; i < N; ++i) for (int k = 0; k < N; ++k) for (int j = 0; j <= i; ++j)
        a[i][j] += b[i][k] * b[j][k];"""
SHRINKING = """for (int i = 0; i < N; ++i) for (int k = 0; k < N; ++k) for (int j = 0; j < N - i; ++j)
        a[i][j] += b[j][k];"""


def after_history(loops: str, values: tuple[int, ...]) -> tuple[int, Counters]:
    """The iterations of the history before a place, and what is counted from there on in caches that hold it."""
    hierarchy = hierarchy_of(CLX)
    work = placed_work(nest_of(loops, 300), CLX, {"N": 300}, hierarchy, "regular", SimulationOptions())
    simulator, executed = Simulator(hierarchy), 0
    for program in history(work, values, 1_000_000, 1.25):
        executed += simulator.run(program).iterations
    simulator.reset_counters()
    simulator.run(work.program, start=work.position(values), iterations=20_000)
    return executed, simulator.counters()


@pytest.mark.parametrize(("loops", "less"), [(SYRK, True), (SHRINKING, False)])
def test_iterations_that_only_add_lines_are_replayed_once(
    loops: str, less: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    once, counted = after_history(loops, (150,))
    monkeypatch.setattr(_Segment, "_grows", lambda *_: False)
    each, expected = after_history(loops, (150,))
    assert counted == expected
    assert once < each if less else once == each
