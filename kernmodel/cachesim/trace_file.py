"""Traces as text: one access a line, `L|S|N address size`, read in blocks.

A block whose lines are all well formed is taken apart without a step of Python per line; only a block that is not is
read line by line, to say which line is wrong.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from itertools import repeat
from operator import itemgetter
from typing import IO

from kernmodel.errors import InputError, Location
from kernmodel.user_files import STANDARD_INPUT, opened
from kernmodel.value_types import dataclass

WHAT = "trace with lines such as `L 0x1f40 8`"
LARGEST_ACCESS = 2**20
"""Bytes of the largest access of a trace: beyond every instruction's, and few enough lines to step through."""

ADDRESS_LIMIT = 2**64
"""The first address that no trace can have."""

_KINDS = {b"L": 0, b"S": 1, b"N": 2, b"l": 0, b"s": 1, b"n": 2}
_BLOCK = 1 << 20
_COMMENT = re.compile(rb"#[^\n]*")
_NUMBER = re.compile(rb"[0-9]+|0[xX][0-9a-fA-F]+")
_PREFIX = itemgetter(slice(0, 2))
_TODO = "write a kind (L, S or N), an address and a size, such as `L 0x1f40 8`"


@dataclass(frozen=True, slots=True)
class Trace:
    """Accesses in order, as three arrays of equal length.

    Attributes:
        kinds: 0 load, 1 store, 2 streaming store.
        addresses: byte addresses.
        sizes: bytes of each access.
    """

    kinds: array[int]
    addresses: array[int]
    sizes: array[int]

    def __len__(self) -> int:
        return len(self.kinds)


def read_trace(file: str, limit: int = ADDRESS_LIMIT) -> Iterator[Trace]:
    """The accesses of a trace file (`-`: standard input), block by block.

    Args:
        limit: the first address that no access may touch.

    Raises:
        InputError: a file that cannot be read or holds no access, a malformed line, an access of no or too many bytes,
            or one beyond the limit; with file and line.
    """
    name = "standard input" if file == STANDARD_INPUT else file
    found = False
    line = 1
    with opened(file, f"a {WHAT}") as stream:
        for block in _blocks(stream):
            trace = parse_trace(block, name, line, limit)
            line += block.count(b"\n")
            if trace:
                found = True
                yield trace
    if not found:
        raise InputError("holds no access", where=name, todo=f"give a {WHAT}")


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """The content in blocks of whole lines."""
    rest = b""
    while data := stream.read(_BLOCK):
        head, newline, tail = data.rpartition(b"\n")
        if newline:
            yield rest + head + newline
            rest = tail
        else:
            rest += data
        if len(rest) > _BLOCK:  # a line of a megabyte is none of a trace; reading on could fill the memory
            break
    if rest:
        yield rest


def parse_trace(block: bytes, file: str, line: int, limit: int = ADDRESS_LIMIT) -> Trace:
    """The accesses of some lines.

    Args:
        block: whole lines.
        file: its name in messages.
        line: number of the first line in the file.
        limit: the first address that no access may touch.

    Raises:
        InputError: as `read_trace`.
    """
    text = _COMMENT.sub(b"", block) if b"#" in block else block
    trace = _quickly(text, limit)
    return _line_by_line(text, file, line, limit) if trace is None else trace


def _quickly(text: bytes, limit: int) -> Trace | None:
    """The accesses of lines that are well formed and alike, else None."""
    rows = [row for row in map(bytes.split, text.split(b"\n")) if row]
    if not rows:
        return Trace(array("B"), array("Q"), array("Q"))
    # int() would take signs, and digits with underscores
    if any(sign in text for sign in (b"_", b"+", b"-")) or set(map(len, rows)) != {3}:
        return None
    kinds, addresses, sizes = zip(*rows, strict=True)
    try:
        base = 16 if set(map(_PREFIX, addresses)) <= {b"0x", b"0X"} else 10
        trace = Trace(
            array("B", map(_KINDS.__getitem__, kinds)),
            array("Q", map(int, addresses, repeat(base))),
            array("Q", map(int, sizes)),
        )
    except (KeyError, ValueError, OverflowError):
        return None
    largest = max(trace.sizes)
    fits = min(trace.sizes) >= 1 and largest <= LARGEST_ACCESS and max(trace.addresses) + largest <= limit
    return trace if fits else None


def _line_by_line(text: bytes, file: str, first: int, limit: int) -> Trace:
    trace = Trace(array("B"), array("Q"), array("Q"))
    for number, line in enumerate(text.split(b"\n"), start=first):
        if row := line.split():
            kind, address, size = _access(row, Location(file, number), limit)
            trace.kinds.append(kind)
            trace.addresses.append(address)
            trace.sizes.append(size)
    return trace


def _access(row: list[bytes], where: Location, limit: int) -> tuple[int, int, int]:
    """Kind, address and size of one line."""
    if any(b"\0" in part for part in row):
        raise InputError("is not text but a binary file", where=where, todo=f"give a {WHAT}")
    if len(row) != 3:
        found = _shown(b" ".join(row))
        raise InputError(f"{found} is no access", where=where, todo=_TODO)
    if row[0] not in _KINDS:
        raise InputError(f"{_shown(row[0])} is no kind of access", where=where, todo="write L, S or N")
    address, size = (_number(part, what, where) for part, what in zip(row[1:], ("address", "size"), strict=True))
    if not 1 <= size <= LARGEST_ACCESS:
        todo = f"write a size from 1 to {LARGEST_ACCESS}"
        raise InputError(f"an access of {_shown(row[2])} bytes", where=where, todo=todo)
    if address + size > limit:
        bits = limit.bit_length() - 1
        what = f"the access of {size} bytes at {_shown(row[1])} leaves the {bits} bits of an address"
        raise InputError(what, where=where, todo="correct the address")
    return _KINDS[row[0]], address, size


def _number(text: bytes, what: str, where: Location) -> int:
    if re.fullmatch(rb"-[0-9]+", text):
        raise InputError(f"the {what} {_shown(text)} is negative", where=where, todo=_TODO)
    if not _NUMBER.fullmatch(text):
        raise InputError(f"{_shown(text)} is no {what}", where=where, todo="write it in decimal, or in hex with 0x")
    if len(text) > 40:
        raise InputError(f"the {what} {_shown(text)} leaves 64 bits", where=where, todo=f"correct the {what}")
    return int(text, 16 if text[:2] in (b"0x", b"0X") else 10)


def _shown(text: bytes) -> str:
    """Part of a line for a message."""
    shown = repr(text.decode("utf-8", "backslashreplace"))
    return shown if len(shown) <= 40 else f"{shown[:39]}…"
