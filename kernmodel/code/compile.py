"""Running the user's compiler on a kernel while the caller goes on: C source in, assembly text out.

Source goes in and assembly comes out through files without a name, so that nothing has to be cleaned away, however the
process ends; the user's directory is only read (for `#include "…"`).
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from kernmodel.errors import Location, ToolError
from kernmodel.isa import DEFAULT, isa_of
from kernmodel.isa.assembler import english
from kernmodel.limits import COMPILER_SECONDS
from kernmodel.patterns import pattern
from kernmodel.processes import ClosedAtEnd, limit_met, start, stop, wait
from kernmodel.value_types import dataclass

_FAMILY = pattern(r"(?:.*-)?(gcc|clang|icx|icc|cc)(?:-[\d.]+)?(?:\.exe)?")
_VERSION = pattern(r"(?:version|GCC: \(.*\)|Compiler)\s+(\d+(?:\.\d+)+)")
_IDENT = pattern(r'^\s*\.ident\s+"(.*)"', re.MULTILINE)
_LOCATED = pattern(r"(.+?):(\d+):(?:(\d+):)? (?:fatal )?error: (.*)")
_ERROR = pattern(r"(?:fatal )?error: (.*)")

# unwinding tables, address significance and link-time optimisation put no instruction into the loop
_ALWAYS = ("-fno-asynchronous-unwind-tables", "-fno-lto")
_LOOP_STAYS = ("-fno-builtin-memcpy", "-fno-builtin-memmove", "-fno-builtin-memset")
_FAMILY_FLAGS = {
    # a loop that copies or fills must stay a loop: as a library call there is nothing to analyse
    "gcc": ("-fno-tree-loop-distribute-patterns",),
    "clang": ("-fno-addrsig", *_LOOP_STAYS),
    "icx": ("-fno-addrsig", *_LOOP_STAYS),
}


class CompilerChoice(Protocol):
    """A compiler that a machine file names: command family and flags."""

    @property
    def name(self) -> str:
        """Command family (gcc, clang, icx)."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags for that machine."""


@dataclass(frozen=True, slots=True)
class FoundCompiler:
    """A compiler on this system: `name` is its family, `command` its path, `flags` those of the machine for it."""

    name: str
    command: str
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CompiledAssembly:
    """What a compiler made of a kernel.

    Attributes:
        text: the assembly; name: the source's name, for messages.
        compiler: family; version: as the compiler signs it in the assembly, "" if it does not.
        flags: those that decide the code (without what kernmodel adds); command: everything that was run.
    """

    text: str
    name: str
    compiler: str
    version: str
    flags: tuple[str, ...]
    command: tuple[str, ...]


def find_compiler(
    preferred: tuple[CompilerChoice, ...], requested: str | None = None, isa_name: str = DEFAULT
) -> FoundCompiler:
    """The compiler to use: the one requested, else the first of the machine's that is installed.

    For an instruction set that this host does not execute, gcc is its cross compiler and clang is told the target.

    Args:
        preferred: the machine's compilers with their flags, the best first.
        requested: a family ("clang"), a command ("gcc-12") or a path.
        isa_name: the instruction set that it is to compile for.

    Raises:
        ToolError: none is installed, or not the one requested.
    """
    prefix = _cross_prefix(isa_name)
    if requested is not None:
        command = _command_for(requested, prefix)
        if command is None:
            todo = f"{_package(prefix)}give the path of a C compiler, or an assembly listing with --asm"
            raise ToolError(f"the compiler {requested!r} was not found", todo=todo)
        flags = _flags_for(_family(requested), preferred)
        return FoundCompiler(_family(command), command, (*_target_flags(_family(command), prefix), *flags))
    for choice in preferred:
        command = _command_for(choice.name, prefix)
        if command is not None:
            return FoundCompiler(choice.name, command, (*_target_flags(choice.name, prefix), *choice.flags))
    names = ", ".join(choice.name for choice in preferred) or "none"
    first = _package(prefix) or "install gcc or clang, "
    todo = f"{first}name one with --compiler, or give an assembly listing with --asm"
    what = f"no C compiler{f' for {isa_name}' if prefix else ''} was found (the machine file names: {names})"
    raise ToolError(what, todo=todo)


def _cross_prefix(isa_name: str) -> str:
    """What the commands of compilers for an instruction set begin with, "" where those of the host are meant."""
    isa = isa_of(isa_name)
    return "" if not isa.hosts or platform.machine().lower() in isa.hosts else isa.cross_prefix


def _command_for(name: str, prefix: str) -> str | None:
    """The path of a command that compiles for the target: of gcc and its like the one with the prefix."""
    if prefix and _family(name) in ("gcc", "cc") and prefix not in name and os.sep not in name:
        return _command(f"{prefix}{name}")
    return _command(name)


def _target_flags(family: str, prefix: str) -> tuple[str, ...]:
    return (f"--target={prefix.rstrip('-')}",) if prefix and family == "clang" else ()


def _package(prefix: str) -> str:
    """What to install for another target."""
    return f"install gcc-{prefix.rstrip('-').replace('_', '-')} (Debian, Ubuntu) or clang, " if prefix else ""


def _family(command: str) -> str:
    """The family of a command: "gcc" for /usr/bin/x86_64-linux-gnu-gcc-12."""
    name = Path(command).name
    match = _FAMILY.fullmatch(name)
    return match[1] if match else name


def _flags_for(family: str, preferred: tuple[CompilerChoice, ...]) -> tuple[str, ...]:
    """The machine's flags for a family; for one it does not name, those of another that spells flags as gcc does."""
    for choice in preferred:
        if choice.name == family:
            return choice.flags
    return next((choice.flags for choice in preferred if choice.name in ("gcc", "clang", "icx")), ())


