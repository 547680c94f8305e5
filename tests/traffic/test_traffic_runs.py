"""Contiguous runs of references, and what short ones cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernmodel.machine.load import load_machine
from kernmodel.machine.model import Machine
from kernmodel.source.load import load_kernel, parse_kernel
from kernmodel.source.nest.tiling import tile
from kernmodel.traffic.conditions.layer_conditions import layer_conditions
from kernmodel.traffic.jammed import runs_of
from kernmodel.traffic.stream_runs import contiguous_runs, restart_cycles, shortest_run

SIZES = {"N": 800, "M": 600, "L": 60}


@pytest.fixture(scope="module")
def measured() -> Machine:
    machine = load_machine("clx")
    *inner, memory = machine.paths
    return replace(machine, paths=(*inner, replace(memory, run_length=((512.0, 40.0), (4096.0, 20.0), (65536.0, 8.0)))))


def test_rows_that_adjoin_are_one_run_and_blocks_of_them_are_not() -> None:
    nest = load_kernel("3d-7pt")
    whole, rows, blocks = (
        contiguous_runs(tile(nest, sizes) if sizes else nest, SIZES, 64)["a", "a[k][j][i]"][0]
        for sizes in ({}, {"j": 11}, {"j": 11, "i": 80})
    )
    assert whole == pytest.approx(8 * 598 * 800, rel=0.001)  # a plane; the next one begins two rows further
    # the mean of blocks of 11 rows of which the last one has 4; rows leave out two points
    assert 8 * 800 * 9 < rows < 8 * 800 * 11
    assert blocks == pytest.approx(8 * 798 / 10)


def test_strides_beyond_a_line_and_tables_have_no_runs() -> None:
    text = """void f(int N, double a[N][N], double b[N][N], double *c, int *t) {
        for (int j = 0; j < N; ++j) for (int i = 0; i < N; ++i) a[j][i] = b[i][j] + c[t[i]]; }"""
    runs = contiguous_runs(parse_kernel(text, "f.c"), {"N": 1000}, 64)
    assert set(runs) == {("a", "a[j][i]"), ("t", "t[i]")}
    assert runs["a", "a[j][i]"] == (8_000_000,)
    assert runs["t", "t[i]"] == (4_000,)  # walked again for every j


def test_lines_of_short_runs_cost_more_where_it_was_measured(measured: Machine) -> None:
    nest = tile(load_kernel("3d-7pt"), {"j": 11, "i": 64})
    traffic = layer_conditions(nest, measured, SIZES)
    runs = runs_of(nest, SIZES, measured)
    assert runs is not None and runs_of(nest, SIZES, load_machine("clx")) is None
    memory = measured.paths[-1]
    lines = traffic.paths[-1].loads
    found = shortest_run(traffic, runs, "Mem")
    assert found is not None and found[0] < 512
    assert restart_cycles(memory, traffic, runs) == pytest.approx(lines * (40 - 8), rel=1e-6)
    assert restart_cycles(measured.paths[0], traffic, runs) == 0
    # two streams that begin their runs together: half of what both wait for is shared here
    both = replace(memory, run_length_of_three=((512.0, 8.0 + 64 / 3), (65536.0, 8.0)))
    assert restart_cycles(both, traffic, runs) == pytest.approx(lines * (32 + 16) / 2, rel=0.01)


@pytest.mark.parametrize(("halo", "goes_on"), [(1, True), (8, True), (16, True), (32, False)])
def test_rows_that_leave_out_little_go_on(halo: int, goes_on: bool) -> None:
    """Rows of 2 KiB on a guest with Zen 4: 256 bytes left out cost nothing, 512 a new start (`BRIDGED_BYTES`)."""
    text = f"""void f(double a[M][N], double b[M][N]) {{
        for (int j = 0; j < M; ++j) for (int i = {halo}; i < N - {halo}; ++i) b[j][i] = a[j][i]; }}"""
    ((run,),) = set(contiguous_runs(parse_kernel(text, "f.c"), {"M": 100, "N": 256 + 2 * halo}, 64).values())
    assert (run > 2048) == goes_on
