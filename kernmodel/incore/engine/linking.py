"""From instructions and their rows to the input of the simulation: µops joined by what they wait for."""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from kernmodel.incore.dependences.adders import Adding
from kernmodel.incore.dependences.forwarding import links
from kernmodel.incore.engine.fetch import fetch_of
from kernmodel.incore.engine.model import (
    Entry,
    MicroOp,
    PipelineCore,
    PipelineInput,
    Switches,
    Wait,
)
from kernmodel.incore.engine.uops import Inside, Outside, Part, Parts, parts_of
from kernmodel.incore.front_end.block import front_end_block, moves_stack, uses_of_rsp
from kernmodel.incore.front_end.fusion import fuses_at, units_at
from kernmodel.incore.front_end.model import FrontEndBlock, Notion, Unit
from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.core_parameters import FrontEndParameters
from kernmodel.isa.model import Instruction

_FARTHEST = 32
"""Passes beyond which a forwarded store has long been done: no figure of a core, only so that fewer waits are made."""
_STACK_POINTER = "rsp"
_AMPLE = 2048
"""Entries of an idealised buffer, and an idealised retire width: more than any block of a period fills."""


class PartsCache(NamedTuple):
    """µops of instructions met before, for many blocks on one core with the same switches.

    Attributes:
        keys: of the instructions of the block: equal keys mean equal instructions but for their place (their bytes do).
        known: what was made so far, filled as blocks come.
    """

    keys: Sequence[Hashable]
    known: MutableMapping[Hashable, Parts]


class _Placed(NamedTuple):
    """The µops of a unit in the block: numbers of its first µop and of the instruction, and what they are."""

    first: int
    instruction: int
    parts: Parts


def pipeline_input(
    instructions: Sequence[Instruction],
    rows: Sequence[InstructionData | None],
    core: PipelineCore,
    front: FrontEndParameters,
    notion: Notion,
    offset: int = 0,
    switches: Switches | None = None,
    cache: PartsCache | None = None,
    adding: Adding | None = None,
    seen: FrontEndBlock | None = None,
) -> PipelineInput:
    """A block as the pipeline sees it.

    Args:
        instructions: the block in execution order, not empty.
        rows: their table rows (the indexed variant where it applies), None for unknown ones, which are left out.
        core, front: the core's pipeline and front end.
        notion: unrolled code or a loop.
        offset: address of the first byte.
        switches: what is idealised; nothing by default.
        cache: saves work where many blocks are looked at.
        adding: what others wait longer for additions than their rows say; whole cycles of it count.
        seen: the block as the front end sees it, where it is at hand.
    """
    switches = switches or Switches()
    block = seen or front_end_block(instructions, rows, front)
    units = units_at(block, front, offset)
    fused = {block.units[pair.place].number for pair in block.pairs if fuses_at(pair, front, offset)}
    linker = _Linker(core, switches, adding)
    linker.dirty = _dirty_at_end(instructions, units) and switches.synchronisation
    for unit in units:
        row = rows[unit.number]
        if row is not None:
            branch = rows[unit.number + 1] if unit.number in fused else None
            instruction = instructions[unit.number]
            parts = _parts(unit.number, instruction, row, branch, core, switches, cache)
            linker.add(unit, instruction, parts)
    linker.close(instructions)
    totals = linker.unit_entries
    return PipelineInput(
        core=_idealised(core, switches),
        microops=tuple(linker.microops()),
        slots=tuple(linker.slots),
        entries=tuple(linker.entries),
        fetch=fetch_of(instructions, block, units, totals, core, front, notion, offset, switches),
        switches=switches,
    )


def _parts(
    number: int,
    instruction: Instruction,
    row: InstructionData,
    branch: InstructionData | None,
    core: PipelineCore,
    switches: Switches,
    cache: PartsCache | None,
) -> Parts:
    if cache is None:
        return parts_of(instruction, row, branch, core, switches)
    key = (cache.keys[number], cache.keys[number + 1] if branch else None)
    if key not in cache.known:
        cache.known[key] = parts_of(instruction, row, branch, core, switches)
    return cache.known[key]


def _idealised(core: PipelineCore, switches: Switches) -> PipelineCore:
    if not switches.buffers:
        core = replace(core, scheduler=_AMPLE, load_scheduler=0, store_scheduler=0, reorder_buffer=_AMPLE)
    return core if switches.retirement else replace(core, retire_width=_AMPLE)


def _dirty_at_end(instructions: Sequence[Instruction], units: Sequence[Unit]) -> bool:
    """Whether the stack engine is ahead of rsp at the end of a pass, hence at the start of the next."""
    ahead = False
    for unit in units:
        instruction = instructions[unit.number]
        moves = moves_stack(instruction)
        read, written = uses_of_rsp(instruction, moves)
        ahead = moves or (ahead and not read and not written)
    return ahead


