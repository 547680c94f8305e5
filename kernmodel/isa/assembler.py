"""GNU as: text in, the bytes of an ELF object out, nothing left on the disk; and what its lines consist of."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from kernmodel.errors import AssemblyError, Location, ToolError
from kernmodel.limits import ASSEMBLER_SECONDS, LISTING_LINES
from kernmodel.patterns import pattern
from kernmodel.processes import limit_met, start, stop, wait
from kernmodel.value_types import dataclass

_COMMENT = pattern(r'"(?:[^"\\]|\\.)*"|(?:#|//).*|/\*.*?\*/')
_LABEL = pattern(r'\s*(?:"(?:[^"\\]|\\.)*"|[\w.$@?]+)\s*:(?!:)')
"""A label at the start of a line."""
_SEMICOLON_COMMENT = pattern(r'"(?:[^"\\]|\\.)*"|;.*')
_STATEMENT = pattern(r'(?:"(?:[^"\\]|\\.)*"|[^;"])+')
_DATA = pattern(
    r"\.(?:byte|[248]byte|hword|short|value|word|long|int|quad|octa|string|ascii|nops?|fill|skip|space|zero|p2align|b?align)|npad\b"
)
_REPEATING = pattern(r"(?:^|[;:])[ \t]*\.(?:(rept|rep|endr)\b|(irpc?)\b)[ \t]*([^;\n#]*)", re.IGNORECASE)
_NUMBER = pattern(r"0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+")
_MESSAGE = pattern(r"\{standard input\}:(\d+): (?:Error|Fatal error): (.*)")


def english(folder: Path | None = None) -> dict[str, str]:
    """The environment in which tools print messages that can be read here, and keep what they need for a while in a
    folder of the caller's, so that it goes with that if they are stopped."""
    return {**os.environ, "LC_ALL": "C.UTF-8", **({"TMPDIR": str(folder)} if folder else {})}


@dataclass(frozen=True, slots=True)
class AssemblerTarget:
    """What GNU as has to be told to assemble the code of an instruction set.

    Attributes:
        isa_name: the instruction set; dialect: what the lines are written in, for messages.
        hosts: machines (as `platform.machine` names them) whose own assembler it is; elsewhere `cross` is the command.
        options: of the command line.
        preamble: put before the first line.
    """

    isa_name: str
    dialect: str
    hosts: tuple[str, ...]
    cross: str
    options: tuple[str, ...] = ()
    preamble: str = ""

    @property
    def command(self) -> str:
        """The command of the assembler on this host."""
        return "as" if platform.machine().lower() in self.hosts else self.cross


def assemble(source: str, target: AssemblerTarget, *, file: str) -> bytes:
    """The ELF object that GNU as makes of `source`, with line rows and local labels.

    The source, the object and the messages are in files that have no name (their directory entries are gone before as
    starts), so that whatever ends this process, nothing stays behind.

    Raises:
        AssemblyError: as rejects the text; names the first line at fault.
        ToolError: there is no GNU as for this target.
    """
    import tempfile

    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
        # --gdwarf-3 gives the line of every instruction, -L keeps the local labels (.L4) in the symbol table
        options = (*target.options, "-L", "-W", "--gdwarf-3")
        command = (target.command, *options, "-o", f"/dev/fd/{output.fileno()}", "-")
        given.write((target.preamble + source).encode("utf-8", "surrogateescape"))
        given.seek(0)
        try:
            run = start(
                command,
                ASSEMBLER_SECONDS,
                stdin=given,
                stdout=messages,
                stderr=messages,
                pass_fds=(output.fileno(),),
                env=english(),
            )
        except OSError as error:
            todo = "install GNU binutils; compiled objects can be read without it"
            raise ToolError(f"the assembler {command[0]!r} could not be run: {error.strerror}", todo=todo) from error
        try:
            status = wait(run, ASSEMBLER_SECONDS)
        finally:
            stop(run)
        if status:
            messages.seek(0)
            said = messages.read().decode("utf-8", "replace")
            beyond = limit_met(status, said, ASSEMBLER_SECONDS)
            if beyond is not None:
                todo = beyond.todo("see what its directives and macros repeat")
                raise AssemblyError(f"GNU as was stopped at {beyond.text} ({beyond.name})", where=file, todo=todo)
            raise _rejection(said, target, file)
        output.seek(0)
        return output.read()


