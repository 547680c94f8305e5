"""The beginning of a run as it was: block by block, with the address of each access.

Occurrences say how often each block ran. The recording says in which order, and so which branches a predictor
mispredicts, and which loads read what a store has just written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.binary.counting import refuse_foreign
from kernmodel.binary.program import Function
from kernmodel.binary.recording import Recording
from kernmodel.binary.runs import Command, Told
from kernmodel.binary.tracing import traced_run
from kernmodel.isa.counting import TracedAccess
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    import numpy
    import numpy.typing

    Numbers = numpy.typing.NDArray[numpy.int64]

CALL = 0
"""The step of a call of the function, in place of a block."""
_MOST_STEPS = 1 << 16
_MOST_RECORDS = 1 << 20
_LEARNING = 4


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """The beginning of a run.

    Attributes:
        steps: addresses of the blocks that ran, `CALL` where the function was called.
        firsts: of each step its first access, a place in `numbers` and `places`, and one more behind.
        numbers: of each access what it is, a place in `kinds`; places: the address that it goes to.
        kinds: instructions that load or store.
    """

    steps: Numbers
    firsts: Numbers
    numbers: Numbers
    places: Numbers
    kinds: tuple[TracedAccess, ...]

    @property
    def begun(self) -> int:
        """The step from which on a branch predictor knows the function: its second call, or the first quarter where it
        is called once."""
        import numpy

        calls = numpy.flatnonzero(self.steps == CALL)
        return int(calls[1]) if len(calls) > 1 else len(self.steps) // _LEARNING


def recorded_run(function: Function, command: Command, told: Told = lambda what: None) -> RecordedRun:
    """The beginning of a run of a program, which then ends.

    Raises:
        ToolError, InputError: this system, program or instruction set does not allow it.
    """
    import numpy

    refuse_foreign(function)
    pieces: list[Numbers] = []
    steps = records = 0
    with traced_run(command, told, "recording the path") as (program, words, _):
        recording = Recording(program, function, command, words, path=True)
        is_step = numpy.array([one.kind in ("block", "call") for one in recording.copy.accesses])
        for data in recording.buffers():
            piece = numpy.frombuffer(data, dtype=numpy.int64).reshape(-1, 2)
            pieces.append(piece)
            steps, records = steps + int(is_step[piece[:, 1]].sum()), records + len(piece)
            if steps >= _MOST_STEPS or records >= _MOST_RECORDS:
                break
    found = numpy.concatenate(pieces)
    stepping = is_step[found[:, 1]]
    blocks = numpy.array([CALL if one.kind == "call" else one.address for one in recording.copy.accesses])
    at = numpy.flatnonzero(stepping)
    firsts = at - numpy.arange(len(at))
    accesses = found[~stepping]
    # the last block may not be there as a whole
    return RecordedRun(blocks[found[at[:-1], 1]], firsts, accesses[:, 1], accesses[:, 0], recording.copy.accesses)
