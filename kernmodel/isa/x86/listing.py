"""Reading x86-64 listings: text in, decoded `Listing` out.

A listing is assembled once by GNU as, so that every syntax, directive and expression means what it means to the
assembler, and decoded from the bytes. The line rows that as writes tie each instruction to its line of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from kernmodel.errors import AssemblyError
from kernmodel.isa.assembler import AssemblerTarget, assemble, check_length, has_statements, is_data, statements
from kernmodel.isa.elf import (
    LineRow,
    damage_reported,
    line_rows,
    read_elf,
)
from kernmodel.isa.model import Instruction, Listing
from kernmodel.isa.x86.decode import disassemble, translate
from kernmodel.isa.x86.image import CodeImage, code_image, read_image
from kernmodel.isa.x86.syntax import (
    Syntax,
    detect_syntax,
    for_assembler,
    is_masm,
    is_prefix,
    spelled_back,
)
from kernmodel.value_types import dataclass

ISA = "x86-64"
_NAMES: dict[Syntax, str] = {"att": "AT&T", "intel": "Intel"}
# a directive on the first line: with the equivalent options as refuses `fs:[40]`
_PREAMBLES: dict[Syntax, str] = {"att": "", "intel": ".intel_syntax noprefix; "}


def target(syntax: Syntax) -> AssemblerTarget:
    """What GNU as is told of a listing in a syntax."""
    return AssemblerTarget(
        isa_name=ISA,
        dialect=f"{ISA} assembly in {_NAMES[syntax]} syntax (--syntax chooses)",
        hosts=("x86_64", "amd64", "i686"),
        cross="x86_64-linux-gnu-as",
        options=("--64",),
        preamble=_PREAMBLES[syntax],
    )


def read_listing(text: str, file: str, syntax: str | None = None) -> Listing:
    """Assemble and decode an x86-64 listing; `file` names it in messages and results.

    Args:
        text: the listing, AT&T or Intel syntax (GNU, LLVM and MASM dialects; others as far as GNU as takes them).
        file: its name.
        syntax: "att" or "intel"; found by evidence if None.

    Raises:
        AssemblyError: no instructions, or a line that GNU as rejects.
        ToolError: no GNU as.
    """
    if not has_statements(text):
        raise AssemblyError("holds no instructions", where=file, todo="give an assembly listing of the loop")
    check_length(text, file)
    masm = is_masm(text)
    found: Syntax = "intel" if masm else detect_syntax(text)
    chosen = found if syntax is None else _known(syntax)
    given = _assemble_masm(text, file) if masm else _assemble(text, chosen, file)
    instructions = tuple(_instructions(given))
    if not instructions:
        todo = "give an assembly listing of the loop"
        raise AssemblyError("holds no code in its text sections", where=file, todo=todo)
    labels = sorted((symbol.address, symbol.name) for symbol in given.image.symbols)
    alignments = tuple((section.address, section.alignment) for section in given.image.sections)
    return Listing(file, ISA, chosen, instructions, tuple((name, address) for address, name in labels), alignments)


def machine_code(text: str, file: str, syntax: str | None = None) -> bytes:
    """The bytes of a listing's text section; arguments as of `read_listing`, GNU as takes the lines as they stand.

    Raises:
        AssemblyError: GNU as rejects a line.
        ToolError: no GNU as.
    """
    chosen = detect_syntax(text) if syntax is None else _known(syntax)
    image = read_image(assemble(text, target(chosen), file=file), file)
    return b"".join(section.data for section in image.sections if section.name == ".text")


def _known(syntax: str) -> Syntax:
    return "att" if syntax == "att" else "intel"


@dataclass(frozen=True, slots=True)
class _Assembled:
    """A listing's code, its rows and lines, the lines as the assembler got them, and whether `;` begins comments."""

    image: CodeImage
    rows: tuple[LineRow, ...]
    lines: list[str]
    given: list[str]
    semicolon_comments: bool


