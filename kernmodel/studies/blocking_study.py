"""The blocking study: limits, candidates, what they buy on one core and on all, what blocking in time could bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kernmodel.errors import Note, UnsupportedKernelError, UsageError
from kernmodel.models.ecm import EcmPrediction, scale
from kernmodel.source.tiling import Band, band, tile
from kernmodel.studies.blocking import BlockingAnswer, Candidate, TemporalPotential
from kernmodel.studies.blocking_candidates import candidate, ranked
from kernmodel.studies.blocking_limits import BlockVolumes, failing_conditions
from kernmodel.studies.blocking_models import Modelled, Modeller
from kernmodel.studies.blocking_shapes import Shape, Shapes, grain_of
from kernmodel.studies.outside import OUTSIDE_NOTES
from kernmodel.studies.request import CodeRequest, EcmAnswer, KernelRequest

if TYPE_CHECKING:
    from kernmodel.source.model import LoopNest

POINTS = 30
"""Block sizes in the picture."""


def study(kernel: KernelRequest, code: CodeRequest, loops: Sequence[str] | None) -> BlockingAnswer:
    """The answer to `kernmodel.studies.blocking.blocking`."""
    modeller = _modeller(kernel, code)
    symbolic = modeller.before
    allowed = band(symbolic.nest)
    chosen = _chosen(symbolic.nest, allowed, loops)
    grain = grain_of(symbolic)
    shapes = Shapes(_volumes(modeller), allowed.loops, modeller.extents, grain)
    failing = failing_conditions(symbolic.traffic, allowed.loops)
    best = ranked(modeller, shapes.of(failing, chosen), grain)
    stands = modeller.stands() if best else modeller.full({})
    before = stands.answer
    candidates = tuple(candidate(modeller, shape, one, stands) for shape, one in best)
    return BlockingAnswer(
        before=before,
        limits=tuple(shapes.limits),
        candidates=candidates,
        saturated=_saturated(modeller, candidates[0]) if candidates else None,
        temporal=_temporal(before),
        refused=dict(allowed.refused),
        sweep=_sweep(modeller, candidates[0]) if candidates else (),
        best_nest=tile(before.nest, candidates[0].blocks) if candidates else None,
        notes=_notes(modeller, chosen, bool(failing), bool(shapes.limits), candidates, _outside(best)),
    )


def _modeller(kernel: KernelRequest, code: CodeRequest) -> Modeller:
    """The modeller of the nest.

    Raises:
        UnsupportedKernelError: layer conditions do not apply; a simulation alone gives no block sizes.
    """
    try:
        symbolic = replace(kernel, cache="lc", simulation=None)
        return Modeller(symbolic, code, simulate=kernel.cache in ("sim", "both"))
    except UnsupportedKernelError as error:
        todo = "block sizes follow from layer conditions only" if "--cache" in (error.todo or "") else error.todo
        raise UnsupportedKernelError(error.what, where=error.where, todo=todo) from error


def _chosen(nest: LoopNest, allowed: Band, loops: Sequence[str] | None) -> tuple[str, ...]:
    """The loops that may be blocked, of those that were asked for.

    Raises:
        UsageError: a loop that the nest lacks; none of those asked for may be blocked.
    """
    if loops is None:
        return allowed.loops
    known = [loop.variable for loop in nest.loops]
    for name in loops:
        if name not in known:
            raise UsageError(
                f"{nest.name} has no loop {name}", where="--loops", todo=f"choose among its loops {', '.join(known)}"
            )
    chosen = tuple(name for name in allowed.loops if name in loops)
    if not chosen:
        reasons = "; ".join(f"{name}: {allowed.refused[name]}" for name in dict.fromkeys(loops))
        raise UsageError(
            f"none of these loops of {nest.name} may be blocked: {reasons}",
            where="--loops",
            todo=f"choose among {', '.join(allowed.loops)}" if allowed.loops else "no loop of it may be blocked",
        )
    return chosen


def _volumes(modeller: Modeller) -> Callable[[tuple[str, ...]], BlockVolumes]:
    """The volumes inside blocks of a set of loops, prepared once."""
    known: dict[tuple[str, ...], BlockVolumes] = {}
    before = modeller.before

    def of(loops: tuple[str, ...]) -> BlockVolumes:
        if loops not in known:
            line, stores = before.machine.line_bytes, before.traffic.stores
            known[loops] = BlockVolumes(before.nest, loops, modeller.sizes, line, stores)
        return known[loops]

    return of


def _saturated(modeller: Modeller, best: Candidate) -> tuple[float, float]:
    """Cycles per unit of work of all cores of a ccNUMA domain, before and with the best candidate."""
    machine = modeller.before.machine
    cores = machine.topology.cores_per_numa_domain

    def cycles(blocks: dict[str, int]) -> float:
        return scale(lambda active: modeller.final(blocks, active).prediction, cores, machine).cycles

    return cycles({}), cycles(dict(best.blocks))


def _temporal(before: EcmAnswer) -> tuple[TemporalPotential, ...]:
    """What could be had if several sweeps were done while the data are in a cache, for nests that are swept again."""
    now = before.prediction.cycles
    if not _is_sweep(before):
        return ()
    caches = {level.name for level in before.machine.levels}
    inside = [(name, cycles) for name, cycles in before.prediction.levels if name in caches and 0 < cycles < now]
    return tuple(TemporalPotential(name, cycles, now / cycles) for name, cycles in reversed(inside))


def _is_sweep(before: EcmAnswer) -> bool:
    """Whether the nest updates a lattice from neighbours: what it writes moves with every loop, and it reads an array
    at several places that it reaches one after the other."""
    nest = before.nest
    writes = nest.writes()
    moving = all(not part.is_zero for access in writes for part in access.coefficients)
    neighbours = any(
        reuse.access != reuse.source and reuse.carried_by != "sweep"
        for condition in before.traffic.conditions
        for reuse in condition.reuses
    )
    repeated = before.traffic.paths[-1].loads > 0
    return bool(writes) and moving and neighbours and repeated


def _sweep(modeller: Modeller, best: Candidate) -> tuple[tuple[int, EcmPrediction], ...]:
    """The prediction over block sizes of the innermost blocked loop, the others as in the candidate."""
    loop = list(best.blocks)[-1]
    return tuple((size, _at(modeller, best, loop, size).prediction) for size in _block_sizes(modeller, loop))


def _at(modeller: Modeller, best: Candidate, loop: str, size: int) -> Modelled:
    blocks = {**best.blocks, loop: size}
    return modeller.final(blocks) if modeller.is_small else modeller.full(blocks)


def _block_sizes(modeller: Modeller, loop: str) -> tuple[int, ...]:
    """About `POINTS` sizes up to the whole loop, evenly on a logarithmic scale, in whole lines for the inner loop."""
    whole = modeller.extents[loop]
    step = grain_of(modeller.before).steps[-1] if loop == modeller.before.nest.inner.variable else 1
    last = max(1, whole // step)
    counts = {round(last ** (number / (POINTS - 1))) for number in range(POINTS)}
    return tuple(min(count * step, whole) for count in sorted(counts))


def _outside(best: Sequence[tuple[Shape, Modelled]]) -> tuple[Note, ...]:
    """What the best candidate's notes say of the code outside its innermost loop."""
    return tuple(note for _, one in best[:1] for note in one.answer.notes if note.code in OUTSIDE_NOTES)


