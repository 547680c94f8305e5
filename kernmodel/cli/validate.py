"""`kernmodel validate`."""

from __future__ import annotations

from typing import Any

import click

from kernmodel.api.options import CodeOptions
from kernmodel.cli import options, types
from kernmodel.cli.command import Command
from kernmodel.cli.output import Shown, show_result, shown_progress
from kernmodel.machine.pages import Pages


@click.command(cls=Command)
@click.argument("kernels", type=types.KERNEL, nargs=-1, metavar="[KERNEL]...")
@options.machine_option()
@click.option("--level", "levels", multiple=True, metavar="LEVEL", help="L1 to Mem.  [default: all]")
@options.defines_option
@options.compiler_option
@options.flags_option
@options.loop_align_option
@options.array_options
@options.pages_option
@click.option(
    "--explain",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    metavar="PERCENT",
    help="Look for the cause of larger errors by experiments.",
)
@click.option("--no-explain", is_flag=True, help="Run nothing again for the cause of errors beyond 30 %.")
@options.plot_file_option("measured over predicted cycles")
@options.json_option
@options.gathered(shown=Shown.of, asked=options.asked, code=CodeOptions)
def validate(
    asked: dict[str, Any],
    levels: tuple[str, ...],
    code: CodeOptions,
    pages: Pages,
    explain: float,
    no_explain: bool,
    shown: Shown,
) -> None:
    """Run each KERNEL (by default all that are carried) on this host, and compare with what its machine file predicts.

    The data are placed in each level in turn; the prediction is of the same code, its loop and arrays where they lay.

    \b
    Examples:
      kernmodel machine probe -o mine.yml
      kernmodel validate -m mine.yml
      kernmodel validate -m mine.yml triad.c 3d-7pt.c --level L1 --plot scatter.svg
    """
    from kernmodel.api.measuring import validate as run

    with shown_progress() as progress:
        result = run(
            **asked,
            levels=levels,
            code=code,
            pages=pages,
            explain=None if no_explain else explain,
            progress=progress,
        )
    show_result(result, shown)
