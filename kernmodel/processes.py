"""Assemblers and compilers as processes of limited time, memory and output."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from kernmodel.limits import TOOL_BYTES, TOOL_OUTPUT_BYTES, Limit, are_lifted
from kernmodel.patterns import pattern

if TYPE_CHECKING:
    import subprocess

_SHELL = "/bin/sh"
# a limit of the host that is tighter stays: then the shell cannot set ours, and need not
_WITHIN = 'ulimit -t {seconds} 2>/dev/null; ulimit -v {kib} 2>/dev/null; ulimit -f {blocks} 2>/dev/null; exec "$0" "$@"'
_BLOCK = 512
"""Bytes of the unit in which `ulimit -f` counts (POSIX)."""
_TIMED_OUT = -signal.SIGXCPU
_SAID = (
    (pattern("CPU time limit exceeded", re.IGNORECASE), None),
    (pattern("file size limit exceeded", re.IGNORECASE), TOOL_OUTPUT_BYTES),
    (pattern("out of memory|memory exhausted|cannot allocate memory|bad_alloc", re.IGNORECASE), TOOL_BYTES),
)


_SCRATCH = "kernmodel-scratch-"
_STALE_SECONDS = 60
"""Age from which a folder that nobody holds is removed; between being made and held it is younger."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder of this process for its `with` block; those of processes that were killed are removed first.

    A process holds its folder by a lock that ends with it (Linux and other Unix).
    """
    import fcntl
    import tempfile

    _sweep(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_SCRATCH) as name:
        held = os.open(name, os.O_RDONLY)
        try:
            with suppress(OSError):  # a file system without locks, on which nothing is swept either
                fcntl.flock(held, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(held)


def _sweep(parent: Path) -> None:
    """Remove this user's folders that nobody holds any more."""
    import fcntl
    import shutil

    for folder in parent.glob(f"{_SCRATCH}*"):
        with suppress(OSError):
            known = folder.lstat()
            if known.st_uid != os.getuid() or time.time() - known.st_mtime < _STALE_SECONDS:
                continue
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises where its process lives
                shutil.rmtree(folder)
            finally:
                os.close(held)


class ClosedAtEnd:
    """Something that is closed at the end of its `with` block."""

    def close(self) -> None:
        """End it, and what it holds."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def start(command: tuple[str, ...], seconds: Limit, **arguments: Any) -> subprocess.Popen[bytes]:
    """Start a tool within the limits.

    Args:
        command: the tool and its arguments.
        seconds: of processor time.
        arguments: as `subprocess.Popen` takes them.

    Raises:
        OSError: the tool is not there or cannot be executed.
    """
    import shutil
    import subprocess  # nothing here is asked for where code is given in bytes

    if are_lifted() or not Path(_SHELL).exists():
        return subprocess.Popen(command, **arguments)
    if shutil.which(command[0]) is None:
        return subprocess.Popen(command, **arguments)  # raises what is wrong
    script = _WITHIN.format(
        seconds=seconds.default, kib=TOOL_BYTES.default // 1024, blocks=TOOL_OUTPUT_BYTES.default // _BLOCK
    )
    return subprocess.Popen((_SHELL, "-c", script, *command), **arguments)


def wait(process: subprocess.Popen[bytes], seconds: Limit) -> int:
    """The exit status; that of a process which met its limit of time where it takes longer."""
    import subprocess

    try:
        return process.wait(None if seconds.most > sys.maxsize else seconds.most)
    except subprocess.TimeoutExpired:
        stop(process)
        return _TIMED_OUT


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs, with those that it started, as far as the system tells which these are."""
    if process.poll() is not None:
        return
    children: list[int] = []
    with suppress(OSError, ValueError):
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii")
        children = [int(number) for number in listed.split()]
    process.kill()
    process.wait()
    for child in children:
        with suppress(OSError):
            os.kill(child, signal.SIGKILL)


def limit_met(status: int, messages: str, seconds: Limit) -> Limit | None:
    """The limit that ended a process, None if it ended for another reason.

    Args:
        status: as `wait` gives it; messages: what the process and the tools that it ran said.
        seconds: the limit of its time.
    """
    if are_lifted():
        return None
    if status in (_TIMED_OUT, -signal.SIGKILL):
        return seconds
    if status == -signal.SIGXFSZ:
        return TOOL_OUTPUT_BYTES
    return next((limit or seconds for pattern, limit in _SAID if pattern.search(messages)), None)
