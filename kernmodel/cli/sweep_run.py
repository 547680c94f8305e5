"""The run of a sweep: rows from the journal and from the engine, to files, to standard output and to pictures."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernmodel.cli.charts import TERMINAL, drawing_size, save
from kernmodel.cli.output import print_line, show, show_json, show_notes, show_rows, show_text, write_error
from kernmodel.errors import KernmodelError, Note, refuse_warnings
from kernmodel.report.row_files import JSON_LINES, CsvRows, json_line, open_row_file
from kernmodel.report.text.sweep import Gathered, check_unit, row_columns, sweep_inputs
from kernmodel.studies.sweep.checkpoint import Checkpoint, study_identity
from kernmodel.studies.sweep.executors import dask_cluster, local_processes
from kernmodel.studies.sweep.rows import ERROR, complete, warnings_of
from kernmodel.studies.sweep.study import SweepStudy

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from kernmodel.cli.sweep import Wanted
    from kernmodel.studies.sweep.grid import Grid, Row

_INTERRUPTED = 130
_ALONE = 100
"""Points that one process evaluates sooner than several can start."""
_HELD_BACK = 1000
"""Failed rows that wait for the first with an answer, which fills what stands above the table."""
_PROGRESS_SECONDS = 0.2


def run(grid: Grid, wanted: Wanted) -> None:
    """Evaluate the grid and bring the rows where they are wanted.

    Raises:
        KernmodelError: what is wrong for all points alike, or the first point's error where all failed.
        Exit: interrupted, status 130; what is done is kept.
    """
    study = SweepStudy.of(grid)
    progress = _Progress(len(grid), shown=_shows_progress(wanted))
    stopped = False
    try:
        with _Interrupts() as interrupts, _Run.of(study, wanted, progress, interrupts) as now:
            try:
                _print(now)
            except KeyboardInterrupt:
                # told here: within, so that the workers end as they do at the end of a study, which takes a moment
                stopped = True
                progress.clear()
                write_error(_interrupted(study, wanted, progress.done))
    except KeyboardInterrupt:
        if not stopped:
            write_error(_interrupted(study, wanted, progress.done))
        stopped = True
    finally:
        progress.clear()
    if stopped:
        raise click.exceptions.Exit(_INTERRUPTED)
    if now.gathered.failed == now.gathered.done:
        raise KernmodelError(now.gathered.first_error or "there is no point")


class _Interrupts:
    """Within, the keyboard's interrupt and the request to terminate both interrupt, but never while a row is written:
    all files hold the same rows."""

    def __init__(self) -> None:
        self._held = self._waiting = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._take) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _take(self, number: int, frame: object) -> None:
        if self._held:
            self._waiting = True
        else:
            raise KeyboardInterrupt

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep an interrupt until the end."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._waiting:
            raise KeyboardInterrupt


def _interrupted(study: SweepStudy, wanted: Wanted, done: int) -> str:
    journal = wanted.resume
    if journal is None and wanted.output is not None and wanted.output.suffix.lower() == JSON_LINES:
        journal = wanted.output
    text = f"kernmodel: interrupted after {done} of {len(study.grid)} points"
    if journal is not None:
        return f"{text}; go on with --resume {journal}"
    kept = f"{wanted.output} holds them" if wanted.output is not None else "nothing was lost that was printed"
    return f"{text}; {kept}; with --resume FILE.jsonl a sweep can go on"


# {{{ rows


@dataclass(slots=True)
class _Run:
    """A sweep that is under way.

    Attributes:
        identity: of the study, "" where nobody asks.
        journal: to go on with; adders: take every row that is not in it, old ones too where `all_rows`.
        kept: all rows, if a picture or a document needs them.
    """

    study: SweepStudy
    wanted: Wanted
    progress: _Progress
    interrupts: _Interrupts
    identity: str
    journal: Checkpoint | None
    executor: Executor | None
    adders: list[Callable[[Row], None]]
    gathered: Gathered = field(default_factory=Gathered)
    kept: list[Row] = field(default_factory=list)

    @classmethod
    @contextmanager
    def of(cls, study: SweepStudy, wanted: Wanted, progress: _Progress, interrupts: _Interrupts) -> Iterator[_Run]:
        """Open the files and start the processes."""
        outputs_lines = wanted.output is not None and wanted.output.suffix.lower() == JSON_LINES
        asked = wanted.resume is not None or outputs_lines or wanted.format in ("json", "jsonl")
        identity = study_identity(study.grid) if asked else ""
        with ExitStack() as stack:
            journal = None
            if wanted.resume is not None:
                journal = stack.enter_context(_journal(wanted.resume, study, identity))
            adders = [] if wanted.output is None else [_adder(stack, wanted.output, study, identity)]
            left = len(study.grid) - (journal.done if journal else 0)
            executor = stack.enter_context(_executor(left, wanted))
            now = cls(study, wanted, progress, interrupts, identity, journal, executor, adders)
            now.gathered.add_notes(study.notes)
            yield now

    def rows(self) -> Iterator[Row]:
        """All rows in order, each written to the files before it is given."""
        for old in self.journal.rows() if self.journal else ():
            row = complete(self.study.columns, old)
            self._take(row, tuple(Note(code, text) for code, text in warnings_of(row)))
            yield row
        start = self.journal.done if self.journal else 0
        for row, notes in self.study.rows(self.executor, start):
            self._take(row, notes, self.journal)
            yield row

    def _take(self, row: Row, notes: tuple[Note, ...], journal: Checkpoint | None = None) -> None:
        """Check a row, and write it everywhere, or nowhere."""
        self._check(row, notes)
        with self.interrupts.held():
            if journal:
                journal.add(row)
            for add in self.adders:
                add(row)
            self.gathered.add(self.study.grid.axes, row, notes)
            if self.wanted.plot is not None:
                self.kept.append(row)
            self.progress.step()

    def _check(self, row: Row, notes: tuple[Note, ...]) -> None:
        if self.wanted.strict:
            refuse_warnings(notes)
        if self.gathered.failed == self.gathered.done and row[ERROR] is None:
            check_unit(row, self.wanted.unit)


@contextmanager
def _journal(path: Path, study: SweepStudy, identity: str) -> Iterator[Checkpoint]:
    """A journal; it is removed again if it was begun for nothing."""
    existed = path.exists()
    with Checkpoint.open(path, identity, [column.name for column in study.columns]) as journal:
        try:
            yield journal
        finally:
            if not existed and not journal.done:
                path.unlink(missing_ok=True)


def _adder(stack: ExitStack, path: Path, study: SweepStudy, identity: str) -> Callable[[Row], None]:
    if path.suffix.lower() != JSON_LINES:
        return stack.enter_context(open_row_file(path, study.columns)).add
    path.unlink(missing_ok=True)
    return stack.enter_context(_journal(path, study, identity)).add


def _executor(left: int, wanted: Wanted) -> AbstractContextManager[Executor | None]:
    if wanted.scheduler is not None:
        return dask_cluster(wanted.scheduler)
    if not left or (wanted.jobs is None and left <= _ALONE):
        return nullcontext()
    return local_processes(wanted.jobs, left)


# }}}
# {{{ standard output


def _print(now: _Run) -> None:
    form = now.wanted.format
    if form == "json":
        _print_json(now)
    elif form == "csv":
        file = CsvRows(now.study.columns)
        for row in now.rows():
            file.add(row)
    elif form == "jsonl":
        for row in now.rows():
            print_line(json_line(now.identity, row))
    else:
        _print_report(now, table=form == "table" or now.wanted.output is None)
    if now.kept and now.gathered.failed < now.gathered.done:
        _draw(now)


def _print_json(now: _Run) -> None:
    from kernmodel.report.json.sweep import sweep_document

    rows = list(now.rows())
    show_json(sweep_document(now.study, now.identity, rows, now.gathered.notes()))


def _print_report(now: _Run, *, table: bool) -> None:
    """What all points share, the rows or where they are, what failed, and the notes."""
    rows = now.rows()
    held: list[Row] = []
    for row in rows:
        held.append(row)
        if row[ERROR] is None or len(held) == _HELD_BACK:
            break
    answered = held[-1] if held[-1][ERROR] is None else None
    if answered is None and len(held) < _HELD_BACK:
        return  # all failed: the error says it
    now.progress.clear()
    show(sweep_inputs(now.study, answered))
    all_rows = chain(held, rows)
    if table:
        show_rows(row_columns(now.study, now.wanted.unit), all_rows)
    else:
        done = sum(1 for _ in all_rows)
        now.progress.clear()
        print_line(f"{done} rows in {now.wanted.output}")
    now.progress.clear()
    failures = now.gathered.failures()
    if failures:
        print_line("")
        show(failures)
    show_notes(now.gathered.notes())


def _draw(now: _Run) -> None:
    study, unit = now.study, now.wanted.unit
    machines = [machine.title for machine in study.machines]
    if now.wanted.target is not None:
        from kernmodel.plot.sweep import sweep_figure

        save(now.wanted.target, lambda: sweep_figure(study.grid, now.kept, unit, machines))
    elif now.wanted.plot == TERMINAL:
        from kernmodel.plot.sweep_text import sweep_text

        show_text("\n" + sweep_text(study.grid, now.kept, unit, *drawing_size()))


# }}}
# {{{ progress


def _shows_progress(wanted: Wanted) -> bool:
    """On a terminal, unless rows that are streamed to it show the progress."""
    streamed = wanted.format in ("table", "csv", "jsonl") or (wanted.format is None and wanted.output is None)
    return sys.stderr.isatty() and not (streamed and sys.stdout.isatty())


class _Progress:
    """A line on standard error: points done, their rate, and the time that remains."""

    def __init__(self, total: int, *, shown: bool) -> None:
        self.done = 0
        self._total = total
        self._shown = shown
        self._begin = self._last = time.monotonic()
        self._visible = False

    def step(self) -> None:
        """One more point is done."""
        self.done += 1
        if not self._shown:
            return
        now = time.monotonic()
        if now - self._last < _PROGRESS_SECONDS:
            return
        self._last = now
        rate = self.done / (now - self._begin)
        remaining = (self._total - self.done) / rate
        text = f"{self.done} of {self._total} points, {rate:.3g}/s, {_duration(remaining)} left"
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()
        self._visible = True

    def clear(self) -> None:
        """Take the line away."""
        if self._visible:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._visible = False


def _duration(seconds: float) -> str:
    """Seconds for people ("2:05 min", "3 s")."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes}:{rest:02} min" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02} h"


# }}}
