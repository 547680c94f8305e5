"""The ranking of ways to block a nest, and why each of them is worth its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import ceil

from kernmodel.studies.blocking import BlockLimit, Candidate
from kernmodel.studies.blocking_limits import Blocks
from kernmodel.studies.blocking_models import Modelled, Modeller, missed_lines
from kernmodel.studies.blocking_shapes import Grain, Shape
from kernmodel.traffic.model import Traffic
from kernmodel.units import format_bytes

SAME = 1e-3
"""Times that differ by less than this share count as equal: then the traffic from memory decides."""

SIMULATED = 3
"""Block sizes near which others are simulated."""

ROUNDS = 4
"""How often a small nest is looked at for better blocks near the best ones."""

SMALLER = (0.75, 0.5)
"""Real caches are not fully associative: blocks somewhat smaller than layer conditions allow may be better."""


def memory_lines(traffic: Traffic) -> float:
    """Lines per unit of work over the path to memory."""
    path = traffic.paths[-1]
    return path.loads + path.stores + path.clean_victims


def ranked(modeller: Modeller, shapes: Sequence[Shape], grain: Grain) -> tuple[tuple[Shape, Modelled], ...]:
    """The shapes that are faster than the nest as it stands, or as fast with less traffic; the best first.

    All are modelled with the loop of the plain nest, and the best of each cache and set of loops with their own; the
    best of these are simulated where the modeller does that.
    """
    before = Modelled({}, modeller.before)
    kept = _best(before, [(shape, modeller.quick(shape.blocks)) for shape in shapes])
    known = [shape for shape, _ in kept if modeller.is_known(shape.blocks)]
    kept = _best(before, [(shape, modeller.full(shape.blocks)) for shape in known])
    if not modeller.simulates:
        return tuple(kept)
    chosen = [shape for shape in shapes if modeller.is_known(shape.blocks)] if modeller.is_small else known
    return tuple(_simulated(modeller, chosen, grain))


def _simulated(modeller: Modeller, shapes: Sequence[Shape], grain: Grain) -> list[tuple[Shape, Modelled]]:
    """The best by simulated traffic, of these shapes and of those near the best of them."""
    found = {tuple(shape.blocks.items()): (shape, modeller.simulated(shape.blocks)) for shape in shapes}
    for _ in range(ROUNDS if modeller.is_small else 1):
        best = sorted(found.values(), key=lambda pair: _rank(pair[1]))[:SIMULATED]
        near = {tuple(one.blocks.items()): one for shape, _ in best for one in _near(shape, grain, modeller.extents)}
        new = {blocks: shape for blocks, shape in near.items() if blocks not in found}
        found |= {blocks: (shape, modeller.simulated(shape.blocks)) for blocks, shape in new.items()}
    return _best(modeller.stands(), found.values())


def _near(shape: Shape, grain: Grain, extents: Blocks) -> Iterator[Shape]:
    """Smaller blocks of the same form, and blocks that differ by a step in one loop."""
    for share in SMALLER:
        yield replace(shape, blocks={loop: grain.down(loop, ceil(size * share)) for loop, size in shape.blocks.items()})
    for loop, size in shape.blocks.items():
        step = grain.steps[-1] if loop == grain.inner else ceil(size / 4)
        for changed in (size - step, size + step):
            if 0 < changed < extents[loop]:
                yield replace(shape, blocks={**shape.blocks, loop: changed})


def _best(before: Modelled, found: Iterable[tuple[Shape, Modelled]]) -> list[tuple[Shape, Modelled]]:
    """The better ones than the plain nest, of each cache and set of loops those that nothing there beats."""
    groups: dict[object, list[tuple[Shape, Modelled]]] = {}
    for shape, modelled in sorted(found, key=lambda pair: _rank(pair[1])):
        group = groups.setdefault((shape.limit.cache, tuple(shape.blocks)), [])
        if _gains(before, modelled) and not any(_beats(other, modelled) for _, other in group):
            group.append((shape, modelled))
    kept = [pair for group in groups.values() for pair in group]
    return sorted(kept, key=lambda pair: _rank(pair[1]))


def _rank(one: Modelled) -> tuple[float, ...]:
    """Time on one core, then traffic from memory, then large blocks."""
    digits = round(one.prediction.cycles, 2)
    return digits, round(memory_lines(one.answer.traffic), 4), *(-size for size in one.blocks.values())


def _gains(before: Modelled, one: Modelled) -> bool:
    if one.prediction.cycles < before.prediction.cycles * (1 - SAME):
        return True
    same = one.prediction.cycles <= before.prediction.cycles
    return same and memory_lines(one.answer.traffic) < memory_lines(before.answer.traffic) * (1 - SAME)


def _beats(other: Modelled, one: Modelled) -> bool:
    """Whether `other` takes no longer and moves no more."""
    moved = memory_lines(other.answer.traffic) <= memory_lines(one.answer.traffic)
    return moved and other.prediction.cycles <= one.prediction.cycles


def candidate(modeller: Modeller, shape: Shape, one: Modelled, before: Modelled) -> Candidate:
    """The answer's row of a modelled nest."""
    halo = modeller.halo_share(one.answer.traffic)
    return Candidate(
        blocks=one.blocks,
        cache=shape.limit.cache,
        limit=shape.limit,
        traffic=one.answer.traffic,
        halo_share=halo,
        prediction=one.prediction,
        speedup=before.prediction.cycles / one.prediction.cycles if one.prediction.cycles else 1.0,
        because=_because(modeller, shape, one, before, halo),
    )


def _because(modeller: Modeller, shape: Shape, one: Modelled, before: Modelled, halo: float) -> str:
    limit = shape.limit
    blocks = " and ".join(f"{loop} to {size}" for loop, size in one.blocks.items())
    reuse = f"the reuse of {', '.join(limit.accesses[:2])}{', …' if len(limit.accesses) > 2 else ''}"
    now, then = (missed_lines(modelled.answer.traffic, limit.cache) for modelled in (before, one))
    return (
        f"block {blocks}: {reuse} along {limit.carried_by} needs {_needed(modeller, limit, one.blocks)} in "
        f"{limit.cache}, whose misses go from {now:.2f} to {then:.2f} lines per unit of work; {100 * halo:.1f} % of "
        f"the lines from memory are loaded again at borders of blocks"
    )


def _needed(modeller: Modeller, limit: BlockLimit, blocks: Blocks) -> str:
    """The volume inside blocks of the size that is recommended, beside what there is."""
    values = {f"B_{loop}": size for loop, size in blocks.items()} | modeller.sizes
    symbols = limit.required_bytes.free_symbols
    number = limit.required_bytes.subs({s: values[s.name] for s in symbols if s.name in values})
    if not number.is_number:
        return f"{limit.required_bytes} B of {format_bytes(limit.capacity_bytes)}"
    text = f"{limit.required_bytes} B = {format_bytes(float(number))} of {format_bytes(limit.capacity_bytes)}"
    # a simulation may find that somewhat larger blocks are worth what they lose
    return text if number <= limit.capacity_bytes else f"{text} (fits in part, as simulated)"
