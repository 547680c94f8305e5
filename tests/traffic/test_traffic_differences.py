"""Where layer conditions and simulation differ, the reason is found by experiment."""

from __future__ import annotations

import pytest

from kernmodel.machine.load import load_machine
from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.sizes import sizes_of
from kernmodel.traffic.comparison.differences import compare_traffic
from kernmodel.traffic.conditions.layer_conditions import layer_conditions
from kernmodel.traffic.model import Difference
from kernmodel.traffic.options import SimulationOptions
from kernmodel.traffic.simulation.simulate import simulate

CLX = load_machine("clx")


def compare(
    nest: LoopNest, sizes: dict[str, int], machine: str = "clx", options: SimulationOptions | None = None
) -> tuple[Difference, ...]:
    chosen, target = options or SimulationOptions(), load_machine(machine)
    symbolic = layer_conditions(nest, target, sizes)
    simulated = simulate(nest, target, sizes, options=chosen)
    return compare_traffic(symbolic, simulated, nest, target, sizes, options=chosen)


def kernel(name: str, **defines: int) -> tuple[LoopNest, dict[str, int]]:
    nest = load_kernel(name, defines)
    return nest, sizes_of(nest, defines)


def found(differences: tuple[Difference, ...], path: str, quantity: str = "loads") -> Difference:
    return next(each for each in differences if (each.path, each.quantity) == (path, quantity))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ("copy", "stencil", "matvec", "triad", "2d-5pt"))
@pytest.mark.parametrize("machine", ("clx", "hsw", "zen2"))
def test_nothing_differs_away_from_thresholds(name: str, machine: str) -> None:
    assert compare(*kernel(name), machine) == ()


def test_an_answer_does_not_differ_from_itself() -> None:
    nest, sizes = kernel("stencil")
    traffic = simulate(nest, CLX, sizes)
    assert compare_traffic(traffic, traffic, nest, CLX, sizes) == ()


COLUMNS = """double f(double a[restrict M][1024], double b[restrict M]) { double s = 0;
  for (int j = 0; j < 1024; ++j) for (int i = 0; i < M; ++i) s += a[i][j]; return s; }"""


def test_columns_at_a_power_of_two_do_not_differ() -> None:
    """64 lines of a column fit 512 of L1, but all lie in one of its sets, which layer conditions know."""
    sizes = {"M": 64}
    assert compare(parse_kernel(COLUMNS, "columns.c", sizes), sizes) == ()


NINE_ROWS = (
    """void f(double a[restrict 9][65536], double b[restrict 65536]) {
  for (int i = 0; i < 65536; ++i) b[i] = """
    + " + ".join(f"a[{k}][i]" for k in range(9))
    + "; }"
)


def test_rows_at_a_power_of_two_conflict() -> None:
    """Nine lines at once in one set of L1, which has eight ways: none stays for the next element."""
    difference = found(compare(parse_kernel(NINE_ROWS, "nine_rows.c", {}), {}), "L1L2")
    assert (difference.symbolic, difference.reason_code) == (10, "conflicts")
    assert difference.simulated == pytest.approx(9 * 8 + 1, rel=0.01)
    assert difference.relative == pytest.approx((73 - 10) / 73, rel=0.01)
    assert "with 16 times the ways" in difference.reason


def test_arrays_that_begin_at_the_same_set_conflict() -> None:
    arrays = [f"a{k}" for k in range(9)]
    text = f"""void f({", ".join(f"double {a}[restrict N]" for a in arrays)}) {{
        for (int i = 0; i < N; ++i) a0[i] = {" + ".join(f"{a}[i]" for a in arrays[1:])}; }}"""
    sizes = {"N": 100_000}
    nest = parse_kernel(text, "nine.c", sizes)
    difference = found(compare(nest, sizes, options=SimulationOptions(alias=True)), "L1L2")
    assert difference.reason_code == "layout"


def test_random_replacement() -> None:
    nest, sizes = kernel("stencil")
    difference = found(compare(nest, sizes, options=SimulationOptions(policy="RANDOM")), "L2L3")
    assert (difference.reason_code, difference.symbolic) == ("replacement", 0)
    assert "with LRU, 0 lines" in difference.reason


def test_near_a_threshold() -> None:
    difference = found(compare(*kernel("3d-27pt")), "L1L2")
    assert difference.reason_code == "threshold"
    assert "31.23 KiB needed of 32 KiB" in difference.reason


def test_lines_that_come_back_modified() -> None:
    """What is left in L3 has been written in rows, and comes back in columns that are only read."""
    text = """double a[1290][1290];
for (int j = 0; j < 1290; ++j) for (int i = 0; i < 1290; ++i) a[j][i] = a[j][i] + a[i][j];"""
    differences = compare(parse_kernel(text, "k.c"), {})
    assert found(differences, "L2L3", "stores").reason_code == "victims"


@pytest.mark.parametrize(("name", "sizes", "modified"), [
    ("2d-5pt", {"N": 50000, "M": 28}, (3, 0)),  # rows too long for L2: each comes three times in a sweep
    ("2d-5pt", {"N": 100000, "M": 34}, (2, 1)),  # as data do not fit L3: the first of them comes from memory
])  # fmt: skip
def test_rows_that_come_back_modified_leave_so_again(
    name: str, sizes: dict[str, int], modified: tuple[int, int]
) -> None:
    nest, sizes = kernel(name, **sizes)
    symbolic = layer_conditions(nest, load_machine("clx"), sizes)
    path = symbolic.path("L2L3")
    assert (path.stores, path.clean_victims) == pytest.approx(modified)
    differing = {each.quantity for each in compare(nest, sizes) if each.path == "L2L3"}
    assert "stores" not in differing


@pytest.mark.thorough
def test_rows_that_fit_in_a_part_of_the_sweep_only() -> None:
    """Rows of x grow beyond what a cache has: those that fit count apart, and nothing differs."""
    assert compare(*kernel("trmv", N=100000)) == ()


def test_short_loops() -> None:
    differences = compare(*kernel("3d-7pt", N=24, M=24, L=24))
    assert {each.reason_code for each in differences} == {"boundary"}


@pytest.mark.parametrize(
    ("text", "machine", "sizes", "code"),
    [
        (
            "void f(double p[N][25], double *y) { for (int i=0;i<N;++i) y[i]=p[i][3]+p[i][7]; }",
            "clx",
            9000,
            "structure",
        ),
        (
            "void f(double p[N][25], double *y) { for (int i=0;i<N;++i) y[i]=p[i][3]+p[i][7]+p[i][20]; }",
            "zen2",
            1000,
            "structure",
        ),
        (
            "void f(double p[N][32], double *y) { for (int t=0;t<10;++t) for (int i=0;i<N;++i) y[i]+=p[i][t]; }",
            "clx",
            200,
            "few-sets",
        ),
    ],
)
def test_structures_and_strides_have_a_cause(text: str, machine: str, sizes: int, code: str) -> None:
    nest = parse_kernel(text, "f.c", {})
    assert found(compare(nest, {"N": sizes}, machine), "L1L2").reason_code == code
