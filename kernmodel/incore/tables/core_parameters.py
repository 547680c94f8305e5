"""What parameter files of cores may say: every figure with its key, unit, range and meaning, by mechanism.

Each attribute is declared with the key under which it stands in a file, what reads it and what it means; one with a
default may be left out. `kernmodel.incore.tables.parameters` reads files by these declarations;
docs/microarchitectures.md lists them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args

import yaml

from kernmodel.schema.fields import Choice, Flag, Integer, Number, Quantity, RejectedError, items, scalar, suggest, text
from kernmodel.value_types import dataclass

Slots = int | Literal["unlimited"]
FrontEndKind = Literal["intel-uop-cache", "zen-op-cache", "decoders", "none"]
"""What feeds the renamer. `intel-uop-cache`: predecoder, decoders, a cache of µops (DSB), a loop buffer (LSD), and a
pipeline that is simulated behind them; `zen-op-cache`: decoders and an op cache, of which bounds are known; `decoders`:
decoders that are all alike, for instructions of one length; `none`: all that is known is the issue width."""


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
            if not self.known and not (word.isascii() and word.isalnum() and word.islower()):
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


class Counts(NamedTuple):
    """A list of whole numbers, none smaller than `least`."""

    least: int = 1

    @property
    def values(self) -> str:
        """What may stand there, in words."""
        return "list of whole numbers" + (f" from {self.least} on" if self.least > 1 else "")

    def __call__(self, node: yaml.Node) -> tuple[int, ...]:
        """The numbers."""
        count = Integer(self.least, 10_000)
        return tuple(count(item) for item in items(node))


class Times:
    """A list of times, none shorter than the one before."""

    values = "list of times, none shorter than the one before"

    def __call__(self, node: yaml.Node) -> tuple[float, ...]:
        """The times in cycles."""
        found = tuple(_TIME(item) for item in items(node))
        if list(found) != sorted(found):
            raise RejectedError("has a time that is shorter than the one before", "more lines take no less time")
        return found


_T = TypeVar("_T")


def _by_number(node: yaml.Node, what: str, example: str, value: Callable[[yaml.Node], _T]) -> list[tuple[int, _T]]:
    """What a mapping has by whole numbers, in its order; `what` and `example` are for the message where it is none."""
    if not isinstance(node, yaml.MappingNode):
        raise RejectedError(f"maps no {what}", f"write {example}")
    count = Integer(1, 1000)
    return [(count(key), value(each)) for key, each in node.value]


class Course:
    """Times by ascending whole numbers, none shorter than the one before."""

    values = "mapping of ascending whole numbers to times, none shorter than the one before"

    def __call__(self, node: yaml.Node) -> tuple[tuple[float, float], ...]:
        """Numbers and times in cycles."""
        numbers = _by_number(node, "numbers to times", "{6: 0 cy, 11: 2.7 cy, …}", _TIME)
        found = tuple((float(number), time) for number, time in numbers)
        if list(found) != sorted(found) or [time for _, time in found] != sorted(time for _, time in found):
            raise RejectedError("has a number or a time below the one before", "sort them; more take no less time")
        return found


class Shares:
    """Shares of something by ascending percents, none larger than the one before."""

    values = "mapping of ascending percents to shares from 0 to 1, none larger than the one before"

    def __call__(self, node: yaml.Node) -> tuple[tuple[float, float], ...]:
        """Parts of the whole, and shares."""
        percents = _by_number(node, "percents to shares", "{50: 0.9, 100: 0.5, …}", Number(1.0, zero=True))
        found = tuple((percent / 100, share) for percent, share in percents)
        shares = [part for _, part in found]
        if list(found) != sorted(found) or shares != sorted(shares, reverse=True):
            raise RejectedError("has percents below or a share above the ones before", "sort them; more keep no more")
        return found


class Copies:
    """By µops of a loop, the copies that are unrolled."""

    values = "mapping of whole numbers"

    def __call__(self, node: yaml.Node) -> dict[int, int]:
        """Copies by µops."""
        return dict(_by_number(node, "µops to copies", "{2: 6, …}, or {} for none", Integer(1, 1000)))


class SlotCount:
    """A number of slots, or `unlimited`."""

    values = "0 to 1000, or unlimited"

    def __call__(self, node: yaml.Node) -> Slots:
        """The number or the word."""
        return "unlimited" if scalar(node) == "unlimited" else Integer(0, 1000)(node)


class Figure(NamedTuple):
    """The declaration of a figure.

    Attributes:
        key: under which it stands in `figures` of a parameter file; docs/microarchitectures.md says what each means.
        kind: reads its value, in the base unit (cycles, bytes).
    """

    key: str
    kind: Any


PORT_CHOICES = ("second fewest", "by slot", "by rank")
"""Which port a µop gets at issue in place of the one with the fewest µops. `second fewest`: in every second slot of a
cycle the one with the second fewest; `by slot`: the highest of the other ports in the second slot, the lowest in the
third, of two ports the other one in every second slot; `by rank`: the second one of a cycle with the same ports the one
with the second fewest, and so on, over again behind the last one, by what was known in the cycle before; in the fourth
slot the first one already gets the second, in the fifth any one the first."""
_FLAG = Flag()
_WIDTH = Integer(1, 64)
_ENTRIES = Integer(2, 10_000)
_DELAY = Integer(0, 1000)
_PASSES = Integer(1, 10_000)
_BLOCK = PowerOfTwo(64)
_TIME = Quantity("cycles", zero=True, most="1000 cy")
_FUSIBLE = Words(("test", "cmp", "add", "sub", "and", "or", "xor", "inc", "dec"))

_EXTRA_SLOTS = ("indexed-store", "indexed-operation", "read-modify-write", "wide-store")

_ISSUE = Figure("issue width", _WIDTH)
_RETIRE = Figure("retire width", _WIDTH)
_ROB = Figure("ROB entries", _ENTRIES)
QUEUES = 4
"""Schedulers that operations of a cycle are assigned to together, at most."""
DELIVERED = 16
"""Macro-ops that the op cache delivers in a cycle, at most, where their constants are told."""
UOPS_OF_A_SLOT = 6
"""µops that are dispatched with one slot at most, where schedulers belong to ports: the simulation would wait for ever
if one of these, or the queue before them, had fewer entries."""
_PAGE_BYTES = 4096
"""The smallest page. Whether cores take longer across these where the system maps larger ones is not known."""


class LoadParameters(NamedTuple):
    """What loads and stores take beside their rows.

    Attributes:
        pointer_chasing: an address from a load is there sooner for the next load: after `pointer_latency` cycles, with
            a displacement below `pointer_reach` bytes.
        scaled_index: cycles that a load into a general-purpose register takes longer if its index is scaled.
        double_pumped: memory accesses of 256 bits, `halved_bytes`, go in two halves.
        forwarded: shortest latency measured from memory to a register where a store has just written it; of the memory
            policy `stack`.
        split_256, split_512: cycles for which a load across cache lines, of `line_bytes`, takes all its ports.
        page_split: cycles for which a load across pages takes them beyond that.
        retried: the first cache is made of banks of which no source tells number and width, and a load that finds its
            bank taken is tried once more.
        bank_bytes: of the banks of the first cache, each of which two loads may read in a cycle; 0 where any number
            may, or it is not known.
        paired_stores: a cycle takes one store into the first cache, or two that follow one another to the same line.
        aliased_stores: so many stores before a load may still be in flight when it is compared with them by the last 12
            bits of the address; 0 where loads wait for none but those that they read.
    """

    pointer_chasing: Annotated[bool, Figure("fast pointer chasing", _FLAG)] = False
    pointer_latency: Annotated[float | None, Figure("fast pointer chasing latency", _TIME)] = None
    pointer_reach: Annotated[int | None, Figure("fast pointer chasing displacement", Integer(0, 1 << 31))] = None
    scaled_index: Annotated[float, Figure("scaled index of a load", _TIME)] = 0.0
    double_pumped: Annotated[bool, Figure("256-bit memory double-pumped", _FLAG)] = False
    forwarded: Annotated[float | None, Figure("forwarded load latency", _TIME)] = None
    split_256: Annotated[float | None, Figure("split 256-bit load", _TIME)] = None
    split_512: Annotated[float | None, Figure("split 512-bit load", _TIME)] = None
    page_split: Annotated[float, Figure("page-split load", _TIME)] = 0.0
    line_bytes: Annotated[int | None, Figure("cache line bytes", PowerOfTwo(4096))] = None
    retried: Annotated[bool, Figure("loads retried at taken banks", _FLAG)] = False
    bank_bytes: Annotated[int, Figure("bytes of a bank that two loads read", PowerOfTwo(64))] = 0
    paired_stores: Annotated[bool, Figure("stores of a cycle share a line", _FLAG)] = False
    aliased_stores: Annotated[int, Figure("stores that alias loads", Integer(0, 1 << 16))] = 0

    @property
    def halved_bytes(self) -> int | None:
        """Size of the memory accesses that go in two halves, None if none do."""
        return 256 // 8 if self.double_pumped else None

    @property
    def splits(self) -> dict[int, float]:
        """Cycles for which a load across lines takes all load ports that it can use, by its bytes, where they are
        known. Of the lines that a walk through memory crosses, one in so many as a page holds ends a page."""
        given = {256 // 8: self.split_256, 512 // 8: self.split_512}
        pages = self.page_split * (self.line_bytes or 0) / _PAGE_BYTES
        return {size: cycles + pages for size, cycles in given.items() if cycles is not None}


class RegisterParameters(NamedTuple):
    """What the renamer and the stack engine do.

    Attributes:
        high_bytes_apart: ah, bh, ch, dh are renamed apart from their registers.
        aliases_eliminated: moves of the variant `Isa.alias_variant` can be eliminated.
        false_dependencies: mnemonics that wait for the register they overwrite.
        synchronisation: cycles of the µop that adds to rsp what the stack engine keeps.
        between_domains: cycles that a vector of floating-point numbers takes to units for integers, and the other way.
    """

    high_bytes_apart: Annotated[bool, Figure("high bytes renamed separately", _FLAG)] = False
    aliases_eliminated: Annotated[bool, Figure("moves of aliased bytes eliminated", _FLAG)] = True
    false_dependencies: Annotated[tuple[str, ...], Figure("false output dependencies", Words())] = ()
    synchronisation: Annotated[float | None, Figure("stack synchronisation latency", _TIME)] = None
    between_domains: Annotated[float | None, Figure("vectors between domains", _TIME)] = None


class AdderParameters(NamedTuple):
    """Cycles from a floating-point adder where they are more than the row's; None: as in the row.

    Attributes:
        to_others: to a unit that is no adder.
        several_chains: to an adder where additions are in more loop-carried chains than `free_chains`.
        free_chains: of which the adders serve so many without delay.
        beside_wide: to an adder where the block has 512-bit registers.
    """

    to_others: Annotated[float | None, Figure("adder to other units", _TIME)] = None
    several_chains: Annotated[float | None, Figure("adders with several chains", _TIME)] = None
    free_chains: Annotated[int, Figure("chains that adders serve at once", Integer(1, 100))] = 1
    beside_wide: Annotated[float | None, Figure("adders beside 512-bit µops", _TIME)] = None


class MissParameters(NamedTuple):
    """How many lines a core waits for at once.

    Attributes:
        streams: that the prefetcher into the second cache follows at once.
        from_l1: lines that the first cache waits for; from_l2: lines that the second cache waits for, prefetched ones
            among them.
        beside_l2, beside_l3: by how much a line from memory takes longer beside 1, 2, … lines that lie in this cache.
        l3_beside_l2: by how much a line from L3 takes longer beside 1, 2, … lines that lie in L2.
        beside_rows: by how much a line from memory takes longer beside lines of 1, 2, … rows which the first cache has
            since they were loaded in the rows before.
        first_keeps: of the size of the first cache what may pass before a line comes again, and the share of such lines
            that it still has.
        beside_vectors: by how much it takes longer beside two lines of the last cache by the vectors that instructions
            write in between; beside_loads: for each cycle in which loads from the first cache keep the load pipes busy.
        hits_add: while a line comes from the second cache, one load gets its part of it, and all others wait.
    """

    streams: Annotated[int | None, Figure("prefetched streams", _ENTRIES)] = None
    from_l1: Annotated[int | None, Figure("L1 misses in flight", _ENTRIES)] = None
    from_l2: Annotated[int | None, Figure("L2 misses in flight", _ENTRIES)] = None
    beside_l2: Annotated[tuple[float, ...], Figure("memory line beside L2 lines", Times())] = ()
    beside_l3: Annotated[tuple[float, ...], Figure("memory line beside L3 lines", Times())] = ()
    l3_beside_l2: Annotated[tuple[float, ...], Figure("L3 line beside L2 lines", Times())] = ()
    beside_rows: Annotated[tuple[float, ...], Figure("memory line beside rows loaded before", Times())] = ()
    first_keeps: Annotated[tuple[tuple[float, float], ...], Figure("L1 keeps", Shares())] = ()
    beside_vectors: Annotated[tuple[tuple[float, float], ...], Figure("memory line beside vectors", Course())] = ()
    beside_loads: Annotated[float, Figure("memory line beside loads", _TIME)] = 0.0
    hits_add: Annotated[bool, Figure("L1 hits beside lines from L2 add", _FLAG)] = False


class RecordedParameters(NamedTuple):
    """Figures that stand in the files with their sources; no prediction reads them yet."""

    retire_width: Annotated[int | None, _RETIRE] = None
    reorder_buffer: Annotated[int | None, _ROB] = None
    load_buffer: Annotated[int | None, Figure("load buffer entries", _ENTRIES)] = None
    store_buffer: Annotated[int | None, Figure("store buffer entries", _ENTRIES)] = None
    move_slots: Annotated[Slots | None, Figure("move elimination slots", SlotCount())] = None
    vector_move_slots: Annotated[Slots | None, Figure("vector move elimination slots", SlotCount())] = None
    move_pipeline: Annotated[int | None, Figure("move elimination pipeline length", _DELAY)] = None
    move_aliases: Annotated[bool | None, Figure("move elimination needs all aliases overwritten", _FLAG)] = None


@dataclass(frozen=True, slots=True)
class FrontEndParameters:
    """A front end of the kind `intel-uop-cache`.

    Attributes:
        issue_width: fused-domain µops per cycle that the renamer issues.
        predecode_width: instructions per cycle; predecode_bytes: size of the aligned blocks that are fetched.
        prefix_cycles: penalty of a length-changing prefix.
        decoders: number of decoders, the complex one included; complex_uops: µops the complex one makes at most;
            decoded_uops: µops that all of them make per cycle.
        fusible_last: whether the last decoder takes an instruction of a macro-fusible kind.
        pop_rsp_complex, pop_rsp_ends_group: `pop rsp` and `pop r12` need the complex decoder, are the last of their
            cycle.
        fusion_line_bytes: a pair does not macro-fuse if its jump starts at a multiple of this address.
        dsb_width: µops per cycle; dsb_bytes: size of the aligned blocks of code that it keeps µops of;
            dsb_both_halves: of two such blocks both are in it or neither is.
        jcc_erratum: branches at certain places keep their code out of the DSB; jcc_bytes: those that cross or end at a
            boundary of this size, None without the erratum.
        idq_uops: entries of the instruction decode queue.
        lsd: whether loops are replayed from it; lsd_copies: by µops of a loop, how often it is unrolled there (else
            once); lsd_bars: what a loop there must not hold: changes of rsp that the stack engine follows ("stack"),
            writes of ah, bh, ch, dh ("high-bytes").
    """

    issue_width: Annotated[int, _ISSUE]
    predecode_width: Annotated[int, Figure("predecode width", _WIDTH)]
    predecode_bytes: Annotated[int, Figure("predecode block bytes", _BLOCK)]
    prefix_cycles: Annotated[int, Figure("length-changing prefix cycles", Integer(1, 1000))]
    decoders: Annotated[int, Figure("decoders", _WIDTH)]
    complex_uops: Annotated[int, Figure("complex decoder µops", _WIDTH)]
    decoded_uops: Annotated[int, Figure("decoded µops per cycle", _WIDTH)]
    fusible_last: Annotated[bool, Figure("macro-fusible may be decoded last", _FLAG)]
    pop_rsp_complex: Annotated[bool, Figure("pop rsp needs complex decoder", _FLAG)]
    pop_rsp_ends_group: Annotated[bool, Figure("pop rsp ends decode group", _FLAG)]
    fusion_line_bytes: Annotated[int, Figure("macro-fusion line bytes", _BLOCK)]
    dsb_width: Annotated[int, Figure("DSB width", _WIDTH)]
    dsb_bytes: Annotated[int, Figure("DSB block bytes", _BLOCK)]
    dsb_both_halves: Annotated[bool, Figure("DSB block needs both halves", _FLAG)]
    jcc_erratum: Annotated[bool, Figure("JCC erratum", _FLAG)]
    idq_uops: Annotated[int, Figure("IDQ entries", _ENTRIES)]
    lsd: Annotated[bool, Figure("LSD", _FLAG)]
    lsd_copies: Annotated[Mapping[int, int], Figure("LSD unroll", Copies())]
    lsd_bars: Annotated[tuple[str, ...], Figure("LSD bars", Words(("stack", "high-bytes")))] = ()
    jcc_bytes: Annotated[int | None, Figure("JCC erratum block bytes", _BLOCK)] = None

    @property
    def dsb_line_bytes(self) -> int:
        """Size of the aligned lines of code that are in the DSB as a whole or not at all."""
        return self.dsb_bytes * (2 if self.dsb_both_halves else 1)


class DeliveryParameters(NamedTuple):
    """How a front end of the kind `intel-uop-cache` delivers µops, cycle by cycle.

    Attributes:
        iq: entries of the queue before the decoders.
        dsb_lines: lines read from the DSB per cycle; dsb_line_uops: µops of one; dsb_block_lines: those that a block of
            code may fill.
        microcode_switch: cycles from the DSB to the microcode sequencer and back; microcode_exit: those lost behind it;
            microcode_width: µops that it gives per cycle.
        predecode_delay: cycles from the predecoder to the decoders.
        taken_branches: that the DSB follows per cycle.
    """

    iq: Annotated[int, Figure("IQ entries", _ENTRIES)]
    dsb_lines: Annotated[int, Figure("DSB lines per cycle", _WIDTH)]
    dsb_line_uops: Annotated[int, Figure("DSB line µops", _WIDTH)]
    dsb_block_lines: Annotated[int, Figure("DSB lines per block", _WIDTH)]
    microcode_switch: Annotated[int, Figure("DSB-MS switch cycles", _DELAY)]
    microcode_exit: Annotated[int, Figure("microcode exit cycles", _DELAY)]
    microcode_width: Annotated[int, Figure("microcode width", _WIDTH)]
    predecode_delay: Annotated[int, Figure("predecode delay", _DELAY)]
    taken_branches: Annotated[int, Figure("taken branches per cycle", _WIDTH)] = 1


class MemoryParameters(NamedTuple):
    """The ports of loads and stores behind a front end of the kind `intel-uop-cache`, and what loads wait for.

    Attributes:
        forward_address: cycles from a store's address to a load that gets its data; blocked_load: of a load that needs
            more than a store wrote.
        load_ports, store_address_ports, store_data_ports: groups of ports; a µop on just one of them is such.
    """

    forward_address: Annotated[int, Figure("store address latency", _DELAY)]
    blocked_load: Annotated[int, Figure("blocked load cycles", _DELAY)]
    load_ports: Annotated[tuple[tuple[str, ...], ...], Figure("load ports", PortGroups())]
    store_address_ports: Annotated[tuple[tuple[str, ...], ...], Figure("store address ports", PortGroups())]
    store_data_ports: Annotated[tuple[tuple[str, ...], ...], Figure("store data ports", PortGroups())]


class PipelineParameters(NamedTuple):
    """What is behind a front end of the kind `intel-uop-cache`, for the simulation.

    Attributes:
        delivery, memory: the front end cycle by cycle, and the ports of loads and stores.
        counter_gap: difference of the counters of two ports from which on there is no second choice.
        port_choice: which port a µop gets in place of the one with the fewest µops: one of `PORT_CHOICES`.
        alternating: groups of ports that equal µops take in turn.
        synchronise_ports: of the µop that brings rsp up to date.
        unlaminated_slots: unlaminated queue entries that issue in one cycle; unlaminated_first: so far up in the group.
        load_scheduler, store_scheduler: entries of schedulers that loads and stores have for themselves; 0 where they
            share the one of all others.
    """

    delivery: DeliveryParameters
    memory: MemoryParameters
    retire_width: Annotated[int, _RETIRE]
    reorder_buffer: Annotated[int, _ROB]
    scheduler: Annotated[int, Figure("RS entries", _ENTRIES)]
    dispatch_delay: Annotated[int, Figure("dispatch delay", _DELAY)]
    counter_gap: Annotated[int, Figure("port counter gap", Integer(1, 1000))]
    alternating: Annotated[tuple[tuple[str, ...], ...], Figure("alternating ports", PortGroups())]
    synchronise_ports: Annotated[tuple[str, ...], Figure("stack synchronisation ports", Ports())]
    unlaminated_slots: Annotated[int | None, Figure("unlaminated µops per issue group", _WIDTH)] = None
    unlaminated_first: Annotated[int | None, Figure("unlaminated µops among the first of a group", _WIDTH)] = None
    port_choice: Annotated[str, Figure("port choice", Choice(PORT_CHOICES))] = PORT_CHOICES[0]
    load_scheduler: Annotated[int, Figure("load scheduler entries", _ENTRIES)] = 0
    store_scheduler: Annotated[int, Figure("store scheduler entries", _ENTRIES)] = 0


@dataclass(frozen=True, slots=True)
class OpCacheParameters:
    """A front end of the kind `zen-op-cache`.

    Attributes:
        issue_width: macro-ops dispatched per cycle; issue_instructions: instructions that they may come from, None
            where no such limit is known.
        decoders: instructions decoded per cycle; all decoders are alike.
        op_cache_entries: macro-ops, or instructions, that the op cache holds; op_cache_width: delivered per cycle, None
            where not known; op_cache_of_macro_ops: whether macro-ops are counted, not instructions.
        fetch_bytes: fetched per cycle for the decoders, None where not known.
        code_line_bytes: size of the aligned lines of code of which the op cache delivers one per cycle, each pass of a
            loop for itself; None where nothing of that is known.
        whole_instructions: whether the slots of an instruction are dispatched in one cycle.
        constants: of the macro-ops that the op cache delivers in a cycle, by their number, the most that there may be
            of their displacements, immediates and distances of jumps, long_constants: of those longer than a byte; one
            of 8 bytes counts as two. None where not known.
        constants_dispatched: of all these, how many are dispatched in a cycle, None where not known.
        extra_slots: what takes one more slot at dispatch than its row says: stores of indexed addresses from
            general-purpose registers ("indexed-store"), operations of such registers on indexed loads
            ("indexed-operation"), operations that store to where they loaded ("read-modify-write"), 512-bit stores
            ("wide-store").
        fuses_memory: whether compares with a memory operand macro-fuse, if they have no immediate; fuses_nops: whether
            a nop of a loop takes nothing behind an instruction that is not fused otherwise.
    """

    issue_width: Annotated[int, _ISSUE]
    decoders: Annotated[int, Figure("decoded instructions per cycle", _WIDTH)]
    op_cache_entries: Annotated[int, Figure("op cache entries", Integer(1, 1_000_000))]
    op_cache_of_macro_ops: Annotated[bool, Figure("op cache holds macro-ops", _FLAG)]
    op_cache_width: Annotated[int | None, Figure("op cache width", _WIDTH)] = None
    fetch_bytes: Annotated[int | None, Figure("fetched bytes per cycle", Integer(1, 1024))] = None
    issue_instructions: Annotated[int | None, Figure("issued instructions per cycle", _WIDTH)] = None
    whole_instructions: Annotated[bool, Figure("instructions dispatched whole", _FLAG)] = False
    code_line_bytes: Annotated[int | None, Figure("code line bytes", _BLOCK)] = None
    constants: Annotated[tuple[int, ...], Figure("constants delivered", Counts())] = ()
    long_constants: Annotated[tuple[int, ...], Figure("long constants delivered", Counts())] = ()
    constants_dispatched: Annotated[int | None, Figure("constants dispatched per cycle", _WIDTH)] = None
    extra_slots: Annotated[tuple[str, ...], Figure("extra dispatch slots", Words(_EXTRA_SLOTS))] = ()
    fuses_memory: Annotated[bool, Figure("fusion with memory operands", _FLAG)] = True
    fuses_nops: Annotated[bool, Figure("fusion of nops", _FLAG)] = False

    @property
    def fusible_last(self) -> bool:
        """As in `FrontEndParameters`."""
        return True


@dataclass(frozen=True, slots=True)
class ZenMemoryParameters:
    """The pipes of loads and stores behind a front end of the kind `zen-op-cache`.

    Attributes:
        address_ports, load_ports, store_ports: groups of address generators, load pipes and store pipes.
        value_ports: groups of ports that bring vectors to the store pipes.
        most_loads: loads that are dispatched in a cycle at most, by the group of load pipes that alone execute them;
            most_accesses: addresses of loads and stores, 0 for any number, with load_starts only;
            accesses_together: the accesses that a cycle might dispatch wait as a whole where one of them finds no room;
            loads_in_a_row: cycles in a row that dispatch the most loads of the first group, after which each dispatches
            one fewer until its slots hold just so many; 0 where that is not known.
        passed_bytes: size of the vectors that take two passes through a pipe.
        load_starts: for each group of load pipes the address generators that start its loads; without them any does. A
            load is one µop there, of as many cycles as it takes passes, and a cycle's dispatch gives each generator one
            access, as long as there are others.
    """

    address_ports: Annotated[tuple[tuple[str, ...], ...], Figure("address ports", PortGroups())]
    load_ports: Annotated[tuple[tuple[str, ...], ...], Figure("load pipes", PortGroups())]
    store_ports: Annotated[tuple[tuple[str, ...], ...], Figure("store pipes", PortGroups())]
    value_ports: Annotated[tuple[tuple[str, ...], ...], Figure("stored vector ports", PortGroups())]
    most_loads: Annotated[tuple[int, ...], Figure("loads dispatched per cycle", Counts())] = ()
    most_accesses: Annotated[int, Figure("accesses dispatched per cycle", _WIDTH)] = 0
    accesses_together: Annotated[bool, Figure("accesses wait for room together", _FLAG)] = False
    loads_in_a_row: Annotated[int, Figure("cycles of most loads in a row", _WIDTH)] = 0
    passed_bytes: Annotated[int | None, Figure("vector bytes of two passes", PowerOfTwo(4096))] = None
    load_starts: Annotated[tuple[tuple[str, ...], ...], Figure("address ports of load pipes", PortGroups())] = ()


@dataclass(frozen=True, slots=True)
class ForwardingParameters:
    """Cycles from stored to loaded data behind a front end of the kind `zen-op-cache`; those that are not known are as
    `Parameters.store_forward_latency`.

    Attributes:
        general: between general-purpose registers; to_vector, to_general: from one kind of register to the other.
        partial: where the load needs more bytes than the store wrote; partial_vector: the same into vectors.
        renamed_load: cycles of a load of at least renamed_bytes that memory renaming serves; without it there is none.
    """

    general: Annotated[float | None, Figure("general-purpose store forward latency", _TIME)] = None
    to_vector: Annotated[float | None, Figure("store forward latency to vectors", _TIME)] = None
    to_general: Annotated[float | None, Figure("store forward latency from vectors", _TIME)] = None
    partial: Annotated[float | None, Figure("partial store forward latency", _TIME)] = None
    partial_vector: Annotated[float | None, Figure("partial store forward latency to vectors", _TIME)] = None
    renamed_load: Annotated[float | None, Figure("renamed load latency", _TIME)] = None
    renamed_bytes: Annotated[int, Figure("renamed load bytes", PowerOfTwo(4096))] = 1


@dataclass(frozen=True, slots=True)
class VectorPathParameters:
    """Paths of operands and results that floating-point pipes share.

    Attributes:
        third_paths: pairs of ports, of which the first one's µops get the third vector that they read over the operand
            path of the second one; one_store: of all the latter one µop starts in a cycle, the oldest,
            that stores or gives its result over the path of this port, "" where they are not kept apart;
            loaded_third_waits: a third vector that is loaded never comes straight;
            straight_stores: a stored vector that does needs no path;
            straight_cycles: from when a third vector is there, it comes straight for so many cycles.
        result_paths: ports, and behind them one over whose path a µop that may go to any of them gives its result, and
            which starts nothing meanwhile, in instructions that take both.
    """

    third_paths: Annotated[tuple[tuple[str, ...], ...], Figure("paths of third vectors", PortGroups())] = ()
    one_store: Annotated[str, Figure("one stored vector per cycle", Port())] = ""
    loaded_third_waits: Annotated[bool, Figure("loaded third vectors take their path", _FLAG)] = False
    straight_stores: Annotated[bool, Figure("computed stored vectors come straight", _FLAG)] = False
    straight_cycles: Annotated[int, Figure("cycles in which third vectors come straight", Integer(1, 8))] = 1
    result_paths: Annotated[tuple[tuple[str, ...], ...], Figure("paths of results", PortGroups())] = ()


@dataclass(frozen=True, slots=True)
class LineParameters:
    """What accesses take longer by where they lie in cache lines.

    Attributes:
        line_bytes: loads and stores that cross its multiples keep their pipe a cycle longer, and so do stores of 256
            bits that cross those of store_block_bytes; None where nothing of that is known.
        whole_lines, half_lines, halves_together, whole_across, half_across, in_turn, evictions: loads of lines and of
            half lines, how lines are crossed, and what lines take that are written back, as in `line_splits.Lines`.
    """

    line_bytes: Annotated[int | None, Figure("line bytes of loads and stores", PowerOfTwo(4096))] = None
    store_block_bytes: Annotated[int | None, Figure("block bytes of 256-bit stores", PowerOfTwo(4096))] = None
    whole_lines: Annotated[int, Figure("512-bit loads of which one takes longer", PowerOfTwo(64))] = 0
    half_lines: Annotated[int, Figure("256-bit loads of which one takes longer", PowerOfTwo(64))] = 0
    halves_together: Annotated[int, Figure("256-bit loads that start together", Integer(0, 64))] = 0
    whole_across: Annotated[tuple[int, ...], Figure("512-bit loads across lines that take longer", Counts())] = ()
    half_across: Annotated[tuple[int, ...], Figure("256-bit loads across lines that take longer", Counts())] = ()
    in_turn: Annotated[bool, Figure("loads across lines keep their pipe", _FLAG)] = False
    evictions: Annotated[int, Figure("loads kept by a line written back", Integer(0, 64))] = 0


@dataclass(frozen=True, slots=True)
class InterleavingParameters:
    """How the µops of queued ports get one of two schedulers with alike ports (`engine.sides`); all are given, or none.

    Attributes:
        pairs: of alike ports, the first of each of one scheduler, the second of the other.
        gaps: by how many more µops that wait for a port it is avoided for its counterpart, and for another one of its
            scheduler.
        fills: µops that wait, from which on slots do not tell the scheduler; those of a scheduler, from which on ports
            for which too many wait there are avoided.
        delays: cycles after which is known what entered, for whether slots tell the scheduler and for what is chosen,
            and what left; cycles through the queue where slots do not tell it.
    """

    pairs: Annotated[tuple[tuple[str, ...], ...], Figure("interleaved ports", PortGroups())] = ()
    gaps: Annotated[tuple[int, ...], Figure("interleaving gaps", Counts())] = ()
    fills: Annotated[tuple[int, ...], Figure("interleaving fills", Counts())] = ()
    delays: Annotated[tuple[int, ...], Figure("interleaving delays", Counts())] = ()


@dataclass(frozen=True, slots=True)
class ZenPipelineParameters:
    """What is behind a front end of the kind `zen-op-cache`, for the simulation.

    Attributes:
        memory, forwarding, paths, lines: its pipes of loads and stores, and what they and vectors take longer by.
        queue: entries of the queue between op cache or decoders and dispatch, queue_lines: lines of code of which it
            holds what is left, those of each pass for themselves; None where not known.
        schedulers: ports of each, scheduler_entries: entries of each that can be filled.
        interleaving: how µops get one of two schedulers with alike ports.
        together: ports whose µops of a cycle are assigned to schedulers together, each to another one; beside: the port
            whose scheduler may get two of a cycle, empty for none; seen_after: cycles after which dispatch knows what
            entered and left these schedulers.
        queued: ports whose µops wait in a queue of `queue_entries` until a scheduler has a place.
        vector_registers: that instructions in flight can have, 0 where not known; register_release: cycles from the
            retirement of an instruction until its register can be given again.
        one_result: ports that give one result a cycle: that of a µop that would come in the same cycle as an earlier
            one's comes later.
        result_port: the one of them where such a µop waits before it starts, so that younger ones may pass it;
            result_passes: how many that take longer may start there in a row while it waits.
        narrow: ports of which a cycle assigns two µops at most that only they execute; operations_together: whether
            nothing is dispatched in a cycle whose µops do not all find room, or a register for what they write.
        fused_ports: that macro-fused pairs go to which write a register; without them those of their first instruction.
    """

    memory: ZenMemoryParameters
    forwarding: ForwardingParameters
    paths: VectorPathParameters
    lines: LineParameters
    interleaving: InterleavingParameters
    retire_width: Annotated[int, _RETIRE]
    reorder_buffer: Annotated[int, _ROB]
    schedulers: Annotated[tuple[tuple[str, ...], ...], Figure("scheduler ports", PortGroups())]
    scheduler_entries: Annotated[tuple[int, ...], Figure("scheduler entries", Counts(UOPS_OF_A_SLOT))]
    queue: Annotated[int | None, Figure("op queue entries", _ENTRIES)] = None
    queue_lines: Annotated[int | None, Figure("op queue lines", _WIDTH)] = None
    queued: Annotated[tuple[str, ...], Figure("queued ports", Ports())] = ()
    queue_entries: Annotated[int, Figure("non-scheduling queue entries", Integer(UOPS_OF_A_SLOT, 10_000))] = 0
    vector_registers: Annotated[int, Figure("vector registers in flight", _ENTRIES)] = 0
    register_release: Annotated[int, Figure("register release cycles", Integer(1, 31))] = 1
    one_result: Annotated[tuple[str, ...], Figure("ports of one result per cycle", Ports())] = ()
    result_port: Annotated[str, Figure("port that waits for its result", Port())] = ""
    result_passes: Annotated[int, Figure("starts past what waits for its result", Integer(1, 15))] = 5
    fused_ports: Annotated[tuple[str, ...], Figure("ports of fused pairs", Ports())] = ()
    together: Annotated[tuple[str, ...], Figure("ports assigned together", Ports())] = ()
    beside: Annotated[str, Figure("port of a fifth operation", Port())] = ""
    narrow: Annotated[tuple[str, ...], Figure("ports of two operations per cycle", Ports())] = ()
    operations_together: Annotated[bool, Figure("operations wait for room together", _FLAG)] = False
    seen_after: Annotated[int, Figure("cycles until entries are seen", Integer(1, 7))] = 3


@dataclass(frozen=True, slots=True)
class DecoderParameters:
    """A front end of the kind `decoders`.

    Attributes:
        issue_width: µops dispatched per cycle.
        decoders: instructions decoded per cycle; all decoders are alike.
    """

    issue_width: Annotated[int, _ISSUE]
    decoders: Annotated[int, Figure("decoded instructions per cycle", _WIDTH)]

    @property
    def as_op_cache(self) -> OpCacheParameters:
        """The same as a front end whose op cache holds nothing."""
        return OpCacheParameters(self.issue_width, self.decoders, op_cache_entries=0, op_cache_of_macro_ops=False)


@dataclass(frozen=True, slots=True)
class WindowParameters:
    """What is behind a front end of the kind `decoders`, for the simulation: how far execution runs ahead.

    What is not known limits nothing.

    Attributes:
        access_ports: groups of ports that take loads and the addresses of stores.
        store_data_ports: groups of ports that take what is stored.
        schedulers: ports of each, scheduler_entries: entries of each.
    """

    reorder_buffer: Annotated[int, _ROB]
    access_ports: Annotated[tuple[tuple[str, ...], ...], Figure("load ports", PortGroups())]
    store_data_ports: Annotated[tuple[tuple[str, ...], ...], Figure("store data ports", PortGroups())] = ()
    retire_width: Annotated[int | None, _RETIRE] = None
    schedulers: Annotated[tuple[tuple[str, ...], ...], Figure("scheduler ports", PortGroups())] = ()
    scheduler_entries: Annotated[tuple[int, ...], Figure("scheduler entries", Counts(UOPS_OF_A_SLOT))] = ()


@dataclass(frozen=True, slots=True)
class Parameters:
    """Parameters of a microarchitecture, from `data/<NAME>.yml`.

    Attributes:
        name: "SKL"; title: "Intel Skylake"; isa.
        ports: execution ports and pipelines in the order of display ("0", "0DV", "1", …, "2", "2D", …).
        load_latency: L1 hit latency of a general-purpose load; store_forward_latency: from a store's data to the result
            of a load that reads it (vector stores add what their row says).
        issue_width: fused-domain µops (Zen: macro-ops) issued per cycle.
        table: file name of the instruction table; aliases: other names.
        vector_bits: lengths of vectors that can be chosen; where there are several, `isa` is of none until one is, and
            `widest_isa` that of the longest.
        sources: source of each figure by key.
        front_end: its front end, None for the kind `none`; pipeline: what is behind it.
        misprediction: cycles of a mispredicted branch; foreseen_passes: passes of a loop, the same number each time, up
            to which the branch predictor is known to foresee its exit; mispredicted_passes: from which on it is known
            not to.
        closed_by_widest: the port that instructions on the widest vectors take from vector µops while in flight.
        fused_with_jumps: mnemonics that macro-fuse with any conditional jump, for cores whose table has no front-end
            column.
    """

    name: str
    title: str
    isa: str
    ports: tuple[str, ...]
    load_latency: Annotated[float, Figure("load latency", _TIME)]
    store_forward_latency: Annotated[float, Figure("store forward latency", _TIME)]
    issue_width: Annotated[int, _ISSUE]
    table: str
    aliases: tuple[str, ...]
    sources: Mapping[str, str]
    vector_bits: tuple[str, ...] = ()
    widest_isa: str = ""
    front_end: FrontEndParameters | OpCacheParameters | DecoderParameters | None = None
    pipeline: PipelineParameters | ZenPipelineParameters | WindowParameters | None = None
    misprediction: Annotated[float | None, Figure("branch misprediction", _TIME)] = None
    foreseen_passes: Annotated[int, Figure("foreseen loop passes", _DELAY)] = 0
    mispredicted_passes: Annotated[int | None, Figure("mispredicted loop passes", _PASSES)] = None
    closed_by_widest: Annotated[str | None, Figure("port closed by widest vectors", Port())] = None
    fused_with_jumps: Annotated[tuple[str, ...], Figure("fused with conditional jumps", _FUSIBLE)] = ()
    loads: LoadParameters = field(default_factory=LoadParameters)
    registers: RegisterParameters = field(default_factory=RegisterParameters)
    adders: AdderParameters = field(default_factory=AdderParameters)
    misses: MissParameters = field(default_factory=MissParameters)
    recorded: RecordedParameters = field(default_factory=RecordedParameters)


MECHANISMS: Mapping[str, type] = {
    "loads": LoadParameters,
    "registers": RegisterParameters,
    "adders": AdderParameters,
    "misses": MissParameters,
    "recorded": RecordedParameters,
}
"""The groups of figures that any core may have, by attribute of `Parameters`."""

FRONT_ENDS: Mapping[FrontEndKind, Mapping[str, type]] = {
    "intel-uop-cache": {
        "front_end": FrontEndParameters,
        "pipeline": PipelineParameters,
        "pipeline.delivery": DeliveryParameters,
        "pipeline.memory": MemoryParameters,
    },
    "zen-op-cache": {
        "front_end": OpCacheParameters,
        "pipeline": ZenPipelineParameters,
        "pipeline.memory": ZenMemoryParameters,
        "pipeline.forwarding": ForwardingParameters,
        "pipeline.paths": VectorPathParameters,
        "pipeline.interleaving": InterleavingParameters,
        "pipeline.lines": LineParameters,
    },
    "decoders": {"front_end": DecoderParameters, "pipeline": WindowParameters},
    "none": {},
}
"""By kind of front end, the groups of figures that its cores have besides: an attribute of `Parameters`, or, behind a
point, of a group that stands before."""

FRONT_END_KIND = Choice(tuple(FRONT_ENDS))


_PSEUDO = ("DV", "D")
"""Endings of the names of what stands beside a port: its divider, its load data path."""


def execution_ports(ports: Iterable[str]) -> tuple[str, ...]:
    """The ports that take µops, without what stands beside them: dividers and load data paths."""
    return tuple(port for port in ports if not (len(port) > 1 and port.endswith(_PSEUDO)))


def with_dividers(ports: Iterable[str]) -> tuple[str, ...]:
    """Ports, and the dividers that belong to them where those are not named."""
    named = tuple(ports)
    return named + tuple(
        port + _PSEUDO[0] for port in named if not port.endswith(_PSEUDO) and port + _PSEUDO[0] not in named
    )


def front_end_kind(parameters: Parameters) -> FrontEndKind:
    """The kind of front end that the parameters have."""
    if isinstance(parameters.front_end, FrontEndParameters):
        return "intel-uop-cache"
    if isinstance(parameters.front_end, DecoderParameters):
        return "decoders"
    return "none" if parameters.front_end is None else "zen-op-cache"


class Declared(NamedTuple):
    """A figure of a group: the attribute that holds it, its declaration, and whether a file must have it."""

    attribute: str
    figure: Figure
    required: bool


@cache
def declared(group: type) -> tuple[Declared, ...]:
    """The figures that a class declares, in order."""
    own = fields(group) if is_dataclass(group) else ()
    defaults = getattr(group, "_field_defaults", None) or {f.name for f in own if f.default is not MISSING}
    return tuple(
        Declared(name, figure, name not in defaults)
        for name, annotation in group.__annotations__.items()
        for figure in get_args(annotation)[1:]
        if isinstance(figure, Figure)
    )


def front_end_parameters(parameters: Parameters) -> FrontEndParameters | None:
    """The front end of a core of the kind `intel-uop-cache`, None for others."""
    return parameters.front_end if isinstance(parameters.front_end, FrontEndParameters) else None


def op_cache_parameters(parameters: Parameters) -> OpCacheParameters | None:
    """The front end of a core of the kind `zen-op-cache`, or `decoders` as one without op cache; None for others."""
    front = parameters.front_end
    if isinstance(front, DecoderParameters):
        return front.as_op_cache
    return front if isinstance(front, OpCacheParameters) else None
