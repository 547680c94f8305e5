"""The data traffic of a kernel, and how it is found: by layer conditions, by simulation, or as the kernel allows.

Everything that asks for traffic goes through `TrafficMethod.traffic`; the simulator is imported only where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

from kernmodel.errors import Note, UnsupportedKernelError
from kernmodel.machine.cores import check_cores
from kernmodel.machine.load import load_machine
from kernmodel.machine.model import Machine
from kernmodel.studies.predict.division import CoreParts, division_notes, parallel_at, whole_data
from kernmodel.studies.predict.memo import Memo
from kernmodel.studies.predict.nests import alike, largest, read_nest, sizes_at
from kernmodel.studies.predict.request import KernelRequest, TrafficAnswer
from kernmodel.traffic.options import SimulationOptions, StoreMode
from kernmodel.value_types import dataclass

_FEW, _SOME = 4, 256
"""Of how many sizes the reuse is remembered, and how many parts of a nest are."""

if TYPE_CHECKING:
    from kernmodel.machine.pages import Pages
    from kernmodel.source.model import LoopNest
    from kernmodel.source.nest.jammed import Jam
    from kernmodel.studies.predict.together import Together
    from kernmodel.traffic.comparison.evidence import Evidence
    from kernmodel.traffic.conditions.layer_conditions import SizedReuse, Volumes
    from kernmodel.traffic.conditions.symbolic_nest import SymbolicNest
    from kernmodel.traffic.model import PathTraffic, Traffic
    from kernmodel.traffic.simulation.working_set import WorkingSet

_THRESHOLDS = frozenset({"threshold", "layout"})
"""Codes of doubts that data are about as large as a cache."""

_MATTERS = 0.01
"""Lines that differ by less than this share are told alike."""
_MEETING = 0.1
"""Part by which more lines than layer conditions say cross a path beyond the first cache, from which on it is asked
whether they do where pages lie anywhere: the arrays of stencils that meet in one set make it a half and more."""


@dataclass(frozen=True, slots=True)
class TrafficMethod:
    """The way to the traffic of one nest on one machine, for any sizes, cores and stores.

    Attributes:
        prepared: the nest as layer conditions need it; why they do not apply; or None where they are not asked for.
        reuses: that of the nest at the sizes that were asked for last, which all caches have in common.
        touched: what it touches; needs: what its reuse needs of caches.
        conditions: its traffic by layer conditions, which is asked for again where a simulation decides about it;
            evidence: what speaks against them.
        cuts: how it is divided at the sizes that were asked for last; parts: those that were asked for last;
            inner: its traffic where it stands for them, by layer conditions;
            simulated: what crosses the paths out of its inner caches, as far as that was asked for;
            orders: the ways to its traffic with several iterations of a loop at once, by that loop and their number.
        part: that whose ends its traffic is to have, where it stands for it otherwise; None: the nest by itself.
        among: the nests that are executed with it, and its number among them; None: it is taken alone.
        unblocked: the nest before it was blocked, None: it was not.
    """

    nest: LoopNest
    machine: Machine
    request: KernelRequest
    prepared: SymbolicNest | UnsupportedKernelError | None
    reuses: Memo[SizedReuse] = field(default_factory=lambda: Memo(_FEW))
    touched: Memo[WorkingSet] = field(default_factory=lambda: Memo(_FEW))
    needs: Memo[tuple[Volumes, float]] = field(default_factory=lambda: Memo(_FEW))
    cuts: Memo[CoreParts] = field(default_factory=lambda: Memo(_FEW))
    parts: Memo[TrafficMethod | None] = field(default_factory=lambda: Memo(_SOME))
    inner: Memo[Traffic] = field(default_factory=lambda: Memo(_SOME))
    conditions: Memo[Traffic] = field(default_factory=lambda: Memo(_FEW))
    evidence: Memo[Evidence] = field(default_factory=lambda: Memo(_FEW))
    simulated: Memo[tuple[PathTraffic, ...]] = field(default_factory=lambda: Memo(_SOME))
    orders: Memo[TrafficMethod | None] = field(default_factory=lambda: Memo(_FEW))
    part: TrafficMethod | None = None
    among: tuple[Together, int] | None = None
    unblocked: LoopNest | None = None

    def stores(self) -> StoreMode:
        """The stores that the user named, else those of the machine."""
        from kernmodel.traffic.stores import default_stores

        return self.request.stores or default_stores(self.machine)

    def of_core(
        self,
        sizes: Mapping[str, int],
        cores: int,
        parts: int,
        stores: StoreMode,
        blocks: Mapping[str, int] | None = None,
    ) -> tuple[TrafficMethod, tuple[Note, ...]]:
        """The way to the traffic of one of so many cores that divide the nest, which sweeps over its part alone, and
        what is to be said of that.

        Where a sweep over the part fits nowhere near, and all else is alike, that is the nest itself, with what lies at
        the ends of the part if that is not little: its simulation is the same for every number of parts then.

        Args:
            cores: cores that are active in the ccNUMA domain; parts: in all.
            blocks: block sizes by loop variable that the nest was blocked with.
        """
        if self.among is not None and parts > 1:
            return self, (whole_data("other nests are executed between its sweeps"),)
        if parts == 1:
            return self, ()
        key = tuple(sizes.items()), parts, self.request.spread
        part = self.parts.get(key, lambda: self._part(sizes, parts, blocks or {}))
        if part is None:
            return self, ()
        divided = replace(part, machine=self.machine, request=self.request)
        if not self._stands_for(divided, sizes, cores, stores):
            return divided, ()
        from kernmodel.traffic.conditions.halos import reach_beyond

        ends = reach_beyond(divided._reuse(sizes, stores).nest)
        return replace(self, part=divided if ends > _LITTLE else None), ()

    def _part(self, sizes: Mapping[str, int], parts: int, blocks: Mapping[str, int]) -> TrafficMethod | None:
        """The way to the traffic of a part of the nest, which does not depend on the machine; None: there is none."""
        whole = self.nest if self.unblocked is None else self.unblocked
        key = tuple(sizes.items()), self.request.spread
        part = self.cuts.get(key, lambda: CoreParts(whole, self.request.spread, sizes)).of(parts)
        if part is None or part is whole:
            return None
        if blocks:
            from kernmodel.source.nest.tiling import tile

            part = tile(part, blocks)
        return traffic_method(part, self.machine, self.request)

    def jammed(self, jam: Jam) -> TrafficMethod | None:
        """The way to the traffic of code that executes so many iterations of a loop at once, of which an iteration is
        several of the nest; None where these are not alike, or other nests are executed with it."""
        from kernmodel.source.nest.jammed import jammed

        def find() -> TrafficMethod | None:
            nest = jammed(self.nest, jam)
            return None if nest is None else traffic_method(nest, self.machine, self.request)

        found = None if self.among is not None else self.orders.get(jam, find)
        return found and replace(found, machine=self.machine, request=self.request)

    def _stands_for(self, part: TrafficMethod, sizes: Mapping[str, int], cores: int, stores: StoreMode) -> bool:
        """Whether the nest is known to have the traffic of a part of it, but for its ends."""
        from kernmodel.traffic.comparison.agreement import TOLERANCE
        from kernmodel.traffic.conditions.layer_conditions import stands_for

        try:
            (whole, ends), (divided, ends_of_part) = (one._needs(sizes, stores) for one in (self, part))
        except UnsupportedKernelError:
            return False
        return stands_for(whole, divided, self.machine, cores, self.request.safety) and ends_of_part - ends <= TOLERANCE

    def _needs(self, sizes: Mapping[str, int], stores: StoreMode) -> tuple[Volumes, float]:
        """What each reuse needs, and the share of lines at the ends of loops."""
        from kernmodel.traffic.comparison.doubts import boundary_share
        from kernmodel.traffic.conditions.layer_conditions import needs_of

        def find() -> tuple[Volumes, float]:
            reuse = self._reuse(sizes, stores)
            return needs_of(reuse), boundary_share(self._working_set(sizes, stores), self.machine.line_bytes)

        return self.needs.get((tuple(sizes.items()), self.machine.line_bytes, stores == "nt"), find)

    def traffic(self, sizes: Mapping[str, int], cores: int, stores: StoreMode, lanes: int = 1) -> Traffic:
        """The traffic by the method that was asked for; it says so if it was to evade write-allocates and has none that
        can be evaded.

        Args:
            lanes: iterations of which an access of the code touches the elements at once, where caches are simulated.

        Raises:
            UnsupportedKernelError: the method does not apply to the nest.
        """
        if self.part is not None:
            return self.with_ends(self._whole().traffic(sizes, cores, stores, lanes), sizes)
        return self._executed(self.found(sizes, cores, stores, lanes), sizes)

    def _executed(self, found: Traffic, sizes: Mapping[str, int]) -> Traffic:
        """The traffic without what branches leave out; it says so if no write-allocate is evaded."""
        from kernmodel.traffic.conditional import executed_traffic

        traffic = executed_traffic(found, self.nest, sizes, self.machine)
        if traffic.stores != "evading" or traffic.evasion is not None or not traffic.paths[-1].write_allocates:
            return traffic
        text = "no write-allocate is evaded: the nest writes no whole lines, one after the other, that it does not read"
        return replace(traffic, notes=(*traffic.notes, Note("nothing-evaded", text, "assumption")))

    def _whole(self) -> TrafficMethod:
        """The way to the traffic of the nest by itself."""
        return replace(self, part=None)

    def with_ends(self, traffic: Traffic, sizes: Mapping[str, int]) -> Traffic:
        """The traffic of the nest with what lies at the ends of the part."""
        if self.part is None:
            return traffic
        from kernmodel.traffic.conditions.layer_conditions import on_machines
        from kernmodel.traffic.gradual import PLACES, GradualCaches, gradual_caches, is_mean, mean_traffic
        from kernmodel.traffic.part_ends import with_ends

        caches = gradual_caches(self.machine, traffic, huge=self._huge_pages()) if is_mean(traffic) else None
        caches = caches or GradualCaches((self.machine,), PLACES)

        def conditions(method: TrafficMethod) -> Traffic:
            reuse = method._reuse(sizes, traffic.stores)
            neighbours = method.has_neighbours
            moved = on_machines(traffic, reuse, caches.machines, neighbours=neighbours, explained=False)
            return mean_traffic(traffic, moved, self.machine, caches.cause)

        same = traffic.stores, traffic.cores, traffic.safety
        key = tuple(sizes.items()), *same, *map(traffic_key, caches.machines)
        inside = self.inner.get(key, lambda: conditions(self._whole()))
        return with_ends(traffic, conditions(self.part), inside, self.machine)

    def placed(
        self, found: Traffic, sizes: Mapping[str, int], cores: int, stores: StoreMode, lanes: int = 1
    ) -> Traffic:
        """The traffic where pages lie anywhere in memory: that of caches that lose their lines little by little
        (`traffic.gradual`), or, where a simulation disagrees for other reasons than how large data are, of sets that
        physical addresses fill (`traffic.spread`); as it is found where it was asked to be simulated.

        Args:
            lanes: iterations of the innermost loop of which each access touches the elements at once.
        """
        from kernmodel.traffic.gradual import gradual_caches, mean_traffic

        if self.part is not None:
            before = self._whole().traffic(sizes, cores, stores, lanes)
            return self.with_ends(self._whole().placed(before, sizes, cores, stores, lanes), sizes)
        thresholds = all(one.reason_code in _THRESHOLDS for one in found.differences)
        conditions = found if found.symbolic is None else found.symbolic
        asked = self.request.simulation is not None or self.request.cache == "sim"
        if asked:
            return found
        if not thresholds:
            return self._spread(found, sizes, stores, lanes)
        if not conditions.conditions:
            return found
        caches = gradual_caches(self.machine, conditions, huge=self._huge_pages())
        if caches is None:
            return found
        from kernmodel.traffic.conditional import executed_traffic
        from kernmodel.traffic.conditions.layer_conditions import on_machines

        moved = on_machines(conditions, self._reuse(sizes, stores), caches.machines, neighbours=self.has_neighbours)
        parts = [executed_traffic(one, self.nest, sizes, self.machine) for one in moved]
        mean = mean_traffic(conditions, parts, self.machine, caches.cause)
        # what nobody would see is no cause for other numbers than those of `traffic`
        return mean if found is not conditions or any(_changed(conditions, mean)) else found

    def _spread(self, found: Traffic, sizes: Mapping[str, int], stores: StoreMode, lanes: int) -> Traffic:
        """Simulated traffic by physical addresses, where these make a difference beyond the first cache."""
        from kernmodel.traffic.spread import spread_caches, spread_traffic

        symbolic, machine = found.symbolic, self.machine
        if symbolic is None or self.among is not None or not spread_caches(machine, huge=self._huge_pages()):
            return found
        if all(
            found.path(path.name).lines <= (1 + _MEETING) * symbolic.path(path.name).lines for path in machine.paths[1:]
        ):
            return found
        moved = spread_traffic(found, self.nest, machine, lanes=lanes, pages=self._pages)
        moved = self._beside_neighbours(moved, self._alone(sizes, found.cores, stores), stores)
        return moved if any(_changed(found, moved)) else found

    @property
    def _pages(self) -> Pages | None:
        """In which pages the data lie, None: not known."""
        return self.request.pages or self.machine.pages

    def _huge_pages(self) -> bool:
        return self._pages == "huge"

    def by_conditions(self, sizes: Mapping[str, int], cores: int, stores: StoreMode) -> Traffic | None:
        """The same by layer conditions, whatever speaks against them; None where they do not apply."""
        if self.among is not None or self.request.simulation is not None or self.request.cache not in ("auto", "lc"):
            return None
        try:
            traffic = self._executed(self.symbolic(sizes, cores, stores), sizes)
        except UnsupportedKernelError:
            return None
        return self.placed(traffic, sizes, cores, stores)

    def is_undoubted(
        self, found: Traffic, sizes: Mapping[str, int], cores: int, stores: StoreMode, lanes: int = 1
    ) -> bool:
        """Whether no simulation has a part in what `by_conditions` has found: nothing speaks against the layer
        conditions, or nothing but that data are about as large as a cache that loses its lines little by little."""
        from kernmodel.traffic.gradual import is_mean

        if self.request.cache == "lc" or self.request.safety != 1:
            return True
        alone = self._alone(sizes, cores, stores)
        codes = self._evidence(alone, stores, lanes).codes
        if not codes or not is_mean(found) or not _THRESHOLDS.issuperset(codes):
            return not codes
        # what a simulation says of them would not count
        return self._executed(self._beside_neighbours(alone, alone, stores), sizes) is alone

    def found(self, sizes: Mapping[str, int], cores: int, stores: StoreMode, lanes: int = 1) -> Traffic:
        """The traffic before what branches leave out."""
        if self.among is not None:
            from kernmodel.studies.predict.together import traffic_among

            together, number = self.among
            return traffic_among(together, number, self, sizes, cores, stores)
        if self.request.cache == "lc":
            symbolic = self.symbolic(sizes, cores, stores)
            return replace(symbolic, notes=(*symbolic.notes, *self._doubtful(sizes, cores, stores, lanes)))
        if self.request.cache != "auto":
            simulated = self._simulated(sizes, cores, stores, lanes)
            try:
                alone = self._alone(sizes, cores, stores) if self.has_neighbours else simulated
            except UnsupportedKernelError:
                return simulated
            return self._beside_neighbours(simulated, alone, stores)
        if self.request.simulation is not None:
            return self._simulated(sizes, cores, stores, lanes, because="options of the simulation were given")
        # layer conditions where they are shown to hold: nothing speaks against them, or a simulation agrees
        try:
            symbolic = self._alone(sizes, cores, stores)
        except UnsupportedKernelError as error:
            return self._simulated(sizes, cores, stores, lanes, because=f"layer conditions do not apply: {error.what}")
        if self.request.safety != 1:
            # a wish of the user's that no simulation can tell anything about
            return self._beside_neighbours(symbolic, symbolic, stores)
        from kernmodel.traffic.comparison.evidence import decide

        same = tuple(sizes.items()), stores
        evidence = self._evidence(symbolic, stores, lanes)
        known = decide(evidence, lambda key, make: self.simulated.get((same, key), make))
        return self._beside_neighbours(known, symbolic, stores)

    def _doubtful(self, sizes: Mapping[str, int], cores: int, stores: StoreMode, lanes: int) -> Iterator[Note]:
        """What speaks against layer conditions that are taken at their word, and they do not say themselves."""
        if self.request.safety != 1:
            return  # they are wanted to hold for other caches
        alone = self._alone(sizes, cores, stores)
        said = {note.text for note in alone.notes}
        for doubt in self._evidence(alone, stores, lanes).doubts:
            if doubt.text not in said:
                text = f"layer conditions may not hold: {doubt.text}; by default (--cache auto) a simulation decides"
                yield Note(doubt.code, text, "assumption")

    def _evidence(self, symbolic: Traffic, stores: StoreMode, lanes: int) -> Evidence:
        """What speaks against layer conditions, before anything is simulated."""
        from kernmodel.traffic.comparison.evidence import evidence_of

        key = tuple(symbolic.sizes.items()), traffic_key(self.machine), symbolic.cores, stores, lanes
        sized = self._reuse(symbolic.sizes, stores).nest
        touched = self._working_set(symbolic.sizes, stores) if sized.streams else None
        return self.evidence.get(key, lambda: evidence_of(symbolic, sized, self.machine, lanes, touched))

    def _working_set(self, sizes: Mapping[str, int], stores: StoreMode) -> WorkingSet:
        """What the nest touches, which all caches have in common."""
        from kernmodel.traffic.simulation.working_set import working_set_of_streams

        key = tuple(sizes.items()), self.machine.line_bytes, stores == "nt"
        return self.touched.get(key, lambda: working_set_of_streams(self._reuse(sizes, stores).nest))

    def answer(self, point: Mapping[str, int], cores: int) -> TrafficAnswer:
        """The traffic at one point of sizes with so many active cores; where both ways were asked for, what differs.

        Raises:
            KernmodelError: any stage's error about its input.
        """
        nest, machine, request = self.nest, self.machine, self.request
        sizes, shown = sizes_at(nest, point)
        parts = request.parts or cores
        mine, told = self.of_core(sizes, cores, parts, self.stores())
        traffic = mine.traffic(sizes, cores, mine.stores())
        notes = (
            *nest.notes,
            *traffic.notes,
            *told,
            *(division_notes(nest, request.spread) if parts > 1 and self.among is None else ()),
        )
        if request.cache != "both":
            notes = (*notes, *_placement_notes(traffic, mine.placed(traffic, traffic.sizes, cores, traffic.stores)))
            return TrafficAnswer(nest, machine, shown, traffic, notes, traffic.symbolic, traffic.differences)
        from kernmodel.traffic.comparison.differences import compare_traffic

        try:
            symbolic = mine.symbolic(traffic.sizes, traffic.cores, traffic.stores)
        except UnsupportedKernelError as error:
            note = Note("no-layer-conditions", f"layer conditions do not apply: {error.what}", "assumption")
            return TrafficAnswer(nest, machine, shown, traffic, tuple(dict.fromkeys((*notes, note))))
        options = request.simulation or SimulationOptions()
        differences = compare_traffic(symbolic, traffic, mine.nest, machine, traffic.sizes, options=options)
        new = (note for note in symbolic.notes if note not in traffic.notes)
        notes += tuple(replace(note, text=f"of the layer conditions: {note.text}") for note in new)
        return TrafficAnswer(nest, machine, shown, traffic, tuple(dict.fromkeys(notes)), symbolic, differences)

    def _reuse(self, sizes: Mapping[str, int], stores: StoreMode) -> SizedReuse:
        line_bytes, streaming = self.machine.line_bytes, stores == "nt"
        key = tuple(sizes.items()), line_bytes, streaming
        return self.reuses.get(key, lambda: self._analysed(sizes, line_bytes, stores))

    def _analysed(self, sizes: Mapping[str, int], line_bytes: int, stores: StoreMode) -> SizedReuse:
        from kernmodel.traffic.conditions.layer_conditions import SizedReuse
        from kernmodel.traffic.conditions.streams import at_sizes
        from kernmodel.traffic.conditions.symbolic_nest import symbolic_nest

        if self.among is not None and stores != "nt":
            together, number = self.among
            return SizedReuse(together.sized(number, line_bytes), line_bytes, stores)
        prepared = symbolic_nest(self.nest) if self.prepared is None else self.prepared
        if isinstance(prepared, UnsupportedKernelError):
            raise prepared
        return SizedReuse(at_sizes(prepared, sizes, line_bytes), line_bytes, stores)

    def symbolic(self, sizes: Mapping[str, int], cores: int, stores: StoreMode) -> Traffic:
        """The traffic by layer conditions.

        Raises:
            UnsupportedKernelError: they do not apply to the nest.
        """
        if self.part is not None:
            return self.part.symbolic(sizes, cores, stores)
        alone = self._alone(sizes, cores, stores)
        return self._beside_neighbours(alone, alone, stores)

    @property
    def has_neighbours(self) -> bool:
        """Whether it is one core's part of a nest, and cores of its ccNUMA domain have the parts around it."""
        if not self.nest.divided:
            return False
        spread = self.request.spread
        parallel = parallel_at(self.nest, spread)
        apart = spread.placement == "scatter" and self.machine.topology.numa_domains > 1
        return not apart and (parallel is None or parallel.chunk is None)

    def _beside_neighbours(self, traffic: Traffic, alone: Traffic, stores: StoreMode) -> Traffic:
        """The traffic of a part without the rows around it that cores which share a cache leave there for one another.

        Args:
            alone: by layer conditions, as if the core had the caches for itself.
        """
        if not self.has_neighbours or alone.cores == 1:
            return traffic
        from kernmodel.traffic.part_ends import with_ends

        shared = self._remembered(alone.sizes, alone.cores, stores, "shared", lambda: self._shared(alone, stores))
        return traffic if shared.paths == alone.paths else with_ends(traffic, shared, alone, self.machine)

    def _shared(self, alone: Traffic, stores: StoreMode) -> Traffic:
        """The traffic of a part by layer conditions where cores that share a cache have the parts around it."""
        from kernmodel.traffic.conditions.layer_conditions import finds_of_neighbours, on_machines

        reuse = self._reuse(alone.sizes, stores)
        if not finds_of_neighbours(alone, reuse, self.machine):
            return alone
        (shared,) = on_machines(alone, reuse, (self.machine,), neighbours=True, explained=False)
        return shared

    def _remembered(
        self, sizes: Mapping[str, int], cores: int, stores: StoreMode, what: str, make: Callable[[], Traffic]
    ) -> Traffic:
        """Traffic by layer conditions, which is made if it is not known."""
        if self.among is not None:  # what it finds of other nests is theirs to know
            return make()
        key = what, tuple(sizes.items()), traffic_key(self.machine), cores, self.request.safety, stores
        return self.conditions.get(key, make)

    def _alone(self, sizes: Mapping[str, int], cores: int, stores: StoreMode) -> Traffic:
        """The traffic by layer conditions of the nest by itself, whatever other cores leave in shared caches."""
        from kernmodel.traffic.conditions.layer_conditions import layer_conditions

        def find() -> Traffic:
            reuse, safety = self._reuse(sizes, stores), self.request.safety
            return layer_conditions(reuse, self.machine, sizes, cores=cores, safety=safety, stores=stores)

        return self._remembered(sizes, cores, stores, "alone", find)

    def _simulated(
        self, sizes: Mapping[str, int], cores: int, stores: StoreMode, lanes: int, because: str = ""
    ) -> Traffic:
        from kernmodel.traffic.simulation.simulate import simulate

        options = replace(self.request.simulation or SimulationOptions(), lanes=lanes)
        traffic = simulate(self.nest, self.machine, sizes, cores=cores, stores=stores, options=options)
        notes = [Note("simulated", f"the traffic was simulated, because {because}", "assumption")] if because else []
        if self.request.safety != 1:
            text = "the safety factor is one of layer conditions; the simulated caches have their whole size"
            notes.append(Note("safety-unused", text, "assumption"))
        return replace(traffic, notes=(*notes, *traffic.notes))


