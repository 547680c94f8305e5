"""Charts of the roofline family: their values, what a kernel asks for, its roofs, and a chart made of them.

FLOP: an FMA counts 2. Every chart says which bytes its intensity means (`Roofline.bytes_meant`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from kernmodel.code.mix import FpClass, InstructionMix
from kernmodel.errors import InputError, Note
from kernmodel.incore.model import InCore, Parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa import isa_of
from kernmodel.isa.model import Precision
from kernmodel.machine.model import Machine
from kernmodel.models.bandwidths import Origin
from kernmodel.models.ceilings import (
    BandwidthNotKnownError,
    MemoryCeiling,
    compute_ceiling,
    joint_performance,
    register_bytes,
    widest,
)
from kernmodel.traffic.model import Traffic
from kernmodel.uncertainty import Interval
from kernmodel.value_types import dataclass

ModelName = Literal["orm", "hierarchical", "carm", "irm", "adcarm"]
TITLES: Mapping[ModelName, str] = {
    "orm": "Original roofline",
    "hierarchical": "Hierarchical roofline",
    "carm": "Cache-aware roofline (CARM)",
    "irm": "Integrated roofline (IRM)",
    "adcarm": "Application-driven cache-aware roofline (adCARM)",
}
"""What a model is called."""


@dataclass(frozen=True, slots=True)
class MemoryRoof:
    """A slanted roof: performance = intensity × bandwidth. `scaled`: by the kernel's mix (adCARM); `basis`: whether its
    value was measured or derived from widths and ports; `origin`: the same with its source, in words."""

    level: str
    bytes_per_second: float
    label: str
    origin: str
    scaled: bool = False
    basis: Origin = "measured"
    bytes_per_second_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class ComputeRoof:
    """A horizontal roof.

    `role`: "peak" of an instruction class, "scaled" by the mix (equation 3), "in-core" for the kernel's own throughput
    bound, "dependency" for its longest loop-carried chain. `basis` and `origin`: as of memory roofs.
    `operation`: of a roof of one operation ("add", "div"); empty for those of several.
    """

    name: str
    flop_per_second: float
    role: Literal["peak", "scaled", "in-core", "dependency"]
    origin: str
    basis: Origin = "derived"
    operation: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """The kernel on the chart.

    Attributes:
        level: where a model has one point for each level, else empty.
        intensity: FLOP/B of the bytes that the model means; None: no bytes there.
        flop_per_second: predicted performance; the bound of the model where nothing was predicted.
        predicted: which of both.
        above_roof: name of the roof of its own that the prediction exceeds; None where it is below all of them.
    """

    name: str
    level: str
    intensity: float | None
    flop_per_second: float
    predicted: bool = True
    above_roof: str | None = None
    flop_per_second_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class MeasuredMark:
    """A measurement on the chart.

    Attributes:
        name: of the kernel in the file of measurements, line: there.
        level: at whose intensity it stands, empty where the model has one for all.
        intensity: FLOP/B of the bytes that the model means, `by_bytes`: that were measured, else of the kernel.
        flop_per_second: measured, of all cores.
        roof: name of the roof above it; roof_flop_per_second: what that allows at this intensity, with the interval of
            that.
    """

    name: str
    level: str
    intensity: float
    flop_per_second: float
    roof: str
    roof_flop_per_second: float
    line: int
    by_bytes: bool = False
    roof_flop_per_second_interval: Interval | None = None

    @property
    def percent_of_roof(self) -> float:
        """What was measured of what the roof allows."""
        return self._percent(self.roof_flop_per_second)

    @property
    def percent_interval(self) -> Interval | None:
        """The interval of that."""
        held = self.roof_flop_per_second_interval
        return None if held is None else held.map(self._percent)

    def _percent(self, roof: float) -> float:
        return 100 * self.flop_per_second / roof


@dataclass(frozen=True, slots=True)
class Roofline:
    """One kernel under one model.

    Attributes:
        model: which.
        bytes_meant: "core-side bytes of load and store instructions" or "bytes between levels".
        memory_roofs, compute_roofs: lowest last.
        points: one, or one per level; none where the intensity is not known.
        bound: attainable FLOP/s by the model; bound_by: name of the roof that limits (a memory roof is called by its
            level). None where the intensity is not known.
        region: "memory", "compute" or "in between" (left of the first ridge point of the highest memory roof, right of
            the last of the lowest, or between).
        memory_until: the intensity in FLOP/B up to which the memory region reaches: where the highest memory roof meets
            the lowest compute roof that can bind; None where levels have intensities of their own, or nothing computes.
        above, below: names of the roofs just above and just below the point on its line of intensity.
        cores: of the chart.
        notes: assumptions and warnings.
        iterations_per_second: what the bound is in source iterations; it has a meaning without floating-point work too.
        measured: what was measured of the kernel.
        unknown: levels of which no bandwidth is known: they have no roof, and the bound is at most what is said.
        bound_interval, iterations_per_second_interval: between which values these lie where more cores draw from memory
            than its streams were measured on; the numbers take them to draw no more.
        most: the same chart if they draw the most that is possible, None where that is no other.
    """

    model: ModelName
    bytes_meant: str
    memory_roofs: tuple[MemoryRoof, ...]
    compute_roofs: tuple[ComputeRoof, ...]
    points: tuple[Point, ...]
    bound: float | None
    bound_by: str | None
    region: Literal["memory", "compute", "in between"] | None
    above: str | None
    below: str | None
    cores: int
    notes: tuple[Note, ...]
    iterations_per_second: float = 0.0
    memory_until: float | None = None
    measured: tuple[MeasuredMark, ...] = ()
    unknown: tuple[str, ...] = ()
    bound_interval: Interval | None = None
    iterations_per_second_interval: Interval | None = None
    most: Roofline | None = None

    def either(self, said: Callable[[Roofline], str | None], word: str = " or ") -> str:
        """What the chart says of itself, and what it says where the cores draw the most from memory, if that differs
        ("Mem or L3"); empty where it says nothing."""
        ends = (self,) if self.most is None else (self, self.most)
        return word.join(dict.fromkeys(text for one in ends if (text := said(one)) is not None))

    @property
    def limiting_point(self) -> Point | None:
        """The point of the level whose roof limits, else the first one; None without any."""
        return next((one for one in self.points if one.level == self.bound_by), next(iter(self.points), None))


@dataclass(frozen=True, slots=True)
class LevelShare:
    """Memory share and memory impact of one level (equations 6 and 7): β^y in bytes per iteration, B^y in bytes/s.

    A bandwidth that is not known is None, and so are all impacts where such a level serves bytes. Intervals as of
    roofs.
    """

    level: str
    bytes_served: float
    bandwidth: float | None
    share: float
    impact: float | None
    bandwidth_interval: Interval | None = None
    impact_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel on `cores` cores of one machine: what every model of the family reads.

    Attributes:
        machine, parameters, table: what the hardware can do.
        cores: active cores; all roofs and performances are of all of them together.
        name: of the kernel, as points are labelled.
        traffic: how its data moves; None where only its code or a mix is known (then only carm and adcarm apply).
        incore: its in-core analysis, for the roofs of its own throughput and dependencies; None: not drawn.
        mix: its instruction mix; adcarm needs it. The others take bytes and precision from it where it is given.
        performance: FLOP/s predicted for `cores` cores (by the ECM model); None: the model's own bound is the point.
        performance_interval: between which values that lies where it is not known.
        mask_utilization: η of equation 4, the share of lanes that masked instructions compute.
        source_precisions: of the operations of the source, for the peaks where no mix tells them.
        overlap: cycles of a source iteration by which chains of several rows overlap, as in the prediction.
    """

    machine: Machine
    parameters: Parameters
    table: InstructionTable
    cores: int = 1
    name: str = "kernel"
    traffic: Traffic | None = None
    incore: InCore | None = None
    mix: InstructionMix | None = None
    performance: float | None = None
    mask_utilization: float = 1.0
    source_precisions: tuple[Precision, ...] = ()
    overlap: float = 0.0
    performance_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Demand:
    """What one source iteration of a kernel asks for: FLOP, bytes of load and store instructions, share of loads.

    Of shares of instructions alone `told` is false: bytes are those of one memory instruction, FLOP are not known (0).
    """

    flops: float
    bytes: float
    load_share: float
    told: bool = True


