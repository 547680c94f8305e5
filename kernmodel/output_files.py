"""Writing the files that users ask for: whole or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from errno import ENOSPC
from pathlib import Path

from kernmodel.errors import InputError, UsageError


def output_file(path: str, option: str = "") -> Path:
    """The path of a file to write, checked before any work is done.

    Args:
        option: that it was given to, for the message.

    Raises:
        UsageError: it is empty or a directory, there is no directory for it, or nothing may be written there.
    """
    if not path:
        raise UsageError("the name of the file to write is empty", where=option, todo="give a name")
    target, where = Path(path), f"{option} {path}".strip()
    if target.is_dir():
        raise UsageError("is a directory", where=where, todo="give the name of a file to write")
    if not target.parent.is_dir():
        raise UsageError(f"there is no directory {target.parent}", where=where, todo="make it first")
    refusing = _refusing(Path(os.path.realpath(target)))
    if refusing is not None:
        raise UsageError(f"nothing may be written in {refusing}", where=where, todo="give another place")
    return target


def _refusing(target: Path) -> Path | None:
    """What keeps `write_file` from writing a file: the file that is there, or its folder; None where nothing does.

    A regular file is replaced by one beside it, so that one is made there on trial: permissions alone do not tell, as
    root has them in folders that take no files (/proc). A device or a pipe is written into.
    """
    if target.exists() and not os.access(target, os.W_OK):
        return target
    if target.exists() and not target.is_file():
        return None
    from tempfile import TemporaryFile

    try:
        with TemporaryFile(dir=target.parent):
            return None
    except OSError:
        return target.parent


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file; one that was there stays as it was if that fails.

    The content goes to a file beside it, which then takes its name. What is no regular file (a device, a pipe) is
    written into.

    Raises:
        InputError: it cannot be written; names it.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        target = Path(os.path.realpath(path))
        if target.exists() and not stat.S_ISREG(target.stat().st_mode):
            target.write_bytes(data)
        else:
            _replace(target, data)
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> InputError:
    """The error for a file that cannot be written."""
    what = os.strerror(error.errno) if error.errno else str(error)
    todo = "make room on the disk, or give another place" if error.errno == ENOSPC else "give another place"
    return InputError(f"cannot be written: {what}", where=str(path), todo=todo)


def _replace(target: Path, data: bytes) -> None:
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    if mode is not None and not os.access(target, os.W_OK):
        raise PermissionError(13, os.strerror(13))
    beside = target.with_name(f".{target.name[:100]}.{os.getpid()}.part")
    try:
        beside.write_bytes(data)
        if mode is not None:
            beside.chmod(mode)
        beside.replace(target)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
