"""Where labels go: the first of several places at which a label meets nothing that is there already.

All positions are in inches on the figure. A label, and whatever it must keep clear of, is a row of discs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field

from kernmodel.value_types import dataclass

_CHARACTER = 0.58
"""Mean width of a character over the size of the text."""
_POINT = 1 / 72
"""Inches."""


@dataclass(frozen=True, slots=True)
class Place:
    """The middle of a label, and its angle in degrees."""

    x: float
    y: float
    angle: float = 0.0


Disc = tuple[float, float, float]
Spot = tuple[float, float]


@dataclass(slots=True)
class Board:
    """What is on a figure: discs (x, y, radius), and lines, which are thin."""

    discs: list[Disc] = field(default_factory=list)
    lines: list[tuple[Spot, Spot]] = field(default_factory=list)

    def block(self, x: float, y: float, radius: float) -> None:
        """Keep a disc clear."""
        self.discs.append((x, y, radius))

    def line(self, start: Spot, end: Spot) -> None:
        """Keep labels off a line."""
        self.lines.append((start, end))

    def put(self, text: str, size: float, places: Sequence[Place]) -> Place:
        """Take the first free place; where none is free, the one that overlaps least."""
        best, least = places[0], math.inf
        for place in places:
            overlap = self._overlap(_discs(text, size, place))
            if overlap < least:
                best, least = place, overlap
            if not overlap:
                break
        self.discs += _discs(text, size, best)
        return best

    def _overlap(self, discs: Iterable[Disc]) -> float:
        depth = 0.0
        for x, y, radius in discs:
            for other_x, other_y, other in self.discs:
                depth += max(0.0, radius + other - math.hypot(x - other_x, y - other_y))
            for start, end in self.lines:
                depth += max(0.0, radius + _HALF_LINE - _distance((x, y), start, end))
        return round(depth, 6)


_HALF_LINE = 0.02


def _distance(spot: Spot, start: Spot, end: Spot) -> float:
    """From a spot to a line between two others."""
    across, up = end[0] - start[0], end[1] - start[1]
    square = across * across + up * up
    along = ((spot[0] - start[0]) * across + (spot[1] - start[1]) * up) / square if square else 0.0
    along = min(1.0, max(0.0, along))
    return math.hypot(spot[0] - start[0] - along * across, spot[1] - start[1] - along * up)


def text_width(text: str, size: float) -> float:
    """Inches that a line of text takes, roughly."""
    return _CHARACTER * size * _POINT * len(text)


def _discs(text: str, size: float, place: Place) -> list[Disc]:
    radius, length = 0.55 * size * _POINT, text_width(text, size)
    count = max(2, math.ceil(length / radius))
    along_x, along_y = math.cos(math.radians(place.angle)), math.sin(math.radians(place.angle))
    steps = [(k / (count - 1) - 0.5) * (length - 2 * radius) for k in range(count)]
    return [(place.x + along_x * step, place.y + along_y * step, radius) for step in steps]
