"""The arithmetic types of C on LP64, and the usual arithmetic conversions."""

from __future__ import annotations

from collections.abc import Iterable

from kernmodel.source.model import ElementType

INT = ElementType("int", 4, "integer")
LONG = ElementType("long", 8, "integer")
FLOAT = ElementType("float", 4, "float")
DOUBLE = ElementType("double", 8, "float")
LONG_DOUBLE = ElementType("long double", 16, "float")

_INTEGER_BYTES = {"char": 1, "_Bool": 1, "short": 2, "int": 4, "long": 8}
_FLOATS = {("float",): FLOAT, ("double",): DOUBLE, ("double", "long"): LONG_DOUBLE}


def element_type(words: Iterable[str]) -> ElementType | None:
    """The type that the specifiers (`("unsigned", "long")`) name, None if it is no real arithmetic type."""
    written = tuple(words)
    key = tuple(sorted(written))
    if key in _FLOATS:
        return _FLOATS[key]
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
        return max(floats, key=lambda element: element.size_bytes)
    return max((left, right, INT), key=lambda element: element.size_bytes)
