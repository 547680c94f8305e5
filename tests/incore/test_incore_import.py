"""The importers: their rules on small records, and the carried tables against the packs they were built from."""

import csv
import gzip
import json
import shutil
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.listing import decode_bytes
from kernmodel.errors import InstructionTableError
from kernmodel.incore.engine.ports import optimal_bound
from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables.importers.build import import_uops
from kernmodel.incore.tables.importers.forms import form_name
from kernmodel.incore.tables.importers.instlatx64 import Reading, read_instlatx64
from kernmodel.incore.tables.importers.llvm import TOOLS, assembly_line, instruction_costs, llvm_version, port_groups
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import DATA, InstructionTable
from kernmodel.isa.model import Instruction

SHARED = Path(__file__).parents[2] / "../shared/data"
needs_data = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is absent")
needs_llvm = pytest.mark.skipif(not any(map(shutil.which, TOOLS)), reason="llvm-mca is not installed")


def operand(name: str, kind: str, access: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "read": "r" in access, "write": "w" in access, "mem_base": None, **more}


def latency(start: str, target: str, cycles: int, **more: int) -> dict[str, Any]:
    empty = dict.fromkeys(("cycles_addr", "cycles_addr_index", "cycles_mem", "cycles_same_reg"))
    return {"start_op": start, "target_op": target, "cycles": cycles, **empty, **more}


def record(
    string: str, ports: dict[str, int], operands: list[Any], latencies: list[Any], **more: Any
) -> dict[str, Any]:
    base = {
        "arch": "X",
        "uops": sum(ports.values()),
        "retire_slots": 1,
        "uops_mite": 1,
        "uops_ms": 0,
        "complex_decoder": False,
        "n_available_simple_decoders": 4,
        "div_cycles": 0,
        "tp": None,
        "macro_fusible_with": [],
        "variants": {},
    }
    return {**base, "string": string, "ports": ports, "operands": operands, "latencies": latencies, **more}


LOAD = record(
    "MOV (R64, M64)",
    {"23": 1},
    [operand("REG0", "reg", "w"), operand("MEM0", "mem", "r")],
    [latency("MEM0", "REG0", 1, cycles_addr=5, cycles_addr_index=5, cycles_mem=4)],
)
STORE = record(
    "MOV (M64, R64)",
    {"237": 1, "4": 1},
    [operand("MEM0", "mem", "w"), operand("REG0", "reg", "r")],
    [latency("MEM0", "MEM0", 1, cycles_addr=9), latency("REG0", "MEM0", 4)],
    variants={"indexed": {"ports": {"23": 1, "4": 1}, "uops": 2, "retire_slots": 2}},
)
ADD = record(
    "ADD_01 (R64, R64)",
    {"0156": 1},
    [operand("REG0", "reg", "rw"), operand("REG1", "reg", "r"), operand("REG2", "flags", "w")],
    [latency("REG0", "REG0", 1), latency("REG1", "REG0", 1), latency("REG0", "REG2", 1)],
    macro_fusible_with=["JNB (Rel8)", "JZ (Rel32)"],
)
UPDATE = record(
    "ADD (M64, R64)",
    {"0156": 1, "23": 2, "4": 1},
    [operand("MEM0", "mem", "rw"), operand("REG0", "reg", "r"), operand("REG1", "flags", "w")],
    [
        latency("MEM0", "MEM0", 1, cycles_addr=9, cycles_mem=6),
        latency("MEM0", "REG1", 1, cycles_addr=6, cycles_mem=5),
        latency("REG0", "MEM0", 5),
        latency("REG0", "REG1", 1),
    ],
)
MOVE = record(
    "MOV_89 (R64, R64)",
    {},
    [operand("REG0", "reg", "w"), operand("REG1", "reg", "r")],
    [latency("REG1", "REG0", 0, cycles_same_reg=1)],
    variants={"same_reg": {"uops": 1, "ports": {"0156": 1}}},
)
XOR = record(
    "XOR_31 (R64, R64)",
    {"0156": 1},
    ADD["operands"],
    [latency("REG0", "REG0", 1, cycles_same_reg=0), latency("REG1", "REG0", 1, cycles_same_reg=0)],
    variants={"same_reg": {"uops": 0, "ports": {}}},
)
MULTIPLY = record(
    "MUL (R64)",
    {"1": 1, "5": 1},
    [operand("REG0", "reg", "r"), operand("REG1", "reg", "rw"), operand("REG2", "reg", "w")],
    [latency("REG0", "REG1", 3), latency("REG0", "REG2", 4), latency("REG1", "REG1", 3)],
)
DIVIDE = record(
    "VDIVPD (YMM, YMM, M256)",
    {"0": 1, "23": 1},
    [operand("REG0", "reg", "w"), operand("REG1", "reg", "r"), operand("MEM0", "mem", "r")],
    [latency("REG1", "REG0", 20), latency("MEM0", "REG0", 1)],
    div_cycles=16,
)


