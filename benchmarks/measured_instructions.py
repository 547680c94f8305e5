"""Instruction forms measured on this host beside the carried table of its core, and beside what others measured of it.

    python benchmarks/measured_instructions.py --uarch ZEN3 --forms 200 --out forms.csv
    python benchmarks/measured_instructions.py --uarch ZEN4 --forms 6000 --out forms.csv --readings zen4.csv

The forms are taken from the table in an order by a hash of their names, so that they are of all classes and the same
in every run; those that are not set up for measuring, or that this host does not execute, are passed over and counted.
What `--out` holds from an earlier run is not measured again, so that a long run can be made in parts, and compared anew
with a table that was mended.

Compared are, each with its own tolerance: the table (throughput with what the in-core analysis predicts for the very
instances that ran, latency with the row); readings of InstLatx64 in CSV (`--readings`); and micro-experiments in a
Markdown table, of lines as "| vaddpd zmm [lat] | 2.996 |" or "| vpermd y [tp] | 0.500 |" (`--experiments`). What is not
confirmed is not judged. `--differ FILE` lists what does not agree.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import kernmodel as km
from kernmodel.errors import KernmodelError
from kernmodel.incore.tables.importers.instlatx64 import read_instlatx64
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.host import Effort, Harness
from kernmodel.measure.instructions import measure_instruction

EFFORT = Effort(80, 2, 2.5)
LATENCY_CYCLES, THROUGHPUT_PERCENT, READING_PERCENT = 0.1, 5.0, 10.0
SHORTEST = 0.05
"""Cycles; shorter readings are of instructions that are not executed, and mean nothing."""
ROUNDS = 3
COLUMNS = ("form", "what", "cycles", "spread %", "confirmed", "instances")
_EXPERIMENT = re.compile(r"\| (\w+) ?(.*?) ?(?:\([^|]*\) )?\[(tp|lat)\] \| ([\d.]+) \|")
_KINDS = {"x": "xmm", "y": "ymm", "z": "zmm", "r": "r64", "imm": "i8", "[m]": "m"}
_WIDTHS = ("zmm", "ymm", "xmm", "mm", "k", "r64", "r32", "r16", "r8")


class Measured(NamedTuple):
    """A figure of a form: "throughput", "latency 1 → 2", or why the form was passed over."""

    form: str
    what: str
    cycles: float
    spread_percent: float
    confirmed: bool
    instances: str


class Compared(NamedTuple):
    """A figure beside what a source says of it."""

    source: str
    form: str
    what: str
    measured: float
    said: float
    agrees: bool


def main() -> None:
    """Measure what is not there yet, compare, print the shares that agree."""
    asked = _arguments()
    table = InstructionTable.open(load_parameters(asked.uarch))
    forms = [form for form in table.forms() if " [" not in form and re.search(asked.match, form)]
    forms = sorted(forms, key=lambda name: crc32(name.encode()))
    figures = list(_measured(forms, asked.forms, asked.out))
    skipped = Counter(figure.what for figure in figures if not figure.instances and figure.what.endswith("Error"))
    told = [figure for figure in figures if figure.confirmed]
    print(f"{len({figure.form for figure in told})} forms; passed over: {dict(skipped)}")
    compared = list(_beside_table(told, table, asked.uarch))
    if asked.readings:
        compared += _beside_readings(told, asked.readings)
    if asked.experiments:
        compared += _beside_experiments(told, asked.experiments)
    _print_shares(compared)
    if asked.differ:
        with asked.differ.open("w", newline="") as file:
            csv.writer(file).writerows([Compared._fields, *(line for line in compared if not line.agrees)])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--uarch", required=True, help="name of the core's table")
    parser.add_argument("--forms", type=int, default=200, help="how many are measured, those of --out included")
    parser.add_argument("--match", default="", help="regular expression that their names contain")
    parser.add_argument(
        "--out", type=Path, required=True, help="CSV of all figures; forms that it holds are not measured"
    )
    parser.add_argument("--readings", type=Path, help="CSV of InstLatx64's readings of the core")
    parser.add_argument("--experiments", type=Path, help="Markdown table of micro-experiments")
    parser.add_argument("--differ", type=Path, help="CSV of what does not agree")
    return parser.parse_args()


def _measured(forms: Iterable[str], count: int, path: Path) -> Iterator[Measured]:
    """The figures of so many of the forms: from the file, and those that it lacks by measuring, which it gets."""
    known: dict[str, list[Measured]] = defaultdict(list)
    if path.exists():
        with path.open(newline="") as file:
            for form, what, cycles, spread, confirmed, instances in list(csv.reader(file))[1:]:
                known[form].append(Measured(form, what, float(cycles), float(spread), confirmed == "True", instances))
    taken = 0
    with Harness() as harness, path.open("a", newline="") as file:
        harness.seal()
        writer = csv.writer(file)
        if not known:
            writer.writerow(COLUMNS)
        for form in forms:
            if taken == count:
                return
            if form not in known:
                known[form] = list(_measure(harness, form))
                writer.writerows(known[form])
                file.flush()
                sys.stderr.write(f"\r{taken} {form[:60]:60}")
            taken += any(figure.instances for figure in known[form])
            yield from known[form]
    sys.stderr.write("\n")


def _measure(harness: Harness, form: str) -> Iterator[Measured]:
    try:
        found = measure_instruction(harness, form, effort=EFFORT)
    except KernmodelError as error:
        yield Measured(form, type(error).__name__, 0.0, 0.0, False, "")
        return
    figure, instances = found.throughput, "; ".join(found.instances)
    yield Measured(form, "throughput", figure.value, figure.spread_percent, figure.confirmed, instances)
    for pair, latency in found.latencies.items():
        yield Measured(form, f"latency {pair}", latency.value, latency.spread_percent, latency.confirmed, "")


def _beside_table(figures: Iterable[Measured], table: InstructionTable, uarch: str) -> Iterator[Compared]:
    for figure in figures:
        row = table.row(figure.form)
        if row is None:
            continue
        if figure.what == "throughput":
            said = _predicted(figure.instances, uarch)
            agrees = _within(figure.cycles, said, THROUGHPUT_PERCENT)
        else:
            full = row.full or row
            source, target = (str(int(number) - 1) for number in figure.what.removeprefix("latency ").split(" → "))
            said = full.latencies.get((source, target), full.default_latency)
            if re.fullmatch(r"m\d+", figure.form.partition(" ")[2].split(",")[int(source)]):
                said = full.latencies.get((f"A{source}", target), said)
            # what is not executed takes its slots at dispatch all the same
            said = max(said, max(full.uops, 1) / table.parameters.issue_width)
            agrees = abs(figure.cycles - said) <= LATENCY_CYCLES
        yield Compared("table", figure.form, figure.what, figure.cycles, said, agrees)


def _predicted(instances: str, uarch: str) -> float:
    """Cycles per instruction that the in-core analysis predicts for the instances that ran.

    They run over and over, from the op cache or the loop buffer, so they are predicted as a loop; of several rounds, as
    a pass may take whole cycles of what the measured copies share.
    """
    lines = ROUNDS * instances.split("; ")
    answer = km.analyse_loop(x86.assembled("\n".join(lines)), uarch=uarch, core=km.CoreOptions(notion="loop")).answer
    return answer.incore.prediction / len(lines)


def _beside_readings(figures: Iterable[Measured], path: Path) -> Iterator[Compared]:
    """Beside InstLatx64's readings, which name no operands of a latency: one of the measured ones has to be it."""
    readings = read_instlatx64(path)
    for form, of_form in _by_form(figures).items():
        reading = readings.get(form)
        if reading is None:
            continue
        throughput = of_form.get("throughput")
        if throughput is not None and (reading.throughput or 0.0) > SHORTEST:
            yield _beside("readings", form, "throughput", [throughput], reading.throughput or 0.0, READING_PERCENT)
        chains = [cycles for what, cycles in of_form.items() if what.startswith("latency")]
        if chains and (reading.latency or 0.0) > SHORTEST:
            yield _beside("readings", form, "latency", chains, reading.latency or 0.0, READING_PERCENT)


