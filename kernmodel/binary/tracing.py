"""A program under ptrace on x86-64 Linux: started, stopped, written to, and gone at the end.

The tracer is the thread that started the program. All processes of the program are in a session of their own; what of
them still runs at the end is killed, also when the tracer itself ends (PTRACE_O_EXITKILL).
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal

from kernmodel.binary.runs import Command, Told, cannot_run, too_long
from kernmodel.errors import KernmodelError, ToolError
from kernmodel.processes import ClosedAtEnd
from kernmodel.value_types import dataclass

_TRACEME, _CONT, _GETREGS, _SETREGS, _SETOPTIONS, _GETEVENTMSG = 0, 7, 12, 13, 0x4200, 0x4201
_EXITKILL, _TRACEFORK, _TRACEVFORK, _TRACECLONE, _TRACEEXEC = 1 << 20, 1 << 1, 1 << 2, 1 << 3, 1 << 4
_TRACEEXIT = 1 << 6
_EVENTS = {1: "fork", 2: "vfork", 3: "clone", 4: "exec", 6: "exiting"}
_NO_RANDOM_ADDRESSES = 0x0040000
_ALL = 0x40000000  # __WALL: threads too
_SYSCALL = b"\x0f\x05\xcc"
_MMAP, _CLOSE = 9, 3
_AT_ENTRY = 9
_PAGE = 4096
_NAMES = (
    *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"),
    *("orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"),
)
"""struct user_regs_struct of <sys/user.h>."""


class _Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in _NAMES]


class NotTracedError(ToolError):
    """The system does not let this process trace another."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a process stopped or ended.

    Attributes:
        process: its number (of a thread that of the thread).
        kind: "trap" at an instruction, "signal" that is about to be delivered, "fork" (also vfork), "clone" (a thread),
            "exec", "exiting" (about to be gone), "exited", "killed".
        value: the address of the trap, the signal, the exit status.
    """

    process: int
    kind: Literal["trap", "signal", "fork", "clone", "exec", "exiting", "exited", "killed"]
    value: int = 0


@dataclass(frozen=True, slots=True)
class MappedStretch:
    """A stretch of a process's addresses and the file that is mapped there."""

    first: int
    end: int
    path: str


