"""Instruction tables: one plain-text line per instruction form, sorted by form, read where it is asked.

A line holds eight cells, separated by `|`:

    vaddpd ymm,ymm,m256 | 1*p01+1*p23+1*p23D | 2 | 4 A2>0:12 M2>0:4 | | | 1/1/0 | u

1. form, as `assembly.Instruction.form`; a suffix in brackets names a variant: `[indexed]` (the memory operand has an
   index register), `[0]` (the immediate is 0), `[b+i*s+d]` (the shape of the address of a lea);
2. ports: `cycles*ports` joined by `+`. `p01` are the ports "0" and "1", `p23D` the load data paths "2D" and "3D",
   `p0DV` the divider pipeline "0DV", `FP01` the ports "FP0" and "FP1";
3. unfused µops;
4. latencies in cycles: the default, then `source>target:cycles` for the pairs that differ from it. `0`, `1`, … are
   operands, `F` the flags; of a memory operand k, `Ak` is its base register, `Xk` its index register (as `Ak` where it
   is not listed), `Mk` its data: after the load as a source, before the store as a target. `M` and register names
   (`rsp`, `rax`) are implicit operands. Rows of an eliminated move give what it costs when it executes;
5. measured reciprocal throughput in cycles, where the ports do not tell it;
6. flags: `zero` (done at rename if all sources are one register), `dep` (executes, but does not wait for it),
   `elim` (a move that can be eliminated at rename);
7. front end: `retire slots/MITE µops/MS µops`, then `c3` (needs the complex decoder; three simple ones may work beside
   it) or `s3`, then `f=x` (macro-fuses with the jumps of group x); `-` where the source has none;
8. tag of the source, spelt out in the header.

Header lines start with `#`; `#! source TAG = text` and `#! fusible x = ja jae …` are read.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from kernmodel.assembly.model import Instruction
from kernmodel.errors import InstructionTableError, Location
from kernmodel.incore.lookup import find_row, lookup_key
from kernmodel.incore.model import FrontEnd, InstructionData, Parameters, PortUse

DATA = Path(__file__).parent / "data"
CELLS = 8
INDEXED = " [indexed]"
SIMPLE_DECODERS = 4  # the number uops.info gives where an instruction restricts none; left out of the cells

_PORTS = re.compile(r"([\d.]+)\*(p|[A-Z]{2,}?)([0-9AB]*)(DV|D)?")
_PORT_NAME = re.compile(r"([A-Z]{2,}?)?([0-9AB]?)(DV|D)?")
_PAIR = re.compile(r"(\w+)>(\w+):(-?[\d.]+)")
_FRONT = re.compile(r"(\d+)/(\d+)/(\d+)(?: ([cs])(\d))?(?: f=(\w+))?")
_BREAKS: dict[str, str] = {"zero": "zero", "dep": "dependency"}


def parse_ports(text: str) -> tuple[PortUse, ...]:
    """The port usage written as `1*p01+4*p0DV`; empty text is none.

    Raises:
        ValueError: not of that form.
    """
    if not text:
        return ()
    uses = []
    for part in text.split("+"):
        match = _PORTS.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is no port usage such as 1*p01")
        prefix = "" if match[2] == "p" else match[2]
        suffix = match[4] or ""
        uses.append(PortUse(tuple(prefix + unit + suffix for unit in match[3]) or (prefix + suffix,), float(match[1])))
    return tuple(uses)


def format_ports(uses: Iterable[PortUse]) -> str:
    """The inverse of `parse_ports`."""
    return "+".join(f"{use.cycles:g}*{_format_group(use.ports)}" for use in uses)


def _format_group(ports: tuple[str, ...]) -> str:
    parts = [_PORT_NAME.fullmatch(port) for port in ports]
    first = parts[0]
    if first is None or any(part is None or (part[1], part[3]) != (first[1], first[3]) for part in parts):
        raise ValueError(f"ports {ports} have no common name")
    return (first[1] or "p") + "".join(part[2] for part in parts if part) + (first[3] or "")


def _parse_latencies(text: str) -> tuple[float, dict[tuple[str, str], float]]:
    default, *rest = text.split()
    pairs: dict[tuple[str, str], float] = {}
    for item in rest:
        match = _PAIR.fullmatch(item)
        if match is None:
            raise ValueError(f"{item!r} is no latency such as 1>0:4")
        pairs[match[1], match[2]] = float(match[3])
    for (source, target), cycles in tuple(pairs.items()):
        if source[0] == "A":
            pairs.setdefault(("X" + source[1:], target), cycles)
    return float(default), pairs


def _format_latencies(row: InstructionData) -> str:
    cells = [f"{row.default_latency:g}"]
    for (source, target), cycles in sorted(row.latencies.items()):
        as_base = source[0] == "X" and row.latencies.get(("A" + source[1:], target)) == cycles
        if not as_base:
            cells.append(f"{source}>{target}:{cycles:g}")
    return " ".join(cells)


def _parse_front_end(text: str, fusible: Mapping[str, tuple[str, ...]]) -> FrontEnd | None:
    if text == "-":
        return None
    match = _FRONT.fullmatch(text)
    if match is None or (match[6] is not None and match[6] not in fusible):
        raise ValueError(f"{text!r} is no front end such as 1/1/0 c3 f=a")
    return FrontEnd(
        retire_slots=int(match[1]),
        uops_mite=int(match[2]),
        uops_ms=int(match[3]),
        complex_decoder=match[4] == "c",
        simple_decoders=int(match[5]) if match[5] else SIMPLE_DECODERS,
        fusible_with=fusible[match[6]] if match[6] else (),
    )


def _format_front_end(front: FrontEnd | None, fusible: Mapping[tuple[str, ...], str]) -> str:
    if front is None:
        return "-"
    text = f"{front.retire_slots}/{front.uops_mite}/{front.uops_ms}"
    if front.complex_decoder or front.simple_decoders != SIMPLE_DECODERS:
        text += f" {'c' if front.complex_decoder else 's'}{front.simple_decoders}"
    return text + (f" f={fusible[front.fusible_with]}" if front.fusible_with else "")


class Legend:
    """What the header of a table defines: `sources` by tag and groups of fusible jumps by letter."""

    __slots__ = ("fusible", "sources")

    def __init__(self, sources: Mapping[str, str], fusible: Mapping[str, tuple[str, ...]]) -> None:
        self.sources = dict(sources)
        self.fusible = dict(fusible)

    @classmethod
    def parse(cls, header: Iterable[str]) -> Legend:
        """Read the `#!` lines among the header lines."""
        sources: dict[str, str] = {}
        fusible: dict[str, tuple[str, ...]] = {}
        for line in header:
            kind, _, rest = line.removeprefix("#!").strip().partition(" ")
            tag, _, value = (part.strip() for part in rest.partition("="))
            if line.startswith("#!") and kind == "source":
                sources[tag] = value
            elif line.startswith("#!") and kind == "fusible":
                fusible[tag] = tuple(value.split())
        return cls(sources, fusible)

    def lines(self) -> Iterator[str]:
        """The `#!` lines that define this legend."""
        yield from (f"#! source {tag} = {text}" for tag, text in sorted(self.sources.items()))
        yield from (f"#! fusible {tag} = {' '.join(jumps)}" for tag, jumps in sorted(self.fusible.items()))


def parse_row(line: str, legend: Legend) -> InstructionData:
    """The row that a table line holds (without its indexed variant).

    Raises:
        ValueError: a cell that is malformed, with what is wrong.
    """
    cells = [cell.strip() for cell in line.split("|")]
    if len(cells) != CELLS:
        raise ValueError(f"{len(cells)} cells instead of {CELLS}")
    form, ports, uops, latencies, throughput, flags, front, tag = cells
    words = flags.split()
    if not set(words) <= {*_BREAKS, "elim"}:
        raise ValueError(f"{flags!r} holds flags other than zero, dep, elim")
    if tag not in legend.sources:
        raise ValueError(f"source {tag!r} is not in the header")
    default, pairs = _parse_latencies(latencies)
    return InstructionData(
        form=form,
        ports=parse_ports(ports),
        latencies=pairs,
        default_latency=default,
        uops=int(uops),
        throughput=float(throughput) if throughput else None,
        breaks_dependency="zero" if "zero" in words else "dependency" if "dep" in words else "no",
        eliminated="elim" in words,
        front_end=_parse_front_end(front, legend.fusible),
        indexed=None,
        source=legend.sources[tag],
    )


def format_row(row: InstructionData, legend: Legend) -> str:
    """The line of a row, the inverse of `parse_row`; its source and fusible jumps must be in the legend."""
    tags = {text: tag for tag, text in legend.sources.items()}
    groups = {jumps: tag for tag, jumps in legend.fusible.items()}
    words = {"no": [], "dependency": ["dep"], "zero": ["zero"]}[row.breaks_dependency] + ["elim"] * row.eliminated
    cells = (
        row.form,
        format_ports(row.ports),
        str(row.uops),
        _format_latencies(row),
        "" if row.throughput is None else f"{row.throughput:g}",
        " ".join(words),
        _format_front_end(row.front_end, groups),
        tags[row.source],
    )
    return " | ".join(cells).replace("|  |", "| |").replace("|  |", "| |")


class InstructionTable:
    """The instruction table of one microarchitecture, searched in the file and parsed row by row as rows are asked
    for."""

    __slots__ = ("_data", "_first", "_found", "_legend", "_rows", "parameters", "path")

    def __init__(self, path: Path, parameters: Parameters) -> None:
        self.path = path
        self.parameters = parameters
        try:
            with path.open("rb") as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise InstructionTableError(f"cannot read the instruction table ({error})", where=str(path)) from None
        self._first = self._end_of_header()
        header = self._data[: self._first].decode("utf-8", "replace").splitlines()
        self._legend = Legend.parse(header)
        self._rows: dict[str, InstructionData | None] = {}
        self._found: dict[object, InstructionData | None] = {}

    @classmethod
    def open(cls, parameters: Parameters) -> InstructionTable:
        """The table that the parameter file names.

        Raises:
            InstructionTableError: the file is missing or empty.
        """
        return cls(DATA / parameters.table, parameters)

    def row(self, form: str) -> InstructionData | None:
        """The row of exactly this form, with its indexed variant, or None.

        Raises:
            InstructionTableError: the row is malformed; names file and line.
        """
        if form not in self._rows:
            self._rows[form] = self._read(form)
        return self._rows[form]

    def lookup(self, instruction: Instruction) -> InstructionData | None:
        """The row that describes the instruction: exact, or the nearest by the rules of `incore.lookup`, or None.

        A row that is not exact says so in its `source`.
        """
        key = lookup_key(instruction)
        if key not in self._found:
            self._found[key] = find_row(self, instruction)
        return self._found[key]

    def forms(self) -> Iterator[str]:
        """All forms of the table in order (variants in brackets included)."""
        for line in self._data[self._first :].decode("utf-8").splitlines():
            yield line.partition(" |")[0]

    def _end_of_header(self) -> int:
        position = 0
        while self._data[position : position + 1] == b"#":
            position = self._data.find(b"\n", position) + 1
        return position

    def _read(self, form: str) -> InstructionData | None:
        start = self._search(form.encode())
        if start is None:
            return None
        row = self._parse(start)
        following = self._data.find(b"\n", start) + 1
        if self._key(following) == (form + INDEXED).encode():
            return replace(row, indexed=replace(self._parse(following), form=form))
        return row

    def _key(self, start: int) -> bytes:
        return self._data[start : self._data.find(b" |", start)] if 0 < start < len(self._data) else b""

    def _search(self, key: bytes) -> int | None:
        """Offset of the line with this key, by bisection of the sorted lines."""
        low, high = self._first, len(self._data)
        while low < high:
            start = self._data.rfind(b"\n", low, (low + high) // 2) + 1 or low
            found = self._key(start)
            if found == key:
                return start
            if found < key:
                low = self._data.find(b"\n", start) + 1
            else:
                high = start
        return None

    def _parse(self, start: int) -> InstructionData:
        end = self._data.find(b"\n", start)
        try:
            return parse_row(self._data[start:end].decode("utf-8"), self._legend)
        except (ValueError, IndexError) as error:
            line = self._data[:start].count(b"\n") + 1
            raise InstructionTableError(
                f"malformed row: {error}", where=Location(str(self.path), line), todo="see docs/microarchitectures.md"
            ) from None


def check_table(parameters: Parameters) -> int:
    """Parse every row of a table and check order and ports; the number of rows.

    Raises:
        InstructionTableError: a row is malformed, out of order, twice there, or names a port that the parameter file
            does
            not list; names file and line.
    """
    table = InstructionTable.open(parameters)
    known = set(parameters.ports)
    lines = table.path.read_text(encoding="utf-8").splitlines()
    forms = [(number, line.partition(" |")[0]) for number, line in enumerate(lines, 1) if not line.startswith("#")]
    for (_, form), (number, following) in pairwise(forms):
        if following.encode() <= form.encode():
            where = Location(str(table.path), number)
            todo = "sort the rows by their bytes"
            raise InstructionTableError(f"{following!r} is out of order or there twice", where=where, todo=todo)
    for number, form in forms:
        row = table.row(form)
        strange = {port for use in row.ports for port in use.ports} - known if row else set()
        if row is None or strange:
            what = f"{form!r} " + (f"names unknown ports {sorted(strange)}" if row else "is not found")
            todo = "list the ports in the parameter file, or correct the form"
            raise InstructionTableError(what, where=Location(str(table.path), number), todo=todo)
    return len(forms)


def table_text(header: Iterable[str], rows: Iterable[InstructionData], sources: Mapping[str, str]) -> str:
    """The text of a table file: comment lines, legend, rows sorted by form, each followed by its indexed variant.

    Args:
        header: comment lines without the leading `#`.
        rows: the rows; later ones win over earlier ones of the same form.
        sources: short tags of the sources that the rows name.
    """
    flat: dict[str, InstructionData] = {}
    for row in rows:
        flat[row.form] = replace(row, indexed=None)
        if row.indexed is not None:
            flat[row.form + INDEXED] = replace(row.indexed, form=row.form + INDEXED)
    legend = _legend_of(flat.values(), sources)
    lines = [*(f"# {line}".rstrip() for line in header), *legend.lines()]
    lines += [format_row(flat[form], legend) for form in sorted(flat, key=str.encode)]
    return "\n".join(lines) + "\n"


def _legend_of(rows: Iterable[InstructionData], sources: Mapping[str, str]) -> Legend:
    rows = tuple(rows)
    used = {row.source for row in rows}
    jumps = sorted({row.front_end.fusible_with for row in rows if row.front_end and row.front_end.fusible_with})
    return Legend(
        {tag: text for tag, text in sources.items() if text in used},
        {chr(ord("a") + number): group for number, group in enumerate(jumps)},
    )
