"""`kernmodel carm`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kernmodel.cli import options
from kernmodel.cli.charts import TERMINAL, chart_options, drawing_size, inputs_of, plot_target, save
from kernmodel.cli.command import Command
from kernmodel.cli.output import show, show_json, show_text
from kernmodel.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernmodel.studies.predict.roofline import CarmAnswer


@click.command(cls=Command)
@click.argument("kernel", type=options.KERNEL, required=False)
@chart_options
def carm(kernel: str | None, machine: str, **given: Any) -> None:
    """The application-driven cache-aware roofline of one KERNEL: C source, an assembly file, or only --mix FILE.

    \b
    Examples:
      kernmodel carm -m skx-6140 iso3dfd.c
      kernmodel carm -m skx-6140 iso3dfd.c --mix measured.yml --mask-utilization 0.5
      kernmodel carm -m clx triad.c --cores 1 --plot triad.svg
    """
    given["machine"] = machine
    target = plot_target(given["plot"], as_json=given["as_json"])
    answer = _answer(kernel, given)
    options.accept_notes(answer.notes, given["strict"])
    if target is not None:
        from kernmodel.plot.roofline import carm_figure

        save(target, lambda: carm_figure(answer))
    if given["as_json"]:
        from kernmodel.report.json.roofline import carm_document

        show_json(carm_document(answer))
        return
    from kernmodel.report.text.carm import carm_report

    show(carm_report(answer, verbose=given["verbose"]))
    if given["plot"] == TERMINAL:
        from kernmodel.plot.roofline_text import carm_text

        show_text("\n" + carm_text(answer, *drawing_size()))


def _answer(kernel: str | None, given: Mapping[str, Any]) -> CarmAnswer:
    from kernmodel.studies.predict.roofline import ChartRequest, read_code, read_kernel

    inputs = inputs_of((kernel,) if kernel is not None else (), given)
    if len(inputs.points) > 1:
        raise UsageError("this command takes one value for each size", where="-D", todo="write -D N=4000")
    request = ChartRequest(given["machine"], ("adcarm",), given["cores"], given["mix_file"], given["mask_utilization"])
    if inputs.kernels:
        return read_kernel(request, inputs.kernels[0], inputs.code)
    return read_code(request, inputs.listing, inputs.code)
