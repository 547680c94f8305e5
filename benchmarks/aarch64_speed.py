"""How long `incore` takes for AArch64 assembly beside x86-64 assembly of the same kernels, in alternating runs.

    python benchmarks/aarch64_speed.py [--rounds 5] [kernels…]

Each kernel is compiled for both, and the listings are analysed in turn (x86-64 text goes
through GNU as, AArch64 text does not).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import kernmodel as km

KERNELS = ("triad", "stencil", "daxpy", "dot", "3d-7pt")
SIDES = (
    ("x86-64", "gcc", ("-O3", "-march=znver2"), "ZEN2"),
    ("AArch64", "aarch64-linux-gnu-gcc", ("-O3", "-mcpu=neoverse-n1"), "N1"),
)


def listing(name: str, compiler: str, flags: tuple[str, ...], folder: str) -> Path:
    """A carried kernel as assembly."""
    source = next(Path(__file__).parents[1].glob(f"kernels/{name}.c"))
    target = Path(folder) / f"{compiler}-{name}.s"
    subprocess.run([compiler, *flags, "-S", "-o", target, source], check=True, capture_output=True)
    return target


def seconds(file: Path, core: str) -> float:
    """Of one analysis."""
    begin = time.perf_counter()
    _ = km.analyse_loop(str(file), uarch=core).answer
    return time.perf_counter() - begin


def main() -> None:
    """Print the median ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", default=KERNELS)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for name in given.kernels:
            files = [listing(name, compiler, flags, folder) for _, compiler, flags, _ in SIDES]
            taken: list[list[float]] = [[], []]
            for _ in range(given.rounds):
                for times, file, (_, _, _, core) in zip(taken, files, SIDES, strict=True):
                    times.append(seconds(file, core))
            x86, arm = map(statistics.median, taken)
            ratios.append(arm / x86)
            print(f"{name:12} x86-64 {1e3 * x86:7.1f} ms  AArch64 {1e3 * arm:7.1f} ms  ratio {arm / x86:.2f}")
    print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
