"""Values of the pipeline simulation: what a core's pipeline can do, a block as it sees it, and what comes out.

Times are core cycles; a *pass* is one execution of the block.
"""

from __future__ import annotations

from typing import Literal

from kernmodel.incore.dependences.data_flow import DataFlowFigures
from kernmodel.incore.dependences.line_splits import Lines
from kernmodel.incore.engine.layout import FetchUnit
from kernmodel.incore.tables.core_parameters import PORT_CHOICES
from kernmodel.value_types import NamedTuple, dataclass

Memory = Literal["moving", "different", "stack", "none"]
"""Which loads take their data from a store of the block: wherever address arithmetic proves that they overlap
("moving"); only where the registers of both addresses hold the same values ("different", uiCA's policy "all addresses
different"); the same with all registers but rsp and rbp equal at the start ("stack", Facile's); nowhere ("none")."""

Role = Literal["load", "load address", "compute", "store address", "store data", "move", "value", "synchronise"]
"""What a µop does. Where address generators are told from load pipes, a load is two, "load address" and "load". A
"move" was eliminated at rename; a "value" only joins what others compute (zero idioms too); both need no port.
"synchronise" brings rsp up to date with the stack engine."""

Source = Literal["ideal", "LSD", "DSB", "decoders"]
"""Where the µops come from: without limit; the loop buffer; the µop cache, up to the first unit that it cannot hold;
the decoders."""


ANY_NUMBER = 1 << 16
"""More than an issue group holds."""


@dataclass(frozen=True, slots=True)
class Switches:
    """Mechanisms that can be idealised one by one, to see what each is worth. All on is the core as it is.

    Attributes:
        front_end: µops come as slowly as predecoder, decoders, DSB and LSD deliver them; else the renamer always finds
            some.
        group_boundary: the LSD ends an issue group at the end of its round, the DSB its fetch behind a branch.
        partial_erratum: lines of code that the DSB holds come from there though others do not; else all is decoded.
        issue_ports: a µop gets its port when it issues, by the renamer's counters; else it takes a free one once ready.
        buffers: scheduler and reorder buffer are finite.
        retirement: the retire width is finite.
        dividers: the divider is busy for as long as its instructions say.
        data_paths: wide loads and stores occupy their data path for two cycles where the core moves halves.
        synchronisation: the stack engine inserts µops.
        pointer_chasing: an address that comes straight from a load is there a cycle earlier, on cores that can.
        elimination: moves are done at rename.
        one_at_a_time: locked and microcoded instructions of measured throughput keep each other waiting.
        blocked_loads: loads that need more bytes than an earlier store of the block wrote wait until it is done.
        memory: policy of store-to-load forwarding.
        store_address: a load that is forwarded also waits for the address of the store.
    """

    front_end: bool = True
    group_boundary: bool = True
    partial_erratum: bool = True
    issue_ports: bool = True
    buffers: bool = True
    retirement: bool = True
    dividers: bool = True
    data_paths: bool = True
    synchronisation: bool = True
    pointer_chasing: bool = True
    elimination: bool = True
    one_at_a_time: bool = True
    blocked_loads: bool = True
    memory: Memory = "moving"
    store_address: bool = True


