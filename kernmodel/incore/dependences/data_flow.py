"""What one instruction makes of the values it reads: the vertices and edges that it brings to a dependency graph.

A resource is a place that carries a value from instruction to instruction: a full register ("rax", "zmm0", "k1"), a
high byte where the core renames it apart ("rax.h"), or a flag by its letter. All here depends on the instruction,
its table row and the core only, so that it can be made once and used for every block that holds the instruction.
"""

from __future__ import annotations

from typing import Literal

from kernmodel.incore.model import InstructionData, Parameters
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction, MemoryReference, Operand
from kernmodel.isa.protocol import Isa
from kernmodel.value_types import NamedTuple, dataclass

Syntax = Literal["att", "intel"]

HIGH = ".h"
"""Marks the resource of a high byte (ah is "rax.h") on cores that rename it apart."""


Carrier = str | MemoryReference
"""Where a value is: a register or flags by name ("zmm0", "flags", "carry flag"), or memory."""


class DataFlow(NamedTuple):
    """The values that one instruction loads and produces, loaded ones first; elsewhere they are named by their number.

    Attributes:
        carriers: per value, where it is.
        entry: per value, cycles after the start of a pass at which it is ready where nothing feeds it.
        waits: (value, resource that it is made of, cycles from there).
        inner: (loaded value, value that is made of it, cycles from there).
        gives: (resources, value that they hold from then on).
        latency: the longest from a source to a register or to flags, the load included, cycles; 0 for stores.
        special: what more there is to it, None if nothing.
    """

    carriers: tuple[Carrier, ...]
    entry: tuple[float, ...]
    waits: tuple[tuple[int, str, float], ...]
    inner: tuple[tuple[int, int, float], ...]
    gives: tuple[tuple[tuple[str, ...], int], ...]
    latency: float
    special: Special | None


class Special(NamedTuple):
    """What an instruction has to do with memory and the stack.

    Attributes:
        loads: (number of the memory reference, cycles from the slowest address register) of each loaded value.
        stores: (number of the memory reference, value).
        uses_stack: whether any of the next three holds.
        moves_stack: the stack engine changes rsp for it.
        reads_stack, writes_stack: it uses rsp itself, so that the core has to bring in what the stack engine keeps.
        pointer: the value that can be the base of a fast pointer load: loaded, or copied if `copies`; None if none.
        copies: whether a move hands on what it is given at rename.
        saves: cycles that its load takes less if its base is such a pointer.
    """

    loads: tuple[tuple[int, float], ...]
    stores: tuple[tuple[int, int], ...]
    uses_stack: bool
    moves_stack: bool
    reads_stack: bool
    writes_stack: bool
    pointer: int | None
    copies: bool
    saves: float


@dataclass(frozen=True, slots=True)
class DataFlowFigures:
    """What the data flow of instructions depends on beside their rows.

    Attributes:
        load_latency: of a general-purpose load from L1, cycles.
        pointer_saving: cycles that a load saves whose base was just loaded; 0 for none.
        pointer_reach: bytes below which its displacement must be, None for any.
        scaled_index: cycles that a load into a general-purpose register takes longer if its index is scaled.
        high_bytes_apart: whether ah, bh, ch and dh are renamed apart from their registers.
        false_dependencies: mnemonics that wait for the register they overwrite.
        stores_take_time: whether the latency from the data to a store counts (Facile counts that of the load only).
    """

    load_latency: float
    pointer_saving: float
    pointer_reach: int | None
    high_bytes_apart: bool
    false_dependencies: frozenset[str]
    stores_take_time: bool = True
    scaled_index: float = 0.0


def data_flow_figures(parameters: Parameters) -> DataFlowFigures:
    """The figures of a core."""
    loads, registers = parameters.loads, parameters.registers
    saving = max(0.0, parameters.load_latency - (loads.pointer_latency or 0.0)) if loads.pointer_chasing else 0.0
    return DataFlowFigures(
        load_latency=parameters.load_latency,
        pointer_saving=saving,
        pointer_reach=loads.pointer_reach,
        high_bytes_apart=registers.high_bytes_apart,
        false_dependencies=frozenset(registers.false_dependencies),
        scaled_index=loads.scaled_index,
    )


def is_idiom(instruction: Instruction, data: InstructionData) -> bool:
    """Whether the core knows that the result does not depend on the register it is made of (xor eax,eax)."""
    return instruction.same_register and data.breaks_dependency != "no"


def is_eliminated_move(instruction: Instruction, data: InstructionData) -> bool:
    """Whether the core can do this move at rename; not from a register to itself."""
    return data.eliminated and len({operand.register for operand in instruction.operands}) > 1


