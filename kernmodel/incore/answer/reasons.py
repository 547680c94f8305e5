"""What fills each part of the core, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from kernmodel.incore.answer import components as parts
from kernmodel.incore.answer.components import Bounds, Rows, Seen, one_at_a_time
from kernmodel.incore.answer.verdict import reaches
from kernmodel.incore.engine.model import Source
from kernmodel.incore.engine.ports import optimal_bound
from kernmodel.incore.model import Chain, Parameters, PortUse
from kernmodel.isa.model import Instruction

_NAMED = 4  # instructions or ports that a sentence spells out


class Front(NamedTuple):
    """What the sentences say of the front end.

    Attributes:
        source: where the µops come from; copies: of the loop in the LSD.
        length: bytes of the block; prefixed: instructions with a length-changing prefix.
        units: instructions and fused pairs; complex_units: of them, those that need the complex decoder.
        decoded, slots: µops of all units in the DSB and at issue; entries: slots of all queue entries, 0 on the Zen
            cores, which have no predecoder and no queue here.
        synchronisations: µops of the stack engine.
        erratum: branches that the JCC erratum concerns.
    """

    source: Source
    copies: int
    length: int
    prefixed: int
    units: int
    complex_units: int
    decoded: int
    slots: int
    entries: int
    synchronisations: int
    erratum: int


class Busy(NamedTuple):
    """What keeps ports busy.

    Attributes:
        cycles: per pass; ports: the ports that are busy so long, none where a measured throughput goes beyond them.
        users: mnemonics of the instructions whose µops need these ports; with no ports, the forms that are so slow.
    """

    cycles: float
    ports: tuple[str, ...]
    users: tuple[str, ...]


class Filled(NamedTuple):
    """What the sentences are about.

    Attributes:
        mnemonics: of the instructions of the block; issue_width: of the core.
        components: cycles of the components that the block meets; applied: of those that count.
        front: gives what there is to say of the front end, None where nothing is known.
        stalls: gives those of the simulation, None without it.
        lcd, ports, divider: give the longest loop-carried dependency, and what keeps ports and dividers busy.
    """

    mnemonics: Sequence[str]
    issue_width: int
    components: Mapping[str, float]
    applied: Mapping[str, float]
    front: Callable[[], Front | None]
    stalls: Callable[[], Mapping[str, float] | None]
    lcd: Callable[[], Chain | None]
    ports: Callable[[], Busy]
    divider: Callable[[], Busy]

    @property
    def prediction(self) -> float:
        """Cycles per pass: the slowest component."""
        return max(self.applied.values(), default=0.0)


def filled_of(
    instructions: Sequence[Instruction],
    rows: Rows,
    parameters: Parameters,
    bounds: Bounds,
    lcd: Callable[[], Chain | None],
    throughput: Callable[[], tuple[float, tuple[str, ...]]],
    port_model: Literal["optimal", "even"],
) -> Filled:
    """What there is to say of a block, from its bounds.

    Args:
        instructions, rows: the block; parameters: of the core.
        bounds: of the block.
        lcd: gives its longest loop-carried dependency.
        throughput: gives TP and the ports that bind it, none where a measured throughput goes beyond them.
        port_model: how µops are shared out to ports.
    """
    mnemonics = tuple([instruction.mnemonic for instruction in instructions])

    def busy(cycles: float, ports: tuple[str, ...]) -> Busy:
        inside = frozenset(ports)
        meets = inside.issuperset if port_model == "optimal" else inside.intersection
        users = zip(mnemonics, bounds.uses, strict=True)
        names = tuple(name for name, row in users if any(use.ports and meets(use.ports) for use in row))
        return Busy(cycles, ports, names if ports else one_at_a_time(rows)[0])

    def largest(divides: bool) -> Busy:
        cycles, names = optimal_bound(u for row in bounds.uses for u in row if _divides(u) == divides)
        return busy(cycles, tuple(port for port in parameters.ports if port in names))

    def ports() -> Busy:
        if parts.DIVIDER not in bounds.components:
            return busy(*throughput())
        slow_forms, slow = one_at_a_time(rows)
        found = largest(divides=False)
        return Busy(slow, (), slow_forms) if slow > found.cycles else found

    return Filled(
        mnemonics=mnemonics,
        issue_width=parameters.issue_width,
        components=bounds.components,
        applied=bounds.applied,
        front=lambda: None if bounds.front is None else _front_of(bounds.front),
        stalls=lambda: None if bounds.simulated is None else bounds.simulated.stalls,
        lcd=lcd,
        ports=ports,
        divider=lambda: largest(divides=True),
    )


def _front_of(seen: Seen) -> Front:
    units = seen.units
    return Front(
        source=seen.fetch.source,
        copies=seen.fetch.copies,
        length=seen.block.length,
        prefixed=len(seen.block.prefixed),
        units=len(units),
        complex_units=sum(unit.complex for unit in units),
        decoded=sum(unit.decoded for unit in units),
        slots=sum(unit.slots for unit in units),
        entries=sum(entry.slots for entry in seen.entries),
        synchronisations=seen.block.synchronisations,
        erratum=len(seen.erratum),
    )


_NOWHERE = Front("ideal", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0)


def clause(name: str, filled: Filled) -> str:
    """What fills a component that the block meets."""
    return _CLAUSES[name](filled)


def idle_clause(name: str, filled: Filled) -> str:
    """Why a part of the front end does not count."""
    seen = filled.front() or _NOWHERE
    if name in (parts.PREDECODE, parts.DECODE):
        return f"idle: µops come from the {_SOURCES[seen.source]}"
    held = "keep some of the code out of it" if seen.erratum else f"µops come from the {_SOURCES[seen.source]}"
    return f"idle: {'branches of the JCC erratum ' if seen.erratum else ''}{held}"


_SOURCES = {"LSD": "loop buffer", "DSB": "µop cache", "decoders": "decoders", "ideal": "idealised front end"}


def _predecode(filled: Filled) -> str:
    seen = filled.front() or _NOWHERE
    slow = f", {seen.prefixed} with a length-changing prefix" if seen.prefixed else ""
    cycles = _cycles(filled.components[parts.PREDECODE])
    count = _count(len(filled.mnemonics), "instruction")
    if not seen.entries:
        return f"fetching {count} in {seen.length} bytes takes {cycles} per pass"
    return f"the predecoder takes {cycles} per pass for {count} in {seen.length} bytes{slow}"


def _decode(filled: Filled) -> str:
    seen = filled.front() or _NOWHERE
    cycles = _cycles(filled.components[parts.DECODE])
    if seen is not _NOWHERE and seen.source != "decoders":
        branches = _count(seen.erratum, "branch", "branches")
        keep = "keeps" if seen.erratum == 1 else "keep"
        return (
            f"decoding takes {cycles} per pass, with what the µop cache delivers: {branches} of the JCC erratum {keep} "
            "code out of it"
        )
    first = f", {seen.complex_units} of which need the complex one" if seen.complex_units else ""
    return f"the decoders take {cycles} per pass for {_count(seen.units, 'instruction')} or fused pairs{first}"


def _dsb(filled: Filled) -> str:
    seen = filled.front() or _NOWHERE
    cycles = _cycles(filled.components[parts.DSB])
    if not seen.entries:
        return f"the op cache takes {cycles} per pass to deliver {_count(seen.decoded, 'entry', 'entries')}"
    return f"the µop cache takes {cycles} per pass to deliver {seen.decoded} µops"


def _lsd(filled: Filled) -> str:
    seen = filled.front() or _NOWHERE
    cycles, rounds = _cycles(filled.components[parts.LSD]), _count(seen.copies, "pass", "passes")
    return f"the loop buffer takes {cycles} per pass to replay {seen.decoded} µops, {rounds} a round"


def _issue(filled: Filled) -> str:
    seen, width = filled.front(), filled.issue_width
    if seen is None:
        renaming = filled.components[parts.ISSUE]
        return f"the renamer issues {round(renaming * width)} µops, {width} a cycle, in {_cycles(renaming)} per pass"
    if seen.entries:
        split = filled.components[parts.ISSUE] > seen.entries / width
        why = ", as some go together or end a round of the loop buffer" if split else ""
    else:
        few = filled.components[parts.ISSUE] > seen.slots / width
        why = f", as it takes {round(seen.units / filled.components[parts.ISSUE])} instructions a cycle" if few else ""
    engine = f" and {seen.synchronisations} of the stack engine" if seen.synchronisations else ""
    cycles = _cycles(filled.components[parts.ISSUE])
    return f"the renamer issues {seen.slots} µops{engine}, {width} a cycle, in {cycles} per pass{why}"


def _divides(use: PortUse) -> bool:
    return bool(use.ports) and use.ports[0].endswith("DV")


def _ports_busy(busy: Busy) -> str:
    if not busy.cycles:
        return "no instruction needs an execution port"
    if not busy.ports:
        slow = _listed(busy.users)
        return f"{slow}: measured reciprocal throughput, one after the other, takes {busy.cycles:.2f} cycles per pass"
    named = _listed(_counted(busy.users))
    many = len(busy.ports) > 1
    return (
        f"{'ports' if many else 'port'} {_listed(busy.ports)} {'are' if many else 'is'} busy "
        f"{busy.cycles:.2f} cycles per pass with {named}"
    )


def _counted(names: Sequence[str]) -> Sequence[str]:
    """Each name once, with how often it is there, the most frequent first."""
    distinct = dict.fromkeys(names)
    if len(distinct) == len(names):
        return names
    return [f"{n}× {name}" if n > 1 else name for name, n in Counter(names).most_common()]


def _precedence(filled: Filled) -> str:
    chain = filled.lcd()
    if chain is None:
        return "no instruction waits for an earlier pass"
    steps = " → ".join(
        f"{filled.mnemonics[member]} ({carrier})"
        for member, carrier in zip(chain.members[:_NAMED], chain.carriers, strict=False)
    )
    more = f" → … ({len(chain.members) - _NAMED} more)" if len(chain.members) > _NAMED else ""
    span = "from pass to pass" if chain.passes == 1 else f"over {chain.passes} passes"
    return f"the dependency chain {span} takes {chain.cycles:.2f} cycles per pass: {steps}{more}"


def _pipeline(filled: Filled) -> str:
    cycles = _cycles(filled.components[parts.PIPELINE])
    largest = max((c for name, c in filled.applied.items() if name != parts.PIPELINE), default=0.0)
    if reaches(largest, filled.components[parts.PIPELINE]):
        return f"the simulated pipeline takes {cycles} per pass: no more than its parts"
    beyond = f"{cycles} per pass in the simulated pipeline, {_cycles(largest)} by the largest bound"
    stalls = {name: share for name, share in (filled.stalls() or {}).items() if share >= 0.005}
    if not stalls:
        return f"{beyond}: µops wait for ports that the renamer gave them"
    name = max(stalls, key=stalls.__getitem__)
    return f"{beyond}: the renamer stands still in {100 * stalls[name]:.0f} % of the cycles, as {_STALLS[name]}"


_STALLS = {
    "front end": "the front end hands it no µops",
    "scheduler": "the scheduler is full of µops that wait",
    "reorder buffer": "the reorder buffer is full of µops that have not retired",
}

_CLAUSES: dict[str, Callable[[Filled], str]] = {
    parts.PREDECODE: _predecode,
    parts.DECODE: _decode,
    parts.DSB: _dsb,
    parts.LSD: _lsd,
    parts.ISSUE: _issue,
    parts.PORTS: lambda filled: _ports_busy(filled.ports()),
    parts.DIVIDER: lambda filled: _ports_busy(filled.divider()),
    parts.PRECEDENCE: _precedence,
    parts.PIPELINE: _pipeline,
}


def _cycles(cycles: float) -> str:
    return f"{cycles:.2f} cycles"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _listed(names: Sequence[str]) -> str:
    """The first of the names, and how many there are besides; one more is named as well."""
    shown = len(names) if len(names) <= _NAMED + 1 else _NAMED
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return f"{', '.join(names[:shown])}{more}"
