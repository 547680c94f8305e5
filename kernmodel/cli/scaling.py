"""`kernmodel scaling`."""

from __future__ import annotations

from typing import Any

import click

from kernmodel.api.options import CacheOptions, CodeOptions
from kernmodel.cli import options
from kernmodel.cli.command import Command
from kernmodel.cli.output import Shown, show_result
from kernmodel.units import TIME_UNITS


@click.command(cls=Command)
@options.kernel_argument
@options.machine_option()
@options.kernel_options
@click.option(
    "--cores", type=options.COUNTS, metavar="COUNTS", help="Core counts, such as 1-40.  [default: all of them]"
)
@options.cache_options("auto", "lc", "sim")
@click.option(
    "--unit",
    type=options.Unit(TIME_UNITS),
    help=f"Unit of the performance: {', '.join(TIME_UNITS)}.  [default: LUP/s, FLOP/s or It/s, as the kernel has them]",
)
@options.code_options
@options.plot_option("the performance over cores")
@options.output_options
@options.gathered(shown=Shown.of, asked=options.asked, cache=CacheOptions, code=CodeOptions)
def scaling(
    asked: dict[str, Any], cores: tuple[int, ...] | None, cache: CacheOptions, code: CodeOptions, shown: Shown
) -> None:
    """Performance of KERNEL (a C file, or the name of a carried one) over the cores of a machine, and what limits.

    \b
    Examples:
      kernmodel scaling -m clx stencil.c --plot
      kernmodel scaling -m clx stencil.c --cores 1-40 --plot scaling.svg
      kernmodel scaling -m hsw stencil.c -D M=1000 -D N=20000,120000 --cores 1-14 --unit FLOP/s
      kernmodel scaling -m zen2 3d-7pt.c -D N=400 --cache sim --cores 1,2,4,8
    """
    from kernmodel.api.kernels import scale

    show_result(scale(**asked, cores=cores or (), cache=cache, code=code, strict=shown.strict), shown)
