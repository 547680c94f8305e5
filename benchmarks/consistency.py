"""Do the parts of the tool say the same of the same quantity?

    python benchmarks/consistency.py --seed 1 [--cases 100] [--machines clx,zen,tx2] [--kernels stencil,add]

Takes carried kernels, machines, sizes, core counts and ways to the traffic at random, asks every part that tells a
quantity (`ecm`, `scaling`, `sweep`, `compare`, `check`, `evaluate kernels`, `roofline`, `carm`, `report`, `blocking`,
`traffic`), and prints every contradiction: two numbers that differ by more than rounding, a prediction above a roof of
bytes between levels that no note tells, a case that one part answers and another refuses. How layer conditions agree
with simulations: traffic_default.py and symbolic_vs_simulated.py. No case is dropped.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import kernmodel as km
from kernmodel.errors import KernmodelError
from kernmodel.machine.load import load_machine
from kernmodel.models.chart import Roofline
from kernmodel.resources import carried_files
from kernmodel.source.load import load_kernel
from kernmodel.source.nest.sizes import sizes_of
from kernmodel.studies.predict.request import EcmAnswer
from kernmodel.studies.predict.roofline import Subject
from kernmodel.units import convert_cycles

FACTORS = (0.05, 0.3, 1.0, 2.7)
"""Sizes: multiples of the kernel's own."""
TOLERANCE = 1e-9
ABOVE = 1e-8
"""By how much of it a prediction may be above a roof that is found another way."""
BOUNDS = ("orm", "hierarchical")
BY_CODE = ("code-order", "vector-accesses", "page-placement", "gradual-replacement")
"""Notes of predictions whose traffic is that of the code, of pages, and of caches that lose lines before they are full;
`traffic` leaves these out, and says so."""
Facts = Iterator[tuple[str, float]]
"""Names of quantities with what a part says of them; T in cy/CL, P in iterations/s, traffic in B/It."""


@dataclass(frozen=True)
class Case:
    kernel: str
    machine: str
    sizes: Mapping[str, int]
    cores: int
    cache: str

    def __str__(self) -> str:
        sizes = " ".join(f"-D {name}={value}" for name, value in self.sizes.items())
        return f"{self.kernel} -m {self.machine} {sizes} --cores {self.cores} --cache {self.cache}"


def cases(seed: int, count: int, kernels: list[str], machines: list[str]) -> Iterator[Case]:
    """So many cases, the same for the same seed."""
    rng = random.Random(seed)
    for _ in range(count):
        kernel, machine, factor = rng.choice(kernels), rng.choice(machines), rng.choice(FACTORS)
        default = sizes_of(load_kernel(kernel, {}), {})
        sizes = {str(name): max(8, round(value * factor)) for name, value in default.items()}
        topology = load_machine(machine).topology
        counts = {1, 2, topology.cores_per_numa_domain, topology.cores_per_numa_domain + 1, topology.cores}
        cores = rng.choice(sorted(count for count in counts if count <= topology.cores))
        yield Case(kernel, machine, sizes, cores, rng.choice(("auto", "lc", "sim")))


def of_answer(answer: EcmAnswer) -> Facts:
    """What a prediction of one core says."""
    prediction = answer.prediction
    if not prediction.unknown:  # else it is a lower bound, as which `sweep` has no number
        yield "T_ECM", prediction.cycles
    yield from prediction.times.items()
    if any(note.code in BY_CODE for note in answer.notes):
        return
    per_line = answer.machine.line_bytes / answer.traffic.iterations_per_unit
    for path in answer.traffic.paths:
        yield f"traffic {path.path}", (path.loads + path.stores + path.clean_victims) * per_line


def rate(answer: EcmAnswer, cycles: float) -> float:
    """Iterations a second of so many cycles per unit of work."""
    return convert_cycles(cycles, "It/s", answer.prediction.work)


def _ecm(case: Case) -> Facts:
    answer = km.ecm(case.kernel, case.machine, cores=case.cores, cache=case.cache, **case.sizes).answer
    yield from of_answer(answer)
    yield "P", rate(answer, answer.scaling[0].cycles)


def _scaling(case: Case) -> Facts:
    answer = km.scale(case.kernel, case.machine, cores=case.cores, cache=case.cache, **case.sizes).answer
    yield from of_answer(answer.single)
    yield "P", rate(answer.single, answer.rows[0].point.cycles)


def _sweep(case: Case) -> Facts:
    (row,) = km.sweep_sizes(case.kernel, case.machine, cores=case.cores, cache=case.cache, **case.sizes)
    if row.get("error"):
        raise KernmodelError(str(row["error"]))
    for name, column in (("P", "all_cores_It_per_s"), ("T_ECM", "T_ECM_cy_per_CL")):
        if name == "P" or case.cores == 1:
            value = row[column]
            yield name, value if isinstance(value, float) else math.nan


def _compare(case: Case) -> Facts:
    (result,) = km.compare(case.kernel, [case.machine], cache=case.cache, **case.sizes).answer.results
    assert result.answer is not None
    yield from of_answer(result.answer)
    points = [point for point in (result.domain, result.whole) if point and point.cores == case.cores]
    for point in points:
        yield "P", rate(result.answer, point.cycles)


def _check(case: Case) -> Facts:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "checks.yml"
        asked = {"kernel": case.kernel, "machine": case.machine, "sizes": dict(case.sizes), "cache": case.cache}
        file.write_text(json.dumps({"checks": [{**asked, "assert": ["ecm <= 1e30 cy/CL"]}]}))
        (result,) = km.check(file).answer.results
    if result.error:
        raise KernmodelError(result.error)
    if "ecm" in result.figures:  # else it is a lower bound
        yield "T_ECM", result.figures["ecm"]