def demand(case: Case) -> Demand:
    """What the kernel asks for: FLOP by its source, bytes by its instructions; each by the other where it is unknown.

    Raises:
        InputError: neither traffic nor a mix.
    """
    traffic, mix = case.traffic, case.mix
    counted = mix is not None and not mix.shares_only and (traffic is None or mix.per == "source iteration")
    if traffic is None and mix is None:
        raise InputError(
            f"nothing tells the arithmetic intensity of {case.name}",
            todo="give its source, its assembly, or a mix of its instructions",
        )
    flops, moved, share = 0.0, 0.0, 1.0
    if traffic is not None:
        loads, stores = traffic.register_loads_bytes, traffic.register_stores_bytes
        flops, moved = traffic.flops_per_iteration, (loads + stores) / traffic.iterations_per_unit
        share = loads / (loads + stores) if loads + stores else 1.0
    if mix is not None and counted:
        moved = mix.bytes
        flops = flops if traffic is not None else mix.flops
    told = traffic is not None or counted
    if mix is not None and not told:
        moved = mix.bytes
    if mix is not None and mix.loads + mix.stores:
        share = mix.loads / (mix.loads + mix.stores)
    return Demand(flops * active_share(case), moved, share, told)


def active_share(case: Case) -> float:
    """FLOP that are computed over FLOP at full width: masked instructions compute a share η of theirs (equation 4)."""
    mix = case.mix
    if mix is None or not mix.flops:
        return 1.0
    masked = sum(kind.flops * count for kind, count in mix.fp if kind.masked)
    return 1 - (1 - case.mask_utilization) * masked / mix.flops


