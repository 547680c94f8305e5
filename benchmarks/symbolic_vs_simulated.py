"""Layer conditions against simulation: every carried kernel on every carried machine, at several sizes.

    python benchmarks/symbolic_vs_simulated.py [--processes 2] [--machines clx,zen2] [--kernels stencil,copy]

Prints how many numbers agree within 5 %, and every exception with the reason that `compare_traffic` finds. What the
reasons mean: docs/traffic-simulation.md.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from kernmodel.errors import UnsupportedKernelError
from kernmodel.machine.load import load_machine
from kernmodel.resources import carried_files
from kernmodel.source.load import load_kernel
from kernmodel.source.nest.sizes import sizes_of
from kernmodel.traffic.comparison.differences import compare_traffic
from kernmodel.traffic.conditions.layer_conditions import layer_conditions
from kernmodel.traffic.conditions.symbolic_nest import symbolic_nest
from kernmodel.traffic.model import QUANTITIES, Difference
from kernmodel.traffic.simulation.simulate import simulate

FACTORS = (1.0, 0.31, 3.7)
"""Sizes: the kernel's own, and these multiples of them, so that other layer conditions hold."""


@dataclass(frozen=True)
class Case:
    kernel: str
    machine: str
    factor: float


@dataclass(frozen=True)
class Outcome:
    case: Case
    sizes: dict[str, int]
    numbers: int
    differences: tuple[Difference, ...]
    seconds: float
    simulating: float
    settled: bool


def run(case: Case) -> Outcome:
    machine = load_machine(case.machine)
    nest = load_kernel(case.kernel, {})
    default = sizes_of(nest, {})
    sizes = sizes_of(nest, {name: max(8, round(value * case.factor)) for name, value in default.items()})
    start = time.perf_counter()
    symbolic = layer_conditions(nest, machine, sizes)
    before = time.perf_counter()
    simulated = simulate(nest, machine, sizes)
    after = time.perf_counter()
    differences = compare_traffic(symbolic, simulated, nest, machine, sizes)
    settled = simulated.sampling is None or simulated.sampling.settled
    numbers = len(QUANTITIES) * len(symbolic.paths)
    return Outcome(case, sizes, numbers, differences, time.perf_counter() - start, after - before, settled)


def covered(kernel: str) -> bool:
    """Whether layer conditions apply to a kernel."""
    try:
        symbolic_nest(load_kernel(kernel, {}))
    except UnsupportedKernelError as error:
        print(f"{kernel}: simulation only ({error})")
        return False
    return True


def cases(kernels: list[str], machines: list[str]) -> Iterator[Case]:
    for factor in FACTORS:
        for kernel in kernels:
            for machine in machines:
                yield Case(kernel, machine, factor)


def names(given: str | None, folder: str, ending: str) -> list[str]:
    return given.split(",") if given else [file.stem for file in carried_files(folder, ending)]


def show(outcome: Outcome) -> None:
    sizes = " ".join(f"{name}={value}" for name, value in outcome.sizes.items())
    if not outcome.settled:
        print(f"{outcome.case.kernel} on {outcome.case.machine}, {sizes}: not settled")
    for each in outcome.differences:
        print(
            f"{outcome.case.kernel} on {outcome.case.machine}, {sizes}: {each.path} {each.quantity} "
            f"{each.symbolic:.4g} by layer conditions, {each.simulated:.4g} simulated ({each.relative:+.0%})\n"
            f"    {each.reason_code}: {each.reason}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--machines", help="only these, separated by commas")
    parser.add_argument("--kernels", help="only these, separated by commas")
    options = parser.parse_args()
    kernels = [kernel for kernel in names(options.kernels, "kernels", ".c") if covered(kernel)]
    wanted = list(cases(kernels, names(options.machines, "machine-files", ".yml")))
    start = time.perf_counter()
    outcomes = []
    with ProcessPoolExecutor(options.processes) as pool:
        for outcome in pool.map(run, wanted, chunksize=4):
            outcomes.append(outcome)
            show(outcome)
    report(outcomes, time.perf_counter() - start)


def report(outcomes: list[Outcome], seconds: float) -> None:
    numbers = sum(outcome.numbers for outcome in outcomes)
    found = Counter(each.reason_code for outcome in outcomes for each in outcome.differences)
    slowest = max(outcomes, key=lambda outcome: outcome.simulating)
    print(f"{len(outcomes)} cases, {numbers} numbers, {numbers - sum(found.values())} agree")
    for code, count in found.most_common():
        print(f"    {code}: {count}")
    print(f"{seconds:.0f} s; the longest simulation took {slowest.simulating:.2f} s ({slowest.case})")
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"largest process: {children:.0f} MB")


if __name__ == "__main__":
    main()
