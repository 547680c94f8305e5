"""AArch64 machine code: capstone prints it, the grammar reads what it prints; ELF files with their relocations.

Operand roles are taken from the table of `roles`, not from capstone, so that text and machine code cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from kernmodel.errors import AssemblyError, ToolError
from kernmodel.isa.aarch64.grammar import Address, NotReadError, Part, Statement, parse
from kernmodel.isa.aarch64.instructions import LENGTH, WANTS_LENGTH, Context, LengthNotKnownError, instruction_of
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
from kernmodel.isa.model import Instruction
from kernmodel.isa.protocol import CodeSection, CodeSymbol, ObjectCode
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    import capstone

_MACHINE = "EM_AARCH64"
_BRANCHES = frozenset({279, 280, 282, 283})
"""R_AARCH64_TSTBR14, CONDBR19, JUMP26, CALL26 (ELF for the Arm 64-bit Architecture, 5.7.6)."""


@cache
def _disassembler() -> capstone.Cs:
    """capstone, from version 6 on: 5 prints another syntax and lacks instructions of SVE.

    Raises:
        ToolError: it is not installed, or older.
    """
    try:
        import capstone
    except ImportError as error:
        raise ToolError(
            "capstone is not installed", todo="pip install 'capstone>=6.0.0a11,<7', or give a listing"
        ) from error
    if capstone.version_bind()[0] < 6:
        raise ToolError(
            "capstone is older than version 6", todo="pip install 'capstone>=6.0.0a11,<7', or give a listing"
        )
    return capstone.Cs(capstone.CS_ARCH_AARCH64, capstone.CS_MODE_LITTLE_ENDIAN)


def decode(code: bytes, address: int, context: Context) -> Iterator[Instruction]:
    """The instructions of machine code; words that are none are passed over."""
    for place, text in _disassembled(code, address):
        try:
            statement = parse(text)
        except NotReadError:
            continue
        yield _instruction(statement, text, place, context, _absolute)


def _instruction(
    statement: Statement, text: str, place: int, context: Context, target: Callable[[Part], int | None]
) -> Instruction:
    try:
        return instruction_of(statement, text, 0, place, context, target)
    except LengthNotKnownError as error:
        raise AssemblyError(f"{text!r} at address {place:#x} {error}", todo=WANTS_LENGTH) from None


def text_of(code: bytes) -> str:
    """The instruction that four bytes are, "" if they are none."""
    return next((text for _, text in _disassembled(code, 0)), "")


def _absolute(part: Part) -> int | None:
    return part.number


def _disassembled(code: bytes, address: int) -> Iterator[tuple[int, str]]:
    machine = _disassembler()
    for start in range(0, len(code) - LENGTH + 1, LENGTH):
        found = next(machine.disasm_lite(code[start : start + LENGTH], address + start, 1), None)
        if found is not None:
            yield address + start, f"{found[2]} {found[3]}".strip()


@dataclass(frozen=True, slots=True)
class CodeImage(ObjectCode):
    """Code sections by number with their address, the fields that relocations fill, the named symbols by section."""

    elf: ElfFile
    layout: dict[int, int]
    fields: dict[int, dict[int, Relocation]]
    named: dict[int, list[Symbol]]
    context: Context

    @property
    def sections(self) -> tuple[CodeSection, ...]:
        """The sections that hold code."""
        every = self.elf.sections
        return tuple(CodeSection(n, every[n].name, base, every[n].data) for n, base in self.layout.items())

    @property
    def symbols(self) -> tuple[CodeSymbol, ...]:
        """The names of places in the code."""
        return tuple(
            CodeSymbol(symbol.name, number, self._address(symbol), symbol.size, symbol.kind == SYMBOL_FUNCTION)
            for number in self.layout
            for symbol in self.named.get(number, ())
        )

    def instructions(self, section: CodeSection, first: int, end: int) -> Iterator[Instruction]:
        """The instructions at addresses `first` up to `end` of a section."""
        fields = self.fields.get(section.number, {})
        code = section.data[first - section.address : end - section.address]
        for place, text in _disassembled(code, first):
            field = fields.get(place - section.address)
            try:
                statement = parse(text)
            except NotReadError:
                continue
            statement = statement if field is None else _with_symbol(statement, field.symbol)
            target = None if field is None else self._target(field)

            def aimed(part: Part, relocated: bool = field is not None, target: int | None = target) -> int | None:
                return target if relocated else part.number

            yield _instruction(statement, text, place, self.context, aimed)

    def _address(self, symbol: Symbol) -> int:
        return symbol.value + (self.layout[symbol.section] if self.elf.relocatable and symbol.section else 0)

    def _target(self, field: Relocation) -> int | None:
        inside = field.kind in _BRANCHES and field.symbol.section in self.layout
        return self._address(field.symbol) + field.addend if inside else None


def _with_symbol(statement: Statement, symbol: Symbol) -> Statement:
    """The statement with the symbol that a relocation puts in place of its constant."""
    parts = tuple(
        part._replace(address=part.address._replace(symbol=symbol.name), kind=_displaced(part))
        if part.address is not None
        else part._replace(symbol=symbol.name, number=None)
        if part.kind == "label"
        else part
        for part in statement.parts
    )
    return statement._replace(parts=parts)


def _displaced(part: Part) -> str:
    plain: Address | None = part.address
    return "[x,#imm]" if plain is not None and part.kind == "[x]" else part.kind


def read_image(data: bytes, file: str, context: Context) -> CodeImage:
    """The code of an AArch64 ELF file; `file` names it in messages.

    Raises:
        AssemblyError: not ELF, damaged, or of another architecture.
        ToolError: no capstone.
    """
    elf = read_elf(data, file)
    if elf.machine != _MACHINE:
        todo = "use a machine of that architecture"
        raise AssemblyError(f"holds {machine_name(elf.machine)} code, not AArch64", where=file, todo=todo)
    with damage_reported(file):
        layout: dict[int, int] = {}
        end = 0
        for number, section in enumerate(elf.sections):
            if section.executable and section.data:
                layout[number] = (
                    -(-end // section.alignment) * section.alignment if elf.relocatable else section.address
                )
                end = layout[number] + len(section.data)
        named: dict[int, list[Symbol]] = {}
        for symbol in elf.symbols:
            plain = symbol.kind not in (SYMBOL_SECTION, SYMBOL_FILE) and not symbol.name.startswith(("$x", "$d"))
            if symbol.section is not None and symbol.name and plain:
                named.setdefault(symbol.section, []).append(symbol)
        for symbols in named.values():
            symbols.sort(key=lambda symbol: symbol.value)
        return CodeImage(elf, layout, {number: relocations(elf, number) for number in layout}, named, context)
