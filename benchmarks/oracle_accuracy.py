"""How far the pipeline simulation is from uiCA (or from measurements), and what each component and mechanism is worth.

    python benchmarks/oracle_accuracy.py --data DIR [--arch SKL] [--source dev hpc-loops-dev bhive] [--notion loop]
        [--without MECHANISM ...] [--ablation] [--operands easy|full] [--tables DIR] [--worst N]

DIR holds `oracle/*.csv.gz` and `bhive/dev.csv`. uiCA takes divisions and square roots of easy operands, hence the
default. MECHANISM is a field of `Switches`. `--ablation` prints a table per microarchitecture, in the form of Facile's
table 3 (IISWC 2023): the whole prediction, single components of it, and it without each of them; then the simulation
alone, and without each mechanism.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from kernmodel.code.blocks import block_of_bytes
from kernmodel.code.listing import decode_bytes
from kernmodel.evaluate.statistics import kendall_tau
from kernmodel.incore.answer.components import PIPELINE, bounds_of
from kernmodel.incore.answer.explain import FRONT_TO_BACK, explain
from kernmodel.incore.core import Core as IncoreCore
from kernmodel.incore.core import Settings, analyse_block
from kernmodel.incore.engine.layout import SIMULATION
from kernmodel.incore.engine.model import Switches
from kernmodel.incore.engine.modelled_core import modelled_core
from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import DATA, InstructionTable, Operands
from kernmodel.isa.model import Instruction, Notion

SOURCES = ("dev", "hpc-loops-dev", "bhive")
POLICIES = {
    "dev": Switches(memory="different", blocked_loads=False),
    "hpc-loops-dev": Switches(memory="different", blocked_loads=False),
    "bhive": Switches(memory="stack"),
}
"""What the other side assumes about memory: uiCA that all addresses differ and that any store can be forwarded; BHive
starts all registers but the stack's with one value."""
MECHANISMS = tuple(field.name for field in fields(Switches))


class Block(NamedTuple):
    """A block with what it is compared with."""

    source: str
    arch: str
    notion: Notion
    code: str
    truth: float
    peers: Mapping[str, float]


class Core(NamedTuple):
    """What a prediction on one microarchitecture needs."""

    table: InstructionTable


class Answer(NamedTuple):
    """A prediction and how long it took, seconds."""

    block: Block
    prediction: float
    settled: bool
    seconds: float

    @property
    def error(self) -> float:
        """Relative, in percent."""
        return 100 * (self.prediction - self.block.truth) / self.block.truth


def read_blocks(data: Path, sources: Sequence[str]) -> Iterator[Block]:
    """The blocks of the sources, those left out that uiCA does not know in full."""
    if "dev" in sources:
        for row in _rows(data / "oracle" / "dev.csv.gz"):
            if not float(row["n_unknown"] or 0):
                for notion, letter, code in (("loop", "l", "hex_loop"), ("unrolled", "u", "hex_unrolled")):
                    yield from _block("dev", row, notion, code, f"uica_{letter}", {"Facile": f"facile_{letter}"})
    if "hpc-loops-dev" in sources:
        for row in _rows(data / "oracle" / "hpc-loops-dev.csv.gz"):
            yield from _block("hpc-loops-dev", row, "loop", "hex", "uica_l", {"Facile": "facile_l"})
    if "bhive" in sources:
        for row in _rows(data / "bhive" / "dev.csv"):
            yield from _block("bhive", row, "unrolled", "hex", "measured", {"uiCA": "uica", "Facile": "facile"})


