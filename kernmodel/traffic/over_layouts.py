"""Between which values the traffic of a nest lies over the usual layouts of its arrays, where the layout decides.

Only the caches in which it decides, and those inside of them, are simulated for other layouts, for a short while: what
counts is how a layout differs from the assumed one. That costs little beside the simulation whose numbers stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from kernmodel.cachesim.model import Hierarchy
from kernmodel.errors import Note
from kernmodel.machine.model import Machine
from kernmodel.traffic.inner import InnerCaches
from kernmodel.traffic.layouts import CAUSE, LayoutJudgement
from kernmodel.traffic.model import QUANTITIES, Quantity, Traffic
from kernmodel.traffic.placement import declared_order, layout_text
from kernmodel.traffic.steady import Effort
from kernmodel.traffic.walk import Work
from kernmodel.uncertainty import Interval

_DIFFERS, _SMALL = 0.05, 0.02
"""A number has an interval where layouts change it by more than the first share of it and more than the second share of
what moves on the busiest path; what is less is within the accuracy of the simulation."""


def with_layouts(
    traffic: Traffic, work: Work, judged: LayoutJudgement, machine: Machine, hierarchy: Hierarchy, spend: Effort
) -> Traffic:
    """Traffic with the intervals of its numbers over the usual layouts; unchanged where none decides.

    Args:
        traffic: by simulation, or by layer conditions where these hold in the assumed layout.
        work: the nest.
        judged: what was found about the layouts of its arrays.
        hierarchy: the caches.
        spend: what may be spent on a simulation; a small part of it is spent on each layout.
    """
    options = judged.assumed
    if not judged.others:
        return traffic
    depth = 1 + max([spec.name for spec in hierarchy.levels].index(cache) for cache in judged.caches)
    layouts = InnerCaches(work, machine, hierarchy, depth, _part(spend), Fraction(traffic.iterations_per_unit))
    assumed, others = layouts.paths(options), [layouts.paths(other) for other in judged.others]
    busiest = max(getattr(path, name) for path in traffic.paths for name in QUANTITIES)
    text = layout_text(declared_order(work.nest.nest), hierarchy, options)
    paths = list(traffic.paths)
    for number, same in enumerate(assumed):
        found: dict[Quantity, Interval] = {}
        for name in QUANTITIES:
            value = getattr(paths[number], name)
            changes = [getattr(other[number], name) - getattr(same, name) for other in others]
            low, high = min(0.0, *changes), max(0.0, *changes)
            if high - low > max(_DIFFERS * (value + high), _SMALL * busiest):
                found[name] = Interval(max(0.0, value + low), value + high, CAUSE, text)
        paths[number] = paths[number].with_intervals(found)
    if tuple(paths) == traffic.paths:
        return traffic
    pairs = zip(hierarchy.levels, paths, strict=True)
    changed = [spec.name for spec, path in pairs if any(path.intervals.values())]
    return replace(traffic, paths=tuple(paths), notes=(*traffic.notes, *_notes(judged, changed)))


def _notes(judged: LayoutJudgement, changed: Sequence[str]) -> tuple[Note, ...]:
    """Why the layout decides on what leaves and enters these caches."""
    causes = [risk.reason for risk in judged.risks if risk.cache in changed] or [
        f"what is used again fills {' and '.join(changed)} or more, so a few lines that share a set count"
    ]
    return tuple(Note("layout-decides", f"the places of the arrays decide: {cause}", "assumption") for cause in causes)


def _part(spend: Effort) -> Effort:
    """What is spent on one layout: a few windows, each long enough that what happens at its ends does not count."""
    return replace(
        spend,
        sweep=spend.sweep / 20,
        window=spend.window / 10,
        block=spend.block / 4,
        warm_up=spend.warm_up / 5,
        measured=spend.measured / 10,
        total=spend.total / 20,
    )
