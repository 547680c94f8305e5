"""Functions of compiled programs, as `kernmodel binary`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import fspath
from typing import TYPE_CHECKING

from kernmodel.api.result import Result, Views
from kernmodel.user_files import File

if TYPE_CHECKING:
    from kernmodel.binary.program import Function
    from kernmodel.binary.residency import Residency


def binary_blocks(
    file: File,
    function: str | None = None,
    *,
    addresses: tuple[int, int] | None = None,
    marked: str | None = None,
    uarch: str | None = None,
    strict: bool = False,
) -> Result[Function]:
    """The basic blocks and loops of a function of a binary, as `kernmodel binary blocks`.

    >>> km.binary_blocks("./a.out", "kernel").answer.loops

    Args:
        file: an ELF executable, shared library or object.
        function: its name; None where the file has one function only.
        addresses: of the first byte and the one behind the last, in place of a name.
        marked: a region between IACA's markers by its name, "" for the only one.
        uarch: the microarchitecture that executes it, which says how long the vectors of SVE are.
        strict: raise `StrictError` for the first warning.

    Raises:
        AssemblyError: no such file or function, or it is no code, or none of the microarchitecture; UsageError: several
            could be meant.
    """
    from kernmodel.binary.find import find_function
    from kernmodel.incore.tables.parameters import load_parameters

    isa = None if uarch is None else load_parameters(uarch).isa
    answer = find_function(fspath(file), function, addresses=addresses, marked=marked, isa_name=isa)
    return Result([answer], Views("binary:function_report", "binary:function_document"), strict=strict)


def binary_residency(
    command: Sequence[str],
    function: str | None = None,
    *,
    machine: File,
    library: File | None = None,
    addresses: tuple[int, int] | None = None,
    seconds: float | None = None,
    standard_input: bytes = b"",
    strict: bool = False,
    progress: Callable[[str], object] = lambda what: None,
) -> Result[Residency]:
    """Where the data of a function lie: the addresses that it touches through the simulated caches of a machine, warm,
    as `kernmodel binary residency`.

    >>> km.binary_residency(["./a.out"], "kernel", machine="zen3").answer.footprint_bytes

    Args:
        command: the program and its arguments.
        function: its name; addresses: a range in its place, as for `binary_blocks`.
        machine: the machine file; library: the shared library that holds the function, where the program does not.
        seconds: that one run of the program may take.
        standard_input: what the program reads.
        strict: raise `StrictError` for the first warning.
        progress: is told what is being done.

    Raises:
        InputError: no such file or function, code of another instruction set than the machine's, the program fails,
            takes too long or never runs the function.
        ToolError: this system does not let it be traced.
    """
    from kernmodel.binary.address_trace import residency
    from kernmodel.binary.ecm import call_paths
    from kernmodel.binary.find import find_function
    from kernmodel.binary.runs import Command
    from kernmodel.errors import UsageError
    from kernmodel.machine.load import load_machine
    from kernmodel.traffic.simulation.hierarchy import hierarchy_of

    if not command:
        raise UsageError("there is no program to run", todo="give it and its arguments behind --")
    modelled = load_machine(fspath(machine))
    found = find_function(fspath(library or command[0]), function, addresses=addresses, isa_name=modelled.isa)
    started = Command(tuple(command), standard_input, seconds=seconds)
    answer = residency(found, started, hierarchy_of(modelled), told=progress)
    views = Views("binary:residency_report", "binary:residency_document")
    return Result([answer], views, {"function": found, "paths": call_paths(answer, modelled)}, strict=strict)