def demand_notes(case: Case) -> tuple[Note, ...]:
    """Where source and compiled code differ in what they ask for."""
    traffic, mix = case.traffic, case.mix
    notes = list(mix.notes) if mix is not None else []
    if traffic is not None and mix is not None and mix.per != "source iteration" and not mix.shares_only:
        text = f"the mix counts for each {mix.per}; bytes and FLOP are those of the source's references"
        notes.append(Note("mix-per-pass", text, "assumption"))
    elif traffic is not None and mix is not None and not mix.shares_only:
        asked, executed = traffic.flops_per_iteration, mix.flops
        if abs(asked - executed) > 0.01 * max(asked, executed):
            text = f"{asked:g} FLOP per iteration by the source count; the compiled code executes {executed:g}"
            notes.append(Note("flops-differ", text, "assumption"))
    wanted = demand(case)
    if not wanted.told:
        text = "shares of instructions do not tell the arithmetic intensity: roofs alone, without a point and a bound"
        notes.append(Note("intensity-unknown", text, "assumption"))
    elif not wanted.flops:
        notes.append(Note("no-flops", "no floating-point operation: the chart bounds bandwidth only", "assumption"))
    return tuple(notes)


def needed_traffic(case: Case, model: str) -> Traffic:
    """The traffic of the case.

    Raises:
        InputError: it has none.
    """
    if case.traffic is None:
        raise InputError(
            f"{model} needs the data traffic between levels, and assembly alone does not tell it",
            todo="give the C source, or use the model carm or adcarm",
        )
    return case.traffic


def path_bytes(traffic: Traffic, machine: Machine) -> tuple[float, ...]:
    """Bytes per iteration over each path, innermost first: all lines, write-allocates and evicted ones counted."""
    paths = [traffic.path(path.name) for path in machine.paths]
    lines = [path.lines for path in paths]
    return tuple(count * machine.line_bytes / traffic.iterations_per_unit for count in lines)