@dataclass(frozen=True, slots=True)
class Forwards:
    """Cycles from stored data to a load that reads them, beyond what the row of the store says.

    Attributes:
        general, vector: between registers of a kind; to_vector, to_general: from one kind to the other.
        partial, partial_vector: where the load needs bytes that the store did not write, of general-purpose registers
            and of vectors.
        renamed: where the core renames memory, for a plain load of what a general-purpose register held; an instruction
            that loads, changes and stores it again gets it at once. None where it does not. renamed_bytes: of the
            smallest load that this serves.
    """

    general: int
    vector: int
    to_vector: int
    to_general: int
    partial: int
    partial_vector: int
    renamed: int | None
    renamed_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """How µops come to the renamer.

    Attributes:
        idq: entries of the instruction decode queue.
        decoders: number of decoders; iq: entries of the instruction queue; predecode_width: instructions per cycle.
        dsb_width: µops per cycle from the DSB; dsb_lines: of its lines that are read in a cycle; dsb_ends: whether
            nothing more of the same block is read behind a branch.
        fusible_last: whether the last decoder takes macro-fusible instructions, and whether these need not wait for the
            instruction behind them.
        microcode_switch: cycles between DSB and microcode sequencer, each way; microcode_exit: from the sequencer back
            to the decoders; microcode_width: its µops per cycle.
        predecode_delay: cycles from the predecoder to the decoders.
        dsb_line_uops: places of a DSB line; dsb_block_lines: lines that the DSB has for one aligned block of code.
        taken_branches: taken branches per cycle of the fetch from the DSB.
        queued_lines: lines of code of which the queue holds what is left, 0 for any number.
        constants, long_constants: by the number of µops that the op cache delivers in a cycle, the most constants of
            theirs (`front_end.model.Unit`), none where any number may come.
        constants_dispatched: that the renamer takes in a cycle, 0 for any number.
    """

    idq: int
    decoders: int
    dsb_width: int = 0
    dsb_lines: int = 0
    dsb_ends: bool = False
    iq: int = 0
    predecode_width: int = 0
    fusible_last: bool = True
    microcode_switch: int = 0
    microcode_exit: int = 0
    microcode_width: int = 0
    predecode_delay: int = 0
    dsb_line_uops: int = 0
    dsb_block_lines: int = 0
    taken_branches: int = 1
    queued_lines: int = 0
    constants: tuple[int, ...] = ()
    long_constants: tuple[int, ...] = ()
    constants_dispatched: int = 0


