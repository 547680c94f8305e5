"""Data traffic by layer conditions: which reuse fits into which cache, as formulas in the sizes and as numbers.

The model, its formulas and assumptions: docs/layer-conditions.md. After Stengel et al., ICS'15, and Hammer et al.,
IPTW'16 §2.4.2; extended to any strides, directions, ranks and element sizes, to outer loops and to victim caches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import sympy

from kernmodel.machine.model import CacheLevel, Machine
from kernmodel.source.model import LoopNest
from kernmodel.source.sizes import iterations_per_sweep
from kernmodel.source.strides import updates_per_iteration
from kernmodel.traffic.common import (
    LevelCounts,
    arithmetic_intensity,
    capacities,
    capacity_notes,
    check_options,
    path_traffic,
    register_notes,
    register_traffic,
    unit_of_work,
)
from kernmodel.traffic.conditions import layer_conditions_of, transitions_of
from kernmodel.traffic.explain import access_table
from kernmodel.traffic.model import Traffic
from kernmodel.traffic.polynomial import Generators, Rate, formula_of_sum
from kernmodel.traffic.prepared import PreparedNest, analyse
from kernmodel.traffic.reuse import Analysis, ReferenceMisses, analyse_reuse
from kernmodel.traffic.streams import at_sizes

StreamMisses = tuple[tuple[ReferenceMisses, ...], ...]


def layer_conditions(
    nest: LoopNest, machine: Machine, sizes: Mapping[str, int], *, cores: int = 1, safety: float = 1.0
) -> Traffic:
    """Data traffic of a nest on a machine, by layer conditions.

    Args:
        nest: the loop nest.
        machine: the machine.
        sizes: a value for every size symbol of the nest.
        cores: cores that run the nest and share the shared caches.
        safety: factor on the cache sizes (0.5 is the rule of thumb of Stengel et al. 2015).

    Raises:
        InputError: a size is missing, or a loop makes no iteration.
        UnsupportedKernelError: an index that is not affine in the loop variables.
        UsageError: a core count or safety factor without a meaning.
    """
    return prepared_layer_conditions(analyse(nest), machine, sizes, cores=cores, safety=safety)


def prepared_layer_conditions(
    prepared: PreparedNest, machine: Machine, sizes: Mapping[str, int], *, cores: int = 1, safety: float = 1.0
) -> Traffic:
    """The same for a nest that `analyse` has prepared once for many sizes or machines."""
    check_options(machine, cores, safety)
    sized = at_sizes(prepared, sizes, machine.line_bytes)
    unit = unit_of_work(sized, machine.line_bytes)
    analysis = analyse_reuse(sized, machine.line_bytes)
    shares = capacities(machine, cores, safety)
    misses = _misses_per_level(analysis, machine.levels, shares)
    counts = [
        _counts(streams, unit.iterations, prepared.generators, allocates=_allocates(machine.levels[: number + 1]))
        for number, streams in enumerate(misses)
    ]
    paths = path_traffic(machine, counts)
    conditions = layer_conditions_of(analysis, machine, shares, unit.iterations)
    loads, stores = (float(rate.value * unit.iterations) for rate in register_traffic(sized))
    flops = prepared.nest.flops_per_iteration
    return Traffic(
        method="layer conditions",
        iterations_per_unit=float(unit.iterations),
        unit_stream=unit.reference,
        iterations_per_sweep=iterations_per_sweep(prepared.nest, sizes),
        updates_per_iteration=updates_per_iteration(prepared.nest),
        flops_per_iteration=flops,
        register_loads_bytes=loads,
        register_stores_bytes=stores,
        paths=paths,
        accesses=access_table(analysis, misses, machine, shares, unit.iterations),
        conditions=conditions,
        transitions=transitions_of(conditions, tuple(prepared.nest.symbols)),
        arithmetic_intensity=arithmetic_intensity(flops * float(unit.iterations), loads + stores, paths, machine),
        cores=cores,
        safety=safety,
        sizes=dict(sizes),
        notes=(*sized.notes, *unit.notes, *capacity_notes(machine, cores), *register_notes(sized)),
    )


def _misses_per_level(
    analysis: Analysis, levels: Sequence[CacheLevel], shares: Sequence[float]
) -> tuple[StreamMisses, ...]:
    """Per level and stream, what its references miss."""
    found: list[StreamMisses] = []
    for level, share in zip(levels, shares, strict=True):
        streams = analysis.misses_in(share)
        if level.filled_by == "victims" and not level.clean_victims:
            # lines that are never modified never enter such a cache: what the level inside misses, it misses too
            pairs = zip(analysis.reuses, streams, found[-1], strict=True)
            streams = tuple(here if reuse.stream.is_written else inside for reuse, here, inside in pairs)
        found.append(streams)
    return tuple(found)


def _allocates(levels: Sequence[CacheLevel]) -> bool:
    """Whether a store that misses the last of these levels loads the line: an inner level asks for it."""
    return any(level.write_allocate for level in levels)


def _counts(streams: StreamMisses, unit: Fraction, generators: Generators, *, allocates: bool) -> LevelCounts:
    """Misses and modified evictions of a level per unit of work.

    Without write-allocate, a written line that nobody reads is not loaded; it leaves all the same.
    """
    missed = [m for stream in streams for m in stream if m.misses.numerator.value]
    loaded = [m.misses for m in missed if allocates or m.read]
    modified = [m.misses for m in missed if m.modified]
    factor = sympy.Rational(unit.numerator, unit.denominator)
    return LevelCounts(
        misses=_per_unit(loaded, unit),
        modified=_per_unit(modified, unit),
        misses_formula=factor * formula_of_sum(loaded, generators),
        modified_formula=factor * formula_of_sum(modified, generators),
    )


def _per_unit(rates: Iterable[Rate], unit: Fraction) -> float:
    return float(sum((rate.value for rate in rates), start=Fraction(0)) * unit)
