"""How far ports and precedence agree with Facile's, block by block, and what the deviations are.

    python benchmarks/precedence_oracle.py --data ../shared/data             # tables, then kinds of deviations
    python benchmarks/precedence_oracle.py --data ../shared/data --show 5    # with examples of each kind

DIR holds `oracle/dev.csv.gz` (blocks of applications, unrolled and as loops) and `oracle/hpc-loops-dev.csv.gz`. The
policy is "stack", Facile's. A last table says what the project's own times through memory are worth against uiCA.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kernmodel.code.listing import decode_bytes
from kernmodel.code.model import AssemblyLoop
from kernmodel.incore.answer.analyse import analyse
from kernmodel.incore.answer.components import dependency_graph
from kernmodel.incore.dependences.addresses import MemoryPolicy
from kernmodel.incore.dependences.cycles import Cycle, maximum_cycle_ratio
from kernmodel.incore.dependences.graph import Graph
from kernmodel.incore.engine.ports import optimal_bound
from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa.model import Instruction

TOLERANCE = 0.01
OTHERS = ("predec", "dec", "dsb", "lsd", "issue")
REPEATS = 5


class Case(NamedTuple):
    """One block on one core: Facile's ports, precedence and largest other component; uiCA by its two policies."""

    source: str
    core: str
    notion: str
    code: bytes
    ports: float
    precedence: float
    others: float
    uica: float
    uica_stack: float


class Block(NamedTuple):
    """A decoded block with its rows."""

    instructions: tuple[Instruction, ...]
    rows: tuple[InstructionData | None, ...]


class Core:
    """Parameters and table of one core, opened once; divisions take easy operands, as the peers' do."""

    def __init__(self, name: str) -> None:
        self.parameters = load_parameters(name)
        self.table = InstructionTable.open(self.parameters, "easy")

    def block(self, code: bytes) -> Block:
        """Decode a block and find its rows."""
        instructions = decode_bytes(code).instructions
        return Block(instructions, tuple(self._row(instruction) for instruction in instructions))

    def _row(self, instruction: Instruction) -> InstructionData | None:
        row = self.table.lookup(instruction)
        if row is None or row.indexed is None:
            return row
        return row.indexed if any(reference.index is not None for reference in instruction.memory) else row

    def precedence(self, block: Block, memory: MemoryPolicy) -> tuple[Graph, Cycle | None]:
        """The dependency graph and its longest cycle."""
        graph = dependency_graph(block.instructions, block.rows, self.parameters, "intel", memory=memory)
        return graph, maximum_cycle_ratio(len(graph.owners), graph.edges)

    def uses(self, block: Block) -> list[PortUse]:
        """The port usage of the block's µops but for dividers, which Facile does not know."""
        loop = AssemblyLoop(block.instructions, "x86-64", "binary", "", "", None, (), "", "marked", ())
        uses = analyse(loop, self.parameters, self.table).uses
        return [use for row in uses for use in row if not use.ports[0].endswith("DV")]


