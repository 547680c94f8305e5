"""Values that measurements yield."""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping, Sequence

from kernmodel.errors import Note
from kernmodel.isa.model import Notion
from kernmodel.measure.samples import Figure
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class BlockMeasurement:
    """A block of machine code, measured.

    Attributes:
        code: its bytes in hex digits; instructions: the text of each.
        notion: "loop": passes follow one another by a branch back; "unrolled": by copies one behind the other.
        own_branch: of a loop, whether the branch that closes it is the block's own; else `dec; jnz` of a register that
            the block leaves alone takes its place.
        offset: address of the block (of its first copy) modulo 64.
        copies: passes in the shorter of the two calls whose difference counts.
        cycles: of the core, per pass.
        clock_hz: of the core while it was measured.
    """

    code: str
    instructions: tuple[str, ...]
    notion: Notion
    own_branch: bool
    offset: int
    copies: int
    cycles: Figure
    clock_hz: float
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Peak:
    """Work that a core does in registers.

    Attributes:
        operation: "ADD", "MUL", "FMA", "DIV", "SQRT"; precision: "SP", "DP".
        width_bytes: of a register, of one element for scalar instructions.
        instruction: its form; per_cycle: FLOP per cycle (FMA counts 2).
    """

    operation: str
    precision: str
    width_bytes: int
    instruction: str
    per_cycle: Figure

    @property
    def name(self) -> str:
        """Operation, precision and width ("FMA DP 64 B")."""
        return f"{self.operation} {self.precision} {self.width_bytes} B"


