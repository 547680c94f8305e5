"""Layer conditions of a nest whose stores are streaming (non-temporal): what the caches see, and what goes past them.

A streaming store takes its line out of all caches, gathers in a combining buffer and goes to memory. So the caches see
the reads alone, and a read that follows a streaming store to its line loads it from memory again (docs/stores.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from kernmodel.cachesim.model import Hierarchy
from kernmodel.errors import Note
from kernmodel.traffic.conditions.analysis import analyse_reuse
from kernmodel.traffic.conditions.cache_sets import Room
from kernmodel.traffic.conditions.quantities import Rate, fixed
from kernmodel.traffic.conditions.reuse import Analysis, Link, StreamReuse, misses_where
from kernmodel.traffic.conditions.streams import Reference, SizedNest, Stream
from kernmodel.traffic.conditions.windows import SWEEP, Window, unit_window
from kernmodel.value_types import dataclass

BUFFERS = Hierarchy(()).combining_buffers
"""Lines that streaming stores can be gathering at once, as the simulation takes it."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """Lines per iteration that one written reference sends to memory."""

    reference: Reference
    array: str
    lines: Rate


@dataclass(frozen=True, slots=True)
class StreamingNest:
    """A nest whose stores are all streaming.

    Attributes:
        reads: the reuse of its reads, which alone occupy the caches.
        streamed: what its stores send, in the order of streams.
        taken: per read (by `order`) that a streaming store to the same line follows, the time between the two; None
            where it is the same iteration.
        notes: what this assumes.
    """

    reads: Analysis
    streamed: tuple[Streamed, ...]
    taken: Mapping[int, Window | None]
    notes: tuple[Note, ...]

    def dropped_in(self, room: Room) -> tuple[Rate, ...]:
        """Lines per iteration that streaming stores take out of a cache."""

        def holds(window: Window | None) -> bool:
            return window is None or self.reads.volume(window).value <= room.capacity

        return tuple(
            reuse.base
            for reuse in self.reads.reuses
            for reference in reuse.stream.references
            if reference.order in self.taken and holds(self.taken[reference.order])
        )


def analyse_streaming(nest: SizedNest, line_bytes: int) -> StreamingNest:
    """Part a nest at given sizes into what its reads do to the caches and what its stores send past them."""
    read = tuple(part for stream in nest.streams if (part := _part(stream, "read")))
    reading = analyse_reuse(replace(nest, streams=read), line_bytes)
    mixed = tuple(stream for stream in nest.streams if stream.is_written and _part(stream, "read"))
    reloaded = frozenset(order for stream in mixed for order in _reloaded(stream))
    streamed = _streamed(nest, mixed, line_bytes)
    taken, notes = _taken(nest, mixed, line_bytes), _notes(nest, mixed, line_bytes)
    return StreamingNest(replace(reading, reloaded=reloaded), streamed, taken, notes)


def _part(stream: Stream, kind: str) -> Stream | None:
    """The references of one kind, as a stream of their own; None if there are none."""
    references = tuple(reference for reference in stream.references if reference.access.kind == kind)
    if not references:
        return None
    return replace(stream, references=references, start=stream.start_of(references[0]))


def _reloaded(stream: Stream) -> list[int]:
    """Reads that come next after a write of the same line, over repetitions too."""
    kinds = [(reference.access.kind, reference.order) for reference in stream.references]
    return [
        order for (before, _), (kind, order) in pairwise([kinds[-1], *kinds]) if (before, kind) == ("write", "read")
    ]


def _taken(nest: SizedNest, mixed: tuple[Stream, ...], line_bytes: int) -> dict[int, Window | None]:
    """See `StreamingNest.taken`; a write that leads its stream takes what an earlier sweep has left."""
    taken: dict[int, Window | None] = {}
    for reuse in analyse_reuse(replace(nest, streams=mixed), line_bytes).reuses:
        last, lead = reuse.stream.references[-1], reuse.stream.references[0]
        for link in reuse.links:
            if link.source.access.kind == "read" and link.reference.access.kind == "write":
                taken[link.source.order] = link.window
        if last.access.kind == "read" and lead.access.kind == "write":
            taken[last.order] = reuse.selves[0].window
    return taken


def _streamed(nest: SizedNest, mixed: tuple[Stream, ...], line_bytes: int) -> tuple[Streamed, ...]:
    """Lines, whole or in part, that leave the combining buffers."""
    written = tuple(part for stream in nest.streams if (part := _part(stream, "write")))
    analysis = analyse_reuse(replace(nest, streams=written), line_bytes)
    read_too = {reference.order for stream in mixed for reference in stream.references}
    return tuple(
        Streamed(m.reference, reuse.stream.array, m.misses)
        for reuse in analysis.reuses
        for m in misses_where(_sending(reuse, analysis, read_too), analysis.nest, lambda window: True, line_bytes)
    )


def _sending(reuse: StreamReuse, analysis: Analysis, read_too: set[int]) -> StreamReuse:
    """The reuse of lines while they gather: in the same iteration, and over outer loops that move by less than a line.

    A line is sent once it is whole, so nothing that is written again is saved; nor where reads of the line interrupt,
    nor where it is the end of a row and gets the rest with the next one.
    """
    stream, depth = reuse.stream, len(analysis.nest.trips)
    interrupted = stream.references[0].order in read_too
    gathered = []
    for own in () if interrupted else reuse.selves:
        fits = analysis.volume(own.window).value <= BUFFERS * analysis.line_bytes
        if own.carrier == SWEEP or not stream.strides[own.carrier].value or not fits:
            break
        gathered.append(replace(own, rows=None))
    links = tuple(
        link if link.window is None and not interrupted else _apart(link, depth, analysis.line_bytes)
        for link in reuse.links
    )
    return replace(reuse, selves=tuple(gathered), links=links, rows=None)


def _apart(link: Link, depth: int, line_bytes: int) -> Link:
    """A link over which lines do not gather."""
    if link.window is not None:
        return replace(link, possible=False)
    return replace(link, window=unit_window(depth, depth - 1), possible=False, fresh=fixed(line_bytes))


def writes_whole_lines(stream: Stream, nest: SizedNest, line_bytes: int) -> bool:
    """Whether the innermost loop writes the lines of a stream from end to end: unit stride, and not for less than one.

    Several references may do it together (the components of a structure).
    """
    stride, offset = stream.strides[-1], stream.references[0].offset.value
    if not stride.value or stride.magnitude * nest.trips[-1].value < line_bytes:
        return False
    places = {
        (reference.shift[-1].value * stride.value + reference.offset.value - offset) % stride.magnitude
        for reference in stream.references
        if reference.access.kind == "write"
    }
    return len(places) * stream.element_bytes >= stride.magnitude


def _notes(nest: SizedNest, mixed: tuple[Stream, ...], line_bytes: int) -> tuple[Note, ...]:
    written = [stream for stream in nest.streams if stream.is_written]
    notes = []
    if written:
        text = f"every store of the nest streams: its lines gather in {BUFFERS} combining buffers and go to memory"
        notes.append(Note("streaming-stores", f"{text}, at no cost for the paths between the caches", "assumption"))
    if mixed:
        text = "read too: a streaming store takes the line out of the caches; a line is taken to be read as a whole "
        notes.append(Note("streamed-and-read", f"{_names(mixed)}: {text}before it is written", "warning"))
    partial = [stream for stream in written if not writes_whole_lines(stream, nest, line_bytes)]
    if partial:
        text = "streaming stores that do not write whole lines one after the other; incomplete lines cost more"
        notes.append(Note("incomplete-lines", f"{_names(partial)}: {text} than they count here", "warning"))
    inner = [stream for stream in written if stream.strides[-1].value]
    if len(inner) > BUFFERS:
        text = f"{len(inner)} streams of streaming stores at once, more than the {BUFFERS} combining buffers"
        notes.append(Note("combining-buffers", f"{text}: lines may leave incomplete", "warning"))
    return tuple(notes)


def _names(streams: Iterable[Stream]) -> str:
    written = (reference.access for stream in streams for reference in stream.references)
    return ", ".join(dict.fromkeys(access.text for access in written if access.kind == "write"))
