"""What `roofline` and `carm` share: their options."""

from __future__ import annotations

import click

from kernmodel.api.options import CacheOptions, CodeOptions
from kernmodel.cli import options, types
from kernmodel.cli.command import watch_option
from kernmodel.cli.output import Shown
from kernmodel.errors import UsageError
from kernmodel.units import plain_number


def _share(text: str) -> float:
    """A share between 0 and 1, 0 excluded."""
    try:
        share = plain_number(text)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        what = f"{text!r} is no share above 0 and up to 1"
        raise UsageError(what, where="--mask-utilization", todo="write 0.5")
    return share


chart_options = options.together(
    options.machine_option(),
    options.kernel_options,
    click.option(
        "--cores",
        type=types.Count(min=1),
        metavar="N",
        help="Active cores; all roofs and points are of all of them.  [default: all of one ccNUMA domain]",
    ),
    options.cache_options("auto", "lc", "sim"),
    click.option("--mix", metavar="FILE", type=click.Path(), help="Instruction mix as a file."),
    click.option("--measured", metavar="FILE", type=click.Path(), help="Measured kernels to draw beside (CSV)."),
    click.option(
        "--mask-utilization",
        type=types.Parsed("share", _share),
        default=1.0,
        show_default=True,
        metavar="X",
        help="Share of the lanes that masked instructions compute.",
    ),
    options.code_options,
    options.plot_option("the chart"),
    watch_option,
    options.output_options,
)
"""The options of both commands, in the order of the help."""

gathered_chart = options.gathered(shown=Shown.of, asked=options.asked, cache=CacheOptions, code=CodeOptions)
"""Leaves `cores`, `mix` and what stands beside the predictions as they are."""

arrangement_options = options.together(
    click.option("--versions", is_flag=True, help="The kernels are versions of one: join each with the next."),
    click.option("--by-time", is_flag=True, help="Size and colour points by their share of the time."),
    click.option(
        "--calls",
        multiple=True,
        metavar="NAME=COUNT",
        help="Executions of a kernel, for --by-time. Repeatable.",
    ),
    click.option(
        "--axes",
        metavar="LIMITS",
        help="Limits of all charts: same, or FLOP/B and GFLOP/s as 0.01-100,1-4000.  [default: of each its own]",
    ),
)
"""The options of charts of several kernels: what becomes `ChartOptions` together with `--measured`."""
