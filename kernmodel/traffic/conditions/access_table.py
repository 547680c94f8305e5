"""Who serves each array reference, and why: the access table of a `Traffic`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from kernmodel.machine.model import Machine
from kernmodel.traffic.conditions.cache_sets import Room
from kernmodel.traffic.conditions.requirements import loop_name
from kernmodel.traffic.conditions.reuse import Analysis, Link, ReferenceMisses, StreamReuse
from kernmodel.traffic.conditions.streaming import Streamed
from kernmodel.traffic.conditions.windows import Window
from kernmodel.traffic.model import AccessTraffic
from kernmodel.units import format_bytes, format_share


def access_table(
    analysis: Analysis,
    misses: Sequence[Sequence[Sequence[ReferenceMisses]]],
    machine: Machine,
    rooms: Sequence[Room],
    unit: Fraction,
    streamed: Sequence[Streamed] = (),
    *,
    explained: bool = True,
) -> tuple[AccessTraffic, ...]:
    """One row per array reference, in source order.

    Args:
        analysis: the reuse of the nest.
        misses: per level, per stream, what its references miss.
        machine: gives the levels their names.
        rooms: what a core has of each cache.
        unit: iterations in a unit of work.
        streamed: references whose stores go past the caches; `analysis` is of the others.
        explained: whether the rows say why.
    """
    levels = machine.residence_levels
    rows = [(one.reference.order, _streamed_row(one, levels, unit)) for one in streamed]
    for number, reuse in enumerate(analysis.reuses):
        for place, reference in enumerate(reuse.stream.references):
            missing = [float(level[number][place].misses.value * unit) for level in misses]
            reaching = [max(float(reuse.base.value * unit), *missing), *missing, 0.0]
            served = {name: reaching[k] - reaching[k + 1] for k, name in enumerate(levels)}
            reason = _reason(analysis, reuse, place, levels, rooms) if explained else ""
            access, again = reference.access, place > 0 and _is_of_earlier_row(analysis, reuse.links[place - 1])
            row = AccessTraffic(access.array, access.text, access.kind, served, reason, again)
            rows.append((reference.order, row))
    return tuple(row for _, row in sorted(rows, key=lambda item: item[0]))


def _is_of_earlier_row(analysis: Analysis, link: Link) -> bool:
    """Whether a reference finds its lines where another one left them in an earlier pass of a loop around the innermost
    one."""
    if link.window is None or not link.possible:
        return False
    loop = loop_name(link.window.carrier, analysis.nest)
    return loop in analysis.nest.variables and loop != analysis.nest.variables[-1]


def _streamed_row(one: Streamed, levels: Sequence[str], unit: Fraction) -> AccessTraffic:
    lines, access = float(one.lines.value * unit), one.reference.access
    served = dict.fromkeys(levels, 0.0) | {levels[-1]: lines}
    return AccessTraffic(one.array, access.text, access.kind, served, "streams its lines to memory past the caches")


def _reason(analysis: Analysis, reuse: StreamReuse, place: int, levels: Sequence[str], rooms: Sequence[Room]) -> str:
    if reuse.stream.references[place].order in analysis.reloaded:
        return "loads its lines from memory: a streaming store took them out of the caches"
    if place:
        return _link_reason(analysis, reuse.links[place - 1], levels, rooms)
    own = reuse.selves[0]
    fit = _fit(analysis, own.window, levels, rooms)
    found = loop_name(own.found_after, analysis.nest)
    if found == "sweep":
        what = "all nests" if analysis.nest.neighbours else "the nest"
        return f"touches its lines first; only a repetition of {what} finds them again, which {fit}"
    if found not in analysis.nest.variables:
        return f"finds its lines where {found} left them, which {fit}"
    loop = loop_name(own.carrier, analysis.nest)
    return f"finds its lines again in the next iteration of loop {loop}, which {fit}"


def _link_reason(analysis: Analysis, link: Link, levels: Sequence[str], rooms: Sequence[Room]) -> str:
    source = link.source.access.text
    if link.window is None:
        return f"finds the lines of {source} in the same iteration"
    loop = loop_name(link.window.carrier, analysis.nest)
    if not link.possible:
        return f"touches what {source} touched further back than loop {loop} runs: no reuse"
    fit = _fit(analysis, link.window, levels, rooms)
    return f"finds the lines of {source} again over loop {loop}, which {fit}"


def _fit(analysis: Analysis, window: Window, levels: Sequence[str], rooms: Sequence[Room]) -> str:
    """Which caches hold what is touched during a window."""
    needed = analysis.volume(window).value
    size, crowded, partly = format_bytes(float(needed)), "", ""
    for name, room in zip(levels, rooms, strict=False):
        if analysis.holds(window, room):
            return f"needs {size}{crowded} and fits {name} ({format_bytes(room.capacity)}){partly}"
        share = float(analysis.share(window, room))
        if share:
            partly += f"; it fits {name} for {format_share(share)} of the iterations"
        few = analysis.few_sets(window, room)
        if needed <= room.capacity and few is not None:
            volume, usable = format_bytes(float(few.footprint.volume.value)), format_bytes(few.usable)
            crowded = f", of which {volume} fall into {few.touched} of the {few.sets} sets of {name}, {usable},"
    last = f"{levels[len(rooms) - 1]} has {format_bytes(rooms[-1].capacity)}"
    return f"needs {size}{crowded} and fits no cache ({last}){partly}"
