"""The ranking of ways to block a nest, and why each of them is worth its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from math import ceil, inf

from kernmodel.studies.blocking.answer import BlockLimit, Candidate, MemoryRun
from kernmodel.studies.blocking.limits import Blocks
from kernmodel.studies.blocking.modelling import Modelled, Modeller, missed_lines
from kernmodel.studies.blocking.shapes import Grain, Shape
from kernmodel.traffic.stream_runs import contiguous_runs, restart_cycles, shortest_run
from kernmodel.units import format_bytes

SAME = 1e-3
"""Share of a gain below which a part of it is not worth a word."""

GAIN = 0.05
"""Share of time, or of the lines from memory in the same time, that blocks save at least where they are recommended:
two measurements of one loop are the same if they differ by no more (`measure.samples.REPEATED`), and models are not
better than that. A five-point stencil blocked for 1 % took 25 % longer (docs/accuracy.md)."""

NEAR = 3
"""Block sizes near which others are simulated."""

ROUNDS = 4
"""How often a small nest is looked at for better blocks near the best ones."""

FIRST, NEXT, MOST = 5, 3, 12
"""Ways to block a large nest that are simulated whatever conditions say of them, the best of a cache and set of loops
each; those that are simulated at a time after them; and all that are."""

WORTH = 0.005
"""Share of time that a way to block must promise to save beyond the best one, to be simulated too."""

SMALLER = (0.75, 0.5)
"""Real caches are not fully associative: blocks somewhat smaller than layer conditions allow may be better."""


Found = dict[tuple[tuple[str, int], ...], tuple[Shape, Modelled]]
"""What was simulated, by block sizes."""


def ranked(
    modeller: Modeller, shapes: Sequence[Shape], grain: Grain
) -> tuple[Modelled, tuple[tuple[Shape, Modelled], ...]]:
    """The nest as it stands, and the shapes that are faster, or as fast with less traffic; the best first.

    Layer conditions say which shapes may be worth it; those are simulated (of a small nest all, and those near the best
    of them), and what is simulated is ranked. Both are with simulated traffic; where there is nothing to try, the nest
    has the traffic that every command finds by default.
    """
    known = [shape for shape in shapes if modeller.is_known(shape.blocks)]
    if not known:
        return modeller.by_default(), ()
    if modeller.is_small:
        found = _simulated(modeller, known)
        for _ in range(ROUNDS):
            best = sorted(found.values(), key=lambda pair: _rank(pair[1]))[:NEAR]
            near = {_sizes(one): one for shape, _ in best for one in _near(shape, grain, modeller.extents)}
            found |= _simulated(modeller, _new(near.values(), found))
    else:
        found = _large(modeller, known, grain)
    before = modeller.simulated({})
    return before, tuple(_best(found.values(), before))


def _large(modeller: Modeller, shapes: Sequence[Shape], grain: Grain) -> Found:
    """Of a large nest the best shapes by layer conditions: of each cache and set of loops one; those near the best that
    was simulated, as long as one of them is better; and those that promise less time than it has."""
    symbolic = [(shape, modeller.quick(shape.blocks)) for shape in shapes]
    ordered = _by_conditions(modeller, [shape for shape, _ in _best(symbolic)])
    first = {(shape.limit.cache, tuple(shape.blocks)): shape for shape in reversed(ordered)}
    found = _simulated(modeller, [shape for shape in ordered if shape in first.values()][:FIRST])
    # as large as the best are, they may not quite fit: shorter ones in the outermost loop too
    outer = [(shape, *next(iter(shape.blocks.items()))) for shape in ordered[:NEXT]]
    shorter = [replace(s, blocks={**s.blocks, loop: ceil(size * SMALLER[0])}) for s, loop, size in outer]
    others = _by_conditions(modeller, [*ordered, *shorter])
    looked_at = inf
    while len(found) < MOST:
        best, one = min(found.values(), key=lambda pair: _rank(pair[1]))
        better = one.prediction.cycles * (1 - WORTH)
        chosen = list[Shape]()
        if one.prediction.cycles < looked_at:
            looked_at = better
            chosen = _new(_by_conditions(modeller, _neighbours(best, grain, modeller.extents)), found)
        if not chosen:
            chosen = _new([s for s in others if modeller.full(s.blocks).prediction.cycles < better], found)
        if not chosen:
            break
        found |= _simulated(modeller, chosen[: min(NEXT, MOST - len(found))])
    return found


def _new(shapes: Iterable[Shape], found: Found) -> list[Shape]:
    return [shape for shape in shapes if _sizes(shape) not in found]


def _by_conditions(modeller: Modeller, shapes: Iterable[Shape]) -> list[Shape]:
    """Shapes of different sizes, ranked by layer conditions."""
    different = {_sizes(shape): shape for shape in shapes}
    return sorted(different.values(), key=lambda shape: _rank(modeller.full(shape.blocks)))


def _neighbours(shape: Shape, grain: Grain, extents: Blocks) -> Iterator[Shape]:
    """Shapes that differ in the order of the loops over blocks, or in one loop: one block less, one more, a third more
    of them."""
    yield from _orders(shape)
    for loop, size in shape.blocks.items():
        count = ceil(extents[loop] / size)
        for other in (count - 1, count + 1, ceil(count * 4 / 3)):
            if other > 1:
                yield replace(
                    shape, blocks={**shape.blocks, loop: grain.up(loop, ceil(extents[loop] / other), extents[loop])}
                )


def _simulated(modeller: Modeller, shapes: Sequence[Shape]) -> Found:
    models = modeller.simulated_all([shape.blocks for shape in shapes])
    return {_sizes(shape): (shape, one) for shape, one in zip(shapes, models, strict=True)}


def _sizes(shape: Shape) -> tuple[tuple[str, int], ...]:
    return tuple(shape.blocks.items())


def _orders(shape: Shape) -> Iterator[Shape]:
    """The same blocks with the loops over them in every other order, so that something else passes between two uses."""
    for order in permutations(shape.blocks.items()):
        if order != tuple(shape.blocks.items()):
            yield replace(shape, blocks=dict(order))


def _near(shape: Shape, grain: Grain, extents: Blocks) -> Iterator[Shape]:
    """The same blocks in another order, smaller ones of the same form, and blocks that differ by a step in one loop."""
    yield from _orders(shape)
    for share in SMALLER:
        yield replace(shape, blocks={loop: grain.down(loop, ceil(size * share)) for loop, size in shape.blocks.items()})
    for loop, size in shape.blocks.items():
        step = grain.least(loop) if loop == grain.inner else grain.up(loop, ceil(size / 4), size)
        for changed in (size - step, size + step):
            if 0 < changed < extents[loop]:
                yield replace(shape, blocks={**shape.blocks, loop: changed})


def _best(found: Iterable[tuple[Shape, Modelled]], before: Modelled | None = None) -> list[tuple[Shape, Modelled]]:
    """Of each cache and set of loops those that nothing there beats; if the plain nest is given, better ones."""
    groups: dict[object, list[tuple[Shape, Modelled]]] = {}
    for shape, modelled in sorted(found, key=lambda pair: _rank(pair[1])):
        group = groups.setdefault((shape.limit.cache, tuple(shape.blocks)), [])
        lines = modelled.answer.traffic.memory_lines
        beaten = (
            other.answer.traffic.memory_lines <= lines and other.prediction.cycles <= modelled.prediction.cycles
            for _, other in group
        )
        if (before is None or _gains(before, modelled)) and not any(beaten):
            group.append((shape, modelled))
    return sorted((pair for group in groups.values() for pair in group), key=lambda pair: _rank(pair[1]))


def _rank(one: Modelled) -> tuple[float, ...]:
    """Time on one core, then traffic from memory, then large blocks."""
    digits = round(one.prediction.cycles, 2)
    return digits, round(one.answer.traffic.memory_lines, 4), *(-size for size in one.blocks.values())


def _gains(before: Modelled, one: Modelled) -> bool:
    if one.prediction.cycles < before.prediction.cycles * (1 - GAIN):
        return True
    same = one.prediction.cycles <= before.prediction.cycles
    return same and one.answer.traffic.memory_lines < before.answer.traffic.memory_lines * (1 - GAIN)


def candidate(modeller: Modeller, shape: Shape, one: Modelled, before: Modelled) -> Candidate:
    """The answer's row of a modelled nest."""
    machine, traffic, halo = one.answer.machine, one.answer.traffic, modeller.halo_share(one)
    answer, path = one.answer, machine.paths[-1]
    runs = answer.runs or contiguous_runs(answer.nest, modeller.sizes, machine.line_bytes)
    shortest = shortest_run(traffic, runs, path.outer)
    restart = restart_cycles(path, traffic, runs) if path.run_length else None
    return Candidate(
        blocks=one.blocks,
        cache=shape.limit.cache,
        limit=shape.limit,
        traffic=traffic,
        halo_share=halo,
        prediction=one.prediction,
        speedup=before.prediction.cycles / one.prediction.cycles if one.prediction.cycles else 1.0,
        because=_because(modeller, shape, one, before, halo),
        run=None if shortest is None else MemoryRun(*shortest, restart),
    )


