"""`kernmodel compare`."""

from __future__ import annotations

from typing import Any

import click

from kernmodel.api.options import CacheOptions, CodeOptions
from kernmodel.cli import options, types
from kernmodel.cli.command import Command
from kernmodel.cli.output import Shown, show_result
from kernmodel.units import TIME_UNITS


@click.command(cls=Command)
@click.argument("kernels", type=types.KERNEL, nargs=-1, required=True, metavar="KERNEL...")
@click.option(
    "-m",
    "--machine",
    "--machines",
    "machines",
    type=types.MACHINE,
    multiple=True,
    required=True,
    help="Machine file, or the name of a carried one (see `machine list`), for each machine; all: every carried one.",
)
@options.kernel_options
@options.cache_options("auto", "lc", "sim")
@click.option(
    "--unit",
    type=types.Unit(TIME_UNITS),
    help=f"Unit of the performance: {', '.join(TIME_UNITS)}.  [default: LUP/s, FLOP/s or It/s, as a kernel has them]",
)
@click.option("--compiler", metavar="C", help="Compiler to use.  [default: each machine's first that is installed]")
@click.option("--flags", type=types.FLAGS, help="Compiler flags in one string.  [default: each machine's own]")
@options.iterations_option
@options.ports_option
@options.classic_option
@options.plot_option("times and performance by machine")
@options.output_options
@options.gathered(shown=Shown.of, asked=options.asked, cache=CacheOptions, code=CodeOptions)
def compare(
    asked: dict[str, Any], machines: tuple[str, ...], cache: CacheOptions, code: CodeOptions, shown: Shown
) -> None:
    """Predict each KERNEL on several machines: what limits on each, and why.

    \b
    Examples:
      kernmodel compare -m snb -m hsw -m clx -m zen2 stencil.c
      kernmodel compare -m all stencil.c triad.c --plot compare.svg
      kernmodel compare -m clx -m my-machine.yml 3d-7pt.c -D N=400 --unit FLOP/s --json
    """
    from kernmodel.api import kernels

    answer = kernels.compare(**asked, machines=machines, cache=cache, code=code, strict=shown.strict)
    show_result(answer, shown)
