"""What results take longer to some units than rows say, by the twin of the engine: those of additions
(`dependences.adders`), and vectors between units for floating-point numbers and for integers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from kernmodel.incore.dependences.cycles import Edge
from kernmodel.incore.engine.program import Lowered
from kernmodel.incore.tables.core_parameters import AdderParameters
from kernmodel.value_types import NamedTuple


class Delays(NamedTuple):
    """What results of a block take longer to some units than their rows say.

    Attributes:
        later: by instruction that adds, or hands on what one gives: cycles that an adder waits longer for it, and
            cycles that another unit does.
        passing: instructions that wait as adders do: these, and moves that are done at rename.
        domains: of the results of instructions, what moves hand on among them; entered: those in which instructions
            execute; between: cycles from one domain to the other.
    """

    later: dict[int, tuple[float, float]]
    passing: frozenset[int] = frozenset()
    domains: Mapping[int, int] = MappingProxyType({})
    entered: Mapping[int, int] = MappingProxyType({})
    between: float = 0.0

    def cycles(self, source: int, target: int) -> float:
        """Cycles that one instruction waits longer for the result of another."""
        found = self.later.get(source)
        longer = 0.0 if found is None else found[target not in self.passing]
        own, entered = self.domains.get(source), self.entered.get(target)
        return longer + (self.between if own and entered and own != entered else 0.0)


def delays(
    instructions: Sequence[Lowered],
    adders: AdderParameters | None,
    between: float,
    owners: Sequence[int],
    edges: Sequence[Edge],
) -> Delays:
    """The delays of a block.

    Args:
        instructions: the block; adders: of the core, None for none; between: cycles between its domains of vectors.
        owners, edges: of its dependency graph.
    """
    found = Delays({}) if adders is None else _adding(instructions, adders, owners, edges)
    entered = {number: own.template.traits.domain for number, own in enumerate(instructions)}
    if not between or not {1, 2} <= set(entered.values()):
        return found
    domains = dict(entered)
    moves = {number for number, own in enumerate(instructions) if own.template.traits.hands_on}
    more = bool(moves)
    while more:  # what moves hand on, moves of moves among them
        more = False
        for edge in edges:
            source, target = owners[edge.source], owners[edge.target]
            if target in moves and domains[source] and not domains[target]:
                domains[target], more = domains[source], True
    return found._replace(domains=domains, entered=entered, between=between)


def _adding(
    instructions: Sequence[Lowered], figures: AdderParameters, owners: Sequence[int], edges: Sequence[Edge]
) -> Delays:
    """The additions of a block.

    Args:
        instructions: the block; figures: of the core.
        owners, edges: of its dependency graph, whose chains tell how many the adders serve.
    """
    templates = [instruction.template for instruction in instructions]
    latencies = {number: own.times.addition for number, own in enumerate(templates) if own.traits.adds}
    if not latencies:
        return Delays({})
    to_adders = 0.0
    if figures.several_chains is not None and _chains(set(latencies), owners, edges) > figures.free_chains:
        to_adders = figures.several_chains
    if figures.beside_wide is not None and any(own.traits.wide for own in templates):
        to_adders = max(to_adders, figures.beside_wide)
    to_others = max(to_adders, figures.to_others or 0.0)
    passing = frozenset(number for number, own in enumerate(templates) if own.traits.adds or own.traits.hands_on)
    later = {n: (max(0.0, to_adders - own), max(0.0, to_others - own)) for n, own in latencies.items()}
    moves = passing - set(latencies)
    more = bool(moves)
    while more:  # what moves hand on, moves of moves among them
        more = False
        for edge in edges:
            to_adder, to_other = later.get(owners[edge.source], (0.0, 0.0))
            target = owners[edge.target]
            if target in moves and to_other - to_adder > later.get(target, (0.0, 0.0))[1]:
                later[target], more = (0.0, to_other - to_adder), True
    return Delays(later, passing)


def _chains(adders: set[int], owners: Sequence[int], edges: Sequence[Edge]) -> int:
    """Number of separate loop-carried chains with additions: sets of vertices that lie on cycles with each other."""
    after: dict[int, list[int]] = {}
    before: dict[int, list[int]] = {}
    for edge in edges:
        after.setdefault(edge.source, []).append(edge.target)
        before.setdefault(edge.target, []).append(edge.source)
    seen: set[int] = set()
    count = 0
    for start in {edge.source for edge in edges if edge.passes}:  # every cycle has an edge into a later pass
        if start in seen:
            continue
        chain = _reached(start, after) & _reached(start, before)
        seen |= chain
        count += any(owners[vertex] in adders for vertex in chain)
    return count


def _reached(start: int, following: dict[int, list[int]]) -> set[int]:
    """The vertices behind one; itself only if it is on a cycle."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        for vertex in following.get(waiting.pop(), ()):
            if vertex not in found:
                found.add(vertex)
                waiting.append(vertex)
    return found


def delayed(edges: Iterable[Edge], owners: Sequence[int], block: Delays) -> list[Edge]:
    """The edges with what is waited longer; not those from what an addition loads to its own result."""
    found = []
    for edge in edges:
        source, target = owners[edge.source], owners[edge.target]
        later = block.cycles(source, target) if source != target or edge.passes else 0.0
        found.append(edge._replace(latency=edge.latency + later) if later else edge)
    return found
