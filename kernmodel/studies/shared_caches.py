"""What more active cores do to the reuse of one core: its share of the shared caches shrinks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernmodel.units import format_bytes

if TYPE_CHECKING:
    import sympy

    from kernmodel.machine.model import CacheLevel
    from kernmodel.studies.predict.request import EcmAnswer
    from kernmodel.traffic.model import LayerCondition, PathTraffic, Traffic

_SIGNIFICANT = 0.01
"""Relative change of simulated traffic that is told."""


def cache_effect(before: EcmAnswer, now: EcmAnswer) -> str:
    """What a core has of each shared cache whose reuse differs between two numbers of active cores, and what of the
    reuse fits there or no longer does; "" where nothing differs."""
    if before is now:
        return ""
    shared = [level for level in now.machine.levels if level.cores_sharing > 1]
    found = (_of_level(level, before.traffic, now.traffic) for level in shared)
    return "; ".join(text for text in found if text)


def _of_level(level: CacheLevel, before: Traffic, now: Traffic) -> str:
    changed = list(_flips(level.name, before, now)) if now.conditions else list(_moved(level.name, before, now))
    if not changed:
        return ""
    return f"{level.name}: {format_bytes(_share(level, now))} a core; {', '.join(changed)}"


def _share(level: CacheLevel, traffic: Traffic) -> float:
    """Bytes that a core has of a cache: as the conditions count them, else its part of the sets."""
    conditions = (condition.capacity_bytes for condition in traffic.conditions if condition.cache == level.name)
    return next(conditions, level.size_bytes / min(traffic.cores, level.cores_sharing))


def _flips(cache: str, before: Traffic, now: Traffic) -> Iterator[str]:
    """The layer conditions that hold with one number of cores only."""
    held = {_key(condition): condition.holds for condition in before.conditions}
    needed: dict[tuple[str, bool], dict[str, None]] = {}
    for condition in now.conditions:
        if condition.cache == cache and held.get(_key(condition), condition.holds) != condition.holds:
            loops = ", ".join(dict.fromkeys(reuse.carried_by for reuse in condition.reuses))
            needed.setdefault((loops, condition.holds), {})[format_bytes(condition.required)] = None
    for (loops, holds), sizes in needed.items():
        yield f"reuse over {loops} ({' and '.join(sizes)}) {'fits' if holds else 'no longer fits'}"


def _key(condition: LayerCondition) -> tuple[str, sympy.Expr]:
    return condition.cache, condition.required_bytes


def _moved(cache: str, before: Traffic, now: Traffic) -> Iterator[str]:
    """How much more crosses the paths beyond a cache."""
    names = [level.level for level in now.levels]
    if cache not in names:
        return
    path = now.paths[names.index(cache)]
    lines, earlier = _lines(path), _lines(before.path(path.path))
    if abs(lines - earlier) > _SIGNIFICANT * max(lines, earlier):
        yield f"{lines:.2f} lines over {path.path} in place of {earlier:.2f}"


def _lines(path: PathTraffic) -> float:
    return path.loads + path.stores + path.clean_victims
