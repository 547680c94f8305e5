"""Functions of programs that run: where their time goes, and how good predictors are on suites of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kernmodel.api.result import Result, Views
from kernmodel.errors import InputError, ToolError, UsageError
from kernmodel.user_files import File
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.binary.answer import BinaryRun
    from kernmodel.binary.program import Function
    from kernmodel.binary.runs import Command
    from kernmodel.binary.suite.model import SuiteAnswer
    from kernmodel.binary.timing import FunctionTime
    from kernmodel.machine.model import Machine


@dataclass(frozen=True, slots=True)
class CodePlace:
    """Where a function is, beside its name, as the options of `kernmodel binary run` with these names.

    Attributes:
        library: the shared library that holds it, where the program does not.
        addresses: of the first byte and the one behind the last, in place of a name.
        marked: a region between IACA's markers by its name, "" for the only one.
    """

    library: File | None = None
    addresses: tuple[int, int] | None = None
    marked: str | None = None


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a program is run, as the options of `kernmodel binary run` with these names.

    Attributes:
        method: of counting; count_limit: seconds that a slow way of it may take by its estimate.
        seconds: that one run of the program may take.
        measure: whether to measure the function on this host.
        standard_input: what the program reads.
    """

    method: Literal["auto", "re-encoded", "callgrind", "qemu"] = "auto"
    count_limit: float | None = None
    seconds: float | None = None
    measure: bool = True
    standard_input: bytes = b""


ANYWHERE = CodePlace()
AS_IT_IS = RunOptions()


class FunctionRun(Result["BinaryRun"]):
    """The answer of `binary_run`; `csv` makes a table of its blocks."""

    def __init__(self, answer: BinaryRun) -> None:
        views = Views(
            "binary_run:binary_run_report",
            "binary_lifting:binary_run_document",
            picture="binary_run:function_figure",
            drawing="binary_run:function_drawing",
        )
        super().__init__([answer], views)

    def csv(self) -> str:
        """A row for each block that ran of each prediction, as `--csv` writes them (docs/binaries.md)."""
        from kernmodel.binary.tables import blocks_csv

        return blocks_csv(self.answer)


def binary_run(
    command: Sequence[str],
    function: str | None = None,
    *,
    machine: File | None = None,
    uarch: str | None = None,
    place: CodePlace = ANYWHERE,
    predictors: str | None = None,
    options: RunOptions = AS_IT_IS,
    progress: Callable[[str], object] = lambda what: None,
) -> FunctionRun:
    """Where the cycles of a function go as its program runs, as `kernmodel binary run`.

    >>> km.binary_run(["./a.out"], "kernel", uarch="ZEN3").answer.best.cycles

    Args:
        command: the program and its arguments.
        function: its name; place: where it is, beside that.
        machine, uarch: the machine file, or the microarchitecture, that is predicted for.
        predictors: names separated by commas: kernmodel, kernmodel-ecm (asks for a machine), llvm-mca, osaca, uica,
            files of predictions (.csv); None: those of this house that what is given allows.
        options: how the program is run.
        progress: is told what is being done.

    Raises:
        InputError: no such file or function; code that the core does not execute; the program fails, is not
            deterministic, or never runs the function.
        UsageError: neither machine nor microarchitecture, or both.
        ToolError: a predictor or way of counting that was asked for is not there.
    """
    from kernmodel.binary.answer import BinaryRun, predicted
    from kernmodel.binary.counting import count_occurrences
    from kernmodel.binary.find import find_function
    from kernmodel.binary.predictors.choose import predictor_named
    from kernmodel.binary.predictors.own import OWN_ECM
    from kernmodel.binary.runs import Command
    from kernmodel.binary.walks import CountedFlow
    from kernmodel.incore.tables.parameters import load_parameters
    from kernmodel.isa import isa_of

    if not command:
        raise UsageError("there is no program to run", todo="give it and its arguments behind --")
    core, title, modelled = _core(machine, uarch)
    names = _names(predictors, modelled)
    isa = isa_of(load_parameters(core).isa)
    seen = find_function(
        fspath(place.library or command[0]),
        function,
        addresses=place.addresses,
        marked=place.marked,
        isa_name=isa.name,
    )
    chosen = [predictor_named(name, core, isa.family) for name in names if name != OWN_ECM]
    started = Command(tuple(command), options.standard_input, seconds=options.seconds)
    method, limit = options.method, options.count_limit
    found, occurrences = count_occurrences(seen, started, method=method, limit=limit, told=progress)
    said = predicted(CountedFlow(found, occurrences), started, chosen, modelled if OWN_ECM in names else None, progress)
    time, why = _time(found, started, progress) if options.measure else (None, "")
    answer = BinaryRun(
        command=tuple(command),
        function=found,
        occurrences=occurrences,
        core=core,
        title=title,
        clock_hz=_clock_hz(time, modelled),
        predicted=said,
        time=time,
        not_measured=why,
    )
    return FunctionRun(answer)


