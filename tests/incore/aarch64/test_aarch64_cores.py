"""AArch64 cores: tables as their importer builds them, chains by operand pairs, the 2019 paper, measured loops."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import pytest

import kernmodel as km
from kernmodel.code.listing import read_listing
from kernmodel.errors import AssemblyError
from kernmodel.incore.tables.importers.aarch64 import aarch64_recipes, aarch64_table
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import DATA, InstructionTable

FACTS = Path(__file__).resolve().parents[3] / "../shared/data/aarch64"
facts_at_hand = pytest.mark.skipif(not FACTS.is_dir(), reason="no ../shared/data/aarch64")
CORES = tuple(aarch64_recipes())

# the loop of Table II: Laukemann, Hammer, Hager, Wellein, PMBS 2019 (gfortran 8.2 -Ofast -funroll-loops)
GAUSS_SEIDEL = """
.L20:
    ldr d31, [x15, x18, lsl 3]
    ldr d0, [x15, 8]
    mov x14, x15
    add x16, x15, 24
    ldr d2, [x15, x30, lsl 3]
    add x15, x15, 32
    fadd d1, d31, d0
    fadd d3, d1, d30
    fadd d4, d3, d2
    fmul d5, d4, d9
    str d5, [x14], 8
    ldr d6, [x14, x18, lsl 3]
    ldr d16, [x14, 8]
    add x13, x14, 8
    ldr d7, [x14, x30, lsl 3]
    fadd d17, d6, d16
    fadd d18, d17, d5
    fadd d19, d18, d7
    fmul d20, d19, d9
    str d20, [x15, -24]
    ldr d21, [x13, x18, lsl 3]
    ldr d23, [x14, 16]
    ldr d22, [x13, x30, lsl 3]
    fadd d24, d21, d23
    fadd d25, d24, d20
    fadd d26, d25, d22
    fmul d27, d26, d9
    str d27, [x14, 8]
    ldr d30, [x15]
    ldr d28, [x16, x18, lsl 3]
    ldr d29, [x16, x30, lsl 3]
    fadd d31, d28, d30
    fadd d2, d31, d27
    fadd d0, d2, d29
    fmul d30, d0, d9
    str d30, [x15, -8]
    cmp x7, x15
    bne .L20
