"""What the compiler made of the source: the loop that executes the kernel, its streams and what is around it."""

from __future__ import annotations

from kernmodel.errors import Note
from kernmodel.isa.model import Instruction, MemoryReference
from kernmodel.value_types import dataclass

LOOPS_COLLAPSED = "loops-collapsed"
"""Code of the note that one compiled loop executes several of the source: it is entered once."""
LOOPS_REMOVED = "loops-removed"
"""Code of the note that the compiled function has no loop around the innermost one."""


@dataclass(frozen=True, slots=True)
class ExpectedAccess:
    """What the source says an inner-loop reference does, for matching loops of the assembly.

    Attributes:
        array: name; element_bytes: size of an element.
        stride_bytes: bytes the address moves per inner source iteration (negative for downward loops, 0 for
            invariants).
        written: whether it is a store.
        offset_bytes: where it stands in the first iteration, against the other references of its array.
        others: of the other loops around it, the variable and the bytes the address moves per step, None where an index
            array places it anew.
        count: how often the source writes the reference.
    """

    array: str
    element_bytes: int
    stride_bytes: int
    written: bool
    offset_bytes: int = 0
    others: tuple[tuple[str, int | None], ...] = ()
    count: int = 1


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Where a memory reference points in the first pass of a loop.

    Attributes:
        base: what it is counted from: a register at the entry of the function, or a name of the listing.
        offset: bytes from there, the first time that the loop is entered.
        rows: of each loop around, the bytes that it moves per pass, and the passes where they are known; from within.
    """

    base: str
    offset: int
    rows: tuple[tuple[int, int | None], ...] = ()


@dataclass(frozen=True, slots=True)
class AddressStream:
    """How the address of one memory reference of a loop advances.

    `stride_bytes` is per pass of the loop body; None where it is not a constant. `start` is where it begins, None where
    that is not known.
    """

    instruction: int
    reference: MemoryReference
    stride_bytes: int | None
    start: StreamStart | None = None


@dataclass(frozen=True, slots=True)
class RemainderLoop:
    """A loop beside the analysed one that executes iterations of the same source loop, fewer in a pass.

    Attributes:
        instructions: its body.
        steps: steps of the source loop that one pass executes.
    """

    instructions: tuple[Instruction, ...]
    steps: int


@dataclass(frozen=True, slots=True)
class Way:
    """What is executed once for each entry of the analysed loop, on one way through the loop around it.

    Attributes:
        straight: instructions that execute no iteration of the analysed source loop: addresses, accumulators, tails of
            reductions, statements between the loops of the source.
        before: how many of them come before the loop.
        tail: straight-line instructions that execute `tail_steps` steps of it.
        loops: loops that execute further steps, each at least one pass.
        streams: of the straight-line code, how its addresses advance with each pass of the loop around; instructions
            count through `straight` and then `tail`.
    """

    straight: tuple[Instruction, ...]
    before: int
    tail: tuple[Instruction, ...]
    tail_steps: int
    loops: tuple[RemainderLoop, ...]
    streams: tuple[AddressStream, ...] = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The code around the analysed loop, as far as the listing shows it.

    Attributes:
        ways: through the loop around it; empty where there is none.
        outer: the instructions of each loop further out that stand in no loop inside it, from within.
    """

    ways: tuple[Way, ...]
    outer: tuple[tuple[Instruction, ...], ...]


@dataclass(frozen=True, slots=True)
class AssemblyLoop:
    """The loop (or marked block) that is analysed.

    Attributes:
        instructions: the body in execution order, ending in the closing branch where it is a loop.
        isa, syntax, file: as in the listing.
        label: label of the loop head, "" if none.
        iterations_per_pass: source iterations that one pass of the body executes (unrolling × vector length), None
            where no source was matched.
        streams: address streams of its memory references.
        evidence: one sentence: why this loop, and how iterations_per_pass was found and cross-checked.
        role: "main", "peeled", "remainder", "outer", "marked" or "chosen".
        notes: doubts.
        variable: the outer loop variable that the loop runs over, where compilers exchanged loops or unrolled the inner
            one; None for the innermost loop of the source.
        steps: steps of that variable per pass, None where no source was matched.
        along: the outer loop of which a pass executes several iterations at once (unroll-and-jam), None without.
        whole: the loops of which a step of `variable` executes all iterations (unrolled entirely).
        around: the code around the loop; None where it is not known (a marked block, a stretch of lines).
        function: the function that holds it, "" where the code names none.
        alignment: bytes modulo which the addresses of its instructions are known; 1 where nothing is.
        source_lines: of each instruction, the line of the source that it comes from, 0 where the compiler names none;
            empty where it was not asked.
    """

    instructions: tuple[Instruction, ...]
    isa: str
    syntax: str
    file: str
    label: str
    iterations_per_pass: float | None
    streams: tuple[AddressStream, ...]
    evidence: str
    role: str
    notes: tuple[Note, ...]
    variable: str | None = None
    steps: int | None = None
    around: Surroundings | None = None
    function: str = ""
    alignment: int = 1
    source_lines: tuple[int, ...] = ()
    along: str | None = None
    whole: tuple[str, ...] = ()

    @property
    def copies(self) -> float:
        """Iterations of the loop `along` that a pass executes at once; 1 without."""
        return (self.iterations_per_pass or 1.0) / (self.steps or 1) if self.along else 1.0
