"""C text for the compiler from a whole function, without a parser: cheap enough to start the compiler first.

Nothing here imports pycparser. Text that is no visible whole function goes through `codegen`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from kernmodel.patterns import pattern
from kernmodel.source.find import find_source
from kernmodel.source.parse.standard_headers import MATH_FUNCTIONS, STANDARD_HEADERS, STANDARD_TYPEDEFS
from kernmodel.source.text import (
    blanked,
    function_bodies,
    other_bodies_blanked,
    read_source,
    refuse_other_languages,
    top_level_words,
    without_comments,
)

_HEADERS = {"size_t": "stddef.h", "ptrdiff_t": "stddef.h", "ssize_t": "sys/types.h", "bool": "stdbool.h"}
_WORD = pattern(r"[A-Za-z_]\w*")
_TYPE_WORDS = r"(?:int|long|short|char|signed|unsigned|float|double|_Bool|\w+_t|const)"
_TYPE_NAME = r"(?!(?:return|else|do|goto|case|sizeof|typedef)\b)[A-Za-z_]\w*"
_INCLUDED = pattern(r"^[ \t]*#[ \t]*include[ \t]*[<\"]([^>\"\n]+)", re.MULTILINE)
_STATIC = pattern(r"^[ \t]*static\s+[\w\s*]+[\w\]]\s*(?:\[[^;(){}]*\])?\s*(?:,[^;(){}]*)?;", re.MULTILINE)
_FUNCTION_MACRO = pattern(r"^[ \t]*#[ \t]*define[ \t]+\w+\((?:[^\n\\]|\\.|\\\n)*", re.MULTILINE)
_LINKAGE = frozenset({"static", "inline", "__inline", "__inline__"})


def quick_compilable(name_or_path: str, defines: Collection[str] = (), *, function: str | None = None) -> str | None:
    """The text for the compiler if the file visibly holds a whole C function, else None.

    Args:
        name_or_path: as for `load_kernel`.
        defines: names of the macros that are given to the compiler with -D.
        function: the function that is wanted.

    Returns:
        None also where headers may hold a size that -D gives: what stands beside it is found by reading them.

    Raises:
        InputError: no such file; SourceError: it cannot be read, or is C++ or Fortran.
    """
    text, file = find_source(name_or_path)
    refuse_other_languages(text, file)
    if not function_bodies(without_comments(text, directives=False)):
        return None
    if hasattr(text, "refused") and _INCLUDED.search(text):
        return None  # its headers may be C++ too
    own = [name for name in _INCLUDED.findall(text) if name not in STANDARD_HEADERS]
    if own and (defines or has_static_variables(text, file)):
        return None
    return compilable_function(text, file, defines, function)


def has_static_variables(text: str, file: str, include: Sequence[str] = (), seen: frozenset[str] = frozenset()) -> bool:
    """Whether own headers of a file hold `static` variables: a compiler that sees one function alone would take those
    that this does not write for constants, and drop the loops that they bound."""
    for name in _INCLUDED.findall(text):
        paths = [folder / name for folder in (Path(file).parent, *map(Path, include))]
        path = next((path for path in paths if path.is_file()), None)
        if name in STANDARD_HEADERS or path is None or str(path) in seen:
            continue
        inside, seen = read_source(path), seen | {str(path)}
        if _STATIC.search(without_comments(inside)) or has_static_variables(inside, str(path), include, seen):
            return True
    return False


def compilable_function(text: str, file: str, defines: Collection[str] = (), function: str | None = None) -> str:
    """A whole function as the compiler needs it; every line keeps its number.

    Functions lose `static` and `inline`, so that the compiler keeps them; a `#define` of a name that -D gives is taken
    out, so that -D wins; standard headers that the text uses but does not include are included. What the function that
    is wanted does not call is left out.
    """
    if function is not None:
        text = other_bodies_blanked(text, function)
    for name in defines:
        text = re.sub(
            rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\b(?:[^\n\\]|\\.|\\\n)*", blanked, text, flags=re.MULTILINE
        )
    bare = without_comments(text, directives=False)
    for start, end in reversed(top_level_words(bare, _LINKAGE)):
        text = text[:start] + " " * (end - start) + text[end:]
    includes = missing_headers(text)
    quoted = file.replace("\\", "\\\\").replace('"', '\\"')
    return f'{includes}#line 1 "{quoted}"\n{text}' if includes else text


def missing_headers(text: str) -> str:
    """`#include` lines of the standard headers whose names the text uses without including them."""
    words = set(_WORD.findall(without_comments(text)))
    needed = {_HEADERS.get(word, "stdint.h") for word in words & STANDARD_TYPEDEFS.keys()}
    if any(word in MATH_FUNCTIONS or (word[-1] in "fl" and word[:-1] in MATH_FUNCTIONS) for word in words):
        needed.add("math.h")
    missing = (header for header in sorted(needed) if not re.search(rf"#[ \t]*include[ \t]*<{header}>", text))
    return "".join(f"#include <{header}>\n" for header in missing)


def compiler_defines(text: str, defines: Mapping[str, str | int]) -> dict[str, str]:
    """Those of the -D values that a compiler may be given: not those that name a parameter or variable of the text."""
    bare = without_comments(text, directives=False)
    # macros with arguments may make whole functions: what these declare is no macro either
    bare += "".join(match[0] for match in _FUNCTION_MACRO.finditer(without_comments(text)))
    others = r"(?:[*\s]*\w+\s*(?:=[^,;(){}]*)?,)*"

    def declared(name: str) -> bool:
        # after a type that another file names no star is taken: `(a * N)` is a product, `T x, N;` a declaration
        starts = rf"\b{_TYPE_WORDS}\s+{others}[*\s]*", rf"\b{_TYPE_NAME}\s+{others.replace('[*', '[')}\s*"
        return any(re.search(rf"{start}{re.escape(name)}\s*[,;=)\[]", bare) for start in starts)

    return {name: str(value) for name, value in defines.items() if not declared(name)}
