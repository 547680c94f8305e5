"""Classes of C++ as structures of C: their data members, and the member functions that only return an expression.

Such a function (`double &x(int i) { return m_x[i]; }`) stands for its expression where it is called; a
`std::vector<T>` is a `T *`. What else a class has is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from kernmodel.patterns import pattern
from kernmodel.source.text import (
    blanked,
    closing_brace,
    end_of_declaration,
    only_directives,
    read_source,
    without_comments,
)
from kernmodel.value_types import dataclass

OWN_HEADER = pattern(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)".*$', re.MULTILINE)
_CLASS = pattern(r"(?<!enum )(?<!\w)(?:class|struct)\s+(\w+)\s*(?:final\s*)?(:[^{};()]*)?\{")
_LABEL = pattern(r"\b(?:public|private|protected)\s*:(?!:)")
_VECTOR = pattern(r"\bstd\s*::\s*vector\s*<\s*([\w\s]*\w)\s*>(\s*)&?(\s*)(?=\w)")
_MEMBER = pattern(
    r"\s*(?:mutable\s+)?((?:const\s+|unsigned\s+|long\s+|struct\s+)*\w+[\s*]+(?:const\s+)?(?:restrict\s+)?)"
    r"([*\w\[\]\s+,-]*?)\s*(?:=[^;]*)?;"
)
_OTHERS = pattern(r"[(<~&]|::|\b(?:static|friend|using|typedef|template|virtual|class|enum|operator|union)\b")
_RETURNING = pattern(
    r"\s*(?:inline\s+|constexpr\s+)*(?:const\s+)?[\w\s]+?([*&\s]+)(?:const\s+)?(\w+)\s*\(([^()]*)\)\s*(?:const\s*)?"
    r"\{\s*return\b([^;{}]*);\s*\}\s*;?"
)
_CALL = pattern(r"(\(\*\w+\)|\b[A-Za-z_]\w*)\s*(\.|->)\s*(\w+)\s*\(")
_ALIAS = pattern(r"\btypedef\s+(?:class\s+|struct\s+)?(\w+)\s+(\w+)\s*;|\busing\s+(\w+)\s*=\s*(\w+)\s*;")
_NO_TYPES = frozenset({"return", "else", "case", "const", "delete", "throw"})
_NAME = pattern(r"(?<![\w.>])[A-Za-z_]\w*")
_NESTED_CALLS = 4
"""How deep calls of such functions are looked for in the arguments and values of others."""


@dataclass(frozen=True, slots=True)
class Accessor:
    """A member function that only returns an expression of its parameters and of members."""

    parameters: tuple[str, ...]
    value: str


@dataclass(frozen=True, slots=True)
class CxxClass:
    """A class of C++.

    Attributes:
        members: the data members, those of known base classes too, by name, each with its declaration as C.
        accessors: the member functions that only return an expression, by their name and number of arguments.
    """

    name: str
    members: Mapping[str, str] = field(default_factory=dict)
    accessors: Mapping[tuple[str, int], Accessor] = field(default_factory=dict)


def without_vectors(text: str) -> str:
    """The text with `T *` in the place of `std::vector<T>`, also of a reference to one."""
    return _VECTOR.sub(lambda found: f"{found[1]}{found[2]} *{found[3]}", text)


def with_own_headers(
    text: str, file: str, spelled: Callable[[str], str], seen: frozenset[str] = frozenset()
) -> Iterator[str]:
    """The text, after those of its own headers that stand beside it or beside one another; `spelled` gives the text of
    a header without comments, as that of the file is."""
    for name in dict.fromkeys(match[1] for match in OWN_HEADER.finditer(text)):
        path = Path(file).parent / name if file else Path(name)
        if str(path) not in seen and path.is_file():
            seen |= {str(path)}
            yield from with_own_headers(spelled(read_source(path)), str(path), spelled, seen)
    yield text


def classes_in(texts: Iterable[str]) -> dict[str, CxxClass]:
    """The classes of texts, by their names and those that stand for them."""
    found: dict[str, CxxClass] = {}
    for text in texts:
        bare = without_comments(text, directives=False)
        for match in _CLASS.finditer(bare):
            end = closing_brace(bare, match.end() - 1) or len(bare)
            one = _read(match[1], bare[match.end() : end - 1])
            for base in re.findall(r"\w+", match[2] or ""):
                if base in found:
                    members, accessors = found[base].members, found[base].accessors
                    one = CxxClass(one.name, {**members, **one.members}, {**accessors, **one.accessors})
            found[one.name] = one
        for first, second, alias, meaning in _ALIAS.findall(bare):
            if (named := found.get(meaning or first)) is not None:
                found[alias or second] = named
    return found


def _items(inside: str) -> Iterator[tuple[int, int, str]]:
    """Where each declaration in the braces of a class starts and ends, and its text. Comments left long runs of spaces
    in that, which patterns would part in all ways: here each is one."""
    place = 0
    while place < len(inside):
        end = end_of_declaration(inside, place)
        yield place, end, " ".join(inside[place:end].split())
        place = end


def _read(name: str, inside: str) -> CxxClass:
    """A class by what stands in its braces."""
    members: dict[str, str] = {}
    accessors: dict[tuple[str, int], Accessor] = {}
    plain = _LABEL.sub(blanked, inside)
    for _, _, item in _items(plain):
        members |= _members(item)
        if (found := _RETURNING.fullmatch(item)) is not None and not re.search(r"\.\s*\w+\s*\(", found[4]):
            parameters = [
                part.split("=")[0].split() for part in found[3].split(",") if part.strip() not in ("", "void")
            ]
            names = tuple(words[-1].lstrip("*&") for words in parameters)
            accessors[found[2], len(names)] = Accessor(names, found[4].strip())
    return CxxClass(name, members, accessors)


def _members(item: str) -> dict[str, str]:
    """The data members of a declaration in a class, as C; none where it is another, or C has no such type."""
    plain = without_vectors(item)
    found = _MEMBER.fullmatch(plain)
    if found is None or _OTHERS.search(plain):
        return {}
    kind = " ".join(found[1].split()).removeprefix("const ")
    stars = kind.count("*")
    base, result = kind.replace("*", "").strip(), dict[str, str]()
    for number, declarator in enumerate(found[2].split(",")):
        own = " ".join(declarator.split())
        if named := re.fullmatch(r"([*\s]*)(\w+)\s*((?:\[[^\]]*\])*)", own):
            shared = number == 0 or plain != item  # std::vector stands for all names, a star for one
            marks = "*" * (named[1].count("*") + (stars if shared else 0))
            result[named[2]] = f"{base} {marks}{named[2]}{named[3]};"
    return result


def structure(name: str, part: str, bare: str) -> str | None:
    """The declaration of a class as that of a structure, with its lines; None where no data member is one of C."""
    opened = _CLASS.search(bare)
    if opened is None or opened[1] != name:
        return None
    end = (closing_brace(bare, opened.end() - 1) or len(bare)) - 1
    plain = _LABEL.sub(blanked, bare[opened.end() : end])
    made, any_member = "", False
    for start, stop, item in _items(plain):
        members = _members(item)
        any_member = any_member or bool(members)
        own = part[opened.end() + start : opened.end() + stop]
        made += only_directives(own)[: -1 if own.endswith("\n") else None] + " ".join(members.values())
        made += "\n" if own.endswith("\n") else ""
    head = f"typedef struct {name} {name}; struct {name} {{" + "\n" * opened[0].count("\n")
    return f"{part[: opened.start()]}{head}{made}}}{only_directives(part[end + 1 :])};" if any_member else None


def with_accessors(head: str, body: str, classes: Mapping[str, CxxClass], own: CxxClass | None) -> str:
    """The body of a function with the expressions of member functions in the place of their calls; `head`: what stands
    before it; `own`: the class whose member it is."""
    head += " ".join(own.members.values() if own else ())
    for _ in range(_NESTED_CALLS):
        before = body
        body = _with_calls(head, body, classes)
        if own is not None:
            body = _with_own_calls(body, own)
        if body == before:
            break
    return body


def _with_calls(head: str, body: str, classes: Mapping[str, CxxClass]) -> str:
    place = 0
    while (found := _CALL.search(body, place)) is not None:
        end, arguments = arguments_at(body, found.end() - 1)
        key = (found[3], len(arguments))
        place = found.end()
        types = _declared_types(found[1].strip("(*)"), head + body)
        named = [classes[one] for one in types if one in classes] if types else list(classes.values())
        owners = list({one.name: one for one in named if key in one.accessors}.values())
        if len(owners) == 1:
            value = _value(owners[0].accessors[key], arguments, owners[0], f"{found[1]}{found[2]}")
            value += "\n" * (body.count("\n", found.start(), end) - value.count("\n"))
            body = body[: found.start()] + value + body[end:]
            place = found.start()
    return body


def _declared_types(name: str, text: str) -> set[str]:
    """The types that an object is declared with; none of one that a text does not declare, or only as `auto`."""
    before = rf"(?<![\w.>])(\w+)\b(?:\s+const\b)?[\s*&]+(?:(?:const|restrict)\s+)?\b{name}\b(?=\s*[,;)=({{\[:])"
    found = set(re.findall(before, text)) - _NO_TYPES
    return set() if "auto" in found else found


def _with_own_calls(body: str, own: CxxClass) -> str:
    """Calls of accessors of the class itself; what stands before the body declares the function."""
    for name, _ in own.accessors:
        place = body.find("{")
        while (found := re.compile(rf"(?<![\w.>]){name}\s*\(").search(body, place)) is not None:
            end, arguments = arguments_at(body, found.end() - 1)
            place = found.end()
            if (accessor := own.accessors.get((name, len(arguments)))) is not None:
                value = _value(accessor, arguments, own, "")
                body = body[: found.start()] + value + body[end:]
                place = found.start() + len(value)
    return body


def _value(accessor: Accessor, arguments: Sequence[str], owner: CxxClass, before: str) -> str:
    """The expression that a call stands for; `before`: the object, with its `.` or `->`."""
    given = dict(zip(accessor.parameters, arguments, strict=True))

    def put(found: re.Match[str]) -> str:
        word = found[0]
        if word in given:
            plain = given[word].strip()
            return plain if re.fullmatch(r"\w+", plain) else f"({plain})"
        return f"{before}{word}" if word in owner.members else word

    return f"({_NAME.sub(put, accessor.value)})"


def arguments_at(text: str, place: int) -> tuple[int, list[str]]:
    """Behind the parenthesis that closes the one at `place`, and the arguments between them."""
    depth, start, found = 0, place + 1, list[str]()
    for token in re.compile(r"[()\[\]{},]").finditer(text, place):
        depth += (token[0] in "([{") - (token[0] in ")]}")
        if (token[0] == "," and depth == 1) or depth == 0:
            found.append(text[start : token.start()])
            start = token.end()
        if depth == 0:
            return token.end(), found if any(one.strip() for one in found) else []
    return len(text), found
