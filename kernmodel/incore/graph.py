"""The dependency graph of a loop body: which value waits for which, how long, and over how many passes.

A vertex is a value that an instruction produces: what it writes to a register, to the flags (the carry flag apart
where its latency differs), to memory, or the data that it loads. The load is a vertex of its own, between the registers
that form the address and the results: address latency belongs to the edges into it, forwarded stores reach it without
waiting for an address. A store waits for its data only; a load that reads it gets the data after the store-forward
latency.

An edge is weighted with the latency of the consuming instruction from that source to that result, in cycles. Values
that the previous pass produces enter by edges over one pass; memory may span more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from kernmodel.assembly.model import Instruction, MemoryReference
from kernmodel.incore.addresses import Forwarding, forwardings
from kernmodel.incore.cycles import Edge
from kernmodel.incore.model import InstructionData, Parameters
from kernmodel.units import parse_quantity

Syntax = Literal["att", "intel"]

_POINTERS = frozenset({"rsp", "rsi", "rdi"})


@dataclass(frozen=True, slots=True)
class Graph:
    """The dependency graph of one loop body.

    Attributes:
        owners: per vertex, the instruction that produces the value; vertices are in program order.
        carriers: per vertex, where the value is ("zmm0", "flags", "memory 8(%rsp)").
        entry: per vertex, cycles after the start of a pass at which it is ready if only what was there before counts.
        edges: dependencies, `passes` of the loop apart.
        latencies: per instruction, its longest latency to a register or to flags, the load included; 0 for stores.
        blocked: the forwardings in which the store does not hold all bytes of the load.
        incomparable: whether some addresses of loads and stores could not be compared (they are taken to differ).
    """

    owners: tuple[int, ...]
    carriers: tuple[str, ...]
    entry: tuple[float, ...]
    edges: tuple[Edge, ...]
    latencies: tuple[float, ...]
    blocked: tuple[Forwarding, ...]
    incomparable: bool


def is_idiom(instruction: Instruction, data: InstructionData) -> bool:
    """Whether the core knows that the result does not depend on the register it is made of (xor eax,eax)."""
    return instruction.same_register and data.breaks_dependency != "no"


def is_eliminated_move(instruction: Instruction, data: InstructionData) -> bool:
    """Whether the core can do this move at rename; not from a register to itself."""
    return data.eliminated and len({operand.register for operand in instruction.operands}) > 1


def dependency_graph(
    instructions: Sequence[Instruction],
    data: Sequence[InstructionData | None],
    parameters: Parameters,
    syntax: Syntax = "att",
) -> Graph:
    """The graph of a loop body.

    Args:
        instructions: the body in execution order.
        data: their table rows (the indexed variant where it applies), None for unknown ones: they pass values on in 0
            cycles.
        parameters: load and store-forward latency.
        syntax: how memory carriers are written.
    """
    builder = _Builder(parameters, syntax)
    for number, (instruction, row) in enumerate(zip(instructions, data, strict=True)):
        builder.add(number, instruction, row)
    return builder.close(instructions)


class _Builder:
    """The graph as it grows: `latest` holds the vertex that produced each resource (register or flag letter) last."""

    __slots__ = (
        "carriers",
        "edges",
        "entry",
        "latencies",
        "latest",
        "loads",
        "owners",
        "parameters",
        "pending",
        "stores",
        "syntax",
    )

    def __init__(self, parameters: Parameters, syntax: Syntax) -> None:
        self.parameters = parameters
        self.syntax = syntax
        self.owners: list[int] = []
        self.carriers: list[str] = []
        self.entry: list[float] = []
        self.edges: list[Edge] = []
        self.latencies: list[float] = []
        self.latest: dict[str, int] = {}
        self.pending: list[tuple[str, int, float]] = []
        self.loads: dict[tuple[int, int], int] = {}
        self.stores: dict[tuple[int, int], int] = {}

    def add(self, number: int, instruction: Instruction, row: InstructionData | None) -> None:
        """Add the next instruction of the body."""
        targets = _targets(instruction, row, self.syntax)
        sources = _sources(instruction, row)
        loads = self._add_loads(number, instruction, row, [key for key, _, _ in targets])
        advanced = _advanced(instruction)
        longest = 0.0
        written: list[tuple[str, int]] = []
        for target, carrier, resources in targets:
            vertex = self._vertex(number, carrier)
            for key, resource in sources:
                if target in advanced and resource != target:
                    continue
                latency = _latency(row, key, target) if key else 0.0
                self._depend(vertex, resource, latency)
                longest = max(longest, latency if target[0] != "M" else 0.0)
            for key, load, load_latency in loads:
                if target in advanced:
                    continue
                latency = _latency(row, key, target)
                self.edges.append(Edge(load, vertex, latency, 0))
                longest = max(longest, load_latency + latency if target[0] != "M" else 0.0)
            if not sources and not loads and row and not is_idiom(instruction, row):
                self.entry[vertex] = longest = row.default_latency
            if isinstance(resources, int):
                self.stores[number, resources] = vertex
            else:
                written += [(resource, vertex) for resource in resources]
        self.latest.update(written)
        self.latencies.append(longest)

    def close(self, instructions: Sequence[Instruction]) -> Graph:
        """Join the passes, and memory."""
        crossing: dict[tuple[int, int], float] = {}
        for resource, target, latency in self.pending:
            self.entry[target] = max(self.entry[target], latency)
            source = self.latest.get(resource)
            if source is not None:
                crossing[source, target] = max(latency, crossing.get((source, target), 0.0))
        self.edges += [Edge(source, target, latency, 1) for (source, target), latency in crossing.items()]
        through_memory, incomparable = forwardings(instructions)
        self._shorten_pointer_chains(instructions)
        latency = self.parameters.store_forward_latency
        for link in through_memory:
            self.edges.append(Edge(self.stores[link.store], self.loads[link.load], latency, link.passes))
        return Graph(
            owners=tuple(self.owners),
            carriers=tuple(self.carriers),
            entry=tuple(self.entry),
            edges=tuple(self.edges),
            latencies=tuple(self.latencies),
            blocked=tuple(link for link in through_memory if not link.whole),
            incomparable=incomparable,
        )

    def _shorten_pointer_chains(self, instructions: Sequence[Instruction]) -> None:
        """Take the cycles off that some cores save where an address comes straight from a load."""
        extra = self.parameters.extra
        if not extra.get("fast pointer chasing") or not self.loads:
            return
        fast = parse_quantity(extra.get("fast pointer chasing latency"), "cycles", where=self.parameters.name)
        saved = self.parameters.load_latency - fast
        limit = extra.get("fast pointer chasing displacement")
        reach = limit if isinstance(limit, int) else None
        simple = {vertex for (owner, _), vertex in self.loads.items() if _is_simple_load(instructions[owner], reach)}
        for number, edge in enumerate(self.edges):
            if edge.target in simple and _is_pointer_load(instructions[self.owners[edge.source]]):
                self.edges[number] = edge._replace(latency=max(0.0, edge.latency - saved))

    def _vertex(self, owner: int, carrier: str) -> int:
        self.owners.append(owner)
        self.carriers.append(carrier)
        self.entry.append(0.0)
        return len(self.owners) - 1

    def _depend(self, target: int, resource: str, latency: float) -> None:
        source = self.latest.get(resource)
        if source is None:
            self.pending.append((resource, target, latency))
        else:
            self.edges.append(Edge(source, target, latency, 0))

    def _add_loads(
        self, number: int, instruction: Instruction, row: InstructionData | None, targets: Sequence[str]
    ) -> list[tuple[str, int, float]]:
        """Vertices of the data that the instruction loads: (key of the data, vertex, latency of the load)."""
        loads = []
        for place, reference in enumerate(instruction.memory):
            if not reference.read:
                continue
            key = _operand_key(instruction, reference)
            vertex = self._vertex(number, memory_text(reference, self.syntax))
            self.loads[number, place] = vertex
            slowest = 0.0
            for source, register in _address(key, reference) or [("A" + key, "rip")]:
                latency = self._load_latency(row, source, "M" + key, targets)
                self._depend(vertex, register, latency)
                slowest = max(slowest, latency)
            loads.append(("M" + key, vertex, slowest))
        return loads

    def _load_latency(self, row: InstructionData | None, address: str, data: str, targets: Sequence[str]) -> float:
        """Cycles from an address register to the loaded data: what an address takes longer than data in memory."""
        if row is None:
            return 0.0
        listed = row.latencies
        known = [listed[address, t] - _latency(row, data, t) for t in targets if (address, t) in listed]
        return max(0.0, *known) if known else self.parameters.load_latency


def _advanced(instruction: Instruction) -> frozenset[str]:
    """Pointers that push, pop and string instructions advance: they wait for nothing but themselves."""
    if not instruction.implicit_writes or not instruction.memory:
        return frozenset()
    return frozenset(name for name in instruction.implicit_writes if name in _POINTERS)


def _is_pointer_load(instruction: Instruction) -> bool:
    loads = any(reference.read for reference in instruction.memory)
    return loads and instruction.mnemonic == "mov" and instruction.operands[0].kind == "r64"


def _is_simple_load(instruction: Instruction, reach: int | None) -> bool:
    """Whether a general-purpose instruction loads from a base register and a displacement below `reach` bytes."""
    reference = instruction.memory[0]
    simple = reference.base is not None and reference.index is None and reference.symbol is None
    near = reference.displacement >= 0 and (reach is None or reference.displacement < reach)
    return simple and near and not instruction.vector_bytes


def _operand_key(instruction: Instruction, reference: MemoryReference) -> str:
    """The number of the explicit operand that the reference belongs to, "" for implicit ones."""
    for number, operand in enumerate(instruction.operands):
        if operand.memory is reference or (operand.memory is not None and operand.memory == reference):
            return str(number)
    return ""


def _address(key: str, reference: MemoryReference) -> list[tuple[str, str]]:
    """Address registers with their latency keys; those of implicit operands are known by name."""
    registers = []
    if reference.base:
        registers.append(("A" + key if key else reference.base, reference.base))
    if reference.index:
        registers.append(("X" + key if key else reference.index, reference.index))
    return registers


def _sources(instruction: Instruction, row: InstructionData | None) -> list[tuple[str, str]]:
    """Latency key and resource of everything that results wait for, loads excepted; the key "" stands for 0 cycles."""
    sources: list[tuple[str, str]] = []
    if row is None or not is_idiom(instruction, row):
        at_rename = row is not None and is_eliminated_move(instruction, row)
        for number, operand in enumerate(instruction.operands):
            if operand.read and operand.register:
                sources.append(("" if at_rename else str(number), operand.register))
            elif operand.memory is not None and not (operand.memory.read or operand.memory.written):
                sources += _address(str(number), operand.memory)
        sources += [(name, name) for name in instruction.implicit_reads]
    sources += [("C" if letter == "C" else "F", letter) for letter in instruction.flags_read]
    return sources


def _targets(
    instruction: Instruction, row: InstructionData | None, syntax: Syntax
) -> list[tuple[str, str, Iterable[str] | int]]:
    """Latency key, carrier and resources of every result; the resource of a store is the number of its reference."""
    targets: list[tuple[str, str, Iterable[str] | int]] = []
    for number, operand in enumerate(instruction.operands):
        if operand.written and operand.register:
            targets.append((str(number), operand.register, (operand.register,)))
    targets += [(name, name, (name,)) for name in instruction.implicit_writes]
    for place, reference in enumerate(instruction.memory):
        if reference.written:
            text = memory_text(reference, syntax)
            targets.append(("M" + _operand_key(instruction, reference), text, place))
    flags = instruction.flags_written
    if "C" in flags and len(flags) > 1 and row is not None and any(target == "C" for _, target in row.latencies):
        targets.append(("C", "carry flag", "C"))
        flags = flags.replace("C", "")
    if flags:
        targets.append(("F", "flags", flags))
    return targets


def _latency(row: InstructionData | None, source: str, target: str) -> float:
    """Cycles from a source to a target of the instruction."""
    if row is None:
        return 0.0
    found = row.latencies.get((source, target))
    if found is None and (source == "C" or target == "C"):
        source, target = source.replace("C", "F"), target.replace("C", "F")
        found = row.latencies.get((source, target))
    return row.default_latency if found is None else found


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