"""


def test_gauss_seidel_of_the_2019_paper() -> None:
    """Table I: TP 2.46, LCD 18 and CP 25 cy/it of four iterations a pass; measured 18.5. Table II: the port sums."""
    answer = km.analyse_loop(GAUSS_SEIDEL, uarch="TX2", core=km.CoreOptions(ports="even")).answer.incore
    assert answer.lcd.cycles == 4 * 18.0
    sums = dict(zip(answer.ports, answer.port_sums, strict=True))
    assert [sums[port] for port in ("3", "4", "5")] == [8.0, 8.0, 4.0]
    # two ALU uops that the paper's data lack are on ports 0 to 2 alike: `mov` (the paper: half on 0 and 1 each) may go
    # to 2 as other moves do (LLVM), and the base that `str d5, [x14], 8` writes back is added to (OSACA e00d5f6)
    for port, paper in (("0", 9.83), ("1", 9.83)):
        assert sums[port] == pytest.approx(paper - 1 / 2 + 1 / 3 + 1 / 3, abs=0.005)
    assert sums["2"] == pytest.approx(1.33 + 2 / 3, abs=0.005)
    # the paper's critical path, 100, waits for the data of `str d5` (4) before its written-back base is loaded through
    # (4) and added (6), which the registers do not make it do, and ends with the latency of a store (4)
    assert answer.critical_path.cycles == 4 * 25 - (4 + 4 + 6) - 4


def chain(text: str, core: str) -> float:
    return km.analyse_loop(f".L: {text}\nsubs x30, x30, 1\nb.ne .L\n", uarch=core).answer.incore.lcd.cycles


@pytest.mark.parametrize(
    ("text", "core", "cycles"),
    [
        ("ldr d0, [x1], 8", "TX2", 1),  # write-back
        ("str d0, [x1, 8]!\nfadd d0, d0, d1", "TX2", 6),
        ("ldp q0, q1, [x1], 32", "A64FX", 1),
        ("ldr x1, [x1]", "V2", 4),  # pointer chasing
        ("ldr d1, [x1, x2, lsl 3]", "N1", 1),
        ("fmla v0.2d, v1.2d, v2.2d", "V2", 2),  # accumulator
        ("fmla z0.d, p0/m, z1.d, z2.d", "V2", 2),
        ("movprfx z0, z3\nfmla z0.d, p0/m, z1.d, z2.d\nmov z3.d, z0.d", "V2", 2 + 2),
        ("fmla v1.2d, v0.2d, v2.2d\nfmla v0.2d, v1.2d, v3.2d", "V2", 8),
        ("fmla v0.2d, v1.2d, v2.2d", "A64FX", 9),
        ("fadd d0, d0, d1", "A64FX", 9),
        ("fdiv d0, d0, d1", "V2", 15),  # of operands that take the divider longest
        ("sdiv x0, x0, x1", "V2", 20),
        ("sub x1, xzr, x2", "V2", 1),  # the zero register carries nothing
        ("mov v0.d[1], x1", "TX2", 5),  # a lane keeps the others
        ("mov v0.d[1], x1", "V1", 2),  # and waits for them when the new one has come from the general register
        ("ld1 {v0.d}[1], [x1]", "N1", 2),
        ("ld2 {v0.s, v1.s}[1], [x1]", "V2", 2),
        ("mla v0.2s, v1.2s, v2.2s", "A72", 1),  # accumulators that are forwarded late
        ("mla v0.4s, v1.4s, v2.4s", "A72", 2),
        ("smlal v0.4s, v1.4h, v2.4h", "A72", 1),
        ("sadalp v0.2d, v1.4s", "A72", 1),
        ("ssra v0.2d, v1.2d, #3", "A72", 1),
        ("fmla v0.2d, v1.2d, v2.2d", "A72", 4),
        ("mla v0.4s, v0.4s, v2.4s", "A72", 6),
        ("fmla v0.2d, v1.2d, v2.2d", "N1", 2),
        ("fmadd d0, d1, d2, d0", "N1", 2),
        ("madd x1, x2, x3, x1", "N1", 3),
        ("mla v0.4s, v1.4s, v2.4s", "N1", 2),
        ("crc32x w0, w0, x1", "N1", 1),
        ("fmla z0.d, p0/m, z1.d, z2.d", "V1@256", 2),
        ("bfmmla v0.4s, v1.8h, v2.8h", "V1", 3),
        ("sdot v0.4s, v1.16b, v2.16b", "N2", 1),
        ("mla z0.d, p0/m, z1.d, z2.d", "N2", 3),
        ("fmla v0.2d, v1.2d, v2.d[0]", "A64FX", 9),  # the first of two µops copies the element
        ("fmul v0.2d, v0.2d, v2.d[0]", "A64FX", 9),
        ("fmul v0.2d, v1.2d, v0.d[0]", "A64FX", 15),
        ("madd x1, x2, x3, x1", "A64FX", 1),
        ("saba v0.4s, v1.4s, v2.4s", "A64FX", 4),
        ("mul v0.4s, v0.4s, v1.s[0]", "V1", 4),  # by an element as by a vector
        ("mul v0.4s, v0.4s, v1.s[0]", "N1", 5),
    ],
)
def test_chains(text: str, core: str, cycles: float) -> None:
    assert chain(text, core) == cycles


def test_what_an_unknown_mnemonic_is_nearest_to_is_named() -> None:
    answer = km.analyse_loop(".L: faddx v0.2d, v1.2d, v2.2d\nsubs x0, x0, 1\nb.ne .L", uarch="V2").answer
    assert any("the nearest that has is fadd)" in str(note) for note in answer.notes)


SVE_CORES, NEON_CORES, V9_CORES = "V1@256 V2 N2 A64FX@512", "A72 N1 V1 V2 N2", "V2 N2"


@pytest.mark.parametrize(
    ("cores", "text"),
    [
        (SVE_CORES, "cmplo p1.b, p0/z, z2.b, #26\nsunpkhi z3.d, z3.s\nuqdecd w9, all, mul #7\nand z1.h, z1.h, #7"),
        (SVE_CORES, "ld1sb {z0.h}, p0/z, [x1, x12]\nrevb z0.h, p0/m, z0.h\nsubr z0.s, z0.s, #0\nuqdecw w5"),
        (SVE_CORES, "prfd pldl1keep, p0, [x1, x2, lsl #3]\nrdffrs p1.b, p0/z\ntbl z0.s, z0.s, z2.s"),
        (NEON_CORES, "movi v1.8h, 0x12, lsl 8\nmvni v3.8h, 15\nsqrshrun v0.4h, v0.4s, 7\ncmp w6, w5, sxtb"),
        (NEON_CORES, "smlal v0.4s, v2.4h, v1.h[2]\naesd v1.16b, v0.16b\nsha1h s3, s0\nsha256h q2, q1, v0.4s"),
        ("N1 V1 V2 N2", "sdot v0.4s, v1.16b, v2.4b[1]\nsqrdmlah v0.8h, v1.8h, v2.8h\ncrc32cx w0, w0, x4"),
        ("V1 V2 N2", "bfmlalt v0.4s, v1.8h, v2.8h\neor3 v0.16b, v2.16b, v3.16b, v0.16b\nsha512h q4, q2, v3.2d"),
        (V9_CORES, "match p1.b, p0/z, z2.b, z3.b\nsqxtnt z0.h, z1.s\nhistcnt z0.s, p0/z, z1.s, z2.s"),
    ],
)
def test_instructions_that_compilers_emit_have_rows(cores: str, text: str) -> None:
    for name in cores.split():
        table = InstructionTable.open(load_parameters(name))
        isa = "aarch64-sve128" if table.parameters.isa == "aarch64" else table.parameters.isa
        for one in read_listing(text, "k.s", isa_name=isa).instructions:
            assert table.lookup(one) is not None, (name, one.text)


def test_dividers_block() -> None:
    answer = km.analyse_loop(".L: fdiv d0, d1, d2\nfadd d3, d1, d2\nb.ne .L", uarch="A64FX").answer.incore
    assert answer.throughput == 43  # manual, operation blocking


SVE = """
.L:     ld1d z0.d, p0/z, [x0, x3, lsl 3]
        fmla z1.d, p0/m, z0.d, z2.d
        st1d z0.d, p0, [x1, x3, lsl 3]
        incd x3
        whilelo p0.d, x3, x4
        b.any .L