def data_flow(instruction: Instruction, row: InstructionData | None, figures: DataFlowFigures) -> DataFlow:
    """The data flow of an instruction.

    Args:
        instruction: the instruction.
        row: its table row (the indexed variant where it applies), None if unknown: it passes values on in 0 cycles.
        figures: of the core.
    """
    targets = targets_of(instruction, row, figures)
    loads = _loads(instruction, row, figures, [key for key, _, _ in targets]) if instruction.memory else []
    carriers: list[Carrier] = [instruction.memory[load.place] for load in loads]
    waits = [(number, register, cycles) for number, load in enumerate(loads) for register, cycles in load.waits.items()]
    inner: list[tuple[int, int, float]] = []
    gives: list[tuple[tuple[str, ...], int]] = []
    entry = [0.0] * len(loads)
    longest = 0.0
    sources = sources_of(instruction, row, figures) if targets else []
    for number, (key, carrier, given) in enumerate(targets, len(loads)):
        result = _result(instruction, row, key, sources, loads, figures)
        waits += [(number, resource, cycles) for resource, cycles in result.waits.items()]
        inner += [(load, number, cycles) for load, cycles in enumerate(result.loads)]
        entry.append(result.entry)
        carriers.append(carrier)
        if not isinstance(given, int):
            gives.append((given, number))
            longest = max(longest, result.latency)
    special = _special(instruction, row, targets, loads, figures)
    return DataFlow(tuple(carriers), tuple(entry), tuple(waits), tuple(inner), tuple(gives), longest, special)


Target = tuple[str, Carrier, tuple[str, ...] | int]
"""Latency key, carrier and resources of a result; a store has the number of its memory reference for resources."""


def _special(
    instruction: Instruction,
    row: InstructionData | None,
    targets: list[Target],
    loads: list[_Load],
    figures: DataFlowFigures,
) -> Special | None:
    isa = isa_of(instruction.isa)
    moves, reads, writes = isa.stack_use(instruction)
    copies = row is not None and row.eliminated and is_eliminated_move(instruction, row)
    memory = instruction.memory
    if not (memory or moves or reads or writes or copies):
        return None
    pointer = len(loads) if copies or (loads and isa.loads_pointer(instruction)) else None
    near = (
        bool(loads)
        and figures.pointer_saving > 0.0
        and is_simple_load(instruction, instruction.memory[0], figures.pointer_reach)
    )
    return Special(
        tuple([(load.place, load.latency) for load in loads]),
        tuple([(place, n) for n, (_, _, place) in enumerate(targets, len(loads)) if isinstance(place, int)]),
        moves or reads or writes,
        moves,
        reads,
        writes,
        pointer,
        copies,
        figures.pointer_saving if near else 0.0,
    )


class _Load(NamedTuple):
    """A load: its latency key, the number of the memory reference, cycles by address register, the most of them."""

    key: str
    place: int
    waits: dict[str, float]
    latency: float


class _Result(NamedTuple):
    """What a result waits for: cycles by resource and by load; when it is ready if for nothing; the longest of all."""

    waits: dict[str, float]
    loads: list[float]
    entry: float
    latency: float


def _result(
    instruction: Instruction,
    row: InstructionData | None,
    key: str,
    sources: list[tuple[str, str]],
    loads: list[_Load],
    figures: DataFlowFigures,
) -> _Result:
    """What the result with this latency key waits for."""
    instant = key[0] == "M" and not figures.stores_take_time and all(load.key != key for load in loads)
    if key in advanced_pointers(instruction):  # the pointer waits for nothing but itself
        sources, loads = [(key, key)], []
    elif clears_mask(instruction, key):
        sources, loads = [], []
    waits: dict[str, float] = {}
    for source, resource in sources:
        if not source or instant:
            waits.setdefault(resource, 0.0)
        elif not is_independent(instruction, row, source, key, figures):
            waits[resource] = max(waits.get(resource, 0.0), latency_of(row, source, key))
    fed = [latency_of(row, load.key, key) for load in loads]
    if not sources and not loads and row is not None and not is_idiom(instruction, row):
        return _Result(waits, fed, row.default_latency, row.default_latency)
    longest = max(waits.values(), default=0.0)
    for load, cycles in zip(loads, fed, strict=True):
        longest = max(longest, load.latency + cycles)
    return _Result(waits, fed, 0.0, longest)


def clears_mask(instruction: Instruction, target: str) -> bool:
    """Whether the target is the mask of a gather or scatter, which ends as 0 whatever comes and waits for nothing.

    uops.info reads 0 to 1 cycles to the masks of VEX gathers.
    """
    return instruction.has_mask and target in instruction.implicit_writes


