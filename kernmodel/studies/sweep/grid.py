"""Grids of predictions: axes, points, and what comes of a point. Values only; `evaluation` evaluates them.

Light on purpose: importing this module does not load the stages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import prod
from typing import Any, Generic, TypeVar

from kernmodel.studies.predict.request import Change, Point
from kernmodel.value_types import dataclass

View = TypeVar("View")


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension of a grid.

    Attributes:
        kind: "size", "cores", "machine", "compiler", "flags", "change" or "block".
        name: of the size, the path of the figure, or the loop variable; "" for the other kinds.
        values: in order: integers for "size", "cores" and "block"; texts for "machine", "compiler" and "change"; tuples
            of texts for "flags" (None: the machine's own, also for "compiler").
    """

    kind: str
    name: str
    values: tuple[Any, ...]

    @property
    def label(self) -> str:
        """What a column is called: the name, else the kind."""
        return self.name or self.kind


@dataclass(frozen=True, slots=True)
class Grid:
    """All combinations of the axes over a base point, the last axis varying fastest. Points are made when they are
    asked for: a grid of millions takes no memory."""

    base: Point
    axes: tuple[Axis, ...]

    def __len__(self) -> int:
        return prod(len(axis.values) for axis in self.axes)

    def point(self, index: int) -> Point:
        """The point with this number, from 0.

        Raises:
            IndexError: there is no such point.
        """
        return point_at(self.base, zip(self.axes, self.coordinates(index), strict=True))

    def coordinates(self, index: int) -> tuple[Any, ...]:
        """The value on each axis at this point.

        Raises:
            IndexError: there is no such point.
        """
        if not 0 <= index < len(self):
            raise IndexError(f"the grid has no point {index}")
        found = []
        for axis in reversed(self.axes):
            index, digit = divmod(index, len(axis.values))
            found.append(axis.values[digit])
        return tuple(reversed(found))


def point_at(base: Point, values: Iterable[tuple[Axis, Any]]) -> Point:
    """The base point with these values on these axes.

    Raises:
        ValueError: an axis of an unknown kind.
    """
    kernel: dict[str, Any] = {}
    code: dict[str, Any] = {}
    sizes, blocks, changes = dict(base.kernel.sizes), dict(base.blocks), list(base.changes)
    for axis, value in values:
        match axis.kind:
            case "size":
                sizes[axis.name] = value
            case "block":
                blocks[axis.name] = value
            case "change":
                changes.append(Change(axis.name, value))
            case "cores" | "machine":
                kernel[axis.kind] = value
            case "compiler" | "flags":
                code[axis.kind] = value
            case _:
                raise ValueError(f"{axis.kind!r} is no kind of axis")
    return Point(
        kernel=replace(base.kernel, sizes=sizes, **kernel),
        code=replace(base.code, **code) if code else base.code,
        changes=tuple(changes),
        blocks=tuple(blocks.items()),
    )


@dataclass(frozen=True, slots=True)
class Outcome(Generic[View]):
    """What came of a point: a view of its answer, or the text of the error that refused it.

    Attributes:
        index: number of the point, from 0.
        view: what the study asked for; None where the point was refused.
        error: the message of the error, None where there is an answer.
    """

    index: int
    point: Point
    view: View | None
    error: str | None = None


Row = Mapping[str, float | int | str | None]
"""A flat row: a value by column name (`kernmodel.studies.sweep.rows`)."""
