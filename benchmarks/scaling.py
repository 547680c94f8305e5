"""What `kernmodel scaling` costs beside another version, and whether its answers are the same.

    git worktree add BASE COMMIT                                # and build its engines there (`pip install -e`)
    python benchmarks/scaling.py BASE
    python benchmarks/scaling.py BASE --kernels copy,stencil --machines clx,zen4 --rounds 5 --same -- --cores 1-20

Both versions answer in turn; printed are the lowest user CPU seconds of either, with those of the compiler, their
ratio, and whether the JSON documents are equal but for paths. Options of `kernmodel scaling` stand behind `--`. Exit
status 1 if answers differ and `--same` is given.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
from pathlib import Path

from saved_answers import comparable, difference

KERNELS = "copy,triad,stencil,3d-7pt,3d-27pt,himeno,uxx,matmul"
MACHINES = "hsw,bdw,clx,zen4"


def run(tree: Path, arguments: list[str]) -> tuple[float, str]:
    """User CPU seconds of a command with what it starts, and its answer."""
    command = [sys.executable, "-m", "kernmodel", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "200"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tree)
    spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return spent, comparable((found.stdout or found.stderr).replace(f"{tree}/", ""))


def compare(trees: tuple[Path, Path], arguments: list[str], rounds: int) -> bool:
    """Print a line about a command; whether both answer alike."""
    runs = [[run(tree, arguments) for tree in trees] for _ in range(rounds)]
    base, now = (min(each[number][0] for each in runs) for number in (0, 1))
    old, new = (answer for _, answer in runs[0])
    same = "same" if old == new else f"differs: {difference(f'0 {old}', f'0 {new}')}"
    print(f"{' '.join(arguments[:-1]):50} {base:7.2f} s {now:7.2f} s {now / base:6.2f}  {same}", flush=True)
    return old == new


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base", type=Path, help="work tree of the other version")
    parser.add_argument("options", nargs="*", help="options of `kernmodel scaling`")
    parser.add_argument("--kernels", default=KERNELS)
    parser.add_argument("--machines", default=MACHINES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--same", action="store_true", help="answers are to be the same")
    asked = parser.parse_args()
    trees = asked.base.resolve(), Path(__file__).resolve().parent.parent
    same = True
    for kernel in asked.kernels.split(","):
        for machine in asked.machines.split(","):
            arguments = ["scaling", "-m", machine, kernel, *asked.options, "--json"]
            same &= compare(trees, arguments, asked.rounds)
    return 0 if same or not asked.same else 1


if __name__ == "__main__":
    sys.exit(main())