"""


def test_all_cores_of_the_code_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "k.s").write_text(SVE, encoding="utf-8")
    with_sve = {one.microarchitecture.split("@")[0] for one in km.analyse_loops(str(tmp_path / "k.s"), uarch="all")}
    assert with_sve == {name for name in CORES if load_parameters(name).vector_bits}
    found = tuple(km.analyse_loops(GAUSS_SEIDEL, uarch="all"))
    assert {one.microarchitecture for one in found} == set(CORES)
    assert all(one.error is None for one in found)
    with pytest.raises(AssemblyError, match="belongs to SVE"):
        _ = km.analyse_loop(SVE, uarch="TX2").answer
    # a core that is named is answered for
    on_x86, on_arm = (one.error for one in km.analyse_loops(GAUSS_SEIDEL, uarch="SKL,N1"))
    assert on_x86 is not None and "executes x86-64" in on_x86
    assert on_arm is None


@pytest.mark.parametrize("name", CORES)
def test_no_row_has_ports_for_no_time(name: str) -> None:
    """A reading of 0 is none: the ports' time is then the model's."""
    text = (DATA / f"{name}.txt").read_text(encoding="utf-8")
    assert "| 0*" not in text
    assert km.analyse_loop(".L: fsub h1, h2, h3\nb.ne .L", uarch="V2").answer.incore.throughput > 0


DOT = """
.L: ldp q0, q1, [x0], #32
    ldp q2, q3, [x0], #32
    ldp q4, q5, [x1], #32
    ldp q6, q7, [x1], #32
    {0} v16.4s, v0.16b, v4.16b
    {0} v17.4s, v1.16b, v5.16b
    {0} v18.4s, v2.16b, v6.16b
    {0} v19.4s, v3.16b, v7.16b
    subs x9, x9, #1
    b.ne .L
"""


@pytest.mark.parametrize("mnemonic", ["sdot", "udot", "usdot", "smmla"])
def test_accumulators_of_their_own_do_not_wait_for_each_other(mnemonic: str) -> None:
    """WINIC read the throughput through a chain of factors, 3 cycles, and took them for the accumulator's, too: those
    of SVE, which it read apart, take 1, as in LLVM's model."""
    found = km.analyse_loop(DOT.format(mnemonic), uarch="V2").answer.incore
    assert 2.6 < found.throughput < 3.7
    assert chain(f"{mnemonic} v0.4s, v1.16b, v2.16b", "V2") == 1
    assert chain(f"{mnemonic} v0.4s, v0.16b, v2.16b", "V2") == 3


def test_no_reading_is_faster_than_instructions_are_issued() -> None:
    """WINIC read 0.08 cycles for `fmin s,s,s`, 0.12 for `fnmsub d,d,d,d`."""
    table = InstructionTable.open(load_parameters("V2"))
    for form in ("fmin s,s,s", "fnmsub d,d,d,d"):
        row = table.row(form)
        assert row is not None and sum(use.cycles for use in row.ports) == 1


def test_divisions_have_rows_for_easy_operands_and_others() -> None:
    """What WINIC divided was easy: 7 cycles for `fdiv v.2d`, of which Arm's guide says 7 to 15."""
    full, easy = (
        InstructionTable.open(load_parameters("V2"), operands).row("fdiv v.2d,v.2d,v.2d")
        for operands in ("full", "easy")
    )
    assert full is not None and easy is not None
    assert (full.default_latency, easy.default_latency) == (15, 7)


