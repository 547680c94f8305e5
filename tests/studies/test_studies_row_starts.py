"""Where rows begin at the sizes of a point, with code that was compiled for others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernmodel.evaluate.kernel_files import read_kernels
from kernmodel.evaluate.kernels import evaluate_kernels
from kernmodel.studies.predict.ecm import predict_ecm, predict_ecm_sweep
from kernmodel.studies.predict.request import CodeRequest, KernelRequest, Point
from kernmodel.studies.predict.row_starts import at_sizes, origins
from kernmodel.studies.predict.stages import Stages
from kernmodel.studies.sweep.evaluation import evaluate
from kernmodel.studies.sweep.grid import Axis, Grid

ROWS = """void rows(double a[restrict M][N], double b[restrict M][N])
{
    for (int j = 0; j < M; ++j)
        for (int i = 0; i < N - 4; ++i)
            b[j][i] = a[j][i] + a[j][i + 1] + a[j][i + 2];
}
"""
GCC = CodeRequest(compiler="gcc")
SIZES = (100, 128, 132)
"""Rows of 12.5, 16 and 16.5 lines, of which no iteration is left over by vectors of four."""


def compiled(kernel: str, sizes: dict[str, int], machine: str = "zen3"):
    stages, point = Stages(), Point(KernelRequest(kernel, machine, sizes), GCC)
    return stages.code(point, stages.machine(machine)).loop, stages.nest(point.kernel)


@pytest.fixture
def rows(tmp_path: Path) -> str:
    file = tmp_path / "rows.c"
    file.write_text(ROWS, encoding="utf-8")
    return str(file)


def view(point: Point, answer):
    return answer.prediction


@pytest.mark.thorough
def test_points_that_share_code_are_predicted_as_each_by_itself(rows: str, tmp_path: Path) -> None:
    """Their rows begin on lines and off them; before, all had the time of the largest."""
    kernel = KernelRequest(rows, "zen4", {})
    points = [{"M": size, "N": size} for size in SIZES]
    alone = [predict_ecm(replace(kernel, sizes=point), GCC).prediction for point in points]
    assert len({one.t_ol for one in alone}) > 1
    assert [one.prediction for one in predict_ecm_sweep(kernel, GCC, points)] == alone
    grid = Grid(Point(replace(kernel, sizes={"M": 128}), GCC), (Axis("size", "N", SIZES),))
    swept = [outcome.view.t_ol for outcome in evaluate(grid, view)]
    assert swept == [one.t_ol for one in alone]
    table = tmp_path / "measured.csv"
    lines = [f'rows,{rows},zen4,gcc,"{{""M"": {size}, ""N"": {size}}}",1,cy/CL,5' for size in SIZES]
    table.write_text("\n".join(["kernel,source,machine,compiler,sizes,cores,unit,measured", *lines]), encoding="utf-8")
    (judged,) = evaluate_kernels(read_kernels(str(table))).series
    assert [point.prediction for point in judged.points] == alone


def test_the_source_says_what_the_code_does() -> None:
    sizes = {"L": 66, "M": 66, "N": 66}
    loop, nest = compiled("3d-7pt", sizes)
    placed = at_sizes(loop, origins(loop, nest, sizes), nest, sizes)
    for code, source in zip(loop.streams, placed, strict=True):
        assert code.start is not None
        assert source.start is not None
        assert (source.start.offset, source.start.rows) == (code.start.offset, code.start.rows)


def test_where_the_code_loses_an_address_the_source_knows_it() -> None:
    """How the outermost loop moves an address is not known where it counts on from what a loop inside left."""
    sizes = {"L": 67, "M": 67, "N": 67}
    loop, nest = compiled("3d-7pt", sizes)
    starts = [stream.start for stream in loop.streams]
    assert all(start and start.rows[-1][0] == 67 * 67 * 8 for start in starts)  # it does, and it is
    lost = [start and replace(start, base=f"{start.base}#1", rows=(start.rows[0], (0, None))) for start in starts]
    streams = tuple(replace(stream, start=start) for stream, start in zip(loop.streams, lost, strict=True))
    placed = at_sizes(loop, origins(replace(loop, streams=streams), nest, sizes), nest, sizes)
    assert {stream.start.base for stream in placed if stream.start} == {"*a", "*b"}
    assert all(stream.start and stream.start.rows == ((67 * 8, 65), (67 * 67 * 8, 65)) for stream in placed)


def test_accesses_that_are_no_reference_of_the_source_are_left_as_they_are() -> None:
    sizes = {"L": 66, "M": 66, "N": 66}
    loop, nest = compiled("3d-7pt", sizes)
    others = {"L": 66, "M": 66, "N": 70}
    assert origins(loop, nest, others) == ()  # code of other sizes than is said
    assert at_sizes(loop, (), nest, others) == loop.streams
    assert origins(replace(loop, steps=None), nest, sizes) == ()


def test_every_array_has_its_accesses() -> None:
    """An address that the code keeps in memory is that of no parameter; which array it is follows from the others."""
    sizes = {"L": 20, "M": 26, "N": 161}
    loop, nest = compiled("long-range", sizes)
    hidden = tuple(
        replace(one, start=replace(one.start, base="[rsp + 8].0")) if one.start and one.start.base == "rsi" else one
        for one in loop.streams
    )
    placed = at_sizes(loop, origins(replace(loop, streams=hidden), nest, sizes), nest, sizes)
    assert {one.start.base for one in placed if one.start and one.stride_bytes} == {"*U", "*V", "*ROC"}


def test_prefetches_are_no_references() -> None:
    loop, nest = compiled("copy", {"N": 1000})
    load = loop.streams[0]
    prefetch = replace(load, reference=replace(load.reference, size_bytes=0, read=False, written=False))
    with_one = replace(loop, streams=(*loop.streams, prefetch))
    assert origins(with_one, nest, {"N": 1000}) == origins(loop, nest, {"N": 1000})


def test_where_a_loop_before_stopped_is_no_place_in_an_array() -> None:
    """Such a loop may execute iterations up to where an array is aligned."""
    loop, nest = compiled("copy", {"N": 1000})
    assert len(origins(loop, nest, {"N": 1000})) == 2
    behind = tuple(
        replace(stream, start=replace(stream.start, base=f"{stream.start.base}#0"))
        for stream in loop.streams
        if stream.start
    )
    assert origins(replace(loop, streams=behind), nest, {"N": 1000}) == ()
