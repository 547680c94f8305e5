"""What parts and single mechanisms of a core cost a block, or save it: it is looked at anew on a core without each.

Other than the components, which are whole parts of the core, these are what a programmer can do something about: code
or data that lie across lines, values that are stored and loaded again, chains that fill the schedulers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from kernmodel.incore.answer.components import (
    DIVIDER,
    DSB,
    FRONT_END,
    ISSUE,
    PIPELINE,
    PORTS,
    PRECEDENCE,
    Bounds,
    Rows,
    bounds_of,
)
from kernmodel.incore.answer.single_rules import cores_without
from kernmodel.incore.dependences.addresses import Forwarding
from kernmodel.incore.dependences.data_flow import memory_text
from kernmodel.incore.dependences.line_splits import Places
from kernmodel.incore.engine.layout import SIMULATION, WHOLE, WITHOUT_PORTS, WITHOUT_WAITS
from kernmodel.incore.engine.model import Forwards, PipelineCore
from kernmodel.incore.engine.modelled_core import ModelledCore, with_ample_buffers, without_issue_limit
from kernmodel.incore.front_end.costs import dispatch_slots
from kernmodel.incore.model import Notion, Reason, Why
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction
from kernmodel.value_types import NamedTuple, dataclass

_MATTERS = 0.01
"""Share of a prediction below which a difference is none: simulations end when passes are equally long to as much."""


@dataclass(frozen=True, slots=True)
class MechanismCost:
    """A block on the core without one of its mechanisms.

    Attributes:
        reason: the mechanism, and what of the block meets it.
        prediction: cycles per pass without it.
        saved: cycles per pass fewer than with it; negative where it is the mechanism that saves them.
    """

    reason: Reason
    prediction: float
    saved: float


class Subject(NamedTuple):
    """A block as it is repeated: its rows are those of its instructions, the indexed variants where these apply."""

    instructions: Sequence[Instruction]
    rows: Rows
    notion: Notion
    offset: int
    places: Places

    def on(self, core: ModelledCore, scope: int = WHOLE) -> Bounds:
        """What bounds it on a core; `scope` as in `Request`."""
        return bounds_of(self.instructions, self.rows, core, self.notion, self.offset, scope=scope, places=self.places)

    def mnemonics(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Of some of its instructions, in order."""
        return tuple(self.instructions[number].mnemonic for number in sorted(set(numbers)))


def simulated_without(name: str, subject: Subject, core: ModelledCore) -> float | None:
    """Cycles per pass in the simulated pipeline if a component took no time; None without a pipeline.

    For the parts of the front end before issue, µops are always there. Without ports every µop starts when its operands
    are ready; without dependencies when it has a port.
    """
    if core.pipeline is None:
        return None
    if name in FRONT_END and name != ISSUE:
        core = replace(core, switches=replace(core.switches, front_end=False))
    elif name == DIVIDER:
        core = replace(core, switches=replace(core.switches, dividers=False))
    elif name == ISSUE:
        core = without_issue_limit(core)
    scope = {PORTS: WITHOUT_PORTS, PRECEDENCE: WITHOUT_WAITS}.get(name, SIMULATION)
    return subject.on(core, scope).components.get(PIPELINE)


def mechanism_costs(subject: Subject, core: ModelledCore) -> tuple[MechanismCost, ...]:
    """The mechanisms of a core that make a difference to a block, the most costly first; none without a pipeline.

    A greedy scheduler can be worse off with more room; that is no cost of the mechanism.
    """
    if core.pipeline is None or not subject.instructions:
        return ()
    bounds = subject.on(core)
    found = []
    for without, reason_of, saves in _removals(core, core.pipeline, subject):
        other = subject.on(without)
        saved = bounds.prediction - other.prediction
        if saved > _MATTERS * bounds.prediction or (saves and -saved > _MATTERS * bounds.prediction):
            found.append(MechanismCost(reason_of(bounds, other), other.prediction, saved))
    return tuple(sorted(found, key=lambda item: -item.saved))


class _Removal(NamedTuple):
    """The core without a mechanism, what to say of it by the bounds with and without it, and whether it saves time."""

    core: ModelledCore
    reason_of: Callable[[Bounds, Bounds], Reason]
    saves: bool = False


def _removals(core: ModelledCore, pipeline: PipelineCore, subject: Subject) -> Iterator[_Removal]:
    """The core without each mechanism that it has."""
    yield from _lines(core, pipeline, subject)
    yield from _slots(core, pipeline, subject)
    yield from _third_vectors(core, pipeline, subject)
    for name, numbers, without in cores_without(subject.instructions, core):
        rule = Reason(Why.SINGLE_RULE, names=(name,), users=subject.mnemonics(numbers))
        yield _Removal(without, partial(_always, rule))
    yield from _given_ports(core, pipeline)
    yield from _buffers(core, pipeline)
    yield from _forwarding(core, pipeline, subject)


