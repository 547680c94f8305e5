"""`kernmodel scaling`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from kernmodel.cli import options
from kernmodel.cli.charts import TERMINAL, drawing_size, plot_option, plot_target, save
from kernmodel.cli.command import Command
from kernmodel.cli.output import accepted, show, show_json, show_text, with_progress
from kernmodel.errors import UsageError
from kernmodel.studies.predict.request import CodeRequest
from kernmodel.units import TIME_UNITS, convert_cycles

if TYPE_CHECKING:
    from kernmodel.studies.predict.request import KernelRequest
    from kernmodel.studies.scaling import ScalingAnswer

_MOST_POINTS = 16
"""Points of sizes; more are a sweep."""


@click.command(cls=Command)
@options.kernel_argument
@options.machine_option()
@options.kernel_options
@click.option(
    "--cores", type=options.CoreCounts(), metavar="COUNTS", help="Core counts, such as 1-40.  [default: all of them]"
)
@options.cache_options("auto", "lc", "sim")
@click.option(
    "--unit",
    type=options.Unit(TIME_UNITS),
    help=f"Unit of the performance: {', '.join(TIME_UNITS)}.  [default: LUP/s, FLOP/s or It/s, as the kernel has them]",
)
@options.code_options
@plot_option("the performance over cores")
@options.output_options
def scaling(
    kernel: str,
    machine: str,
    defines: tuple[str, ...],
    nest: int | None,
    function: str | None,
    safety: float,
    cores: tuple[int, ...] | None,
    choices: options.CacheChoices,
    unit: str | None,
    code: CodeRequest,
    plot: str | None,
    verbose: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Performance of KERNEL (a C file, or the name of a carried one) over the cores of a machine, and what limits.

    \b
    Examples:
      kernmodel scaling -m clx stencil.c --plot
      kernmodel scaling -m clx stencil.c --cores 1-40 --plot scaling.svg
      kernmodel scaling -m hsw stencil.c -D M=1000 -D N=20000,120000 --cores 1-14 --unit FLOP/s
      kernmodel scaling -m zen2 3d-7pt.c -D N=400 --cache sim --cores 1,2,4,8
    """
    target = plot_target(plot, as_json=as_json)
    points = options.points_of(defines)
    if len(points) > _MOST_POINTS:
        what = f"{len(points)} points of sizes, but at most {_MOST_POINTS} stand beside each other"
        raise UsageError(what, where="-D", todo="take fewer, or ask `kernmodel sweep`")
    request = choices.request(kernel, machine, points[0], nest, function, safety)
    found = _answers([replace(request, sizes=sizes) for sizes in points], code, cores or ())
    answers = tuple(with_progress(accepted(found, strict), len(points), streamed=False))
    _print(answers, unit, plot, verbose=verbose, as_json=as_json)
    if target is not None:
        from kernmodel.plot.scaling import scaling_figure

        save(target, lambda: scaling_figure(answers, unit))


def _answers(kernels: list[KernelRequest], code: CodeRequest, cores: tuple[int, ...]) -> Iterator[ScalingAnswer]:
    from kernmodel.studies.predict.stages import Stages
    from kernmodel.studies.scaling import scaling as study

    stages = Stages()
    for kernel in kernels:
        yield study(kernel, code, cores, stages=stages)


def _print(
    answers: tuple[ScalingAnswer, ...], unit: str | None, plot: str | None, *, verbose: bool, as_json: bool
) -> None:
    from kernmodel.studies.scaling import own_rate

    work = answers[0].single.prediction.work
    shown = unit or own_rate(work)
    convert_cycles(1.0, shown, work)  # refuses a unit that the kernel has no meaning for
    if as_json:
        from kernmodel.report.json.ecm import scaling_document

        show_json(scaling_document(answers, shown))
        return
    from kernmodel.report.text.scaling import scaling_report

    show(scaling_report(answers, shown, verbose=verbose))
    if plot == TERMINAL:
        from kernmodel.plot.scaling import scaling_text

        show_text("\n" + scaling_text(answers, unit, *drawing_size()))
