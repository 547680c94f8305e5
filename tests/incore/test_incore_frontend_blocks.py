"""Front-end rules, one by one, on code written by hand."""

from __future__ import annotations

from functools import cache

import facile
import pytest
from facile import FrontEndBounds
from parameter_files import with_figures

from kernmodel.code.listing import decode_bytes
from kernmodel.errors import InstructionTableError
from kernmodel.incore.front_end.model import FrontEndBlock
from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.core_parameters import FrontEndParameters, front_end_parameters
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa.model import Notion

INTEL = ("SNB", "IVB", "HSW", "BDW", "SKL", "SKX", "CLX")

MOV = "488903"  # mov [rbx], rax
ADD = "4801d8"  # add rax, rbx
DEC_JNZ = "49ffcf" + "75fb"
CMP_JE = "4839d8" + "7400"
NOP = "90"
NOP8 = "0f1f840000000000"  # nop [rax+rax+0]


@cache
def core_of(name: str) -> tuple[FrontEndParameters, InstructionTable]:
    parameters = load_parameters(name)
    core = front_end_parameters(parameters)
    assert core is not None
    return core, InstructionTable.open(parameters)


def whole(code: str, name: str) -> facile.Block:
    core, table = core_of(name)
    instructions = decode_bytes(bytes.fromhex(code)).instructions
    rows: list[InstructionData | None] = []
    for instruction in instructions:
        row = table.lookup(instruction)
        indexed = row is not None and any(reference.index for reference in instruction.memory)
        rows.append((row.indexed or row) if row is not None and indexed else row)
    return facile.block_of(instructions, rows, core)


def block_of(code: str, name: str) -> FrontEndBlock:
    return whole(code, name).seen


def bounds(code: str, name: str = "SKL", notion: Notion = "loop", offset: int = 0) -> FrontEndBounds:
    return facile.front_end(whole(code, name), core_of(name)[0], notion, offset)


@pytest.mark.parametrize("name", INTEL)
def test_every_intel_core_has_the_figures(name: str) -> None:
    assert core_of(name)[0].decoders == 4
    assert bounds(ADD + DEC_JNZ, name).issue == 0.5


def test_a_core_without_front_end_figures_has_none() -> None:
    assert front_end_parameters(load_parameters("ZEN2")) is None


@pytest.mark.parametrize(("key", "value"), [("DSB width", None), ("LSD", 1), ("decoders", 0), ("LSD unroll", {1: "x"})])
def test_a_figure_that_is_missing_or_wrong_is_named(key: str, value: object) -> None:
    whole = load_parameters("HSW")
    with pytest.raises(InstructionTableError, match=key):
        with_figures(whole, {key: value})


# macro-fusion


@pytest.mark.parametrize("name", INTEL)
def test_a_fused_pair_is_one_unit_in_every_count(name: str) -> None:
    (unit,) = block_of(CMP_JE, name).units
    assert (unit.decoded, unit.slots, unit.start, unit.end, unit.branch) == (1, 1, 0, 5, True)
    assert bounds(CMP_JE, name).fused == (0,)


def test_pairs_come_from_the_table() -> None:
    assert len(block_of("4801d8" + "7400", "SKL").units) == 1  # add, je
    assert len(block_of("4801d8" + "7800", "SKL").units) == 2  # add does not fuse with js
    assert len(block_of("4885db" + "7800", "SKL").units) == 1  # test does
    assert len(block_of("4801d8" + "eb00", "SKL").units) == 2  # an unconditional jump fuses with nothing


def test_no_pair_fuses_whose_jump_starts_a_line_of_64_bytes() -> None:
    apart = bounds(CMP_JE, "HSW", offset=61)  # the jump at 64
    together = bounds(CMP_JE, "HSW", offset=60)
    assert (apart.fused, apart.issue) == ((), 0.5)
    assert (together.fused, together.issue) == ((0,), 0.25)


# predecoder


