"""The code of one ELF file, laid out and with its relocations resolved: what decoding runs over."""

from __future__ import annotations

import re
from collections.abc import Iterator

import iced_x86 as iced
from iced_x86 import Register

from kernmodel.isa.elf import SYMBOL_SECTION, ElfFile, Relocation, Symbol, damage_reported
from kernmodel.isa.elf_code import ElfCode, laid_out, read_code
from kernmodel.isa.model import Encoding, Instruction
from kernmodel.isa.protocol import CodeSection
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


@dataclass(frozen=True, slots=True)
class CodeImage(ElfCode):
    """The code of an x86-64 file."""

    def instructions(self, section: CodeSection, first: int, end: int) -> Iterator[Instruction]:
        """The instructions at addresses `first` up to `end` of a section."""
        for item, encoding, fixup in self.decode(section.number, first - section.address, end - section.address):
            yield translate(item, encoding, disassemble(item, fixup), 0, fixup)

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
    elf = read_code(data, file, _MACHINE, "x86-64")
    with damage_reported(file):
        return code_image(elf)


def code_image(elf: ElfFile) -> CodeImage:
    """Lay out the code sections of an ELF file."""
    return CodeImage(*laid_out(elf))
