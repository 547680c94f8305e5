"""What blocking predicts beside what it brings on this host: the kernel as it stands and as `blocking` emits it, run.

For each case the recommended blocks, or that there are none; with --candidates N the N best of those that it tried. A
speed-up holds if it is not below 0.97, and if its gain is at least a third of the one that was predicted.

    kernmodel machine probe -o mine.yml
    python benchmarks/blocking_measured.py mine.yml [--candidates N] [CASE …]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import kernmodel as km
from kernmodel.errors import KernmodelError
from kernmodel.source.emit.blocked_text import tiled_source

CASES: dict[str, tuple[str, dict[str, int]]] = {
    "3d-7pt": ("3d-7pt.c", {"N": 800, "M": 600, "L": 60}),
    "stencil": ("stencil.c", {"N": 400_000, "M": 100}),
    "matmul-1000": ("matmul.c", {"N": 1000, "M": 1000, "K": 1000}),
    "matmul-1400": ("matmul.c", {"N": 1400, "M": 1400, "K": 1400}),
    "matmul-2000": ("matmul.c", {"N": 2000, "M": 2000, "K": 2000}),
}
LEAST, SHARE = 0.97, 1 / 3


def main() -> int:
    """Print a row for each case; the exit status is 1 where a recommendation does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machine", help="machine file of this host")
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)}")
    parser.add_argument("--candidates", type=int, default=1, help="how many of each case are run, the best first")
    asked = parser.parse_args()
    print(f"{'case':12} {'blocks':24} {'cy/It':>7} {'blocked':>7} {'predicted':>9} {'measured':>8}")
    broken = 0
    for case in asked.cases or CASES:
        name, sizes = CASES[case]
        broken += _case(case, name, sizes, asked.machine, asked.candidates)
    return 1 if broken else 0


def _case(case: str, name: str, sizes: Mapping[str, int], machine: str, most: int) -> bool:
    answer = km.block(name, machine, **sizes).answer
    plain = _cycles(name, machine, sizes)
    if not answer.candidates:
        print(f"{case:12} {'nothing to gain':24} {_text(plain):>7}", flush=True)
        return False
    broken = False
    for number, one in enumerate(answer.candidates[:most]):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_text(tiled_source(answer.before.nest, dict(one.blocks)))
            blocked = _cycles(str(path), machine, sizes)
        predicted = answer.before.prediction.cycles / one.prediction.cycles
        measured = plain / blocked if plain and blocked else None
        holds = measured is None or measured >= max(LEAST, 1 + SHARE * (predicted - 1))
        broken |= number == 0 and not holds
        blocks = ", ".join(f"{loop} = {size}" for loop, size in one.blocks.items())
        gained = "not told" if measured is None else f"{measured:.2f}{'' if holds else ' !'}"
        print(
            f"{case:12} {blocks:24} {_text(plain):>7} {_text(blocked):>7} {predicted:9.2f} {gained:>8}",
            flush=True,
        )
    return broken


def _cycles(kernel: str, machine: str, sizes: Mapping[str, int]) -> float | None:
    """Cycles per iteration; None where no two rounds agree."""
    try:
        found = km.measure_kernel(kernel, machine, **sizes).answer
    except KernmodelError as error:
        sys.stderr.write(f"{kernel}: {error}\n")
        return None
    return found.cycles.value if found.cycles.confirmed else None


def _text(cycles: float | None) -> str:
    return "?" if cycles is None else f"{cycles:.3f}"


if __name__ == "__main__":
    sys.exit(main())
