"""What fills each part of the core, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from kernmodel.incore.answer import components as parts
from kernmodel.incore.answer.components import one_at_a_time
from kernmodel.incore.answer.verdict import reaches
from kernmodel.incore.engine.analyser import Analyser
from kernmodel.incore.engine.interface import Answer
from kernmodel.incore.engine.layout import NOTHING, SOURCES, Totals
from kernmodel.incore.engine.lowering import Pair, Template
from kernmodel.incore.model import Chain

_NAMED = 4  # instructions or ports that a sentence spells out


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
        front: what there is to say of the front end, None where nothing is known.
        stalls: gives those of the simulation, None without it.
        lcd, ports, divider: give the longest loop-carried dependency, and what keeps ports and dividers busy.
    """

    mnemonics: Sequence[str]
    issue_width: int
    components: Mapping[str, float]
    applied: Mapping[str, float]
    front: Totals | None
    stalls: Callable[[], Mapping[str, float] | None]
    lcd: Callable[[], Chain | None]
    ports: Callable[[], Busy]
    divider: Callable[[], Busy]

    @property
    def prediction(self) -> float:
        """Cycles per pass: the slowest component."""
        return max(self.applied.values(), default=0.0)


def filled_of(
    analyser: Analyser,
    templates: Sequence[Template],
    fused: Mapping[int, Pair],
    answer: Answer,
    lcd: Callable[[], Chain | None],
) -> Filled:
    """What there is to say of a block, from the engine's answer.

    Args:
        analyser: that was asked.
        templates: of its instructions; fused: pairs that macro-fuse, by their first instruction.
        answer: of the engine.
        lcd: gives its longest loop-carried dependency.
    """
    mnemonics = [template.instruction.mnemonic for template in templates]
    totals, met = answer.totals, answer.met
    divides = parts.DIVIDER in met

    def busy(cycles: float, ports: int) -> Busy:
        owned = [fused.get(number, own) for number, own in enumerate(templates)] if fused else templates
        names = tuple([name for name, own in zip(mnemonics, owned, strict=True) if _needs(own.masks, ports)])
        return Busy(cycles, analyser.ports(ports), names)

    def largest() -> Busy:
        if answer.slow > answer.ports_alone + (0.0 if divides else parts.TINY):
            return Busy(answer.slow, (), one_at_a_time([template.row for template in templates])[0])
        return busy(answer.ports_alone, totals.ports)

    return Filled(
        mnemonics=mnemonics,
        issue_width=analyser.core.parameters.issue_width,
        components=met,
        applied=answer.applied if answer.overtaken else met,
        front=parts.front_of(analyser.core, answer),
        stalls=lambda: answer.stall_shares,
        lcd=lcd,
        ports=largest,
        divider=lambda: busy(met[parts.DIVIDER], totals.divider),
    )


@cache
def _needs(masks: tuple[int, ...], ports: int) -> bool:
    """Whether some of the µops with these ports can go nowhere but to some ports."""
    return any(mask and not mask & ~ports for mask in masks)


def clause(name: str, filled: Filled) -> str:
    """What fills a component that the block meets."""
    return _CLAUSES[name](filled)


def idle_clause(name: str, filled: Filled) -> str:
    """Why a part of the front end does not count."""
    seen = filled.front or NOTHING
    source = SOURCES[seen.source]
    if name in (parts.PREDECODE, parts.DECODE):
        return f"idle: µops come from the {_SOURCES[source]}"
    held = "keep some of the code out of it" if seen.erratum else f"µops come from the {_SOURCES[source]}"
    return f"idle: {'branches of the JCC erratum ' if seen.erratum else ''}{held}"


_SOURCES = {"LSD": "loop buffer", "DSB": "µop cache", "decoders": "decoders", "ideal": "idealised front end"}


def _predecode(filled: Filled) -> str:
    seen = filled.front or NOTHING
    slow = f", {seen.prefixed} with a length-changing prefix" if seen.prefixed else ""
    cycles = _cycles(filled.components[parts.PREDECODE])
    count = _count(len(filled.mnemonics), "instruction")
    if not seen.entries:
        return f"fetching {count} in {seen.length} bytes takes {cycles} per pass"
    return f"the predecoder takes {cycles} per pass for {count} in {seen.length} bytes{slow}"


def _decode(filled: Filled) -> str:
    seen = filled.front or NOTHING
    cycles = _cycles(filled.components[parts.DECODE])
    if seen is not NOTHING and SOURCES[seen.source] != "decoders":
        branches = _count(seen.erratum, "branch", "branches")
        keep = "keeps" if seen.erratum == 1 else "keep"
        return (
            f"decoding takes {cycles} per pass, with what the µop cache delivers: {branches} of the JCC erratum {keep} "
            "code out of it"
        )
    first = f", {seen.complex_units} of which need the complex one" if seen.complex_units else ""
    return f"the decoders take {cycles} per pass for {_count(seen.units, 'instruction')} or fused pairs{first}"


def _dsb(filled: Filled) -> str:
    seen = filled.front or NOTHING
    cycles = _cycles(filled.components[parts.DSB])
    if not seen.entries:
        return f"the op cache takes {cycles} per pass to deliver {_count(seen.decoded, 'entry', 'entries')}"
    return f"the µop cache takes {cycles} per pass to deliver {seen.decoded} µops"


def _lsd(filled: Filled) -> str:
    seen = filled.front or NOTHING
    cycles, rounds = _cycles(filled.components[parts.LSD]), _count(seen.copies, "pass", "passes")
    return f"the loop buffer takes {cycles} per pass to replay {seen.decoded} µops, {rounds} a round"


def _issue(filled: Filled) -> str:
    seen, width = filled.front, filled.issue_width
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
