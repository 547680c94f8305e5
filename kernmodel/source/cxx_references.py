"""References of C++ as pointers of C, in functions and where they are called, and overloads as functions of their own.

Overloads are told apart by their number of parameters; of those that differ in their floating-point type alone, that of
double is taken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kernmodel.patterns import pattern
from kernmodel.source.cxx_classes import arguments_at
from kernmodel.source.text import without_comments

_REFERENCE = pattern(r"([\w*>]\s*)&(\s*)(\w+)(?=\s*[,)])")
_FUNCTION = pattern(r"(\w+)\s*\(([^(){};]*)\)\s*(?:const\s*)?\{")
_CONTROL = frozenset({"for", "if", "while", "switch", "catch"})
_TYPEDEFS = 5
"""How many names of types are followed to the type that they stand for."""
_LOCAL = pattern(r"(?<=[;{}\s])((?:const\s+)?\w+\s*)&(\s*)(\w+)\s*=(?!=)\s*([^;]*);")


def without_references(part: str, bare: str) -> tuple[str, str]:
    """A function and its text without directives, with pointers in the place of references to what is no class of
    templates."""
    end = bare.index("{")
    names = [match[3] for match in _REFERENCE.finditer(bare[:end])]
    head, body = _REFERENCE.sub(r"\1*\2\3", part[:end]), part[end:]
    local = list(_LOCAL.finditer(bare[end:]))
    names += [match[3] for match in local]
    for match in reversed(local):
        # the place that it stands for is that of the declaration
        body = f"{body[: match.start()]}{match[1]}*{match[2]}\0{match[3]} = &({match[4]});{body[match.end() :]}"
    for name in dict.fromkeys(names):
        body = re.sub(rf"(?<![\w.>\0]){name}\b", f"(*{name})", body)
    whole = head + body.replace("\0", "")
    return whole, without_comments(whole, directives=False)


def taking_references(text: str) -> dict[str, frozenset[int]]:
    """Which arguments the functions of a text take by reference, by their names; not of several with one name."""
    found: dict[str, frozenset[int]] = {}
    several = set[str]()
    for match in _FUNCTION.finditer(without_comments(text, directives=False)):
        if match[1] in found:
            several.add(match[1])
        parameters = match[2].split(",")
        found[match[1]] = frozenset(n for n, one in enumerate(parameters) if _REFERENCE.search(f"{one})"))
    return {name: places for name, places in found.items() if places and name not in several}


def with_addresses(body: str, references: Mapping[str, frozenset[int]]) -> str:
    """The text of a function with addresses in the place of arguments that are taken by reference."""
    called = [name for name in dict.fromkeys(re.findall(r"\b(\w+)\s*\(", body)) if name in references]
    for name in called:
        place = 0
        while (found := re.compile(rf"(?<![\w.>]){name}\s*\(").search(body, place)) is not None:
            end, arguments = arguments_at(body, found.end() - 1)
            taken = [_address(one) if n in references[name] else one for n, one in enumerate(arguments)]
            body = f"{body[: found.end()]}{','.join(taken)}){body[end:]}"
            place = found.end()
    return body


def with_overloads(text: str) -> str:
    """The text with functions of one name that take other numbers of arguments as `name_N`, but for that with the
    fewest, which is what a header may declare."""
    bare = without_comments(text, directives=False)
    counts: dict[str, list[int]] = {}
    for match in _FUNCTION.finditer(bare):
        if match[1] not in _CONTROL:
            counts.setdefault(match[1], []).append(
                len(arguments_at(bare, match.end(1) + bare[match.end(1) :].index("("))[1])
            )
    for name, found in counts.items():
        others = set(found) - {min(found)}
        if others and len(set(found)) == len(found):
            text = _renamed(text, name, others)
    return text


def _renamed(text: str, name: str, counts: set[int]) -> str:
    for found in reversed(list(re.finditer(rf"(?<![\w.>:]){name}(?=\s*\()", text))):
        count = len(arguments_at(text, text.index("(", found.end()))[1])
        if count in counts:
            text = f"{text[: found.end()]}_{count}{text[found.end() :]}"
    return text


def takes_double(name: str, function: str, text: str) -> bool:
    """Whether a function takes nothing but double; `text`: what may name the types of its parameters."""
    found = re.search(rf"\b{name}\s*\(([^()]*)\)", function)
    types = [" ".join(one.split()[:-1]).removeprefix("const ") for one in found[1].split(",")] if found else []
    return bool(types) and all(_resolved(one, text) == "double" for one in types)


def _resolved(name: str, text: str) -> str:
    """The type that a name of a type stands for."""
    for _ in range(_TYPEDEFS):
        found = re.search(rf"\btypedef\s+([\w ]+?)\s+{name}\s*;|\busing\s+{name}\s*=\s*([\w ]+?)\s*;", text)
        if name == "double" or found is None:
            break
        name = found[1] or found[2]
    return name


def _address(argument: str) -> str:
    """The address of an argument; of what a pointer points at, the pointer."""
    pointer = re.fullmatch(r"(\s*)\(\*(\w+)\)(\s*)", argument)
    if pointer is not None:
        return f"{pointer[1]}{pointer[2]}{pointer[3]}"
    start = len(argument) - len(argument.lstrip())
    return f"{argument[:start]}&({argument[start:]})"
