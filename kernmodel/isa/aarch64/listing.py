"""Reading AArch64 listings of compilers and disassemblers: by the grammar, no assembler needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches

from kernmodel.errors import AssemblyError, Location
from kernmodel.isa.aarch64.grammar import NotReadError, Part, parse
from kernmodel.isa.aarch64.instructions import LENGTH, WANTS_LENGTH, Context, LengthNotKnownError, instruction_of
from kernmodel.isa.assembler import check_length
from kernmodel.isa.model import Instruction, Listing

_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//.*|@.*|^\s*#(?!\d|-|:).*')
_LABEL = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[\w.$]+)\s*:(?!:)')
_ENCODED = re.compile(
    r"\.inst\s+(0x[0-9a-fA-F]{1,8})|\.byte\s+((?:0x[0-9a-fA-F]+|[1-9]\d*|0)(?:\s*,\s*(?:0x[0-9a-fA-F]+|[1-9]\d*|0)){3})"
)
_OSACA_NOP = bytes((213, 3, 32, 31))
"""A nop with its bytes in the wrong order, as OSACA's markers for AArch64 have it."""
_LOCAL = re.compile(r"(\d+)([bf])")
_TEXT_SECTION = re.compile(r'\.(?:text\b|(?:push)?section\s+"?(?:\.text|__TEXT))')
_OTHER_SECTION = re.compile(r"\.(?:data|bss|rodata|(?:push)?section)\b")
_BACK = re.compile(r"\.(?:popsection|previous)\b")
_AARCH32 = re.compile(r"[\s,{\[-]r(?:1[0-5]|\d)(?!\w)", re.IGNORECASE)
_GENERAL_TODO = "give an assembly listing of the loop"


def read_listing(text: str, file: str, context: Context) -> Listing:
    """The instructions of a listing in GNU, LLVM or Apple spelling; `file` names it in messages.

    Raises:
        AssemblyError: no instructions, or a line that is none; names the line.
    """
    check_length(text, file)
    lines = list(_statements(text))
    if not any(statement for _, statement, _ in lines):
        raise AssemblyError("holds no instructions", where=file, todo=_GENERAL_TODO)
    labels, numbered = _labels(lines)
    address = 0
    found: list[Instruction] = []
    for line, statement, label in lines:
        if label:
            continue
        place = address

        def target(part: Part, place: int = place) -> int | None:
            return _target(part, place, labels, numbered)

        found.append(_read(statement, Location(file, line), place, context, target))
        address += LENGTH
    names = sorted(labels.items(), key=lambda item: item[1])
    return Listing(file, context.isa, "gnu", tuple(found), tuple(names))


def _read(
    statement: str, where: Location, address: int, context: Context, target: Callable[[Part], int | None]
) -> Instruction:
    try:
        parsed = parse(statement)
        if any(part.symbol and _AARCH32.fullmatch(f" {part.symbol}") for part in parsed.parts):
            raise NotReadError("its registers are not of AArch64")
        return instruction_of(parsed, statement, where.line or 0, address, context, target)
    except LengthNotKnownError as error:
        raise AssemblyError(f"{statement!r} {error}", where=where, todo=WANTS_LENGTH) from None
    except NotReadError as error:
        if _AARCH32.search(statement):
            what = f"{statement!r} is AArch32 code, with registers r0 to r15"
            raise AssemblyError(what, where=where, todo="compile for AArch64 (A64)") from None
        raise AssemblyError(
            f"{statement!r} is not read as AArch64: {error}", where=where, todo=_hint(statement)
        ) from None


def _hint(statement: str) -> str:
    from kernmodel.isa.aarch64.evidence import MNEMONICS

    mnemonic = statement.split(maxsplit=1)[0].lower()
    near = get_close_matches(mnemonic, MNEMONICS, n=1) if mnemonic not in MNEMONICS else []
    return f"correct the line (is {near[0]!r} meant?)" if near else "correct the line"


def _statements(text: str) -> Iterator[tuple[int, str, str]]:
    """(line, statement, "") and (line, "", label) of the code sections, in order."""
    bare = _BLOCK_COMMENT.sub(lambda match: "\n" * match[0].count("\n") or " ", text)
    code = [True]
    for number, raw in enumerate(bare.splitlines(), 1):
        for piece in _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else " ", raw).split(";"):
            body = piece
            while label := _LABEL.match(body):
                if code[-1]:
                    yield number, "", label[1].strip('"')
                body = body[label.end() :]
            body = body.strip()
            encoded = _ENCODED.fullmatch(body) if code[-1] else None
            if encoded is not None:
                yield number, _disassembled(encoded), ""
            elif body[:1] == ".":
                _section(body, code)
            elif body and code[-1] and not re.match(r"[\w.$]+\s*=", body):
                yield number, " ".join(body.split()), ""


def _disassembled(encoded: re.Match[str]) -> str:
    """The instruction that a directive gives by its number or its four bytes."""
    from kernmodel.isa.aarch64.image import text_of

    numbers = [int(number, 0) for number in (encoded[1] or encoded[2]).split(",")]
    code = numbers[0].to_bytes(4, "little") if encoded[1] else bytes(number & 0xFF for number in numbers)
    return "nop" if code == _OSACA_NOP else text_of(code) or " ".join(encoded[0].split())


def _section(directive: str, code: list[bool]) -> None:
    """Follow the change of sections: only code is read."""
    if _TEXT_SECTION.match(directive):
        code[-1:] = [*code, True] if directive.startswith(".push") else [True]
    elif _BACK.match(directive):
        if len(code) > 1:
            code.pop()
        else:
            code[-1] = True
    elif _OTHER_SECTION.match(directive):
        code[-1:] = [*code, False] if directive.startswith(".push") else [False]


def _labels(lines: list[tuple[int, str, str]]) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Addresses of labels, and all those of labels that are numbers."""
    labels: dict[str, int] = {}
    numbered: dict[str, list[int]] = {}
    address = 0
    for _, _, label in lines:
        if not label:
            address += LENGTH
        elif label.isdigit():
            numbered.setdefault(label, []).append(address)
        else:
            labels.setdefault(label, address)
    return labels, numbered


def _target(part: Part, place: int, labels: Mapping[str, int], numbered: Mapping[str, list[int]]) -> int | None:
    if part.symbol is None:
        return None if part.number is None else place + part.number
    local = _LOCAL.fullmatch(part.symbol)
    if local is not None:
        places = numbered.get(local[1], [])
        before, after = [p for p in places if p <= place], [p for p in places if p > place]
        return (before[-1] if before else None) if local[2] == "b" else (after[0] if after else None)
    return labels.get(part.symbol)
