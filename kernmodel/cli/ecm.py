"""`kernmodel ecm`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from kernmodel.cli import options
from kernmodel.cli.charts import TERMINAL, drawing_size, plot_option, plot_target, save
from kernmodel.cli.command import Command
from kernmodel.cli.output import accepted, show, show_json, show_sweep, show_text, with_progress
from kernmodel.studies.predict.request import CodeRequest

if TYPE_CHECKING:
    from kernmodel.studies.predict.request import EcmAnswer


@click.command(cls=Command)
@options.kernel_argument
@options.machine_option()
@options.kernel_options
@click.option("--cores", type=options.CoreCounts(), metavar="COUNTS", help="Core counts to scale over, such as 1-20.")
@options.cache_options("auto", "lc", "sim")
@options.time_unit_option
@options.code_options
@plot_option("the times over the sizes, or with --cores the performance,")
@options.output_options
def ecm(
    kernel: str,
    machine: str,
    defines: tuple[str, ...],
    nest: int | None,
    function: str | None,
    safety: float,
    cores: tuple[int, ...] | None,
    choices: options.CacheChoices,
    unit: str,
    code: CodeRequest,
    plot: str | None,
    verbose: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Predict the runtime of the loop kernel in KERNEL (a C file, or the name of a carried one) with the ECM model.

    \b
    Examples:
      kernmodel ecm --machine clx.yml stencil.c
      kernmodel ecm -m clx stencil.c -D N=4000 -D M=4000 --cores 1-20 --unit cy/CL
      kernmodel ecm -m clx stencil.c -D N=100-10000:20log --unit LUP/s
      kernmodel ecm -m clx matvec-transposed.c --cache sim
      kernmodel ecm -m clx stencil.c --cores 1-20 --plot scaling.svg
    """
    from kernmodel.studies.predict.ecm import predict_ecm_sweep

    target = plot_target(plot, as_json=as_json)
    points = options.points_of(defines)
    request = choices.request(kernel, machine, points[0], nest, function, safety)
    drawn: list[EcmAnswer] = []
    answers = accepted(predict_ecm_sweep(request, code, points, cores or ()), strict)
    if plot is not None:
        answers = _kept(answers, drawn)
    _print(answers, points, unit, verbose=verbose, as_json=as_json)
    if target is not None:
        from kernmodel.plot.ecm import ecm_figure

        save(target, lambda: ecm_figure(drawn, unit))
    elif plot == TERMINAL:
        from kernmodel.plot.ecm import ecm_text

        show_text("\n" + ecm_text(drawn, unit, *drawing_size()))


def _kept(answers: Iterator[EcmAnswer], kept: list[EcmAnswer]) -> Iterator[EcmAnswer]:
    """The answers as they come, kept for the picture."""
    for answer in answers:
        kept.append(answer)
        yield answer


def _print(
    answers: Iterator[EcmAnswer],
    points: tuple[Mapping[str, int], ...],
    unit: str,
    *,
    verbose: bool,
    as_json: bool,
) -> None:
    if len(points) > 1:
        answers = with_progress(answers, len(points), streamed=not as_json)
        _print_sweep_json(answers, unit) if as_json else _print_sweep(answers, points, unit)
    elif as_json:
        from kernmodel.report.json.ecm import ecm_document

        show_json(ecm_document(next(answers), unit))
    else:
        from kernmodel.report.text.ecm import ecm_report

        show(ecm_report(next(answers), unit, verbose=verbose))


def _print_sweep_json(answers: Iterator[EcmAnswer], unit: str) -> None:
    from kernmodel.report.json.ecm import ecm_sweep_document

    show_json(ecm_sweep_document(answers, unit))


def _print_sweep(answers: Iterator[EcmAnswer], points: tuple[Mapping[str, int], ...], unit: str) -> None:
    from kernmodel.report.text.ecm import sweep_columns, sweep_inputs, sweep_items

    show_sweep(
        answers,
        sweep_inputs,
        columns=lambda first: sweep_columns(first, unit, points),
        items=sweep_items,
    )
