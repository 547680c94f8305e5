"""From a parsed statement to an `Instruction`: operands with their roles, memory, flags, branches."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from kernmodel.isa.aarch64.grammar import Address, NotReadError, Part, Statement
from kernmodel.isa.aarch64.roles import ALL_FLAGS, CALLS, ELEMENT_BYTES, Role, access_bytes, role
from kernmodel.isa.model import Instruction, MemoryReference, Operand
from kernmodel.value_types import NamedTuple

LENGTH = 4
WANTS_LENGTH = "say it (--vl 512, or --uarch A64FX@512), or take a machine or core with one length (a64fx, grace)"
"""What to do about code that depends on the length of SVE's vectors, where that is not known."""
ALL_ELEMENTS = 31
"""Number of the pattern `all` of an instruction that counts elements (DDI 0487, C8.2, CNTD)."""
_NEON_BYTES = {"b": 1, "h": 2, "s": 4, "d": 8, "q": 16}
_IMMEDIATE_UPDATES = frozenset({"orr", "bic"})
_RETURN = frozenset({"ret"})
_TWO_OPERANDS = ("mov", "movk", "cmp", "cmn", "tst", "neg", "negs", "sxtw", "uxtw", "adr", "adrp", "cbz", "cbnz", "orr")
_THREE_OPERANDS = ("add", "adds", "sub", "subs", "lsl", "lsr", "asr", "ubfiz", "sbfiz", "mul", "smull", "umull")
_LEAST_OPERANDS = {
    **dict.fromkeys((*_TWO_OPERANDS, "rdvl", "bic"), 2),
    **dict.fromkeys((*_THREE_OPERANDS, "whilelo", "whilelt", "addvl", "addpl"), 3),
    **dict.fromkeys(("madd", "smaddl", "umaddl"), 4),
    **{f"{verb}{size}": 1 for verb in ("cnt", "inc", "dec") for size in "bhwd"},
}
_PAIR = re.compile(r"(?:ld|st)(?:n?p|l?x?p|axp)(?:sw)?")
_LENGTHS = frozenset(
    {"addvl", "addpl", "rdvl", *(f"{verb}{size}" for verb in ("cnt", "inc", "dec") for size in "bhwd")}
)


class LengthNotKnownError(NotReadError):
    """An instruction of SVE, and the length of vectors is not known."""


class Context(NamedTuple):
    """The instruction set's name, and the bytes of a vector of SVE, 0 where its length is not known."""

    isa: str
    sve_bytes: int


def instruction_of(
    statement: Statement, text: str, line: int, address: int, context: Context, target: Callable[[Part], int | None]
) -> Instruction:
    """The instruction.

    Args:
        statement: what it is.
        text: as written; line: in its listing, 0 for none; address: of it.
        context: of the listing.
        target: the address that a label stands for.

    Raises:
        LengthNotKnownError: an instruction of SVE.
        NotReadError: operands are missing.
    """
    alike = _pattern(statement, context.sve_bytes)
    branch = role(statement.mnemonic).branch
    label = statement.parts[-1] if branch in ("conditional", "jump", "call") and statement.parts else None
    return Instruction(
        text=text,
        line=line,
        address=address,
        length=LENGTH,
        branch=branch,
        target=target(label) if label is not None else None,
        isa=context.isa,
        **alike,
    )


@lru_cache(maxsize=20_000)
def _pattern(statement: Statement, vector_bytes: int) -> dict[str, Any]:
    """The fields of an instruction that do not depend on its place, by name."""
    does = role(statement.mnemonic)
    if not vector_bytes and needs_length(statement):
        raise LengthNotKnownError("belongs to SVE, whose vector length is not known")
    _check_operands(statement, does)
    operands = _operands(statement, does, vector_bytes)
    memory = tuple(operand.memory for operand in operands if operand.memory is not None)
    implicit_reads, implicit_writes = _implicit(statement)
    sources = {operand.register for operand in operands if operand.register and operand.read}
    sizes = [_width(part.kind, vector_bytes) for part in statement.parts if part.register]
    flags = does.flags_written and not (statement.mnemonic[:3] == "cmp" and statement.parts[0].kind[0] not in "pxw")
    return {
        "mnemonic": statement.mnemonic,
        "form": statement.form,
        "operands": operands,
        "implicit_reads": implicit_reads,
        "implicit_writes": implicit_writes,
        "flags_read": ALL_FLAGS if does.flags_read or statement.form == "mrs x,nzcv" else "",
        "flags_written": ALL_FLAGS if flags or statement.form == "msr nzcv,x" else "",
        "memory": memory,
        "same_register": len(sources) == 1,
        "vector_bytes": max(sizes, default=0),
        "has_mask": any(part.kind in ("p/m", "p/z") for part in statement.parts) and not memory,
    }


def _check_operands(statement: Statement, does: Role) -> None:
    """Refuse what lacks the operands without which the instruction means nothing."""
    least = _LEAST_OPERANDS.get(statement.mnemonic, 1 if does.branch in ("conditional", "jump") else 0)
    if len(statement.parts) < least:
        raise NotReadError(f"{statement.mnemonic} needs {least} operands")
    places = sum(part.address is not None or part.kind == "label" for part in statement.parts)
    if (does.loads or does.stores) and (places != 1 or len(statement.parts) <= does.writes):
        raise NotReadError(f"{statement.mnemonic} needs a register and one memory operand")


