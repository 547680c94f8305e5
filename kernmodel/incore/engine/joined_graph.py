"""The dependency graph of a block, by the twin of the engine; `dependences.graph` says what it is."""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel.incore.dependences.addresses import Forwarding
from kernmodel.incore.dependences.cycles import Edge
from kernmodel.incore.dependences.data_flow import Special
from kernmodel.incore.dependences.graph import GraphFigures
from kernmodel.incore.engine.delays import Delays, delayed, delays
from kernmodel.incore.engine.program import Lowered

_SYNCHRONISED = -1


class JoinedGraph:
    """The graph as it grows, then as it is.

    Attributes:
        owners, values, ready, edges: as in `BlockGraph`.
        delays: what results take longer to some units than rows say, None on cores of which nothing is known of that.
    """

    __slots__ = ("_first", "_latest", "_pending", "delays", "edges", "figures", "owners", "ready", "values")

    def __init__(self, instructions: Sequence[Lowered], links: Sequence[Forwarding], figures: GraphFigures) -> None:
        self.figures = figures
        self.owners: list[int] = []
        self.values: list[int] = []
        self.ready: list[float] = []
        self.edges: list[Edge] = []
        self.delays: Delays | None = None
        self._first: list[int] = []
        self._latest: dict[int, int] = {}
        self._pending: list[tuple[int, int, float]] = []
        ahead = _ahead_at_start(instructions)
        for number, instruction in enumerate(instructions):
            special = instruction.template.flow.special
            if special is not None and special.uses_stack:
                self._bring_up_to_date(number, special, ahead)
                ahead = special.moves_stack
            self._add(number, instruction)
        self._join_passes()
        if figures.flows.pointer_saving:
            self._shorten_pointer_chains(instructions)
        self._join_memory(instructions, links)
        if figures.adders is not None or figures.between_domains:
            self.delays = delays(instructions, figures.adders, figures.between_domains, self.owners, self.edges)
            self.edges = delayed(self.edges, self.owners, self.delays)

    def _vertex(self, owner: int, value: int, ready: float) -> None:
        self.owners.append(owner)
        self.values.append(value)
        self.ready.append(ready)

    def _read(self, resource: int, vertex: int, cycles: float) -> None:
        source = self._latest.get(resource)
        if source is not None:
            self.edges.append(Edge(source, vertex, cycles, 0))
        elif resource >= 0:
            self._pending.append((resource, vertex, cycles))

    def _bring_up_to_date(self, number: int, special: Special, ahead: bool) -> None:
        """Bring rsp, which is resource 0, up to date before an instruction that reads it, if the stack engine is ahead.

        Facile counts the µop that does this only where the instruction also writes rsp.
        """
        if ahead and special.reads_stack and (special.writes_stack or self.figures.memory != "stack"):
            vertex = len(self.owners)
            self._read(0, vertex, self.figures.synchronise)
            self._vertex(number, _SYNCHRONISED, 0.0)
            self._latest[0] = vertex

    def _add(self, number: int, instruction: Lowered) -> None:
        """The values of an instruction, and what they wait for."""
        flow, own, first = instruction.template.flow, instruction.resources, len(self.owners)
        self._first.append(first)
        for value, name, cycles in flow.waits:
            self._read(own[name], first + value, cycles)
        for load, value, cycles in flow.inner:
            self.edges.append(Edge(first + load, first + value, cycles, 0))
        for value, ready in enumerate(flow.entry):
            self._vertex(number, value, ready)
        for names, value in flow.gives:
            self._latest |= {own[name]: first + value for name in names if own[name] >= 0}

    def _join_passes(self) -> None:
        """Add the edges to what waits for a value of the pass before."""
        crossing: dict[tuple[int, int], float] = {}
        for resource, target, latency in self._pending:
            self.ready[target] = max(latency, self.ready[target])
            source = self._latest.get(resource)
            if source is not None:
                crossing[source, target] = max(latency, crossing.get((source, target), 0.0))
        self.edges += [Edge(source, target, latency, 1) for (source, target), latency in crossing.items()]

    def _join_memory(self, instructions: Sequence[Lowered], links: Sequence[Forwarding]) -> None:
        """Add the edges from stores to the loads that read them.

        uops.info's figures from memory to memory of one instruction count a cycle more than those of a load.
        """
        for link in links:
            storing, loading = (instructions[place[0]].template.flow.special for place in (link.store, link.load))
            if storing is None or loading is None:
                raise ValueError("a link names an instruction that accesses no memory")
            store = self._first[link.store[0]] + dict(storing.stores)[link.store[1]]
            load, latency = next((n, c) for n, (place, c) in enumerate(loading.loads) if place == link.load[1])
            cycles = self.figures.forward if link.cycles < 0 else float(link.cycles)
            if self.figures.shortest is not None and link.cycles < 0:
                cycles = latency - self.figures.shortest + (link.store[0] == link.load[0])
            self.edges.append(Edge(store, self._first[link.load[0]] + load, cycles, link.passes))

    def _shorten_pointer_chains(self, instructions: Sequence[Lowered]) -> None:
        """Take the cycles off that some cores save where an address comes straight from a load.

        A move that is eliminated hands on the register that the load wrote.
        """
        specials = [(f, i.template.flow) for f, i in zip(self._first, instructions, strict=True)]
        found = [(first, own.special, len(own.carriers)) for first, own in specials if own.special is not None]
        savings = {first: special.saves for first, special, values in found if special.saves and values}
        straight = [(f + s.pointer, s.copies) for f, s, n in found if s.pointer is not None and s.pointer < n]
        pointers = {vertex for vertex, copies in straight if not copies}
        copying = [edge for edge in self.edges if (edge.target, True) in straight]
        while more := {edge.target for edge in copying if edge.source in pointers} - pointers:
            pointers |= more
        for number, edge in enumerate(self.edges):
            if edge.target in savings and edge.source in pointers:
                self.edges[number] = edge._replace(latency=max(0.0, edge.latency - savings[edge.target]))


def _ahead_at_start(instructions: Sequence[Lowered]) -> bool:
    """Whether the pass before leaves the stack engine ahead of rsp."""
    for instruction in reversed(instructions):
        special = instruction.template.flow.special
        if special is not None and special.uses_stack:
            return special.moves_stack
    return False
