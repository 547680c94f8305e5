"""What a listing's text is: AT&T or Intel syntax or not x86 at all, its statements, and what GNU as is given of it."""

from __future__ import annotations

import re
from typing import Literal

from kernmodel.assembly.masm import spelled

Syntax = Literal["att", "intel"]

_GENERAL = r"(?:[re]?(?:[abcd]x|[sd]i|[sb]p|ip)|[abcd][hl]|(?:[sd]i|[sb]p)l|r(?:8|9|1[0-5])[dwb]?)"
_VECTOR = r"(?:[xyz]mm(?:[12]?\d|3[01])|st(?:\(\d\))?|[cdefgs]s|k[0-7])"
_BARE_REGISTER = re.compile(rf"(?<![\w%.$@]){_GENERAL}(?!\w)|(?<![\w%.$@])[xyz]mm\d+(?!\w)", re.IGNORECASE)
_PERCENT_REGISTER = re.compile(rf"%(?:{_GENERAL}|{_VECTOR})(?!\w)", re.IGNORECASE)
_INTEL_WORDS = re.compile(r"\b(?:byte|[dqxyzt]?m?m?word|tbyte) ptr\b|\[[^\]]*\]", re.IGNORECASE)
_ATT_IMMEDIATE = re.compile(r"(?:^|[\s,])\$-?(?:0x[0-9a-f]|\d)", re.IGNORECASE)
_SYNTAX_DIRECTIVE = re.compile(r"^\s*\.(att|intel)_syntax\b", re.MULTILINE)

_ARM_REGISTER = re.compile(
    r"(?<![\w%.$@])(?:[xw](?:[12]?\d|30|zr)|[vz]\d+\.\d*[bhsdq]|p\d+/[mz]|[qdsh](?:[12]?\d|3[01]))(?!\w)", re.IGNORECASE
)
_ARM_MNEMONIC = re.compile(
    r"^\s*(?:ld[rpu]\w*|st[rpu]\w*|adrp|fml[as]|fmadd|cbn?z|tbn?z|b\.\w\w|bl|madd)\s", re.IGNORECASE
)
_ARM_DIRECTIVE = re.compile(r"^\s*\.(?:arch|cpu)\s+(?:armv|cortex|neoverse)|^\s*\.arch_extension\b", re.MULTILINE)

_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|(?:#|//).*|/\*.*?\*/')
_SEMICOLON_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|;.*')
_LABEL = re.compile(r'\s*(?:"(?:[^"\\]|\\.)*"|[\w.$@?]+)\s*:(?!:)')
_STATEMENT = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^;"])+')
_DATA = re.compile(
    r"\.(?:byte|[248]byte|hword|short|value|word|long|int|quad|octa|string|ascii|nops?|fill|skip|space|zero|p2align|b?align)|npad\b"
)

_PREFIX = re.compile(r"rep|rep[ez]|repn[ez]|lock|bnd|notrack|xacquire|xrelease|data16|addr32|rex64", re.IGNORECASE)

_UNKNOWN_TO_AS = (
    r"loc|cfi_|cv_|seh_|addrsig|build_version|subsections_via_symbols|macosx_version|ios_version|zerofill|desc\b|def\b|scl\b|endef"
    r"|size\b|ident\b|line\b|file\s+\d|alt_entry|no_dead_strip|indirect_symbol|data_region|end_data_region|reference\b|linker_option"
    r"|llvm_|private_extern|ltorg|lto_|weak_definition|symver|linkonce|lcomm|secrel32|secidx"
)
_DROPPED = re.compile(
    rf'\s*(?:\.(?:{_UNKNOWN_TO_AS})|\.type\s+\d|\.globl\s+@feat|\.set\s+@feat|@feat|#\s*\d+\s+"|#\s*(?:NO_)?APP\b)',
    re.IGNORECASE,
)
_SECTION_CHANGE = re.compile(r"\s*\.(?:section|text|data|bss|pushsection|popsection|previous)\b")
_DEBUG_SECTION = re.compile(r'\s*\.section\s+"?(?:\.z?debug_|\.stab|__DWARF)')
# LLVM writes the width of all lanes (`zmmword ptr`) where GNU as wants that of one
_GATHER = re.compile(r"\s*vp?(?:gather|scatter)", re.IGNORECASE)
_POINTER_SIZE = re.compile(r"\b\w+\s+ptr\b", re.IGNORECASE)
_MSVC_CONSTANT = re.compile(r"\b__(?:real|[xyz]mm)@\w+")
_COFF_SECTION = re.compile(r'\s*\.section\s+([\w.$]+)\s*,\s*"([a-z]*[rbnysi][a-z]*)"')
_MACHO_SECTION = re.compile(r"\s*\.section\s+__(\w+)\s*,")


def strip_comment(line: str) -> str:
    """`line` without its comment (`#`, `//`, `/* */`), quoted text respected."""
    if "#" not in line and "/" not in line:
        return line
    return _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else " ", line)


def _without_semicolons(line: str) -> str:
    """`line` without a comment that `;` begins."""
    return _SEMICOLON_COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else "", line)


def statements(line: str, semicolon_comments: bool = False) -> tuple[str, ...]:
    """The instructions and directives of a line without labels; `;` separates them, or begins a comment."""
    found = []
    code = strip_comment(line)
    for part in _STATEMENT.findall(_without_semicolons(code) if semicolon_comments else code):
        body = part
        while label := _LABEL.match(body):
            body = body[label.end() :]
        if body.strip():
            found.append(body.strip())
    return tuple(found)


def is_data(line: str) -> bool:
    """Whether a line puts bytes into its section without being an instruction (.byte, .p2align)."""
    return any(_DATA.match(statement) for statement in statements(line))


def is_prefix(found: tuple[str, ...]) -> bool:
    """Whether the statements of a line are nothing but prefixes of the next instruction (`rep` alone)."""
    return bool(found) and all(_PREFIX.fullmatch(statement) for statement in found)


def detect_syntax(text: str) -> Syntax:
    """The syntax of a listing: by its directive, else by how many lines can only be one of the two; AT&T for none."""
    directive = _SYNTAX_DIRECTIVE.search(text)
    if directive is not None:
        return "att" if directive[1] == "att" else "intel"
    att = intel = 0
    for line in _code_lines(text):
        if _PERCENT_REGISTER.search(line) or _ATT_IMMEDIATE.search(line):
            att += 1
        elif _INTEL_WORDS.search(line) or _BARE_REGISTER.search(line):
            intel += 1
    return "intel" if intel > att else "att"


def looks_like_aarch64(text: str) -> bool:
    """Whether more lines use AArch64's registers and mnemonics than x86's."""
    if _ARM_DIRECTIVE.search(text):
        return True
    arm = x86 = 0
    for line in _code_lines(text):
        if _PERCENT_REGISTER.search(line) or _BARE_REGISTER.search(line):
            x86 += 1
        elif _ARM_REGISTER.search(line) or _ARM_MNEMONIC.match(line):
            arm += 1
    return arm > x86


def has_statements(text: str) -> bool:
    """Whether there is any line beyond comments, labels and directives."""
    return any(_code_lines(text))


def _code_lines(text: str) -> list[str]:
    """The lines that hold instructions, comments stripped."""
    lines = (strip_comment(line) for line in text.splitlines())
    return [line for line in lines if (body := _after_label(line).strip()) and body[0] not in ".;"]


def _after_label(line: str) -> str:
    label = _LABEL.match(line)
    return line if label is None else line[label.end() :]


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
        line = _without_semicolons(line)
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
