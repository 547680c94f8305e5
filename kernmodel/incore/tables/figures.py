"""What parameter files of cores may say: every figure with its key, unit, range and meaning, by mechanism.

Each attribute is declared with the key under which it stands in a file, what reads it and what it means; one with a
default may be left out. `kernmodel.incore.tables.parameters` reads files by these declarations;
docs/microarchitectures.md lists them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, get_args

import yaml

from kernmodel.schema.fields import Choice, Flag, Integer, Quantity, RejectedError, items, scalar, suggest, text

Slots = int | Literal["unlimited"]
FrontEndKind = Literal["intel-uop-cache", "zen-op-cache", "none"]
"""What feeds the renamer. `intel-uop-cache`: predecoder, decoders, a cache of µops (DSB), a loop buffer (LSD), and a
pipeline that is simulated behind them; `zen-op-cache`: decoders and an op cache, of which bounds are known; `none`: all
that is known is the issue width."""


# {{{ kinds of values


class PowerOfTwo(NamedTuple):
    """A size in bytes that is a power of two."""

    most: int

    def __call__(self, node: yaml.Node) -> int:
        """The size."""
        value = Integer(1, self.most)(node)
        if value.bit_count() != 1:
            raise RejectedError(f"{value} is no power of two", f"write a power of two up to {self.most}")
        return value

    @property
    def values(self) -> str:
        """What may stand there, in words."""
        return f"power of two up to {self.most}"


class Words(NamedTuple):
    """Words with spaces between them, each one of `known` where that is given."""

    known: tuple[str, ...] = ()

    def __call__(self, node: yaml.Node) -> tuple[str, ...]:
        """The words."""
        found = tuple(scalar(node).split())
        for word in found:
            if self.known and word not in self.known:
                raise RejectedError(f"{word!r} is unknown", suggest(word, self.known))
            if not (word.isascii() and word.isalnum() and word.islower()):
                raise RejectedError(f"{word!r} is no mnemonic", "write mnemonics with spaces between them")
        return found

    @property
    def values(self) -> str:
        """What may stand there, in words."""
        return f"some of {', '.join(self.known)}" if self.known else "mnemonics"


class Port:
    """A port of the core."""

    values = "one of `ports`"

    def __call__(self, node: yaml.Node) -> str:
        """Its name."""
        return text(node)


class Ports:
    """Some ports of the core."""

    values = "list of `ports`"

    def __call__(self, node: yaml.Node) -> tuple[str, ...]:
        """Their names."""
        return tuple(text(item) for item in items(node))


class PortGroups:
    """Groups of ports of the core."""

    values = "list of lists of `ports`"

    def __call__(self, node: yaml.Node) -> tuple[tuple[str, ...], ...]:
        """The names of each group."""
        return tuple(tuple(text(item) for item in items(group)) for group in items(node))


class Copies:
    """By µops of a loop, the copies that are unrolled."""

    values = "mapping of whole numbers"

    def __call__(self, node: yaml.Node) -> dict[int, int]:
        """Copies by µops."""
        if not isinstance(node, yaml.MappingNode):
            raise RejectedError("maps no µops to copies", "write {2: 6, …}, or {} for none")
        count = Integer(1, 1000)
        return {count(key): count(value) for key, value in node.value}


class SlotCount:
    """A number of slots, or `unlimited`."""

    values = "0 to 1000, or unlimited"

    def __call__(self, node: yaml.Node) -> Slots:
        """The number or the word."""
        return "unlimited" if scalar(node) == "unlimited" else Integer(0, 1000)(node)


# }}}


class Figure(NamedTuple):
    """The declaration of a figure.

    Attributes:
        key: under which it stands in `figures` of a parameter file.
        kind: reads its value, in the base unit.
        unit: of the value as `Parameters` has it; "" for flags, names and plain counts.
        meaning: in words.
    """

    key: str
    kind: Any
    unit: str
    meaning: str


_FLAG = Flag()
_WIDTH = Integer(1, 64)
_ENTRIES = Integer(2, 10_000)
_DELAY = Integer(0, 1000)
_TIME = Quantity("cycles", zero=True, most="1000 cy")
_FUSIBLE = Words(("test", "cmp", "add", "sub", "and", "or", "xor", "inc", "dec"))
_UOPS, _CYCLES, _BYTES = "µops", "cy", "B"

_RETIRE = Figure("retire width", _WIDTH, _UOPS, "fused-domain µops (Zen: macro-ops) retired per cycle")
_ROB = Figure("ROB entries", _ENTRIES, _UOPS, "entries of the reorder buffer")


class LoadFigures(NamedTuple):
    """What loads and stores take beside their rows."""

    pointer_chasing: Annotated[
        bool, Figure("fast pointer chasing", _FLAG, "", "an address from a load is there sooner for the next load")
    ] = False
    pointer_latency: Annotated[
        float | None,
        Figure("fast pointer chasing latency", _TIME, _CYCLES, "load latency in that case"),
    ] = None
    pointer_reach: Annotated[
        int | None,
        Figure(
            "fast pointer chasing displacement", Integer(0, 1 << 31), _BYTES, "from this displacement on there is none"
        ),
    ] = None
    double_pumped: Annotated[
        bool, Figure("256-bit memory double-pumped", _FLAG, "", "memory accesses of 256 bits go in two halves")
    ] = False
    forwarded: Annotated[
        float | None,
        Figure(
            "forwarded load latency",
            _TIME,
            _CYCLES,
            "shortest latency measured from memory to a register where a store has just written it; "
            "of the memory policy `stack`",
        ),
    ] = None
    split_256: Annotated[
        float | None,
        Figure("split 256-bit load", _TIME, _CYCLES, "a load across cache lines takes all its ports for so long"),
    ] = None
    split_512: Annotated[float | None, Figure("split 512-bit load", _TIME, _CYCLES, "the same for 512 bits")] = None


class RegisterFigures(NamedTuple):
    """What the renamer and the stack engine do."""

    high_bytes_apart: Annotated[
        bool, Figure("high8 renamed separately", _FLAG, "", "ah, bh, ch, dh are renamed apart from their registers")
    ] = False
    movzx_alias_eliminated: Annotated[
        bool,
        Figure(
            "movzx high8-alias eliminated",
            _FLAG,
            "",
            "movzx from a low byte whose number is that of a high byte can be eliminated; true where left out",
        ),
    ] = True
    false_dependencies: Annotated[
        tuple[str, ...],
        Figure("false output dependencies", Words(), "", "mnemonics that wait for the register they overwrite"),
    ] = ()
    synchronisation: Annotated[
        float | None,
        Figure(
            "stack synchronisation latency",
            _TIME,
            _CYCLES,
            "of the µop that adds to rsp what the stack engine keeps",
        ),
    ] = None


class AdderFigures(NamedTuple):
    """Cycles from a floating-point adder where they are more than the row's; None: as in the row."""

    to_others: Annotated[
        float | None,
        Figure("adder to other units", _TIME, _CYCLES, "from an addition to a unit that is no adder"),
    ] = None
    several_chains: Annotated[
        float | None,
        Figure(
            "adders with several chains",
            _TIME,
            _CYCLES,
            "latency to an adder where additions are in several loop-carried chains",
        ),
    ] = None
    beside_wide: Annotated[
        float | None,
        Figure(
            "adders beside 512-bit µops", _TIME, _CYCLES, "latency to an adder where the block has 512-bit registers"
        ),
    ] = None


