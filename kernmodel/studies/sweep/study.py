"""Sweeps: a grid from what the user varies, checks before the first point, and the rows as they come.

grid = sweep_grid(point, Varied(machines=("clx",), sizes={"N": (1000, 2000)}))
study = SweepStudy.of(grid)
for row in study.rows(executor): ...
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from kernmodel.errors import Note, UsageError
from kernmodel.machine.cores import check_cores
from kernmodel.machine.load import load_machine
from kernmodel.studies.predict.compiled import chosen_compiler
from kernmodel.studies.predict.nests import read_nest, sizes_at
from kernmodel.studies.predict.request import Change, CodeRequest, Point
from kernmodel.studies.sweep.evaluation import evaluate
from kernmodel.studies.sweep.grid import Axis, Grid, Outcome, Row, point_at
from kernmodel.studies.sweep.rows import RowColumn, Say, answer_row, complete, row_of, study_columns
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.machine.changes.figures import MachineFigures
    from kernmodel.machine.model import Machine
    from kernmodel.studies.predict.request import EcmAnswer

Flags = tuple[str, ...]
Noted = tuple[Row, tuple[Note, ...]]


@dataclass(frozen=True, slots=True)
class Varied:
    """What a sweep varies; one value of anything belongs to the base, none leaves the base as it is.

    Attributes:
        machines: names or paths; compilers: families or commands; flags: each a list of flags.
        changes: texts by path of the figure; blocks: block sizes by loop variable; sizes: by name.
    """

    machines: tuple[str, ...]
    compilers: tuple[str, ...] = ()
    flags: tuple[Flags, ...] = ()
    changes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    blocks: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    cores: tuple[int, ...] = ()
    sizes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def sweep_grid(base: Point, varied: Varied) -> Grid:
    """The grid over a base point: axes in the order machine, compiler, flags, change, block, cores, size."""
    axes = [Axis(kind, name, tuple(dict.fromkeys(values))) for kind, name, values in _dimensions(varied)]
    always = ("size", "machine", "cores")  # a base has some value of these
    fixed = [(axis, axis.values[0]) for axis in axes if axis.kind in always or len(axis.values) == 1]
    return Grid(point_at(base, fixed), tuple(axis for axis in axes if len(axis.values) > 1))


def _dimensions(varied: Varied) -> Iterator[tuple[str, str, Sequence[Any]]]:
    alone: tuple[tuple[str, Sequence[Any]], ...]
    alone = (("machine", varied.machines), ("compiler", varied.compilers), ("flags", varied.flags))
    yield from ((kind, "", values) for kind, values in alone if values)
    yield from (("change", path, values) for path, values in varied.changes.items())
    yield from (("block", loop, values) for loop, values in varied.blocks.items())
    if varied.cores:
        yield "cores", "", varied.cores
    yield from (("size", name, values) for name, values in varied.sizes.items())


@dataclass(frozen=True, slots=True)
class SweepStudy:
    """A grid that has passed all checks.

    Attributes:
        machines: of the grid, in order.
        columns: of its rows.
        notes: on the changes of figures: what was rounded, and what follows.
    """

    grid: Grid
    machines: tuple[Machine, ...]
    columns: tuple[RowColumn, ...]
    notes: tuple[Note, ...] = ()

    @classmethod
    def of(cls, grid: Grid) -> SweepStudy:
        """Check what can be checked before there is an answer.

        Raises:
            KernmodelError: an unknown machine, kernel, size, loop, figure, unit of a figure, or compiler; core counts
                that no machine has.
        """
        machines = tuple(load_machine(name) for name in _values(grid, "machine", grid.base.kernel.machine))
        notes = _check_changes(grid)
        _check_compilers(grid, machines)
        most = max(machines, key=lambda machine: machine.topology.cores)
        for cores in _values(grid, "cores", grid.base.kernel.cores):
            check_cores(most, cores)
        _check_kernel(grid)
        return cls(grid, machines, study_columns(grid.axes, machines), notes)

    def rows(
        self, executor: Executor | None = None, start: int = 0, say: Say | None = None
    ) -> Iterator[tuple[Row, tuple[Note, ...]]]:
        """The rows from number `start` on, with the notes of their answers, in order, as they become ready.

        Args:
            executor: evaluates the points, None: here.
            start: number of the first row.
            say: puts the bottleneck of a prediction in words, a function that other processes find by its name; without
                it the column is empty.
        """
        for outcome in self._outcomes(partial(noted_row, say=say), executor, start):
            record, notes = outcome.view if outcome.view is not None else (None, ())
            plain = Outcome(outcome.index, outcome.point, record, outcome.error)
            row = row_of(self.grid.axes, self.grid.coordinates(outcome.index), plain)
            yield complete(self.columns, row), notes

    def _outcomes(
        self, view: Callable[[Point, EcmAnswer], Noted], executor: Executor | None, start: int
    ) -> Iterator[Outcome[Noted]]:
        """Above a ccNUMA domain, answers are scaled, each machine to core counts that it has: machine by machine."""
        cores = _values(self.grid, "cores", self.grid.base.kernel.cores)
        limits = [(m.topology.cores_per_numa_domain, m.topology.cores) for m in self.machines]
        beyond = [tuple(n for n in cores if domain < n <= most) for domain, most in limits]
        if len(self.machines) == 1 or not any(beyond):
            yield from evaluate(self.grid, view, executor=executor, start=start, scaling_cores=beyond[0])
            return
        axes, offset = self.grid.axes[1:], 0
        for name, counts in zip(self.grid.axes[0].values, beyond, strict=True):
            base = replace(self.grid.base, kernel=replace(self.grid.base.kernel, machine=name))
            part = Grid(base, axes)
            begin = max(0, start - offset)
            for outcome in evaluate(part, view, executor=executor, start=begin, scaling_cores=counts):
                yield replace(outcome, index=outcome.index + offset)
            offset += len(part)


def noted_row(point: Point, answer: EcmAnswer, say: Say | None = None) -> Noted:
    """The record of an answer and its notes."""
    return answer_row(point, answer, say), answer.notes


def _values(grid: Grid, kind: str, base: Any) -> tuple[Any, ...]:
    """All values of this kind over the grid."""
    return next((axis.values for axis in grid.axes if axis.kind == kind), (base,))


def _check_changes(grid: Grid) -> tuple[Note, ...]:
    """Refuse a value that no machine of the grid can take; the notes of the changes."""
    axes = [axis for axis in grid.axes if axis.kind == "change"]
    changes = [*grid.base.changes, *(Change(axis.name, value) for axis in axes for value in axis.values)]
    if not changes:
        return ()
    from kernmodel.machine.changes.figures import MachineFigures

    figures = [MachineFigures.open(name) for name in _values(grid, "machine", grid.base.kernel.machine)]
    return tuple(note for change in changes for note in _notes_of(change, figures))


def _notes_of(change: Change, figures: Iterable[MachineFigures]) -> tuple[Note, ...]:
    refused: UsageError | None = None
    for machine in figures:
        try:
            _, applied = machine.applied([(change.path, change.value)])
        except UsageError as error:
            refused = refused or error
        else:
            return tuple(note for one in applied for note in one.notes)
    if refused is not None:
        raise refused
    return ()


def _check_compilers(grid: Grid, machines: Iterable[Machine]) -> None:
    if grid.base.code.asm is not None:
        return
    compilers = _values(grid, "compiler", grid.base.code.compiler)
    for machine in machines:
        for compiler in compilers:
            chosen_compiler(machine, CodeRequest(compiler=compiler))


def _check_kernel(grid: Grid) -> None:
    """Read the kernel once: refuse sizes and loops that it lacks."""
    sizes = {**grid.base.kernel.sizes, **{axis.name: max(axis.values) for axis in grid.axes if axis.kind == "size"}}
    nest = read_nest(replace(grid.base.kernel, sizes=sizes))
    known = {*nest.symbols, *nest.defaults}
    for name, value in sizes.items():
        if name not in known and not re.search(rf"\b{re.escape(name)}\b", nest.text):
            sizes_at(nest, {name: value})
    blocks = {**dict(grid.base.blocks), **{axis.name: axis.values[0] for axis in grid.axes if axis.kind == "block"}}
    if blocks:
        from kernmodel.source.nest.tiling import tile

        tile(nest, blocks)
