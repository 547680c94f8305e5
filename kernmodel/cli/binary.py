"""`kernmodel binary`: blocks."""

from __future__ import annotations

import re
from typing import Literal

import click

from kernmodel.cli import options, types
from kernmodel.cli.command import Group
from kernmodel.cli.output import Shown, show_result
from kernmodel.errors import UsageError
from kernmodel.output_files import output_file, write_file

_RANGE = re.compile(r"(0x[0-9a-fA-F]+|\d+)-(0x[0-9a-fA-F]+|\d+)")


def _addresses(text: str) -> tuple[int, int]:
    """First address and the one behind the last.

    Raises:
        UsageError: it is no range.
    """
    match = _RANGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is no range of addresses", where="--addresses", todo="write 0x1139-0x1170")
    first, end = (int(part, 0) if part.startswith("0x") else int(part) for part in match.groups())
    if first >= end:
        raise UsageError(f"{text!r} is empty", where="--addresses", todo="give the address behind the last byte second")
    return first, end


_place = options.together(
    click.option("--function", metavar="F", help="The function's name in the binary."),
    click.option(
        "--addresses",
        type=types.Parsed("FIRST-END", _addresses),
        metavar="FIRST-END",
        help="A range of addresses, in place of a name.",
    ),
)
function_choice = options.together(
    _place, click.option("--marked", metavar="NAME", help="A region between IACA's markers; '' for the only one.")
)


def _standard_input() -> bytes:
    """What a file on standard input holds, for each run of the program; nothing of terminals and pipes, which may never
    end."""
    import os
    import stat
    import sys

    try:
        if not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode):
            return b""
    except (OSError, ValueError, AttributeError):
        return b""  # closed, or replaced by something else
    return sys.stdin.buffer.read()


@click.group(cls=Group)
def binary() -> None:
    """Functions of compiled programs: their blocks, how often these run, where the time goes.

    \b
    Example:
      kernmodel binary blocks ./a.out --function kernel
    """


@binary.command(short_help="Basic blocks, loops and source lines of a function.")
@click.argument("file", type=types.FILE)
@function_choice
@options.uarch_option
@options.strict_option
@options.json_option
def blocks(
    file: str,
    function: str | None,
    addresses: tuple[int, int] | None,
    marked: str | None,
    uarch: str | None,
    strict: bool,
    as_json: bool,
) -> None:
    """The control flow of a function of FILE, an executable, shared library or object.

    \b
    Examples:
      kernmodel binary blocks ./a.out --function kernel
      kernmodel binary blocks ./stripped --addresses 0x1139-0x1170 --json
      kernmodel binary blocks ./sve --function kernel --uarch V1@256
    """
    from kernmodel.api.binaries import binary_blocks

    result = binary_blocks(file, function, addresses=addresses, marked=marked, uarch=uarch, strict=strict)
    show_result(result, Shown.of(as_json=as_json, strict=strict))


_predictors_option = click.option(
    "--predictors",
    metavar="LIST",
    help="Of kernmodel, kernmodel-ecm, llvm-mca, osaca, uica, and files of predictions (.csv).  [default: kernmodel; "
    "with -m also kernmodel-ecm]",
)


@binary.command(short_help="Where the cycles of a function go as its program runs.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
@options.machine_option(required=False)
@options.uarch_option
@function_choice
@click.option("--library", type=types.FILE, metavar="FILE", help="The shared library that holds the function.")
@_predictors_option
@click.option(
    "--method",
    type=click.Choice(["auto", "re-encoded", "callgrind", "qemu"]),
    default="auto",
    show_default=True,
    help="How occurrences are counted.",
)
@click.option("--count-limit", type=click.FloatRange(0), metavar="S", help="Seconds that slow counting may take.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), metavar="S", help="Seconds that a run may take.")
@click.option("--no-measure", is_flag=True, help="Count and predict only.")
@options.plot_option("the function on the roofline of one core")
@click.option("--csv", "table", metavar="FILE", help="Write the blocks to FILE.")
@options.json_option
def run(
    program: tuple[str, ...],
    machine: str | None,
    uarch: str | None,
    function: str | None,
    addresses: tuple[int, int] | None,
    marked: str | None,
    library: str | None,
    predictors: str | None,
    method: Literal["auto", "re-encoded", "callgrind", "qemu"],
    count_limit: float | None,
    seconds: float | None,
    no_measure: bool,
    plot: str | None,
    table: str | None,
    as_json: bool,
) -> None:
    """Run PROGRAM, count the blocks of its function, predict and measure its time.

    \b
    Examples:
      kernmodel binary run --uarch zen3 --function kernel -- ./a.out 100
      kernmodel binary run -m zen3 --function kernel --predictors kernmodel,llvm-mca -- ./a.out
    """
    from kernmodel.api.binary_runs import CodePlace, RunOptions, binary_run
    from kernmodel.cli.output import shown_progress

    shown = Shown.of(as_json=as_json, plot=plot)
    target = None if table is None else output_file(table, "--csv")
    with shown_progress() as say:
        result = binary_run(
            program,
            function,
            machine=machine,
            uarch=uarch,
            place=CodePlace(library, addresses, marked),
            predictors=predictors,
            options=RunOptions(method, count_limit, seconds, not no_measure, _standard_input()),
            progress=say,
        )
    show_result(result, shown)
    if target is not None:
        write_file(target, result.csv())


@binary.command(short_help="How good predictors are on a suite of kernels.")
@click.argument("file", type=types.FILE)
@options.machine_option(required=False)
@options.uarch_option
@_predictors_option
@click.option("--output", required=True, type=click.Path(file_okay=False), metavar="DIR", help="Folder for results.")
@click.option("--jobs", type=types.Count(min=1), metavar="N", help="Processes.  [default: all cores]")
@options.json_option
def suite(
    file: str,
    machine: str | None,
    uarch: str | None,
    predictors: str | None,
    output: str,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Build the variants of FILE (.yml), count, predict and measure them; a run that was cut off goes on.

    \b
    Examples:
      kernmodel binary suite suite.yml --uarch zen3 --output out
      kernmodel binary suite suite.yml -m zen3 --predictors kernmodel,llvm-mca,osaca --output out
    """
    from kernmodel.api.binary_runs import binary_suite
    from kernmodel.cli.output import shown_progress

    with shown_progress() as say:
        result = binary_suite(
            file,
            output,
            machine=machine,
            uarch=uarch,
            predictors=predictors,
            jobs=jobs,
            progress=lambda what, done, total: say(f"{what}: {done} of {total}"),
        )
    show_result(result, Shown.of(as_json=as_json))


@binary.command(short_help="Footprint and cache misses of a function as its program runs.")
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
@options.machine_option()
@_place
@click.option("--library", type=types.FILE, metavar="FILE", help="The shared library that holds the function.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), metavar="S", help="Seconds that a run may take.")
@options.strict_option
@options.json_option
def residency(
    program: tuple[str, ...],
    machine: str,
    function: str | None,
    addresses: tuple[int, int] | None,
    library: str | None,
    seconds: float | None,
    strict: bool,
    as_json: bool,
) -> None:
    """Run PROGRAM and send the addresses that its function touches through the simulated caches of a machine.

    \b
    Example:
      kernmodel binary residency -m zen3 --function kernel -- ./a.out 100
    """
    from kernmodel.api.binaries import binary_residency

    result = binary_residency(
        program,
        function,
        machine=machine,
        library=library,
        addresses=addresses,
        seconds=seconds,
        standard_input=_standard_input(),
        strict=strict,
    )
    show_result(result, Shown.of(as_json=as_json, strict=strict))
