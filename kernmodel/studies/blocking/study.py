"""Cache blocking: which loop to block, by how much, for which cache, and what it buys.

For every cache and every layer condition that fails, the block sizes for which it holds follow in closed form from the
nest inside one block (`nest.tiling.inside_block`). Candidates are rounded to whole cache lines and vectors, modelled
as the blocked nests that they are (halo lines at the borders of blocks are in their traffic), with the time that short
inner loops cost in the core, and ranked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from kernmodel import __version__
from kernmodel.errors import InputError, Note, UnsupportedKernelError, UsageError
from kernmodel.models.ecm import EcmPrediction, ScalingPoint
from kernmodel.models.memory_ends import Ratio, cycles_ratio
from kernmodel.source.emit.blocked_text import tiled_source
from kernmodel.source.emit.default_sizes import made_for
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.tiling import Band, band
from kernmodel.studies.blocking.answer import BlockingAnswer, BlockLimit, Candidate, TemporalPotential, innermost
from kernmodel.studies.blocking.candidates import candidate, ranked
from kernmodel.studies.blocking.limits import Blocks, BlockVolumes, failing_conditions
from kernmodel.studies.blocking.modelling import Modelled, Modeller
from kernmodel.studies.blocking.shapes import Shape, Shapes, grain_of
from kernmodel.studies.predict.division import scale_divided
from kernmodel.studies.predict.outside import OUTSIDE_NOTES
from kernmodel.studies.predict.request import CodeRequest, EcmAnswer, KernelRequest
from kernmodel.units import format_bytes
from kernmodel.value_types import dataclass
from kernmodel.words import count

POINTS = 30
"""Block sizes in the picture."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What was found before it is told: the limits, the nest as it stands and the better ways to block it."""

    modeller: Modeller
    allowed: Band
    chosen: tuple[str, ...]
    limits: tuple[BlockLimit, ...]
    fails: bool
    stands: Modelled
    best: tuple[tuple[Shape, Modelled], ...]

    def candidates(self) -> tuple[Candidate, ...]:
        """The better ways, the best first."""
        return tuple(candidate(self.modeller, shape, one, self.stands) for shape, one in self.best)


def blocking(kernel: KernelRequest, code: CodeRequest, loops: Sequence[str] | None = None) -> BlockingAnswer:
    """Which loops to block and by how much.

    Args:
        loops: only these loops may be blocked; None: all that may.

    Raises:
        UsageError: a loop that the nest lacks, or none that may be blocked among `loops`.
        UnsupportedKernelError: layer conditions do not apply to the nest.
        KernmodelError: any stage's error about its input.
    """
    found = _found(kernel, code, loops)
    modeller, candidates, before = found.modeller, found.candidates(), found.stands.answer
    return BlockingAnswer(
        before=before,
        limits=found.limits,
        candidates=candidates,
        saturated=_saturated(modeller, candidates[0]) if candidates else None,
        temporal=_temporal(before),
        refused=dict(found.allowed.refused),
        sweep=_sweep(modeller, candidates[0]) if candidates else (),
        notes=_notes(found, candidates),
    )


def best_of_caches(kernel: KernelRequest, code: CodeRequest, cores: int) -> tuple[tuple[Candidate, Ratio], ...]:
    """The best candidate of `blocking` for each cache, the best first, and how many times faster it makes `cores` cores
    together, of which `kernel.cores` share the caches.

    Raises:
        As `blocking`.
    """
    found = _found(kernel, code, None)
    modeller, candidates = found.modeller, found.candidates()
    first = {one.cache: one for one in reversed(candidates)}

    def together(blocks: Blocks, known: EcmPrediction) -> ScalingPoint:
        return _together(modeller, blocks, cores, {(kernel.cores, modeller.parts): known})

    best = [one for one in candidates if one is first[one.cache]]
    return tuple(
        (one, cycles_ratio(together({}, found.stands.prediction), together(one.blocks, one.prediction))) for one in best
    )