@dataclass(frozen=True, slots=True)
class Limit:
    """The least time in seconds that one iteration takes by one roof, all cores together."""

    roof: str
    seconds: float


def kind_name(kind: FpClass, parameters: Parameters) -> str:
    """ "DP AVX-512 FMA", "SP scalar ADD": what a roof of this class is called in the instruction set of a core."""
    names = isa_of(parameters.isa).vector_names
    width = "scalar" if kind.lanes == 1 else names.get(register_bytes(kind), f"{kind.lanes} lanes")
    return f"{kind.precision} {width} {kind.operation.upper()}"


def precisions(case: Case) -> tuple[Precision, ...]:
    """The precisions of the kernel's floating-point instructions that have peaks; double where none is known."""
    found = {kind.precision for kind, _ in case.mix.fp if kind.flops} if case.mix else set(case.source_precisions)
    known = tuple(name for name in ("DP", "SP", "HP") if name in found and widest(case.table, "add", name))
    return known or ("DP",)


def peak_roofs(case: Case) -> tuple[ComputeRoof, ...]:
    """The peaks of the machine in the kernel's precisions, highest first: widest FMA, ADD, MUL where it differs, and
    scalar ADD; and mixes that exceed them (FMA and ADD on AMD Zen, ADD and MUL before FMA)."""
    roofs = [roof for precision in precisions(case) for roof in _peaks(case, precision)]
    return tuple(sorted(roofs, key=lambda roof: -roof.flop_per_second))


def _peaks(case: Case, precision: Precision) -> list[ComputeRoof]:
    kinds = {name: widest(case.table, name, precision) for name in ("fma", "add", "mul")}
    found = {name: kind for name, kind in kinds.items() if kind is not None}
    roofs = [roof for kind in found.values() if (roof := _peak(case, kind)) is not None]
    if len(roofs) > 1 and _alike(roofs[-1].flop_per_second, roofs[-2].flop_per_second):
        roofs.pop()
    for first, second in (("fma", "add"), ("add", "mul")):
        if first in found and second in found:
            roofs += _joint(case, found[first], found[second], max(roof.flop_per_second for roof in roofs))
    scalar = _peak(case, FpClass("add", precision, 1))
    return [*roofs, scalar] if scalar is not None else roofs


def _alike(one: float, other: float) -> bool:
    return abs(one - other) <= 0.01 * max(one, other)


def _peak(case: Case, kind: FpClass) -> ComputeRoof | None:
    found = compute_ceiling(case.machine, case.parameters, case.table, kind, case.cores)
    if found is None:
        return None
    origin = f"{found.origin}: {found.source}"
    return ComputeRoof(
        kind_name(kind, case.parameters), found.flop_per_second, "peak", origin, found.origin, kind.operation
    )


def _joint(case: Case, first: FpClass, second: FpClass, peak: float) -> list[ComputeRoof]:
    """The roof of two classes in equal numbers, where it exceeds the peak of one."""
    rate = joint_performance(case.machine, case.parameters, case.table, ((first, 1.0), (second, 1.0)), case.cores)
    if rate is None or rate <= peak or _alike(rate, peak):
        return []
    name = f"{kind_name(first, case.parameters)}+{second.operation.upper()}"
    return [ComputeRoof(name, rate, "peak", f"derived: one {second.operation} for each {first.operation} on the ports")]


DEPENDENCY = "loop-carried dependency"
"""The roof of the longest chain of the kernel's own code from pass to pass."""

_THROUGHPUT = "in-core throughput"


def own_limits(case: Case) -> tuple[Limit, ...]:
    """What the in-core analysis says of the kernel's own code: ports, front end or scheduling, dependency."""
    incore = case.incore
    if incore is None:
        return ()
    found = {_THROUGHPUT: incore.throughput}
    if incore.bound_by in ("front end", "scheduling"):
        found[incore.bound_by] = incore.prediction
    if incore.lcd is not None:
        found[DEPENDENCY] = incore.lcd.cycles
    passes = 1.0 / (incore.iterations_per_pass or 1.0)
    per_cycle = case.machine.clock_hz * case.cores
    least = incore.throughput * passes
    each = {name: cycles * passes for name, cycles in found.items()}
    # rounds that overlap hide what waits, down to what the ports take
    each = {name: max(min(least, cycles), cycles - case.overlap) for name, cycles in each.items()}
    return tuple(Limit(name, cycles / per_cycle) for name, cycles in each.items() if cycles > 0)


