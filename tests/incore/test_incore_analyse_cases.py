"""Loops whose answer was wrong once, with the carried tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.listing import read_listing
from kernmodel.code.model import AssemblyLoop
from kernmodel.incore.answer.analyse import analyse
from kernmodel.incore.model import InCore
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.report.text.reasons import reason_text


def answer(text: str, name: str) -> InCore:
    listing = read_listing(text.replace(";", "\n") + "\n", "body.s", syntax="att")
    loop = AssemblyLoop(listing.instructions, listing.isa, "att", "body.s", "", None, (), "", "main", ())
    parameters = load_parameters(name)
    return analyse(loop, parameters, InstructionTable.open(parameters))


@pytest.mark.parametrize(
    ("name", "cycles"), [("SNB", 44), ("IVB", 28), ("HSW", 28), ("BDW", 16), ("SKL", 8), ("CLX", 8), ("ZEN2", 5)]
)
def test_a_division_takes_what_usual_operands_take(name: str, cycles: float) -> None:
    """Readings of InstLatx64, and LLVM's model of Broadwell; easy operands take 20, 16 and 16 before Broadwell."""
    result = answer("vdivpd %ymm1,%ymm2,%ymm3", name)
    assert result.throughput == pytest.approx(cycles, abs=0.3)
    assert result.binding_ports[0].endswith("DV")


@pytest.mark.parametrize("name", ["SNB", "HSW", "SKL"])
def test_different_divisions_add_up(name: str) -> None:
    parts = ("vdivsd %xmm1,%xmm2,%xmm3", "vsqrtsd %xmm4,%xmm4,%xmm5", "vdivps %ymm1,%ymm2,%ymm6")
    together = answer(";".join(parts), name)
    assert together.throughput == pytest.approx(sum(answer(part, name).throughput for part in parts))
    assert max(together.port_sums) == pytest.approx(together.throughput)


@pytest.mark.parametrize("name", ["SNB", "SKL", "ZEN2"])
def test_integer_division_is_told_by_its_pipeline(name: str) -> None:
    result = answer("xor %edx,%edx;divq %r10", name)
    assert result.binding_ports
    assert max(result.port_sums) == pytest.approx(result.throughput)


def test_locked_instructions_wait_for_one_another_whatever_their_forms() -> None:
    result = answer("lock addl $1,(%rdi);xchg %ebx,(%rdx)", "SKL")
    assert result.throughput == 18 + 18
    assert result.binding_ports == ()
    assert reason_text(result.reason).startswith("lock add m32,i8, xchg m32,r32: measured reciprocal throughput")


def test_a_masked_store_with_an_index_cannot_use_port_7() -> None:
    plain = "vmovupd (%rsi),%zmm0{%k1}{z};vmovupd (%rdx),%zmm1{%k1}{z};vmovupd %zmm0,(%rdi){%k1}"
    assert answer(plain, "CLX").throughput == 1.0
    assert answer(plain.replace("(%rdi)", "(%rdi,%rax)"), "CLX").throughput == 1.5


def test_the_critical_path_does_not_wait_for_non_temporal_stores_to_reach_memory() -> None:
    assert answer("vmovupd (%rsi),%ymm0;vmovntpd %ymm0,(%rdi)", "SKL").critical_path.cycles < 12


@pytest.mark.parametrize("name", ["SKL", "ZEN", "ZEN2", "ZEN3"])
def test_ones_idioms_break_chains(name: str) -> None:
    assert answer("vpcmpeqd %xmm3,%xmm3,%xmm3;vpaddd %xmm3,%xmm1,%xmm2", name).lcd is None


@pytest.mark.parametrize(
    ("name", "pair", "fused"),
    [
        ("ZEN", "cmp %rax,%rbx;jne 0", True),
        ("ZEN2", "test %eax,%eax;js 0", True),
        ("ZEN2", "dec %eax;jne 0", False),
        ("ZEN2", "cmpl $7,(%rdi);jne 0", False),
        ("ZEN3", "dec %eax;jne 0", True),
        ("ZEN3", "inc %eax;jb 0", False),
        ("SKL", "dec %eax;jne 0", True),
    ],
)
def test_macro_fusion(name: str, pair: str, fused: bool) -> None:
    """LLVM: cmp and test on the Zens, from Zen 3 on also arithmetic; the branch must read what is written."""
    first, branch = answer(pair, name).rows
    assert first.eliminated is fused
    assert sum(branch.pressure) == 1.0


INTEGER = ("adc %rbx,%rcx", "sete %cl", "bsf %rax,%rcx", "bswap %rcx", "sbb %rdx,%rdx", "lodsq", "stosq", "mov %ah,%cl")


@given(st.sampled_from(INTEGER), st.sampled_from(("ZEN", "ZEN2", "ZEN3")))
def test_integer_instructions_take_no_more_alu_cycles_than_they_have_uops(text: str, name: str) -> None:
    """LLVM books some for up to 100 cycles on every ALU."""
    parameters = load_parameters(name)
    instruction = read_listing(text + "\n", "body.s", syntax="att").instructions[0]
    row = InstructionTable.open(parameters).lookup(instruction)
    assert row is not None
    assert sum(use.cycles for use in row.ports if use.ports[0].startswith("ALU")) <= row.uops


def test_an_indexed_variant_of_zen_has_integer_ports_too() -> None:
    pressure = answer("imul (%rdi,%rcx,8)", "ZEN3").port_sums
    assert sum(pressure[number] for number, port in enumerate(load_parameters("ZEN3").ports) if port[:3] == "ALU") > 0


def test_microcode_of_zen_takes_its_measured_time() -> None:
    """Its ports are not published: a horizontal add took no time at all."""
    assert answer("vhaddpd %xmm1,%xmm2,%xmm3", "ZEN").throughput == 2.0


def test_a_repeated_instruction_is_a_warning() -> None:
    notes = {note.code: note for note in answer("rep movsq", "SKL").notes}
    assert notes["repeat-count"].kind == "warning"
    assert "repeat-count" not in {note.code for note in answer("movsq", "SKL").notes}
