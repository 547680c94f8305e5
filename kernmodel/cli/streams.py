"""The standard streams: some may be closed, full, or gone, and messages name the one that is."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_OUTPUT = "standard output"


class _ClosedOutput(io.TextIOBase):
    """Stands for a standard output that was closed before the process began."""

    encoding = "utf-8"

    def write(self, text: str, /) -> int:
        raise OSError(errno.EBADF, "is closed", _OUTPUT)


def open_streams() -> None:
    """Let every standard descriptor be open: a file that takes the number of a closed one would be written into by
    whoever means the stream. A closed output says so when it is written, a closed input when it is read."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (for good)


def write_output(text: str) -> None:
    """Write text to standard output; errors of the system name it."""
    with _named():
        sys.stdout.write(text)


def write_bytes(data: bytes) -> None:
    """Write bytes to standard output as they are, whatever it takes for text."""
    with _named():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def flush_output() -> None:
    """Send what is buffered on its way."""
    with _named():
        sys.stdout.flush()


@contextmanager
def _named() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = error.filename or _OUTPUT
        raise


def settle_output() -> None:
    """Send what is buffered on its way, or nowhere if that fails, so that Python does not complain at exit."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