class RecordedFigures(NamedTuple):
    """Figures that stand in the files with their sources; no prediction reads them yet."""

    retire_width: Annotated[int | None, _RETIRE] = None
    reorder_buffer: Annotated[int | None, _ROB] = None
    load_buffer: Annotated[int | None, Figure("load buffer entries", _ENTRIES, "", "loads in flight")] = None
    store_buffer: Annotated[int | None, Figure("store buffer entries", _ENTRIES, "", "stores in flight")] = None
    move_slots: Annotated[
        Slots | None, Figure("move elimination slots", SlotCount(), "", "moves that can be eliminated at a time")
    ] = None
    vector_move_slots: Annotated[
        Slots | None, Figure("vector move elimination slots", SlotCount(), "", "the same for vector registers")
    ] = None
    move_pipeline: Annotated[
        int | None,
        Figure("move elimination pipeline length", _DELAY, _CYCLES, "until a slot of move elimination is free again"),
    ] = None
    move_aliases: Annotated[
        bool | None,
        Figure(
            "move elimination needs all aliases overwritten",
            _FLAG,
            "",
            "a slot is free when all copies are overwritten",
        ),
    ] = None


class UopCacheFigures(NamedTuple):
    """A front end of the kind `intel-uop-cache`."""

    predecode_width: Annotated[int, Figure("predecode width", _WIDTH, "instructions", "predecoded per cycle")]
    predecode_bytes: Annotated[
        int, Figure("predecode block bytes", PowerOfTwo(64), _BYTES, "size of the aligned blocks that are fetched")
    ]
    prefix_cycles: Annotated[
        int, Figure("length-changing prefix cycles", Integer(1, 1000), _CYCLES, "penalty of a length-changing prefix")
    ]
    decoders: Annotated[int, Figure("decoders", _WIDTH, "", "number of decoders, the complex one included")]
    complex_uops: Annotated[int, Figure("complex decoder µops", _WIDTH, _UOPS, "made by the complex decoder at most")]
    decoded_uops: Annotated[int, Figure("decoded µops per cycle", _WIDTH, _UOPS, "made by all decoders per cycle")]
    fusible_last: Annotated[
        bool,
        Figure(
            "macro-fusible may be decoded last",
            _FLAG,
            "",
            "the last decoder takes instructions of a kind that macro-fuses",
        ),
    ]
    pop_rsp_complex: Annotated[
        bool, Figure("pop rsp needs complex decoder", _FLAG, "", "so does pop r12, which shares its encoding")
    ]
    pop_rsp_ends_group: Annotated[
        bool, Figure("pop rsp ends decode group", _FLAG, "", "nothing is decoded behind it in that cycle")
    ]
    fusion_line_bytes: Annotated[
        int,
        Figure(
            "macro-fusion line bytes",
            PowerOfTwo(64),
            _BYTES,
            "no pair macro-fuses whose jump starts at a multiple of this address",
        ),
    ]
    dsb_width: Annotated[int, Figure("DSB width", _WIDTH, _UOPS, "delivered by the µop cache per cycle")]
    dsb_bytes: Annotated[
        int, Figure("DSB block bytes", PowerOfTwo(64), _BYTES, "aligned blocks of code that its lines belong to")
    ]
    dsb_both_halves: Annotated[
        bool,
        Figure("DSB block needs both halves", _FLAG, "", "of two such blocks both are in the µop cache or neither is"),
    ]
    jcc_erratum: Annotated[
        bool, Figure("JCC erratum", _FLAG, "", "branches at certain places keep their code out of the µop cache")
    ]
    idq_entries: Annotated[int, Figure("IDQ entries", _ENTRIES, _UOPS, "entries of the instruction decode queue")]
    lsd: Annotated[bool, Figure("LSD", _FLAG, "", "loops are replayed from the decode queue")]
    lsd_copies: Annotated[
        Mapping[int, int],
        Figure("LSD unroll", Copies(), "copies", "by µops of a loop, how often it is unrolled there; else once"),
    ]
    jcc_bytes: Annotated[
        int | None,
        Figure(
            "JCC erratum block bytes",
            PowerOfTwo(64),
            _BYTES,
            "a branch that crosses or ends at a multiple of this address is such; needed with `JCC erratum`",
        ),
    ] = None