def imported(folder: Path, *records: dict[str, Any], name: str = "XYZ") -> dict[str, InstructionData]:
    """Rows by form of the table that these records make."""
    pack = folder / "uops" / "X.jsonl.gz"
    pack.parent.mkdir(exist_ok=True)
    with gzip.open(pack, "wt") as file:
        file.writelines(json.dumps(item) + "\n" for item in records)
    text, _ = import_uops(pack, name)
    path = folder / "X.txt"
    path.write_text(text)
    table = InstructionTable(path, load_parameters("SKL"))
    rows = {form: table.row(form) for form in table.forms()}
    return {form: row for form, row in rows.items() if row is not None}


@pytest.mark.parametrize(
    ("string", "form"),
    [
        ("ADD_01 (R64, R64)", "add r64,r64"),
        ("ADD (R64, 0)", "add r64,i8 [0]"),
        ("ADD_LOCK (M64, I8)", "lock add m64,i8"),
        ("CMOVNBE (R32, M32)", "cmova r32,m32"),
        ("JNZ (Rel8)", "jne rel"),
        ("JNP (Rel32)", "jnp rel"),
        ("LEA_B_IS_D8 (R64)", "lea r64,m [b+i*s+d]"),
        ("LEAVE", "leave"),
        ("MOVSD_XMM_0F10 (XMM, XMM)", "movsd xmm,xmm"),
        ("MOVSQ_REPE", "rep movsq"),
        ("SHL (R64, CL)", "shl r64,cl"),
        ("SHL_R4 (R8h, 1)", "shl r8h,1"),
        ("XCHG (R64, RAX)", "xchg r64,r64"),
        ("VGATHERDPD (YMM, VSIB_XMM, YMM)", "vgatherdpd ymm,vsib_xmm,ymm"),
        ("CALL_NEAR (Rel32)", "call rel"),
        ("SETNLE (R8l)", "setg r8"),
    ],
)
def test_forms_of_strings(string: str, form: str) -> None:
    name = form_name(string)
    assert name is not None
    assert name.form == form


def test_loads_name_their_data_paths_and_stores_do_not(tmp_path: Path) -> None:
    rows = imported(tmp_path, LOAD, STORE)
    assert rows["mov r64,m64"].ports == (PortUse(("2", "3"), 1), PortUse(("2D", "3D"), 1))
    assert rows["mov m64,r64"].ports == (PortUse(("2", "3", "7"), 1), PortUse(("4",), 1))
    assert rows["mov m64,r64 [indexed]"].ports == (PortUse(("2", "3"), 1), PortUse(("4",), 1))


def test_a_read_modify_write_loads_once(tmp_path: Path) -> None:
    row = imported(tmp_path, LOAD, STORE, ADD, UPDATE)["add m64,r64"]
    assert PortUse(("2", "3"), 2) in row.ports
    assert PortUse(("2D", "3D"), 1) in row.ports
    assert [row.latencies.get(pair, row.default_latency) for pair in (("1", "M0"), ("M0", "M0"))] == [1, 1]


def test_a_plain_store_adds_nothing_to_store_forwarding(tmp_path: Path) -> None:
    row = imported(tmp_path, LOAD, STORE)["mov m64,r64"]
    assert row.latencies.get(("1", "M0"), row.default_latency) == 0


@pytest.mark.parametrize(("name", "cycles"), [("SNB", 23), ("HSW", 19), ("SKL", 18), ("RWC", 18), ("GLC", 18)])
def test_a_locked_addition_waits_for_itself_as_long_as_instlatx64_reads(name: str, cycles: int) -> None:
    """A chain of `lock add` through one place takes its round trip, without the cycle that other round trips lack."""
    parameters = load_parameters(name)
    row = InstructionTable.open(parameters).row("lock add m64,r64")
    assert row is not None
    assert row.latencies["M0", "M0"] + parameters.store_forward_latency == cycles