def _assemble(text: str, syntax: Syntax, file: str) -> _Assembled:
    """Assemble a listing; `;` separates statements, or in Intel syntax, where that is rejected, begins comments."""
    try:
        return _assemble_as(text, syntax, file, semicolon_comments=False)
    except AssemblyError:
        if syntax == "att" or ";" not in text:
            raise
    return _assemble_as(text, syntax, file, semicolon_comments=True)


def _assemble_as(text: str, syntax: Syntax, file: str, *, semicolon_comments: bool) -> _Assembled:
    """Assemble a GNU or LLVM listing."""
    source = for_assembler(text, semicolon_comments=semicolon_comments)
    return _assembled(source, text, syntax, file, semicolon_comments=semicolon_comments)


def _assemble_masm(text: str, file: str) -> _Assembled:
    """Assemble a MASM listing."""
    from kernmodel.isa.x86.masm import from_masm

    source = "\n".join(from_masm(text)) + "\n"
    return _assembled(source, text, "intel", file, semicolon_comments=True)


def _assembled(source: str, text: str, syntax: Syntax, file: str, *, semicolon_comments: bool) -> _Assembled:
    """Assemble `source`, which is `text` in the form that GNU as reads."""
    elf = read_elf(assemble(source, target(syntax), file=file), file)
    if not source.isascii():
        elf = replace(elf, symbols=tuple(replace(symbol, name=spelled_back(symbol.name)) for symbol in elf.symbols))
    with damage_reported(file, "has debugging sections that hide its lines", todo="leave them out"):
        rows = line_rows(elf)
    image = code_image(elf)
    image.refuse_large(file, "give the listing of the loop alone")
    return _Assembled(image, rows, text.splitlines(), source.splitlines(), semicolon_comments)


def _instructions(code: _Assembled) -> Iterator[Instruction]:
    """The instructions of an assembled listing, each with its text and line."""
    image = code.image
    for section in image.layout:
        # the last of several rows at one address is the instruction's: the others stand for statements without bytes
        starts = {row.address: row for row in code.rows if row.section == section}
        bounds = _bounds(code, starts)
        ends = [*bounds[1:], len(image.elf.sections[section].data)]
        for start, end in zip(bounds, ends, strict=True):
            row = starts.get(start, LineRow(section, start, 0))
            following = starts[end].line if end in starts else len(code.lines) + 1
            yield from _row_instructions(code, row, end, following)


def _bounds(code: _Assembled, starts: dict[int, LineRow]) -> list[int]:
    """The offsets at which decoding starts anew: those of the rows, but not after a prefix alone on its line."""
    bounds = sorted({0, *starts})
    joined = {
        following
        for start, following in pairwise(bounds)
        if start in starts and is_prefix(statements(code.lines[starts[start].line - 1], code.semicolon_comments))
    }
    return [start for start in bounds if start not in joined]


def _row_instructions(code: _Assembled, row: LineRow, end: int, following: int) -> Iterator[Instruction]:
    """The instructions of one row, which ends at offset `end`, and of the data directives up to line `following`."""
    line = code.lines[row.line - 1] if row.line else ""
    decoded = list(code.image.decode(row.section, row.address, end, line))
    texts = [" ".join(text.split()) for text in statements(line, code.semicolon_comments) if not text.startswith(".")]
    if is_prefix(tuple(texts)):  # its instruction is on the next line
        texts = []
    elif len(decoded) < len(texts):  # `rep; movsb` is one instruction
        texts = ["; ".join(texts)]
    data = [number for number in range(row.line + 1, following) if is_data(code.given[number - 1])]
    for count, (item, encoding, fixup) in enumerate(decoded):
        if count < len(texts):
            yield translate(item, encoding, texts[count], row.line, fixup)
        else:
            number = data[min(count - len(texts), len(data) - 1)] if data else row.line
            yield translate(item, encoding, disassemble(item, fixup), number, fixup)
