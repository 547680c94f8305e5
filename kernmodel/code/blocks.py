"""Every kind of input as code to analyse: hex digits, raw bytes, stretches of a linked file, all loops of a listing.

What is read here is taken as one block that repeats. Of bytes that hold more than one basic block, the loop among them
is taken, else the first basic block, and a note says so. Listings and objects of which a loop has to be found are the
business of `listing` and `select`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernmodel import isa
from kernmodel.code.model import AssemblyLoop
from kernmodel.errors import AssemblyError, Location, Note
from kernmodel.isa.model import Instruction, Listing
from kernmodel.isa.protocol import CodeSection, ObjectCode
from kernmodel.limits import CODE_BYTES
from kernmodel.patterns import pattern
from kernmodel.user_files import STANDARD_INPUT, opened, read_file

LARGEST_BLOCK = 1 << 14
"""Bytes that one block may have: far more than any µop cache holds, and analysed in seconds."""

_SHOWN = 8  # bytes and digits that a message shows
_BETWEEN = pattern(r"0[xX](?=[0-9a-fA-F])|\\x|[\s,:_]+")
_DIGITS = pattern(r"[0-9a-fA-F]*")
_ARCHIVE = b"!<arch>\n", b"!<thin>\n"


def parse_hex(text: str, where: str) -> bytes:
    """The bytes that hex digits stand for; blanks, commas, `0x` and `\\x` between them are passed over.

    Raises:
        AssemblyError: other characters, an odd number of digits, or none; `where` names the place.
    """
    digits = _BETWEEN.sub("", text)
    valid = _DIGITS.match(digits)
    if valid is None or valid.end() < len(digits):
        strange = digits[valid.end() if valid else 0]
        todo = "write the bytes of the code as pairs of digits, such as 4801d8"
        raise AssemblyError(f"{strange!r} is no hex digit", where=where, todo=todo)
    if len(digits) % 2:
        raise AssemblyError(f"{len(digits)} hex digits make no whole bytes", where=where, todo="give an even number")
    return bytes.fromhex(digits)


def block_of_bytes(code: bytes, *, file: str, address: int = 0, isa_name: str = isa.DEFAULT) -> AssemblyLoop:
    """The block in machine code that starts at `address`; `file` names the code in messages and results.

    Raises:
        AssemblyError: no bytes, too many, or some that are no instruction or only the beginning of one.
    """
    return _block(decode_block(code, file=file, address=address, isa_name=isa_name), file, isa_name)


def _block(instructions: tuple[Instruction, ...], file: str, isa_name: str, alignment: int = 1) -> AssemblyLoop:
    """The block to take of instructions that stand one behind the other, at addresses known modulo `alignment`."""
    first, end, evidence, notes = _chosen(instructions, file)
    body = instructions[first:end]
    return AssemblyLoop(
        instructions=body,
        isa=isa_name,
        syntax="binary",
        file=file,
        label="",
        iterations_per_pass=None,
        streams=(),
        evidence=evidence,
        role="chosen",
        notes=(*notes, *privilege_notes(body, file)),
        alignment=alignment,
    )


def decode_block(code: bytes, *, file: str, address: int = 0, isa_name: str = isa.DEFAULT) -> tuple[Instruction, ...]:
    """All instructions of machine code of which every byte belongs to one.

    Raises:
        AssemblyError: as `block_of_bytes`.
    """
    _check_size(len(code), file)
    instructions = tuple(isa.isa_of(isa_name).decode(code, address))
    return _complete(instructions, code, file, address, isa_name)


def _check_size(size: int, file: str) -> None:
    if not size:
        raise AssemblyError("the block is empty", where=file, todo="give the bytes of at least one instruction")
    if size > LARGEST_BLOCK:
        todo = "give the bytes of the loop alone"
        raise AssemblyError(f"a block of {size} bytes; the limit is {LARGEST_BLOCK}", where=file, todo=todo)


def _complete(
    instructions: tuple[Instruction, ...], code: bytes, file: str, address: int, isa_name: str
) -> tuple[Instruction, ...]:
    """The instructions of `code`, if they are all of it."""
    if sum(instruction.length for instruction in instructions) != len(code):
        raise _undecodable(code, instructions, file, address, isa_name)
    return instructions


def _undecodable(
    code: bytes, instructions: Sequence[Instruction], file: str, address: int, isa_name: str
) -> AssemblyError:
    """The error for bytes among which some are no instruction."""
    offset = 0
    for instruction in instructions:
        if instruction.address - address != offset:
            break
        offset += instruction.length
    rest = code[offset:]
    shown = rest[:_SHOWN].hex(" ") + (" …" if len(rest) > _SHOWN else "")
    if isa.isa_of(isa_name).is_cut_off(rest):
        what = f"the code ends inside the instruction at byte {offset}: {shown}"
        return AssemblyError(what, where=file, todo="give all bytes of the last instruction")
    what = f"byte {offset} begins no {isa_name} instruction: {shown}"
    return AssemblyError(what, where=file, todo="give machine code, from the first byte of an instruction on")


def _chosen(instructions: Sequence[Instruction], file: str) -> tuple[int, int, str, tuple[Note, ...]]:
    """First instruction and one past the last of the block to take, why, and a note where that is not all."""
    count = len(instructions)
    whole = f"All {count} instructions of the code." if count > 1 else "The only instruction of the code."
    branches = [number for number, item in enumerate(instructions) if item.branch not in (None, "call")]
    if not branches or branches == [count - 1]:
        return 0, count, whole, _entered_inside(instructions, file)
    first, end, what = _one_of_several(instructions, branches)
    start, past = instructions[first].address, instructions[end - 1].address + instructions[end - 1].length
    base = instructions[0].address
    place = f"bytes {start - base} to {past - base - 1} (instructions {first + 1} to {end} of {count})"
    held = f"{len(branches)} branches" if len(branches) > 1 else "a branch before its end"
    note = Note("several-branches", f"the code holds {held}; {what} was taken: {place}", where=Location(file))
    return first, end, f"The code holds {held}: {what} is taken.", (note,)


def _one_of_several(instructions: Sequence[Instruction], branches: Sequence[int]) -> tuple[int, int, str]:
    """Of code with branches in it: the shortest stretch that a branch repeats, else the first basic block."""
    at = {instruction.address: number for number, instruction in enumerate(instructions)}
    repeated = [
        (number - at[target] + 1, at[target], number + 1)
        for number in branches
        if (target := instructions[number].target) in at and target is not None and at[target] <= number
    ]
    if repeated:
        _, first, end = min(repeated)
        inner = sum(first <= number < end - 1 for number in branches)
        return first, end, "its shortest loop" + (", all of whose inner branches fall through," if inner else "")
    return 0, branches[0] + 1, "its first basic block"


def _entered_inside(instructions: Sequence[Instruction], file: str) -> tuple[Note, ...]:
    """A note where the branch at the end goes to another instruction of the block than its first."""
    target = instructions[-1].target
    places = {instruction.address: number for number, instruction in enumerate(instructions, 1)}
    if instructions[-1].branch == "call" or places.get(-1 if target is None else target, 1) == 1:
        return ()
    number = places[target or 0]
    text = f"the branch at the end goes to instruction {number}; all {len(instructions)} are taken as what repeats"
    return (Note("branch-inside", text, where=Location(file)),)


def privilege_notes(instructions: Sequence[Instruction], file: str) -> tuple[Note, ...]:
    """A warning for each kind of instruction that user code may not execute."""
    found = {item.mnemonic: item for item in reversed(instructions) if isa.isa_of(item.isa).is_privileged(item)}
    return tuple(
        Note(
            "privileged-instruction",
            f"{name} is privileged: in user code it faults, and its time is not that of an ordinary instruction",
            where=item.place_in(file),
        )
        for name, item in sorted(found.items())
    )


def read_bytes(path: str) -> tuple[bytes, str]:
    """The contents of a file ("-": standard input), and what to call it.

    Raises:
        AssemblyError: it cannot be read.
    """
    data = read_file(path, "a file of code", CODE_BYTES, error=AssemblyError)
    return data, "<standard input>" if path == STANDARD_INPUT else path


def refuse_archive(path: str) -> None:
    """Refuse an archive of objects (`.a`), which holds many files of code.

    Raises:
        AssemblyError: it is one.
    """
    if path == "-" or not Path(path).is_file():
        return
    with opened(path, "a file of code", error=AssemblyError) as file:
        start = file.read(len(_ARCHIVE[0]))
    if start in _ARCHIVE:
        todo = f"take the object with your function out of it: ar t {path}, then ar x {path} NAME.o"
        raise AssemblyError("is an archive of object files", where=path, todo=todo)


def block_in_range(path: str, first: int, end: int, isa_name: str = isa.DEFAULT) -> AssemblyLoop:
    """The block at addresses `first` up to, not including, `end` of an ELF file.

    Raises:
        AssemblyError: not an ELF file of this instruction set, no code at these addresses, or as `block_of_bytes`.
    """
    from kernmodel.code.listing import read_object
    from kernmodel.isa.elf import damage_reported

    data, file = read_bytes(path)
    code = read_object(data, file, isa_name)
    for section in code.sections:
        if section.address <= first < end <= section.address + len(section.data):
            _check_start(code, section, first, file)
            _check_size(end - first, file)
            with damage_reported(file):
                instructions = tuple(code.instructions(section, first, end))
            inside = section.data[first - section.address : end - section.address]
            return _block(_complete(instructions, inside, file, first, isa_name), file, isa_name, section.alignment)
    places = (f"{one.name} {one.address:#x}-{one.address + len(one.data):#x}" for one in code.sections)
    what = f"has no code from {first:#x} to {end:#x}"
    raise AssemblyError(what, where=file, todo=f"its code is {', '.join(places) or 'empty'}")


def _check_start(code: ObjectCode, section: CodeSection, first: int, file: str) -> None:
    """Refuse an address inside an instruction of the function around it, where the file names that function.

    Raises:
        AssemblyError: names the instruction.
    """
    for symbol in code.symbols:
        if symbol.section == section.number and symbol.address <= first < symbol.address + symbol.size:
            for item in code.instructions(section, symbol.address, symbol.address + symbol.size):
                if item.address < first < item.address + item.length:
                    todo = f"begin at {item.address:#x} or {item.address + item.length:#x}"
                    what = f"{first:#x} is inside the instruction at {item.address:#x} of {symbol.name}"
                    raise AssemblyError(what, where=file, todo=todo)


def innermost_loops(listing: Listing) -> tuple[AssemblyLoop, ...]:
    """Every innermost loop of a listing, by address.

    Raises:
        AssemblyError: it has none.
    """
    from kernmodel.code.loops import control_flow
    from kernmodel.code.select import assembly_loop
    from kernmodel.code.strides import analyse, loop_strides

    analysis = analyse(listing, control_flow(listing))
    inner = [body for body in analysis.flow.loops if body.innermost]
    if not inner:
        raise AssemblyError("has no loop", where=listing.file, todo="leave out --all-loops to analyse all of it")
    return tuple(
        assembly_loop(listing, loop_strides(analysis, body), None, f"Loop {body.number} of the listing.", "chosen")
        for body in inner
    )