def own_roofs(case: Case, flops: float) -> tuple[ComputeRoof, ...]:
    """The same as roofs; a kernel without floating-point work has none."""
    roofs = []
    for limit in own_limits(case) if flops else ():
        role: Literal["in-core", "dependency"] = "dependency" if limit.roof == DEPENDENCY else "in-core"
        roofs.append(ComputeRoof(limit.roof, flops / limit.seconds, role, "derived: the kernel's own code"))
    return tuple(roofs)


@dataclass(frozen=True, slots=True)
class LevelDemand:
    """What a model says of one level, in bytes per iteration.

    Attributes:
        level: which; ceiling: its memory roof, None where its bandwidth is not known; label: of that roof.
        bytes: that decide where the line of the kernel's intensity meets the roof.
        limiting: that take at least their time at the level's bandwidth; None: `bytes`.
    """

    level: str
    ceiling: MemoryCeiling | None
    label: str
    bytes: float
    limiting: float | None = None

    def roofs(self, model: ModelName) -> tuple[MemoryRoof, ...]:
        """The memory roof on a chart of this model; none where its bandwidth is not known."""
        found, scaled = self.ceiling, model == "adcarm"
        if found is None:
            return ()
        origin = f"{found.origin}: {found.source}"
        return (MemoryRoof(self.level, found.bytes_per_second, self.label, origin, scaled, found.origin),)

    @property
    def crossing(self) -> Limit:
        """The time of one iteration on the roof at the kernel's intensity; 0 where the roof is not known."""
        return Limit(self.level, self.bytes / self.ceiling.bytes_per_second if self.ceiling else 0.0)

    @property
    def limit(self) -> Limit:
        """The least time of one iteration by this level; 0 where its bandwidth is not known."""
        limiting = self.bytes if self.limiting is None else self.limiting
        return Limit(self.level, limiting / self.ceiling.bytes_per_second if self.ceiling else 0.0)


def chart(
    model: ModelName,
    case: Case,
    levels: Sequence[LevelDemand],
    bytes_meant: str,
    *,
    compute_roofs: Sequence[ComputeRoof],
    compute_limit: float | None = None,
    one_point: bool = False,
    notes: Iterable[Note] = (),
) -> Roofline:
    """A `Roofline` from its parts.

    Args:
        model, case: of the chart; bytes_meant: as it stands in the result.
        levels: innermost first.
        compute_roofs: without those of the kernel's own code, highest first.
        compute_limit: the most FLOP/s that the kernel's operations reach; None: the highest compute roof.
        one_point: whether the kernel has one intensity, that of the first level, instead of one for each.
        notes: of the model.
    """
    wanted = demand(case)
    unknown = _unknown_levels(case, levels)
    notes = (*notes, *_unknown_notes(unknown, case))
    if not wanted.told:
        return _roofs_alone(model, case, levels, bytes_meant, compute_roofs, notes)
    flops = wanted.flops
    highest = _highest(compute_roofs) if compute_limit is None else compute_limit
    limits = sorted((one.limit for one in levels if one.limit.seconds), key=lambda limit: -limit.seconds)
    computing = _computing(case, compute_roofs, highest, flops)
    bound = _slowest(case, (*limits, *computing))
    rate = 1 / bound.seconds
    drawn = (*compute_roofs, *own_roofs(case, flops))
    reached = case.performance if flops and case.performance is not None else flops * rate
    crossings = [one.crossing for one in levels if one.bytes and one.ceiling]
    above, below = _neighbours(drawn, crossings, wanted, reached or rate)
    binding = _that_bind(compute_roofs, highest)
    limiting = [("", levels[0].bytes, [bound])] if one_point else _limits_by_level(levels, limits)
    points = tuple(_point(case, flops, reached, one, computing) for one in limiting)
    memory_roofs = _memory_roofs(levels, model)
    ridge = min((roof.flop_per_second for roof in binding), default=None)
    every_note = (*notes, *demand_notes(case), *_point_notes(reached, flops * rate, bound.roof))
    return Roofline(
        model=model,
        bytes_meant=bytes_meant,
        memory_roofs=memory_roofs,
        compute_roofs=tuple(sorted(drawn, key=lambda roof: -roof.flop_per_second)),
        points=points,
        bound=flops * rate,
        bound_by=bound.roof,
        region=_region(binding, crossings if len(points) == 1 else limits[:1], flops),
        above=above,
        below=below,
        cores=case.cores,
        notes=tuple(dict.fromkeys(every_note)),
        iterations_per_second=rate,
        unknown=unknown,
        memory_until=ridge / memory_roofs[0].bytes_per_second if ridge is not None and len(points) == 1 else None,
    )


