"""`kernmodel compare`."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from kernmodel.cli import options
from kernmodel.cli.charts import TERMINAL, drawing_size, plot_option, plot_target, save
from kernmodel.cli.command import Command
from kernmodel.cli.output import show, show_json, show_text
from kernmodel.errors import UsageError
from kernmodel.studies.predict.request import CodeRequest
from kernmodel.units import TIME_UNITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernmodel.studies.compare import CompareAnswer
    from kernmodel.studies.predict.request import KernelRequest

_ALONE = 4
"""Predictions that one process makes sooner than several can start."""


@click.command(cls=Command)
@click.argument("kernels", type=options.KERNEL, nargs=-1, required=True, metavar="KERNEL...")
@click.option(
    "-m",
    "--machine",
    "--machines",
    "machines",
    type=options.MACHINE,
    multiple=True,
    required=True,
    help="Machine file, or the name of a carried one (see `machine list`), for each machine; all: every carried one.",
)
@options.kernel_options
@options.cache_options("auto", "lc", "sim")
@click.option(
    "--unit",
    type=options.Unit(TIME_UNITS),
    help=f"Unit of the performance: {', '.join(TIME_UNITS)}.  [default: LUP/s, FLOP/s or It/s, as a kernel has them]",
)
@click.option("--compiler", metavar="C", help="Compiler to use.  [default: each machine's first that is installed]")
@click.option("--flags", type=options.Flags(), help="Compiler flags in one string.  [default: each machine's own]")
@options.iterations_option
@options.ports_option
@options.classic_option
@plot_option("times and performance by machine")
@options.output_options
def compare(
    kernels: tuple[str, ...],
    machines: tuple[str, ...],
    defines: tuple[str, ...],
    nest: int | None,
    function: str | None,
    safety: float,
    choices: options.CacheChoices,
    unit: str | None,
    compiler: str | None,
    flags: tuple[str, ...] | None,
    iterations_per_pass: float | None,
    ports: options.Port,
    classic: bool,
    plot: str | None,
    verbose: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Predict each KERNEL on several machines: what limits on each, and why.

    \b
    Examples:
      kernmodel compare -m snb -m hsw -m clx -m zen2 stencil.c
      kernmodel compare -m all stencil.c triad.c --plot compare.svg
      kernmodel compare -m clx -m my-machine.yml 3d-7pt.c -D N=400 --unit FLOP/s --json
    """
    target = plot_target(plot, as_json=as_json)
    of_one = {"--nest": nest, "--function": function, "--iterations-per-pass": iterations_per_pass}
    option = next((name for name, value in of_one.items() if value is not None), None)
    if len(kernels) > 1 and option is not None:
        raise UsageError("does not fit: several kernels are given", where=option, todo="leave it out")
    sizes = options.one_point_of(defines)
    requests = [
        choices.request(kernel, machines[0], sizes, nest, function, safety) for kernel in dict.fromkeys(kernels)
    ]
    code = CodeRequest(
        compiler=compiler,
        flags=flags,
        port_model=ports,
        classic=classic,
        iterations_per_pass=iterations_per_pass,
    )
    answer = _answer(requests, machines, code)
    options.accept_notes(answer.notes, strict)
    _print(answer, unit, plot, verbose=verbose, as_json=as_json)
    if target is not None:
        from kernmodel.plot.compare import compare_figure

        save(target, lambda: compare_figure(answer, unit))


def _answer(kernels: Sequence[KernelRequest], machines: tuple[str, ...], code: CodeRequest) -> CompareAnswer:
    from kernmodel.studies.compare import ALL
    from kernmodel.studies.compare import compare as study
    from kernmodel.studies.sweep.executors import local_processes

    few = ALL not in machines and len(kernels) * len(machines) <= _ALONE
    with nullcontext() if few else local_processes() as executor:
        return study(kernels, machines, code, executor=executor)


def _print(answer: CompareAnswer, unit: str | None, plot: str | None, *, verbose: bool, as_json: bool) -> None:
    if as_json:
        from kernmodel.report.json.ecm import compare_document

        show_json(compare_document(answer))
        return
    from kernmodel.report.text.compare import compare_report

    show(compare_report(answer, unit, verbose=verbose))
    if plot == TERMINAL:
        from kernmodel.plot.compare import compare_text

        show_text("\n" + compare_text(answer, unit, *drawing_size()))
