"""No mnemonic and no register name outside the folders of instruction sets."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import iced_x86
import pytest

ROOT = Path(__file__).parents[2] / "kernmodel"
REGISTERS = frozenset(name.lower() for name, value in vars(iced_x86.Register).items() if isinstance(value, int))
MNEMONICS = frozenset(name.lower() for name, value in vars(iced_x86.Mnemonic).items() if isinstance(value, int))
# words of the field, of Python and of C that x86 has mnemonics or registers for
WORDS = frozenset({"add", "sub", "mul", "div", "call", "loop", "sp", "str", "and", "in", "out", "int", "none"})


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in a module that are no docstrings, with their lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.lineno, node.value


IMPORTERS = ROOT / "incore" / "tables" / "importers"
FILE_WORDS = frozenset({"test", "cmp", "or", "xor", "inc", "dec"})
"""Mnemonics that parameter files of cores may list; more of their keys and values have words of x86."""
INSIDE = re.compile(r"\b(?:sse\d?|avx|[xyz]mm\d*|[er][abcd]x|[er][sb]p|movz?x?)\b", re.IGNORECASE)
"""Words of x86 inside of a text."""


def neutral(room: str) -> Iterator[tuple[str, str]]:
    """The texts of a room with their places; importers know x86."""
    for path in sorted((ROOT / room).rglob("*.py")):
        for line, text in literals(path) if IMPORTERS not in path.parents else ():
            yield f"{path.relative_to(ROOT)}:{line}: {text}", text


@pytest.mark.thorough
@pytest.mark.parametrize("room", ["code", "incore", "models", "studies", "traffic"])
def test_no_mnemonics_and_registers(room: str) -> None:
    allowed = WORDS | FILE_WORDS if room == "incore" else WORDS
    assert not [place for place, text in neutral(room) if text.lower() in (REGISTERS | MNEMONICS) - allowed]


@pytest.mark.thorough
@pytest.mark.parametrize("room", ["code", "incore", "models", "traffic"])
def test_no_words_of_x86_inside_of_texts(room: str) -> None:
    """But for keys of parameter files of cores, and for what users are told of flags of compilers."""
    found = [place for place, text in neutral(room) if INSIDE.search(text)]
    assert [place for place in found if not place.startswith(("incore/tables/core_parameters", "code/calls"))] == []


def test_what_is_looked_for_is_found() -> None:
    inside = {text for path in (ROOT / "isa" / "x86").glob("*.py") for _, text in literals(path)}
    assert {"rsp", "rip"} <= inside & REGISTERS and {"lea", "nop", "movzx"} <= inside & MNEMONICS