def traffic_key(machine: Machine) -> Hashable:
    """What of a machine its traffic depends on."""
    paths = tuple((path.name, path.inner, path.outer) for path in machine.paths)
    return machine.name, machine.file, machine.line_bytes, machine.topology, machine.levels, paths, machine.stores


def is_simulated(request: KernelRequest) -> bool:
    """Whether the traffic is simulated whatever layer conditions say."""
    return request.cache == "sim" or (request.cache == "auto" and request.simulation is not None)


def traffic_method(nest: LoopNest, machine: Machine, request: KernelRequest) -> TrafficMethod:
    """Prepare a nest once for its traffic at many points.

    Raises:
        UnsupportedKernelError: layer conditions were asked for and do not apply.
    """
    if is_simulated(request):
        return TrafficMethod(nest, machine, request, None)
    from kernmodel.traffic.conditions.symbolic_nest import symbolic_nest

    try:
        return TrafficMethod(nest, machine, request, symbolic_nest(nest))
    except UnsupportedKernelError as error:
        if request.cache == "lc":
            raise
        return TrafficMethod(nest, machine, request, error)


def predict_traffic_sweep(
    kernel: KernelRequest,
    points: Sequence[Mapping[str, int]],
    core_counts: Sequence[int] = (),
    *,
    timed: bool = False,
) -> Iterator[TrafficAnswer]:
    """The data traffic for each point of sizes and, within it, each core count (`kernel.cores` if none), as they come.

    Args:
        timed: also what each path takes.

    Raises:
        KernmodelError: any stage's error about its input.
    """
    machine = load_machine(kernel.machine)
    core_counts, points = core_counts or (kernel.cores,), tuple(points)
    for cores in core_counts:
        check_cores(machine, cores)
    nest = read_nest(replace(kernel, sizes=largest(points)))
    groups = alike(nest, points)
    nests = [nest if len(groups) == 1 else read_nest(replace(kernel, sizes=group[0])) for group in groups]
    methods = [traffic_method(nest, machine, kernel) for nest in nests]
    by_point = {id(point): method for group, method in zip(groups, methods, strict=True) for point in group}
    for point in points:
        for cores in core_counts:
            answer = by_point[id(point)].answer(point, cores)
            yield with_transfers(answer) if timed else answer