@dataclass(frozen=True, slots=True)
class Peaks:
    """The peaks of one core of this host."""

    peaks: tuple[Peak, ...]
    clock_hz: float
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class InstructionMeasurement:
    """An instruction form, measured.

    Attributes:
        form: as in instruction tables; text: the instruction that was executed.
        instances: the ones whose throughput was measured, which write registers of their own.
        throughput: reciprocal, cycles per instruction, of independent ones.
        latencies: cycles from an operand that is read to one that is written, by "source → target" with operand numbers
            from 1.
        beside: by a form whose ports are known the cycles that one instance adds to four of that form; 0: it takes none
            of their ports.
        clock_hz: of the core while it was measured.
    """

    form: str
    text: str
    throughput: Figure
    latencies: Mapping[str, Figure]
    beside: Mapping[str, Figure]
    clock_hz: float
    notes: tuple[Note, ...]
    instances: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InstructionMeasurements:
    """Several instruction forms, measured; notes name those that were left out."""

    forms: tuple[InstructionMeasurement, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class BandwidthPoint:
    """A stream mix over data of one size.

    Attributes:
        mix: name; level: where the data lie; width_bytes: of a load or store.
        total_bytes: of all arrays together.
        cycles_per_line: that all streams together advance by one cache line each.
        bytes_per_cycle: of loads and stores, write-allocates not counted.
    """

    mix: str
    level: str
    width_bytes: int
    total_bytes: int
    cycles_per_line: Figure
    bytes_per_cycle: Figure


@dataclass(frozen=True, slots=True)
class Bandwidths:
    """Bandwidths of one core of this host.

    Attributes:
        huge: whether huge pages were got.
    """

    points: tuple[BandwidthPoint, ...]
    clock_hz: float
    huge: bool
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class CacheShare:
    """How much of a shared cache one core can use.

    Attributes:
        level: of the cache; points: a load stream by ascending size.
        usable_bytes: None where it is not told.
    """

    level: str
    points: tuple[BandwidthPoint, ...]
    usable_bytes: int | None
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class CoresPoint:
    """A stream mix on several cores together: `bytes_per_second` of all, over windows in which all ran undisturbed.

    Attributes:
        windows: that counted; low, high: deciles of the rate over them; confirmed: whether there were enough windows
            and both halves of them agree.
    """

    level: str
    mix: str
    cores: int
    bytes_per_second: float
    low: float
    high: float
    windows: int
    confirmed: bool


@dataclass(frozen=True, slots=True)
class SeveralCores:
    """Stream mixes on several cores; empty where there is one."""

    points: tuple[CoresPoint, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class RunPoint:
    """Loads from memory in contiguous runs of `run_bytes`, each at another place, by as many streams in turn:
    `cycles_per_line` of one core."""

    run_bytes: int
    streams: int
    cycles_per_line: Figure


@dataclass(frozen=True, slots=True)
class Runs:
    """What starting a stream, and several together, costs, by number of streams and ascending length of the run; empty
    where it was not measured."""

    points: tuple[RunPoint, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Beside:
    """A load stream with something beside it.

    Attributes:
        name: the same in all trials ("4 of L1 beside a line of L2").
        outer: level of the stream; inner: level of `count` other lines beside each of its lines, "" where there are
            none.
        core_cycles: what the arithmetic beside each line takes alone.
        cycles: of one line of the stream with all that.
    """

    name: str
    outer: str
    inner: str
    count: int
    core_cycles: float
    cycles: Figure


@dataclass(frozen=True, slots=True)
class LinesBeside:
    """Cycles of a pass that loads a line from the level `outer` and `count` lines of streams that lie in `level`."""

    level: str
    count: int
    cycles: Figure
    outer: str


@dataclass(frozen=True, slots=True)
class PassedPoint:
    """Cycles of a pass over a line of the second cache and one that came so many bytes of others before."""

    passed_bytes: int
    cycles: Figure


@dataclass(frozen=True, slots=True)
class VectorsBeside:
    """Cycles of a pass that loads a line from memory and `CACHE_LINES` lines of the cache before it (`machine.model`),
    whose instructions write so many vectors: those that it loads, and results of arithmetic."""

    vectors: int
    cycles: Figure


@dataclass(frozen=True, slots=True)
class LoadsBeside:
    """Cycles of the same pass with so many loads of the widest vectors from the first cache."""

    loads: int
    cycles: Figure


@dataclass(frozen=True, slots=True)
class StreamPass:
    """Cycles of a pass that loads a line of each of so many streams.

    Attributes:
        loaded: of them, those that lie in memory; the others lie in the second cache.
        single: whether the lines of that cache are those of one stream instead, that walks on by as many lines.
    """

    loaded: int
    streams: int
    single: bool
    cycles: Figure


@dataclass(frozen=True, slots=True)
class ManyStreams:
    """How many streams one core follows; None: not measured, or as many as were tried.

    `passes` are with a few streams more, each followed by the same lines of fewer streams, of one trial or of several.
    """

    followed: int | None
    passes: tuple[StreamPass, ...]

    @property
    def longer(self) -> Mapping[int, Sequence[float]]:
        """By lines from memory the cycles by which a pass takes longer, ascending, one for each trial."""
        found: dict[int, list[float]] = {}
        for many, few in zip(self.passes[::2], self.passes[1::2], strict=True):
            if many.cycles.confirmed and few.cycles.confirmed:
                insort(found.setdefault(many.loaded, []), many.cycles.value - few.cycles.value)
        return dict(sorted(found.items()))


@dataclass(frozen=True, slots=True)
class MixedStreams:
    """Mixed streams of one trial, and by level, innermost first, the cycles per line of load streams alone."""

    plain: Mapping[str, float]
    beside: tuple[Beside, ...]


@dataclass(frozen=True, slots=True)
class JudgedComposition:
    """A composition of times by its mean error over mixed streams, as a share of the measured times.

    Attributes:
        behind: by how much the error is larger than that of the best on the same streams, on the mean, and `doubt` the
            standard error of that; streams: how many there are.
    """

    expression: str
    error: float
    behind: float
    doubt: float
    streams: int

    @property
    def told_apart(self) -> bool:
        """Whether the best is nearer by more than twice the standard error of the comparison."""
        return self.behind > 2 * self.doubt


@dataclass(frozen=True, slots=True)
class Compositions:
    """How times overlap: what each composition says of mixed streams, the best first (empty: not told)."""

    judged: tuple[JudgedComposition, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class PlacedArray:
    """An array of a measured kernel: its bytes, its address modulo 64, and whether it lies in huge pages."""

    name: str
    size_bytes: int
    offset: int
    huge: bool


@dataclass(frozen=True, slots=True)
class KernelMeasurement:
    """A kernel, measured.

    Attributes:
        name, sizes: of the kernel; level: where its data lie, "" where nobody asked.
        data_bytes: of all arrays; iterations: of the innermost body in a call.
        cycles: of the core, per iteration; clock_hz: of the core.
        loop_offset: address of the loop modulo 64, None where it was not found in the program.
        arrays: where they lay.
        compiler, version: what compiled it, None where the assembly was given; flags: its flags.
    """

    name: str
    sizes: Mapping[str, int]
    level: str
    data_bytes: int
    iterations: int
    cycles: Figure
    clock_hz: float
    loop_offset: int | None
    arrays: tuple[PlacedArray, ...]
    compiler: str | None
    version: str | None
    flags: tuple[str, ...]
    notes: tuple[Note, ...]
