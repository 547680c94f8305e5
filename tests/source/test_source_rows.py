"""Compressed row storage: loops whose bounds are read from memory."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernmodel as km
from kernmodel.cli.main import main
from kernmodel.errors import SourceError, UnsupportedKernelError
from kernmodel.source.load import parse_kernel

ARGUMENTS = "int n, const int *row, const int *col, const double *val, const double *x, double *y"
SPMV = """for (int i = 0; i < n; i++) {
    double sum = 0.0;
    for (int k = row[i]; k < row[i + 1]; k++)
        sum += val[k] * x[col[k]];
    y[i] = sum;
}"""
FORMS = {
    SPMV: "i*row_length + k",
    SPMV.replace("double sum", "int first = row[i], last = row[i + 1]; double sum")
    .replace("= row[i];", "= first;")
    .replace("< row[i + 1];", "< last;"): "i*row_length + k",
    # indices that count from 1
    SPMV.replace("= row[i];", "= row[i] - 1;").replace("row[i + 1];", "row[i + 1] - 1;"): "i*row_length + k - 1",
    SPMV.replace("< row[i + 1];", "<= row[i + 1] - 1;"): "i*row_length + k",
    # rows of an own place each, whose lengths alone are read
    SPMV.replace("= row[i];", "= 32 * i;").replace("row[i + 1];", "32 * i + row[i];"): "32*i + k",
}


def spmv(body: str = SPMV) -> str:
    return f"void f({ARGUMENTS}) {{ {body} }}"


@pytest.mark.parametrize("body", FORMS)
def test_a_row_is_a_loop_over_its_length(body: str) -> None:
    nest = parse_kernel(spmv(body), "x.c", {})
    assert [(str(loop.start), str(loop.stop)) for loop in nest.loops] == [("0", "n"), ("0", "row_length")]
    assert {str(access.offset) for access in nest.accesses if access.array == "val"} == {FORMS[body]}
    read = [(access.array, access.depth) for access in nest.accesses if access.array == "row"]
    assert read and all(depth == 1 for _, depth in read)
    assert nest.operations.flops_per_iteration == 2
    assert "rows" in {note.code for note in nest.notes}


def test_traffic_by_hand() -> None:
    # an entry reads 8 B of val and 4 B of col; a row 4 B of row and 8 B of y, which are written back too; x stays in L2
    cache = km.CacheOptions("sim", indirect={"col": "banded:64"})
    traffic = km.data_traffic(spmv(), "clx", cache=cache, n=150_000, row_length=20).answer.traffic
    memory = traffic.paths[-1]
    assert memory.loads / traffic.iterations_per_unit * 64 == pytest.approx(12 + (4 + 8 + 8) / 20, rel=0.03)
    assert memory.stores / traffic.iterations_per_unit * 64 == pytest.approx(8 / 20, rel=0.05)


def test_the_length_of_rows_is_asked_for_and_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel, lengths = tmp_path / "spmv.c", tmp_path / "lengths.txt"
    kernel.write_text(spmv())
    lengths.write_text("20 30\n31 40\n")
    command = ["traffic", "-m", "clx", str(kernel), "-D", "n=2000", "--indirect", "col=uniform"]
    assert main(command) == 1
    assert "give --row-length N" in capsys.readouterr().err
    assert main([*command, "--row-length", str(lengths)]) == 0
    assert "row_length = 30" in capsys.readouterr().out
    assert main([*command, "--row-length", "many"]) == 2


def test_index_arrays_in_structures_have_their_members_names() -> None:
    text = """struct csr { int n, *row, *col; double *val; };
    void f(const struct csr *a, const double *x, double *y) {
        for (int i = 0; i < a->n; i++)
            for (int k = a->row[i]; k < a->row[i + 1]; k++) y[i] += a->val[k] * x[a->col[k]]; }"""
    cache = km.CacheOptions("sim", indirect={"a->col": "uniform"})
    answer = km.data_traffic(text, "clx", cache=cache, a_n=2000, row_length=5).answer
    assert "x[a->col[k]]" in {access.text for access in answer.nest.accesses}


def test_other_bounds_from_memory_are_refused() -> None:
    text = spmv(SPMV.replace("k < row[i + 1]", "k <= row[i + 1]"))
    with pytest.raises(UnsupportedKernelError, match="read from memory"):
        parse_kernel(text, "x.c", {})
    with pytest.raises(SourceError):
        parse_kernel(spmv(SPMV.replace("row[i];", "row[i] * col[i];")), "x.c", {})


@pytest.mark.parametrize(
    "loop",
    [
        "i = 1 + j % 3; i < n - 1; i += 2",
        "i = 1 + ((i0 + j) & 1); i < n; i++",
        "i = j / 2; i < n; i++",
        "i = 0; i < j % 5 + 3; i++",
    ],
)
def test_bounds_by_remainders_and_quotients_are_no_rows(loop: str) -> None:
    """They were taken for rows of compressed storage: `--row-length` was asked for, and 1 gave half the iterations."""
    text = f"void f(int n, int i0, double *a) {{ for (int j = 0; j < n; j++) for (int {loop}) a[i] += 1.0; }}"
    with pytest.raises(UnsupportedKernelError, match="no integer formula of sizes and loop variables"):
        parse_kernel(text, "x.c", {})
