"""Blocks: what is refused, how passes are counted, and that code runs (plausibility alone, no times)."""

from __future__ import annotations

import sys

import pytest

import kernmodel as km
from kernmodel.cli.main import main
from kernmodel.errors import AssemblyError, InputError
from kernmodel.isa import isa_of
from kernmodel.measure import blocks
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.instructions import measure_instruction, parallel_instances
from kernmodel.measure.samples import Figure


def decoded(digits: str):
    code = bytes.fromhex(digits)
    return tuple(isa_of("x86-64").decode(code, 0)), code


@pytest.mark.parametrize(
    ("digits", "why"),
    [
        ("0f05", "asks for the system"),
        ("cd80", "asks for the system"),
        ("cc", "asks for the system"),
        ("f4", "privileged"),
        ("0f30", "privileged"),
        ("c3", "leaves the block"),
        ("ffe0", "leaves the block"),
        ("e800000000", "leaves the block"),
        ("7410", "leaves the block"),
        ("64488b0425 00000000", "segment register"),
        ("fd", "changes how other instructions work"),
        ("9d", "changes how other instructions work"),
        ("f3480faed0", "changes how other instructions work"),
        ("48890425 00000022", "memory that the measurement needs"),
        ("48", "no x86-64 code"),
    ],
)
def test_unsafe_code_is_refused(digits: str, why: str) -> None:
    instructions, code = decoded(digits)
    with pytest.raises(AssemblyError, match=why):
        blocks.refuse_unsafe(instructions, code)


@pytest.mark.parametrize(
    ("digits", "register", "value"),
    [
        ("4883c001 48ffc9 75f7", "rcx", lambda trips: trips),  # add rax,1; dec rcx; jne
        ("4883e904 75fa", "rcx", lambda trips: 4 * trips),  # sub rcx,4; jne
        ("8b08 4883c020 4839d0 75f5", "rdx", lambda trips: x86.start_value("rax") + 32 * trips),  # cmp rax,rdx; jne
        ("8b08 4883c020 4839d0 7cf5", "rdx", lambda trips: x86.start_value("rax") + 32 * trips),  # ; jl
    ],
)
def test_a_loop_ends_by_its_own_branch_after_the_passes_wanted(digits: str, register: str, value) -> None:
    instructions, _ = decoded(digits)
    lines = blocks._trips_by_own_branch(instructions[:-1], instructions[-1])
    assert lines is not None
    assert lines[0].startswith(f"mov {register},")
    factor, start = int(lines[1].rsplit(",", 1)[1]), int(lines[2].rsplit(",", 1)[1])
    for trips in (1, 7, 400):
        assert factor * trips + start == value(trips)


@pytest.mark.parametrize(
    "digits", ["4885c0 75fb", "480fafc1 4839d0 75f7", "488b00 4885c0 75f8", "4883c020 4839d0 77f7"]
)
def test_other_loops_need_a_counter(digits: str) -> None:
    """What is tested does not move, moves otherwise than linearly, is loaded, or moves away from its end."""
    instructions, _ = decoded(digits)
    assert blocks._trips_by_own_branch(instructions[:-1], instructions[-1]) is None


needs_host = pytest.mark.skipif(
    sys.platform != "linux" or not x86.host_features(), reason="blocks are measured on Linux on x86-64"
)


@pytest.mark.parametrize(
    ("digits", "walked"),
    [
        ("62f1bd485804064883c040", 64),  # vaddpd zmm0,zmm8,[rsi+rax]; add rax,64
        ("c5bd58064883c040", 0),  # vaddpd ymm0,ymm8,[rsi]; add rax,64
        ("4c8b04c64883e802", 16),  # mov r8,[rsi+rax*8]; sub rax,2
        ("488d5608488b0a4883c608", 8),  # lea rdx,[rsi+8]; mov rcx,[rdx]; add rsi,8
        ("488b36", 0),  # mov rsi,[rsi]: not known
    ],
)
def test_blocks_that_walk_are_told(monkeypatch, digits: str, walked: int) -> None:
    """Their pages are one under several addresses, which AMD's caches find slowly: `vaddpd zmm0,zmm8,[rsi+rax]` takes
    2.02 cycles so on a Zen 4, 1.06 over an array."""
    body, _ = decoded(digits)
    assert blocks.walked_bytes(body) == (walked, False)
    stored, _ = decoded("4889044e4883c001")  # mov [rsi+rcx*2],rax; add rax,1
    assert blocks.walked_bytes(stored) == (0, False)
    stored, _ = decoded("48890c064883c008")  # mov [rsi+rax],rcx; add rax,8
    assert blocks.walked_bytes(stored) == (8, True)
    figure = Figure(1.0, 1.0, 1.0, 9, 0, confirmed=True)
    for vendor in ("AuthenticAMD", "GenuineIntel"):
        monkeypatch.setattr(blocks, "first_processor", lambda vendor=vendor: {"vendor_id": vendor})
        body = blocks._Body("", (), (1, 2), own_branch=True)
        notes = blocks._notes(figure, body, None, "loop", walked, apart=False)
        assert [note.code for note in notes[1:]] == ["walks"] * (walked > 0 and vendor == "AuthenticAMD")
        assert [note.code for note in blocks._notes(figure, body, None, "loop", walked, apart=True)] == ["few-pages"]


