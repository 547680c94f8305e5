"""`kernmodel ecm`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import click

from kernmodel.api.options import CacheOptions, CodeOptions, refuse
from kernmodel.cli import options, types
from kernmodel.cli.command import Command, watch_option
from kernmodel.cli.output import Shown, print_line, show_result
from kernmodel.errors import KernmodelError, Location, SeveralNestsError, UsageError
from kernmodel.machine.pages import Pages

if TYPE_CHECKING:
    from kernmodel.api.result import Result


@click.command(cls=Command)
@options.described_argument
@options.machine_option()
@options.vector_option
@options.instructions_option
@options.kernel_options
@click.option("--cores", type=types.COUNTS, metavar="COUNTS", help="Core counts to scale over, such as 1-20.")
@options.cache_options("auto", "lc", "sim")
@options.time_unit_option
@options.code_options
@click.option(
    "--pages",
    type=click.Choice(get_args(Pages)),
    help="Pages in which the data lie.  [default: as where the machine's bandwidths were measured]",
)
@options.plot_option("the times over the sizes, or with --cores the performance,")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "gcc"]),
    default="text",
    show_default=True,
    help="gcc: lines FILE:LINE:COLUMN: note: … for editors.",
)
@watch_option
@options.output_options
@click.pass_context
@options.gathered(shown=Shown.of, asked=options.asked, cache=CacheOptions, code=CodeOptions)
def ecm(
    ctx: click.Context,
    asked: dict[str, Any],
    cores: tuple[int, ...] | None,
    cache: CacheOptions,
    code: CodeOptions,
    pages: Pages | None,
    form: str,
    shown: Shown,
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
      kernmodel ecm -m clx stencil.c --format gcc
    """
    how = {"code": code, "pages": pages}
    if form == "gcc":
        ctx.exit(_show_lines(asked, cores, cache, how, shown))
    show_result(_answers(asked, cores, cache, how, shown), replace(shown, as_json=shown.as_json or form == "json"))


def _answers(
    asked: dict[str, Any], cores: tuple[int, ...] | None, cache: CacheOptions, how: dict[str, Any], shown: Shown
) -> Result[Any]:
    """The answer for the nest, for each point, or for each nest where there are several; `how`: code and pages."""
    from kernmodel.api import kernels

    try:
        return kernels.ecm(**asked, cores=cores or (), cache=cache, **how, strict=shown.strict)
    except SeveralNestsError:
        if cores or shown.plot is not None or options.several_values(asked) or how["code"].request().of_one_loop:
            raise
        return kernels.ecm_nests(**asked, cache=cache, **how, strict=shown.strict)


def _show_lines(
    asked: dict[str, Any], cores: tuple[int, ...] | None, cache: CacheOptions, how: dict[str, Any], shown: Shown
) -> int:
    """Print messages in the form of gcc; what is wrong with the source is one of them. The exit status.

    Raises:
        KernmodelError: something is wrong that has no place in a file.
    """
    from kernmodel.report.text.editor import ecm_lines, error_line

    of_one = {"--cores": cores, "--plot": shown.plot, "--json": shown.as_json or None, "--html": shown.page}
    refuse(of_one, "--format gcc tells what stands at lines of the source")
    if options.several_values(asked):
        raise UsageError("is of one point of sizes", where="--format gcc", todo="write -D N=4000")
    try:
        for answer in _answers(asked, cores, cache, how, shown):
            for line in ecm_lines(answer, shown.unit or "cy/CL", verbose=shown.verbose):
                print_line(line)
    except KernmodelError as error:
        if not isinstance(error.where, Location):
            raise
        print_line(error_line(error))
        return error.exit_status
    return 0
