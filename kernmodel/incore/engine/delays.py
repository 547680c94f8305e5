"""What results take longer to some units than rows say, by the twin of the engine: those of additions
(`dependences.adders`), and vectors between units for floating-point numbers and for integers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kernmodel.incore.dependences.cycles import Edge
from kernmodel.incore.engine.program import Lowered
from kernmodel.incore.tables.core_parameters import AdderParameters
from kernmodel.value_types import NamedTuple


class Delays(NamedTuple):
    """What results of a block take longer to some units than their rows say.

    Attributes:
        to_adders, to_others: by instruction, cycles that an adder, and another unit, waits longer for its result.
        passing: instructions that wait as adders do: these, and moves that are done at rename.
        domains: of the results of instructions, what moves hand on among them; entered: those in which instructions
            execute; between: cycles from one domain to the other.
    """

    to_adders: list[float]
    to_others: list[float]
    passing: frozenset[int]
    domains: list[int]
    entered: list[int]
    between: float

    def cycles(self, source: int, target: int) -> float:
        """Cycles that one instruction waits longer for the result of another."""
        own, entered = self.domains[source], self.entered[target]
        longer = (self.to_adders if target in self.passing else self.to_others)[source]
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
        owners, edges: of its dependency graph, whose chains tell how many the adders serve.
    """
    traits = [own.template.traits for own in instructions]
    moves = {number for number, own in enumerate(traits) if own.hands_on}
    to_adders, to_others = [0.0] * len(traits), [0.0] * len(traits)
    latencies = {n: own.template.times.addition for n, own in enumerate(instructions) if adders and traits[n].adds}
    if adders is not None and latencies:
        to_adder, to_other = _of_additions(adders, any(own.wide for own in traits), set(latencies), owners, edges)
        for number, own in latencies.items():
            to_adders[number], to_others[number] = max(0.0, to_adder - own), max(0.0, to_other - own)
    entered = [own.domain for own in traits]
    domains, more = list(entered), bool(moves)
    while more:  # what moves hand on, moves of moves among them
        more = False
        for edge in edges:
            source, target = owners[edge.source], owners[edge.target]
            if target not in moves:
                continue
            longer = to_others[source] - to_adders[source]
            if longer > to_others[target]:
                to_adders[target], to_others[target], more = 0.0, longer, True
            if domains[source] and not domains[target]:
                domains[target], more = domains[source], True
    return Delays(to_adders, to_others, frozenset(moves | set(latencies)), domains, entered, between)


def _of_additions(
    figures: AdderParameters, wide: bool, adding: set[int], owners: Sequence[int], edges: Sequence[Edge]
) -> tuple[float, float]:
    """Cycles until an adder, and another unit, has the result of an addition, 0 for as the row says.

    Args:
        figures: of the core; wide: whether the block names 512-bit registers; adding: the instructions that add.
        owners, edges: of the dependency graph.
    """
    to_adders = 0.0
    if figures.several_chains is not None and _chains(adding, owners, edges) > figures.free_chains:
        to_adders = figures.several_chains
    if figures.beside_wide is not None and wide:
        to_adders = max(to_adders, figures.beside_wide)
    return to_adders, max(to_adders, figures.to_others or 0.0)


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
