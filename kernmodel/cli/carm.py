"""`kernmodel carm`."""

from __future__ import annotations

from typing import Any

import click

from kernmodel.api.charts import carm_chart
from kernmodel.cli import types
from kernmodel.cli.charts import chart_options, gathered_chart
from kernmodel.cli.command import Command
from kernmodel.cli.output import Shown, show_result


@click.command(cls=Command)
@click.argument("kernel", type=types.KERNEL, required=False)
@chart_options
@gathered_chart
def carm(asked: dict[str, Any], shown: Shown, **given: Any) -> None:
    """The application-driven cache-aware roofline of one KERNEL: C source, an assembly file, or only --mix FILE.

    \b
    Examples:
      kernmodel carm -m skx-6140 iso3dfd.c
      kernmodel carm -m skx-6140 iso3dfd.c --mix measured.yml --mask-utilization 0.5
      kernmodel carm -m clx triad.c --cores 1 --plot triad.svg
    """
    show_result(carm_chart(**{"kernel": None, **asked, **given}, strict=shown.strict), shown)