class PipelineFigures(NamedTuple):
    """What is behind a front end of the kind `intel-uop-cache`, for the simulation."""

    retire_width: Annotated[int, _RETIRE]
    reorder_buffer: Annotated[int, _ROB]
    scheduler: Annotated[int, Figure("RS entries", _ENTRIES, _UOPS, "entries of the scheduler")]
    iq: Annotated[int, Figure("IQ entries", _ENTRIES, "instructions", "entries of the queue before the decoders")]
    dsb_lines: Annotated[int, Figure("DSB lines per cycle", _WIDTH, "lines", "read from the µop cache per cycle")]
    dsb_line_uops: Annotated[int, Figure("DSB line µops", _WIDTH, _UOPS, "in one line of the µop cache")]
    dsb_block_lines: Annotated[
        int, Figure("DSB lines per block", _WIDTH, "lines", "that a block of code may fill in the µop cache")
    ]
    microcode_switch: Annotated[
        int, Figure("DSB-MS switch cycles", _DELAY, _CYCLES, "from the µop cache to the microcode sequencer and back")
    ]
    microcode_exit: Annotated[int, Figure("microcode exit cycles", _DELAY, _CYCLES, "lost behind microcode")]
    microcode_width: Annotated[
        int, Figure("microcode width", _WIDTH, _UOPS, "delivered by the microcode sequencer per cycle")
    ]
    predecode_delay: Annotated[int, Figure("predecode delay", _DELAY, _CYCLES, "from the predecoder to the decoders")]
    dispatch_delay: Annotated[int, Figure("dispatch delay", _DELAY, _CYCLES, "from issue to the first dispatch")]
    counter_gap: Annotated[
        int,
        Figure(
            "port counter gap",
            Integer(1, 1000),
            _UOPS,
            "from this difference of the counters of two ports on there is no second choice",
        ),
    ]
    alternating: Annotated[
        tuple[tuple[str, ...], ...],
        Figure("alternating ports", PortGroups(), "", "groups of ports that equal µops take in turn"),
    ]
    forward_address: Annotated[
        int,
        Figure("store address latency", _DELAY, _CYCLES, "from a store's address to a load that gets its data"),
    ]
    blocked_load: Annotated[
        int, Figure("blocked load cycles", _DELAY, _CYCLES, "of a load that needs more than a store wrote")
    ]
    synchronise_ports: Annotated[
        tuple[str, ...], Figure("stack synchronisation ports", Ports(), "", "of the µop that brings rsp up to date")
    ]
    load_ports: Annotated[
        tuple[tuple[str, ...], ...], Figure("load ports", PortGroups(), "", "a µop on just these ports is a load")
    ]
    store_address_ports: Annotated[
        tuple[tuple[str, ...], ...],
        Figure("store address ports", PortGroups(), "", "a µop on just these is a store address"),
    ]
    store_data_ports: Annotated[
        tuple[tuple[str, ...], ...], Figure("store data ports", PortGroups(), "", "a µop on just these is store data")
    ]
    unlaminated_slots: Annotated[
        int | None,
        Figure("unlaminated µops per issue group", _WIDTH, _UOPS, "unlaminated queue entries that issue in one cycle"),
    ] = None
    unlaminated_first: Annotated[
        int | None,
        Figure("unlaminated µops among the first of a group", _WIDTH, _UOPS, "so far up in the group they may stand"),
    ] = None
    taken_branches: Annotated[
        int | None,
        Figure("taken branches per cycle", _WIDTH, "branches", "that the µop cache follows; 1 if left out"),
    ] = None
    load_scheduler: Annotated[
        int | None, Figure("load scheduler entries", _ENTRIES, _UOPS, "of a scheduler that loads have for themselves")
    ] = None
    store_scheduler: Annotated[
        int | None, Figure("store scheduler entries", _ENTRIES, _UOPS, "of a scheduler that stores have for themselves")
    ] = None


