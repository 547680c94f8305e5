"""What fills each part of the core; `report.text.reasons` writes the sentences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache

from kernmodel.incore.answer import components as parts
from kernmodel.incore.answer.components import one_at_a_time
from kernmodel.incore.answer.verdict import reaches
from kernmodel.incore.engine.analyser import Analyser
from kernmodel.incore.engine.interface import Answer
from kernmodel.incore.engine.layout import EARLY_ENDS, NOTHING, SOURCES, Totals
from kernmodel.incore.engine.lowering import Pair, Template
from kernmodel.incore.model import Chain, Reason, Why
from kernmodel.incore.tables.core_parameters import OpCacheParameters
from kernmodel.value_types import NamedTuple

_SEEN = 0.005
"""Share of the cycles from which on it is told that the renamer stands still: half of what percent show."""


class BusyPorts(NamedTuple):
    """What keeps ports busy.

    Attributes:
        cycles: per pass; ports: the ports that are busy so long, none where a measured throughput goes beyond them.
        users: mnemonics of the instructions whose µops need these ports; with no ports, the forms that are so slow.
    """

    cycles: float
    ports: tuple[str, ...]
    users: tuple[str, ...]


class BlockFacts(NamedTuple):
    """Facts of a block and its bounds from which the reasons are derived.

    Attributes:
        mnemonics: of the instructions of the block; issue_width: of the core.
        components: cycles of the components that the block meets; applied: of those that count.
        front: what there is to say of the front end, None where nothing is known.
        op_cache: the front end of a Zen core, None for others.
        stalls: gives those of the simulation, None without it.
        lcd, ports, divider: give the longest loop-carried dependency, and what keeps ports and dividers busy.
    """

    mnemonics: Sequence[str]
    issue_width: int
    components: Mapping[str, float]
    applied: Mapping[str, float]
    front: Totals | None
    op_cache: OpCacheParameters | None
    stalls: Callable[[], Mapping[str, float] | None]
    lcd: Callable[[], Chain | None]
    ports: Callable[[], BusyPorts]
    divider: Callable[[], BusyPorts]

    @property
    def prediction(self) -> float:
        """Cycles per pass: the slowest component."""
        return max(self.applied.values(), default=0.0)


def block_facts(
    analyser: Analyser,
    templates: Sequence[Template],
    fused: Mapping[int, Pair],
    answer: Answer,
    lcd: Callable[[], Chain | None],
) -> BlockFacts:
    """The facts of a block, from the engine's answer.

    Args:
        analyser: that was asked.
        templates: of its instructions; fused: pairs that macro-fuse, by their first instruction.
        answer: of the engine.
        lcd: gives its longest loop-carried dependency.
    """
    mnemonics = [template.instruction.mnemonic for template in templates]
    totals, met = answer.totals, answer.met
    divides = parts.DIVIDER in met

    def busy(cycles: float, ports: int) -> BusyPorts:
        owned = [fused.get(number, own) for number, own in enumerate(templates)] if fused else templates
        names = tuple([name for name, own in zip(mnemonics, owned, strict=True) if _needs(own.masks, ports)])
        return BusyPorts(cycles, analyser.ports(ports), names)

    def largest() -> BusyPorts:
        if answer.slow > answer.ports_alone + (0.0 if divides else parts.TINY):
            return BusyPorts(answer.slow, (), one_at_a_time([template.row for template in templates])[0])
        return busy(answer.ports_alone, totals.ports)

    return BlockFacts(
        mnemonics=mnemonics,
        issue_width=analyser.core.parameters.issue_width,
        components=met,
        applied=answer.applied if answer.overtaken else met,
        front=parts.front_of(analyser.core, answer),
        op_cache=analyser.core.op_cache,
        stalls=lambda: answer.stall_shares,
        lcd=lcd,
        ports=largest,
        divider=lambda: busy(met[parts.DIVIDER], totals.divider),
    )


@cache
def _needs(masks: tuple[int, ...], ports: int) -> bool:
    """Whether some of the µops with these ports can go nowhere but to some ports."""
    return any(mask and not mask & ~ports for mask in masks)


def reason_of(name: str, facts: BlockFacts) -> Reason:
    """What fills a component that the block meets."""
    return _REASONS[name](facts)


def idle_reason(name: str, facts: BlockFacts) -> Reason:
    """Why a part of the front end does not count."""
    seen = facts.front or NOTHING
    barred = seen.erratum and name not in (parts.PREDECODE, parts.DECODE)
    return Reason(Why.IDLE_ERRATUM if barred else Why.IDLE, names=(SOURCES[seen.source],))


def _predecode(facts: BlockFacts) -> Reason:
    seen = facts.front or NOTHING
    figures = {"instructions": len(facts.mnemonics), "bytes": seen.length, "prefixed": seen.prefixed}
    return Reason(Why.FETCH if facts.op_cache else Why.PREDECODE, facts.components[parts.PREDECODE], figures)


def _decode(facts: BlockFacts) -> Reason:
    seen, cycles = facts.front or NOTHING, facts.components[parts.DECODE]
    if seen is not NOTHING and SOURCES[seen.source] != "decoders":
        return Reason(Why.DECODE_ERRATUM, cycles, {"branches": seen.erratum})
    return Reason(Why.DECODE, cycles, {"units": seen.units, "complex": seen.complex_units})


def _dsb(facts: BlockFacts) -> Reason:
    seen, cycles, core = facts.front or NOTHING, facts.components[parts.DSB], facts.op_cache
    if core is not None and cycles > -(-seen.decoded // (core.op_cache_width or seen.decoded)):
        if cycles > seen.code_lines > 0:
            return Reason(Why.CONSTANTS, cycles, {"entries": seen.decoded, "constants": seen.constants})
        return Reason(Why.CODE_LINES, cycles, {"lines": round(cycles), "bytes": seen.length})
    return Reason(Why.UOP_CACHE if core is None else Why.OP_CACHE, cycles, {"entries": seen.decoded})


def _lsd(facts: BlockFacts) -> Reason:
    seen = facts.front or NOTHING
    return Reason(Why.LOOP_BUFFER, facts.components[parts.LSD], {"uops": seen.decoded, "passes": seen.copies})


def _issue(facts: BlockFacts) -> Reason:
    seen, width, cycles = facts.front, facts.issue_width, facts.components[parts.ISSUE]
    if seen is None:
        return Reason(Why.ISSUE, cycles, {"uops": round(cycles * width), "width": width, "synchronisations": 0})
    figures: dict[str, float] = {"uops": seen.slots, "width": width, "synchronisations": seen.synchronisations}
    if facts.op_cache is None and cycles > seen.entries / width:
        return Reason(Why.ISSUE_GROUPS, cycles, figures)
    most = facts.op_cache and facts.op_cache.constants_dispatched
    if most and cycles > seen.slots / width and cycles == seen.constants / most:
        return Reason(Why.ISSUE_CONSTANTS, cycles, {**figures, "constants": seen.constants, "most": most})
    if facts.op_cache is not None and cycles > seen.slots / width:
        return Reason(Why.ISSUE_INSTRUCTIONS, cycles, {**figures, "instructions": round(seen.units / cycles)})
    return Reason(Why.ISSUE, cycles, figures)


def _busy(busy: BusyPorts) -> Reason:
    why = (Why.PORTS if busy.ports else Why.ONE_AT_A_TIME) if busy.cycles else Why.NO_PORT
    return Reason(why, busy.cycles, names=busy.ports, users=busy.users)


def _precedence(facts: BlockFacts) -> Reason:
    chain = facts.lcd()
    if chain is None:
        return Reason(Why.NO_DEPENDENCY)
    users = tuple([facts.mnemonics[member] for member in chain.members])
    return Reason(Why.DEPENDENCY, chain.cycles, {"passes": chain.passes}, chain.carriers, users)


def _pipeline(facts: BlockFacts) -> Reason:
    cycles = facts.components[parts.PIPELINE]
    largest = max((c for name, c in facts.applied.items() if name != parts.PIPELINE), default=0.0)
    if reaches(largest, cycles):
        return Reason(Why.PIPELINE, cycles)
    seen = {name: share for name, share in (facts.stalls() or {}).items() if share >= _SEEN}
    stalls = {name: share for name, share in seen.items() if name not in EARLY_ENDS} or seen
    if not stalls:
        return Reason(Why.PORT_CHOICE, cycles, {"largest": largest})
    name = max(stalls, key=stalls.__getitem__)
    return Reason(Why.STALLS, cycles, {"largest": largest, "share": stalls[name]}, (name,))


_REASONS: dict[str, Callable[[BlockFacts], Reason]] = {
    parts.PREDECODE: _predecode,
    parts.DECODE: _decode,
    parts.DSB: _dsb,
    parts.LSD: _lsd,
    parts.ISSUE: _issue,
    parts.PORTS: lambda facts: _busy(facts.ports()),
    parts.DIVIDER: lambda facts: _busy(facts.divider()),
    parts.PRECEDENCE: _precedence,
    parts.PIPELINE: _pipeline,
}