def _rejection(messages: str, target: AssemblerTarget, file: str) -> AssemblyError | ToolError:
    """The error for what as printed: the first message with a line, else as itself is at fault."""
    first = _MESSAGE.search(messages)
    if first is None:
        what = f"the assembler failed: {messages.strip() or 'no message'}"
        return ToolError(what, todo=f"is it GNU as for {target.isa_name}?")
    todo = f"correct the line; it was read as {target.dialect}"
    return AssemblyError(f"GNU as: {first[2]}", where=Location(file, int(first[1])), todo=todo)


def check_length(text: str, file: str) -> None:
    """Refuse a listing that is too long: its lines, those that directives repeat counted again.

    Counts that are no plain number, and macros, show their size only when they are assembled; for them there are the
    assembler's own limits.

    Raises:
        AssemblyError: more lines than the limit; names the line at which it is met.
    """
    if not LISTING_LINES.exceeded(text.count("\n")) and ".rep" not in text.lower() and ".irp" not in text.lower():
        return
    length = 0
    repeated = [1]
    for number, line in enumerate(text.splitlines(), 1):
        length += repeated[-1]
        for directive in _REPEATING.finditer(line):
            if directive[1] is not None and directive[1].lower() == "endr":
                repeated = repeated[:-1] or [1]
            else:
                repeated.append(repeated[-1] * _times(directive))
                length += repeated[-1]
        if LISTING_LINES.exceeded(length):
            todo = LISTING_LINES.todo("give the listing of the loop alone")
            raise AssemblyError(f"is longer than {LISTING_LINES.text} lines", where=Location(file, number), todo=todo)


def _times(directive: re.Match[str]) -> int:
    """How often a directive repeats what follows; once where that is no plain number."""
    argument = directive[3].strip()
    if directive[1] is not None:
        return int(argument, 0 if not re.fullmatch("0[0-9]+", argument) else 8) if _plain(argument) else 1
    _, _, values = argument.partition(",")
    return max(1, len(values.strip()) if (directive[2] or "").lower() == "irpc" else values.count(",") + 1)


def _plain(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text)) and not re.fullmatch("0[0-9]*[89][0-9]*", text)


def strip_comment(line: str) -> str:
    """`line` without its comment (`#`, `//`, `/* */`), quoted text respected."""
    if "#" not in line and "/" not in line:
        return line
    return _COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else " ", line)


def has_statements(text: str) -> bool:
    """Whether there is any line beyond comments, labels and directives."""
    return any(code_lines(text))


def code_lines(text: str) -> list[str]:
    """The lines that hold instructions, comments stripped."""
    lines = (strip_comment(line) for line in text.splitlines())
    return [line for line in lines if (body := _after_label(line).strip()) and body[0] not in ".;"]


def _after_label(line: str) -> str:
    label = _LABEL.match(line)
    return line if label is None else line[label.end() :]


def without_semicolons(line: str) -> str:
    """`line` without a comment that `;` begins."""
    return _SEMICOLON_COMMENT.sub(lambda match: match[0] if match[0][0] == '"' else "", line)


def statements(line: str, semicolon_comments: bool = False) -> tuple[str, ...]:
    """The instructions and directives of a line without labels; `;` separates them, or begins a comment."""
    found = []
    code = strip_comment(line)
    for part in _STATEMENT.findall(without_semicolons(code) if semicolon_comments else code):
        body = part
        while label := _LABEL.match(body):
            body = body[label.end() :]
        if body.strip():
            found.append(body.strip())
    return tuple(found)


def is_data(line: str) -> bool:
    """Whether a line puts bytes into its section without being an instruction (.byte, .p2align)."""
    return any(_DATA.match(statement) for statement in statements(line))
