"""Time of the roofline commands: text, picture, and many kernels on one chart in one process.

    python benchmarks/roofline.py [--runs 5] [--kernels 100]

Single commands run in processes of their own (cold); the chart of many kernels is drawn in this one, each kernel a
stencil with other offsets, so that none is compiled or analysed twice. Prints wall and processor seconds, the minimum
of the runs.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

START = "import sys; from kernmodel.cli.main import main; sys.exit(main())"
COMMANDS = (
    ("text", "roofline -m skx-6140 stencil.c", 1.2),
    ("text, adcarm", "roofline -m skx-6140 stencil.c --model adcarm", 1.2),
    ("with a picture", "roofline -m skx-6140 stencil.c --plot {folder}/one.svg", 2.5),
    ("carm with a picture", "carm -m skx-6140 stencil.c --plot {folder}/carm.svg", 2.5),
)
KERNEL = """\
#ifndef N
#define N 4000
#endif
void k{number}(double a[N][N], double b[N][N], double s) {{
    for (int j = 0; j < N; ++j)
        for (int i = {offset}; i < N - {offset}; ++i)
            b[j][i] = {terms};
}}
"""


def cold(command: str, folder: str, runs: int) -> tuple[float, float]:
    """Least wall and processor seconds of a command."""
    arguments = [sys.executable, "-c", START, *command.format(folder=folder).split()]
    walls, processors = [], []
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        subprocess.run(arguments, stdout=subprocess.DEVNULL, check=True)
        walls.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processors.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(walls), min(processors)


def write_kernels(folder: Path, count: int) -> list[str]:
    """Kernels that all differ."""
    files = []
    for number in range(1, count + 1):
        offset = 1 + number % 5
        terms = " + ".join(f"s * a[j][i {sign} {k}]" for k in range(1, offset + 1) for sign in "+-")
        terms += " + a[j][i]" * (1 + number // 5)
        files.append(str(folder / f"k{number}.c"))
        Path(files[-1]).write_text(KERNEL.format(number=number, offset=offset, terms=terms))
    return files


def many(folder: Path, count: int) -> tuple[float, float]:
    """Wall and processor seconds of one chart of so many kernels."""
    from kernmodel.cli.main import main

    files = write_kernels(folder, count)
    start, processor = time.perf_counter(), time.process_time()
    status = main(["roofline", "-m", "clx", *files, "--plot", str(folder / "many.png")])
    if status:
        raise SystemExit(status)
    return time.perf_counter() - start, time.process_time() - processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--kernels", type=int, default=100)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, command, limit in COMMANDS:
            rows.append((name, *cold(command, folder, options.runs), limit))
        rows.append((f"{options.kernels} kernels on one chart", *many(Path(folder), options.kernels), 15.0))
    print(f"{'':28} {'wall s':>8} {'cpu s':>8} {'limit s':>8}")
    for name, wall, processor, limit in rows:
        print(f"{name:28} {wall:8.2f} {processor:8.2f} {limit:8.1f}")


if __name__ == "__main__":
    main()
