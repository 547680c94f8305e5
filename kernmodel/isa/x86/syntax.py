"""What a listing's text is: AT&T or Intel syntax, its statements, and what GNU as is given of it."""

from __future__ import annotations

import re
from typing import Literal

from kernmodel.isa.assembler import code_lines, strip_comment, without_semicolons
from kernmodel.patterns import pattern

Syntax = Literal["att", "intel"]

_GENERAL = r"(?:[re]?(?:[abcd]x|[sd]i|[sb]p|ip)|[abcd][hl]|(?:[sd]i|[sb]p)l|r(?:8|9|1[0-5])[dwb]?)"
_VECTOR = r"(?:[xyz]mm(?:[12]?\d|3[01])|st(?:\(\d\))?|[cdefgs]s|k[0-7])"
_BARE_REGISTER = pattern(rf"(?<![\w%.$@]){_GENERAL}(?!\w)|(?<![\w%.$@])[xyz]mm\d+(?!\w)", re.IGNORECASE)
_PERCENT_REGISTER = pattern(rf"%(?:{_GENERAL}|{_VECTOR})(?!\w)", re.IGNORECASE)
_INTEL_WORDS = pattern(r"\b(?:byte|[dqxyzt]?m?m?word|tbyte) ptr\b|\[[^\]]*\]", re.IGNORECASE)
_ATT_IMMEDIATE = pattern(r"(?:^|[\s,])\$-?(?:0x[0-9a-f]|\d)", re.IGNORECASE)
_SYNTAX_DIRECTIVE = pattern(r"^\s*\.(att|intel)_syntax\b", re.MULTILINE)

_PREFIX = pattern(r"rep|rep[ez]|repn[ez]|lock|bnd|notrack|xacquire|xrelease|data16|addr32|rex64", re.IGNORECASE)

_UNKNOWN_TO_AS = (
    r"loc|cfi_|cv_|seh_|addrsig|build_version|subsections_via_symbols|macosx_version|ios_version|zerofill|desc\b|def\b|scl\b|endef"
    r"|size\b|ident\b|line\b|file\s+\d|alt_entry|no_dead_strip|indirect_symbol|data_region|end_data_region|reference\b|linker_option"
    r"|llvm_|private_extern|ltorg|lto_|weak_definition|symver|linkonce|lcomm|secrel32|secidx"
)
_DROPPED = pattern(
    rf'\s*(?:\.(?:{_UNKNOWN_TO_AS})|\.type\s+\d|\.globl\s+@feat|\.set\s+@feat|@feat|#\s*\d+\s+"|#\s*(?:NO_)?APP\b)',
    re.IGNORECASE,
)
_SECTION_CHANGE = pattern(r"\s*\.(?:section|text|data|bss|pushsection|popsection|previous)\b")
_DEBUG_SECTION = pattern(r'\s*\.section\s+"?(?:\.z?debug_|\.stab|__DWARF)')
# LLVM writes the width of all lanes (`zmmword ptr`) where GNU as wants that of one
_GATHER = pattern(r"\s*vp?(?:gather|scatter)", re.IGNORECASE)
_POINTER_SIZE = pattern(r"\b\w+\s+ptr\b", re.IGNORECASE)
_MSVC_CONSTANT = pattern(r"\b__(?:real|[xyz]mm)@\w+")
_COFF_SECTION = pattern(r'\s*\.section\s+([\w.$]+)\s*,\s*"([a-z]*[rbnysi][a-z]*)"')
_MACHO_SECTION = pattern(r"\s*\.section\s+__(\w+)\s*,")
# names stand at the start of the line, instructions do not: `call PROC` is none of these
_MASM = pattern(r"^(?:[\w?@$]+\s+(?:PROC|SEGMENT|ENDP)|INCLUDELIB)\b", re.MULTILINE)
_SPELLINGS = {"@": "ⓐ", "?": "ⓠ", "$": "ⓓ"}
_SPELL = str.maketrans(_SPELLINGS)
_SPELL_BACK = str.maketrans({spelling: sign for sign, spelling in _SPELLINGS.items()})


def is_masm(text: str) -> bool:
    """Whether a listing is in MASM's dialect: procedures or segments without a dot."""
    return _MASM.search(text) is not None


def spelled(name: str) -> str:
    """`name` in letters that GNU as takes as part of a name."""
    return name.translate(_SPELL)


def spelled_back(name: str) -> str:
    """The name that `spelled` spelled."""
    return name.translate(_SPELL_BACK)


def is_prefix(found: tuple[str, ...]) -> bool:
    """Whether the statements of a line are nothing but prefixes of the next instruction (`rep` alone)."""
    return bool(found) and all(_PREFIX.fullmatch(statement) for statement in found)


def detect_syntax(text: str) -> Syntax:
    """The syntax of a listing: by its directive, else by how many lines can only be one of the two; AT&T for none."""
    directive = _SYNTAX_DIRECTIVE.search(text)
    if directive is not None:
        return "att" if directive[1] == "att" else "intel"
    att = intel = 0
    for line in code_lines(text):
        if _PERCENT_REGISTER.search(line) or _ATT_IMMEDIATE.search(line):
            att += 1
        elif _INTEL_WORDS.search(line) or _BARE_REGISTER.search(line):
            intel += 1
    return "intel" if intel > att else "att"


def evidence(text: str) -> int:
    """How many lines name registers of x86."""
    return sum(bool(_PERCENT_REGISTER.search(line) or _BARE_REGISTER.search(line)) for line in code_lines(text))


def for_assembler(text: str, *, semicolon_comments: bool) -> str:
    """The text as GNU as can read it, line for line: comments and what it does not know or need left out.

    Debugging, unwinding and format directives of other assemblers (Mach-O, COFF, CodeView, LLVM) carry no code; line
    markers and `.loc` would make the assembler count other lines than this file's, and debugging sections need what
    `.loc` defines.
    """
    kept = []
    debugging = False
    for line in text.splitlines():
        if _SECTION_CHANGE.match(line):
            debugging = _DEBUG_SECTION.match(line) is not None
        kept.append("" if debugging or _DROPPED.match(line) else _for_assembler(line, semicolon_comments))
    return "\n".join(kept) + "\n"


def _for_assembler(line: str, semicolon_comments: bool) -> str:
    """One line of `for_assembler`."""
    line = strip_comment(line)
    if semicolon_comments:
        line = without_semicolons(line)
    if _GATHER.match(line):
        return _POINTER_SIZE.sub("", line)
    if "__" in line:
        line = _MSVC_CONSTANT.sub(lambda match: spelled(match[0]), line)
    coff = _COFF_SECTION.match(line)
    if coff is not None:
        return f'.section {coff[1]},"{"ax" if "x" in coff[2] else "aw"}"'
    macho = _MACHO_SECTION.match(line)
    if macho is not None:
        return ".text" if macho[1] == "TEXT" and "__text" in line else ".data"
    return line
