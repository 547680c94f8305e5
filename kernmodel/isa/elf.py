"""The parts of 64-bit little-endian ELF files that decoding needs: code, symbols, relocations, line rows.

Read with pyelftools, which is imported only once there is a file to read. Nothing is asked of it that decoding does
not need: the bytes of code sections only, relocations of these only, one line program.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

from kernmodel.errors import AssemblyError
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from elftools.dwarf.lineprogram import LineProgram
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section as RawSection
    from elftools.elf.sections import Symbol as RawSymbol

SYMBOL_FUNCTION, SYMBOL_SECTION, SYMBOL_FILE = "STT_FUNC", "STT_SECTION", "STT_FILE"


@dataclass(frozen=True, slots=True)
class Section:
    """A section; `data` holds the bytes of executable ones only, `address` is 0 in relocatable files."""

    name: str
    executable: bool
    address: int
    data: bytes
    alignment: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol: `value` is an offset in section number `section` (relocatable) or an address.

    `section` is None for undefined, common and absolute symbols. `kind` is STT_*, or a number that has no such name.
    """

    name: str
    value: int
    size: int
    section: int | None
    kind: str | int


@dataclass(frozen=True, slots=True)
class Relocation:
    """A field at `offset` of a section that takes the address of a symbol plus `addend`; `kind` is R_X86_64_*."""

    offset: int
    kind: int
    symbol: Symbol
    addend: int


@dataclass(frozen=True, slots=True)
class ElfFile:
    """An ELF file; section numbers index `sections`. `machine` is EM_*, or a number that has no such name."""

    machine: str | int
    relocatable: bool
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    raw: ELFFile = field(repr=False, compare=False)


def is_elf(data: bytes) -> bool:
    """Whether `data` starts as an ELF file does."""
    return data[:4] == b"\x7fELF"


def load_reader() -> None:
    """Import pyelftools, which takes as long as assembling a listing: the two can happen at once."""
    import elftools.elf.elffile  # noqa: F401


def read_elf(data: bytes, file: str) -> ElfFile:
    """Read an ELF file; `file` names it in messages.

    Raises:
        AssemblyError: truncated or malformed, or not 64-bit little-endian.
    """
    if data[4:6] != b"\x02\x01":
        raise AssemblyError(
            "is not a 64-bit little-endian ELF file", where=file, todo="give an x86-64 object or listing"
        )
    with damage_reported(file):
        from elftools.elf.elffile import ELFFile

        raw = ELFFile(BytesIO(data))
        raw_sections = tuple(raw.iter_sections())
        sections = tuple(_section(section) for section in raw_sections)
        symbols = _symbols(raw_sections, sections, "SHT_SYMTAB") or _symbols(raw_sections, sections, "SHT_DYNSYM")
        return ElfFile(raw["e_machine"], raw["e_type"] == "ET_REL", sections, symbols, raw)


@contextmanager
def damage_reported(file: str, what: str = "is a damaged ELF file", todo: str = "build it anew") -> Iterator[None]:
    """Report what pyelftools and the numbers of a damaged ELF file (offsets, indices) raise as an `AssemblyError`."""
    from elftools.common.exceptions import DWARFError, ELFError
    from elftools.construct import ConstructError

    declared = (ELFError, DWARFError, ConstructError)
    # pyelftools trusts what it reads: entries that contradict one another make it stumble over its own values
    stumbled = (LookupError, ValueError, ArithmeticError, AssertionError, TypeError, AttributeError)
    try:
        yield
    except (*declared, *stumbled) as error:
        raise AssemblyError(what, where=file, todo=todo) from error


def machine_name(machine: str | int) -> str:
    """The architecture of an ELF machine, for messages."""
    from elftools.elf.descriptions import describe_e_machine

    name = str(describe_e_machine(str(machine)))
    return f"ELF machine {machine}" if name in ("<unknown>", "None") else name


