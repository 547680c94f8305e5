"""The traffic of a nest among those that are executed with it: what they find in caches of one another is counted.

By layer conditions between nests (`traffic.conditions.siblings`) where these are shown to hold, by a simulation of all
nests one after the other where they are near a threshold and the simulation is short; else the answer says what it
leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from kernmodel.errors import KernmodelError, Note
from kernmodel.source.nest.sequence import NestSequence
from kernmodel.studies.predict.memo import Memo
from kernmodel.studies.predict.nests import own_sizes, sizes_at, sizes_of_any
from kernmodel.traffic.model import SYMBOLIC, Difference, Traffic
from kernmodel.traffic.options import SimulationOptions, StoreMode

if TYPE_CHECKING:
    from kernmodel.machine.model import Machine
    from kernmodel.studies.predict.traffic import TrafficMethod
    from kernmodel.traffic.conditions.cache_sets import Room
    from kernmodel.traffic.conditions.siblings import SequenceReuse
    from kernmodel.traffic.conditions.streams import Neighbour, SizedNest
    from kernmodel.traffic.simulation.sampling import Sample
    from kernmodel.traffic.simulation.work import Work

_FEW = 8

Simulated = tuple[tuple["Work", ...], tuple["Sample", ...]]


class Together:
    """Nests that are executed one after the other at given sizes, with what is known of their reuse."""

    def __init__(self, sequence: NestSequence, point: Mapping[str, int]) -> None:
        self.sequence = sequence
        self.point = dict(point)
        self._reuses: Memo[SequenceReuse] = Memo(_FEW)
        self._samples: Memo[Simulated | None] = Memo(_FEW)

    def sizes(self) -> tuple[dict[str, int], ...]:
        """The sizes of each nest."""
        nests = self.sequence.nests
        known = sizes_of_any(nests)
        return tuple(sizes_at(nest, own_sizes([nest], self.point, known))[0] for nest in nests)

    def sized(self, number: int, line_bytes: int) -> SizedNest:
        """A nest with what it finds of the others.

        Raises:
            KernmodelError: layer conditions do not apply to one of the nests.
        """
        return self._reuses.get(line_bytes, lambda: self._reuse(line_bytes)).sized(number)

    def _reuse(self, line_bytes: int) -> SequenceReuse:
        from kernmodel.traffic.conditions.siblings import Member, SequenceReuse
        from kernmodel.traffic.conditions.streams import at_sizes
        from kernmodel.traffic.conditions.symbolic_nest import symbolic_nest

        pairs = zip(self.sequence.nests, self.sizes(), strict=True)
        members = (Member(at_sizes(symbolic_nest(nest), sizes, line_bytes), line_bytes) for nest, sizes in pairs)
        return SequenceReuse(self.sequence, tuple(members))

    def simulated(
        self, number: int, method: TrafficMethod, cores: int, stores: StoreMode, *, whole: bool
    ) -> Traffic | None:
        """The traffic of a nest by simulating all nests one after the other; None where that takes too long.

        Args:
            whole: whether it may cost as much as a simulation that was asked for.
        """
        from kernmodel.traffic.simulation.hierarchy import hierarchy_of
        from kernmodel.traffic.simulation.simulate import counted_traffic

        options = method.request.simulation or SimulationOptions()
        hierarchy = hierarchy_of(method.machine, cores, options)
        key = method.machine.name, cores, stores, whole
        found = self._samples.get(key, lambda: self._run(method.machine, cores, stores, options, whole=whole))
        if found is None:
            return None
        works, samples = found
        placed = works[number], hierarchy, method.machine, samples[number]
        return counted_traffic(*placed, cores=cores, stores=stores, options=options)

    def _run(
        self, machine: Machine, cores: int, stores: StoreMode, options: SimulationOptions, *, whole: bool
    ) -> Simulated | None:
        from kernmodel.traffic.simulation.hierarchy import hierarchy_of
        from kernmodel.traffic.simulation.index_arrays import indirect_values
        from kernmodel.traffic.simulation.program import numeric_nest
        from kernmodel.traffic.simulation.sampling import checking, effort
        from kernmodel.traffic.simulation.sequence import SequenceRun, placed_works

        hierarchy, nests = hierarchy_of(machine, cores, options), []
        for nest, sizes in zip(self.sequence.nests, self.sizes(), strict=True):
            own = {name: one for name, one in options.indirect.items() if name in nest.arrays}
            values = indirect_values(nest, own, options.seed)
            nests.append(numeric_nest(nest, sizes, machine.line_bytes, stores, values))
        run = SequenceRun(self.sequence, placed_works(self.sequence, nests, hierarchy, options), hierarchy)
        if not run.is_affordable((effort() if whole else checking()).sweep):
            return None
        return run.works, run.simulate()


def traffic_among(
    together: Together, number: int, method: TrafficMethod, sizes: Mapping[str, int], cores: int, stores: StoreMode
) -> Traffic:
    """The traffic of a nest among others, by the method that was asked for.

    Raises:
        UnsupportedKernelError: the method does not apply to the nest.
    """
    request = method.request
    # the nest by itself, which is not asked for where layer conditions or a simulation of all nests answer
    alone = cache(lambda: replace(method, among=None, reuses=Memo(_FEW)).found(sizes, cores, stores))
    symbolic: Traffic | None = None
    try:
        wanted = request.cache in ("lc", "auto") and stores != "nt"
        symbolic = method.symbolic(sizes, cores, stores) if wanted else None
    except KernmodelError as error:
        if request.cache == "lc":
            return _apart(alone(), f"layer conditions do not apply to all of them ({error.what})")
    if symbolic is not None and (request.cache == "lc" or request.safety != 1):
        return symbolic
    asked = request.cache in ("sim", "both") or request.simulation is not None
    if symbolic is not None and not asked and not _is_doubtful(together, method, symbolic, alone(), cores):
        return replace(symbolic, notes=alone().notes)
    try:
        simulated = together.simulated(number, method, cores, stores, whole=asked)
    except KernmodelError as error:
        return _apart(alone(), f"not all of them can be simulated ({error.what})")
    if simulated is None and (symbolic is None or alone().method != SYMBOLIC):
        return _apart(alone(), "a simulation of all of them takes too long")
    if symbolic is None or simulated is None:
        return simulated or replace(symbolic or alone(), notes=(*alone().notes, _NEAR_NOTE))
    return _judged(symbolic, simulated, alone())


def _is_near(one: Neighbour, given: Sequence[Room]) -> bool:
    """Whether it decides at these caches how many lines stay, which layer conditions do not tell."""
    from kernmodel.traffic.comparison.doubts import SPAN

    low, high = SPAN[0] * float(one.least.value), SPAN[1] * float(one.volume.value)
    return one.partial or bool(one.array and not one.writes and any(low < room.capacity < high for room in given))


def _is_doubtful(together: Together, method: TrafficMethod, symbolic: Traffic, alone: Traffic, cores: int) -> bool:
    """Whether a volume between nests is near what a cache has, or a nest finds parts of arrays, or layer conditions do
    not stand for the nest by itself."""
    from kernmodel.traffic.comparison.agreement import differs
    from kernmodel.traffic.conditions.cache_sets import rooms

    given = rooms(method.machine, cores, 1.0)
    numbers = range(len(together.sequence.nests))
    # what one of them gives up later another one is not charged for: all are simulated, or none
    if any(_is_near(one, given) for k in numbers for one in together.sized(k, method.machine.line_bytes).neighbours):
        return True
    return alone.method != SYMBOLIC and differs(alone if alone.symbolic is None else alone.symbolic, symbolic)


def _judged(symbolic: Traffic, simulated: Traffic, alone: Traffic) -> Traffic:
    """Layer conditions where the simulation of all nests agrees with them, else what it counts."""
    from kernmodel.traffic.comparison.agreement import disagreements, relative_difference
    from kernmodel.traffic.comparison.evidence import simulated_instead

    found = tuple(
        Difference(path, quantity, a, b, relative_difference(a, b), "threshold", _REASON)
        for path, quantity, a, b in disagreements(symbolic, simulated)
    )
    if not found:
        return replace(symbolic, notes=alone.notes)
    where = ", ".join(dict.fromkeys(each.path for each in found))
    note = Note("threshold", f"simulated with the nests around it, since on {where} {_REASON}", "assumption")
    return simulated_instead(symbolic, simulated, found, (note,))


_REASON = "what is touched between nests is about as large as a cache, or changes over their loops"

_NEAR_NOTE = Note(
    "near-threshold-between-nests",
    f"{_REASON}: layer conditions take it to stay whole or not at all, and a simulation of all nests takes too long",
    "assumption",
)


def _apart(traffic: Traffic, why: str) -> Traffic:
    text = f"what the nest finds in caches of the nests around it is not counted: {why}"
    return replace(traffic, notes=(*traffic.notes, Note("reuse-between-nests", text)))