class TracedProgram(ClosedAtEnd):
    """A program that is started stopped behind its exec; leave the `with` block to end it.

    Args:
        command: program and arguments.
        standard_input: what it reads, None: nothing.
        output: where its output goes.
        seconds: after which it is killed; `told` is called with the seconds that have passed every now and then.
        inherited: a file descriptor that it keeps.

    Raises:
        InputError: no such program, or it cannot be executed.
        NotTracedError: the system does not allow it.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        standard_input: IO[bytes] | None,
        output: IO[bytes],
        seconds: float,
        inherited: int,
        environment: Mapping[str, str] | None = None,
        told: Callable[[float], object] = lambda seconds: None,
    ) -> None:
        if sys.platform != "linux" or platform.machine() != "x86_64":
            raise NotTracedError(f"programs are not traced on {sys.platform} on {platform.machine()}")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self._libc.ptrace.restype = ctypes.c_long
        self.begun = time.monotonic()
        self.timed_out = False
        self._alive: set[int] = set()
        self._pending: dict[int, int] = {}
        self._ended = threading.Event()
        try:
            self._child = subprocess.Popen(
                list(command),
                stdin=standard_input if standard_input is not None else subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(environment) if environment is not None else None,
                pass_fds=(inherited,),
                start_new_session=True,
                preexec_fn=self._be_traced,  # noqa: PLW1509 (it calls nothing but the system)
            )
        except subprocess.SubprocessError as error:
            raise NotTracedError("the system does not let a program be traced (ptrace)", todo=_PERMISSION) from error
        except OSError as error:
            raise cannot_run(command[0], error) from error
        self.process = self._child.pid
        self._alive.add(self.process)
        _, status = os.waitpid(self.process, _ALL)
        if not os.WIFSTOPPED(status):
            self._child.returncode = os.waitstatus_to_exitcode(status)
            raise NotTracedError("the program did not stop for its tracer (ptrace)", todo=_PERMISSION)
        options = _EXITKILL | _TRACEFORK | _TRACEVFORK | _TRACECLONE | _TRACEEXEC | _TRACEEXIT
        self._request(_SETOPTIONS, self.process, 0, options)
        self._watch = threading.Thread(target=self._keep_time, args=(seconds, told), daemon=True)
        self._watch.start()

    def _be_traced(self) -> None:
        if self._libc.ptrace(_TRACEME, 0, None, None):
            raise OSError(ctypes.get_errno(), "ptrace")
        self._libc.personality(self._libc.personality(0xFFFFFFFF) | _NO_RANDOM_ADDRESSES)

    def _keep_time(self, seconds: float, told: Callable[[float], object]) -> None:
        while not self._ended.wait(min(1.0, max(0.01, self.begun + seconds - time.monotonic()))):
            passed = time.monotonic() - self.begun
            if passed >= seconds:
                self.timed_out = True
                self._kill()
                return
            told(passed)

    def close(self) -> None:
        """End what still runs of the program."""
        self._ended.set()
        self._kill()
        while True:  # also for processes whose first stop nobody has seen
            try:
                process, status = os.waitpid(-self.process, _ALL)
            except ChildProcessError:
                break
            if not os.WIFSTOPPED(status):
                self._alive.discard(process)
                if process == self.process:
                    self._child.returncode = os.waitstatus_to_exitcode(status)
            else:
                # a stop on the way out goes on only when it is told to
                with suppress(OSError):
                    self._request(_CONT, process, 0, signal.SIGKILL)
        if self._child.returncode is None:
            self._child.returncode = -signal.SIGKILL
        self._watch.join()

    def _kill(self) -> None:
        with suppress(OSError):
            os.killpg(self.process, signal.SIGKILL)

    def run(self) -> Stop:
        """Let every stopped process go on until something happens; "exited" or "killed" of the first one is the end."""
        while True:
            for process, number in list(self._pending.items()):
                del self._pending[process]
                self._resume(process, number)
            if not self._resumed:
                self._resume(self.process, 0)
            process, status = os.waitpid(-self.process, _ALL)
            stop = self._stop(process, status)
            if stop is not None:
                return stop

    _resumed = False

    def _resume(self, process: int, number: int) -> None:
        self._resumed = True
        with suppress(OSError):  # it was killed meanwhile
            self._request(_CONT, process, 0, number)

    def _stop(self, process: int, status: int) -> Stop | None:
        """What a change of state means; None: nothing to be told."""
        if os.WIFEXITED(status) or os.WIFSIGNALED(status):
            self._alive.discard(process)
            if process != self.process:
                return None
            self._child.returncode = os.waitstatus_to_exitcode(status)
            if os.WIFEXITED(status):
                return Stop(process, "exited", os.WEXITSTATUS(status))
            return Stop(process, "killed", os.WTERMSIG(status))
        number, event = os.WSTOPSIG(status), _EVENTS.get(status >> 16, "")
        self._pending[process] = 0
        if process not in self._alive:  # a new process or thread stops once before it begins
            self._alive.add(process)
            return None
        if event:
            return Stop(process, "fork" if event == "vfork" else event)  # type: ignore[arg-type]
        if number == signal.SIGTRAP:
            address = self.registers(process).rip - 1
            if self.read(address, 1) == b"\xcc":
                return Stop(process, "trap", address)
        if number in (signal.SIGSTOP, signal.SIGTTIN, signal.SIGTTOU):
            return None
        self._pending[process] = number
        return Stop(process, "signal", number)

    def pass_on(self, process: int, number: int) -> None:
        """Deliver this signal when the process goes on, 0: none."""
        self._pending[process] = number

    def registers(self, process: int) -> _Registers:
        """Its general registers."""
        held = _Registers()
        self._request(_GETREGS, process, 0, ctypes.addressof(held))
        return held

    def set_registers(self, process: int, held: _Registers) -> None:
        """Change its general registers."""
        self._request(_SETREGS, process, 0, ctypes.addressof(held))

    def go_on_at(self, process: int, address: int) -> None:
        """Let it go on at another instruction."""
        held = self.registers(process)
        held.rip = address
        self.set_registers(process, held)

    def read(self, address: int, count: int) -> bytes:
        """Bytes of its memory; b"" where there is none."""
        with suppress(OSError), Path(f"/proc/{self.process}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(count)
        return b""

    def write(self, address: int, content: bytes) -> None:
        """Write into its memory, also into code."""
        with Path(f"/proc/{self.process}/mem").open("r+b", buffering=0) as memory:
            memory.seek(address)
            memory.write(content)

    def mappings(self) -> list[MappedStretch]:
        """What is mapped where."""
        found = []
        for line in Path(f"/proc/{self.process}/maps").read_text(errors="surrogateescape").splitlines():
            span, _, _, _, _, *path = line.split(maxsplit=5)
            first, _, end = span.partition("-")
            found.append(MappedStretch(int(first, 16), int(end, 16), path[0] if path else ""))
        return found

    def entry(self) -> int:
        """The address where the program begins once the loader is done."""
        vector = Path(f"/proc/{self.process}/auxv").read_bytes()
        words = [int.from_bytes(vector[at : at + 8], "little") for at in range(0, len(vector), 8)]
        return dict(zip(words[::2], words[1::2], strict=False)).get(_AT_ENTRY, 0)

    def call(self, number: int, *arguments: int) -> int:
        """Let the stopped first process make a system call; what it returns."""
        before = self.registers(self.process)
        changed = _Registers.from_buffer_copy(before)
        for name, value in zip(("rdi", "rsi", "rdx", "r10", "r8", "r9"), arguments, strict=False):
            setattr(changed, name, value & (1 << 64) - 1)
        changed.rax = number
        changed.orig_rax = (1 << 64) - 1
        saved = self.read(before.rip, len(_SYSCALL))
        self.write(before.rip, _SYSCALL)
        self.set_registers(self.process, changed)
        self._request(_CONT, self.process, 0, 0)
        os.waitpid(self.process, _ALL)
        result = self.registers(self.process).rax
        self.write(before.rip, saved)
        self.set_registers(self.process, before)
        return int(result) - (1 << 64) if result >> 63 else int(result)

    def undisturbed(self, processor: int) -> None:
        """Let it run on one processor, and before all others where that is allowed."""
        with suppress(OSError):
            os.sched_setaffinity(self.process, {processor})
        with suppress(OSError):
            os.sched_setscheduler(self.process, os.SCHED_FIFO, os.sched_param(1))

    def waited(self) -> float:
        """Seconds that it has been ready to run while others ran (sched-stats.rst of the kernel); 0.0 if unknown."""
        with suppress(OSError, ValueError, IndexError):
            return int(Path(f"/proc/{self.process}/schedstat").read_text().split()[1]) * 1e-9
        return 0.0

    def map_memory(self, address: int, size: int, descriptor: int = -1, *, executable: bool = False) -> bool:
        """Map memory at exactly this address, of a shared file or private; whether that succeeded."""
        protection = 1 | 2 | (4 if executable else 0)
        flags = 0x100000 | (0x01 if descriptor >= 0 else 0x02 | 0x20)  # MAP_FIXED_NOREPLACE
        return self.call(_MMAP, address, size, protection, flags, descriptor, 0) == address

    def close_descriptor(self, descriptor: int) -> None:
        """Close a file of the program."""
        self.call(_CLOSE, descriptor)

    def _request(self, request: int, process: int, address: int, data: int) -> None:
        if self._libc.ptrace(request, process, address, data) < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"ptrace: {os.strerror(number)}")


_PERMISSION = (
    "allow it (containers: --cap-add SYS_PTRACE or another seccomp profile); without it binary run counts by callgrind"
)


@contextmanager
def traced_run(command: Command, told: Told, doing: str) -> Iterator[tuple[TracedProgram, int, IO[bytes]]]:
    """A program that is started under trace: itself, the descriptor of memory that it shares with us, and its output.

    Args:
        doing: what is done, for the progress that `told` is told.

    Raises:
        NotTracedError: this host lets no program be traced.
        InputError: it took too long; ToolError: somebody else killed it between two stops.
    """
    words = os.memfd_create("shared")
    try:
        with (
            command.files() as (given, said),
            TracedProgram(
                command.words,
                standard_input=given,
                output=said,
                seconds=command.limit,
                inherited=words,
                environment=command.environment,
                told=lambda seconds: told(f"{doing}: {seconds:.0f} s"),
            ) as program,
        ):
            try:
                yield program, words, said
            except ProcessLookupError as error:
                raise _gone(program, command, doing) from error
    finally:
        os.close(words)


def _gone(program: TracedProgram, command: Command, doing: str) -> KernmodelError:
    """The error for a program that is no longer there when it is looked at."""
    if program.timed_out:
        return too_long(command, doing)
    return ToolError("was killed by another process", where=command.words[0], todo="run it again")


def free_stretch(mappings: Sequence[MappedStretch], near: int, size: int) -> int | None:
    """An address where so many bytes are free within a GiB of `near`, below what is mapped there if possible, so that
    the heap behind a program can grow; None where there is none."""
    size = -(-size // _PAGE) * _PAGE
    reach = 1 << 30
    gaps = []
    end = 1 << 16
    for one in sorted(mappings, key=lambda one: one.first):
        gaps.append((end, one.first))
        end = max(end, one.end)
    gaps.append((end, (1 << 47) - (1 << 20)))
    below = [last - size - _PAGE for first, last in gaps if last <= near and last - first >= size + 2 * _PAGE]
    above = [max(first, near + (reach >> 1)) for first, last in gaps if last - max(first, near + (reach >> 1)) >= size]
    places = [place for place in (*reversed(below), *above) if abs(place - near) < reach]
    return places[0] // _PAGE * _PAGE if places else None