def _section(raw: RawSection) -> Section:
    """A section, with its bytes if it is code.

    Raises:
        ValueError: it reaches beyond the end of the file.
    """
    from elftools.elf.constants import SH_FLAGS

    executable = bool(raw["sh_flags"] & SH_FLAGS.SHF_EXECINSTR)
    data = b""
    if executable and raw["sh_type"] != "SHT_NOBITS":
        _within_file(raw)
        data = raw.data()
    return Section(raw.name, executable, raw["sh_addr"], data, max(raw["sh_addralign"], 1))


def _within_file(raw: RawSection) -> None:
    """Refuse a section that cannot be read, before memory is reserved for a damaged size.

    Raises:
        ValueError: it reaches beyond the end of the file, or is compressed (code and symbols never are).
    """
    if raw["sh_offset"] + raw["sh_size"] > raw.elffile.stream_len or raw.compressed:
        raise ValueError(f"section {raw.name!r} cannot be read")


def _symbols(raw_sections: tuple[RawSection, ...], sections: tuple[Section, ...], kind: str) -> tuple[Symbol, ...]:
    """The symbols of the first symbol table of this kind; () without one."""
    from elftools.elf.sections import SymbolTableSection

    for table in raw_sections:
        if isinstance(table, SymbolTableSection) and table["sh_type"] == kind:
            _within_file(table)
            return tuple(_symbol(symbol, sections) for symbol in table.iter_symbols())
    return ()


def _symbol(raw: RawSymbol, sections: tuple[Section, ...]) -> Symbol:
    """A symbol; one without a name bears its section's."""
    index = raw["st_shndx"]
    section = index if isinstance(index, int) and index < len(sections) else None
    name = raw.name or ("" if section is None else sections[section].name)
    return Symbol(name, raw["st_value"], raw["st_size"], section, raw["st_info"]["type"])


def relocations(elf: ElfFile, section: int) -> dict[int, Relocation]:
    """The relocations of section number `section` by the offset of the field that they fill."""
    from elftools.elf.relocation import RelocationSection

    found = {}
    for table in elf.raw.iter_sections("SHT_RELA"):
        if isinstance(table, RelocationSection) and table["sh_info"] == section:
            _within_file(table)
            for raw in table.iter_relocations():
                symbol = elf.symbols[raw["r_info_sym"]]
                found[raw["r_offset"]] = Relocation(raw["r_offset"], raw["r_info_type"], symbol, raw["r_addend"])
    return found


class LineRow(NamedTuple):
    """Code from offset `address` of section number `section` on comes from `line` of the assembler's input."""

    section: int
    address: int
    line: int


def line_rows(elf: ElfFile) -> tuple[LineRow, ...]:
    """The rows of the line programs that GNU as writes with --gdwarf-3 (DWARF 3, 6.2), by section and address.

    Where debugging sections that are part of the listing break this, it raises what `damage_reported` reports.
    """
    number = elf.raw.get_section_index(".debug_line")
    if number is None:
        return ()
    # pyelftools can apply the relocations itself, but then an address no longer tells its section
    dwarf = elf.raw.get_dwarf_info(relocate_dwarf_sections=False, follow_links=False)
    programs = filter(None, map(dwarf.line_program_for_CU, dwarf.iter_CUs()))
    starts = iter([start for _, start in sorted(relocations(elf, number).items())])
    return tuple(sorted({row for program in programs for row in _program_rows(program, starts)}))


def _program_rows(program: LineProgram, starts: Iterator[Relocation]) -> Iterator[LineRow]:
    """The rows of a line program whose statements DW_LNE_set_address take `starts`, one after the other."""
    from elftools.dwarf.constants import DW_LNE

    section = base = 0
    for entry in program.get_entries():
        if entry.is_extended and entry.command == DW_LNE.set_address:
            start = next(starts, None)
            if start is None:
                raise ValueError("a line program has more starts than relocations")
            section, base = start.symbol.section or 0, start.symbol.value + start.addend
        elif entry.state is not None and not entry.state.end_sequence:
            yield LineRow(section, base + entry.state.address, entry.state.line)
