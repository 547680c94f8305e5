"""The bound of each part of a core on the time of a block, and the simulation that closes what they leave open.

After Facile (Abel, Sharma, Reineke, IISWC 2023), equations 1 to 3: the time is that of the slowest part. Which parts of
the front end a block meets is what the fetch of the pipeline simulation says, which knows more reasons for code to miss
the µop cache and the loop buffer. Of AMD's Zen cores, which have no simulation, the widths of fetch, decoders, op cache
and dispatch are known; of a core without figures of the front end, ports, dependencies and the µops renamed per cycle.

Times are cycles per pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from kernmodel.incore.dependences.adders import Adding
from kernmodel.incore.dependences.addresses import MemoryPolicy
from kernmodel.incore.dependences.cycles import Cycle, maximum_cycle_ratio
from kernmodel.incore.dependences.data_flow import DataFlow, Syntax, data_flow
from kernmodel.incore.dependences.graph import (
    Graph,
    GraphFigures,
    graph_figures,
    graph_of,
    is_eliminated_move,
    is_idiom,
)
from kernmodel.incore.dependences.line_splits import with_splits
from kernmodel.incore.engine.figures import pipeline_core
from kernmodel.incore.engine.linking import PartsCache, pipeline_input
from kernmodel.incore.engine.model import Entry, Fetch, PipelineCore, PipelineInput, Simulated, Switches
from kernmodel.incore.engine.ports import optimal_bound
from kernmodel.incore.engine.simulate import simulate
from kernmodel.incore.engine.uops import Parts
from kernmodel.incore.front_end.block import front_end_block
from kernmodel.incore.front_end.decode import decode_bound
from kernmodel.incore.front_end.dsb import dsb_bound, erratum_branches
from kernmodel.incore.front_end.figures import front_end_parameters, op_cache_parameters
from kernmodel.incore.front_end.fusion import fuses_at, units_at
from kernmodel.incore.front_end.lsd import lsd_bound
from kernmodel.incore.front_end.mixed import mixed_bound
from kernmodel.incore.front_end.model import FrontEndBlock, Path, Unit
from kernmodel.incore.front_end.op_cache import (
    dispatch_bound,
    fetch_bound,
    op_cache_block,
    op_cache_bound,
    op_cache_path,
)
from kernmodel.incore.front_end.predecode import predecode_bound
from kernmodel.incore.model import InstructionData, Notion, Parameters, PortUse
from kernmodel.incore.tables.core_parameters import FrontEndParameters, OpCacheParameters
from kernmodel.isa.model import Instruction

PREDECODE, DECODE, DSB, LSD, ISSUE = "predecode", "decode", "DSB", "LSD", "issue"
PORTS, DIVIDER, PRECEDENCE, PIPELINE = "ports", "divider", "precedence", "pipeline"
FRONT_END = (PREDECODE, DECODE, DSB, LSD, ISSUE)
FRONT_TO_BACK = (*FRONT_END, PORTS, DIVIDER, PRECEDENCE, PIPELINE)
"""All components in the order in which a µop meets them."""

WIDEST = 64
_DIVIDER = "DV"
TINY = 1e-9
_MEMORY = "memory"

Rows = Sequence[InstructionData | None]
Uses = tuple[tuple[PortUse, ...], ...]


class Table(Protocol):
    """What the analysis asks of an instruction table."""

    def lookup(self, instruction: Instruction) -> InstructionData | None:
        """The row for the instruction, None if there is none."""


@dataclass(frozen=True, slots=True)
class CoreModel:
    """What the analysis of blocks depends on beside the instruction table, made once per core.

    Attributes:
        parameters: of the core.
        front, pipeline: its front end and pipeline; None where the parameters have no figures of them.
        graph: of its dependencies.
        switches: what is idealised, and the memory policy.
        closed: the port that 512-bit registers close, None if they close none.
        fusing: mnemonics that fuse with jumps on cores whose tables list no pairs.
        splits: cycles of loads across cache lines by their bytes, where they take longer than others.
        op_cache: the front end of a Zen core, None for others.
    """

    parameters: Parameters
    front: FrontEndParameters | None
    pipeline: PipelineCore | None
    graph: GraphFigures
    switches: Switches
    closed: str | None
    fusing: frozenset[str]
    splits: Mapping[int, float] = field(default_factory=dict)
    op_cache: OpCacheParameters | None = None


def core_model(parameters: Parameters, memory: MemoryPolicy = "moving", switches: Switches | None = None) -> CoreModel:
    """The model of a core.

    Args:
        parameters: of the core.
        memory: which stores and loads meet. With "different", uiCA's policy, every store can be forwarded, as there.
        switches: mechanisms to idealise; none by default. Its memory policy is that of the pipeline.

    Raises:
        InstructionTableError: a figure is missing or malformed.
    """
    front = front_end_parameters(parameters)
    return CoreModel(
        parameters=parameters,
        front=front,
        pipeline=pipeline_core(parameters, front) if front else None,
        graph=graph_figures(parameters, memory),
        switches=switches or Switches(memory=memory, blocked_loads=memory != "different"),
        closed=parameters.closed_by_zmm,
        fusing=frozenset(parameters.fused_with_jumps),
        splits=parameters.loads.splits,
        op_cache=op_cache_parameters(parameters),
    )


class Bounds(NamedTuple):
    """What each part of the core says of a block.

    Attributes:
        uses: per instruction, its port usage after elimination and fusion.
        fused: first instructions of macro-fused pairs.
        graph: of its dependencies; cycle: the slowest of it.
        components: cycles of the components that the block meets, by name, front to back; ports without dividers.
        front: what the front end sees, None where nothing is known of it but its width.
        simulated: the simulation, None likewise.
        overtaken: whether the simulation is faster than the slowest chain, which leads through memory and then does not
            count: the simulation knows better which part of a forwarding waits for what.
    """

    uses: Uses
    fused: frozenset[int]
    graph: Graph
    cycle: Cycle | None
    components: Mapping[str, float]
    front: Seen | None
    simulated: Simulated | None
    overtaken: bool

    @property
    def applied(self) -> dict[str, float]:
        """The components that count."""
        return {name: c for name, c in self.components.items() if name != PRECEDENCE or not self.overtaken}

    @property
    def prediction(self) -> float:
        """Cycles per pass: the slowest component."""
        return max(self.applied.values(), default=0.0)


class Seen(NamedTuple):
    """What the front end sees of a block at one address, and where its µops come from.

    `entries` are those of the queue before issue; none on cores whose queue is not modelled.
    """

    block: FrontEndBlock
    units: tuple[Unit, ...]
    erratum: tuple[int, ...]
    fetch: Fetch
    entries: tuple[Entry, ...]


class Memo:
    """What was made of instructions met before, by keys that tell instructions apart but for their place.

    It holds for one core model, one table and one syntax.

    Attributes:
        flows: their data flow.
        parts: their µops.
    """

    __slots__ = ("flows", "parts")

    def __init__(self) -> None:
        self.flows: dict[Hashable, DataFlow] = {}
        self.parts: dict[Hashable, Parts] = {}


def key_of(instruction: Instruction) -> Hashable:
    """What data flow and µops of an instruction depend on: everything but its place, its length and its text."""
    i = instruction
    implicit = (i.implicit_reads, i.implicit_writes, i.flags_read, i.flags_written)
    return (i.form, i.operands, i.memory, implicit, i.branch, i.same_register, i.has_mask)


def row_of(instruction: Instruction, table: Table) -> InstructionData | None:
    """The row for the instruction, in its indexed variant where that applies."""
    row = table.lookup(instruction)
    if row is None or row.indexed is None:
        return row
    indexed = any(reference.index is not None for reference in instruction.memory)
    return row.indexed if indexed else row


def bounds_of(
    instructions: Sequence[Instruction],
    rows: Rows,
    model: CoreModel,
    notion: Notion,
    offset: int,
    *,
    syntax: Syntax = "att",
    chains: Chains | None = None,
    keys: Sequence[Hashable] | None = None,
    memo: Memo | None = None,
) -> Bounds:
    """What bounds a block.

    Args:
        instructions: the block in execution order.
        rows: their table rows (the indexed variant where it applies), None for unknown ones.
        model: of the core.
        notion: how the block is repeated; offset: address of its first byte.
        syntax: how memory carriers are written.
        chains: `chains_of` the block, where they are at hand.
        keys: of the instructions, for the memo; equal keys mean equal instructions but for their place.
        memo: saves work where many blocks are looked at.
    """
    closed = _closed(instructions, model)
    graph, cycle = chains or chains_of(instructions, rows, model, syntax, keys, memo)
    found = _simulation_input(instructions, rows, model, notion, offset, closed, keys, memo, graph.adding)
    seen, program = found if found is not None else (None, None)
    fused = _fused_at(seen, model, offset) if seen else _fused_by_name(instructions, rows, model)
    uses = port_uses(instructions, rows, closed, fused)
    if model.splits and notion == "loop":
        uses = with_splits(uses, rows, instructions, model.parameters.loads)
    if seen is not None:
        components = _front_components(seen, model, notion, offset)
    else:
        seen, components = _unsimulated_front(instructions, rows, fused, model, notion)
    components |= _port_components(uses, rows, apart=found is not None)
    components[PRECEDENCE] = cycle.ratio if cycle else 0.0
    floor = max(components.values())
    simulated = simulate(program, floor=floor) if program is not None and program.slots else None
    overtaken = False
    if simulated is not None:
        components[PIPELINE] = simulated.cycles_above(floor)
        overtaken = components[PRECEDENCE] > components[PIPELINE] + TINY and _through_memory(graph, cycle)
    return Bounds(uses, fused, graph, cycle, components, seen, simulated, overtaken)


Chains = tuple[Graph, Cycle | None]
"""The dependency graph of a block and the slowest cycle in it; the same at every address and for both notions."""


def chains_of(
    instructions: Sequence[Instruction],
    rows: Rows,
    model: CoreModel,
    syntax: Syntax = "att",
    keys: Sequence[Hashable] | None = None,
    memo: Memo | None = None,
) -> Chains:
    """The dependencies of a block; arguments as of `bounds_of`."""
    graph = graph_of(instructions, _flows(instructions, rows, model, syntax, keys, memo), model.graph)
    return graph, maximum_cycle_ratio(len(graph.owners), graph.edges)


def _flows(
    instructions: Sequence[Instruction],
    rows: Rows,
    model: CoreModel,
    syntax: Syntax,
    keys: Sequence[Hashable] | None,
    memo: Memo | None,
) -> list[DataFlow]:
    figures = model.graph.flows
    if memo is None or keys is None:
        return [data_flow(i, row, figures, syntax) for i, row in zip(instructions, rows, strict=True)]
    known = memo.flows
    flows = []
    for instruction, row, key in zip(instructions, rows, keys, strict=True):
        flow = known.get(key)
        if flow is None:
            flow = known[key] = data_flow(instruction, row, figures, syntax)
        flows.append(flow)
    return flows


def _through_memory(graph: Graph, cycle: Cycle | None) -> bool:
    return cycle is not None and any(graph.carriers[edge.source].startswith(_MEMORY) for edge in cycle.edges)


def _simulation_input(
    instructions: Sequence[Instruction],
    rows: Rows,
    model: CoreModel,
    notion: Notion,
    offset: int,
    closed: str | None,
    keys: Sequence[Hashable] | None,
    memo: Memo | None,
    adding: Adding | None = None,
) -> tuple[Seen, PipelineInput] | None:
    """What the front end and the pipeline see of the block; None where the core has no figures for them."""
    front, pipeline = model.front, model.pipeline
    if front is None or pipeline is None or not instructions:
        return None
    cache = None
    if closed is not None:
        rows = [_closing(row, instruction, closed) for instruction, row in zip(instructions, rows, strict=True)]
    elif memo is not None and keys is not None:
        cache = PartsCache(keys, memo.parts)
    block = front_end_block(instructions, rows, front)
    program = pipeline_input(instructions, rows, pipeline, front, notion, offset, model.switches, cache, adding, block)
    units = units_at(block, front, offset)
    erratum = erratum_branches(units, front, offset) if notion == "loop" else ()
    return Seen(block, units, erratum, program.fetch, program.entries), program


def _closing(row: InstructionData | None, instruction: Instruction, closed: str) -> InstructionData | None:
    """The row in a block with 512-bit registers."""
    if row is None or not instruction.vector_bytes:
        return row
    return replace(row, ports=_without_port(row.ports, closed))


def _fused_at(seen: Seen, model: CoreModel, offset: int) -> frozenset[int]:
    """The instructions that macro-fuse with the branch right behind them, in code at this address."""
    front, block = model.front, seen.block
    return frozenset(
        block.units[pair.place].number for pair in block.pairs if front is None or fuses_at(pair, front, offset)
    )


def _fused_by_name(instructions: Sequence[Instruction], rows: Rows, model: CoreModel) -> frozenset[int]:
    """The same on a core of whose front end nothing is known."""
    fused = set()
    for number, branch in enumerate(instructions[1:]):
        row, first = rows[number], instructions[number]
        if branch.branch != "conditional" or row is None:
            continue
        pairs = row.front_end.fusible_with if row.front_end else ()
        if branch.mnemonic in pairs or (row.front_end is None and _fuses(first, branch, model.fusing)):
            fused.add(number)
    return frozenset(fused)


def _fuses(first: Instruction, branch: Instruction, mnemonics: frozenset[str]) -> bool:
    """Whether an instruction fuses with a branch by the parameters: only if the branch reads what it writes."""
    compares_immediate = first.memory and any(operand.immediate is not None for operand in first.operands)
    feeds = not set(branch.flags_read).isdisjoint(first.flags_written)
    return first.mnemonic in mnemonics and feeds and not compares_immediate


# {{{ front end


def _front_components(seen: Seen, model: CoreModel, notion: Notion, offset: int) -> dict[str, float]:
    """The bounds of the parts of the front end that the µops of the block come through."""
    front = model.front
    if front is None or not seen.units or not model.switches.front_end:
        return {}
    fetch, units = seen.fetch, seen.units
    found: dict[str, float] = {}
    if fetch.source == "LSD":
        found[LSD] = lsd_bound(units, front)
    elif fetch.source == "decoders":
        found |= _decoding(seen, front, notion, offset)
    elif fetch.barred_from == len(units):
        found[DSB] = _dsb(seen, model)
    elif seen.erratum:  # lines that the decoders serve, and others that the DSB holds
        found[DECODE] = mixed_bound(seen.block, units, front, offset, seen.erratum)
    found[ISSUE] = _issue(seen, model, front.issue_width)
    return found


def _issue(seen: Seen, model: CoreModel, width: int) -> float:
    """Cycles per pass in which the renamer issues all µops, where Facile's n / i lets it split what goes together.

    The µops of one entry of the queue that unlaminates issue in one cycle, and the end of a round of the LSD ends a
    group (uiCA, ICS 2022, section 4.1.4).
    """
    rounds = seen.fetch.source == "LSD" and model.switches.group_boundary
    copies = seen.fetch.copies if rounds else 0
    most, first = (
        (model.pipeline.unlaminated_slots, model.pipeline.unlaminated_first) if model.pipeline else (width, width)
    )
    taken = groups = 0  # slots of the current group; groups that are full
    entries = unlaminated = 0  # of the current group
    begun: dict[tuple[int, int, int], tuple[int, int]] = {}
    passes = 0
    while True:
        state = (taken, entries, unlaminated)
        if state in begun and not rounds:
            earlier, full = begun[state]
            return (groups - full) / (passes - earlier)
        begun[state] = (passes, groups)
        for slots, together in seen.entries:
            barred = unlaminated >= most or entries >= first
            if taken and together and (barred or taken + slots > width >= slots):
                taken, entries, unlaminated, groups = 0, 0, 0, groups + 1
            full, taken = divmod(taken + slots, width)
            groups += full
            entries, unlaminated = (entries, unlaminated) if not full else (0, 0)
            entries, unlaminated = entries + bool(taken), unlaminated + (together and taken > 0)
        passes += 1
        if passes == copies:
            return (groups + bool(taken)) / copies


def _dsb(seen: Seen, model: CoreModel) -> float:
    """The bound of the DSB, after Facile only where it delivers more than is issued.

    Before Skylake it delivers no more, and of 20 short loops for which rounding up decides uiCA contradicts it in
    17: the rest of the block is fetched in the same cycle.
    """
    if model.front is None or model.pipeline is None:
        return 0.0
    if model.pipeline.dsb_ends:
        return dsb_bound(seen.units, seen.block.length, model.front, model.pipeline.taken_branches)
    return sum(unit.decoded for unit in seen.units) / model.front.dsb_width


def _decoding(seen: Seen, front: FrontEndParameters, notion: Notion, offset: int) -> dict[str, float]:
    return {
        PREDECODE: predecode_bound(seen.block, front, notion, offset),
        DECODE: decode_bound(seen.units, front),
    }


def _unsimulated_front(
    instructions: Sequence[Instruction], rows: Rows, fused: frozenset[int], model: CoreModel, notion: Notion
) -> tuple[Seen | None, dict[str, float]]:
    """What is known of the front end of a core without a simulation, and the bounds of its parts that the block meets.

    On the Zen cores the widths of its parts; on others no more than the µops renamed per cycle, where every instruction
    takes a slot, also one that needs no port, and a macro-fused pair takes one.
    """
    core = model.op_cache
    if core is None or not instructions:
        slots = sum(max(row.uops, 1) if row else 1 for row in rows) - len(fused)
        return None, {} if model.front else {ISSUE: slots / model.parameters.issue_width}
    block = op_cache_block(instructions, rows, fused, core)
    path = op_cache_path(block.units, core, notion)
    held = len(block.units) if path == "DSB" else 0
    seen = Seen(block, block.units, (), Fetch(path, (), 1, held, False, ()), ())
    delivery = _op_cache_delivery(seen, core, path) if model.switches.front_end else {}
    return seen, delivery | {ISSUE: dispatch_bound(seen.units, core)}


def _op_cache_delivery(seen: Seen, core: OpCacheParameters, path: Path) -> dict[str, float]:
    """The bounds of the parts on one path to dispatch, as far as their widths are known."""
    found = (
        {DSB: op_cache_bound(seen.units, core)}
        if path == "DSB"
        else {PREDECODE: fetch_bound(seen.block.length, core), DECODE: decode_bound(seen.units, core)}
    )
    return {name: cycles for name, cycles in found.items() if cycles is not None}


def idle_components(bounds: Bounds, model: CoreModel, notion: Notion, offset: int) -> dict[str, float]:
    """What parts of the front end would take through which the µops of the block do not come, for comparison."""
    seen = bounds.front
    if seen is None or not seen.units:
        return {}
    found = _all_delivery(seen, model, notion, offset)
    return {name: cycles for name, cycles in found.items() if name not in bounds.components}


def _all_delivery(seen: Seen, model: CoreModel, notion: Notion, offset: int) -> dict[str, float]:
    """The bounds of all parts of the front end before issue; straight-line code comes through none but the decoders."""
    loop, front = notion == "loop", model.front
    if model.op_cache is not None:
        found = _op_cache_delivery(seen, model.op_cache, "decoders")
        return found | _op_cache_delivery(seen, model.op_cache, "DSB") if loop else found
    if front is None:
        return {}
    found = _decoding(seen, front, notion, offset)
    if loop:
        found[DSB] = _dsb(seen, model)
        if front.lsd:
            found[LSD] = lsd_bound(seen.units, front)
    return found


# }}}
# {{{ ports


def port_uses(
    instructions: Sequence[Instruction], rows: Rows, closed: str | None, fused: frozenset[int], *, branches: bool = True
) -> Uses:
    """Per instruction, the ports that its µops need after elimination and fusion.

    Args:
        instructions, rows: the block.
        closed: port whose vector units are closed, None for none.
        fused: first instructions of macro-fused pairs.
        branches: whether branches need ports.
    """
    uses: list[tuple[PortUse, ...]] = []
    for number, (instruction, row) in enumerate(zip(instructions, rows, strict=True)):
        if row is None or at_rename(instruction, row) or (instruction.branch and not branches):
            uses.append(())
        elif number in fused:
            following = rows[number + 1]
            uses.append(without_compare(row.ports, following.ports if following else ()))
        elif closed is not None and instruction.vector_bytes:
            uses.append(_without_port(row.ports, closed))
        else:
            uses.append(row.ports)
    return tuple(uses)


def at_rename(instruction: Instruction, row: InstructionData) -> bool:
    """Whether the instruction is done at rename and needs no port."""
    zero = row.breaks_dependency == "zero" and is_idiom(instruction, row)
    return zero or (row.eliminated and is_eliminated_move(instruction, row))


def without_compare(ports: tuple[PortUse, ...], branch: tuple[PortUse, ...]) -> tuple[PortUse, ...]:
    """The port usage without the µop that merges into the branch: the one that shares ports with it."""
    branch_ports = {port for use in branch for port in use.ports}
    rest = list(ports)
    merged = next((number for number, use in enumerate(rest) if branch_ports.intersection(use.ports)), None)
    if merged is not None:
        use = rest.pop(merged)
        if use.cycles > 1:
            rest.insert(merged, PortUse(use.ports, use.cycles - 1))
    return tuple(rest)


def _without_port(ports: tuple[PortUse, ...], closed: str) -> tuple[PortUse, ...]:
    """The port usage with the closed port taken from the choices, where there are others."""
    return tuple(
        PortUse(tuple(port for port in use.ports if port != closed), use.cycles) if set(use.ports) - {closed} else use
        for use in ports
    )


def _port_components(uses: Uses, rows: Rows, apart: bool) -> dict[str, float]:
    """The bounds of execution ports and, `apart`, of dividers; in the place of ports what was measured beyond them."""
    ports: list[PortUse] = []
    dividers: list[PortUse] = []
    for row in uses:
        for use in row:
            divides = apart and use.ports and use.ports[0].endswith(_DIVIDER)
            (dividers if divides else ports).append(use)
    found = {PORTS: max(optimal_bound(ports)[0], one_at_a_time(rows)[1])}
    if dividers:
        found[DIVIDER] = optimal_bound(dividers)[0]
    return found


def one_at_a_time(rows: Rows) -> tuple[tuple[str, ...], float]:
    """The forms whose measured reciprocal throughput ports do not tell, and the cycles of all of them together.

    These are locked and microcoded instructions: one waits for the other, whatever their forms.
    """
    slow = [(row.form, row.throughput) for row in rows if row is not None and row.throughput is not None]
    return tuple(dict.fromkeys(form for form, _ in slow)), sum(cycles for _, cycles in slow)


# }}}


def straight_bound(instructions: Sequence[Instruction], rows: Rows, model: CoreModel) -> float:
    """Cycles that code which is executed once takes of issue, ports and dividers, whichever takes longest."""
    fused = _fused_by_name(instructions, rows, model)
    uses = port_uses(instructions, rows, _closed(instructions, model), fused)
    issue = issue_slots(instructions, rows, model) / model.parameters.issue_width
    return max(issue, *_port_components(uses, rows, apart=True).values())


def issue_slots(instructions: Sequence[Instruction], rows: Rows, model: CoreModel) -> float:
    """µops (fused domain) that code takes at issue, and of the reorder buffer."""
    slots = sum(max(row.front_end.retire_slots if row.front_end else row.uops, 1) if row else 1 for row in rows)
    return slots - len(_fused_by_name(instructions, rows, model))


# {{{ counterfactuals


def simulated_without(
    name: str, instructions: Sequence[Instruction], rows: Rows, model: CoreModel, notion: Notion, offset: int
) -> float | None:
    """Cycles per pass in the simulated pipeline if a component took no time; None without a pipeline.

    For the parts of the front end before issue, µops are always there. Without ports every µop starts when its operands
    are ready; without dependencies when it has a port.
    """
    switches = model.switches
    if name in FRONT_END and name != ISSUE:
        switches = replace(switches, front_end=False)
    elif name == DIVIDER:
        switches = replace(switches, dividers=False)
    model = replace(model, switches=switches)
    adding = chains_of(instructions, rows, model)[0].adding if model.graph.adders else None
    closed = _closed(instructions, model)
    found = _simulation_input(instructions, rows, model, notion, offset, closed, None, None, adding)
    if found is None or not found[1].slots:
        return None
    program = found[1]
    if name == ISSUE:
        program = replace(program, core=_issuing_all(program.core))
    elif name == PORTS:
        program = replace(program, microops=tuple(m._replace(ports=(), data=0, alone=0) for m in program.microops))
    elif name == PRECEDENCE:
        program = replace(program, microops=tuple(m._replace(waits=()) for m in program.microops))
    return float(simulate(program).cycles_per_pass)


def _issuing_all(core: PipelineCore) -> PipelineCore:
    """The core with a renamer as wide as its buffers allow."""
    schedulers = [size for size in (core.scheduler, core.load_scheduler, core.store_scheduler) if size]
    width = min(core.idq, *schedulers, core.reorder_buffer) // 2
    return replace(core, issue_width=width, retire_width=max(width, core.retire_width))


def _closed(instructions: Sequence[Instruction], model: CoreModel) -> str | None:
    """The port that the block closes, if it has 512-bit registers."""
    return model.closed if any(i.vector_bytes == WIDEST for i in instructions) else None


# }}}