@dataclass(frozen=True, slots=True)
class Interleaving:
    """How the µops of alike ports of two schedulers get one of these (`engine.sides`).

    Attributes:
        pairs: of ports, the first of each of one scheduler, the second of the other.
        pair_gap, turn_gap: by how many more µops that wait for a port it is avoided for its counterpart, and for
            another one of its scheduler.
        most_by_slot: µops that wait, from which on slots do not tell the scheduler any more; heavy_side: those of a
            scheduler from which on ports for which too many wait there are avoided.
        mode_delay, choice_delay, left_delay: cycles after which is known what entered, for whether slots tell the
            scheduler and for what is chosen, and what left.
        queue_passage: cycles through the queue where slots do not tell the scheduler.
    """

    pairs: tuple[tuple[str, ...], ...]
    pair_gap: int
    turn_gap: int
    most_by_slot: int
    heavy_side: int
    mode_delay: int
    choice_delay: int
    left_delay: int
    queue_passage: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PortSchedulers:
    """Schedulers that belong to ports; ports that are in none take their µops from the load and store queues.

    Attributes:
        schedulers: ports and entries of each; given: whether µops get one of these ports before they start. Where no
            source tells by what rule, they do not: a rule that is made up would make loops slower than their bounds.
        interleaving: of ports behind the queue, None where each µop of it gets the port for which fewest wait.
        together: ports whose µops of a cycle are assigned to schedulers together; beside: the one of them whose
            scheduler may get two of a cycle, empty for none; narrow: those of which a cycle assigns two µops at most
            that only they execute; operations_together: whether nothing is dispatched in a cycle whose µops do not
            all find room, and registers; seen_after: cycles after which dispatch knows what entered and left these.
        queued: ports whose µops wait in a queue of `queue_entries` before the schedulers.
        vector_registers: that instructions in flight can have, 0 for any number; register_release: cycles from the
            retirement of an instruction until its register can be given again; two_registers_bytes: size of the vectors
            that take two, None for none.
        third_paths: ports, each with the one whose operand path brings the third vector that a µop reads;
            one_store: of all of the latter together one µop starts in a cycle, the oldest, that stores or gives its
            result over the path of this port; "" where they are not kept apart;
            loaded_third_waits: whether one that is loaded needs the path too when it comes straight from the load;
            straight_stores: whether a stored vector needs no path when it comes straight from what computes it;
            straight_cycles: for how many cycles, the first being that in which it is there, a third vector does.
        one_result: ports that give one result a cycle, for which a later one waits; result_port: the one of them where
            the µop waits before it starts, and younger ones pass it, `result_passes` in a row; empty for none.
        most_loads: loads that are dispatched in a cycle at most, for each of `MemoryPipes.load_ports` those that it
            alone executes; most_accesses: of all accesses, 0 for any number; accesses_together: whether nothing is
            dispatched in a cycle whose accesses do not all find room; loads_in_a_row: cycles in a row that dispatch the
            most loads of the first of these groups, after which each dispatches one fewer until its slots hold just
            so many.
    """

    schedulers: tuple[tuple[tuple[str, ...], int], ...]
    queued: tuple[str, ...]
    queue_entries: int
    given: bool = True
    interleaving: Interleaving | None = None
    together: tuple[str, ...] = ()
    beside: str = ""
    narrow: tuple[str, ...] = ()
    operations_together: bool = False
    seen_after: int = 0
    vector_registers: int = 0
    register_release: int = 0
    two_registers_bytes: int | None = None
    third_paths: tuple[tuple[str, ...], ...] = ()
    one_store: str = ""
    loaded_third_waits: bool = False
    straight_stores: bool = False
    straight_cycles: int = 1
    one_result: tuple[str, ...] = ()
    result_port: str = ""
    result_passes: int = 0
    most_loads: tuple[int, ...] = ()
    most_accesses: int = 0
    accesses_together: bool = False
    loads_in_a_row: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPipes:
    """How loads and stores are executed.

    Attributes:
        load_latency: of a general-purpose load.
        forward_latency: from the dispatch of the store data to the data of a forwarded load.
        load_ports, store_address_ports, store_data_ports: the port sets by which these µops are told from those that
            compute; on load ports those that no load data path goes with are store addresses.
        forward_address: further cycles from the dispatch of the store address.
        forward_by_table: whether instead forwarded data are there as soon after what is stored as the store's row says:
            cores that rename memory wait for no store (figure `store forward latency` 0).
        blocked_load: cycles from one load whose bytes cannot be forwarded to the next.
        pointer_saving: cycles saved where an address comes straight from a load; pointer_reach: largest displacement.
        halved_bytes: size of accesses that move in two cycles.
        address_ports: of address generators; `load_ports` are then load pipes and `store_data_ports` store pipes.
        value_ports: that bring what a vector store stores to the store pipes.
        passed_bytes: size of the vectors that go through a pipe in two passes, None for none.
        load_starts: for each of `load_ports` the address generators that start its loads, empty where any does.
        forwards: of stores to loads.
        lines: what accesses take longer to cross, None where nothing of that is known.
        bank_bytes: of the banks of the L1 cache, each of which two loads may read in a cycle, 0 for any number.
        placed: whether it matters to loads, or to pairs of stores, where in a line they are.
    """

    load_latency: int
    forward_latency: int
    load_ports: tuple[frozenset[str], ...]
    store_data_ports: tuple[frozenset[str], ...]
    store_address_ports: tuple[frozenset[str], ...] = ()
    forward_address: int = 0
    forward_by_table: bool = False
    blocked_load: int = 0
    pointer_saving: int = 0
    pointer_reach: int | None = None
    halved_bytes: int | None = None
    address_ports: tuple[frozenset[str], ...] = ()
    value_ports: tuple[frozenset[str], ...] = ()
    passed_bytes: int | None = None
    load_starts: tuple[frozenset[str], ...] = ()
    forwards: Forwards | None = None
    lines: Lines | None = None
    bank_bytes: int = 0
    placed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineCore:
    """What the pipeline behind the fetch can do.

    Attributes:
        ports: execution ports in ascending order; the renamer prefers the higher of two that are equally used.
        issue_width, retire_width: fused-domain µops per cycle.
        reorder_buffer: entries, fused domain; scheduler: entries, unfused.
        dispatch_delay: cycles from issue to the first possible dispatch.
        delivery: of µops to the renamer; memory: loads and stores.
        counter_gap: difference of two ports' counters from which on the renamer takes no second choice;
            port_choice: which port that is, one of `PORT_CHOICES`.
        alternating: port sets whose µops alternate between the ports instead.
        unlaminated_slots: unlaminated µops that an issue group takes, unlaminated_first: the number of its first queue
            entries that they must be among.
        load_scheduler, store_scheduler: entries for loads and for stores where these have schedulers of their own; 0
            where they share the one of all others.
        by_port: the schedulers of cores on which they belong to ports, None on others.
        synchronise_ports, synchronise_latency: of the stack engine's µop.
        extra_slots: what takes a slot more at dispatch than rows say, whole_instructions: whether the slots of an
            instruction are dispatched in one cycle, as in `OpCacheParameters`.
        fused_ports: that macro-fused pairs go to which write a register, none for those of their first instruction.
        result_paths: ports, and behind them one over whose path a µop that may go to any of them gives its result where
            a row names it, too; over all of them that it names.
        flows: what the data flow of its instructions depends on.
    """

    ports: tuple[str, ...]
    issue_width: int
    retire_width: int
    reorder_buffer: int
    scheduler: int
    dispatch_delay: int
    delivery: Delivery
    memory: MemoryPipes
    counter_gap: int = 0
    port_choice: str = PORT_CHOICES[0]
    alternating: tuple[tuple[str, ...], ...] = ()
    unlaminated_slots: int = ANY_NUMBER
    unlaminated_first: int = ANY_NUMBER
    load_scheduler: int = 0
    store_scheduler: int = 0
    by_port: PortSchedulers | None = None
    synchronise_ports: tuple[str, ...] = ()
    synchronise_latency: int = 0
    extra_slots: tuple[str, ...] = ()
    whole_instructions: bool = False
    fused_ports: tuple[str, ...] = ()
    result_paths: tuple[tuple[str, ...], ...] = ()
    flows: DataFlowFigures | None = None

    @property
    def gives_ports(self) -> bool:
        """Whether µops get their ports when they issue; where all ports share a scheduler, they need none before they
        start."""
        return self.by_port is None or (self.by_port.given and len(self.by_port.schedulers) > 1)


