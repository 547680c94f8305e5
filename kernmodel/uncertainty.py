"""The interval of a number that depends on something unknown: the one form for uncertainty in every answer.

The number itself keeps its meaning; the interval beside it says between which values the truth lies, what that depends
on, and what the number assumes of it. Text: `6.1 (5.5 to 6.1: array alignment)`; JSON: docs/json.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kernmodel.value_types import dataclass

MATTERS = 0.005
"""Predictions that differ by less than this share are the same."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Between which values a number lies, in the number's own unit.

    Attributes:
        low, high: the least and the greatest value.
        cause: what the number depends on that is not known, as a noun phrase ("array alignment").
        assumed: what the number itself takes for it ("arrays aligned to cache lines").
    """

    low: float
    high: float
    cause: str
    assumed: str

    def map(self, change: Callable[[float], float]) -> Interval:
        """The interval of a number that is a monotone function of this one (cycles as iterations per second, say)."""
        ends = change(self.low), change(self.high)
        return Interval(min(ends), max(ends), self.cause, self.assumed)


def between(values: Iterable[float], cause: str, assumed: str) -> Interval | None:
    """The interval of a number that may be any of these; None where they differ too little to matter."""
    given = tuple(values)
    low, high = min(given), max(given)
    return Interval(low, high, cause, assumed) if high - low > MATTERS * abs(high) else None


def union(intervals: Iterable[Interval | None]) -> Interval | None:
    """One interval that holds all of these, causes and assumptions named once each; None without any."""
    given = [interval for interval in intervals if interval is not None]
    if not given:
        return None
    return Interval(
        min(interval.low for interval in given),
        max(interval.high for interval in given),
        _named_once(interval.cause for interval in given),
        _named_once(interval.assumed for interval in given),
    )


def _named_once(texts: Iterable[str]) -> str:
    """These texts in one, those that stand in several of them once."""
    return "; ".join(dict.fromkeys(part for text in texts for part in text.split("; ")))


def with_interval(value: float, interval: Interval | None, shown: Callable[[float], str], *, cause: bool = True) -> str:
    """A number with the interval in which it lies, if it has one: `6.1 cy/CL (5.5 to 6.1: array alignment)`.

    Ends that are written alike, and as the number is, stand for no interval.

    Args:
        shown: how one number is written; a unit that all three have stands once.
        cause: whether to say what it depends on, for which tables have no room.
    """
    if interval is None:
        return shown(value)
    number, low, high = (shown(each) for each in (value, interval.low, interval.high))
    if number == low == high:  # no two ends to tell apart
        return number
    units = {text.partition(" ")[2] for text in (number, low, high)}
    if len(units) == 1:
        low, high = (text.partition(" ")[0] for text in (low, high))
    return f"{number} ({low} to {high}{f': {interval.cause}' if cause else ''})"


def upper_bound(value: float, interval: Interval | None, shown: Callable[[float], str], *, cause: bool = True) -> str:
    """An upper bound, for behind "at most": as `with_interval` writes a number, but by its ends alone where the bound
    itself may be higher: `9.2 to 55 GFLOP/s (what more than 2 cores draw)`.
    """
    if interval is None or shown(interval.high) == shown(value) or interval.high < value:
        return with_interval(value, interval, shown, cause=cause)
    low, high = shown(interval.low), shown(interval.high)
    if low.partition(" ")[2] == high.partition(" ")[2]:
        low = low.partition(" ")[0]
    return f"{low} to {high}{f' ({interval.cause})' if cause else ''}"
