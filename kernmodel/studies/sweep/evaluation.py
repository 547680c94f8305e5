"""Many predictions by one engine: every distinct thing is read and compiled once, points are evaluated in parallel.

A study gives a grid of points and a *view*, a function at module level that takes what it needs from an answer (a flat
record, a prediction); only views travel between processes. Outcomes come in the order of the points, as they become
ready, so a file of results that was cut off is a prefix of the whole.

    with local_processes(jobs) as executor:
        for outcome in evaluate(grid, answer_row, executor=executor): ...

Where the work is done is an executor of `concurrent.futures`: None (here), local processes, or a Dask cluster
(`kernmodel.studies.sweep.executors`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from uuid import uuid4

from kernmodel.errors import KernmodelError
from kernmodel.machine.cores import check_cores
from kernmodel.studies.predict.request import Change, Point
from kernmodel.studies.predict.stages import Stages
from kernmodel.studies.sweep.code_groups import CODING, CodeGroups, largest_of
from kernmodel.studies.sweep.dispatch import Dispatch, Work, evaluate_point
from kernmodel.studies.sweep.grid import Grid, Outcome

if TYPE_CHECKING:
    from kernmodel.studies.predict.request import EcmAnswer

View = TypeVar("View")

_TRIED = 1000
"""Points of a grid whose changes are tried together before all are taken to be wrong."""


def evaluate(
    grid: Grid,
    view: Callable[[Point, EcmAnswer], View],
    *,
    executor: Executor | None = None,
    start: int = 0,
    scaling_cores: Sequence[int] = (),
) -> Iterator[Outcome[View]]:
    """The outcomes of the points from number `start` on, in order, as they become ready.

    Points that share kernel text, compiler, flags and the sizes that decide what the source says share one compilation
    (at the largest sizes among them), in whatever process they are evaluated. At most a few batches of points are under
    way at a time, so memory stays flat.

    Args:
        grid: all points of the study.
        view: a function at module level; it is called where the point was evaluated.
        executor: where to evaluate; None: in this process.
        start: number of the first point to evaluate (those before it are known from an earlier run).
        scaling_cores: core counts over which each answer is scaled.

    Raises:
        KernmodelError: what is wrong for all points alike: an unknown machine or kernel, C that cannot be read, a
            compiler that is missing. What is wrong with a single point (a size that is too small) is in its outcome.
    """
    if not 0 <= start < len(grid):
        return iter(())
    stages = Stages()
    named = [axis.values for axis in grid.axes if axis.kind == "machine"]
    machines = tuple(dict.fromkeys(named[-1])) if named else (grid.base.kernel.machine,)
    _check_machines(grid, machines, stages, scaling_cores)
    with ExitStack() as stack:
        _start_early(stack, grid, stages)
        groups = CodeGroups(grid, stages)
        _check_code(grid, machines, groups, stages)
    work = Work(uuid4().hex, str(Path.cwd()), view, tuple(scaling_cores))
    if executor is not None:
        return Dispatch(executor, grid, work, groups, stages).outcomes(start)

    def here(index: int) -> Outcome[View]:
        point = grid.point(index)
        return Outcome(index, point, *evaluate_point(stages, point, work, groups.of(point).compiled_at))

    return map(here, range(start, len(grid)))


def _check_machines(grid: Grid, machines: Sequence[str], stages: Stages, scaling_cores: Sequence[int]) -> None:
    """Refuse machines that are not there, and figures that no point of the study can have changed so."""
    found = [stages.machine(name) for name in machines]
    if len(found) == 1:
        for cores in scaling_cores:
            check_cores(found[0], cores)
    refused: KernmodelError | None = None
    for changes in _changes_of(grid):
        for name in machines:
            try:
                stages.machine(name, changes)
            except KernmodelError as error:
                refused = refused or error
            else:
                return
    if refused is not None:
        raise refused


def _changes_of(grid: Grid) -> Iterator[tuple[Change, ...]]:
    """What is changed at the points of a study: along each axis, and in the first points."""
    along = [[Change(axis.name, value) for value in axis.values] for axis in grid.axes if axis.kind == "change"]
    first = [changes[0] for changes in along]
    yield (*grid.base.changes, *first)
    for number, changes in enumerate(along):
        for change in changes[1:]:
            yield (*grid.base.changes, *first[:number], change, *first[number + 1 :])
    for chosen in islice(product(*along), _TRIED):
        yield (*grid.base.changes, *chosen)


def _start_early(stack: ExitStack, grid: Grid, stages: Stages) -> None:
    """Start the compiler before the source is read, where it is likely that all points have the same code."""
    if any(axis.kind in CODING for axis in grid.axes):
        return
    first = grid.point(0)
    with suppress(KernmodelError):
        name = first.kernel.machine
        if stages.machine(name, first.changes).compilers == stages.machine(name).compilers:
            stages.start(stack, largest_of(grid))


def _check_code(grid: Grid, machines: Sequence[str], groups: CodeGroups, stages: Stages) -> None:
    """Where all points have the same code, make it: what is wrong with it is wrong with all points."""
    first = grid.point(0)
    group = groups.of(first)
    if group.count < len(grid):
        return
    if len(machines) == 1:
        stages.prepare(replace(first, changes=group.at.changes, blocks=group.at.blocks), group.at)
    else:
        stages.code(group.at, stages.machine(group.at.kernel.machine, group.at.changes))