def needs_length(statement: Statement) -> bool:
    """Whether what the instruction does depends on the length of SVE's vectors."""
    if any(
        part.kind.lstrip("{")[:1] in ("z", "p") and part.kind not in ("pattern", "prfop") for part in statement.parts
    ):
        return True
    return statement.mnemonic in _LENGTHS


def _width(kind: str, vector_bytes: int) -> int:
    """Bytes of a vector register that is used as a whole, or of a scalar in one; 0 for others."""
    bare = kind.strip("{}").partition("*")[0].rstrip("}")
    if bare[:1] == "z":
        return vector_bytes
    if bare[:2] == "v.":
        lanes = bare[2:].removesuffix("[i]").rstrip("bhsdq}")
        return 16 if "[i]" in kind or not lanes else int(lanes) * ELEMENT_BYTES[bare[2 + len(lanes)]]
    return _NEON_BYTES.get(bare, 0)


def _operands(statement: Statement, does: Role, vector_bytes: int) -> tuple[Operand, ...]:
    parts = statement.parts
    listed = sum(part.kind[:1] == "{" or not part.kind for part in parts)
    written = _written(statement, does) if parts else 0
    merges = written > 0 and _merges(statement, does)
    # one lane of a register, or of each of a list, whose others stay as they are
    lanes = written > 0 and parts[0].kind.endswith("[i]")
    found = []
    for number, part in enumerate(parts):
        if part.address is not None:
            found += _memory(statement, part.address, part.kind, does, listed, vector_bytes)
        elif part.register is not None:
            result = does.first <= number < does.first + written
            reads = not result or merges or lanes
            # the zero registers hold the number 0 and keep nothing
            number_held = None if part.register else 0
            found.append(Operand(part.kind, part.register or None, None, number_held, reads, result))
        elif part.kind == "label" and does.branch is None and (part.symbol or part.number is not None):
            found.append(_symbol(part, statement, does))
        else:
            value = part.number if part.kind not in ("label", "cond") else None
            value = ALL_ELEMENTS if part.kind == "pattern" and part.symbol == "all" else value
            found.append(Operand(part.kind, None, None, value, False, False))
    return tuple(found)


def _written(statement: Statement, does: Role) -> int:
    """How many operands are written from the first result on: all of a list."""
    if not does.writes or statement.parts[0].kind[:1] != "{":
        return does.writes
    return 1 + next((n for n, part in enumerate(statement.parts[1:]) if part.kind), len(statement.parts) - 1)


def _merges(statement: Statement, does: Role) -> bool:
    """Whether the result keeps a part of what the first operand held."""
    kinds = [part.kind for part in statement.parts]
    if does.reads_first or (len(kinds) > 1 and kinds[1] == "p/m"):
        return True
    return statement.mnemonic in _IMMEDIATE_UPDATES and kinds[0][:2] == "v." and kinds[1][0] == "#"


def _memory(
    statement: Statement, address: Address, kind: str, does: Role, listed: int, vector_bytes: int
) -> list[Operand]:
    """The memory operand; the register that its base is advanced by is one more."""
    kinds = tuple(part.kind for part in statement.parts if part.kind and part.address is None)
    registers = listed or (2 if _PAIR.fullmatch(statement.mnemonic) else 1)
    size = access_bytes(statement.mnemonic, kinds, registers, vector_bytes) if does.loads or does.stores else 0
    post = address.written_back and (address.post_register is not None or "]," in kind)
    per_length = size if statement.parts[0].kind != "p" else vector_bytes // 8
    displacement = 0 if post else address.displacement * (per_length if address.lengths else 1)
    reference = MemoryReference(
        address.base,
        address.indexed_by,
        address.scale,
        displacement,
        address.symbol,
        None,
        size,
        does.loads,
        does.stores,
    )
    step = address.step if address.written_back else None
    if address.post_register is None:
        return [Operand(kind, None, reference, step, does.loads, does.stores)]
    by = Operand(",x", address.post_register, None, None, True, False)
    return [Operand(kind, None, reference, None, does.loads, does.stores), by]


def _symbol(part: Part, statement: Statement, does: Role) -> Operand:
    """A place named by its symbol or address: what adr and adrp compute, or what a load relative to the code loads."""
    size = access_bytes(statement.mnemonic, (statement.parts[0].kind,), 1, 0) if does.loads else 0
    memory = MemoryReference(None, None, 1, part.number or 0, part.symbol or None, None, size, does.loads, False)
    return Operand(part.kind, None, memory, None, does.loads, False)


def _implicit(statement: Statement) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Registers that are read and written without being operands: written-back bases, the link register."""
    if statement.mnemonic in CALLS:
        return (), ("x30",)
    if statement.mnemonic in _RETURN and not statement.parts:
        return ("x30",), ()
    bases = tuple(
        part.address.base for part in statement.parts if part.address is not None and part.address.written_back
    )
    return (), bases
