"""Reading listings and objects: text or ELF file in, decoded `Listing` out.

A listing is assembled once by GNU as, so that every syntax, directive and expression means what it means to the
assembler, and decoded from the bytes. The line rows that as writes tie each instruction to its line of the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from kernmodel import user_files
from kernmodel.assembly.assembler import assemble
from kernmodel.assembly.decode import disassemble, translate
from kernmodel.assembly.elf import (
    SYMBOL_FUNCTION,
    LineRow,
    damage_reported,
    is_elf,
    line_rows,
    load_reader,
    read_elf,
)
from kernmodel.assembly.image import CodeImage, code_image, read_image
from kernmodel.assembly.masm import from_masm, is_masm, spelled_back
from kernmodel.assembly.model import Instruction, Listing
from kernmodel.assembly.repetition import check_length
from kernmodel.assembly.syntax import (
    Syntax,
    detect_syntax,
    for_assembler,
    has_statements,
    is_data,
    is_prefix,
    looks_like_aarch64,
    statements,
)
from kernmodel.errors import AssemblyError
from kernmodel.limits import CODE_BYTES, DECODED_BYTES, TEXT_BYTES

ISA = "x86-64"


def read_file(path: Path | str, *, syntax: Syntax | None = None, function: str | None = None) -> tuple[Listing, str]:
    """The decoded contents of a listing or an ELF file, and the text of the listing ("" for an ELF file).

    Args:
        path: assembly text, an object or an executable; "-" is the standard input.
        syntax: of a listing; found by evidence if None.
        function: decode only this function (ELF files).

    Raises:
        AssemblyError: missing, empty, neither text nor ELF, another architecture, or rejected by the assembler.
        ToolError: no GNU as.
    """
    file = "<standard input>" if str(path) == "-" else str(path)
    data = _file_bytes(path)
    if is_elf(data):
        return decode_elf(data, file, function=function), ""
    if TEXT_BYTES.exceeded(len(data)):
        todo = TEXT_BYTES.todo("give the listing of the loop alone")
        raise AssemblyError(f"is larger than {TEXT_BYTES.text}", where=file, todo=todo)
    text = _as_text(data, file)
    return read_listing(text, file, syntax=syntax), text


def read_object(path: Path, function: str | None = None) -> Listing:
    """The decoded code of an ELF object or executable, or of one `function` in it.

    Raises:
        AssemblyError: missing, not ELF, not x86-64, no such function, or too large without naming a function.
    """
    return decode_elf(_file_bytes(path), str(path), function=function)


def _file_bytes(path: Path | str) -> bytes:
    """The contents of a file of the user."""
    return user_files.read_file(path, "an assembly listing", CODE_BYTES, error=AssemblyError)


def _as_text(data: bytes, file: str) -> str:
    """`data` as text; stray bytes of other encodings (in comments, strings) are kept as they are."""
    if b"\0" in data:
        todo = "give assembly text, or an ELF object or executable"
        raise AssemblyError("is a binary file, not assembly text", where=file, todo=todo)
    return data.decode("utf-8", "surrogateescape")


def read_listing(text: str, file: str, *, syntax: Syntax | None = None) -> Listing:
    """Assemble and decode an x86-64 listing; `file` names it in messages and results.

    Args:
        text: the listing, AT&T or Intel syntax (GNU, LLVM and MASM dialects; others as far as GNU as takes them).
        file: its name.
        syntax: "att" or "intel"; found by evidence if None.

    Raises:
        AssemblyError: no instructions, AArch64 code, or a line that GNU as rejects.
        ToolError: no GNU as.
    """
    if not has_statements(text):
        raise AssemblyError("holds no instructions", where=file, todo="give an assembly listing of the loop")
    if looks_like_aarch64(text):
        todo = "use a machine of that architecture"
        raise AssemblyError("looks like AArch64 assembly, not x86-64", where=file, todo=todo)
    check_length(text, file)
    masm = is_masm(text)
    chosen = syntax or ("intel" if masm else detect_syntax(text))
    given = _assemble_masm(text, file) if masm else _assemble(text, chosen, file)
    instructions = tuple(_instructions(given))
    if not instructions:
        todo = "give an assembly listing of the loop"
        raise AssemblyError("holds no code in its text sections", where=file, todo=todo)
    return Listing(file, ISA, chosen, instructions, given.image.labels)


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
    source = "\n".join(from_masm(text)) + "\n"
    return _assembled(source, text, "intel", file, semicolon_comments=True)


def _assembled(source: str, text: str, syntax: Syntax, file: str, *, semicolon_comments: bool) -> _Assembled:
    """Assemble `source`, which is `text` in the form that GNU as reads."""
    elf = read_elf(assemble(source, syntax=syntax, file=file, meanwhile=load_reader), file)
    if not source.isascii():
        elf = replace(elf, symbols=tuple(replace(symbol, name=spelled_back(symbol.name)) for symbol in elf.symbols))
    with damage_reported(file, "has debugging sections that hide its lines", todo="leave them out"):
        rows = line_rows(elf)
    image = code_image(elf)
    _check_code(image, file, "give the listing of the loop alone")
    return _Assembled(image, rows, text.splitlines(), source.splitlines(), semicolon_comments)


def decode_elf(data: bytes, file: str, *, function: str | None = None) -> Listing:
    """Decode the code sections of an ELF file, or one function of it.

    Raises:
        AssemblyError: not ELF, damaged, not x86-64, no code, no such function, or too large without naming a function.
    """
    image = read_image(data, file)
    with damage_reported(file):
        instructions = tuple(
            translate(item, encoding, disassemble(item, fixup), 0, fixup)
            for part in _chosen_parts(image, function, file)
            for item, encoding, fixup in image.decode(part.section, part.start, part.end)
        )
    if not instructions:
        raise AssemblyError("holds no code", where=file, todo="give an object with a loop in it")
    low, high = instructions[0].address, instructions[-1].address + instructions[-1].length
    labels = tuple(label for label in image.labels if low <= label[1] < high)
    return Listing(file, ISA, "binary", instructions, labels)


def _check_code(image: CodeImage, file: str, todo: str) -> None:
    """Refuse more code than is decoded at once."""
    size = sum(len(image.elf.sections[number].data) for number in image.layout)
    if DECODED_BYTES.exceeded(size):
        raise AssemblyError(f"holds {size:,} bytes of code", where=file, todo=DECODED_BYTES.todo(todo))


class _Part(NamedTuple):
    """Offsets `start` to `end` of section number `section`."""

    section: int
    start: int
    end: int


def _chosen_parts(image: CodeImage, function: str | None, file: str) -> list[_Part]:
    """All code sections, or the part of `function`."""
    if function is None:
        _check_code(image, file, "choose one function of it, or give its object file alone")
        return [_Part(number, 0, len(image.elf.sections[number].data)) for number in image.layout]
    functions = [s for number in image.layout for s in image.named.get(number, ()) if s.kind == SYMBOL_FUNCTION]
    for symbol in functions:
        if symbol.name == function and symbol.section is not None:
            start = image.address(symbol) - image.layout[symbol.section]
            return [_Part(symbol.section, start, start + symbol.size)]
    from difflib import get_close_matches

    names = sorted({symbol.name for symbol in functions})
    near = get_close_matches(function, names, n=3) or names[:10]
    raise AssemblyError(
        f"has no function {function!r}", where=file, todo=f"choose one of: {', '.join(near) or '(none)'}"
    )


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
