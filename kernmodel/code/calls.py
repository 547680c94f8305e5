"""Calls in a loop: the function called, which calls the hot path avoids, and what is said of those it does not.

A square root that has to set errno is an instruction and, behind a test for negative arguments, a call; a product of
complex numbers is six operations and, behind a test for NaN, a call; compilers put what they take for rare behind the
loop. Such blocks are left out, see docs/loop-finding.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from kernmodel.errors import Note
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction, Listing, MemoryReference
from kernmodel.isa.protocol import Registers
from kernmodel.value_types import dataclass

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


CALL = "call"
"""Code of the note that a loop calls a function whose time is not known."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function that code calls.

    Attributes:
        name: of the function, "" where the code does not name it; count: instructions that call it.
        chained: how many of them wait for their own result of an earlier pass.
    """

    name: str
    count: int
    chained: int = 0


def calls_in(body: Sequence[Instruction], *, repeats: bool = True) -> tuple[Call, ...]:
    """The functions that a body calls, in the order of their first calls; `repeats`: whether it is that of a loop."""
    places = [number for number, instruction in enumerate(body) if instruction.branch == "call"]
    chained = {number for number in places if repeats and _waits_for_itself(body, number)}
    names = {number: called_name(body[number], {}) for number in places}
    return tuple(
        Call(name, sum(names[at] == name for at in places), sum(names[at] == name for at in chained))
        for name in dict.fromkeys(names.values())
    )


_PASSES = 3
"""Passes over which a result is followed."""
_ARGUMENTS = {
    **dict.fromkeys(_REMEDIES, 1),
    **dict.fromkeys(("pow", "atan2", "hypot", "fmod", "remainder", "fmin", "fmax", "fdim", "copysign"), 2),
    "fma": 3,
    **dict.fromkeys(("memcpy", "memmove", "memset"), 0),
}
"""Floating-point arguments of functions, by their names for double."""


def _waits_for_itself(body: Sequence[Instruction], call: int) -> bool:
    """Whether the result of a call reaches an argument of the same call in a later pass, through registers and the
    stack frame, as by System V's and Arm's calling conventions."""
    registers = isa_of(body[call].isa).registers
    moved = {one for instruction in body for one in instruction.registers_written}
    found = set(registers.vectors[:1])  # what holds a value that depends on the result
    order = [*range(call + 1, len(body)), *(number for _ in range(_PASSES) for number in range(len(body)))]
    for number in order:
        instruction = body[number]
        if instruction.branch == "call":
            reached = not found.isdisjoint(registers.vectors[: _arguments(called_name(instruction, {}))])
            if reached and number == call:
                return True
            found = {one for one in found if _survives(one, registers)}
            found |= set(registers.vectors[:1]) if reached else set()
        elif instruction.branch is None:
            _follow(instruction, found, moved, registers)
    return False


def _arguments(name: str) -> int | None:
    """Floating-point arguments of a function; None of one that is not known, for as many as are passed in registers."""
    vector = re.match(r"_ZGV[a-z][NM]\w+?([vlu]+)_", name)
    return len(vector[1]) if vector else _ARGUMENTS.get(_plain_name(name))


def _survives(place: str, registers: Registers) -> bool:
    """Whether a called function leaves a register or a word of the frame as it is."""
    if place in registers.general:
        return place not in registers.clobbered
    return place in registers.kept_vectors or place.startswith(_FRAME)


_FRAME = "["
"""What names of words of the stack frame begin with."""


def _follow(instruction: Instruction, found: set[str], moved: set[str], registers: Registers) -> None:
    """Put what an instruction writes into `found` if it reads something there, else take it out; `moved`: the registers
    that the body writes."""
    words = [(_word(one, moved, registers), one) for one in instruction.memory]
    read = [one.register for one in instruction.operands if one.read and one.register]
    read += [*instruction.implicit_reads, *(word for word, one in words if one.read and word)]
    written = [*instruction.registers_written, *(word for word, one in words if one.written and word)]
    if not found.isdisjoint(read) and not isa_of(instruction.isa).writes_constant(instruction):
        found.update(written)
    else:
        found.difference_update(written)


def _word(reference: MemoryReference, moved: set[str], registers: Registers) -> str:
    """Name of a word of the stack frame, where spilled values lie; "" for other memory."""
    if reference.base not in registers.frame or reference.base in moved - {registers.stack_pointer} or reference.index:
        return ""
    return f"{_FRAME}{reference.base}{reference.displacement:+}]"


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


def is_complex_product(name: str) -> bool:
    """Whether a function is the compiler's own for products of complex numbers."""
    return name in ("__mulsc3", "__muldc3", "__mulxc3", "__multc3")


def call_notes(listing: Listing, body: Iterable[Instruction]) -> tuple[Note, ...]:
    """A warning for each function that the body calls in every pass."""
    labels = {address: name for name, address in listing.labels}
    notes: dict[str, Note] = {}
    for instruction in body:
        if instruction.branch == "call":
            name = called_name(instruction, labels)
            notes.setdefault(name, Note(CALL, _text(name), "warning", instruction.place_in(listing.file)))
    return tuple(notes.values())


def left_out_note(listing: Listing, blocks: Iterable[Instruction]) -> Note:
    """What is assumed where a pass avoids blocks with a call."""
    inside = sorted(blocks, key=lambda instruction: instruction.address)
    labels = {address: name for name, address in listing.labels}
    calls = [instruction for instruction in inside if instruction.branch == "call"]
    names = list(dict.fromkeys(named(called_name(call, labels)) for call in calls))
    lines = [instruction.line for instruction in inside if instruction.line]
    start = labels.get(inside[0].address, "")
    place = ", ".join(filter(None, (start, _lines(lines))))
    one = f"a block with the call of {' and '.join(names)}{f' ({place})' if place else ''} is"
    what = one if len(calls) == 1 else f"the blocks with {len(calls)} calls of {' and '.join(names)} are"
    called = [called_name(call, labels) for call in calls]
    rare = next((why for is_kind, why in _RARE if all(map(is_kind, called))), None)
    guess = "code out of line is what the compiler takes to be rare; if your data take that way, the loop is slower"
    text = f"{what} left out: {rare or guess}"
    # a call that the source itself makes on a condition also stands out of line: only these are certain to be rare
    return Note("cold-block", text, "assumption" if rare else "warning", calls[0].place_in(listing.file))


_RARE = (
    (
        is_square_root,
        "only negative arguments, for which errno has to be set, take that way (-fno-math-errno removes it)",
    ),
    (
        is_complex_product,
        "only products of which both parts are NaN take that way, to become infinite where a factor is "
        "(C11, G.5.1; -fcx-limited-range removes it)",
    ),
)
"""Functions of which it is certain why they are rarely called, and that."""


def _lines(lines: list[int]) -> str:
    if not lines:
        return ""
    return f"line {lines[0]}" if min(lines) == max(lines) else f"lines {min(lines)}-{max(lines)}"


def _text(name: str) -> str:
    return f"each pass calls {named(name)}, whose time is not included{remedy(name)}"


def remedy(name: str) -> str:
    """What avoids the call of a function, behind a semicolon; "" where nothing is known to."""
    found = _REMEDIES.get(_plain_name(name))
    return f"; {found}" if found else ""


def _plain_name(name: str) -> str:
    """The name of a function of the library for double."""
    return name if name in _REMEDIES else name.removeprefix("__").removesuffix("_finite").removesuffix("f")


def named(name: str) -> str:
    """What to call a function."""
    return name or "a function that the code does not name"
