"""The child process that runs and times code: compiled from `native/harness.c` when it is needed, gone when it is not.

The program lies in a folder of its own that is removed as soon as it runs; it ends with this process, and each of its
calls has a limit of time.
"""

from __future__ import annotations

import os
import platform
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from statistics import median

from kernmodel.errors import MeasurementError
from kernmodel.isa.assembler import english
from kernmodel.limits import CALL_SECONDS, COMPILER_SECONDS
from kernmodel.measure.samples import (
    CONFIRMED,
    ISSUE_TOLERANCE,
    LOADS_TOLERANCE,
    LONG,
    REPEATED,
    Brackets,
    Figure,
    Sample,
    agreed,
    brackets_of,
    counts,
    judge,
)
from kernmodel.processes import ClosedAtEnd, scratch_folder, start, stop, wait
from kernmodel.value_types import dataclass

HARNESS = Path(__file__).parent / "native" / "harness.c"
_FLAGS = ("-std=gnu11", "-O2", "-fno-strict-aliasing")
_COMPILERS = ("cc", "gcc", "clang")
_CALIBRATION = 400
"""Samples of an empty call that tell how the issue probe fares on this host."""
_CALIBRATED = 8
"""Processors that are calibrated at most."""
_CLOCK_SAMPLES, _CLOCK_SECONDS = 50, 0.02
_LEAST_ROUNDS = 2
"""However long they take: one alone is never confirmed."""
_WAIT_MS = 20
"""How long a round waits for an undisturbed processor before the next processor has its turn."""
RETURN = b"\xc3" if platform.machine() != "aarch64" else b"\xc0\x03\x5f\xd6"
"""A function that does nothing."""
_SAMPLE_FIELDS, _LOG_FIELDS = 10, 3
_LOG_SECONDS = 20.0
CALLS_TO_TELL = 4
"""Calls of each case by which their length is told roughly, the first of which warms up."""
CALL_CYCLES = 40_000
"""Cycles that a call is to take: well above what reading the time takes, short against what disturbs."""
APART = 5 * 4096 + 1024 + 256
"""Bytes by which starts of arrays differ from multiples of 2 MiB, each from the one before, so that none share sets."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How long a figure may take.

    Attributes:
        samples: of each round.
        rounds: that are made at least; seconds: after which no further one is begun.
        issue: how much longer than alone the probe of issue may take at both ends of a sample.
        within: relative difference up to which two rounds confirm one another; middle: as of `agreed`.
    """

    samples: int = 150
    rounds: int = 3
    seconds: float = 6.0
    issue: float = ISSUE_TOLERANCE
    within: float = CONFIRMED
    middle: float = 0.0

    def beside_others(self, middle: float = 0.0) -> Effort:
        """The same for data in a cache or memory that others use, too: their share differs from round to round."""
        return replace(self, within=REPEATED, middle=middle)


