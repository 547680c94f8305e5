"""The run of a sweep at the command line: interrupts, progress, and what is printed."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernmodel.api.sweeps import Sweep, SweepRun, running
from kernmodel.cli.output import Shown, print_line, show_json, show_picture, style_of, write_error, write_page
from kernmodel.cli.streams import flush_output, write_output
from kernmodel.report.row_files import JSON_LINES, CsvRows, json_line

if TYPE_CHECKING:
    from kernmodel.studies.sweep.grid import Grid

_INTERRUPTED = 130
_PROGRESS_SECONDS = 0.2


def print_sweep(grid: Grid, run: SweepRun, form: str | None, shown: Shown) -> None:
    """Evaluate the grid and bring the rows where they are wanted.

    Raises:
        KernmodelError: what is wrong for all points alike, or the first point's error where all failed.
        Exit: interrupted, status 130; what is done is kept.
    """
    progress = _Progress(len(grid), shown=_shows_progress(run, form))
    stopped = False
    try:
        with (
            _Interrupts(progress) as interrupts,
            running(grid, replace(run, around=interrupts.held), strict=shown.strict) as sweep,
        ):
            try:
                _print(sweep, form, shown, progress)
            except KeyboardInterrupt:
                # told here: within, so that the workers end as they do at the end of a study, which takes a moment
                stopped = True
                progress.clear()
                write_error(_interrupted(grid, run, progress.done))
    except KeyboardInterrupt:
        if not stopped:
            write_error(_interrupted(grid, run, progress.done))
        stopped = True
    finally:
        progress.clear()
    if stopped:
        raise click.exceptions.Exit(_INTERRUPTED)
    sweep.check()


class _Interrupts:
    """Within, the keyboard's interrupt and the request to terminate both interrupt, but never while a row is written:
    all files hold the same rows."""

    def __init__(self, progress: _Progress) -> None:
        self._progress = progress
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
        """Keep an interrupt until a row is written, which is counted."""
        self._held = True
        try:
            yield
            self._progress.step()
        finally:
            self._held = False
        if self._waiting:
            raise KeyboardInterrupt


def _interrupted(grid: Grid, run: SweepRun, done: int) -> str:
    journal = run.resume
    if journal is None and run.output is not None and Path(run.output).suffix.lower() == JSON_LINES:
        journal = run.output
    text = f"kernmodel: interrupted after {done} of {len(grid)} points"
    if journal is not None:
        return f"{text}; go on with --resume {journal}"
    kept = f"{run.output} holds them" if run.output is not None else "nothing was lost that was printed"
    return f"{text}; {kept}; with --resume FILE.jsonl a sweep can go on"


def _print(sweep: Sweep, form: str | None, shown: Shown, progress: _Progress) -> None:
    keep = shown.keeps
    if form == "json":
        show_json(sweep.json())
    elif form == "csv":
        file = CsvRows(sweep.study.columns)
        for row in sweep.each(keep=keep):
            file.add(row)
    elif form == "jsonl":
        for row in sweep.each(keep=keep):
            print_line(json_line(sweep.identity, row))
    else:
        for part in sweep.parts(style_of(sys.stdout), unit=shown.unit, keep=keep):
            if sys.stdout.isatty():
                progress.clear()
            write_output(part)
            flush_output()
    if sweep.gathered.failed < sweep.gathered.done:
        show_picture(sweep, shown)
        write_page(sweep, shown)


def _shows_progress(run: SweepRun, form: str | None) -> bool:
    """On a terminal, unless rows that are streamed to it show the progress."""
    streamed = form in ("table", "csv", "jsonl") or (form is None and run.output is None)
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