@dataclass(frozen=True, slots=True)
class Fetch:
    """How the µops of a block reach the queue.

    Attributes:
        source: where they come from first.
        units: in order.
        copies: of the loop in the LSD.
        barred_from: first unit that the DSB cannot hold; from there to the end of the pass the decoders serve (0 for
            unrolled code, the number of units where the DSB holds all).
        repeats: whether the decoders go on with the next pass without the DSB in between.
        schedule: units that leave the predecoder, cycle by cycle, over and over (or once per pass from `barred_from`).
    """

    source: Source
    units: tuple[FetchUnit, ...]
    copies: int
    barred_from: int
    repeats: bool
    schedule: tuple[int, ...]


STEADY_SHARE = 100
"""Times are equal that differ by no more than one in so many."""


def is_at(floor: float, cycles: float) -> bool:
    """Whether a time is that of the floor, to one percent."""
    return abs(cycles - floor) <= floor / STEADY_SHARE


class Limits(NamedTuple):
    """How long a block is simulated whose state does not repeat.

    Attributes:
        most_cycles: then it ends, and the mean of the second half of them is taken.
        least_passes: but not before so many passes have retired.
        steady_cycles: then it ends where the passes of the second and the last third took equally long, to one percent;
            their mean is taken. Not before two reorder buffers of slots have retired: empty ones let µops through
            faster.
        floor_cycles: the same where these passes take as long as the slowest part of the core, to one percent: they
            cannot become faster. Not before one reorder buffer of slots has retired.
        again_cycles: then it is asked once more whether they took equally long, 0 for not.
    """

    most_cycles: int = 1500
    least_passes: int = 8
    steady_cycles: int = 400
    floor_cycles: int = 120
    again_cycles: int = 0

    @property
    def by_port(self) -> Limits:
        """Those of cores with schedulers of their own for ports (Zen): shorter by a fifth, and asked once more after
        twice the steady cycles.

        Many counters take turns there and seldom meet again, and six µops a cycle take longer to simulate. On 1,430
        loops for Zen 4 that makes 435 cycles of 531; the predictions are 0.22 % from those of 20,000 cycles, with the
        limits of the others 0.18 %, and as far from what was measured (2.55 %).
        """
        return self._replace(most_cycles=self.most_cycles * 4 // 5, again_cycles=2 * self.steady_cycles)


LIMITS = Limits()
