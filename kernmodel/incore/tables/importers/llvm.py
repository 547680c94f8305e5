"""Instruction costs of LLVM's scheduling models, by `llvm-mca -instruction-tables` over one line per form.

LLVM is a project of its own (Apache-2.0 with LLVM exceptions, https://llvm.org); only the facts of its models are
taken.
"""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import combinations_with_replacement
from typing import Any

from kernmodel.errors import ToolError
from kernmodel.incore.model import PortUse
from kernmodel.incore.tables.importers.facts import facts_of
from kernmodel.value_types import dataclass

TOOLS = ("llvm-mca-19", "llvm-mca")
_TIMEOUT_SECONDS = 120

_REGISTERS = {
    "r8": ("cl", "bl", "dil", "r8b"),
    "r8h": ("ch", "bh", "dh", "ah"),
    "r16": ("cx", "bx", "di", "r8w"),
    "r32": ("ecx", "ebx", "edi", "r8d"),
    "r64": ("rcx", "rbx", "rdi", "r8"),
    "k": ("k1", "k2", "k3", "k4"),
    **{kind: tuple(f"{kind}{number}" for number in (1, 2, 3, 4)) for kind in ("mm", "xmm", "ymm", "zmm")},
}
_SIZES = {"8": "byte", "16": "word", "32": "dword", "64": "qword", "80": "tbyte"}
_SIZES |= {"128": "xmmword", "256": "ymmword", "512": "zmmword"}
_IMMEDIATES = {"i8": "5", "i16": "0x1234", "i32": "0x123456", "i64": "0x123456789abcdef0", "1": "1"}
_ADDRESS = {"b": "rsi", "i": "rdx", "i*s": "rdx*4", "d": "64", "rip": "rip"}
_ONE_OPERAND = re.compile(r"fxch|fu?comp?")
"""x87 instructions whose operand st is not written."""
_OPERAND = re.compile(r"(m\d+b|m\d*|vsib_(\w+)|\w+)(\{k\})?(\{kz\})?")


_PORT = re.compile(r"[A-Z]+Port(\d+)")
"""Ports of Intel's cores among the resources of a model."""


@dataclass(frozen=True, slots=True)
class Model:
    """A scheduling model of LLVM; what its fields mean stands in cores.yml, from which `models` reads them."""

    cpu: str
    title: str
    letters: str = "0123456789"
    groups: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()
    wide_loads: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    data: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What the model is called in sources."""
        return f"LLVM's {self.title} scheduling model"

    def ports(self, cost: Cost) -> Iterator[tuple[str, float]]:
        """The ports of an Intel core with the cycles that an instruction takes them."""
        for resource, cycles in cost.usage.items():
            if match := _PORT.fullmatch(resource):
                yield self.letters[int(match[1])], cycles


@cache
def models() -> Mapping[str, Model]:
    """The models by LLVM's `-mcpu`."""
    return facts_of(Model, "cores.yml", "models")


@dataclass(frozen=True, slots=True)
class Cost:
    """What LLVM's model says of one form: µops, latency and reciprocal throughput in cycles, cycles per resource."""

    uops: int
    latency: float
    throughput: float
    usage: Mapping[str, float]
    loads: bool
    stores: bool


def assembly_line(form: str) -> str | None:
    """An instruction of this form in Intel syntax, None for kinds that no text can be made of."""
    head, _, variant = form.partition(" [")
    mnemonic, _, kinds = head.partition(" ")
    shape = variant.rstrip("]")
    if shape == "0" or mnemonic in ("lock", "rep", "repne"):
        return None
    if mnemonic[0] == "f" and (line := _x87_line(mnemonic, kinds)) is not None:
        return line
    taken: dict[str, int] = {}
    operands = [_operand(kind, taken, shape) for kind in kinds.split(",") if kind]
    if any(operand is None for operand in operands):
        return None
    masked = [operand for operand in operands if operand]
    broadcast = next((kind for kind in kinds.split(",") if re.fullmatch(r"m\d+b", kind)), None)
    if broadcast:
        lanes = _vector_bits(kinds) // int(broadcast[1:-1])
        masked = [f"{text}{{1to{lanes}}}" if "ptr" in text else text for text in masked]
    return f"{mnemonic} {', '.join(masked)}".strip()


