"""GNU as: text in, the bytes of an ELF object out, nothing left on the disk."""

from __future__ import annotations

import os
import platform
import re
import tempfile
from typing import TYPE_CHECKING

from kernmodel.assembly.processes import limit_met, start, stop, wait
from kernmodel.errors import AssemblyError, Location, ToolError
from kernmodel.limits import ASSEMBLER_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernmodel.assembly.syntax import Syntax

_MESSAGE = re.compile(r"\{standard input\}:(\d+): (?:Error|Fatal error): (.*)")
# a directive on the first line: with the equivalent options as refuses `fs:[40]`
_SYNTAX_DIRECTIVES = {"att": "", "intel": ".intel_syntax noprefix; "}
_SYNTAX_NAMES = {"att": "AT&T", "intel": "Intel"}


def english() -> dict[str, str]:
    """The environment in which tools print messages that can be read here."""
    return {**os.environ, "LC_ALL": "C.UTF-8"}


def assembler_name() -> str:
    """The command of an assembler for x86-64: the host's, or a cross-assembler elsewhere."""
    return "as" if platform.machine().lower() in ("x86_64", "amd64", "i686") else "x86_64-linux-gnu-as"


def assemble(source: str, *, syntax: Syntax, file: str, meanwhile: Callable[[], object] | None = None) -> bytes:
    """The ELF object that GNU as makes of `source`, with line rows and local labels.

    The source, the object and the messages are in files that have no name (their directory entries are gone before as
    starts), so that whatever ends this process, nothing stays behind. `meanwhile` is called while as works.

    Raises:
        AssemblyError: as rejects the text; names the first line at fault.
        ToolError: there is no GNU as for x86-64.
    """
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
        # --gdwarf-3 gives the line of every instruction, -L keeps the local labels (.L4) in the symbol table
        options = ("--64", "-L", "-W", "--gdwarf-3")
        command = (assembler_name(), *options, "-o", f"/dev/fd/{output.fileno()}", "-")
        given.write((_SYNTAX_DIRECTIVES[syntax] + source).encode("utf-8", "surrogateescape"))
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
            if meanwhile is not None:
                meanwhile()
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
            raise _rejection(said, syntax, file)
        output.seek(0)
        return output.read()


def _rejection(messages: str, syntax: Syntax, file: str) -> AssemblyError | ToolError:
    """The error for what as printed: the first message with a line, else as itself is at fault."""
    first = _MESSAGE.search(messages)
    if first is None:
        return ToolError(f"the assembler failed: {messages.strip() or 'no message'}", todo="is it GNU as for x86-64?")
    todo = f"correct the line; it was read as x86-64 assembly in {_SYNTAX_NAMES[syntax]} syntax (--syntax chooses)"
    return AssemblyError(f"GNU as: {first[2]}", where=Location(file, int(first[1])), todo=todo)
