"""`kernmodel ecm`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from kernmodel.cli import options
from kernmodel.cli.output import accepted, show, show_json, show_sweep, with_progress
from kernmodel.studies.request import CodeRequest, KernelRequest

if TYPE_CHECKING:
    from kernmodel.studies.request import EcmAnswer


@click.command()
@options.kernel_argument
@options.machine_option()
@options.kernel_options
@click.option("--cores", type=options.CoreCounts(), metavar="COUNTS", help="Core counts to scale over, such as 1-20.")
@options.time_unit_option
@click.option("--asm", metavar="FILE", type=click.Path(), help="Assembly of the kernel, in place of compiling it.")
@click.option("--compiler", metavar="C", help="Compiler to use.  [default: the machine's first that is installed]")
@click.option("--flags", type=options.Flags(), help="Compiler flags in one string.  [default: the machine's]")
@options.loop_options
@options.output_options
def ecm(
    kernel: str,
    machine: str,
    defines: tuple[str, ...],
    nest: int | None,
    function: str | None,
    safety: float,
    cores: tuple[int, ...] | None,
    unit: str,
    asm: str | None,
    compiler: str | None,
    flags: tuple[str, ...] | None,
    loop: int | None,
    lines: tuple[int, int] | None,
    syntax: options.Syntax | None,
    ports: options.Port,
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
    """
    from kernmodel.studies.predict import predict_ecm_sweep

    points = options.points_of(defines)
    request = KernelRequest(kernel, machine, points[0], nest, function, safety=safety)
    code = CodeRequest(asm, compiler, flags, syntax, loop, lines, ports)
    answers = predict_ecm_sweep(request, code, points, cores or ())
    _print(accepted(answers, strict), points, unit, verbose=verbose, as_json=as_json)


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
        from kernmodel.report.json_ecm import ecm_document

        show_json(ecm_document(next(answers), unit))
    else:
        from kernmodel.report.ecm import ecm_report

        show(ecm_report(next(answers), unit, verbose=verbose))


def _print_sweep_json(answers: Iterator[EcmAnswer], unit: str) -> None:
    from kernmodel.report.json_ecm import ecm_sweep_document

    show_json(ecm_sweep_document(answers, unit))


def _print_sweep(answers: Iterator[EcmAnswer], points: tuple[Mapping[str, int], ...], unit: str) -> None:
    from kernmodel.report.ecm import sweep_columns, sweep_inputs, sweep_rows

    show_sweep(
        answers,
        sweep_inputs,
        columns=lambda first: sweep_columns(first, unit, points),
        rows=lambda answer: sweep_rows(answer, unit),
    )