def _x87_line(mnemonic: str, kinds: str) -> str | None:
    """An x87 instruction between registers as LLVM spells it, None for other forms."""
    if kinds == "r16":
        return f"{mnemonic} ax"
    if kinds == "st" or (kinds == "st,st" and _ONE_OPERAND.fullmatch(mnemonic)):
        return f"{mnemonic} st(1)"
    pops = mnemonic.endswith("p") and "com" not in mnemonic
    return f"{mnemonic} {'st(1), st' if pops else 'st, st(1)'}" if kinds == "st,st" else None


def _vector_bits(kinds: str) -> int:
    widths = {"xmm": 128, "ymm": 256, "zmm": 512}
    return max((bits for kind, bits in widths.items() if kind in kinds), default=512)


def _operand(kind: str, taken: dict[str, int], shape: str) -> str | None:
    match = _OPERAND.fullmatch(kind)
    if match is None:
        return None
    name = match[1]
    suffix = "{k5}" if match[3] else "{k5}{z}" if match[4] else ""
    if name in _REGISTERS:
        number = taken[name] = taken.get(name, -1) + 1
        return _REGISTERS[name][number % 4] + suffix
    if name == "m":
        return "[" + "+".join(_ADDRESS[part] for part in (shape or "b").split("+")) + "]"
    if match[2]:
        return f"[rsi+{match[2]}9*4]{suffix}"
    if name[0] == "m" and name[1:].rstrip("b") in _SIZES:
        return f"{_SIZES[name[1:].rstrip('b')]} ptr [rsi]{suffix}"
    return {"rel": ".Ltarget", "cl": "cl"}.get(name, _IMMEDIATES.get(name))


def instruction_costs(cpu: str, forms: Iterable[str]) -> dict[str, Cost]:
    """Costs of the forms on an LLVM `-mcpu`; forms that LLVM cannot assemble or has no model for are left out.

    Raises:
        ToolError: llvm-mca is missing or fails.
    """
    lines = {form: line for form in forms if (line := assembly_line(form)) is not None}
    ordered = list(lines)
    text = "\n".join((".intel_syntax noprefix", ".Ltarget:", *_regions(lines.values()), ""))
    output = run_llvm_mca(cpu, text, ("-instruction-tables",))
    document = json.loads(output)
    resources = document["TargetInfo"]["Resources"]
    costs = {}
    for region in document["CodeRegions"]:
        cost = _cost(region, resources)
        if cost is not None:
            costs[ordered[int(region["Name"])]] = cost
    return costs


def _regions(lines: Iterable[str]) -> Iterable[str]:
    for number, line in enumerate(lines):
        # the nop keeps a region whose instruction LLVM skips from being empty, which it refuses
        yield from (f"# LLVM-MCA-BEGIN {number}", line, "nop", f"# LLVM-MCA-END {number}")


def llvm_version() -> str:
    """The version line of the llvm-mca that is used, for the headers of tables."""
    result = subprocess.run(
        [_tool(), "--version"], capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False
    )
    match = re.search(r"LLVM version (\S+)", result.stdout)
    return f"LLVM {match[1]}" if match else "LLVM"


def _tool() -> str:
    for name in TOOLS:
        if (path := shutil.which(name)) is not None:
            return path
    raise ToolError("llvm-mca is not installed", where="instruction tables", todo="install LLVM 19")


