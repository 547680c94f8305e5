"""The addresses that a function touches as its program runs, sent through the caches of a machine.

The program runs twice with addresses at the same places: the first run warms the simulated caches, the second counts.
Accesses come in pieces and are forgotten, so that a run of any length takes the same memory.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, cast

from kernmodel.binary.counting import bend, counted_blocks, ended, load_shift, never_ran, rounded
from kernmodel.binary.program import Function
from kernmodel.binary.residency import Residency
from kernmodel.binary.runs import Command, Told
from kernmodel.binary.tracing import NotTracedError, TracedProgram, free_stretch, traced_run
from kernmodel.cachesim.engine import Simulator
from kernmodel.cachesim.model import Hierarchy
from kernmodel.errors import InputError, Location, MeasurementError, Note
from kernmodel.incore.dependences.line_splits import Lines
from kernmodel.isa import isa_of
from kernmodel.isa.counting import TracedAccess, TracedCopy
from kernmodel.limits import TRACED_ACCESSES
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    import numpy
    import numpy.typing

_PAGE = 4096
_RECORD = 16
_NEAR_LINES = 1 << 20
_PIECE = 1 << 16
"""Accesses that the buffer takes."""
_MOST_CODE = 160
"""Bytes of the copy for a byte of the function, at most: two records for an instruction of two bytes."""


@dataclass
class _Sink:
    """Where accesses go: the simulator, the lines that were touched, and their number; of each instruction's access how
    often it was executed, and how often it crossed the multiples of `blocks`."""

    simulator: Simulator
    line_shift: int
    kinds: numpy.typing.NDArray[numpy.uint8]
    sizes: numpy.typing.NDArray[numpy.uint64]
    blocks: numpy.typing.NDArray[numpy.uint64]
    executed: numpy.typing.NDArray[numpy.int64]
    crossed: numpy.typing.NDArray[numpy.int64]
    accesses: int = 0
    calls: int = 0
    lines: set[int] = field(default_factory=set)

    def take(self, content: bytes) -> None:
        """Records of the buffer."""
        import numpy

        records = numpy.frombuffer(content, dtype=numpy.uint64).reshape(-1, 2)
        numbers = records[:, 1].astype(numpy.int64)
        kinds, places = self.kinds[numbers], records[:, 0]
        calls = int(numpy.count_nonzero(kinds == _CALL))
        self.calls += calls
        if calls:
            real = kinds != _CALL
            kinds, places, numbers = kinds[real], places[real], numbers[real]
        if not len(kinds):
            return
        sizes = self.sizes[numbers]
        self.accesses += len(kinds)
        across = places % self.blocks[numbers] + sizes > self.blocks[numbers]
        self.executed += numpy.bincount(numbers, minlength=len(self.executed))
        self.crossed += numpy.bincount(numbers[across], minlength=len(self.crossed))
        self._touch(places)
        self._touch(places + (sizes - 1))
        arrays = [cast("Sequence[int]", numpy.ascontiguousarray(one)) for one in (kinds, places, sizes)]
        self.simulator.run_trace(*arrays)

    def _touch(self, places: numpy.typing.NDArray[numpy.uint64]) -> None:
        """Keep the lines of these addresses."""
        import numpy

        lines = places >> self.line_shift
        lowest, highest = lines.min(), lines.max()
        if highest - lowest < _NEAR_LINES:  # far cheaper than sorting
            touched = numpy.zeros(int(highest - lowest) + 1, dtype=bool)
            touched[lines - lowest] = True
            self.lines.update((numpy.flatnonzero(touched) + int(lowest)).tolist())
        else:
            self.lines.update(numpy.unique(lines).tolist())


_CALL = 9
_KINDS = {"load": 0, "store": 1, "call": _CALL}


def residency(
    function: Function,
    command: Command,
    hierarchy: Hierarchy,
    *,
    lines: Lines | None = None,
    told: Told = lambda what: None,
) -> Residency:
    """Where the data of a function lie: its accesses in a run of the program through simulated caches that are warm.

    Args:
        function: of the file that the command runs, with all its blocks (as `count_occurrences` gives it).
        hierarchy: the caches of one core (`traffic.simulation.hierarchy.hierarchy_of`).
        lines: what accesses of the core take longer to cross, for `Residency.crossing`.

    Raises:
        InputError: the program cannot be run, takes too long, or never runs the function; NotTracedError,
            MeasurementError: this system or program does not allow it.
    """
    simulator = Simulator(hierarchy)
    line = hierarchy.levels[0].line_bytes
    first = _one_run(function, command, simulator, line, lines, told, "warming the simulated caches")
    second = first
    if first.complete:
        simulator.reset_counters()
        second = _one_run(function, command, simulator, line, lines, told, "tracing addresses")
    if not second.calls:
        raise never_ran(function)
    return Residency(
        accesses=second.sink.accesses,
        calls=second.calls,
        footprint_bytes=len(second.sink.lines) * line,
        line_bytes=line,
        counters=simulator.counters(),
        complete=second.complete,
        notes=_notes(function, second),
        crossing={} if lines is None else _crossing(second),
    )


def _crossing(run: _Run) -> dict[int, tuple[float, float]]:
    """By instruction, the shares of its loads and its stores that crossed."""
    found: dict[int, tuple[float, float]] = {}
    for number, access in enumerate(run.accesses):
        if access.kind in ("load", "store") and run.sink.crossed[number]:
            share = float(run.sink.crossed[number] / run.sink.executed[number])
            load, store = found.get(access.address, (0.0, 0.0))
            found[access.address] = (max(load, share), store) if access.kind == "load" else (load, max(store, share))
    return found


@dataclass(frozen=True, slots=True)
class _Run:
    sink: _Sink
    complete: bool
    left_out: Sequence[int]
    accesses: Sequence[TracedAccess]

    @property
    def calls(self) -> int:
        return self.sink.calls


def _notes(function: Function, run: _Run) -> tuple[Note, ...]:
    where = Location(function.file)
    notes = [
        Note("own-accesses", "accesses of functions that it calls, pushes and pops are not in the trace", "assumption")
    ]
    if run.left_out:
        places = ", ".join(f"{address:#x}" for address in run.left_out[:3]) + (", …" if len(run.left_out) > 3 else "")
        text = f"gathers, repeated string instructions and thread-local data are not in the trace: {places}"
        notes.append(Note("accesses-left-out", text, "warning", where))
    if not run.complete:
        text = f"the trace was cut off after {run.sink.accesses:,} accesses, and the caches were cold at its beginning"
        notes.append(Note("trace-cut-off", text, "warning", where))
    return tuple(notes)


def _block(access: TracedAccess, line_bytes: int, lines: Lines | None) -> int:
    """The bytes whose multiples an access must not cross; more than any address has where it may cross all."""
    found: int | None = line_bytes
    if lines is not None:
        found = lines.of_store(access.size) if access.kind == "store" else lines.of_load()
    return found or 1 << 62


def _one_run(
    function: Function,
    command: Command,
    simulator: Simulator,
    line_bytes: int,
    lines: Lines | None,
    told: Told,
    doing: str,
) -> _Run:
    """One run of the program; its accesses go into the simulator."""
    with traced_run(command, told, doing) as (program, words, _):
        return _Tracing(program, function, command, words).run(simulator, line_bytes, lines)


class _Tracing:
    """A running program whose function is replaced by a copy that records."""

    def __init__(self, program: TracedProgram, function: Function, command: Command, words: int) -> None:
        self.program, self.function, self.command, self.words = program, function, command, words
        shift = load_shift(program, function)
        size = sum(len(block.code) for block in function.blocks)
        room = rounded(_MOST_CODE * size + 64 * len(function.blocks) + _PAGE)
        buffer = rounded(_RECORD * _PIECE)
        # behind the pointer's page and the buffer one page stays free: writing there stops the program
        place = free_stretch(program.mappings(), function.entry + shift, room + 2 * _PAGE + buffer)
        if place is None:
            raise NotTracedError("there is no room near the function for its copy")
        self.pointer, self.first, self.end = place + room, place + room + _PAGE, place + room + _PAGE + buffer
        isa = isa_of(function.isa)
        made = isa.traced_copy(counted_blocks(function), function.entry, place, self.pointer, shift=shift)
        if made is None or len(made.code) > room:
            raise NotTracedError(f"addresses of {function.isa} code are not traced")
        self.copy: TracedCopy = made
        os.ftruncate(words, _PAGE + buffer)
        os.pwrite(words, self.first.to_bytes(8, "little"), 0)
        mapped = program.map_memory(place, room, executable=True)
        if not mapped or not program.map_memory(self.pointer, _PAGE + buffer, words):
            raise NotTracedError("the program has no memory for the copy", todo="see ulimit -v")
        program.close_descriptor(words)
        program.write(place, made.code)
        self.traps = bend(program, function, made.entry, made.arrivals, shift)

    def run(self, simulator: Simulator, line_bytes: int, lines: Lines | None) -> _Run:
        """Let the program run to its end, or to the limit of accesses."""
        import numpy

        kinds = numpy.array([_KINDS[one.kind] for one in self.copy.accesses], dtype=numpy.uint8)
        sizes = numpy.array([max(1, one.size) for one in self.copy.accesses], dtype=numpy.uint64)
        accesses = self.copy.accesses
        blocks = numpy.array([_block(one, line_bytes, lines) for one in accesses], dtype=numpy.uint64)
        counts = numpy.zeros((2, len(accesses)), dtype=numpy.int64)
        sink = _Sink(simulator, line_bytes.bit_length() - 1, kinds, sizes, blocks, *counts)
        while True:
            stop = self.program.run()
            if stop.kind == "trap" and stop.value in self.traps:
                self.program.go_on_at(stop.process, self.traps[stop.value])
            elif stop.kind == "signal" and stop.value == signal.SIGSEGV and self._is_full(stop.process):
                self._drain(sink, self.end)
                if TRACED_ACCESSES.exceeded(sink.accesses):
                    return _Run(sink, False, self.copy.left_out, self.copy.accesses)
                registers = self.program.registers(stop.process)
                registers.rcx = self.first
                self.program.set_registers(stop.process, registers)
                self.program.pass_on(stop.process, 0)
            elif stop.kind in ("clone", "fork"):
                what = f"the addresses of {self.function.name} are not traced in programs with threads or processes"
                raise MeasurementError(what, where=self.function.file, todo="let it use one thread")
            elif stop.kind in ("exited", "killed"):
                status = ended(self.program, self.command, stop, "its addresses were traced")
                if status:
                    how = f"ended with status {status}" if status > 0 else f"was ended by signal {-status}"
                    raise InputError(f"{how} when its addresses were traced", where=self.command.words[0])
                self._drain(sink, int.from_bytes(os.pread(self.words, 8, 0), "little"))
                return _Run(sink, True, self.copy.left_out, self.copy.accesses)

    def _is_full(self, process: int) -> bool:
        return bool(self.program.registers(process).rcx == self.end)

    def _drain(self, sink: _Sink, end: int) -> None:
        """Take the records up to an address."""
        sink.take(os.pread(self.words, end - self.first, _PAGE))
