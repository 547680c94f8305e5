"""Instruction tables: one plain-text line per instruction form, sorted by form, read where it is asked.

A line holds eight cells, separated by `|`:

    vaddpd ymm,ymm,m256 | 1*p01+1*p23+1*p23D | 2 | 4 A2>0:12 M2>0:4 | | | 1/1/0 | u

1. form, as `assembly.Instruction.form`; a suffix in brackets names a variant: `[indexed]` (the memory operand has an
   index register), `[0]` (the immediate is 0), `[b+i*s+d]` (the shape of the address of a lea), `[full]` (operands
   that take a divider longest; the row without it holds for easy ones);
2. ports: `cycles*ports` joined by `+`. `p01` are the ports "0" and "1", `p23D` the load data paths "2D" and "3D",
   `p0DV` the divider pipeline "0DV", `FP01` the ports "FP0" and "FP1"; `EXAB/EAGAB` ports of two kinds of names;
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

Header lines start with `#`; `#! source TAG = text` and `#! fusible x = ja jae …` are read. `#! base FILE = text` makes
the table one of differences: forms without a row have that of the other table (beside it, else a carried one), its
source headed by the text where there is one.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from kernmodel.errors import InstructionTableError, Location
from kernmodel.incore.model import FrontEnd, InstructionData, Parameters, PortUse
from kernmodel.incore.tables.lookup import find_row, lookup_key
from kernmodel.isa.model import Instruction
from kernmodel.patterns import pattern
from kernmodel.user_files import opened
from kernmodel.value_types import dataclass

DATA = Path(__file__).parents[1] / "data"
CELLS = 8
INDEXED = " [indexed]"
FULL = " [full]"
Operands = Literal["easy", "full"]
"""Operands of divisions and square roots: those of uops.info's measurements (quotients of few bits), on which dividers
before Skylake finish early, or those that take longest."""

SIMPLE_DECODERS = 4  # the number uops.info gives where an instruction restricts none; left out of the cells

_CYCLES = pattern(r"[\d.]+")
_PORTS = pattern(r"(p|[A-Z]{2,}?)([0-9AB]*)(DV|D)?")
_PORT_NAME = pattern(r"()([0-9AB])(DV|D)?|([A-Z]{2,}?)([0-9]?)(DV|D)?")
_PAIR = pattern(r"(\w+)>(\w+):(-?[\d.]+)")
_FRONT = pattern(r"(\d+)/(\d+)/(\d+)(?: ([cs])(\d))?(?: f=(\w+))?")
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
        cycles, _, groups = part.partition("*")
        matches = [_PORTS.fullmatch(group) for group in groups.split("/")]
        if _CYCLES.fullmatch(cycles) is None or None in matches:
            raise ValueError(f"{part!r} is no port usage such as 1*p01")
        ports = tuple(port for match in matches if match is not None for port in _ports_of(match))
        uses.append(PortUse(ports, float(cycles)))
    return tuple(uses)


def _ports_of(group: re.Match[str]) -> tuple[str, ...]:
    prefix, suffix = "" if group[1] == "p" else group[1], group[3] or ""
    return tuple(prefix + unit + suffix for unit in group[2]) or (prefix + suffix,)


def format_ports(uses: Iterable[PortUse]) -> str:
    """The inverse of `parse_ports`."""
    return "+".join(f"{use.cycles:.10g}*{_format_group(use.ports)}" for use in uses)


def _format_group(ports: tuple[str, ...]) -> str:
    groups: dict[tuple[str, str], str] = {}
    for port in ports:
        prefix, unit, suffix = _port_parts(port)
        groups[prefix, suffix] = groups.get((prefix, suffix), "") + unit
    return "/".join((prefix or "p") + units + suffix for (prefix, suffix), units in groups.items())


def _port_parts(port: str) -> tuple[str, str, str]:
    """Prefix, unit and suffix of a port's name: "2D" is unit 2 with D, "AD" unit A with D, "FP1DV" FP, 1 and DV."""
    match = _PORT_NAME.fullmatch(port)
    if match is None:
        raise ValueError(f"{port!r} is no name of a port")
    prefix, unit, suffix = match.groups()[:3] if match[2] else match.groups()[3:]
    return prefix or "", unit or "", suffix or ""


def parse_latencies(text: str) -> tuple[float, dict[tuple[str, str], float]]:
    """The default and the pairs of latencies written as `4 A2>0:12`.

    Raises:
        ValueError: not of that form.
    """
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


