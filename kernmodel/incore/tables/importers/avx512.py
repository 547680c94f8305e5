"""AVX-512 rows of Intel cores: forms by iced-x86, ports by LLVM, latencies by LLVM and InstLatx64.

uops.info's packs at hand hold no AVX-512. What the models leave open or get wrong is set by rule: a plain EVEX load
takes no vector µop, 512-bit vector µops do without port 1, servers have a second 512-bit floating-point unit at port 5,
and 512-bit loads and stores take the wide load ports and both store-data ports.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, cast

from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables.importers.dividers import DIVIDES
from kernmodel.incore.tables.importers.instlatx64 import ROUND_TRIP, Reading
from kernmodel.incore.tables.importers.llvm import Cost, Model, instruction_costs, models, port_groups
from kernmodel.incore.tables.table import with_variants
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from iced_x86 import Code_, OpCodeInfo

_VEX_EXTENSIONS = frozenset({"GFNI", "VAES", "VPCLMULQDQ", "AVX_VNNI"})
"""Extensions whose VEX forms are wanted as well; those of plain AVX are in the packs."""
_CLOSED = frozenset({("0", "1", "5"), ("0", "1"), ("1", "5")})
"""Groups of vector ports, of which 512-bit µops take all but port 1 (Intel optimization manual, Skylake server)."""


@dataclass(frozen=True, slots=True)
class WideCore:
    """What the AVX-512 rows of an Intel core are made of.

    Attributes:
        model: LLVM's; features: the extensions of the core, by iced's names.
        server: the core has a 512-bit floating-point unit at port 5 that the model lacks.
        readings: measured latencies by form; measured_on: the CPU that was read.
    """

    model: Model
    features: frozenset[str]
    server: bool
    readings: Mapping[str, Reading]
    measured_on: str

    @property
    def source(self) -> str:
        """Source of a row that is the model's alone."""
        more = "; ports 0 and 5 for 512-bit floating-point, as on Skylake-X" if self.server else ""
        return f"{self.model.words} (ports, µops, latency){more}"

    @property
    def measured(self) -> str:
        """Source of a row with a measured latency."""
        return f"{self.source}; latency measured by InstLatx64 on {self.measured_on}"


_DIVIDER = re.compile(r"\w+(?:FPDivider|Divider)")
_REGISTER = re.compile(r"([RXYZK])(?:(\d+)|MM)?_.*")
_MASKED_MOVES = re.compile(r"vmov|vp?compress|vp?expand|vpmov")
_MASK = re.compile(r"\{kz?\}")
_LOADS = ("vmov", "vbroadcast", "vpbroadcast")
_MOVES = ("vmov", "vbroadcast", "vpbroadcast", "kmov")
_SPREADS = (("0", "1", "5"), ("0", "5"))
"""Groups that LLVM adds to every EVEX load as if it were masked; the VEX twins of uops.info show that plain ones have
none."""
_ELIMINATED = re.compile(r"vmov(?:ap[sd]|up[sd]|dq[au]\d*) ([xyz]mm),\1")
"""Moves between different registers take 0.3 cycles in InstLatx64's readings of the server core."""
_SHORTEST_LATENCY = 0.75  # shorter readings are of eliminated instructions
_WHOLE = 0.15  # a reading this near a whole number of cycles is that number; others keep one decimal
_VECTOR_LOAD = 7  # cycles, LLVM's latency of a 512-bit load
_VECTOR_PORTS = frozenset("015")
_CONVERSIONS = ("vcvt",)
_GATHERS = re.compile(r"vp?gather")
_SLOWER_THAN_PORTS = re.compile(r"vp?(?:gather|scatter)|rdrand|rdseed")
_TIMED = "; reciprocal throughput measured by InstLatx64 on "
_MERGED = "; front end, and latency from the register that it overwrites, of the VEX form (uops.info)"
_READ = "; latency measured by InstLatx64 on "
_UNMASKED = "; latency of the plain store, if all elements are stored (Intel optimization manual; longer if not)"
_TWIN = "; ports of the 256-bit form (uops.info), port 1 closed"
_INTO_MASK = re.compile(r"kmov[bwdq] k,r\d+")
_QUARTERS = 4
_MASKS = tuple(f"k{number}" for number in range(1, 8))
_IDIOMS = re.compile(r"v(?:p?xor|p?andn|psub|pcmpgt)")


