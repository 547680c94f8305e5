"""One AArch64 instruction as text: its mnemonic and operands in one spelling, whoever wrote it.

GNU as, LLVM and Apple's assembler differ in `#`, lists, `v0.2d` or `fadd.2d`, and aliases. What comes out is the
preferred disassembly (Arm Architecture Reference Manual for A-profile, DDI 0487, C6 to C8) with operand kinds, by which
tables name forms: general registers `x w`, scalars `b h s d q`, `v.2d`, `v.d[i]`, `z.d`, `p`, `p/m`, lists `{v.2d*2}`,
`#imm`, `#fimm` and `#0`; `lsl#1-4` and `lsl#5+`; memory with all its parts, as in `[x,x,lsl#n]`, `[x,#imm]!`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from kernmodel.value_types import NamedTuple

_NAMES = {"sp": ("x", "sp"), "wsp": ("w", "sp"), "xzr": ("x", ""), "wzr": ("w", "")}
_NAMES |= {"lr": ("x", "x30"), "fp": ("x", "x29"), "ip0": ("x", "x16"), "ip1": ("x", "x17")}
_GENERAL = re.compile(r"([xw])([12]?\d|30)")
_SCALAR = re.compile(r"([bhsdq])([12]?\d|3[01])")
_VECTOR = re.compile(r"([vz])([12]?\d|3[01])(?:\.(\d*[bhsdq]))?(?:\[(\w+)\])?")
_PREDICATE = re.compile(r"pn?(1[0-5]|\d)(?:\.([bhsd])|/([mz]))?(?:\[\d\])?")
_LIST = re.compile(r"\{(.*)\}(?:\[(\w+)\])?")
_NUMBER = re.compile(r"#?([-+]?(?:0x[0-9a-f]+|\d+))")
_FLOAT = re.compile(r"#?([-+]?\d+\.\d*(?:e[-+]?\d+)?|[-+]?\d+e[-+]?\d+)")
_SHIFT = re.compile(r"(lsl|lsr|asr|ror|msl|[us]xt[bhwx])(?:\s*#?(0x[0-9a-f]+|\d+))?")
_LOW_PART = re.compile(r"#?:(\w+):(.+)")
_APPLE = re.compile(r"([a-z0-9]+)\.(16b|8b|8h|4h|2h|4s|2s|2d|1d|[bhsd])")
_SYMBOL = re.compile(r'(?:"[^"]*"|[\w.$@:]+)(?:\s*[-+]\s*(?:0x[0-9a-f]+|\d+))?', re.IGNORECASE)
_CONDITIONS = ("eq", "ne", "hs", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "al", "nv")
_CONDITION_ALIASES = {"cs": "hs", "cc": "lo", "none": "eq", "any": "ne", "nlast": "hs", "last": "lo", "first": "mi"}
_CONDITION_ALIASES |= {"nfrst": "pl", "pmore": "hi", "plast": "ls", "tcont": "ge", "tstop": "lt"}
_PATTERNS = re.compile(r"all|pow2|vl\d+|mul[34]")
_BRANCHES = frozenset({"b", "bl", "cbz", "cbnz", "tbz", "tbnz", "adr", "adrp"})
_ZERO_APART = re.compile(r"mov[zin]?|f?cm(?:eq|ge|gt|le|lt|ne)|fcmpe?|fm(?:ax|in)(?:nm)?")
"""Instructions for which an operand 0 is an encoding of its own, or which cores know as a constant."""
_BIG_SHIFT = 5
MAX_LIST = 4


class Address(NamedTuple):
    """What stands between brackets, and behind them."""

    base: str
    indexed_by: str | None = None
    scale: int = 1
    displacement: int = 0
    lengths: bool = False  # the displacement counts vector lengths
    symbol: str | None = None
    written_back: bool = False
    post_register: str | None = None
    step: int = 0  # added to the base if written back


class Part(NamedTuple):
    """One operand.

    Attributes:
        kind: as forms spell it; a list has one part for each register, the kinds of all but the first are "".
        register: full name ("x3", "sp", "v3", "p3"), "" for the zero registers, None where it is none.
        number: of an immediate or a shift; symbol: of a label; address: of memory.
    """

    kind: str
    register: str | None = None
    number: int | None = None
    symbol: str | None = None
    address: Address | None = None


class Statement(NamedTuple):
    """An instruction; `form` is the key of the tables."""

    mnemonic: str
    parts: tuple[Part, ...]

    @property
    def form(self) -> str:
        """Mnemonic and kinds of the operands."""
        kinds = ",".join([part.kind for part in self.parts if part.kind])
        return f"{self.mnemonic} {kinds}" if kinds else self.mnemonic


class NotReadError(ValueError):
    """An operand that is none."""


_NUMERAL = r"(?:0[xX][0-9a-fA-F]+|\d+)"
_TERMS = re.compile(rf"#\s*\(\s*([+-]?\s*{_NUMERAL}(?:\s*[+-]\s*{_NUMERAL})*)\s*\)")


@lru_cache(maxsize=20_000)
def parse(text: str) -> Statement:
    """The instruction that a statement (no label, no comment) is.

    Raises:
        NotReadError: what is wrong with it.
    """
    mnemonic, _, rest = _TERMS.sub(_sum, text.strip()).partition(" ")
    mnemonic, arrangement = mnemonic.lower(), ""
    if (apple := _APPLE.fullmatch(mnemonic)) and mnemonic[:2] != "b.":
        mnemonic, arrangement = apple[1], apple[2]
    if mnemonic[:3] == "bc.":
        mnemonic = f"b.{mnemonic[3:]}"  # b.cond with a hint to predict it by its own past (DDI 0487, C6.2, BC.cond)
    if mnemonic[:2] == "b." or (len(mnemonic) == 3 and mnemonic[0] == "b" and _is_condition(mnemonic[1:])):
        condition = mnemonic[2:] if mnemonic[1] == "." else mnemonic[1:]
        mnemonic = f"b.{_CONDITION_ALIASES.get(condition, condition)}"
    if not re.fullmatch(r"[a-z][a-z0-9_.]*", mnemonic):
        raise NotReadError(f"{mnemonic!r} is no mnemonic")
    fields = _split(rest)
    parts: list[Part] = []
    for position, one in enumerate(fields):
        parts += _operand(mnemonic, one, position, len(fields), arrangement)
    parts = _joined(mnemonic, parts)
    from kernmodel.isa.aarch64.aliases import preferred

    return preferred(Statement(mnemonic, tuple(parts)))


def unread(text: str) -> Statement:
    """What a disassembler prints and `parse` does not read: an instruction without a row, which its operands name."""
    mnemonic, _, rest = text.lower().partition(" ")
    return Statement(mnemonic, (Part(rest),) if rest else ())


def _sum(terms: re.Match[str]) -> str:
    """The number that a sum in parentheses is: gcc writes `ror #(32 - 5)`."""
    signed = re.findall(r"([+-]?)\s*(0x[0-9a-f]+|\d+)", terms[1].lower())
    return f"#{sum(_int(sign + digits) for sign, digits in signed)}"


def _is_condition(text: str) -> bool:
    return text in _CONDITIONS or text in _CONDITION_ALIASES


def _split(text: str) -> list[str]:
    """The operands, at commas outside of brackets and braces."""
    found, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        if letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
        elif letter == "," and not depth:
            found.append(text[start:place].strip())
            start = place + 1
    if depth:
        raise NotReadError("brackets do not match")
    last = text[start:].strip()
    found += [last] if last or found else []
    if "" in found:
        raise NotReadError("an operand is empty")
    return found


def _operand(mnemonic: str, text: str, position: int, count: int, arrangement: str) -> list[Part]:
    lower = text.lower()
    if lower[0] == "[":
        return [_memory(text)]
    if lower[0] == "{":
        return _list(lower, arrangement)
    if (mnemonic in _BRANCHES or mnemonic[:2] == "b.") and position == count - 1:
        return [_label(text)]
    register = _register(lower, arrangement)
    if register is not None:
        return [register]
    if (number := _NUMBER.fullmatch(lower)) is not None:
        if mnemonic[:3] in ("prf", "rpr") and not position:
            return [Part("prfop")]
        value = _int(number[1])
        if mnemonic[:3] == "ldr" and position == 1 == count - 1:
            return [Part("label", number=value)]
        return [Part("#imm" if value or not _ZERO_APART.fullmatch(mnemonic) else "#0", number=value)]
    if (floating := _FLOAT.fullmatch(lower)) is not None:
        return [Part("#fimm") if float(floating[1]) else Part("#0", number=0)]
    if (shift := _SHIFT.fullmatch(lower)) is not None:
        return _shift(shift[1], None if shift[2] is None else _int(shift[2]))
    return [_word(mnemonic, text, lower, position, count)]


def _word(mnemonic: str, text: str, lower: str, position: int, count: int) -> Part:
    """An operand that is a word: a condition, a pattern, a hint, a symbol."""
    if _is_condition(lower) and position == count - 1 and position:
        condition = _CONDITION_ALIASES.get(lower, lower)
        return Part("cond", symbol=condition)
    if (times := re.fullmatch(r"mul(?:\s+#?|#)(0x[0-9a-f]+|\d+)", lower)) is not None:
        return Part("mul#n", number=_int(times[1]))
    if (low := _LOW_PART.fullmatch(text)) is not None:
        return Part("#imm", number=0, symbol=low[2])
    if _PATTERNS.fullmatch(lower) and mnemonic[:3] in ("ptr", "cnt", "inc", "dec", "sqi", "sqd", "uqi", "uqd"):
        return Part("pattern", symbol=lower)
    if not position:
        return Part("prfop" if mnemonic.startswith("prf") else lower)
    if mnemonic in ("mrs", "msr", "dmb", "dsb", "isb", "hint"):
        return Part(lower)
    if _SYMBOL.fullmatch(text):
        return _label(text)
    raise NotReadError(f"{text!r} is no operand")


def _label(text: str) -> Part:
    number = _NUMBER.fullmatch(text.lower())
    if number is not None:
        return Part("label", number=_int(number[1]))
    low = _LOW_PART.fullmatch(text)
    return Part("label", symbol=low[2] if low else text)


def _int(text: str) -> int:
    digits = text.lstrip("+-")
    value = int(digits, 16) if digits.startswith("0x") else int(digits)
    return -value if text[0] == "-" else value


def _register(text: str, arrangement: str = "") -> Part | None:
    if text in _NAMES:
        kind, name = _NAMES[text]
        return Part(kind, name)
    if (general := _GENERAL.fullmatch(text)) is not None:
        return Part(general[1], f"x{general[2]}")
    if (scalar := _SCALAR.fullmatch(text)) is not None:
        return Part(scalar[1], f"v{scalar[2]}")
    if (vector := _VECTOR.fullmatch(text)) is not None:
        lanes = vector[3] or (arrangement if vector[1] == "v" else "")
        if vector[1] == "v" and not lanes:
            raise NotReadError(f"{text!r} has no arrangement such as .2d")
        if vector[4] is not None and lanes != "4b":
            lanes = lanes.lstrip("0123456789")
        kind = vector[1] + (f".{lanes}" if lanes else "") + ("[i]" if vector[4] is not None else "")
        return Part(kind, f"v{vector[2]}", number=_lane(vector[4]))
    if (predicate := _PREDICATE.fullmatch(text)) is not None:
        ending = f".{predicate[2]}" if predicate[2] else f"/{predicate[3]}" if predicate[3] else ""
        return Part(f"p{ending}", f"p{predicate[1]}")
    return None


def _lane(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _list(text: str, arrangement: str) -> list[Part]:
    """A list of registers: `{v0.2d, v1.2d}`, `{v0.2d-v1.2d}`, `{v0.d}[1]`."""
    match = _LIST.fullmatch(text)
    if match is None:
        raise NotReadError(f"{text!r} is no list of registers")
    found: list[Part] = []
    for one in match[1].split(","):
        first, _, last = (part.strip() for part in one.partition("-"))
        ends = [_register(name, arrangement) for name in (first, last or first)]
        low, high = (part for part in ends if part is not None) if None not in ends else (None, None)
        if low is None or high is None or not low.register or low.kind != high.kind or low.kind[0] not in "vz":
            raise NotReadError(f"{one.strip()!r} is no vector register")
        start, end = int(low.register[1:]), int((high.register or "")[1:])
        found += [Part(low.kind, f"v{(start + n) % 32}") for n in range((end - start) % 32 + 1)]
    if len(found) > MAX_LIST or len({part.kind for part in found}) > 1:
        raise NotReadError(f"{text!r} is no list of up to {MAX_LIST} registers of one kind")
    element = found[0].kind.rstrip("[i]") if match[2] is not None else found[0].kind
    if match[2] is not None:
        element = f"{element[:2]}{element[2:].lstrip('0123456789')}"
    times = f"*{len(found)}" if len(found) > 1 else ""
    kind = f"{{{element}{times}}}{'[i]' if match[2] is not None else ''}"
    return [part._replace(kind="" if number else kind) for number, part in enumerate(found)]


def _shift(name: str, amount: int | None) -> list[Part]:
    """A shift or extension; by 0 it is none."""
    if name[0] in "us" and name[1:3] == "xt":
        return [Part(f"{name}#n" if amount else name, number=amount or 0)]
    if name == "msl":
        return [Part("msl#n", number=amount)]
    if not amount:
        return [] if name == "lsl" else [Part(f"{name}#n", number=0)]
    if name != "lsl":
        return [Part(f"{name}#n", number=amount)]
    return [Part("lsl#1-4" if amount < _BIG_SHIFT else "lsl#5+", number=amount)]


def _memory(text: str) -> Part:
    """A memory operand up to its closing bracket and `!`."""
    lower = text.lower()
    inner, _, behind = lower[1:].partition("]")
    if behind.strip() not in ("", "!"):
        raise NotReadError(f"{text!r} is no memory operand")
    fields = [field.strip() for field in inner.split(",")]
    base = _register(fields[0])
    if base is None or base.register in (None, "") or (base.kind != "x" and base.kind[0] != "z"):
        raise NotReadError(f"{fields[0]!r} is no base of an address")
    kind, address = _inside(base, fields[1:], text)
    if behind.strip():
        address = address._replace(written_back=True, step=address.displacement)
        kind += "!"
    return Part(kind, address=address)


def _inside(base: Part, fields: list[str], text: str) -> tuple[str, Address]:
    address = Address(base.register or "")
    if not fields:
        return f"[{base.kind}]", address
    index = _register(fields[0])
    if index is None:
        return _with_displacement(base, fields, address, text)
    if len(fields) > 2 or index.register is None:
        raise NotReadError(f"{text!r} is no memory operand")
    kind, scale = f"{base.kind},{index.kind}", 1
    if len(fields) == 2:
        shift = _SHIFT.fullmatch(fields[1])
        if shift is None:
            raise NotReadError(f"{fields[1]!r} does not shift or extend")
        amount = _int(shift[2]) if shift[2] else 0
        scale = 1 << min(amount, 63)
        if shift[1] != "lsl" or amount:
            kind += f",{shift[1]}{'#n' if amount else ''}"
    return f"[{kind}]", address._replace(indexed_by=index.register or None, scale=scale)


def _with_displacement(base: Part, fields: list[str], address: Address, text: str) -> tuple[str, Address]:
    symbol = _LOW_PART.search(text[text.index(",") + 1 :].partition("]")[0].strip())
    if symbol is not None:
        return f"[{base.kind},#imm]", address._replace(symbol=symbol[2].strip())
    number = _NUMBER.fullmatch(fields[0])
    lengths = len(fields) == 2 and re.fullmatch(r"mul\s+vl", fields[1]) is not None
    if number is None or len(fields) > 1 + lengths:
        raise NotReadError(f"{text!r} is no memory operand")
    value = _int(number[1])
    if not value:
        return f"[{base.kind}]", address
    kind = f"[{base.kind},#imm{',mul vl' if lengths else ''}]"
    return kind, address._replace(displacement=value, lengths=lengths)


def _joined(mnemonic: str, parts: list[Part]) -> list[Part]:
    """What stands behind memory belongs to it: the step of a post-indexed address."""
    for place, part in enumerate(parts[:-1]):
        if part.address is None or part.address.written_back or place != len(parts) - 2:
            continue
        step = parts[-1]
        if step.register and step.kind == "x" and mnemonic[:2] in ("ld", "st"):
            address = part.address._replace(written_back=True, post_register=step.register)
            return [*parts[:-2], part._replace(kind=f"{part.kind},x", address=address)]
        if step.number is not None and step.kind in ("#imm", "#0"):
            address = part.address._replace(written_back=True, step=step.number)
            return [*parts[:-2], part._replace(kind=f"{part.kind},#imm", address=address)]
    return parts
