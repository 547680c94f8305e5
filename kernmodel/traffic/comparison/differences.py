"""Where layer conditions and simulation differ, and why: found by simulating again with one thing changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from kernmodel.cachesim.model import MEMORY, Hierarchy
from kernmodel.machine.model import Machine
from kernmodel.source.model import LoopNest
from kernmodel.traffic.comparison.agreement import TOLERANCE, disagreements, relative_difference
from kernmodel.traffic.comparison.doubts import boundary_share, can_add, straddling_arrays
from kernmodel.traffic.model import Difference, LayerCondition, PathTraffic, Quantity, Traffic
from kernmodel.traffic.options import SimulationOptions
from kernmodel.traffic.simulation.hierarchy import hierarchy_of
from kernmodel.traffic.simulation.sampling import effort, sample
from kernmodel.traffic.simulation.simulate import REGULAR, placed_work, simulate_placed, unit_of_program
from kernmodel.traffic.simulation.steady_state import Effort
from kernmodel.traffic.simulation.work import Work
from kernmodel.traffic.simulation.working_set import working_set_of_program
from kernmodel.units import format_bytes, format_share
from kernmodel.value_types import dataclass

NEAR = (0.7, 1.3)
"""Required over available cache between which sets that fill unevenly decide rather than the layer condition."""

AT = (0.85, 1.18)
"""The same where nothing else is asked for."""

VARIED = (0.5, 5.0)
"""The same where trip counts vary: a triangular nest needs from nothing to twice the mean."""

_MORE_WAYS = 16


def compare_traffic(
    symbolic: Traffic,
    simulated: Traffic,
    nest: LoopNest,
    machine: Machine,
    sizes: Mapping[str, int],
    *,
    options: SimulationOptions = REGULAR,
    tolerance: float = TOLERANCE,
) -> tuple[Difference, ...]:
    """The numbers in which two answers for the same nest differ by more than `tolerance`, innermost path first.

    Args:
        symbolic: by layer conditions.
        simulated: by simulation, with `options`.
        nest, machine, sizes: what both are about.
        options: of the simulation.
        tolerance: relative difference that counts.
    """
    experiments = _Experiments(symbolic, simulated, nest, machine, sizes, options)
    found = []
    for path, name, a, b in disagreements(symbolic, simulated, tolerance):
        question = _Question(path, name, a, b, tolerance * max(a, b))
        code, reason = experiments.answer(question)
        found.append(Difference(path, name, a, b, relative_difference(a, b), code, reason))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Question:
    """A number that differs: what it is by both ways, and how near counts as equal."""

    path: str
    quantity: Quantity
    symbolic: float
    simulated: float
    near: float

    def explained_by(self, value: float) -> bool:
        """Whether this value comes as near to the symbolic one, or most of the way there."""
        rest, whole = abs(value - self.symbolic), abs(self.simulated - self.symbolic)
        return rest <= whole / 4 or rest <= min(self.near, whole / 2)


Answer = tuple[str, str]


@dataclass(frozen=True)
class _Experiments:
    """The same nest simulated again with one thing changed; each experiment is made once, and only if asked for."""

    symbolic: Traffic
    simulated: Traffic
    nest: LoopNest
    machine: Machine
    sizes: Mapping[str, int]
    options: SimulationOptions

    def answer(self, question: _Question) -> Answer:
        """The first reason that explains a difference."""
        return next(self._answers(question))

    def _answers(self, question: _Question) -> Iterator[Answer]:
        tests: tuple[Callable[[_Question], Answer | None], ...] = (
            self._streamed,
            self._victims,
            self._replacement,
            self._at_threshold,
            self._mean_trips,
            self._triangle,
            self._conflicts,
            self._few_sets,
            self._inclusion,
            self._inner_hits,
            self._structure,
            self._inside_only,
            self._boundary,
            self._threshold,
            self._unsettled,
        )
        yield from (answer for test in tests if (answer := test(question)) is not None)
        yield "unknown", "no single cause was found"

    # the tests, cheapest first

    def _unsettled(self, question: _Question) -> Answer | None:
        sampling = self.simulated.sampling
        if sampling is None or sampling.settled:
            return None
        return "not-settled", f"the simulation has not settled: {sampling.reason}"

    def _victims(self, question: _Question) -> Answer | None:
        """Lines that come back from a victim cache as modified as they went leave modified again."""
        if question.quantity == "loads":
            return None
        one, other = self.symbolic.path(question.path), self.simulated.path(question.path)
        away = one.evictions, other.evictions
        if not (one.clean_victims or other.clean_victims) or abs(away[0] - away[1]) > question.near:
            return None
        return "victims", (
            f"as many lines leave, {away[1]:.3g} in all: those that come back from the victim cache modified leave so "
            "again, though they are only read"
        )

    def _streamed(self, question: _Question) -> Answer | None:
        """Known beforehand, and no experiment would tell."""
        if all(note.code != "streamed-and-read" for note in self.symbolic.notes):
            return None
        return "streamed-and-read", (
            "streaming stores go to lines that are read as well: each takes the line away from the caches, where layer "
            "conditions have it read whole before it is written"
        )

    def _replacement(self, question: _Question) -> Answer | None:
        policies = {spec.policy for spec in hierarchy_of(self.machine, 1, self.options).levels}
        if policies == {"LRU"} or not question.explained_by(_value(self._with_lru, question)):
            return None
        return "replacement", f"replacement is not LRU: with LRU, {self._shown(self._with_lru, question)}"

    def _inside_only(self, question: _Question) -> Answer | None:
        """Whole sweeps count the boundaries; windows inside do not, and say nothing of reuse from sweep to sweep."""
        sampling = self.simulated.sampling
        if sampling is None or not sampling.whole_sweep or self._near_condition(question) is not None:
            return None
        if not question.explained_by(_value(self._inside, question)):
            return None
        return "boundary", (
            "whole sweeps were simulated, with the lines at the boundaries that layer conditions leave out; inside "
            f"the nest, {self._shown(self._inside, question)}"
        )

    def _boundary(self, question: _Question) -> Answer | None:
        """Loops are so short that the lines at their ends make up for the difference."""
        share = boundary_share(working_set_of_program(self._work), self.machine.line_bytes)
        if question.simulated < question.symbolic or question.simulated > question.symbolic * (1 + share):
            return None
        return "boundary", (
            f"loops are short: lines at the boundaries, which layer conditions leave out, {can_add(share)}"
        )

    def _mean_trips(self, question: _Question) -> Answer | None:
        if all(note.code != "mean-trip-count" for note in self.symbolic.notes):
            return None
        near = self._near_condition(question, VARIED)
        if near is None:
            return None
        return "mean-trip-count", (
            "trip counts depend on outer loops, and so does whether data fit: layer conditions judge all iterations by "
            f"the mean, for which {format_bytes(near.required)} are needed of {format_bytes(near.capacity_bytes)} in "
            f"{near.cache}"
        )

    def _triangle(self, question: _Question) -> Answer | None:
        """Where data begin to fit during a sweep, sets that fill unevenly let some fit earlier and some later."""
        caches = self._deciding_caches(question)
        partly = [one for one in self.symbolic.conditions if one.cache in caches and 0 < one.share < 1]
        if not partly:
            return None
        turning = min(partly, key=lambda one: abs(one.share - 0.5))
        loop, share = turning.reuses[0].carried_by, format_share(turning.share)
        return "triangle", (
            f"trip counts depend on outer loops, and so does whether data fit: in {turning.cache} reuse over {loop} "
            f"holds for {share} of the iterations; where that changes, sets fill unevenly"
        )

    def _conflicts(self, question: _Question) -> Answer | None:
        """Misses that a cache of more ways would not have; near a threshold, uneven sets are what decides."""
        if not question.explained_by(_value(self._associative, question)):
            return None
        near = self._near_condition(question)
        more = f"with {_MORE_WAYS} times the ways, {self._shown(self._associative, question)}"
        if near is not None:
            return "threshold", f"{_nearly(near)}, and sets fill unevenly: {more}"
        if question.explained_by(_value(self._other_layout, question)):
            shown = self._shown(self._other_layout, question)
            return "layout", f"conflict misses of arrays that lie in the same sets: laid out otherwise, {shown}"
        return "conflicts", f"conflict misses of lines that lie in the same sets: {more}"

    def _few_sets(self, question: _Question) -> Answer | None:
        """Part of the data crowds few sets: what else comes there leaves, and what lies in other sets stays."""
        caches = self._deciding_caches(question)
        crowded = next((one for one in self.symbolic.conditions if one.cache in caches and one.few_sets), None)
        if crowded is None:
            return None
        return "few-sets", (
            f"a large stride puts data into {crowded.few_sets} of {crowded.cache}: layer conditions judge all data by "
            "these sets, where what lies in the others stays"
        )

    def _structure(self, question: _Question) -> Answer | None:
        """Members of structures that are no whole number of lines long share a line in some iterations only."""
        names = straddling_arrays(working_set_of_program(self._work), self.machine.line_bytes)
        if not names:
            return None
        return "structure", (
            f"{', '.join(names)}: structures that lie across lines, so that their members share a line in a part of "
            "the iterations, where layer conditions have it in all or in none"
        )

    def _inclusion(self, question: _Question) -> Answer | None:
        if not any(level.inclusive_of_inner for level in self.machine.levels):
            return None
        if not question.explained_by(_value(self._exclusive, question)):
            return None
        shown = self._shown(self._exclusive, question)
        return "inclusion", f"lines leave inner caches because an inclusive one gives them up; without that, {shown}"

    def _inner_hits(self, question: _Question) -> Answer | None:
        """Lines that an inner cache serves grow old in the outer ones, and leave them before their last use."""
        alone = self._alone(question)
        if alone is None or not question.explained_by(alone):
            return None
        return "inner-hits", (
            "lines that an inner cache holds are not touched in the outer one, which gives them up; accesses that all "
            f"reached it would make {alone:.3g}"
        )

    def _at_threshold(self, question: _Question) -> Answer | None:
        """So near that nothing else needs to be asked."""
        near = self._near_condition(question)
        if near is None or not AT[0] <= near.required / near.capacity_bytes <= AT[1]:
            return None
        return "threshold", f"{_nearly(near)}, and sets fill unevenly"

    def _threshold(self, question: _Question) -> Answer | None:
        near = self._near_condition(question)
        return None if near is None else ("threshold", f"{_nearly(near)}, where a few lines decide")

    def _near_condition(self, question: _Question, span: tuple[float, float] = NEAR) -> LayerCondition | None:
        """The layer condition of the caches on the path that is nearest to its threshold, if any is near."""
        caches = self._deciding_caches(question)
        near = [
            condition
            for condition in self.symbolic.conditions
            if condition.cache in caches and span[0] <= condition.required / condition.capacity_bytes <= span[1]
        ]
        if span != VARIED:
            near = self._explaining(near, question)
        return min(near, key=lambda c: abs(c.required / c.capacity_bytes - 1), default=None)

    def _explaining(self, near: Sequence[LayerCondition], question: _Question) -> list[LayerCondition]:
        """Those conditions whose other side lies in the direction of the difference; together they must reach it."""
        inner = self.machine.levels[self._index(question)].name
        change = question.simulated - question.symbolic
        right = [condition for condition in near if condition.cache == inner and condition.holds == (change > 0)]
        saved = sum(reuse.lines_saved for condition in right for reuse in condition.reuses)
        others = [condition for condition in near if condition.cache != inner]
        return [*right, *others] if abs(change) <= saved + question.near else others

    def _deciding_caches(self, question: _Question) -> tuple[str, ...]:
        """The caches whose layer conditions decide on a path: the inner one, and an outer one that loads pass by."""
        index = self._index(question)
        outer = self.machine.levels[index + 1 : index + 2]
        passed = tuple(level.name for level in outer if level.filled_by == "victims" and level.loads_pass_by)
        return (self.machine.levels[index].name, *passed)

    def _index(self, question: _Question) -> int:
        return [path.name for path in self.machine.paths].index(question.path)

    # the experiments

    def _hierarchy(self) -> Hierarchy:
        return hierarchy_of(self.machine, self.simulated.cores, self.options)

    def _run(self, hierarchy: Hierarchy, options: SimulationOptions, spend: Effort | None = None) -> Traffic:
        cores, stores = self.simulated.cores, self.simulated.stores
        work = placed_work(self.nest, self.machine, self.sizes, hierarchy, stores, options)
        return simulate_placed(work, hierarchy, self.machine, cores=cores, stores=stores, options=options, spend=spend)

    @cached_property
    def _with_lru(self) -> Traffic:
        options = replace(self.options, policy="LRU")
        return self._run(hierarchy_of(self.machine, self.simulated.cores, options), options)

    @cached_property
    def _inside(self) -> Traffic:
        spend = replace(effort(), sweep=0.0, window=effort().block, block=effort().block / 100)
        return self._run(self._hierarchy(), self.options, spend)

    @cached_property
    def _associative(self) -> Traffic:
        """In caches of the same size with more ways, the sets by a hash."""
        levels = tuple(
            replace(spec, sets=max(1, spec.sets // _MORE_WAYS), ways=spec.ways * _MORE_WAYS, hashed=True)
            for spec in self._hierarchy().levels
        )
        return self._run(replace(self._hierarchy(), levels=levels), self.options)

    @cached_property
    def _other_layout(self) -> Traffic:
        first = self._hierarchy().levels[0]
        pad = (first.sets // 3 * 2 + 1) * first.line_bytes
        options = replace(self.options, layout="padded", alias=False, pad_bytes=self.options.pad_bytes + pad)
        return self._run(self._hierarchy(), options)

    @cached_property
    def _exclusive(self) -> Traffic:
        levels = tuple(replace(spec, inclusive=False) for spec in self._hierarchy().levels)
        return self._run(replace(self._hierarchy(), levels=levels), self.options)

    @cached_property
    def _work(self) -> Work:
        return placed_work(self.nest, self.machine, self.sizes, self._hierarchy(), self.simulated.stores, self.options)

    def _alone(self, question: _Question) -> float | None:
        """The same number if every access reached the inner cache of the path; None where two caches decide."""
        index = self._index(question)
        if not index or (len(self._deciding_caches(question)) > 1 and question.quantity == "loads"):
            return None
        spec = self._hierarchy().levels[index]
        if any(level.victim_level == spec.name for level in self._hierarchy().levels):
            return None
        lone = replace(spec, load_from=MEMORY, store_to=MEMORY, victim_level=None)
        rates = sample(self._work, Hierarchy((lone,), seed=self.options.seed), effort()).rates
        names = {
            "loads": ("load_misses", "store_misses"),
            "stores": ("dirty_evictions",),
            "clean_victims": ("clean_evictions",),
        }
        return float(unit_of_program(self._work).iterations) * sum(
            rates.of(spec.name, name) for name in names[question.quantity]
        )

    def _shown(self, traffic: Traffic, question: _Question) -> str:
        return f"{_value(traffic, question):.3g} lines where layer conditions have {question.symbolic:.3g}"


def _value(traffic: Traffic, question: _Question) -> float:
    path: PathTraffic = traffic.path(question.path)
    return float(getattr(path, question.quantity))


def _nearly(condition: LayerCondition) -> str:
    return (
        f"{condition.cache} is near a threshold: {format_bytes(condition.required)} needed of "
        f"{format_bytes(condition.capacity_bytes)}"
    )
