"""The µops of one instruction: what each reads and gives, before they are joined to a block.

A row says how many µops go to which ports, and the latency from each operand to each result. Loads read the address,
store-address µops too, store-data µops read the result; the others compute. Where several compute, operands that a
result is longer after than after others enter an earlier one of them. Where no order of µops gives the latencies of
all pairs, a "value" joins them exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from kernmodel.incore.dependences.data_flow import (
    address_registers,
    advanced_pointers,
    clears_mask,
    is_eliminated_move,
    is_idiom,
    is_independent,
    is_simple_load,
    latency_of,
    operand_key,
    scaled_index,
    sources_of,
    targets_of,
)
from kernmodel.incore.engine.layout import LOAD, STORE, TICKS, UopTraits, port_mask
from kernmodel.incore.engine.model import PipelineCore, Role, Switches
from kernmodel.incore.front_end.costs import dispatch_slots
from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.core_parameters import UOPS_OF_A_SLOT
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction, MemoryReference
from kernmodel.value_types import NamedTuple, dataclass

_MOST_TICKS = 1 << 30
"""As many as C counts."""
_MOST_UOPS = 1000
"""µops of one kind, and issue slots, that an instruction is simulated with: privileged ones (wbinvd) have millions."""


class Outside(NamedTuple):
    """A µop reads a resource (register or flag) and must wait `cycles` more once it is there."""

    resource: str
    cycles: int


class Inside(NamedTuple):
    """A µop waits for another one of the same instruction."""

    uop: int
    cycles: int


class Uop(NamedTuple):
    """One µop of an instruction: what it does, and where; the other figures as in `MicroOp`.

    Attributes:
        reads: what it waits for of earlier instructions; inside: of the same one.
        vectors: vector registers that it takes, where the core counts them.
        third: as in `UopTraits`.
        paths: ports over whose paths its result goes, none for its own.
        second: whether it accesses the second half of what another one begins with; one of both crosses a line at most.
    """

    role: Role
    ports: tuple[str, ...]
    latency: int
    divider: int
    data: int
    alone: int
    reads: tuple[Outside, ...]
    inside: tuple[Inside, ...]
    vectors: int = 0
    third: int = 0
    paths: tuple[str, ...] = ()
    second: bool = False

    def traits(self, core: PipelineCore) -> UopTraits:
        """Its numbers on a core."""
        ports, scheduler, access = port_mask(self.ports, core.ports), 0, 0
        if (core.by_port or core.memory.placed) and self.role in ("load", "store data") and not self.second:
            access = LOAD if self.role == "load" else STORE
        if self.role == "load" and core.load_scheduler:
            scheduler = 1
        elif self.role in ("store address", "store data") and core.store_scheduler:
            scheduler = 2
        moves = self.role == "move"
        paths = port_mask(self.paths, core.ports)
        own = (self.latency, self.divider, self.data, self.alone)
        return UopTraits(moves, scheduler, ports, *own, access, self.vectors, self.third, paths)


@dataclass(frozen=True, slots=True)
class InstructionUops:
    """The µops of one instruction (of a macro-fused pair).

    Attributes:
        uops: the µops.
        slots: µops per issue slot.
        results: what each written resource waits for.
        loads: by number of the memory reference, the load µop and its latency.
        stores: by number of the memory reference, the µop that a forwarded load gets its data from, the store-address
            µop that it also waits for, if any, and the cycles from the first of them to the data of the load.
        chaseable: whether an address of its load may come straight from a load.
        pointer: whether it is a plain load whose result such an address is.
    """

    uops: tuple[Uop, ...]
    slots: tuple[tuple[int, ...], ...]
    results: tuple[tuple[str, tuple[Inside, ...]], ...]
    loads: tuple[tuple[int, int, int], ...]
    stores: tuple[tuple[int, int, int | None, int], ...]
    chaseable: bool
    pointer: bool


UNKNOWN = InstructionUops((), ((),), (), (), (), False, False)
"""Of an instruction that the table does not know: it takes a slot at dispatch."""


class _Ports(NamedTuple):
    """The µops of a row by what they do, each as its ports; `busy`: cycles for which loads, what computes, and stores
    keep their pipes."""

    loads: list[tuple[str, ...]]
    compute: list[tuple[str, ...]]
    addresses: list[tuple[str, ...]]
    data: list[tuple[str, ...]]
    divider: int
    busy: tuple[int, int, int]


Source = tuple[str, Outside | Inside]
"""Latency key and what stands for it: a resource, or the load µop with its latency."""


def uops_of(
    instruction: Instruction,
    row: InstructionData,
    branch: InstructionData | None,
    core: PipelineCore,
    switches: Switches,
) -> InstructionUops:
    """The µops of an instruction.

    Args:
        instruction: the instruction.
        row: its table row, in the indexed variant where that applies.
        branch: the row of the jump it is macro-fused with, None if it is not.
        core: the core.
        switches: `elimination`, `dividers`, `data_paths` and `one_at_a_time` are looked at.
    """
    builder = _Builder(instruction, row, core, switches)
    ports = _ports(instruction, row, builder, core)
    if branch is not None and keeps_ports(instruction, core):
        ports.compute[:] = [fused_ports(own, core) for own in ports.compute]
    elif branch is not None:
        _merge_branch(ports.compute, _ports(instruction, branch, None, core).compute)
    at_rename = switches.elimination and is_eliminated_move(instruction, row)
    idiom = row.breaks_dependency == "zero" and is_idiom(instruction, row)
    if at_rename or idiom or not (ports.loads or ports.compute or ports.addresses or ports.data):
        builder.at_rename("move" if at_rename else "value", idiom, at_rename)
    elif core.by_port and isa_of(instruction.isa).only_stores(instruction):
        builder.beside(ports.compute)
        builder.executed(ports._replace(compute=[]))
    else:
        builder.executed(ports)
    if core.by_port:
        return builder.finish_in(dispatch_slots(instruction, row, core.extra_slots))
    return builder.finish(row.front_end.retire_slots if row.front_end else len(builder.uops))


def keeps_ports(instruction: Instruction, core: PipelineCore) -> bool:
    """Whether a macro-fused pair goes to the ports of its first instruction, not to those of the branch: where
    schedulers belong to ports, one that writes a register."""
    return bool(core.by_port) and any(o.written and o.register for o in instruction.operands)


def fused_ports(ports: tuple[str, ...], core: PipelineCore) -> tuple[str, ...]:
    """Those of its ports that a µop may go to as a part of a macro-fused pair that writes a register."""
    return tuple(port for port in ports if port in core.fused_ports) or ports


def is_halved(instruction: Instruction, core: PipelineCore) -> bool:
    """Whether the core accesses the memory of an instruction in two halves."""
    return any(reference.size_bytes == core.memory.halved_bytes for reference in instruction.memory)


def _ports(instruction: Instruction, row: InstructionData, builder: _Builder | None, core: PipelineCore) -> _Ports:
    """The µops of a row; of those on the load ports, so many are loads as use load data paths."""
    if core.by_port and core.memory.store_address_ports:
        return _ports_of_accesses(instruction, row, core)
    if core.by_port:
        return _ports_with_pipes(instruction, row, core)
    halved = builder is not None and builder.halved
    data = builder.data if builder else 1
    paths = sum(use.cycles for use in row.ports if use.ports[0].endswith("D"))
    loads_left = ceil(paths / 2) if halved else round(paths)
    found = _Ports([], [], [], [], _divider(row), (data, 0, data))
    for use in row.ports:
        if use.ports[0].endswith(("DV", "D")):
            continue
        count, group = min(round(use.cycles), _MOST_UOPS), frozenset(use.ports)
        if group in core.memory.load_ports:
            loads = min(count, loads_left)
            loads_left -= loads
            found.loads.extend([use.ports] * loads)
            found.addresses.extend([use.ports] * (count - loads))
        elif group in core.memory.store_address_ports:
            found.addresses.extend([use.ports] * count)
        elif group in core.memory.store_data_ports:
            found.data.extend([use.ports] * (ceil(count / 2) if halved else count))
        else:
            found.compute.extend([use.ports] * count)
    return found


def _is_path(ports: tuple[str, ...], row: InstructionData, paths: Sequence[Sequence[str]]) -> bool:
    """Whether ports of a row are the one over whose path the result of another µop of it goes."""
    others = [use.ports for use in row.ports]
    return any((path,) == ports and tuple(own) in others for *own, path in paths)


def _divider(row: InstructionData) -> int:
    """Whole cycles for which the row keeps a divider busy; parts of a cycle count in the bound of the divider, which is
    longer where nothing but the divider is waited for."""
    return max((int(use.cycles) for use in row.ports if use.ports[0].endswith("DV")), default=0)


def _ports_with_pipes(instruction: Instruction, row: InstructionData, core: PipelineCore) -> _Ports:
    """The µops of a row where address generators are told from load and store pipes.

    An access is one address, and keeps its pipe for as many cycles as there are uses of the pipe. Vectors that go
    through a unit in two passes are one µop. Address generators compute what has no pipe (lea).
    """
    loads, stores = _uses(row, core.memory.load_ports), _uses(row, core.memory.store_data_ports)
    addresses = _uses(row, core.memory.address_ports) if loads or stores else []
    written = sum(reference.written for reference in instruction.memory)
    store_count = min(len(stores), max(written, len(addresses) - len(loads), 1))
    load_count = min(len(loads), max(1, len(addresses)))
    passes = 2 if core.memory.passed_bytes is not None and instruction.vector_bytes == core.memory.passed_bytes else 1
    compute: list[tuple[str, ...]] = []
    pipes = (*core.memory.load_ports, *core.memory.store_data_ports)
    accesses = (*core.memory.address_ports, *pipes) if loads or stores else pipes
    even = True
    for use in row.ports:
        if not use.ports[0].endswith("DV") and frozenset(use.ports) not in accesses:
            count = min(round(use.cycles), _MOST_UOPS)
            if _is_path(use.ports, row, core.result_paths):
                count -= 1  # the path, which is no µop
            else:
                count = max(1, count)
            even &= count % passes == 0
            compute.extend([use.ports] * count)
    passes = passes if even else 1
    for use in row.ports:  # a divider belongs to the port that it is named after
        if use.ports[0].endswith("DV"):
            port = use.ports[0].removesuffix("DV")
            place = next((number for number, own in enumerate(compute) if port in own), None)
            if place is not None:
                compute[place] = (port,)
    whole = [own for number, own in enumerate(compute) if number % passes == 0]
    busy = (ceil(len(loads) / max(load_count, 1)), passes, ceil(len(stores) / max(store_count, 1)))
    return _Ports(loads[:load_count], whole, addresses, stores[:store_count], _divider(row), busy)


def _ports_of_accesses(instruction: Instruction, row: InstructionData, core: PipelineCore) -> _Ports:
    """The µops of a row where loads and the addresses of stores go to the same ports.

    What goes to these, or to those of stored data, is an access only in instructions that load or store. More cycles
    on a group of ports than the row has µops are one µop that keeps its port for so long, as in a divider.
    """
    reads, writes = (any(getattr(r, kind) for r in instruction.memory) for kind in ("read", "written"))
    found: tuple[list[tuple[str, ...]], ...] = ([], [], [])  # accesses, what computes, stored data
    busy = [1, 1, 1]
    for use in row.ports:
        if use.ports[0].endswith("DV"):
            continue
        ports, cycles = frozenset(use.ports), max(1, round(use.cycles))
        if (reads or writes) and any(ports <= group for group in core.memory.load_ports):
            kind = 0
        else:
            kind = 2 if writes and any(ports <= group for group in core.memory.store_data_ports) else 1
        # a store that takes several ports of the cache has an address for each
        most = UOPS_OF_A_SLOT if kind == 0 and writes else min(row.uops, UOPS_OF_A_SLOT)
        count = next(number for number in range(min(cycles, max(most, 1)), 0, -1) if cycles % number == 0)
        busy[kind] = max(busy[kind], ceil(cycles / count))
        found[kind].extend([use.ports] * count)
    accesses, compute, data = found
    loads = min(len(accesses), int(reads)) if writes else len(accesses)
    return _Ports(accesses[:loads], compute, accesses[loads:], data, _divider(row), (busy[0], busy[1], busy[2]))


def _uses(row: InstructionData, groups: Sequence[frozenset[str]]) -> list[tuple[str, ...]]:
    """The µops of a row on some groups of ports."""
    found: list[tuple[str, ...]] = []
    for use in row.ports:
        if frozenset(use.ports) in groups:
            found.extend([use.ports] * min(round(use.cycles), _MOST_UOPS))
    return found


def _merge_branch(compute: list[tuple[str, ...]], branch: list[tuple[str, ...]]) -> None:
    """Put the jump in the place of the µop that merges into it: the one that shares ports with it."""
    if not compute or not branch:
        compute += branch
        return
    ports = set(branch[0])
    place = next((k for k, own in enumerate(compute) if ports.intersection(own)), 0)
    compute.pop(place)
    compute.append(branch[0])


def vectors_written(instruction: Instruction) -> int:
    """Vector registers that an instruction writes."""
    is_vector = isa_of(instruction.isa).is_vector
    return len({operand.register for operand in instruction.operands if operand.written and is_vector(operand)})


class _Builder:
    """The µops of one instruction as they are made."""

    __slots__ = (
        "busy",
        "core",
        "data",
        "halved",
        "instruction",
        "loads",
        "results",
        "row",
        "slots",
        "stores",
        "switches",
        "targets",
        "uops",
    )

    def __init__(self, instruction: Instruction, row: InstructionData, core: PipelineCore, switches: Switches) -> None:
        self.instruction = instruction
        self.row = row
        self.core = core
        self.switches = switches
        self.halved = is_halved(instruction, core)
        self.data = 2 if self.halved and switches.data_paths else 1
        advanced = advanced_pointers(instruction)
        targets = targets_of(instruction, row, core.flows)
        self.targets = [target for target in targets if target[0] not in advanced]
        self.busy = (self.data, 0, self.data)
        self.uops: list[Uop] = []
        self.slots: list[tuple[int, ...]] = []
        self.results: list[tuple[str, tuple[Inside, ...]]] = []
        self.loads: list[tuple[int, int, int]] = []
        self.stores: list[tuple[int, int, int | None, int]] = []

    def at_rename(self, role: Role, idiom: bool, moved: bool) -> None:
        """No port: an eliminated move, a zero idiom, a nop, an exchange, whose results wait for one register each."""
        numbers: dict[tuple[Outside, ...], int] = {}
        for target, _, resources in self.targets:
            reads = () if idiom else self._reads(target, moved)
            number = numbers.setdefault(reads, len(numbers))
            later = 0 if idiom or moved else self._at_rename_latency(target)
            if not isinstance(resources, int):
                self.results += [(resource, (Inside(number, later),)) for resource in resources]
        self.uops += [Uop(role, (), 0, 0, 0, 0, reads, ()) for reads in numbers or ((),)]
        self.slots.append(tuple(range(len(self.uops))))

    def _reads(self, target: str, moved: bool) -> tuple[Outside, ...]:
        """What a result of an instruction that needs no port waits for."""
        flows = self.core.flows
        return tuple(
            Outside(resource, 0)
            for key, resource in self._sources()
            if moved or flows is None or not is_independent(self.instruction, self.row, key, target, flows)
        )

    def _at_rename_latency(self, target: str) -> int:
        """Cycles to a target of what needs no port: additions of small constants have none to a register."""
        return round(max((self._cycles(key, target) for key, _ in self._sources()), default=self.row.default_latency))

    def beside(self, ports: Sequence[tuple[str, ...]]) -> None:
        """Operations that wait for nothing and give nothing: they take a slot and a port."""
        self.uops += [Uop("compute", own, 0, 0, 1, 0, (), ()) for own in ports]

    def executed(self, ports: _Ports) -> None:
        """Loads, what computes, stores."""
        self.busy = ports.busy
        loaded = self._add_loads(ports.loads, ports.addresses)
        sources: list[Source] = [(key, Outside(resource, 0)) for key, resource in self._sources()]
        sources += loaded
        first = len(self.uops)
        written = any(reference.written for reference in self.instruction.memory)
        moves = written and bool(self.core.memory.value_ports) and self._moves(ports)
        given = (self._value_only(ports, sources) if moves else self._compute(ports, sources)) if ports.compute else {}
        computing = [number for number in range(first, len(self.uops)) if self.uops[number].role != "value"]
        # what goes beside accesses that share their ports advances an address, or counts in the row's time to the data
        if self.loads and (not ports.compute or (self.core.by_port and self.core.memory.store_address_ports)):
            given = self._loaded_only(sources, loaded)
        stores = self._add_stores(ports, sources, given)
        values = [number for number in range(first, len(self.uops)) if self.uops[number].role == "value"]
        for target, _, resources in self.targets:
            if not isinstance(resources, int) and target in given:
                self.results += [(resource, given[target]) for resource in resources]
        loads = [number for number in range(first) if self.uops[number].role == "load"]
        if self.core.by_port and self.core.by_port.vector_registers:
            self._take_registers(self.core.by_port.two_registers_bytes)
        if not self.core.by_port:
            self._slot(loads, computing, stores, values)
        if self.row.throughput is not None and self.switches.one_at_a_time:
            self._alone((computing or loads or [number for pair in stores for number in pair])[-1])

    def _take_registers(self, two_registers_bytes: int | None) -> None:
        """Let the first µop take a register for each vector that the instruction writes, or two of such a size."""
        each = 2 if self.instruction.vector_bytes == two_registers_bytes else 1
        self.uops[0] = self.uops[0]._replace(vectors=each * vectors_written(self.instruction))

    def _sources(self) -> list[tuple[str, str]]:
        """Latency keys and resources that results wait for; address registers stand in their own µops."""
        return sources_of(self.instruction, self.row, self.core.flows)

    def _add_loads(self, ports: Sequence[tuple[str, ...]], generators: list[tuple[str, ...]]) -> list[Source]:
        references = [(k, r) for k, r in enumerate(self.instruction.memory) if r.read]
        starts = [tuple(sorted(group)) for group in self.core.memory.load_starts]
        loaded: list[Source] = []
        for place, (k, reference) in enumerate(references):
            key = operand_key(self.instruction, reference)
            addresses = address_registers(key, reference)
            latency = self._load_latency(key, reference, addresses)
            for number, own in enumerate(ports[place :: len(references)]):
                reads = tuple(Outside(register, 0) for _, register in addresses)
                inside: tuple[Inside, ...] = ()
                rest = latency
                begins = own
                if starts and generators:
                    generators.pop(0)
                    begins = starts[self.core.memory.load_ports.index(frozenset(own))]
                elif self.core.by_port and generators:
                    self.uops.append(Uop("load address", generators.pop(0), 1, 0, 0, 0, reads, ()))
                    reads, inside, rest = (), (Inside(len(self.uops) - 1, 1),), max(latency - 1, 0)
                loaded.append(("M" + key, Inside(len(self.uops), rest)))
                if not number:
                    self.loads.append((k, len(self.uops), rest))
                second = number > 0 and self._halved
                self.uops.append(Uop("load", begins, rest, 0, self.busy[0], 0, reads, inside, second=second))
        return loaded

    @property
    def _halved(self) -> bool:
        """Whether µops of one kind are parts of the same access, as far as that matters to where it lies."""
        return bool(self.core.memory.lines and self.core.memory.lines.halved)

    def _load_latency(self, key: str, reference: MemoryReference, addresses: Sequence[tuple[str, str]]) -> int:
        """Cycles from the address to the data: what an address takes longer than data in memory."""
        slowest = 0.0 if addresses else float(self.core.memory.load_latency)
        scaled = scaled_index(self.instruction, reference, self.core.flows) if self.core.flows else 0.0
        for source, _ in addresses:
            listed = self.row.latencies
            known = [
                listed[source, t] - self._cycles("M" + key, t) for t, _, _ in self.targets if (source, t) in listed
            ]
            slowest = max(slowest, *known, 0.0) if known else max(slowest, float(self.core.memory.load_latency))
        return int(slowest + scaled)

    def _cycles(self, source: str, target: str) -> float:
        return latency_of(self.row, source, target) if source else 0.0

    def _compute(self, ports: _Ports, sources: Sequence[Source]) -> dict[str, tuple[Inside, ...]]:
        """The µops that compute; what each target waits for."""
        least = {target: self._least(target, sources) for target, _, _ in self.targets}
        late = [self._late(key, least) for key, _ in sources]
        exact = all(
            extra + own == self._cycles(key, target)
            for (key, _), extra in zip(sources, late, strict=True)
            for target, own in least.items()
        )
        levels = sorted({extra for extra in late if extra > 0}, reverse=True)[: len(ports.compute) - 1]
        first = len(self.uops)
        last = first + len(ports.compute) - 1
        reads: dict[int, list[Outside]] = {number: [] for number in range(first, last + 1)}
        inside: dict[int, list[Inside]] = {number: [] for number in range(first, last + 1)}
        merged, apart = self._gathered, self._apart(sources) if last > first + len(levels) else {}
        for (key, source), extra in zip(sources, late, strict=True):
            if extra < 0:
                continue
            stage = next((k for k, level in enumerate(levels) if extra >= level), None)
            readers = [(last, extra)]
            if source != merged and key not in apart:
                readers += ((n, 0) for n in range(first + len(levels), last))
            for number, wait in readers if stage is None else [(first + stage, extra - levels[stage])]:
                _append(source, int(wait), reads[number], inside[number])
        for stage, level in enumerate(levels):
            following = levels[stage + 1] if stage + 1 < len(levels) else 0
            after = first + stage + 1 if stage + 1 < len(levels) else last
            inside[after].append(Inside(first + stage, int(level - following)))
        latency = int(max(least.values(), default=1.0)) or 1
        divider = self._divider(ports, first)
        for number, own in enumerate(ports.compute, first):
            busy = ports.divider if number == divider else 0
            data = self.busy[1]
            waits = (tuple(reads[number]), tuple(inside[number]))
            paths = self._paths(own)
            given_at = int(min(least.values())) or 1 if paths and least else latency  # its port gives the first result
            self.uops.append(Uop("compute", own, given_at, busy, data, 0, *waits, paths=paths))
        if len(ports.compute) == 1:
            self._mark_third(first)
        # one µop gives the result: what its siblings cost it is in the latency, which was measured beside them
        end = last if merged or any(extra > 0 for extra in late) else first + len(levels)
        given: dict[str, tuple[Inside, ...]] = {}
        for target, cycles in least.items():
            without = {key for key, targets in apart.items() if target in targets}
            among = None if exact else [source for source in sources if source[0] not in without]
            own_end = first + len(levels) if without else end
            cleared = clears_mask(self.instruction, target)
            given[target] = () if cleared else self._result(target, cycles, own_end, among)
        return given

    def _apart(self, sources: Sequence[Source]) -> dict[str, frozenset[str]]:
        """Sources that only some of the targets wait for, with those that do not: shifts by `cl` give the register
        without the flags, which the last of their µops merges."""
        flows = self.core.flows
        found: dict[str, frozenset[str]] = {}
        for key, source in sources:
            if isinstance(source, Outside) and flows:
                free = [t for t, *_ in self.targets if is_independent(self.instruction, self.row, key, t, flows)]
                if 0 < len(free) < len(self.targets):
                    found[key] = frozenset(free)
        return found

    def _paths(self, own: tuple[str, ...]) -> tuple[str, ...]:
        """The ports that bring the result of a µop over their paths: those that the row names, too."""
        lenders = {path for *ports, path in self.core.result_paths if own == tuple(ports)}
        return tuple(use.ports[0] for use in self.row.ports if len(use.ports) == 1 and use.ports[0] in lenders)

    def _mark_third(self, number: int) -> None:
        """Note which of what a µop waits for is the third vector that it reads."""
        place = isa_of(self.instruction.isa).third_vector(self.instruction)
        if place is None:
            return
        uop, operand = self.uops[number], self.instruction.operands[place]
        waits = [read.resource for read in uop.reads]
        third = waits.index(operand.register) if operand.register else len(waits)
        self.uops[number] = uop._replace(third=third + 1)

    def _value_only(self, ports: _Ports, sources: Sequence[Source]) -> dict[str, tuple[Inside, ...]]:
        """The µops that bring what is stored to the store pipes."""
        reads: list[Outside] = []
        inside: list[Inside] = []
        for _, source in sources:
            _append(source, 0, reads, inside)
        first = len(self.uops)
        busy = 2 if self.instruction.vector_bytes == self.core.memory.passed_bytes else self.busy[1]
        third = 1 if len(reads) + len(inside) == 1 else 0
        self.uops += [
            Uop("compute", own, 1, 0, busy, 0, tuple(reads), tuple(inside), third=third) for own in ports.compute
        ]
        return {target: (Inside(first, 1),) for target, _, _ in self.targets}

    def _least(self, target: str, sources: Sequence[Source]) -> float:
        """Cycles from the last µop to the target: the shortest latency, of those that pass through it."""
        known = [cycles for key, _ in sources if (cycles := self._cycles(key, target)) > 0]
        return max(1.0, min(known) if known else self.row.default_latency)

    def _late(self, key: str, least: dict[str, float]) -> float:
        """How long before the last µop a source must be there; negative if it never passes through it."""
        extra = [cycles - own for t, own in least.items() if (cycles := self._cycles(key, t)) >= own]
        return min(extra, default=0.0 if not least else -1.0)

    def _divider(self, ports: _Ports, first: int) -> int | None:
        """The µop that keeps the divider busy: the first one that is bound to a single port, as dividers are."""
        if not ports.divider or not self.switches.dividers:
            return None
        return next((n for n, own in enumerate(ports.compute, first) if own == self.core.ports[:1]), first)

    def _result(self, target: str, least: float, number: int, sources: Sequence[Source] | None) -> tuple[Inside, ...]:
        """What a target waits for: a µop of the last stage; `sources` where its latencies are not those of the µops."""
        inside = [Inside(number, int(least))]
        if sources is None:
            return tuple(inside)
        reads: list[Outside] = []
        for key, source in sources:
            _append(source, int(self._cycles(key, target)), reads, inside)
        self.uops.append(Uop("value", (), 0, 0, 0, 0, tuple(reads), tuple(inside)))
        return (Inside(len(self.uops) - 1, 0),)

    @property
    def _merged(self) -> Outside | None:
        """The register that loaded data are merged into at the end; None where they overwrite a whole one."""
        merging = (o.register for o in self.instruction.operands[:1] if o.register and o.read and o.written)
        register = next(merging, None) if self.loads else None
        return None if register is None else Outside(register, 0)

    @property
    def _gathered(self) -> Outside | None:
        """What a gather merges into; None for other instructions, some of whose loads are operands."""
        return self._merged if isa_of(self.instruction.isa).element_bytes(self.instruction) else None

    def _loaded_only(self, sources: Sequence[Source], loaded: Sequence[Source]) -> dict[str, tuple[Inside, ...]]:
        """What targets wait for where nothing computes: the loads, which wait for masks, and what they merge into."""
        last = self._merged
        merged = tuple(source for _, source in sources if isinstance(source, Outside) and source != last)
        for number, uop in enumerate(self.uops):
            if uop.role == "load":
                self.uops[number] = uop._replace(reads=uop.reads + merged)
        found = {
            target: tuple(
                Inside(s.uop, s.cycles + int(self._cycles(k, target))) for k, s in loaded if type(s) is Inside
            )
            for target, _, _ in self.targets
        }
        if last is None:
            return found
        for target, waits in found.items():
            if clears_mask(self.instruction, target):
                found[target] = ()
                continue
            reads = (Outside(last.resource, int(self._cycles("0", target))),)
            found[target] = (Inside(len(self.uops), 0),)
            self.uops.append(Uop("value", (), 0, 0, 0, 0, reads, waits))
        return found

    def _add_stores(
        self, ports: _Ports, sources: Sequence[Source], given: dict[str, tuple[Inside, ...]]
    ) -> list[tuple[int, ...]]:
        """The µops of stores, paired as they are fused."""
        written = [(k, r) for k, r in enumerate(self.instruction.memory) if r.written]
        stored = [(target, place) for target, _, place in self.targets if isinstance(place, int)]
        twice = bool(self.core.memory.load_starts) and any(
            r.size_bytes == self.core.memory.passed_bytes for _, r in written
        )
        addresses = [self._store_address(own, written) for own in ports.addresses for _ in range(1 + twice)]
        data: list[int] = []
        for own in ports.data:
            reads: list[Outside] = []
            inside: list[Inside] = []
            for target, _ in stored:
                inside += given.get(target, ()) if ports.compute else ()
                for _, source in () if ports.compute else sources:
                    _append(source, 0, reads, inside)
            second = bool(data) and self._halved
            data.append(len(self.uops))
            self.uops.append(Uop("store data", own, 1, 0, self.busy[2], 0, tuple(reads), tuple(inside), second=second))
        for target, place in stored if data or (self.core.by_port and addresses) else ():
            if self.core.by_port:
                self.stores.append(
                    (place, self._stored(ports, sources, given.get(target, ())), None, self._moved(target))
                )
            elif self.core.memory.forward_by_table:
                cycles = 0.0 if ports.compute else max((self._cycles(key, target) for key, _ in sources), default=0.0)
                self.stores.append((place, self._renamed(data[-1]), None, round(cycles)))
            else:
                address = addresses[-1] if addresses else None
                self.stores.append((place, data[-1], address, self.core.memory.forward_latency))
        pairs = zip(addresses, data, strict=False)
        rest = addresses[len(data) :] + data[len(addresses) :]
        return [*pairs, *((number,) for number in rest)]

    def _stored(self, ports: _Ports, sources: Sequence[Source], given: tuple[Inside, ...]) -> int:
        """A value that is there when what is stored is: what is computed, or what a plain store moves."""
        reads: list[Outside] = []
        inside = list(given) if not self._moves(ports) else []
        for _, source in sources if self._moves(ports) else ():
            _append(source, 0, reads, inside)
        self.uops.append(Uop("value", (), 0, 0, 0, 0, tuple(reads), tuple(inside)))
        return len(self.uops) - 1

    def _moves(self, ports: _Ports) -> bool:
        """Whether nothing is computed of what is stored."""
        return all(frozenset(own) in self.core.memory.value_ports for own in ports.compute)

    def _moved(self, target: str) -> int:
        """Cycles that the row says from the stored register to memory, beside those of what computes."""
        if any(uop.role == "compute" and frozenset(uop.ports) not in self.core.memory.value_ports for uop in self.uops):
            return 0
        return round(max((self._cycles(key, target) for key, _ in self._sources()), default=0.0))

    def _renamed(self, data: int) -> int:
        """A value that is there with what a store-data µop waits for: what loads get where memory is renamed."""
        uop = self.uops[data]
        self.uops.append(Uop("value", (), 0, 0, 0, 0, uop.reads, uop.inside))
        return len(self.uops) - 1

    def _store_address(self, own: tuple[str, ...], written: Sequence[tuple[int, MemoryReference]]) -> int:
        reads = [
            Outside(n, 0) for _, r in written[:1] for _, n in address_registers(operand_key(self.instruction, r), r)
        ]
        busy = int(bool(self.core.memory.load_starts))
        self.uops.append(Uop("store address", own, 1, 0, busy, 0, tuple(reads), ()))
        return len(self.uops) - 1

    def _alone(self, number: int) -> None:
        """Let a µop keep others of measured throughput waiting; several a cycle do not, they have a bound alone."""
        cycles = self.row.throughput or 0.0
        ticks = min(int(TICKS * cycles), _MOST_TICKS) if cycles >= 1 else 0
        self.uops[number] = self.uops[number]._replace(alone=ticks)
        if any(reference.read and reference.written for reference in self.instruction.memory):
            self.loads, self.stores = [], []  # such a throughput is that of a chain through memory

    def _slot(self, loads: list[int], computing: list[int], stores: list[tuple[int, ...]], values: list[int]) -> None:
        """Put the µops into issue slots: fused ones together, first a store's, then a load with what computes."""
        front = self.row.front_end
        count = len(loads) + len(computing) + sum(map(len, stores))
        to_fuse = count - (front.retire_slots if front else count)
        fused = 0
        tail: list[tuple[int, ...]] = []
        for pair in stores:
            together = len(pair) > 1 and fused < to_fuse
            fused += together
            tail += [pair] if together else [(number,) for number in pair]
        joined = max(0, min(to_fuse - fused, len(loads), len(computing)))
        head: list[tuple[int, ...]] = [*zip(loads[:joined], computing[:joined], strict=True)]
        head += [(number,) for number in (*loads[joined:], *computing[joined:])]
        self.slots = [*head, *tail]
        if values:
            self.slots[-1] += tuple(values)

    def finish_in(self, count: int) -> InstructionUops:
        """All together, spread over so many slots."""
        numbers = range(len(self.uops))
        count = min(max(1, count, ceil(len(numbers) / UOPS_OF_A_SLOT)), _MOST_UOPS)
        apart = tuple(n for n in numbers if self.uops[n].role == "compute")
        if count == 2 and not self.loads and self.stores and len(apart) == 1:
            # a store whose index or constant goes through an ALU: that operation takes the first slot by itself
            self.slots = [apart, tuple(n for n in numbers if n not in apart)]
        elif len(numbers) <= UOPS_OF_A_SLOT:
            self.slots = [tuple(numbers), *[()] * (count - 1)]
        else:
            each = ceil(len(numbers) / count)
            self.slots = [tuple(numbers[k : k + each]) for k in range(0, len(numbers), each)]
        return self.finish(count)

    def finish(self, retire_slots: int) -> InstructionUops:
        """All together, in as many slots as the row says."""
        count = max(1, min(retire_slots, _MOST_UOPS))
        slots = self.slots + [()] * (count - len(self.slots))
        while len(slots) > count:
            slots[-2:] = [slots[-2] + slots[-1]]
        item, loads = self.instruction, bool(self.loads)
        return InstructionUops(
            uops=tuple(self.uops),
            slots=tuple(slots),
            results=tuple(self.results),
            loads=tuple(self.loads),
            stores=tuple(self.stores),
            chaseable=loads and is_simple_load(item, item.memory[self.loads[0][0]], self.core.memory.pointer_reach),
            pointer=loads and isa_of(item.isa).loads_pointer(item) == "whole",
        )


def _append(source: Outside | Inside, cycles: int, reads: list[Outside], inside: list[Inside]) -> None:
    """Let a µop wait for the source, by `cycles` longer."""
    if isinstance(source, Outside):
        reads.append(Outside(source.resource, cycles))
    else:
        inside.append(Inside(source.uop, source.cycles + cycles))
