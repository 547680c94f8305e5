"""Functions that a loop calls: known times are part of the prediction, others are named, the user's go first."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernmodel as km
from kernmodel.code.calls import Call, calls_in
from kernmodel.code.listing import read_listing
from kernmodel.errors import InstructionTableError, UsageError
from kernmodel.incore.tables import calls as tables
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.models.calls import CalledFunction, CallWork
from kernmodel.studies.predict.request import EcmAnswer

needs_gcc = pytest.mark.needs("gcc")
GCC = km.CodeOptions(compiler="gcc", flags="-O2")
MAP = """#include <math.h>
void f(int n, double *restrict a, const double *restrict b)
{{
{before}    for (int i = 0; i < n; ++i)
        a[i] = {call};
}}
"""


def answer(folder: Path, call: str, machine: str = "zen3", code: km.CodeOptions = GCC, before: str = "") -> EcmAnswer:
    (folder / "f.c").write_text(MAP.format(call=call, before=before))
    return km.ecm(folder / "f.c", machine, code=code, n=1000).answer


def body(text: str):
    return read_listing(text, "body.s", syntax="att").instructions


SPILLED = """
.L3:
    movsd (%rbx), %xmm0
    addsd 8(%rsp), %xmm0
    addq $8, %rbx
    call exp@PLT
    movsd %xmm0, 8(%rsp)
    cmpq %rbp, %rbx
    jne .L3
"""
IN_PLACE = """
.L3:
    movsd (%rbx), %xmm0
    addq $8, %rbx
    call exp@PLT
    movsd %xmm0, -8(%rbx)
    cmpq %rbp, %rbx
    jne .L3