def test_a_round_trip_of_a_locked_instruction_is_taken_as_measured(tmp_path: Path) -> None:
    trips = [latency("MEM0", "MEM0", 1, cycles_addr=29, cycles_mem=18), latency("REG0", "MEM0", 28)]
    locked = {**UPDATE, "string": "ADD_LOCK (M64, R64)", "latencies": trips}
    row = imported(tmp_path, LOAD, STORE, locked)["lock add m64,r64"]  # data are forwarded in 5 cycles there
    assert [row.latencies.get(pair, row.default_latency) for pair in (("M0", "M0"), ("1", "M0"))] == [13, 23]


def test_an_eliminated_move_keeps_its_executed_form(tmp_path: Path) -> None:
    row = imported(tmp_path, MOVE)["mov r64,r64"]
    assert (row.eliminated, row.uops, row.ports) == (True, 1, (PortUse(("0", "1", "5", "6"), 1),))
    assert (row.default_latency, row.breaks_dependency) == (1, "no")


def test_idioms_fusion_and_implicit_registers(tmp_path: Path) -> None:
    rows = imported(tmp_path, ADD, XOR, MULTIPLY)
    assert (rows["add r64,r64"].breaks_dependency, rows["xor r64,r64"].breaks_dependency) == ("no", "zero")
    assert rows["add r64,r64"].front_end is not None
    assert rows["add r64,r64"].front_end.fusible_with == ("jae", "je")
    product = rows["mul r64"]
    assert product.latencies.get(("0", "rdx")) == 4
    assert product.latencies.get(("rax", "rax"), product.default_latency) == 3


def test_a_divider_is_a_pipeline_and_its_missing_load_latency_is_composed(tmp_path: Path) -> None:
    vector_load = {**LOAD, "string": "VMOVAPS (YMM, M256)"}
    row = imported(tmp_path, vector_load, DIVIDE)["vdivpd ymm,ymm,m256"]
    assert PortUse(("0DV",), 16) in row.ports
    assert row.latencies["A2", "0"] == 25
    readings = tmp_path / "latency-throughput" / "snb.csv"
    readings.parent.mkdir()
    readings.write_text(
        'isa,form,latency_cycles,reciprocal_throughput_cycles\nAVX,"{VEX}  VDIVPD ymm, ymm, ymm",45.5,44.08\n'
    )
    rows = imported(tmp_path, vector_load, DIVIDE, name="SNB")
    usual = rows["vdivpd ymm,ymm,m256"]
    assert usual == replace(rows["vdivpd ymm,ymm,m256 [full]"], form=usual.form)
    easy = InstructionTable(tmp_path / "X.txt", load_parameters("SNB"), "easy").row("vdivpd ymm,ymm,m256")
    assert easy is not None
    assert PortUse(("0DV",), 16) in easy.ports
    assert easy.full == usual
    assert {PortUse(("2D", "3D"), 2), PortUse(("0DV",), 44)} <= set(usual.ports)
    assert (usual.default_latency, usual.latencies["A2", "0"]) == (46, 51)


def test_a_divider_is_busy_as_long_as_the_next_division_waits(tmp_path: Path) -> None:
    """Sandy Bridge counts 3 cycles of its divider for a division that is measured every 10."""
    row = imported(tmp_path, {**DIVIDE, "div_cycles": 3, "tp": 10.0})["vdivpd ymm,ymm,m256"]
    assert PortUse(("0DV",), 10) in row.ports
    assert row.throughput is None


def test_nothing_waits_for_a_non_temporal_store(tmp_path: Path) -> None:
    store = {**STORE, "string": "MOVNTI (M64, R64)", "latencies": [latency("REG0", "MEM0", 350)]}
    row = imported(tmp_path, LOAD, store)["movnti m64,r64"]
    assert row.latencies.get(("1", "M0"), row.default_latency) == 0


