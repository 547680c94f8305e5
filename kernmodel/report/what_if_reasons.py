"""Why a change of the machine moves the runtime, or does not: one sentence with the numbers that decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernmodel.traffic.model import carriers, strongest
from kernmodel.units import format_bytes, format_si
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.studies.predict.request import EcmAnswer
    from kernmodel.studies.what_if.machine import Effect
    from kernmodel.traffic.model import LayerCondition

_ROUNDING = 1e-6
"""Relative difference of two times that is rounding."""
_MOST_TIMES = 2


def reason_of(before: EcmAnswer, effect: Effect) -> str:
    """The sentence: which times the change moves, and what binds then."""
    after = effect.after
    parts = [*_clock(before, after), *_layers(before, after), *_times(before, after), *_cores(before, after)]
    if not parts:
        return f"nothing changes: {_why_nothing(before, after, tuple(one.path for one in effect.applied))}"
    return "; ".join([*parts, _outcome(before, after)])


def _differ(one: float, other: float) -> bool:
    return abs(one - other) > _ROUNDING * max(abs(one), abs(other))


def _moves(one: float, other: float) -> str:
    return "falls" if other < one else "rises"


def _told_apart(one: float, other: float) -> tuple[str, str]:
    """Two times with as many decimals as it takes to tell them apart, at least one and at most four."""
    decimals = next((n for n in range(1, 4) if f"{one:.{n}f}" != f"{other:.{n}f}"), 4)
    return f"{one:.{decimals}f}", f"{other:.{decimals}f}"


def _clock(before: EcmAnswer, after: EcmAnswer) -> Iterator[str]:
    old, new = before.machine.clock_hz, after.machine.clock_hz
    if old != new:
        length = "shorter" if new > old else "longer"
        yield f"cycles are {length} at {format_si(new, 'Hz')} than at {format_si(old, 'Hz')}"
    lines = before.traffic.iterations_per_unit, after.traffic.iterations_per_unit
    if lines[0] != lines[1]:
        yield f"a unit of work is then {lines[1]:g} iterations in place of {lines[0]:g}"


def _times(before: EcmAnswer, after: EcmAnswer) -> Iterator[str]:
    """The times that change most."""
    old, new = before.prediction.times, after.prediction.times
    changed = [name for name in old if name in new and _differ(old[name], new[name])]
    changed.sort(key=lambda name: -abs(new[name] - old[name]))
    for name in changed[:_MOST_TIMES]:
        before_and_after = _told_apart(old[name], new[name])
        yield f"{name} {_moves(old[name], new[name])} from {' to '.join(before_and_after)} cy/CL"
    if len(changed) > _MOST_TIMES:
        yield f"{', '.join(changed[_MOST_TIMES:])} too"


def _cores(before: EcmAnswer, after: EcmAnswer) -> Iterator[str]:
    """What changes for several cores: domains in use, and whether their memory bandwidth is used up."""
    old, new = before.scaling[0], after.scaling[0]
    if old.domains != new.domains:
        yield f"{new.cores} cores fill {count(new.domains, 'ccNUMA domain')} in place of {old.domains}"
    if None in (old.saturated, new.saturated) or new.utilization is None:
        return
    if new.cores > 1 and old.saturated != new.saturated:
        verb = "then saturate" if new.saturated else "no longer saturate"
        yield f"{new.cores} cores {verb} the memory bandwidth ({100 * new.utilization:.0f} % of it used)"


def _layers(before: EcmAnswer, after: EcmAnswer) -> Iterator[str]:
    """Layer conditions that hold after and not before, or the reverse."""
    old, new = _held(before), _held(after)
    for (cache, along), condition in new.items():
        earlier = old.get((cache, along))
        if earlier is not None and earlier.holds != condition.holds:
            verb = "then holds" if condition.holds else "no longer holds"
            need = f"{format_bytes(condition.required)} of {format_bytes(condition.capacity_bytes)}"
            yield f"{cache} {verb} the reuse along {along} ({need})"


def _held(answer: EcmAnswer) -> dict[tuple[str, str], LayerCondition]:
    return {(condition.cache, _along(condition)): condition for condition in answer.traffic.conditions}


def _along(condition: LayerCondition) -> str:
    return carriers(condition) or "-"


def _outcome(before: EcmAnswer, after: EcmAnswer) -> str:
    """What takes most of the time then, or why T_ECM stays all the same."""
    old, new = before.prediction, after.prediction
    if new.cycles <= 0 or not new.binding:
        return "nothing takes time"
    if after.scaling[0].cores > 1 and after.scaling[0].saturated and before.scaling[0].saturated:
        return f"memory bandwidth limits the {after.scaling[0].cores} cores, as before"
    largest = max(new.binding, key=lambda name: new.times[name])
    share = f"{100 * new.times[largest] / new.cycles:.0f} %"
    if not _differ(old.cycles, new.cycles):
        return f"T_ECM stays at {new.cycles:.1f} cy/CL, of which {largest} takes {share}"
    was = max(old.binding, key=lambda name: old.times[name], default="")
    return f"{largest} {'still' if was == largest else 'then'} takes the largest part ({share})"


def _why_nothing(before: EcmAnswer, after: EcmAnswer, paths: tuple[str, ...]) -> str:
    if len(paths) != 1:
        return "no time of this prediction depends on these figures"
    section, _, rest = paths[0].partition(".")
    name = rest.partition(".")[0]
    if section == "caches":
        return _same_layers(before, after, name)
    if section == "bandwidths":
        return _other_bandwidth(after, name)
    if section == "paths":
        return _idle_path(after, name, paths[0].rpartition(".")[2])
    return "no time of this prediction depends on this figure"


def _same_layers(before: EcmAnswer, after: EcmAnswer, cache: str) -> str:
    """Which reuse fits either way, and which would need more."""
    here = [condition for condition in after.traffic.conditions if condition.cache == cache]
    if not here:
        return f"the traffic beyond {cache} is the same"
    old = next(condition.capacity_bytes for condition in before.traffic.conditions if condition.cache == cache)
    new = here[0].capacity_bytes
    size = format_bytes(old) if new == old else f"{format_bytes(old)} before and {format_bytes(new)} after"
    holding = strongest(here)
    failing = next((one for one in here if not one.holds), None)
    fits = f"the reuse along {_along(holding)} needs {format_bytes(holding.required)}" if holding else ""
    more = f"that along {_along(failing)} would need {format_bytes(failing.required)}" if failing else ""
    return f"{'; '.join(part for part in (fits, more) if part)}; {cache} has {size}"


def _idle_path(after: EcmAnswer, name: str, key: str) -> str:
    """What does not move over the path."""
    moved = after.traffic.path(name)
    if key == "penalty_load" and not moved.loads:
        return f"no line is loaded over {name}"
    if not moved.lines:
        return f"no line moves over {name}"
    return f"T_{name} is the same either way"


def _other_bandwidth(after: EcmAnswer, level: str) -> str:
    """Where the time of the path to this level comes from instead."""
    path = next((path for path in after.machine.paths if path.outer == level), None)
    if path is None:
        return f"no path leads to {level}"
    transfer = next(one for one in after.prediction.transfers if one.name == path.time_name)
    if transfer.bandwidth is None:
        return f"{path.time_name} comes from the width of the path, {path.bytes_per_cycle:g} B/cy"
    if not transfer.bytes:
        return f"nothing moves over {path.name}"
    return f"{path.time_name} comes from the stream mix {transfer.bandwidth.mix.name}"
