"""Files of measured kernels, how far predictions are from them, and what comes out."""

from __future__ import annotations

import pytest

from kernmodel.errors import InputError
from kernmodel.evaluate.kernel_files import read_kernels
from kernmodel.evaluate.kernels import evaluate_kernels
from kernmodel.report.json.kernel_evaluation import kernel_evaluation_document
from kernmodel.studies.predict.ecm import predict_ecm
from kernmodel.studies.predict.request import CodeRequest, KernelRequest

COPY = "void copy(int n, double a[restrict n], double b[restrict n]) { for (int i = 0; i < n; ++i) a[i] = b[i]; }\n"
LOOP = """.L3:
        vmovupd (%rsi,%rax), %ymm0
        vmovupd %ymm0, (%rdi,%rax)
        addq    $32, %rax
        cmpq    %rax, %rdx
        jne     .L3
"""
HEADER = "kernel,source,listing,machine,class,sizes,cores,unit,measured,traffic_L1L2,peer_other"
ROWS = (
    'copy,copy.c,copy.s,clx,stream,"{""n"": 1000}",,,2.5,,2.0',
    "copy,copy.c,copy.s,clx,stream,n=20000000,1,cy/It,5,24,4",
    "copy,copy.c,copy.s,clx,stream,n=20000000,4,MLUP/s,1000,,",
    "copy,copy.c,missing.s,clx,stream,n=1000,1,,3,,",
    "copy,copy.c,copy.s,clx,stream,n=1000,1,furlongs,3,,",
    "copy,copy.c,copy.s,clx,stream,n=x,1,,3,,",
    "copy,copy.c,copy.s,clx,stream,n=1000,0,,3,,",
    "copy,copy.c,copy.s,clx,stream,n=1000,1,,-3,,",
)


@pytest.fixture
def file(tmp_path):
    (tmp_path / "copy.c").write_text(COPY)
    (tmp_path / "copy.s").write_text(LOOP)
    path = tmp_path / "kernels.csv"
    path.write_text("\n".join((HEADER, *ROWS)))
    return path


def test_units_and_what_is_skipped(file):
    source = read_kernels(str(file))
    points = next(iter(source.series.values()))
    assert [(point.sizes, point.cores, point.unit, point.measured) for point in points] == [
        ({"n": 1000}, 1, "cy/CL", 2.5),
        ({"n": 20000000}, 1, "cy/It", 5.0),
        ({"n": 20000000}, 4, "LUP/s", 1e9),
    ]
    assert points[1].traffic == {"L1L2": 24.0}
    assert [line for line, _ in source.skipped] == [6, 7, 8, 9]


def test_errors_are_of_the_measured_time_and_series_weigh_the_same(file):
    answer = evaluate_kernels(read_kernels(str(file)), cache="lc")
    good, bad = answer.series
    assert [line for line, _ in bad.failed] == [5]
    request = KernelRequest(str(file.parent / "copy.c"), "clx", {"n": 20000000}, cache="lc")
    alone = predict_ecm(request, CodeRequest(asm=str(file.parent / "copy.s")), (4,))
    one, whole, several = good.points
    assert whole.predicted == pytest.approx(alone.prediction.cycles)
    assert whole.measured == 40.0
    assert whole.peers == {"other": 32.0}
    assert whole.error_percent == pytest.approx(100 * (alone.prediction.cycles / 40 - 1))
    assert several.predicted == pytest.approx(alone.scaling[0].cycles)
    assert several.measured == pytest.approx(8 * 2.5e9 / 1e9)  # cycles of 8 updates at so many a second
    assert (one.residence, whole.residence, several.share) == ("L1", "Mem", "part of a domain")
    group = answer.groups[0]
    ours, other = group.summaries.values()
    assert (group.name, ours.series, ours.points) == ("all points of one core", 1, 2)
    assert ours.mean_percent == pytest.approx((abs(one.error_percent) + abs(whole.error_percent)) / 2)
    assert other.signed_percent == pytest.approx((-20 - 20) / 2)
    assert (answer.traffic[0].path, answer.traffic[0].mean_percent) == ("L1L2", pytest.approx(0.0))
    names = {point["name"] for point in kernel_evaluation_document(answer)["series"][0]["points"][0]["times"]}
    assert {"T_OL", "T_nOL", "T_L1L2", "T_L3Mem"} <= names


def test_groups_of_sizes_are_named_by_the_sizes_that_they_hold(file):
    """A group from 51 to 100 must not read as if it were all points up to 100."""
    sizes = (50, 51, 100, 1000, 1001)
    rows = [f"copy,copy.c,copy.s,clx,stream,n={n},1,,3,," for n in reversed(sizes)]
    file.write_text("\n".join((HEADER, *rows)))
    answer = evaluate_kernels(read_kernels(str(file)), cache="lc")
    named = [(group.name, group.summaries["kernmodel"].points) for group in answer.groups if group.grouping == "size"]
    assert named == [("up to 50", 1), ("51 to 100", 2), ("501 to 1000", 1), ("over 1000", 1)]


def test_what_is_no_such_file(tmp_path):
    path = tmp_path / "kernels.csv"
    for text in ("kernel,machine\n", "kernel,machine,sizes,measured\ncopy,clx,n=1,nan\n"):
        path.write_text(text)
        with pytest.raises(InputError):
            read_kernels(str(path))