def _names(predictors: str | None, machine: Machine | None) -> tuple[str, ...]:
    """The predictors that are asked for, else those of this house that what is given allows.

    Raises:
        UsageError: an unknown one, or one that asks for a machine without it.
    """
    from kernmodel.binary.predictors.choose import names_of
    from kernmodel.binary.predictors.own import OWN, OWN_ECM

    names = names_of(predictors or (f"{OWN},{OWN_ECM}" if machine is not None else OWN))
    if OWN_ECM in names and machine is None:
        todo = "give a machine with -m in place of --uarch"
        raise UsageError(f"{OWN_ECM} asks for the caches of a machine", where="--predictors", todo=todo)
    return names


def _core(machine: File | None, uarch: str | None) -> tuple[str, str, Machine | None]:
    """The microarchitecture, its name for people, and the machine where one is given."""
    from kernmodel.incore.tables.parameters import canonical_name, load_parameters

    if (machine is None) == (uarch is None):
        todo = "give the machine with -m, or its microarchitecture with --uarch"
        raise UsageError("one core has to be predicted for", todo=todo)
    if machine is None:
        name = canonical_name(uarch or "")
        return name, load_parameters(name).title, None
    from kernmodel.machine.load import load_machine

    found = load_machine(fspath(machine))
    name = found.core.microarchitecture
    return name, f"{found.name} ({load_parameters(name).title})", found


def _clock_hz(time: FunctionTime | None, machine: Machine | None) -> float | None:
    """The clock at which the function was measured, else that of the machine, else unknown."""
    if time is not None:
        return time.clock_hz
    return None if machine is None else machine.clock_hz


def _time(function: Function, command: Command, progress: Callable[[str], object]) -> tuple[FunctionTime | None, str]:
    """The measured time, or why there is none."""
    from kernmodel.binary.counting import refuse_foreign
    from kernmodel.binary.stopwatch import measure_function

    try:
        refuse_foreign(function)
        return measure_function(function, command, told=progress), ""
    except (ToolError, InputError) as error:
        return None, str(error)


def _refuse_other_host(core: str) -> None:
    """Refuse a core whose code this host, on which a suite is built and run, does not execute.

    Raises:
        ToolError: it is one.
    """
    import platform

    from kernmodel.incore.tables.parameters import load_parameters
    from kernmodel.isa import isa_of

    parameters = load_parameters(core)
    if platform.machine().lower() not in isa_of(parameters.isa).hosts:
        what = f"{parameters.title} executes {parameters.isa} code, which this host ({platform.machine()}) does not run"
        raise ToolError(what, todo="give the core of this host, or run the suite on such a host")


def binary_suite(
    file: File,
    output: File,
    *,
    machine: File | None = None,
    uarch: str | None = None,
    predictors: str | None = None,
    jobs: int | None = None,
    progress: Callable[[str, int, int], object] = lambda what, done, total: None,
) -> Result[SuiteAnswer]:
    """How good predictors are on many variants of kernels, as `kernmodel binary suite`.

    >>> km.binary_suite("suite.yml", "out", uarch="ZEN3").answer.classes[0].summaries["kernmodel (c)"]

    Args:
        file: of the suite (docs/binaries.md).
        output: the folder for binaries, records and tables; what an earlier run left there is kept.
        machine, uarch: this host's machine file, or its microarchitecture.
        predictors: as for `binary_run`.
        jobs: processes for all but the measurements.
        progress: is told what is being done, how many are done, and of how many.

    Raises:
        InputError: a file cannot be read or written; ToolError: a compiler or predictor is not there, or this host does
            not execute the code of the core.
    """
    from kernmodel.binary.suite.file import read_suite
    from kernmodel.binary.suite.run import run_suite
    from kernmodel.binary.suite.timing import smallest_call

    core, _, modelled = _core(machine, uarch)
    _refuse_other_host(core)
    suite = read_suite(fspath(file))
    answer = run_suite(
        suite,
        core,
        Path(fspath(output)),
        predictors=_names(predictors, modelled),
        machine=modelled,
        timing=smallest_call,
        jobs=jobs,
        progress=progress,
    )
    return Result([answer], Views("binary_suite:suite_report", "binary_lifting:suite_document"))
