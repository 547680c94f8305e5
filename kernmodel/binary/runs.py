"""Runs of a program: its command, its input, how long it may take, and what a plain run of it does."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO

from kernmodel.errors import InputError
from kernmodel.limits import PROGRAM_SECONDS
from kernmodel.value_types import dataclass

Told = Callable[[str], object]
"""Is told what is being done, and for how long."""
_SAID = 4096
_STEP = 0.5


@dataclass(frozen=True, slots=True)
class Command:
    """A program as it is to be run, the same each time.

    Attributes:
        words: program and arguments.
        standard_input: what it reads; b"": nothing.
        environment: variables, None: those of this process.
        seconds: after which a run of it is stopped, None: the limit of `limits.PROGRAM_SECONDS`.
    """

    words: tuple[str, ...]
    standard_input: bytes = b""
    environment: Mapping[str, str] | None = None
    seconds: float | None = None

    @property
    def limit(self) -> float:
        """Seconds that one run may take."""
        return self.seconds if self.seconds is not None else PROGRAM_SECONDS.most

    @contextmanager
    def files(self) -> Iterator[tuple[IO[bytes] | None, IO[bytes]]]:
        """Its standard input and a place for its output, which are gone afterwards."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
            if self.standard_input:
                given.write(self.standard_input)
                given.seek(0)
            yield (given if self.standard_input else None), said


@dataclass(frozen=True, slots=True)
class PlainRun:
    """A run with nothing done to the program: wall time, exit status (negative: a signal), the end of its output."""

    seconds: float
    exit_status: int
    said: str


def said_of(output: IO[bytes]) -> str:
    """The last lines of what a program printed."""
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _SAID))
    return output.read().decode("utf-8", "replace").strip()


def plain_run(command: Command, told: Told = lambda what: None) -> PlainRun:
    """Run the program once as it is.

    Raises:
        InputError: it cannot be run, or takes longer than it may.
    """
    with command.files() as (given, said):
        begun = time.monotonic()
        try:
            child = subprocess.Popen(
                list(command.words),
                stdin=given if given is not None else subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=dict(command.environment) if command.environment is not None else None,
                start_new_session=True,
            )
        except OSError as error:
            raise cannot_run(command.words[0], error) from error
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    child.wait(_STEP)
                    break
                passed = time.monotonic() - begun
                told(f"running the program: {passed:.0f} s")
                if passed > command.limit:
                    raise too_long(command)
        finally:
            with suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        return PlainRun(time.monotonic() - begun, child.returncode, said_of(said))


def cannot_run(program: str, error: OSError) -> InputError:
    """The error for a program that the system does not start."""
    todo = "give the program and its arguments behind --"
    if isinstance(error, PermissionError):
        todo = f"make it executable (chmod +x {program})"
    return InputError(f"cannot be run: {error.strerror}", where=program, todo=todo)


def too_long(command: Command, what: str = "") -> InputError:
    """The error for a program that takes longer than it may."""
    doing = f" while {what}" if what else ""
    todo = f"give it less to do, or more time with --seconds (a run may take {command.limit:.0f} s)"
    return InputError(f"did not end within {command.limit:.0f} s{doing}", where=command.words[0], todo=todo)


def ended_badly(command: Command, status: int, said: str, todo: str = "see that it runs as it is") -> InputError:
    """The error for a program that did not end with status 0, which may be for want of input."""
    if status > 0 and not command.standard_input:
        todo = f"{todo}; terminals and pipes are not read: give what it reads in a file (< FILE)"
    how = f"was ended by {_signal_name(-status)}" if status < 0 else f"ended with status {status}"
    last = said.splitlines()[-1:] if said else []
    quoted = f" (it said: {last[0][:200]})" if last else ""
    return InputError(f"{how}{quoted}", where=command.words[0], todo=todo)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
