"""`kernmodel blocking`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernmodel.api.options import CacheOptions, CodeOptions, kernel_request, one_point_of, parse_flags
from kernmodel.cli import options, types
from kernmodel.cli.command import Command
from kernmodel.cli.output import TERMINAL, Shown, show_picture, show_result, write_error
from kernmodel.cli.streams import write_bytes
from kernmodel.errors import UsageError
from kernmodel.output_files import output_file, write_file

if TYPE_CHECKING:
    from kernmodel.api.kernels import Blocking
    from kernmodel.studies.blocking.answer import BlockingAnswer
    from kernmodel.studies.predict.request import KernelRequest

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"', re.MULTILINE)
STDOUT = "-"
"""In place of a file: the blocked source on standard output, and no report."""


@click.command(cls=Command)
@options.kernel_argument
@options.machine_option()
@options.kernel_options
@click.option("--loops", metavar="I,J", help="Block only these loops.  [default: all that may be blocked]")
@click.option(
    "--cores",
    type=types.Count(min=1),
    default=1,
    metavar="N",
    help="Active cores that share the shared caches.",
)
@options.stores_option
@options.time_unit_option
@options.code_options
@click.option(
    "--emit", metavar="FILE", type=click.Path(), help="Write the C source of the best candidate; - to standard output."
)
@options.plot_option("the times over block sizes")
@options.output_options
@options.gathered(shown=Shown.of, asked=options.asked, cache=CacheOptions, code=CodeOptions)
def blocking(
    asked: dict[str, Any],
    cache: CacheOptions,
    code: CodeOptions,
    emit: str | None,
    shown: Shown,
    **given: Any,
) -> None:
    """Which loops of KERNEL (a C file, or the name of a carried one) to block for the caches, by how much, and what it
    buys.

    \b
    Examples:
      kernmodel blocking -m clx 3d-7pt.c -D N=800
      kernmodel blocking -m clx matmul.c --loops i,j,k --plot blocking.svg
      kernmodel blocking -m clx 3d-7pt.c --emit blocked.c
    """
    from kernmodel.api.kernels import block

    written = _emit_target(emit, shown)
    result = block(**asked, **given, cache=cache, code=code, strict=shown.strict)
    if emit != STDOUT:
        show_result(result, shown, picture=False)
    if emit is not None:
        request = kernel_request(
            asked["kernel"], asked["machine"], one_point_of(asked["sizes"], asked["kernel"]), cache
        )
        _emit(result, request, code, written)
    show_picture(result, shown)


def _emit_target(path: str | None, shown: Shown) -> Path | None:
    """Where the source goes, checked before any work is done; None for standard output or without --emit.

    Raises:
        UsageError: a file that exists, a directory, a place that cannot be written, a source among other output.
    """
    if path is None:
        if shown.force and shown.page is None:
            todo = "give --emit FILE or --html FILE"
            raise UsageError("does not fit: nothing is written", where="--force", todo=todo)
        return None
    if path == STDOUT:
        if shown.as_json or shown.plot == TERMINAL:
            other = "JSON document" if shown.as_json else "drawing"
            raise UsageError(f"would mix the source and a {other}", where="--emit -", todo="give --emit a file")
        return None
    target = output_file(path, "--emit")
    if target.exists() and not shown.force:
        raise UsageError("exists already", where=f"--emit {path}", todo="give another name, or --force to replace it")
    return target


def _emit(result: Blocking, request: KernelRequest, code: CodeOptions, target: Path | None) -> None:
    """Write the source of the best candidate, and say on standard error how to go on with it."""
    text, answer = result.source(), result.answer
    if target is None:
        write_bytes(text.encode())  # the user's own bytes, whatever the terminal can write
        return
    write_file(target, text)
    blocks = ", ".join(f"{variable} in blocks of {size}" for variable, size in answer.candidates[0].blocks.items())
    write_error(f"wrote {target}: {answer.before.nest.name} with {blocks}")
    for label, command in (
        ("compile it", _compile(answer, request, target)),
        ("model it", _model(request, code, target)),
    ):
        if command:
            write_error(f"  {label}: {shlex.join(command)}")
    folder = Path(answer.before.nest.file).parent
    if _INCLUDE.search(answer.before.nest.text) and folder.resolve() != target.parent.resolve():
        write_error(f"  it includes files that are looked for beside it: put it into {folder}, or copy them")


def _compile(answer: BlockingAnswer, request: KernelRequest, target: Path) -> list[str]:
    """The command that compiles the blocked source as the original was; empty for a bare nest, which no compiler takes,
    and where nothing was compiled."""
    from kernmodel.source.emit.whole_function import compiler_defines

    before = answer.before
    if before.origin.compiler is None or before.nest.function is None:
        return []
    defines = [f"-D{name}={value}" for name, value in compiler_defines(before.nest.text, request.sizes).items()]
    return [before.origin.compiler, *before.origin.flags, *defines, "-c", str(target)]


def _model(request: KernelRequest, code: CodeOptions, target: Path) -> list[str]:
    """The command that models the blocked source at the same sizes, compiled in the same way."""
    command = ["kernmodel", "ecm", "-m", request.machine, str(target), "--cache", "sim"]
    for name, value in request.sizes.items():
        command += ["-D", f"{name}={value}"]
    chosen = {
        "--nest": request.nest,
        "--function": request.function,
        "--stores": request.stores,
        "--compiler": code.compiler,
    }
    for option, choice in chosen.items():
        command += [option, str(choice)] if choice is not None else []
    command += ["--flags", shlex.join(parse_flags(code.flags))] if code.flags is not None else []
    command += ["--classic"] if code.classic else []
    return [*command, "--safety", f"{request.safety:g}"] if request.safety != 1.0 else command
