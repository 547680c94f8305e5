"""The same kernels on several machines: what limits on each, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import TYPE_CHECKING

from kernmodel.errors import KernmodelError, Note
from kernmodel.isa import split_rows, split_vectors
from kernmodel.machine.load import ENDING, FOLDER, find_machine
from kernmodel.models.bandwidths import FEW_CORES
from kernmodel.resources import carried_files
from kernmodel.studies.predict.nests import label_of, nest_suffix
from kernmodel.studies.predict.request import CodeRequest, EcmAnswer, KernelRequest, Point
from kernmodel.studies.predict.stages import Stages
from kernmodel.studies.scaling import of_core, own_rate, scaling
from kernmodel.units import convert_cycles, format_si
from kernmodel.value_types import dataclass
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.models.ecm import ScalingPoint
    from kernmodel.studies.scaling import ScalingAnswer, ScalingRow

ALL = "all"
"""In place of a machine: every carried one."""


@dataclass(frozen=True, slots=True)
class MachineResult:
    """One kernel on one machine.

    Attributes:
        machine: name as asked for; kernel: name as asked for, with the number of the nest that was chosen; nest: that
            number, None: the kernel has one nest.
        answer: None where it failed, with the error.
        domain, whole: performance of one ccNUMA domain and of the whole machine.
        saturation: cores that saturate a domain by the recursive rule, None: they do not.
        limit_core, limit_domain: what limits one core and a full domain, in a few words.
        because: why a full domain is as fast as it is, with the numbers behind it.
        ratio: runtime of one core to that on the first machine, in seconds; ratio_domain: of a full domain, None where
            either is not known. The first machine is the first that has an answer for the kernel.
    """

    machine: str
    kernel: str
    answer: EcmAnswer | None = None
    domain: ScalingPoint | None = None
    whole: ScalingPoint | None = None
    saturation: int | None = None
    limit_core: str = ""
    limit_domain: str = ""
    because: str = ""
    ratio: float | None = None
    ratio_domain: float | None = None
    error: str | None = None
    nest: int | None = None

    @property
    def name(self) -> str:
        """Of the kernel, with the number of its nest where that was asked for."""
        return self.kernel if self.answer is None else f"{self.answer.nest.name}{nest_suffix(self.nest)}"


@dataclass(frozen=True, slots=True)
class CompareAnswer:
    """The answer of `kernmodel compare`: by kernel, then by machine, in the order asked for."""

    results: tuple[MachineResult, ...]
    notes: tuple[Note, ...]

    @property
    def by_kernel(self) -> tuple[tuple[MachineResult, ...], ...]:
        """The results of each kernel, machine by machine."""
        found: dict[str, list[MachineResult]] = {}
        for result in self.results:
            found.setdefault(result.kernel, []).append(result)
        return tuple(map(tuple, found.values()))


def compare(
    kernels: Sequence[KernelRequest],
    machines: Sequence[str],
    code: CodeRequest,
    *,
    executor: Executor | None = None,
    stages: Stages | None = None,
) -> CompareAnswer:
    """Every kernel on every machine, each compiled with that machine's own flags unless `code` names others.

    Args:
        machines: names or paths; "all" stands for every carried one.
        executor: where each kernel on each machine is predicted; None: here.
        stages: what is known from other predictions, and remembers these; None, or with an executor: nothing.

    Raises:
        KernmodelError: an unknown machine or kernel; what fails on single machines is in the results, unless it fails
            on all of them.
    """
    from kernmodel.source.find import find_source

    names, notes = _distinct(machines)
    for kernel in kernels:
        find_source(kernel.kernel)  # an unknown one is wrong for every machine
    asked = [(replace(kernel, machine=name), code) for kernel in kernels for name in names]
    if executor is None:
        results = [_result(one, stages) for one in asked]
    else:
        results = list(executor.map(_result, asked))
    if all(result.error is not None for result in results):
        _described(*asked[0], Stages())  # raises what it raised, with its exit status
    of_kernels = (results[first : first + len(names)] for first in range(0, len(results), len(names)))
    related: list[MachineResult] = []
    for of_kernel in of_kernels:
        first = next((result for result in of_kernel if result.answer is not None), None)
        related += of_kernel if first is None else [_relative(result, first) for result in of_kernel]
    return CompareAnswer(tuple(related), (*notes, *_notes(related)))


def _distinct(machines: Iterable[str]) -> tuple[list[str], list[Note]]:
    """The machines asked for, each once, and a note of those that were asked for again.

    Raises:
        MachineError: an unknown machine.
    """
    carried = [path.stem for path in carried_files(FOLDER, ENDING)]
    named = [name for asked in machines for name in (carried if asked == ALL else (asked,))]
    found: dict[object, str] = {}
    notes = []
    for name in named:
        bare, bits = split_vectors(name)
        machine, rows = split_rows(bare)
        file = (find_machine(machine).resolve(), rows, bits)
        if file in found and ALL not in machines:
            notes.append(Note("machine-twice", f"{name} was asked for more than once and is shown once", "assumption"))
        found.setdefault(file, name)
    return list(found.values()), list(dict.fromkeys(notes))


def _notes(results: Sequence[MachineResult]) -> Iterator[Note]:
    """The notes of all answers; those that not all machines have say which do."""
    machines: dict[Note, dict[str, None]] = {}
    answered = dict.fromkeys(result.machine for result in results if result.answer)
    for result in results:
        for note in result.answer.notes if result.answer else ():
            machines.setdefault(note, {})[result.machine] = None
    for note, names in machines.items():
        everywhere = len(names) == len(answered)
        yield note if everywhere else replace(note, text=f"{', '.join(names)}: {note.text}")


def _result(asked: tuple[KernelRequest, CodeRequest], stages: Stages | None = None) -> MachineResult:
    """One kernel on one machine, without ratios; it runs where the executor puts it."""
    kernel, code = asked
    try:
        return _described(kernel, code, stages or Stages())
    except KernmodelError as error:
        return MachineResult(kernel.machine, label_of(kernel), error=str(error), nest=kernel.nest)


def _described(kernel: KernelRequest, code: CodeRequest, stages: Stages) -> MachineResult:
    """Scaled to one core, a full domain and the whole machine; one core alone where a bandwidth is not known."""
    single = stages.answer(Point(replace(kernel, cores=1), code))
    if single.prediction.unknown_transfers:
        name, none = label_of(kernel), "not known"
        return MachineResult(kernel.machine, name, single, limit_core=none, limit_domain=none, nest=kernel.nest)
    topology = single.machine.topology
    domain, whole = topology.cores_per_numa_domain, topology.cores
    scaled = scaling(kernel, code, (1, domain, whole), stages=stages)
    rows = {row.point.cores: row for row in scaled.rows}
    few = (note for note in scaled.notes if note.code == FEW_CORES)
    return MachineResult(
        machine=kernel.machine,
        kernel=label_of(kernel),
        answer=replace(scaled.single, notes=(*scaled.single.notes, *few)),
        domain=rows[domain].point,
        whole=rows[whole].point,
        saturation=scaled.saturation_recursive,
        limit_core=of_core(scaled.single.prediction).removesuffix(" of one core"),
        limit_domain="memory bandwidth" if rows[domain].point.saturated else rows[domain].limit,
        because=_because_of_domain(scaled, rows[domain]),
        nest=kernel.nest,
    )


_ALL = 0.9995
"""A share that is written as 100.0 %."""


def _because_of_domain(scaled: ScalingAnswer, row: ScalingRow) -> str:
    """Why a full domain is as fast as it is."""
    prediction, point = scaled.single.prediction, row.point
    cores, n = f"its {count(point.cores, 'core')}", scaled.saturation_recursive
    rate = own_rate(prediction.work)
    reached = format_si(convert_cycles(point.cycles, rate, prediction.work), rate) if point.cycles else "no time"
    fits = f"; {row.fits}" if row.fits else ""
    if prediction.memory_cycles <= 0:
        return f"A full domain: nothing moves over the memory path, and {cores} reach {reached}{fits}."
    if point.cycles_interval is not None:
        return f"A full domain: {cores} reach {reached} at least{fits}; {point.cycles_interval.cause} is not known."
    if not point.saturated or point.utilization is None:
        return f"A full domain: {cores} use {point.utilization:.0%} of its memory bandwidth and reach {reached}{fits}."
    found = prediction.transfers[-1].bandwidth
    bandwidth = f" ({found.bytes_per_second / 1e9:.1f} GB/s)" if found else ""
    share = f"{point.utilization:.1%}" if point.utilization < _ALL else ""
    if n is not None and n < point.cores:
        drawn = f"; all {point.cores} draw {share} of it" if share else ""
        used = f"{n} of {cores} use all of its memory bandwidth{bandwidth}{drawn}"
    else:
        used = f"{cores} {f'draw {share}' if share else 'use all'} of its memory bandwidth{bandwidth}"
    return f"A full domain: {used}, which allows {reached}{fits}."


def _relative(result: MachineResult, first: MachineResult) -> MachineResult:
    """The result with its runtime in relation to that on the first machine."""
    mine, theirs = _seconds(result), _seconds(first)
    if mine is None or theirs is None:
        return result
    ratios = [one / other if other else None for one, other in zip(mine, theirs, strict=True)]
    told = all(one.domain is not None and one.domain.cycles_interval is None for one in (result, first))
    return replace(result, ratio=ratios[0], ratio_domain=ratios[1] if told else None)


def _seconds(result: MachineResult) -> tuple[float, float] | None:
    """Per iteration, of one core and of a full domain: units of work and clocks differ between machines."""
    if result.answer is None or result.domain is None:
        return None
    prediction = result.answer.prediction
    per_cycle = 1 / (prediction.work.iterations_per_unit * prediction.work.clock_hz)
    return prediction.cycles * per_cycle, result.domain.cycles * per_cycle
