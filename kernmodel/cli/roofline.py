"""`kernmodel roofline`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kernmodel.cli import options
from kernmodel.cli.charts import TERMINAL, chart_options, drawing_size, inputs_of, plot_target, save
from kernmodel.cli.command import Command
from kernmodel.cli.output import show, show_json, show_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kernmodel.studies.predict.roofline import RooflineAnswer

ALL = "all"
_MODELS = ("orm", "hierarchical", "carm", "irm", "adcarm")


@click.command(cls=Command)
@click.argument("kernels", type=options.KERNEL, nargs=-1, metavar="KERNEL...")
@click.option(
    "--model",
    type=click.Choice([*_MODELS, ALL]),
    default="hierarchical",
    show_default=True,
    help="Original, hierarchical, cache-aware, integrated, application-driven, or all of them.",
)
@chart_options
def roofline(kernels: tuple[str, ...], machine: str, model: str, **given: Any) -> None:
    """Arithmetic intensity, roofs, bound and what limits of each KERNEL: C kernels, or one assembly file.

    \b
    Examples:
      kernmodel roofline -m skx-6140 stencil.c
      kernmodel roofline -m skx-6140 stencil.c --model adcarm --plot roofline.svg
      kernmodel roofline -m clx stencil.c triad.c 3d-7pt.c -D N=1000 --cores 18 --plot all.png
      kernmodel roofline -m clx triad.c --plot -
    """
    given["machine"] = machine
    target = plot_target(given["plot"], as_json=given["as_json"])
    answer = _answer(kernels, model, given)
    options.accept_notes(answer.notes, given["strict"])
    if target is not None:
        _draw(answer, target)
    if given["as_json"]:
        from kernmodel.report.json.roofline import roofline_document

        show_json(roofline_document(answer))
        return
    from kernmodel.report.text.roofline import roofline_report

    show(roofline_report(answer, verbose=given["verbose"]))
    if given["plot"] == TERMINAL:
        from kernmodel.plot.roofline_text import roofline_text

        show_text("\n" + roofline_text(answer, *drawing_size()))


def _answer(files: tuple[str, ...], model: str, given: Mapping[str, Any]) -> RooflineAnswer:
    from kernmodel.studies.predict.roofline import MODELS, ChartRequest, chart_code, chart_kernels

    inputs = inputs_of(files, given)
    models = MODELS if model == ALL else tuple(name for name in MODELS if name == model)
    request = ChartRequest(given["machine"], models, given["cores"], given["mix_file"], given["mask_utilization"])
    if inputs.kernels:
        return chart_kernels(request, inputs.kernels, inputs.code, inputs.points)
    return chart_code(request, inputs.listing, inputs.code)


def _draw(answer: RooflineAnswer, target: Path) -> None:
    from kernmodel.plot.roofline import roofline_figure

    save(target, lambda: roofline_figure(answer))
