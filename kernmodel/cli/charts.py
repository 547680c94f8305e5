"""What `roofline` and `carm` share: their options, and where a picture goes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernmodel.cli import options
from kernmodel.cli.mix import is_source
from kernmodel.errors import UsageError
from kernmodel.studies.predict.request import CodeRequest, KernelRequest
from kernmodel.units import plain_number

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.figure import Figure

    from kernmodel.cli.options import Decorator

FORMATS = (".svg", ".pdf", ".png")
TERMINAL = "-"
"""In place of a file: a drawing in characters on standard output."""


class Share(click.ParamType):  # type: ignore[type-arg]
    """A share between 0 and 1, 0 excluded."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The share."""
        try:
            share = plain_number(str(value))
        except ValueError:
            share = -1.0
        if not 0 < share <= 1:
            raise UsageError(f"{value!r} is no share above 0 and up to 1", where=_option(param), todo="write 0.5")
        return share


def _option(param: click.Parameter | None) -> str:
    return param.opts[0] if param is not None else ""


def plot_option(what: str) -> Decorator[Any]:
    """`--plot [FILE]`; without a file, or with `-`, it draws on the terminal: the same in every command."""
    text = f"Draw {what} into an .svg, .pdf or .png file; without FILE (or -) on the terminal."
    return click.option("--plot", metavar="[FILE]", type=click.Path(), is_flag=False, flag_value=TERMINAL, help=text)


chart_options = options.together(
    options.machine_option(),
    options.kernel_options,
    click.option(
        "--cores",
        type=options.Count(min=1),
        metavar="N",
        help="Active cores; all roofs and points are of all of them.  [default: all of one ccNUMA domain]",
    ),
    options.cache_options("auto", "lc", "sim"),
    click.option("--mix", "mix_file", metavar="FILE", type=click.Path(), help="Instruction mix as a file."),
    click.option(
        "--mask-utilization",
        type=Share(),
        default=1.0,
        show_default=True,
        metavar="X",
        help="Share of the lanes that masked instructions compute.",
    ),
    options.asm_option,
    options.compiler_option,
    options.flags_option,
    options.loop_options,
    options.classic_option,
    plot_option("the chart"),
    options.output_options,
)
"""The options of both commands, in the order of the help."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the charts are of: C kernels with their points, or one listing, or (no file) a mix.

    Attributes:
        kernels: without machine and sizes, which the study knows; empty where there is no C source.
        listing: assembly, object file or "-".
    """

    kernels: tuple[KernelRequest, ...]
    listing: str | None
    points: tuple[Mapping[str, int], ...]
    code: CodeRequest


def inputs_of(files: Sequence[str], given: Mapping[str, Any]) -> Inputs:
    """Sort the files and options.

    Raises:
        UsageError: options that do not fit them.
    """
    code = options.code_of(given)
    points = options.points_of(given["defines"])
    if not files and given["mix_file"] is None:
        raise UsageError("there is no kernel", todo="give a C kernel, an assembly file, or --mix FILE")
    if len(files) > 1:
        _refuse(
            given,
            ("asm", "nest", "function", "loop", "lines", "iterations_per_pass", "mix_file"),
            "several kernels are given",
        )
    if files and all(is_source(file) for file in files):
        choices: options.CacheChoices = given["choices"]
        kernels = tuple(
            choices.request(file, given["machine"], points[0], given["nest"], given["function"], given["safety"])
            for file in files
        )
        return Inputs(kernels, None, points, code)
    if len(files) > 1:
        wrong = next(file for file in files if not is_source(file))
        raise UsageError("is no C source; several kernels are C files", where=wrong, todo="chart it on its own")
    _refuse(given, ("defines", "nest", "function", "asm", "compiler", "flags"), "there is no C source")
    return Inputs((), files[0] if files else None, points, code)


def _refuse(given: Mapping[str, Any], names: Sequence[str], why: str) -> None:
    shown = {"defines": "-D", "mix_file": "--mix"}
    for name in names:
        if given[name] not in (None, ()):
            raise UsageError(
                f"does not fit: {why}", where=shown.get(name, "--" + name.replace("_", "-")), todo="leave it out"
            )


# {{{ pictures


def plot_target(path: str | None, *, as_json: bool) -> Path | None:
    """Where the picture goes, checked before any work is done; None without a picture or for the terminal.

    Raises:
        UsageError: an unknown format, a directory or a place that cannot be written, a drawing in a JSON document.
    """
    if path is None:
        return None
    if path == TERMINAL:
        if as_json:
            raise UsageError(
                "would mix a drawing into the JSON document", where="--plot -", todo="leave out one of them"
            )
        return None
    target = options.output_file(path)
    if target.suffix.lower() not in FORMATS:
        ending = f"the format {target.suffix!r}" if target.suffix else "a file name without an ending"
        raise UsageError(f"{ending} is not known", where=f"--plot {path}", todo=f"end it in {', '.join(FORMATS)}")
    folder = target.parent
    if not folder.is_dir():
        raise UsageError(f"there is no directory {folder}", where=f"--plot {path}", todo="make it first")
    _try_to_write(target)
    return target


def _try_to_write(target: Path) -> None:
    """Open the file as it will be opened, and leave the folder as it was."""
    existed = target.exists()
    try:
        with target.open("ab"):
            pass
    except OSError as error:
        what = f"cannot be written: {error.strerror}"
        raise UsageError(what, where=f"--plot {target}", todo="give another place") from error
    if not existed:
        target.unlink()


def save(target: Path, draw: Callable[[], Figure]) -> None:
    """Draw and write a picture."""
    from kernmodel.plot.style import write

    write(draw(), target)


def drawing_size() -> tuple[int, bool]:
    """Columns for a drawing on standard output, and whether it has to be in ASCII."""
    import sys

    from kernmodel.cli.output import style_of

    style = style_of(sys.stdout)
    return style.width or _PIPE_COLUMNS, style.ascii_only


_PIPE_COLUMNS = 80


# }}}
