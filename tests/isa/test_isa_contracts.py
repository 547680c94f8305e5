"""No mnemonic and no register name outside the folders of instruction sets."""

import ast
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


@pytest.mark.parametrize("room", ["code", "models", "studies", "traffic"])
def test_no_mnemonics_and_registers(room: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted((ROOT / room).rglob("*.py"))
        for line, text in literals(path)
        if text.lower() in (REGISTERS | MNEMONICS) - WORDS
    ]
    assert not found


def test_what_is_looked_for_is_found() -> None:
    inside = {text for path in (ROOT / "isa" / "x86").glob("*.py") for _, text in literals(path)}
    assert {"rsp", "rip"} <= inside & REGISTERS and {"lea", "nop", "movzx"} <= inside & MNEMONICS
