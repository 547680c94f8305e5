"""What llvm-mca says of AArch64 instructions that the facts lack, in the columns of their files.

The instructions stand in `aarch64_forms.txt`, one of each form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kernmodel.errors import ToolError
from kernmodel.incore.model import PortUse
from kernmodel.incore.tables.importers.llvm import port_groups, run_llvm_mca
from kernmodel.isa.aarch64.grammar import parse
from kernmodel.isa.aarch64.roles import role

_FORMS = Path(__file__).with_name("aarch64_forms.txt")
_UNIT = re.compile(r"^\w+?(?:Unit|IP|T99)")
"""What units of models are called before their names: N1UnitV0, A64FXIPFLA, THX2T99P0."""
_ITERATIONS = (20, 70)


def more_records(model: str, features: str, groups: Iterable[tuple[str, ...]]) -> Iterator[dict[str, str]]:
    """A record for each instruction of `aarch64_forms.txt` that the core has.

    Args:
        model: LLVM's name of the core.
        features: beside those that LLVM takes it to have ("+aes,+sha2").
        groups: of units that its instructions are known to go to.

    Raises:
        ToolError: llvm-mca is missing or fails.
    """
    groups = tuple(groups)
    lines = [line for line in _FORMS.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    options = ("-mtriple=aarch64", f"-mattr={features}")
    document = _answer(model, lines, (*options, "-instruction-tables"), beside="nop")
    units = [_UNIT.sub("", name).translate({0: "0", 1: "1"}) for name in document["TargetInfo"]["Resources"]]
    found = {}
    for region in document["CodeRegions"]:
        listed = region.get("InstructionInfoView", {}).get("InstructionList", [])
        if len(listed) == _WITH_NOP:
            found[int(region["Name"])] = (listed[0], _usage(region, units))
    chains = _chains(model, [lines[number] for number in found if _reads_result(lines[number])], options)
    for number, (fact, usage) in found.items():
        own = chains.get(lines[number], 0.0)
        yield {
            "example": lines[number],
            "latency": str(fact["Latency"]),
            "rthroughput": str(fact["RThroughput"]),
            "ports": " + ".join(_written(use) for use in port_groups(usage, any_of=groups)),
            "self_latency": f"{own:g}" if own > fact["RThroughput"] + _ABOVE else "",
            "chain_latencies": "",
        }


def _reads_result(line: str) -> bool:
    statement = parse(line)
    return role(statement.mnemonic).reads_first or any(part.kind == "p/m" for part in statement.parts)


_WITH_NOP = 2
_ABOVE = 0.1
"""Cycles by which a chain has to be slower than the units to be told from them."""


def _written(use: PortUse) -> str:
    return f"{use.cycles:g}*{'|'.join(use.ports)}"


def _usage(region: Mapping[str, Any], units: list[str]) -> dict[str, float]:
    """Cycles by unit of the first instruction of a region."""
    entries = region["ResourcePressureView"]["ResourcePressureInfo"]
    return {units[one["ResourceIndex"]]: one["ResourceUsage"] for one in entries if not one["InstructionIndex"]}


def _chains(model: str, lines: list[str], options: tuple[str, ...]) -> dict[str, float]:
    """Cycles of each instruction repeated, which what its result depends on makes slower than its units."""
    runs = []
    for iterations in _ITERATIONS:
        document = _answer(model, lines, (*options, f"-iterations={iterations}"))
        runs.append({int(one["Name"]): one["SummaryView"]["TotalCycles"] for one in document["CodeRegions"]})
    few, many = runs
    passes = _ITERATIONS[1] - _ITERATIONS[0]
    return {lines[number]: (many[number] - cycles) / passes for number, cycles in few.items()}


def _answer(model: str, lines: list[str], options: tuple[str, ...], beside: str = "") -> Any:
    """The document of llvm-mca with a region for each line, called by its number."""
    text = "".join(f"# LLVM-MCA-BEGIN {n}\n{one}\n{beside}\n# LLVM-MCA-END {n}\n" for n, one in enumerate(lines))
    try:
        return json.loads(run_llvm_mca(model, text, options))
    except ValueError as error:
        raise ToolError(f"llvm-mca wrote no JSON ({error})", where=model, todo="LLVM 19 is known to work") from None
