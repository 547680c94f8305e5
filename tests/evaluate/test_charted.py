"""Measured points on rooflines: which rows are of a kernel, where they stand, what share of their roof they are."""

from __future__ import annotations

import json

import pytest

import kernmodel as km
from kernmodel.cli.main import main
from kernmodel.errors import InputError

ROWS = """kernel,machine,sizes,cores,unit,measured,traffic_L3Mem
triad,clx,N=20000000,1,cy/CL,30,
triad,clx,N=20000000,1,MLUP/s,600,36
triad,clx,N=1000,1,cy/CL,3,
triad,hsw,N=20000000,1,cy/CL,30,
triad,clx,N=20000000,4,cy/CL,30,
stencil,clx,M=5000 N=5000,1,cy/CL,30,
"""
TRIAD = {"kernels": "triad.c", "machine": "clx", "cores": 1, "N": 20_000_000}


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "measured.csv"
    path.write_text(ROWS)
    return path


def test_rows_of_the_kernel_sizes_machine_and_cores_are_drawn(rows):
    answer = km.roofline_chart(**TRIAD, chart=km.ChartOptions(measured=rows)).answer
    (chart,) = answer.kernels[0].rooflines
    work = answer.kernels[0].subject.predicted.prediction.work
    by_time, by_rate = chart.measured
    # 2 FLOP an iteration, 8 iterations in 30 cycles
    assert by_time.flop_per_second == pytest.approx(2 * 8 / 30 * work.clock_hz)
    assert (by_time.roof, by_time.by_bytes) == (chart.bound_by, False)
    assert by_time.percent_of_roof == pytest.approx(100 * by_time.flop_per_second / chart.bound)
    assert by_rate.flop_per_second == pytest.approx(1.2e9)
    assert by_rate.intensity == pytest.approx(2 / 36)
    memory = next(roof for roof in chart.memory_roofs if roof.level == "Mem")
    assert by_rate.roof_flop_per_second == pytest.approx(2 / 36 * memory.bytes_per_second)


def test_text_document_picture_and_drawing_have_the_marks(rows, tmp_path):
    result = km.roofline_chart(**TRIAD, chart=km.ChartOptions(measured=rows))
    assert "measured" in result.text() and "% of the roof of" in result.text()
    charts = json.loads(json.dumps(result.json()))["kernels"][0]["charts"]
    assert [one["line"] for one in charts[0]["measured"]] == [2, 3]
    assert "* measured" in result.drawing()
    result.plot(tmp_path / "chart.svg")
    bare = tmp_path / "bare.svg"
    km.roofline_chart(**TRIAD).plot(bare)
    assert (tmp_path / "chart.svg").stat().st_size > bare.stat().st_size


def test_a_table_of_rates_goes_to_carm_too(tmp_path):
    path = tmp_path / "rates.csv"
    path.write_text("kernel,GFLOP/s\ntriad,1.5\nother,2\n")
    answer = km.carm_chart("triad.c", "clx", cores=1, measured=path, N=20_000_000).answer
    for chart in (answer.findings.roofline, answer.findings.beside):
        assert [(one.flop_per_second, one.intensity) for one in chart.measured] == [(1.5e9, chart.points[0].intensity)]


def test_kernels_without_a_row_are_named(tmp_path):
    path = tmp_path / "rates.csv"
    path.write_text("kernel,FLOP/s\nother,2e9\n")
    answer = km.roofline_chart(**TRIAD, chart=km.ChartOptions(measured=path)).answer
    assert [note.text for note in answer.notes if note.code == "not-measured"] == [
        f"{path} has no row of triad at these sizes, on this machine with so many cores"
    ]


def test_what_no_roof_allows_is_doubted(tmp_path):
    """Bytes of a whole run in place of those of an iteration."""
    path = tmp_path / "rates.csv"
    path.write_text("kernel,GFLOP/s,bytes\ntriad,1.0,640e9\ntriad,1.0,32\n")
    answer = km.roofline_chart(**TRIAD, chart=km.ChartOptions(measured=path)).answer
    (doubt,) = [note.text for note in answer.notes if note.code == "measured-above-roof"]
    assert doubt.startswith(f"{path}:2: triad was measured at") and "of what Mem allows" in doubt
    path.write_text("kernel,TFLOP/s\ntriad,1.5\n")
    carm = km.carm_chart("triad.c", "clx", cores=1, measured=path, N=20_000_000).answer
    assert sum(note.code == "measured-above-roof" for note in carm.notes) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kernel,GFLOP/s\ntriad,fast\n", ":2: GFLOP/s is 'fast', not a positive number"),
        ("kernel,GFLOP/s,bytes\ntriad,2,-3\n", ":2: bytes is '-3', not a positive number"),
        ("kernel,speed\ntriad,2\n", "has no column"),
        ("", "has no column"),
    ],
)
def test_wrong_files_are_one_message(tmp_path, capsys, text, said):
    path = tmp_path / "rates.csv"
    path.write_text(text)
    with pytest.raises(InputError):
        km.roofline_chart(**TRIAD, chart=km.ChartOptions(measured=path))
    assert main(["carm", "-m", "clx", "triad.c", "--measured", str(path)]) == 1
    assert said in capsys.readouterr().err
