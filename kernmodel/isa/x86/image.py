"""The code of one ELF file, laid out and with its relocations resolved: what decoding runs over."""

from __future__ import annotations

import re
from collections.abc import Iterator

import iced_x86 as iced
from iced_x86 import Register

from kernmodel.errors import AssemblyError
from kernmodel.isa.elf import (
    SYMBOL_FILE,
    SYMBOL_FUNCTION,
    SYMBOL_SECTION,
    ElfFile,
    Relocation,
    Symbol,
    damage_reported,
    machine_name,
    read_elf,
    relocations,
)
from kernmodel.isa.model import Encoding, Instruction
from kernmodel.isa.protocol import CodeSection, CodeSymbol, ObjectCode
from kernmodel.isa.x86.decode import Fixup, decode_raw, disassemble, translate
from kernmodel.value_types import dataclass

_MACHINE = "EM_X86_64"
_PC_RELATIVE = {
    2: "",
    4: "",
    9: "@GOTPCREL",
    15: "",
    19: "@TLSGD",
    20: "@TLSLD",
    22: "@GOTTPOFF",
    24: "",
    41: "@GOTPCREL",
    42: "@GOTPCREL",
}
"""Kinds R_X86_64_* of fields that count from the end of the instruction: what they mean of the symbol (psABI 4.4)."""
_ABSOLUTE = {1: "", 3: "@GOT", 10: "", 11: "", 14: "", 21: "@DTPOFF", 23: "@TPOFF", 25: "@GOTOFF"}
"""The same for fields that hold the address itself or an offset to some base."""


_PAGE = 4096
"""Bytes: loaders move linked code by whole pages."""


@dataclass(frozen=True, slots=True)
class CodeImage(ObjectCode):
    """Code sections by number with their address, the fields that relocations fill, the named symbols by section."""

    elf: ElfFile
    layout: dict[int, int]
    fields: dict[int, dict[int, Relocation]]
    named: dict[int, list[Symbol]]

    @property
    def sections(self) -> tuple[CodeSection, ...]:
        """The sections that hold code."""
        every = self.elf.sections
        return tuple(
            CodeSection(n, every[n].name, base, every[n].data, every[n].alignment if self.elf.relocatable else _PAGE)
            for n, base in self.layout.items()
        )

    @property
    def symbols(self) -> tuple[CodeSymbol, ...]:
        """The names of places in the code."""
        return tuple(
            CodeSymbol(symbol.name, number, self.address(symbol), symbol.size, symbol.kind == SYMBOL_FUNCTION)
            for number in self.layout
            for symbol in self.named.get(number, ())
        )

    def instructions(self, section: CodeSection, first: int, end: int) -> Iterator[Instruction]:
        """The instructions at addresses `first` up to `end` of a section."""
        for item, encoding, fixup in self.decode(section.number, first - section.address, end - section.address):
            yield translate(item, encoding, disassemble(item, fixup), 0, fixup)

    def address(self, symbol: Symbol) -> int:
        """The address of a symbol of a code section."""
        return symbol.value + (self.layout[symbol.section] if self.elf.relocatable and symbol.section else 0)

    def decode(
        self, section: int, start: int, end: int, text: str = ""
    ) -> Iterator[tuple[iced.Instruction, Encoding, Fixup | None]]:
        """Decode offsets `start` to `end` of a section; `text`, the line it came from, names the symbols meant."""
        base = self.layout[section]
        code = self.elf.sections[section].data[start:end]
        for item, encoding in decode_raw(code, base + start):
            yield item, encoding, self._fixup(section, item, encoding, text)

    def _fixup(self, section: int, item: iced.Instruction, encoding: Encoding, text: str) -> Fixup | None:
        """What fills a field of the instruction, if anything does."""
        fields = self.fields.get(section)
        if not fields:
            return None if self.elf.relocatable else self._linked_data(item)
        start = item.ip - self.layout[section]
        for present, offset, in_displacement in (
            (encoding.displacement_bytes, encoding.displacement_offset, True),
            (encoding.immediate_bytes, encoding.immediate_offset, False),
        ):
            field = fields.get(start + offset) if present else None
            if field is not None:
                return self._resolve(field, start + item.len, in_displacement, text)
        return None

    def _resolve(self, field: Relocation, end: int, in_displacement: bool, text: str) -> Fixup:
        """The symbol and offset that `field` of an instruction ending at offset `end` of its section refers to."""
        relative = field.kind in _PC_RELATIVE
        suffix = _PC_RELATIVE[field.kind] if relative else _ABSOLUTE.get(field.kind, "")
        symbol = field.symbol
        offset = field.addend + (end - field.offset if relative else 0)
        if symbol.section in self.layout and not suffix:
            target = self.address(symbol) + offset
            return Fixup(None, target, in_displacement, target)
        if symbol.kind == SYMBOL_SECTION and symbol.section is not None:
            symbol, offset = self._symbol_of(symbol, offset, text)
        return Fixup(symbol.name + suffix, offset, in_displacement, None)

    def _symbol_of(self, section: Symbol, offset: int, text: str) -> tuple[Symbol, int]:
        """The symbol meant by an offset in a section: the one that `text` names, else the nearest one below."""
        candidates = self.named.get(section.section or 0, [])
        words = set(re.findall(r"[\w.$@]+", text))
        meant = [symbol for symbol in candidates if symbol.name in words]
        below = meant or [symbol for symbol in candidates if symbol.value <= offset]
        return (below[-1], offset - below[-1].value) if below else (section, offset)

    def _linked_data(self, item: iced.Instruction) -> Fixup | None:
        """The data symbol at an address that a linked file has in its instruction."""
        if not item.is_ip_rel_memory_operand and (item.memory_base != Register.NONE or not item.memory_displacement):
            return None
        address = item.memory_displacement
        for number, symbols in self.named.items():
            if number not in self.layout:
                for symbol in symbols:
                    if symbol.value <= address < symbol.value + symbol.size:
                        return Fixup(symbol.name, address - symbol.value, True, None)
        return None


def read_image(data: bytes, file: str) -> CodeImage:
    """The code of an x86-64 ELF file; `file` names it in messages.

    Raises:
        AssemblyError: not ELF, damaged, or of another architecture.
    """
    elf = read_elf(data, file)
    if elf.machine != _MACHINE:
        todo = "use a machine of that architecture"
        raise AssemblyError(f"holds {machine_name(elf.machine)} code, not x86-64", where=file, todo=todo)
    with damage_reported(file):
        return code_image(elf)


def code_image(elf: ElfFile) -> CodeImage:
    """Lay out the code sections of an ELF file: at their own addresses, or one after the other in relocatable files."""
    layout: dict[int, int] = {}
    end = 0
    for number, section in enumerate(elf.sections):
        if section.executable and section.data:
            layout[number] = -(-end // section.alignment) * section.alignment if elf.relocatable else section.address
            end = layout[number] + len(section.data)
    named: dict[int, list[Symbol]] = {}
    for symbol in elf.symbols:
        if symbol.section is not None and symbol.name and symbol.kind not in (SYMBOL_SECTION, SYMBOL_FILE):
            named.setdefault(symbol.section, []).append(symbol)
    for symbols in named.values():
        symbols.sort(key=lambda symbol: symbol.value)
    return CodeImage(elf, layout, {number: relocations(elf, number) for number in layout}, named)
