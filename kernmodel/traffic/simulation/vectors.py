"""A nest as vector code executes it: each reference touches the elements of several iterations at once.

Where few sets have to hold lines of many arrays, it decides how often a line is asked for again: element by element
once for each, in vectors once or twice. Which accesses vectors come in, the compiled code tells; their order is taken
to be the source's.
"""

from __future__ import annotations

from dataclasses import replace

from kernmodel.cachesim.model import Form, Hierarchy, ProgramReference
from kernmodel.cachesim.programs import trips
from kernmodel.traffic.simulation.program import NumericNest, NumericReference
from kernmodel.traffic.simulation.rates import weighted_sum
from kernmodel.traffic.simulation.sampling import Sample, sample
from kernmodel.traffic.simulation.steady_state import Effort
from kernmodel.traffic.simulation.work import Work


def sample_vectors(work: Work, hierarchy: Hierarchy, spend: Effort, lanes: int, *, exact: bool = False) -> Sample:
    """What is counted per iteration where each access is of so many iterations; see `sampling.sample`."""
    vectors = in_vectors(work, lanes)
    found = sample(vectors, hierarchy, spend, exact=exact)
    if vectors is work:
        return found
    rates = weighted_sum([(vectors.iterations / work.iterations, found.rates)])
    counted = replace(found.sampling, warm_up=found.sampling.warm_up * lanes, measured=found.sampling.measured * lanes)
    return replace(found, rates=rates, sampling=counted)


def in_vectors(work: Work, lanes: int) -> Work:
    """The work with accesses of so many iterations of the innermost loop; itself where that is not what code does.

    All references that this loop moves have to go from element to element, through rows of one length that hold a
    vector; the last vector of a row may reach beyond its end.
    """
    nest = work.nest
    if lanes <= 1 or not _in_rows(nest, lanes):
        return work
    step = nest.loops[-1].step
    references = tuple(_wider(each, lanes, step, len(nest.loops)) for each in nest.references)
    vectors = replace(
        nest,
        loops=(*nest.loops[:-1], replace(nest.loops[-1], step=step * lanes)),
        counted=(*nest.counted[:-1], replace(nest.counted[-1], step=step * lanes)),
        references=references,
    )
    placed = tuple(
        replace(
            each.reference,
            address=_moved(each.reference.address, one.address.constant - old.reference.address.constant),
        )
        for each, old, one in zip(references, nest.references, work.program.references, strict=True)
    )
    return Work(vectors, replace(work.program, loops=vectors.loops, references=placed))


def _in_rows(nest: NumericNest, lanes: int) -> bool:
    """Whether the innermost loop goes from element to element through rows of one length."""
    if not nest.loops or any(loop.uses for loop in nest.counted):
        return False
    inner, step = nest.counted[-1], nest.loops[-1].step
    inside = [each.reference for each in nest.references if each.reference.depth == len(nest.loops)]
    return trips(inner.start({}), inner.stop({}), step) >= lanes and all(
        not each.indirections and abs(each.address.coefficients[-1] * step) == each.size_bytes for each in inside
    )


def _wider(each: NumericReference, lanes: int, step: int, depth: int) -> NumericReference:
    """A reference that covers so many iterations; one outside the innermost loop stays."""
    own: ProgramReference = each.reference
    if own.depth < depth:
        return each
    backwards = min(0, own.address.coefficients[-1] * step) * (lanes - 1)
    wider = replace(own, size_bytes=own.size_bytes * lanes, address=_moved(own.address, backwards))
    return replace(each, reference=wider)


def _moved(address: Form, by: int) -> Form:
    return Form(address.constant + by, address.coefficients)