def _because(modeller: Modeller, shape: Shape, one: Modelled, before: Modelled, halo: float) -> str:
    limit = shape.limit
    blocks = " and ".join(f"{loop} to {size}" for loop, size in one.blocks.items())
    reuse = f"the reuse of {', '.join(limit.accesses[:2])}{', …' if len(limit.accesses) > 2 else ''}"
    now, then = (missed_lines(modelled.answer.traffic, limit.cache) for modelled in (before, one))
    return (
        f"block {blocks}: {reuse} along {limit.carried_by} needs {_needed(modeller, limit, one.blocks)} in "
        f"{limit.cache}, whose misses go from {now:.2f} to {then:.2f} lines per unit of work; {100 * halo:.1f} % of "
        f"the lines from memory are loaded again at borders of blocks{_by_overlap(one, before)}"
    )


def _by_overlap(one: Modelled, before: Modelled) -> str:
    """What part of the gain is not by reuse: shorter rows, whose dependency chains overlap more often."""
    gain = before.prediction.cycles - one.prediction.cycles
    longer, shorter = (m.prediction.outside.overlap_cycles if m.prediction.outside else 0.0 for m in (before, one))
    part = min(gain, shorter - longer)
    if part <= gain * SAME:
        return ""
    return f"; {part:.2f} of the {gain:.2f} cy/CL gained are dependency chains of several rows that overlap"


def _needed(modeller: Modeller, limit: BlockLimit, blocks: Blocks) -> str:
    """The volume inside blocks of the size that is recommended, beside what there is."""
    values = {f"B_{loop}": size for loop, size in blocks.items()} | modeller.sizes
    if not limit.required_bytes.free_symbols <= values.keys():
        return f"{limit.required_bytes} B of {format_bytes(limit.capacity_bytes)}"
    number = limit.required_bytes.value(values)
    text = f"{limit.required_bytes} B = {format_bytes(float(number))} of {format_bytes(limit.capacity_bytes)}"
    # a simulation may find that somewhat larger blocks are worth what they lose
    return text if number <= limit.capacity_bytes else f"{text} (fits in part, as simulated)"