def avx512_rows(base: Mapping[str, InstructionData], core: WideCore) -> tuple[InstructionData, ...]:
    """Rows of all AVX-512 forms that the base rows lack.

    Args:
        base: rows by form, for the front end of the 256-bit twins and the plain loads.
        core: what they are made of.

    Raises:
        ToolError: llvm-mca is missing or fails.
    """
    forms = tuple(form for form in avx512_forms(core.features) if form not in base)
    costs = instruction_costs(core.model.cpu, forms)
    costs.update({form: costs[other] for form in costs if (other := form.replace("vmovdqu8 ", "vmovdqu64 ")) in costs})
    inputs = _Inputs(costs, base, core, _twice_wide(forms) if core.server else frozenset())
    return tuple(_row(form, inputs) for form in forms if form in costs)


def with_times(rows: Iterable[InstructionData], readings: Mapping[str, Reading], cpu: str) -> Iterator[InstructionData]:
    """The rows, those of gathers, scatters and random numbers with the measured reciprocal throughput.

    The loads of a gather take the load ports for whole cycles: eight take 3.0 cycles on three ports (Alder Lake), four
    2.0; a scatter stores an element a cycle.
    """
    for row in rows:
        reading = readings.get(row.form) if _SLOWER_THAN_PORTS.match(row.form) else None
        if reading is None or reading.throughput is None:
            yield row
        else:
            yield with_variants(row, partial(_timed, round(reading.throughput * _QUARTERS) / _QUARTERS, cpu))


def _timed(cycles: float, cpu: str, row: InstructionData) -> InstructionData:
    return replace(row, throughput=cycles, source=f"{row.source}{_TIMED}{cpu}")


@dataclass(frozen=True, slots=True)
class _Inputs:
    """What rows are made of, and the 512-bit forms that the second floating-point unit executes."""

    costs: Mapping[str, Cost]
    base: Mapping[str, InstructionData]
    core: WideCore
    twice: frozenset[str]


def _twice_wide(forms: Iterable[str]) -> frozenset[str]:
    """The 512-bit forms with a µop on ports 0 and 5 of Skylake-X."""
    model = models()["cascadelake"]
    costs = instruction_costs(model.cpu, [form for form in forms if "zmm" in form])
    uses = {form: _closed_port(form, _ports(form, cost, model)) for form, cost in costs.items()}
    return frozenset(form for form in uses if any(use.ports == ("0", "5") for use in uses[form]))


@cache
def avx512_forms(wanted: frozenset[str]) -> tuple[str, ...]:
    """Keys of all forms of these CPUID features beyond AVX, masked where a mask changes the µops."""
    import iced_x86 as iced

    features = {number: name for name, number in vars(iced.CpuidFeature).items() if isinstance(number, int)}
    forms: dict[str, None] = {}
    for code in cast("list[Code_]", [code for code in vars(iced.Code).values() if isinstance(code, int)]):
        instruction = iced.Instruction()
        instruction.code = code
        needed = {features[number] for number in instruction.cpuid_features()}
        if needed <= wanted and any("AVX512" in name or name in _VEX_EXTENSIONS for name in needed):
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


