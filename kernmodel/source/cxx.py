"""C++ as C, where it is C but for its spelling: functions of a .cpp that loop over arrays through pointers.

The text keeps its lines. Namespaces, `using`, classes and templates without arguments go; references become pointers,
template parameters their arguments (those of the one instantiation or call with `<…>` in the text), `static_cast` a
cast. A function that uses more of C++ is taken out, and why is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kernmodel.errors import Location, UnsupportedKernelError
from kernmodel.patterns import pattern
from kernmodel.source.parse.standard_headers import MATH_FUNCTIONS
from kernmodel.source.text import (
    blanked,
    end_of_declaration,
    is_cxx,
    read_source,
    without_comments,
)

_WORD = pattern(r"[A-Za-z_]\w*|[^\w\s]")
_HEADER = pattern(r"^[ \t]*#[ \t]*include[ \t]*<[a-z_]+>", re.MULTILINE)
_OWN_HEADER = pattern(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)".*$', re.MULTILINE)
_CONSTANT = pattern(r"\b(?:static\s+)?const\s+(?:int|long|unsigned|size_t)\s+(\w+)\s*=\s*([\w*+ ]+);")
_REFERENCE = pattern(r"([\w*>]\s*)&(\s*)(\w+)(?=\s*[,)])")
_CAST = pattern(r"\bstatic_cast\s*<([^<>()]*)>")
_CALLED_TYPE = pattern(
    r"(?:(?<=[=(,+*/<>?:&|!\[-])|(?<=\breturn))(\s*)\b(double|float|int|long|unsigned|\w+_t)(\s*)\((?![\s*)])"
)
_PLAIN = {"nullptr": "NULL", "true": "1", "false": "0", "noexcept": "", "constexpr": "const", "std::size_t": "size_t"}
_FOREIGN = {
    r"\bstd\s*::\s*(\w+)": "std::{}",
    r"(\w+)\s*::": "names in {} (::)",
    r"\b(new|delete|auto|try|throw|catch|this|dynamic_cast|reinterpret_cast|const_cast)\b": "{}",
    r"(\[[&=]?\w*\])\s*[({](?!\s*\d)": "a lambda",
    r"\bfor\s*\([^;()]*:[^;()]*\)": "a loop over a range",
    r"\b(cout|cerr|endl)\b": "streams ({})",
    r"\b(\w+)\s*<\s*[\w ,*]+\s*>\s*\(": "the call of a template ({})",
    r"\)\s*(?:const\s*)?(\{)?\s*(operator)\b": "operators of its own",
}


class Translated(str):
    """The C text of a C++ file, with its lines.

    Attributes:
        refused: the functions that are left out, with their lines and what they use.
    """

    refused: Mapping[str, tuple[int, str]]

    def __new__(cls, text: str, refused: Mapping[str, tuple[int, str]]) -> Translated:
        """The text, which knows what is left out of it."""
        made = super().__new__(cls, text)
        made.refused = refused
        return made


def left_out(text: str) -> Mapping[str, tuple[int, str]]:
    """The functions of a C++ text that are left out; none of a C text."""
    return text.refused if isinstance(text, Translated) else {}


def refusal(text: str, file: str, name: str) -> UnsupportedKernelError | None:
    """Why a function of a C++ text is left out; None where it is not."""
    found = left_out(text).get(name)
    if found is None:
        return None
    what = f"{name} is no C after its template arguments are put in: it uses {found[1]}"
    todo = "write its loops as a function of pointers and numbers"
    return UnsupportedKernelError(what, where=Location(file, found[0]), todo=todo)


def with_headers(text: str, file: str, include: Sequence[str] = ()) -> str:
    """The text with its own headers in the place of their `#include`, those in C++ as C, for a compiler of C."""

    def read(match: re.Match[str]) -> str:
        for folder in (Path(file).parent, *map(Path, include)):
            path = folder / match[1]
            if path.is_file():
                line = text.count("\n", 0, match.start()) + 2
                inside = with_headers(as_c(read_source(path), str(path)), str(path), include)
                return f'#line 1 "{path}"\n{inside}\n#line {line} "{file}"'
        return match[0]

    return _OWN_HEADER.sub(read, text)


def as_c(text: str, file: str) -> str:
    """A text that is C++ by its name or its content as C; other text as it is."""
    return c_of_cxx(text) if is_cxx(text, file) else text


def c_of_cxx(text: str) -> Translated:
    """What of a C++ text is C."""
    refused: dict[str, tuple[int, str]] = {}
    plain = _HEADER.sub(blanked, without_comments(text, strings=False))
    for spelling, meaning in _PLAIN.items():
        plain = re.sub(rf"\b{spelling}\b", meaning.ljust(len(spelling)), plain)
    plain = re.sub(rf"\bstd\s*::\s*(?=(?:{'|'.join(MATH_FUNCTIONS)})[fl]?\b)", blanked, plain)
    plain = _CAST.sub(lambda match: f"({match[1]})".ljust(len(match[0])), plain)
    plain = _CALLED_TYPE.sub(r"\1(\2)\3(", plain)
    return Translated("".join(_top_level(plain, refused)), refused)


def _top_level(text: str, refused: dict[str, tuple[int, str]]) -> Iterator[str]:
    """The declarations of a text one after the other, each as C or blanked."""
    place, found, names = 0, list[tuple[str, str]](), set[str]()
    bare = without_comments(text, directives=False)
    while place < len(text):
        end = end_of_declaration(bare, place)
        part, seen = text[place:end], bare[place:end]
        opened = re.match(r"\s*(?:inline\s+)?(?:namespace\b[\w:\s]*|extern\s*)\{", seen)
        if opened:
            # what stands within is read like what stands outside; the closing brace is met alone
            end = place + opened.end()
            found.append(("", re.sub(r"(?m)^(?![ \t]*#).*$", blanked, text[place:end])))
        else:
            found.append(_declaration(part, seen, text, _line(bare, place), refused))
        name = found[-1][0]
        if name and name in names:
            refused[name] = _line(bare, place), "several functions with one name"
        names.add(name)
        place = end
    for name, part in found:
        yield re.sub(r"(?m)^(?![ \t]*#).*$", blanked, part) if name in refused else part


def _line(bare: str, place: int) -> int:
    start = place + len(bare[place:]) - len(bare[place:].lstrip())
    return bare.count("\n", 0, start) + 1


def _declaration(part: str, bare: str, text: str, line: int, refused: dict[str, tuple[int, str]]) -> tuple[str, str]:
    """The name of a function, or "", and the declaration as C; blanked where it is none."""
    nothing = re.sub(r"(?m)^(?![ \t]*#).*$", blanked, part)
    head = bare.partition("{")[0]
    template = re.match(r"\s*template\s*<([^<>]*)>", bare)
    # behind directives, which are spaces here: two runs of spaces side by side would be parted in all ways
    kind = re.match(
        r"(?:template\s*<[^<>]*>\s*)?(using|class|struct|union|enum\s+class|template|friend|\})", bare.lstrip()
    )
    if kind and kind[1] in ("struct", "union") and not template and _is_plain(bare):
        tag = re.match(r"\s*(?:struct|union)\s+(\w+)\s*\{", bare)
        known = f"typedef {kind[1]} {tag[1]} {tag[1]}; " if tag else ""
        start = len(bare) - len(bare.lstrip())  # behind directives
        return "", part[:start] + known + part[start:]
    returns_structure = kind is not None and kind[1] in ("struct", "union") and "(" in head
    if kind and not returns_structure and kind[1] != "template":
        return "", _opaque(bare, nothing)
    constant = _CONSTANT.search(bare)
    if constant and "(" not in bare:
        start, end = constant.span()
        return "", f"{part[:start]}enum {{ {constant[1]} = {constant[2]} }};{part[end:]}"
    function = re.search(r"([\w:~]+)\s*\([^{}]*\)\s*(?:const\s*)?\{", bare)
    if function is None:
        return "", nothing if template or re.search(r"::|&|<", bare) else part
    name = function[1]
    if template:
        arguments = _arguments(name, template[1], text)
        if isinstance(arguments, str):
            refused[name] = line, arguments
            return name, nothing
        blank = blanked(re.match(r"\s*template\s*<[^<>]*>", bare) or template)
        part, bare = (blank + whole[template.end() :] for whole in (part, bare))
        for parameter, argument in arguments.items():
            part, bare = (re.sub(rf"\b{parameter}\b", argument, whole) for whole in (part, bare))
    part, bare = _without_references(part, bare)
    uses = ((re.search(form, bare), saying) for form, saying in _FOREIGN.items())
    why = next((saying.format(*match.groups()) for match, saying in uses if match), None)
    if why is not None or "operator" in head:
        refused[name.rpartition("::")[2]] = line, why or "operators of its own"
        return name.rpartition("::")[2], nothing
    return name, part


def _opaque(bare: str, nothing: str) -> str:
    """A class as a structure of which nothing is known but its name: functions may be given one."""
    known = re.match(r"\s*(?:class|struct)\s+(\w+)\s*[{:;]", bare)
    if known is None:
        return nothing
    start = len(bare) - len(bare.lstrip())
    return f"{nothing[:start]}typedef struct {known[1]} {known[1]}; {nothing[start:]}"


def _is_plain(bare: str) -> bool:
    """Whether a structure has members alone that C has too."""
    inside = bare.partition("{")[2]
    words = "public|private|protected|static|virtual|template|using"
    return bool(inside) and not re.search(rf"[(&<~]|\b(?:{words})\b|::", inside)


def _arguments(name: str, parameters: str, text: str) -> dict[str, str] | str:
    """The arguments of a template's parameters, or why there are none."""
    names = [word.split("=")[0].split()[-1] for word in parameters.split(",") if word.strip()]
    uses = {match[1] for match in re.finditer(rf"\b{name}\s*<([^<>()]*)>\s*\(", text)}
    lists = {tuple(part.strip() for part in use.split(",")) for use in uses}
    if len(lists) == 1 and len(found := next(iter(lists))) == len(names):
        return dict(zip(names, found, strict=True))
    if len(lists) > 1:
        return f"several instantiations ({', '.join(sorted(uses))}): leave one"
    types = [word for word in parameters.split(",") if re.match(r"\s*(?:typename|class)\b", word)]
    if not types:
        return {}  # numbers stay names of sizes
    listed = ", ".join(names)
    return f"a template without arguments in this file: write template … {name}<…>(…); with them for {listed}"


def _without_references(part: str, bare: str) -> tuple[str, str]:
    """The function with pointers in the place of references to what is no class of templates."""
    end = bare.index("{")
    head, names = part[:end], [match[3] for match in _REFERENCE.finditer(bare[:end])]
    head = _REFERENCE.sub(r"\1*\2\3", head)
    body, bare_body = part[end:], bare[end:]
    for name in names:
        form = rf"(?<![\w.>]){name}\b"
        body, bare_body = (re.sub(form, f"(*{name})", whole) for whole in (body, bare_body))
    return head + body, _REFERENCE.sub(r"\1*\2\3", bare[:end]) + bare_body
