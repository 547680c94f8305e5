"""The arithmetic types of C on LP64, the usual arithmetic conversions, and what complex operations are made of.

A complex number is a pair of floating-point numbers, real part first (C17 6.2.5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kernmodel.source.model import ElementType, Operation

INT = ElementType("int", 4, "integer")
LONG = ElementType("long", 8, "integer")
FLOAT = ElementType("float", 4, "float")
DOUBLE = ElementType("double", 8, "float")
LONG_DOUBLE = ElementType("long double", 16, "float")

_INTEGER_BYTES = {"char": 1, "_Bool": 1, "short": 2, "int": 4, "long": 8}
_FLOATS = {("float",): FLOAT, ("double",): DOUBLE, ("double", "long"): LONG_DOUBLE}
_PARTS = {ElementType(f"{part.name} _Complex", 2 * part.size_bytes, "float"): part for part in _FLOATS.values()}
"""The complex types with those of their parts."""
COMPLEX_FLOAT = next(element for element, part in _PARTS.items() if part is FLOAT)


def element_type(words: Iterable[str]) -> ElementType | None:
    """The type that the specifiers (`("unsigned", "long")`) name, None if it is no real arithmetic type."""
    written = tuple(words)
    key = tuple(sorted(written))
    if key in _FLOATS:
        return _FLOATS[key]
    if "_Complex" in written:
        part = _FLOATS.get(tuple(word for word in key if word != "_Complex"))
        return None if part is None else _complex(part)
    sizes = [_INTEGER_BYTES[word] for word in written if word in _INTEGER_BYTES]
    if any(word not in _INTEGER_BYTES and word not in ("signed", "unsigned") for word in written) or not written:
        return None
    # "long int" is as long as "long", "short int" as short as "short": int only counts where it stands alone
    widths = [size for size in sizes if size != _INTEGER_BYTES["int"]] or [_INTEGER_BYTES["int"]]
    return ElementType(" ".join(written), widths[0], "integer")


def common_type(left: ElementType, right: ElementType) -> ElementType:
    """The type in which C computes an operation on the two (C11 §6.3.1.8); integers are at least int."""
    floats = [element for element in (left, right) if element.kind == "float"]
    if floats:
        widest = max(map(part_of, floats), key=lambda element: element.size_bytes)
        return _complex(widest) if any(map(is_complex, floats)) else widest
    return max((left, right, INT), key=lambda element: element.size_bytes)


def is_complex(element: ElementType) -> bool:
    """Whether a type is of complex numbers."""
    return element in _PARTS


def part_of(element: ElementType) -> ElementType:
    """The type of the parts of complex numbers; others are their own."""
    return _PARTS.get(element, element)


def _complex(part: ElementType) -> ElementType:
    return next(element for element, own in _PARTS.items() if own == part)


def real_operations(operation: Operation, left: ElementType, right: ElementType) -> Sequence[tuple[Operation, int]]:
    """The operations on parts that one on numbers of these types is made of, and how many: of complex numbers by their
    definition, as with `-fcx-limited-range`; a quotient is (a + bi)(c - di)/(c² + d²)."""
    one, other = is_complex(left), is_complex(right)
    if not one and not other:
        return ((operation, 1),)
    if operation == "add":
        return (("add", 2 if one and other else 1),)
    if operation == "mul":
        return (("mul", 4), ("add", 2)) if one and other else (("mul", 2),)
    if operation == "div":
        return (("mul", 6), ("add", 3), ("div", 2)) if other else (("div", 2),)
    return ((operation, 2),)