def _lines(core: ModelledCore, pipeline: PipelineCore, subject: Subject) -> Iterator[_Removal]:
    """Lines of code, and lines that loads and stores cross."""
    front, lines = core.op_cache, pipeline.memory.lines
    if front is not None and (size := front.code_line_bytes):

        def code_lines(bounds: Bounds, _: Bounds) -> Reason:
            length = bounds.answer.totals.length
            touched = (subject.offset % size + length - 1) // size + 1
            if touched == 1:
                entries = bounds.answer.totals.decoded
                return Reason(Why.OP_CACHE, bounds.components.get(DSB, 0.0), {"entries": entries})
            return Reason(Why.CODE_LINES, touched, {"lines": touched, "bytes": length})

        yield _Removal(replace(core, op_cache=replace(front, code_line_bytes=None)), code_lines)
    if core.splits or lines:
        memory = replace(pipeline.memory, lines=lines and lines._replace(crossing=False))

        def across(bounds: Bounds, other: Bounds) -> Reason:
            look, apart = bounds.block.look, set(other.block.look.accesses)
            shares = enumerate(look.splits)
            crossing = [number for number, share in shares if share] + [a[0] for a in look.accesses if a not in apart]
            stores = lines is not None and any(r.written for n in crossing for r in subject.instructions[n].memory)
            block = (lines and lines.block_bytes) or 0
            part = lines.line_bytes if lines and lines.halved else 0
            figures = {"block": block if stores else 0, "part": part}
            return Reason(Why.ACROSS_LINES, 0.0, figures, (), subject.mnemonics(crossing))

        yield _Removal(replace(core, splits={}, pipeline=replace(pipeline, memory=memory)), across)


def _slots(core: ModelledCore, pipeline: PipelineCore, subject: Subject) -> Iterator[_Removal]:
    """Slots that instructions take at dispatch beyond their rows."""
    if not pipeline.extra_slots or core.op_cache is None:
        return

    def slots(*_: Bounds) -> Reason:
        more = [
            number
            for number, (own, row) in enumerate(zip(subject.instructions, subject.rows, strict=True))
            if row is not None and dispatch_slots(own, row, pipeline.extra_slots) > dispatch_slots(own, row, ())
        ]
        return Reason(Why.EXTRA_SLOTS, users=subject.mnemonics(more))

    front = replace(core.op_cache, extra_slots=())
    yield _Removal(replace(core, op_cache=front, pipeline=replace(pipeline, extra_slots=())), slots)


def _third_vectors(core: ModelledCore, pipeline: PipelineCore, subject: Subject) -> Iterator[_Removal]:
    """Operand paths that stored vectors lend."""
    if pipeline.by_port is None or not pipeline.by_port.third_paths:
        return
    three = [n for n, i in enumerate(subject.instructions) if isa_of(i.isa).third_vector(i) is not None]
    apart = replace(pipeline, by_port=replace(pipeline.by_port, third_paths=()))
    reason = Reason(Why.THIRD_VECTORS, users=subject.mnemonics(three))
    if three:
        yield _Removal(replace(core, pipeline=apart), partial(_always, reason))


def _given_ports(core: ModelledCore, pipeline: PipelineCore) -> Iterator[_Removal]:
    """Ports that are chosen before operands are there."""
    if core.switches.issue_ports and pipeline.gives_ports:
        free = replace(core, switches=replace(core.switches, issue_ports=False))
        yield _Removal(free, partial(_always, Reason(Why.GIVEN_PORTS)))


def _buffers(core: ModelledCore, pipeline: PipelineCore) -> Iterator[_Removal]:
    """Buffers that fill up."""
    for buffer in with_ample_buffers(pipeline):
        reason = Reason(Why.FULL_BUFFER, figures={"entries": buffer.entries}, names=(buffer.name, *buffer.ports))
        yield _Removal(replace(core, pipeline=buffer.pipeline), partial(_always, reason))


def _always(reason: Reason, *_: Bounds) -> Reason:
    return reason


def _forwarding(core: ModelledCore, pipeline: PipelineCore, subject: Subject) -> Iterator[_Removal]:
    """Loads of what the block has stored: their wait, and memory renaming, which shortens it."""
    forwards = pipeline.memory.forwards
    if forwards is None:
        return

    def with_forwards(own: Forwards) -> ModelledCore:
        return replace(core, pipeline=replace(pipeline, memory=replace(pipeline.memory, forwards=own)))

    kinds = ("general", "vector", "to_vector", "to_general", "partial", "partial_vector")
    at_once = with_forwards(replace(forwards, **dict.fromkeys(kinds, 0), renamed=0))

    def waits(bounds: Bounds, _: Bounds) -> Reason:
        links = bounds.block.look.links
        cycles = max(link.cycles for link in links)
        return Reason(Why.RELOADS, cycles, names=_cells(subject, [link for link in links if link.cycles]))

    yield _Removal(at_once, waits)
    if forwards.renamed is None:
        return

    def renamed(bounds: Bounds, other: Bounds) -> Reason:
        both = zip(bounds.block.look.links, other.block.look.links, strict=True)
        served = [link for link, slower in both if link.cycles != slower.cycles]
        saves = max(0.0, bounds.prediction - subject.on(at_once).prediction)
        return Reason(Why.MEMORY_RENAMING, saves, names=_cells(subject, served))

    yield _Removal(with_forwards(replace(forwards, renamed=None)), renamed, saves=True)


def _cells(subject: Subject, links: Sequence[Forwarding]) -> tuple[str, ...]:
    """The memory that loads read after the block has stored it."""
    cells = [memory_text(subject.instructions[n].memory[place], "intel") for n, place in (link.load for link in links)]
    return tuple(dict.fromkeys(cells))