@needs_host
def test_code_runs_and_faults_are_told() -> None:
    """Twice the copies take longer; a division that overflows and endless code are told as errors."""
    from kernmodel.measure.host import Case, FaultError, Harness

    with Harness() as harness:
        harness.seal()
        harness.load(x86.function(x86.repeated(bytes.fromhex("480fafc3"), 200)))
        samples = harness.run([Case(20, 1), Case(20, 2)], 9)
        once, twice = (min(s.ticks for s in samples if s.which == which) for which in (0, 1))
        assert len(samples) == 18
        assert twice > 1.2 * once
        harness.load(x86.function("xor edx, edx\nxor ecx, ecx\ndiv rcx"))
        with pytest.raises(FaultError, match="SIGFPE"):
            harness.run([Case(1)], 1)
        harness.load(x86.function("mov rax, [rax + 0x100000]\nmov rax, [rax]"))
        assert len(harness.run([Case(1)], 2)) == 2
        harness.load(x86.function("9: jmp 9b"))
        with pytest.raises(FaultError, match="did not end in time"):
            harness.run([Case(1)], 1, 1)


@needs_host
def test_code_finds_the_data_anew_that_other_code_overwrote() -> None:
    from kernmodel.measure.host import Case, Harness

    with Harness() as harness:
        harness.seal()
        harness.load(x86.function("mov qword ptr [rax + 0x700], 1"))
        harness.run([Case(1)], 1)
        harness.load(x86.function("mov rax, [rax + 0x700]\nmov rax, [rax]"))
        assert len(harness.run([Case(1)], 2)) == 2


@needs_host
def test_pages_are_one_or_a_few_and_begin_alike() -> None:
    """What is written to one is seen in another if they are the same; different ones begin as the first one is."""
    from kernmodel.measure.host import Case, FaultError, Harness

    same = f"mov rcx, 5\nmov [{x86.DATA} + 0x1000], rcx\ncmp [{x86.DATA} + 0x2000], rcx\nje 9f\njmp 8f\n9: ud2\n8:"
    alike = f"mov rcx, [{x86.DATA}]\ncmp [{x86.DATA} + 0x3000], rcx\nje 8f\nud2\n8:"
    with Harness() as harness:
        harness.seal()
        for pages in (6, 1, 6):
            harness.load(x86.function(alike), pages=pages)
            assert len(harness.run([Case(1)], 2)) == 2
            harness.load(x86.function(same), pages=pages)
            if pages == 1:
                with pytest.raises(FaultError, match="SIGILL"):
                    harness.run([Case(1)], 1)
            else:
                assert len(harness.run([Case(1)], 2)) == 2


@pytest.mark.parametrize(
    ("form", "instances"),
    [
        ("vfmadd231pd zmm{k},zmm,zmm", 12),
        ("kandb k,k,k", 5),
        ("pmulhw mm,mm", 6),
        ("shl r64,cl", 9),
        ("mulx r64,r64,r64", 4),
        ("add m64,r64", 9),
        ("lock xadd m32,r32", 4),
        ("vaddpd ymm,ymm,m64b", 12),
        ("mov m64,r64", 9),
    ],
)
def test_instances_of_a_form_do_not_wait_for_one_another(form: str, instances: int) -> None:
    lines = parallel_instances(form)
    decoded = list(isa_of("x86-64").decode(x86.assembled("\n".join(lines)), 0))
    assert {item.form for item in decoded} == {form}
    assert len(lines) == instances
    for item in decoded:
        others = {name for other in decoded if other is not item for name in other.registers_written}
        read = {operand.register for operand in item.operands if operand.read}
        read |= {reference.base for reference in item.memory} | {*item.implicit_reads}
        assert not read & (others - {None})


@needs_host
def test_nothing_stays_behind(tmp_path, monkeypatch) -> None:
    import os
    import tempfile

    from kernmodel.measure.host import Harness

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Harness() as harness:
        child = harness._child.pid
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_bad_input_is_one_message(capsys) -> None:
    assert main(["measure", "block", "--hex", "0f05"]) == 1
    assert "asks for the system" in capsys.readouterr().err
    assert main(["measure", "block", "--hex", "4g"]) == 1
    assert main(["measure", "instruction", "fadd st,st"]) == 1
    assert "not set up" in capsys.readouterr().err
    assert main(["measure", "instruction", "--hex", "4801d8", "--uarch", "ZEN3"]) == 1
    assert "the table of ZEN3 has a row for each form of the code" in capsys.readouterr().err


@pytest.mark.parametrize(("form", "taken"), [("fadd", "faddp st,st"), ("imul r64,i8", "imul r64,r64,i8")])
def test_a_form_that_the_assembler_takes_for_another_is_not_measured(form: str, taken: str) -> None:
    with pytest.raises(InputError, match=f"takes it for {taken}"):
        measure_instruction(None, form)  # type: ignore[arg-type]


@needs_host
def test_code_is_given_as_bytes_or_in_hex_digits():
    one, other = (km.measure_block(code).answer for code in ("4801d8", bytes.fromhex("4801d8")))
    assert one.code == other.code == "4801d8"
    with pytest.raises(km.KernmodelError, match="no x86-64 code"):
        km.measure_block(b"\x0f")
