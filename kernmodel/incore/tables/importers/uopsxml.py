"""uops.info's instructions.xml as records: one core's measurements, read as a stream.

The file holds every measured core and some 150 MB; one instruction is in memory at a time. A record has the fields that
the packs of JSON lines have and that `rows_of` reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from kernmodel.errors import InstructionTableError, Location
from kernmodel.incore.tables.importers.uops import Record
from kernmodel.user_files import opened

_USE = re.compile(r"(\d+)\*(p|FP)?(\w+)")
_SEPARATOR = re.compile(r"\s*[;,]\s*")
_NUMBERS = {
    "uops": "uops",
    "uops_retire_slots": "retire_slots",
    "uops_MITE": "uops_mite",
    "uops_MS": "uops_ms",
    "available_simple_decoders": "n_available_simple_decoders",
    "div_cycles": "div_cycles",
}
_DEFAULTS = {"retire_slots": 1, "uops_mite": 1, "uops_ms": 0, "n_available_simple_decoders": 4, "div_cycles": 0}
_VARIANTS = ("indexed", "same_reg")
_TIMED = frozenset({"CPUID", "MFENCE", "PAUSE", "RDTSC"})
"""Instructions besides locked ones whose ports do not tell their throughput."""
_CYCLES = ("cycles_addr", "cycles_addr_index", "cycles_mem", "cycles_same_reg")


def is_xml(path: Path) -> bool:
    """Whether a file is to be read as XML."""
    return path.suffix == ".xml"


def read_xml(path: Path, core: str) -> Iterator[Record]:
    """The records of one core.

    Args:
        path: instructions.xml of uops.info.
        core: its name there ("SKL", "ADL-P"), in any case.

    Raises:
        InstructionTableError: the file cannot be read, is no such XML, or has no measurements of the core (names those
            it has).
    """
    seen: set[str] = set()
    found = False
    try:
        for element in _instructions(path):
            nodes = {node.get("name", ""): node for node in element.iter("architecture")}
            seen.update(name for name, node in nodes.items() if node.find("measurement") is not None)
            node = next((node for name, node in nodes.items() if name.upper() == core.upper()), None)
            measurement = None if node is None else node.find("measurement")
            if measurement is not None and measurement.get("uops") is not None:
                found = True
                yield _record(element, measurement, core)
    except ElementTree.ParseError as error:
        where = Location(str(path), error.position[0])
        raise InstructionTableError(f"is no XML ({error})", where=where, todo=_TODO) from None
    except (OSError, ValueError, KeyError) as error:
        raise InstructionTableError(f"cannot be read as measurements ({error})", where=str(path), todo=_TODO) from None
    if not found:
        todo = f"it has {', '.join(sorted(seen))}" if seen else _TODO
        raise InstructionTableError(f"holds no measurements of {core}", where=str(path), todo=todo)


_TODO = "give the instructions.xml of uops.info"


def _instructions(path: Path) -> Iterator[ElementTree.Element]:
    """The instruction elements one by one; what was read is forgotten."""
    parents: list[ElementTree.Element] = []
    with opened(path, "the instructions.xml of uops.info", error=InstructionTableError) as file:
        for event, element in ElementTree.iterparse(file, events=("start", "end")):
            if event == "start":
                parents.append(element)
                continue
            parents.pop()
            if element.tag == "instruction":
                yield element
                element.clear()
                if parents:
                    parents[-1].remove(element)


def _record(element: ElementTree.Element, measurement: ElementTree.Element, core: str) -> Record:
    operands = [_operand(operand) for operand in element.iter("operand")]
    names = {operand.get("idx", ""): operand.get("name", "") for operand in element.iter("operand")}
    string = element.get("string", element.get("asm", ""))
    locked = element.get("locked") == "1" or "_LOCK" in string
    fields = _fields(measurement.attrib, "")
    record = {
        **_DEFAULTS,
        "complex_decoder": False,
        "ports": {},
        **fields,
        "arch": core.upper(),
        "iform": element.get("iform", ""),
        "string": _zeroing(string, element),
        "operands": operands,
        "latencies": [_latency(node, names) for node in measurement.iter("latency")],
        "macro_fusible_with": [name for name in _SEPARATOR.split(measurement.get("macro_fusible", "")) if name],
        "tp": _throughput(measurement, string, int(fields.get("div_cycles", 0)), locked=locked),
    }
    return {**record, "variants": _variants(record, measurement)}


def _zeroing(string: str, element: ElementTree.Element) -> str:
    """The string, marked where the zeroing of masked elements is an attribute only."""
    name, space, rest = string.partition(" ")
    return f"{name}_Z{space}{rest}" if element.get("zeroing") == "1" and not name.endswith("_Z") else string


def _operand(element: ElementTree.Element) -> dict[str, Any]:
    flags = [value for name, value in element.attrib.items() if name.startswith("flag_")]
    return {
        "name": element.get("name", ""),
        "type": element.get("type", ""),
        "read": element.get("r") == "1" or any("r" in value for value in flags),
        "write": element.get("w") == "1" or any("w" in value for value in flags),
        "mem_base": element.get("base"),
    }


def _fields(attributes: Mapping[str, str], suffix: str) -> dict[str, Any]:
    """Counts, decoder and ports among the attributes with this suffix."""
    fields: dict[str, Any] = {}
    for name, field in _NUMBERS.items():
        if (text := attributes.get(name + suffix)) is not None:
            fields[field] = int(float(text))
    if (text := attributes.get("complex_decoder" + suffix)) is not None:
        fields["complex_decoder"] = text == "1"
    if (text := attributes.get("ports" + suffix)) is not None:
        fields["ports"] = _ports(text)
    return fields


def _ports(text: str) -> dict[str, int]:
    """Ports such as "1*p01+1*p23", or "1*FP01" of AMD's cores, as the packs hold them."""
    uses: dict[str, int] = {}
    for match in _USE.finditer(text):
        group = (match[2] if match[2] == "FP" else "") + match[3]
        uses[group] = uses.get(group, 0) + int(match[1])
    return uses


def _throughput(measurement: ElementTree.Element, string: str, divider: int, *, locked: bool) -> float | None:
    """Measured reciprocal throughput where neither ports nor the divider's count tell it."""
    if not (divider or locked or string.partition(" ")[0] in _TIMED):
        return None
    texts = (measurement.get(name) for name in ("TP_unrolled", "TP", "TP_loop"))
    cycles = next((float(text) for text in texts if text), None)
    return None if cycles is None or (divider and cycles <= divider) else cycles


def _variants(record: Record, measurement: ElementTree.Element) -> dict[str, dict[str, Any]]:
    """What differs with an index register, and with one register for all operands."""
    variants = {}
    for name in _VARIANTS:
        fields = _fields(measurement.attrib, "_" + name)
        if fields and any(record.get(key) != value for key, value in fields.items()):
            variants[name] = fields
    return variants


def _latency(element: ElementTree.Element, names: Mapping[str, str]) -> dict[str, Any]:
    """A pair of operands by their names, with cycles as the packs hold them (1 where there are none of a register)."""
    pair: dict[str, Any] = {key: _cycles(element, (key,)) for key in _CYCLES}
    whole = _cycles(element, ("cycles", "max_cycles"))
    pair["cycles"] = 1 if whole is None else whole
    pair["start_op"] = names.get(element.get("start_op", ""), "")
    pair["target_op"] = names.get(element.get("target_op", ""), "")
    return pair


def _cycles(element: ElementTree.Element, names: Iterable[str]) -> int | None:
    text = next((element.get(name) for name in names if element.get(name) is not None), None)
    return None if text is None else round(float(text))
