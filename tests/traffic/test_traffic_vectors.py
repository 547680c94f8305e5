"""Caches that are asked for whole vectors, as compiled code asks them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernmodel.code.model import AddressStream, AssemblyLoop
from kernmodel.isa.model import MemoryReference
from kernmodel.machine.load import load_machine
from kernmodel.source.load import parse_kernel
from kernmodel.source.model import LoopNest
from kernmodel.studies.predict.stages import lanes_of
from kernmodel.traffic.model import Traffic
from kernmodel.traffic.options import SimulationOptions
from kernmodel.traffic.simulation.simulate import simulate

HSW = load_machine("hsw")


def arrays(count: int, loop: str = "int i = 0; i < n; ++i", index: str = "i") -> LoopNest:
    """A sum of so many arrays."""
    names = [f"a{k}" for k in range(count)]
    parameters = ", ".join(f"double {name}[n]" for name in (*names, "b"))
    text = f"void f(int n, {parameters}) {{ for ({loop}) b[{index}] = {' + '.join(f'{k}[{index}]' for k in names)}; }}"
    return parse_kernel(text, "sum.c", {})


def simulated(nest: LoopNest, lanes: int, n: int = 40_000, *, alias: bool = False) -> Traffic:
    return simulate(nest, HSW, {"n": n}, options=SimulationOptions(lanes=lanes, alias=alias))


@pytest.mark.parametrize(("lanes", "asked"), [(1, 8), (2, 4), (4, 2), (8, 1)])
def test_a_line_that_its_set_cannot_keep_is_loaded_for_each_access(lanes: int, asked: int) -> None:
    """Ten arrays that begin in the same set of 8 ways: of each the line is gone when the next access comes."""
    moved = simulated(arrays(9), lanes, alias=True)
    assert moved.path("L1L2").loads == pytest.approx(10 * asked, rel=0.01)
    assert moved.iterations_per_unit == 8
    assert moved.iterations_per_sweep == 40_000
    assert ("vector-accesses" in {note.code for note in moved.notes}) == (lanes > 1)


@pytest.mark.parametrize("loop", ["int i = 0; i < n; ++i", "int i = n - 1; i >= 0; --i"])
def test_without_conflicts_vectors_move_what_elements_move(loop: str) -> None:
    nest = arrays(3, loop)
    single, vectors = simulated(nest, 1), simulated(nest, 4)
    for path in single.paths:
        other = vectors.path(path.path)
        assert (other.loads, other.stores) == pytest.approx((path.loads, path.stores), rel=0.01)
    assert vectors.register_loads_bytes == single.register_loads_bytes == 3 * 64


def test_rows_that_end_within_a_vector_count_by_their_iterations() -> None:
    loops = "for (int j = 0; j < m; ++j) for (int i = 1; i < n - 1; ++i)"
    text = f"void f(int m, int n, double a[m][n], double b[m][n]) {{ {loops} b[j][i] = a[j][i]; }}"
    nest, sizes = parse_kernel(text, "rows.c", {}), {"m": 20_000, "n": 21}
    single, vectors = (simulate(nest, HSW, sizes, options=SimulationOptions(lanes=lanes)) for lanes in (1, 4))
    assert vectors.path("L3Mem").loads == pytest.approx(single.path("L3Mem").loads, rel=0.02)
    assert vectors.iterations_per_sweep == single.iterations_per_sweep == 20_000 * 19


@pytest.mark.parametrize(
    "text",
    [
        "void f(int n, double a[2 * n], double b[n]) { for (int i = 0; i < n; ++i) b[i] = a[2 * i]; }",
        "void f(int n, double a[n][n], double b[n])"
        " { for (int j = 0; j < n; ++j) for (int i = 0; i <= j; ++i) b[j] += a[j][i]; }",
    ],
)
def test_other_strides_and_rows_of_several_lengths_stay_as_they_are(text: str) -> None:
    nest = parse_kernel(text, "other.c", {})
    one, four = (simulated(nest, lanes, 300) for lanes in (1, 4))
    assert four == one


def code(*sizes: int, passes: float | None = 8.0) -> AssemblyLoop:
    """Code whose moving accesses have these sizes, and which executes so many iterations a pass."""
    found = MemoryReference("rax", None, 1, 0, None, None, 0, read=True, written=False)
    streams = tuple(AddressStream(k, replace(found, size_bytes=size), 64) for k, size in enumerate(sizes))
    still = AddressStream(9, replace(found, size_bytes=64), 0)
    return AssemblyLoop((), "x86", "", "", "", passes, (*streams, still), "", "main", ())


def test_how_many_iterations_an_access_covers_follows_from_the_code() -> None:
    nest = arrays(2)
    assert lanes_of(code(8, 8), nest) == 1
    assert lanes_of(code(16, 32), nest) == 4  # halves of a vector follow one another
    assert lanes_of(code(64), nest) == 8
    assert lanes_of(code(32, passes=2.0), nest) == 2
    assert lanes_of(code(32, passes=None), nest) == 1
    assert lanes_of(replace(code(32), along="j"), nest) == 1
    assert lanes_of(code(), nest) == 1