@dataclass(frozen=True, slots=True)
class Case:
    """One call that is timed: the code is called with how often to repeat itself and an argument of its own."""

    repetitions: int
    argument: int = 0


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory of the child.

    Attributes:
        size: bytes; offset: of its start from a multiple of 2 MiB; huge: whether huge pages are asked for.
        fill: "double", "float" (normal numbers) or "zero".
    """

    size: int
    offset: int = 0
    huge: bool = True
    fill: str = "double"


@dataclass(frozen=True, slots=True)
class BufferPlace:
    """Where a buffer lies: `address`, and the bytes of it in huge pages."""

    address: int
    huge_bytes: int


class FaultError(MeasurementError):
    """The code raised a signal; `number` is which."""

    def __init__(self, number: int) -> None:
        self.number = number
        name = signal.Signals(number).name
        why = "did not end in time" if number == signal.SIGALRM else f"raised {name} when it ran"
        super().__init__(f"the code {why}", todo="see whether it computes what you mean with any values in registers")


def repetitions(cycles: float) -> int:
    """How often code that takes so many cycles has to be repeated by a call that takes `CALL_CYCLES`."""
    return max(1, round(CALL_CYCLES / max(1.0, cycles)))


def usable_processors() -> tuple[int, ...]:
    """The processors that this process may use."""
    return tuple(sorted(os.sched_getaffinity(0)))


class Harness(ClosedAtEnd):
    """A child that runs code for its parent; leave its `with` block to end it.

    Args:
        objects: assembly or C files by name with their texts, linked with the harness (they define `km_kernel`).
        flags: of the compiler for these; compiler: its command, None: the first of cc, gcc, clang.

    Raises:
        MeasurementError: this is no Linux on x86-64 or AArch64, there is no compiler, or the child does not start.
    """

    def __init__(
        self, objects: dict[str, str] | None = None, *, flags: Sequence[str] = (), compiler: str | None = None
    ) -> None:
        self.processors = usable_processors() if hasattr(os, "sched_getaffinity") else (0,)
        self._refuse_host()
        command = compiler or next((path for name in _COMPILERS if (path := shutil.which(name))), None)
        if command is None:
            raise MeasurementError("no C compiler is there", todo="install gcc or clang; what is measured runs in C")
        self.program = b""
        with scratch_folder() as folder:
            binary = _built(folder, command, objects or {}, flags)
            if objects:
                self.program = binary.read_bytes()
            self._child = subprocess.Popen(
                [str(binary)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C ends it through its parent alone
            )
            self._rest = b""
            try:
                _, page, chain, passes = self._line(10.0).split()
            except (ValueError, MeasurementError) as error:
                self.close()
                raise MeasurementError("the program that measures does not start here", todo="see ulimit -v") from error
        self.page_bytes, self._clock_cycles, self._issue_passes = int(page), int(chain), int(passes)
        self._brackets: Brackets | None = None
        self._turn = 0
        self.brackets()

    @staticmethod
    def _refuse_host() -> None:
        if sys.platform != "linux" or platform.machine().lower() not in ("x86_64", "amd64", "aarch64"):
            what = f"nothing is measured on {sys.platform} on {platform.machine()}"
            raise MeasurementError(what, todo="measure on Linux on x86-64 or AArch64")

    def close(self) -> None:
        """End the child."""
        if self._child.stdin is not None:
            with suppress(OSError):
                self._child.stdin.close()
        if self._child.poll() is None:
            self._child.kill()
        self._child.wait()
        if self._child.stdout is not None:
            self._child.stdout.close()

    def load(self, code: bytes, *, pages: int = 1) -> None:
        """Take this machine code as what is called; it begins at a multiple of 4096. Memory that it touches is of so
        many different pages (six at most), in the order in which it does, and of the same ones again behind them."""
        self._done(f"code {pages} {code.hex()}")

    def take_kernel(self) -> int:
        """Take the linked `km_kernel` as what is called; its address."""
        return int(self._done("kernel").split()[1])

    def buffer(self, number: int, wanted: Buffer) -> BufferPlace:
        """Make the buffer with this number; the one before it is forgotten."""
        answer = self._answer(f"buffer {number} {wanted.size} {int(wanted.huge)} {wanted.offset} {wanted.fill}")
        if answer == "error no memory":
            what = f"there is not enough memory for {wanted.size / 2**20:.3g} MiB of data"
            raise MeasurementError(what, todo="raise the limit (ulimit -v), or measure smaller data with --level L1")
        _, huge_kib, address = _accepted(answer).split()
        return BufferPlace(int(address), min(max(int(huge_kib), 0) * 1024, wanted.size))

    def value(self, number: int, value: int) -> None:
        """Put a number in the place of a buffer's address."""
        self._done(f"value {number} {value}")

    def seal(self) -> None:
        """Let the child ask the system for nothing more than it needs to go on."""
        self._done("seal")

    def pin(self, processor: int) -> None:
        """Run on this processor."""
        self._done(f"pin {processor}")

    def run(self, cases: Sequence[Case], samples: int, seconds: int | None = None, *, wait_ms: int = 0) -> list[Sample]:
        """Samples of the cases in turn.

        Args:
            wait_ms: how long to wait for an undisturbed core, in all; then there are fewer samples. 0: not at all.

        Raises:
            FaultError: the code raised a signal, or took longer than `seconds`.
        """
        limit = int(min(CALL_SECONDS.most, 10**6)) if seconds is None else seconds
        pairs = " ".join(f"{case.repetitions} {case.argument}" for case in cases)
        self._tell(f"run {samples} {limit} {wait_ms} {len(cases)} {pairs}")
        found: list[Sample] = []
        deadline = time.monotonic() + limit + 5
        while True:
            words = self._line(deadline - time.monotonic()).split()
            if words[0] == "end":
                return found
            if words[0] == "fault":
                raise FaultError(int(words[1]))
            if words[0] != "s" or len(words) != _SAMPLE_FIELDS + 1:
                raise MeasurementError(f"the program that measures said {' '.join(words)!r}")
            which, ticks, *ends, switches = map(int, words[1:-1])
            clock, issue, loads = (ends[0], ends[1]), (ends[2], ends[3]), (ends[4], ends[5])
            found.append(Sample(which, ticks, clock, issue, loads, switches, float(words[-1])))

    def log(self, milliseconds: int, case: Case) -> Callable[[], list[tuple[int, int, int]]]:
        """Begin calls one after the other for so long; what is returned waits for them and gives of each the ticks of
        its start and end, and the context switches in it."""
        self._tell(f"log {milliseconds} {case.repetitions} {case.argument}")

        def finish() -> list[tuple[int, int, int]]:
            found: list[tuple[int, int, int]] = []
            deadline = time.monotonic() + milliseconds / 1000 + _LOG_SECONDS
            while True:
                words = self._line(deadline - time.monotonic()).split()
                if words[0] != "l" or len(words) != _LOG_FIELDS + 1:
                    return found
                start, end, switches = map(int, words[1:])
                found.append((start, end, switches))

        return finish

    def ticks_per_second(self) -> float:
        """Of the time stamp counter."""
        before = [int(word) for word in self._done("ticks").split()[1:]]
        time.sleep(_CLOCK_SECONDS)
        after = [int(word) for word in self._done("ticks").split()[1:]]
        return 1e9 * (after[0] - before[0]) / (after[1] - before[1])

    def brackets(self) -> Brackets:
        """What the brackets mean here, found once by empty calls on every processor in turn; before code is loaded."""
        if self._brackets is None:
            self.load(RETURN)
            samples = []
            for processor in self.processors[:_CALIBRATED]:
                self.pin(processor)
                samples += self.run([Case(1)], _CALIBRATION)
            self._brackets = brackets_of(samples, self._clock_cycles, self._issue_passes)
        return self._brackets

    def wait_for(self, issue: float) -> None:
        """Take a core as undisturbed from now on whose probe of issue takes at most so many times as long as alone."""
        alone = self.brackets()
        self._done(f"quiet {issue * alone.issue_alone:.9f} {LOADS_TOLERANCE * alone.loads_alone:.9f} {LONG}")

    def call_cycles(self, cases: Sequence[Case], seconds: int | None = None) -> float:
        """Roughly the cycles of a call of the first of these cases, by few samples of all in turn.

        Raises:
            FaultError: as of `run`.
        """
        samples = self.run(cases, CALLS_TO_TELL - 1, seconds)
        shortest = min(sample.ticks for sample in samples if sample.which == 0)
        return shortest * self.brackets().clock_cycles / min(min(sample.clock) for sample in samples)

    def figure(
        self,
        cases: Sequence[Case],
        value: Callable[[Sequence[float]], float],
        effort: Effort,
    ) -> Figure:
        """A figure of the cycles of several cases, by rounds on one processor after the other until two confirm one
        another.

        Args:
            value: of the cycles of one call of each case.
        """
        brackets = self.brackets()
        self.wait_for(effort.issue)
        cycles: list[list[float]] = []
        pools: dict[int, list[Sample]] = {processor: [] for processor in self.processors}
        accepted = taken = made = 0
        end = time.monotonic() + effort.seconds
        while True:
            processor = self.processors[self._turn % len(self.processors)]
            self._turn += 1
            self.pin(processor)
            found = self.run(cases, effort.samples, wait_ms=_WAIT_MS)
            pools[processor] += found
            made += 1
            taken += len(found)
            rounds = [judge(pools[processor], brackets, number, effort.issue) for number in range(len(cases))]
            complete = [one for one in rounds if one is not None]
            if len(complete) == len(cases):
                cycles.append([one.cycles for one in complete])
                accepted += sum(one.accepted for one in complete)
                pools[processor] = []
            figure = agreed(cycles, value, accepted, taken - accepted, effort.within, effort.middle) if cycles else None
            if made >= effort.rounds and figure is not None and figure.confirmed:
                return figure
            if made >= _LEAST_ROUNDS and time.monotonic() >= end:
                break
        accepted += sum(counts(sample, brackets, effort.issue) for pool in pools.values() for sample in pool)
        refused = taken - accepted
        if not cycles:
            return Figure(0.0, 0.0, 0.0, accepted, refused, False)
        return agreed(cycles, value, accepted, refused, effort.within, effort.middle)

    def clock_hz(self) -> float:
        """The core's clock now, the median of some samples; what was loaded is forgotten."""
        self.load(RETURN)
        samples = self.run([Case(1)], _CLOCK_SAMPLES)
        return self._clock_cycles * self.ticks_per_second() / median(min(sample.clock) for sample in samples)

    def _done(self, command: str) -> str:
        return _accepted(self._answer(command))

    def _answer(self, command: str) -> str:
        self._tell(command)
        return self._line(60.0)

    def _tell(self, command: str) -> None:
        if self._child.stdin is None:
            raise MeasurementError("the program that measures is gone")
        try:
            self._child.stdin.write(command.encode() + b"\n")
            self._child.stdin.flush()
        except OSError as error:
            raise self._gone() from error

    def _line(self, seconds: float) -> str:
        """The next line of the child.

        Raises:
            MeasurementError: none came in time, or the child ended.
        """
        output = self._child.stdout
        if output is None:
            raise self._gone()
        deadline = time.monotonic() + max(seconds, 0.0)
        while b"\n" not in self._rest:
            ready, _, _ = select.select([output], [], [], max(0.0, deadline - time.monotonic()))
            part = os.read(output.fileno(), 1 << 16) if ready else b""
            if not part:
                if ready:
                    raise self._gone()
                self._child.kill()
                raise MeasurementError("a measurement took too long and was stopped", todo="try it on a quieter host")
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode("ascii", "replace")

    def _gone(self) -> MeasurementError:
        status = self._child.wait()
        how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
        return MeasurementError(f"the program that measures ended {how}", todo="is there enough memory?")


