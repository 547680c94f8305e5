"""Calls in loops: what the hot path avoids is left out, what it cannot avoid is said."""

from __future__ import annotations

import shutil

import pytest

from kernmodel.code.balance import ExpectedWork
from kernmodel.code.compile import FoundCompiler, start_compile
from kernmodel.code.listing import read_listing
from kernmodel.code.loops import control_flow
from kernmodel.code.match import Expectation, choose_loop
from kernmodel.code.model import AssemblyLoop, ExpectedAccess
from kernmodel.code.select import select_without_source
from kernmodel.errors import Note, StrictError, refuse_warnings

ACCESSES = (ExpectedAccess("b", 8, 8, False), ExpectedAccess("a", 8, 8, True))


def loop_calling(function: str, compiler: str, flags: str) -> AssemblyLoop:
    command = shutil.which(compiler) or shutil.which(f"{compiler}-19")
    if command is None:
        pytest.skip(f"no {compiler} on this system")
    source = f"double {function}(double); void k(double*restrict a,double*restrict b)"
    source += f"{{for(int i=0;i<5000;++i)a[i]={function}(b[i]);}}"
    found = FoundCompiler(compiler, command, ())
    made = start_compile(source, name="k.c", compiler=found, flags=tuple(flags.split()), defines={}).finish()
    work = ExpectedWork({"sqrt": 1}) if function == "sqrt" else ExpectedWork({"function": 1}, open_ended=True)
    return choose_loop(read_listing(made.text, "k.s"), Expectation(ACCESSES, work=work, trip_count=5000))


def calls(loop: AssemblyLoop) -> list[str]:
    return [i.text for i in loop.instructions if i.branch == "call"]


def without_source(text: str) -> AssemblyLoop:
    return select_without_source(read_listing(text, "test.s", syntax="att"))


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("flags", ["-O1 -march=haswell", "-O2", "-O3 -march=haswell"])
def test_the_call_for_negative_arguments_of_a_square_root_is_left_out(compiler: str, flags: str) -> None:
    loop = loop_calling("sqrt", compiler, flags)
    roots = sum("sqrt" in i.mnemonic and i.branch is None for i in loop.instructions)
    assert calls(loop) == []
    assert roots == loop.iterations_per_pass
    assert "= 5000 of 5000 iterations" in loop.evidence
    (note,) = loop.notes
    assert (note.code, note.kind) == ("cold-block", "assumption")
    assert "sqrt" in note.text
    assert "-fno-math-errno" in note.text


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize("part", ["double", "float"])
def test_the_call_for_products_of_complex_numbers_that_are_nan_is_left_out(compiler: str, part: str) -> None:
    """clang tests both parts one after the other, in a block between the loop and the call; it is left out, too."""
    command = shutil.which(compiler) or shutil.which(f"{compiler}-19")
    if command is None:
        pytest.skip(f"no {compiler} on this system")
    source = f"void k({part} _Complex*restrict a,{part} _Complex*restrict b,{part} _Complex*restrict c)"
    source += "{for(int i=0;i<5000;++i)a[i]+=b[i]*c[i];}"
    found, flags = FoundCompiler(compiler, command, ()), ("-O3", "-march=haswell")
    made = start_compile(source, name="k.c", compiler=found, flags=flags, defines={}).finish()
    size = 2 * (8 if part == "double" else 4)
    accesses = (*(ExpectedAccess(name, size, size, False) for name in "abc"), ExpectedAccess("a", size, size, True))
    work = ExpectedWork({"mul": 4, "add": 4}, complex_products=1)
    loop = choose_loop(read_listing(made.text, "k.s"), Expectation(accesses, work=work, trip_count=5000))
    assert calls(loop) == []
    assert sum(i.branch == "conditional" for i in loop.instructions) == 2
    (note,) = loop.notes
    assert (note.code, note.kind) == ("cold-block", "assumption")
    assert "products of which both parts are NaN" in note.text


def test_a_way_taken_for_nan_stays_where_it_calls_another_function() -> None:
    text = OUT_OF_LINE.replace("ja .L9", "jp .L9")
    (note,) = without_source(text).notes
    assert (note.kind, "code out of line" in note.text) == ("warning", True)
    in_line = IN_LINE.replace("jbe .L4", "jnp .L4")
    assert calls(without_source(in_line)) == ["call often"]
    assert calls(without_source(in_line.replace("often", "__muldc3"))) == []
    assert calls(without_source(in_line.replace("jnp", "jp").replace("often", "__muldc3"))) == ["call __muldc3"]


