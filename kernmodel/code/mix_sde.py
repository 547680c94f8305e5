"""The mix that Intel SDE counts while a program runs: the text of `sde64 -mix -iform 1`.

Rows are a name and a number: groups with a star (`*mem-read-8`: executed loads of 8 bytes), and XED's instruction forms
(`VFMADD213PD_YMMqq_YMMqq_MEMqq`), whose mnemonic and registers tell operation, precision and lanes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from kernmodel.code.mix import FpClass, InstructionMix, MemoryClass
from kernmodel.errors import InputError, Location, Note
from kernmodel.isa import isa_of
from kernmodel.isa.model import FpKind

_GLOBAL, _THREAD = "GLOBAL_DYNAMIC_STATS", "DYNAMIC_STATS"
_ROW = re.compile(r"(\*?[A-Za-z][\w.-]*)\s+([0-9]+)\s*$")
_MEMORY = re.compile(r"\*mem-(read|write)-([0-9]+)$")
_VECTOR = re.compile(r"_([XYZ])MM|_VL(128|256|512)")
_BYTES = {"X": 16, "Y": 32, "Z": 64, "128": 16, "256": 32, "512": 64}
_LARGEST_SCALAR = 8


def is_sde_mix(text: str) -> bool:
    """Whether a text is what SDE prints, and not YAML."""
    return (
        re.search(rf"^#\s*EMIT_(?:{_GLOBAL}|{_THREAD})|^\*mem-(?:read|write)-[0-9]+\s", text, re.MULTILINE) is not None
    )


def sde_mix(text: str, file: str) -> InstructionMix:
    """The mix of a whole run; of all threads together.

    Raises:
        InputError: no counts, several emissions of them, or packed arithmetic without its forms (`-iform 1`).
    """
    memory: Counter[MemoryClass] = Counter()
    fp: Counter[FpClass] = Counter()
    left_out: dict[str, str] = {}
    x86 = isa_of("x86-64")
    for line, name, count in _rows(text, file):
        access = _MEMORY.match(name)
        if access is not None and int(access[2]) <= x86.widest_access:
            size = int(access[2])
            kind = MemoryClass(size, "scalar" if size <= _LARGEST_SCALAR else "vector", access[1] == "write")
            memory[kind] += count
        elif access is not None:
            left_out[f"accesses of {access[2]} B"] = "moves the state of the processor"
        elif not name.startswith("*"):
            mnemonic = name.partition("_")[0].lower()
            work = x86.fp_kind(mnemonic)
            if work is not None:
                for operation, times in work.work:
                    lanes = _lanes(work, name, Location(file, line))
                    fp[FpClass(operation, work.precision, lanes)] += times * count
            elif x86.is_unclassified(mnemonic):
                left_out[name] = "floating-point work that is not known"
    if not memory and not fp:
        raise InputError("has no counts of instructions", where=file, todo="run sde64 -mix -iform 1 -- program")
    return InstructionMix(
        memory=tuple((kind, float(count)) for kind, count in memory.most_common() if count),
        fp=tuple((kind, float(count)) for kind, count in fp.most_common() if count),
        other=0.0,
        source=f"Intel SDE, file {file}",
        notes=_notes(left_out),
        per="run",
    )


def _rows(text: str, file: str) -> Iterable[tuple[int, str, int]]:
    """Line number, name and count of the rows that count: of the whole program, else of each thread."""
    lines = text.splitlines()
    section = _GLOBAL if any(f"EMIT_{_GLOBAL}" in line for line in lines) else _THREAD
    starts = [number for number, line in enumerate(lines) if re.match(rf"#\s*EMIT_{section}\b", line)]
    if section == _GLOBAL and len(starts) > 1:
        where = Location(file, starts[1] + 1)
        raise InputError("emits its counts more than once", where=where, todo="leave one of these sections in the file")
    inside = not starts
    for number, line in enumerate(lines):
        if starts and re.match(rf"#\s*(EMIT|END)_{section}\b", line):
            inside = "EMIT_" in line
        row = _ROW.match(line) if inside else None
        if row is not None:
            yield number + 1, row[1], int(row[2])


def _lanes(work: FpKind, name: str, where: Location) -> int:
    """Lanes by the widest register in the name of a form."""
    if not work.lane_bytes:
        return work.fixed_lanes
    widths = [_BYTES[register or length] for register, length in _VECTOR.findall(name)]
    if not widths:
        todo = "run sde64 with -iform 1, which tells the registers"
        raise InputError(f"{name} does not tell how wide it is", where=where, todo=todo)
    return work.lanes(max(widths))


def _notes(left_out: dict[str, str]) -> tuple[Note, ...]:
    text = "SDE tells neither masked nor streaming nor gathered accesses, nor which instructions do none of both kinds"
    found = [Note("sde-mix", text, "assumption")]
    found += [Note("not-counted", f"{name}: {why}, not counted") for name, why in left_out.items()]
    return tuple(found)
