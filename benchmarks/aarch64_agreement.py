"""In-core predictions for AArch64 loops beside llvm-mca's and OSACA's, core by core.

    python benchmarks/aarch64_agreement.py FACTS [--every 4] [--worst 5]

FACTS holds `loops-dev.csv.gz`: loops with the answers of llvm-mca 19 and OSACA 0.7.1. Neither is a measurement: the
table says how far the tools are apart, and --worst names the loops on which they are furthest.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import kernmodel as km
from kernmodel.errors import KernmodelError

CORES = {
    "thunderx2t99": ("TX2", "TX2"),
    "a64fx": ("A64FX@512", "A64FX"),
    "neoverse-n1": ("N1", "N1"),
    "neoverse-v1": ("V1@256", ""),
    "neoverse-v2": ("V2", "V2"),
    "neoverse-n2": ("N2", ""),
    "apple-m1": ("M1", "M1"),
    "cortex-a72": ("A72", "A72"),
    "tsv110": ("TSV110", "TSV110"),
}
"""By the core for which a loop was compiled: our name, and OSACA's."""


class Row(NamedTuple):
    """One loop on the core for which it was compiled: cycles per pass; OSACA's are None where it lacks forms."""

    core: str
    loop: str
    ours: float
    unknown: int
    llvm: float
    osaca: float | None


def rows(folder: Path, every: int) -> Iterator[Row]:
    """The loops that all tools read as one block."""
    csv.field_size_limit(1 << 24)
    with gzip.open(folder / "loops-dev.csv.gz", "rt", encoding="utf-8", newline="") as file:
        for number, record in enumerate(csv.DictReader(file)):
            if number % every or record["own_core"] not in CORES or record["inner_branches"] != "0":
                continue
            name, osaca = CORES[record["own_core"]]
            try:
                found = km.analyse_loop(record["asm"], uarch=name).answer.incore
            except KernmodelError as error:
                print(f"{name} {record['kernel']}: {error}")
                continue
            llvm = record[f"llvm_mca_{record['own_core']}"]
            known = osaca and record[f"osaca_{osaca}_unknown"] == "0"
            theirs = max(float(record[f"osaca_{osaca}_{kind}"]) for kind in ("tp", "lcd")) if known else None
            title = f"{record['kernel']} {record['compiler']} {record['opt']}"
            unknown = sum(note.code == "unknown-instruction" for note in found.notes)
            yield Row(name, title, found.prediction, unknown, float(llvm or 0), theirs)


def _agreement(ratios: list[float]) -> str:
    if not ratios:
        return "-"
    near = sum(abs(ratio - 1) <= 0.1 for ratio in ratios) / len(ratios)
    return f"{statistics.median(ratios):.2f}, {near:.0%} of {len(ratios)}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=4, help="take one of so many loops")
    parser.add_argument("--worst", type=int, default=0, help="loops to name for each core")
    given = parser.parse_args()
    found = list(rows(given.folder, given.every))
    print(f"{'core':7}{'loops':>6}{'unknown':>9}  {'llvm-mca: median ratio, within 10 %':46}{'OSACA: the same':30}")
    for name in dict.fromkeys(row.core for row in found):
        own = [row for row in found if row.core == name]
        llvm = [row.ours / row.llvm for row in own if row.llvm]
        osaca = [row.ours / row.osaca for row in own if row.osaca]
        parts = [_agreement(ratios) for ratios in (llvm, osaca)]
        print(f"{name:7}{len(own):6}{sum(row.unknown for row in own):9}  {parts[0]:46}{parts[1]:30}")
        for row in sorted(own, key=lambda row: -abs(row.ours / (row.llvm or row.ours) - 1))[: given.worst]:
            print(f"        {row.loop:40} ours {row.ours:8.2f}  llvm-mca {row.llvm:8.2f}  OSACA {row.osaca}")


if __name__ == "__main__":
    main()
