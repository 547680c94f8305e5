"""Basic blocks of a stretch of code: everything that is reached from its entry, split where control flow goes.

The code is followed rather than read from end to end, so that data between instructions are not taken for code. What
is reached by no jump that is known (handlers of exceptions, targets of an indirect jump without a table) is taken for
code too where it decodes to the end and its jumps hit instructions; else it is said to be left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import pairwise

from kernmodel.binary.image import Binary
from kernmodel.binary.jump_tables import JumpTable, constant_target, read_jump_table
from kernmodel.binary.program import BasicBlock, CodeRange, Ending
from kernmodel.errors import Location, Note
from kernmodel.isa.linear import Linear
from kernmodel.isa.model import Instruction
from kernmodel.isa.protocol import CodeSection
from kernmodel.value_types import dataclass

_GUARDS = 4
"""Blocks before that of an indirect jump in which its comparison is looked for."""


@dataclass
class _Flow:
    """What following the code has found so far.

    Attributes:
        items: instructions by address; leaders: addresses where blocks begin.
        tables: by address of an indirect jump, what it goes to, None where that is unknown.
    """

    binary: Binary
    ranges: tuple[CodeRange, ...]
    entry: int
    items: dict[int, Instruction] = field(default_factory=dict)
    leaders: set[int] = field(default_factory=set)
    tables: dict[int, JumpTable | None] = field(default_factory=dict)
    slots: dict[int, int] = field(default_factory=dict)

    _sorted: list[int] = field(default_factory=list)

    @property
    def addresses(self) -> list[int]:
        """Those of the instructions, ascending."""
        if len(self._sorted) != len(self.items):
            self._sorted = sorted(self.items)
        return self._sorted

    def range_of(self, address: int) -> CodeRange | None:
        return next((one for one in self.ranges if one.first <= address < one.end), None)

    def inside(self, address: int) -> bool:
        """Whether an address is one of the code, and not within an instruction."""
        return self.range_of(address) is not None

    def follow(self, starts: Iterable[int]) -> None:
        """Take everything that is reached from these addresses by direct control flow."""
        waiting = list(starts)
        while waiting:
            start = waiting.pop()
            self.leaders.add(start)
            if start not in self.items:
                waiting += self._run(start)

    def _run(self, start: int) -> Iterator[int]:
        """Take instructions up to one that does not go on; the leaders that they make."""
        stretch = self.range_of(start)
        section = self.binary.section_at(start)
        if stretch is None or section is None:
            return
        expected = start
        for item in self.binary.code.instructions(section, start, min(stretch.end, _end(section))):
            if item.address != expected or item.address in self.items:
                return
            self.items[item.address] = item
            expected = item.address + item.length
            if item.branch in ("conditional", "jump") and item.target is not None and self.inside(item.target):
                yield item.target
            if item.branch in ("conditional", "call") and expected < stretch.end:
                yield expected
            if item.branch is not None or self.binary.isa.stops(item):
                return


def _end(section: CodeSection) -> int:
    return section.address + len(section.data)


def basic_blocks(
    binary: Binary, ranges: tuple[CodeRange, ...], entry: int
) -> tuple[tuple[BasicBlock, ...], tuple[Note, ...]]:
    """The blocks of a stretch of code by ascending address, and what is not known of it.

    Args:
        ranges: the stretches that belong to it.
        entry: where it is entered.
    """
    flow = _Flow(binary, ranges, entry)
    flow.follow((entry,))
    _follow_tables(flow)
    notes = _take_rest(flow)
    blocks = tuple(_block(flow, first, end) for first, end in _spans(flow))
    unknown = [address for address, table in flow.tables.items() if table is None and not flow.slots.get(address)]
    if unknown:
        places = ", ".join(f"{address:#x}" for address in sorted(unknown))
        what = f"where the indirect jump at {places} goes is not known: no jump table was found for it"
        notes = (*notes, Note("indirect-jump", what, "warning", Location(binary.file)))
    guessed = [address for address, table in flow.tables.items() if table is not None and not table.bounded]
    if guessed:
        places = ", ".join(f"{address:#x}" for address in sorted(guessed))
        what = (
            f"no comparison bounds the jump table of {places}: it was read up to the first entry that leads elsewhere"
        )
        notes = (*notes, Note("jump-table-bound", what, "warning", Location(binary.file)))
    return blocks, notes


def _spans(flow: _Flow) -> Iterator[tuple[int, int]]:
    """First address of each block and the address behind it."""
    addresses = flow.addresses
    starts: list[int] = []
    previous: Instruction | None = None
    for address in addresses:
        item = flow.items[address]
        joined = previous is not None and previous.address + previous.length == address
        if address in flow.leaders or not joined or (previous is not None and _ends(flow, previous)):
            starts.append(address)
        previous = item
    bounds = [*starts, addresses[-1] + 1] if addresses else []
    for start, following in pairwise(bounds):
        inside = _within(addresses, start, following)
        last = flow.items[inside[-1]]
        yield start, last.address + last.length


def _within(addresses: Sequence[int], first: int, end: int) -> Sequence[int]:
    from bisect import bisect_left

    return addresses[bisect_left(addresses, first) : bisect_left(addresses, end)]


def _ends(flow: _Flow, item: Instruction) -> bool:
    return item.branch is not None or flow.binary.isa.stops(item)


def _follow_tables(flow: _Flow) -> None:
    """Read the tables of indirect jumps until no new code is found behind them."""
    while True:
        jumps = [item for item in flow.items.values() if item.branch == "indirect" and item.address not in flow.tables]
        if not jumps:
            return
        spans = dict(_spans(flow))
        constants = _constants(flow, spans)
        for jump in jumps:
            before, start = _path_to(flow, spans, jump)
            found = read_jump_table(flow.binary, before, jump, constants.get(start, {}), flow.inside)
            flow.tables[jump.address] = found
            if found is None:
                flow.slots[jump.address] = constant_target(flow.binary, before, jump) or 0
        for jump in jumps:
            table = flow.tables[jump.address]
            flow.follow(table.targets if table is not None else ())


def _path_to(flow: _Flow, spans: Mapping[int, int], jump: Instruction) -> tuple[list[Instruction], int]:
    """The instructions before a jump: of its block, and of blocks before as long as one alone leads there."""
    start = next(first for first, end in spans.items() if first <= jump.address < end)
    path = [flow.items[address] for address in _within(flow.addresses, start, jump.address)]
    sources = _predecessors(flow, spans)
    for _ in range(_GUARDS):
        if len(sources.get(start, ())) != 1 or start == flow.entry:
            break
        (before,) = sources[start]
        if before == start:
            break
        path = [flow.items[address] for address in _within(flow.addresses, before, spans[before])] + path
        start = before
    return path, start


def _predecessors(flow: _Flow, spans: Mapping[int, int]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for first, end in spans.items():
        for successor in _successors(flow, _last(flow, first, end), end):
            found.setdefault(successor, set()).add(first)
    return found


def _last(flow: _Flow, first: int, end: int) -> Instruction:
    address = max(one for one in _within(flow.addresses, first, end))
    return flow.items[address]


def _constants(flow: _Flow, spans: Mapping[int, int]) -> dict[int, dict[str, Linear]]:
    """What registers hold at the beginning of each block, where that is one constant on every way there."""
    state: dict[int, dict[str, Linear]] = {flow.entry: {}}
    waiting = [flow.entry]
    addresses = flow.addresses
    ends = dict(spans)
    while waiting:
        start = waiting.pop()
        if start not in ends:
            continue
        held = dict(state[start])
        inside = [flow.items[address] for address in _within(addresses, start, ends[start])]
        for item in inside:
            _forward(flow, item, held)
        for successor in _successors(flow, inside[-1], ends[start]):
            known = state.get(successor)
            merged = held if known is None else {name: one for name, one in known.items() if held.get(name) == one}
            if known is None or merged != known:
                state[successor] = dict(merged)
                waiting.append(successor)
    return state


def _forward(flow: _Flow, item: Instruction, held: dict[str, Linear]) -> None:
    isa = flow.binary.isa
    effect = isa.effect(item, held.get, lambda _: None)
    known = {name: one for name, one in effect.registers if all(term[0].startswith("&") for term in one.terms)}
    clobbered = isa.registers.clobbered if item.branch == "call" else ()
    for register in (*item.registers_written, *clobbered):
        held.pop(register, None)
    held.update(known)


def _take_rest(flow: _Flow) -> tuple[Note, ...]:
    """Take what lies between and is code by all appearance; say what is left out."""
    taken = 0
    while True:  # behind what is taken of a gap another one begins
        gaps = {gap: _consistent(flow, *gap) for gap in _gaps(flow)}
        code = [items for items in gaps.values() if items]
        if not code:
            break
        taken += len(code)
        flow.follow(items[0].address for items in code)
        _follow_tables(flow)
    left_out = sum(end - first for (first, end), items in gaps.items() if items is None)
    notes: tuple[Note, ...] = ()
    where = Location(flow.binary.file)
    if taken:
        what = "are" if taken > 1 else "is"
        text = f"{taken} stretch{'es' if taken > 1 else ''} of code {what} reached by no jump that is known"
        notes = (Note("unreached-code", f"{text} (handlers of exceptions come in that way)", "assumption", where),)
    if left_out:
        text = f"{left_out} bytes between the instructions are reached by nothing and taken to be data"
        notes = (*notes, Note("data-in-code", text, "assumption", where))
    return notes


def _gaps(flow: _Flow) -> list[tuple[int, int]]:
    """Stretches that hold no instruction that was reached."""
    gaps = []
    for stretch in flow.ranges:
        place = stretch.first
        for address in _within(flow.addresses, stretch.first, stretch.end):
            if address > place:
                gaps.append((place, address))
            place = max(place, address + flow.items[address].length)
        if place < stretch.end:
            gaps.append((place, stretch.end))
    return gaps


def _consistent(flow: _Flow, first: int, end: int) -> list[Instruction] | None:
    """The instructions of a gap without the padding that leads it, [] if it is padding or zeros; None if it is no
    code."""
    section = flow.binary.section_at(first)
    if section is None:
        return None
    bytes_of = section.data[first - section.address : end - section.address]
    if not any(bytes_of):
        return []
    items = list(flow.binary.code.instructions(section, first, end))
    isa = flow.binary.isa
    begin = next((number for number, item in enumerate(items) if not isa.is_padding(item)), None)
    if begin is None:
        return [] if items else None
    code = items[begin:]
    joined = all(a.address + a.length == b.address for a, b in pairwise(items)) and items[0].address == first
    places = {item.address for item in items} | set(flow.items)
    hit = all(
        one.target in places or not flow.inside(one.target)
        for one in code
        if one.branch in ("conditional", "jump") and one.target is not None
    )
    last = code[-1]
    whole = last.address + last.length == end
    return code if joined and hit and whole and not any(isa.is_privileged(one) for one in code) else None


def _successors(flow: _Flow, last: Instruction, end: int) -> tuple[int, ...]:
    behind = (end,) if end in flow.items else ()
    if last.branch == "indirect":
        table = flow.tables.get(last.address)
        return table.targets if table is not None else ()
    if last.branch == "return" or flow.binary.isa.stops(last):
        return ()
    taken: tuple[int, ...] = ()
    if last.branch in ("conditional", "jump") and last.target in flow.items and last.target is not None:
        taken = (last.target,)
    return taken if last.branch == "jump" else tuple(dict.fromkeys((*behind, *taken)))


def _ending(flow: _Flow, last: Instruction) -> Ending:
    if last.branch == "jump":
        return "jumps" if last.target is not None and last.target in flow.items else "tail call"
    if last.branch == "indirect":
        return "tail call" if flow.slots.get(last.address) else "indirect"
    if last.branch is not None:
        named: dict[str, Ending] = {"conditional": "branches", "call": "calls", "return": "returns"}
        return named[last.branch]
    return "traps" if flow.binary.isa.stops(last) else "falls"


def _block(flow: _Flow, first: int, end: int) -> BasicBlock:
    items = tuple(flow.items[address] for address in _within(flow.addresses, first, end))
    section = flow.binary.section_at(first)
    code = section.data[first - section.address : end - section.address] if section is not None else b""
    ending = _ending(flow, items[-1])
    leads = _leads_to(flow, items[-1]) if ending in ("calls", "tail call") else ""
    return BasicBlock(first, code, items, _successors(flow, items[-1], end), ending, leads)


def _leads_to(flow: _Flow, last: Instruction) -> str:
    """The name of the function that a call or jump goes to."""
    from kernmodel.code.calls import called_name

    if flow.slots.get(last.address):
        return flow.binary.imported(flow.slots[last.address])
    if last.target is not None:
        return flow.binary.called(last.target)
    constant = [one.displacement for one in last.memory if one.read and not one.index and not one.symbol]
    imported = flow.binary.imported(constant[0]) if constant and last.branch == "call" else ""
    return imported or called_name(last, {})


def cut_block(block: BasicBlock, address: int) -> tuple[BasicBlock, BasicBlock]:
    """The two blocks that a block becomes when something jumps to an instruction in its middle.

    Raises:
        ValueError: no instruction of the block begins there.
    """
    first = tuple(item for item in block.instructions if item.address < address)
    second = block.instructions[len(first) :]
    if not first or not second or second[0].address != address:
        raise ValueError(f"no instruction begins at {address:#x}")
    size = address - block.address
    return (
        replace(block, code=block.code[:size], instructions=first, successors=(address,), ending="falls", leads_to=""),
        replace(block, address=address, code=block.code[size:], instructions=second),
    )
