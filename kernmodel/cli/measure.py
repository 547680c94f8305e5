"""`kernmodel measure`: block, peaks, instruction."""

from __future__ import annotations

import sys
from typing import Literal

import click

from kernmodel.cli import options
from kernmodel.cli.command import Group
from kernmodel.cli.output import Shown, show_result

_LINE_BYTES = 64


@click.group(cls=Group)
def measure() -> None:
    """Measure on this host: blocks of code, instructions, floating-point peaks.

    \b
    Examples:
      kernmodel measure block --hex 4801d8
      kernmodel measure peaks
    """


def show_progress(what: str) -> None:
    """Say on a terminal what is measured next; nothing elsewhere."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{what}" if what else "\r\x1b[K")
        sys.stderr.flush()


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

    result = measure_peaks(progress=show_progress)
    show_progress("")
    show_result(result, Shown.of(as_json=as_json))


@measure.command(short_help="Throughput and latencies of an instruction form.")
@click.argument("form")
@click.option("--ports", is_flag=True, help="Also what it costs beside forms whose ports are known.")
@options.json_option
def instruction(form: str, ports: bool, as_json: bool) -> None:
    """Reciprocal throughput and latencies of the instruction FORM, as tables name it, on this host.

    \b
    Example:
      kernmodel measure instruction "vaddpd ymm,ymm,ymm"
    """
    from kernmodel.api.measuring import measure_instruction

    show_result(measure_instruction(form, ports=ports), Shown.of(as_json=as_json))
