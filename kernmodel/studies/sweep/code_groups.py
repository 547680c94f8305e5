"""Which points of a study share their code: one compilation a group, at the largest sizes among its points."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace
from itertools import islice, product
from math import prod

from kernmodel.errors import KernmodelError, SourceError
from kernmodel.studies.predict.compiled import chosen_compiler
from kernmodel.studies.predict.request import Change, Point
from kernmodel.studies.predict.stages import Stages
from kernmodel.studies.sweep.grid import Axis, Grid, point_at
from kernmodel.value_types import dataclass

CODING = ("machine", "compiler", "flags")
"""Kinds of axes whose values decide how the kernel is compiled."""
_TRIED = 1000
"""Points that are tried for one that can be compiled, where the largest sizes cannot."""


@dataclass(frozen=True, slots=True)
class CodeGroup:
    """Points that share their code.

    Attributes:
        key: tells groups of a study apart.
        at: the point whose sizes and block sizes they are compiled with.
        count: number of points of the whole study.
    """

    key: Hashable
    at: Point
    count: int

    @property
    def compiled_at(self) -> Point | None:
        """`at` where there are several points, None for one alone, which is compiled with its own sizes."""
        return self.at if self.count > 1 else None


class CodeGroups:
    """The groups of a grid, whose points are not looked at one by one."""

    def __init__(self, grid: Grid, stages: Stages) -> None:
        """Read the kernel.

        Raises:
            KernmodelError: it cannot be read, or lacks a size.
        """
        from kernmodel.source.nest.sizes import deciding_names, refuse_unknown

        self._grid, self._stages = grid, stages
        self._compilers: dict[Hashable, Hashable] = {}
        self._known: dict[Hashable, CodeGroup] = {}
        self._largest = largest_of(grid)
        kernel = self._largest.kernel
        nest = stages.nest(kernel)
        refuse_unknown(nest, kernel.sizes)
        self._deciding = deciding_names(nest, tuple(kernel.sizes))
        self._counts = self._count()

    def of(self, point: Point) -> CodeGroup:
        """The group of a point of the study."""
        key = self._key(point)
        known = self._known.get(key)
        if known is not None:
            return known
        # all sizes that do not decide what the source says at their largest
        largest = self._largest
        sizes = {**largest.kernel.sizes, **{name: point.kernel.sizes[name] for name in self._deciding}}
        kernel, changes = replace(point.kernel, sizes=sizes), self._compiling(point)
        at = replace(point, kernel=kernel, changes=changes, blocks=largest.blocks)
        group = CodeGroup(key, at, self._counts[self._code_key(point)])
        if group.count > 1:
            group = self._known[key] = replace(group, at=self._compilable(group))
        return group

    def _key(self, point: Point) -> Hashable:
        """Everything that decides the code, but for the sizes that do not decide what the source says."""
        return tuple(point.kernel.sizes[name] for name in self._deciding), self._code_key(point)

    def _code_key(self, point: Point) -> Hashable:
        code = point.code
        by_hand = code.asm, code.port_model, *code.by_hand
        if code.asm is not None:
            return by_hand
        asked = point.kernel.machine, self._compiling(point), code.compiler, code.flags
        if asked not in self._compilers:
            self._compilers[asked] = self._compiler(point, asked)
        return *by_hand, self._compilers[asked]

    def _compiling(self, point: Point) -> tuple[Change, ...]:
        """The changes that are of the machine's compilers and their flags."""
        return tuple(change for change in point.changes if self._is_compiling(change.path, point.kernel.machine))

    def _is_compiling(self, path: str, machine: str) -> bool:
        names = (compiler.name for compiler in self._stages.machine(machine).compilers)
        return not {"compilers", *names}.isdisjoint(path.split("."))

    def _compiler(self, point: Point, asked: Hashable) -> Hashable:
        """The command and flags that are run, by which machines share code; what was asked for where none is there."""
        try:
            machine = self._stages.machine(point.kernel.machine, self._compiling(point))
            compiler, flags = chosen_compiler(machine, point.code)
        except KernmodelError:
            return asked
        return compiler.command, flags

    def _count(self) -> Counter[Hashable]:
        """The number of points by code, for each value of the sizes that decide what the source says."""
        grid = self._grid
        machine = grid.point(0).kernel.machine
        coding = [
            axis
            for axis in grid.axes
            if axis.kind in CODING or (axis.kind == "change" and self._is_compiling(axis.name, machine))
        ]
        decides = [axis for axis in grid.axes if axis.kind == "size" and axis.name in self._deciding]
        apart = {id(axis) for axis in (*coding, *decides)}
        together = prod(len(axis.values) for axis in grid.axes if id(axis) not in apart)
        counts = Counter[Hashable]()
        for values in product(*(axis.values for axis in coding)):
            counts[self._code_key(point_at(grid.base, zip(coding, values, strict=True)))] += together
        return counts

    def _compilable(self, group: CodeGroup) -> Point:
        """The largest sizes, or the largest point of the group whose sizes the nest can have."""
        if self._can_have(group.at):
            return group.at
        step = max(1, len(self._grid) // _TRIED)
        tried = islice((self._grid.point(n) for n in range(0, len(self._grid), step)), _TRIED)
        fitting = (
            point
            for point in tried
            if self._key(point) == group.key and self._can_have(replace(group.at, kernel=point.kernel))
        )
        best = max(fitting, key=lambda point: prod(point.kernel.sizes.values()), default=group.at)
        return replace(best, changes=group.at.changes, blocks=group.at.blocks)

    def _can_have(self, point: Point) -> bool:
        try:
            self._stages.sizes(replace(point, blocks=()), point)
        except SourceError:
            return False
        return True


def largest_of(grid: Grid) -> Point:
    """The grid's point with the largest sizes and block sizes (and the first value of everything else)."""

    def value(axis: Axis) -> object:
        return max(axis.values) if axis.kind in ("size", "block") else axis.values[0]

    return replace(point_at(grid.base, ((axis, value(axis)) for axis in grid.axes)), changes=())
