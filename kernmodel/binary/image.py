"""A binary as it lies in its file: code with its symbols, the data beside it, and the names of what it imports."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kernmodel import isa, user_files
from kernmodel.errors import AssemblyError
from kernmodel.isa.elf import damage_reported, is_elf
from kernmodel.limits import CODE_BYTES
from kernmodel.value_types import NamedTuple, dataclass

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section as RawSection

    from kernmodel.isa.linear import Linear
    from kernmodel.isa.protocol import CodeSection, CodeSymbol, Isa, ObjectCode

Kind = Literal["object", "executable", "position-independent"]
_KINDS: dict[str, Kind] = {"ET_REL": "object", "ET_EXEC": "executable", "ET_DYN": "position-independent"}
_STUB = 4
"""Instructions of a stub of the procedure linkage table up to its jump, at most."""


class Place(NamedTuple):
    """A place in a section of the file: its number and the offset in it."""

    section: int
    offset: int


@dataclass
class Binary:
    """An ELF file of a known instruction set.

    Attributes:
        file: as the user named it; data: its bytes; code: its sections of code.
    """

    file: str
    data: bytes
    isa: Isa
    code: ObjectCode
    raw: ELFFile = field(repr=False)

    @cached_property
    def kind(self) -> Kind:
        """Whether it is an object, an executable at fixed addresses, or can be loaded anywhere."""
        return _KINDS.get(str(self.raw["e_type"]), "object")

    @cached_property
    def functions(self) -> tuple[CodeSymbol, ...]:
        """Symbols of functions, by section and address; those that assembly gave no type too."""
        return tuple(symbol for symbol in self.code.symbols if symbol.name)

    @cached_property
    def names(self) -> dict[int, str]:
        """Names of functions by address; of several at one place the first that has a size."""
        found: dict[int, str] = {}
        for symbol in sorted(self.functions, key=lambda one: (not one.is_function, not one.size)):
            found.setdefault(symbol.address, symbol.name)
        return found

    def section_at(self, address: int) -> CodeSection | None:
        """The section of code that an address is in."""
        inside = (one for one in self.code.sections if one.address <= address < one.address + len(one.data))
        return next(inside, None)

    @cached_property
    def _sections(self) -> tuple[RawSection, ...]:
        return tuple(self.raw.iter_sections())

    def place_of(self, value: Linear) -> Place | None:
        """Where a constant address points to: an address in a linked file, a symbol plus an offset in an object."""
        names = [name for name, _ in value.terms]
        if self.kind != "object":
            return None if names else self._place_at(value.constant)
        if len(names) != 1 or not names[0].startswith("&") or value.terms[0][1] != 1:
            return None
        if names[0].startswith("&.") and not self.isa.registers.program_counter:
            return None  # the offset in the section is in a relocation of another instruction
        return self._place_of_symbol(names[0][1:], value.constant)

    def _place_at(self, address: int) -> Place | None:
        for number, section in enumerate(self._sections):
            if section["sh_addr"] and section["sh_addr"] <= address < section["sh_addr"] + section["sh_size"]:
                return Place(number, address - section["sh_addr"])
        return None

    def _place_of_symbol(self, name: str, offset: int) -> Place | None:
        for number, section in enumerate(self._sections):
            if section.name == name:
                return Place(number, offset)
        from elftools.elf.sections import SymbolTableSection

        table = self.raw.get_section_by_name(".symtab")
        for symbol in (table.get_symbol_by_name(name) or ()) if isinstance(table, SymbolTableSection) else ():
            if isinstance(symbol["st_shndx"], int):
                return Place(symbol["st_shndx"], symbol["st_value"] + offset)
        return None

    def bytes_at(self, place: Place, count: int) -> bytes:
        """Bytes of the file; fewer where the section ends."""
        section = self._sections[place.section]
        if section["sh_type"] == "SHT_NOBITS" or not 0 <= place.offset < section["sh_size"]:
            return b""
        start = section["sh_offset"] + place.offset
        return self.data[start : min(start + count, section["sh_offset"] + section["sh_size"])]

    def relocated(self, place: Place) -> int | None:
        """The address of code that a relocation puts at a place of an object, None without one."""
        return self._relocations(place.section).get(place.offset)

    def _relocations(self, section: int) -> dict[int, int]:
        if section not in self._relocated:
            from kernmodel.isa.elf import read_elf, relocations

            elf = read_elf(self.data, self.file)
            bases = {one.number: one.address for one in self.code.sections}
            self._relocated[section] = {
                offset: bases[one.symbol.section] + one.symbol.value + one.addend
                for offset, one in relocations(elf, section).items()
                if one.symbol.section in bases
            }
        return self._relocated[section]

    @cached_property
    def _relocated(self) -> dict[int, dict[int, int]]:
        return {}

    def called(self, address: int) -> str:
        """The name of the function at an address, that of an imported one where a stub stands there; "" if unknown."""
        return self.names.get(address) or self._imports.get(self._slot(address), "")

    def imported(self, slot: int) -> str:
        """The imported function whose address the loader puts at this address; "" if unknown."""
        return self._imports.get(slot, "")

    @cached_property
    def _imports(self) -> dict[int, str]:
        """Names of imported functions by the address of the word that holds theirs."""
        from elftools.elf.relocation import RelocationSection
        from elftools.elf.sections import SymbolTableSection

        found: dict[int, str] = {}
        if self.kind == "object":
            return found
        for table in self._sections:
            if isinstance(table, RelocationSection) and table["sh_type"] == "SHT_RELA":
                symbols = self.raw.get_section(table["sh_link"])
                if not isinstance(symbols, SymbolTableSection):
                    continue
                for one in table.iter_relocations():
                    if one["r_info_sym"]:
                        found[one["r_offset"]] = symbols.get_symbol(one["r_info_sym"]).name
        return found

    def _slot(self, address: int) -> int:
        """The word through which a stub of the procedure linkage table jumps, 0 where there is no such stub."""
        section = self.section_at(address)
        if section is None or not section.name.startswith(".plt"):
            return 0
        held: dict[str, Linear] = {}
        first = 0
        end = section.address + len(section.data)
        for number, item in enumerate(self.code.instructions(section, address, end)):
            effect = self.isa.effect(item, held.get, lambda _: None)
            known = [one.constant for one in effect.addresses if one is not None and not one.terms]
            read = [one for one, reference in zip(known, item.memory, strict=False) if reference.read]
            first = first or (read[0] if read else 0)
            held.update(effect.registers)
            if item.branch is not None or number >= _STUB:
                break
        return first


def read_binary(path: Path | str, isa_name: str | None = None) -> Binary:
    """Read an ELF executable, shared library or object.

    Args:
        path: of the file.
        isa_name: the instruction set that it has to be of; None: the one that its header names.

    Raises:
        AssemblyError: missing, no ELF file, damaged, of another instruction set or one that cannot be read.
    """
    file = str(path)
    data = user_files.read_file(path, "an executable, a shared library or an object", CODE_BYTES, error=AssemblyError)
    if not is_elf(data):
        script = data[:2] == b"#!"
        todo = "give the program that it runs" if script else "give an executable, a shared library or an object file"
        raise AssemblyError("is a script" if script else "is no ELF file", where=file, todo=todo)
    found = isa.isa_of(isa_name or isa.of_object(data))
    code = found.read_object(data, file)
    with damage_reported(file):
        from elftools.elf.elffile import ELFFile

        return Binary(file, data, found, code, ELFFile(BytesIO(data)))