def _command(name: str) -> str | None:
    """The path of a command, or of its newest version (clang-19) where the plain name is missing."""
    plain = shutil.which(name)
    if plain is not None:
        return plain
    versioned = re.compile(rf"{re.escape(name)}-(\d+)")
    versions: list[tuple[int, str]] = []
    for folder in filter(None, os.environ.get("PATH", "").split(os.pathsep)):
        names = (path.name for path in Path(folder).glob(f"{name}-*")) if Path(folder).is_dir() else ()
        versions += [(int(match[1]), file) for file in names if (match := versioned.fullmatch(file))]
    return next((path for _, file in sorted(versions, reverse=True) if (path := shutil.which(file))), None)


class Compilation(ClosedAtEnd):
    """A compiler that is running; leaving its `with` block stops it.

    Attributes:
        command: what is run.
    """

    def __init__(
        self, name: str, compiler: FoundCompiler, flags: tuple[str, ...], command: tuple[str, ...], source: str
    ) -> None:
        self.command = command
        self._name = name
        self._compiler = compiler
        self._flags = flags
        self._files = ExitStack()
        self._output = self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (closed with the stack)
        self._messages = self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        try:
            with tempfile.TemporaryFile() as given:
                given.write(source.encode("utf-8", "surrogateescape"))
                given.seek(0)
                self._process = start(
                    command,
                    COMPILER_SECONDS,
                    stdin=given,
                    stdout=self._output,
                    stderr=self._messages,
                    env=english(),
                )
        except OSError as error:
            self._files.close()
            raise ToolError(
                f"{command[0]} could not be run: {error.strerror}", todo="name another --compiler"
            ) from error

    def close(self) -> None:
        """Stop the compiler if it still runs, and let go of its files."""
        stop(self._process)
        self._files.close()

    def finish(self) -> CompiledAssembly:
        """Wait for the compiler; call it once.

        Raises:
            ToolError: it failed; names the place in the source and the compiler's first message. Or it made no
                assembly.
        """
        try:
            status = wait(self._process, COMPILER_SECONDS)
            self._messages.seek(0)
            messages = self._messages.read().decode("utf-8", "replace")
            if status:
                beyond = limit_met(status, messages, COMPILER_SECONDS)
                if beyond is not None:
                    todo = beyond.todo("see what the macros of the source make of it")
                    what = f"{self._compiler.name} was stopped at {beyond.text} ({beyond.name})"
                    raise ToolError(what, where=self._name, todo=todo)
                raise _failure(self._compiler, messages, status)
            self._output.seek(0)
            text = self._output.read().decode("utf-8", "surrogateescape")
        finally:
            self.close()
        if not text.strip():
            todo = "leave out --flags that stop it before it (-fsyntax-only, -o), or name another --compiler"
            raise ToolError(f"{self._compiler.name} made no assembly", where=self._compiler.command, todo=todo)
        version = _version(text)
        return CompiledAssembly(text, self._name, self._compiler.name, version, self._flags, self.command)


def start_compile(
    source_text: str,
    *,
    name: str,
    compiler: FoundCompiler,
    flags: tuple[str, ...],
    defines: Mapping[str, int | str],
    include: Sequence[str] = (),
    lines: bool = False,
) -> Compilation:
    """Start to compile C source to assembly.

    Args:
        source_text: the source; name: its path, used in messages and to find the files it includes.
        compiler: as `find_compiler` gives it.
        flags: machine's or user's; defines: values of macros (-D); include: folders of headers, besides the source's.
        lines: whether the assembly is to say from which lines of the source it comes (`markers.lines_of_source`).

    Raises:
        ToolError: the compiler cannot be run.
    """
    macros = tuple(f"-D{macro}={value}" for macro, value in defines.items())
    folder = Path(name).parent
    added = (*_ALWAYS, *_FAMILY_FLAGS.get(compiler.name, ()), "-iquote", str(folder))
    # in angle brackets too, but behind the system's own headers
    added += (*(f"-I{path}" for path in include), "-idirafter", str(folder), *(("-g1",) if lines else ()))
    command = (compiler.command, "-S", *flags, *macros, *added, "-o", "-", "-x", "c", "-")
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return Compilation(name, compiler, flags, command, f'# 1 "{quoted}"\n{source_text}')


def _failure(compiler: FoundCompiler, messages: str, status: int) -> ToolError:
    """The error for a compiler that failed: its first message, placed in the user's source where it is about it."""
    lines = messages.splitlines()
    located = [match for match in map(_LOCATED.match, lines) if match]
    if located:
        first = located[0]
        where = Location(first[1], int(first[2]), int(first[3]) if first[3] else None)
        more = f" (and {len(located) - 1} more)" if len(located) > 1 else ""
        return ToolError(f"{compiler.name}: {first[4]}{more}", where=where, todo="correct the source, or the --flags")
    first_error = next((match[1] for match in map(_ERROR.search, lines) if match), messages.strip())
    what = first_error or f"ended with status {status}"
    todo = "give other --flags, another --compiler, or an assembly listing with --asm"
    return ToolError(f"{compiler.name} failed: {what}", where=compiler.command, todo=todo)


def _version(text: str) -> str:
    """The version with which the compiler signed the assembly (.ident), "" if it did not."""
    ident = _IDENT.search(text)
    if ident is None:
        return ""
    match = _VERSION.search(ident[1])
    return match[1] if match else ident[1]
