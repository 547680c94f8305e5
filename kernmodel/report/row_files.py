"""Rows of a study as files, written while they come: CSV, JSON lines, and Parquet.

A file begins with its first row, so a study that is refused before leaves none, and holds all rows that were added
whenever it ends.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from kernmodel.errors import InputError, ToolError, UsageError
from kernmodel.output_files import cannot_write, output_file

if TYPE_CHECKING:
    from kernmodel.studies.sweep.grid import Row
    from kernmodel.studies.sweep.rows import RowColumn

CSV, JSON_LINES, PARQUET = ".csv", ".jsonl", ".parquet"
ENDINGS = (CSV, JSON_LINES, PARQUET)
_GROUP = 8192
"""Rows of a row group of a Parquet file: they are in memory until it is full."""


class RowFile(AbstractContextManager["RowFile"]):
    """A file of rows."""

    def add(self, row: Row) -> None:
        """Write a row, which has all columns."""
        raise NotImplementedError

    def close(self) -> None:
        """End the file; nothing where no row was added."""

    def __exit__(self, *_: object) -> None:
        self.close()


def check_row_file(path: str, *, force: bool) -> Path:
    """The path of a file of rows, checked before any work is done.

    Raises:
        UsageError: an unknown ending, a folder that is not there, a directory, a file that is there (unless `force`).
        ToolError: Parquet without the library pyarrow.
    """
    target, where = Path(path), f"--output {path}"
    if target.suffix.lower() not in ENDINGS:
        what = f"the ending {target.suffix!r} is not known" if target.suffix else "the name has no ending"
        raise UsageError(what, where=where, todo=f"end it in {', '.join(ENDINGS)}")
    output_file(path, "--output")
    if target.exists() and not force:
        todo = "give another name, or --force to replace it"
        if target.suffix.lower() == JSON_LINES:
            todo += f"; --resume {path} goes on with it"
        raise UsageError("the file exists", where=where, todo=todo)
    if target.suffix.lower() == PARQUET:
        _pyarrow()
    return target


def open_row_file(path: Path, columns: Sequence[RowColumn]) -> RowFile:
    """A file of rows in the format of its ending, .csv or .parquet (JSON lines: `studies.sweep.checkpoint`)."""
    return CsvRows(columns, path) if path.suffix.lower() == CSV else ParquetRows(columns, path)


def _cannot_write(path: Path, error: OSError) -> InputError:
    """The error for a file of rows; one into which nothing came is taken away again."""
    with suppress(OSError):
        if path.is_file() and not path.stat().st_size:
            path.unlink()
    return cannot_write(path, error)


class CsvRows(RowFile):
    """Comma-separated values with one line of headings (title and unit); empty where there is no value. Without a path
    on standard output."""

    def __init__(self, columns: Sequence[RowColumn], path: Path | None = None) -> None:
        """See the class."""
        self._columns = columns
        self._path = path
        self._file: TextIO | None = None

    def add(self, row: Row) -> None:
        """Write a row, at once."""
        if self._file is None:
            self._file = self._open()
            self._write([column.heading for column in self._columns])
        self._write(row.values())

    def _open(self) -> TextIO:
        if self._path is None:
            return sys.stdout
        try:
            return self._path.open("w", newline="", encoding="utf-8")
        except OSError as error:
            raise _cannot_write(self._path, error) from error

    def _write(self, cells: Iterable[Any]) -> None:
        assert self._file is not None
        try:
            csv.writer(self._file, lineterminator="\n").writerow(cells)
            self._file.flush()
        except OSError as error:
            if self._path is None:
                error.filename = error.filename or "standard output"
                raise
            raise _cannot_write(self._path, error) from error

    def close(self) -> None:
        """End the file."""
        if self._file is not None and self._path is not None:
            with suppress(OSError):
                # every row was flushed: what is left is one that could not be written
                self._file.close()


def json_line(study: str, row: Row) -> str:
    """A row as a journal has it: `study` first, then its columns."""
    # in ASCII as escapes: other spellings of signs may mean something in JSON
    plain = not (getattr(sys.stdout, "encoding", None) or "ascii").lower().startswith("utf")
    return json.dumps({"study": study, **row}, ensure_ascii=plain, allow_nan=False)


class ParquetRows(RowFile):
    """A Parquet file in row groups; the metadata of a field have `title` and `unit`."""

    def __init__(self, columns: Sequence[RowColumn], path: Path) -> None:
        """See the class."""
        self._columns = columns
        self._path = path
        self._waiting: list[Row] = []
        self._writer: Any = None

    def add(self, row: Row) -> None:
        """Keep a row until its group is full."""
        if self._writer is None:
            self._writer = self._open()
        self._waiting.append(row)
        if len(self._waiting) >= _GROUP:
            self._flush()

    def _open(self) -> Any:
        _pyarrow()
        from pyarrow.parquet import ParquetWriter

        try:
            return ParquetWriter(self._path, _schema(self._columns))
        except OSError as error:
            raise _cannot_write(self._path, error) from error

    def _flush(self) -> None:
        pa = _pyarrow()
        rows, self._waiting = self._waiting, []
        values = {column.name: [row.get(column.name) for row in rows] for column in self._columns}
        self._try(lambda: self._writer.write_table(pa.table(values, schema=_schema(self._columns))))

    def close(self) -> None:
        """Write the last group and the end of the file."""
        if self._writer is None:
            return
        if self._waiting:
            self._flush()
        self._try(self._writer.close)

    def _try(self, write: Callable[[], object]) -> None:
        """Write; a file that could not be written is not written again when it is closed."""
        try:
            write()
        except OSError as error:
            self._waiting, self._writer = [], None
            raise _cannot_write(self._path, error) from error


def _schema(columns: Sequence[RowColumn]) -> Any:
    pa = _pyarrow()
    types = {"float": pa.float64(), "int": pa.int64(), "str": pa.string()}
    return pa.schema(
        pa.field(column.name, types[column.type], metadata={"title": column.title, "unit": column.unit})
        for column in columns
    )


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        todo = 'install it: pip install "kernmodel[parquet]"; or write .csv or .jsonl'
        raise ToolError("Parquet needs the library pyarrow", where="--output", todo=todo) from error
    return pyarrow
