"""From a file to C text: what is missing, empty, binary or another language is refused here with a clear message.

Free of pycparser, so that a caller can start the compiler before the analysis is imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from kernmodel.errors import Location, SourceError
from kernmodel.limits import TEXT_BYTES
from kernmodel.patterns import pattern
from kernmodel.resources import resolve
from kernmodel.user_files import GivenText, read_file

DESCRIPTIONS = frozenset({".yml", ".yaml"})
"""Endings of files that describe a kernel in place of C (`kernmodel.source.described`)."""
_CXX_ENDINGS = frozenset({".cpp", ".cc", ".cxx", ".c++", ".hpp", ".hh", ".hxx", ".cu"})
_FORTRAN_ENDINGS = frozenset({".f", ".for", ".ftn", ".f77", ".f90", ".f95", ".f03", ".f08"})

# Only forms that no C file holds outside comments and strings.
_CXX = pattern(
    r"\bstd::|\btemplate\s*<|\bnamespace\s+\w+\s*[{;]|\busing\s+namespace\b|\bclass\s+\w+\s*[{:]|\bpublic\s*:"
    r"|\bstatic_cast\s*<|#[ \t]*include[ \t]*<(?:iostream|vector|cmath|array|cstd\w+|algorithm|span|memory)>"
)
_FORTRAN = pattern(
    r"^[ \t]*(?:(?:end[ \t]*)?(?:subroutine|module|program)[ \t]+\w+|end[ \t]*do\b|implicit[ \t]+none"
    r"|do[ \t]+\w+[ \t]*=|real[ \t]*(?:\([^)]*\))?[ \t]*(?:,[^:\n]*)?::)",
    re.IGNORECASE | re.MULTILINE,
)
_BLANKED = pattern(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
_DIRECTIVE = pattern(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
_SIGN = pattern(r"[^\n]")
_ASSEMBLY = pattern(r"\b(?:asm|__asm|__asm__)\b(?:\s+(?:volatile|__volatile__|__volatile|goto|inline))*\s*\(")
_OLD_STYLE = pattern(r"\b(\w+)[ \t]*\(\s*(\w+(?:\s*,\s*\w+)*)\s*\)\s*((?:[A-Za-z_][\w\s*,\[\]]*;\s*)+)\{")
"""`f(n, a) int n; double *a; {`: name, parameters and their types."""
_DECLARATOR = pattern(r"\s*((?:(?:const|volatile|register|unsigned|signed|long|short|struct)\s+)*\w+)\b(.*)", re.DOTALL)
_STRUCTURE = pattern(r"\w+|[^\w\s]")
_CONTROL = frozenset({"for", "while", "if", "switch"})


def is_description(name_or_path: str) -> bool:
    """Whether a kernel is described in YAML, by the ending of its file."""
    return not isinstance(name_or_path, GivenText) and _ending(name_or_path) in DESCRIPTIONS


@lru_cache  # each point of a study asks
def _ending(path: str) -> str:
    return Path(path).suffix.lower()


def kernel_path(name_or_path: str) -> Path:
    """The file meant by `name_or_path`: a path first, else a kernel that the package carries.

    Raises:
        InputError: no such file; SourceError: its ending says Fortran.
    """
    if is_description(name_or_path):
        return resolve(name_or_path, "kernels", Path(name_or_path).suffix, "kernel description")
    path = resolve(name_or_path, "kernels", ".c", "kernel")
    if path.suffix.lower() in _FORTRAN_ENDINGS:
        raise other_language("Fortran", Location(name_or_path))
    return path


def has_cxx(text: str) -> bool:
    """Whether a text has what only C++ has, outside comments."""
    return _CXX.search(without_comments(text)) is not None


def is_cxx(text: str, file: str) -> bool:
    """Whether a text is C++, by the name of its file or by what only C++ has."""
    suffix = Path(file).suffix if not isinstance(file, GivenText) else ""
    return suffix.lower() in _CXX_ENDINGS or suffix == ".C" or has_cxx(text)


def read_source(path: Path) -> str:
    """The text of a C file.

    Raises:
        SourceError: it cannot be read, or is a binary file.
    """
    data = read_file(path, "C source", TEXT_BYTES, error=SourceError)
    if b"\0" in data:
        raise SourceError("is a binary file, not C source", where=str(path), todo="give the kernel's C source")
    try:
        return data.decode()
    except UnicodeDecodeError:
        # older text, or a comment in another encoding: what C consists of is the same in all of them
        return data.decode("latin-1")


def refuse_other_languages(text: str, file: str) -> None:
    """Raise `SourceError` if the text is empty, or by its evidence C++ or Fortran."""
    bare = without_comments(text)
    if not bare.strip():
        raise SourceError("is empty", where=file, todo="give C source with a loop nest")
    cxx = _CXX.search(bare)
    if cxx:
        raise other_language("C++", Location(file, _line(bare, cxx.start())), cxx[0])
    fortran = _FORTRAN.search(bare)
    if fortran:
        raise other_language("Fortran", Location(file, _line(bare, fortran.start())), fortran[0].strip())


def blanked(match: re.Match[str]) -> str:
    """The match as spaces, line breaks kept."""
    return re.sub(r"[^\n]", " ", match[0])


def only_directives(text: str) -> str:
    """The text with all but its preprocessor lines as spaces, line breaks kept."""
    made, place = "", 0
    for found in _DIRECTIVE.finditer(text):
        made += _SIGN.sub(" ", text[place : found.start()]) + found[0]
        place = found.end()
    return made + _SIGN.sub(" ", text[place:])


def without_comments(text: str, *, directives: bool = True, strings: bool = True) -> str:
    """The text with comments and strings blanked by spaces, so that every position stays.

    Without `directives`, preprocessor lines are blanked as well; without `strings`, strings stay.
    """
    bare = _BLANKED.sub(lambda found: blanked(found) if strings or found[0][0] == "/" else found[0], text)
    return bare if directives else _DIRECTIVE.sub(blanked, bare)


def with_prototypes(text: str) -> str:
    """C text in which functions have the types of their parameters in their parentheses, and a type, as C has since
    1989: `f(n, a) int n; double *a; {` becomes `int f(int n, double *a) {`; every line stays one."""
    bare = without_comments(text)
    for found in reversed(list(_OLD_STYLE.finditer(bare))):
        if found[1] in _CONTROL or bare.count("{", 0, found.start()) != bare.count("}", 0, found.start()):
            continue
        types = {}
        for declaration in found[3].split(";"):
            first, *others = declaration.split(",")
            if (parts := _DECLARATOR.match(first)) is None:
                continue
            for declarator in (parts[2], *others):
                if named := re.search(r"\w+", declarator):
                    types[named[0]] = " ".join(f"{parts[1]} {declarator}".split())
        names = [name.strip() for name in found[2].split(",")]
        if set(types) > set(names):
            continue
        listed = ", ".join(types.get(name, f"int {name}") for name in names)
        before = bare[: found.start()].rstrip(" \t")
        kind = "int " if before.rstrip()[-1:] in ("", ";", "}") or _DIRECTIVE.fullmatch(before.splitlines()[-1]) else ""
        breaks = "\n" * found[0].count("\n")
        text = f"{text[: found.start()]}{kind}{found[1]}({listed}){breaks}{{{text[found.end() :]}"
    return text


def without_assembly(text: str) -> str:
    """Preprocessed text with inline assembly as the call of a function `asm` that nothing knows, and the names that it
    gives to registers and functions blanked; every position stays."""
    if "asm" not in text:
        return text
    bare = without_comments(text, directives=False)
    for found in reversed(list(_ASSEMBLY.finditer(bare))):
        end = _closing_parenthesis(bare, found.end() - 1)
        before = bare[: found.start()].rstrip()
        opened = bare.count("{", 0, found.start()) > bare.count("}", 0, found.start())
        statement = opened and (before[-1:] in "{};):" or before.endswith(("else", "do")))
        call = "asm()" if statement else ""
        gap = blanked(re.match(r"[\s\S]*", text[found.start() + len(call) : end]) or found)
        text = text[: found.start()] + call + gap + text[end:]
    return text


def _closing_parenthesis(bare: str, start: int) -> int:
    """The position behind the parenthesis that closes the one at `start`; the end where none does."""
    depth = 0
    for token in re.compile("[()]").finditer(bare, start):
        depth += 1 if token[0] == "(" else -1
        if depth == 0:
            return token.end()
    return len(bare)


def function_bodies(bare: str) -> tuple[int, ...]:
    """The positions of the `{` that open a function body: at the top level, after a `)` that is no loop's or branch's.

    `bare` is text without comments and directives.
    """
    bodies = []
    braces = parentheses = 0
    head = last = ""
    for token in _STRUCTURE.finditer(bare):
        text = token[0]
        if text == "{" and braces == parentheses == 0 and last == ")" and head not in _CONTROL:
            bodies.append(token.start())
        if text == "(" and parentheses == 0:
            head = last
        braces += (text == "{") - (text == "}")
        parentheses += (text == "(") - (text == ")")
        last = text
    return tuple(bodies)


def other_bodies_blanked(text: str, function: str, *, callers: bool = False) -> str:
    """The text with the bodies of functions that a function does not call, itself or through others, as `;`.

    With `callers`, functions that name it keep theirs too, but not what else these call, and so do those that write a
    variable of the file that what is kept uses. Every line keeps its number. Text whose braces do not match, as where
    `#if` picks one of two, stays as it is.
    """
    bare = without_comments(text, directives=False)
    if bare.count("{") != bare.count("}"):
        return text
    found: dict[str, tuple[int, int]] = {}
    for start in function_bodies(bare):
        head = _HEAD.search(_before_parameters(bare, start))
        end = closing_brace(bare, start)
        if head is None or end is None:
            return text
        found[head[1]] = (start, end)
    if function not in found:
        return text
    # macros may hide a call
    hidden = set(re.findall(r"\w+", "\n".join(line[0] for line in _DIRECTIVE.finditer(text))))
    kept: set[str] = set()
    frontier = [function, *(name for name in found if name in hidden)]
    while frontier:
        name = frontier.pop()
        if name not in kept:
            kept.add(name)
            words = set(re.findall(r"\w+", text[slice(*found[name])]))
            frontier += [other for other in found if other in words]
    if callers:
        outside = re.findall(r"(\w+)\s*=(?!=)", _between(bare, found.values()))
        used = {name for one in kept for name in re.findall(r"\w+", text[slice(*found[one])])}.intersection(outside)
        change = "|".join([rf"\b{function}\b", *(_WRITES.format(name) for name in sorted(used))])
        kept |= {name for name, place in found.items() if re.search(change, bare[slice(*place)])}
    for name, (start, end) in sorted(found.items(), key=lambda item: item[1], reverse=True):
        if name not in kept:
            gap = re.sub(r"[^\n]", " ", text[start + 1 : end])
            text = f"{text[:start]};{gap}{text[end:]}"
    return text


def _between(bare: str, places: Iterable[tuple[int, int]]) -> str:
    """What stands outside of the bodies of functions, and of other blocks in braces."""
    return re.sub(r"\{[^{}]*\}", "", "".join(_gaps(bare, places)))


def _gaps(bare: str, places: Iterable[tuple[int, int]]) -> Iterator[str]:
    last = 0
    for start, end in sorted(places):
        yield bare[last:start]
        last = end
    yield bare[last:]


_WRITES = r"\b{0}\s*(?:=(?!=)|[-+*/%&|^]=|<<=|>>=|\+\+|--)|(?:\+\+|--|&)\s*{0}\b"
"""How a variable is changed."""
_HEAD = pattern(r"(\w+)\s*$")
_LONGEST_NAME = 500


def _before_parameters(bare: str, end: int) -> str:
    """What stands before the parameters of the function whose body starts at `end`, as far as its name reaches."""
    depth = 0
    for position in range(end - 1, -1, -1):
        depth += (bare[position] == ")") - (bare[position] == "(")
        if depth == 0 and bare[position] == "(":
            return bare[max(0, position - _LONGEST_NAME) : position]
    return ""


def closing_brace(bare: str, start: int) -> int | None:
    """The position behind the brace that closes the one at `start`."""
    depth = 0
    for token in re.compile("[{}]").finditer(bare, start):
        depth += 1 if token[0] == "{" else -1
        if depth == 0:
            return token.end()
    return None


def end_of_declaration(bare: str, place: int) -> int:
    """Behind the `;` or the closing brace that ends the declaration here."""
    for token in re.compile(r"[;{}]").finditer(bare, place):
        if token[0] != "{":
            return token.end()
        end = closing_brace(bare, token.start()) or len(bare)
        head = bare[place : token.start()].rstrip()
        if head.endswith((")", "const")) or re.match(r"\s*(?:inline\s+)?(?:namespace|extern)\b", head):
            return end
        semicolon = bare.find(";", end)
        return semicolon + 1 if semicolon >= 0 else len(bare)
    return len(bare)


def top_level_words(bare: str, words: frozenset[str]) -> tuple[tuple[int, int], ...]:
    """Start and end of these words where they stand outside of all braces and parentheses."""
    found = []
    depth = 0
    for token in _STRUCTURE.finditer(bare):
        depth += (token[0] in "({") - (token[0] in ")}")
        if depth == 0 and token[0] in words:
            found.append(token.span())
    return tuple(found)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def other_language(language: str, where: Location, evidence: str = "") -> SourceError:
    """The error that a text is in another language, with what shows it."""
    said = f" ({' '.join(evidence.split())})" if evidence else ""
    return SourceError(
        f"is {language}{said}, but kernmodel reads C", where=where, todo="write the loop nest as a C function"
    )