def test_the_way_taken_for_nan_on_aarch64_is_left_out() -> None:
    text = "f:\n.L2:\nldr d0, [x0], 8\nfcmp d0, d0\nbvs .L5\n.L3:\nstr d0, [x1], 8\ncmp x0, x2\nbne .L2\nret\n"
    text += ".L5:\nbl __muldc3\nb .L3\n"
    loop = select_without_source(read_listing(text, "test.s"))
    assert calls(loop) == []
    assert [note.code for note in loop.notes] == ["cold-block"]


@pytest.mark.parametrize(("function", "flag"), [("exp", "-ffast-math"), ("nearbyint", "SSE4.1"), ("mine", None)])
def test_a_call_that_each_pass_makes_is_a_warning_with_its_name(function: str, flag: str | None) -> None:
    loop = loop_calling(function, "gcc", "-O2")
    assert len(calls(loop)) == 1
    (note,) = loop.notes
    assert (note.code, note.kind) == ("call", "warning")
    assert f"each pass calls {function}, whose time is not included" in note.text
    assert flag in note.text if flag else note.text.endswith("included")
    with pytest.raises(StrictError):
        refuse_warnings(loop.notes)


def test_an_unguarded_square_root_stays_with_its_flag() -> None:
    loop = loop_calling("sqrt", "clang", "-O0")
    assert len(calls(loop)) == 1
    assert [note.code for note in loop.notes] == ["call"]
    assert "-fno-math-errno" in loop.notes[0].text


HEAD = "f:\n.L3:\nmovsd (%rdi), %xmm0\nucomisd %xmm1, %xmm0\n"
TAIL = "movsd %xmm0, (%rsi)\naddq $8, %rdi\naddq $8, %rsi\ncmpq %rdx, %rdi\njne .L3\nret\n"
OUT_OF_LINE = f"{HEAD}ja .L9\n.L4:\n{TAIL}.L9:\nmovq %rdi, 8(%rsp)\ncall rare\nmovq 8(%rsp), %rdi\njmp .L4\n"
IN_LINE = f"{HEAD}jbe .L4\ncall often\n.L4:\n{TAIL}"


def test_a_call_out_of_line_is_left_out_and_the_block_named() -> None:
    loop = without_source(OUT_OF_LINE)
    assert calls(loop) == []
    assert loop.instructions[-1].text.strip() == "jne .L3"
    (note,) = loop.notes
    assert "a block with the call of rare (.L9, lines 14-17) is left out: code out of line" in note.text
    assert (note.kind, note.where and note.where.line) == ("warning", 15)


def test_a_call_in_line_stays_even_if_it_is_conditional() -> None:
    loop = without_source(IN_LINE)
    assert calls(loop) == ["call often"]
    assert [note.code for note in loop.notes] == ["conditional-blocks", "call"]


def test_the_end_of_an_outer_loop_is_no_cold_block() -> None:
    # the outer loop begins with its inner one, and calls a function after it
    text = "f:\n.L2:\naddsd (%rdi,%rax,8), %xmm0\nincq %rax\ncmpq %rcx, %rax\nje .L5\njmp .L2\nret\n"
    text += ".L5:\ncall step\nxorl %eax, %eax\ndecq %rbx\njne .L2\nret\n"
    loops = control_flow(read_listing(text, "test.s", syntax="att")).loops
    assert [loop.left_out for loop in loops] == [()] * len(loops)
    assert 6 in loops[0].instructions


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("call expf@PLT", "expf"),
        ("call *expf@GOTPCREL(%rip)", "expf"),
        ("call *%rax", "a function that the code does not name"),
        ("call helper", "helper"),
    ],
)
def test_the_called_function_is_named_however_it_is_called(call: str, name: str) -> None:
    def warning(notes: tuple[Note, ...]) -> Note:
        return next(note for note in notes if note.code == "call")

    text = f"f:\n.L2:\nmovss (%rdi), %xmm0\n{call}\naddq $4, %rdi\ncmpq %rsi, %rdi\njne .L2\nret\n"
    assert f"each pass calls {name}, whose" in warning(without_source(text).notes).text


def test_several_calls_of_one_function_are_one_warning() -> None:
    text = "f:\n.L2:\ncall sin@PLT\ncall sin@PLT\ncall cos@PLT\naddq $4, %rbx\ncmpq %rbp, %rbx\njne .L2\nret\n"
    named = [note.text.split(",")[0] for note in without_source(text).notes if note.code == "call"]
    assert named == ["each pass calls sin", "each pass calls cos"]
