"""`kernmodel sweep`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from kernmodel.cli import options
from kernmodel.cli.charts import plot_option, plot_target
from kernmodel.cli.command import Command
from kernmodel.errors import UsageError
from kernmodel.studies.sweep.values import parse_defines

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kernmodel.studies.sweep.grid import Grid

FORMATS = ("table", "csv", "jsonl", "json")
_MANY = 10_000_000
"""Points above which the user is asked."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Where the rows of a sweep go, and how they come about.

    Attributes:
        format: of standard output; None: a table, but only a summary where the rows go to a file.
        output: file for the rows, checked; resume: journal to go on with.
        plot: "-" or a file name as given, None for no drawing; target: the file, checked.
        jobs: processes; scheduler: address of a Dask cluster in their place.
    """

    format: str | None
    unit: str
    output: Path | None
    resume: Path | None
    plot: str | None
    target: Path | None
    strict: bool
    jobs: int | None
    scheduler: str | None


@click.command(cls=Command)
@options.kernel_argument
@click.option(
    "-m",
    "--machine",
    "machines",
    type=options.MACHINE,
    multiple=True,
    required=True,
    help="Machine file, or the name of a carried one (see `machine list`); once for each machine.",
)
@options.kernel_options
@click.option("--cores", type=options.CoreCounts(), metavar="COUNTS", help="Active cores, such as 1-20.")
@click.option("--compiler", "compilers", multiple=True, metavar="C", help="Compiler to use, once for each.")
@click.option(
    "--flags", "flag_lists", type=options.Flags(), multiple=True, help="Compiler flags in one string, once for each."
)
@click.option(
    "--block", "blocks", multiple=True, metavar="LOOP=VALUES", help="Block sizes of a loop, written as those of -D."
)
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="PATH=VALUES",
    help="Values of a figure of the machine: 1MiB,2MiB, x0.5,x2, +10%, 256KiB-4MiB:5log.",
)
@options.cache_options("auto", "lc", "sim")
@options.time_unit_option
@options.asm_option
@options.loop_options
@options.classic_option
@click.option("--jobs", type=options.Count(min=1), metavar="N", help="Processes.  [default: all processors]")
@click.option("--scheduler", metavar="ADDRESS", help="Dask cluster to use, such as tcp://host:8786.")
@click.option("--resume", metavar="FILE", type=click.Path(), help="Go on with this .jsonl file; begin it if need be.")
@click.option("--output", metavar="FILE", type=click.Path(), help="Write the rows to a .csv, .jsonl or .parquet file.")
@click.option("--force", is_flag=True, help="Replace the output file if it exists.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="What to print.  [default: table]")
@click.option("--yes", is_flag=True, help="Do it for more than 10⁷ points.")
@plot_option("over the axes")
@options.strict_option
@options.json_option
def sweep(kernel: str, **given: Any) -> None:
    """Predict KERNEL (a C file, or the name of a carried one) at all combinations of what varies.

    \b
    Examples:
      kernmodel sweep -m clx stencil.c -D N=100-100000:60log --plot
      kernmodel sweep -m clx -m snb stencil.c -D N=1000,4000 --cores 1-8 --output sweep.csv
      kernmodel sweep -m clx stencil.c --flags -O2 --flags "-O3 -mprefer-vector-width=512" --compiler gcc
      kernmodel sweep -m clx 3d-7pt.c -D N=800 --block i=32-512:8log --block j=16,32
      kernmodel sweep -m clx stencil.c --set L2.size=x0.5,x1,x2 --set memory.bandwidth=x0.5,x1,x2
      kernmodel sweep -m clx stencil.c -D N=100-100000:5000 --resume run.jsonl
    """
    wanted = _wanted(given)
    grid = _grid(kernel, given)
    if len(grid) > _MANY and not given["yes"]:
        raise UsageError(f"{len(grid):,} points", where="sweep", todo="take fewer, or say --yes")
    if wanted.plot is not None:
        from kernmodel.plot.sweep_data import check_axes

        check_axes(grid.axes)
    from kernmodel.cli.sweep_run import run

    run(grid, wanted)


def _grid(kernel: str, given: Mapping[str, Any]) -> Grid:
    from kernmodel.studies.predict.request import Point
    from kernmodel.studies.sweep.study import Varied, sweep_grid
    from kernmodel.studies.sweep.values import parse_blocks, parse_changes

    if given["asm"] is not None:
        for name, option in (("compilers", "--compiler"), ("flag_lists", "--flags"), ("blocks", "--block")):
            if given[name]:
                raise UsageError("does not fit: the assembly is given", where=option, todo="leave it out")
    choices: options.CacheChoices = given["choices"]
    machine = given["machines"][0]
    request = choices.request(kernel, machine, {}, given["nest"], given["function"], given["safety"])
    code = options.code_of(given, compiled=False)
    varied = Varied(
        machines=given["machines"],
        compilers=given["compilers"],
        flags=given["flag_lists"],
        changes=parse_changes(given["changes"]),
        blocks=parse_blocks(given["blocks"]),
        cores=given["cores"] or (),
        sizes=parse_defines(given["defines"]),
    )
    return sweep_grid(Point(request, code), varied)


def _wanted(given: Mapping[str, Any]) -> Wanted:
    """Where the rows go, checked before any work is done.

    Raises:
        UsageError: files that cannot be written, or options that contradict each other.
    """
    from pathlib import Path

    from kernmodel.report.row_files import check_row_file

    if given["as_json"] and given["form"] not in (None, "json"):
        raise UsageError(
            f"--json is --format json, not {given['form']}", where="--format", todo="leave out one of them"
        )
    form = "json" if given["as_json"] else given["form"]
    if given["scheduler"] is not None and given["jobs"] is not None:
        raise UsageError("the processes of a cluster are its own", where="--jobs", todo="leave it out")
    target = plot_target(given["plot"], as_json=form not in (None, "table"))
    resume = None if given["resume"] is None else Path(given["resume"])
    output = given["output"]
    if output is not None and resume is not None and Path(output).resolve() == resume.resolve():
        output = None
    checked = None if output is None else check_row_file(output, force=given["force"])
    plot = given["plot"]
    return Wanted(
        form, given["unit"], checked, resume, plot, target, given["strict"], given["jobs"], given["scheduler"]
    )
