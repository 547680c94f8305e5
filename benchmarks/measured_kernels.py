"""Files for `kernmodel evaluate kernels` out of measurements: stencils of INSPECT, and kernels on a Zen 4 host.

    python benchmarks/measured_kernels.py --data DIR --out OUT [--part seen|aside|all] [--listings FOLDER]
    kernmodel evaluate kernels OUT/inspect.csv --cache lc --sample 20
    kernmodel evaluate kernels OUT/zen4.csv

DIR holds `measured/inspect-dev.csv.gz`, runtimes of the stencils of RRZE's INSPECT (likwid, 2019) on grids of N³,
machine files of configurations that are not carried, and `measured/ecm-zen4-dev.csv` with `zen4-host.yml`. Each stencil
is written out as C from its description, with its extent as a parameter. A third of the stencils, by a hash of their
names, is "aside": changes of the model look at the others (`seen`) until they stand. FOLDER may hold the assembly of
the loops that were measured, `<stencil>@<machine>.s` (`inspect_listings.py`); series without one are left out then.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import shutil
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

MACHINES = {"hsw (": "inspect-hsw-cod.yml", "ivb (": "inspect-ivb22.yml", "skx (": "inspect-skx-snc.yml"}
"""Machine files beside the data, by the beginning of the machine's description."""
OTHERS = {("3D-r1-isotropic-box-constant-double", "SkylakeSP_Gold-6148_SNC"): "skx"}
"""Series whose own page contradicts the machine that it is filed under, and the machine that it describes: this one's
topology lists two NUMA domains of 20 cores, so clustering was off; all others of that machine list four of 10."""
WIDE = "-qopt-zmm-usage=high"
"""What the compiler of the measured code was told where its vectors are of 512 bits; gcc's word for it below."""
COLUMNS = ("kernel", "source", "listing", "machine", "flags", "class", "sizes", "cores", "unit", "measured")
PATHS = ("L1L2", "L2L3", "L3Mem")
AXES = "kji"
TYPES = {"double": "double", "float": "float", "double_Complex": "double _Complex"}
Offset = tuple[int, ...]
Row = Mapping[str, str]


class Wanted(NamedTuple):
    """Which stencils: "seen", "aside" or "all", and the folder of listings, if these are to be used."""

    part: str
    listings: Path | None


def main() -> None:
    """Write the two files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--part", choices=("seen", "aside", "all"), default="all")
    parser.add_argument("--listings", type=Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    folder = given.data / "measured"
    peers = tuple(f"peer_{name}" for name in ("kerncraft", "kernmodel-2026-11"))
    stencils = list(_stencils(folder, given.out, Wanted(given.part, given.listings)))
    _write(given.out / "inspect.csv", (*COLUMNS, *(f"traffic_{path}" for path in PATHS), *peers), stencils)
    kernels = list(_zen4(folder))
    _write(given.out / "zen4.csv", ("compiler", *COLUMNS, "peer_kernmodel-2026-11"), kernels)


def _write(file: Path, columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)
    print(f"{file}: {len(rows)} points of {len({(row['kernel'], row['machine']) for row in rows})} series")


def is_aside(stencil: str) -> bool:
    """Whether a stencil is among the third that is kept aside."""
    return crc32(stencil.encode()) % 3 == 0


def _stencils(folder: Path, out: Path, wanted: Wanted) -> Iterator[dict[str, object]]:
    """The points of one core and of several; without named kernels."""
    with gzip.open(folder / "inspect-dev.csv.gz", "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            known = row["row"] in ("single", "scaling") and row["datatype"] in TYPES and row["radius"]
            if known and wanted.part in ("all", "aside" if is_aside(row["stencil"]) else "seen"):
                listing = wanted.listings and wanted.listings / f"{row['stencil']}@{row['inspect_machine']}.s"
                if listing is None or listing.is_file():
                    yield _point(row, folder, out, listing)


def _point(row: Row, folder: Path, out: Path, listing: Path | None) -> dict[str, object]:
    name, machine, measured = row["stencil"], row["kernmodel_machine"], row["row"] == "single"
    source = out / f"{name}.c"
    if not source.is_file():
        source.write_text(_source(row), encoding="utf-8")
    filed = next((str(folder / file) for begin, file in MACHINES.items() if machine.startswith(begin)), machine)
    own = OTHERS.get((name, row["inspect_machine"]), filed)
    wide = WIDE in row["flags"]
    ours, theirs = ("ecm_cy", "lc_ecm_cy") if measured else ("mlups", "ecm_mlups")
    traffic = {path: [row[f"measured_{path.lower()}_{way}_b_per_lup"] for way in ("load", "evict")] for path in PATHS}
    valid = measured and row["traffic_valid"] == "1"
    return {
        "kernel": f"{name}{'-512' * wide}",
        "source": source.name,
        "listing": listing and listing.resolve(),
        "machine": own,
        "flags": "-O3 -march=skylake-avx512 -mprefer-vector-width=512" if wide and listing is None else "",
        "class": f"{row['kind']}, {row['coefficients']} coefficients",
        "sizes": json.dumps({"n": int(row["grid_n"])}),
        "cores": row["cores"],
        "unit": "cy/CL" if measured else "MLUP/s",
        "measured": row["measured_cy_per_cl" if measured else "measured_mlups"],
        **{f"traffic_{path}": sum(map(float, ways)) for path, ways in traffic.items() if valid and _counted(ways)},
        "peer_kerncraft": row[f"kerncraft_{theirs}"],
        "peer_kernmodel-2026-11": row[f"kernmodel_{ours}"],
    }


def _counted(ways: Sequence[str]) -> bool:
    """Whether counters were there and make sense."""
    return all(ways) and min(map(float, ways)) >= 0


def _zen4(folder: Path) -> Iterator[dict[str, object]]:
    """Carried kernels on a Zen 4 host, by compilers that are installed here."""
    with (folder / "ecm-zen4-dev.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if shutil.which(row["compiler"]):
                yield {
                    "kernel": row["kernel"],
                    "machine": folder / "zen4-host.yml",
                    "compiler": row["compiler"],
                    "class": "stencil" if row["kernel"] in _GRIDS else "stream, product or sum",
                    "sizes": row["sizes"],
                    "measured": row["measured_cy_per_unit_q10"],
                    "peer_kernmodel-2026-11": row["ecm_cy"],
                }


_GRIDS = ("stencil", "2d-5pt", "3d-7pt", "3d-27pt", "long-range", "himeno", "iso3dfd", "uxx")


def _source(row: Mapping[str, str]) -> str:
    """The stencil as a function of the grid's extent."""
    dimensions, radius, real = int(row["dimension"][0]), int(row["radius"]), TYPES[row["datatype"]]
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


if __name__ == "__main__":
    main()
