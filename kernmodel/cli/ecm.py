"""`kernmodel ecm`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kernmodel.api.options import CacheOptions, CodeOptions
from kernmodel.cli import options
from kernmodel.cli.command import Command
from kernmodel.cli.output import Shown, show_result
from kernmodel.errors import SeveralNestsError

if TYPE_CHECKING:
    from kernmodel.api.result import Result


@click.command(cls=Command)
@options.kernel_argument
@options.machine_option()
@options.vector_option
@options.kernel_options
@click.option("--cores", type=options.COUNTS, metavar="COUNTS", help="Core counts to scale over, such as 1-20.")
@options.cache_options("auto", "lc", "sim")
@options.time_unit_option
@options.code_options
@options.plot_option("the times over the sizes, or with --cores the performance,")
@options.output_options
@options.gathered(shown=Shown.of, asked=options.asked, cache=CacheOptions, code=CodeOptions)
def ecm(
    asked: dict[str, Any], cores: tuple[int, ...] | None, cache: CacheOptions, code: CodeOptions, shown: Shown
) -> None:
    """Predict the runtime of the loop kernel in KERNEL (a C file, or the name of a carried one) with the ECM model.

    A file or function with several loop nests gives a table of all with their sum, unless one is chosen.

    \b
    Examples:
      kernmodel ecm --machine clx.yml stencil.c
      kernmodel ecm -m clx stencil.c -D N=4000 -D M=4000 --cores 1-20 --unit cy/CL
      kernmodel ecm -m clx stencil.c -D N=100-10000:20log --unit LUP/s
      kernmodel ecm -m clx matvec-transposed.c --cache sim
      kernmodel ecm -m clx stencil.c --cores 1-20 --plot scaling.svg
    """
    from kernmodel.api import kernels

    answers: Result[Any]
    try:
        answers = kernels.ecm(**asked, cores=cores or (), cache=cache, code=code, strict=shown.strict)
    except SeveralNestsError:
        if cores or shown.plot is not None or options.several_values(asked) or code.request().of_one_loop:
            raise
        answers = kernels.ecm_nests(**asked, cache=cache, code=code, strict=shown.strict)
    show_result(answers, shown)