def _row(form: str, inputs: _Inputs) -> InstructionData:
    cost, core = inputs.costs[form], inputs.core
    plain = whole_form(form)
    latency, measured = latency_of(plain, cost, inputs.costs, core.readings)
    position = memory_position(plain)
    ports = _refined(form, plain, cost, inputs)
    moves = position is not None and plain.startswith(_MOVES)
    default = 0.0 if moves else latency
    row = InstructionData(
        form=form,
        ports=ports,
        latencies=read_latencies(cost, position, default),
        default_latency=default,
        uops=_uops(ports, core.model),
        throughput=None,
        breaks_dependency="zero" if is_idiom(plain) else "no",
        eliminated=bool(_ELIMINATED.fullmatch(form)),
        front_end=None,
        indexed=None,
        source=core.measured if measured and not moves else core.source,
    )
    if _GATHERS.match(form):
        return _merging(row, inputs)
    if masked_load := form != plain and moves and cost.loads:
        row = replace(row, default_latency=1.0, latencies={**row.latencies, (f"M{position}", "0"): 1.0})
    twin = next((inputs.base[name] for name in _twin_names(plain) if name in inputs.base), None)
    if twin is not None and "zmm" in plain and not masked_load:
        row = _with_twins_ports(row, twin, core.model)
    if form != plain:
        row = _forwarding(row, twin) if twin is not None and plain.startswith("vmov") and cost.stores else row
        twin = None
    if twin is not None and twin.uops == row.uops:
        row = _as_twin(row, twin, cost)
    return _with_indexed(row, twin) if cost.stores else row


def _refined(form: str, plain: str, cost: Cost, inputs: _Inputs) -> tuple[PortUse, ...]:
    """Ports of LLVM's model with what it leaves open or gets wrong."""
    ports = _ports(plain, cost, inputs.core.model)
    if form == plain and cost.loads and plain.startswith(_LOADS):
        ports = tuple(use for use in ports if use.ports not in _SPREADS)
    ports = _closed_port(plain, ports)
    if plain not in inputs.twice:
        return ports
    return tuple(PortUse(("0", "5"), use.cycles) if use.ports == ("0",) else use for use in ports)


def whole_form(form: str) -> str:
    """The form without a mask."""
    return _MASK.sub("", form)


def latency_of(form: str, cost: Cost, costs: Mapping[str, Cost], readings: Mapping[str, Reading]) -> tuple[float, bool]:
    """Latency between registers, and whether it is measured; a memory form has that of its register form."""
    inner = in_registers(form)
    reading = readings.get(inner)
    trip = readings.get(form + ROUND_TRIP) if _INTO_MASK.fullmatch(form) else None
    back = costs.get(" ".join((form.partition(" ")[0], ",".join(reversed(form.partition(" ")[2].split(","))))))
    if trip is not None and trip.latency is not None and back is not None:
        return max(whole_cycles(trip.latency) - back.latency, 0.0), True
    if reading is not None and reading.latency is not None and reading.latency >= _SHORTEST_LATENCY:
        return whole_cycles(reading.latency), True
    if inner in costs:
        return float(costs[inner].latency), False
    return 0.0 if cost.stores else float(cost.latency), False


def whole_cycles(reading: float) -> float:
    """A measured latency as a whole number of cycles, where it is one within the error of the scaled clock."""
    nearest = float(round(reading))
    return nearest if abs(reading - nearest) <= max(_WHOLE, 0.02 * reading) else round(reading, 1)


def _merging(row: InstructionData, inputs: _Inputs) -> InstructionData:
    """The row of a gather, which merges into the register that it overwrites at its end, as its VEX form does.

    The mask that it leaves behind is 0 whatever comes, and waits for nothing (uops.info reads 0 to 1 cycles).

    Its loads leave the decoders as one µop, however many there are: five µops for four elements and for eight.
    """
    mnemonic, data, index = re.split("[ ,]", row.form.replace("{k}", "").replace("zmm", "ymm"))
    widths = (index, "vsib_xmm", "vsib_ymm")
    names = [f"{mnemonic} {data},{width},{data}" for width in widths]
    twin = next((inputs.base[name] for name in names if name in inputs.base), None)
    if twin is None:
        return row
    reading = inputs.core.readings.get(row.form)
    read = reading is not None and reading.latency is not None
    whole = whole_cycles(reading.latency) if reading and reading.latency is not None else row.default_latency
    pairs = {("0", "0"): twin.latencies.get(("0", "0"), twin.default_latency), ("A1", "0"): whole}
    pairs |= {("M1", "0"): whole - _VECTOR_LOAD, **{(mask, "0"): whole for mask in _MASKS}}
    source = row.source + _MERGED + (f"{_READ}{inputs.core.measured_on}" if read else "")
    return replace(row, default_latency=0.0, latencies=pairs, front_end=twin.front_end, source=source)


