"""How long real source files take: ECM of every nest of the files of a folder in one process, and one long file.

    python benchmarks/own_files_speed.py FOLDER [-I DIR]… [-m clx]

Without a folder, the long file alone: `ecm` of one function of a file of 1,000 lines beside `ecm` of stencil.c, each in
a process of its own, the best of five. Times are of the processor (children included), and of the clock. Files whose
path holds a name of --skip are left out.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import kernmodel as km
from kernmodel.errors import KernmodelError

FUNCTION = """void sweep_{0}(int n, int m, double a[restrict n][m], const double b[restrict n][m], double s)
{{
    for (int j = 1; j < n - 1; ++j) {{
        for (int i = 1; i < m - 1; ++i) {{
            double left = b[j][i - 1] + b[j][i + 1];
            double up = b[j - 1][i] + b[j + 1][i];
            a[j][i] = s * (left + up) - {0}.0 * b[j][i];
        }}
    }}
}}

"""


def processor_seconds() -> float:
    """Of this process and the children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def of_files(files: Sequence[Path], machine: str, include: Sequence[str]) -> None:
    """ECM of all nests of the files, each with its time."""
    began, clock = processor_seconds(), time.perf_counter()
    for file in files:
        before, modelled, refused = processor_seconds(), 0, 0
        try:
            for one in km.ecm_nests(km.Nest(str(file), include=tuple(include)), machine):
                modelled += not isinstance(one.answer, KernmodelError)
                refused += isinstance(one.answer, KernmodelError)
        except KernmodelError as error:
            print(f"{file.name}: {error}")
        print(f"{processor_seconds() - before:6.2f} s  {modelled:3} nests, {refused} without answer  {file.name}")
    used = processor_seconds() - began
    print(f"{len(files)} files: {used:.1f} s of the processor, {time.perf_counter() - clock:.1f} s of the clock")


def of_command(*arguments: str) -> float:
    """Seconds of the clock that a command takes, the best of five."""
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "kernmodel", *arguments], check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - began)
    return best


def of_a_long_file(machine: str) -> None:
    """`ecm` of a function of 1,000 lines beside that of a carried kernel."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "long.c"
        file.write_text("".join(FUNCTION.format(number) for number in range(91)))
        lines = file.read_text().count("\n")
        sizes = ("-D", "n=2000", "-D", "m=2000")
        long = of_command("ecm", "-m", machine, str(file), "--function", "sweep_45", *sizes)
    short = of_command("ecm", "-m", machine, "stencil.c")
    print(f"ecm of a function of {lines} lines: {long:.2f} s, of stencil.c {short:.2f} s: {long / short:.2f} times")


def main() -> None:
    """Time what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("-I", dest="include", action="append", default=[])
    parser.add_argument("-m", dest="machine", default="clx")
    parser.add_argument("--skip", action="append", default=["utilities", "orig"])
    given = parser.parse_args()
    of_a_long_file(given.machine)
    if given.folder is not None:
        files = sorted(one for one in given.folder.rglob("*.c") if not any(name in str(one) for name in given.skip))
        of_files(files, given.machine, given.include)


if __name__ == "__main__":
    main()
