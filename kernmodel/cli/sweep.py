"""`kernmodel sweep`."""

from __future__ import annotations

from typing import Any

import click

from kernmodel.api.options import CacheOptions, CodeOptions
from kernmodel.api.sweeps import SweepRun, Vary, sweep_grid_of
from kernmodel.cli import options, types
from kernmodel.cli.command import Command
from kernmodel.cli.output import Shown
from kernmodel.errors import UsageError

FORMATS = ("table", "csv", "jsonl", "json")
_MANY = 10_000_000
"""Points above which the user is asked."""


@click.command(cls=Command)
@options.kernel_argument
@click.option(
    "-m",
    "--machine",
    "machines",
    type=types.MACHINE,
    multiple=True,
    required=True,
    help="Machine file, or the name of a carried one (see `machine list`); once for each machine.",
)
@options.kernel_options
@click.option("--cores", type=types.COUNTS, metavar="COUNTS", help="Active cores, such as 1-20.")
@click.option("--compiler", "compilers", multiple=True, metavar="C", help="Compiler to use, once for each.")
@click.option(
    "--flags", "flag_lists", type=types.FLAGS, multiple=True, help="Compiler flags in one string, once for each."
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
@options.varied_options
@click.option("--jobs", type=types.Count(min=1), metavar="N", help="Processes.  [default: all processors]")
@click.option("--scheduler", metavar="ADDRESS", help="Dask cluster to use, such as tcp://host:8786.")
@click.option("--resume", metavar="FILE", type=click.Path(), help="Go on with this .jsonl file; begin it if need be.")
@click.option("--output", metavar="FILE", type=click.Path(), help="Write the rows to a .csv, .jsonl or .parquet file.")
@click.option("--force", is_flag=True, help="Replace the output file, or the page, if it exists.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="What to print.  [default: table]")
@click.option("--yes", is_flag=True, help="Do it for more than 10⁷ points.")
@options.plot_option("over the axes")
@options.strict_option
@options.json_option
@options.html_option
@options.gathered(asked=options.asked, cache=CacheOptions, code=CodeOptions)
def sweep(asked: dict[str, Any], cache: CacheOptions, code: CodeOptions, **given: Any) -> None:
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
    form = _form(given)
    own = {name: given[name] for name in ("strict", "unit", "plot", "html", "force")}
    shown = Shown.of(**own, as_json=form not in (None, "table"))  # no drawing among rows that a program reads
    vary = Vary(given["compilers"], given["flag_lists"], given["blocks"], given["changes"])
    grid = sweep_grid_of(
        **asked, machines=given["machines"], cores=given["cores"] or (), vary=vary, cache=cache, code=code
    )
    if len(grid) > _MANY and not given["yes"]:
        raise UsageError(f"{len(grid):,} points", where="sweep", todo="take fewer, or say --yes")
    if shown.plot is not None:
        from kernmodel.plot.sweep_data import check_axes

        check_axes(grid.axes)
    from kernmodel.cli.sweep_run import print_sweep

    files = {name: given[name] for name in ("jobs", "scheduler", "resume", "output", "force")}
    run = SweepRun(**files, table=form == "table", identified=form in ("json", "jsonl"), unit=given["unit"])
    print_sweep(grid, run, form, shown)


def _form(given: dict[str, Any]) -> str | None:
    """What is printed; None: a table, but only a summary where the rows go to a file."""
    if given["as_json"] and given["form"] not in (None, "json"):
        what = f"--json is --format json, not {given['form']}"
        raise UsageError(what, where="--format", todo="leave out one of them")
    return "json" if given["as_json"] else given["form"]