def test_bad_packs_are_named(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    with pytest.raises(InstructionTableError, match=r"x\.jsonl"):
        import_uops(file, "SKL")
    file.write_text("{}\n")
    with pytest.raises(InstructionTableError, match=r"x\.jsonl:1: cannot be read as records"):
        import_uops(file, "SKL")
    file.write_text(json.dumps(record("NOP", {}, [], [])) + "\n")
    with pytest.raises(InstructionTableError, match="no port usage"):
        import_uops(file, "NEW")
    with pytest.raises(InstructionTableError, match="ZEN9 is no Zen core"):
        import_uops(file, "ZEN9")


def test_readings_of_instlatx64(tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    lines = (
        "# CPU: x",
        "isa,form,latency_cycles,reciprocal_throughput_cycles",
        'AVX512F,"VADDPD zmm, zmm, zmm",4.0,0.50',
        'AVX512F,"VPXORD zmm1, zmm1, zmm1",0.2,0.24',
        'AVX512BW,"KMOVQ k, r64 + KMOVQ r64, k",4.0,1.00',
        'AVX512F,"VGATHERDPD zmm {k}, [ym32] + KMOVW",22.90,2.994',
        'AVX2,"VGATHERDPD ymm, [xm32], ymm",23.07,1.993',
        'AVX512F,"VSCATTERDPD [ym32] {k}, zmm + KMOVW",,7.967',
        'SSE,"MOVD r32, xmm + MOVD xmm, r32",4.0,1.00',
        'AVX512F,"VALIGND zmm, zmm, zmm, imm8",3.0,1.00',
        'X86,"MOV [m32], r32",,1.00',
    )
    file.write_text("\n".join(lines) + "\n")
    assert read_instlatx64(file) == {
        "vaddpd zmm,zmm,zmm": Reading(4.0, 0.5),
        "kmovq k,r64 and back": Reading(4.0, 1.0),
        "vgatherdpd zmm{k},vsib_ymm": Reading(22.9, 2.994),
        "vgatherdpd ymm,vsib_xmm,ymm": Reading(23.07, 1.993),
        "vscatterdpd vsib_ymm{k},zmm": Reading(None, 7.967),
        "valignd zmm,zmm,zmm,i8": Reading(3.0, 1.0),
        "mov m32,r32": Reading(None, 1.0),
    }
    with pytest.raises(InstructionTableError, match=r"none\.csv"):
        read_instlatx64(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("add r64,r64", "add rcx, rbx"),
        ("lea r64,m [b+i*s+d]", "lea rcx, [rsi+rdx*4+64]"),
        ("vaddpd zmm{kz},zmm,m64b", "vaddpd zmm1{k5}{z}, zmm2, qword ptr [rsi]{1to8}"),
        ("vscatterdpd vsib_ymm{k},zmm", "vscatterdpd [rsi+ymm9*4]{k5}, zmm1"),
        ("add r64,i8 [0]", None),
        ("lock add m64,r64", None),
    ],
)
def test_assembly_of_forms(form: str, line: str | None) -> None:
    assert assembly_line(form) == line


GROUPS = tuple(tuple(group) for group in ("0", "1", "5", "6", "01", "05", "06", "15", "015", "0156"))


@given(st.lists(st.sampled_from(GROUPS), min_size=1, max_size=4))
def test_port_groups_explain_the_pressure_they_are_read_from(chosen: list[tuple[str, ...]]) -> None:
    usage: dict[str, float] = {}
    for group in chosen:
        for port in group:
            usage[port] = usage.get(port, 0.0) + 1 / len(group)
    found = port_groups(usage, any_of=GROUPS)
    again: dict[str, float] = {}
    for use in found:
        for port in use.ports:
            again[port] = again.get(port, 0.0) + use.cycles / len(use.ports)
    assert again == pytest.approx(usage)
    assert sum(use.cycles for use in found) == pytest.approx(len(chosen))


@needs_llvm
def test_costs_of_llvm() -> None:
    costs = instruction_costs("znver2", ("add r64,r64", "bogus r64", "vdivpd zmm,zmm,zmm", "imul r64,r64"))
    assert set(costs) == {"add r64,r64", "imul r64,r64"}
    assert costs["add r64,r64"].uops == 1
    assert len(port_groups(costs["add r64,r64"].usage)[0].ports) == 4


@pytest.mark.thorough
@needs_data
@needs_llvm
@pytest.mark.parametrize("name", ["SNB", "KBL", "SKX", "GLC", "ZEN4"])
def test_the_carried_table_is_what_the_pack_gives(name: str) -> None:
    header = (DATA / f"{name}.txt").read_text(encoding="utf-8").partition("#!")[0]
    if "LLVM" in header and f" {llvm_version()}," not in header:
        pytest.skip(f"the table was built with another release than {llvm_version()}")
    text, report = import_uops(SHARED, name)
    assert text == (DATA / f"{name}.txt").read_text(encoding="utf-8")
    assert report.coverage >= 0.95
    assert report.rows + report.merged + sum(map(len, report.left_out.values())) == report.records


def test_a_missing_pack_of_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InstructionTableError, match=r"SNB\.jsonl\.gz"):
        import_uops(tmp_path, "SNB")


