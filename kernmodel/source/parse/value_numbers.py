"""Which operations of a body yield different values, and along which loops: what a compiler has to leave.

Local value numbering (Cooke, Schwartz 1970; Muchnick: Advanced Compiler Design and Implementation, section 12.4): equal
operations on equal operands have one number. A compiler may compute such a value once, and outside of every loop on
which none of its operands depends.
"""

from __future__ import annotations

from collections.abc import Hashable

from kernmodel.source.model import DistinctOperation, Operation
from kernmodel.value_types import dataclass

Variables = frozenset[str]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from: its number, the loop variables it depends on, and the text of a literal."""

    number: int
    variables: Variables = frozenset()
    literal: str | None = None


class ValueNumbers:
    """Numbers the values of a body in execution order and remembers the operations that make them."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._scalars: dict[str, Origin] = {}
        self._stores: dict[str, int] = {}
        self._operations: dict[int, DistinctOperation] = {}

    @property
    def operations(self) -> tuple[DistinctOperation, ...]:
        """The operations so far, each value once."""
        return tuple(self._operations.values())

    def fresh(self, variables: Variables = frozenset()) -> Origin:
        """A value of which nothing else is known."""
        return self._origin(("fresh", len(self._numbers)), variables)

    def constant(self, text: str) -> Origin:
        """A literal."""
        return Origin(self._number(("constant", text)), literal=text)

    def scalar(self, name: str, variables: Variables = frozenset()) -> Origin:
        """The value that a scalar variable has now; `variables`: those of one that nothing has assigned yet."""
        return self._scalars.get(name) or self._origin(("scalar", name), variables)

    def assign(self, name: str, value: Origin) -> None:
        """A scalar variable takes a value."""
        self._scalars[name] = value

    def element(self, array: str, text: str, variables: Variables) -> Origin:
        """The value of an array element: the same until something is stored to its array."""
        return self._origin(("element", array, text, self._stores.get(array, 0)), variables)

    def store(self, array: str) -> None:
        """Something is stored to an array."""
        self._stores[array] = self._stores.get(array, 0) + 1

    def operation(self, kind: Operation, operands: tuple[Origin, ...], symbol: str, *, counted: bool) -> Origin:
        """The value of an operation; `symbol` tells operations of one kind apart ("-" from "+").

        `counted`: it is floating-point work of the innermost body. A product with ±1 is none.
        """
        numbers = [operand.number for operand in operands]
        if symbol in ("+", "*"):
            numbers.sort()
        variables = frozenset[str]().union(*(operand.variables for operand in operands))
        made = self._origin((symbol, *numbers), variables)
        literals = [operand.literal for operand in operands]
        if counted and not (kind == "mul" and any(map(_is_one, literals))):
            by_literal = kind == "div" and literals[-1] is not None
            self._operations.setdefault(made.number, DistinctOperation(kind, variables, by_literal))
        return made

    def _origin(self, key: Hashable, variables: Variables) -> Origin:
        return Origin(self._number(key), variables)

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _is_one(literal: str | None) -> bool:
    try:
        return literal is not None and float(literal.rstrip("fFlL")) == 1
    except ValueError:
        return False
