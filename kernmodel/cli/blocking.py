"""`kernmodel blocking`."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from kernmodel.cli import options
from kernmodel.cli.charts import TERMINAL, drawing_size, plot_option, plot_target, save
from kernmodel.cli.command import Command
from kernmodel.cli.output import show, show_json, show_text, write_error
from kernmodel.cli.streams import write_bytes
from kernmodel.errors import InputError, UsageError
from kernmodel.output_files import write_file
from kernmodel.studies.predict.request import CodeRequest, KernelRequest
from kernmodel.traffic.options import StoreMode

if TYPE_CHECKING:
    from kernmodel.studies.blocking.answer import BlockingAnswer

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
    type=options.Count(min=1),
    default=1,
    metavar="N",
    help="Active cores that share the shared caches.",
)
@click.option(
    "--stores",
    type=click.Choice(get_args(StoreMode)),
    help="Stores that load their line, streaming stores, or as the cores evade.  [default: as found]",
)
@options.time_unit_option
@options.code_options
@click.option(
    "--emit", metavar="FILE", type=click.Path(), help="Write the C source of the best candidate; - to standard output."
)
@click.option("--force", is_flag=True, help="Let --emit replace a file that exists.")
@plot_option("the times over block sizes")
@options.output_options
def blocking(
    kernel: str,
    machine: str,
    defines: tuple[str, ...],
    nest: int | None,
    function: str | None,
    safety: float,
    loops: str | None,
    cores: int,
    stores: StoreMode | None,
    unit: str,
    code: CodeRequest,
    emit: str | None,
    force: bool,
    plot: str | None,
    verbose: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Which loops of KERNEL (a C file, or the name of a carried one) to block for the caches, by how much, and what it
    buys.

    \b
    Examples:
      kernmodel blocking -m clx 3d-7pt.c -D N=800
      kernmodel blocking -m clx matmul.c --loops i,j,k --plot blocking.svg
      kernmodel blocking -m clx 3d-7pt.c --emit blocked.c
    """
    from kernmodel.studies.blocking.study import blocking as study

    target = plot_target(plot, as_json=as_json)
    written = _emit_target(emit, force=force, as_json=as_json, drawn=plot == TERMINAL)
    sizes = options.one_point_of(defines)
    request = KernelRequest(kernel, machine, sizes, nest, function, cores, safety, "lc", stores)
    answer = study(request, code, _loops(loops))
    options.accept_notes(answer.notes, strict)
    if emit != STDOUT:
        _print(answer, unit, verbose=verbose, as_json=as_json)
    if emit is not None:
        _emit(answer, request, code, written)
    if plot is not None:
        _plot(answer, target)


def _loops(text: str | None) -> tuple[str, ...] | None:
    """The names of `--loops`."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UsageError(f"{text!r} is no list of loops", where="--loops", todo="write --loops i,j")
    return tuple(dict.fromkeys(names))


def _print(answer: BlockingAnswer, unit: str, *, verbose: bool, as_json: bool) -> None:
    if as_json:
        from kernmodel.report.json.blocking import blocking_document

        show_json(blocking_document(answer, unit))
        return
    from kernmodel.report.text.blocking import blocking_report

    show(blocking_report(answer, unit, verbose=verbose))


# {{{ the blocked source


def _emit_target(path: str | None, *, force: bool, as_json: bool, drawn: bool) -> Path | None:
    """Where the source goes, checked before any work is done; None for standard output or without --emit.

    Raises:
        UsageError: a file that exists, a directory, a place that cannot be written, a source among other output.
    """
    if path is None:
        if force:
            raise UsageError("does not fit: nothing is written", where="--force", todo="give --emit FILE")
        return None
    if path == STDOUT:
        if as_json or drawn:
            other = "JSON document" if as_json else "drawing"
            raise UsageError(f"would mix the source and a {other}", where="--emit -", todo="give --emit a file")
        return None
    target = options.output_file(path)
    if target.exists() and not force:
        raise UsageError("exists already", where=f"--emit {path}", todo="give another name, or --force to replace it")
    if not target.parent.is_dir():
        raise UsageError(f"there is no directory {target.parent}", where=f"--emit {path}", todo="make it first")
    return target


def _emit(answer: BlockingAnswer, request: KernelRequest, code: CodeRequest, target: Path | None) -> None:
    """Write the source of the best candidate, and say on standard error how to go on with it."""
    from kernmodel.studies.blocking.study import blocked_source

    text = blocked_source(answer)
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


def _model(request: KernelRequest, code: CodeRequest, target: Path) -> list[str]:
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
    command += ["--flags", shlex.join(code.flags)] if code.flags is not None else []
    command += ["--classic"] if code.classic else []
    return [*command, "--safety", f"{request.safety:g}"] if request.safety != 1.0 else command


# }}}


def _plot(answer: BlockingAnswer, target: Path | None) -> None:
    """Draw into a file, or on the terminal.

    Raises:
        InputError: there are no block sizes to draw.
    """
    if not answer.candidates or not answer.sweep:
        raise InputError("blocking buys nothing here, so there is no picture of it", todo="leave out --plot")
    from kernmodel.plot.blocking import blocking_figure, blocking_text

    if target is not None:
        save(target, lambda: blocking_figure(answer))
    else:
        show_text("\n" + blocking_text(answer, *drawing_size()))
