"""Many predictions: all combinations of sizes, cores, machines, compilers, flags, blocks and machine figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from itertools import chain
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from kernmodel.api.options import (
    CODE,
    CacheOptions,
    CodeOptions,
    Kernel,
    Sizes,
    Values,
    kernel_request,
    parse_flags,
    size_names,
    texts_of,
    values_by_name,
    values_of,
)
from kernmodel.api.result import Json, Result, Views, note_parts, table_parts
from kernmodel.errors import KernmodelError, Note, ToolError, UsageError, refuse_warnings
from kernmodel.studies.sweep.values import EVERY_SIZE
from kernmodel.user_files import File
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from pandas import DataFrame

    from kernmodel.report.layout import Blocks
    from kernmodel.report.text.render import Style
    from kernmodel.studies.sweep.checkpoint import Checkpoint
    from kernmodel.studies.sweep.grid import Grid, Row
    from kernmodel.studies.sweep.study import SweepStudy
    from kernmodel.traffic.options import CacheMode

_ALONE = 100
"""Points that one process evaluates sooner than several can start."""
_HELD_BACK = 1000
"""Failed rows that wait for the first with an answer, which fills what stands above the table."""


@dataclass(frozen=True, slots=True)
class Vary:
    """What a sweep varies besides sizes, cores and machines, as the options of the command line.

    Attributes:
        compilers: families or commands; flags: each as in `CodeOptions`.
        blocks: block sizes by loop variable, `{"i": "32-512:8log", "j": [16, 32]}`, or texts "i=16,32".
        changes: values by figure of the machine file, `{"L2.size": ["1MiB", "x2"]}`, or texts "L2.size=1MiB,x2".
    """

    compilers: Sequence[str] = ()
    flags: Sequence[str | Sequence[str]] = ()
    blocks: Mapping[str, Values] | Sequence[str] = ()
    changes: Mapping[str, str | Sequence[str]] | Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SweepRun:
    """How a sweep is run, as the options of the command line with the same names.

    Attributes:
        jobs: processes, None: all processors; scheduler: address of a Dask cluster in their place.
        resume: a .jsonl file to go on with, which is begun if need be.
        output: a .csv, .jsonl or .parquet file for the rows; force: replace it if it exists.
        table: whether the text has the rows, where they go to `output` too.
        identified: whether the study is to be told from others, as its rows in files of JSON are.
        unit: of times, which the kernel must have a meaning for.
        around: within what each row is written, so that a program can keep interrupts away.
    """

    jobs: int | None = None
    scheduler: str | None = None
    resume: File | None = None
    output: File | None = None
    force: bool = False
    table: bool = True
    identified: bool = False
    unit: str = "cy/CL"
    around: Callable[[], AbstractContextManager[None]] = nullcontext


VARY, RUN = Vary(), SweepRun()


def sweep_sizes(
    kernel: Kernel,
    machines: File | Sequence[File],
    *,
    cores: Values = (),
    vary: Vary = VARY,
    cache: CacheMode | CacheOptions = "auto",
    code: CodeOptions = CODE,
    run: SweepRun = RUN,
    strict: bool = False,
    **sizes: Sizes,
) -> Sweep:
    """The ECM predictions at all combinations of sizes, and of what else varies, as `kernmodel sweep`.

    >>> km.sweep_sizes("stencil.c", "clx", N="100-100000:60log").plot("sweep.svg")

    Args:
        machines: one or several.
        cores: active cores, one or several.
        vary: what else varies; run: processes, and files for the rows.
        kernel, cache, code, strict, sizes: as for `ecm`.

    Raises:
        KernmodelError: the input is at fault for all points alike, or all points failed. What is wrong at single points
            stands in their rows.
    """
    grid = sweep_grid_of(kernel, machines, cores, vary, cache, code, sizes)
    with running(grid, run, strict=strict) as sweep:
        tuple(sweep)  # while the files are open
        sweep.check()
        return sweep


def sweep_grid_of(
    kernel: Kernel,
    machines: File | Sequence[File],
    cores: Values,
    vary: Vary,
    cache: CacheMode | CacheOptions,
    code: CodeOptions,
    sizes: Mapping[str, Sizes],
) -> Grid:
    """The points of a sweep.

    Raises:
        UsageError: options that cannot be read, or do not fit.
    """
    from kernmodel.studies.predict.request import Point
    from kernmodel.studies.sweep.study import Varied, sweep_grid
    from kernmodel.studies.sweep.values import parse_blocks, parse_changes

    if code.asm is not None:
        for option, given in (("--compiler", vary.compilers), ("--flags", vary.flags), ("--block", vary.blocks)):
            if given:
                raise UsageError("does not fit: the assembly is given", where=option, todo="leave it out")
    several = [machines] if isinstance(machines, str | PathLike) else machines
    names = tuple(fspath(machine) for machine in several)
    varied = Varied(
        machines=names,
        compilers=tuple(vary.compilers),
        flags=tuple(map(parse_flags, vary.flags)),
        changes=parse_changes(texts_of(vary.changes)),
        blocks=parse_blocks(texts_of(vary.blocks)),
        cores=values_of(cores, "--cores") if cores != () else (),
        sizes=_size_axes(values_by_name(sizes), kernel),
    )
    return sweep_grid(Point(kernel_request(kernel, names[0], {}, cache), code.request()), varied)


def _size_axes(named: Mapping[str, tuple[int, ...]], kernel: Kernel) -> Mapping[str, tuple[int, ...]]:
    """Values by size, with those of "." for each size that has none of its own.

    Raises:
        UsageError: they are several sizes of several values: each is an axis, so that they cannot vary together.
    """
    if EVERY_SIZE not in named:
        return named
    own = {name: values for name, values in named.items() if name != EVERY_SIZE}
    others, values = size_names(kernel, {name: values[0] for name, values in own.items()}), named[EVERY_SIZE]
    if len(others) > 1 and len(values) > 1:
        what = f"{' and '.join(others)} would vary together, but a sweep varies each by itself"
        todo = f"write -D {others[0]}=… and the others, or ask `kernmodel ecm`"
        raise UsageError(what, where=f"-D {EVERY_SIZE}", todo=todo)
    return own | dict.fromkeys(others, values)


@contextmanager
def running(grid: Grid, run: SweepRun, *, strict: bool = False) -> Iterator[Sweep]:
    """A sweep whose files are open and whose processes run; within, its rows come as they are asked for.

    Raises:
        KernmodelError: what is wrong for all points alike.
    """
    from kernmodel.report.row_files import JSON_LINES, check_row_file
    from kernmodel.studies.sweep.checkpoint import study_identity
    from kernmodel.studies.sweep.study import SweepStudy

    if run.scheduler is not None and run.jobs is not None:
        raise UsageError("the processes of a cluster are its own", where="--jobs", todo="leave it out")
    resume = None if run.resume is None else Path(run.resume)
    output = None
    if run.output is not None and (resume is None or Path(run.output).resolve() != resume.resolve()):
        output = check_row_file(fspath(run.output), force=run.force)
    study = SweepStudy.of(grid)
    asked = run.identified or resume is not None or (output is not None and output.suffix.lower() == JSON_LINES)
    identity = study_identity(study.grid) if asked else ""
    with ExitStack() as stack:
        journal = None if resume is None else stack.enter_context(_journal(resume, study, identity))
        adder = None if output is None else _adder(stack, output, study, identity)
        executor = stack.enter_context(_executor(len(grid) - (journal.done if journal else 0), run))
        yield Sweep(study, identity, _Writers(journal, adder, output), executor, run, strict=strict)


@contextmanager
def _journal(path: Path, study: SweepStudy, identity: str) -> Iterator[Checkpoint]:
    """A journal; it is removed again if it was begun for nothing."""
    from kernmodel.studies.sweep.checkpoint import Checkpoint

    existed = path.exists()
    with Checkpoint.open(path, identity, [column.name for column in study.columns]) as journal:
        try:
            yield journal
        finally:
            if not existed and not journal.done:
                path.unlink(missing_ok=True)


def _adder(stack: ExitStack, path: Path, study: SweepStudy, identity: str) -> Callable[[Row], None]:
    from kernmodel.report.row_files import JSON_LINES, open_row_file

    if path.suffix.lower() != JSON_LINES:
        return stack.enter_context(open_row_file(path, study.columns)).add
    path.unlink(missing_ok=True)
    return stack.enter_context(_journal(path, study, identity)).add


def _executor(left: int, run: SweepRun) -> AbstractContextManager[Executor | None]:
    from kernmodel.studies.sweep.executors import dask_cluster, local_processes

    if run.scheduler is not None:
        return dask_cluster(run.scheduler)
    if not left or (run.jobs is None and left <= _ALONE):
        return nullcontext()
    return local_processes(run.jobs, left)


@dataclass(frozen=True, slots=True)
class _Writers:
    """Where rows go: `journal` holds those of before and takes new ones, `add` takes all, into `output`."""

    journal: Checkpoint | None
    add: Callable[[Row], None] | None
    output: Path | None


class Sweep(Result["Row"]):
    """The rows of a sweep: each a mapping from column to number or text, `error` saying why a point failed.
    `frame()` is the table of pandas."""

    def __init__(
        self,
        study: SweepStudy,
        identity: str,
        writers: _Writers,
        executor: Executor | None,
        run: SweepRun,
        *,
        strict: bool = False,
    ) -> None:
        from kernmodel.report.text.sweep import Gathered

        self.study, self.identity = study, identity
        self.gathered = Gathered()
        self.gathered.add_notes(study.notes)
        self._writers, self._executor, self._run = writers, executor, run
        drawn = {"grid": study.grid, "machines": [machine.title for machine in study.machines]}
        super().__init__(self._rows(strict=strict), _SWEEP, drawn, total=len(study.grid))

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the answers assume or do not know, each once."""
        tuple(self)
        return tuple(self.gathered.notes())

    def frame(self) -> DataFrame:
        """All rows as a frame of pandas, a column for each of theirs, numbers not rounded.

        Raises:
            ToolError: pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError as error:
            todo = "install it (pip install pandas), or take list(result): each row is a mapping"
            raise ToolError("pandas is not installed", where=".frame()", todo=todo) from error
        return DataFrame(list(self))

    def check(self) -> None:
        """Raise the first point's error where all failed.

        Raises:
            KernmodelError: it.
        """
        if self.gathered.failed == self.gathered.done:
            raise KernmodelError(self.gathered.first_error or "there is no point")

    def _rows(self, *, strict: bool) -> Iterator[Row]:
        """All rows in order, each written to the files before it is given."""
        from kernmodel.report.text.bottleneck import bottleneck_text
        from kernmodel.studies.sweep.rows import complete, warnings_of

        journal = self._writers.journal
        for old in journal.rows() if journal else ():
            row = complete(self.study.columns, old)
            self._take(row, tuple(Note(code, text) for code, text in warnings_of(row)), None, strict=strict)
            yield row
        start = journal.done if journal else 0
        for row, notes in self.study.rows(self._executor, start, bottleneck_text):
            self._take(row, notes, journal, strict=strict)
            yield row

    def _take(self, row: Row, notes: tuple[Note, ...], journal: Checkpoint | None, *, strict: bool) -> None:
        """Check a row, and write it everywhere, or nowhere."""
        from kernmodel.report.text.sweep import check_unit
        from kernmodel.studies.sweep.rows import ERROR

        if strict:
            refuse_warnings(notes)
        if self.gathered.failed == self.gathered.done and row[ERROR] is None:
            check_unit(row, self._run.unit)
        with self._run.around():
            if journal:
                journal.add(row)
            if self._writers.add:
                self._writers.add(row)
            self.gathered.add(self.study.grid.axes, row, notes)

    def json(self, *, unit: str | None = None) -> Json:
        """The document that the command line prints with `--json`; times in it are in cy/CL."""
        from kernmodel.report.json.sweep import sweep_document

        return sweep_document(self.study, self.identity, list(self), self.gathered.notes())

    def _blocks(self, unit: str | None, *, verbose: bool) -> Blocks:
        from kernmodel.report.layout import filled
        from kernmodel.report.text.sections import merged_notes, notes_section
        from kernmodel.report.text.sweep import row_columns, sweep_inputs
        from kernmodel.studies.sweep.rows import ERROR

        answered = next((row for row in self if row[ERROR] is None), None)
        return (
            *sweep_inputs(self.study, answered),
            filled(row_columns(self.study, unit or "", self), self),
            *self.gathered.failures(),
            *notes_section(merged_notes(self.gathered.notes())),
        )

    def _parts(self, answers: Iterator[Row], style: Style, unit: str | None, *, verbose: bool) -> Iterator[str]:
        """What all points share, the rows or where they are, what failed, and the notes."""
        from kernmodel.report.text.render import render
        from kernmodel.report.text.sweep import row_columns, sweep_inputs
        from kernmodel.studies.sweep.rows import ERROR

        held: list[Row] = []
        for row in answers:
            held.append(row)
            if row[ERROR] is None or len(held) == _HELD_BACK:
                break
        answered = held[-1] if held[-1][ERROR] is None else None
        if answered is None and len(held) < _HELD_BACK:
            return  # all failed: the error says it
        yield render(sweep_inputs(self.study, answered), style)
        if self._run.table or self._writers.output is None:
            yield from table_parts(row_columns(self.study, unit or "", held), chain(held, answers), style)
        else:
            yield f"{sum(1 for _ in chain(held, answers))} rows in {self._writers.output}\n"
        failures = self.gathered.failures()
        if failures:
            yield "\n"
            yield render(failures, style)
        yield from note_parts(self.gathered.notes(), style)


_SWEEP = Views("", "", "sweep:sweep_figure", "sweep_text:sweep_text", unit="cy/CL", together=True)
