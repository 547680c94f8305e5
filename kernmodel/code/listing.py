"""Reading code: listing, object or bytes in, decoded `Listing` out.

Which instruction set it is to be, the machine says; what the file itself says of that (the header of an ELF file, the
registers and directives of a listing) is held against it. Where no machine is named, the file alone says it.
"""

from __future__ import annotations

from pathlib import Path

from kernmodel import isa, user_files
from kernmodel.errors import AssemblyError
from kernmodel.isa.elf import damage_reported, is_elf
from kernmodel.isa.model import Listing
from kernmodel.isa.protocol import CodeSection, ObjectCode
from kernmodel.limits import CODE_BYTES, TEXT_BYTES


def read_file(
    path: Path | str, *, syntax: str | None = None, function: str | None = None, isa_name: str | None = None
) -> tuple[Listing, str]:
    """The decoded contents of a listing or an ELF file, and the text of the listing ("" for an ELF file).

    Args:
        path: assembly text, an object or an executable; "-" is the standard input.
        syntax: of a listing; found by evidence if None.
        function: decode only this function (ELF files).
        isa_name: the instruction set that it has to be of; None: the one that the file says it is of.

    Raises:
        AssemblyError: missing, empty, neither text nor ELF, another instruction set, or rejected by the assembler.
        ToolError: no assembler.
    """
    file = "<standard input>" if str(path) == "-" else str(path)
    data = user_files.read_file(path, "an assembly listing", CODE_BYTES, error=AssemblyError)
    if is_elf(data):
        return decode_elf(data, file, function=function, isa_name=isa_name), ""
    if TEXT_BYTES.exceeded(len(data)):
        todo = TEXT_BYTES.todo("give the listing of the loop alone")
        raise AssemblyError(f"is larger than {TEXT_BYTES.text}", where=file, todo=todo)
    text = _as_text(data, file)
    return read_listing(text, file, syntax=syntax, isa_name=isa_name), text


def _as_text(data: bytes, file: str) -> str:
    """`data` as text; stray bytes of other encodings (in comments, strings) are kept as they are."""
    if b"\0" in data:
        todo = "give assembly text, or an ELF object or executable"
        raise AssemblyError("is a binary file, not assembly text", where=file, todo=todo)
    return data.decode("utf-8", "surrogateescape")


def read_listing(text: str, file: str, *, syntax: str | None = None, isa_name: str | None = None) -> Listing:
    """The instructions of an assembly listing; `file` names it in messages and results.

    Raises:
        AssemblyError: no instructions, of another instruction set, or a line that the assembler rejects.
        ToolError: no assembler.
    """
    if isa_name is None:
        return isa.isa_of(isa.likeliest(text, isa.DEFAULT)).read_listing(text, file, syntax)
    try:
        return isa.isa_of(isa_name).read_listing(text, file, syntax)
    except AssemblyError as error:
        likely = isa.likeliest(text, isa_name)
        if likely == isa_name:
            raise
        todo = f"use a machine of that architecture, or give a listing of {isa_name} code"
        raise AssemblyError(
            f"looks like {isa.title(likely)} assembly, not {isa_name}", where=file, todo=todo
        ) from error


def decode_bytes(code: bytes, *, address: int = 0, file: str = "<bytes>", isa_name: str = isa.DEFAULT) -> Listing:
    """Decode machine code that starts at `address`; bytes that are no instruction are passed over."""
    return Listing(file, isa_name, "binary", tuple(isa.isa_of(isa_name).decode(code, address)), ())


def decode_elf(data: bytes, file: str, *, function: str | None = None, isa_name: str | None = None) -> Listing:
    """Decode the code sections of an ELF file, or one function of it.

    Raises:
        AssemblyError: not ELF, damaged, of another instruction set, no code, no such function, or too large without
            naming a function.
    """
    found = isa_name or isa.of_object(data)
    code = read_object(data, file, found)
    with damage_reported(file):
        parts = _chosen_parts(code, function, file)
        instructions = tuple(
            instruction for section, first, end in parts for instruction in code.instructions(section, first, end)
        )
    if not instructions:
        raise AssemblyError("holds no code", where=file, todo="give an object with a loop in it")
    low, high = instructions[0].address, instructions[-1].address + instructions[-1].length
    labels = sorted((symbol.address, symbol.name) for symbol in code.symbols if low <= symbol.address < high)
    alignments = tuple(sorted((section.address, section.alignment) for section, _, _ in parts))
    return Listing(file, found, "binary", instructions, tuple((name, address) for address, name in labels), alignments)


def read_object(data: bytes, file: str, isa_name: str = isa.DEFAULT) -> ObjectCode:
    """The code of an ELF file.

    Raises:
        AssemblyError: not ELF, damaged, or of another instruction set.
    """
    if not is_elf(data):
        todo = "give an object file or an executable"
        raise AssemblyError("is not an ELF file: it has no functions and no addresses", where=file, todo=todo)
    return isa.isa_of(isa_name).read_object(data, file)


def _chosen_parts(code: ObjectCode, function: str | None, file: str) -> list[tuple[CodeSection, int, int]]:
    """All code sections, or the part of `function`, with the addresses from and up to which it is decoded."""
    if function is None:
        code.refuse_large(file, "choose one function of it, or give its object file alone")
        return [(section, section.address, section.address + len(section.data)) for section in code.sections]
    functions = {symbol.name: symbol for symbol in reversed(code.symbols) if symbol.is_function}
    if function in functions:
        found = functions[function]
        section = next(one for one in code.sections if one.number == found.section)
        return [(section, found.address, found.address + found.size)]
    from difflib import get_close_matches

    near = get_close_matches(function, sorted(functions), n=3) or sorted(functions)[:10]
    raise AssemblyError(
        f"has no function {function!r}", where=file, todo=f"choose one of: {', '.join(near) or '(none)'}"
    )
