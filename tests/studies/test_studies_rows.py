"""Loops whose iterations per pass no stride tells: rows unrolled in one pass, and strides that are parameters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import kernmodel as km
from kernmodel.code.balance import ExpectedWork
from kernmodel.code.listing import read_listing
from kernmodel.code.match import Expectation, choose_loop
from kernmodel.code.model import AssemblyLoop, ExpectedAccess, Surroundings, Way
from kernmodel.errors import Note
from kernmodel.source.load import parse_kernel
from kernmodel.studies.predict.rows import WHOLE_ROWS, row_lengths, with_whole_rows

TRIANGLE = """
void f(double a[restrict {n}][{n}], const double *restrict x, double *restrict y)
{{
    for (int j = 0; j < {n}; ++j) {{
        double s = 0.0;
        for (int i = 0; i <= {end}; ++i)
            s += a[j][i] * x[i];
        y[j] = s;
    }}
}}
"""
BODY = read_listing("1: addq $8, %rax\n cmpq %rax, %rbx\n jne 1b\n", "body.s", syntax="att").instructions
LOOP = AssemblyLoop(
    BODY, "x86-64", "att", "body.s", "1", 16.0, (), "", "main", (Note("bytes-per-pass", "no fit"),),
    variable="j", steps=1, around=Surroundings((), ()),
)  # fmt: skip


def nest_of(n: int, end: str):
    return parse_kernel(TRIANGLE.format(n=n, end=end), "f.c", {})


def test_a_pass_holds_the_longest_row() -> None:
    nest = nest_of(44, "j")
    assert row_lengths(nest, {}, "j") == (44, pytest.approx(22.5))
    found = with_whole_rows(LOOP, nest, {})
    assert found.iterations_per_pass == 44
    (note,) = found.notes
    assert note.code == WHOLE_ROWS and "up to 44" in note.text and "22.5" in note.text


@pytest.mark.parametrize(
    ("loop", "end"),
    [
        (LOOP, "39"),
        (replace(LOOP, variable=None), "j"),
        (replace(LOOP, around=None), "j"),
        (replace(LOOP, around=Surroundings((Way((), 0, (), 0, ()),), ())), "j"),
    ],
)
def test_other_loops_stay_as_they_are(loop: AssemblyLoop, end: str) -> None:
    assert with_whole_rows(loop, nest_of(44, end), {}) is loop


@pytest.mark.needs("gcc")
def test_the_time_lies_between_its_share_and_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(TRIANGLE.format(n=44, end="j"))
    code = km.CodeOptions(compiler="gcc", flags="-O3 -march=haswell")
    prediction = km.ecm(tmp_path / "f.c", "zen3", code=code).answer.prediction
    interval = prediction.cycles_interval
    if prediction.outside is None or prediction.outside.row_factor == 1.0:
        pytest.skip("this compiler does not unroll the rows")
    assert interval is not None and interval.low <= prediction.cycles
    assert interval.high >= 0.999 * prediction.t_ol * 44 / 22.5


BLAS_DOT = """
dot:
    xorl %eax, %eax
    vxorps %xmm0, %xmm0, %xmm0
.L3:
    vmovss (%rsi), %xmm1
    vmulss (%rcx), %xmm1, %xmm1
    vaddss %xmm1, %xmm0, %xmm0
    addl $1, %eax
    addq %rdx, %rsi
    addq %r8, %rcx
    cmpl %edi, %eax
    jne .L3
    ret
"""


def test_loads_count_iterations_where_strides_are_parameters_and_nothing_is_stored() -> None:
    told = Expectation(
        (ExpectedAccess("x", 4, 160, False), ExpectedAccess("y", 4, 80, False)),
        work=ExpectedWork({"add": 1, "mul": 1}),
        trip_count=100,
    )
    found = choose_loop(read_listing(BLAS_DOT, "dot.s", syntax="att"), told)
    assert found.iterations_per_pass == 1
    assert [note.code for note in found.notes] == ["unknown-stride"]