class OpCacheFigures(NamedTuple):
    """A front end of the kind `zen-op-cache`."""

    decoders: Annotated[int, Figure("decoded instructions per cycle", _WIDTH, "instructions", "decoded per cycle")]
    entries: Annotated[int, Figure("op cache entries", Integer(1, 1_000_000), "", "entries of the op cache")]
    of_macro_ops: Annotated[
        bool, Figure("op cache holds macro-ops", _FLAG, "", "an entry is a macro-op, not an instruction")
    ]
    width: Annotated[int | None, Figure("op cache width", _WIDTH, "entries", "delivered by the op cache per cycle")] = (
        None
    )
    fetch_bytes: Annotated[
        int | None, Figure("fetched bytes per cycle", Integer(1, 1024), _BYTES, "fetched for the decoders per cycle")
    ] = None
    issue_instructions: Annotated[
        int | None,
        Figure("issued instructions per cycle", _WIDTH, "instructions", "that dispatched macro-ops may come from"),
    ] = None


_NO_LOADS, _NO_REGISTERS, _NO_ADDERS, _NO_RECORDED = (
    LoadFigures(),
    RegisterFigures(),
    AdderFigures(),
    RecordedFigures(),
)


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a microarchitecture, from `data/<NAME>.yml`.

    Attributes:
        name: "SKL"; title: "Intel Skylake"; isa.
        ports: execution ports and pipelines in the order of display ("0", "0DV", "1", …, "2", "2D", …).
        table: file name of the instruction table; aliases: other names.
        sources: source of each figure by key.
        front_end: its front end, None for the kind `none`; pipeline: what is behind one of the kind `intel-uop-cache`.
    """

    name: str
    title: str
    isa: str
    ports: tuple[str, ...]
    load_latency: Annotated[float, Figure("load latency", _TIME, _CYCLES, "L1 hit latency of a general-purpose load")]
    store_forward_latency: Annotated[
        float,
        Figure(
            "store forward latency",
            _TIME,
            _CYCLES,
            "from a store's data to the result of a load that reads it, for general-purpose registers; "
            "vector stores add what their row says (`1>M0`)",
        ),
    ]
    issue_width: Annotated[
        int, Figure("issue width", _WIDTH, _UOPS, "fused-domain µops (Zen: macro-ops) issued per cycle")
    ]
    table: str
    aliases: tuple[str, ...]
    sources: Mapping[str, str]
    front_end: UopCacheFigures | OpCacheFigures | None = None
    pipeline: PipelineFigures | None = None
    misprediction: Annotated[
        float | None, Figure("branch misprediction", _TIME, _CYCLES, "penalty of a mispredicted branch")
    ] = None
    foreseen_passes: Annotated[
        int,
        Figure(
            "foreseen loop passes",
            _DELAY,
            "",
            "passes of a loop, the same number each time, up to which the branch predictor is known to foresee its "
            "exit",
        ),
    ] = 0
    closed_by_zmm: Annotated[
        str | None,
        Figure("zmm closes vector port", Port(), "", "512-bit instructions in flight take this port from vector µops"),
    ] = None
    fused_with_jumps: Annotated[
        tuple[str, ...],
        Figure(
            "fused with conditional jumps",
            _FUSIBLE,
            "",
            "mnemonics that macro-fuse with any conditional jump (not those that compare memory with an immediate), "
            "for cores whose table has no front-end column",
        ),
    ] = ()
    loads: LoadFigures = _NO_LOADS
    registers: RegisterFigures = _NO_REGISTERS
    adders: AdderFigures = _NO_ADDERS
    recorded: RecordedFigures = _NO_RECORDED


_OPTIONAL = {field.name: None for field in fields(Parameters) if field.default is not MISSING}

MECHANISMS: Mapping[str, type] = {
    "loads": LoadFigures,
    "registers": RegisterFigures,
    "adders": AdderFigures,
    "recorded": RecordedFigures,
}
"""The groups of figures that any core may have, by attribute of `Parameters`."""

FRONT_ENDS: Mapping[FrontEndKind, Mapping[str, type]] = {
    "intel-uop-cache": {"front_end": UopCacheFigures, "pipeline": PipelineFigures},
    "zen-op-cache": {"front_end": OpCacheFigures},
    "none": {},
}
"""By kind of front end, the groups of figures that its cores have besides."""

FRONT_END_KIND = Choice(tuple(FRONT_ENDS))


_PSEUDO = ("DV", "D")
"""Endings of the names of what stands beside a port: its divider, its load data path."""


def execution_ports(ports: Iterable[str]) -> tuple[str, ...]:
    """The ports that take µops, without what stands beside them: dividers and load data paths."""
    return tuple(port for port in ports if not (len(port) > 1 and port.endswith(_PSEUDO)))


def front_end_kind(parameters: Parameters) -> FrontEndKind:
    """The kind of front end that the parameters have."""
    if isinstance(parameters.front_end, UopCacheFigures):
        return "intel-uop-cache"
    return "none" if parameters.front_end is None else "zen-op-cache"


class Declared(NamedTuple):
    """A figure of a group: the attribute that holds it, its declaration, and whether a file must have it."""

    attribute: str
    figure: Figure
    required: bool


@cache
def declared(group: type) -> tuple[Declared, ...]:
    """The figures that a class declares, in order."""
    defaults: Mapping[str, object] = getattr(group, "_field_defaults", _OPTIONAL)
    return tuple(
        Declared(name, figure, name not in defaults)
        for name, annotation in group.__annotations__.items()
        for figure in get_args(annotation)[1:]
        if isinstance(figure, Figure)
    )
