"""What an instruction set is: neutral values of decoded code, one protocol, and each instruction set in its own folder.

Listings, machine files and parameter files of cores name their instruction set; `isa_of` finds it by that name. Another
one is a subclass of `kernmodel.isa.protocol.Isa`, made known by `register`; the carried ones are imported when they are
first asked for.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from kernmodel.errors import AssemblyError
from kernmodel.isa.protocol import Isa

DEFAULT = "x86-64"
"""The instruction set of code that says nothing about it (bytes in hex digits)."""
_CARRIED = {
    "x86-64": ("kernmodel.isa.x86", "ISA"),
    "aarch64": ("kernmodel.isa.aarch64.isa", "ISA"),
    **{f"aarch64-sve{bits}": ("kernmodel.isa.aarch64.isa", f"SVE{bits}") for bits in (128, 256, 512)},
}
"""Module and name of each carried instruction set."""
_TOLD_BY = {name: "kernmodel.isa.aarch64.evidence" for name in _CARRIED if name != DEFAULT}
"""Modules that tell listings of an instruction set from others, so that the rest is imported for its own code only."""
_TITLES = {"aarch64": "AArch64"}
_E_MACHINE = slice(18, 20)  # bytes of an ELF header
_known: dict[str, Isa] = {}


def register(isa: Isa) -> None:
    """Make an instruction set known by its name; one of that name is replaced."""
    _known[isa.name] = isa
    isa_of.cache_clear()


def names() -> tuple[str, ...]:
    """The names that machine files, parameter files and listings may give."""
    return tuple(dict.fromkeys((*_CARRIED, *_known)))


def evidence(text: str) -> dict[str, int]:
    """By instruction set, how many lines of a listing can be of it; without those that are not told by texts."""
    told = {
        name: import_module(_TOLD_BY[name]).evidence(text)
        if name in _TOLD_BY and name not in _known
        else isa_of(name).evidence(text)
        for name in dict.fromkeys((*_CARRIED, *_known))
    }
    return {name: lines for name, lines in told.items() if lines is not None}


def likeliest(text: str, expected: str) -> str:
    """The instruction set of which most lines of a listing can be; where several are alike, the expected one."""
    found = evidence(text)
    return max(found, key=lambda name: (found[name], name == expected)) if expected in found else expected


def of_object(data: bytes) -> str:
    """The instruction set that the header of an ELF file names; the default one for those that are not known."""
    machine = int.from_bytes(data[_E_MACHINE], "little")
    names = dict.fromkeys((*_CARRIED, *_known))
    return next((name for name in names if isa_of(name).elf_machine == machine), DEFAULT)


def split_vectors(name: str) -> tuple[str, int | None]:
    """The name of a core or machine, and the bits of its vectors where they are given ("A64FX@256"), else None."""
    bare, at, bits = name.rpartition("@")
    return (bare, int(bits)) if at and bits.isdigit() and len(bits) < 6 else (name, None)


def at_vectors(name: str, bits: int) -> str:
    """The name of a core or machine with vectors of so many bits, as `split_vectors` reads it."""
    return f"{name}@{bits}"


def split_rows(name: str) -> tuple[str, str | None]:
    """The name of a core or machine, and the file of rows that come before those of its table where one is given
    ("ZEN3+mine.txt"), else None."""
    bare, plus, file = name.partition("+")
    return (bare, file) if plus and bare and file.endswith(ROWS_ENDING) else (name, None)


def with_rows(name: str, file: str) -> str:
    """The name of a core or machine with a file of rows, as `split_rows` reads it."""
    bare, bits = split_vectors(name)
    return f"{bare}+{file}" if bits is None else at_vectors(f"{bare}+{file}", bits)


ROWS_ENDING = ".txt"


def title(name: str) -> str:
    """The name as its makers write it, for messages."""
    return _TITLES.get(name, name)


@cache  # asked for every instruction of a block, several times
def isa_of(name: str) -> Isa:
    """The instruction set of this name.

    Raises:
        AssemblyError: its code cannot be read.
    """
    found = _known.get(name)
    if found is None and name in _CARRIED:
        module, member = _CARRIED[name]
        found = _known[name] = getattr(import_module(module), member)
    if found is None:
        known = ", ".join(dict.fromkeys((*_CARRIED, *_known)))
        raise AssemblyError(f"{name} code cannot be read", todo=f"use a machine with one of: {known}")
    return found
