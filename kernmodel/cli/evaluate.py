"""`kernmodel evaluate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from kernmodel.cli import options, types
from kernmodel.cli.command import Group
from kernmodel.cli.output import Shown, show_picture, show_result, with_progress
from kernmodel.errors import InputError

if TYPE_CHECKING:
    from kernmodel.evaluate.model import Distinct
    from kernmodel.isa.model import Notion

_NOTIONS = ("loop", "unrolled")


@click.group(cls=Group)
def evaluate() -> None:
    """How good the predictions are: against measurements, and beside other models.

    \b
    Example:
      kernmodel evaluate blocks bhive.csv
      kernmodel evaluate kernels measured.csv
    """


@evaluate.command()
@click.argument("file", type=click.Path(allow_dash=True))
@options.uarch_option
@click.option("--notion", type=click.Choice(_NOTIONS), help="Only blocks repeated so.  [default: all]")
@click.option("--column", metavar="NAME", help="What to compare with.  [default: measured, else uica]")
@click.option("--sane", is_flag=True, help="Leave out blocks that the file itself doubts.")
@click.option(
    "--distinct",
    type=types.OptionalChoice("place", "code"),
    is_flag=False,
    flag_value="place",
    metavar="[code]",
    help="Of blocks with the same code at the same address modulo 64 (code: at any), count only the first.",
)
@click.option("--worst", type=types.Count(min=0), default=5, show_default=True, metavar="N", help="Blocks to show.")
@click.option(
    "--operands",
    type=click.Choice(["full", "easy"]),
    help="Operands of divisions.  [default: full against measurements, easy against models]",
)
@click.option(
    "--memory",
    type=click.Choice(["moving", "different", "stack"]),
    help="Which loads read what the block stored.  [default: as the reference takes it]",
)
@click.option("--jobs", type=types.Count(min=1), metavar="N", help="Processes.  [default: all cores]")
@options.json_option
def blocks(
    file: str,
    uarch: str | None,
    notion: Notion | None,
    column: str | None,
    sane: bool,
    distinct: Distinct | None,
    worst: int,
    operands: Literal["full", "easy"] | None,
    memory: Literal["moving", "different", "stack"] | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Predict the blocks of FILE (CSV, plain or gzip) and compare with what the file says about them.

    \b
    Examples:
      kernmodel evaluate blocks bhive.csv --worst 10
      kernmodel evaluate blocks measured.csv.gz --uarch RWC --distinct
    """
    from kernmodel.api.evaluation import BlockChoice, evaluate_blocks

    answer = evaluate_blocks(
        file,
        choice=BlockChoice(uarch, notion, sane, distinct),
        column=column,
        worst=worst,
        operands=operands,
        memory=memory,
        jobs=jobs,
        progress=lambda results, total: with_progress(results, total, streamed=False),
    )
    show_result(answer, Shown.of(as_json=as_json))
    if not answer.answer.groups:
        raise InputError("no block has an answer", where=file, todo="see why they are left out")


@evaluate.command()
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--kernel", metavar="TEXT", help="Only kernels whose names contain this.")
@click.option("--machine", metavar="TEXT", help="Only machines whose names contain this.")
@click.option("--sample", type=types.Count(min=2), metavar="N", help="At most N points of each series.")
@click.option(
    "--cache",
    type=click.Choice(["auto", "lc", "sim"]),
    default="auto",
    show_default=True,
    help="How the traffic is found, as of `ecm`.",
)
@click.option("--classic", is_flag=True, help="Predict as the textbook does.")
@click.option("--worst", type=types.Count(min=0), default=5, show_default=True, metavar="N", help="Series to show.")
@click.option("--jobs", type=types.Count(min=1), metavar="N", help="Processes.  [default: all cores]")
@options.plot_file_option("ECM terms and measurements over the size")
@options.json_option
def kernels(
    file: str,
    kernel: str | None,
    machine: str | None,
    sample: int | None,
    cache: Literal["auto", "lc", "sim"],
    classic: bool,
    worst: int,
    jobs: int | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Predict the measured kernels of FILE (CSV, plain or gzip) by ECM and compare.

    \b
    Examples:
      kernmodel evaluate kernels measured.csv --worst 10
      kernmodel evaluate kernels measured.csv --kernel star --machine hsw --plot star.svg
    """
    from kernmodel.api.evaluation import evaluate_kernels

    shown = Shown.of(as_json=as_json, plot=plot)
    result = evaluate_kernels(
        file,
        kernel=kernel or "",
        machine=machine or "",
        sample=sample,
        cache=cache,
        classic=classic,
        worst=worst,
        jobs=jobs,
        progress=lambda series, total: with_progress(series, total, streamed=False),
    )
    show_result(result, shown, picture=False)
    if not result.answer.groups:
        raise InputError("no kernel has a prediction", where=file, todo="see why they are refused")
    show_picture(result, shown)
