"""The answer of the blocking study: what fails, the ways to block the nest that mend it, and what they buy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kernmodel.errors import Note
from kernmodel.studies.predict.request import EcmAnswer
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.formulas.formula import Formula
    from kernmodel.models.ecm import EcmPrediction, ScalingPoint
    from kernmodel.traffic.model import Traffic


@dataclass(frozen=True, slots=True)
class BlockLimit:
    """A layer condition that fails without blocking, solved for block sizes.

    Attributes:
        cache, capacity_bytes: the cache, and what a core has of it × safety factor.
        carried_by: loop variable along which the reuse runs; accesses: references that then hit.
        loops: the blocked loops.
        required_bytes: volume needed inside a block, a formula in the block sizes B_i … and the sizes.
        solved: for each blocked loop, the condition solved for its block size (the others as in the candidate), as text
            ("B_i ≤ 448").
        largest: for each blocked loop, the largest block size for which it holds, in iterations; None: none does.
        lines_saved: cache lines per unit of work that hit in this cache if it holds.
    """

    cache: str
    capacity_bytes: float
    carried_by: str
    accesses: tuple[str, ...]
    loops: tuple[str, ...]
    required_bytes: Formula
    solved: Mapping[str, str]
    largest: Mapping[str, int | None]
    lines_saved: float


UNMEASURED_RUN = 4096.0
"""Bytes of contiguous runs from memory below which lines may cost more than the bandwidth says: prefetchers of common
processors stop at the end of a page."""


@dataclass(frozen=True, slots=True)
class MemoryRun:
    """The shortest contiguous run in which lines come from memory.

    Attributes:
        bytes: its length; access: the reference.
        cycles: what starting streams anew costs, in the prediction, cy/CL; None where the machine file does not say
            what lines of short runs take.
    """

    bytes: float
    access: str
    cycles: float | None

    @property
    def is_marked(self) -> bool:
        """Whether it may cost more than is predicted: it is short, and nobody measured what that costs here."""
        return self.cycles is None and self.bytes < UNMEASURED_RUN


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to block the nest.

    Attributes:
        blocks: block size in iterations by loop, in the order in which the loops over blocks stand, outermost first.
        cache: the cache that the block size is made for; limit: the condition that it comes from.
        traffic: of the blocked nest; halo_share: lines from memory that only the borders of blocks cause, as a share of
            all lines from memory.
        prediction: of the blocked nest.
        speedup: T_ECM before / after.
        because: one sentence: which reuse comes to fit into which cache, and what it costs.
        run: how lines come from memory; None where no reference walks contiguously through memory.
    """

    blocks: Mapping[str, int]
    cache: str
    limit: BlockLimit
    traffic: Traffic
    halo_share: float
    prediction: EcmPrediction
    speedup: float
    because: str
    run: MemoryRun | None


@dataclass(frozen=True, slots=True)
class TemporalPotential:
    """What blocking in time could at most bring: T_ECM (cy/CL) if the data of several sweeps stayed in `cache`, which
    would have to hold the working set of a block (bytes of one core)."""

    cache: str
    cycles: float
    speedup: float


@dataclass(frozen=True, slots=True)
class BlockingAnswer:
    """The answer of `kernmodel blocking`.

    Attributes:
        before: the nest as it stands.
        limits: all conditions that fail and the block sizes that would mend them.
        candidates: ranked, the best first; empty where blocking buys nothing.
        saturated: performance of all cores of a ccNUMA domain, before and with the best candidate.
        temporal: innermost cache last; empty where the nest has no sweep to repeat.
        refused: loops that may not be blocked, and why.
        sweep: (block size, prediction) over block sizes of the best candidate's innermost blocked loop, for a picture.
    """

    before: EcmAnswer
    limits: tuple[BlockLimit, ...]
    candidates: tuple[Candidate, ...]
    saturated: tuple[ScalingPoint, ScalingPoint] | None
    temporal: tuple[TemporalPotential, ...]
    refused: Mapping[str, str]
    sweep: tuple[tuple[int, EcmPrediction], ...]
    notes: tuple[Note, ...]

    @property
    def swept_loop(self) -> str:
        """The loop whose block size `sweep` varies: the innermost blocked one of the best candidate, "" without one."""
        return innermost(self.before, self.candidates[0]) if self.candidates else ""


def innermost(before: EcmAnswer, candidate: Candidate) -> str:
    """The blocked loop that stands furthest in: its blocks are the runs that streams come in."""
    return next(loop.variable for loop in reversed(before.nest.loops) if loop.variable in candidate.blocks)
