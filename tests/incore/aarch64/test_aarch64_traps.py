"""What analyses of AArch64 get wrong: fourteen known traps, each by what it does to a loop or a form."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import kernmodel as km
from kernmodel.code.listing import read_listing
from kernmodel.incore.model import InCore, InstructionData
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction


def analysed(text: str, core: str) -> InCore:
    return km.analyse_loop(f".L: {text}\nsubs x30, x30, 1\nb.ne .L\n", uarch=core).answer.incore


def chain(text: str, core: str) -> float:
    found = analysed(text, core).lcd
    return 0.0 if found is None else found.cycles


def read(text: str, isa_name: str = "aarch64-sve256") -> tuple[Instruction, ...]:
    return read_listing(text, "k.s", isa_name=isa_name).instructions


def row(form: str, core: str) -> InstructionData:
    found = InstructionTable.open(load_parameters(core)).row(form)
    assert found is not None
    return found


@pytest.mark.parametrize("core", ["TX2", "A64FX", "N1", "V1", "V2", "N2", "M1", "A72", "TSV110"])
def test_1_a_written_back_base_waits_for_itself_alone(core: str) -> None:
    assert chain("str d0, [x1], 8\nldr d1, [x1]\nfadd d0, d0, d1", core) < 2 * chain("fadd d0, d0, d1", core)
    assert chain("ldr d1, [x1], 8", core) == 1.0


def test_2_accumulators_are_forwarded_to_accumulators_only() -> None:
    assert chain("fmla v0.2d, v1.2d, v2.2d", "V2") == 2.0
    assert chain("fmla v0.2d, v0.2d, v2.2d", "V2") == 4.0
    assert chain("madd x1, x2, x3, x1", "M1") == 1.0
    for mnemonic in ("smmla", "ummla", "usmmla"):
        (product,) = read(f"{mnemonic} v0.4s, v1.16b, v2.16b")
        assert product.operands[0].read and product.operands[0].written
    assert chain("madd x1, x1, x3, x2", "M1") == 3.0
    assert chain("fmla v0.2d, v1.2d, v2.2d", "A64FX") == 9.0


def test_3_flags_are_results_and_sources() -> None:
    writes = (
        "subs x0, x1, x2\ncmp x1, x2\ntst x1, x2\nadds x0, x1, x2\nands x0, x1, x2\nfcmp d0, d1\nwhilelo p0.d, x1, x2"
    )
    reads = "b.ne f\ncsel x1, x2, x3, eq\nccmp x1, x2, #0, ne\nadc x0, x1, x2\nfcsel d0, d1, d2, lt"
    neither = "cbz x1, f\ntbz x1, #3, f\nadd x0, x1, x2"
    assert all(one.flags_written for one in read(writes))
    assert all(one.flags_read for one in read(reads))
    assert not any(one.flags_read or one.flags_written for one in read(neither))


def test_4_zero_registers_carry_nothing() -> None:
    assert chain("sub x1, xzr, x2\nadd x2, xzr, x3", "V2") == 1.0
    assert chain("fmov d0, xzr\nfadd d0, d0, d1", "TX2") == 1.0  # that of the counter alone
    (by_sp,) = read("add x0, sp, #8")
    assert {one.register for one in by_sp.operands} >= {"sp"}


def test_5_merging_reads_the_destination_and_zeroing_does_not() -> None:
    merging, zeroing, prefix = read("abs z0.d, p0/m, z1.d\nmovprfx z0.d, p0/z, z1.d\nmovprfx z0, z1")
    assert merging.operands[0].read
    assert not zeroing.operands[0].read
    assert not prefix.operands[0].read
    assert row("movprfx z,z", "V1").uops == 0


@pytest.mark.parametrize("text", ["ld1 {v0.d}[1], [x1]", "mov v0.d[1], v1.d[0]", "fmov v0.d[1], x1",
                                  "fcvtn2 v0.4s, v1.2d", "sli v0.2d, v1.2d, #3", "bsl v0.16b, v1.16b, v2.16b",
                                  "movk x0, #1, lsl #16", "bfi x0, x1, #2, #3", "orr v0.4s, #1"])  # fmt: skip
def test_6_partial_writes_keep_the_rest(text: str) -> None:
    (one,) = read(text)
    assert one.operands[0].read
    assert one.operands[0].written


def test_7_pairs_count_by_core() -> None:
    loads = {
        core: sum(use.cycles for use in row("ldp q,q,[x]", core).ports if any(p[:2] in kind for p in use.ports))
        for core, kind in (("TX2", ("3", "4")), ("M1", ("ME",)), ("A64FX", ("EA",)))
    }
    assert loads == {"TX2": 2.0, "M1": 2.0, "A64FX": 2.0}
    assert sum(use.cycles for use in row("ldp d,d,[x]", "M1").ports) == 1.0
    (pair,) = read("ldp d0, d1, [x0]")
    assert [one.written for one in pair.operands[:2]] == [True, True]
    assert pair.memory[0].size_bytes == 16


def test_8_shifted_operands_cost_by_core() -> None:
    assert row("add x,x,x", "V2").default_latency == row("add x,x,x,lsl#1-4", "V2").default_latency == 1.0
    assert row("add x,x,x,lsl#5+", "V2").default_latency == 2.0
    assert row("add x,x,x,lsl#1-4", "M1").default_latency == 2.0
    assert sum(use.cycles for use in row("add x,x,x,lsl#1-4", "M1").ports) == 2.0


def test_9_stores_take_a_port_for_their_data() -> None:
    assert {"5"} in [set(use.ports) for use in row("str d,[x]", "TX2").ports]
    assert any("FLA" in use.ports for use in row("str d,[x]", "A64FX").ports)
    # A64FX: two loads or one store a cycle
    assert analysed("ldr d0, [x0]\nldr d1, [x1]", "A64FX").throughput == 1.0
    assert analysed("str d0, [x0]", "A64FX").throughput == 1.0
    assert analysed("ldr d0, [x0]\nldr d1, [x1]\nstr d2, [x2]", "A64FX").throughput == 2.0


def test_10_dividers_block_their_unit() -> None:
    assert analysed("fdiv d0, d1, d2\nfdiv d3, d1, d2", "A64FX").throughput == 2 * 43
    assert analysed("fdiv z0.d, p0/m, z0.d, z2.d\nmovprfx z0, z1", "A64FX@512").throughput >= 154


def test_11_uops_are_not_sums_over_resources() -> None:
    assert row("ldr x,[x]", "TX2").uops == 1
    assert row("ldp x,x,[x],#imm", "TX2").uops <= 4
    assert load_parameters("V2").issue_width == 6


def test_12_the_length_of_vectors_decides_what_moves() -> None:
    for bits in (128, 256, 512):
        load, step = read("ld1d z0.d, p0/z, [x0]\nincd x3", f"aarch64-sve{bits}")
        assert load.memory[0].size_bytes == bits // 8
        effect = isa_of(f"aarch64-sve{bits}").effect(step, lambda name: None, lambda number: None)
        assert effect.registers == ()  # what x3 held is not known


def test_13_moves_between_register_files_take_their_transfer() -> None:
    assert row("fmov d,x", "M1").default_latency >= 5
    assert row("scvtf d,x", "A64FX").default_latency > row("scvtf d,d", "A64FX").default_latency


@pytest.mark.parametrize(
    ("gcc", "clang"),
    [
        ("ldr q0, [x0, 16]", "ldr q0, [x0, #16]"),
        ("add x0, x1, x2, lsl 3", "add x0, x1, x2, lsl #3"),
        ("ld4 {v0.16b - v3.16b}, [x0]", "ld4 { v0.16b, v1.16b, v2.16b, v3.16b }, [x0]"),
        ("bne f", "b.ne f"),
        ("b.any f", "b.ne f"),
        ("subs xzr, x1, x2", "cmp x1, x2"),
        ("orr x0, xzr, x1", "mov x0, x1"),
        ("madd x0, x1, x2, xzr", "mul x0, x1, x2"),
        ("csinc x0, xzr, xzr, ne", "cset x0, eq"),
    ],
)
def test_14_spellings_share_a_row(gcc: str, clang: str) -> None:
    assert [one.form for one in read(gcc)] == [one.form for one in read(clang)]
    assert read("movi v0.16b, 0xffffffffffffff97")


LISTING = """
    ldr q0, [x0, #16]
    ldp d1, d2, [x1], #16
    fmla v0.2d, v1.2d, v2.d[1]
    add x3, x4, x5, lsl #3
    str d0, [x6, w7, sxtw #3]
    cmp x3, #4095
    ubfiz x1, x2, #3, #20
    fcvtzs w1, d2
    movi v3.4s, #1
    tbl v0.16b, {v1.16b, v2.16b}, v3.16b
    csel x1, x2, x3, hi
    ld1d {z0.d}, p0/z, [x0, x3, lsl #3]
    fmla z1.d, p0/m, z0.d, z2.d
    whilelo p0.d, x3, x4
    incd x3
    ret
"""


@pytest.mark.needs("aarch64-linux-gnu-as")
def test_machine_code_reads_as_objdump_prints_it(tmp_path: Path) -> None:
    (tmp_path / "k.s").write_text(LISTING, encoding="utf-8")
    made = tmp_path / "k.o"
    subprocess.run(["aarch64-linux-gnu-as", "-march=armv8.2-a+sve", "-o", made, tmp_path / "k.s"], check=True)
    printed = subprocess.run(
        ["aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", made], check=True, capture_output=True, text=True
    ).stdout
    lines = [line.partition(":\t")[2] for line in printed.splitlines() if ":\t" in line]
    (section,) = [one for one in isa_of("aarch64-sve256").read_object(made.read_bytes(), "k.o").sections if one.data]
    decoded = list(isa_of("aarch64-sve256").decode(section.data))
    by_text = read("\n".join(lines))
    assert [one.form for one in decoded] == [one.form for one in by_text]
    assert [one.operands for one in decoded] == [one.operands for one in by_text]
