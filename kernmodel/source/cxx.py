"""C++ as C, where it is C but for its spelling: functions of a .cpp that loop over arrays through pointers.

The text keeps its lines. Namespaces, `using` and templates without arguments go; classes become structures, references
pointers, template parameters their arguments (those of the one instantiation or call with `<…>` in the text),
`static_cast` a cast. A statement that uses more of C++ becomes the call of a function that nothing knows; a function
whose head does is taken out, and why is kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kernmodel.errors import Location, Note, UnsupportedKernelError
from kernmodel.patterns import pattern
from kernmodel.source.cxx_classes import (
    OWN_HEADER,
    CxxClass,
    arguments_at,
    classes_in,
    structure,
    with_accessors,
    with_own_headers,
    without_vectors,
)
from kernmodel.source.cxx_references import (
    takes_double,
    taking_references,
    with_addresses,
    with_overloads,
    without_references,
)
from kernmodel.source.cxx_statements import blank_qualifiers, foreign_uses, without_statements
from kernmodel.source.parse.standard_headers import FOREIGN, MATH_FUNCTIONS, STANDARD_TYPEDEFS
from kernmodel.source.text import (
    blanked,
    closing_brace,
    end_of_declaration,
    function_bodies,
    is_cxx,
    only_directives,
    other_bodies_blanked,
    read_source,
    without_comments,
)
from kernmodel.value_types import dataclass

_NAME = pattern(r"[A-Za-z_]\w*")
_HEADER = pattern(r"^[ \t]*#[ \t]*include[ \t]*<[a-z_]+>", re.MULTILINE)
_CONSTANT = pattern(r"\b(?:static\s+)?const\s+(?:int|long|unsigned|size_t)\s+(\w+)\s*=\s*([\w*+ ]+);")
_CAST = pattern(r"\b(?:static|const|reinterpret)_cast\s*<([^<>()]*)>")
_VALUE = r"(?:(?<=[=(,+*/<>?:&|!\[-])|(?<=\breturn))"
"""Behind what a value stands."""
_MACRO = pattern(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:[^\n\\]|\\.|\\\n)*)", re.MULTILINE)
_ONCE = pattern(r"^[ \t]*#[ \t]*pragma[ \t]+once\b.*$", re.MULTILINE)
_NAMESPACE = pattern(r"\bnamespace\s+(\w+)\s*\{")
_CALLED_TYPE = pattern(rf"{_VALUE}(\s*)\b(double|float|int|long|unsigned|\w+_t)(\s*)\((?!\s*[*)])")
_TYPE = pattern(r"\btypedef\s+[\w ]+?\s+(\w+)\s*;|\busing\s+(\w+)\s*=\s*[\w:\s]+;")
_CHOICE = pattern(r"\bstd\s*::\s*(max|min)\s*(?:<[\w\s]+>\s*)?\(")
_PLAIN = {"nullptr": "NULL", "true": "1", "false": "0", "noexcept": "", "constexpr": "const", "std::size_t": "size_t"}
_PLAIN |= {f"std::{name}": name for name in STANDARD_TYPEDEFS if name.endswith("_t")}
_FOREIGN = {
    r"\bstd\s*::\s*(\w+)": "std::{}",
    r"(\w+)\s*::": "names in {} (::)",
    r"\b(new|delete|auto|try|throw|catch|this|dynamic_cast)\b": "{}",
    r"(\[[&=]?\w*\])\s*[({](?!\s*\d)": "a lambda",
    r"\bfor\s*\([^;()]*:[^;()]*\)": "a loop over a range",
    r"\b(cout|cerr|endl)\b": "streams ({})",
    r"\b(\w+)\s*<\s*[\w ,*]+\s*>\s*\(": "the call of a template ({})",
    r"\)\s*(?:const\s*)?(\{)?\s*(operator)\b": "operators of its own",
}
_FOREIGN_TYPES = {r"\b(\w+)\s*<[^<>;(){}]*>[\s*&]*\w+\s*[,)\[]": "a class of templates ({})"}


@dataclass(frozen=True, slots=True)
class _Known:
    """What a function of a text may use: the classes, which arguments functions take by reference, and how often the
    text and its headers name what; `assumed`: by name of a function, what it is taken for, as it is found."""

    classes: Mapping[str, CxxClass]
    references: Mapping[str, frozenset[int]]
    words: Counter[str]
    assumed: dict[str, str]


class Translated(str):
    """The C text of a C++ file, with its lines.

    Attributes:
        refused: the functions that are left out, with their lines and what they use.
        assumed: by name of a function that is called, what it is taken for.
    """

    refused: Mapping[str, tuple[int, str]]
    assumed: Mapping[str, str]

    def __new__(cls, text: str, refused: Mapping[str, tuple[int, str]], assumed: Mapping[str, str]) -> Translated:
        """The text, which knows what is left out of it."""
        made = super().__new__(cls, text)
        made.refused = refused
        made.assumed = assumed
        return made


def left_out(text: str) -> Mapping[str, tuple[int, str]]:
    """The functions of a C++ text that are left out; none of a C text."""
    return text.refused if isinstance(text, Translated) else {}


def cxx_notes(text: str, function: str | None) -> tuple[Note, ...]:
    """What is assumed of a function of a C++ text: which of several functions with one name it calls, and what of it is
    passed over; nothing of a C text."""
    if not isinstance(text, Translated) or function is None:
        return ()
    kept = other_bodies_blanked(text, function)
    bare = without_comments(kept, directives=False)
    own = "".join(kept[start : closing_brace(bare, start)] for start in function_bodies(bare))
    notes = [
        Note("cxx-function", f"{name}: {what}", "assumption")
        for name, what in text.assumed.items()
        if re.search(rf"\b{name}\b", own)
    ]
    uses = re.findall(rf'\b{FOREIGN}\("([^"]*)"', own)
    if uses:
        which = "a statement is" if len(uses) == 1 else f"{len(uses)} statements are"
        what = f"{which} passed over, being no C ({', '.join(dict.fromkeys(uses))}): what they set is not known"
        notes.append(Note("cxx-passed-over", what, "assumption"))
    return tuple(notes)


def refusal(text: str, file: str, name: str) -> UnsupportedKernelError | None:
    """Why a function of a C++ text is left out; None where it is not."""
    found = left_out(text).get(name)
    if found is None:
        return None
    what = f"{name} is no C after its template arguments are put in: it uses {found[1]}"
    todo = "write its loops as a function of pointers and numbers"
    return UnsupportedKernelError(what, where=Location(file, found[0]), todo=todo)


def with_headers(text: str, file: str, include: Sequence[str] = (), within: tuple[str, ...] = ()) -> str:
    """The text for a compiler of C: with its own headers in the place of their `#include`, those in C++ as C; of a text
    in C++ without those that are missing. `within`: the headers around it, which are not put into themselves."""

    def read(match: re.Match[str]) -> str:
        for folder in (Path(file).parent, *map(Path, include)):
            path = folder / match[1]
            if str(path) in within:
                return ""
            if path.is_file():
                line = text.count("\n", 0, match.start()) + 2
                inside = with_headers(as_c(read_source(path), str(path)), str(path), include, (*within, str(path)))
                once = re.sub(r"\W", "_", f"HEADER{path}")
                start, end = (f"#ifndef {once}\n#define {once}\n", "\n#endif") if _ONCE.search(inside) else ("", "")
                return f'{start}#line 1 "{path}"\n{_ONCE.sub("", inside)}{end}\n#line {line} "{file}"'
        return "" if is_cxx(text, file) or isinstance(text, Translated) else match[0]

    return OWN_HEADER.sub(read, text)


def needed_declarations(text: str, function: str) -> str:
    """The text with the declarations alone that a function uses, itself or through others, and all directives: what
    else headers of C++ declare may be nothing for a compiler of C."""
    bare, place = without_comments(text, directives=False), 0
    needed, found = {function}, list[tuple[int, int]]()
    macros = [(match[1], set(_NAME.findall(match[2]))) for match in _MACRO.finditer(without_comments(text))]
    while place < len(text):
        end = end_of_declaration(bare, place)
        found.append((place, end))
        place = end
    kept, left = set[tuple[int, int]](), found
    while new := [one for one in left if _declared(bare[slice(*one)]) & needed]:
        kept |= set(new)
        left = [one for one in left if one not in kept]
        needed |= {word for one in new for word in _NAME.findall(bare[slice(*one)])}
        while more := {word for name, words in macros if name in needed for word in words} - needed:
            needed |= more
    return "".join(text[slice(*one)] if one in kept else only_directives(text[slice(*one)]) for one in found)


def _declared(declaration: str) -> set[str]:
    """The names that a declaration at the top level of a file gives."""
    head, brace, inside = declaration.partition("{")
    if re.match(r"\s*(?:typedef\s+)?enum\b", head):
        return set(_NAME.findall(declaration)) - {"typedef", "enum"}
    if re.match(r"\s*typedef\b", head):
        return set(_NAME.findall(declaration.rpartition("}")[2] if brace else head)[-1:])
    if (called := re.search(r"(\w+)\s*\(", head)) is not None:
        return {called[1]}
    if brace and "=" not in head:
        return set(_NAME.findall(head)[-1:]) | set(_NAME.findall(inside.rpartition("}")[2]))
    return {match[1] for match in re.finditer(r"(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=|[,;])", declaration)}


def as_c(text: str, file: str) -> str:
    """A text that is C++ by its name or its content as C; other text as it is."""
    return c_of_cxx(text, file) if is_cxx(text, file) else text


def c_of_cxx(text: str, file: str = "") -> Translated:
    """What of a C++ text is C; the classes of headers are looked for beside the file."""
    texts = list(with_own_headers(_spelled_as_c(text), file, _spelled_as_c))
    names = sorted({match[1] or match[2] for one in texts for match in _TYPE.finditer(one)})
    calls = re.compile(rf"{_VALUE}(\s*)\b({'|'.join(names)})(\s*)\((?!\s*[*)])") if names else _CALLED_TYPE
    spaces = sorted({match[1] for one in texts for match in _NAMESPACE.finditer(one)})
    within = re.compile(rf"\b(?:{'|'.join(spaces)})\s*::\s*(?=\w)") if spaces else _NAMESPACE
    texts = [calls.sub(r"\1(\2)\3(", within.sub(blanked, one) if spaces else one) for one in texts]
    plain = with_overloads(texts[-1])
    refused: dict[str, tuple[int, str]] = {}
    words = Counter(_NAME.findall("".join(texts)))
    known = _Known(classes_in(texts), taking_references(without_vectors(plain)), words, {})
    return Translated("".join(_top_level(plain, known, refused)), refused, known.assumed)


def _spelled_as_c(text: str) -> str:
    """The text without comments, and with what C has too spelled as there."""
    plain = _HEADER.sub(blanked, without_comments(text, strings=False))
    for spelling, meaning in _PLAIN.items():
        plain = re.sub(rf"\b{spelling}\b", meaning.ljust(len(spelling)), plain)
    names = "|".join((*MATH_FUNCTIONS, "memcpy", "memmove", "memset"))
    plain = re.sub(rf"\bstd\s*::\s*(?=(?:{names})[fl]?\b)", blanked, plain)
    plain = _CAST.sub(lambda match: f"({match[1]})".ljust(len(match[0])), plain)
    plain = _CALLED_TYPE.sub(r"\1(\2)\3(", plain)
    return _with_choices(plain)


def _with_choices(text: str) -> str:
    """The text with `(a < b ? b : a)` in the place of `std::max(a, b)`, and the like for `std::min`."""
    while (found := _CHOICE.search(text)) is not None:
        end, arguments = arguments_at(text, found.end() - 1)
        if len(arguments) != 2:
            return text
        first, second = (argument.strip() for argument in arguments)
        sign = "<" if found[1] == "max" else ">"
        chosen = f"(({first}) {sign} ({second}) ? ({second}) : ({first}))"
        lines = "\n" * (text.count("\n", found.start(), end) - chosen.count("\n"))
        text = text[: found.start()] + chosen + lines + text[end:]
    return text


def _top_level(text: str, known: _Known, refused: dict[str, tuple[int, str]]) -> Iterator[str]:
    """The declarations of a text one after the other, each as C or blanked."""
    place, found = 0, list[tuple[str, str]]()
    overloads: dict[str, list[tuple[int, int, bool]]] = {}
    bare = without_comments(text, directives=False)
    while place < len(text):
        end = end_of_declaration(bare, place)
        part, seen = text[place:end], bare[place:end]
        opened = re.match(r"\s*(?:inline\s+)?(?:namespace\b[\w:\s]*|extern\s*)\{", seen)
        if opened:
            # what stands within is read like what stands outside; the closing brace is met alone
            end = place + opened.end()
            found.append(("", only_directives(text[place:end])))
        else:
            found.append(_declaration(part, seen, text, _line(bare, place), known, refused))
        if name := found[-1][0]:
            overloads.setdefault(name, []).append((len(found) - 1, _line(bare, place), takes_double(name, seen, text)))
        place = end
    for name, several in overloads.items():
        plain = [index for index, _, of_double in several if of_double]
        if len(several) > 1 and len(plain) == 1:
            known.assumed[name] = f"of {len(several)} functions with this name, that of double is taken"
            for index, _, _ in several:
                found[index] = ("", found[index][1] if index in plain else only_directives(found[index][1]))
        elif len(several) > 1:
            refused[name] = several[-1][1], "several functions with one name"
    for name, part in found:
        yield only_directives(part) if name in refused else part


def _line(bare: str, place: int) -> int:
    start = place + len(bare[place:]) - len(bare[place:].lstrip())
    return bare.count("\n", 0, start) + 1


def _declaration(
    part: str,
    bare: str,
    text: str,
    line: int,
    known: _Known,
    refused: dict[str, tuple[int, str]],
) -> tuple[str, str]:
    """The name of a function, or "", and the declaration as C; blanked where it is none."""
    nothing = only_directives(part)
    head = bare.partition("{")[0]
    template = re.match(r"\s*template\s*<([^<>]*)>", bare)
    # behind directives, which are spaces here: two runs of spaces side by side would be parted in all ways
    kind = re.match(
        r"(?:template\s*<[^<>]*>\s*)?(using|class|struct|union|enum\s+(?:class|struct)|template|friend|\})",
        bare.lstrip(),
    )
    if kind and kind[1] in ("struct", "union") and not template and _is_plain(bare):
        tag = re.match(r"\s*(?:struct|union)\s+(\w+)\s*\{", bare)
        named = f"typedef {kind[1]} {tag[1]} {tag[1]}; " if tag else ""
        start = len(bare) - len(bare.lstrip())  # behind directives
        return "", part[:start] + named + part[start:]
    returns_structure = kind is not None and kind[1] in ("struct", "union") and "(" in head
    if kind and not returns_structure and kind[1] != "template":
        return "", _named_type(part, bare) or _opaque(part, bare, nothing)
    listed = re.search(r"\benum\s+(\w+)\s*(?::\s*\w+\s*)?\{([^{}]*)\}\s*;", bare)
    if listed and "(" not in head:
        start = listed.start()
        return "", f"{part[:start]}typedef enum {listed[1]} {{{part[slice(*listed.span(2))]}}} {listed[1]};"
    constant = _CONSTANT.search(bare)
    if constant and "(" not in bare:
        start, end = constant.span()
        return "", f"{part[:start]}enum {{ {constant[1]} = {constant[2]} }};{part[end:]}"
    function = re.search(r"([\w:~]+)\s*\([^{}]*\)\s*(?:const\s*)?\{", bare)
    if function is None:
        return "", nothing if template or re.search(r"::|&|<", bare) else part
    name = function[1]
    if name in MATH_FUNCTIONS:
        # of a namespace: C has that of <math.h> alone
        known.assumed[name] = "the function of this name in the file is taken for that of <math.h>"
        return "", nothing
    if template:
        arguments = _types_within(template[1], bare) or _arguments(name, template[1], text)
        if isinstance(arguments, str):
            refused[name] = line, arguments
            return name, nothing
        blank = blanked(re.match(r"\s*template\s*<[^<>]*>", bare) or template)
        part, bare = (blank + whole[template.end() :] for whole in (part, bare))
        for parameter, argument in arguments.items():
            part, bare = (re.sub(rf"\b{parameter}\b", argument, whole) for whole in (part, bare))
    own = re.fullmatch(r"(\w+)\s*::\s*(~?\w+)", name)
    made = _function(part, bare, known, own[1] if own else "")
    if isinstance(made, str):
        return (own[2] if own else name), made
    refused[name.rpartition("::")[2]] = line, made[1]
    return name.rpartition("::")[2], nothing


def _function(part: str, bare: str, known: _Known, owner: str) -> str | tuple[int, str]:
    """A function as C, or its use of C++ that C has nothing for; `owner`: the class whose member it is."""
    part, bare = without_vectors(part), without_vectors(bare)
    if owner:
        part, bare = (re.sub(rf"\b{owner}\s*::\s*(?=\w+\s*\()", blanked, text, count=1) for text in (part, bare))
        part, bare = (re.sub(r"\bthis\s*->\s*(?=\w)", blanked, text) for text in (part, bare))
    part, bare = without_references(part, bare)
    end = bare.index("{")
    head = blank_qualifiers(part[:end])
    if "operator" in head:
        return 0, "operators of its own"
    if (use := foreign_uses(head, {**_FOREIGN, **_FOREIGN_TYPES})(0)) is not None:
        return use
    followed = with_accessors(part[:end], part[end:], known.classes, known.classes.get(owner))
    body = without_statements(with_addresses(followed, known.references), _FOREIGN)
    if not isinstance(body, str):
        return body
    before = [f"long {FOREIGN}(const char *, ...);"] if FOREIGN in body else []
    if owner in known.classes:
        before += [one for name, one in known.classes[owner].members.items() if known.words[name] > 1]
    start = len(bare[:end]) - len(bare[:end].lstrip())  # behind directives
    return f"{head[:start]}{' '.join(before)} {head[start:]}{body}" if before else f"{head}{body}"


def _named_type(part: str, bare: str) -> str | None:
    """`using T = double;` as a typedef; None where it is another declaration, or the type is none of C."""
    found = re.search(r"\busing\s+(\w+)\s*=\s*([\w\s*]+);", bare)
    start = bare.find("using")
    return None if found is None else f"{part[:start]}typedef {found[2].strip()} {found[1]};{part[found.end() :]}"


def _opaque(part: str, bare: str, nothing: str) -> str:
    """A class as a structure with its data members, or if none is one of C, of which nothing is known but its name:
    functions may be given one."""
    known = re.match(r"\s*(?:class|struct)\s+(\w+)\s*[{:;]", bare)
    if known is None:
        return nothing
    if (whole := structure(known[1], part, bare)) is not None:
        return whole
    start = len(bare) - len(bare.lstrip())
    return f"{nothing[:start]}typedef struct {known[1]} {known[1]}; {nothing[start:]}"


def _is_plain(bare: str) -> bool:
    """Whether a structure has members alone that C has too."""
    inside = bare.partition("{")[2]
    words = "public|private|protected|static|virtual|template|using"
    return bool(inside) and not re.search(rf"[(&<~]|\b(?:{words})\b|::", inside)


def _types_within(parameters: str, function: str) -> str:
    """Why a template has no C: it names types within the classes that are its arguments; "" where it names none."""
    for parameter in re.findall(r"\b(?:typename|class)\s+(\w+)", parameters):
        if (found := re.search(rf"\b{parameter}\s*::\s*(\w+)", function)) is not None:
            return f"a type within its template argument ({parameter}::{found[1]})"
    return ""


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
