"""The parts of 64-bit little-endian ELF files that decoding needs: code, symbols, relocations, line rows.

Read here, by the tables of the System V ABI (ELF-64 Object File Format, and DWARF 3, 6.2, for line programs): with
pyelftools a cold `incore` executes 16 % more instructions, `ecm` 10 % (docs/speed.md). Four fifths of its time is the
import of `elftools.elf.elffile`, whose 48 modules come together; the rest is reading. What more there is in files, such
as the line programs of linked ones, is read with it (`kernmodel.binary`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field

from kernmodel.errors import AssemblyError
from kernmodel.value_types import NamedTuple, dataclass

SYMBOL_FUNCTION, SYMBOL_SECTION, SYMBOL_FILE = "STT_FUNC", "STT_SECTION", "STT_FILE"
_SYMBOL_KINDS = {2: SYMBOL_FUNCTION, 3: SYMBOL_SECTION, 4: SYMBOL_FILE}
_MACHINES = {62: "EM_X86_64", 183: "EM_AARCH64"}
_RELOCATABLE = 1
_SYMBOL_TABLE, _RELOCATIONS, _NO_BITS, _DYNAMIC_SYMBOLS = 2, 4, 8, 11
_EXECUTABLE, _COMPRESSED = 0x4, 0x800
_RESERVED = 0xFF00
"""Section numbers from here on stand for something else: absolute, common, one that does not fit."""
_IN_TABLE = 0xFFFF
_HEADER = struct.Struct("<16xHHIQQQIHHHHHH")
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QIIq")
_COMPRESSION_HEADER_BYTES = 24
_PROGRAM_HEADER = struct.Struct("<IHIBBbBB")


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

    `section` is None for undefined, common and absolute symbols. `kind` is STT_* of those that are told apart here, the
    number of others.
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


class _Header(NamedTuple):
    """A section header; `name` and `link` as numbers."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    about: int
    alignment: int
    entry_size: int


@dataclass(frozen=True, slots=True)
class ElfFile:
    """An ELF file; section numbers index `sections`. `machine` is EM_* of known instruction sets, the number of others.

    Tables that are read when they are asked for are in `raw`, by the section headers.
    """

    machine: str | int
    relocatable: bool
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    raw: bytes = field(repr=False, compare=False)
    headers: tuple[_Header, ...] = field(repr=False, compare=False)


def is_elf(data: bytes) -> bool:
    """Whether `data` starts as an ELF file does."""
    return data[:4] == b"\x7fELF"


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
        kind, machine, *_ = _HEADER.unpack_from(data)
        headers, names = _section_headers(data)
        sections = tuple([_section(data, header, names) for header in headers])
        symbols = _symbols(data, headers, sections, _SYMBOL_TABLE) or _symbols(
            data, headers, sections, _DYNAMIC_SYMBOLS
        )
        return ElfFile(_MACHINES.get(machine, machine), kind == _RELOCATABLE, sections, symbols, data, headers)


@contextmanager
def damage_reported(file: str, what: str = "is a damaged ELF file", todo: str = "build it anew") -> Iterator[None]:
    """Report what the numbers of a damaged ELF file (offsets, indices) raise, here and in pyelftools, as an
    `AssemblyError`."""
    # readers trust what they read: entries that contradict one another make them stumble over their own values
    stumbled = (LookupError, ValueError, ArithmeticError, AssertionError, TypeError, AttributeError)
    try:
        yield
    except (*stumbled, struct.error, zlib.error) as error:
        raise AssemblyError(what, where=file, todo=todo) from error
    except Exception as error:
        if not type(error).__module__.startswith("elftools."):
            raise
        raise AssemblyError(what, where=file, todo=todo) from error


def machine_name(machine: str | int) -> str:
    """The architecture of an ELF machine, for messages."""
    from elftools.elf.descriptions import describe_e_machine
    from elftools.elf.enums import ENUM_E_MACHINE

    known = next((key for key, number in ENUM_E_MACHINE.items() if number == machine), machine)
    name = str(describe_e_machine(str(known)))
    return f"ELF machine {machine}" if name in ("<unknown>", "None") else name


