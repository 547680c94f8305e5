"""`kernmodel traffic`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kernmodel.api.options import CacheOptions
from kernmodel.cli import options, types
from kernmodel.cli.command import Command, watch_option
from kernmodel.cli.output import Shown, show_result
from kernmodel.errors import SeveralNestsError

if TYPE_CHECKING:
    from kernmodel.api.result import Result


@click.command(cls=Command)
@options.described_argument
@options.machine_option()
@options.kernel_options
@click.option(
    "--cores",
    type=types.COUNTS,
    default="1",
    show_default=True,
    metavar="COUNTS",
    help=options.cores_help,
)
@options.cache_options("auto", "lc", "sim", "both")
@click.option(
    "--unit",
    type=types.Unit(["CL", "B", "B/It"]),
    default="CL",
    show_default=True,
    help="Unit of the traffic in a table over sizes or cores: CL (lines) or B (bytes) per unit of work, B/It.",
)
@click.option("--cycles", is_flag=True, help="Also what each path takes for its lines, as the ECM model has it.")
@watch_option
@options.output_options
@options.gathered(shown=Shown.of, asked=options.asked, cache=CacheOptions)
def traffic(asked: dict[str, Any], cores: tuple[int, ...], cycles: bool, cache: CacheOptions, shown: Shown) -> None:
    """Data traffic of the loop kernel in KERNEL (a C file, or the name of a carried one), by layer conditions or
    by simulating the caches.

    A file or function with several loop nests gives a table of all with their sum, unless one is chosen.

    \b
    Examples:
      kernmodel traffic -m skx 3d-7pt.c -D N=400
      kernmodel traffic -m clx triad.c -D N=10000000 --cycles
      kernmodel traffic -m clx matmul.c -D N=512 --cache both
      kernmodel traffic -m clx copy.c --stores nt --cores 1-20
      kernmodel traffic -m clx stencil.c -D N=100-100000:30log --unit B/It
    """
    from kernmodel.api import kernels

    answers: Result[Any]
    try:
        answers = kernels.data_traffic(**asked, cores=cores, cycles=cycles, cache=cache, strict=shown.strict)
    except SeveralNestsError:
        if len(cores) > 1 or options.several_values(asked) or cache.mode == "both" or cycles:
            raise
        answers = kernels.traffic_nests(**asked, cores=cores[0], cache=cache, strict=shown.strict)
    show_result(answers, shown)
