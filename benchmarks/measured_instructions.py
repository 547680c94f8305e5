"""Instruction forms measured on this host beside the carried table of its core: latency and reciprocal throughput.

    python benchmarks/measured_instructions.py --uarch ZEN3 --forms 200 --out forms.csv

The forms are taken from the table in an order by a hash of their names, so that they are of all classes and the same in
every run; those that are not set up for measuring, or that this host does not execute, are passed over and counted.
Throughput is compared with what the in-core analysis predicts for the very instances that ran, latency with the table's
row. What is not confirmed is not judged.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import kernmodel as km
from kernmodel.errors import KernmodelError
from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.host import Effort, Harness
from kernmodel.measure.instructions import measure_instruction
from kernmodel.measure.model import InstructionMeasurement

EFFORT = Effort(80, 2, 2.5)
LATENCY_CYCLES, THROUGHPUT_PERCENT = 0.1, 5.0
COLUMNS = ("form", "what", "measured", "spread %", "table", "agrees")
Line = tuple[str, str, float, float, float, bool]


def main() -> None:
    """Measure, write the figures, print the shares that agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uarch", required=True, help="name of the core's table")
    parser.add_argument("--forms", type=int, default=200, help="how many are measured")
    parser.add_argument("--out", type=Path, required=True, help="CSV of all figures")
    asked = parser.parse_args()
    table = InstructionTable.open(load_parameters(asked.uarch))
    skipped: Counter[str] = Counter()
    lines: list[Line] = []
    measured = 0
    with Harness() as harness, asked.out.open("w", newline="") as file:
        harness.seal()
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for form in sorted(table.forms(), key=lambda name: crc32(name.encode())):
            if measured == asked.forms:
                break
            row = table.row(form)
            try:
                found = measure_instruction(harness, form, effort=EFFORT)
                new = list(_compared(found, row, asked.uarch)) if row is not None else []
            except KernmodelError as error:
                skipped[type(error).__name__] += 1
                continue
            measured += 1
            lines += new
            writer.writerows(new)
            file.flush()
            sys.stderr.write(f"\r{measured} {form[:60]:60}")
    sys.stderr.write("\n")
    print(f"{measured} forms; passed over: {dict(skipped)}")
    for what in ("throughput", "latency"):
        chosen = [line for line in lines if line[1].startswith(what)]
        if chosen:
            print(f"{what}: {sum(line[-1] for line in chosen)} of {len(chosen)} figures agree")


def _compared(found: InstructionMeasurement, row: InstructionData, uarch: str) -> Iterator[Line]:
    """The confirmed figures beside those of the table."""
    figure = found.throughput
    if figure.confirmed:
        predicted = _throughput(found, uarch)
        off = abs(figure.value / predicted - 1) if predicted else 1.0
        yield found.form, "throughput", figure.value, figure.spread_percent, predicted, 100 * off <= THROUGHPUT_PERCENT
    for pair, latency in found.latencies.items():
        source, target = (str(int(number) - 1) for number in pair.split(" → "))
        known = (row.full or row).latencies.get((source, target), (row.full or row).default_latency)
        if latency.confirmed:
            agrees = abs(latency.value - known) <= LATENCY_CYCLES
            yield found.form, f"latency {pair}", latency.value, latency.spread_percent, known, agrees


def _throughput(found: InstructionMeasurement, uarch: str) -> float:
    """Cycles per instruction that the in-core analysis predicts for the instances that ran.

    They run over and over, from the op cache or the loop buffer, so they are predicted as a loop.
    """
    code = x86.assembled("\n".join(found.instances))
    answer = km.analyse_loop(code, uarch=uarch, core=km.CoreOptions(notion="loop")).answer
    return answer.incore.prediction / len(found.instances)


if __name__ == "__main__":
    main()
