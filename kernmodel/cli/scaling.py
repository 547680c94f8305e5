"""`kernmodel scaling`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kernmodel.api.options import CacheOptions, CodeOptions
from kernmodel.cli import options, types
from kernmodel.cli.command import Command, watch_option
from kernmodel.cli.output import Shown, show_result
from kernmodel.units import TIME_UNITS

if TYPE_CHECKING:
    from kernmodel.machine.cores import Placement, Schedule


@click.command(cls=Command)
@options.described_argument
@options.machine_option()
@options.kernel_options
@click.option("--cores", type=types.COUNTS, metavar="COUNTS", help="Core counts, such as 1-40.  [default: all of them]")
@click.option(
    "--schedule",
    type=click.Choice(["static", "dynamic"]),
    help="Every core has the same work, or cores take it as they are ready.  [default: as the pragma says, or static]",
)
@click.option(
    "--placement",
    type=click.Choice(["compact", "scatter"]),
    default="compact",
    show_default=True,
    help="Fill one ccNUMA domain after the other, or go round them.",
)
@options.cache_options("auto", "lc", "sim")
@click.option(
    "--unit",
    type=types.Unit(TIME_UNITS),
    help=f"Unit of the performance: {', '.join(TIME_UNITS)}.  [default: LUP/s, FLOP/s or It/s, as the kernel has them]",
)
@options.code_options
@options.plot_option("the performance over cores")
@watch_option
@options.output_options
@options.gathered(shown=Shown.of, asked=options.asked, cache=CacheOptions, code=CodeOptions)
def scaling(
    asked: dict[str, Any],
    cores: tuple[int, ...] | None,
    schedule: Schedule | None,
    placement: Placement,
    cache: CacheOptions,
    code: CodeOptions,
    shown: Shown,
) -> None:
    """Performance of KERNEL (a C file, or the name of a carried one) over the cores of a machine, and what limits.

    \b
    Examples:
      kernmodel scaling -m clx stencil.c --plot
      kernmodel scaling -m clx stencil.c --cores 1-40 --plot scaling.svg
      kernmodel scaling -m hsw stencil.c -D M=1000 -D N=20000,120000 --cores 1-14 --unit FLOP/s
      kernmodel scaling -m zen2 3d-7pt.c -D N=400 --cache sim --cores 1,2,4,8
      kernmodel scaling -m bdw stencil.c --schedule dynamic --placement scatter
    """
    from kernmodel.api.kernels import scale

    result = scale(
        **asked,
        cores=cores or (),
        schedule=schedule,
        placement=placement,
        cache=cache,
        code=code,
        strict=shown.strict,
    )
    show_result(result, shown)