def executed_ports(table: InstructionTable, block: tuple[Instruction, ...]) -> tuple[PortUse, ...]:
    """µops of a block as Facile counts them: zero idioms, eliminated moves and fused compares need no port."""
    uses: list[PortUse] = []
    rows = [table.lookup(instruction) for instruction in block]
    fused = {
        number for number, (row, branch) in enumerate(pairwise_rows(rows, block)) if fuses(row, block[number], branch)
    }
    for number, (row, instruction) in enumerate(zip(rows, block, strict=True)):
        assert row is not None, instruction.form
        row = row.indexed if row.indexed and any(memory.index for memory in instruction.memory) else row
        zero = instruction.same_register and row.breaks_dependency == "zero"
        registers = [item.register for item in instruction.operands]
        if zero or (row.eliminated and registers[0] != registers[1]):
            continue
        transfers = {"2", "3", "4", "7"}
        uses += [use for use in row.ports if number not in fused or transfers.issuperset(use.ports)]
    return tuple(use for use in uses if not use.ports[0].endswith(("D", "V")))


def pairwise_rows(
    rows: list[InstructionData | None], block: tuple[Instruction, ...]
) -> list[tuple[InstructionData | None, Instruction]]:
    return [(row, branch) for row, (_, branch) in zip(rows, pairwise(block), strict=False)]


def fuses(row: InstructionData | None, first: Instruction, branch: Instruction) -> bool:
    if row is None or row.front_end is None or branch.mnemonic not in row.front_end.fusible_with:
        return False
    kinds = {item.kind[0] for item in first.operands}
    return not (first.memory and "i" in kinds)


@pytest.mark.thorough
@needs_data
def test_ports_agree_with_facile_on_loops_of_numerical_kernels() -> None:
    path = SHARED / "oracle" / "hpc-loops-dev.csv.gz"
    tables: dict[str, InstructionTable] = {}
    with gzip.open(path, "rt") as file:
        loops = list(csv.DictReader(file))
    assert len(loops) > 400
    for loop in loops:
        table = tables.setdefault(loop["arch"], InstructionTable.open(load_parameters(loop["arch"])))
        block = decode_bytes(bytes.fromhex(loop["hex"])).instructions
        bound, _ = optimal_bound(executed_ports(table, block))
        assert bound == pytest.approx(float(loop["ports"]), abs=0.02), (loop["arch"], loop["kernel"], loop["hex"])


KERNELS = sorted((Path(__file__).parents[2] / "kernels").glob("*.c"))


@pytest.mark.thorough
@pytest.mark.needs("gcc")
@pytest.mark.parametrize(("name", "march"), [("SKX", "skylake-avx512"), ("ZEN2", "znver2")])
def test_every_instruction_of_the_kernels_is_known(tmp_path: Path, name: str, march: str) -> None:
    """One compiler and level; benchmarks/instruction_coverage.py takes all of them."""
    from io import BytesIO

    from elftools.elf.elffile import ELFFile

    table = InstructionTable.open(load_parameters(name))
    target = tmp_path / "kernel.o"
    unknown: set[str] = set()
    for kernel in KERNELS:
        command = ["gcc", "-w", "-O3", "-ffast-math", f"-march={march}", "-c", str(kernel), "-o", str(target)]
        subprocess.run(command, check=True, timeout=60)
        for section in ELFFile(BytesIO(target.read_bytes())).iter_sections():
            if section.name.startswith(".text"):
                block = decode_bytes(section.data()).instructions
                unknown.update(item.form for item in block if table.lookup(item) is None)
    assert not unknown