def test_sixteen_single_bytes_take_four_cycles() -> None:
    assert bounds(NOP * 16, notion="unrolled").predecode == 4.0


def test_the_pattern_of_five_bytes_repeats_after_sixteen_copies() -> None:
    """`mov eax, imm32`: 5 bytes, opcode first; 16 copies in 5 fetches with 3, 3, 3, 3, 4 ends and 4 opcodes cut off."""
    assert bounds("b801020304", notion="unrolled").predecode == 5 / 16


def test_an_instruction_across_a_fetch_counts_twice_if_its_opcode_is_in_the_first() -> None:
    """15 × nop: 3 cycles. With the opcode of `mov eax, imm32` as 16th byte a fourth, and one for the next fetch."""
    assert bounds(NOP * 15 + "b801020304" + NOP * 12, notion="unrolled").predecode == 4 + 3
    # with a prefix as 16th byte only the second fetch counts it: 15 in the first, 12 in the second
    assert bounds(NOP * 15 + "48c7c001020304" + NOP * 10, notion="unrolled").predecode == 3 + 3


def test_the_loops_of_a_core_with_a_dsb_are_not_predecoded() -> None:
    answer = bounds(ADD + CMP_JE)
    assert (answer.predecode, answer.decode, answer.mixed) == (None, None, None)


def test_a_length_changing_prefix_costs_three_cycles_less_what_it_hides_behind() -> None:
    """Two `add cx, imm16` of 5 bytes and a nop of 6 in one fetch: 1 cycle and twice 3."""
    code = "6681c13412" * 2 + "660f1f440000"
    assert bounds(code, notion="unrolled").predecode == 1 + 2 * 3
    assert bounds(NOP * 16 + code, notion="unrolled").predecode == 4 + 1 + 2 * 3 - 3


# decoders


def test_four_simple_instructions_per_cycle() -> None:
    assert bounds(MOV * 4, notion="unrolled").decode == 1.0
    assert bounds(MOV * 5, notion="unrolled").decode == 1.25


def test_a_macro_fusible_instruction_comes_to_the_last_decoder_from_skylake_on() -> None:
    assert bounds("4839d8" * 4, "SKL", "unrolled").decode == 1.0
    assert bounds("4839d8" * 4, "HSW", "unrolled").decode == pytest.approx(4 / 3)


def test_complex_instructions_take_a_cycle_each() -> None:
    assert bounds("4887d8" * 3, notion="unrolled").decode == 3.0  # xchg rax, rbx


def test_a_branch_ends_the_cycle() -> None:
    assert bounds(MOV + "eb00", notion="unrolled").decode == 1.0


def test_pop_r12_needs_the_complex_decoder() -> None:
    pops = "5b" + "5d" + "415c"  # pop rbx, rbp, r12
    assert bounds(pops, "SKL", "unrolled").decode == 1.0
    assert bounds("488d3b" + "4889ee" + pops, "SKL", "unrolled").decode == 2.0  # never five in a cycle
    assert bounds("5b" + "5d" + "415d", "SKL", "unrolled").decode == 0.75  # pop r13 does not


def test_nothing_is_decoded_beside_microcode() -> None:
    cpuid = block_of("0fa2", "SKL").units[0]
    assert (cpuid.complex, cpuid.simple) == (True, 0)
    assert cpuid.microcoded > 0
    assert bounds("0fa2" + MOV, "SKL", "unrolled").decode == 2.0


# DSB, LSD, JCC erratum


def test_skylake_serves_loops_from_the_dsb() -> None:
    answer = bounds(MOV * 12 + CMP_JE)
    assert (answer.path, answer.dsb, answer.lsd) == ("DSB", 13 / 6, None)


def test_a_loop_shorter_than_a_dsb_block_takes_whole_cycles() -> None:
    assert bounds(ADD * 6 + CMP_JE).dsb == 2.0


def test_the_dsb_is_four_wide_before_skylake() -> None:
    answer = bounds(MOV * 60 + CMP_JE, "HSW")
    assert (answer.path, answer.dsb) == ("DSB", 61 / 4)