def _highest(roofs: Sequence[ComputeRoof]) -> float | None:
    return max((roof.flop_per_second for roof in roofs), default=None)


def _slowest(case: Case, limits: Sequence[Limit]) -> Limit:
    """The limit that takes most time.

    Raises:
        InputError: there is none.
    """
    if not limits:
        raise InputError(f"{case.name} moves no data and computes nothing", todo="choose the loop that does the work")
    return max(limits, key=lambda limit: limit.seconds)


def _unknown_levels(case: Case, levels: Sequence[LevelDemand]) -> tuple[str, ...]:
    """The levels of which no bandwidth is known.

    Raises:
        BandwidthNotKnownError: all of them.
    """
    unknown = tuple(one.level for one in levels if one.ceiling is None)
    if len(unknown) == len(levels):
        what = f"has no bandwidth of {', '.join(unknown)}, so that this chart would have no memory roof"
        raise BandwidthNotKnownError(what, where=case.machine.file, todo="choose the model hierarchical, or add one")
    return unknown


def _computing(case: Case, roofs: Sequence[ComputeRoof], highest: float | None, flops: float) -> list[Limit]:
    """What the operations of an iteration take by the highest rate that they reach, and by the kernel's own roofs."""
    name = next((roof.name for roof in roofs if roof.flop_per_second == highest), "")
    return [*([Limit(name, flops / highest)] if flops and highest else []), *own_limits(case)]


_Limiting = tuple[str, float, Sequence[Limit]]
"""Name of a level (empty for all of them), bytes per iteration there, and what they take."""


def _limits_by_level(levels: Sequence[LevelDemand], limits: Sequence[Limit]) -> list[_Limiting]:
    """The same of every level."""
    return [(one.level, one.bytes, [limit for limit in limits if limit.roof == one.level]) for one in levels]


def _point(case: Case, flops: float, reached: float, limiting: _Limiting, computing: Sequence[Limit]) -> Point:
    """The kernel by its intensity at one level, or at all of them."""
    level, moved, limits = limiting
    return Point(
        name=case.name,
        level=level,
        intensity=flops / moved if moved else None,
        flop_per_second=reached,
        predicted=bool(flops) and case.performance is not None,
        above_roof=_exceeded((*limits, *computing), flops, reached),
        flop_per_second_interval=case.performance_interval if flops else None,
    )


def _memory_roofs(levels: Sequence[LevelDemand], model: ModelName) -> tuple[MemoryRoof, ...]:
    """The memory roofs of all levels, lowest last."""
    roofs = (roof for one in levels for roof in one.roofs(model))
    return tuple(sorted(roofs, key=lambda roof: -roof.bytes_per_second))