def cases(data: Path) -> Iterator[Case]:
    """All cases; blocks with unknown instructions left out."""
    with gzip.open(data / "oracle" / "dev.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            for notion, n in (("unrolled", "u"), ("loop", "l")):
                if row[f"hex_{notion}"] and not int(row["n_unknown"] or 0):
                    code = bytes.fromhex(row[f"hex_{notion}"])
                    others = max(float(row.get(f"{n}_{name}") or 0) for name in OTHERS)
                    figures = (row[f"{n}_ports"], row[f"{n}_precedence"], others, row[f"uica_{n}"])
                    yield Case("dev", row["arch"], notion, code, *map(float, (*figures, row[f"uica_{n}_stack"])))
    with gzip.open(data / "oracle" / "hpc-loops-dev.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            others = max(float(row[name]) for name in ("predecode", "decode", "dsb", "lsd", "issue"))
            loop = (row["ports"], row["precedence"], others, row["uica_l"], row["uica_l_stack"])
            yield Case("hpc", row["arch"], "loop", bytes.fromhex(row["hex"]), *map(float, loop))


def ratio(cycle: Cycle | None) -> float:
    """Cycles per pass of a cycle, 0 without one."""
    return cycle.ratio if cycle else 0.0


def pairs_bound(uses: list[PortUse]) -> float:
    """The bound by unions of pairs of port sets (Facile, section 4.8)."""
    sets = {frozenset(use.ports) for use in uses if use.ports}
    unions = {first | second for first in sets for second in sets}
    return max(
        (sum(u.cycles for u in uses if u.ports and union.issuperset(u.ports)) / len(union) for union in unions),
        default=0.0,
    )


def kind(graph: Graph, cycle: Cycle | None, instructions: tuple[Instruction, ...]) -> str:
    """What kind of block deviates in precedence, for grouping."""
    owners = {graph.owners[edge.target] for edge in cycle.edges} if cycle else set()
    forms = {instructions[owner].form for owner in owners}
    if any(form.startswith("lock ") for form in forms):
        return "locked instruction"
    if any(form.startswith(("div", "idiv")) for form in forms):
        return "integer division"
    if any(graph.carriers[edge.source].startswith("memory") for edge in cycle.edges) if cycle else False:
        return "through memory"
    return "other"


def compare(data: Path, show: int) -> None:
    """Print the agreement per file, core and notion, and the kinds of deviations."""
    cores: dict[str, Core] = {}
    counted: Counter[tuple[str, ...]] = Counter()
    deviations: dict[tuple[str, ...], list[tuple[float, Case, str]]] = defaultdict(list)
    worth: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    more_than_pairs = 0
    for case in cases(data):
        core = cores.get(case.core) or cores.setdefault(case.core, Core(case.core))
        block = core.block(case.code)
        key = (case.source, case.core, case.notion)
        counted[key] += 1
        uses = core.uses(block)
        ports = optimal_bound(uses)[0]
        more_than_pairs += ports > pairs_bound(uses) + TOLERANCE
        text = "; ".join(instruction.text for instruction in block.instructions)
        if abs(ports - case.ports) > TOLERANCE:
            deviations[(*key, "ports", "")].append((ports, case, text))
        graph, cycle = core.precedence(block, "stack")
        if abs(ratio(cycle) - case.precedence) > TOLERANCE:
            found = kind(graph, cycle, block.instructions)
            deviations[(*key, "precedence", found)].append((ratio(cycle), case, text))
        own = ratio(core.precedence(block, "different")[1])
        if abs(own - case.precedence) > TOLERANCE:
            rest = max(case.ports, case.others)
            pair = tuple(abs(max(rest, bound) - case.uica) / case.uica for bound in (case.precedence, own))
            worth[key].append((pair[0], pair[1]))
    print_shares(counted, deviations)
    print(f"blocks whose ports bound is more than that of pairs of port sets: {more_than_pairs}")
    print_worth(worth)
    print_deviations(deviations, show)


def print_shares(
    counted: Counter[tuple[str, ...]], deviations: dict[tuple[str, ...], list[tuple[float, Case, str]]]
) -> None:
    """Print the share of equal blocks per file, core and notion."""
    print(f"{'file':5}{'core':5}{'notion':10}{'blocks':>7}{'ports':>10}{'precedence':>12}")
    for key, blocks in sorted(counted.items()):
        shares = []
        for component in ("ports", "precedence"):
            different = sum(len(found) for k, found in deviations.items() if k[:4] == (*key, component))
            shares.append(1 - different / blocks)
        print(f"{key[0]:5}{key[1]:5}{key[2]:10}{blocks:7}{shares[0]:10.2%}{shares[1]:12.2%}")


def print_worth(worth: dict[tuple[str, ...], list[tuple[float, float]]]) -> None:
    """Print how near to uiCA ("all different") predictions are with Facile's precedence and with the project's own."""
    print(
        '\npolicy "different": blocks that differ, mean difference to uiCA with Facile\'s precedence, with this, nearer'
    )
    for key, pairs in sorted(worth.items()):
        facile, own = (sum(column) / len(pairs) for column in zip(*pairs, strict=True))
        nearer = sum(new < old for old, new in pairs)
        further = sum(new > old for old, new in pairs)
        print(f"{' '.join(key):20}{len(pairs):5}{facile:9.2%}{own:9.2%}{nearer:5} (further {further})")


def print_deviations(deviations: dict[tuple[str, ...], list[tuple[float, Case, str]]], show: int) -> None:
    """Print how often each kind occurs, and the shortest blocks of it."""
    for key, found in sorted(deviations.items()):
        print(f"\n{' '.join(key[:4])}: {len(found)}× {key[4] or 'different'}")
        for ours, case, text in sorted(found, key=lambda one: len(one[1].code))[:show]:
            facile = case.ports if key[3] == "ports" else case.precedence
            print(f"    here {ours:.4g}, Facile {facile:.4g}, uiCA's total {case.uica_stack:.4g}: {text}")


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="where oracle/ stands")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="examples of each kind of deviation")
    options = parser.parse_args()
    if not (options.data / "oracle").is_dir():
        parser.error("name the folder that holds oracle/ with --data")
    compare(options.data, options.show)


if __name__ == "__main__":
    main()
