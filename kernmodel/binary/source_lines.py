"""Source lines of code from the line programs of DWARF 2 to 5, read with pyelftools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kernmodel.binary.image import Binary
from kernmodel.binary.program import CodeRange, SourceLine
from kernmodel.value_types import NamedTuple

if TYPE_CHECKING:
    from elftools.dwarf.compileunit import CompileUnit
    from elftools.dwarf.dwarfinfo import DWARFInfo
    from elftools.dwarf.lineprogram import LineProgram

_ZERO_BASED = 5
"""The version of DWARF from which on files are numbered from 0 (DWARF 5, 6.2.4)."""


class _Row(NamedTuple):
    address: int
    line: SourceLine | None


def source_lines(binary: Binary, ranges: Sequence[CodeRange], addresses: Sequence[int]) -> dict[int, SourceLine]:
    """The source line of each instruction that has one; {} without debugging information, and where it is damaged.

    Args:
        ranges: the stretches of code that are asked for.
        addresses: of the instructions, ascending.
    """
    from elftools.common.exceptions import DWARFError, ELFError
    from elftools.construct import ConstructError

    try:
        rows = sorted(_rows(binary, ranges))
    except (DWARFError, ELFError, ConstructError, LookupError, ValueError, TypeError, AttributeError, AssertionError):
        return {}  # lines are a help to readers: without them everything else stands
    found: dict[int, SourceLine] = {}
    place = -1
    for address in addresses:
        while place + 1 < len(rows) and rows[place + 1].address <= address:
            place += 1
        line = rows[place].line if place >= 0 else None
        if line is not None:
            found[address] = line
    return found


def _rows(binary: Binary, ranges: Sequence[CodeRange]) -> Iterator[_Row]:
    """The rows of all line programs that meet the ranges; rows without a line end a sequence."""
    if not binary.raw.has_dwarf_info():
        return
    shift = _shift(binary)
    if shift is None:
        return
    dwarf = binary.raw.get_dwarf_info(relocate_dwarf_sections=True, follow_links=False)
    low, high = min(one.first for one in ranges) - shift, max(one.end for one in ranges) - shift
    for unit in _units(dwarf, [one.first - shift for one in ranges]):
        program = dwarf.line_program_for_CU(unit)
        for row in _program_rows(program) if program is not None else ():
            if low <= row.address <= high:
                yield _Row(row.address + shift, row.line)


def _shift(binary: Binary) -> int | None:
    """What is added to addresses of the line programs: those of an object count from its only section of code."""
    if binary.kind != "object":
        return 0
    sections = binary.code.sections
    return sections[0].address if len(sections) == 1 else None


def _units(dwarf: DWARFInfo, addresses: Sequence[int]) -> Iterator[CompileUnit]:
    """The units that these addresses are in, where the file has an index; else all."""
    index = dwarf.get_aranges()
    offsets = [index.cu_offset_at_addr(address) for address in addresses] if index is not None else [None]
    known = {offset for offset in offsets if offset is not None}
    if None in offsets:
        yield from dwarf.iter_CUs()
        return
    for offset in sorted(known):
        yield dwarf.get_CU_at(offset)


def _program_rows(program: LineProgram) -> Iterator[_Row]:
    names: dict[int, str] = {}
    for entry in program.get_entries():
        state = entry.state
        if state is None:
            continue
        if state.end_sequence:
            yield _Row(state.address, None)
        elif state.line:
            if state.file not in names:
                names[state.file] = _file_name(program, state.file)
            yield _Row(state.address, SourceLine(names[state.file], state.line))


def _file_name(program: LineProgram, number: int) -> str:
    first = 0 if program["version"] >= _ZERO_BASED else 1
    name = program["file_entry"][number - first].name
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else str(name)
