"""What `roofline` and `carm` share: their options."""

from __future__ import annotations

from typing import Any

import click

from kernmodel.api.options import CacheOptions, CodeOptions
from kernmodel.cli import options
from kernmodel.cli.output import Shown
from kernmodel.errors import UsageError
from kernmodel.units import plain_number


class Share(click.ParamType):  # type: ignore[type-arg]
    """A share between 0 and 1, 0 excluded."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The share."""
        try:
            share = plain_number(str(value))
        except ValueError:
            share = -1.0
        if not 0 < share <= 1:
            raise UsageError(f"{value!r} is no share above 0 and up to 1", where=_option(param), todo="write 0.5")
        return share


def _option(param: click.Parameter | None) -> str:
    return param.opts[0] if param is not None else ""


chart_options = options.together(
    options.machine_option(),
    options.kernel_options,
    click.option(
        "--cores",
        type=options.Count(min=1),
        metavar="N",
        help="Active cores; all roofs and points are of all of them.  [default: all of one ccNUMA domain]",
    ),
    options.cache_options("auto", "lc", "sim"),
    click.option("--mix", metavar="FILE", type=click.Path(), help="Instruction mix as a file."),
    click.option(
        "--mask-utilization",
        type=Share(),
        default=1.0,
        show_default=True,
        metavar="X",
        help="Share of the lanes that masked instructions compute.",
    ),
    options.code_options,
    options.plot_option("the chart"),
    options.output_options,
)
"""The options of both commands, in the order of the help."""

gathered_chart = options.gathered(shown=Shown.of, asked=options.asked, cache=CacheOptions, code=CodeOptions)
"""Leaves `cores` and `mix` as they are."""
