"""Traffic of code that executes several iterations of an outer loop at once, against that of sources that say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf

import pytest

import kernmodel as km
from kernmodel.machine.load import load_machine
from kernmodel.machine.model import Machine, TransferPath
from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.source.nest.jammed import Jam, jammed
from kernmodel.traffic.conditions.layer_conditions import layer_conditions
from kernmodel.traffic.jammed import per_source_iteration, runs_of
from kernmodel.traffic.model import Traffic
from kernmodel.traffic.simulation.simulate import simulate

HEAD = "void f(double A[restrict M][N], double B[restrict M][N], double *restrict x, double *restrict y, int M, int N)"
PLAIN = {
    "transposed": "for (int j = 0; j < M; ++j) for (int i = 0; i < N; ++i) y[i] += A[j][i] * x[j];",
    "shared rows": "for (int j = 0; j < M - 1; ++j) for (int i = 0; i < N; ++i) B[j][i] = A[j][i] + A[j+1][i];",
    "downward": "for (int j = M - 1; j >= 1; --j) for (int i = 0; i < N; ++i) B[j][i] = A[j][i] - A[j-1][i];",
}
BY_HAND = {
    "transposed": "for (int j = 0; j < M - 1; j += 2) for (int i = 0; i < N; ++i) "
    "y[i] += A[j][i] * x[j] + A[j+1][i] * x[j+1];",
    "shared rows": "for (int j = 0; j < M - 2; j += 2) for (int i = 0; i < N; ++i) "
    "{ B[j][i] = A[j][i] + A[j+1][i]; B[j+1][i] = A[j+1][i] + A[j+2][i]; }",
    "downward": "for (int j = M - 1; j >= 2; j -= 2) for (int i = 0; i < N; ++i) "
    "{ B[j][i] = A[j][i] - A[j-1][i]; B[j-1][i] = A[j-1][i] - A[j-2][i]; }",
}
TWO_OF_J = Jam("j", 2)


@pytest.fixture(scope="module")
def machine() -> Machine:
    return load_machine("clx")


def moved(traffic: Traffic) -> list[float]:
    return [lines for path in traffic.paths for lines in (path.loads, path.stores, path.clean_victims)]


def at_once(name: str, machine: Machine, sizes: Mapping[str, int]) -> Traffic:
    nest = parse_kernel(f"{HEAD} {{ {PLAIN[name]} }}", "f.c")
    ordered = jammed(nest, TWO_OF_J)
    assert ordered is not None
    return per_source_iteration(layer_conditions(ordered, machine, sizes), nest, sizes, TWO_OF_J)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("n", [700, 1000, 10_000, 50_000, 1_000_000])
def test_two_iterations_at_once_move_what_a_source_of_two_moves(name: str, n: int, machine: Machine) -> None:
    sizes = {"M": 401, "N": n}
    found = at_once(name, machine, sizes)
    two = layer_conditions(parse_kernel(f"{HEAD} {{ {BY_HAND[name]} }}", "f.c"), machine, sizes)
    assert found.iterations_per_unit == two.iterations_per_unit  # of the source, and of two of them
    assert moved(found) == pytest.approx([lines / 2 for lines in moved(two)])
    assert found.flops_per_iteration == two.flops_per_iteration / 2
    assert [c.required for c in found.conditions] == [c.required for c in two.conditions]
    beyond = [level for level in found.arithmetic_intensity if level != "L1"]
    assert [found.arithmetic_intensity[level] for level in beyond] == pytest.approx(
        [two.arithmetic_intensity[level] for level in beyond]
    )


def test_simulated_caches_see_the_same(machine: Machine) -> None:
    sizes = {"M": 60, "N": 3001}  # a row does not end with a line
    nest = parse_kernel(f"{HEAD} {{ {PLAIN['shared rows']} }}", "f.c")
    ordered = jammed(nest, TWO_OF_J)
    assert ordered is not None
    simulated = per_source_iteration(simulate(ordered, machine, sizes), nest, sizes, TWO_OF_J)
    assert moved(simulated) == pytest.approx(moved(at_once("shared rows", machine, sizes)), abs=0.02)


def test_work_and_iterations_stay_those_of_the_source(machine: Machine) -> None:
    sizes = {"M": 401, "N": 10_000}
    plain = layer_conditions(parse_kernel(f"{HEAD} {{ {PLAIN['shared rows']} }}", "f.c"), machine, sizes)
    found = at_once("shared rows", machine, sizes)
    for name in ("flops_per_iteration", "updates_per_iteration", "iterations_per_sweep", "iterations_per_unit"):
        assert getattr(found, name) == getattr(plain, name), name
    assert [(row.array, row.access, row.kind) for row in found.accesses] == [
        (row.array, row.access, row.kind) for row in plain.accesses
    ]
    # one of three rows of two iterations has been there before: half a line of the unit, loaded once for both
    rows = {row.access: row.served_by for row in found.accesses}
    assert sum(rows["A[j][i]"].values()) + sum(rows["A[j+1][i]"].values()) == pytest.approx(1.5)
    assert rows["A[j+1][i]"]["Mem"] == pytest.approx(1.0)


def test_loops_whose_iterations_are_not_alike_are_not_jammed() -> None:
    triangle = "for (int j = 0; j < M; ++j) for (int i = 0; i < j; ++i) y[i] += A[j][i];"
    assert jammed(parse_kernel(f"{HEAD} {{ {triangle} }}", "f.c"), TWO_OF_J) is None
    stencil = load_kernel("stencil")
    assert jammed(stencil, Jam("i", 2)) is None  # the innermost loop
    assert jammed(stencil, Jam("j_block", 2)) is None


def test_of_two_rows_at_once_one_starts_anew(machine: Machine) -> None:
    *inner, memory = machine.paths
    measured = replace(machine, paths=(*inner, replace(memory, run_length=((512.0, 40.0), (65536.0, 8.0)))))
    nest = parse_kernel(f"{HEAD} {{ {PLAIN['shared rows']} }}", "f.c")
    sizes = {"M": 401, "N": 1000}
    assert runs_of(nest, sizes, machine) is None
    assert runs_of(nest, sizes, measured) == {
        ("A", "A[j][i]"): (3_200_000,), ("A", "A[j+1][i]"): (3_200_000,), ("B", "B[j][i]"): (3_200_000,)
    }  # fmt: skip
    # rows j and j + 1 are followed by j + 2, which begins where j + 1 ends, and by j + 3, which begins elsewhere
    assert runs_of(nest, sizes, measured, TWO_OF_J) == {
        ("A", "A[j][i]"): (inf,), ("A", "A[j+1][i]"): (inf, 8000.0), ("B", "B[j][i]"): (inf, 8000.0)
    }  # fmt: skip
    short = runs_of(nest, {"M": 401, "N": 60}, measured, TWO_OF_J)
    assert short is not None and set(short.values()) == {(inf,), (inf, inf)}


def test_streams_that_begin_together_wait_in_part_at_once() -> None:
    path = TransferPath("L3Mem", "L3", "Mem", None, "half", run_length=((4096.0, 19.0), (65536.0, 7.0)))
    three = replace(path, run_length_of_three=((4096.0, 12.0), (65536.0, 6.0)))
    assert path.restart_cycles(4096) == three.restart_cycles(4096) == 12.0
    assert path.restart_cycles(4096, 3) == 12.0
    assert three.restart_cycles(4096, 3) == pytest.approx(6.0)
    assert three.restart_cycles(4096, 2) == pytest.approx((12 + (18 - 12) / 2) / 2)
    assert three.restart_cycles(4096, 9) == pytest.approx((12 + 8 * 3) / 9)
    assert three.restart_cycles(65536, 9) == 0.0
    slower = replace(three, run_length_of_three=((4096.0, 26.0), (65536.0, 6.0)))
    assert slower.restart_cycles(4096, 3) == 12.0  # no more than each takes by itself


def test_ecm_takes_the_order_of_the_code() -> None:
    """gcc jams the product of matrices; rows of B and C take half again as much room as the source says."""
    for classic, factor in ((True, 2), (False, 3)):
        code = km.CodeOptions(compiler="gcc", classic=classic)
        found = km.ecm("matmul", "clx", N=2000, M=2000, K=2000, code=code)
        along_k = next(c for c in found.answer.traffic.conditions if c.reuses[0].carried_by == "k")
        assert along_k.required == pytest.approx(factor * 16_000, rel=0.01)
