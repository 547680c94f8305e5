"""Lookup: exact rows, variants, relatives that say so, compositions, and None for what is unknown."""

import pytest

from kernmodel.code.listing import decode_bytes
from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa.model import Instruction


def instruction(code: str) -> Instruction:
    (decoded,) = decode_bytes(bytes.fromhex(code)).instructions
    return decoded


def look_up(code: str, name: str = "SKL") -> InstructionData | None:
    return InstructionTable.open(load_parameters(name)).lookup(instruction(code))


def known(code: str, name: str = "SKL") -> InstructionData:
    row = look_up(code, name)
    assert row is not None
    return row


def test_an_exact_row_is_as_uops_info_gives_it() -> None:
    row = known("c5f55806")  # vaddpd ymm0,ymm1,[rsi]
    assert row.ports == (PortUse(("0", "1"), 1), PortUse(("2", "3"), 1), PortUse(("2D", "3D"), 1))
    assert (row.default_latency, row.uops) == (4, 2)
    assert row.latencies["A2", "0"] == row.latencies["X2", "0"] == 11  # of 13 with the move back to the address
    assert row.source.startswith("uops.info")


@pytest.mark.parametrize("core", ["SNB", "IVB"])
@pytest.mark.parametrize("code", ["f3480fbcd2", "f3480fbc16"])  # tzcnt rdx,rdx; tzcnt rdx,[rsi]
def test_cores_without_tzcnt_execute_bsf(core: str, code: str) -> None:
    """They ignore its prefix, and gcc writes it for all x86-64: it counted nothing."""
    row, older = known(code, core), known(code[2:], core)
    assert (row.ports, row.latencies, row.default_latency) == (older.ports, older.latencies, older.default_latency)
    assert "bsf" in row.source


def test_scalar_division_occupies_the_divider() -> None:
    assert PortUse(("0DV",), 4) in known("c5f35ec2").ports  # vdivsd; OSACA has no pressure for it
    assert PortUse(("FP3DV",), 4.5) in known("c5f35ec2", "ZEN").ports


@pytest.mark.parametrize(
    ("code", "ports", "latency"),
    [
        ("488d04cb", "15", 1),  # lea rax,[rbx+rcx*8]
        ("488d44cb08", "1", 3),  # lea rax,[rbx+rcx*8+8]
        ("498d44cd00", "1", 3),  # lea rax,[r13+rcx*8]: encoded with a displacement of 0
        ("488d4308", "15", 1),  # lea rax,[rbx+8]
        ("488d04cd08000000", "15", 1),  # lea rax,[rcx*8+8]
    ],
)
def test_the_row_of_a_lea_depends_on_the_shape_of_its_address(code: str, ports: str, latency: float) -> None:
    row = known(code)
    assert row.ports == (PortUse(tuple(ports), 1),)
    assert row.latencies["A1", "0"] == latency
    assert row.form == "lea r64,m"


def test_a_rip_relative_lea_is_slow_on_skylake() -> None:
    assert known("488d0508000000").ports == (PortUse(("1",), 1),)


def test_idioms_and_eliminated_moves() -> None:
    assert known("31c0").breaks_dependency == "zero"  # xor eax,eax
    assert known("31c0", "ZEN2").breaks_dependency == "dependency"
    assert known("c5f176c1").breaks_dependency == "dependency"  # vpcmpeqd xmm0,xmm1,xmm1
    move = known("4889d8")  # mov rax,rbx
    assert (move.eliminated, move.uops, move.default_latency) == (True, 1, 1)
    assert not known("4889d8", "SNB").eliminated


def test_movzx_of_a_register_encoded_like_a_high_byte_is_not_eliminated_after_ivy_bridge() -> None:
    table = InstructionTable.open(load_parameters("SKL"))
    low, alias = table.lookup(instruction("0fb6c3")), table.lookup(instruction("400fb6c6"))  # movzx eax,bl; eax,sil
    assert low is not None
    assert alias is not None
    assert (low.eliminated, alias.eliminated) == (True, False)
    assert known("400fb6c6", "IVB").eliminated


def test_locked_instructions_have_rows_of_their_own() -> None:
    row = known("f00106")
    assert row.form == "lock add m32,r32"
    assert row.throughput == 18


def test_padding_is_a_nop() -> None:
    assert known("660f1f0400").ports == ()
    assert known("6690").ports == ()


@pytest.mark.parametrize(
    ("code", "form", "said"),
    [
        ("62f1f54958c2", "vaddpd zmm{k},zmm,zmm", "unmasked form of vaddpd zmm,zmm,zmm: "),
        ("62f1f5595806", "vaddpd zmm{k},zmm,m64b", "unmasked form of vaddpd zmm,zmm,m64b: "),
        ("62f17c585a0e", "vcvtps2pd zmm,m32b", "full-width memory of vcvtps2pd zmm,m256: "),
    ],
)
def test_approximations_say_so_and_keep_the_form(code: str, form: str, said: str) -> None:
    row = known(code, "SKX")
    assert row.form == form
    assert row.source.startswith(said)


def test_evex_forms_without_row_fall_back_on_vex_ones() -> None:
    row = known("62a1f520dbc2", "SKL")  # vpandq ymm16,ymm17,ymm18 on a core without AVX-512
    assert row.source.startswith("VEX form of vpand ymm,ymm,ymm")
    assert row.ports == (PortUse(("0", "1", "5"), 1),)


def test_a_composition_adds_a_load_to_the_register_form() -> None:
    table = InstructionTable.open(load_parameters("SKL"))
    bare = instruction("c5edd00e")  # vaddsubpd ymm1,ymm2,[rsi]
    exact = table.lookup(bare)
    assert exact is not None
    from kernmodel.incore.tables.lookup import _compose

    composed = _compose(table, bare)
    assert composed is not None
    assert sorted(composed.ports, key=str) == sorted(exact.ports, key=str)
    assert composed.latencies["A2", "0"] == exact.latencies["A2", "0"]
    assert composed.source.startswith("composed: vaddsubpd ymm,ymm,ymm + load: ")


def test_unknown_instructions_have_no_row() -> None:
    assert look_up("d9fb") is None  # fsincos


def test_rows_are_parsed_once() -> None:
    table = InstructionTable.open(load_parameters("SKL"))
    assert table.lookup(instruction("c5f55806")) is table.lookup(instruction("c5f55806"))


def test_512_bit_arithmetic_uses_ports_0_and_5() -> None:
    row = InstructionTable.open(load_parameters("CLX")).row("vfmadd231pd zmm,zmm,zmm")
    assert row is not None
    assert row.ports == (PortUse(("0", "5"), 1),)
    assert row.default_latency == 4


def test_zen_executes_256_bits_as_two_halves() -> None:
    row = known("c5f55806", "ZEN")
    assert row.ports == (PortUse(("FP2", "FP3"), 2), PortUse(("AGU0", "AGU1"), 2), PortUse(("LD0", "LD1"), 2))
    assert known("c5f55806", "ZEN2").ports[0] == PortUse(("FP2", "FP3"), 1)


def test_256_bit_loads_and_stores_take_two_data_cycles_on_sandy_bridge() -> None:
    assert PortUse(("2D", "3D"), 2) in known("c5f55806", "SNB").ports
    assert PortUse(("2D", "3D"), 1) in known("c5f55806", "HSW").ports
    assert PortUse(("4",), 2) in known("c5fd1106", "SNB").ports  # vmovupd [rsi],ymm0