@dataclass(frozen=True, slots=True)
class Legend:
    """What the header of a table defines.

    Attributes:
        sources: by tag; fusible: groups of jumps by letter.
        base: the table whose rows stand for those that are missing, and what heads their sources.
    """

    sources: Mapping[str, str]
    fusible: Mapping[str, tuple[str, ...]]
    base: tuple[str, str] | None = None

    @classmethod
    def parse(cls, header: Iterable[str]) -> Legend:
        """Read the `#!` lines among the header lines."""
        sources: dict[str, str] = {}
        fusible: dict[str, tuple[str, ...]] = {}
        base = None
        for line in header:
            kind, _, rest = line.removeprefix("#!").strip().partition(" ")
            tag, _, value = (part.strip() for part in rest.partition("="))
            if line.startswith("#!") and kind == "source":
                sources[tag] = value
            elif line.startswith("#!") and kind == "fusible":
                fusible[tag] = tuple(value.split())
            elif line.startswith("#!") and kind == "base":
                base = (tag, value)
        return cls(sources, fusible, base)

    def lines(self) -> Iterator[str]:
        """The `#!` lines that define this legend."""
        if self.base is not None:
            yield f"#! base {self.base[0]} = {self.base[1]}".rstrip()
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
    default, pairs = parse_latencies(latencies)
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


def base_of(path: Path) -> str:
    """The file name of the table to which another one holds the differences; "" where it is none.

    Raises:
        InstructionTableError: it cannot be read.
    """
    header = []
    with opened(path, "an instruction table", error=InstructionTableError) as file:
        while (line := file.readline(_LONGEST)).startswith(b"#"):
            header.append(line.decode("utf-8", "replace").rstrip())
    base = Legend.parse(header).base
    return base[0] if base else ""


_LONGEST = 1 << 16
"""Bytes that are read of a line of a header."""


class InstructionTable:
    """The instruction table of one microarchitecture, searched in the file and parsed row by row as rows are asked
    for.

    With `operands` "full" its rows hold for the operands that take a divider longest; with "easy" for those of
    uops.info's measurements, and `InstructionData.full` has the others.
    """

    __slots__ = ("_base", "_data", "_first", "_found", "_legend", "_rows", "operands", "parameters", "path")

    def __init__(
        self, path: Path, parameters: Parameters, operands: Operands = "full", *, above: tuple[Path, ...] = ()
    ) -> None:
        self.path = path
        self.parameters = parameters
        self.operands = operands
        try:
            with opened(path, "an instruction table", error=InstructionTableError) as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise InstructionTableError(f"cannot read the instruction table ({error})", where=str(path)) from None
        self._first = self._end_of_header()
        header = self._data[: self._first].decode("utf-8", "replace").splitlines()
        self._legend = Legend.parse(header)
        self._base = self._open_base(above)
        self._rows: dict[str, InstructionData | None] = {}
        self._found: dict[object, InstructionData | None] = {}

    @classmethod
    def open(cls, parameters: Parameters, operands: Operands = "full") -> InstructionTable:
        """The table that the parameter file names.

        Args:
            parameters: of the microarchitecture.
            operands: of divisions and square roots.

        Raises:
            InstructionTableError: the file is missing or empty.
        """
        return cls(DATA / parameters.table, parameters, operands)

    def row(self, form: str) -> InstructionData | None:
        """The row of exactly this form, with its indexed variant, or None.

        Raises:
            InstructionTableError: the row is malformed; names file and line.
        """
        if form not in self._rows:
            self._rows[form] = self._read(form)
        return self._rows[form]

    def lookup(self, instruction: Instruction) -> InstructionData | None:
        """The row that describes the instruction: exact, or the nearest by the rules of `tables.lookup`, or None.

        A row that is not exact says so in its `source`.
        """
        key = lookup_key(instruction)
        if key not in self._found:
            self._found[key] = find_row(self, instruction)
        return self._found[key]

    def forms(self) -> Iterator[str]:
        """All forms of the table in order (variants in brackets included)."""
        own = self.own_forms()
        yield from own if self._base is None else sorted({*own, *self._base.forms()}, key=str.encode)

    def own_forms(self) -> list[str]:
        """The forms of the file itself, without those of the table to which it holds the differences."""
        return [line.partition(" |")[0] for line in self._data[self._first :].decode("utf-8").splitlines()]

    def nearest_mnemonic(self, mnemonic: str) -> str | None:
        """The mnemonic with a row that a word without one is most like; None where it has rows, or is like none."""
        known = {form.partition(" ")[0] for form in self.forms()}
        near = () if mnemonic in known else get_close_matches(mnemonic, sorted(known), n=1, cutoff=0.7)
        return next(iter(near), None)

    def _open_base(self, above: tuple[Path, ...]) -> InstructionTable | None:
        """The table that this one is a table of differences to; `above` are those that lead here."""
        if self._legend.base is None:
            return None
        name = self._legend.base[0]
        places = [one for folder in (self.path.parent, DATA) if (one := folder / name).is_file()]
        path = next((one for one in places if one not in (*above, self.path)), None)
        if path is None:
            why = "leads back to it" if places else "is not there"
            what, todo = f"its base {name} {why}", "name the table of all rows"
            raise InstructionTableError(what, where=str(self.path), todo=todo)
        return InstructionTable(path, self.parameters, self.operands, above=(*above, self.path))

    def _end_of_header(self) -> int:
        position = 0
        while self._data[position : position + 1] == b"#":
            position = self._data.find(b"\n", position) + 1
        return position

    def _read(self, form: str) -> InstructionData | None:
        start = self._search(form.encode())
        if start is None:
            return self._of_base(form)
        variants = self._variants(start, form)
        full = FULL if FULL in variants else ""
        if self.operands == "full" or not full:
            return self._variant(start, form, full, variants)
        easy, slow = (self._variant(start, form, kind, variants) for kind in ("", full))
        indexed = replace(easy.indexed, full=slow.indexed) if easy.indexed else None
        return replace(easy, indexed=indexed, full=slow)

    def _of_base(self, form: str) -> InstructionData | None:
        row = self._base.row(form) if self._base else None
        if row is None or self._legend.base is None:
            return None
        words = self._legend.base[1]
        if not words:
            return row
        return with_variants(row, lambda one: replace(one, source=f"{words}; {one.source}"))

    def _variants(self, start: int, form: str) -> dict[str, int]:
        """Offsets of the lines behind that of the form that describe it too, by what follows the form in their keys."""
        found = {}
        key = (form + " [").encode()
        while self._key(start := self._data.find(b"\n", start) + 1).startswith(key):
            found[self._key(start)[len(form.encode()) :].decode()] = start
        return found

    def _variant(self, start: int, form: str, kind: str, variants: Mapping[str, int]) -> InstructionData:
        """The row of one kind of operands with its indexed variant, both under the name of the form."""
        row = self._parse(variants.get(kind, start), form)
        indexed = variants.get(kind + INDEXED)
        return row if indexed is None else replace(row, indexed=self._parse(indexed, form))

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

    def _parse(self, start: int, form: str) -> InstructionData:
        """The row that starts here, under the name of a form."""
        end = self._data.find(b"\n", start)
        try:
            row = parse_row(self._data[start:end].decode("utf-8"), self._legend)
            return row if row.form == form else replace(row, form=form)
        except (ValueError, IndexError) as error:
            line = self._data[:start].count(b"\n") + 1
            raise InstructionTableError(
                f"malformed row: {error}", where=Location(str(self.path), line), todo="see docs/microarchitectures.md"
            ) from None


