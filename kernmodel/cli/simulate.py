"""`kernmodel simulate`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernmodel.cachesim.model import POLICIES
from kernmodel.cachesim.run import MOST_PHASES, Given, RunOptions
from kernmodel.cli import options
from kernmodel.cli.command import Command
from kernmodel.cli.output import print_line, show, show_json
from kernmodel.errors import UsageError

if TYPE_CHECKING:
    from kernmodel.cachesim.engine import Engine
    from kernmodel.cachesim.model import Policy
    from kernmodel.cachesim.run import Simulation

_USAGE = "write kernmodel simulate HIERARCHY TRACE, or kernmodel simulate --cases FILE"


@click.command(cls=Command)
@click.argument("files", nargs=-1, type=click.Path(allow_dash=True), metavar="[HIERARCHY] [TRACE]")
@click.option("--cases", type=click.Path(), metavar="FILE", help="Check that the cases of FILE count what they state.")
@click.option("--case", "case_id", metavar="ID", help="Run this case of a cases file and print its counters.")
@options.machine_option(required=False)
@click.option("--cores", type=options.Count(min=1), metavar="N", help="Active cores that share the machine's caches.")
@click.option("--policy", type=click.Choice(POLICIES, case_sensitive=False), help="Replacement in all caches.")
@click.option("--seed", type=options.Count(min=0), metavar="N", help="Seed of random replacement.")
@click.option(
    "--repeat",
    type=options.Count(1, MOST_PHASES),
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
@click.pass_context
def simulate(
    ctx: click.Context,
    files: tuple[str, ...],
    cases: str | None,
    case_id: str | None,
    machine: str | None,
    cores: int | None,
    policy: Policy | None,
    seed: int | None,
    repeat: int | None,
    engine: Engine,
    skip: bool,
    as_json: bool,
) -> None:
    """Simulate the caches of HIERARCHY (YAML or JSON) under the accesses of TRACE, exactly.

    TRACE has a line `L|S|N address size` for each load, store or streaming store; - is standard input. A cases file in
    its place gives accesses by formula.

    \b
    Examples:
      kernmodel simulate --cases cases.json
      kernmodel simulate caches.yml trace.txt --policy FIFO
    """
    chosen = RunOptions(policy, seed, repeat, engine, skip)
    if cases is not None:
        if files or machine is not None or cores is not None:
            raise UsageError("takes the caches from its file", where="--cases", todo=_USAGE)
        if case_id is None:
            ctx.exit(_check(cases, chosen, as_json=as_json))
        simulation = _case(cases, case_id, chosen, None)
    else:
        given, accesses = _given(files, machine, cores)
        simulation = _simulated(given, accesses, case_id, chosen)
    _print(simulation, as_json=as_json)
    ctx.exit(1 if simulation.differences else 0)


def _given(files: tuple[str, ...], machine: str | None, cores: int | None) -> tuple[Given, str]:
    """The caches, and the file of the accesses."""
    from kernmodel.cachesim.hierarchy_file import read_hierarchy

    if machine is not None:
        if len(files) != 1:
            raise UsageError(f"takes one file, not {len(files)}", where="-m", todo="give the trace or cases file")
        return _of_machine(machine, cores), files[0]
    if cores is not None:
        raise UsageError("shares the caches of a machine", where="--cores", todo="give one with -m")
    if len(files) != 2:
        what = "needs the caches and the accesses" if len(files) < 2 else "takes two files"
        raise UsageError(what, todo=f"{_USAGE}, or -m MACHINE in place of HIERARCHY")
    return Given(read_hierarchy(Path(files[0])), files[0]), files[1]


def _of_machine(machine: str, cores: int | None) -> Given:
    from kernmodel.machine.load import load_machine
    from kernmodel.traffic.simulation.hierarchy import hierarchy_of

    found = load_machine(machine)
    return Given(hierarchy_of(found, cores or 1), found.file)


def _simulated(given: Given, accesses: str, case_id: str | None, chosen: RunOptions) -> Simulation:
    """The trace, or the case of a cases file, on these caches."""
    from kernmodel.cachesim.cases import is_cases_file
    from kernmodel.cachesim.run import simulate_trace

    if is_cases_file(Path(accesses)):
        return _case(accesses, case_id, chosen, given)
    if case_id is not None:
        raise UsageError(f"{accesses} is a trace, which has no cases", where="--case", todo="leave out --case")
    return simulate_trace(given, accesses, chosen)


def _case(file: str, case_id: str | None, chosen: RunOptions, given: Given | None) -> Simulation:
    from kernmodel.cachesim.cases import find_case, read_cases, simulate_case

    return simulate_case(find_case(read_cases(Path(file)), case_id, file), file, chosen, given)


def _check(file: str, chosen: RunOptions, *, as_json: bool) -> int:
    """Run all cases and print what differs, case by case; the exit status."""
    if (chosen.policy, chosen.seed, chosen.repeat) != (None, None, None):
        todo = "leave out --policy, --seed and --repeat, or choose one case with --case"
        raise UsageError("a check takes everything from its file", where="--cases", todo=todo)
    from kernmodel.cachesim.cases import check_cases, read_cases

    checked = check_cases(read_cases(Path(file)), file, chosen)
    if as_json:
        from kernmodel.report.json.traffic import simulation_check_document

        results = dict(checked)
        show_json(simulation_check_document(file, results))
    else:
        from kernmodel.report.text.simulation import check_lines, check_summary

        results = {}
        for case, differences in checked:
            results[case] = differences
            print_line("\n".join(check_lines(case, differences)))
        print_line(check_summary(results))
    return 1 if any(results.values()) else 0


def _print(simulation: Simulation, *, as_json: bool) -> None:
    if as_json:
        from kernmodel.report.json.traffic import simulation_document

        show_json(simulation_document(simulation))
    else:
        from kernmodel.report.text.simulation import simulation_report

        show(simulation_report(simulation))