def _roofs_alone(
    model: ModelName,
    case: Case,
    levels: Sequence[LevelDemand],
    bytes_meant: str,
    compute_roofs: Sequence[ComputeRoof],
    notes: Iterable[Note],
) -> Roofline:
    """The chart of a kernel of which no intensity is known."""
    return Roofline(
        model=model,
        bytes_meant=bytes_meant,
        memory_roofs=_memory_roofs(levels, model),
        compute_roofs=tuple(compute_roofs),
        points=(),
        bound=None,
        bound_by=None,
        region=None,
        above=None,
        below=None,
        cores=case.cores,
        notes=tuple(dict.fromkeys((*notes, *demand_notes(case)))),
        unknown=tuple(one.level for one in levels if one.ceiling is None),
    )


def _that_bind(roofs: Sequence[ComputeRoof], reachable: float | None) -> list[ComputeRoof]:
    """The compute roofs without those of divisions and square roots that the kernel's operations together outrun.

    Few slow operations beside many fast ones bound nothing, though their own roof is the lowest.
    """
    outrun = [
        roof
        for roof in roofs
        if roof.operation in _ITERATIVE and reachable is not None and roof.flop_per_second < reachable * _EDGE
    ]
    return [roof for roof in roofs if roof not in outrun]


_ITERATIVE = ("div", "sqrt")
_EDGE = 1 - 1e-9
_ABOVE = 1.001
"""A prediction above its roof by less than this factor is at it: both are rounded figures."""


def _exceeded(own: Iterable[Limit], flops: float, reached: float) -> str | None:
    """The lowest of the point's own roofs that its performance exceeds."""
    longest = max(own, key=lambda limit: limit.seconds, default=None)
    above = longest is not None and flops > 0 and reached * longest.seconds > flops * _ABOVE
    return longest.roof if above and longest is not None else None


def _neighbours(
    compute_roofs: Iterable[ComputeRoof], crossings: Iterable[Limit], wanted: Demand, reached: float
) -> tuple[str | None, str | None]:
    """The roofs just above and just below the point, in FLOP/s (iterations/s where nothing is computed)."""
    work = wanted.flops or 1.0
    heights = [(work / limit.seconds, limit.roof) for limit in crossings if limit.seconds > 0]
    heights += [(roof.flop_per_second, roof.name) for roof in compute_roofs] if wanted.flops else []
    edge = reached * _EDGE
    above = min((height for height in heights if height[0] >= edge), default=None)
    below = max((height for height in heights if height[0] < edge), default=None)
    return above[1] if above else None, below[1] if below else None


def _region(
    compute_roofs: Sequence[ComputeRoof], crossings: Sequence[Limit], flops: float
) -> Literal["memory", "compute", "in between"]:
    """By where the memory roofs cross the kernel's intensity: all below the lowest compute roof, all above the highest,
    or else. Roofs that cannot bind are not given.

    On a chart with one intensity that is left of the first ridge point of the highest memory roof, right of the last
    one of the lowest, or between them; where levels have intensities of their own, only the lowest crossing counts.
    """
    if not flops or not compute_roofs:
        return "memory"
    heights = [flops / limit.seconds for limit in crossings if limit.seconds > 0]
    roofs = [roof.flop_per_second for roof in compute_roofs]
    if not heights or min(heights) >= max(roofs):
        return "compute"
    return "memory" if max(heights) <= min(roofs) else "in between"


def _unknown_notes(levels: Sequence[str], case: Case) -> tuple[Note, ...]:
    if not levels:
        return ()
    text = (
        f"the file of {case.machine.name} has no bandwidth of {', '.join(levels)}: no roof of "
        f"{'it' if len(levels) == 1 else 'them'} is drawn, and the bound is at most what is said"
    )
    return (Note("roof-unknown", text, "assumption"),)


def _point_notes(reached: float, bound: float, roof: str) -> tuple[Note, ...]:
    if reached <= bound * _ABOVE:
        return ()
    text = f"the prediction of {reached / 1e9:.4g} GFLOP/s exceeds the bound of {bound / 1e9:.4g} by {roof}: "
    text += (
        "the chains of several entries of the loop overlap, which the roof of one chain leaves out"
        if roof == DEPENDENCY
        else "the model behind the point takes that roof to be higher than it was measured on so many cores"
    )
    return (Note("point-above-roof", text, "assumption"),)
