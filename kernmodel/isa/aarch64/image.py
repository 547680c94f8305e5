"""AArch64 machine code: capstone prints it, the grammar reads what it prints; ELF files with their relocations.

Operand roles are taken from the table of `roles`, not from capstone, so that text and machine code cannot differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from kernmodel.errors import AssemblyError, ToolError
from kernmodel.isa.aarch64.grammar import Address, NotReadError, Part, Statement, parse, unread
from kernmodel.isa.aarch64.instructions import LENGTH, WANTS_LENGTH, Context, LengthNotKnownError, instruction_of
from kernmodel.isa.elf import Relocation, Symbol, damage_reported
from kernmodel.isa.elf_code import ElfCode, laid_out, read_code
from kernmodel.isa.model import Instruction
from kernmodel.isa.protocol import CodeSection
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
        yield _instruction(_read(text), text, place, context, _absolute)


def _instruction(
    statement: Statement, text: str, place: int, context: Context, target: Callable[[Part], int | None]
) -> Instruction:
    try:
        return instruction_of(statement, text, 0, place, context, target)
    except LengthNotKnownError as error:
        raise AssemblyError(f"{text!r} at address {place:#x} {error}", todo=WANTS_LENGTH) from None


def _read(text: str) -> Statement:
    """The statement that the disassembler prints; where it is not read, one that has no row and so is warned of."""
    try:
        return parse(text)
    except NotReadError:
        return unread(text)


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
class CodeImage(ElfCode):
    """The code of an AArch64 file, and in which context it is read."""

    context: Context

    def instructions(self, section: CodeSection, first: int, end: int) -> Iterator[Instruction]:
        """The instructions at addresses `first` up to `end` of a section."""
        fields = self.fields.get(section.number, {})
        code = section.data[first - section.address : end - section.address]
        for place, text in _disassembled(code, first):
            field = fields.get(place - section.address)
            statement = _read(text)
            statement = statement if field is None else _with_symbol(statement, field.symbol)
            target = None if field is None else self._target(field)

            def aimed(part: Part, relocated: bool = field is not None, target: int | None = target) -> int | None:
                return target if relocated else part.number

            yield _instruction(statement, text, place, self.context, aimed)

    def _target(self, field: Relocation) -> int | None:
        inside = field.kind in _BRANCHES and field.symbol.section in self.layout
        return self.address(field.symbol) + field.addend if inside else None


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
    elf = read_code(data, file, _MACHINE, "AArch64")
    with damage_reported(file):
        return CodeImage(*laid_out(elf, _is_name), context)


def _is_name(name: str) -> bool:
    """Whether it names something, unlike mapping symbols, which say where code and where data begin."""
    return bool(name) and not name.startswith(("$x", "$d"))