def _accepted(answer: str) -> str:
    """The answer of the child.

    Raises:
        MeasurementError: it refuses.
    """
    if not answer.startswith("ok"):
        raise MeasurementError(f"the program that measures said {answer!r}", todo="is there enough memory?")
    return answer


@lru_cache  # a validation links it with the code of a hundred points
def _harness_object(compiler: str) -> bytes:
    """`HARNESS`, compiled.

    Raises:
        MeasurementError: the compiler fails.
    """
    with scratch_folder() as folder:
        made = folder / "harness.o"
        _run((compiler, *_FLAGS, "-c", "-o", str(made), str(HARNESS)), folder)
        return made.read_bytes()


def _built(folder: Path, compiler: str, objects: dict[str, str], flags: Sequence[str]) -> Path:
    """The program, in this folder.

    Raises:
        MeasurementError: the compiler or the linker fails.
    """
    folder.chmod(0o700)
    made: list[str] = []
    (folder / "harness.o").write_bytes(_harness_object(compiler))
    for name, text in objects.items():
        path = folder / name
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        made.append(str(path.with_suffix(".o")))
        _run((compiler, *flags, "-c", "-o", made[-1], str(path)), folder)
    binary = folder / "measure"
    _run((compiler, "-no-pie", "-o", str(binary), str(folder / "harness.o"), *made, "-lm"), folder)
    return binary


def _run(command: tuple[str, ...], folder: Path) -> None:
    with tempfile.TemporaryFile() as messages:
        try:
            around = english(folder)
            process = start(command, COMPILER_SECONDS, stdout=messages, stderr=messages, env=around, cwd=folder)
        except OSError as error:
            raise MeasurementError(f"{command[0]} could not be run: {error.strerror}") from error
        try:
            status = wait(process, COMPILER_SECONDS)
        finally:
            stop(process)
        if status:
            messages.seek(0)
            said = messages.read().decode("utf-8", "replace").strip().splitlines()
            first = next((line for line in said if "error" in line or "undefined" in line), said[0] if said else "")
            raise MeasurementError(f"the compiler failed: {first or f'status {status}'}", where=command[0])