def _together(
    modeller: Modeller, blocks: Blocks, cores: int, known: Mapping[tuple[int, int], EcmPrediction]
) -> ScalingPoint:
    """Performance of so many cores together with these blocks; where a pragma divides a loop, those that
    have iterations of it.

    Args:
        known: predictions of one core by how many are active in its ccNUMA domain, and in all.
    """

    def predicted(active: int, parts: int) -> EcmPrediction:
        asked = active, parts
        return known[asked] if asked in known else modeller.simulated(blocks, *asked).prediction

    answer = modeller.full(blocks).answer
    return scale_divided(predicted, cores, answer.machine, modeller.spread, answer.nest, modeller.sizes)[0]


def _found(kernel: KernelRequest, code: CodeRequest, loops: Sequence[str] | None) -> _Found:
    modeller = _modeller(kernel, code)
    symbolic = modeller.before
    allowed = band(symbolic.nest)
    chosen = _chosen(symbolic.nest, allowed, loops)
    grain = grain_of(symbolic, modeller.jam)
    shapes = Shapes(_volumes(modeller), allowed.loops, modeller.extents, grain, modeller.used_sets)
    failing = failing_conditions(symbolic.traffic, allowed.loops)
    stands, best = ranked(modeller, shapes.of(failing, chosen), grain)
    return _Found(modeller, allowed, chosen, tuple(shapes.limits), bool(failing), stands, best)


def _modeller(kernel: KernelRequest, code: CodeRequest) -> Modeller:
    """The modeller of the nest.

    Raises:
        UnsupportedKernelError: layer conditions do not apply; a simulation alone gives no block sizes.
    """
    try:
        symbolic = replace(kernel, cache="lc", simulation=None)
        return Modeller(symbolic, code)
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
            line, stores, jam = before.machine.line_bytes, before.traffic.stores, modeller.jam
            known[loops] = BlockVolumes(modeller.nest, loops, modeller.sizes, line, stores, jam)
        return known[loops]

    return of


def _saturated(modeller: Modeller, best: Candidate) -> tuple[ScalingPoint, ScalingPoint]:
    """Performance of all cores of a ccNUMA domain, before and with the best candidate."""
    cores = modeller.before.machine.topology.cores_per_numa_domain
    return _together(modeller, {}, cores, {}), _together(modeller, best.blocks, cores, {})


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
    moving = all(part for access in writes for part in access.coefficients)
    neighbours = any(
        reuse.access != reuse.source and reuse.carried_by != "sweep"
        for condition in before.traffic.conditions
        for reuse in condition.reuses
    )
    repeated = before.traffic.paths[-1].loads > 0
    return bool(writes) and moving and neighbours and repeated


def _sweep(modeller: Modeller, best: Candidate) -> tuple[tuple[int, EcmPrediction], ...]:
    """The prediction over block sizes of the innermost blocked loop, the others as in the candidate."""
    loop, model = innermost(modeller.before, best), modeller.simulated if modeller.is_small else modeller.full
    return tuple((size, model({**best.blocks, loop: size}).prediction) for size in _block_sizes(modeller, loop))


