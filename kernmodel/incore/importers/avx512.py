"""AVX-512 rows of Skylake-X and Cascade Lake: forms by iced-x86, ports by LLVM, latencies by LLVM and InstLatx64.

uops.info's pack holds no AVX-512 for these cores; all other rows are those of Skylake, whose core they share. The port
usages that uops.info gives for all three differ by scatter only: in locked and microcoded instructions, in pause, xlatb
and ret, and in some read-modify-writes whose ALU µop the reading of Cascade Lake lacks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from kernmodel.incore.importers.instlatx64 import Reading, read_instlatx64
from kernmodel.incore.importers.intel import INTEL_SOURCES, intel_rows
from kernmodel.incore.importers.llvm import Cost, instruction_costs, llvm_version, port_groups
from kernmodel.incore.importers.uops import ImportReport, table_header
from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables import table_text

if TYPE_CHECKING:
    from iced_x86 import Code_, OpCodeInfo

LLVM_CPU = "cascadelake"
MODEL = "LLVM's Skylake-X scheduling model (ports, µops, latency)"
MEASURED = MODEL + "; latency measured by InstLatx64 on a Xeon Platinum 8280"
SOURCES = {**INTEL_SOURCES, "l": MODEL, "lm": MEASURED}

FEATURES = frozenset({"AVX512F", "AVX512VL", "AVX512BW", "AVX512DQ", "AVX512CD", "AVX512_VNNI"})
_SHARED = "All other rows are Skylake's: uops.info's port usages of the three cores differ by measurement scatter only."
_GROUPS = tuple(tuple(group) for group in ("0", "1", "5", "6", "01", "05", "06", "15", "015", "0156"))
_MEMORY_GROUPS = (("2", "3"), ("2", "3", "7"))
_RESOURCE = re.compile(r"SKXPort(\d)|SKX(FPDivider|Divider)")
_REGISTER = re.compile(r"([RXYZK])(?:(\d+)|MM)?_.*")
_MASKED_MOVES = re.compile(r"vmov|vp?compress|vp?expand|vpmov")
_MASK = re.compile(r"\{kz?\}")
_LOADS = ("vmov", "vbroadcast", "vpbroadcast")
_MOVES = ("vmov", "vbroadcast", "vpbroadcast", "kmov")
_SPREAD = ("0", "1", "5")
"""Group that LLVM adds to every EVEX load as if it were masked; the VEX twins of uops.info show that plain ones have
none."""
_VECTOR_GROUPS = (("0", "1", "5"), ("0", "1"), ("1", "5"))
_ELIMINATED = re.compile(r"vmov(?:ap[sd]|up[sd]|dq[au]\d*) ([xyz]mm),\1")
"""Moves between different registers take 0.3 cycles in InstLatx64's readings of the server core."""
_SHORTEST_LATENCY = 0.75  # shorter readings are of eliminated instructions
_VECTOR_LOAD = 7  # cycles, LLVM's latency of a 512-bit load
_IDIOMS = re.compile(r"v(?:p?xor|p?andn|psub|pcmpgt)")


def server_table(pack: Path, readings: Path, store_forward: float | None) -> tuple[str, ImportReport]:
    """The text of the table of Skylake-X and Cascade Lake from Skylake's pack and InstLatx64 readings.

    Raises:
        InstructionTableError, ToolError: a pack is missing or malformed, llvm-mca is missing.
    """
    rows, report = intel_rows(pack, "SKX", store_forward, lambda _: read_instlatx64(readings))
    extra = avx512_rows({row.form: row for row in rows}, read_instlatx64(readings))
    return table_text(
        table_header("SKX and CLX", pack.name, report, *_inputs(readings)), [*rows, *extra], SOURCES
    ), report


def _inputs(readings: Path) -> tuple[str, str]:
    return f"AVX-512: {llvm_version()}, -mcpu={LLVM_CPU}; InstLatx64 readings {readings.name}.", _SHARED


def avx512_rows(base: Mapping[str, InstructionData], readings: Mapping[str, Reading]) -> tuple[InstructionData, ...]:
    """Rows of all AVX-512 forms that the base rows lack.

    Args:
        base: rows by form, for the front end of the 256-bit twins and the plain loads.
        readings: measured latencies by form.
    """
    forms = tuple(form for form in avx512_forms() if form not in base)
    costs = instruction_costs(LLVM_CPU, forms)
    return tuple(_row(form, costs, base, readings) for form in forms if form in costs)


@cache
def avx512_forms() -> tuple[str, ...]:
    """Keys of all forms of the AVX-512 subsets of these cores, masked where a mask changes the µops."""
    import iced_x86 as iced

    features = {number: name for name, number in vars(iced.CpuidFeature).items() if isinstance(number, int)}
    forms: dict[str, None] = {}
    for code in cast("list[Code_]", [code for code in vars(iced.Code).values() if isinstance(code, int)]):
        instruction = iced.Instruction()
        instruction.code = code
        needed = {features[number] for number in instruction.cpuid_features()}
        if needed and needed <= FEATURES:
            forms.update(dict.fromkeys(_forms_of(iced.OpCodeInfo(code))))
    return tuple(forms)


