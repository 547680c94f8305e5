"""The exceptions and notes of kernmodel: each says where, what, and what to do.

Bad input never ends in a traceback: the command line prints `str(error)` and exits with `error.exit_status`.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """A place in a file of the user, printed as `file:line:column` (1-based; parts that are unknown are left out)."""

    file: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)


@dataclass(frozen=True, slots=True)
class Note:
    """Something a result assumes or does not know.

    An *assumption* is part of the model as documented; a *warning* makes the number uncertain, and `--strict` turns it
    into a `StrictError`. `code` is stable and machine-readable (`unknown-instruction`), `text` is for people.
    """

    code: str
    text: str
    kind: Literal["assumption", "warning"] = "warning"
    where: Location | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.text}" if self.where else self.text


class KernmodelError(Exception):
    """Base of all errors that kernmodel raises on purpose.

    Args:
        what: what is wrong, as one clause.
        where: the place in the user's file, or the name of the option or file.
        todo: what the user can do about it.
    """

    exit_status: ClassVar[int] = 1

    def __init__(self, what: str, *, where: Location | str | None = None, todo: str | None = None) -> None:
        self.what = what
        self.where = where
        self.todo = todo
        super().__init__(what)

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}; {self.todo}" if self.todo else text


class InputError(KernmodelError):
    """The input is at fault (exit status 1)."""


class NoNameError(InputError):
    """A key that can be no name, such as a number in the place of a cache's name (exit status 2)."""

    exit_status = 2


class SourceError(InputError):
    """C source that cannot be read: missing, empty, not C, a syntax error, a macro without a value."""


class SeveralNestsError(SourceError):
    """C source with several loop nests, or functions that have some, of which none is chosen."""


class UnsupportedKernelError(SourceError):
    """C source that is valid but outside what the models cover; the message says what is supported."""


class MachineError(InputError):
    """A machine file that is missing, malformed or contradicts the schema."""


class AssemblyError(InputError):
    """Assembly that cannot be read, or in which the kernel's loop cannot be found."""


_SHOWN = 20
"""Candidates that a message lists; an executable may have hundreds of loops."""


class AmbiguousLoopError(AssemblyError):
    """Several loops match the kernel equally well; `candidates` says what distinguishes them."""

    def __init__(
        self,
        what: str,
        candidates: tuple[str, ...],
        *,
        where: Location | str | None = None,
        todo: str | None = None,
    ) -> None:
        super().__init__(what, where=where, todo=todo)
        self.candidates = candidates

    def __str__(self) -> str:
        lines = [f"  {line}" for line in self.candidates[:_SHOWN]]
        if len(self.candidates) > _SHOWN:
            lines.append(f"  … and {len(self.candidates) - _SHOWN} more")
        return "\n".join((super().__str__(), *lines))


class InstructionTableError(InputError):
    """An instruction table or microarchitecture that is unknown or malformed."""


class StrictError(InputError):
    """A warning that `--strict` refuses."""


class UsageError(KernmodelError):
    """Options that do not fit together or cannot be read (exit status 2)."""

    exit_status = 2


class ToolError(KernmodelError):
    """A tool that is needed (compiler, assembler) is missing or failed (exit status 3)."""

    exit_status = 3


class MeasurementError(ToolError):
    """This host did not let something be measured (exit status 3): no compiler, too busy, code that raises a signal."""


def refuse_warnings(notes: tuple[Note, ...]) -> None:
    """Raise `StrictError` for the first warning among the notes (the meaning of `--strict`)."""
    for note in notes:
        if note.kind == "warning":
            raise StrictError(note.text, where=note.where, todo="leave out --strict to accept it with a warning")
