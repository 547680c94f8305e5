"""What fills each part of the core, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from kernmodel.assembly.model import Instruction
from kernmodel.incore import bounds as parts
from kernmodel.incore.bounds import Bounds, Rows, one_at_a_time
from kernmodel.incore.model import Chain, Notion, Parameters, PortUse
from kernmodel.incore.ports import optimal_bound
from kernmodel.incore.verdict import reaches

_NAMED = 4  # instructions or ports that a sentence spells out


class Filled(NamedTuple):
    """What the sentences are about: the block, what bounds it, and the port bound with its ports."""

    instructions: Sequence[Instruction]
    rows: Rows
    parameters: Parameters
    bounds: Bounds
    notion: Notion
    lcd: Chain | None
    throughput: float
    binding: tuple[str, ...]
    port_model: Literal["optimal", "even"]

    def cycles(self, name: str) -> float:
        """Cycles of a component."""
        return self.bounds.components[name]


def clause(name: str, filled: Filled) -> str:
    """What fills a component that the block meets."""
    return _CLAUSES[name](filled)


def idle_clause(name: str, filled: Filled) -> str:
    """Why a part of the front end does not count."""
    seen = filled.bounds.front
    source = seen.fetch.source if seen else "ideal"
    if name in (parts.PREDECODE, parts.DECODE):
        return f"idle: µops come from the {_SOURCES[source]}"
    held = "keep some of the code out of it" if seen and seen.erratum else f"µops come from the {_SOURCES[source]}"
    return f"idle: {'branches of the JCC erratum ' if seen and seen.erratum else ''}{held}"


_SOURCES = {"LSD": "loop buffer", "DSB": "µop cache", "decoders": "decoders", "ideal": "idealised front end"}


def _predecode(filled: Filled) -> str:
    seen = filled.bounds.front
    count = len(filled.instructions)
    length = seen.block.length if seen else 0
    prefixed = len(seen.block.prefixed) if seen else 0
    slow = f", {prefixed} with a length-changing prefix" if prefixed else ""
    cycles = _cycles(filled.cycles(parts.PREDECODE))
    return f"the predecoder takes {cycles} per pass for {_count(count, 'instruction')} in {length} bytes{slow}"


def _decode(filled: Filled) -> str:
    seen = filled.bounds.front
    cycles = _cycles(filled.cycles(parts.DECODE))
    if seen and seen.fetch.source != "decoders":
        branches = _count(len(seen.erratum), "branch", "branches")
        keep = "keeps" if len(seen.erratum) == 1 else "keep"
        return (
            f"decoding takes {cycles} per pass, with what the µop cache delivers: {branches} of the JCC erratum {keep} "
            "code out of it"
        )
    units = filled.bounds.front.units if filled.bounds.front else ()
    complex_ones = sum(unit.complex for unit in units)
    first = f", {complex_ones} of which need the complex one" if complex_ones else ""
    return f"the decoders take {cycles} per pass for {_count(len(units), 'instruction')} or fused pairs{first}"


def _dsb(filled: Filled) -> str:
    units = filled.bounds.front.units if filled.bounds.front else ()
    cycles = _cycles(filled.cycles(parts.DSB))
    return f"the µop cache takes {cycles} per pass to deliver {sum(unit.decoded for unit in units)} µops"


def _lsd(filled: Filled) -> str:
    seen = filled.bounds.front
    uops = sum(unit.decoded for unit in seen.units) if seen else 0
    copies = seen.fetch.copies if seen else 1
    cycles = _cycles(filled.cycles(parts.LSD))
    return f"the loop buffer takes {cycles} per pass to replay {uops} µops, {_count(copies, 'pass', 'passes')} a round"


def _issue(filled: Filled) -> str:
    seen = filled.bounds.front
    slots = sum(unit.slots for unit in seen.units) if seen else 0
    entries = sum(entry.slots for entry in seen.entries) if seen else 0
    split = filled.cycles(parts.ISSUE) > entries / filled.parameters.issue_width
    why = ", as some go together or end a round of the loop buffer" if split else ""
    more = seen.block.synchronisations if seen else 0
    engine = f" and {more} of the stack engine" if more else ""
    cycles = _cycles(filled.cycles(parts.ISSUE))
    width = filled.parameters.issue_width
    return f"the renamer issues {slots} µops{engine}, {width} a cycle, in {cycles} per pass{why}"


def _ports(filled: Filled) -> str:
    """What fills the ports; where a divider binds them all, what fills the others."""
    apart = parts.DIVIDER in filled.bounds.components
    if not apart:
        return _ports_busy(filled, filled.throughput, filled.binding)
    slow_forms, slow = one_at_a_time(filled.rows)
    cycles, names = optimal_bound(u for row in filled.bounds.uses for u in row if not _divides(u))
    if slow > cycles:
        return _slow(slow_forms, slow)
    return _ports_busy(filled, cycles, tuple(p for p in filled.parameters.ports if p in names))


def _divider(filled: Filled) -> str:
    cycles, names = optimal_bound(u for row in filled.bounds.uses for u in row if _divides(u))
    return _ports_busy(filled, cycles, tuple(p for p in filled.parameters.ports if p in names))


def _divides(use: PortUse) -> bool:
    return bool(use.ports) and use.ports[0].endswith("DV")


def _ports_busy(filled: Filled, cycles: float, binding: tuple[str, ...]) -> str:
    if not cycles:
        return "no instruction needs an execution port"
    if not binding:
        return _slow(one_at_a_time(filled.rows)[0], cycles)
    inside = frozenset(binding)
    meets = inside.issuperset if filled.port_model == "optimal" else inside.intersection
    users = Counter(
        instruction.mnemonic
        for instruction, row in zip(filled.instructions, filled.bounds.uses, strict=True)
        if any(use.ports and meets(use.ports) for use in row)
    )
    named = _listed([f"{n}× {name}" if n > 1 else name for name, n in users.most_common()])
    many = len(binding) > 1
    return (
        f"{'ports' if many else 'port'} {_listed(binding)} {'are' if many else 'is'} busy "
        f"{cycles:.2f} cycles per pass with {named}"
    )


def _slow(forms: tuple[str, ...], cycles: float) -> str:
    return f"{_listed(forms)}: measured reciprocal throughput, one after the other, takes {cycles:.2f} cycles per pass"


def _precedence(filled: Filled) -> str:
    chain = filled.lcd
    if chain is None:
        return "no instruction waits for an earlier pass"
    steps = " → ".join(
        f"{filled.instructions[member].mnemonic} ({carrier})"
        for member, carrier in zip(chain.members[:_NAMED], chain.carriers, strict=False)
    )
    more = f" → … ({len(chain.members) - _NAMED} more)" if len(chain.members) > _NAMED else ""
    span = "from pass to pass" if chain.passes == 1 else f"over {chain.passes} passes"
    return f"the dependency chain {span} takes {chain.cycles:.2f} cycles per pass: {steps}{more}"


def _pipeline(filled: Filled) -> str:
    simulated = filled.bounds.simulated
    cycles = _cycles(filled.cycles(parts.PIPELINE))
    others = [c for name, c in filled.bounds.applied.items() if name != parts.PIPELINE]
    if reaches(max(others, default=0.0), filled.cycles(parts.PIPELINE)):
        return f"the simulated pipeline takes {cycles} per pass: no more than its parts"
    beyond = f"{cycles} per pass in the simulated pipeline, {_cycles(max(others, default=0.0))} by the largest bound"
    stalls = {name: share for name, share in (simulated.stalls if simulated else {}).items() if share >= 0.005}
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
    parts.PORTS: _ports,
    parts.DIVIDER: _divider,
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