def _section_headers(data: bytes) -> tuple[tuple[_Header, ...], _Header]:
    """The headers of all sections, and that of their names; counts that do not fit stand in the first one.

    Raises:
        ValueError: they reach beyond the end of the file.
    """
    *_, start, _, _, _, _, size, count, names = _HEADER.unpack_from(data)
    if not start:
        return (), _Header(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    first = _Header._make(_SECTION_HEADER.unpack_from(data, start))
    count, names = count or first.size, first.link if names == _IN_TABLE else names
    if size < _SECTION_HEADER.size or start + count * size > len(data):
        raise ValueError("the section headers cannot be read")
    headers = tuple([_Header._make(_SECTION_HEADER.unpack_from(data, start + k * size)) for k in range(count)])
    return headers, headers[names]


def _section(data: bytes, header: _Header, names: _Header) -> Section:
    """A section, with its bytes if it is code.

    Raises:
        ValueError: it reaches beyond the end of the file.
    """
    executable = bool(header.flags & _EXECUTABLE)
    content = _content(data, header) if executable and header.kind != _NO_BITS else b""
    return Section(_text(data, names, header.name), executable, header.address, content, max(header.alignment, 1))


def _content(data: bytes, header: _Header) -> bytes:
    """The bytes of a section.

    Raises:
        ValueError: it reaches beyond the end of the file, or is compressed (code and symbols never are).
    """
    if header.offset + header.size > len(data) or header.flags & _COMPRESSED:
        raise ValueError("a section cannot be read")
    return data[header.offset : header.offset + header.size]


def _text(data: bytes, table: _Header, place: int) -> str:
    """The text at a place of a table of strings."""
    start = table.offset + place
    return data[start : data.index(b"\0", start)].decode("utf-8", "replace") if table.size else ""


def _symbols(data: bytes, headers: tuple[_Header, ...], sections: tuple[Section, ...], kind: int) -> tuple[Symbol, ...]:
    """The symbols of the first symbol table of this kind; () without one."""
    table = next((header for header in headers if header.kind == kind), None)
    if table is None:
        return ()
    names, found = headers[table.link], []
    for name, info, _, section, value, size in _SYMBOL.iter_unpack(_content(data, table)):
        owner = section if 0 < section < min(len(sections), _RESERVED) else None
        text = _text(data, names, name) or ("" if owner is None else sections[owner].name)
        found.append(Symbol(text, value, size, owner, _SYMBOL_KINDS.get(info & 15, info & 15)))
    return tuple(found)


def relocations(elf: ElfFile, section: int) -> dict[int, Relocation]:
    """The relocations of section number `section` by the offset of the field that they fill."""
    found = {}
    for table in elf.headers:
        if table.kind == _RELOCATIONS and table.about == section:
            for offset, kind, symbol, addend in _RELOCATION.iter_unpack(_content(elf.raw, table)):
                found[offset] = Relocation(offset, kind, elf.symbols[symbol], addend)
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
    number = next((number for number, section in enumerate(elf.sections) if section.name == ".debug_line"), None)
    if number is None:
        return ()
    header = elf.headers[number]
    content = _content(elf.raw, header._replace(flags=0))
    if header.flags & _COMPRESSED:
        content = zlib.decompress(content[_COMPRESSION_HEADER_BYTES:])
    starts = iter([start for _, start in sorted(relocations(elf, number).items())])
    rows: set[LineRow] = set()
    place = 0
    while place < len(content):
        program = _LineProgram(content, place)
        rows.update(program.rows(starts))
        place = program.end
    if next(starts, None) is not None:
        raise ValueError("a line program has fewer starts than relocations")
    return tuple(sorted(rows))


class _LineProgram:
    """A line program from a place of its section to `end`, and the state of the machine that executes it.

    Raises:
        ValueError: its header contradicts itself, or is of a version that GNU as does not write for --gdwarf-3.
    """

    _EXTENDED, _COPY, _ADVANCE_PC, _ADVANCE_LINE, _CONST_ADD_PC, _FIXED_ADVANCE_PC = 0, 1, 2, 3, 8, 9
    _END_SEQUENCE, _SET_ADDRESS = 1, 2

    def __init__(self, content: bytes, start: int) -> None:
        length, version, size, self.step, _, self.line_base, self.line_range, self.opcode_base = (
            _PROGRAM_HEADER.unpack_from(content, start)
        )
        self.content = content
        self.end: int = start + 4 + length
        self.place: int = start + 10 + size
        operands = start + _PROGRAM_HEADER.size
        self.operands = content[operands : operands + self.opcode_base - 1]
        if version not in (2, 3) or not operands <= self.place <= self.end <= len(content) or not self.line_range:
            raise ValueError("a line program cannot be read")
        self.address, self.line = 0, 1

    def rows(self, starts: Iterator[Relocation]) -> Iterator[LineRow]:
        """The rows of the program, whose statements DW_LNE_set_address take `starts`, one after the other."""
        section = base = 0
        while self.place < self.end:
            opcode = self._byte()
            if opcode >= self.opcode_base:
                advance, line = divmod(opcode - self.opcode_base, self.line_range)
                self.address += advance * self.step
                self.line += self.line_base + line
                yield LineRow(section, base + self.address, self.line)
            elif opcode == self._COPY:
                yield LineRow(section, base + self.address, self.line)
            elif opcode == self._EXTENDED:
                if self._execute_extended():
                    start = next(starts, None)
                    if start is None:
                        raise ValueError("a line program has more starts than relocations")
                    section, base = start.symbol.section or 0, start.symbol.value + start.addend
            else:
                self._execute_standard(opcode)

    def _execute_extended(self) -> bool:
        """Execute an extended opcode; whether it sets the address."""
        size = self._unsigned()
        end = self.place + size
        opcode = self._byte()
        if opcode == self._END_SEQUENCE:
            self.address, self.line = 0, 1
        elif opcode == self._SET_ADDRESS:
            self.address = int.from_bytes(self.content[self.place : end], "little")
        if not size or end > self.end:
            raise ValueError("an extended opcode has no place")
        self.place = end
        return opcode == self._SET_ADDRESS

    def _execute_standard(self, opcode: int) -> None:
        if opcode == self._ADVANCE_PC:
            self.address += self._unsigned() * self.step
        elif opcode == self._ADVANCE_LINE:
            self.line += self._signed()
        elif opcode == self._CONST_ADD_PC:
            self.address += (255 - self.opcode_base) // self.line_range * self.step
        elif opcode == self._FIXED_ADVANCE_PC:
            self.address += int.from_bytes(self.content[self.place : self.place + 2], "little")
            self.place += 2
        else:
            for _ in range(self.operands[opcode - 1]):
                self._unsigned()

    def _byte(self) -> int:
        self.place += 1
        return self.content[self.place - 1]

    def _unsigned(self) -> int:
        """A number in LEB128."""
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def _signed(self) -> int:
        """A number in signed LEB128."""
        start = self.place
        value = self._unsigned()
        bits = 7 * (self.place - start)
        return value - (1 << bits) if value >> bits - 1 else value
