"""What a user asks for and what comes back: the values between the command line, the stages and the reports.

Light on purpose: importing this module does not load the stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kernmodel.errors import Note, UsageError
from kernmodel.machine.cores import SPREAD, Spread
from kernmodel.traffic.options import CacheMode, SimulationOptions, StoreMode
from kernmodel.user_files import Source, source_of
from kernmodel.value_types import NamedTuple, dataclass

if TYPE_CHECKING:
    from kernmodel.code.model import AssemblyLoop
    from kernmodel.incore.model import InCore, Parameters
    from kernmodel.machine.model import Machine
    from kernmodel.machine.pages import Pages
    from kernmodel.models.ecm import EcmPrediction, ScalingPoint
    from kernmodel.models.transfers import TransferTime
    from kernmodel.source.model import LoopNest
    from kernmodel.studies.predict.placement import Placement
    from kernmodel.traffic.model import Difference, Traffic
    from kernmodel.traffic.stream_runs import Runs


@dataclass(frozen=True, slots=True)
class KernelRequest:
    """Which kernel on which machine: `kernel` and `machine` are paths or carried names.

    Attributes:
        sizes: values for the size symbols, one point.
        nest: which loop nest of the file (1-based), function: which function; None where there is only one.
        line: a line of the innermost loop, in place of both.
        include: folders in which headers are looked for; macros: other macros than sizes, with their texts.
        taken, trip_counts: by line, how often the condition of a branch holds, and the iterations of a loop.
        cores: active cores that share the shared caches.
        parts: cores over which the iterations are divided, None: as many as `cores`; more where other ccNUMA domains
            have cores at work.
        safety: factor on the cache sizes in layer conditions.
        cache: how the traffic is found: "lc" layer conditions, "sim" simulation, "both" (`traffic` only), "auto" layer
            conditions where they are shown to hold, else simulation.
        stores: which stores the code has; None: as the compiled code and the machine say.
        simulation: choices of the simulation; None: nothing was chosen. With "auto", anything chosen means simulation.
        spread: how work and threads are spread, where performance over cores is asked for.
        pages: in which the data lie, None: as where the machine's bandwidths were measured.
    """

    kernel: str
    machine: str
    sizes: Mapping[str, int]
    nest: int | None = None
    function: str | None = None
    cores: int = 1
    safety: float = 1.0
    cache: CacheMode = "auto"
    stores: StoreMode | None = None
    simulation: SimulationOptions | None = None
    spread: Spread = SPREAD
    line: int | None = None
    include: tuple[str, ...] = ()
    macros: tuple[tuple[str, str], ...] = ()
    taken: tuple[tuple[int, float], ...] = ()
    trip_counts: tuple[tuple[int, int], ...] = ()
    pages: Pages | None = None
    parts: int | None = None

    @property
    def defines(self) -> Mapping[str, str | int]:
        """All that -D says."""
        return {**dict(self.macros), **self.sizes}

    @property
    def is_one_of_several(self) -> bool:
        """Whether a nest was chosen, so that other loops may stand beside it in its function."""
        return self.nest is not None or self.line is not None


class CallCycles(NamedTuple):
    """What the user says that a call of a function takes: between so many cycles, which may be the same."""

    name: str
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CodeRequest:
    """Which code executes the kernel, and how it is analysed.

    Attributes:
        asm: assembly file that replaces the compiler's output, or None.
        compiler: command to use instead of the machine's first that is installed; flags: instead of the machine's
            flags.
        syntax: of the assembly, None: recognised by evidence.
        loop: number of the loop to take (1-based, as listed when ambiguous); lines: range of lines of the listing.
        port_model: "optimal" or "even".
        classic: whether the prediction is that of textbooks: by widths and saturated bandwidths, without what is
            executed outside the innermost loop.
        iterations_per_pass: source iterations that a pass of the loop executes, None: as found.
        align: address of the loop modulo 64, None: as the code says.
        data_align: bytes at multiples of which all arrays begin, None: as the code says.
        array_offsets: of arrays by name, where they begin modulo a cache line.
        call_cycles: what calls of functions take, before what the core's table says.
        called_again: whether the nest is called over and over, so that leaving a loop without one around it counts.
    """

    asm: str | None = None
    compiler: str | None = None
    flags: tuple[str, ...] | None = None
    syntax: Literal["att", "intel"] | None = None
    loop: int | None = None
    lines: tuple[int, int] | None = None
    port_model: Literal["optimal", "even"] = "optimal"
    classic: bool = False
    iterations_per_pass: float | None = None
    align: int | None = None
    data_align: int | None = None
    array_offsets: tuple[tuple[str, int], ...] = ()
    call_cycles: tuple[CallCycles, ...] = ()
    called_again: bool = False

    @property
    def given_places(self) -> bool:
        """Whether something is said of where arrays lie."""
        return self.data_align is not None or bool(self.array_offsets)

    @property
    def by_hand(self) -> tuple[object, ...]:
        """What decides, beside the code itself, which loop of it is taken and how it is understood."""
        return self.syntax, self.loop, self.lines, self.iterations_per_pass

    @property
    def of_one_loop(self) -> bool:
        """Whether something is said of one loop, so that it cannot stand for several."""
        return any(choice is not None for choice in (self.loop, self.lines, self.iterations_per_pass))


_SHOWN_DIGITS = 32
"""Digits of code in a title."""

Blocks = tuple[tuple[str, int], ...]
"""Block size by loop variable."""


@dataclass(frozen=True, slots=True)
class Change:
    """A figure of the machine file to take instead: `path` ("L2.size", "memory.bandwidth", "clock") and the new value
    as text, absolute with its unit ("2 MiB", "200GB/s") or relative ("x2", "x0.5", "+10%", "-10%"). Read by
    `kernmodel.machine.changes.figures`."""

    path: str
    value: str

    def __str__(self) -> str:
        return f"{self.path}={self.value}"


@dataclass(frozen=True, slots=True)
class Point:
    """Everything that one prediction depends on.

    Attributes:
        kernel: kernel, machine, sizes, cores and how the traffic is found.
        code: compiler, flags or assembly.
        changes: of the machine file, applied in order.
        blocks: block size by loop variable, outermost first, where the nest is blocked before it is modelled; empty:
            the nest as it stands.
    """

    kernel: KernelRequest
    code: CodeRequest
    changes: tuple[Change, ...] = ()
    blocks: Blocks = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """One loop of code, as the options of the command line with the same names.

    Attributes:
        source: assembly (a file or its text), an object or executable, or raw bytes; hex_digits: the code itself in its
            place.
        raw: the file is machine code and nothing else.
        function: of an object or executable; addresses: first and one past the last of the block in it.
        region: name of a marked region; loop: number of the loop; lines: first and last line of the body.
        syntax: of assembly, "att" or "intel"; None: by evidence.
        iterations_per_pass: source iterations that a pass executes; None: not known.
        all_loops: every innermost loop (`analyse_loops` only).
    """

    source: Source | None = None
    hex_digits: str | None = None
    raw: bool = False
    function: str | None = None
    addresses: tuple[int, int] | None = None
    region: str | None = None
    loop: int | None = None
    lines: tuple[int, int] | None = None
    syntax: Literal["att", "intel"] | None = None
    iterations_per_pass: float | None = None
    all_loops: bool = False

    @property
    def file(self) -> str | None:
        """The file, or its text, of code that is not given by its digits."""
        return None if self.source is None else source_of(self.source)

    @property
    def title(self) -> str:
        """What to call the code."""
        if self.hex_digits is None:
            return "standard input" if self.file == "-" else self.file or ""
        digits = "".join(self.hex_digits.split())
        return digits if len(digits) <= _SHOWN_DIGITS else digits[:_SHOWN_DIGITS] + "…"

    def check(self) -> None:
        """Refuse no code, code twice, C source, and what does not fit the code.

        Raises:
            UsageError: says what.
        """
        if (self.source is None) == (self.hex_digits is None):
            raise UsageError("one of source and hex_digits is the code", where="km.Loop", todo="give one of them")
        if self.file is not None and Path(self.file).suffix.lower() == ".c":
            todo = "ask km.analyse_kernel, or compile it with -S first"
            raise UsageError("is C source, not assembly", where=self.file, todo=todo)
        if self.raw and self.file is None:
            raise UsageError("says what FILE is", where="--raw", todo="leave it out")


@dataclass(frozen=True, slots=True)
class CodeOrigin:
    """Where the assembly comes from: a file of the user, or a compiler with version and flags (command as it was
    run)."""

    file: str | None
    compiler: str | None
    version: str | None
    flags: tuple[str, ...]
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TrafficAnswer:
    """The answer of `kernmodel traffic`.

    Attributes:
        traffic: by the method asked for; where both were, the simulated one.
        symbolic: the traffic by layer conditions beside it, where both were asked for and layer conditions apply, or
            where they were not taken because a simulation says otherwise.
        differences: where the two differ, and why.
        transfers: what each path takes, innermost first; None where it was not asked for.
    """

    nest: LoopNest
    machine: Machine
    sizes: Mapping[str, int]
    traffic: Traffic
    notes: tuple[Note, ...]
    symbolic: Traffic | None = None
    differences: tuple[Difference, ...] = ()
    transfers: tuple[TransferTime, ...] | None = None


@dataclass(frozen=True, slots=True)
class InCoreAnswer:
    """The answer of `kernmodel incore`.

    `machine` is None where only a microarchitecture was named, `placement` where nobody asked what the address of the
    code is worth.
    """

    machine: Machine | None
    parameters: Parameters
    loop: AssemblyLoop
    incore: InCore
    origin: CodeOrigin
    notes: tuple[Note, ...]
    placement: Placement | None = None


@dataclass(frozen=True, slots=True)
class EcmAnswer:
    """The answer of `kernmodel ecm` for one point: every stage's value and the prediction made of them.

    Attributes:
        runs: how far each reference walks contiguously; None where that makes no difference.
    """

    nest: LoopNest
    machine: Machine
    sizes: Mapping[str, int]
    traffic: Traffic
    origin: CodeOrigin
    loop: AssemblyLoop
    parameters: Parameters
    incore: InCore
    prediction: EcmPrediction
    scaling: tuple[ScalingPoint, ...]
    notes: tuple[Note, ...]
    runs: Runs | None = None