"""


@pytest.mark.parametrize(
    ("text", "chained"),
    [
        ("1: mulsd (%rbx), %xmm0\n addq $8, %rbx\n call cos@PLT\n cmpq %rbx, %rbp\n jne 1b\n", 1),
        (SPILLED, 1),
        (IN_PLACE, 0),
        ("1: movsd (%rbx), %xmm1\n movsd 8(%rbx), %xmm0\n addq $8, %rbx\n call pow\n cmpq %rbx, %rbp\n jne 1b\n", 0),
        ("1: movsd (%rbx), %xmm0\n addq $8, %rbx\n call pow\n movapd %xmm0, %xmm1\n cmpq %rbx, %rbp\n jne 1b\n", 1),
        ("1: addsd (%rbx), %xmm0\n mulsd %xmm0, %xmm0\n addq $8, %rbx\n call cos\n cmpq %rbx, %rbp\n jne 1b\n", 1),
        ("1: pxor %xmm0, %xmm0\n cvtsi2sdl %ebx, %xmm0\n addq $8, %rbx\n call cos\n cmpq %rbx, %rbp\n jne 1b\n", 0),
        ("1: movq %rbx, %rdi\n addq $8, %rbx\n call memcpy\n cmpq %rbx, %rbp\n jne 1b\n", 0),
        # a function of one argument does not read xmm1
        ("1: movsd (%rbx), %xmm0\n addq $8, %rbx\n call exp\n movapd %xmm0, %xmm1\n cmpq %rbx, %rbp\n jne 1b\n", 0),
    ],
)
def test_a_call_is_a_chain_where_its_result_reaches_its_own_argument(text: str, chained: int) -> None:
    (call,) = calls_in(body(text))
    assert (call.count, call.chained) == (1, chained)


def test_a_result_that_is_moved_to_a_kept_register_and_back_is_a_chain() -> None:
    text = "1: ldr d1, [x19], #8\n fmov d0, d8\n fadd d0, d0, d1\n bl exp\n fmov d8, d0\n cmp x19, x20\n b.ne 1b\n"
    (call,) = calls_in(read_listing(text, "body.s", isa_name="aarch64").instructions)
    assert (call.count, call.chained) == (1, 1)


def test_a_result_goes_through_other_calls() -> None:
    text = "1: call exp@PLT\n mulsd (%rbx), %xmm0\n call log\n addq $8, %rbx\n cmpq %rbx, %rbp\n jne 1b\n"
    assert calls_in(body(text)) == (Call("exp", 1, 1), Call("log", 1, 1))
    assert all(call.chained == 0 for call in calls_in(body(text), repeats=False))


def test_a_called_function_keeps_no_vector_register() -> None:
    text = "1: movsd (%rbx), %xmm0\n call exp\n movapd %xmm0, %xmm5\n call log\n movapd %xmm5, %xmm0\n"
    assert all(call.chained == 0 for call in calls_in(body(text + " addq $8, %rbx\n cmpq %rbx, %rbp\n jne 1b\n")))


@needs_gcc
def test_a_known_time_adds_to_the_core_and_depends_on_arguments(tmp_path: Path) -> None:
    prediction = answer(tmp_path, "sin(b[i])").prediction
    calls = prediction.calls
    assert calls is not None and calls.known and not prediction.is_lower_bound
    (sine,) = calls.functions
    assert sine.per_unit == 8 and sine.chained == 0 and "glibc" in sine.source
    assert prediction.levels[0][1] == pytest.approx(prediction.t_ol + 8 * sine.cycles + prediction.t_out)
    interval = prediction.cycles_interval
    assert interval is not None and "arguments" in interval.cause
    assert interval.high - prediction.cycles == pytest.approx(8 * (sine.high - sine.cycles))
    assert prediction.times["T_call"] == prediction.t_call and "T_call" in prediction.binding


@needs_gcc
def test_a_call_that_waits_for_the_last_takes_its_latency(tmp_path: Path) -> None:
    free = answer(tmp_path, "cos(b[i])").prediction.calls
    chain = answer(tmp_path, "s = cos(s * b[i])", before="    double s = 0.5;\n").prediction.calls
    assert free is not None and chain is not None
    assert chain.functions[0].chained == 1 and chain.cycles > free.cycles


@needs_gcc
def test_a_time_that_is_not_known_is_named_and_may_be_given(tmp_path: Path) -> None:
    found = answer(tmp_path, "exp(b[i])", "clx")
    (note,) = [note for note in found.notes if note.code == "call"]
    assert found.prediction.unknown == ("T_call",) and "--call-cycles exp=CYCLES" in note.text
    flags = "-O2 -falign-loops=64"  # the address of the loop is to make no difference
    code = km.CodeOptions(compiler="gcc", flags=flags, call_cycles={"exp": (10, 30)})
    given = answer(tmp_path, "exp(b[i])", "clx", code).prediction
    assert given.t_call == 8 * 20 and not given.unknown
    assert given.cycles_interval is not None
    assert given.cycles_interval.high - given.cycles_interval.low == pytest.approx(8 * 20)
    one = km.CodeOptions(compiler="gcc", flags=flags, call_cycles=["exp=20"])
    assert answer(tmp_path, "exp(b[i])", "clx", one).prediction.cycles_interval is None


@needs_gcc
def test_what_the_user_says_goes_before_the_table_and_other_names_are_noted(tmp_path: Path) -> None:
    code = km.CodeOptions(compiler="gcc", flags="-O2", call_cycles={"exp": 100.0, "exq": 1.0})
    found = answer(tmp_path, "exp(b[i])", "zen3", code)
    assert found.prediction.t_call == 800
    assert any(note.code == "not-called" and "exq" in note.text for note in found.notes)


@needs_gcc
def test_calls_around_the_loop_count_each_time_it_is_entered(tmp_path: Path) -> None:
    (tmp_path / "f.c").write_text(
        "#include <math.h>\nvoid f(int n, int m, double a[restrict m][n], const double *restrict b)\n{\n"
        "    for (int j = 0; j < m; ++j) {\n        double s = exp(b[j]);\n"
        "        for (int i = 0; i < n; ++i)\n            a[j][i] = a[j][i] * s;\n    }\n}\n"
    )
    calls = km.ecm(tmp_path / "f.c", "zen3", code=GCC, n=64, m=50).answer.prediction.calls
    assert calls is not None
    (exp,) = calls.functions
    assert exp.around and exp.per_unit == pytest.approx(8 / 64)


@pytest.mark.parametrize(
    "text", ["exp", "exp=", "exp=-1", "exp=3-1", "exp=1-2-3", "exp=nan", "=4", "2x=4", "exp=1e999"]
)
def test_what_is_no_time_of_a_call_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--call-cycles"):
        km.CodeOptions(call_cycles=[text]).request()


def test_times_that_are_not_known_leave_a_lower_bound() -> None:
    known, unknown = CalledFunction("f", 2, 0, 10.0, 8.0, 20.0), CalledFunction("g", 3, 0, None)
    work = CallWork((known, unknown))
    assert (work.low, work.cycles, work.high, work.known) == (16, 20, 40, False)


def test_carried_tables_are_whole() -> None:
    found = tables.call_times(load_parameters("ZEN3"))
    assert {"exp", "logf", "pow", "atan2", "_ZGVdN4v_sin", "_ZGVbN4v_expf", "_ZGVdN4vv_hypot"} <= set(found)
    for name, times in found.items():
        for one in times:
            assert 0 < one.cycles <= 1.5 * one.chained, name
            assert "measured" in one.source and one.arguments
    assert tables.call_times(load_parameters("SKX")) == {}


def test_a_malformed_table_is_refused_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ZEN3.calls.txt").write_text(
        "#! source m = here\nexp | 1 to 2 | 3 | 4 | 1 % | m\nlog | 1 | x | 4 | | m\n"
    )
    monkeypatch.setattr(tables, "DATA", tmp_path)
    with pytest.raises(InstructionTableError, match=r"ZEN3\.calls\.txt:3"):
        tables.call_times(load_parameters("ZEN3"))
