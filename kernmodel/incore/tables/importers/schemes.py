"""Records for cores whose port usage alone is published: uops.info's ports by instruction scheme (the extract of the
iwho project), everything else by the nearest core that has a pack.

Nearest is, instruction by instruction, the pack with the same ports (those that newer cores added left out), the first
one if several agree, else the one with the nearest number of µops.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kernmodel.errors import InstructionTableError
from kernmodel.incore.tables.importers.forms import form_name
from kernmodel.incore.tables.importers.uops import Record, read_records
from kernmodel.user_files import opened

_OPERAND = re.compile(r"(?:R8l|R8h|(?:R|M|I)\d+|[XYZ]?MM|XMM0|CL|AL|AX|EAX|RAX|DX|SEG|FS|GS|Rel\d+|0|1|VSIB_[XY]MM)$")
_USE = re.compile(r"(\d+)\*p(\w+)")
_ADDED = str.maketrans("", "", "AB")  # ports of Golden Cove that Sunny Cove lacks

_DECODED = 4  # µops that the complex decoder makes at most

Ports = Mapping[str, float]


def scheme_ports(path: Path, core: str) -> dict[str, Ports]:
    """Ports of a core by form, from the file of ports by scheme.

    Raises:
        InstructionTableError: the file cannot be read as such.
    """
    try:
        with opened(path, "ports_by_scheme.json.gz", error=InstructionTableError) as file:
            schemes = json.load(gzip.GzipFile(fileobj=file))
        entries = [entry for group in schemes.values() for entry in group if entry["name"] and core in entry["ports"]]
    except (OSError, ValueError, KeyError, AttributeError, TypeError, EOFError) as error:
        todo = "give ports_by_scheme.json.gz"
        raise InstructionTableError(
            f"cannot be read as ports by scheme ({error})", where=str(path), todo=todo
        ) from None
    ports: dict[str, Ports] = {}
    for entry in entries:
        name = form_name(scheme_string(entry["name"]))
        if name is not None and not name.accumulator:
            ports.setdefault(name.form, _parsed(entry["ports"][core]))
    return ports


def scheme_string(name: str) -> str:
    """The string of uops.info's records for a name with its operands ("ADC_R16_I8" gives "ADC (R16, I8)")."""
    parts = name.split("_")
    count = len(parts)
    while count > 1 and _OPERAND.match(_operand(parts, count)):
        count -= 2 if parts[count - 2] == "VSIB" else 1
    operands = "_".join(parts[count:]).replace("VSIB_", "VSIB*").split("_") if parts[count:] else []
    joined = ", ".join(operand.replace("*", "_") for operand in operands)
    return "_".join(parts[:count]) + (f" ({joined})" if joined else "")


def _operand(parts: Sequence[str], count: int) -> str:
    return "_".join(parts[count - 2 : count]) if count > 1 and parts[count - 2] == "VSIB" else parts[count - 1]


def _parsed(text: str) -> Ports:
    return {match[2]: float(match[1]) for match in _USE.finditer(text)}


def scheme_records(packs: Sequence[Path], ports: Mapping[str, Ports], core: str) -> Iterator[Record]:
    """Records of a core: its ports by form where they are known, the rest of the nearest pack's record.

    Forms without ports have the first pack's, stores moved to the store ports of the core. A record says in
    `nearest` whose it is, and in `own_ports` whether the ports are the core's.

    Args:
        packs: of the nearest cores, the nearest first.
        ports: by form.
        core: name of the core.
    """
    read = [{record["string"]: record for record in read_records(pack)} for pack in packs]
    for string in dict.fromkeys(string for records in read for string in records):
        candidates = [records[string] for records in read if string in records]
        name = form_name(string)
        own = ports.get(name.form) if name else None
        if own is None and string not in read[0]:
            continue  # an extension that only the further cores have
        yield _joined(candidates, own, core)


def _joined(candidates: Sequence[Record], own: Ports | None, core: str) -> Record:
    """The nearest of the records with the core's ports."""
    if own is None:
        nearest = candidates[0]
        own = {} if not nearest["ports"] else _newer(nearest["ports"])
        return {**nearest, **_changed(nearest, own), "arch": core, "nearest": nearest["arch"], "own_ports": False}
    nearest = min(candidates, key=lambda record: _distance(record, own))
    return {**nearest, **_changed(nearest, own), "arch": core, "nearest": nearest["arch"], "own_ports": True}


def _distance(record: Record, own: Ports) -> tuple[bool, float]:
    return _newer(record["ports"]) != own, abs(sum(record["ports"].values()) - sum(own.values()))


def _newer(ports: Ports) -> dict[str, float]:
    """Ports of a neighbour as Ice Lake names them: stores on 4 and 9, their addresses on 7 and 8."""
    stores = ports.get("4", 0)
    addresses = min(stores, ports.get("23", 0) + ports.get("237", 0))
    named = {group.translate(_ADDED): count for group, count in ports.items() if group not in ("4", "23", "237")}
    loads = ports.get("23", 0) + ports.get("237", 0) - addresses
    memory = {"23": loads, "49": stores, "78": addresses}
    return {**named, **{group: named.get(group, 0) + count for group, count in memory.items() if count}}


def _changed(nearest: Record, own: Ports) -> dict[str, object]:
    """µops and slots with these ports: as many more or fewer than the neighbour's as there are µops."""
    count = round(sum(own.values()))
    executed = nearest["uops"] > 0 or not nearest["variants"].get("same_reg", {}).get("uops")
    if nearest["uops"] == 0 and executed:
        return {"ports": own}
    if nearest["uops"] == 0 and not own:
        return {}  # a move that is eliminated on both
    more = count - (nearest["uops"] or 1)
    fields: dict[str, object] = {}
    if more:
        fields["retire_slots"] = max(nearest["retire_slots"] + more, 1)
        fields["uops_mite"] = max(min(nearest["uops_mite"] + more, _DECODED), 1)
    if nearest["uops"] == 0:
        fields["latencies"] = [_executed(pair) for pair in nearest["latencies"]]
    variants = {key: value for key, value in nearest["variants"].items() if key != "same_reg" or nearest["uops"]}
    indexed = variants.get("indexed")
    if indexed:
        slots = max(indexed["retire_slots"] + more, 1)
        variants["indexed"] = {**indexed, "ports": own, "uops": count, "retire_slots": slots}
    return {"ports": own, "uops": count, "variants": variants, **fields}


def _executed(pair: Record) -> Record:
    """A latency of an eliminated move as it is where the move executes."""
    return {**pair, "cycles": 1 if pair["cycles_same_reg"] is None else pair["cycles_same_reg"]}
