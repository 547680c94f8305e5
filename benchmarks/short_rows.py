"""What the time outside the innermost loop is worth: stencils with short and long rows, predicted and measured.

    python benchmarks/short_rows.py --data DIR [--sizes 20 30 50 100 200] [--compiler gcc] [--flags FLAGS] [--each]

DIR holds `measured/inspect-dev.csv.gz`, single-core runtimes of the stencils of RRZE's INSPECT (likwid, 2019) on grids
of N³, and machine files of configurations that are not carried. Each stencil is written out from its description, with
its sizes as parameters, compiled here, and predicted as it is and with `classic`, which leaves the term out. (INSPECT
was measured with code of icc, whose remainders may differ.) Every series, a stencil on a machine, weighs the same.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import shlex
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from kernmodel.errors import KernmodelError
from kernmodel.studies.predict.ecm import predict_ecm_sweep
from kernmodel.studies.predict.request import CodeRequest, KernelRequest

MACHINES = {"hsw (": "inspect-hsw-cod.yml", "ivb (": "inspect-ivb22.yml", "skx (": "inspect-skx-snc.yml"}
"""Machine files beside the data, by the beginning of the machine's description."""
AXES = "kji"
Offset = tuple[int, ...]


class Error(NamedTuple):
    """Deviations of the predictions of one point from the measurement, in percent; `foreseen` with foreseen exits."""

    machine: str
    size: int
    stencil: str
    classic: float
    whole: float
    foreseen: float


def main() -> None:
    """Print mean errors by machine and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 30, 50, 100, 200])
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--flags", type=shlex.split, default=None, help="by default those of the machine file")
    parser.add_argument("--each", action="store_true", help="print every point")
    given = parser.parse_args()
    flags = None if given.flags is None else tuple(given.flags)
    found = list(_errors(given.data / "measured", given.sizes, CodeRequest(compiler=given.compiler, flags=flags)))
    if given.each:
        for one in found:
            errors = f"{one.classic:+7.1f} {one.whole:+7.1f} {one.foreseen:+7.1f}"
            print(f"{one.machine:12} {one.stencil:45} N={one.size:4} {errors}")
    _table(found)


def _errors(folder: Path, sizes: Sequence[int], code: CodeRequest) -> Iterator[Error]:
    with tempfile.TemporaryDirectory() as scratch:
        for (stencil, machine), measured in _series(folder / "inspect-dev.csv.gz", sizes).items():
            file = Path(scratch) / "stencil.c"
            file.write_text(_source(next(iter(measured.values()))), encoding="utf-8")
            own = next((str(folder / name) for begin, name in MACHINES.items() if machine.startswith(begin)), machine)
            try:
                yield from _series_errors(str(file), own, machine.partition(" ")[0], stencil, measured, code)
            except KernmodelError as error:
                print(f"{stencil} on {machine}: {error}")


def _series_errors(
    file: str, machine: str, name: str, stencil: str, measured: Mapping[int, Mapping[str, str]], code: CodeRequest
) -> Iterator[Error]:
    points = [{"n": size} for size in measured]
    request = KernelRequest(file, machine, points[0], cache="lc")
    answers = [
        predict_ecm_sweep(request, CodeRequest(compiler=code.compiler, flags=code.flags, classic=classic), points)
        for classic in (True, False)
    ]
    for (size, row), classic, whole in zip(measured.items(), *answers, strict=True):
        true, interval = float(row["measured_cy_per_cl"]), whole.prediction.cycles_interval
        best = interval.low if interval else whole.prediction.cycles
        cycles = (classic.prediction.cycles, whole.prediction.cycles, best)
        yield Error(f"{name}{'*' * (machine != name)}", size, stencil, *(100 * (one / true - 1) for one in cycles))


def _series(file: Path, sizes: Sequence[int]) -> dict[tuple[str, str], dict[int, dict[str, str]]]:
    """The rows of each stencil on each machine by size; without complex numbers and named kernels."""
    series: dict[tuple[str, str], dict[int, dict[str, str]]] = defaultdict(dict)
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            known = row["row"] == "single" and row["datatype"] in ("double", "float") and row["radius"]
            if known and int(row["grid_n"]) in sizes and row["inspect_review_general"] != "red":
                series[row["stencil"], row["kernmodel_machine"]][int(row["grid_n"])] = row
    return series


def _source(row: Mapping[str, str]) -> str:
    """The stencil as a function of the grid's extent."""
    dimensions, radius, real = int(row["dimension"][0]), int(row["radius"]), row["datatype"]
    axes, extents = AXES[-dimensions:], "[n]" * dimensions
    groups = _groups(_offsets(dimensions, radius, row["kind"]), row["weighting"])
    variable = row["coefficients"] == "variable"
    place = "".join(f"[{axis}]" for axis in axes)
    weights = [f"W[{g}]{place}" if variable else f"c{g}" for g in range(len(groups))]
    terms = [
        f"{w} * ({' + '.join(_access(axes, one) for one in group)})" for w, group in zip(weights, groups, strict=True)
    ]
    given = f"{real} W[restrict {len(groups)}]{extents}" if variable else ", ".join(f"{real} {w}" for w in weights)
    loops = "".join(f"for (int {x} = {radius}; {x} < n - {radius}; ++{x})\n" for x in axes)
    arrays = ", ".join(f"{real} {name}[restrict n]{extents[3:]}" for name in "ab")
    return f"void stencil(int n, {arrays}, {given}) {{\n{loops}b{place} = {' + '.join(terms)};\n}}\n"


def _access(axes: str, offset: Offset) -> str:
    return "a" + "".join(f"[{axis}{step:+d}]" if step else f"[{axis}]" for axis, step in zip(axes, offset, strict=True))


def _offsets(dimensions: int, radius: int, kind: str) -> list[Offset]:
    steps = range(-radius, radius + 1)
    every = product(*(steps,) * dimensions)
    return [one for one in every if kind == "box" or sum(step != 0 for step in one) <= 1]


def _groups(offsets: Sequence[Offset], weighting: str) -> list[list[Offset]]:
    """The points that share a coefficient."""
    groups: dict[object, list[Offset]] = defaultdict(list)
    for one in offsets:
        key: object = one
        if weighting == "homogeneous":
            key = ""
        elif weighting == "isotropic":
            key = sum(map(abs, one))
        elif weighting == "point-symmetric":
            key = max(one, tuple(-step for step in one))
        groups[key].append(one)
    return list(groups.values())


def _table(found: Sequence[Error]) -> None:
    print(
        f"{'machine':12} {'N':>4} {'points':>6}   mean |error| (mean error) in %: classic, with T_out, exits foreseen"
    )
    for machine in dict.fromkeys(sorted(one.machine for one in found)):
        for size in sorted({one.size for one in found}):
            here = [one for one in found if (one.machine, one.size) == (machine, size)]
            if here:
                cells = (_cell([getattr(one, name) for one in here]) for name in ("classic", "whole", "foreseen"))
                print(f"{machine:12} {size:4} {len(here):6}   {'   '.join(cells)}")


def _cell(errors: Sequence[float]) -> str:
    return f"{statistics.fmean(map(abs, errors)):5.1f} ({statistics.fmean(errors):+6.1f})"


if __name__ == "__main__":
    main()