def _forms_of(info: OpCodeInfo) -> Iterator[str]:
    """Register, memory and broadcast forms of one of iced's opcodes."""
    import iced_x86 as iced

    kinds = _kind_names()
    names = [kinds[kind] for kind in info.op_kinds()]
    mnemonic = _mnemonics()[info.mnemonic]
    size = 8 * iced.MemorySizeExt.size(info.memory_size)
    element = 8 * iced.MemorySizeExt.size(info.broadcast_memory_size)
    variants = [[_register(name) or _memory(name, size) for name in names]]
    if any(name.endswith("_OR_MEM") for name in names):
        variants.append([_memory(name, size) if name.endswith("_OR_MEM") else _register(name) for name in names])
        if info.can_broadcast:
            one = f"m{element}b"
            variants.append([one if name.endswith("_OR_MEM") else _register(name) for name in names])
    for operands in variants:
        yield from _masked(mnemonic, operands, info)


def _masked(mnemonic: str, operands: list[str], info: OpCodeInfo) -> Iterator[str]:
    first, rest = operands[0], operands[1:]
    marks = [""]
    if info.require_op_mask_register:
        marks = ["{k}"]
    elif info.can_use_op_mask_register and _MASKED_MOVES.match(mnemonic):
        marks = ["", "{k}"] + ["{kz}"] * (first[0] != "m")
    for mark in marks:
        yield f"{mnemonic} {','.join((first + mark, *rest))}"


@cache
def _kind_names() -> dict[int, str]:
    import iced_x86 as iced

    return {number: name for name, number in vars(iced.OpCodeOperandKind).items() if isinstance(number, int)}


@cache
def _mnemonics() -> dict[int, str]:
    import iced_x86 as iced

    return {number: name.lower() for name, number in vars(iced.Mnemonic).items() if isinstance(number, int)}


def _register(name: str) -> str:
    """Operand kind of a register or immediate by iced's name ("XMM_OR_MEM", "R32_REG", "K_VVVV", "IMM8"), else ""."""
    if name.startswith("MEM"):
        return ""
    if name == "IMM8":
        return "i8"
    match = _REGISTER.fullmatch(name)
    if match is None:
        return name.lower()
    return {"R": f"r{match[2]}", "K": "k"}.get(match[1], f"{match[1].lower()}mm")


def _memory(name: str, size: int) -> str:
    """Operand kind of a memory operand: plain by its size in bits, or a vector of indices ("MEM_VSIB32Y")."""
    if name.startswith("MEM_VSIB"):
        return f"vsib_{name[-1].lower()}mm"
    return f"m{size}"


def _row(
    form: str, costs: Mapping[str, Cost], base: Mapping[str, InstructionData], readings: Mapping[str, Reading]
) -> InstructionData:
    cost = costs[form]
    plain = _MASK.sub("", form)
    latency, measured = _latency(plain, cost, costs, readings)
    position = _memory_position(plain)
    ports = _ports(cost)
    if form == plain and cost.loads and plain.startswith(_LOADS):
        ports = tuple(use for use in ports if use.ports != _SPREAD)
    ports = _closed_port(plain, ports)
    moves = position is not None and plain.startswith(_MOVES)
    default = 0.0 if moves else latency
    row = InstructionData(
        form=form,
        ports=ports,
        latencies=_latencies(cost, position, default),
        default_latency=default,
        uops=_uops(ports),
        throughput=None,
        breaks_dependency="zero" if _is_idiom(plain) else "no",
        eliminated=bool(_ELIMINATED.fullmatch(form)),
        front_end=None,
        indexed=None,
        source=MEASURED if measured and not moves else MODEL,
    )
    twin = base.get(_twin_name(plain)) if form == plain else None
    if twin is not None and twin.uops == row.uops:
        row = _as_twin(row, twin, cost)
    return _with_indexed(row, twin) if cost.stores else row


def _latency(form: str, cost: Cost, costs: Mapping[str, Cost], readings: Mapping[str, Reading]) -> tuple[float, bool]:
    """Latency between registers, and whether it is measured; a memory form has that of its register form."""
    inner = _register_form(form)
    reading = readings.get(inner)
    if reading is not None and reading.latency is not None and reading.latency >= _SHORTEST_LATENCY:
        return float(round(reading.latency)), True
    if inner in costs:
        return float(costs[inner].latency), False
    return 0.0 if cost.stores else float(cost.latency), False


