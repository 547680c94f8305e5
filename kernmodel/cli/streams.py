"""The standard streams: some may be closed, full, or gone, and messages name the one that is."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_OUTPUT = "standard output"
_SPELLED = "kernmodel.spelled"
_C_LOCALES = ("C", "POSIX")
_SET_BY_PYTHON = ("C.UTF-8", "C.utf8", "UTF-8")
"""What Python itself puts into LC_CTYPE in the C locale (PEP 538)."""


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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            _be_plain(stream)
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (for good)


def _be_plain(stream: io.TextIOWrapper) -> None:
    """Let a stream write ASCII in the C locale, and signs that it does not know by others."""
    if _in_c_locale():
        stream.reconfigure(encoding="ascii", errors=_SPELLED)
    else:
        stream.reconfigure(errors=_SPELLED)


def _in_c_locale() -> bool:
    """Whether the user asks for the C locale. Python writes UTF-8 there, unless told otherwise."""
    if os.environ.get("PYTHONUTF8") == "1" or os.environ.get("PYTHONIOENCODING"):
        return False
    settings = [os.environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG")]
    if settings[0] == "" and settings[2] in _C_LOCALES and settings[1] in _SET_BY_PYTHON:
        return True
    return next((value for value in settings if value), "") in _C_LOCALES


def _spelled(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that a stream cannot write."""
    from kernmodel.report.text.render import to_ascii

    if not isinstance(error, UnicodeEncodeError):
        raise error
    return to_ascii(error.object[error.start : error.end]), error.end


def spelled(text: str) -> str:
    """`text` as standard output can write it."""
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    return text.encode(encoding, _SPELLED).decode(encoding)


codecs.register_error(_SPELLED, _spelled)


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
