"""Blocked nests modelled: their traffic with the borders of blocks, and the core's time with short inner loops.

Each is the blocked nest that it is: layer conditions (or a simulation) of `nest.tiling.tile`, the loop that the
compiler makes of `source.emit.blocked_text.tiled_source`, composed as the machine says.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from itertools import product

from kernmodel.errors import KernmodelError, Note
from kernmodel.machine.model import CacheLevel, Machine
from kernmodel.models.ecm import EcmPrediction, predict, refuse_unknown
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.jammed import Jam, in_order, jammed
from kernmodel.source.nest.sizes import sizes_of
from kernmodel.source.nest.tiling import tile, whole_blocks
from kernmodel.studies.blocking.limits import Blocks, ReuseKey, loop_extents, reuse_analysis
from kernmodel.studies.predict.division import CoreParts
from kernmodel.studies.predict.order import jam_of
from kernmodel.studies.predict.outside import inner_iterations
from kernmodel.studies.predict.request import CodeRequest, EcmAnswer, KernelRequest, Point
from kernmodel.studies.predict.stages import Code, Stages
from kernmodel.traffic.conditions.requirements import savings
from kernmodel.traffic.conditions.reuse import Analysis, StreamReuse, misses_where
from kernmodel.traffic.conditions.streams import at_sizes
from kernmodel.traffic.conditions.symbolic_nest import symbolic_nest
from kernmodel.traffic.conditions.windows import Window
from kernmodel.traffic.gradual import OTHERS, REPLACEMENT
from kernmodel.traffic.jammed import per_source_iteration
from kernmodel.traffic.model import Traffic
from kernmodel.traffic.simulation.sampling import effort
from kernmodel.traffic.simulation.simulate import simulate
from kernmodel.traffic.stream_runs import strides_of
from kernmodel.value_types import dataclass

SMALL = 2_000_000
"""Accesses of a nest that is simulated as a whole in the time that a command may take."""

WORKERS = 4
"""Simulations at a time, as far as there are cores."""

WINDOWS = 0.1
"""Share of the usual effort that is spent on simulating one way to block a nest, of which several are compared."""


@dataclass(frozen=True, slots=True)
class Modelled:
    """One blocked nest with its answer."""

    blocks: Mapping[str, int]
    answer: EcmAnswer

    @property
    def prediction(self) -> EcmPrediction:
        """What is predicted for it."""
        return self.answer.prediction


class Modeller:
    """Models blocked nests of one kernel on one machine.

    Attributes:
        before: the nest as it stands, by layer conditions.
        nest: what one core executes of it.
        extents: iterations of each loop of that; sizes: of the nest.
        is_small: whether sweeps over the whole nest are simulated at once, rather than windows of it.
        compared: the block sizes that were simulated.
        spread: how work and threads are spread over cores.
    """

    def __init__(self, kernel: KernelRequest, code: CodeRequest) -> None:
        self._stages, self._point, self.spread = Stages(), Point(kernel, code), kernel.spread
        self.before = before = self._stages.answer(self._point)
        refuse_unknown(before.prediction, before.machine, "what blocking gains")
        self._codes: dict[tuple[str, ...], Code | None] = {}
        self._plain = self._stages.code(self._point, before.machine)
        self.notes: list[Note] = []
        self.sizes = sizes_of(before.nest, kernel.sizes)
        self.parts = kernel.parts or kernel.cores
        self._shares: dict[int, LoopNest] = {}
        self.nest = self._share_of(self.parts)
        self.extents = loop_extents(self.nest, self.sizes)
        self.compared: set[tuple[tuple[str, int], ...]] = set()
        self._analyses: dict[Jam | None, Analysis] = {}
        self.is_small = (before.traffic.iterations_per_sweep or 0) * len(before.nest.accesses) <= SMALL

    def jam_of(self, one: Modelled) -> Jam | None:
        """How many iterations of an outer loop the code of a blocked nest executes at once, as far as its traffic is
        that of this order."""
        # its code has loops over blocks too, and not as many iterations of a blocked loop
        nest = tile(self.nest, one.blocks) if one.blocks else self.nest
        jam = None if self._point.code.classic else jam_of(one.answer.loop, nest, self.sizes)
        return jam if jam and jammed(nest, jam) else None

    @property
    def jam(self) -> Jam | None:
        """The same of the nest as it stands."""
        return self.jam_of(Modelled({}, self.before))

    def _analysis(self, jam: Jam | None) -> Analysis:
        """The reuse of the nest in the order of code that executes so many iterations at once."""
        if jam not in self._analyses:
            line, nest = self.before.machine.line_bytes, symbolic_nest(in_order(self.nest, jam))
            sized = at_sizes(nest, self.sizes, line)
            self._analyses[jam] = reuse_analysis(sized, line, self.before.traffic.stores)
        return self._analyses[jam]

    def _share_of(self, parts: int) -> LoopNest:
        """What one of so many cores executes of the nest; all of it where no part stands for that."""
        if parts not in self._shares:
            nest, classic = self.before.nest, self._point.code.classic
            part = None if classic else CoreParts(nest, self.spread, self.sizes).of(parts)
            self._shares[parts] = part or nest
        return self._shares[parts]

    def simulated(self, blocks: Blocks, cores: int | None = None, parts: int | None = None) -> Modelled:
        """The blocked nest with simulated traffic, which knows associativity; layer conditions stay those of `full`.

        Small nests, and the nest as it stands, are simulated as every command simulates them; of other blocked nests
        windows within whole blocks are. Where data are about as large as what others leave of a shared cache, or as a
        first cache that gives up lines before it is full, layer conditions are taken, with the share that it keeps: a
        simulated cache loses all lines at once.

        Args:
            cores: that are active in the ccNUMA domain; parts: in all; None: as in the request.
        """
        return self.simulated_all([blocks], cores, parts)[0]

    def simulated_all(
        self, shapes: Sequence[Blocks], cores: int | None = None, parts: int | None = None
    ) -> list[Modelled]:
        """The same of several ways to block the nest, simulated side by side."""
        asked = self._asked(cores, parts)
        symbolic = [self._modelled(blocks, self._code(blocks), asked) for blocks in shapes]
        nest = self._share_of(asked.parts or asked.cores)
        self.compared |= {tuple(blocks.items()) for blocks in shapes if blocks}
        with ThreadPoolExecutor(max_workers=min(WORKERS, os.cpu_count() or 1)) as pool:
            # the compiled engine runs without the interpreter's lock
            found = list(pool.map(lambda one: self._in_windows(one, nest), symbolic))
        return [
            one if _loses_little_by_little(one) else self._with_traffic(one, traffic, asked)
            for one, traffic in zip(symbolic, found, strict=True)
        ]

    def _in_windows(self, one: Modelled, nest: LoopNest) -> Traffic | None:
        """The traffic of a nest of whole blocks, by simulated windows; None where the nest is not simulated so."""
        if not one.blocks or self.is_small or _loses_little_by_little(one):
            return None
        whole = whole_blocks(nest, one.blocks)
        if whole is None:
            return None
        known, jam = one.answer.traffic, self.jam_of(one)
        ordered = in_order(whole, jam)
        found = simulate(
            ordered, one.answer.machine, self.sizes,
            cores=known.cores, stores=known.stores, spend=effort(WINDOWS),
        )  # fmt: skip
        return found if jam is None or ordered is whole else per_source_iteration(found, whole, self.sizes, jam)

    def _with_traffic(self, symbolic: Modelled, traffic: Traffic | None, asked: KernelRequest) -> Modelled:
        """The model of the same nest with simulated traffic; None: as every command simulates it."""
        known = symbolic.answer.traffic
        if traffic is None:
            simulated = replace(asked, cache="sim")
            traffic = self._modelled(symbolic.blocks, self._code(symbolic.blocks), simulated).answer.traffic
        traffic = replace(
            traffic,
            conditions=known.conditions,
            iterations_per_sweep=known.iterations_per_sweep,
        )
        answer = symbolic.answer
        classic, outside = self._point.code.classic, answer.prediction.outside
        streams = None if classic else self._stages.streams(self._point.kernel.machine)
        prediction = predict(traffic, answer.incore, answer.machine, outside=outside, runs=answer.runs, streams=streams)
        return Modelled(symbolic.blocks, replace(answer, traffic=traffic, prediction=prediction))

    def by_default(self) -> Modelled:
        """The nest as it stands with the traffic that every command finds by default: as far as they are shown to hold,
        layer conditions."""
        point = replace(self._point, kernel=replace(self._point.kernel, cache="auto"))
        return Modelled({}, self._stages.answer(point, code=self._plain))

    def quick(self, blocks: Blocks) -> Modelled:
        """The blocked nest with the loop that is compiled without blocking."""
        return self._modelled(blocks, self._plain, self._point.kernel)

    def full(self, blocks: Blocks, cores: int | None = None) -> Modelled:
        """The blocked nest with its own loop, compiled once for all block sizes of the same loops."""
        return self._modelled(blocks, self._code(blocks), self._asked(cores))

    def _asked(self, cores: int | None, parts: int | None = None) -> KernelRequest:
        """The request, of other numbers of cores where these are given."""
        return self._point.kernel if cores is None else replace(self._point.kernel, cores=cores, parts=parts)

    def _modelled(self, blocks: Blocks, code: Code, kernel: KernelRequest) -> Modelled:
        point = replace(self._point, kernel=kernel, blocks=tuple(blocks.items()))
        at = replace(point, kernel=self._point.kernel)
        return Modelled(dict(blocks), self._stages.answer(point, at=at, code=code))

    def used_sets(self, cache: str, blocks: Blocks) -> float:
        """The share of the sets of a cache that the data of a block map to."""
        return used_sets(self.before.nest, self.before.machine, cache, self.sizes, self.extents, blocks)

    def is_known(self, blocks: Blocks) -> bool:
        """Whether there is a loop for these blocks: their own, or that of the plain nest unless the compiler has
        unrolled the whole inner loop there, which no block has."""
        inner = self.before.nest.inner.variable
        unrolled = inner_iterations(self.before) > self.extents[inner]
        return not (unrolled and inner in blocks and self._code(blocks) is self._plain)

    def _code(self, blocks: Blocks) -> Code:
        """The compiled loop of the nest with these loops blocked; that of the plain nest where it cannot be had."""
        loops = tuple(blocks)
        if loops not in self._codes:
            self._codes[loops] = self._compiled(blocks)
        return self._codes[loops] or self._plain

    def _compiled(self, blocks: Blocks) -> Code | None:
        if not blocks:
            return None
        point = replace(self._point, blocks=tuple(blocks.items()))
        try:
            return self._stages.code(point, self.before.machine)
        except KernmodelError as error:
            text = f"blocks of {', '.join(blocks)} are modelled with the loop compiled without them: {error.what}"
            self.notes.append(Note("not-compiled", text))
            return None

    def halo_share(self, one: Modelled) -> float:
        """Lines that the last cache misses only because of the borders of blocks, as a share of all that it misses.

        Without borders, the nest as it stands would miss what it misses with the same reuses in that cache.
        """
        traffic, jam = one.answer.traffic, self.jam_of(one)
        last, analysis = self.before.machine.levels[-1].name, self._analysis(jam)
        held = frozenset(
            (reuse.carried_by, reuse.array, reuse.access, reuse.source)
            for condition in traffic.conditions
            if condition.cache == last and condition.holds
            for reuse in condition.reuses
        )
        lines = sum(_missed(reuse, analysis, held) for reuse in analysis.reuses) / (jam.copies if jam else 1)
        all_lines = missed_lines(traffic, last) / traffic.iterations_per_unit
        return max(0.0, 1 - lines / all_lines) if all_lines else 0.0


def _loses_little_by_little(one: Modelled) -> bool:
    return any(cause.note in one.answer.traffic.notes for cause in (OTHERS, REPLACEMENT))


def _missed(reuse: StreamReuse, analysis: Analysis, held: frozenset[ReuseKey]) -> float:
    """Lines per iteration that a stream misses where exactly these reuses fit."""
    kept = {
        saving.window.key
        for saving in savings(reuse, analysis, Fraction(1))
        if (saving.carrier, saving.array, saving.access, saving.source) in held
    }

    def holds(window: Window) -> bool:
        return window.key in kept

    return sum(float(one.misses.value) for one in misses_where(reuse, analysis.nest, holds, analysis.line_bytes))


def missed_lines(traffic: Traffic, cache: str) -> float:
    """Lines per unit of work that a cache misses, those of stores included."""
    number = next(place for place, level in enumerate(traffic.levels) if level.level == cache)
    level = traffic.levels[number]
    return level.load_misses + (level.store_misses if not number else 0.0)


ROWS = 4096
"""Rows of a block that are looked at; more of them repeat what these do."""


def used_sets(
    nest: LoopNest, machine: Machine, cache: str, sizes: Mapping[str, int], extents: Blocks, blocks: Blocks
) -> float:
    """The least share of a cache's sets that the data of a block map to, over all references that blocked loops move.

    Rows whose distance shares a large power of two with the size of a way fall on the same sets; a block of them meets
    conflicts before it fills the cache.

    Args:
        extents: iterations of each loop; blocks: of the blocked ones, within a block.
    """
    level = machine.level(cache)
    shares = []
    for access in nest.accesses:
        strides = strides_of(nest, access, sizes)
        if strides is None:
            continue
        lengths = [
            min(blocks.get(loop.variable, extents[loop.variable]), extents[loop.variable]) for loop in nest.loops
        ]
        moving = [
            (abs(stride), length)
            for stride, length, loop in zip(strides, lengths, nest.loops, strict=True)
            if stride and length > 1 and loop.variable in blocks
        ]
        if moving:
            shares.append(_share(sorted(moving), level))
    return min(shares, default=1.0)


def _share(moving: list[tuple[int, int]], level: CacheLevel) -> float:
    """The share of the sets that rows of the shortest stride, at the places that the other strides give, touch; at most
    as many as there are lines count as needed."""
    (stride, length), *outer = moving
    line, sets = level.line_bytes, level.sets
    row = range(0, stride * length, max(stride, line))
    places = [0]
    for step, count in outer:
        places = [place + step * k for place, k in product(places, range(count))][:ROWS]
    touched = {(place + offset) // line % sets for place in places for offset in row}
    return len(touched) / min(sets, len(row) * len(places))
