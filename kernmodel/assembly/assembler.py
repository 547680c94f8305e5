"""GNU as: text in, the bytes of an ELF object out, nothing left on the disk."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import tempfile
from typing import TYPE_CHECKING

from kernmodel.errors import AssemblyError, Location, ToolError

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
            run = subprocess.Popen(
                command, stdin=given, stdout=messages, stderr=messages, pass_fds=(output.fileno(),), env=english()
            )
        except OSError as error:
            todo = "install GNU binutils; compiled objects can be read without it"
            raise ToolError(f"the assembler {command[0]!r} could not be run: {error.strerror}", todo=todo) from error
        with run:  # waits for as, also where `meanwhile` fails
            if meanwhile is not None:
                meanwhile()
        if run.returncode:
            messages.seek(0)
            raise _rejection(messages.read().decode("utf-8", "replace"), syntax, file)
        output.seek(0)
        return output.read()


def _rejection(messages: str, syntax: Syntax, file: str) -> AssemblyError | ToolError:
    """The error for what as printed: the first message with a line, else as itself is at fault."""
    first = _MESSAGE.search(messages)
    if first is None:
        return ToolError(f"the assembler failed: {messages.strip() or 'no message'}", todo="is it GNU as for x86-64?")
    todo = f"correct the line; it was read as x86-64 assembly in {_SYNTAX_NAMES[syntax]} syntax (--syntax chooses)"
    return AssemblyError(f"GNU as: {first[2]}", where=Location(file, int(first[1])), todo=todo)
