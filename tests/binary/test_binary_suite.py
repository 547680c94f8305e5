"""Suites: the file, the variants, blocked sources, what is kept of a run that was cut off, and the statistics."""

from __future__ import annotations

import csv
import json
import platform
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from kernmodel.binary.suite.build import source_of
from kernmodel.binary.suite.file import read_suite
from kernmodel.binary.suite.model import Measured, Variant
from kernmodel.binary.suite.record_file import RecordFile
from kernmodel.binary.suite.run import run_suite
from kernmodel.errors import InputError, ToolError
from kernmodel.report.json.binary_lifting import suite_document
from kernmodel.report.text.binary_suite import suite_report
from kernmodel.report.text.render import Style, render

FLAGS = "-O1 -Wl,-O1"
SUITE = Path(__file__).parents[2] / "benchmarks" / "suite" / "suite.yml"
KERNEL = """
#define N 20
static double a[N][N], b[N][N];
__attribute__((noinline)) void kernel(double x[N][N], double y[N][N])
{
    for (int i = 0; i < N; ++i)
        for (int j = 0; j < N; ++j)
            y[i][j] += 2.0 * x[i][j];
}
int main(void)
{
    kernel(a, b);
    return b[1][2] > 1.0;
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one.c").write_text(KERNEL)
    (tmp_path / "two.c").write_text(KERNEL.replace("2.0", "3.0"))
    return tmp_path


def written(folder: Path, text: str) -> str:
    (folder / "suite.yml").write_text(text)
    return str(folder / "suite.yml")


def test_the_own_suite_has_kernels_and_binaries_enough() -> None:
    suite = read_suite(str(SUITE))
    assert len(suite.kernels) >= 30
    assert len(suite.variants) >= 500
    assert 3 * len(suite.aside) >= len(suite.kernels)


def test_every_value_may_stand_alone_or_in_a_list(folder: Path) -> None:
    suite = read_suite(written(folder, "kernels: '*.c'\nflags: [-O1, -O3 -mavx2]\nblock: [none, 8]\naside: two\n"))
    assert [kernel.name for kernel in suite.kernels] == ["one.c", "two.c"]
    assert suite.flags == (("-O1",), ("-O3", "-mavx2"))
    assert suite.block == (None, 8)
    assert (suite.compilers, suite.function, suite.aside) == (("gcc",), "kernel", frozenset({"two"}))
    assert len({variant.name for variant in suite.variants}) == len(suite.variants) == 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kernel: [one.c]\n", "did you mean 'kernels'"),
        ("compilers: [gcc]\n", "names no kernel"),
        ("kernels: [on.c]\n", "did you mean 'one.c'"),
        ("kernels: ['x*.c']\n", "no file is called 'x*.c'"),
        ("kernels: one.c\nblock: [often]\n", "block"),
        ("kernels: one.c\nblock: [1]\n", "block"),
        ('kernels: one.c\nflags: ["-D\'x"]\n', "cannot be split"),
        ("kernels: one.c\naside: [too]\n", "no kernel of the suite"),
        ("kernels: []\n", "is empty"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_line(folder: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_suite(written(folder, text))
    assert said in str(caught.value)
    assert "suite.yml" in str(caught.value)


def test_a_blocked_variant_has_loops_over_blocks(folder: Path) -> None:
    plain = Variant(folder / "one.c", "gcc", ("-O2",), None)
    blocked = source_of(Variant(folder / "one.c", "gcc", ("-O2",), 8), "kernel")
    assert source_of(plain, "kernel") == KERNEL
    assert blocked.count("for (") == KERNEL.count("for (") + 2


def test_a_kernel_that_cannot_be_blocked_says_so(folder: Path) -> None:
    (folder / "one.c").write_text(KERNEL.replace("y[i][j] +=", "y[(int)x[j][i]][i] ="))
    with pytest.raises(InputError, match="cannot be blocked"):
        source_of(Variant(folder / "one.c", "gcc", (), 8), "kernel")


def test_records_survive_a_line_that_was_cut_short(tmp_path: Path) -> None:
    file = tmp_path / "measured.jsonl"
    records = RecordFile(file, Measured)
    records.add(Measured("a", "1", 10.0))
    records.add(Measured("b", "1", 20.0))
    records.close()
    file.write_text(file.read_text()[:-9])
    again = RecordFile(file, Measured)
    assert again.get("a", "1") == Measured("a", "1", 10.0)
    assert again.get("a", "2") is None
    assert again.get("b", "1") is None
    again.add(Measured("b", "1", 30.0))
    again.close()
    with closing(RecordFile(file, Measured)) as later:
        assert later.get("b", "1") == Measured("b", "1", 30.0)


@pytest.mark.thorough
@pytest.mark.skipif(platform.machine() != "x86_64" or not shutil.which("gcc"), reason="needs gcc on x86-64")
def test_a_suite_is_built_counted_and_judged_and_goes_on_where_it_was_cut_off(folder: Path) -> None:
    suite = read_suite(written(folder, f"kernels: [one.c]\nflags: ['{FLAGS}']\nblock: [none, 8]\nalways: -no-pie\n"))
    timed: list[str] = []

    def timing(binary: str, function: str) -> tuple[float, float, str]:
        timed.append(binary)
        return 1000.0, 0.5, ""

    def run() -> object:
        return run_suite(suite, "ZEN3", folder / "out", timing=timing, jobs=1)

    answer = run_suite(suite, "ZEN3", folder / "out", timing=timing, jobs=1)
    if any("trace" in why for _, why in answer.failed):
        pytest.skip("this host lets no program be traced")
    assert [one.variant.block for one in answer.judged] == [None, 8]
    plain = answer.judged[0]
    assert plain.predicted["kernmodel (c)"] == pytest.approx(400, rel=0.5)  # 400 points, about a cycle each
    assert answer.classes[0].summaries["kernmodel (c)"].count == 2
    assert {one.grouping for one in answer.classes} == {"all", "block"}
    text = render(suite_report(answer), Style())
    assert "kernmodel (c)" in text
    assert "2 of 2" in text
    assert json.loads(json.dumps(suite_document(answer)))["binaries"][1]["block"] == 8
    with (folder / "out" / "variants.csv").open(newline="") as table:
        assert [(row["flags"], row["block"]) for row in csv.DictReader(table)] == [(FLAGS, ""), (FLAGS, "8")]
    assert len(timed) == 2
    # all is kept, until a source changes
    again = run_suite(suite, "ZEN3", folder / "out", timing=timing, jobs=1)
    assert (len(timed), again.reused) == (2, 4)
    assert again.judged == answer.judged
    (folder / "one.c").write_text(KERNEL.replace("2.0", "4.0"))
    run()
    assert len(timed) == 4


def test_a_compiler_that_is_not_there_ends_a_suite(folder: Path) -> None:
    suite = read_suite(written(folder, "kernels: [one.c]\ncompilers: [no-such-cc]\n"))
    with pytest.raises(ToolError, match="no-such-cc"):
        run_suite(suite, "ZEN3", folder / "out", timing=lambda binary, function: (1.0, 0.0, ""))
