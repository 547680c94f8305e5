"""C in, a `LoopNest` out: the entry of the source package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from kernmodel.errors import SourceError
from kernmodel.source.model import LoopNest
from kernmodel.source.parse.build import build_nest, choose_function, choose_nest
from kernmodel.source.parse.preprocess import integer_literal
from kernmodel.source.parse.syntax import Program, parse_program
from kernmodel.source.text import find_source

Defines = Mapping[str, str | int]
_NONE: Defines = MappingProxyType({})


def load_kernel(
    name_or_path: str, defines: Defines = _NONE, *, nest: int | None = None, function: str | None = None
) -> LoopNest:
    """The loop nest in a C file, or in a kernel that the package carries.

    Args:
        name_or_path: a path first, else the name of a carried kernel, with or without `.c`.
        defines: macros as with a compiler's -D; integers also give sizes their values (`LoopNest.defaults`).
        nest: which of several top-level loop nests, from 1.
        function: which of several functions.

    Raises:
        InputError: no such file.
        SourceError: it cannot be read as C, an undeclared name, several nests or functions to choose from.
        UnsupportedKernelError: C that the models do not cover; the message says what is supported.
    """
    text, file = find_source(name_or_path)
    return parse_kernel(text, file, defines, nest=nest, function=function)


def parse_kernel(
    text: str, file: str, defines: Defines = _NONE, *, nest: int | None = None, function: str | None = None
) -> LoopNest:
    """The loop nest in a text; `file` names it in messages, and includes are looked for beside it.

    Raises:
        As `load_kernel`.
    """
    try:
        program = parse_program(text, file, defines)
        _refuse_wrong_sizes(program, text, defines)
        chosen = choose_function(program, function)
        statement = choose_nest(program, chosen, nest)
        return build_nest(program, chosen, statement, text, Path(file).stem)
    except RecursionError as error:
        raise SourceError("is nested too deeply to be read", where=file, todo="split long expressions") from error


def _refuse_wrong_sizes(program: Program, text: str, defines: Defines) -> None:
    """A macro that the file defines as an integer must be given as one (`-D N=abc`)."""
    for name, value in defines.items():
        if name in program.preprocessed.values:
            continue
        default = re.search(
            rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}[ \t]+\(?([0-9]\w*)\)?[ \t]*$", text, re.MULTILINE
        )
        if default and integer_literal(default[1]) is not None:
            raise SourceError(
                f"-D {name}={value} is no integer, but {name} is a size ({default[1]} by default)",
                where=program.preprocessed.file,
                todo=f"give a whole number, as in -D {name}={default[1]}",
            )
