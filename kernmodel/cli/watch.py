"""`--watch`: a command answers again whenever a file that it read is saved."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from kernmodel.cli.output import write_error
from kernmodel.cli.streams import write_output
from kernmodel.errors import UsageError
from kernmodel.user_files import recording_reads

_PAUSE = 0.03
"""Seconds between two looks at the files: a small part of the time of an answer."""
_CLEAR = "\x1b[H\x1b[2J"

Stamp = tuple[int, int, int]


def watch(answer: Callable[[], int], ends: Iterable[int], pause: Callable[[float], None] = time.sleep) -> int:
    """Answer, and again whenever a file that was read is saved.

    Args:
        answer: gives an answer, or tells what is wrong with the input; its exit status.
        ends: statuses after which it is over (interrupted, the reader of the pipe is gone).
        pause: waits so many seconds.

    Returns:
        The exit status of the last answer.

    Raises:
        UsageError: no file was read that could be saved.
    """
    known: dict[Path, Stamp] = {}
    while True:
        if sys.stdout.isatty():
            write_output(_CLEAR)
        with recording_reads() as read:
            status = answer()
        # as they were read: what is saved meanwhile is not missed
        known |= {path: _stamp_of(found) for path, found in read.items()}
        if status in ends:
            return status
        if not known:
            raise UsageError("no file was read that could be saved", where="--watch", todo="give a kernel's file")
        try:
            saved = _wait(known, pause)
        except KeyboardInterrupt:
            return status
        write_error(f"kernmodel: {', '.join(map(str, saved))} saved")


def _wait(known: dict[Path, Stamp], pause: Callable[[float], None]) -> list[Path]:
    """Wait until files are saved, and know them as they are then; the files that were saved.

    Editors that put a new file in the place of the old one may leave none for a moment, others an empty one: a save is
    over when nothing changes between two looks.
    """
    last = known.copy()
    while True:
        now = last | {path: stamp for path in known if (stamp := _stamp(path)) is not None}
        saved = [path for path, stamp in now.items() if known[path] != stamp]
        if saved and now == last:
            known.update(now)  # an answer that fails early may not read them again
            return saved
        last = now
        pause(_PAUSE)


def _stamp(path: Path) -> Stamp | None:
    """What is different after a file was saved; None where there is no file."""
    try:
        return _stamp_of(path.stat())
    except OSError:
        return None


def _stamp_of(found: os.stat_result) -> Stamp:
    return found.st_mtime_ns, found.st_size, found.st_ino
