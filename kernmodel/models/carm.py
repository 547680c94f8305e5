"""The cache-aware models: bytes are those of load and store instructions, whatever level serves them.

Equations are those of the paper: Marques, Ilic, Matveev, Sousa, Application-driven Cache-Aware Roofline Model, FGCS 107
(2020) 257. docs/adcarm.md says which figures are measured and which derived.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kernmodel.code.mix import FpClass, InstructionMix
from kernmodel.errors import InputError, Note
from kernmodel.models.bandwidths import Origin
from kernmodel.models.ceilings import (
    ComputeCeiling,
    MemoryCeiling,
    best_ceiling,
    compute_ceiling,
    joint_performance,
    known,
    memory_ceiling,
    peak_notes,
)
from kernmodel.models.chart import (
    Case,
    ComputeRoof,
    LevelDemand,
    LevelShare,
    ModelName,
    Roofline,
    active_share,
    chart,
    demand,
    kind_name,
    needed_traffic,
    path_bytes,
    peak_roofs,
)
from kernmodel.models.memory_ends import shares_of_both

ALL = "all floating-point instructions"
"""The roof of all operations of a kernel together."""

_BYTES = "core-side bytes of load and store instructions"


def cache_aware(case: Case) -> Roofline:
    """The cache-aware model: F^y = min(AI × B^y, F_p) for every level y, with one intensity (the paper, section 2).

    B^y is the most that any access and any load/store ratio gets from the level. Where it is known who serves the
    kernel's data, the bound heeds it: the bytes served by a level take at least their time at that level's bandwidth.

    Raises:
        InputError, MachineError: as `roofline`.
    """
    return _cache_aware_chart(
        "carm",
        case,
        _best(case),
        lambda one: f"{one.level}, {one.size_bytes} B accesses, {ratio_name(one.load_share)}",
        compute_roofs=peak_roofs(case),
        notes=peak_notes(case.machine, case.parameters, case.table),
    )


def integrated(case: Case) -> Roofline:
    """The integrated model: roofs as the cache-aware model has them, one point for each level as the hierarchical one.

    P = min(F_p, min over levels y of I_y × B^y), I_y in FLOP per byte that crosses the path to y (Koskela et al., A
    novel multi-level integrated roofline model approach for performance characterization, ISC 2018).

    Raises:
        InputError, MachineError: as `roofline`.
    """
    moved = (demand(case).bytes, *path_bytes(needed_traffic(case, "irm"), case.machine))
    return chart(
        "irm",
        case,
        [LevelDemand(level, ceiling, level, size) for (level, ceiling), size in zip(_best(case), moved, strict=True)],
        "bytes between levels, write-allocates and evicted lines counted; at L1 bytes of load and store instructions; "
        "roofs as the core sees the levels",
        compute_roofs=peak_roofs(case),
        notes=peak_notes(case.machine, case.parameters, case.table),
    )


def application_driven(case: Case) -> Roofline:
    """adCARM: F_{a,r}^y = min(AI × B_r^y, P_a) (equation 5).

    Memory roofs are scaled by the kernel's memory mix and its ratio of loads and stores (equation 1), compute roofs by
    its floating-point mix, each operation apart (equations 3 and 4). The bound heeds who serves the data, as
    `cache_aware`.

    Raises:
        InputError, MachineError: as `roofline`.
    """
    ceilings, compute_roofs, unknown = scaled_bandwidths(case), scaled_compute_roofs(case), _unknown_work(case)
    if unknown:  # work without a rate may still be no faster than the machine's peak
        compute_roofs = (*peak_roofs(case)[:1], *compute_roofs)
    return _cache_aware_chart(
        "adcarm",
        case,
        ceilings,
        lambda one: f"{one.level}, the kernel's accesses",
        compute_roofs=compute_roofs,
        compute_limit=next((roof.flop_per_second for roof in compute_roofs if roof.name == ALL), None),
        notes=unknown,
    )


def _cache_aware_chart(
    model: ModelName,
    case: Case,
    ceilings: Sequence[Ceiling],
    label: Callable[[MemoryCeiling], str],
    *,
    compute_roofs: Sequence[ComputeRoof],
    compute_limit: float | None = None,
    notes: Sequence[Note],
) -> Roofline:
    moved = demand(case).bytes
    served = served_bytes(case) if tells_served(case) else {}
    limiting = [None, *(served.get(level, 0.0) for level, _ in ceilings[1:])]
    levels = [
        LevelDemand(level, one, label(one) if one else level, moved, least)
        for (level, one), least in zip(ceilings, limiting, strict=True)
    ]
    return chart(
        model,
        case,
        levels,
        _BYTES,
        compute_roofs=compute_roofs,
        compute_limit=compute_limit,
        one_point=True,
        notes=notes,
    )


def ratio_name(load_share: float) -> str:
    """A load/store ratio for people: "only loads", "2:1 loads to stores", "only stores"."""
    if load_share >= 1:
        return "only loads"
    if load_share <= 0:
        return "only stores"
    return f"{load_share / (1 - load_share):.3g}:1 loads to stores"


Ceiling = tuple[str, MemoryCeiling | None]
"""A level and its ceiling, None where no bandwidth of it is known."""


def _best(case: Case) -> tuple[Ceiling, ...]:
    make = partial(best_ceiling, case.machine, case.parameters, case.table, cores=case.cores)
    return tuple((level, known(partial(make, level=level))) for level in case.machine.residence_levels)


def needed_mix(case: Case) -> InstructionMix:
    """The instruction mix of the case.

    Raises:
        InputError: it has none.
    """
    if case.mix is None:
        raise InputError(
            "adcarm scales roofs by the instruction mix, and there is none",
            todo="let the kernel be compiled, give its assembly, or a mix file",
        )
    return case.mix


def scaled_bandwidths(case: Case) -> tuple[Ceiling, ...]:
    """B_r^y of every level, innermost first, None where it is not known (equation 1).

    Σ_i R_i #β_i / Σ_i (R_i #β_i / B_{i,r}^y): R_i is the share of the memory instructions of one size, #β_i that size,
    r the load/store ratio of the kernel. The bytes are those of all instructions, the time that of each type at its own
    rate. Without memory instructions: the widest, only loads.

    Raises:
        InputError: the case has no mix.
        MachineError: as `memory_ceiling`.
    """
    mix = needed_mix(case)
    counts: dict[int, float] = {}
    for kind, count in mix.memory:
        counts[kind.size_bytes] = counts.get(kind.size_bytes, 0.0) + count
    total = mix.loads + mix.stores
    if not total:
        return _best(case)
    share = mix.loads / total
    make = partial(_scaled, case, counts=counts, share=share)
    return tuple((level, known(partial(make, level))) for level in case.machine.residence_levels)


def _scaled(case: Case, level: str, counts: Mapping[int, float], share: float) -> MemoryCeiling:
    found = [
        memory_ceiling(
            case.machine,
            case.parameters,
            case.table,
            level=level,
            size_bytes=size,
            load_share=share,
            cores=case.cores,
        )
        for size in counts
    ]
    moved = {one.size_bytes: one.size_bytes * counts[one.size_bytes] for one in found}
    seconds = sum(moved[one.size_bytes] / one.bytes_per_second for one in found)
    parts = sorted(found, key=lambda one: -moved[one.size_bytes])
    source = "; ".join(f"{one.size_bytes} B at {one.bytes_per_second / 1e9:.4g} GB/s ({one.source})" for one in parts)
    return MemoryCeiling(
        level=level,
        size_bytes=max(counts),
        load_share=share,
        bytes_per_second=sum(moved.values()) / seconds,
        origin=_weakest([one.origin for one in found]),
        source=source,
    )


def _weakest(origins: Sequence[Origin]) -> Origin:
    """The origin of a figure made of several."""
    order: tuple[Origin, ...] = ("derived", "interpolated", "measured")
    return next(origin for origin in order if origin in origins)


def scaled_compute_roofs(case: Case) -> tuple[ComputeRoof, ...]:
    """P_a of every operation that the kernel has, highest first: Σ_i R_i #φ_i / Σ_i (R_i #φ_i / P_i) (equation 3).

    Operations stay apart (section 4.1), precisions and widths of one operation are mixed. Masked instructions take the
    time of unmasked ones and compute a share η of their FLOP: P_M = η P_U (equation 4). Several operations together: a
    roof of all floating-point instructions as they share the ports.

    Raises:
        InputError: the case has no mix.
    """
    kinds: dict[str, list[tuple[FpClass, float]]] = {}
    for kind, count in needed_mix(case).fp:
        kinds.setdefault(kind.operation, []).append((kind, count))
    roofs = [roof for rows in kinds.values() if (roof := _scaled_operation(case, rows)) is not None]
    rate = joint_performance(case.machine, case.parameters, case.table, needed_mix(case).fp, case.cores)
    if len(roofs) > 1 and rate is not None:
        origin = "derived: all of them in the kernel's proportions on the ports"
        roofs.append(ComputeRoof(ALL, rate * active_share(case), "scaled", origin))
    return tuple(sorted(roofs, key=lambda roof: -roof.flop_per_second))


def _scaled_operation(case: Case, rows: Sequence[tuple[FpClass, float]]) -> ComputeRoof | None:
    flops, seconds = 0.0, 0.0
    names: list[str] = []
    found: list[ComputeCeiling] = []
    for kind, count in rows:
        ceiling = compute_ceiling(case.machine, case.parameters, case.table, kind, case.cores)
        if ceiling is None:
            continue
        utilization = case.mask_utilization if kind.masked else 1.0
        flops += count * kind.flops * utilization
        seconds += count * kind.flops / ceiling.flop_per_second
        names.append(kind_name(kind, case.parameters) + (f" masked ({utilization:.0%})" if kind.masked else ""))
        found.append(ceiling)
    if not seconds:
        return None
    name = (
        names[0] if len(set(names)) == 1 else f"{rows[0][0].operation.upper()} of {' and '.join(dict.fromkeys(names))}"
    )
    sources = dict.fromkeys(f"{one.origin}: {one.source}" for one in found)
    basis = _weakest([one.origin for one in found])
    return ComputeRoof(name, flops / seconds, "scaled", "; ".join(sources), basis, rows[0][0].operation)


def _unknown_work(case: Case) -> tuple[Note, ...]:
    unknown = [
        kind_name(kind, case.parameters)
        for kind, _ in needed_mix(case).fp
        if kind.flops and compute_ceiling(case.machine, case.parameters, case.table, kind, case.cores) is None
    ]
    if not unknown:
        return ()
    names = ", ".join(dict.fromkeys(unknown))
    text = f"{case.parameters.name} has no known rate of {names}: only the machine's peak heeds them"
    return (Note("unknown-peak", text),)


def memory_shares(case: Case) -> tuple[LevelShare, ...]:
    """Memory share MS^y = β^y/β (equation 6) and memory impact MI^y = (β^y/B^y) / Σ_m (β_m/B_m) (equation 7), innermost
    first; with intervals where more cores draw from memory than were measured.

    β^y is `served_bytes`; B^y the bandwidth scaled by the kernel's mix (equation 1), which all levels are taken to
    share (section 4.3); without a mix that of the cache-aware model.

    Raises:
        InputError: the case has no traffic.
        MachineError: as `memory_ceiling`.
    """
    return shares_of_both(_memory_shares, case)


def _memory_shares(case: Case) -> tuple[LevelShare, ...]:
    ceilings = scaled_bandwidths(case) if case.mix is not None else _best(case)
    return level_shares(served_bytes(case), {level: one.bytes_per_second if one else None for level, one in ceilings})


def level_shares(served: Mapping[str, float], bandwidths: Mapping[str, float | None]) -> tuple[LevelShare, ...]:
    """Equations 6 and 7 of the bytes that each level serves and its bandwidth; all shares are 0 where nothing moves,
    and impacts None where a bandwidth that counts is not known."""
    total = sum(served.values())
    seconds = {level: moved / width if (width := bandwidths[level]) else 0.0 for level, moved in served.items()}
    time = sum(seconds.values())
    told = all(bandwidths[level] is not None for level, moved in served.items() if moved)
    return tuple(
        LevelShare(
            level=level,
            bytes_served=moved,
            bandwidth=bandwidths[level],
            share=moved / total if total else 0.0,
            impact=None if not told else seconds[level] / time if time else 0.0,
        )
        for level, moved in served.items()
    )


def tells_served(case: Case) -> bool:
    """Whether something tells which level serves how many bytes: the mix by measurement, or the traffic."""
    return case.traffic is not None or (case.mix is not None and bool(case.mix.served))


def _measured_served(case: Case, served: Sequence[tuple[str, float]]) -> dict[str, float]:
    """The bytes of all load and store instructions by the measured shares of the levels.

    Raises:
        InputError: a level that the machine lacks.
    """
    levels = case.machine.residence_levels
    strange = next((level for level, _ in served if level not in levels), None)
    if strange is not None:
        what = f"served names {strange}, which {case.machine.name} has not"
        raise InputError(what, where=needed_mix(case).source, todo=f"use {', '.join(levels)}")
    shares = dict(served)
    return {level: shares.get(level, 0.0) * demand(case).bytes for level in levels}


def served_bytes(case: Case) -> dict[str, float]:
    """β^y by level: bytes per iteration of load and store instructions whose cache line came from that level.

    What was measured (`InstructionMix.served`) goes before what the traffic says.

    An outer level serves, of each reference, the share of its bytes that its lines have of all lines of the reference:
    where all of a line is used, its 64 bytes. The first cache serves all other bytes that the code moves, those that
    only the compiled code has (spills, values loaded twice) among them.

    Raises:
        InputError: the case has no traffic.
    """
    if case.mix is not None and case.mix.served:
        return _measured_served(case, case.mix.served)
    traffic = needed_traffic(case, "the memory share")
    first, *outer = case.machine.residence_levels
    moved = demand(case).bytes
    found = dict.fromkeys(outer, 0.0)
    # of each reference the bytes that its lines span, at most what an element for each iteration is: the size of the
    # element follows from the sum of all references, which the traffic knows
    spans = [sum(access.served_by.values()) * case.machine.line_bytes for access in traffic.accesses]
    limit = _level_at(spans, traffic.register_loads_bytes + traffic.register_stores_bytes)
    for access, span in zip(traffic.accesses, spans, strict=True):
        lines = sum(access.served_by.values())
        for level in outer:
            found[level] += min(span, limit) * access.served_by.get(level, 0.0) / lines if lines else 0.0
    beyond = sum(found.values()) / traffic.iterations_per_unit
    # compiled code may keep in registers what the source names twice, yet never less than the lines it loads
    factor = min(1.0, moved / beyond) if beyond else 1.0
    served = {level: size / traffic.iterations_per_unit * factor for level, size in found.items()}
    return {first: max(0.0, moved - sum(served.values())), **served}


def _level_at(spans: Sequence[float], total: float) -> float:
    """The height to which every span is cut so that they add up to the total; their largest if they do not reach it."""
    left, rest = total, sorted(spans)
    while rest:
        height = left / len(rest)
        if rest[0] >= height:
            return height
        left -= rest.pop(0)
    return max(spans, default=0.0)
