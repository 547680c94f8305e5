"""Reading the files that users name: regular files and pipes, within limits; whatever is wrong is one message.

A file is not always one: a device has no end, a directory no content, a FIFO without a writer never answers. Pipes are
read because shells make them (`kernmodel traffic -m clx <(cpp kernel.c)`), each once: what came out of it is kept for a
second reading.
"""

from __future__ import annotations

import io
import os
import re
import select
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike, fspath
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol, cast

from kernmodel.errors import InputError
from kernmodel.limits import LINE_BYTES, PIPE_SECONDS, Limit

if TYPE_CHECKING:
    from gzip import GzipFile

STANDARD_INPUT = "-"
_CHUNK = 1 << 16
_KINDS = ((stat.S_ISDIR, "directory"), (stat.S_ISSOCK, "socket"), (stat.S_ISCHR, "device"), (stat.S_ISBLK, "device"))
_pipes: dict[tuple[int, int], bytes] = {}
"""What pipes held, by device and inode."""
_read: ContextVar[dict[Path, os.stat_result] | None] = ContextVar("read", default=None)
"""Where files are written down as they are read (`reading`)."""


class GivenText(str):
    """What a file would hold, given in the place of a file: C source or a listing. As a string it is the name that
    messages and results call it, the same for the same text."""

    text: str

    def __new__(cls, text: str) -> GivenText:
        """Name the text."""
        from hashlib import sha256

        given = super().__new__(cls, f"<text-{sha256(text.encode()).hexdigest()[:8]}>")
        given.text = text
        return given

    def __getnewargs__(self) -> tuple[str]:  # to be copied to other processes
        return (self.text,)


File = str | PathLike[str]
"""A path, or the name of a file that the package carries."""
Source = File
"""The same, or the text itself: a string with a line break or brace. A file whose name has one is a `pathlib.Path`."""


def source_of(source: Source) -> str:
    """The path or name as text, or the text itself, which is told apart by a line break or brace."""
    return GivenText(source) if type(source) is str and re.search(r"[\n{}]", source) else fspath(source)


def beside(name: str, folder: Path) -> str:
    """What a file in `folder` calls `name`: the file beside it where there is one, else the name as it stands."""
    path = folder / name
    return str(path) if path.is_file() else name


class _Raised(Protocol):
    """The class of the errors that are raised."""

    def __call__(self, what: str, *, where: str, todo: str | None) -> InputError: ...


def read_file(path: Path | str, what: str, limit: Limit, *, error: _Raised = InputError) -> bytes:
    """The content of a file of the user.

    Args:
        path: its name; "-" is the standard input. Text that is given in its place is what it holds.
        what: what it should be, with its article ("a machine file"), for messages.
        limit: the most bytes that it may have.
        error: class of the errors.

    Raises:
        InputError: it is missing, a directory, a device or a socket, unreadable, too large, or a pipe out of which
            nothing comes in time. An empty file is the caller's matter.
    """
    if isinstance(path, GivenText):
        return path.text.encode()
    if str(path) == STANDARD_INPUT:
        with _translated("standard input", what, error):
            return _limited(_standard_input(), "standard input", what, limit, error)
    with _translated(path, what, error):
        found = Path(path).stat()
        _write_down(path, found)
        _refuse_kind(path, found, what, error)
        if limit.exceeded(found.st_size):
            raise _too_large(path, limit, error)
        key = (found.st_dev, found.st_ino)
        if key in _pipes and stat.S_ISFIFO(found.st_mode):
            return _pipes[key]
        with _open(path, found) as stream:
            data = _limited(stream, path, what, limit, error)
        if stat.S_ISFIFO(found.st_mode):
            _pipes[key] = data
        return data


@contextmanager
def opened(path: Path | str, what: str, *, error: _Raised = InputError) -> Iterator[io.BufferedReader]:
    """A file of the user to be read part by part, of any size; "-" is the standard input, which stays open.

    Errors of the system while it is read become those of `read_file`.
    """
    if str(path) == STANDARD_INPUT:
        with _translated("standard input", what, error):
            yield _standard_input(watched=False)
        return
    with _translated(path, what, error):
        found = Path(path).stat()
        _write_down(path, found)
        _refuse_kind(path, found, what, error)
        with _open(path, found) as stream:
            yield stream


def lines_of(stream: IO[bytes] | GzipFile, name: str, *, error: _Raised = InputError) -> Iterator[bytes]:
    """The lines of a stream, as they come.

    Raises:
        InputError: a line is longer than any that is meant for people; `name` names the stream.
    """
    size = -1 if LINE_BYTES.most > sys.maxsize else int(LINE_BYTES.most) + 1
    number = 0
    while line := stream.readline(size):
        number += 1
        if LINE_BYTES.exceeded(len(line)):
            todo = LINE_BYTES.todo("break it")
            raise error(f"line {number} has no end within {LINE_BYTES.text}", where=name, todo=todo)
        yield line


