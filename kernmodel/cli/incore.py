"""`kernmodel incore`."""

from __future__ import annotations

from pathlib import Path

import click

from kernmodel.cli import options
from kernmodel.cli.output import show, show_json
from kernmodel.errors import UsageError
from kernmodel.studies.request import CodeRequest


@click.command()
@click.argument("file", type=click.Path(allow_dash=True))
@options.machine_option(required=False)
@options.uarch_option
@options.loop_options
@options.output_options
def incore(
    file: str,
    machine: str | None,
    uarch: str | None,
    loop: int | None,
    lines: tuple[int, int] | None,
    syntax: options.Syntax | None,
    ports: options.Port,
    verbose: bool,
    strict: bool,
    as_json: bool,
) -> None:
    """Throughput, critical path and loop-carried dependencies of the loop in FILE: assembly, an object file, or -.

    \b
    Examples:
      kernmodel incore -m clx triad.s
      gcc -O2 -S -o - triad.c | kernmodel incore --uarch SKL --ports even -
    """
    from kernmodel.studies.predict import analyse_code

    if (machine is None) == (uarch is None):
        raise UsageError("give either a machine or a microarchitecture", todo="write -m clx or --uarch CLX")
    if Path(file).suffix.lower() == ".c":
        todo = f"use kernmodel ecm -v {file}, or compile it with -S first"
        raise UsageError("is C source, not assembly", where=file, todo=todo)
    code = CodeRequest(syntax=syntax, loop=loop, lines=lines, port_model=ports)
    answer = analyse_code(code, file=file, machine=machine, microarchitecture=uarch)
    options.accept_notes(answer.notes, strict)
    if as_json:
        from kernmodel.report.json_incore import incore_document

        show_json(incore_document(answer))
    else:
        from kernmodel.report.incore import incore_report

        show(incore_report(answer, verbose=verbose))
