"""How far predictions are from a reference: percentage errors, shares within a tolerance, rank correlation."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import mean, median

from kernmodel.value_types import dataclass

TOLERANCES = (1.0, 5.0, 10.0)
"""Percent of the reference within which the shares are counted."""

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Summary:
    """The errors of one predictor on a set of blocks.

    Attributes:
        count: blocks.
        mean_percent: mean absolute error in percent of the reference (MAPE); None without blocks.
        median_percent: median of the same.
        tau: Kendall's τ-b between predictions and reference; None where either is constant.
        within: percent of the blocks whose error is at most 1, 5 and 10 percent.
    """

    count: int
    mean_percent: float | None
    median_percent: float | None
    tau: float | None
    within: tuple[float, ...]


def percent_error(prediction: float, reference: float) -> float:
    """Absolute difference in percent of the reference."""
    return 100 * abs(prediction - reference) / reference


def summarise(predictions: Sequence[float], references: Sequence[float]) -> Summary:
    """The errors of predictions against references, which are positive.

    Raises:
        ValueError: the two differ in length.
    """
    errors = [percent_error(p, r) for p, r in zip(predictions, references, strict=True)]
    if not errors:
        return Summary(0, None, None, None, tuple(0.0 for _ in TOLERANCES))
    within = tuple(100 * sum(e <= bound + _ROUNDING for e in errors) / len(errors) for bound in TOLERANCES)
    return Summary(len(errors), mean(errors), median(errors), kendall_tau(predictions, references), within)


def kendall_tau(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Kendall's τ-b, which counts pairs that agree in order against pairs that do not, corrected for ties.

    The discordant pairs are the exchanges of a merge sort (W. R. Knight, A computer method for calculating Kendall's
    tau with ungrouped data, JASA 61, 1966), so the time is O(n log n).

    Returns:
        None where one of the two is constant or there are fewer than two values.

    Raises:
        ValueError: the two differ in length.
    """
    pairs = sorted(zip(first, second, strict=True))
    total = len(pairs) * (len(pairs) - 1) // 2
    ties_first = _tied([a for a, _ in pairs])
    ties_both = _tied(pairs)
    ordered, exchanges = _sorted_with_exchanges([b for _, b in pairs])
    ties_second = _tied(ordered)
    if total in (ties_first, ties_second):
        return None
    agreement = total - ties_first - ties_second + ties_both - 2 * exchanges
    return agreement / sqrt((total - ties_first) * (total - ties_second))


def _tied(ordered: Sequence[object]) -> int:
    """Pairs of equal values in a sorted sequence."""
    tied, run = 0, 0
    for number, value in enumerate(ordered):
        run = run + 1 if number and value == ordered[number - 1] else 0
        tied += run
    return tied


def _sorted_with_exchanges(values: list[float]) -> tuple[list[float], int]:
    """The values in order, and how many pairs of them stood the other way round (merge sort from below)."""
    exchanges = 0
    width = 1
    while width < len(values):
        merged: list[float] = []
        for start in range(0, len(values), 2 * width):
            left, right = values[start : start + width], values[start + width : start + 2 * width]
            taken = 0
            for value in right:
                while taken < len(left) and left[taken] <= value:
                    merged.append(left[taken])
                    taken += 1
                merged.append(value)
                exchanges += len(left) - taken
            merged += left[taken:]
        values = merged
        width *= 2
    return values, exchanges
