"""From instructions to µops: what waits for what, in which slots, and how fast known loops run."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import pytest
from parameter_files import with_figures
from simulations import PipelineInput, pipeline_input, simulate

from kernmodel.code.listing import decode_bytes
from kernmodel.incore.answer.components import bounds_of
from kernmodel.incore.dependences.forwarding import links
from kernmodel.incore.engine.analyser import Analyser
from kernmodel.incore.engine.model import Switches
from kernmodel.incore.engine.modelled_core import modelled_core
from kernmodel.incore.engine.uops import uops_of
from kernmodel.incore.model import InstructionData, Parameters
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa.model import Notion


@cache
def core(arch: str) -> tuple[Parameters, InstructionTable]:
    parameters = load_parameters(arch)
    return parameters, InstructionTable.open(parameters)


def rows_of(code: bytes, arch: str) -> list[InstructionData | None]:
    _, table = core(arch)
    found = []
    for instruction in decode_bytes(code).instructions:
        row = table.lookup(instruction)
        indexed = row is not None and any(reference.index for reference in instruction.memory)
        found.append(row.indexed if row is not None and indexed and row.indexed else row)
    return found


def block(code: str, arch: str = "SKL", notion: Notion = "loop", switches: Switches | None = None) -> PipelineInput:
    parameters, _ = core(arch)
    data = bytes.fromhex(code)
    instructions = decode_bytes(data).instructions
    return pipeline_input(instructions, rows_of(data, arch), modelled_core(parameters, switches=switches), notion)


def cycles(code: str, arch: str = "SKL", notion: Notion = "loop", switches: Switches | None = None) -> Fraction:
    return simulate(block(code, arch, notion, switches)).cycles_per_pass


def test_a_load_and_its_operation_share_a_slot_unless_indexed() -> None:
    assert block("480307 ffc9 75f9").slots == (2, 1)  # add rax,[rdi]; dec ecx; jne
    assert block("480304f7 ffc9 75f8").entries[0].slots == 1  # add rax,[rdi+rsi*8] stays fused: a read-write operand
    indexed = block("c5f85804f7 ffc9 75f7")  # vaddps xmm0,xmm0,[rdi+rsi*8] does not
    assert indexed.slots == (1, 1, 1)
    assert indexed.entries[0][:2] == (2, 2)


def test_a_macro_fused_pair_is_one_microop_of_the_jump() -> None:
    found = block("ffc9 75fc")  # dec ecx; jne
    assert [m.ports for m in found.microops] == [("6",)]
    assert cycles("ffc9 75fc") == 1


def test_idioms_and_moves_need_no_port() -> None:
    found = block("31c0 4889d8 ffc9 75f7")  # xor eax,eax; mov rax,rbx; dec ecx; jne
    assert [m.role for m in found.microops] == ["value", "move", "compute"]
    executed = block("31c0 4889d8 ffc9 75f7", switches=Switches(elimination=False))
    assert [m.role for m in executed.microops] == ["value", "compute", "compute"]


def test_a_pointer_chain_saves_a_cycle_also_through_a_move() -> None:
    assert cycles("488b3f ffc9 75f9") == 4  # mov rdi,[rdi]
    assert cycles("4889c3 488b4308 ffc9 75f5") == 4  # mov rbx,rax; mov rax,[rbx+8]
    assert cycles("488b3f ffc9 75f9", switches=Switches(pointer_chasing=False)) == 5


def test_an_address_that_is_written_again_is_read_once() -> None:
    """The decoder lists rdi of `mov rdi,[rdi]` among the implicit reads too; the load waits for it once."""
    assert len(block("488b3f ffc9 75f9").microops[0].waits) == 1


def test_memory_carries_a_sum() -> None:
    assert cycles("48830701 ffc9 75f8") == 6  # add qword [rdi],1: forwarded after 5 cycles, added in 1
    assert cycles("48830701 ffc9 75f8", switches=Switches(memory="none")) < 2


def test_policies_differ_on_moving_addresses() -> None:
    # vmovsd xmm0,[rdi]; vaddsd xmm0,xmm0,xmm1; vmovsd [rdi+8],xmm0; add rdi,8; dec ecx; jne: a[i+1] = a[i] + x
    code = bytes.fromhex("c5fb1007 c5fb58c1 c5fb114708 4883c708 ffc9 75e9")
    instructions = decode_bytes(code).instructions
    assert [(link.passes, link.whole) for link in links(instructions, "moving")] == [(1, True)]
    assert links(instructions, "different") == ()


def test_one_region_makes_equal_offsets_meet() -> None:
    instructions = decode_bytes(bytes.fromhex("48890f 488b06")).instructions  # mov [rdi],rcx; mov rax,[rsi]
    assert links(instructions, "different") == ()
    assert [link.passes for link in links(instructions, "stack")] == [0]


def test_a_load_of_more_than_was_stored_waits() -> None:
    # mov [rdi],cl; mov rax,[rdi]; dec ecx; jne
    code = "880f 488b07 ffc9 75f7"
    assert cycles(code) == pytest.approx(13, rel=0.03)
    assert cycles(code, switches=Switches(blocked_loads=False)) < 6


def test_the_stack_engine_inserts_a_microop() -> None:
    roles = [m.role for m in block("50 4883c408 ffc9 75f7").microops]  # push rax; add rsp,8; dec ecx; jne
    assert roles.count("synchronise") == 1
    assert "synchronise" not in [m.role for m in block("50 58 ffc9 75fa").microops]  # push rax; pop rax


@pytest.mark.parametrize(
    ("arch", "key", "role"),
    [
        ("SKL", "load ports", "load"),
        ("HSW", "store address ports", "store address"),
        ("ICL", "store data ports", "store data"),
    ],
)
def test_which_microops_load_and_store_is_a_figure(arch: str, key: str, role: str) -> None:
    code = bytes.fromhex("480107")  # add [rdi],rax
    parameters, _ = core(arch)
    other = with_figures(parameters, {key: []})

    def roles(figures: Parameters) -> list[str]:
        made = pipeline_input(decode_bytes(code).instructions, rows_of(code, arch), modelled_core(figures), "unrolled")
        return [microop.role for microop in made.microops]

    assert roles(parameters).count(role) == 1
    assert role not in roles(other)


def test_wide_loads_take_two_cycles_of_their_path_on_sandy_bridge() -> None:
    # three vmovaps ymm,[rdi+...]; dec ecx; jne
    code = "c5fc2807 c5fc284f20 c5fc285740 ffc9 75ec"
    assert cycles(code, "SNB") == 3
    assert cycles(code, "SNB", switches=Switches(data_paths=False)) == Fraction(3, 2)
    assert cycles(code, "HSW") == Fraction(3, 2)


def test_unrolled_code_goes_through_the_decoders() -> None:
    found = block("4d85ed", notion="unrolled")  # test r13,r13: five per 16 bytes and a third
    assert found.fetch.source == "decoders"
    assert simulate(found).cycles_per_pass == Fraction(5, 16)


def test_a_jump_at_the_end_of_a_block_keeps_its_line_out_of_the_cache() -> None:
    loop = "0f1f4000" * 6 + "0f1f00 ffc9 75e1"  # 31 bytes of nops, dec ecx and jne
    held = block(loop)
    assert held.fetch.barred_from == len(held.fetch.units)
    barred = block("90" + loop)
    assert barred.fetch.barred_from == 0
    assert barred.fetch.source == "decoders"
    other_core = block("90" + loop, "HSW")
    assert other_core.fetch.barred_from == len(other_core.fetch.units)


def test_a_gap_in_the_addresses_does_not_stop_the_predecoder() -> None:
    parameters, _ = core("SKL")
    code = bytes.fromhex("4801d8 90 4801d8")
    first, _, last = decode_bytes(code).instructions
    data = rows_of(code, "SKL")
    found = pipeline_input([first, last], [data[0], data[2]], modelled_core(parameters), "unrolled")
    assert sum(found.fetch.schedule) % 2 == 0
    assert simulate(found).cycles_per_pass == 2


@pytest.mark.parametrize(("arch", "uica"), [("SKL", 1.5), ("HSW", 2.0), ("SNB", 2.0)])
def test_a_shift_gives_the_register_without_the_flags_that_it_may_keep(arch: str, uica: float) -> None:
    """lea esi,[rdx+rbp-1]; sar esi,cl; test esi,esi: no pass waits for an earlier one. All µops of the shift waited for
    the flags, and the register for all µops: 3 cycles a pass."""
    row = rows_of(bytes.fromhex("d3fe"), arch)[0]
    assert row is not None
    assert row.latencies["F", "0"] == 0
    code = "8d742aff d3fe 85f6"
    analyser = Analyser(modelled_core(load_parameters(arch)))
    instructions = decode_bytes(bytes.fromhex(code)).instructions
    bounds = bounds_of(instructions, rows_of(bytes.fromhex(code), arch), analyser, "unrolled", 0)
    assert bounds.components["precedence"] == 0
    assert bounds.prediction == pytest.approx(uica, abs=0.02)


@pytest.mark.parametrize(
    ("arch", "code", "latency"),
    [
        ("SKL", "c4e27d02c0", 3),  # vphaddd ymm0,ymm0,ymm0: two shuffles of port 5 and an addition
        ("HSW", "c4e27d47c0", 2),  # vpsllvd ymm0,ymm0,ymm0
        ("HSW", "c4e37d4bc000", 2),  # vblendvpd ymm0,ymm0,ymm0,ymm0
        ("ZEN4", "62f1fd29100f", 1),  # vmovupd ymm1{k1},[rdi]: its load waited for what it merges into, 6 cycles
    ],
)
def test_a_chain_of_one_instruction_takes_the_latency_of_its_row(arch: str, code: str, latency: int) -> None:
    """What siblings cost a µop is in the row, which was measured with them; they were counted once more."""
    data = bytes.fromhex(8 * code + "ffc9 0f85") + (-(8 * len(bytes.fromhex(code)) + 8)).to_bytes(
        4, "little", signed=True
    )
    analyser = Analyser(modelled_core(load_parameters(arch)))
    found = bounds_of(decode_bytes(data).instructions, rows_of(data, arch), analyser, "loop", 0)
    assert found.components["pipeline"] / 8 == pytest.approx(latency, rel=0.05)


def test_locked_instructions_wait_for_each_other() -> None:
    code = "f0ff07 ffc9 75f9"  # lock inc dword [rdi]; dec ecx; jne
    (row, *_) = rows_of(bytes.fromhex(code), "SKL")
    assert row is not None
    assert row.throughput
    assert cycles(code) == pytest.approx(row.throughput, rel=0.15)
    assert cycles(code, switches=Switches(one_at_a_time=False, memory="none")) < row.throughput / 2


def test_unknown_instructions_are_left_out() -> None:
    parameters, _ = core("SKL")
    code = bytes.fromhex("4801d8 ffc9 75f9")
    instructions = decode_bytes(code).instructions
    rows = [None, *rows_of(code, "SKL")[1:]]
    found = pipeline_input(instructions, rows, modelled_core(parameters), "loop")
    assert len(found.microops) == 1


def test_unknown_instructions_at_the_start_do_not_stop_the_predecoder() -> None:
    parameters, _ = core("SKL")
    code = bytes.fromhex("d95ef100 4801d890")  # bytes of 8 that the predecoder meets at the end of a fetched block
    instructions = decode_bytes(code).instructions
    rows = [None, *rows_of(code, "SKL")[1:]]
    found = pipeline_input(instructions, rows, modelled_core(parameters), "unrolled", 13)
    assert sum(found.fetch.schedule) > 0


def test_an_analyser_that_keeps_instructions_says_the_same() -> None:
    parameters, _ = core("SKL")
    code = bytes.fromhex("480307 480307 ffc9 75f6")
    instructions, rows = decode_bytes(code).instructions, rows_of(code, "SKL")
    model = modelled_core(parameters)
    plain = bounds_of(instructions, rows, model, "loop", 0)
    analyser = Analyser(model).keep()
    for _ in range(2):
        found = bounds_of(instructions, rows, analyser, "loop", 0)
        assert (found.answer, found.graph, found.uses) == (plain.answer, plain.graph, plain.uses)


@pytest.mark.parametrize("arch", ["SNB", "IVB", "HSW", "BDW", "SKL", "SKX", "CLX"])
def test_every_core_simulates(arch: str) -> None:
    # vmovupd ymm0,[rdi+rax*8]; vaddpd ymm0,ymm0,[rsi+rax*8]; vmovupd [rdi+rax*8],ymm0; add rax,4; cmp rax,rcx; jb
    code = "c5fd1004c7 c5fd5804c6 c5fd1104c7 4883c004 4839c8 72e8"
    assert 1 <= cycles(code, arch) <= 4


@pytest.mark.parametrize(("arch", "wide"), [("ZEN", 2), ("ZEN2", 1), ("ZEN4", 1)])
def test_halves_of_vectors_take_registers_of_their_own(arch: str, wide: int) -> None:
    """vaddps of 128 and of 256 bits, a load of 256 bits, a store of it."""
    code, modelled = bytes.fromhex("c5f058c2 c5f458c2 c5fc1006 c5fc1107"), modelled_core(core(arch)[0])
    assert modelled.pipeline is not None
    taken = []
    for instruction, row in zip(decode_bytes(code).instructions, rows_of(code, arch), strict=True):
        assert row is not None
        uops = uops_of(instruction, row, None, modelled.pipeline, modelled.switches).uops
        taken.append(sum(uop.vectors for uop in uops))
    assert taken == [1, wide, wide, 0]


@pytest.mark.parametrize(
    ("arch", "code", "scheduled"),
    [
        ("ICL", "4189f94f8b1c0a83c7084e891c0b39d772ee", 1.50),
        ("ICX", "4189f94f8b1c0a83c7084e891c0b39d772ee", 1.50),
        ("RKL", "4189f94f8b1c0a83c7084e891c0b39d772ee", 1.07),
        ("ICL", "4983c008498b04244883c608488946f84d89c44839fe72e8", 1.81),
        ("RKL", "4983c008498b04244883c608488946f84d89c44839fe72e8", 1.49),
        ("ICL", "c4c17458440500c4c17c1104044883c020483de4f3010075e7", 1.43),
        ("ICL", "410fb6042449ffc44801c2483dff00000074ed", 1.41),
        ("ICL", "498b0e4983c2084983c60849894af84d39fa72ec", 1.18),
    ],
)
def test_cores_with_ten_ports_schedule_as_uica_does(arch: str, code: str, scheduled: float) -> None:
    """What uiCA's scheduler takes for these µops, port by port the same until its scheduler is full, which it sees a
    cycle earlier. With Skylake's choice of ports the first one took 2.22 cycles, the last 1.00."""
    assert float(cycles(code, arch)) == pytest.approx(scheduled, rel=0.09)