def run_llvm_mca(cpu: str, text: str, options: tuple[str, ...]) -> str:
    """What llvm-mca answers as JSON of assembly text; instructions that it does not know are left out.

    Raises:
        ToolError: it is missing or fails.
    """
    command = [_tool(), f"-mcpu={cpu}", *options, "-json", "--skip-unsupported-instructions=any", "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    if not result.stdout:
        raise ToolError(f"llvm-mca failed: {result.stderr.strip()[-200:]}", where=cpu, todo="LLVM 19 is known to work")
    return result.stdout


def _cost(region: Mapping[str, Any], resources: list[str]) -> Cost | None:
    info = region.get("InstructionInfoView", {}).get("InstructionList", [])
    if len(info) != 2:
        return None
    usage: dict[str, float] = {}
    for entry in region["ResourcePressureView"]["ResourcePressureInfo"]:
        if entry["InstructionIndex"] == 0:
            usage[resources[entry["ResourceIndex"]]] = entry["ResourceUsage"]
    fact = info[0]
    return Cost(fact["NumMicroOpcodes"], fact["Latency"], fact["RThroughput"], usage, fact["mayLoad"], fact["mayStore"])


def port_groups(usage: Mapping[str, float], *, any_of: Iterable[tuple[str, ...]] = ()) -> tuple[PortUse, ...]:
    """µops per group of ports that make up this pressure per port; LLVM spreads a µop evenly over its group.

    Args:
        usage: cycles per port.
        any_of: the groups that the core has; with them the answer is exact, the fewest and narrowest groups that sum up
            to the pressure. Without, whole shares are single ports if the rest makes up whole µops, else equal shares
            are taken together, the smallest first.
    """
    rest = {port: share for port, share in usage.items() if share > _EPSILON}
    groups = tuple(group for group in any_of if set(group) <= set(rest))
    if groups and (exact := _exact_groups(rest, groups)) is not None:
        return exact
    if (whole := _whole_shares(rest)) is not None:
        return whole
    uses: list[PortUse] = []
    while rest:
        share = min(rest.values())
        group = tuple(sorted(rest))
        if len(group) > 1 and abs(share - round(share)) < _EPSILON:
            uses.extend(PortUse((port,), round(cycles, 2)) for port, cycles in sorted(rest.items()))
            break
        uses.append(PortUse(group, round(share * len(group), 2)))
        rest = {port: left for port, cycles in rest.items() if (left := cycles - share) > _EPSILON}
    return tuple(uses)


def _whole_shares(usage: Mapping[str, float]) -> tuple[PortUse, ...] | None:
    """Single ports for whole shares and one group of equal shares for the rest, None if that is no whole µop."""
    singles = {port: math.floor(share + _EPSILON) for port, share in usage.items() if share > 1 - _EPSILON}
    rest = {port: left for port, share in usage.items() if (left := share - singles.get(port, 0)) > _EPSILON}
    total = sum(rest.values())
    equal = max(rest.values(), default=0.0) - min(rest.values(), default=0.0) < _EPSILON
    if not singles or not rest or not equal or set(singles) & set(rest) or abs(total - round(total)) > _EPSILON:
        return None
    group = PortUse(tuple(sorted(rest)), float(round(total)))
    return (group, *(PortUse((port,), float(count)) for port, count in sorted(singles.items())))


def _exact_groups(usage: Mapping[str, float], groups: tuple[tuple[str, ...], ...]) -> tuple[PortUse, ...] | None:
    """Whole µops of these groups that sum up to the pressure, None if there are none or too many to try."""
    total = sum(usage.values())
    count = round(total)
    if count > _MOST_UOPS or abs(total - count) > _EPSILON:
        return None
    fits = [chosen for chosen in combinations_with_replacement(groups, count) if _adds_up(chosen, usage)]
    if not fits:
        return None
    best = min(fits, key=lambda chosen: (len(set(chosen)), sum(map(len, chosen))))
    return tuple(PortUse(group, float(number)) for group, number in sorted(Counter(best).items()))


def _adds_up(chosen: Iterable[tuple[str, ...]], usage: Mapping[str, float]) -> bool:
    left = dict(usage)
    for group in chosen:
        for port in group:
            left[port] -= 1 / len(group)
    return all(abs(share) < _EPSILON for share in left.values())


_EPSILON = 1e-3
_MOST_UOPS = 6
