"""Rows of Zen 4 and Zen 3 against micro-experiments of 2026 on EPYCs of family 25, models 17 and 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernmodel.code.blocks import block_of_bytes
from kernmodel.errors import InstructionTableError
from kernmodel.incore.core import Core, Settings, analyse_block
from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables.importers import measured
from kernmodel.incore.tables.importers.contradictions import throughput_of
from kernmodel.incore.tables.importers.disagreements import disagreements
from kernmodel.incore.tables.importers.measured import as_measured
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable

FACTS = Path(__file__).parents[2] / "../shared/data"
WIDTH = 6
TOLERANCE = 0.05

THROUGHPUTS = """
vunpcklpd xmm,xmm,xmm 0.333 | vunpcklpd zmm,zmm,zmm 0.666 | vpermilpd ymm,ymm,i8 0.333
vshufpd ymm,ymm,ymm,i8 0.333 | vpermpd ymm,ymm,i8 0.5 | vpermpd ymm,m256,i8 0.5 | vpermd ymm,ymm,ymm 0.5
vpermpd zmm,zmm,zmm 0.999 | vperm2f128 ymm,ymm,ymm,i8 0.5 | vinsertf128 ymm,ymm,xmm,i8 0.5
vinsertf128 ymm,ymm,m128,i8 0.5 | vextractf128 xmm,ymm,i8 0.5 | vextractf128 m128,ymm,i8 0.999
vblendpd ymm,ymm,ymm,i8 0.5 | vblendvpd ymm,ymm,ymm,ymm 0.5 | vpmovzxbd ymm,xmm 0.5 | vpmovzxbd ymm,m64 0.5
vpmovzxbd zmm,xmm 0.999 | vpmovsxdq zmm,m256 0.999 | vhaddpd ymm,ymm,ymm 2.0 | vmovq r64,xmm 0.999
vmovq xmm,r64 1.0 | vpextrd r32,xmm,i8 0.999 | vpinsrd xmm,xmm,r32,i8 1.0 | vcvttsd2si r32,xmm 0.999
vcvttsd2si r64,m64 1.0 | vcvtsi2sd xmm,xmm,r64 1.255 | vcvtdq2pd ymm,xmm 0.666 | vcvtdq2pd ymm,m128 0.5
vcvtps2pd ymm,xmm 0.666 | vcvtps2pd zmm,ymm 1.333 | vcvtpd2ps xmm,ymm 0.666 | vcvttpd2dq xmm,ymm 0.666
vcvttpd2dq ymm,zmm 1.333 | vpcmpeqb k,xmm,xmm 0.5 | vpcmpeqb k,zmm,zmm 1.0 | vcmppd k,zmm,zmm,i8 0.999
vpmovm2q ymm,k 0.25 | vpmovm2q zmm,k 0.5 | kmovw r32,k 0.999 | kandw k,k,k 0.5 | tzcnt r64,r64 0.255
bsf r64,r64 0.255 | popcnt r64,r64 0.255 | bswap r64 0.255 | mul r64 0.999 | idiv r32 5.997 | div r32 5.996
div r64 6.996 | shld r64,r64,i8 1.541 | vdivsd xmm,xmm,xmm 4.994 | vdivpd ymm,ymm,ymm 4.997
vdivpd zmm,zmm,zmm 8.988 | vdivps ymm,ymm,ymm 2.998 | vdivps zmm,zmm,zmm 5.997 | vsqrtsd xmm,xmm,xmm 8.395
vsqrtpd ymm,ymm 8.395 | vsqrtpd zmm,zmm 15.993 | vsqrtps ymm,ymm 4.997 | lea r64,m [b+i] 0.255
lea r64,m [b+i*s] 0.26 | lea r64,m [b+i+d] 0.505 | lea r64,m [b+i*s+d] 0.505
vscatterdpd vsib_xmm{k},ymm 6.55 | vscatterdpd vsib_ymm{k},zmm 10.24 | vscatterdps vsib_zmm{k},zmm 22.3
vpdpbusd ymm,ymm,ymm 0.499 | vpdpwssd zmm,zmm,m512 0.998 | vpshldd ymm,ymm,ymm,i8 0.499 | vphaddd ymm,ymm,ymm 1.994
vhaddps ymm,ymm,m256 1.99 | vpcompressd ymm,ymm 0.66 | vpexpandd zmm{kz},zmm 1.33 | vcompresspd m512,zmm 53.9
vpcompressb m128,xmm 72.9 | vpsubusb zmm,zmm,zmm 0.998 | vpcmpgtq ymm,ymm,ymm 0.498 | vcvttps2qq zmm,ymm 1.33
vcvtps2qq ymm,xmm 0.69 | vcvtqq2ps xmm,ymm 0.66 | vcvttpd2udq xmm,m128 0.5 | vcvtps2ph m128,ymm,i8 1.99
vpmovswb ymm,zmm 0.998 | vshuff64x2 ymm,ymm,ymm,i8 0.497 | vpbroadcastd xmm,r32 0.997 | vcvttsd2usi r64,xmm 0.996
vpermilps ymm,ymm,ymm 0.499 | vmovddup zmm,zmm 0.998 | vextractf64x2 m128,ymm,i8 0.997 | vpmaskmovd m256,ymm,ymm 11.98
kandnq k,k,k 0.998 | kortestq k,k 1.0 | blsi r64,r64 0.247
vpbroadcastd zmm,m32 0.5 | vmovddup ymm,m256 0.5 | vcvtpd2udq xmm,m256 0.7 | vexpandpd xmm,m128 0.66
vdppd xmm,xmm,m128,i8 3.99 | vdpps xmm,xmm,m128,i8 4.99 | vpcmpistri xmm,m128,i8 3.0 | vpconflictd ymm,m256 2.0
vpermpd ymm,ymm,m256 0.5
pdep r64,r64,m64 1.0 | xadd r64,r64 0.333 | cqo 0.498 | bts m64,i8 1.99 | lock add m64,r64 7.48
"""

LATENCIES = """
vunpcklpd ymm,ymm,ymm 1 | vpermpd ymm,ymm,i8 4 | vpermpd zmm,zmm,zmm 5 | vperm2f128 ymm,ymm,ymm,i8 3
vextractf128 xmm,ymm,i8 3 | vinsertf128 ymm,ymm,xmm,i8 1 | vpmovzxbd ymm,xmm 2 | vpmovsxdq ymm,xmm 2
vhaddpd ymm,ymm,ymm 4.425 | tzcnt r64,r64 1 | bsf r64,r64 1 | lzcnt r64,r64 1 | popcnt r64,r64 1
shld r64,r64,i8 2 | vdivpd zmm,zmm,zmm 13 | vsqrtps ymm,ymm 15 | vpsubusw xmm,xmm,xmm 2 | vpcmpeqq ymm,ymm,ymm 2
vpmovzxbd zmm,xmm 4 | vextractf64x4 ymm,zmm,i8 4 | vpmovdw ymm{k},zmm 4 | vrcpps ymm,ymm 4 | blsr r32,r32 1
vpinsrb xmm,xmm,m8,i8 2 | vmovapd ymm{k},ymm 1 | vmovdqu8 zmm{kz},zmm 1 | vmovapd ymm,ymm 0 | vcvtss2sd xmm,xmm,xmm 3
"""

ZEN3_THROUGHPUTS = """
vcvtpd2ps xmm,m128 0.492 | vcvtpd2dq xmm,m128 0.498 | vcvtpd2ps xmm,ymm 0.997 | vpbroadcastd xmm,m32 0.497
vdpps xmm,xmm,xmm,i8 3.992 | vdpps ymm,ymm,m256,i8 3.980 | dppd xmm,m128,i8 3.979 | vmpsadbw xmm,xmm,m128,i8 2.993
vcvtps2ph m128,ymm,i8 1.989 | vdivpd ymm,ymm,ymm 4.492 | divsd xmm,xmm 4.47 | vsqrtsd xmm,xmm,xmm 8.466
vpbroadcastd ymm,m32 0.5 | vcvtps2ph xmm,ymm,i8 0.995 | vmpsadbw ymm,ymm,ymm,i8 1.99 | vdivss xmm,xmm,xmm 3.484
cdq 0.498 | vsqrtpd ymm,m256 8.475 | imul r16,m16,i8 0.995 | pext r64,r64,m64 0.996 | bsf r64,m64 3.978
"""

ZEN3_LATENCIES = """
vcvtsd2ss xmm,xmm,xmm 2.990 | vcvtss2sd xmm,xmm,m32 2.983 | vroundsd xmm,xmm,m64,i8 2.994 | vmovlpd xmm,xmm,m64 0.994
bsf r32,m32 3.982 | imul r16,m16,i8 3.986
"""
"""From the registers that they read; of what is loaded below."""

CHAINS = {
    "4801d8 c4e1f96ec0 c4e1f97ec0": 7.0,  # add rax,rbx; vmovq xmm0,rax; vmovq rax,xmm0
    "c5fb2ac0 c5fb2cc0": 12.0,  # vcvtsi2sd xmm0,xmm0,eax; vcvttsd2si eax,xmm0
    "c5fbc2c100 c5f854c2": 3.0,  # vcmpeqsd xmm0,xmm0,xmm1; vandps xmm0,xmm0,xmm2
    "99 f7f9": 13.0,  # cdq; idiv ecx
    "62f17d0874c8 62f2fe0838c1": 4.0,  # vpcmpeqb k1,xmm0,xmm0; vpmovm2q xmm0,k1
    "62f17d2876c9 c5f993c1 c5f96ec0": 10.0,  # vpcmpeqd k1,ymm0,ymm1; kmovb eax,k1; vmovd xmm0,eax
    "62f1fd48c2cf01 62f2fe4838c1": 6.0,  # vcmpltpd k1,zmm0,zmm7; vpmovm2q zmm0,k1
    "c5fdd7c0 c5f96ec0": 8.0,  # vpmovmskb eax,ymm0; vmovd xmm0,eax
    "62f2fd487cc0 c4e1f97ec0": 7.0,  # vpbroadcastq zmm0,rax; vmovq rax,xmm0
    "488b04d8": 5.0,  # mov rax,[rax+rbx*8]
    "488b0418": 4.0,  # mov rax,[rax+rbx]
    "480304c7": 6.0,  # add rax,[rdi+rax*8]
    "0fb60418": 4.0,  # movzx eax,byte [rax+rbx]: 3.99; the micro-experiments have 4.996
    "c5fa7e00 c4e1f97ec0": 9.0,  # vmovq xmm0,[rax]; vmovq rax,xmm0
}


def figures(text: str) -> list[tuple[str, float]]:
    return [(form.strip(), float(value)) for cell in text.replace("\n", "|").split("|") if cell.strip()
            for form, _, value in [cell.strip().rpartition(" ")]]  # fmt: skip


@pytest.fixture(scope="module")
def table() -> InstructionTable:
    return InstructionTable.open(load_parameters("ZEN4"))


@pytest.mark.parametrize(("form", "cycles"), figures(THROUGHPUTS))
def test_throughput_is_as_measured(table: InstructionTable, form: str, cycles: float) -> None:
    row = table.row(form)
    assert row is not None
    assert throughput_of(row, WIDTH) == pytest.approx(cycles, rel=TOLERANCE)


@pytest.mark.parametrize(("form", "cycles"), figures(LATENCIES))
def test_latency_is_as_measured(table: InstructionTable, form: str, cycles: float) -> None:
    row = table.row(form)
    assert row is not None
    assert row.default_latency == pytest.approx(cycles, rel=TOLERANCE)


@pytest.mark.parametrize(("form", "cycles"), figures(ZEN3_THROUGHPUTS))
def test_throughput_is_as_measured_on_zen_3(form: str, cycles: float) -> None:
    row = InstructionTable.open(load_parameters("ZEN3")).row(form)
    assert row is not None
    assert throughput_of(row, WIDTH) == pytest.approx(cycles, rel=TOLERANCE)


@pytest.mark.parametrize(("form", "cycles"), figures(ZEN3_LATENCIES))
def test_latency_is_as_measured_on_zen_3(form: str, cycles: float) -> None:
    row = InstructionTable.open(load_parameters("ZEN3")).row(form)
    assert row is not None
    assert row.latencies.get(("1", "0"), row.default_latency) == pytest.approx(cycles, rel=TOLERANCE)


def test_what_is_measured_between_registers_changes_addresses_by_what_their_data_take() -> None:
    """The default of a form of memory is of the register that it merges: of 11 from the address 3 are for the data."""
    pairs = {("A2", "0"): 11.0, ("M2", "0"): 3.0}
    (row,) = as_measured(
        [row_of("vroundsd xmm,xmm,m64,i8", latencies=pairs, ports=(PortUse(("FP2", "FP3"), 1.0),))], "ZEN3"
    )
    assert (row.default_latency, row.latencies) == (3.0, {("A2", "0"): 11.0})


@pytest.mark.parametrize(("code", "cycles"), list(CHAINS.items()))
def test_chain_is_as_measured(code: str, cycles: float) -> None:
    block = block_of_bytes(bytes.fromhex(code + "ffca75" + f"{-len(bytes.fromhex(code)) - 4 & 255:02x}"), file="x")
    incore = analyse_block(block, Core.open("ZEN4", Settings()), Settings())
    assert incore.lcd is not None
    assert incore.lcd.cycles == pytest.approx(cycles, rel=TOLERANCE)


@pytest.mark.parametrize(
    ("form", "slots"),
    [("vgatherdpd xmm,vsib_xmm,xmm", 4.0), ("vgatherdpd ymm,vsib_xmm,ymm", 5.0), ("vgatherdps ymm,vsib_ymm,ymm", 8.0)],
)
def test_gather_and_its_mask_fill_the_measured_time(table: InstructionTable, form: str, slots: float) -> None:
    row = table.row(form)
    assert row is not None
    assert (row.uops + 1) / WIDTH == slots


@pytest.mark.thorough
@pytest.mark.skipif(not FACTS.is_dir(), reason="measurements are not at hand")
def test_where_sources_differ_the_table_follows_the_more_trusted_or_says_why_not(table: InstructionTable) -> None:
    found = list(disagreements(table, FACTS))
    assert len(found) > 100
    assert [item.form for item in found if not item.explanation] == []


def test_a_core_without_several_sources_is_refused() -> None:
    table = InstructionTable.open(load_parameters("BDW"))
    with pytest.raises(InstructionTableError, match="no three sources"):
        list(disagreements(table, FACTS))


def test_zero_idiom_is_done_at_rename(table: InstructionTable) -> None:
    row = table.row("xor r32,r32")
    assert row is not None
    assert row.breaks_dependency == "zero"


def row_of(form: str, **changes: object) -> InstructionData:
    values: dict[str, object] = {
        "form": form,
        "ports": (PortUse(("FP0",), 1.0),),
        "latencies": {},
        "default_latency": 7.0,
        "uops": 9,
        "throughput": None,
        "breaks_dependency": "no",
        "eliminated": False,
        "front_end": None,
        "indexed": None,
        "source": "a model",
    }
    return InstructionData(**{**values, **changes})  # type: ignore[arg-type]


def test_a_rule_changes_what_it_names_and_nothing_else() -> None:
    """A division says nothing of ports; 512 bits take twice what 256 take; loads keep their paths."""
    load = PortUse(("LD0", "LD1"), 2.0)
    shuffle, gather, other = as_measured(
        [
            row_of("vunpcklpd zmm{kz},zmm,m512", ports=(PortUse(("FP0",), 1.0), load)),
            row_of("vgatherdpd ymm,vsib_xmm,ymm"),
            row_of("vfoo ymm,ymm,ymm"),
        ],
        "ZEN4",
    )
    assert shuffle.ports == (PortUse(("FP1", "FP2", "FP3"), 2.0), load)
    assert shuffle.uops == 9
    assert (gather.ports, gather.uops) == ((PortUse(("FP0",), 1.0),), 29)
    assert other == row_of("vfoo ymm,ymm,ymm")
    assert "a model" not in shuffle.source
    assert gather.source.startswith("a model; measured: Zen 4")


def test_a_rule_of_registers_holds_for_memory_of_their_size() -> None:
    """Conversions of 256 bits to bfloat16 take two units (1.50 beside two vpshufb), of 128 bits one (1.00)."""
    rows = [row_of(f"vcvtneps2bf16 xmm,{source}", ports=(PortUse(("FP2", "FP3"), 1.0),)) for source in ("m128", "m256")]
    half, whole = as_measured(rows, "ZEN4")
    assert half.ports == (PortUse(("FP2", "FP3"), 1.0),)
    assert whole.ports == (PortUse(("FP1", "FP2"), 1.0), PortUse(("FP2", "FP3"), 1.0))


def test_a_core_without_experiments_keeps_its_rows() -> None:
    rows = (row_of("vunpcklpd ymm,ymm,ymm"),)
    assert as_measured(rows, "SKL") == rows


def test_addresses_of_a_measured_row_move_with_its_latency() -> None:
    """A vector load takes 6 cycles (vmovq x,[r]; vmovq r,x: 8.99), and what the instruction itself takes."""
    pairs = {("A1", "0"): 11.0, ("X1", "0"): 11.0}
    load = PortUse(("LD0", "LD1"), 1.0)
    (row,) = as_measured([row_of("vpmovzxbd ymm,m64", latencies=pairs, ports=(PortUse(("FP1",), 1.0), load))], "ZEN4")
    assert row.latencies == {("A1", "0"): 8.0, ("X1", "0"): 8.0}


def test_malformed_units_name_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = measured.Rule("a rule", "vfoo ymm", "an experiment", units="FP?")
    monkeypatch.setattr(measured, "_rules", lambda core: ((measured._pattern("vfoo ymm"), rule),))
    with pytest.raises(InstructionTableError, match="a rule"):
        as_measured([row_of("vfoo ymm")], "ZEN4")