def _rows(path: Path) -> Iterator[dict[str, str]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def _block(
    source: str, row: dict[str, str], notion: str, code: str, truth: str, peers: Mapping[str, str]
) -> Iterator[Block]:
    if row[code] and row[truth] and float(row[truth]) > 0:
        values = {name: float(row[column]) for name, column in peers.items() if row[column]}
        yield Block(
            source, row["arch"], "loop" if notion == "loop" else "unrolled", row[code], float(row[truth]), values
        )


def open_core(arch: str, operands: Operands, tables: Path) -> Core:
    """The core, with its table for such operands of divisions."""
    parameters = load_parameters(arch)
    if parameters.pipeline is None:
        sys.exit(f"{arch} has no figures of its pipeline")
    return Core(InstructionTable(tables / parameters.table, parameters, operands))


def row_of(instruction: Instruction, table: InstructionTable) -> InstructionData | None:
    """The row, in its indexed variant where that applies."""
    row = table.lookup(instruction)
    if row is None or row.indexed is None:
        return row
    return row.indexed if any(reference.index for reference in instruction.memory) else row


def predict(block: Block, core: Core, switches: Switches) -> Answer:
    """The simulation of one block."""
    start = time.perf_counter()
    instructions = decode_bytes(bytes.fromhex(block.code)).instructions
    rows = [row_of(instruction, core.table) for instruction in instructions]
    model = modelled_core(core.table.parameters, switches=switches)
    found = bounds_of(instructions, rows, model, block.notion, 0, scope=SIMULATION)
    cycles, settled = found.components.get(PIPELINE, 0.0), bool(found.answer.totals.settled)
    return Answer(block, cycles, settled, time.perf_counter() - start)


def grouped(answers: Sequence[Answer]) -> Mapping[tuple[str, str, str], list[Answer]]:
    """Answers by source, notion and microarchitecture."""
    groups: defaultdict[tuple[str, str, str], list[Answer]] = defaultdict(list)
    for answer in answers:
        groups[answer.block.source, answer.block.notion, answer.block.arch].append(answer)
    return groups


def mean_error(predictions: Sequence[float], truths: Sequence[float]) -> float:
    """Mean absolute error in percent."""
    return 100 * statistics.fmean(abs(p - t) / t for p, t in zip(predictions, truths, strict=True))


def show_accuracy(answers: Sequence[Answer]) -> None:
    """One line for each group."""
    print("source         notion   arch  blocks  mean %  median %     τ   ≤1 %  ≤5 %  ≤10 %  settled   ms   peers")
    for (source, notion, arch), members in sorted(grouped(answers).items()):
        truths = [answer.block.truth for answer in members]
        errors = [abs(answer.error) for answer in members]
        tau = kendall_tau([answer.prediction for answer in members], truths)
        within = [sum(error <= limit for error in errors) / len(errors) for limit in (1.0, 5.0, 10.0)]
        settled = statistics.fmean(answer.settled for answer in members)
        milliseconds = 1000 * statistics.fmean(answer.seconds for answer in members)
        print(
            f"{source:14} {notion:8} {arch:5} {len(members):6} {statistics.fmean(errors):7.2f} "
            f"{statistics.median(errors):9.2f} {_tau(tau)} "
            + " ".join(f"{share:5.0%}" for share in within)
            + f" {settled:8.0%} {milliseconds:5.2f}   {_peers(members)}"
        )


def _peers(members: Sequence[Answer]) -> str:
    texts = []
    for name in members[0].block.peers:
        both = [(a.block.peers[name], a.block.truth) for a in members if name in a.block.peers]
        texts.append(f"{name} {mean_error(*zip(*both, strict=True)):.2f}")
    return ", ".join(texts)


def show_worst(answers: Sequence[Answer], count: int) -> None:
    """The blocks that are furthest off."""
    for answer in sorted(answers, key=lambda answer: -abs(answer.error))[:count]:
        block = answer.block
        text = "; ".join(i.text for i in decode_bytes(bytes.fromhex(block.code)).instructions)
        place = f"{block.source} {block.notion} {block.arch}"
        print(f"{answer.error:+7.1f} %  {answer.prediction:8.2f} for {block.truth:8.2f}  {place}  {text[:150]}")


def without(source: str, names: Sequence[str]) -> Switches:
    """The switches for blocks of the source with these mechanisms left out."""
    changes: dict[str, Any] = {name: "none" if name == "memory" else False for name in names}
    return replace(POLICIES[source], **changes)


Column = tuple[str, Notion]
"""Source and notion of the blocks that a column of the ablation is about."""
Variants = dict[str, dict[Column, list[tuple[float, float]]]]
"""Predictions and what they are compared with, by variant of the model and by column."""

PIPELINE_ALONE = "simulation"
WHOLE = "kernmodel"
BOUNDS = "bounds, no simulation"


def show_ablation(blocks: Sequence[Block], arch: str, core: Core, operands: Operands) -> None:
    """The errors of the variants on one microarchitecture, a line each."""
    columns = list(dict.fromkeys((block.source, block.notion) for block in blocks))
    variants = {**component_variants(blocks, core, operands), **mechanism_variants(blocks, core)}
    width = max(map(len, variants))
    print(f"{arch:{width}}" + "".join(f"  {f'{source}, {notion}':>23}" for source, notion in columns))
    print(" " * width + f"  {'mean %':>14} {'τ':>8}" * len(columns))
    for name, found in variants.items():
        print(f"{name:{width}}" + "".join(_cell(found.get(column, [])) for column in columns), flush=True)
    print()


def _cell(pairs: Sequence[tuple[float, float]]) -> str:
    """Mean error and Kendall's τ; nothing where no block meets the component."""
    if not any(prediction for prediction, _ in pairs):
        return " " * 25
    predictions, truths = zip(*pairs, strict=True)
    return f"  {mean_error(predictions, truths):14.2f} {_tau(kendall_tau(predictions, truths)):>8}"


def _tau(tau: float | None) -> str:
    return "    –" if tau is None else f"{tau:5.3f}"


def component_variants(blocks: Sequence[Block], core: Core, operands: Operands) -> Variants:
    """The prediction as it is, by single components, and with single ones idealised, the pipeline simulated anew."""
    whole: Variants = {WHOLE: {}, BOUNDS: {}}
    only: Variants = {f"only {name}": {} for name in FRONT_TO_BACK}
    rest: Variants = {f"{WHOLE} w/o {name}": {} for name in FRONT_TO_BACK}
    for block in blocks:
        memory = POLICIES[block.source].memory
        assert memory != "none"
        settings = Settings(notion=block.notion, offset=0, operands=operands, memory=memory)
        model = modelled_core(core.table.parameters, memory, POLICIES[block.source])
        opened = IncoreCore(core.table.parameters, core.table, frozenset(), model)
        incore = analyse_block(block_of_bytes(bytes.fromhex(block.code), file=block.source), opened, settings)
        parts = {part.name: part.cycles for part in incore.components if part.applies}
        without_part = {ideal.component: ideal.prediction for ideal in explain(incore, opened).idealised}
        bounds = max((cycles for name, cycles in parts.items() if name != PIPELINE), default=0.0)
        found = {WHOLE: incore.prediction, BOUNDS: bounds}
        found |= {f"only {name}": parts.get(name, 0.0) for name in FRONT_TO_BACK}
        found |= {f"{WHOLE} w/o {name}": without_part.get(name, incore.prediction) for name in FRONT_TO_BACK}
        for variants in (whole, only, rest):
            for name, columns in variants.items():
                columns.setdefault((block.source, block.notion), []).append((found[name], block.truth))
    return {**whole, **only, **rest}


def mechanism_variants(blocks: Sequence[Block], core: Core) -> Variants:
    """The simulation alone, and without each mechanism."""
    variants: Variants = {}
    for mechanism in ("", *MECHANISMS):
        name = f"{PIPELINE_ALONE} w/o {mechanism.replace('_', ' ')}" if mechanism else PIPELINE_ALONE
        columns = variants.setdefault(name, {})
        for block in blocks:
            answer = predict(block, core, without(block.source, [mechanism] if mechanism else []))
            columns.setdefault((block.source, block.notion), []).append((answer.prediction, block.truth))
    return variants


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line; the exit status."""
    parser = argparse.ArgumentParser(description="Compare the pipeline simulation with uiCA or measurements.")
    parser.add_argument("--data", type=Path, required=True, help="folder with oracle/ and bhive/")
    parser.add_argument("--arch", nargs="*", help="microarchitectures (default: all there are)")
    parser.add_argument("--source", nargs="*", choices=SOURCES, default=["dev", "hpc-loops-dev"])
    parser.add_argument("--notion", choices=("loop", "unrolled"))
    parser.add_argument("--without", nargs="*", choices=MECHANISMS, default=[], metavar="MECHANISM")
    parser.add_argument("--ablation", action="store_true", help="leave out each component and mechanism in turn")
    parser.add_argument("--operands", choices=("easy", "full"), default="easy", help="of divisions and square roots")
    parser.add_argument("--tables", type=Path, default=DATA, help="folder of the instruction tables")
    parser.add_argument("--worst", type=int, default=10, help="blocks to list")
    options = parser.parse_args(arguments)
    blocks = [
        block
        for block in read_blocks(options.data, options.source)
        if (not options.arch or block.arch in options.arch) and options.notion in (None, block.notion)
    ]
    archs = sorted({block.arch for block in blocks})
    cores = {arch: open_core(arch, options.operands, options.tables) for arch in archs}
    if options.ablation:
        for arch, core in cores.items():
            show_ablation([block for block in blocks if block.arch == arch], arch, core, options.operands)
        return 0
    answers = [predict(block, cores[block.arch], without(block.source, options.without)) for block in blocks]
    show_accuracy(answers)
    show_worst(answers, options.worst)
    return 0


if __name__ == "__main__":
    sys.exit(main())
