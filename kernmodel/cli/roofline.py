"""`kernmodel roofline`."""

from __future__ import annotations

from typing import Any, get_args

import click

from kernmodel.api.charts import ChartOptions, Model, roofline_chart
from kernmodel.cli import options
from kernmodel.cli.charts import arrangement_options, chart_options, gathered_chart
from kernmodel.cli.command import Command
from kernmodel.cli.output import Shown, show_result


@click.command(cls=Command)
@options.described_arguments
@click.option(
    "--model",
    type=click.Choice(get_args(Model)),
    default="hierarchical",
    show_default=True,
    help="Original, hierarchical, cache-aware, integrated, application-driven, or all of them.",
)
@arrangement_options
@chart_options
@options.gathered(chart=ChartOptions)
@gathered_chart
def roofline(asked: dict[str, Any], shown: Shown, **given: Any) -> None:
    """Arithmetic intensity, roofs, bound and what limits of each KERNEL: C kernels, or one assembly file.

    \b
    Examples:
      kernmodel roofline -m skx-6140 stencil.c
      kernmodel roofline -m skx-6140 stencil.c --model adcarm --plot roofline.svg
      kernmodel roofline -m clx stencil.c triad.c 3d-7pt.c -D N=1000 --cores 18 --plot all.png
      kernmodel roofline -m clx triad.c --plot -
      kernmodel roofline -m clx before.c after.c --versions --html better.html
    """
    show_result(roofline_chart(**asked, **given, strict=shown.strict), shown)
