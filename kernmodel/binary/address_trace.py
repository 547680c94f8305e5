"""The addresses that a function touches as its program runs, sent through the caches of a machine.

The program runs twice with addresses at the same places: the first run warms the simulated caches, the second counts.
Accesses come in pieces and are forgotten, so that a run of any length takes the same memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, cast

from kernmodel.binary.counting import never_ran, refuse_foreign
from kernmodel.binary.program import Function
from kernmodel.binary.recording import Recording
from kernmodel.binary.residency import Residency
from kernmodel.binary.runs import Command, Told
from kernmodel.binary.tracing import traced_run
from kernmodel.cachesim.engine import Simulator
from kernmodel.cachesim.model import Hierarchy
from kernmodel.errors import Location, Note
from kernmodel.isa.counting import TracedAccess, TracedCopy
from kernmodel.limits import TRACED_ACCESSES
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    import numpy
    import numpy.typing

_NEAR_LINES = 1 << 20


@dataclass
class _Sink:
    """Where accesses go: the simulator, the lines that were touched, and their number."""

    simulator: Simulator
    line_shift: int
    kinds: numpy.typing.NDArray[numpy.uint8]
    sizes: numpy.typing.NDArray[numpy.uint64]
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
    told: Told = lambda what: None,
) -> Residency:
    """Where the data of a function lie: its accesses in a run of the program through simulated caches that are warm.

    Args:
        function: of the file that the command runs, with all its blocks (as `count_occurrences` gives it).
        hierarchy: the caches of one core (`traffic.simulation.hierarchy.hierarchy_of`).

    Raises:
        InputError: the program cannot be run, takes too long, or never runs the function; NotTracedError,
            MeasurementError: this system or program does not allow it; ToolError: it is of another processor.
    """
    refuse_foreign(function)
    simulator = Simulator(hierarchy)
    line = hierarchy.levels[0].line_bytes
    first = _one_run(function, command, simulator, line, told, "warming the simulated caches")
    second = first
    if first.complete:
        simulator.reset_counters()
        second = _one_run(function, command, simulator, line, told, "tracing addresses")
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
    )


@dataclass(frozen=True, slots=True)
class _Run:
    sink: _Sink
    complete: bool
    copy: TracedCopy

    @property
    def calls(self) -> int:
        return self.sink.calls


def _notes(function: Function, run: _Run) -> tuple[Note, ...]:
    where = Location(function.file)
    notes = [
        Note("own-accesses", "accesses of functions that it calls, pushes and pops are not in the trace", "assumption")
    ]
    if run.copy.left_out:
        places = ", ".join(f"{address:#x}" for address in run.copy.left_out[:3]) + (
            ", …" if len(run.copy.left_out) > 3 else ""
        )
        text = f"gathers, repeated string instructions and thread-local data are not in the trace: {places}"
        notes.append(Note("accesses-left-out", text, "warning", where))
    if not run.complete:
        text = f"the trace was cut off after {run.sink.accesses:,} accesses, and the caches were cold at its beginning"
        notes.append(Note("trace-cut-off", text, "warning", where))
    return tuple(notes)


def _one_run(
    function: Function,
    command: Command,
    simulator: Simulator,
    line_bytes: int,
    told: Told,
    doing: str,
) -> _Run:
    """One run of the program; its accesses go into the simulator."""
    with traced_run(command, told, doing) as (program, words, _):
        recording = Recording(program, function, command, words)
        sink = _sink(recording.copy.accesses, simulator, line_bytes)
        complete = True
        for piece in recording.buffers():
            sink.take(piece)
            if TRACED_ACCESSES.exceeded(sink.accesses):
                complete = False
                break
        return _Run(sink, complete, recording.copy)


def _sink(accesses: Sequence[TracedAccess], simulator: Simulator, line_bytes: int) -> _Sink:
    import numpy

    kinds = numpy.array([_KINDS[one.kind] for one in accesses], dtype=numpy.uint8)
    sizes = numpy.array([max(1, one.size) for one in accesses], dtype=numpy.uint64)
    return _Sink(simulator, line_bytes.bit_length() - 1, kinds, sizes)