def with_transfers(answer: TrafficAnswer) -> TrafficAnswer:
    """The answer with what each path takes for its traffic, as the ECM model has it for one core.

    Raises:
        MachineError: the machine file has no bandwidth for a path that needs one.
    """
    from kernmodel.models.streams import streams_of
    from kernmodel.models.transfers import transfer_times
    from kernmodel.studies.predict.machine_check import core_parameters
    from kernmodel.traffic.jammed import runs_of

    traffic, machine = answer.traffic, answer.machine
    runs = runs_of(answer.nest, traffic.sizes, machine) or {}
    streams = streams_of(machine, core_parameters(machine).misses)
    return replace(answer, transfers=transfer_times(machine, streams, traffic, runs))


_LITTLE = 0.01
"""Of the rows of its part, those beyond its ends that a core may load without being counted."""


def _changed(traffic: Traffic, placed: Traffic) -> Iterator[PathTraffic]:
    """The paths that move other lines where a cache loses its lines little by little."""
    for path, mean in zip(traffic.paths, placed.paths, strict=True):
        found = (mean.lines, mean.at("low").lines, mean.at("high").lines)
        if max(abs(lines - path.lines) for lines in found) > _MATTERS * path.lines:
            yield mean


def _placement_notes(traffic: Traffic, placed: Traffic) -> tuple[Note, ...]:
    """What `ecm` takes in place of this traffic, where pages at random places make a difference."""
    changed = list(_changed(traffic, placed))
    if not changed:
        return ()
    from kernmodel.traffic.gradual import OTHERS, PLACES, REPLACEMENT
    from kernmodel.traffic.spread import SPREAD

    causes = (OTHERS.note, REPLACEMENT.note, SPREAD)
    cause = next((note for note in causes if note in placed.notes), PLACES.note)
    taken = "taken" if cause is SPREAD else "on average"
    lines = "; ".join(
        f"{path.path} {path.at('low').lines:.3g} to {path.at('high').lines:.3g} lines, {path.lines:.3g} {taken}"
        for path in changed
    )
    return (replace(cause, text=f"{cause.text}, and `ecm` counts with that: {lines}"),)
