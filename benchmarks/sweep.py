"""The engine of sweeps: many sizes, many changed machines, many compiled points, and the memory of long studies.

    python benchmarks/sweep.py [--jobs N] [--compiled 1000] [--only sizes,what-if,compiled,memory]

Prints what it finds beside its limits and exits with status 1 beyond one. Wall times hold for a machine that does
nothing else; the CPU time of this process and all below it is printed with them. `busy` is that CPU time over the time
of the processors that nobody else took (their idle time and ours); `workers occupied` is the share of the time in which
the workers had points to evaluate, which does not depend on who else is there.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernmodel.studies.predict.request import CodeRequest, KernelRequest, Point
from kernmodel.studies.sweep.evaluation import evaluate
from kernmodel.studies.sweep.executors import local_processes
from kernmodel.studies.sweep.grid import Axis, Grid
from kernmodel.studies.sweep.rows import answer_row

SIZES_SECONDS, WHAT_IF_SECONDS, BUSY, GROWTH_MB = 5.0, 30.0, 0.9, 16.0


@dataclass
class Report:
    """Figures with their limits."""

    failed: list[str] = field(default_factory=list)

    def check(self, what: str, value: float, limit: float, unit: str, *, least: bool = False) -> None:
        within = value >= limit if least else value <= limit
        bound = "at least" if least else "at most"
        print(f"  {what:44} {value:9.2f} {unit:4} ({bound} {limit:g}){'' if within else '  BEYOND'}", flush=True)
        if not within:
            self.failed.append(what)

    def tell(self, what: str, value: float, unit: str) -> None:
        print(f"  {what:44} {value:9.2f} {unit}", flush=True)


def grid(*axes: Axis, compiler: str | None = None) -> Grid:
    return Grid(Point(KernelRequest("stencil", "clx", {}), CodeRequest(compiler=compiler)), axes)


def sizes(count: int, compiler: str | None = None) -> Grid:
    return grid(Axis("size", "N", tuple(100 + 97 * k for k in range(count))), compiler=compiler)


def what_if(count: int, each: int) -> Grid:
    caches = tuple(f"{512 + 16 * k} KiB" for k in range(count))
    return grid(
        Axis("change", "L2.size", caches),
        Axis("change", "memory.bandwidth", tuple(f"{50 + k} GB/s" for k in range(each))),
    )


def compiled(count: int) -> Grid:
    flags = tuple(("-O3", "-march=cascadelake", f"-DPOINT={k}") for k in range(count))
    return grid(Axis("flags", "", flags))


class Watched(Executor):
    """An executor that adds up how long its workers are occupied with chunks of points."""

    def __init__(self, executor: Executor, workers: int) -> None:
        self._executor = executor
        self.workers = workers
        self.seconds = 0.0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = self._executor.submit(fn, *args, **kwargs)
        future.add_done_callback(self._add)
        return future

    def _add(self, future: Future[Any]) -> None:
        if not future.cancelled() and isinstance(future.result(), tuple):
            self.seconds += future.result()[1]


def run(study: Sequence[Point], jobs: int) -> tuple[float, float]:
    """Wall seconds from before the processes are there to after they are gone, and the share of the time between in
    which workers had points to evaluate."""
    start = time.perf_counter()
    with local_processes(jobs) as executor:
        watched = None if executor is None else Watched(executor, jobs)
        begin = time.perf_counter()
        for outcome in evaluate(study, answer_row, executor=watched):
            if outcome.error is not None:
                raise SystemExit(f"point {outcome.index}: {outcome.error}")
        evaluating = time.perf_counter() - begin
    occupied = watched.seconds / (jobs * evaluating) if watched else 1.0
    return time.perf_counter() - start, occupied


def processor_seconds() -> float:
    """Of this process and of those below it that have ended."""
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in found)


def idle_seconds() -> float | None:
    """Of all processors together since the system started; None where it does not say."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return None
    numbers = stat.read_text().splitlines()[0].split()[1:]
    return (int(numbers[3]) + int(numbers[4])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Usage:
    """Seconds that a study took: of the clock, of processors, and of processors that had nothing to do meanwhile."""

    wall: float
    processor: float
    idle: float | None
    occupied: float


def measured(study: Sequence[Point], jobs: int) -> Usage:
    used, idle = processor_seconds(), idle_seconds()
    wall, occupied = run(study, jobs)
    after = idle_seconds()
    free = None if idle is None or after is None else after - idle
    return Usage(wall, processor_seconds() - used, free, occupied)


def measure_sizes(report: Report, jobs: int) -> None:
    print("1,000 sizes of stencil on clx")
    with tempfile.TemporaryDirectory() as folder:
        log, wrapper = Path(folder) / "runs", Path(folder) / "gcc"
        wrapper.write_text(f'#!/bin/sh\necho run >> "{log}"\nexec "{shutil.which("gcc")}" "$@"\n')
        wrapper.chmod(0o755)
        usage = measured(sizes(1000, str(wrapper)), jobs)
        report.check("wall time", usage.wall, SIZES_SECONDS, "s")
        report.tell("CPU time", usage.processor, "s")
        report.check("compilations", len(log.read_text().splitlines()), 1, "")


def measure_what_if(report: Report, jobs: int) -> None:
    print("10,000 machines (100 sizes of L2 × 100 memory bandwidths), stencil on clx")
    usage = measured(what_if(100, 100), jobs)
    report.check("wall time", usage.wall, WHAT_IF_SECONDS, "s")
    report.tell("CPU time", usage.processor, "s")


def measure_compiled(report: Report, jobs: int, count: int) -> None:
    print(f"{count:,} compiled points (flags)")
    usage = measured(compiled(count), jobs)
    whole = usage.wall * min(jobs, os.cpu_count() or 1)
    report.tell("wall time", usage.wall, "s")
    report.tell("CPU time", usage.processor, "s")
    report.tell("CPU time / (wall time × processors)", usage.processor / whole, "")
    left = whole if usage.idle is None else usage.processor + usage.idle
    report.check("busy", usage.processor / left, BUSY, "", least=True)
    report.check("workers occupied", usage.occupied, BUSY, "", least=True)


def measure_memory(report: Report, jobs: int) -> None:
    print("peak memory of the parent and of its largest worker")
    for what, few, many in (
        ("sizes", "sizes(1000)", "sizes(10000)"),
        ("what-if", "what_if(10, 100)", "what_if(100, 100)"),
    ):
        (parent, worker), (parent_many, worker_many) = (peak(study, jobs) for study in (few, many))
        report.tell(f"{what}, 1,000 points: parent", parent, "MB")
        report.tell(f"{what}, 1,000 points: worker", worker, "MB")
        report.check(f"{what}, 9,000 more points: parent", parent_many - parent, GROWTH_MB, "MB")
        report.check(f"{what}, 9,000 more points: worker", worker_many - worker, GROWTH_MB, "MB")


def peak(study: str, jobs: int) -> tuple[float, float]:
    """Peak resident megabytes of a process that runs a study, and of the largest process below it."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import resource; from sweep import *\n"
        f"if __name__ == '__main__':\n    run({study}, {jobs})\n"
        "    print(*(resource.getrusage(w).ru_maxrss / 1024 for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    parent, worker = map(float, done.stdout.split())
    return parent, worker


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="default: all processors")
    parser.add_argument("--compiled", type=int, default=1000, help="number of compiled points")
    parser.add_argument("--only", default="sizes,what-if,compiled,memory")
    options = parser.parse_args()
    report = Report()
    measures: dict[str, Callable[[], None]] = {
        "sizes": lambda: measure_sizes(report, options.jobs),
        "what-if": lambda: measure_what_if(report, options.jobs),
        "compiled": lambda: measure_compiled(report, options.jobs, options.compiled),
        "memory": lambda: measure_memory(report, options.jobs),
    }
    for name in options.only.split(","):
        measures[name]()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    sys.exit(f"beyond the limits: {', '.join(report.failed)}" if report.failed else 0)


if __name__ == "__main__":
    main()