def _notes(
    modeller: Modeller,
    chosen: Sequence[str],
    fails: bool,
    limited: bool,
    candidates: Sequence[Candidate],
    outside: Sequence[Note],
) -> tuple[Note, ...]:
    before = modeller.before
    safety = before.traffic.safety
    text = f"block sizes fill up to {100 * safety:g} % of what a core has of a cache (safety factor {safety:g})"
    if safety > HALF:
        text += f"; where associativity and other data matter, {HALF:g} is the rule of thumb"
    notes = [Note("block-safety", text, "assumption")]
    if not candidates:
        notes.append(Note("nothing-to-block", _nothing(chosen, fails, limited), "assumption"))
    if candidates:
        text = (
            "arrays of different names are taken as different memory; where they may overlap, blocks may change results"
        )
        notes.append(Note("distinct-arrays", text, "assumption"))
    if candidates and modeller.simulates:
        why = "the nest is small" if modeller.is_small else "it was asked for"
        text = f"the best block sizes, and smaller ones, are compared by simulated traffic: {why}"
        notes.append(Note("ranked-by-simulation", text, "assumption"))
    return tuple(dict.fromkeys((*notes, *modeller.notes, *outside, *before.notes)))


HALF = 0.5
"""The safety factor of Stengel et al., ICS'15."""


def _nothing(chosen: Sequence[str], fails: bool, limited: bool) -> str:
    if not chosen:
        return "blocking buys nothing: no loop of the nest may be blocked"
    if not fails:
        return "blocking buys nothing: all reuse along loops that may be blocked fits the caches as it is"
    if not limited:
        return "blocking buys nothing: what the failing reuse needs does not depend on the size of blocks"
    return "blocking buys nothing: no block size makes the nest faster or moves less from memory"
