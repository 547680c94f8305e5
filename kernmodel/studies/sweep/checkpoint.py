"""The file of a study that can go on where it was cut off: one JSON line a point, in the order of the points.

Each line is a row with two fields of its own, `study` (what identifies the study) and `point` (its number), so the file
is at once the result (JSON lines) and all that is needed to go on. A last line that was cut short is dropped.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from errno import ENOSPC
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from kernmodel import __version__
from kernmodel.errors import InputError
from kernmodel.limits import CODE_BYTES
from kernmodel.machine.load import load_machine
from kernmodel.studies.sweep.grid import Axis, Grid, Row
from kernmodel.user_files import read_file

_TODO = "give another file for this study, or the options of the study that is in it"


def study_identity(grid: Grid) -> str:
    """What identifies a study, as 16 hexadecimal digits: a hash over the texts of kernels and machine files, the
    options, the axes with their values, and the version of kernmodel.

    Raises:
        InputError: a kernel, machine file or assembly that cannot be read.
    """
    from kernmodel.source.find import find_source

    kernel, code = grid.base.kernel, grid.base.code
    told = {
        "version": __version__,
        "kernel": {
            **_plain(kernel),
            "kernel": hashlib.sha256(find_source(kernel.kernel)[0].encode()).hexdigest(),
            "machine": load_machine(kernel.machine).sha256,
        },
        "code": {**_plain(code), "asm": code.asm and _file_hash(code.asm)},
        "changes": _plain(grid.base.changes),
        "blocks": grid.base.blocks,
        "axes": [[axis.kind, axis.name, _values(axis)] for axis in grid.axes],
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """The value as JSON has it."""
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value


def _values(axis: Axis) -> list[Any]:
    if axis.kind == "machine":
        return [[Path(name).name, load_machine(name).sha256] for name in axis.values]
    return [_plain(value) for value in axis.values]


def _file_hash(path: str) -> str:
    if path == "-":
        raise InputError("a study from standard input cannot go on later", where="--asm", todo="give a file")
    return hashlib.sha256(read_file(path, "a file", CODE_BYTES)).hexdigest()


class Checkpoint:
    """Appends rows to a file, each written out at once; a context manager."""

    def __init__(self, path: Path, file: BinaryIO, study: str, columns: Sequence[str], done: int) -> None:
        self._path = path
        self._file = file
        self._study = study
        self._columns = tuple(columns)
        self._held = self._done = done

    @classmethod
    def open(cls, path: Path, study: str, columns: Sequence[str] | None = None) -> Checkpoint:
        """Go on with the file, or begin it where there is none.

        Args:
            columns: names of the columns in the order in which they are written, null where a row lacks one; other
                columns of a row follow them.

        Raises:
            InputError: the file is of another study, or no journal; it cannot be read or written; another process
                writes it.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        except OSError as error:
            raise _refused(path, error) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise InputError("is no regular file", where=str(path), todo="give another file")
        file = os.fdopen(descriptor, "r+b")
        try:
            _lock(file, path)
            done, end = _whole_lines(file, path, study)
            file.seek(end)
            file.truncate()
        except OSError as error:
            file.close()
            raise _refused(path, error) from error
        except BaseException:
            file.close()
            raise
        return cls(path, file, study, columns or (), done)

    @property
    def done(self) -> int:
        """Number of points that the file holds; the next one to evaluate."""
        return self._done

    def rows(self) -> Iterator[Row]:
        """The rows that the file held when it was opened, with `point`.

        Raises:
            InputError: a line that was damaged since it was written.
        """
        with self._path.open("rb") as file:
            for number, line in enumerate(islice(file, self._held), 1):
                try:
                    row = json.loads(line)
                except ValueError as error:
                    todo = "give another file; this one was changed"
                    raise InputError("the line is no JSON", where=f"{self._path}:{number}", todo=todo) from error
                del row["study"]
                yield row

    def add(self, row: Row) -> None:
        """Append the row of the next point.

        Raises:
            InputError: the file cannot be written (the disk is full).
        """
        due = {"study": self._study, "point": self._done}
        if row.get("point", self._done) != self._done:
            raise ValueError(f"the row of point {row['point']} comes where that of point {self._done} is due")
        line: dict[str, Any] = {**due, **dict.fromkeys(self._columns), **row, **due}
        # JSON has no infinite numbers
        line |= {name: None for name, value in line.items() if isinstance(value, float) and not math.isfinite(value)}
        try:
            self._file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise _refused(self._path, error) from error
        self._done += 1

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            # every row was written out when it was added: what is left is one that could not be
            self._file.close()


def _refused(path: Path, error: OSError) -> InputError:
    todo = "make room on the disk; the rows so far are kept" if error.errno == ENOSPC else "give another file"
    return InputError(f"cannot go on with this file: {error.strerror}", where=str(path), todo=todo)


def _lock(file: BinaryIO, path: Path) -> None:
    """Keep other processes from writing the file, where the system can."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        todo = "wait for it, or give another file"
        raise InputError("another process writes this file", where=str(path), todo=todo) from error
    except OSError:
        # a file system without locks
        return


def _whole_lines(file: BinaryIO, path: Path, study: str) -> tuple[int, int]:
    """Number of the rows of this study in a file, and the bytes that they take.

    Raises:
        InputError: the file holds something else.
    """
    done = end = 0
    for line in file:
        start = f'{{"study": "{study}", "point": {done}'.encode()
        if not line.endswith(b"\n"):
            # cut short; but of a file that is none of ours, nothing is cut off
            if line.startswith(start) or start.startswith(line):
                break
            raise _foreign(path, line, study)
        if not line.startswith((start + b",", start + b"}")):
            raise _foreign(path, line, study)
        done += 1
        end += len(line)
    return done, end


def _foreign(path: Path, line: bytes, study: str) -> InputError:
    """The error for a line that does not belong here."""
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict) or "study" not in row:
        what = "is no file of a sweep (JSON lines with the fields study and point)"
        return InputError(what, where=str(path), todo="give another file; this one is left alone")
    if row["study"] != study:
        what = "holds another study: kernel, machine, options, axes or the version of kernmodel are not the same"
        return InputError(what, where=str(path), todo=_TODO)
    what = f"lacks points before point {row.get('point')}"
    return InputError(what, where=str(path), todo="give another file; this one was changed")
