"""How well the in-core analysis predicts loops measured on a Redwood Cove core.

    python benchmarks/redwood_cove.py --data DIR [--worst N]

DIR holds `measured/redwood-cove-dev.csv.gz`. Prints the mean absolute error and the share of distinct loops (by their
bytes; the median of several measurements) within 5 %, for kernmodel and for the other models' predictions in the file,
then the worst loops with what binds them.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from kernmodel.code.listing import decode_bytes
from kernmodel.code.model import AssemblyLoop
from kernmodel.errors import KernmodelError
from kernmodel.incore.answer.analyse import analyse
from kernmodel.incore.model import InCore
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.report.text.reasons import reason_text

PEERS = {"OSACA 0.7.1 (SPR)": "osaca_0_7_1_spr", "llvm-mca 19 (sapphirerapids)": "llvm_mca_19_sapphirerapids"}
CLOSE = 0.05


@dataclass(frozen=True)
class Loop:
    """A distinct loop: its bytes, measured cycles per pass, and what the file says about it."""

    code: bytes
    cycles: float
    record: dict[str, str]


def read_loops(path: Path) -> list[Loop]:
    """The distinct loops of the file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        records = list(csv.DictReader(file))
    groups: dict[str, list[dict[str, str]]] = {}
    for record in records:
        groups.setdefault(record["hex"], []).append(record)
    return [
        Loop(bytes.fromhex(code), median(float(record["cycles_per_pass"]) for record in group), group[0])
        for code, group in groups.items()
    ]


def predict(loop: Loop, table: InstructionTable) -> InCore:
    """The analysis of the loop's bytes."""
    listing = decode_bytes(loop.code)
    body = AssemblyLoop(listing.instructions, listing.isa, "binary", "", "", None, (), "", "marked", ())
    return analyse(body, table.parameters, table, offset=int(loop.record["addr_mod_64"]))


def statistics(name: str, pairs: Iterable[tuple[float, float]]) -> str:
    """One line: mean absolute error and share within 5 % of (predicted, measured)."""
    errors = [abs(predicted / measured - 1) for predicted, measured in pairs]
    close = sum(error <= CLOSE for error in errors) / len(errors)
    return f"{name:32} {len(errors):4} loops  mean {sum(errors) / len(errors):6.1%}  within 5 %: {close:6.1%}"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--worst", type=int, default=12)
    options = parser.parse_args(arguments)
    table = InstructionTable.open(load_parameters("RWC"))
    try:
        loops = read_loops(options.data / "measured" / "redwood-cove-dev.csv.gz")
        answers = [(loop, predict(loop, table)) for loop in loops]
    except (OSError, KernmodelError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    print(statistics("kernmodel analyse (RWC)", ((answer.prediction, loop.cycles) for loop, answer in answers)))
    for name, column in PEERS.items():
        print(statistics(name, ((float(loop.record[column]), loop.cycles) for loop, _ in answers)))
    answers.sort(key=lambda pair: -abs(pair[1].prediction / pair[0].cycles - 1))
    for loop, answer in answers[: options.worst]:
        record = loop.record
        print(
            f"\n{record['kernel']} {record['compiler']} {record['opt']} {record['march']}: measured {loop.cycles:.2f}, "
            f"predicted {answer.prediction:.2f}: {reason_text(answer.reason)}"
        )
        for row in answer.rows:
            print(f"    {row.instruction.text}{'' if row.known else '  (no row)'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
