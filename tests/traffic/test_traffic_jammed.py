"""Traffic of code that executes several iterations of an outer loop at once, against that of sources that say so."""

from __future__ import annotations

import pytest

import kernmodel as km
from kernmodel.machine.load import load_machine
from kernmodel.traffic.jammed import jammed_traffic

PLAIN = """void f(double A[restrict m][n], const double *restrict x, double *restrict y, int m, int n)
{
    for (int j = 0; j < m; ++j)
        for (int i = 0; i < n; ++i)
            y[i] += A[j][i] * x[j];
}
"""
JAMMED = PLAIN.replace("++j", "j += 2").replace("A[j][i] * x[j]", "A[j][i] * x[j] + A[j + 1][i] * x[j + 1]")
MACHINE = "clx"


@pytest.mark.parametrize("n", [1000, 10_000, 1_000_000])
def test_two_iterations_at_once_move_what_a_source_of_two_moves(n: int) -> None:
    plain = km.data_traffic(km.Nest(PLAIN), MACHINE, cache="lc", m=400, n=n).answer
    two = km.data_traffic(km.Nest(JAMMED), MACHINE, cache="lc", m=400, n=n).answer.traffic
    found = jammed_traffic(plain.traffic, plain.nest, load_machine(MACHINE), "j", 2)
    assert [note.code for note in found.notes].count("jammed-lines") == (n > 1000)
    for ours, theirs in zip(found.paths, two.paths, strict=True):
        # a unit of two iterations moves two lines of A; x is that of each row
        assert (ours.loads, ours.stores) == pytest.approx((theirs.loads / 2, theirs.stores / 2), abs=1e-3)
    # the core itself keeps y between the two
    beyond = {name: value for name, value in found.arithmetic_intensity.items() if name != "L1" and value is not None}
    assert beyond == pytest.approx({name: two.arithmetic_intensity[name] for name in beyond}, rel=1e-3)


@pytest.mark.parametrize(("along", "copies"), [(None, 1.0), ("j", 1.0), ("i_block", 4.0)])
def test_loops_that_are_executed_one_by_one_move_all(along: str | None, copies: float) -> None:
    plain = km.data_traffic(km.Nest(PLAIN), MACHINE, cache="lc", m=400, n=10_000).answer
    assert jammed_traffic(plain.traffic, plain.nest, load_machine(MACHINE), along, copies) is plain.traffic


def test_arrays_that_the_loop_indexes_move_as_the_source_writes_them() -> None:
    plain = km.data_traffic("stencil", MACHINE, cache="lc", M=5000, N=20_000).answer
    assert jammed_traffic(plain.traffic, plain.nest, load_machine(MACHINE), "j", 2) is plain.traffic
