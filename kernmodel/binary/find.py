"""Finding a function in a binary: by its name, by a range of addresses, or between markers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from kernmodel.binary.blocks import basic_blocks
from kernmodel.binary.image import Binary, read_binary
from kernmodel.binary.loop_nest import natural_loops
from kernmodel.binary.program import BasicBlock, CodeRange, Function, SourceLine
from kernmodel.binary.source_lines import source_lines
from kernmodel.errors import AssemblyError, UsageError
from kernmodel.isa.elf import damage_reported
from kernmodel.limits import DECODED_BYTES

if TYPE_CHECKING:
    from kernmodel.isa.protocol import CodeSection, CodeSymbol

_CLONE = re.compile(r"\.(constprop|part|isra|cold|lto_priv|specialized|llvm)(\.\d+)*")
"""Suffixes of the clones that GCC and clang make of a function."""
_COLD = re.compile(r"\.cold(\.\d+)*")
_SHOWN = 10
_STARTUP = frozenset(
    (
        *("_init", "_fini", "_start", "frame_dummy", "deregister_tm_clones", "register_tm_clones"),
        *("_dl_relocate_static_pie", "call_weak_fn", "atexit", "at_quick_exit"),
    )
)
"""What compilers and C libraries put into every program; names that begin with two underscores are theirs too (C11,
7.1.3)."""


def find_function(
    path: Path | str,
    function: str | None = None,
    *,
    addresses: tuple[int, int] | None = None,
    marked: str | None = None,
    isa_name: str | None = None,
) -> Function:
    """A function of a binary with its control flow.

    Args:
        path: an ELF executable, shared library or object, of any instruction set of kernmodel.
        function: its name; with `addresses` or `marked`, where these are looked for or what the stretch is called.
        addresses: of the first byte and the one behind the last, where there is no symbol (stripped files).
        marked: the name of a region between IACA's markers ("" for the only one).
        isa_name: the instruction set that it has to be of; None: the one that its header names.

    Raises:
        AssemblyError: no such file, function or region, nothing there that is code, code of another
            instruction set, or several functions of that name.
        UsageError: nothing says which code is meant, or two things do.
    """
    if addresses is not None and marked is not None:
        raise UsageError("both choose the code", where="--addresses and --marked", todo="give one of them")
    binary = read_binary(path, isa_name)
    ranges: tuple[CodeRange, ...]
    with damage_reported(binary.file):
        if marked is not None:
            ranges = (_marked_range(binary, function, marked),)
        elif addresses is not None:
            ranges = (_given_range(binary, addresses),)
        else:
            ranges = _ranges_of(binary, _chosen(binary, function))
        size = sum(one.end - one.first for one in ranges)
        if DECODED_BYTES.exceeded(size):
            todo = DECODED_BYTES.todo("give a smaller range with --addresses")
            raise AssemblyError(
                f"{ranges[0].name or 'the range'} has {size:,} bytes of code", where=binary.file, todo=todo
            )
        return _function(binary, ranges)


def _function(binary: Binary, ranges: tuple[CodeRange, ...]) -> Function:
    entry = ranges[0].first
    blocks, notes = basic_blocks(binary, ranges, entry)
    if all(one.address != entry for one in blocks):
        todo = "give the address of an instruction"
        raise AssemblyError(f"no instruction begins at {entry:#x}", where=binary.file, todo=todo)
    places = [item.address for block in blocks for item in block.instructions]
    lines = source_lines(binary, ranges, sorted(places))
    if lines:
        blocks = tuple(replace(block, lines=_lines_of(block, lines)) for block in blocks)
    loops = natural_loops({block.address: block.successors for block in blocks}, entry)
    first = ranges[0]
    return Function(
        file=binary.file,
        name=first.name or f"{first.first:#x}-{first.end:#x}",
        isa=binary.isa.name,
        entry=entry,
        blocks=blocks,
        loops=loops,
        ranges=ranges,
        runnable=binary.kind != "object",
        position_independent=binary.kind == "position-independent",
        clones=clones_of(binary, first.name),
        notes=notes,
    )


def _lines_of(block: BasicBlock, lines: Mapping[int, SourceLine]) -> tuple[SourceLine, ...]:
    return tuple(dict.fromkeys(lines[item.address] for item in block.instructions if item.address in lines))


def _chosen(binary: Binary, name: str | None) -> CodeSymbol:
    """The symbol of the function that is meant.

    Raises:
        AssemblyError: none or several; UsageError: no name, and several functions.
    """
    if name is None:
        names = own_names(binary)
        if len(names) != 1:
            listed = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
            todo = f"choose one with --function: {listed}" if names else "it has no symbols: give --addresses FIRST-END"
            raise UsageError(f"holds {len(names)} functions", where=binary.file, todo=todo)
        name = names[0]
    found = {one.address: one for one in binary.functions if one.name == name}
    if not found:
        raise _unknown(binary, name)
    if len(found) > 1:
        places = ", ".join(f"{address:#x}" for address in sorted(found))
        todo = "give the one that is meant with --addresses FIRST-END"
        raise AssemblyError(f"has {len(found)} functions {name!r}, at {places}", where=binary.file, todo=todo)
    return next(iter(found.values()))


def _unknown(binary: Binary, name: str) -> AssemblyError:
    """No function of that name: its clones, the nearest names, or what to do with a stripped file."""
    clones = clones_of(binary, name)
    names = own_names(binary)
    if clones:
        todo = f"the compiler left only clones of it, choose one of: {', '.join(clones)}"
    elif not names:
        todo = "it is stripped: give --addresses FIRST-END"
    else:
        parts = [one for one in names if name in one]
        near = list(dict.fromkeys([*get_close_matches(name, names, n=3), *parts]))
        listed = ", ".join((near or names)[:_SHOWN]) + (", …" if len(near or names) > _SHOWN else "")
        todo = f"the nearest are: {listed}" if near else f"it has {listed}"
        todo += "" if near else "; a static function may have been inlined into its callers"
    return AssemblyError(f"has no function {name!r}", where=binary.file, todo=todo)


def own_names(binary: Binary) -> list[str]:
    """Names of the functions of the program itself, without their cold parts; all that it has where those are none."""
    names = sorted({one.name for one in binary.functions if one.is_function})
    theirs = [one for one in names if one in _STARTUP or one.startswith("__") or _COLD.search(one)]
    return [one for one in names if one not in theirs] or names


def clones_of(binary: Binary, name: str) -> tuple[str, ...]:
    """Names of clones that the compiler made of a function, without its cold part."""
    found = {
        one.name
        for one in binary.functions
        if name and one.name.startswith(name) and _is_clone(one.name[len(name) :]) and one.name != name
    }
    return tuple(sorted(found))


def _is_clone(suffix: str) -> bool:
    parts = list(_CLONE.finditer(suffix))
    whole = "".join(one[0] for one in parts) == suffix
    return bool(suffix) and whole and not _COLD.search(suffix)


def _ranges_of(binary: Binary, symbol: CodeSymbol) -> tuple[CodeRange, ...]:
    """The code of a function: its own, then its cold parts."""
    cold = [
        one
        for one in binary.functions
        if one.name.startswith(f"{symbol.name}.cold") and _COLD.fullmatch(one.name[len(symbol.name) :])
    ]
    parts = [symbol, *sorted(cold, key=lambda one: one.address)]
    return tuple(dict.fromkeys(CodeRange(one.name, one.address, one.address + _size(binary, one)) for one in parts))


def _size(binary: Binary, symbol: CodeSymbol) -> int:
    """Bytes of a function; of one whose symbol says none (assembly), up to the next symbol."""
    if symbol.size:
        return symbol.size
    section = next(one for one in binary.code.sections if one.number == symbol.section)
    behind = [one.address for one in binary.functions if one.section == symbol.section and one.address > symbol.address]
    return min([section.address + len(section.data), *behind]) - symbol.address


def _given_range(binary: Binary, addresses: tuple[int, int]) -> CodeRange:
    first, end = addresses
    section = binary.section_at(first)
    if section is None or not first < end <= _end(section):
        known = ", ".join(f"{one.name} {one.address:#x}-{_end(one):#x}" for one in binary.code.sections)
        todo = f"its code is in {known or '(none)'}"
        raise AssemblyError(f"{first:#x}-{end:#x} is no range of its code", where=binary.file, todo=todo)
    name = next((one.name for one in binary.functions if (one.address, one.address + one.size) == addresses), "")
    return CodeRange(name, first, end)


def _end(section: CodeSection) -> int:
    return section.address + len(section.data)


def _marked_range(binary: Binary, function: str | None, name: str) -> CodeRange:
    """The code between IACA's markers."""
    from kernmodel.code.listing import decode_elf
    from kernmodel.code.markers import marked_region

    listing = decode_elf(binary.data, binary.file, function=function, isa_name=binary.isa.name)
    region = marked_region(listing, "", name or None)
    if region is None:
        todo = "put IACA's markers around the code, or give --function or --addresses"
        raise AssemblyError("has no marked region", where=binary.file, todo=todo)
    first, last = listing.instructions[region[0]], listing.instructions[region[1] - 1]
    return CodeRange("", first.address, last.address + last.length)