def _as_twin(row: InstructionData, twin: InstructionData, cost: Cost) -> InstructionData:
    """The row with what its 256-bit or VEX twin has and LLVM has not: front end, indexed variant, store latencies."""
    if cost.stores:
        row = replace(row, latencies=twin.latencies, default_latency=twin.default_latency)
    row = replace(row, front_end=twin.front_end)
    if cost.stores or twin.indexed is None:
        return row
    return replace(row, indexed=replace(row, front_end=twin.indexed.front_end))


def _with_indexed(row: InstructionData, twin: InstructionData | None) -> InstructionData:
    """The row of a store with its indexed variant, whose address port 7 cannot form."""
    ports = tuple(PortUse(("2", "3"), use.cycles) if use.ports == ("2", "3", "7") else use for use in row.ports)
    if ports == row.ports:
        return row
    front = twin.indexed.front_end if row.front_end and twin is not None and twin.indexed else row.front_end
    return replace(row, indexed=replace(row, ports=ports, front_end=front))


def _twin_name(form: str) -> str:
    """The VEX form of at most 256 bits that does the same ("vmovdqu64 zmm,m512" is "vmovdqu ymm,m256")."""
    form = re.sub(r"^(vmovdq[au])(8|16|32|64) ", r"\1 ", form)
    return form.replace("zmm", "ymm").replace("m512", "m256")


def _uops(ports: tuple[PortUse, ...]) -> int:
    return round(sum(use.cycles for use in ports if not use.ports[0].endswith(("D", "V"))))


def _closed_port(form: str, ports: tuple[PortUse, ...]) -> tuple[PortUse, ...]:
    """Ports of a 512-bit instruction: vector µops do without port 1, which LLVM's groups still hold."""
    if "zmm" not in form:
        return ports
    return tuple(
        PortUse(tuple(port for port in use.ports if port != "1"), use.cycles) if use.ports in _VECTOR_GROUPS else use
        for use in ports
    )


def _is_idiom(form: str) -> bool:
    """Whether equal sources give zero at rename (as their VEX forms; Intel optimization manual, zero idioms)."""
    kinds = form.partition(" ")[2].split(",")
    return bool(_IDIOMS.match(form)) and len(kinds) == 3 and len(set(kinds)) == 1


def _memory_position(form: str) -> int | None:
    kinds = form.partition(" ")[2].split(",")
    return next((number for number, kind in enumerate(kinds) if re.fullmatch(r"m\d+b?|vsib_\w+", kind)), None)


def _register_form(form: str) -> str:
    """The form with a register in place of the memory operand, for its latency."""
    mnemonic, _, text = form.partition(" ")
    kinds = text.split(",")
    position = _memory_position(form)
    if position is None:
        return form
    register = {"m128": "xmm", "m256": "ymm", "m512": "zmm", "m64": "xmm", "m32": "xmm"}.get(kinds[position])
    register = "k" if mnemonic[0] == "k" else register
    if register is None:
        register = next((kind for kind in ("zmm", "ymm", "xmm") if kind in kinds), kinds[position])
    kinds[position] = register
    return f"{mnemonic} {','.join(kinds)}"


def _latencies(cost: Cost, position: int | None, default: float) -> dict[tuple[str, str], float]:
    """Latencies from the address and, where it is not the default, the data of the memory operand.

    LLVM's latency of a load runs from its address; a gather's data take what is left of it after a plain load.
    """
    if position is None or not cost.loads:
        return {}
    pairs = {(f"A{position}", "0"): float(cost.latency)}
    if default == cost.latency:
        pairs[f"M{position}", "0"] = max(cost.latency - _VECTOR_LOAD, 0.0)
    return pairs


def _ports(cost: Cost) -> tuple[PortUse, ...]:
    core: dict[str, float] = {}
    memory: dict[str, float] = {}
    uses: list[PortUse] = []
    for resource, cycles in cost.usage.items():
        match = _RESOURCE.fullmatch(resource)
        if match is None:
            continue
        if match[2]:
            uses.append(PortUse(("0DV",), float(cycles)))
        elif match[1] == "4":
            uses.append(PortUse(("4",), float(cycles)))
        else:
            (memory if match[1] in "237" else core)[match[1]] = cycles
    transfers = _transfers(memory)
    loads = [PortUse(("2D", "3D"), use.cycles) for use in transfers if use.ports == ("2", "3") and cost.loads]
    return (*port_groups(core, any_of=_GROUPS), *transfers, *loads, *sorted(uses, key=lambda use: use.ports))


def _transfers(memory: Mapping[str, float]) -> tuple[PortUse, ...]:
    """Loads and store addresses: port 7 takes a third of each store address, the rest of ports 2 and 3 are loads."""
    store = 3 * memory.get("7", 0.0)
    load = sum(memory.values()) - store
    pairs: Iterable[tuple[tuple[str, ...], float]] = zip(_MEMORY_GROUPS, (load, store), strict=True)
    return tuple(PortUse(group, float(round(cycles))) for group, cycles in pairs if cycles > 0.5)
