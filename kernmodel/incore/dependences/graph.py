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

from dataclasses import replace

from kernmodel.incore.dependences.adders import adder_figures
from kernmodel.incore.dependences.addresses import Forwarding, MemoryPolicy
from kernmodel.incore.dependences.cycles import Edge
from kernmodel.incore.dependences.data_flow import DataFlowFigures, data_flow_figures
from kernmodel.incore.tables.core_parameters import AdderParameters, Parameters
from kernmodel.isa import isa_of
from kernmodel.value_types import dataclass


def synchronised(isa_name: str) -> str:
    """The carrier of the stack pointer where the stack engine hands it on."""
    return f"{isa_of(isa_name).registers.stack_pointer} (stack engine)"


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
    """

    owners: tuple[int, ...]
    carriers: tuple[str, ...]
    entry: tuple[float, ...]
    edges: tuple[Edge, ...]
    latencies: tuple[float, ...]
    blocked: tuple[Forwarding, ...]
    incomparable: bool


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
        between_domains: cycles that vectors take from units for floating-point numbers to units for integers and back.
    """

    flows: DataFlowFigures
    memory: MemoryPolicy
    forward: float
    synchronise: float
    shortest: float | None
    adders: AdderParameters | None = None
    between_domains: float = 0.0


def graph_figures(parameters: Parameters, memory: MemoryPolicy = "moving") -> GraphFigures:
    """The figures of a core under a memory policy."""
    flows, registers = data_flow_figures(parameters), parameters.registers
    forwarded = parameters.loads.forwarded if memory == "stack" else None
    if forwarded is not None:
        flows = replace(flows, stores_take_time=False)
    return GraphFigures(
        flows,
        memory,
        parameters.store_forward_latency,
        registers.synchronisation or 0.0,
        None if forwarded is None else parameters.load_latency - forwarded,
        adder_figures(parameters),
        registers.between_domains or 0.0,
    )
