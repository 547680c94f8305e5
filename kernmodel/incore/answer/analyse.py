"""The in-core analysis of a block: the bound of each part of the core, port pressure, chains, and one headline number.

All data are in the first-level cache and branches are predicted (assumptions 1 and 3 of Laukemann et al., PMBS 2018,
section I-A). docs/incore.md gives the formulas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from kernmodel.code.model import AssemblyLoop
from kernmodel.errors import Note
from kernmodel.incore.answer.components import (
    FRONT_TO_BACK,
    ISSUE,
    PORTS,
    PRECEDENCE,
    Bounds,
    Rows,
    Table,
    Uses,
    bounds_of,
    one_at_a_time,
    row_of,
)
from kernmodel.incore.answer.reasons import BlockFacts, BusyPorts, block_facts, idle_reason, reason_of
from kernmodel.incore.answer.verdict import reaching, verdict_of
from kernmodel.incore.dependences.addresses import MemoryPolicy
from kernmodel.incore.dependences.cycles import Cycle, Edge, longest_path
from kernmodel.incore.dependences.data_flow import Syntax
from kernmodel.incore.dependences.graph import Graph
from kernmodel.incore.dependences.line_splits import AT_LINES, Places, may_split
from kernmodel.incore.engine.analyser import Analyser
from kernmodel.incore.engine.layout import DEPENDENCES, WHOLE
from kernmodel.incore.engine.lowering import is_done_at_rename
from kernmodel.incore.engine.modelled_core import ModelledCore, modelled_core
from kernmodel.incore.engine.ports import Pressure, even_pressure, optimal_bound, optimal_pressure
from kernmodel.incore.engine.uops import vectors_written
from kernmodel.incore.model import Chain, Component, InCore, InstructionReport, Notion, Parameters, PortUse
from kernmodel.incore.tables.core_parameters import WindowParameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction
from kernmodel.uncertainty import Interval
from kernmodel.value_types import NamedTuple

PortModel = Literal["optimal", "even"]

_TINY = 1e-9
_Value = TypeVar("_Value")
_Lookup = Sequence[_Value] | Mapping[int, _Value]
"""Something of each vertex of a dependency graph."""


def analyse(
    loop: AssemblyLoop,
    parameters: Parameters,
    table: Table,
    *,
    port_model: PortModel = "optimal",
    memory: MemoryPolicy = "moving",
    notion: Notion = "loop",
    offset: int = 0,
    places: Places = AT_LINES,
    model: ModelledCore | Analyser | None = None,
) -> InCore:
    """Analyse a block (a loop body, or a marked region).

    Args:
        loop: the block.
        parameters: of the microarchitecture.
        table: its instruction table.
        port_model: "optimal" for the exact bound of an ideal scheduler, with front end and pipeline where the
            parameters describe them; "even" for the model of the OSACA papers: equal shares on all admissible ports,
            no macro-fusion, branches without port, and nothing but ports and dependencies.
        memory: which stores and loads meet.
        notion: how the block is repeated.
        offset: address of the first byte modulo 64.
        places: where the arrays of a loop lie.
        model: of the core for this memory policy, where it is at hand or something is idealised; or an analyser of it,
            which the caller has for many blocks.

    Raises:
        InstructionTableError: a row of the table or a figure of the parameters is malformed.
    """
    instructions = isa_of(loop.isa).with_named_registers(loop.instructions)
    loop = replace(loop, instructions=instructions)
    rows = tuple(row_of(instruction, table) for instruction in instructions)
    even = port_model == "even"
    core = model or modelled_core(parameters, memory)
    scope = DEPENDENCES if even else WHOLE
    syntax: Syntax = "att" if loop.syntax == "att" else "intel"
    bounds = bounds_of(
        instructions, rows, core, notion, offset, syntax=syntax, scope=scope, closing=not even, places=places
    )
    return _answer(loop, parameters, rows, bounds, port_model, offset)


def _answer(
    loop: AssemblyLoop, parameters: Parameters, rows: Rows, bounds: Bounds, port_model: PortModel, offset: int
) -> InCore:
    """The answer that the bounds of a block give, each with its reason."""
    instructions, graph, even = loop.instructions, bounds.graph, port_model == "even"
    load = _port_load(bounds, rows, parameters.ports, even=even)
    (lcd, lcd_shares), (path, path_shares) = loop_carried(graph, bounds.cycle), _critical_path(graph)
    facts = _facts_even(bounds, rows, load, parameters, lcd) if even else _facts(bounds, lcd)
    component, bound_by = verdict_of(reaching(facts.applied, facts.prediction), facts.prediction, facts.stalls)
    retries = None if even else _retries(instructions, load.uses, parameters, facts.prediction)
    return InCore(
        microarchitecture=parameters.name,
        ports=parameters.ports,
        port_model=port_model,
        rows=_reports(instructions, rows, load, graph, (path_shares, lcd_shares), frozenset(bounds.fused)),
        uses=load.uses,
        port_sums=load.sums,
        throughput=load.throughput,
        binding_ports=load.binding,
        lcd=lcd,
        critical_path=path,
        prediction=facts.prediction,
        bound_by=bound_by,
        reason=reason_of(component, facts),
        iterations_per_pass=loop.iterations_per_pass,
        uncertain=tuple(i.form for i, row in zip(instructions, rows, strict=True) if row is None),
        notes=(*_notes(loop, rows, graph, parameters, bounds.notion), *_retry_notes(retries)),
        notion=bounds.notion,
        components=_components(bounds, facts) if ISSUE in facts.components else (),
        offset=offset,
        prediction_interval=retries,
        vectors_written=sum(map(vectors_written, instructions)),
    )


def _retries(
    instructions: Sequence[Instruction], uses: Uses, parameters: Parameters, prediction: float
) -> Interval | None:
    """Between which values the prediction lies where loads may find their bank of the first cache taken by another
    access: from none of them to each of them going to its port once more."""
    pipeline = parameters.pipeline
    accesses = sum(bool(instruction.memory) for instruction in instructions)
    if not parameters.loads.retried or accesses < _OTHERS or not isinstance(pipeline, WindowParameters):
        return None
    ports = frozenset(port for group in pipeline.access_ports for port in group)
    more = [
        PortUse(use.ports, 2 * use.cycles) if loads and ports.issuperset(use.ports) else use
        for instruction, own in zip(instructions, uses, strict=True)
        for loads in [any(reference.read for reference in instruction.memory)]
        for use in own
    ]
    high = optimal_bound(more)[0]
    return Interval(prediction, high, "bank conflicts of loads", "none") if high > prediction + _TINY else None


_OTHERS = 2
"""Accesses in a pass from which on a load can meet another one."""


def _retry_notes(retries: Interval | None) -> tuple[Note, ...]:
    if retries is None:
        return ()
    text = (
        "no source tells the banks of the first cache: if each load were tried once more since its bank is taken, a "
        f"pass would take {retries.high:.2f} cycles in place of {retries.low:.2f}"
    )
    return (Note("bank-conflicts", text, "assumption"),)


class _PortLoad(NamedTuple):
    """How long a pass of the block occupies the ports, in cycles.

    Attributes:
        uses: of each instruction, the ports that its uops may take.
        pressure: of each instruction on each port; sums: of all of them on each port.
        throughput: TP; binding: the ports that set it.
    """

    uses: Uses
    pressure: Pressure
    sums: tuple[float, ...]
    throughput: float
    binding: tuple[str, ...]


def _port_load(bounds: Bounds, rows: Rows, ports: tuple[str, ...], *, even: bool) -> _PortLoad:
    """By the port model: in equal shares as in the OSACA papers, or as an ideal scheduler distributes the uops."""
    uses = _even_uses(bounds) if even else bounds.uses
    pressure = (even_pressure if even else optimal_pressure)(uses, ports)
    sums = _sums(pressure, ports)
    return _PortLoad(uses, pressure, sums, *throughput_of(uses, rows, ports, sums if even else None))


def _even_uses(bounds: Bounds) -> Uses:
    """The port usage of the OSACA papers: no macro-fusion, and branches without port."""
    templates = bounds.block.templates
    return tuple([() if template.instruction.branch else template.uses for template in templates])


def _facts(bounds: Bounds, lcd: Chain | None) -> BlockFacts:
    """What there is to say by all parts of the core."""
    return block_facts(bounds.analyser, bounds.block.templates, bounds.fused, bounds.answer, lambda: lcd)


def _facts_even(bounds: Bounds, rows: Rows, load: _PortLoad, parameters: Parameters, lcd: Chain | None) -> BlockFacts:
    """What there is to say by the two bounds of the OSACA papers; here `ports` holds all of TP."""
    mnemonics = tuple([template.instruction.mnemonic for template in bounds.block.templates])
    slow_forms, slow = one_at_a_time(rows)
    cycles = {PORTS: max(*load.sums, slow, 0.0), PRECEDENCE: bounds.cycle.ratio if bounds.cycle else 0.0}

    def busy() -> BusyPorts:
        ports = load.binding
        inside = frozenset(ports)
        users = zip(mnemonics, load.uses, strict=True)
        names = tuple([name for name, row in users if any(use.ports and inside.intersection(use.ports) for use in row)])
        return BusyPorts(load.throughput, ports, names if ports else slow_forms)

    return BlockFacts(
        mnemonics=mnemonics,
        issue_width=parameters.issue_width,
        components=cycles,
        applied=cycles,
        front=None,
        op_cache=None,
        stalls=lambda: None,
        lcd=lambda: lcd,
        ports=busy,
        divider=busy,
    )


def _components(bounds: Bounds, facts: BlockFacts) -> tuple[Component, ...]:
    """All components front to back; those that the block does not meet do not apply."""
    found = []
    idle = bounds.answer.idle
    for name in FRONT_TO_BACK:
        if name in facts.components:
            applies = name in facts.applied
            found.append(Component(name, facts.components[name], applies, reason_of(name, facts)))
        elif name in idle:
            found.append(Component(name, idle[name], False, idle_reason(name, facts)))
    return tuple(found)


def _sums(pressure: Pressure, ports: tuple[str, ...]) -> tuple[float, ...]:
    return tuple(sum(column) for column in zip(*pressure, strict=True)) or (0.0,) * len(ports)


def throughput_of(
    uses: Uses, rows: Rows, ports: tuple[str, ...], port_sums: Sequence[float] | None = None
) -> tuple[float, tuple[str, ...]]:
    """TP, and the ports that bind it, in the order of display; none where a measured throughput goes beyond them.

    Args:
        uses, rows: of the block; ports: of the core.
        port_sums: cycles per port, where not the optimal bound counts but the largest of them.
    """
    if port_sums is None:
        bound, names = optimal_bound(use for row in uses for use in row)
        binding = tuple(port for port in ports if port in names)
    else:
        bound = max(port_sums, default=0.0)
        binding = tuple(p for p, total in zip(ports, port_sums, strict=True) if bound and total > bound - _TINY)
    slow = one_at_a_time(rows)[1]
    return (slow, ()) if slow > bound + _TINY else (bound, binding)


def loop_carried(graph: Graph, cycle: Cycle | None) -> tuple[Chain | None, dict[int, float]]:
    """The longest loop-carried dependency, and the cycles per pass that each instruction contributes to it."""
    if cycle is None:
        return None, {}
    shares: dict[int, float] = {}
    passes = cycle.passes  # which walks along the cycle
    for edge in cycle.edges:
        owner = graph.owners[edge.target]
        shares[owner] = shares.get(owner, 0.0) + edge.latency / passes
    return chain_of(graph.owners, graph.carriers, cycle), shares


def chain_of(owners: _Lookup[int], carriers: _Lookup[str], cycle: Cycle) -> Chain:
    """The chain of a cycle; `owners` and `carriers` of its vertices as in `Graph`."""
    return _chain(owners, carriers, cycle.edges[-1:] + cycle.edges[:-1], cycle.ratio, cycle.passes)


def _critical_path(graph: Graph) -> tuple[Chain, dict[int, float]]:
    """The longest path through one pass, and the cycles that each instruction contributes to it."""
    length, first, edges = longest_path(graph.entry, graph.edges)
    if first is None:
        return Chain(0.0, (), (), 1), {}
    shares = {graph.owners[first]: graph.entry[first]}
    for edge in edges:
        owner = graph.owners[edge.target]
        shares[owner] = shares.get(owner, 0.0) + edge.latency
    return _chain(graph.owners, graph.carriers, (Edge(first, first, 0.0, 0), *edges), length, 1), shares


def _chain(owners: _Lookup[int], carriers_of: _Lookup[str], edges: Sequence[Edge], cycles: float, passes: int) -> Chain:
    """The instructions and carriers at the targets of the edges; a load and its result are one member."""
    members: list[int] = []
    carriers: list[str] = []
    for edge in edges:
        owner = owners[edge.target]
        if members and members[-1] == owner and not edge.passes:
            carriers[-1] = carriers_of[edge.target]
        else:
            members.append(owner)
            carriers.append(carriers_of[edge.target])
    return Chain(cycles, tuple(members), tuple(carriers), passes)


def _reports(
    instructions: Sequence[Instruction],
    rows: Rows,
    load: _PortLoad,
    graph: Graph,
    shares: tuple[dict[int, float], dict[int, float]],
    fused: frozenset[int],
) -> tuple[InstructionReport, ...]:
    """The rows of the answer; `shares` are those of the critical path and of the LCD."""
    on_path, on_lcd = shares
    return tuple(
        InstructionReport(
            instruction=instruction,
            pressure=load.pressure[number],
            latency=graph.latencies[number],
            on_critical_path=on_path.get(number),
            on_lcd=on_lcd.get(number),
            known=row is not None,
            eliminated=row is not None
            and not load.uses[number]
            and (number in fused or is_done_at_rename(instruction, row)),
            source=row.source if row is not None else "",
        )
        for number, (instruction, row) in enumerate(zip(instructions, rows, strict=True))
    )


def _nearest(instruction: Instruction, parameters: Parameters) -> str:
    """The instruction that may be meant by one whose mnemonic has no row at all."""
    near = InstructionTable.open(parameters).nearest_mnemonic(instruction.mnemonic)
    return f" (the nearest that has is {near})" if near else ""


def _notes(loop: AssemblyLoop, rows: Rows, graph: Graph, parameters: Parameters, notion: Notion) -> tuple[Note, ...]:
    notes = [
        Note(
            "unknown-instruction",
            f"{instruction.form} has no row in the instruction table of {parameters.name}: it counts nothing"
            f"{_nearest(instruction, parameters)}",
            where=instruction.place_in(loop.file),
        )
        for instruction, row in zip(loop.instructions, rows, strict=True)
        if row is None
    ]
    for instruction in loop.instructions:
        if isa_of(instruction.isa).repeats(instruction):
            text = f"{instruction.form} takes as long as its count says; its row holds for a few repetitions"
            notes.append(Note("repeat-count", text, where=instruction.place_in(loop.file)))
    for link in graph.blocked:
        load = loop.instructions[link.load[0]]
        text = "the load needs bytes from more than the store before it: the core cannot forward them, it takes longer"
        notes.append(Note("store-forward-blocked", text, where=load.place_in(loop.file)))
    if graph.incomparable:
        text = "addresses of loads and stores that cannot be compared are taken to differ"
        notes.append(Note("addresses-differ", text, kind="assumption"))
    if notion == "loop" and any(may_split(instruction, parameters.loads.splits) for instruction in loop.instructions):
        text = (
            "arrays are taken to begin at cache lines where the code does not say otherwise: wide loads may cross lines"
        )
        notes.append(Note("aligned-arrays", text, kind="assumption"))
    if notion == "loop" and loop.instructions and loop.instructions[-1].branch is None:
        text = "the region ends in no branch; it is analysed as the body of a loop"
        notes.append(Note("no-branch", text, kind="assumption"))
    return tuple(notes)
