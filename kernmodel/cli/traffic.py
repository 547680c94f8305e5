"""`kernmodel traffic`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from kernmodel.cli import options
from kernmodel.cli.output import accepted, show, show_json, show_sweep, with_progress
from kernmodel.studies.request import KernelRequest

if TYPE_CHECKING:
    from kernmodel.report.traffic import TrafficUnit
    from kernmodel.studies.request import TrafficAnswer


@click.command()
@options.kernel_argument
@options.machine_option()
@options.kernel_options
@click.option(
    "--cores",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Active cores that share the shared caches.",
)
@click.option(
    "--unit",
    type=options.Unit(["CL", "B", "B/It"]),
    default="CL",
    show_default=True,
    help="Unit of the traffic in a table over sizes: CL (lines) or B (bytes) per unit of work, B/It.",
)
@options.output_options
def traffic(
    kernel: str,
    machine: str,
    defines: tuple[str, ...],
    nest: int | None,
    function: str | None,
    safety: float,
    cores: int,
    unit: TrafficUnit,
    verbose: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Data traffic of the loop kernel in KERNEL (a C file, or the name of a carried one) by layer conditions.

    \b
    Examples:
      kernmodel traffic -m skx 3d-7pt.c -D N=400
      kernmodel traffic -m clx stencil.c -D N=100-100000:30log --unit B/It
    """
    from kernmodel.studies.predict import predict_traffic_sweep

    points = options.points_of(defines)
    request = KernelRequest(kernel, machine, points[0], nest, function, cores, safety)
    answers = accepted(predict_traffic_sweep(request, points), strict)
    if len(points) > 1:
        answers = with_progress(answers, len(points), streamed=not as_json)
        _print_sweep_json(answers) if as_json else _print_sweep(answers, points, unit)
    elif as_json:
        from kernmodel.report.json_traffic import traffic_document

        show_json(traffic_document(next(answers)))
    else:
        from kernmodel.report.traffic import traffic_report

        show(traffic_report(next(answers), verbose=verbose))


def _print_sweep_json(answers: Iterator[TrafficAnswer]) -> None:
    from kernmodel.report.json_traffic import traffic_sweep_document

    show_json(traffic_sweep_document(answers))


def _print_sweep(answers: Iterator[TrafficAnswer], points: tuple[Mapping[str, int], ...], unit: TrafficUnit) -> None:
    from kernmodel.report.traffic import sweep_columns, sweep_inputs, sweep_row

    show_sweep(
        answers,
        sweep_inputs,
        columns=lambda first: sweep_columns(first, unit, points),
        rows=lambda answer: (sweep_row(answer, unit),),
    )
