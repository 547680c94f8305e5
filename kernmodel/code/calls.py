"""Calls in a loop: the function called, which calls the hot path avoids, and what is said of those it does not.

A square root that has to set errno is an instruction and, behind a test for negative arguments, a call; compilers put
what they take for rare behind the loop. Such blocks are left out, see docs/loop-finding.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kernmodel.errors import Location, Note
from kernmodel.isa.model import Instruction, Listing

_NO_ERRNO = "-fno-math-errno makes it an instruction"
_VECTOR_MATH = (
    "-ffast-math lets the compiler call a function for a whole vector (gcc with glibc's or with -mveclibabi=svml, "
    "clang with -fveclib=libmvec or -fveclib=SVML)"
)
_ELEMENTARY = (
    "exp exp2 expm1 log log2 log10 log1p pow cbrt sin cos sincos tan asin acos atan atan2 "
    "sinh cosh tanh asinh acosh atanh erf erfc hypot"
)
_NO_PATTERNS = "-fno-tree-loop-distribute-patterns (gcc) or -fno-builtin (clang) avoids it"
_REMEDIES = {
    "sqrt": _NO_ERRNO,
    **dict.fromkeys(_ELEMENTARY.split(), _VECTOR_MATH),
    **dict.fromkeys(("fmin", "fmax"), "-ffast-math makes it an instruction"),
    **dict.fromkeys(
        ("floor", "ceil", "trunc", "rint", "nearbyint"), "-ffast-math and a -march with SSE4.1 make it an instruction"
    ),
    "fma": "a -march with FMA makes it an instruction",
    **dict.fromkeys(("memcpy", "memmove", "memset"), _NO_PATTERNS),
}
"""What avoids the call of a function, by its name for double."""


def called_name(instruction: Instruction, labels: Mapping[int, str]) -> str:
    """The function that a call goes to, "" where the code does not name it; `labels` by address."""
    if instruction.operands and instruction.operands[0].register:
        return ""
    symbol = next((m.symbol for m in instruction.memory if m.symbol), None)
    if symbol is not None:
        return symbol.partition("@")[0]
    # assemblers may add a suffix for the width to the mnemonic
    written = re.search(rf"\b{instruction.mnemonic}\w?\s+\*?([A-Za-z_.$][\w.$]*)", instruction.text)
    return written[1] if written else labels.get(-1 if instruction.target is None else instruction.target, "")


def is_square_root(name: str) -> bool:
    """Whether a function is the library's square root."""
    return name.removeprefix("__").removesuffix("_finite") in ("sqrt", "sqrtf", "sqrtl")


def call_notes(listing: Listing, body: Iterable[Instruction]) -> tuple[Note, ...]:
    """A warning for each function that the body calls in every pass."""
    labels = {address: name for name, address in listing.labels}
    notes: dict[str, Note] = {}
    for instruction in body:
        if instruction.branch == "call":
            name = called_name(instruction, labels)
            notes.setdefault(name, Note("call", _text(name), "warning", _place(listing, instruction)))
    return tuple(notes.values())


def left_out_note(listing: Listing, blocks: Iterable[Instruction]) -> Note:
    """What is assumed where a pass avoids blocks with a call."""
    inside = sorted(blocks, key=lambda instruction: instruction.address)
    labels = {address: name for name, address in listing.labels}
    calls = [instruction for instruction in inside if instruction.branch == "call"]
    names = list(dict.fromkeys(_named(called_name(call, labels)) for call in calls))
    lines = [instruction.line for instruction in inside if instruction.line]
    start = labels.get(inside[0].address, "")
    place = ", ".join(filter(None, (start, _lines(lines))))
    one = f"a block with the call of {' and '.join(names)}{f' ({place})' if place else ''} is"
    what = one if len(calls) == 1 else f"the blocks with {len(calls)} calls of {' and '.join(names)} are"
    roots = all(is_square_root(called_name(call, labels)) for call in calls)
    why = (
        "only negative arguments, for which errno has to be set, take that way (-fno-math-errno removes it)"
        if roots
        else "code out of line is what the compiler takes to be rare; if your data take that way, the loop is slower"
    )
    text = f"{what} left out: {why}"
    # a call that the source itself makes on a condition also stands out of line: only errno's is certain to be rare
    return Note("cold-block", text, "assumption" if roots else "warning", _place(listing, calls[0]))


def _lines(lines: list[int]) -> str:
    if not lines:
        return ""
    return f"line {lines[0]}" if min(lines) == max(lines) else f"lines {min(lines)}-{max(lines)}"


def _text(name: str) -> str:
    base = name if name in _REMEDIES else name.removeprefix("__").removesuffix("_finite").removesuffix("f")
    remedy = _REMEDIES.get(base)
    return f"each pass calls {_named(name)}, whose time is not included{f'; {remedy}' if remedy else ''}"


def _named(name: str) -> str:
    return name or "a function that the code does not name"


def _place(listing: Listing, instruction: Instruction) -> Location:
    return Location(listing.file, instruction.line or None)
