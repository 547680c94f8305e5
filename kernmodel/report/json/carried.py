"""What the package carries: `kernmodel.machine/1`, `-list/1` and `-check/1`; `kernmodel.kernel/1` and `-list/1`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from kernmodel.errors import SourceError
from kernmodel.report.json.document import Json, document, kernel_json, pick, plain, record

if TYPE_CHECKING:
    from kernmodel.machine.model import Machine
    from kernmodel.report.text.kernel import KernelSummary
    from kernmodel.schema.fields import Problem
    from kernmodel.source.load import FoundNest
    from kernmodel.source.model import LoopNest


def machine_document(machine: Machine) -> Json:
    """One machine with all its figures and their sources."""
    return document("kernmodel.machine/1", machine=machine_json(machine))


def machine_json(machine: Machine) -> Json:
    """All of a machine in base units by the names of its attributes; the overlap is its expression as text.

    Derived figures that a reader would have to compute (cores, bandwidths, shares of a mix) stand beside the others.
    """
    data: Json = {entry.name: plain(getattr(machine, entry.name)) for entry in fields(machine)}
    data["overlap"] = str(machine.overlap)
    data["undecided"] = [str(one) for one in machine.undecided]
    if machine.memory is not None:
        data["memory"] |= pick(machine.memory, "bytes_per_second")
    data["topology"] |= pick(machine.topology, "cores", "cores_per_numa_domain")
    for path, row in zip(machine.paths, data["paths"], strict=True):
        row.update(pick(path, "time_name"))
    for series, row in zip(machine.bandwidths, data["bandwidths"], strict=True):
        row["mix"] |= pick(series.mix, "write_allocate_factor", "read_share", "load_share")
    return data


def machine_list_document(machines: Iterable[Machine]) -> Json:
    """The carried machines."""
    return document("kernmodel.machine-list/1", machines=[_listed(machine) for machine in machines])


def _listed(machine: Machine) -> Json:
    return {
        **pick(machine, "name", "title"),
        **pick(machine.core, "microarchitecture"),
        **pick(machine, "isa"),
        **pick(machine.topology, "sockets", "cores", "numa_domains"),
        **pick(machine, "clock_hz"),
        "caches": [pick(cache, "name", "size_bytes", "cores_sharing") for cache in machine.levels],
    }


def machine_check_document(checked: Iterable[tuple[str, tuple[Problem, ...]]]) -> Json:
    """The problems of each file; one that is fit for use has none that is an error."""
    files = [
        record(
            file=file,
            ok=not any(problem.severity == "error" for problem in problems),
            problems=[_problem_json(problem) for problem in problems],
        )
        for file, problems in checked
    ]
    return document("kernmodel.machine-check/1", files=files)


def _problem_json(problem: Problem) -> Json:
    return {"where": str(problem.where), **pick(problem, "key", "what", "todo", "severity")}


def kernel_document(nest: LoopNest, values: Mapping[str, int]) -> Json:
    """What was derived from the source of a kernel, and the source; `values` of its sizes are empty where one is not
    known."""
    return document(
        "kernmodel.kernel/1",
        kernel=kernel_json(nest, values),
        symbols=list(nest.symbols),
        loops=nest.loops,
        arrays=nest.arrays,
        references=nest.accesses,
        operations=nest.operations.flops,
        scalars=nest.operations.scalars,
        reductions=list(nest.operations.reductions),
        source=nest.text,
        notes=nest.notes,
    )


def nests_document(nests: Iterable[FoundNest], left_out: Sequence[tuple[str, str]]) -> Json:
    """The loop nests of a file; `reason` is null where one is modelled, and what is read of it null where it is not."""
    others = [{"function": name, "header": header} for name, header in left_out]
    return document("kernmodel.kernel-loops/1", nests=[_nest_json(found) for found in nests], left_out=others)


def _nest_json(found: FoundNest) -> Json:
    nest, error = (None, found.nest) if isinstance(found.nest, SourceError) else (found.nest, None)
    return {
        **pick(found, "function", "number", "location"),
        "variables": list(found.variables),
        "modelled": nest is not None,
        "arrays": None if nest is None else list(nest.arrays),
        "flops_per_iteration": None if nest is None else nest.operations.flops_per_iteration,
        "reason": None if error is None else str(error),
    }


def kernel_list_document(kernels: Iterable[KernelSummary]) -> Json:
    """The carried kernels."""
    return document("kernmodel.kernel-list/1", kernels=list(kernels))
