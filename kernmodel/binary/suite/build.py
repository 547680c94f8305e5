"""Building the variants of a suite: the source, blocked where that is wanted, compiled and linked."""

from __future__ import annotations

import hashlib
import shlex
from functools import cache
from itertools import combinations
from pathlib import Path

from kernmodel import __version__
from kernmodel.binary.predictors.tools import said
from kernmodel.binary.suite.model import SuiteFile, Variant
from kernmodel.errors import InputError, KernmodelError, ToolError, UsageError
from kernmodel.limits import COMPILER_SECONDS, TEXT_BYTES
from kernmodel.user_files import read_file

_LINES = "-g1"
"""Debugging information of lines alone, which changes no code."""


@cache
def compiler_version(compiler: str) -> str:
    """The first line of what a compiler says of its version.

    Raises:
        ToolError: it is not installed.
    """
    status, output, _ = said((*shlex.split(compiler), "--version"), b"", COMPILER_SECONDS.default)
    if status:
        raise ToolError("does not tell its version", where=compiler, todo="name a C compiler")
    return output.decode(errors="replace").splitlines()[0]


def source_of(variant: Variant, function: str) -> str:
    """The source of a variant.

    Raises:
        InputError: it cannot be read, or none of its nests can be blocked.
    """
    text = read_file(variant.kernel, "a kernel", TEXT_BYTES).decode(errors="replace")
    return text if variant.block is None else _blocked(text, variant, function, variant.block)


def _blocked(text: str, variant: Variant, function: str, size: int) -> str:
    """The text with two loops of its first nest that lets itself be blocked cut into blocks; one where no two may."""
    from kernmodel.source.emit.blocked_text import tiled_source
    from kernmodel.source.load import parse_kernel
    from kernmodel.source.nest.tiling import band

    refused = ""
    for number in range(1, text.count("for") + 1):
        try:
            nest = parse_kernel(text, str(variant.kernel), nest=number, function=function)
            allowed = band(nest).loops
        except KernmodelError as error:
            refused = refused or error.what
            continue
        for count in (2, 1):
            for chosen in combinations(reversed(allowed), count):
                try:
                    return tiled_source(nest, dict.fromkeys(chosen, size))
                except (InputError, UsageError) as error:
                    refused = refused or error.what
        refused = refused or "in its first nest no loops may be blocked"
    what = f"cannot be blocked: {refused or 'it has no loop nest'}"
    raise InputError(what, where=str(variant.kernel), todo="leave the block size out")


def key_of(variant: Variant, suite: SuiteFile, core: str) -> str:
    """What a variant's record depends on, as 16 hexadecimal digits: sources beside it, compiler, flags and versions."""
    told = hashlib.sha256()
    for file in (variant.kernel, *sorted(variant.kernel.parent.glob("*.h"))):
        told.update(read_file(file, "a source", TEXT_BYTES))
    words = (variant.name, *suite.always, suite.function, core, compiler_version(variant.compiler), __version__)
    told.update("\n".join(words).encode())
    return told.hexdigest()[:16]


def build(variant: Variant, suite: SuiteFile, target: Path) -> None:
    """Compile and link a variant.

    Raises:
        InputError: its source cannot be blocked, or does not compile.
        ToolError: the compiler cannot be executed.
    """
    text = source_of(variant, suite.function)
    folder = variant.kernel.parent
    command = (
        *shlex.split(variant.compiler),
        *suite.always,
        *variant.flags,
        _LINES,
        f"-I{folder}",
        *("-x", "c", "-", "-x", "none", "-lm", "-o", str(target)),
    )
    status, _, told = said(command, text.encode(), COMPILER_SECONDS.default)
    if status:
        raise InputError(f"does not compile with {variant.compiler}: {told}", where=str(variant.kernel))
