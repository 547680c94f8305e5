"""How well `ecm` predicts kernels whose lines come from memory and from caches at once, on this host.

    kernmodel machine probe -o mine.yml
    python benchmarks/kernels_from_memory.py mine.yml [--flags=FLAGS]

Small kernels load 0 to 3 further rows, planes or arrays that lie in L1, L2 or L3 beside a line from memory, with and
without one that is written there, and stencils of three dimensions take neighbours away one after the other. Each is
measured (`kernmodel measure kernel`) and predicted; printed are cycles a line, and mean errors.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

FLAGS = "-O3 -march=native -fno-loop-unroll-and-jam"
ELEMENTS = 8_000_000
ROWS = {
    "a1": "b[j][i] = a[j+1][i] * s", "a2": "b[j][i] = (a[j+1][i] + a[j][i]) * s",
    "a3": "b[j][i] = (a[j+1][i] + a[j][i] + a[j-1][i]) * s",
    "a4": "b[j][i] = (a[j+1][i] + a[j][i] + a[j-1][i] + a[j-2][i]) * s",
    "k2": "b[j][i] = (a[j+1][i] + c[i]) * s", "k3": "b[j][i] = (a[j+1][i] + c[i] + d[i]) * s",
    "k4": "b[j][i] = (a[j+1][i] + c[i] + d[i] + e[i]) * s",
    "l1": "c[i] = a[j+1][i] * s", "l2": "c[i] = (a[j+1][i] + a[j][i]) * s",
    "l3": "c[i] = (a[j+1][i] + a[j][i] + a[j-1][i]) * s",
    "l4": "c[i] = (a[j+1][i] + a[j][i] + a[j-1][i] + a[j-2][i]) * s",
}  # fmt: skip
LENGTHS = (10_000, 40_000, 100_000)
PLANES = {
    "p1": "k+1][j][i", "p3": "k+1][j][i k][j][i k-1][j][i", "p4y": "k+1][j][i k][j+1][i k-1][j][i k][j-1][i",
    "p5y": "k+1][j][i k][j+1][i k-1][j][i k][j-1][i k][j][i", "p5x": "k+1][j][i k][j][i+1 k-1][j][i k][j][i-1 k][j][i",
    "p7": "k+1][j][i k][j][i+1 k-1][j][i k][j][i-1 k][j][i k][j+1][i k][j-1][i",
}  # fmt: skip
GRIDS = ((400, 400, 60), (184, 184, 184), (104, 400, 300), (3200, 200, 30))


def kernels(folder: Path) -> Iterator[tuple[str, Path, dict[str, int]]]:
    """Name, file and sizes of each."""
    for name, body in ROWS.items():
        file = folder / f"{name}.c"
        arrays = "".join(f", double {array}[restrict N]" for array in "cde" if f"{array}[i]" in body)
        arrays = (", double b[restrict M][N]" if "b[j]" in body else "") + arrays
        file.write_text(
            f"void f(int M, int N, double a[restrict M][N]{arrays}, double s)\n{{\n"
            f"    for (int j = 3; j < M - 3; ++j)\n        for (int i = 0; i < N; ++i)\n            {body};\n}}\n"
        )
        for length in LENGTHS:
            yield name, file, {"N": length, "M": ELEMENTS // length}
    for name, places in PLANES.items():
        file = folder / f"{name}.c"
        added = " + ".join(f"a[{place}]" for place in places.split())
        file.write_text(
            "void f(int L, int M, int N, double a[restrict L][M][N], double b[restrict L][M][N], double s)\n{\n"
            "    for (int k = 1; k < L - 1; ++k)\n        for (int j = 1; j < M - 1; ++j)\n"
            f"            for (int i = 8; i < N - 8; ++i)\n                b[k][j][i] = ({added}) * s;\n}}\n"
        )
        for n, m, planes in GRIDS:
            yield name, file, {"N": n, "M": m, "L": planes}


def answer(*arguments: str) -> dict[str, object] | None:
    """The JSON document of a command, None where it fails."""
    command = [sys.executable, "-m", "kernmodel", *arguments, "--json"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if found.returncode else json.loads(found.stdout)


def main() -> None:
    """Measure, predict and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("machine", type=Path)
    parser.add_argument("--flags", default=FLAGS)
    given = parser.parse_args()
    errors: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, file, sizes in kernels(Path(folder)):
            options = [str(file), *(f"-D{size}={value}" for size, value in sizes.items()), f"--flags={given.flags}"]
            measured, predicted = (
                answer("measure", "kernel", *options),
                answer("ecm", "-m", str(given.machine), *options),
            )
            cycles = measured and measured["points"][0]["cycles_per_iteration"]
            if not cycles or not predicted:
                print(f"{name:4} {sizes}: not measured" if predicted else f"{name:4} {sizes}: not predicted")
                continue
            took, said = 8 * cycles["value"], predicted["headline"]["value"]
            errors.setdefault("planes" if name[0] == "p" else "rows", []).append(100 * (said / took - 1))
            print(f"{name:4} {sizes}: measured {took:.1f}, predicted {said:.1f} cy/CL", flush=True)
    for kind, found in {**errors, "all": [one for each in errors.values() for one in each]}.items():
        print(f"{kind}: {len(found)} points, {mean(map(abs, found)):.1f} % off ({mean(found):+.1f})")


if __name__ == "__main__":
    main()