def _evaluate(case: Case) -> Facts:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "measured.csv"
        sizes = json.dumps(dict(case.sizes)).replace('"', '""')
        lines = [f'{case.kernel},{case.machine},"{sizes}",{cores},1' for cores in sorted({1, case.cores})]
        file.write_text("\n".join(("kernel,machine,sizes,cores,measured", *lines)) + "\n")
        (series,) = km.evaluate_kernels(file, cache=case.cache, jobs=1).answer.series
    if series.failed:
        raise KernmodelError(series.failed[0][1])
    for point in series.points:
        if point.point.cores == 1:
            yield "T_ECM", point.predicted
        if point.point.cores == case.cores:
            yield "P", convert_cycles(point.predicted, "It/s", point.prediction.work)


def _roofline(case: Case) -> Facts:
    (kernel,) = km.roofline_chart(
        case.kernel, case.machine, model="all", cores=case.cores, cache=case.cache, **case.sizes
    ).answer.kernels
    yield from of_chart(kernel.subject, kernel.rooflines)


def _carm(case: Case) -> Facts:
    answer = km.carm_chart(case.kernel, case.machine, cores=case.cores, cache=case.cache, **case.sizes).answer
    yield from of_chart(answer.subject, (answer.findings.roofline,))


def of_chart(subject: Subject, rooflines: Iterable[Roofline]) -> Facts:
    """What charts of a kernel say."""
    if subject.iterations_per_second is not None:
        yield "P", subject.iterations_per_second
    for found in rooflines:
        told = any(note.code == "point-above-roof" for note in found.notes)
        if found.points and not found.unknown and not told:
            yield f"at most {found.model}", found.iterations_per_second
        for point in found.points:
            # without a prediction, points stand at what each model's roofs allow
            yield f"FLOP/s {'of ECM' if point.predicted else found.model}", point.flop_per_second
            if found.model == "adcarm" and point.intensity is not None:
                yield "intensity of loads and stores", point.intensity


def _report(case: Case) -> Facts:
    left_out = ("sizes", "rooflines", "carm", "dependences", "blocking", "sensitivity")
    answer = km.kernel_report(case.kernel, case.machine, cache=case.cache, without=left_out, **case.sizes).answer
    yield from of_answer(answer.ecm)
    for row in answer.scaling.answer.rows if answer.scaling.answer else ():
        if row.point.cores == case.cores:
            yield "P", rate(answer.ecm, row.point.cycles)


def _blocking(case: Case) -> Facts:
    if case.cache == "lc":
        before = km.block(case.kernel, case.machine, **case.sizes).answer.before
        yield "T_OL", before.prediction.t_ol  # its traffic counts lines at the ends of rows, too


def _traffic(case: Case) -> Facts:
    answer = km.data_traffic(case.kernel, case.machine, cache=case.cache, cycles=True, **case.sizes).answer
    if any(note.code == "page-placement" for note in answer.notes):
        return  # it says itself that `ecm` counts otherwise
    per_line = answer.machine.line_bytes / answer.traffic.iterations_per_unit
    for path in answer.traffic.paths:
        yield f"traffic {path.path}", (path.loads + path.stores + path.clean_victims) * per_line


PARTS: dict[str, Callable[[Case], Facts]] = {
    "ecm": _ecm,
    "scaling": _scaling,
    "sweep": _sweep,
    "compare": _compare,
    "check": _check,
    "evaluate": _evaluate,
    "roofline": _roofline,
    "carm": _carm,
    "report": _report,
    "blocking": _blocking,
    "traffic": _traffic,
}


def contradictions(case: Case, told: Counter[str]) -> Iterator[str]:
    """What parts say otherwise than others of the same quantity; `told` counts how often each was told."""
    said: dict[str, dict[str, float]] = {}
    refused = {}
    for part, ask in PARTS.items():
        try:
            for quantity, value in ask(case):
                told[quantity.split(" ")[0]] += 1
                said.setdefault(quantity, {}).setdefault(part, value)
        except KernmodelError as error:
            refused[part] = str(error)
    for quantity, values in said.items():
        first = next(iter(values.values()))
        same = [math.isclose(value, first, rel_tol=TOLERANCE, abs_tol=TOLERANCE) for value in values.values()]
        if len(values) > 1 and not all(same):
            yield f"{quantity}: " + ", ".join(f"{part} {value:.9g}" for part, value in values.items())
    for model in BOUNDS:
        for bound in said.get(f"at most {model}", {}).values():
            predicted = said.get("P", {}).get("ecm", 0.0)
            if predicted > bound * (1 + ABOVE):
                yield f"P {predicted:.9g} is above the {model} roofline, {bound:.9g}"
    refused.pop("blocking", None)  # which needs more of a nest than others
    if any(not math.isnan(value) for value in said.get("T_ECM", {}).values()):  # else it is not known
        yield from (f"{part} refuses: {error[:160]}" for part, error in refused.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--machines", default=",".join(path.stem for path in carried_files("machine-files", ".yml")))
    parser.add_argument("--kernels", default=",".join(path.stem for path in carried_files("kernels", ".c")))
    given = parser.parse_args()
    told, found = Counter[str](), 0
    for case in cases(given.seed, given.cases, given.kernels.split(","), given.machines.split(",")):
        for text in contradictions(case, told):
            found += 1
            print(f"{case}\n    {text}", flush=True)
    print(f"seed {given.seed}, {given.cases} cases, {found} contradictions")
    print(", ".join(f"{name} told {count} times" for name, count in told.most_common()))


if __name__ == "__main__":
    main()
