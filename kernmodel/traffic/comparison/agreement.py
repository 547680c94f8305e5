"""When two answers about the same traffic agree."""

from __future__ import annotations

from collections.abc import Iterator

from kernmodel.traffic.model import QUANTITIES, Quantity, Traffic

TOLERANCE = 0.05
"""Relative difference from which two numbers differ, unless told otherwise."""

SMALL = 0.02
"""Differences below this share of what moves on the busiest path are left out."""


def relative_difference(symbolic: float, simulated: float) -> float:
    """What is simulated less what layer conditions say, as a part of the larger of both."""
    return (simulated - symbolic) / max(symbolic, simulated)


def disagreements(
    one: Traffic, other: Traffic, tolerance: float = TOLERANCE
) -> Iterator[tuple[str, Quantity, float, float]]:
    """The path, the quantity and both numbers wherever two answers differ, innermost path first."""
    pairs = list(zip(one.paths, other.paths, strict=True))
    largest = max((getattr(path, name) for pair in pairs for path in pair for name in QUANTITIES), default=0.0)
    for first, second in pairs:
        for name in QUANTITIES:
            a, b = getattr(first, name), getattr(second, name)
            if abs(a - b) > max(tolerance * max(a, b), SMALL * largest):
                yield first.path, name, a, b


def differs(one: Traffic, other: Traffic) -> bool:
    """Whether any number differs."""
    return next(disagreements(one, other), None) is not None