def is_independent(
    instruction: Instruction, row: InstructionData | None, source: str, target: str, figures: DataFlowFigures
) -> bool:
    """Whether the result was measured not to wait for the source: 0 cycles where the instruction executes.

    So variable shifts do not wait for the flags that they keep if the count is 0. A high byte merges into its register
    where it is not renamed apart, whatever the row of another core says.
    """
    isa = isa_of(instruction.isa)
    if row is None or target[0] == "M" or source in isa.registers.advanced or _listed(row, source, target) != 0.0:
        return False
    if figures.high_bytes_apart or source != target or not source.isdigit():
        return True
    return isa.part_of_register(instruction.operands[int(source)]) != "high byte"


def _loads(
    instruction: Instruction, row: InstructionData | None, figures: DataFlowFigures, targets: list[str]
) -> list[_Load]:
    """What the instruction loads."""
    loads = []
    program_counter = isa_of(instruction.isa).registers.program_counter
    for place, reference in enumerate(instruction.memory):
        if not reference.read:
            continue
        key = operand_key(instruction, reference)
        waits: dict[str, float] = {}
        slowest = 0.0
        scaled = scaled_index(instruction, reference, figures)
        for source, register in address_registers(key, reference) or [("A" + key, program_counter)]:
            latency = _load_latency(row, source, "M" + key, targets, figures) + scaled
            waits[register] = max(latency, waits.get(register, 0.0))
            slowest = max(slowest, latency)
        loads.append(_Load("M" + key, place, waits, slowest))
    return loads


def scaled_index(instruction: Instruction, reference: MemoryReference, figures: DataFlowFigures) -> float:
    """Cycles that a load takes longer since its index is scaled."""
    return figures.scaled_index if reference.scale > 1 and not _has_vector(instruction) else 0.0


def _has_vector(instruction: Instruction) -> bool:
    kind_class = isa_of(instruction.isa).kind_class
    return any(kind_class(operand.kind) in ("vector", "mask") for operand in instruction.operands)


def _load_latency(
    row: InstructionData | None, address: str, data: str, targets: list[str], figures: DataFlowFigures
) -> float:
    """Cycles from an address register to the loaded data: what an address takes longer than data in memory."""
    if row is None:
        return 0.0
    listed = row.latencies
    known = [listed[address, t] - latency_of(row, data, t) for t in targets if (address, t) in listed]
    return max(0.0, *known) if known else figures.load_latency


def advanced_pointers(instruction: Instruction) -> frozenset[str]:
    """Pointers that push, pop and string instructions advance: they wait for nothing but themselves."""
    if not instruction.implicit_writes or not instruction.memory:
        return frozenset()
    return isa_of(instruction.isa).registers.advanced.intersection(instruction.implicit_writes)


def is_simple_load(instruction: Instruction, reference: MemoryReference, reach: int | None) -> bool:
    """Whether a general-purpose instruction loads from a base register and a displacement below `reach` bytes."""
    simple = reference.base is not None and reference.index is None and reference.symbol is None
    near = reference.displacement >= 0 and (reach is None or reference.displacement < reach)
    return simple and near and not instruction.vector_bytes


def operand_key(instruction: Instruction, reference: MemoryReference) -> str:
    """The number of the explicit operand that the reference belongs to, "" for implicit ones."""
    for number, operand in enumerate(instruction.operands):
        if operand.memory is reference or (operand.memory is not None and operand.memory == reference):
            return str(number)
    return ""


def address_registers(key: str, reference: MemoryReference) -> list[tuple[str, str]]:
    """Address registers with their latency keys; those of implicit operands are known by name."""
    registers = []
    if reference.base:
        registers.append(("A" + key if key else reference.base, reference.base))
    if reference.index:
        registers.append(("X" + key if key else reference.index, reference.index))
    return registers


def sources_of(
    instruction: Instruction, row: InstructionData | None, figures: DataFlowFigures | None = None
) -> list[tuple[str, str]]:
    """Latency key and resource of everything that results wait for, loads excepted; the key "" stands for 0 cycles."""
    sources: list[tuple[str, str]] = []
    if row is None or not is_idiom(instruction, row):
        at_rename = row is not None and is_eliminated_move(instruction, row)
        false = figures is not None and instruction.mnemonic in figures.false_dependencies
        for number, operand in enumerate(instruction.operands):
            if operand.register and (operand.read or (false and operand.written)):
                key = "" if at_rename else str(number)
                sources += [(key, name) for name in _read_by(instruction, operand, figures)]
            elif operand.memory is not None and not (operand.memory.read or operand.memory.written):
                sources += address_registers(str(number), operand.memory)
        addresses = _only_addresses(instruction)
        sources += [(name, name) for name in instruction.implicit_reads if name not in addresses]
    sources += [("C" if letter == "C" else "F", letter) for letter in instruction.flags_read]
    return sources


