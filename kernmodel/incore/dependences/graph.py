"""The dependency graph of a loop body: which value waits for which, how long, and over how many passes.

A vertex is a value that an instruction produces: what it writes to a register, to the flags (the carry flag apart
where its latency differs), to memory, or the data that it loads. The load is a vertex of its own, between the registers
that form the address and the results: address latency belongs to the edges into it, forwarded stores reach it without
waiting for an address. A store waits for its data only; a load that reads it gets the data after the store-forward
latency.

An edge is weighted with the latency of the consuming instruction from that source to that result, in cycles. Values
that the previous pass produces enter by edges over one pass; memory may span more. Code that is repeated without a
branch (TP_U) has the same graph as a loop body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from kernmodel.incore.dependences.adders import Adding, adder_figures, adding, delayed, is_addition
from kernmodel.incore.dependences.addresses import Forwarding, MemoryPolicy, forwardings
from kernmodel.incore.dependences.cycles import Edge
from kernmodel.incore.dependences.data_flow import (
    DataFlow,
    DataFlowFigures,
    Special,
    Syntax,
    data_flow,
    data_flow_figures,
    is_eliminated_move,
    is_idiom,
    memory_text,
)
from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.core_parameters import AdderParameters, Parameters
from kernmodel.isa.model import Instruction

__all__ = [
    "Graph",
    "MemoryPolicy",
    "Syntax",
    "dependency_graph",
    "is_eliminated_move",
    "is_idiom",
    "memory_text",
]

_STACK_POINTER = "rsp"
SYNCHRONISED = "rsp (stack engine)"


@dataclass(frozen=True, slots=True)
class Graph:
    """The dependency graph of one loop body.

    Attributes:
        owners: per vertex, the instruction that produces the value; vertices are in program order.
        carriers: per vertex, where the value is ("zmm0", "flags", "memory 8(%rsp)").
        entry: per vertex, cycles after the start of a pass at which it is ready if only what was there before counts.
        edges: dependencies, `passes` of the loop apart.
        latencies: per instruction, its longest latency to a register or to flags, the load included; 0 for stores.
        blocked: the forwardings in which the store does not hold all bytes of the load.
        incomparable: whether some addresses of loads and stores could not be compared (they are taken to differ).
        adding: what additions take longer than their rows say, None on cores of which nothing is known of that.
    """

    owners: tuple[int, ...]
    carriers: tuple[str, ...]
    entry: tuple[float, ...]
    edges: tuple[Edge, ...]
    latencies: tuple[float, ...]
    blocked: tuple[Forwarding, ...]
    incomparable: bool
    adding: Adding | None = None


@dataclass(frozen=True, slots=True)
class GraphFigures:
    """What the graph of a core depends on, made once per core.

    Attributes:
        flows: for the data flow of each instruction.
        memory: which stores and loads meet.
        forward: cycles from a store's data to a load that reads them.
        synchronise: cycles of the µop that brings rsp up to date.
        shortest: in place of `forward`, the load's own latency less this; None for `forward`.
        adders: how long others wait for additions, None for as the table says.
    """

    flows: DataFlowFigures
    memory: MemoryPolicy
    forward: float
    synchronise: float
    shortest: float | None
    adders: AdderParameters | None = None


def graph_figures(parameters: Parameters, memory: MemoryPolicy = "moving") -> GraphFigures:
    """The figures of a core under a memory policy."""
    flows = data_flow_figures(parameters)
    synchronise = parameters.registers.synchronisation or 0.0
    forwarded = parameters.loads.forwarded if memory == "stack" else None
    if forwarded is None:
        return GraphFigures(
            flows, memory, parameters.store_forward_latency, synchronise, None, adder_figures(parameters)
        )
    flows = replace(flows, stores_take_time=False)
    shortest = parameters.load_latency - forwarded
    return GraphFigures(
        flows, memory, parameters.store_forward_latency, synchronise, shortest, adder_figures(parameters)
    )


def dependency_graph(
    instructions: Sequence[Instruction],
    data: Sequence[InstructionData | None],
    parameters: Parameters,
    syntax: Syntax = "att",
    *,
    memory: MemoryPolicy = "moving",
) -> Graph:
    """The graph of a loop body.

    Args:
        instructions: the body in execution order.
        data: their table rows (the indexed variant where it applies), None for unknown ones: they pass values on in 0
            cycles.
        parameters: load and store-forward latency.
        syntax: how memory carriers are written.
        memory: which stores and loads meet; with "stack", times of forwarding and the stack engine as Facile's, too.
    """
    figures = graph_figures(parameters, memory)
    flows = [data_flow(i, row, figures.flows, syntax) for i, row in zip(instructions, data, strict=True)]
    return graph_of(instructions, flows, figures)


def graph_of(instructions: Sequence[Instruction], flows: Sequence[DataFlow], figures: GraphFigures) -> Graph:
    """The graph of a loop body from the data flow of its instructions (by `data_flow`, with `figures.flows`)."""
    body = _Body([], [], [], [], {}, [], [])
    owners, carriers, entry, edges, latest, pending, specials = body
    ahead = _ahead_at_start(flows)
    for number, flow in enumerate(flows):
        special = flow.special
        if special is not None:
            if special.uses_stack:
                ahead = _use_stack(number, special, ahead, body, figures)
            specials.append((number, len(owners), special))
        first = len(owners)
        for value, resource, cycles in flow.waits:
            source = latest.get(resource)
            if source is None:
                pending.append((resource, first + value, cycles))
            else:
                edges.append(_edge((source, first + value, cycles, 0)))
        for load, value, cycles in flow.inner:
            edges.append(_edge((first + load, first + value, cycles, 0)))
        owners += (number,) * len(flow.carriers)
        carriers += flow.carriers
        entry += flow.entry
        for resources, value in flow.gives:
            for resource in resources:
                latest[resource] = first + value
    if pending:
        _join_passes(body)
    if figures.flows.pointer_saving:
        _shorten_pointer_chains(edges, specials)
    through_memory, incomparable = _through_memory(instructions, flows, body, figures)
    added = None
    if figures.adders is not None:
        added = adding(instructions, figures.adders, _additions(instructions, flows), owners, edges)
        if added.later:
            edges = delayed(edges, owners, added)
    return Graph(
        owners=tuple(owners),
        carriers=tuple(carriers),
        entry=tuple(entry),
        edges=tuple(edges),
        latencies=tuple([flow.latency for flow in flows]),
        blocked=tuple([link for link in through_memory if not link.whole]),
        incomparable=incomparable,
        adding=added,
    )


def _additions(instructions: Sequence[Instruction], flows: Sequence[DataFlow]) -> dict[int, float]:
    """The floating-point additions by number, and their cycles from operands in registers or just loaded."""
    found = {}
    for number, (instruction, flow) in enumerate(zip(instructions, flows, strict=True)):
        if is_addition(instruction):
            loads = len(flow.special.loads) if flow.special else 0
            cycles = [c for _, _, c in flow.inner] + [c for value, _, c in flow.waits if value >= loads]
            found[number] = min(cycles, default=0.0)
    return found


_edge: Callable[[tuple[int, int, float, int]], Edge] = partial(tuple.__new__, Edge)
"""An edge of its four parts: this runs for every dependency of every block, and takes half as long as `Edge`."""


class _Body(NamedTuple):
    """The graph as it grows.

    Attributes:
        owners, carriers, entry, edges: as in `Graph`.
        latest: the vertex that produced each resource last.
        pending: (resource, vertex, cycles): what waits for the pass before.
        specials: (instruction, its first vertex, what it has to do with memory and the stack).
    """

    owners: list[int]
    carriers: list[str]
    entry: list[float]
    edges: list[Edge]
    latest: dict[str, int]
    pending: list[tuple[str, int, float]]
    specials: list[tuple[int, int, Special]]


def _ahead_at_start(flows: Sequence[DataFlow]) -> bool:
    """Whether the pass before leaves the stack engine ahead of rsp."""
    for flow in reversed(flows):
        special = flow.special
        if special is not None and special.uses_stack:
            return special.moves_stack
    return False


def _use_stack(number: int, special: Special, ahead: bool, body: _Body, figures: GraphFigures) -> bool:
    """Bring rsp up to date before an instruction that reads it, if the stack engine is ahead; whether it then is.

    Facile counts the µop that does this only where the instruction also writes rsp.
    """
    if ahead and special.reads_stack and (special.writes_stack or figures.memory != "stack"):
        vertex = len(body.owners)
        source = body.latest.get(_STACK_POINTER)
        if source is None:
            body.pending.append((_STACK_POINTER, vertex, figures.synchronise))
        else:
            body.edges.append(Edge(source, vertex, figures.synchronise, 0))
        body.owners.append(number)
        body.carriers.append(SYNCHRONISED)
        body.entry.append(0.0)
        body.latest[_STACK_POINTER] = vertex
    return special.moves_stack


def _join_passes(body: _Body) -> None:
    """Add the edges to what waits for a value of the pass before."""
    crossing: dict[tuple[int, int], float] = {}
    entry = body.entry
    for resource, target, latency in body.pending:
        if latency > entry[target]:
            entry[target] = latency
        source = body.latest.get(resource)
        if source is not None:
            crossing[source, target] = max(latency, crossing.get((source, target), 0.0))
    for (source, target), latency in crossing.items():
        body.edges.append(_edge((source, target, latency, 1)))


def _through_memory(
    instructions: Sequence[Instruction], flows: Sequence[DataFlow], body: _Body, figures: GraphFigures
) -> tuple[tuple[Forwarding, ...], bool]:
    """Add the edges from stores to the loads that read them."""
    specials = body.specials
    if not any(special.stores for _, _, special in specials) or not any(special.loads for _, _, special in specials):
        return (), False
    links, incomparable = forwardings(instructions, figures.memory, [flow.step for flow in flows])
    if links:
        stores = {(number, place): first + n for number, first, s in specials for place, n in s.stores}
        loads = {(m, place): (first + n, c) for m, first, s in specials for n, (place, c) in enumerate(s.loads)}
        for link in links:
            load, latency = loads[link.load]
            body.edges.append(Edge(stores[link.store], load, _forward(link, latency, figures), link.passes))
    return links, incomparable


def _forward(link: Forwarding, load_latency: float, figures: GraphFigures) -> float:
    """Cycles from the store to the load.

    uops.info's figures from memory to memory of one instruction count a cycle more than those of a load.
    """
    if figures.shortest is None:
        return figures.forward
    return load_latency - figures.shortest + (link.store[0] == link.load[0])


def _shorten_pointer_chains(edges: list[Edge], specials: Sequence[tuple[int, int, Special]]) -> None:
    """Take the cycles off that some cores save where an address comes straight from a load.

    A move that is eliminated hands on the register that the load wrote.
    """
    savings = {first: special.saves for _, first, special in specials if special.saves}
    if not savings:
        return
    pointers = {first + s.pointer for _, first, s in specials if s.pointer is not None and not s.copies}
    if not pointers:
        return
    copies = {first + s.pointer for _, first, s in specials if s.pointer is not None and s.copies}
    copying = [edge for edge in edges if edge.target in copies]
    while found := {edge.target for edge in copying if edge.source in pointers} - pointers:
        pointers |= found
    for number, edge in enumerate(edges):
        if edge.target in savings and edge.source in pointers:
            edges[number] = edge._replace(latency=max(0.0, edge.latency - savings[edge.target]))
