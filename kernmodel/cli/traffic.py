"""`kernmodel traffic`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from kernmodel.cli import options
from kernmodel.cli.command import Command
from kernmodel.cli.output import accepted, show, show_json, show_sweep, with_progress

if TYPE_CHECKING:
    from kernmodel.report.text.traffic import TrafficUnit
    from kernmodel.studies.predict.request import TrafficAnswer


@click.command(cls=Command)
@options.kernel_argument
@options.machine_option()
@options.kernel_options
@click.option(
    "--cores",
    type=options.CoreCounts(),
    default="1",
    show_default=True,
    metavar="COUNTS",
    help=options.cores_help,
)
@options.cache_options("auto", "lc", "sim", "both")
@click.option(
    "--unit",
    type=options.Unit(["CL", "B", "B/It"]),
    default="CL",
    show_default=True,
    help="Unit of the traffic in a table over sizes or cores: CL (lines) or B (bytes) per unit of work, B/It.",
)
@options.output_options
def traffic(
    kernel: str,
    machine: str,
    defines: tuple[str, ...],
    nest: int | None,
    function: str | None,
    safety: float,
    cores: tuple[int, ...],
    choices: options.CacheChoices,
    unit: TrafficUnit,
    verbose: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Data traffic of the loop kernel in KERNEL (a C file, or the name of a carried one), by layer conditions or
    by simulating the caches.

    \b
    Examples:
      kernmodel traffic -m skx 3d-7pt.c -D N=400
      kernmodel traffic -m clx matmul.c -D N=512 --cache both
      kernmodel traffic -m clx copy.c --stores nt --cores 1-20
      kernmodel traffic -m clx stencil.c -D N=100-100000:30log --unit B/It
    """
    from kernmodel.studies.predict.traffic import predict_traffic_sweep

    points = options.points_of(defines)
    request = choices.request(kernel, machine, points[0], nest, function, safety)
    answers = accepted(predict_traffic_sweep(request, points, cores), strict)
    total = len(points) * len(cores)
    if total > 1:
        answers = with_progress(answers, total, streamed=not as_json)
        compared = choices.cache == "both"
        _print_sweep_json(answers) if as_json else _print_sweep(answers, points, cores, unit, compared=compared)
    elif as_json:
        from kernmodel.report.json.traffic import traffic_document

        show_json(traffic_document(next(answers)))
    else:
        from kernmodel.report.text.traffic import traffic_report

        show(traffic_report(next(answers), verbose=verbose))


def _print_sweep_json(answers: Iterator[TrafficAnswer]) -> None:
    from kernmodel.report.json.traffic import traffic_sweep_document

    show_json(traffic_sweep_document(answers))


def _print_sweep(
    answers: Iterator[TrafficAnswer],
    points: tuple[Mapping[str, int], ...],
    cores: tuple[int, ...],
    unit: TrafficUnit,
    *,
    compared: bool,
) -> None:
    from kernmodel.report.text.traffic import SweepShape, sweep_columns, sweep_inputs

    shape = SweepShape(unit, points, cores, compared)
    show_sweep(
        answers,
        lambda first: sweep_inputs(first, shape),
        columns=lambda first: sweep_columns(first, shape),
    )