def _beside_experiments(figures: Iterable[Measured], path: Path) -> Iterator[Compared]:
    """Beside micro-experiments of one instruction: "vaddpd zmm,[m] [tp]"; one of the forms it may mean has to be it."""
    measured = _by_form(figures)
    for mnemonic, operands, what, cycles in _EXPERIMENT.findall(path.read_text("utf-8")):
        prefix, percent = ("throughput", THROUGHPUT_PERCENT) if what == "tp" else ("latency", 0.0)
        found = [
            _beside("experiments", form, prefix, chosen, float(cycles), percent)
            for form in _named(mnemonic, operands, measured)
            if (chosen := [value for name, value in measured[form].items() if name.startswith(prefix)])
        ]
        if found:
            yield min(found, key=lambda line: abs(line.measured - line.said))


def _named(mnemonic: str, operands: str, forms: Iterable[str]) -> list[str]:
    """The forms that an experiment's name may mean, of the words that it has one after the other."""
    words = [_KINDS.get(word, word) for word in re.split(r"[, ]+", operands) if word]
    wanted = "m" in words
    found = []
    for form in forms:
        name, _, kinds = form.partition(" ")
        parts = kinds.split(",")
        if name != mnemonic or any("{" in part or part.endswith("b") for part in parts):
            continue
        if any(bool(re.fullmatch(r"m\d+", part)) for part in parts) != wanted or (words and parts[0] != words[0]):
            continue
        if all(any(part.startswith(word) for part in parts) for word in words):
            found.append(form)
    return found


def _by_form(figures: Iterable[Measured]) -> Mapping[str, Mapping[str, float]]:
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for figure in figures:
        found[figure.form][figure.what] = figure.cycles
    return found


def _beside(source: str, form: str, what: str, measured: Iterable[float], said: float, percent: float) -> Compared:
    """The nearest of the measured figures, which agrees within so many percent, or a latency's tolerance."""
    nearest = min(measured, key=lambda cycles: abs(cycles - said))
    agrees = _within(nearest, said, percent)
    if what == "latency":
        agrees = agrees or abs(nearest - said) <= LATENCY_CYCLES
    return Compared(source, form, what, nearest, said, agrees)


def _within(measured: float, said: float, percent: float) -> bool:
    return bool(said) and 100 * abs(measured / said - 1) <= percent


def _print_shares(compared: Iterable[Compared]) -> None:
    """Shares that agree, by source and figure, and by the widest register of the form."""
    shares: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for line in compared:
        operands = re.split(r"[ ,{]", line.form)
        width = next((kind for kind in _WIDTHS if kind in operands), "none")
        for kind in ("all", width):
            shares[line.source, line.what.partition(" ")[0], kind].append(line.agrees)
    for (source, what, kind), agree in sorted(shares.items(), key=lambda item: (item[0][:2], -len(item[1]))):
        print(f"{source:12} {what:10} {kind:5} {sum(agree):5} of {len(agree):5} agree ({sum(agree) / len(agree):.1%})")


if __name__ == "__main__":
    main()
