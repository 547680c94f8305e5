"""`kernmodel measure`: kernels, bandwidths, blocks of code, instructions and peaks on this host."""

from __future__ import annotations

from typing import Any, Literal

import click

from kernmodel.api.options import CodeOptions
from kernmodel.cli import options, types
from kernmodel.cli.command import Group
from kernmodel.cli.instructions import rows_file
from kernmodel.cli.output import Shown, show_result, shown_progress
from kernmodel.errors import UsageError
from kernmodel.machine.pages import Pages
from kernmodel.output_files import write_file

_LINE_BYTES = 64


@click.group(cls=Group)
def measure() -> None:
    """Measure on this host: kernels, bandwidths, blocks of code, instructions, peaks.

    \b
    Examples:
      kernmodel measure block --hex 4801d8
      kernmodel measure peaks
    """


@measure.command(short_help="Cycles per pass of a block of machine code.")
@click.option("--hex", "digits", required=True, metavar="DIGITS", help="The code in hex digits.")
@click.option("--notion", type=click.Choice(["loop", "unrolled"]), help="How passes follow.  [default: by its end]")
@click.option(
    "--align",
    type=click.IntRange(0, _LINE_BYTES - 1),
    default=0,
    metavar="N",
    help="Address of the block modulo 64.  [default: 0]",
)
@options.json_option
def block(digits: str, notion: Literal["loop", "unrolled"] | None, align: int, as_json: bool) -> None:
    """Execute x86-64 code on this host and tell the core's cycles per pass, its data in L1.

    Registers and memory are set up so that it runs; code that asks for the system is refused.

    \b
    Examples:
      kernmodel measure block --hex 4801d8
      kernmodel measure block --hex 4883c00148ffc975f7 --align 44
    """
    from kernmodel.api.measuring import measure_block

    show_result(measure_block(digits, notion=notion, align=align), Shown.of(as_json=as_json))


@measure.command(short_help="Floating-point peaks of one core.")
@options.json_option
def peaks(as_json: bool) -> None:
    """FLOP per cycle of one core of this host, by operation, precision and width of the register.

    \b
    Example:
      kernmodel measure peaks
    """
    from kernmodel.api.measuring import measure_peaks

    with shown_progress() as progress:
        result = measure_peaks(progress=progress)
    show_result(result, Shown.of(as_json=as_json))


@measure.command(short_help="Throughput and latencies of instruction forms.")
@click.argument("forms", nargs=-1, metavar="[FORM]...")
@click.option("--unknown", type=types.FILE, metavar="FILE", help="Also all forms of a listing that the table lacks.")
@click.option("--hex", "digits", metavar="DIGITS", help="The same of code in hex digits.")
@options.machine_option(required=False)
@options.uarch_option
@click.option("--ports", is_flag=True, help="Also what it costs beside forms whose ports are known.")
@click.option("-o", "--output", metavar="ROWS.txt", help="File of rows to write or to add to, for --instructions.")
@options.json_option
def instruction(
    forms: tuple[str, ...],
    unknown: str | None,
    digits: str | None,
    machine: str | None,
    uarch: str | None,
    ports: bool,
    output: str | None,
    as_json: bool,
) -> None:
    """Reciprocal throughput and latencies of the instruction FORMs, as tables name them, on this host; or of all forms
    that code has and the table of a core (-m, --uarch) lacks.

    With -o what is confirmed becomes rows, which `--instructions ROWS.txt` and machine files put before the table's.

    \b
    Examples:
      kernmodel measure instruction "vaddpd ymm,ymm,ymm"
      kernmodel measure instruction --unknown loop.s --uarch ZEN3 -o rows.txt
    """
    from kernmodel.api import measuring as api
    from kernmodel.code.blocks import parse_hex

    code = unknown if digits is None else parse_hex(digits, "--hex")
    if len(forms) == 1 and code is None and output is None:
        show_result(api.measure_instruction(forms[0], ports=ports), Shown.of(as_json=as_json))
        return
    if not forms and code is None:
        raise UsageError("there is nothing to measure", todo='give a FORM such as "add r64,r64", or --unknown FILE')
    target = None if output is None else rows_file(output, machine, uarch)
    with shown_progress() as progress:
        result = api.measure_instructions(forms, code, machine=machine, uarch=uarch, ports=ports, progress=progress)
    show_result(result, Shown.of(as_json=as_json))
    if target is not None:
        write_file(target, result.rows(target))


@measure.command(short_help="Bandwidths of one core by level and stream mix.")
@click.option("--level", "levels", multiple=True, metavar="LEVEL", help="L1 to Mem.  [default: all]")
@click.option("--mix", "mixes", multiple=True, metavar="MIX", help="load, store, copy, …  [default: all]")
@click.option(
    "--width",
    "widths",
    multiple=True,
    type=click.Choice(["8", "16", "32", "64"]),
    help="Bytes of an access; 8: scalar.",
)
@options.pages_option
@options.json_option
def bandwidth(
    levels: tuple[str, ...],
    mixes: tuple[str, ...],
    widths: tuple[str, ...],
    pages: Pages,
    as_json: bool,
) -> None:
    """Bandwidths of one core of this host, by level of the data and stream mix.

    \b
    Example:
      kernmodel measure bandwidth --level L1 --mix load --mix copy
    """
    from kernmodel.api.measuring import measure_bandwidth

    sizes = tuple(map(int, widths))
    with shown_progress() as progress:
        result = measure_bandwidth(levels=levels, mixes=mixes, widths=sizes, pages=pages, progress=progress)
    show_result(result, Shown.of(as_json=as_json))


@measure.command(short_help="Run a loop kernel.")
@options.kernel_argument
@options.machine_option(required=False)
@options.defines_option
@options.choice_options
@click.option("--level", metavar="LEVEL", help="Where the data are to lie, L1 to Mem or all: sizes are scaled to it.")
@options.asm_option
@options.compiler_option
@options.flags_option
@options.array_options
@options.loop_align_option
@options.pages_option
@options.json_option
@options.gathered(shown=Shown.of, asked=options.asked, code=CodeOptions)
def kernel(
    asked: dict[str, Any],
    code: CodeOptions,
    level: str | None,
    pages: Pages,
    shown: Shown,
) -> None:
    """Run the loop kernel in KERNEL (a C file, or the name of a carried one) on this host, the loop that `ecm` takes.

    \b
    Examples:
      kernmodel measure kernel stencil.c -D N=1000 -D M=1000
      kernmodel measure kernel triad.c --level all --pages 4k
    """
    from kernmodel.api.measuring import measure_kernel

    with shown_progress() as progress:
        result = measure_kernel(**asked, level=level, code=code, pages=pages, progress=progress)
        show_result(result, shown)