def _block_sizes(modeller: Modeller, loop: str) -> tuple[int, ...]:
    """About `POINTS` sizes up to the whole loop, evenly on a logarithmic scale, in whole lines of the inner loop."""
    whole, before = modeller.extents[loop], modeller.before
    step = grain_of(before, modeller.jam).least(loop)
    last = max(1, whole // step)
    counts = {round(last ** (number / (POINTS - 1))) for number in range(POINTS)}
    return tuple(min(number * step, whole) for number in sorted(counts))


def _notes(found: _Found, candidates: Sequence[Candidate]) -> tuple[Note, ...]:
    modeller = found.modeller
    before = modeller.before
    safety = before.traffic.safety
    text = f"block sizes fill up to {100 * safety:g} % of what a core has of a cache (safety factor {safety:g})"
    if safety > HALF:
        text += f"; where associativity and other data matter, {HALF:g} is the rule of thumb"
    notes = [Note("block-safety", text, "assumption")]
    if not candidates:
        notes.append(Note("nothing-to-block", _nothing(found), "assumption"))
    if candidates:
        text = (
            "arrays of different names are taken as different memory; where they may overlap, blocks may change results"
        )
        notes.append(Note("distinct-arrays", text, "assumption"))
    if candidates and candidates[0].run is not None and candidates[0].run.is_marked:
        text = (
            f"lines of {candidates[0].run.access} come from memory in contiguous runs of "
            f"{format_bytes(candidates[0].run.bytes)}; what such short runs cost was not measured on this machine "
            f"(paths.{before.machine.paths[-1].name}.run_length of its file), and they may restart streams: measure "
            "before you keep the blocked loop"
        )
        notes.append(Note("short-runs-unmeasured", text, "assumption"))
    if modeller.compared:
        notes.append(Note("ranked-by-simulation", _simulated(modeller), "assumption"))
    outside = (note for _, one in found.best[:1] for note in one.answer.notes if note.code in OUTSIDE_NOTES)
    shown = before if modeller.compared else found.stands.answer
    return tuple(dict.fromkeys((*notes, *modeller.notes, *outside, *shown.notes)))


def _simulated(modeller: Modeller) -> str:
    """What was simulated to compare the candidates."""
    how = "whole sweeps" if modeller.is_small else "windows within whole blocks"
    return (
        f"{count(len(modeller.compared), 'block size')} and the nest as it stands are compared by simulated traffic "
        f"({how}; the nest as it stands as `ecm --cache sim` does); times over block sizes (-v, --plot) are by "
        f"{'simulated traffic too' if modeller.is_small else 'layer conditions'}"
    )


HALF = 0.5
"""The safety factor of Stengel et al., ICS'15."""


def _nothing(found: _Found) -> str:
    if not found.chosen:
        return "blocking buys nothing: no loop of the nest may be blocked"
    if not found.fails and found.stands.answer.traffic.symbolic is not None:
        return (
            "blocking buys nothing by layer conditions: all reuse along loops that may be blocked fits the caches; "
            "blocks against what a simulation finds to be lost beyond them are not searched for"
        )
    if not found.fails:
        return "blocking buys nothing: all reuse along loops that may be blocked fits the caches as it is"
    if not found.limits:
        return "blocking buys nothing: what the failing reuse needs does not depend on the size of blocks"
    return "blocking buys nothing: no block size makes the nest faster or moves less from memory"


def blocks_in_words(blocks: Blocks) -> str:
    """ "blocks of 67 in j and 400 in i"."""
    return "blocks of " + " and ".join(f"{size} in {loop}" for loop, size in blocks.items())


def blocked_source(answer: BlockingAnswer) -> str:
    """The C source of the best candidate, whose comment says for what it was made, and whose default sizes are these.

    Raises:
        InputError: no candidate is faster than the nest as it stands.
    """
    if not answer.candidates:
        raise InputError(
            f"no way to block {answer.before.nest.name} is faster than the nest as it stands",
            where=answer.before.nest.file,
            todo="nothing is written",
        )
    best, sizes = answer.candidates[0], answer.before.sizes
    return made_for(tiled_source(answer.before.nest, best.blocks), sizes, _made_for(answer, best))


def _made_for(answer: BlockingAnswer, best: Candidate) -> tuple[str, ...]:
    """What the source was made for, and by what."""
    before = answer.before
    blocks = ", ".join(f"{loop} in blocks of {size}" for loop, size in best.blocks.items())
    cycles = f"{before.prediction.cycles:.2f} -> {best.prediction.cycles:.2f} cy/CL"
    return (
        f"{before.nest.name} with {blocks}, made by kernmodel {__version__} blocking",
        f"machine: {before.machine.name}, {before.machine.title}; {answer.before.traffic.cores} active core(s)",
        f"sizes: {', '.join(f'{name}={value}' for name, value in before.sizes.items()) or 'none'}",
        f"predicted: {cycles}; other machines and sizes need other blocks",
    )
