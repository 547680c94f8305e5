"""C text in which calls that copy and fill arrays are loops over vectors, so that what they execute can be analysed.

The code of a C library is not there when a kernel is compiled. Its main loops load and store whole vectors, whatever
flags the kernel has: glibc's (sysdeps/x86_64/multiarch/ifunc-memmove.h, memmove-vec-unaligned-erms.S) take 32 bytes
where a core has them, on most also where it has 64. A loop over vectors of up to 32 bytes stands for them. What a
call does besides (its choice by size, the ends, streaming stores for what is larger than caches) is not in it.
"""

from __future__ import annotations

from collections.abc import Iterator

from kernmodel.patterns import pattern
from kernmodel.source.parse.standard_headers import MOST_STRAIGHT_BYTES
from kernmodel.source.text import without_comments

_CALL = pattern(r"\b(?:__builtin_{1,3})?(memcpy|memmove|memset|bzero)(?:_chk)?\s*\(")
_OWN = r"\b(?:memcpy|memmove|memset|bzero)\s*\([^;{}()]*\)\s*\{"
_DECLARED = pattern(r"(\bvoid\s*\*?\s*)(memcpy|memmove|memset|bzero)(\s*\()")
_EACH = (
    "for (unsigned long km_i = 0; km_i + sizeof(km_vector) <= km_n; km_i += sizeof(km_vector)) "
    "*(km_vector *)(km_to + km_i) = "
)
_STRAIGHT = f"__builtin_constant_p(n) && (n) <= {MOST_STRAIGHT_BYTES} ? "
_FUNCTIONS = {
    "memcpy(to, from, n)": (
        "const char *km_from = (const char *)(from);",
        "*(const km_vector *)(km_from + km_i)",
    ),
    "memmove(to, from, n)": (
        "const char *km_from = (const char *)(from);",
        "*(const km_vector *)(km_from + km_i)",
    ),
    "memset(to, value, n)": (
        "const km_vector km_value = (km_vector){0} + (char)(value);",
        "km_value",
    ),
}


def with_library_loops(text: str, file: str) -> str:
    """The text with these functions as macros that are loops, where it calls any and defines none of them."""
    bare = without_comments(text)
    if not _CALL.search(bare) or pattern(_OWN).search(bare):
        return text
    quoted = file.replace("\\", "\\\\").replace('"', '\\"')
    # preprocessed text declares the functions itself: a name in brackets is no macro
    declares = _DECLARED.search(bare) is not None
    return "\n".join((*_macros(headers=not declares), f'# 1 "{quoted}"', _DECLARED.sub(r"\1(\2)\3", text)))


def _macros(*, headers: bool) -> Iterator[str]:
    # their declarations must stand before the macros
    for header in ("string.h", "strings.h") if headers else ():
        yield f"#if __has_include(<{header}>)\n#include <{header}>\n#endif"
    # to gcc this is the widest vector; clang says 16, and takes two vectors where there are no wider ones
    yield "#ifdef __clang__\n#define km_widest 32\n#else\n#define km_widest __BIGGEST_ALIGNMENT__\n#endif"
    yield "enum { km_bytes = km_widest < 32 ? km_widest : 32 };"
    yield "typedef char km_vector __attribute__((vector_size(km_bytes), aligned(1), may_alias));"
    for called, (given, element) in _FUNCTIONS.items():
        name, arguments = called.split("(")
        body = f"char *km_to = (char *)(to); {given} const unsigned long km_n = (n); {_EACH}{element}; (void *)km_to;"
        yield f"#define __builtin_{called} ({_STRAIGHT}__builtin_{called} : ({{ {body} }}))"
        yield f"#undef {name}\n#define {called} __builtin_{called}"
        yield f"#define __builtin___{name}_chk({arguments[:-1]}, whole) __builtin_{called}"
    yield "#undef bzero\n#define bzero(to, n) __builtin_memset(to, 0, n)"
