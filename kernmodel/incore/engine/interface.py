"""The interface of the engine: requests and answers, the same for the compiled engine and its twin in Python."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Protocol

from kernmodel.incore.dependences.addresses import Forwarding
from kernmodel.incore.dependences.cycles import Edge
from kernmodel.incore.engine.layout import (
    COMPONENTS,
    REASONS,
    WHOLE,
    Access,
    Core,
    Entry,
    FetchUnit,
    MicroOp,
    Request,
    Totals,
    Wait,
)
from kernmodel.incore.engine.lowering import Pair, Template
from kernmodel.value_types import NamedTuple

_PRECEDENCE, _PIPELINE = COMPONENTS.index("precedence"), COMPONENTS.index("pipeline")
_TINY = 1e-9


class Look(NamedTuple):
    """A block as the engine is asked about it: by the numbers of instructions that it was given before.

    Attributes:
        instructions: their numbers.
        pairs: (number of the first instruction in the block, µops of it and the branch behind it) of all that
            macro-fuse, wherever the block stands.
        places: where instructions start, in bytes from the first; empty where each follows the one before.
        links: which stores feed which loads; simulated_links: by the policy of the pipeline.
        splits: per instruction, the share of passes in which its access takes longer, as across lines; empty if none
            does.
        accesses: what becomes of loads and stores by their addresses.
    """

    instructions: Sequence[int]
    pairs: Sequence[tuple[int, int]]
    links: Sequence[Forwarding]
    simulated_links: Sequence[Forwarding]
    places: Sequence[int] = ()
    splits: Sequence[float] = ()
    accesses: Sequence[Access] = ()

    def request(self, unrolled: bool, offset: int, all_parts: bool = False, scope: int = WHOLE) -> Request:
        """The request to the engine; arguments as in `Request`."""
        return Request(
            len(self.instructions),
            unrolled,
            offset,
            len(self.links),
            len(self.simulated_links),
            len(self.pairs),
            bool(self.places),
            all_parts,
            scope,
            len(self.accesses),
        )


class Answer(NamedTuple):
    """What the engine says of a block.

    Attributes:
        totals: whole numbers.
        stalls: cycles of the period in which the renamer stood still or ended early, in the order of `REASONS`.
        components: cycles of each, in the order of `COMPONENTS`.
        ports_alone: cycles of ports without measured throughputs, which are `slow`.
    """

    totals: Totals
    stalls: Sequence[int]
    components: Sequence[float]
    ports_alone: float
    slow: float

    @property
    def met(self) -> dict[str, float]:
        """Cycles of the components that the block meets, by name."""
        components = self.components
        return {name: components[number] for number, name in _named(self.totals.applies)}

    @property
    def applied(self) -> dict[str, float]:
        """Of these, those that count."""
        found = self.met
        if self.overtaken:
            del found[COMPONENTS[_PRECEDENCE]]
        return found

    @property
    def overtaken(self) -> bool:
        """Whether the simulation is faster than the slowest chain, which leads through memory and then does not count:
        the simulation knows better which part of a forwarding waits for what."""
        totals = self.totals
        if not totals.through_memory or not totals.applies >> _PIPELINE & 1:
            return False
        return self.components[_PRECEDENCE] > self.components[_PIPELINE] + _TINY

    @property
    def idle(self) -> dict[str, float]:
        """Bounds of parts that the block does not meet."""
        return {name: self.components[number] for number, name in _named(self.totals.idle)}

    @property
    def stall_shares(self) -> dict[str, float] | None:
        """Share of the cycles in which the renamer stood still or ended early, by reason; None without a simulation."""
        if not self.totals.applies >> _PIPELINE & 1:
            return None
        period = max(self.totals.period, 1)
        return {name: count / period for name, count in zip(REASONS, self.stalls, strict=True)}


@cache
def _named(bits: int) -> tuple[tuple[int, str], ...]:
    """The components of a set, with their places."""
    return tuple([(number, name) for number, name in enumerate(COMPONENTS) if bits >> number & 1])


class BlockGraph(NamedTuple):
    """The dependency graph of a block.

    Attributes:
        owners, values: of each vertex, its instruction and which of its values it is, -1 for the stack engine's µop.
        ready: of each, cycles after the start of a pass at which it is ready if only what was there before counts.
        edges: dependencies.
        fused: first instructions of the pairs that macro-fuse.
    """

    owners: tuple[int, ...]
    values: tuple[int, ...]
    ready: tuple[float, ...]
    edges: tuple[Edge, ...]
    fused: frozenset[int]


class Program(NamedTuple):
    """The input of the simulation.

    Attributes:
        core: sizes and figures.
        units, entries: as the fetch delivers them, and as they stand in the queue.
        first_microop: per issue slot its first µop, and one behind.
        microops: in the order of issue, and one behind; waits: what they wait for.
        schedule: units that leave the predecoder, cycle by cycle.
        floor: cycles per pass of the slowest part of the core, 0 if it is not known.
    """

    core: Core
    units: tuple[FetchUnit, ...]
    entries: tuple[Entry, ...]
    first_microop: tuple[int, ...]
    microops: tuple[MicroOp, ...]
    waits: tuple[Wait, ...]
    schedule: tuple[int, ...]
    floor: float = 0.0


class Engine(Protocol):
    """Bounds blocks of one core. Methods as those of `compiled.CompiledEngine`."""

    def template(self, template: Template) -> tuple[int, int]:
        """Take a template; its number, and that of its µops."""

    def pair(self, pair: Pair) -> int:
        """Take a macro-fused pair; the number of its µops."""

    def instruction(self, template: tuple[int, int], layout: Sequence[int], resources: Sequence[int]) -> int:
        """Take an instruction; its number."""

    def block(self, look: Look, how: Request) -> Answer | None:
        """What bounds a block, None for one that is beyond the engine."""

    def cycle(self, totals: Totals) -> Sequence[tuple[Edge, int, int]]:
        """The slowest cycle of the latest block: each edge, and instruction and value at its source."""

    def graph(self, totals: Totals) -> BlockGraph:
        """The dependency graph of the latest block."""

    def program(self) -> Program:
        """The input of the simulation of the latest block."""
