"""`kernmodel simulate`."""

from __future__ import annotations

from typing import Any

import click

from kernmodel.api.caches import simulate as simulated
from kernmodel.api.caches import simulate_cases
from kernmodel.cachesim.model import POLICIES
from kernmodel.cachesim.run import MOST_PHASES, TraceOptions
from kernmodel.cli import options, types
from kernmodel.cli.command import Command
from kernmodel.cli.output import Shown, print_line, show_json, show_result
from kernmodel.errors import UsageError

_USAGE = "write kernmodel simulate HIERARCHY TRACE, or kernmodel simulate --cases FILE"


@click.command(cls=Command)
@click.argument("files", nargs=-1, type=click.Path(allow_dash=True), metavar="[HIERARCHY] [TRACE]")
@click.option("--cases", type=click.Path(), metavar="FILE", help="Check that the cases of FILE count what they state.")
@click.option("--case", "case_id", metavar="ID", help="Run this case of a cases file and print its counters.")
@options.machine_option(required=False)
@click.option("--cores", type=types.Count(min=1), metavar="N", help="Active cores that share the machine's caches.")
@click.option("--policy", type=click.Choice(POLICIES, case_sensitive=False), help="Replacement in all caches.")
@click.option("--seed", type=types.Count(min=0), metavar="N", help="Seed of random replacement.")
@click.option(
    "--repeat",
    type=types.Count(1, MOST_PHASES),
    metavar="N",
    help="Phases: the accesses N times, counted anew each time; the caches keep their lines.",
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "compiled", "python"]),
    default="auto",
    show_default=True,
    help="Compiled code, or plain Python with the same answers.",
)
@click.option("--skip/--no-skip", default=True, help="Skip touches that change nothing but hits of the first cache.")
@options.json_option
@options.gathered(shown=Shown.of, chosen=TraceOptions)
@click.pass_context
def simulate(ctx: click.Context, /, files: tuple[str, ...], chosen: TraceOptions, shown: Shown, **given: Any) -> None:
    """Simulate the caches of HIERARCHY (YAML or JSON) under the accesses of TRACE, exactly.

    TRACE has a line `L|S|N address size` for each load, store or streaming store; - is standard input. A cases file in
    its place gives accesses by formula.

    \b
    Examples:
      kernmodel simulate --cases cases.json
      kernmodel simulate caches.yml trace.txt --policy FIFO
    """
    cases, machine, cores, case = given["cases"], given["machine"], given["cores"], given["case_id"]
    caches: str | None = None
    if cases is not None:
        if files or machine is not None or cores is not None:
            raise UsageError("takes the caches from its file", where="--cases", todo=_USAGE)
        if case is None:
            ctx.exit(_check(cases, chosen, as_json=shown.as_json))
        accesses = cases
    elif machine is not None:
        if len(files) != 1:
            raise UsageError(f"takes one file, not {len(files)}", where="-m", todo="give the trace or cases file")
        (accesses,) = files
    else:
        if cores is None and len(files) != 2:
            what = "needs the caches and the accesses" if len(files) < 2 else "takes two files"
            raise UsageError(what, todo=f"{_USAGE}, or -m MACHINE in place of HIERARCHY")
        caches, accesses = files[0] if files else None, files[-1] if files else ""
    result = simulated(accesses, caches, machine=machine, cores=cores, case=case, options=chosen)
    show_result(result, shown)
    ctx.exit(1 if result.answer.differences else 0)


def _check(file: str, chosen: TraceOptions, *, as_json: bool) -> int:
    """Run all cases and print what differs, case by case; the exit status."""
    if (chosen.policy, chosen.seed, chosen.repeat) != (None, None, None):
        todo = "leave out --policy, --seed and --repeat, or choose one case with --case"
        raise UsageError("a check takes everything from its file", where="--cases", todo=todo)
    result = simulate_cases(file, options=chosen)
    if as_json:
        show_json(result.json())
    else:
        from kernmodel.report.text.simulation import check_lines, check_summary

        for checked in result:
            print_line("\n".join(check_lines(checked)))
        print_line(check_summary(result))
    return 1 if any(checked.differences for checked in result) else 0
