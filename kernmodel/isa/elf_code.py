"""The code of one ELF file, laid out and with its relocations at hand: what decoding runs over."""

from __future__ import annotations

from collections.abc import Callable

from kernmodel.errors import AssemblyError
from kernmodel.isa.elf import (
    SYMBOL_FILE,
    SYMBOL_FUNCTION,
    SYMBOL_SECTION,
    ElfFile,
    Relocation,
    Symbol,
    machine_name,
    read_elf,
    relocations,
)
from kernmodel.isa.protocol import CodeSection, CodeSymbol, ObjectCode
from kernmodel.value_types import dataclass

_PAGE = 4096
"""Bytes: loaders move linked code by whole pages."""


@dataclass(frozen=True, slots=True)
class ElfCode(ObjectCode):
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

    def address(self, symbol: Symbol) -> int:
        """The address of a symbol of a code section."""
        return symbol.value + (self.layout[symbol.section] if self.elf.relocatable and symbol.section else 0)


_Fields = tuple[ElfFile, dict[int, int], dict[int, dict[int, Relocation]], dict[int, list[Symbol]]]


def read_code(data: bytes, file: str, machine: str, isa: str) -> ElfFile:
    """Read an ELF file of instruction set `isa`, `machine` in its header; `file` names it in messages.

    Raises:
        AssemblyError: not ELF, damaged, or of another architecture.
    """
    elf = read_elf(data, file)
    if elf.machine != machine:
        todo = "use a machine of that architecture"
        raise AssemblyError(f"holds {machine_name(elf.machine)} code, not {isa}", where=file, todo=todo)
    return elf


def laid_out(elf: ElfFile, is_name: Callable[[str], bool] = bool) -> _Fields:
    """The fields of a file's `ElfCode`: sections at their own addresses, or one after the other in relocatable files;
    symbols by ascending value, those alone whose name `is_name` says to be one."""
    layout: dict[int, int] = {}
    end = 0
    for number, section in enumerate(elf.sections):
        if section.executable and section.data:
            layout[number] = -(-end // section.alignment) * section.alignment if elf.relocatable else section.address
            end = layout[number] + len(section.data)
    named: dict[int, list[Symbol]] = {}
    for symbol in sorted(elf.symbols, key=lambda symbol: symbol.value):
        plain = symbol.kind not in (SYMBOL_SECTION, SYMBOL_FILE)
        if symbol.section is not None and plain and is_name(symbol.name):
            named.setdefault(symbol.section, []).append(symbol)
    return elf, layout, {number: relocations(elf, number) for number in layout}, named