def test_a_latency_that_was_read_between_bounds_is_the_models_within_them() -> None:
    """No chain leads from a kind of register back to itself through a conversion: WINIC read `1-3`, `3-5`."""
    assert chain("fcvt d0, s0\nfadd d0, d0, d1\nfcvt s0, d0", "V2") == 3 + 2 + 3
    table = InstructionTable.open(load_parameters("V2"))
    for form, cycles in {
        "usubl v.4s,v.4h,v.4h": 2,
        "usubl2 v.4s,v.8h,v.8h": 2,
        "xtn v.8b,v.8h": 2,
        "cmpeq p.d,p/z,z.d,z.d": 3,  # read up to 3, the model has 4
        "uqxtn v.8b,v.8h": 4,  # read from 3 to 5
        "umull v.4s,v.4h,v.4h": 4,  # read from 4 to 6, the model has 3
        "faddp d,v.2d": 3,
        "index z.d,x,x": 8,
        "saddw v.2d,v.2d,v.2s": 2,
    }.items():
        row = table.row(form)
        assert row is not None and (row.default_latency, dict(row.latencies)) == (cycles, {}), form
    # the vector was read, the general register that goes to it not
    into = table.row("mov v.b[i],w")
    assert into is not None and (into.default_latency, into.latencies[("1", "0")]) == (2, 5)
    # the addend was read alone, whatever the factors take
    for form in ("smsubl x,w,w,x", "umull x,w,w", "smull x,w,w"):
        row = table.row(form)
        assert row is not None and (row.default_latency, row.latencies[("3", "0")]) == (2, 1), form


# ---- with the facts at hand


@pytest.mark.thorough
@pytest.mark.needs("llvm-mca-19")
@facts_at_hand
@pytest.mark.parametrize("name", CORES)
def test_tables_are_what_the_importer_builds(name: str) -> None:
    assert aarch64_table(FACTS, name) == (DATA / f"{name}.txt").read_text(encoding="utf-8")


@facts_at_hand
def test_operand_roles_are_those_of_the_architecture() -> None:
    for one in json.loads((FACTS / "register-roles.json").read_text(encoding="utf-8")):
        (found,) = read_listing(one["text"], "k.s", isa_name="aarch64-sve512").instructions
        read = {o.register for o in found.operands if o.register and o.read} | set(found.implicit_reads)
        read |= {name for m in found.memory for name in (m.base, m.index) if name}
        written = {o.register for o in found.operands if o.register and o.written} | set(found.implicit_writes)
        flags = {"nzcv"}
        assert read | (flags if found.flags_read else set()) == set(one["read"]), one["text"]
        assert written | (flags if found.flags_written else set()) == set(one["write"]), one["text"]


@facts_at_hand
def test_no_form_of_a_cores_own_code_is_unknown() -> None:
    csv.field_size_limit(1 << 24)
    own = {
        "thunderx2t99": "TX2",
        "a64fx": "A64FX@512",
        "neoverse-v2": "V2",
        "neoverse-v1": "V1@256",
        "neoverse-n1": "N1",
    }
    own |= {"neoverse-n2": "N2", "apple-m1": "M1", "cortex-a72": "A72", "tsv110": "TSV110"}
    tables = {model: InstructionTable.open(load_parameters(name)) for model, name in own.items()}
    unknown = set()
    with gzip.open(FACTS / "loops-dev.csv.gz", "rt", encoding="utf-8") as file:
        for number, record in enumerate(csv.DictReader(file)):
            table = tables.get(record["own_core"]) if number % 8 == 0 else None
            if table is not None:
                code = read_listing(record["asm"], "k.s", isa_name=table.parameters.isa).instructions
                unknown |= {(table.parameters.name, one.form) for one in code if table.lookup(one) is None}
    assert not unknown


@facts_at_hand
def test_measured_loops_of_thunderx2() -> None:
    """Loops with the data in L1: a mean error of 10 %. OSACA 0.7.1 and llvm-mca 19: see docs/aarch64.md."""
    errors = {}
    with (FACTS / "tx2-measured-dev.csv").open(encoding="utf-8", newline="") as file:
        for record in csv.DictReader(file):
            measured = float(record["measured_cy_per_asm_iteration"])
            text = "\n".join(line for line in record["asm"].splitlines() if "LLVM-MCA" not in line)
            predicted = km.analyse_loop(text, uarch="TX2").answer.incore.prediction
            errors[record["kernel"][:3], record["variant"]] = abs(predicted - measured) / measured
    assert len(errors) == 10
    assert sum(errors.values()) / len(errors) < 0.075
    assert max(errors.values()) < 0.18
    assert errors["sum", "gcc.O3"] < 0.01
    assert errors["gau", "gcc"] < 0.03