@contextmanager
def recording_reads() -> Iterator[Mapping[Path, os.stat_result]]:
    """Within it, the regular files that are read, as they were named, each as it was before it was read first."""
    found: dict[Path, os.stat_result] = {}
    before = _read.set(found)
    try:
        yield found
    finally:
        _read.reset(before)


def _write_down(path: Path | str, found: os.stat_result) -> None:
    read = _read.get()
    if read is not None and stat.S_ISREG(found.st_mode):
        read.setdefault(Path(path), found)


def is_pipe(path: Path | str) -> bool:
    """Whether a file is a pipe, at which nobody may look before it is read."""
    try:
        return stat.S_ISFIFO(Path(path).stat().st_mode)
    except (OSError, ValueError):
        return False


def _standard_input(*, watched: bool = True) -> io.BufferedReader:
    """The bytes of standard input; `watched`: a pipe out of which nothing comes is given up.

    Raises:
        OSError: it is closed.
    """
    if sys.stdin is None:
        raise OSError(None, "it is closed")
    try:
        descriptor = sys.stdin.fileno()
    except (OSError, ValueError):  # a stand-in without a descriptor
        return cast("io.BufferedReader", sys.stdin.buffer)
    if watched and stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        return io.BufferedReader(_Pipe(descriptor, owned=False))
    return cast("io.BufferedReader", sys.stdin.buffer)


def _open(path: Path | str, found: os.stat_result) -> io.BufferedReader:
    if not stat.S_ISFIFO(found.st_mode):
        return Path(path).open("rb")
    # else opening a FIFO waits for a writer
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    return io.BufferedReader(_Pipe(descriptor, owned=True))


class _Pipe(io.RawIOBase):
    """A pipe that is given up when nothing comes for long; `owned`: it is closed at the end."""

    def __init__(self, descriptor: int, *, owned: bool) -> None:
        self._descriptor = descriptor
        self._owned = owned

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        while True:
            self._wait()
            try:
                data = os.read(self._descriptor, len(view))
            except BlockingIOError:
                continue
            view[: len(data)] = data
            return len(data)

    def _wait(self) -> None:
        """Until there is something to read, or the writer has gone.

        Raises:
            TimeoutError: nothing comes.
        """
        waiting = select.poll()
        waiting.register(self._descriptor, select.POLLIN)
        if not waiting.poll(None if PIPE_SECONDS.most > sys.maxsize else PIPE_SECONDS.most * 1000):
            raise TimeoutError(f"nothing came out of this pipe within {PIPE_SECONDS.text}")

    def close(self) -> None:
        if self._owned and not self.closed:
            os.close(self._descriptor)
        super().close()


@contextmanager
def _translated(path: Path | str, what: str, error: _Raised) -> Iterator[None]:
    """Errors of the system as those of the input."""
    todo = f"give {what}"
    try:
        yield
    except TimeoutError as late:
        hint = PIPE_SECONDS.todo("see whether its writer runs")
        raise error(str(late), where=str(path), todo=hint) from late
    except OSError as failed:
        raise error(f"cannot be read: {failed.strerror or failed}", where=str(path), todo=todo) from failed
    except ValueError as failed:  # a null character in the name
        if "null" not in str(failed):
            raise
        raise error("is no name of a file", where=repr(str(path)), todo=todo) from failed


def _refuse_kind(path: Path | str, found: os.stat_result, what: str, error: _Raised) -> None:
    """Refuse what has no content or no end; the terminal and the null device have both."""
    kind = next((name for is_kind, name in _KINDS if is_kind(found.st_mode)), None)
    if kind == "device" and (_is_terminal(path) or os.path.realpath(path) == os.devnull):
        return
    if kind is not None:
        raise error(f"is a {kind}, not {what}", where=str(path), todo=f"give {what}")


def _is_terminal(path: Path | str) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        return os.isatty(descriptor)
    finally:
        os.close(descriptor)


def _limited(stream: io.BufferedReader, name: Path | str, what: str, limit: Limit, error: _Raised) -> bytes:
    """What a stream holds, up to the limit."""
    parts = []
    size = 0
    while part := stream.read1(_CHUNK):
        parts.append(part)
        size += len(part)
        if limit.exceeded(size):
            raise _too_large(name, limit, error)
    return b"".join(parts)


def _too_large(name: Path | str, limit: Limit, error: _Raised) -> InputError:
    what = f"is larger than {limit.text}"
    return error(what, where=str(name), todo=limit.todo("see whether it is the right file"))
