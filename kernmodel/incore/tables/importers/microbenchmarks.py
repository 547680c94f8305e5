"""What ibench and asmbench print, as timings of instruction forms.

ibench prints a line per benchmark, `vaddpd-avx-TP:  0.500 (clock cycles) …`: a reciprocal throughput where its name
ends in TP, else a latency. asmbench prints `Latency: 4.00 cycle` and `Throughput: 0.50 cycle`, and its users a line
with the instruction before: OSACA's `vaddpd-y_y_y`, or a template of asmbench's, `vaddpd {src:<4 x double>:x}, …`. Both
name operands in AT&T order. ibench cannot tell cycles, only time at the frequency that it is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kernmodel.errors import InstructionTableError, Location, Note
from kernmodel.incore.tables.importers.facts import facts
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.incore.tables.timed import Timing
from kernmodel.schema.document import FileKind, read_text
from kernmodel.units import positive_number
from kernmodel.value_types import dataclass

_FILE = FileKind("file of measured instructions", "docs/microarchitectures.md", InstructionTableError)
_IBENCH = re.compile(r"^\s*([a-z][\w.]*(?:-[\w.]+)*):\s*(\S+)\s*\(clock cycles\)", re.MULTILINE)
_ASMBENCH = re.compile(r"^\s*(.+?)\s*\n\s*Latency:\s*(\S+) cycles?\s*\n\s*Throughput:\s*(\S+) cycles?", re.MULTILINE)
_TEMPLATE = re.compile(r"\{(?:src|dst)+:([^}]+)\}")
_TYPE = re.compile(r"(\*?)(?:<(\d+) x )?(i\d+|float|double)>?:(\w+)")
_BITS = {"float": 32, "double": 64}
_LOAD, _STORE = "load", "store"


TAKEN = "name-taken"
"""Code of a note that a name is taken for one of several forms; others tell what is left out."""


@dataclass(frozen=True, slots=True)
class Timings:
    """The forms that a file tells of, and what of it is left out or taken for something.

    Attributes:
        readings: lines of results.
    """

    tool: str
    readings: int
    forms: tuple[Timing, ...]
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class _Reading:
    """A line of results: which instruction, by `wanted` kinds of each operand in Intel order, and its cycles."""

    line: int
    name: str
    mnemonic: str
    wanted: Sequence[Sequence[str]] | str
    throughput: float | None
    latency: float | None


def is_microbenchmarks(path: Path) -> bool:
    """Whether a file holds results of ibench or asmbench.

    Raises:
        InstructionTableError: it cannot be read.
    """
    if path.suffix in (".gz", ".xml") or path.is_dir():
        return False
    text, _ = read_text(path, _FILE)
    return bool(_IBENCH.search(text) or _ASMBENCH.search(text))


def read_microbenchmarks(path: Path, table: InstructionTable) -> Timings:
    """The timings of the forms in a file.

    Args:
        table: of the core, by whose forms names are understood.

    Raises:
        InstructionTableError: it cannot be read, or is of neither tool.
    """
    text, _ = read_text(path, _FILE)
    tool = "ibench" if _IBENCH.search(text) else "asmbench"
    readings = list(_of_ibench(text) if tool == "ibench" else _of_asmbench(text))
    if not readings:
        raise InstructionTableError("is no output of ibench or asmbench", where=str(path), todo="give what they print")
    by_mnemonic: dict[str, list[str]] = {}
    for form in table.forms():
        if "[" not in form:
            by_mnemonic.setdefault(form.partition(" ")[0], []).append(form)
    source = f"measured by {tool}, {path.name}"
    found: dict[str, Timing] = {}
    notes = []
    for reading in readings:
        form, why = _form(reading, by_mnemonic.get(reading.mnemonic, ()))
        where = Location(str(path), reading.line)
        if why:
            notes.append(Note(TAKEN if form else "benchmark-left-out", f"{reading.name} {why}", where=where))
        if form:
            old = found.get(form, Timing(form, None, source))
            latency = old.latency if reading.latency is None else reading.latency
            throughput = old.throughput if reading.throughput is None else reading.throughput
            found[form] = replace(old, throughput=throughput, latency=latency)
    return Timings(tool, len(readings), tuple(found.values()), tuple(notes))


def _line_of(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start(1)) + 1


def _of_ibench(text: str) -> Iterator[_Reading]:
    for match in _IBENCH.finditer(text):
        words = match[1].split("-")
        throughput = words[-1] == "TP"
        words = words[:-1] if words[-1] in ("TP", "LT") else words
        times = (match[2], None) if throughput else (None, match[2])
        yield _reading(_line_of(text, match), match[1], words[0], _operands_of(words[1:]), times)


def _of_asmbench(text: str) -> Iterator[_Reading]:
    for match in _ASMBENCH.finditer(text):
        name, times = match[1], (match[3], match[2])
        line = _line_of(text, match)
        if "{" in name:
            yield _reading(line, name, name.split()[0], _operands_of_template(name), times)
        else:
            words = name.split("-")
            yield _reading(line, name, words[0], _operands_of(words[1:]), times)


def _reading(
    line: int,
    name: str,
    mnemonic: str,
    wanted: Sequence[Sequence[str]] | str,
    times: tuple[str | None, str | None],
) -> _Reading:
    """A reading by the texts of its throughput and latency; left out where one is no positive number."""
    cycles = [None if text is None else positive_number(text) for text in times]
    for text, value in zip(times, cycles, strict=True):
        if text is not None and value is None:
            wanted = f"is left out: its time is {text[:20]!r}, not a positive number of cycles"
    return _Reading(line, name, mnemonic, wanted, cycles[0], cycles[1])


def _operands_of(words: Sequence[str]) -> Sequence[Sequence[str]] | str:
    """Kinds of operands, Intel order, by the words behind a mnemonic; text: what is not understood. An empty list: all
    are registers of one kind."""
    letters: Mapping[str, Sequence[str]] = facts("microbenchmarks.yml", "operands")
    vectors: Mapping[str, str] = facts("microbenchmarks.yml", "words")
    if len(words) == 1 and all(part[:1] in letters for part in words[0].split("_")) and "_" in words[0]:
        return [letters[part[0]] for part in reversed(words[0].split("_"))]
    if len(words) == 1 and set(words[0]) <= set(letters):
        return [letters[letter] for letter in reversed(words[0])]
    moved = [word for word in words if word in (_LOAD, _STORE)]
    named = [word for word in words if word in vectors]
    if len(moved) + len(named) < len(words) or len(moved) > 1 or len(named) > 1:
        return f"is left out: what {'-'.join(words)} means is not known"
    register = [vectors[named[0]] if named else facts("microbenchmarks.yml", "scalar")["register"]]
    if not moved:
        return [register]
    return [register, letters["m"]] if moved[0] == _LOAD else [letters["m"], register]


def _operands_of_template(text: str) -> Sequence[Sequence[str]] | str:
    registers: Mapping[str, str] = facts("microbenchmarks.yml", "registers")
    found: list[Sequence[str]] = []
    for operand in _TEMPLATE.findall(text):
        match = _TYPE.fullmatch(operand)
        if match is None:
            return f"is left out: what {operand} means is not known"
        bits = int(match[2] or 1) * _BITS.get(match[3], int(match[3][1:]) if match[3][0] == "i" else 0)
        if match[1]:
            found.append([f"m{bits}"])
        elif match[4] in ("r", "x"):
            found.append([registers.get(f"{match[4]}{bits}", "")])
        else:
            found.append(facts("microbenchmarks.yml", "operands")["i"])
    return found[::-1]


def _form(reading: _Reading, forms: Sequence[str]) -> tuple[str, str]:
    """The form that is meant, "" for none, and what is to be said of it."""
    wanted = reading.wanted
    if isinstance(wanted, str):
        return "", wanted
    fitting = [(rank, form) for form in forms if (rank := _rank(form, wanted)) is not None]
    if not fitting:
        return "", "is left out: the table of the core has no form like it"
    fitting.sort()
    best = fitting[0][1]
    others = [form for _, form in fitting[1:]]
    return best, f"is taken for {best}, not for {' or '.join(others[:3])}" if others else ""


def _rank(form: str, wanted: Sequence[Sequence[str]]) -> tuple[int, ...] | None:
    """How likely a form is one of these operands, smaller is likelier; None: it has others."""
    kinds = [part for part in form.partition(" ")[2].split(",") if part]
    if len(wanted) == 1:
        # a kind of register alone: all operands are of it
        wanted = [wanted[0]] * len(kinds)
    if len(kinds) != len(wanted):
        return None
    ranks = [choices.index(kind) if kind in choices else -1 for kind, choices in zip(kinds, wanted, strict=True)]
    return None if -1 in ranks else tuple(ranks)
