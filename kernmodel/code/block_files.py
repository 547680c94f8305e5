"""Files of many blocks: one block of hex digits a line, or CSV with a column of them; gzip and standard input too."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from kernmodel.errors import AssemblyError, UsageError
from kernmodel.user_files import STANDARD_INPUT, lines_of, opened
from kernmodel.value_types import NamedTuple

HEX_COLUMN = "hex"

_SHOWN_NAMES = 30
_GZIP = b"\x1f\x8b"
_HEX_LINE = re.compile(r"(?:0[xX]|\\x|[0-9a-fA-F]|[\s,:_])*")


class BlockLine(NamedTuple):
    """A line of a file of blocks: its number (1-based), and its hex digits or what is wrong with it."""

    number: int
    code: str | None
    error: str | None = None


def read_lines(path: str, what: str = "a file of blocks") -> Iterator[str]:
    """The lines of a file, gzip or not; "-" is the standard input. Bytes that are no UTF-8 are replaced by a sign.

    Args:
        what: what it should be, for messages.

    Raises:
        AssemblyError: it cannot be read, or is a damaged gzip file.
    """
    try:
        with opened(path, what, error=AssemblyError) as file:
            packed = path != STANDARD_INPUT and file.peek(len(_GZIP))[: len(_GZIP)] == _GZIP
            lines = lines_of(gzip.GzipFile(fileobj=file) if packed else file, path, error=AssemblyError)
            for line in lines:
                yield line.decode("utf-8", "replace")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise AssemblyError("is a damaged gzip file", where=path, todo="pack it anew") from error


def block_lines(lines: Iterable[str], file: str, column: str | None = None) -> Iterator[BlockLine]:
    """The blocks of a file, line by line; lines that begin with # are comments.

    The file is CSV if `column` is given or its first line names a column `hex`.

    Args:
        lines: of the file.
        file: its name, for messages.
        column: name of the column of hex digits.

    Raises:
        AssemblyError: CSV without this column.
    """
    lines = iter(lines)
    first = next(lines, None)
    if first is None:
        return iter(())
    names = [name.strip() for name in first.lstrip("\ufeff").strip().split(",")]
    wanted = column or HEX_COLUMN
    lines = chain((first,), lines)
    if wanted in names:
        return _csv_lines(lines, wanted, file)
    if column is not None or (len(names) > 1 and not _HEX_LINE.fullmatch(first) and not first.startswith("#")):
        raise _no_column(names, wanted, file)
    return _plain_lines(lines)


def _no_column(names: list[str], wanted: str, file: str) -> AssemblyError:
    if not all(name.isprintable() for name in names):
        todo = "give hex digits, a block a line, or CSV"
        return AssemblyError("is no text", where=file, todo=todo)
    more = ", …" if len(names) > _SHOWN_NAMES else ""
    todo = f"choose one of: {', '.join(names[:_SHOWN_NAMES])}{more}"
    return AssemblyError(f"has no column {wanted!r}", where=file, todo=todo)


def _plain_lines(lines: Iterable[str]) -> Iterator[BlockLine]:
    for number, line in enumerate(lines, 1):
        if not line.startswith("#"):
            yield BlockLine(number, line.strip())


def _csv_lines(lines: Iterable[str], column: str, file: str) -> Iterator[BlockLine]:
    for number, row, error in csv_rows(csv_reader(lines, file)):
        code = row.get(column)
        missing = None if code is not None else f"no value in column {column!r}"
        yield BlockLine(number, code, error or missing)


def csv_rows(reader: csv.DictReader[str]) -> Iterator[tuple[int, dict[str, str], str | None]]:
    """The rows with the numbers of their lines; of what is no CSV, an empty row and what is wrong with it."""
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield reader.line_num, {}, f"no CSV: {error}"
            continue
        yield reader.line_num, row, None


def csv_reader(lines: Iterable[str], file: str) -> csv.DictReader[str]:
    """A reader of CSV whose first line names the columns; a mark of byte order before it is passed over."""
    lines = iter(lines)
    first = next(lines, "")
    reader = csv.DictReader(chain((first.lstrip("\ufeff"),), lines), skipinitialspace=True)
    names = [name.strip() for name in _names(reader)]
    repeated = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if repeated is not None:
        raise UsageError(f"has the column {repeated!r} twice", where=file, todo="leave one of them out, or rename it")
    return reader


def _names(reader: csv.DictReader[str]) -> Sequence[str]:
    """The names of the columns; none where the first line is no CSV, which the reader says again."""
    try:
        return reader.fieldnames or ()
    except csv.Error:
        return ()
