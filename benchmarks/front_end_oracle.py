"""How far the front-end components agree with Facile's, block by block, and what the deviations are.

    python benchmarks/front_end_oracle.py --data ../shared/data             # a table, then kinds of deviations
    python benchmarks/front_end_oracle.py --data ../shared/data --show 5    # with examples of each kind
    python benchmarks/front_end_oracle.py --profile SKL                     # how long the front end of a block takes

DIR holds `oracle/dev.csv.gz` (blocks of applications, unrolled and as loops) and `oracle/hpc-loops-dev.csv.gz`.
A component that Facile does not use for a block is 0 there, and must not be used here.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kernmodel.code.listing import decode_bytes
from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.core_parameters import front_end_parameters
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa.model import Instruction, Notion

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "incore"))
from facile import FrontEndBounds, block_of, front_end

TOLERANCE = 0.01
COMPONENTS = ("predecode", "decode", "dsb", "lsd", "issue")
NOTIONS: tuple[tuple[Notion, str], ...] = (("unrolled", "u"), ("loop", "l"))
DEV_COLUMNS = {"predecode": "predec", "decode": "dec", "dsb": "dsb", "lsd": "lsd", "issue": "issue"}
NARROW_DSB = ("SNB", "IVB", "HSW", "BDW")


class Case(NamedTuple):
    """One block on one core under one notion.

    `facile` has its components (0 where it does not use one), `backend` its ports and dependencies, `total` its
    prediction; `uica` is the simulator's prediction with the same memory policy.
    """

    core: str
    notion: Notion
    code: bytes
    facile: dict[str, float]
    backend: float
    total: float
    uica: float


class Deviation(NamedTuple):
    """One component of one block that differs."""

    ours: float
    case: Case
    instructions: tuple[Instruction, ...]


class Core:
    """Table and front end of one core, opened once."""

    def __init__(self, name: str) -> None:
        parameters = load_parameters(name)
        core = front_end_parameters(parameters)
        if core is None:
            sys.exit(f"{name} has no front-end figures")
        self.front_end = core
        self.table = InstructionTable.open(parameters)

    def row(self, instruction: Instruction) -> InstructionData | None:
        """The row of an instruction, in its indexed variant where that applies."""
        row = self.table.lookup(instruction)
        if row is None or row.indexed is None:
            return row
        return row.indexed if any(reference.index is not None for reference in instruction.memory) else row

    def bounds(self, instructions: tuple[Instruction, ...], notion: Notion) -> FrontEndBounds:
        """The front end of a block at address 0."""
        block = block_of(instructions, [self.row(instruction) for instruction in instructions], self.front_end)
        return front_end(block, self.front_end, notion)


def cases(data: Path) -> Iterator[tuple[str, Case]]:
    """All cases, with the file that they are from; blocks with unknown instructions left out."""
    with gzip.open(data / "oracle" / "dev.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            for notion, letter in NOTIONS:
                code = row[f"hex_{notion}"]
                if code and not int(row["n_unknown"] or 0):
                    facile = {key: float(row.get(f"{letter}_{name}") or 0) for key, name in DEV_COLUMNS.items()}
                    backend = max(float(row[f"{letter}_ports"]), float(row[f"{letter}_precedence"]))
                    total, uica = float(row[f"facile_{letter}"]), float(row[f"uica_{letter}_stack"])
                    yield "dev", Case(row["arch"], notion, bytes.fromhex(code), facile, backend, total, uica)
    with gzip.open(data / "oracle" / "hpc-loops-dev.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            facile = {key: float(row[key]) for key in COMPONENTS}
            backend = max(float(row["ports"]), float(row["precedence"]))
            total, uica = float(row["facile_l"]), float(row["uica_l_stack"])
            yield "hpc", Case(row["arch"], "loop", bytes.fromhex(row["hex"]), facile, backend, total, uica)


def kind(component: str, deviation: Deviation) -> str:
    """What kind of block deviates, for grouping."""
    names = {instruction.mnemonic for instruction in deviation.instructions}
    if component == "dsb" and deviation.case.core in NARROW_DSB:
        return "DSB of 4 µops per cycle, not 6"
    if component == "decode" and any(i.text.startswith(("pop r12", "pop rsp")) for i in deviation.instructions):
        return "pop r12: three simple decoders beside it, not four"
    if component == "decode" and names & {"div", "idiv", "cpuid"}:
        return "microcode: no decoder beside it, not four"
    if component == "decode" and any(i.mnemonic == "nop" and i.operands for i in deviation.instructions):
        return "nop with operand"
    return "other"


def compare(data: Path, show: int) -> None:
    """Print the agreement per file, core, notion and component, and the kinds of deviations."""
    cores: dict[str, Core] = {}
    counted: Counter[tuple[str, ...]] = Counter()
    equal: Counter[tuple[str, ...]] = Counter()
    deviations: dict[tuple[str, ...], list[Deviation]] = defaultdict(list)
    extended: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    for source, case in cases(data):
        core = cores.get(case.core) or cores.setdefault(case.core, Core(case.core))
        instructions = decode_bytes(case.code).instructions
        bounds = core.bounds(instructions, case.notion)
        for name, prediction in extensions(bounds, case):
            pair = (deviates(case.total, case), deviates(prediction, case))
            extended[source, case.core, case.notion, name].append(pair)
        for component in COMPONENTS:
            ours = getattr(bounds, component) or 0.0
            if not ours and not case.facile[component]:
                continue
            key: tuple[str, ...] = (source, case.core, case.notion, component)
            counted[key] += 1
            if abs(ours - case.facile[component]) <= TOLERANCE:
                equal[key] += 1
            else:
                deviation = Deviation(ours, case, instructions)
                deviations[(*key, kind(component, deviation))].append(deviation)
    print(f"{'file':5}{'core':5}{'notion':10}{'component':11}{'blocks':>7}{'equal':>7}{'share':>9}")
    for key in sorted(counted):
        share = equal[key] / counted[key]
        print(f"{key[0]:5}{key[1]:5}{key[2]:10}{key[3]:11}{counted[key]:7}{equal[key]:7}{share:9.2%}")
    print_extensions(extended)
    print_deviations(deviations, show)


def extensions(bounds: FrontEndBounds, case: Case) -> Iterator[tuple[str, float]]:
    """What Facile would predict with other components, where that changes its prediction."""
    own = max(case.backend, bounds.bound)
    if abs(own - case.total) > TOLERANCE:
        yield "deviations below", own
    synchronised = max(case.total, bounds.issue_synchronised)
    if synchronised > case.total + TOLERANCE:
        yield "stack engine", synchronised
    if bounds.mixed is not None:
        mixed = max(case.backend, bounds.issue, bounds.mixed)
        if abs(mixed - case.total) > TOLERANCE:
            yield "mixed", mixed


def deviates(prediction: float, case: Case) -> float:
    """Relative difference to uiCA's prediction."""
    return abs(prediction - case.uica) / case.uica