@pytest.mark.parametrize(("name", "cycles"), [("HSW", 8 / 6), ("SNB", 2.0), ("CLX", 8 / 6), ("IVB", 2.0)])
def test_the_lsd_unrolls_small_loops(name: str, cycles: float) -> None:
    """Five µops: Haswell and Cascade Lake make six copies of the loop, 30 µops in 8 cycles; Sandy Bridge makes none."""
    answer = bounds(MOV * 4 + CMP_JE, name)
    assert (answer.path, answer.lsd) == ("LSD", cycles)


def test_the_lsd_holds_no_more_than_the_queue() -> None:
    assert bounds(MOV * 27 + CMP_JE, "SNB").path == "LSD"
    assert bounds(MOV * 28 + CMP_JE, "SNB").path == "DSB"
    assert bounds(MOV * 28 + CMP_JE, "IVB").path == "LSD"


@pytest.mark.parametrize("offset", range(64))
def test_a_branch_that_crosses_or_ends_at_32_bytes_is_decoded_on_skylake(offset: int) -> None:
    """The pair of cmp and je has five bytes from `offset` + 6 on."""
    start, end = offset + 6, offset + 11
    pair = start if (offset + 9) % 64 else offset + 9
    answer = bounds(MOV * 2 + CMP_JE, "SKL", offset=offset)
    assert (answer.path == "decoders") is (pair // 32 != end // 32)
    assert bounds(MOV * 2 + CMP_JE, "HSW", offset=offset).path == "LSD"


def test_erratum_lines_are_decoded_and_the_others_come_from_the_dsb() -> None:
    """Eight nops of 8 bytes fill the first line; then 29 bytes and the pair, which crosses byte 96.

    8 µops from the DSB take two cycles, the second line three fetches.
    """
    code = NOP8 * 8 + "48c7c001020304" * 4 + NOP + CMP_JE
    answer = bounds(code, "SKL")
    assert answer.erratum
    assert answer.mixed == 2 + 3
    assert answer.predecode is not None
    assert answer.mixed < answer.predecode
    assert answer.bound == answer.predecode


# issue


def test_an_indexed_operand_is_unlaminated_at_issue_only() -> None:
    indexed = block_of("c5fd580408", "SKL").units[0]  # vaddpd ymm0, ymm0, [rax+rcx]
    plain = block_of("c5fd5800", "SKL").units[0]
    assert (indexed.decoded, indexed.slots) == (1, 2)
    assert (plain.decoded, plain.slots) == (1, 1)


def test_the_stack_engine_synchronises_where_rsp_is_used_after_push() -> None:
    push, read = "55", "4889e5"  # push rbp; mov rbp, rsp
    assert block_of(push + read, "SKL").synchronisations == 1
    assert block_of(read + push, "SKL").synchronisations == 1  # by what the execution before leaves
    assert block_of(push * 3, "SKL").synchronisations == 0
    assert block_of(push + "4889ec" + read, "SKL").synchronisations == 0  # mov rsp, rbp makes the offset void
    assert block_of(push + "488b442408", "SKL").synchronisations == 1  # mov rax, [rsp+8]
    answer = bounds(push + read + CMP_JE)
    assert (answer.issue, answer.issue_synchronised) == (0.75, 1.0)


def test_unknown_instructions_count_as_bytes_only() -> None:
    core, _ = core_of("SKL")
    instructions = decode_bytes(bytes.fromhex(MOV + ADD)).instructions
    block = facile.block_of(instructions, [None, core_of("SKL")[1].lookup(instructions[1])], core).seen
    assert (len(block.units), block.ends[-1]) == (1, 2)


def test_costs_that_the_source_does_not_give_are_estimated() -> None:
    """`valignd zmm0, zmm1, [rax+rcx]`: load and operation are decoded as one µop and issued as two."""
    block = block_of("62f3754803040801", "SKX")
    assert (block.units[0].decoded, block.units[0].slots) == (1, 2)