def with_variants(row: InstructionData, change: Callable[[InstructionData], InstructionData]) -> InstructionData:
    """The row and its variants, each as `change` makes it."""
    indexed = with_variants(row.indexed, change) if row.indexed else None
    full = with_variants(row.full, change) if row.full else None
    return replace(change(row), indexed=indexed, full=full)


def table_text(
    header: Iterable[str],
    rows: Iterable[InstructionData],
    sources: Mapping[str, str],
    base: tuple[str, str] | None = None,
) -> str:
    """The text of a table file: comment lines, legend, rows sorted by form, each followed by its variants.

    Args:
        header: comment lines without the leading `#`.
        rows: the rows; later ones win over earlier ones of the same form.
        sources: short tags of the sources that the rows name.
        base: file name of the table that this one holds the differences to, and what heads the sources of its rows.
    """
    flat = {line.form: line for row in rows for line in _lines(row)}
    legend = _legend_of(flat.values(), sources, base)
    lines = [*(f"# {line}".rstrip() for line in header), *legend.lines()]
    lines += [format_row(flat[form], legend) for form in sorted(flat, key=str.encode)]
    return "\n".join(lines) + "\n"


def _lines(row: InstructionData) -> Iterator[InstructionData]:
    """The row and its variants as lines of their own."""
    yield replace(row, indexed=None, full=None)
    if row.indexed is not None:
        yield replace(row.indexed, form=row.form + INDEXED)
    if row.full is not None:
        yield from _lines(replace(row.full, form=row.form + FULL))


def _legend_of(rows: Iterable[InstructionData], sources: Mapping[str, str], base: tuple[str, str] | None) -> Legend:
    rows = tuple(rows)
    used = {row.source for row in rows}
    jumps = sorted({row.front_end.fusible_with for row in rows if row.front_end and row.front_end.fusible_with})
    return Legend(
        {tag: text for tag, text in sources.items() if text in used},
        {chr(ord("a") + number): group for number, group in enumerate(jumps)},
        base,
    )