class _Linker:
    """The block as it grows. `latest` holds what the readers of a resource wait for."""

    __slots__ = (
        "adding",
        "core",
        "dirty",
        "entries",
        "latest",
        "order",
        "parts",
        "pending",
        "placed",
        "slots",
        "switches",
        "unit_entries",
        "waits",
    )

    def __init__(self, core: PipelineCore, switches: Switches, adding: Adding | None) -> None:
        self.adding = adding
        self.core = core
        self.switches = switches
        self.dirty = False
        self.parts: list[tuple[int, Part]] = []
        self.waits: list[list[Wait]] = []
        self.order: list[int] = []
        self.latest: dict[str, tuple[Inside, ...]] = {}
        self.pending: list[tuple[int, Outside]] = []
        self.placed: list[_Placed] = []
        self.slots: list[int] = []
        self.entries: list[Entry] = []
        self.unit_entries: list[int] = []

    def add(self, unit: Unit, instruction: Instruction, parts: Parts) -> None:
        """Add the next unit of the block."""
        synchronised = self._synchronise(unit.number, instruction)
        first = len(self.parts)
        for part in parts.parts:
            number = self._add_part(unit.number, part)
            self.waits[number] += [Wait(first + inner.part, 0, inner.cycles) for inner in part.inside]
        for resource, waits in parts.results:
            self.latest[resource] = tuple(Inside(first + wait.part, wait.cycles) for wait in waits)
        self.placed.append(_Placed(first, unit.number, parts))
        self._add_slots(unit, first, parts.slots, synchronised)

    def _add_part(self, owner: int, part: Part) -> int:
        number = len(self.parts)
        self.parts.append((owner, part))
        self.waits.append([])
        for read in part.reads:
            found = self.latest.get(read.resource)
            if found is None:
                self.pending.append((number, read))
            else:
                self._wait(number, read, found, 0)
        return number

    def _wait(self, number: int, read: Outside, found: Sequence[Inside], passes: int) -> None:
        """Let a µop wait for what gives a resource so many passes earlier."""
        for wait in found:
            later = int(self.adding.cycles(self.parts[wait.part][0], self.parts[number][0])) if self.adding else 0
            self.waits[number].append(Wait(wait.part, passes, wait.cycles + read.cycles + later))

    def _synchronise(self, owner: int, instruction: Instruction) -> bool:
        """Insert the stack engine's µop where rsp is read while the engine is ahead of it."""
        if not self.switches.synchronisation:
            return False
        moves = moves_stack(instruction)
        read, written = uses_of_rsp(instruction, moves)
        needed = self.dirty and read
        if needed:
            reads = (Outside(_STACK_POINTER, 0),)
            latency = self.core.synchronise_latency
            part = Part("synchronise", self.core.synchronise_ports, latency, 0, 0, 0, reads, ())
            number = self._add_part(owner, part)
            self.latest[_STACK_POINTER] = (Inside(number, latency),)
            self.order.append(number)
        self.dirty = moves or (self.dirty and not read and not written)
        return needed

    def _add_slots(self, unit: Unit, first: int, slots: Sequence[Sequence[int]], synchronised: bool) -> None:
        """Slots and queue entries; the stack engine's µop rides with the first entry."""
        for slot in slots:
            self.order += [first + number for number in slot]
        self.slots += [1] * synchronised + [len(slot) for slot in slots]
        count = max(1, min(len(slots), unit.decoded + unit.microcoded))
        each, more = divmod(len(slots), count)
        for number in range(count):
            own = each + (number < more)
            rides = synchronised and number == 0
            self.entries.append(Entry(own + rides, own > 1 and not rides))
        self.unit_entries.append(count)

    def close(self, instructions: Sequence[Instruction]) -> None:
        """Join the passes, and memory."""
        for number, read in self.pending:
            found = self.latest.get(read.resource, ())
            self._wait(number, read, found, 1)
        if self.core.pointer_saving and self.switches.pointer_chasing:
            self._chase_pointers()
        self._forward(instructions)

    def _chase_pointers(self) -> None:
        """Take off the cycles that an address saves if it comes straight from a load."""
        straight = {p.first + number for p in self.placed if p.parts.pointer for _, number, _ in p.parts.loads}
        moves = {number for number, (_, part) in enumerate(self.parts) if part.role == "move"}
        while more := {
            n for n in moves - straight if self.waits[n] and all(w.microop in straight for w in self.waits[n])
        }:
            straight |= more
        saved = self.core.pointer_saving
        for placed in self.placed:
            for _, number, _ in placed.parts.loads if placed.parts.chaseable else ():
                waits = self.waits[placed.first + number]
                waits[:] = [w._replace(cycles=w.cycles - saved) if w.microop in straight else w for w in waits]

    def _forward(self, instructions: Sequence[Instruction]) -> None:
        """Let what waits for a forwarded load wait for the store too."""
        loads = {(p.instruction, k): (p.first + n, cycles) for p in self.placed for k, n, cycles in p.parts.loads}
        stores = {(p.instruction, k): (p, data, a, f) for p in self.placed for k, data, a, f in p.parts.stores}
        if not loads or not stores:
            return
        users: dict[int, list[tuple[list[Wait], Wait]]] = {number: [] for number, _ in loads.values()}
        for waits in self.waits:
            for wait in waits:
                if wait.microop in users:
                    users[wait.microop].append((waits, wait))
        for link in links(instructions, self.switches.memory):
            if link.load not in loads or link.store not in stores or link.passes > _FARTHEST:
                continue
            load, latency = loads[link.load]
            if not link.whole and self.switches.blocked_loads:
                self._block(load)
                continue
            placed, data, address, forward = stores[link.store]
            sources = [(placed.first + data, forward - latency)]
            if address is not None and self.switches.store_address:
                later = self.core.forward_latency + self.core.forward_address - latency
                sources.append((placed.first + address, later))
            for waits, wait in users[load]:
                waits += [Wait(n, wait.passes + link.passes, wait.cycles + extra) for n, extra in sources]

    def _block(self, load: int) -> None:
        """Let a load that needs bytes of a store and others wait until the store is done: one such after the other."""
        owner, part = self.parts[load]
        self.parts[load] = (owner, part._replace(alone=self.core.blocked_load))

    def microops(self) -> list[MicroOp]:
        """The µops in the order of issue."""
        place = {number: k for k, number in enumerate(self.order)}
        found = []
        for number in self.order:
            owner, part = self.parts[number]
            waits = tuple(sorted({w._replace(microop=place[w.microop]) for w in self.waits[number]}))
            found.append(
                MicroOp(owner, part.role, part.ports, part.latency, part.divider, part.data, part.alone, waits)
            )
        return found
