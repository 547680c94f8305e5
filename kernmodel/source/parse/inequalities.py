"""Conditions of sizes and loop variables as affine inequalities of integers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from pycparser import c_ast  # type: ignore[import-untyped]

from kernmodel.errors import SourceError
from kernmodel.formulas.formula import Formula, nonnegative
from kernmodel.source.parse.tree import OPPOSITE, Node
from kernmodel.value_types import dataclass


class Names(Protocol):
    """What gives the expressions of a condition their formulas: `kernmodel.source.parse.scope.Scope`."""

    def index(self, node: Node) -> Formula:
        """The integer formula of an expression."""
        ...

    def unsettled(self, formula: Formula) -> bool:
        """Whether a formula holds what is read from memory, divided, or chosen by a condition."""
        ...


@dataclass(frozen=True, slots=True)
class Condition:
    """An inequality `least` ≥ 0, or where that is None all ("and") or any ("or") of its parts."""

    least: Formula | None = None
    join: str = "and"
    parts: tuple[Condition, ...] = ()

    def __str__(self) -> str:
        if self.least is not None:
            return f"{self.least} ≥ 0"
        return f" {self.join} ".join(f"({part})" for part in self.parts)

    @property
    def size(self) -> int:
        """Its inequalities."""
        return 1 if self.least is not None else sum(part.size for part in self.parts)

    def formulas(self) -> Iterator[Formula]:
        """The formulas of its inequalities."""
        if self.least is not None:
            yield self.least
        for part in self.parts:
            yield from part.formulas()

    def proven(self, sizes: Mapping[str, int]) -> bool:
        """Whether it holds in every iteration, for all positive sizes, of which some may have values."""
        if self.least is not None:
            known = {str(symbol): sizes[symbol] for symbol in self.least.free_symbols if symbol in sizes}
            return self.least.of_sizes and nonnegative(self.least.substitute(known))
        return (all if self.join == "and" else any)(part.proven(sizes) for part in self.parts)


def inequalities(condition: Node, names: Names, *, holds: bool = True) -> Condition | None:
    """The inequalities of a condition, or of its opposite; None where the data decide it."""
    if isinstance(condition, c_ast.UnaryOp) and condition.op == "!":
        return inequalities(condition.expr, names, holds=not holds)
    if isinstance(condition, c_ast.BinaryOp) and condition.op in ("&&", "||"):
        parts = [inequalities(side, names, holds=holds) for side in (condition.left, condition.right)]
        known = tuple(part for part in parts if part is not None)
        return Condition(None, "and" if (condition.op == "&&") == holds else "or", known) if len(known) == 2 else None
    operator, sides = "!=", (condition, c_ast.Constant("int", "0"))
    if isinstance(condition, c_ast.BinaryOp) and condition.op in OPPOSITE:
        operator, sides = condition.op, (condition.left, condition.right)
    try:
        left, right = (names.index(side) for side in sides)
    except SourceError:
        return None
    difference = left - right
    if names.unsettled(difference):
        return None
    return _compared(difference, operator if holds else OPPOSITE[operator])


def _compared(difference: Formula, operator: str) -> Condition:
    """`difference operator 0`, of integers."""
    if operator == "==":
        return Condition(None, "and", (Condition(difference), Condition(-difference)))
    if operator == "!=":
        return Condition(None, "or", (Condition(difference - 1), Condition(-difference - 1)))
    return Condition({">=": difference, ">": difference - 1, "<=": -difference, "<": -difference - 1}[operator])
