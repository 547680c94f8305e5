"""How the core executes a loop: values of the instruction tables and the result of the in-core analysis.

Times are cycles per pass of the loop body unless said otherwise; `InCore.iterations_per_pass` converts to cy/It.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import Literal

from kernmodel.errors import Note
from kernmodel.incore.tables.core_parameters import Parameters
from kernmodel.isa.model import Instruction, Notion
from kernmodel.uncertainty import Interval
from kernmodel.value_types import dataclass

__all__ = [
    "Chain",
    "Component",
    "FrontEnd",
    "InCore",
    "InstructionData",
    "InstructionReport",
    "Notion",
    "Parameters",
    "PortUse",
    "Reason",
    "Why",
]


@dataclass(frozen=True, slots=True)
class PortUse:
    """µops that may go to any of `ports`, occupying it for `cycles` in total (1 per µop; more for pipelines like
    "0DV")."""

    ports: tuple[str, ...]
    cycles: float


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """What decoding and issuing the instruction costs (used by front-end models): counts as uops.info gives them."""

    retire_slots: int
    uops_mite: int
    uops_ms: int
    complex_decoder: bool
    simple_decoders: int
    fusible_with: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InstructionData:
    """One row of an instruction table.

    Attributes:
        form: key, as `Instruction.form`.
        ports: port usage of its µops (empty: eliminated at rename or no execution port). Loads name the load ports and
            the load data paths ("2D", "3D") as two entries; dividers name their pipeline ("0DV") beside the port.
        latencies: cycles from a source to a target. Sources and targets: "0", "1", … explicit operands; "F" flags (with
            "C" for carry apart where it differs); implicit registers by full name. Sources of a memory operand k: "Ak"
            its base register, "Xk" its index register, "Mk" the data in memory (after address and load). Address
            latencies include the load. Absent pairs take `default_latency`.
        default_latency: for pairs that are not listed.
        uops: unfused µops.
        throughput: measured reciprocal throughput in cycles where the ports do not tell it (dividers, locked), else
            None.
        breaks_dependency: with all sources the same register: "no", "dependency" (result does not depend on it, but
            executes), "zero" (done at rename, no port).
        eliminated: a register move that the core can eliminate at rename.
        front_end: decode and issue costs, None where the source has none.
        indexed: the row with an indexed memory operand where it differs (unlamination, port 7), else None.
        source: where the row comes from.
        full: where the time depends on the operands (divisions, square roots, `fsin`), the row for those that take
            longest; this row then holds for easy ones (quotients of few bits, 0). Else None.
    """

    form: str
    ports: tuple[PortUse, ...]
    latencies: Mapping[tuple[str, str], float]
    default_latency: float
    uops: int
    throughput: float | None
    breaks_dependency: Literal["no", "dependency", "zero"]
    eliminated: bool
    front_end: FrontEnd | None
    indexed: InstructionData | None
    source: str
    full: InstructionData | None = None


@dataclass(frozen=True, slots=True)
class InstructionReport:
    """One row of the answer.

    Attributes:
        instruction: the instruction.
        pressure: cycles per port, in the order of `InCore.ports`.
        latency: its longest register-to-register latency, cycles (0 for stores and branches).
        on_critical_path, on_lcd: latency it contributes to the critical path or the longest LCD, None if it is not on
            it.
        known: whether the table has a row for it.
        eliminated: done at rename (zero idiom, move elimination, fused branch), so without port.
        source: source of its row, "" if unknown.
    """

    instruction: Instruction
    pressure: tuple[float, ...]
    latency: float
    on_critical_path: float | None
    on_lcd: float | None
    known: bool
    eliminated: bool
    source: str


@dataclass(frozen=True, slots=True)
class Chain:
    """A dependency chain.

    Attributes:
        cycles: its length, for an LCD per pass of the loop (total latency over number of passes it spans).
        members: indices into `InCore.rows`, in order.
        carriers: what carries the dependency after each member ("zmm0", "flags", "memory a(%rsp)").
        passes: loop passes the cycle spans (LCD), 1 for the critical path.
    """

    cycles: float
    members: tuple[int, ...]
    carriers: tuple[str, ...]
    passes: int


class Why(StrEnum):
    """What can fill a part of the core, or keep it idle; in brackets figures, names and users of such a `Reason`."""

    FETCH = "fetch"
    """Fetching the code (instructions, bytes)."""
    PREDECODE = "predecode"
    """Finding the instructions (instructions, bytes, prefixed: of them with a length-changing prefix)."""
    DECODE = "decode"
    """Decoding (units: instructions and fused pairs, complex: of them, those that need the complex decoder)."""
    DECODE_ERRATUM = "decode, erratum"
    """Decoding the code that the JCC erratum keeps out of the µop cache (branches that it concerns)."""
    UOP_CACHE = "µop cache"
    """Delivery from the µop cache (entries)."""
    OP_CACHE = "op cache"
    """Delivery from the op cache of a Zen core (entries)."""
    CODE_LINES = "code lines"
    """Delivery of one aligned line of code a cycle (lines that the pass touches, bytes of it)."""
    CONSTANTS = "constants"
    """The same, of which only so many come with their displacements and immediates in a cycle (entries, constants)."""
    LOOP_BUFFER = "loop buffer"
    """Replay by the loop buffer (uops, passes in a round)."""
    ISSUE = "issue"
    """The width of the renamer (uops, width, synchronisations: µops of the stack engine)."""
    ISSUE_GROUPS = "issue, groups"
    """The same, and that some µops only issue together or end a round of the loop buffer."""
    ISSUE_INSTRUCTIONS = "issue, instructions"
    """The same, and that it takes no more instructions a cycle (instructions)."""
    ISSUE_CONSTANTS = "issue, constants"
    """The same, and that it takes no more displacements and immediates a cycle (constants, most)."""
    PORTS = "ports"
    """Ports (names) that are busy with instructions (users: mnemonics)."""
    ONE_AT_A_TIME = "one at a time"
    """Instructions one after the other, of a measured reciprocal throughput (users: forms)."""
    NO_PORT = "no port"
    """Nothing needs a port."""
    DEPENDENCY = "dependency"
    """A dependency chain from pass to pass (users: mnemonics; names: what carries each on; passes that it spans)."""
    NO_DEPENDENCY = "no dependency"
    """Nothing waits for an earlier pass."""
    BINDING_PORTS = "binding ports"
    """Ports (names; maybe none), whatever keeps them busy."""
    CHAIN = "chain"
    """A dependency chain from pass to pass, whatever carries it (instructions of it; maybe 0)."""
    PIPELINE = "pipeline"
    """The simulated pipeline takes no longer than its parts."""
    PORT_CHOICE = "port choice"
    """µops wait for the ports that the renamer chose (largest: cycles of the largest bound)."""
    STALLS = "stalls"
    """The renamer stands still, or a cycle ends early (largest, as before; share of the cycles; names: for want of
    what)."""
    FULL_BUFFER = "full buffer"
    """A buffer is full of what waits (names: the buffer, and the ports that it belongs to; entries)."""
    ACROSS_LINES = "across lines"
    """Loads and stores across lines of the cache (users: mnemonics; block: bytes of smaller ones that stores of so many
    must not cross either, 0 for none)."""
    EXTRA_SLOTS = "extra slots"
    """Instructions that take a slot more at dispatch (users: mnemonics)."""
    GIVEN_PORTS = "given ports"
    """µops wait for ports that they were given before they were ready."""
    SINGLE_RULE = "single rule"
    """A rule of the core (names: which, as in `incore.answer.single_rules`; users: mnemonics that it concerns)."""
    THIRD_VECTORS = "third vectors"
    """Instructions that read three vectors, whose third comes over the path of stored ones (users: mnemonics)."""
    RELOADS = "reloads"
    """Loads that wait for what the block has stored (names: memory; `Reason.cycles`: the longest that one waits)."""
    MEMORY_RENAMING = "memory renaming"
    """Such loads that get it without the way through memory (names: memory; `Reason.cycles`: what it would save to keep
    the values in registers)."""
    IDLE = "idle"
    """The part is not used, since µops come from elsewhere (names: from where)."""
    IDLE_ERRATUM = "idle, erratum"
    """The part is not used, since branches of the JCC erratum keep code out of it (names: from where µops come)."""


@dataclass(frozen=True, slots=True)
class Reason:
    """What fills a part of the core, or why it does not count; reports write the sentence.

    Attributes:
        why: what it is.
        cycles: per pass that it takes; 0 for idle parts.
        figures, names, users: as `Why` says.
    """

    why: Why
    cycles: float = 0.0
    figures: Mapping[str, float] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    users: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Component:
    """The bound of one part of the core on its own.

    Attributes:
        name: "predecode", "decode", "DSB", "LSD", "issue", "ports", "divider", "precedence", or "pipeline" for the
            simulation of rename, ports and retirement that the bounds are blind to.
        cycles: per pass, if nothing else took time.
        applies: whether the prediction heeds it (the decoders are idle where the µop cache delivers).
        reason: what fills it; None where the block was idealised.
    """

    name: str
    cycles: float
    applies: bool
    reason: Reason | None


@dataclass(frozen=True, slots=True)
class InCore:
    """The in-core answer for one loop on one microarchitecture, data in L1.

    Attributes:
        microarchitecture: name; ports: names in display order.
        port_model: "optimal" (the exact bound) or "even" (equal shares, as the OSACA papers).
        rows: one per instruction.
        uses: per instruction, its port usage after elimination and fusion (for bounds over groups of ports).
        port_sums: cycles per port, in the order of `ports`.
        throughput: TP, cycles per pass; binding_ports: the ports that bind it.
        lcd: longest loop-carried dependency, None if there is none.
        critical_path: longest path through one pass.
        prediction: the headline: the largest of the components that apply.
        bound_by: "throughput" (ports, divider), "dependency" (LCD), "front end" (predecode to issue; the pipeline where
            it waits for µops), "scheduling" (the pipeline, where it takes longer than every bound).
        reason: what fills the component that binds.
        iterations_per_pass: source iterations per pass, None if not known.
        uncertain: forms without a row; they count nothing.
        notes: assumptions and warnings.
        notion: how the block is repeated.
        components: bounds of the parts of the core, front to back; empty where only ports and dependencies are known.
        offset: address of the first instruction modulo 64, as the front end takes it.
        prediction_interval: between which values the prediction lies where something of the core is not known; None
            where nothing is that matters.
        vectors_written: vector registers that the instructions of a pass write, each time that one does.
    """

    microarchitecture: str
    ports: tuple[str, ...]
    port_model: Literal["optimal", "even"]
    rows: tuple[InstructionReport, ...]
    uses: tuple[tuple[PortUse, ...], ...]
    port_sums: tuple[float, ...]
    throughput: float
    binding_ports: tuple[str, ...]
    lcd: Chain | None
    critical_path: Chain
    prediction: float
    bound_by: Literal["throughput", "dependency", "front end", "scheduling"]
    reason: Reason
    iterations_per_pass: float | None
    uncertain: tuple[str, ...]
    notes: tuple[Note, ...]
    notion: Notion = "loop"
    components: tuple[Component, ...] = ()
    offset: int = 0
    prediction_interval: Interval | None = None
    vectors_written: int = 0
