"""Caches under a trace of accesses."""

from __future__ import annotations

from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from kernmodel.api.result import Result, Views
from kernmodel.cachesim.run import TraceOptions
from kernmodel.errors import UsageError
from kernmodel.user_files import File

if TYPE_CHECKING:
    from kernmodel.cachesim.run import CheckedCase, Given, Simulation

AS_STATED = TraceOptions()


def simulate(
    trace: File,
    caches: File | None = None,
    *,
    machine: File | None = None,
    cores: int | None = None,
    case: str | None = None,
    options: TraceOptions = AS_STATED,
) -> Result[Simulation]:
    """Caches under a trace of accesses, exactly, as `kernmodel simulate`.

    >>> km.simulate("trace.txt", machine="clx").answer.counters

    Args:
        trace: a line `L|S|N address size` for each access, "-" for standard input; or a file of cases.
        caches: a hierarchy (YAML or JSON); machine: a machine in its place, cores: active ones that share its caches.
            A file of cases may bring its own caches.
        case: which case of a file of cases.
        options: replacement, seed, repetitions and engine; what is not given is as the caches or the case say.

    Raises:
        KernmodelError: the input is at fault.
    """
    from kernmodel.cachesim.cases import find_case, is_cases_file, read_cases, simulate_case
    from kernmodel.cachesim.run import simulate_trace

    given = _caches(caches, machine, cores)
    accesses = fspath(trace)
    if given is None or is_cases_file(Path(accesses)):
        found = find_case(read_cases(Path(accesses)), case, accesses)
        return Result([simulate_case(found, accesses, options, given)], _SIMULATION)
    if case is not None:
        raise UsageError(f"{accesses} is a trace, which has no cases", where="--case", todo="leave out --case")
    return Result([simulate_trace(given, accesses, options)], _SIMULATION)


def simulate_cases(file: File, *, options: TraceOptions = AS_STATED) -> Result[CheckedCase]:
    """Hold the simulation to cases that state their counters, as `kernmodel simulate --cases`.

    >>> [one.case for one in km.simulate_cases("cases.json") if one.differences]

    Args:
        file: of cases; options: engine and skipping, since a case has the rest.

    Raises:
        KernmodelError: a case cannot be read, has no caches, or states nothing.
    """
    from kernmodel.cachesim.cases import check_cases, read_cases

    path = fspath(file)
    checked = check_cases(read_cases(Path(path)), path, options)
    return Result(checked, _CHECK, {"file": path}, total=0)


def _caches(caches: File | None, machine: File | None, cores: int | None) -> Given | None:
    """The caches that are given, None: a file of cases has its own.

    Raises:
        UsageError: cores without a machine; KernmodelError: a file is at fault.
    """
    from kernmodel.cachesim.run import Given

    if machine is not None:
        from kernmodel.machine.load import load_machine as load
        from kernmodel.traffic.simulation.hierarchy import hierarchy_of

        found = load(fspath(machine))
        return Given(hierarchy_of(found, cores or 1), found.file)
    if cores is not None:
        raise UsageError("shares the caches of a machine", where="--cores", todo="give one with -m")
    if caches is None:
        return None
    from kernmodel.cachesim.hierarchy_file import read_hierarchy

    return Given(read_hierarchy(Path(caches)), fspath(caches))


_SIMULATION = Views("simulation:simulation_report", "traffic:simulation_document")
_CHECK = Views("simulation:check_report", "traffic:simulation_check_document", together=True)
