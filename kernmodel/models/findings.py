"""What a chart says: region, the roofs around the point, the level that deserves the work, and what changes would do.

A change is computed, not advised: the kernel's mix or traffic is changed, the model asked again. What blocking brings
is computed by the study of it and handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Literal

from kernmodel.code.mix import FpClass, InstructionMix
from kernmodel.incore.model import InCore
from kernmodel.models.carm import memory_shares, tells_served
from kernmodel.models.ceilings import compute_ceiling, widest_access
from kernmodel.models.chart import Case, LevelShare, ModelName, Roofline, demand
from kernmodel.models.memory_ends import interval_of
from kernmodel.models.roofline import roofline
from kernmodel.traffic.model import Traffic
from kernmodel.uncertainty import Interval, upper_bound, with_interval
from kernmodel.units import format_si
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class WhatIf:
    """One change of the kernel, and the chart with it.

    Attributes:
        name: "wider accesses", "half the stores", "streaming stores", "blocking for L2", "FMA contraction".
        change: one clause: what is changed.
        model: the chart that tells before and after, or "ECM": both are predicted.
        bound_by: what binds with the change: the roof, or what the prediction says.
        before: the bound before, as `roofline.bound`; of a change to the code without the roof of the present code's
            throughput, since that code would not be executed.
        bound: the bound with the change: FLOP/s, or iterations/s of a kernel without floating-point work.
        gain: bound over before. All three are of the cores of the chart; those of ECM are of one of them.
        gain_of_all: of ECM, the same for all these cores, which share memory bandwidth; else None.
        roofline: the chart of the changed kernel, its point at the model's bound; None where ECM predicts it.
        before_interval, bound_interval, gain_interval, gain_of_all_interval: where more cores draw from memory than
            were measured, with the same drawn before and after.
    """

    name: str
    change: str
    model: ModelName | Literal["ECM"]
    bound_by: str
    before: float
    bound: float
    gain: float
    gain_of_all: float | None
    roofline: Roofline | None
    before_interval: Interval | None = None
    bound_interval: Interval | None = None
    gain_interval: Interval | None = None
    gain_of_all_interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Findings:
    """What the chart of one kernel says.

    Attributes:
        roofline: the chart that is read; beside: the cache-aware chart without scaled roofs.
        shares: memory share and impact of each level, empty where the traffic is not known.
        level: the level that deserves the work: the largest impact outside the first cache, which alone has a good one
            (the paper, section 5.1); None where no other level serves anything.
        added: FLOP/s (iterations/s without floating-point work) if the times that the levels need for what they serve
            add up, as equation 7 counts them, and computing overlaps; None where the traffic is not known. The bound
            lets them overlap. added_interval: as of charts.
        what_ifs: largest gain first.
        sentences: the same for people.
    """

    roofline: Roofline
    beside: Roofline
    shares: tuple[LevelShare, ...]
    level: str | None
    added: float | None
    what_ifs: tuple[WhatIf, ...]
    sentences: tuple[str, ...]
    added_interval: Interval | None = None


def findings(case: Case, model: ModelName = "adcarm", blockings: Sequence[WhatIf] = ()) -> Findings:
    """What the kernel's chart of a model says.

    Args:
        blockings: what blocking brings, of which the chart knows nothing.

    Raises:
        InputError, MachineError: as `roofline`.
    """
    found = roofline(model, case)
    shares = memory_shares(case) if tells_served(case) else ()
    level = worst_level(shares)
    beside = roofline("carm", case)
    if found.bound is None:
        return Findings(found, beside, shares, level, None, (), _of_levels(shares, level))
    what_ifs = tuple(sorted((*changes(case, model), *blockings), key=lambda one: -one.gain))
    added = _added(found, case, shares) if shares and shares[0].impact is not None else (None, None)
    return Findings(
        roofline=found,
        beside=beside,
        shares=shares,
        level=level,
        added=added[0],
        added_interval=added[1],
        what_ifs=what_ifs,
        sentences=_sentences(found, case, shares, level, what_ifs),
    )


def worst_level(shares: Iterable[LevelShare]) -> str | None:
    """The level outside the first cache with the largest memory impact; None if none serves anything."""
    outer = [(one.impact, one.level) for one in list(shares)[1:] if one.impact]
    return max(outer, key=lambda one: one[0])[1] if outer else None


def changes(case: Case, model: ModelName = "adcarm") -> tuple[WhatIf, ...]:
    """All changes of code and stores that apply to the kernel, largest gain first.

    Streaming stores are judged by the hierarchical model: the bytes of the cache-aware models do not count
    write-allocates.
    """
    found = [change(case, model) for change in (_wider, _half_the_stores, _contracted)]
    found.append(_streaming(case))
    return tuple(sorted((one for one in found if one is not None), key=lambda one: -one.gain))


def _wider(case: Case, model: ModelName) -> WhatIf | None:
    mix, size = case.mix, widest_access(case.table)
    if mix is None or not any(kind.size_bytes < size for kind, _ in mix.memory if kind.kind in ("scalar", "vector")):
        return None
    change = f"all loads and stores but gathers and scatters move {size} B each, the bytes being the same"
    return _code_change("wider accesses", change, case, model, replace(case, mix=_widened(mix, size)))


def _widened(mix: InstructionMix, size: int) -> InstructionMix:
    memory = tuple(
        (replace(kind, size_bytes=size, kind="vector"), count * kind.size_bytes / size)
        if kind.kind in ("scalar", "vector")
        else (kind, count)
        for kind, count in mix.memory
    )
    return replace(mix, memory=memory)


def _half_the_stores(case: Case, model: ModelName) -> WhatIf | None:
    mix, traffic = case.mix, case.traffic
    stores = mix.stores if mix is not None else traffic.register_stores_bytes if traffic is not None else 0.0
    if not stores:
        return None
    if mix is not None:
        memory = tuple((kind, count / 2 if kind.store else count) for kind, count in mix.memory)
        mix = replace(mix, memory=memory)
    changed = replace(case, mix=mix, traffic=_half_stored(traffic) if traffic is not None else None)
    return _code_change("half the stores", "every second store is left out, with what it moves", case, model, changed)


def _half_stored(traffic: Traffic) -> Traffic:
    """The traffic with every second store left out; modified lines and write-allocates become half as many."""
    paths = tuple(
        replace(path, loads=path.loads - path.write_allocates / 2, stores=path.stores / 2,
                write_allocates=path.write_allocates / 2)
        for path in traffic.paths
    )  # fmt: skip
    accesses = tuple(
        replace(one, served_by={level: lines / 2 for level, lines in one.served_by.items()})
        if one.kind == "write"
        else one
        for one in traffic.accesses
    )
    stored = traffic.register_stores_bytes / 2
    return replace(traffic, paths=paths, accesses=accesses, register_stores_bytes=stored)


def _contracted(case: Case, model: ModelName) -> WhatIf | None:
    mix = case.mix
    if mix is None:
        return None
    counts = dict(mix.fp)
    for kind in list(counts):
        product, fused = replace(kind, operation="mul"), replace(kind, operation="fma")
        pairs = min(counts[kind], counts.get(product, 0.0)) if kind.operation == "add" else 0.0
        if pairs and _has(case, fused):
            counts[kind] -= pairs
            counts[product] -= pairs
            counts[fused] = counts.get(fused, 0.0) + pairs
    if counts == dict(mix.fp):
        return None
    fp = tuple((kind, count) for kind, count in counts.items() if count)
    change = "multiplications and additions of one type become FMA instructions, as far as there are pairs"
    return _code_change("FMA contraction", change, case, model, replace(case, mix=replace(mix, fp=fp)))


def _has(case: Case, kind: FpClass) -> bool:
    return compute_ceiling(case.machine, case.parameters, case.table, kind, case.cores) is not None


def _code_change(name: str, change: str, case: Case, model: ModelName, changed: Case) -> WhatIf:
    """A change to the code: both sides without the roofs of the throughput of the present code."""
    before = replace(case, performance=None, incore=_dependency_only(case.incore))
    after = replace(changed, performance=None, incore=before.incore)
    return _compared(name, change, model, before, after)


def _dependency_only(incore: InCore | None) -> InCore | None:
    if incore is None:
        return None
    return replace(incore, throughput=0.0, prediction=0.0, bound_by="dependency")


def _compared(name: str, change: str, model: ModelName, before: Case, after: Case) -> WhatIf:
    old, new = roofline(model, before), roofline(model, after)

    def gain(old: Roofline, new: Roofline) -> float:
        return new.iterations_per_second / old.iterations_per_second

    return WhatIf(
        name=name,
        change=change,
        model=model,
        bound_by=new.bound_by or "",
        before=_rate(old),
        bound=_rate(new),
        gain=gain(old, new),
        gain_of_all=None,
        roofline=new,
        before_interval=_rate_interval(old),
        bound_interval=_rate_interval(new),
        gain_interval=interval_of(before, gain(old, new), gain(old.most or old, new.most or new)),
    )


def _rate(found: Roofline) -> float:
    """FLOP/s, or iterations/s of a kernel without floating-point work."""
    return found.bound or found.iterations_per_second


def _bound_by(found: Roofline) -> str:
    return found.either(lambda chart: chart.bound_by)


def _rate_interval(found: Roofline) -> Interval | None:
    return found.bound_interval if found.bound else found.iterations_per_second_interval


def _streaming(case: Case) -> WhatIf | None:
    """Streaming stores for all lines that only stores load from memory."""
    traffic = case.traffic
    if traffic is None or traffic.stores == "nt" or not case.machine.stores.streaming:
        return None
    allocated = traffic.paths[-1].write_allocates * (1 - (traffic.evasion.share if traffic.evasion else 0.0))
    if not allocated:
        return None
    before = replace(case, performance=None)
    changed = replace(before, traffic=_streamed(traffic, allocated))
    change = f"stores write lines past the caches that they load only to write them, {allocated:.3g} per unit of work"
    return _compared("streaming stores", change, "hierarchical", before, changed)


def _streamed(traffic: Traffic, lines: float) -> Traffic:
    *inner, memory = traffic.paths
    paths = [
        replace(
            path, loads=path.loads - path.write_allocates, stores=max(0.0, path.stores - lines), write_allocates=0.0
        )
        for path in inner
    ]
    paths.append(replace(memory, loads=memory.loads - lines, write_allocates=0.0))
    return replace(traffic, paths=tuple(paths), stores="nt")


def _added(found: Roofline, case: Case, shares: Sequence[LevelShare]) -> tuple[float, Interval | None]:
    """The bound if the times of the levels add up, and its interval."""

    def rate(chart: Roofline, bandwidth: Callable[[LevelShare], float | None]) -> float:
        seconds = sum(one.bytes_served / width for one in shares if (width := bandwidth(one)) is not None)
        least = min(chart.iterations_per_second, 1 / seconds) if seconds else chart.iterations_per_second
        return least * (demand(case).flops or 1.0)

    least = rate(found, lambda one: one.bandwidth)
    most = rate(found.most or found, lambda one: held.high if (held := one.bandwidth_interval) else one.bandwidth)
    return least, interval_of(case, least, most)


def _sentences(
    found: Roofline,
    case: Case,
    shares: tuple[LevelShare, ...],
    level: str | None,
    what_ifs: tuple[WhatIf, ...],
) -> tuple[str, ...]:
    unit = "FLOP/s" if found.bound else "It/s"

    def shown(value: float) -> str:
        return format_si(value, unit)

    def rate(value: float, interval: Interval | None) -> str:
        return with_interval(value, interval, shown, cause=False)

    limit = upper_bound(_rate(found), _rate_interval(found), shown)
    region = found.either(lambda chart: _REGIONS[chart.region or "memory"], " Or, with the most from memory: ")
    lines = [f"{region} At most {limit}, by {_roof(_bound_by(found))}."]
    near = {"above": found.either(lambda chart: chart.above), "below": found.either(lambda chart: chart.below)}
    around = [f"{side} it {_roof(names)}" for side, names in near.items() if names]
    if around:
        lines.append(f"Next to the point: {', '.join(around)}.")
    lines += _of_levels(shares, level)
    if found.unknown:
        lines.append(f"What {', '.join(found.unknown)} allows is not known: the machine file has no bandwidth of it.")
    for one in [one for one in what_ifs if _most_gain(one) >= _NOTABLE]:
        all_cores = with_interval(one.gain_of_all or 0.0, one.gain_of_all_interval, "{:.2f}".format, cause=False)
        of_all = "" if one.gain_of_all is None else f" ({all_cores} times on all cores)"
        by = f"of one core, as ECM predicts{of_all}" if one.roofline is None else f"by {_roof(_bound_by(one.roofline))}"
        gain = with_interval(one.gain, one.gain_interval, "{:.2f}".format, cause=False)
        effect = f"{gain} times, {rate(one.bound, one.bound_interval)} {by}"
        chart = "" if one.model in (found.model, "ECM") else f" ({one.model})"
        lines.append(f"{one.name[0].upper()}{one.name[1:]}: {effect}{chart}; {one.change}.")
    idle = [one.name for one in what_ifs if _most_gain(one) < _NOTABLE]
    if idle:
        lines.append(f"No gain by {', '.join(idle)}.")
    return tuple(lines)


def _of_levels(shares: Sequence[LevelShare], level: str | None) -> tuple[str, ...]:
    """Which level deserves the work; nothing where none outside the first cache does."""
    first = shares[0] if shares else None
    worst = next((one for one in shares if one.level == level), None)
    if first is None or worst is None or first.impact is None or worst.impact is None:
        return ()
    return (
        f"{level} deserves the work: it serves {worst.share:.0%} of the bytes and takes {_impact(worst)} of the "
        f"time of all ({first.level}: {first.share:.0%} and {_impact(first)}).",
    )


def _impact(one: LevelShare) -> str:
    return with_interval(one.impact or 0.0, one.impact_interval, "{:.0%}".format, cause=False)


_NOTABLE = 1.01
"""A gain that is worth a sentence."""


def _most_gain(one: WhatIf) -> float:
    return one.gain if one.gain_interval is None else one.gain_interval.high


_REGIONS = {
    "memory": "Memory region: even data from the nearest level come too slowly for any compute roof.",
    "compute": "Compute region: even data from memory come fast enough for every compute roof.",
    "in between": "Between the regions: instructions and the levels that serve the data decide.",
}


def _roof(name: str | None) -> str:
    return f"the roof of {name}" if name else "no roof"