def _with_twins_ports(row: InstructionData, twin: InstructionData, model: Model) -> InstructionData:
    """The row with the vector ports of its 256-bit twin where LLVM counts other µops than were measured of that.

    Conversions take ports 0 and 5 where 256 bits take 0 and 1; shifts port 0.
    """
    mine, others = _vector_uses(row), _vector_uses(twin)
    if DIVIDES.match(row.form) or not others or _shape(mine) == _shape(others):
        return row
    both = ("0", "5") if row.form.startswith(_CONVERSIONS) else ("0",)
    closed = {("0", "1"): both, ("1", "5"): ("5",), ("0", "1", "5"): ("0", "5")}
    ports = tuple(PortUse(closed.get(use.ports, use.ports), use.cycles) for use in others)
    ports += tuple(use for use in row.ports if use not in mine)
    return replace(row, ports=ports, uops=_uops(ports, model), source=row.source + _TWIN)


def _vector_uses(row: InstructionData) -> tuple[PortUse, ...]:
    return tuple(use for use in row.ports if _VECTOR_PORTS.issuperset(use.ports))


def _shape(uses: Iterable[PortUse]) -> tuple[float, float]:
    """µops on vector ports, and those of them on port 5 alone."""
    uses = tuple(uses)
    return sum(use.cycles for use in uses), sum(use.cycles for use in uses if use.ports == ("5",))


def _as_twin(row: InstructionData, twin: InstructionData, cost: Cost) -> InstructionData:
    """The row with what its 256-bit or VEX twin has and LLVM has not: front end, indexed variant, store latencies."""
    if cost.stores:
        row = replace(row, latencies=twin.latencies, default_latency=twin.default_latency)
    row = replace(row, front_end=twin.front_end)
    if cost.stores or twin.indexed is None:
        return row
    return replace(row, indexed=replace(row, front_end=twin.indexed.front_end))


def _forwarding(row: InstructionData, twin: InstructionData) -> InstructionData:
    """A masked store with the latencies of the plain one: a load from there gets the data as soon if all elements are
    stored, and else not before they are in the cache (Intel optimization manual, forwarding and memory masking)."""
    return replace(row, latencies=twin.latencies, default_latency=twin.default_latency, source=row.source + _UNMASKED)


def _with_indexed(row: InstructionData, twin: InstructionData | None) -> InstructionData:
    """The row of a store with its indexed variant, whose address port 7 cannot form."""
    ports = tuple(PortUse(("2", "3"), use.cycles) if use.ports == ("2", "3", "7") else use for use in row.ports)
    if ports == row.ports:
        return row
    front = twin.indexed.front_end if row.front_end and twin is not None and twin.indexed else row.front_end
    return replace(row, indexed=replace(row, ports=ports, front_end=front))


def _twin_names(form: str) -> Iterator[str]:
    """The VEX forms of at most 256 bits that do the same ("vmovdqu64 zmm,m512" is "vmovdqu ymm,m256").

    Where the widths of the operands differ, all are halved ("vcvtps2pd zmm,m256" is "vcvtps2pd ymm,m128").
    """
    form = re.sub(r"^(vmovdq[au])(8|16|32|64) ", r"\1 ", form)
    yield form.replace("zmm", "ymm").replace("m512", "m256")
    if "zmm" in form:
        halves = {"zmm": "ymm", "ymm": "xmm", "m512": "m256", "m256": "m128"}
        yield re.sub("zmm|ymm|m512|m256", lambda found: halves[found[0]], form)


def _uops(ports: tuple[PortUse, ...], model: Model) -> int:
    """µops of the ports; the second half of a 512-bit store's data is none."""
    data = sum(use.cycles for use in ports if use.ports == model.data)
    addresses = sum(use.cycles for use in ports if use.ports == model.addresses)
    count = sum(use.cycles for use in ports if not use.ports[0].endswith(("D", "V")))
    return round(count - (data - addresses if len(model.data) > 1 and data > addresses > 0 else 0))


