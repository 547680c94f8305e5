"""Where the sources of a table differ: rows of which two say reciprocal throughputs that are more than 20 % apart.

The sources, the more trusted first: micro-experiments on the core, uops.info, InstLatx64's readings, LLVM's scheduling
model. A difference is resolved where the row agrees with the most trusted of those that speak of its form, or where
something explains why it does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from kernmodel.errors import InstructionTableError
from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.importers.contradictions import (
    MENDED,
    SHORTEST,
    Contradiction,
    explanation_of,
    throughput_of,
)
from kernmodel.incore.tables.importers.facts import facts
from kernmodel.incore.tables.importers.llvm import instruction_costs
from kernmodel.incore.tables.importers.measured import MEASURED
from kernmodel.incore.tables.importers.recipes import recipes, reference_of
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable

TOLERANCE = 1.2
EXPERIMENTS, UOPS, READINGS, MODEL = "micro-experiments", "uops.info", "InstLatx64", "LLVM's model"
_TRUST = (EXPERIMENTS, UOPS, READINGS, MODEL)


def disagreements(table: InstructionTable, folder: Path) -> Iterator[Contradiction]:
    """Rows of whose form two sources differ by more than 20 %, with how that is resolved; "" where it is not.

    Args:
        table: of a carried core.
        folder: the measurements that it was made of: the folder with `uops` and `latency-throughput`.

    Raises:
        InstructionTableError: the core is not one of the carried ones that have such sources, or a file cannot be read.
        ToolError: llvm-mca is missing.
    """
    name = Path(table.parameters.table).stem
    readings, model, base = _inputs(name)
    reference = reference_of(folder / "latency-throughput" / f"{readings}.csv", name)
    width = table.parameters.issue_width
    rows = [row for form in table.forms() if " [" not in form and (row := table.row(form)) is not None]
    older = InstructionTable.open(load_parameters(base)) if base else table
    figures = {
        UOPS: dict(_of_uops_info(rows, older, width)),
        READINGS: {form: reading.throughput for form, reading in reference.readings.items() if reading.throughput},
        MODEL: {form: cost.throughput for form, cost in instruction_costs(model, [r.form for r in rows]).items()},
    }
    for row in rows:
        said = {source: cycles for source, of in figures.items() if (cycles := of.get(row.form, 0.0)) > SHORTEST}
        cycles = throughput_of(row, width)
        if MEASURED in row.source:
            said = {EXPERIMENTS: cycles, **said}
        if len(said) > 1 and _differ(min(said.values()), max(said.values())):
            farthest = max(
                said, key=lambda source: max(said[source], cycles) / max(min(said[source], cycles), SHORTEST)
            )
            trusted = min(said, key=_TRUST.index)
            why = f"the table follows {trusted} against {farthest}"
            if _differ(cycles, said[trusted]):
                made = "the register form was made to agree with its reading" if MENDED in row.source else ""
                why = explanation_of(row, reference) or made
            yield Contradiction(row.form, row.source, cycles, said[farthest], why)


def _inputs(name: str) -> tuple[str, str, str]:
    """Names of the readings, of LLVM's model and of the core of which uops.info's figures are, "" for its own."""
    amd: Mapping[str, Mapping[str, str]] = facts("cores.yml", "amd")
    if name in amd:
        return amd[name]["readings"], amd[name]["model"], amd[name].get("base", "")
    recipe = recipes().get(name)
    model = (recipe.wide or recipe.x87) if recipe else ""
    if recipe is None or not recipe.readings or not model:
        todo = "choose one with readings of InstLatx64: SKX, ICL, RWC, ZEN4, …"
        raise InstructionTableError(f"{name} has no three sources to compare", where="instructions check", todo=todo)
    return recipe.readings, model, ""


def _of_uops_info(rows: Iterable[InstructionData], table: InstructionTable, width: int) -> Iterator[tuple[str, float]]:
    """Reciprocal throughputs by uops.info's ports and µops, where those of a row are."""
    for row in rows:
        own = table.row(row.form)
        if own is not None and "uops.info" in own.source and "LLVM" not in own.source and own.ports:
            # a throughput that stands beside the ports was measured elsewhere
            yield row.form, throughput_of(replace(own, throughput=None), width)


def _differ(one: float, other: float) -> bool:
    return max(one, other) > TOLERANCE * min(one, other)