def print_extensions(extended: dict[tuple[str, ...], list[tuple[float, float]]]) -> None:
    """Print what the components beyond Facile are worth on the blocks whose prediction they change."""
    print("\nbeyond Facile: blocks with another prediction, mean difference to uiCA without and with, nearer to it")
    for key, pairs in sorted(extended.items()):
        before, after = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
        nearer = sum(new < old for old, new in pairs)
        print(f"{' '.join(key):32}{len(pairs):5}{before:9.2%}{after:9.2%}{nearer:5}")


def print_deviations(deviations: dict[tuple[str, ...], list[Deviation]], show: int) -> None:
    """Print how often each kind occurs, and the shortest blocks of it."""
    for key, found in sorted(deviations.items()):
        print(f"\n{' '.join(key[:4])}: {len(found)}× {key[4]}")
        for deviation in sorted(found, key=lambda deviation: len(deviation.case.code))[:show]:
            text = "; ".join(instruction.text for instruction in deviation.instructions)
            case = deviation.case
            here, facile = f"{deviation.ours:.4g}", f"{case.facile[key[3]]:.4g}"
            print(f"    here {here}, Facile {facile}, uiCA's total {case.uica:.4g}: {text}")


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="where oracle/ stands")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="examples of each kind of deviation")
    options = parser.parse_args()
    if options.data and (options.data / "oracle").is_dir():
        compare(options.data, options.show)
    else:
        parser.error("name the folder that holds oracle/ with --data")


if __name__ == "__main__":
    main()