def _closed_port(form: str, ports: tuple[PortUse, ...]) -> tuple[PortUse, ...]:
    """Ports of a 512-bit instruction: vector µops do without port 1, which LLVM's groups still hold."""
    if "zmm" not in form:
        return ports
    return tuple(
        PortUse(tuple(port for port in use.ports if port != "1"), use.cycles) if use.ports in _CLOSED else use
        for use in ports
    )


def is_idiom(form: str) -> bool:
    """Whether equal sources give zero at rename (as their VEX forms; Intel optimization manual, zero idioms)."""
    kinds = form.partition(" ")[2].split(",")
    return bool(_IDIOMS.match(form)) and len(kinds) == 3 and len(set(kinds)) == 1


def memory_position(form: str) -> int | None:
    """Number of the memory operand of a form, None without one."""
    kinds = form.partition(" ")[2].split(",")
    return next((number for number, kind in enumerate(kinds) if re.fullmatch(r"m\d+b?|vsib_\w+", kind)), None)


def in_registers(form: str) -> str:
    """The form with a register in place of the memory operand, for its latency."""
    mnemonic, _, text = form.partition(" ")
    kinds = text.split(",")
    position = memory_position(form)
    if position is None:
        return form
    register = {"m128": "xmm", "m256": "ymm", "m512": "zmm", "m64": "xmm", "m32": "xmm"}.get(kinds[position])
    register = "k" if mnemonic[0] == "k" else register
    if register is None:
        register = next((kind for kind in ("zmm", "ymm", "xmm") if kind in kinds), kinds[position])
    kinds[position] = register
    return f"{mnemonic} {','.join(kinds)}"


def read_latencies(
    cost: Cost, position: int | None, default: float, load: float = _VECTOR_LOAD
) -> dict[tuple[str, str], float]:
    """Latencies from the address and, where it is not the default, the data of the memory operand.

    LLVM's latency of a load runs from its address; a gather's data take what is left of it after a plain load.
    """
    if position is None or not cost.loads:
        return {}
    whole = float(cost.latency) if cost.latency >= load else load + default  # LLVM's comparisons forget the load
    pairs = {(f"A{position}", "0"): whole}
    if default == cost.latency >= load:
        pairs[f"M{position}", "0"] = max(cost.latency - load, 0.0)
    return pairs


def _ports(form: str, cost: Cost, model: Model) -> tuple[PortUse, ...]:
    found = dict(model.ports(cost))
    data = sum(found.pop(port, 0.0) for port in model.data)
    memory = {port: cycles for port, cycles in found.items() if port in {*model.loads, *model.addresses}}
    core = {port: cycles for port, cycles in found.items() if port not in memory}
    busy = sum(cycles for resource, cycles in cost.usage.items() if _DIVIDER.fullmatch(resource))
    return (
        *port_groups(core, any_of=map(tuple, model.groups)),
        *_transfers(form, memory, data, cost, model),
        *((PortUse(("0DV",), busy),) if busy else ()),
    )


def _transfers(form: str, memory: Mapping[str, float], data: float, cost: Cost, model: Model) -> tuple[PortUse, ...]:
    """Loads, store addresses and store data, and the load data paths.

    Where loads share their ports with store addresses (Skylake), a third of each store address is on port 7.
    """
    own = [port for port in model.addresses if port not in model.loads]
    each = len(model.addresses) / len(own)
    addresses = each * sum(memory.get(port, 0.0) for port in own)
    loads = sum(memory.values()) - addresses
    wide = any(kind == "m512" for kind in re.split("[ ,]", form))
    load_ports = model.wide_loads if wide else model.loads
    uses = [
        PortUse(load_ports, float(round(loads))),
        PortUse(model.addresses, float(round(addresses))),
        PortUse(model.data, float(round(data)) * (len(model.data) if wide else 1)),
        PortUse(tuple(port + "D" for port in load_ports), float(round(loads)) if cost.loads else 0.0),
    ]
    return tuple(use for use in uses if use.cycles > 0.5)