def _read_by(instruction: Instruction, operand: Operand, figures: DataFlowFigures | None) -> tuple[str, ...]:
    """The resources that a register operand reads; a high byte apart does not join its register when overwritten."""
    name, isa = operand.register or "", isa_of(instruction.isa)
    if (figures is None or not figures.high_bytes_apart) or name not in isa.registers.halved:
        return (name,)
    part = isa.part_of_register(operand)
    if part == "high byte":
        overwritten = operand.written and isa.overwrites(instruction)
        return () if overwritten else (name + HIGH,)
    return (name,) if part == "low byte" else (name, name + HIGH)


def _only_addresses(instruction: Instruction) -> frozenset[str]:
    """Implicit reads that only form an address: pointers of implicit operands, a register loaded by itself.

    Those of `mov rdi,[rdi]` are given as implicit because the instruction writes the register, too.
    """
    if (
        not instruction.implicit_reads
        or not instruction.memory
        or isa_of(instruction.isa).reads_beside_address(instruction)
    ):
        return frozenset()
    explicit = [operand.memory for operand in instruction.operands if operand.memory is not None]
    names = {name for reference in explicit for name in (reference.base, reference.index) if name}
    names = names.intersection(operand.register for operand in instruction.operands if operand.written)
    return frozenset(names | {r.base for r in instruction.memory if r.base and r not in explicit})


def targets_of(
    instruction: Instruction, row: InstructionData | None, figures: DataFlowFigures | None = None
) -> list[Target]:
    """All results."""
    isa = isa_of(instruction.isa)
    targets: list[Target] = []
    for number, operand in enumerate(instruction.operands):
        if operand.written and operand.register:
            targets.append(
                (
                    str(number),
                    operand.register,
                    _written_by(operand.register, isa, isa.part_of_register(operand), figures),
                )
            )
    targets += [(name, name, _written_by(name, isa, "whole", figures)) for name in instruction.implicit_writes]
    for place, reference in enumerate(instruction.memory):
        if reference.written:
            targets.append(("M" + operand_key(instruction, reference), reference, place))
    return targets + _flag_targets(instruction, row)


def _written_by(name: str, isa: Isa, part: str, figures: DataFlowFigures | None) -> tuple[str, ...]:
    """The resources that a write of a register holds from then on."""
    if (figures is None or not figures.high_bytes_apart) or name not in isa.registers.halved:
        return (name,)
    if part == "high byte":
        return (name + HIGH,)
    return (name,) if part == "low byte" else (name, name + HIGH)


def _flag_targets(instruction: Instruction, row: InstructionData | None) -> list[Target]:
    """The flags as one result, or the carry flag apart where its latency differs."""
    flags = instruction.flags_written
    targets: list[Target] = []
    if "C" in flags and len(flags) > 1 and row is not None and any(target == "C" for _, target in row.latencies):
        targets.append(("C", "carry flag", ("C",)))
        flags = flags.replace("C", "")
    if flags:
        targets.append(("F", "flags", tuple(flags)))
    return targets


def latency_of(row: InstructionData | None, source: str, target: str) -> float:
    """Cycles from a source to a target of the instruction."""
    if row is None:
        return 0.0
    found = _listed(row, source, target)
    return row.default_latency if found is None else found


def _listed(row: InstructionData, source: str, target: str) -> float | None:
    """The latency that the row lists for the pair; what it says of all flags holds for the carry flag."""
    found = row.latencies.get((source, target))
    if found is None and (source == "C" or target == "C"):
        return row.latencies.get((source.replace("C", "F"), target.replace("C", "F")))
    return found


def carrier_text(carrier: Carrier, syntax: Syntax) -> str:
    """How a chain names a carrier."""
    return carrier if isinstance(carrier, str) else memory_text(carrier, syntax)


def memory_text(reference: MemoryReference, syntax: Syntax) -> str:
    """How a chain names memory: "memory 8(%rax,%rcx,2)" or "memory [rax+rcx*2+8]"."""
    parts = (reference.symbol or "") + (f"{reference.displacement:+d}" if reference.displacement else "")
    segment = reference.segment or ""
    if syntax == "att":
        scale = f",{reference.scale}" if reference.index and reference.scale != 1 else ""
        index = f",%{reference.index}{scale}" if reference.index else ""
        inner = f"({f'%{reference.base}' if reference.base else ''}{index})" if reference.base or index else ""
        return f"memory {f'%{segment}:' if segment else ''}{parts.removeprefix('+')}{inner}"
    scaled = f"{reference.index}*{reference.scale}" if reference.index and reference.scale != 1 else reference.index
    registers = "+".join(filter(None, (reference.base, scaled, reference.symbol)))
    displacement = f"{reference.displacement:+d}" if reference.displacement else ""
    return f"memory {f'{segment}:' if segment else ''}[{(registers + displacement).removeprefix('+')}]"
