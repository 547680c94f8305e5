"""µops of a block joined by what they wait for: the input of the simulation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kernmodel.incore.dependences.addresses import Forwarding
from kernmodel.incore.engine.layout import COMPUTED, LOAD, LOADED, TICKS, Access, Entry, MicroOp, UopTraits, Wait
from kernmodel.incore.engine.model import PipelineCore, Switches
from kernmodel.incore.engine.program import Lowered
from kernmodel.incore.engine.uops import Inside, InstructionUops, Outside, Uop
from kernmodel.incore.front_end.model import Unit
from kernmodel.value_types import NamedTuple

_FARTHEST = 32
"""Passes beyond which a forwarded store has long been done: no figure of a core, only so that fewer waits are made."""
_STACK_POINTER = "stack pointer"
_NO_ACCESSES: Mapping[int, Access] = {}


class Linked(NamedTuple):
    """The µops of a block.

    Attributes:
        microops: in the order of issue, and one behind; waits: what they wait for.
        slots: µops of each issue slot; entries: of the queue; unit_entries: how many of them each unit makes.
    """

    microops: tuple[MicroOp, ...]
    waits: tuple[Wait, ...]
    slots: tuple[int, ...]
    entries: tuple[Entry, ...]
    unit_entries: tuple[int, ...]


class _Placed(NamedTuple):
    """The µops of a unit in the block: numbers of its first µop and of the instruction, and what they are."""

    first: int
    instruction: int
    uops: InstructionUops


def link(
    instructions: Sequence[Lowered],
    units: Sequence[Unit],
    pairs: Mapping[int, InstructionUops],
    links: Sequence[Forwarding],
    core: PipelineCore,
    switches: Switches,
    longer: Callable[[int, int], float],
    accesses: Sequence[Access] = (),
) -> Linked:
    """Join the µops of a block.

    Args:
        instructions: the block; units: what the front end makes of it.
        pairs: µops of macro-fused pairs by the number of the first instruction.
        links: which stores feed which loads.
        core: its pipeline; switches: what is idealised.
        longer: gives the cycles that one instruction waits longer for another than rows say; whole cycles of it count.
        accesses: what becomes of loads and stores by their addresses.
    """
    linker = _Linker(core, switches, longer)
    linker.dirty = _dirty_at_end(instructions, units) and switches.synchronisation
    for unit in units:
        own = pairs[unit.number] if unit.fused else instructions[unit.number].template.uops
        if own is not None:
            linker.add(unit, instructions[unit.number], own)
    linker.close(links)
    microops, waits = linker.microops({access.instruction: access for access in accesses})
    return Linked(microops, waits, tuple(linker.slots), tuple(linker.entries), tuple(linker.unit_entries))


def _dirty_at_end(instructions: Sequence[Lowered], units: Sequence[Unit]) -> bool:
    """Whether the stack engine is ahead of rsp at the end of a pass, hence at the start of the next."""
    ahead = False
    for traits in [instructions[unit.number].template.traits for unit in units]:
        ahead = bool(traits.moves_stack) or (ahead and not traits.reads_stack and not traits.writes_stack)
    return ahead


class _Linker:
    """The block as it grows. `latest` holds what the readers of a resource wait for."""

    __slots__ = (
        "core",
        "dirty",
        "entries",
        "latest",
        "longer",
        "order",
        "pending",
        "placed",
        "slots",
        "switches",
        "unit_entries",
        "uops",
        "waits",
    )

    def __init__(self, core: PipelineCore, switches: Switches, longer: Callable[[int, int], float]) -> None:
        self.longer = longer
        self.core = core
        self.switches = switches
        self.dirty = False
        self.uops: list[tuple[int, Uop]] = []
        self.waits: list[list[Wait]] = []
        self.order: list[int] = []
        self.latest: dict[int, tuple[Inside, ...]] = {}
        self.pending: list[tuple[int, int, int, bool]] = []
        self.placed: list[_Placed] = []
        self.slots: list[int] = []
        self.entries: list[Entry] = []
        self.unit_entries: list[int] = []

    def add(self, unit: Unit, instruction: Lowered, uops: InstructionUops) -> None:
        """Add the next unit of the block."""
        synchronised = self._synchronise(unit.number, instruction)
        first = len(self.uops)
        for uop in uops.uops:
            number = self._add_uop(unit.number, uop, instruction.resources)
            before = len(uop.reads) + 1
            self.waits[number] += [
                Wait(first + inner.uop, 0, inner.cycles, self._third(first + inner.uop) if uop.third == k else 0)
                for k, inner in enumerate(uop.inside, before)
            ]
        for name, waits in uops.results:
            resource = instruction.resources[name]
            if resource >= 0:
                self.latest[resource] = tuple(Inside(first + wait.uop, wait.cycles) for wait in waits)
        self.placed.append(_Placed(first, unit.number, uops))
        self._add_slots(unit, first, uops.slots, synchronised)

    def _add_uop(self, owner: int, uop: Uop, resources: Mapping[str, int]) -> int:
        number = len(self.uops)
        self.uops.append((owner, uop))
        self.waits.append([])
        for k, read in enumerate(uop.reads, 1):
            resource = resources[read.resource]
            found = self.latest.get(resource)
            if found is not None:
                self._wait(number, read.cycles, found, 0, uop.third == k)
            elif resource >= 0:
                self.pending.append((number, resource, read.cycles, uop.third == k))
        return number

    def _wait(self, number: int, cycles: int, found: Sequence[Inside], passes: int, third: bool) -> None:
        """Let a µop wait for what gives a resource so many passes earlier; `third`: a third vector."""
        for wait in found:
            later = int(self.longer(self.uops[wait.uop][0], self.uops[number][0]))
            origin = self._third(wait.uop) if third else 0
            self.waits[number].append(Wait(wait.uop, passes, wait.cycles + cycles + later, origin))

    def _third(self, source: int) -> int:
        """Where a third vector comes from, as of `Wait`."""
        return LOADED if self.uops[source][1].role == "load" else COMPUTED

    def _synchronise(self, owner: int, instruction: Lowered) -> bool:
        """Insert the stack engine's µop where rsp, which is resource 0, is read while the engine is ahead of it."""
        if not (self.switches.synchronisation and self.core.synchronise_ports):
            return False
        traits = instruction.template.traits
        needed = self.dirty and bool(traits.reads_stack)
        if needed:
            latency = self.core.synchronise_latency
            reads = (Outside(_STACK_POINTER, 0),)
            uop = Uop("synchronise", self.core.synchronise_ports, latency, 0, 0, 0, reads, ())
            number = self._add_uop(owner, uop, {_STACK_POINTER: 0})
            self.latest[0] = (Inside(number, latency),)
            self.order.append(number)
        self.dirty = bool(traits.moves_stack) or (self.dirty and not traits.reads_stack and not traits.writes_stack)
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
            whole = own if not self.core.whole_instructions else 0 if number else len(slots)
            constants = 0 if number else unit.constants
            self.entries.append(Entry(own + rides, whole if whole > 1 and not rides else 0, constants))
        self.unit_entries.append(count)

    def close(self, links: Sequence[Forwarding]) -> None:
        """Join the passes, and memory."""
        for number, resource, cycles, third in self.pending:
            self._wait(number, cycles, self.latest.get(resource, ()), 1, third)
        if self.core.memory.pointer_saving and self.switches.pointer_chasing:
            self._chase_pointers()
        self._forward(links)

    def _chase_pointers(self) -> None:
        """Take off the cycles that an address saves if it comes straight from a load."""
        straight = {p.first + number for p in self.placed if p.uops.pointer for _, number, _ in p.uops.loads}
        moves = {number for number, (_, uop) in enumerate(self.uops) if uop.role == "move"}
        while more := {
            n for n in moves - straight if self.waits[n] and all(w.microop in straight for w in self.waits[n])
        }:
            straight |= more
        saved = self.core.memory.pointer_saving
        for placed in self.placed:
            for _, number, _ in placed.uops.loads if placed.uops.chaseable else ():
                waits = self.waits[placed.first + number]
                waits[:] = [w._replace(cycles=w.cycles - saved) if w.microop in straight else w for w in waits]

    def _forward(self, links: Sequence[Forwarding]) -> None:
        """Let what waits for a forwarded load wait for the store too."""
        loads = {(p.instruction, k): (p.first + n, cycles) for p in self.placed for k, n, cycles in p.uops.loads}
        stores = {(p.instruction, k): (p, data, a, f) for p in self.placed for k, data, a, f in p.uops.stores}
        if not loads or not stores:
            return
        users: dict[int, list[tuple[list[Wait], Wait]]] = {number: [] for number, _ in loads.values()}
        for waits in self.waits:
            for wait in waits:
                if wait.microop in users:
                    users[wait.microop].append((waits, wait))
        for link in links:
            if link.load not in loads or link.store not in stores or link.passes > _FARTHEST:
                continue
            load, latency = loads[link.load]
            if not link.whole and self.switches.blocked_loads and link.cycles < 0:
                self._block(load)
                continue
            placed, data, address, forward = stores[link.store]
            sources = [(placed.first + data, forward + max(link.cycles, 0) - latency)]
            if address is not None and self.switches.store_address and link.cycles < 0:
                later = self.core.memory.forward_latency + self.core.memory.forward_address - latency
                sources.append((placed.first + address, later))
            for waits, wait in users[load]:
                waits += [Wait(n, wait.passes + link.passes, wait.cycles + extra, wait.third) for n, extra in sources]

    def _block(self, load: int) -> None:
        """Let a load that needs bytes of a store and others wait until the store is done: one such after the other."""
        owner, uop = self.uops[load]
        self.uops[load] = (owner, uop._replace(alone=self.core.memory.blocked_load * TICKS))

    def microops(self, accesses: Mapping[int, Access] = _NO_ACCESSES) -> tuple[tuple[MicroOp, ...], tuple[Wait, ...]]:
        """The µops in the order of issue, and one behind, and what they wait for, none twice."""
        place = {number: k for k, number in enumerate(self.order)}
        found: list[MicroOp] = []
        waits: list[Wait] = []
        for number in self.order:
            owner, uop = self.uops[number]
            found.append(_microop(uop.traits(self.core), len(waits), accesses.get(owner)))
            waits += sorted({w._replace(microop=place[w.microop]) for w in self.waits[number]})
        return (*found, MicroOp(0, 0, 0, 0, 0, len(waits), 0)), tuple(waits)


def _microop(own: UopTraits, first_wait: int, access: Access | None) -> MicroOp:
    made = MicroOp(own.ports, own.latency, own.divider, own.data, own.alone, first_wait, own.scheduler)
    if own.access == LOAD:
        made = made._replace(load=1)
    if own.vectors or own.third or own.paths:
        made = made._replace(registers=own.vectors, third=int(own.third > 0), paths=own.paths)
    if access is None or not own.access:
        return made
    if own.access == LOAD:
        made = made._replace(place=access.place, stride=access.stride, size=access.size)
        made = made._replace(slow_low=access.load_low, slow_high=access.load_high)
        return made._replace(more_low=access.more_low, more_high=access.more_high)
    ports = own.ports & -own.ports if access.single else own.ports
    return made._replace(ports=ports, slow_low=access.store_low, slow_high=access.store_high)
