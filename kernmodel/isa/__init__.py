"""What an instruction set is: neutral values of decoded code, one protocol, and each instruction set in its own folder.

Listings, machine files and parameter files of cores name their instruction set; `isa_of` finds it by that name. Another
one is a subclass of `kernmodel.isa.protocol.Isa`, made known by `register`; the carried ones are imported when they are
first asked for.
"""

from __future__ import annotations

from importlib import import_module

from kernmodel.errors import AssemblyError
from kernmodel.isa.protocol import Isa

DEFAULT = "x86-64"
"""The instruction set of code that says nothing about it (bytes in hex digits)."""
_CARRIED = {"x86-64": "kernmodel.isa.x86"}
_DESCRIBED = {"aarch64": "kernmodel.isa.aarch64"}
"""Instruction sets that machine files may name and listings are told by, although their code cannot be read yet."""
_TITLES = {"aarch64": "AArch64"}
_E_MACHINE = slice(18, 20)  # bytes of an ELF header
_known: dict[str, Isa] = {}


def register(isa: Isa) -> None:
    """Make an instruction set known by its name; one of that name is replaced."""
    _known[isa.name] = isa


def names() -> tuple[str, ...]:
    """The names that machine files, parameter files and listings may give."""
    return tuple(dict.fromkeys((*_CARRIED, *_DESCRIBED, *_known)))


def is_readable(name: str) -> bool:
    """Whether code of this instruction set can be read."""
    return name in _known or name in _CARRIED


def evidence(text: str) -> dict[str, int]:
    """By instruction set, how many lines of a listing can be of it; without those that are not told by texts."""
    told = {name: isa_of(name).evidence(text) for name in dict.fromkeys((*_CARRIED, *_known))}
    told |= {name: import_module(path).evidence(text) for name, path in _DESCRIBED.items() if name not in _known}
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


def title(name: str) -> str:
    """The name as its makers write it, for messages."""
    return _TITLES.get(name, name)


def isa_of(name: str) -> Isa:
    """The instruction set of this name.

    Raises:
        AssemblyError: its code cannot be read.
    """
    found = _known.get(name)
    if found is None and name in _CARRIED:
        found = _known[name] = import_module(_CARRIED[name]).ISA
    if found is None:
        known = ", ".join(dict.fromkeys((*_CARRIED, *_known)))
        raise AssemblyError(f"{name} code cannot be read", todo=f"use a machine with one of: {known}")
    return found
