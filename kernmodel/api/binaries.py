"""Functions of compiled programs, as `kernmodel binary`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernmodel.api.result import Result, Views
from kernmodel.user_files import File

if TYPE_CHECKING:
    from kernmodel.binary.program import Function


def binary_blocks(
    file: File,
    function: str | None = None,
    *,
    addresses: tuple[int, int] | None = None,
    marked: str | None = None,
    strict: bool = False,
) -> Result[Function]:
    """The basic blocks and loops of a function of a binary, as `kernmodel binary blocks`.

    >>> km.binary_blocks("./a.out", "kernel").answer.loops

    Args:
        file: an ELF executable, shared library or object.
        function: its name; None where the file has one function only.
        addresses: of the first byte and the one behind the last, in place of a name.
        marked: a region between IACA's markers by its name, "" for the only one.
        strict: raise `StrictError` for the first warning.

    Raises:
        AssemblyError: no such file or function, or it is no code; UsageError: several could be meant.
    """
    from os import fspath

    from kernmodel.binary.find import find_function

    answer = find_function(fspath(file), function, addresses=addresses, marked=marked)
    return Result([answer], Views("binary:function_report", "binary:function_document"), strict=strict)
