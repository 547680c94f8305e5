"""A machine file held against what others know: the core that it names, and the compilers that are installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from kernmodel.errors import InputError, Location, MachineError, Note
from kernmodel.incore.model import InCore, Parameters
from kernmodel.incore.tables.core_parameters import with_dividers
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.machine.files.schema import MACHINE_FILE, examine
from kernmodel.machine.model import Machine
from kernmodel.schema.document import Document, read_document
from kernmodel.schema.fields import FieldReader, Problem, Severity, suggest

_GROUPS = ("overlapping_ports", "non_overlapping_ports")


def check_machine_file(path: Path, *, compilers: bool = False) -> tuple[Problem, ...]:
    """All problems of a machine file by line: its own, those with its core, and with `compilers` refused flags."""
    try:
        document = read_document(path, MACHINE_FILE)
    except MachineError as error:
        where = error.where if isinstance(error.where, Location) else Location(str(error.where))
        return (Problem(MACHINE_FILE, where, "", error.what, error.todo),)
    return check_machine_document(document, compilers=compilers)


def check_machine_document(document: Document, *, compilers: bool = False) -> tuple[Problem, ...]:
    """The same for a file that has been read."""
    machine, reading = examine(document)
    if machine is not None:
        _check_core(reading, machine)
        if compilers:
            _check_compilers(reading, machine)
    return tuple(sorted(reading.problems, key=lambda problem: problem.where.line or 0))


def core_parameters(machine: Machine) -> Parameters:
    """The parameters of the core that a machine names.

    Raises:
        InstructionTableError: there is no such core, or its parameter file is malformed.
        MachineError: the machine file names ports that the core lacks, or another instruction set.
    """
    parameters = load_parameters(machine.core.microarchitecture)
    check_core(machine, parameters)
    return parameters


def with_core_figures(machine: Machine, parameters: Parameters) -> Machine:
    """The machine with what is known of the first cache of its core, which its file does not say."""
    first, *others = machine.levels
    kept = tuple((part * first.size_bytes, share) for part, share in parameters.misses.first_keeps)
    return replace(machine, levels=(replace(first, kept=kept), *others)) if kept else machine


def check_core(machine: Machine, parameters: Parameters) -> None:
    """Refuse a machine that contradicts the core it names; raises `MachineError` as `core_parameters` does."""
    for key, what, todo, severity in _contradictions(machine, parameters):
        if severity == "error":
            raise MachineError(f"{key}: {what}", where=_place(machine, key), todo=todo)


def left_out_notes(machine: Machine, incore: InCore) -> tuple[Note, ...]:
    """A warning for ports that a loop needs and that the machine file puts neither into T_OL nor into T_nOL."""
    named = {port for group in _GROUPS for port in with_dividers(getattr(machine.core, group))}
    busy = [port for port, cycles in zip(incore.ports, incore.port_sums, strict=True) if cycles and port not in named]
    if not busy:
        return ()
    text = (
        f"{machine.file} names {_ports(busy)}, which this loop needs, neither in overlapping_ports nor in "
        "non_overlapping_ports: the time there is in neither T_OL nor T_nOL"
    )
    return (Note("ports-left-out", text),)


def _ports(names: Iterable[str]) -> str:
    found = list(names)
    return f"port {found[0]}" if len(found) == 1 else f"ports {', '.join(found)}"


def _check_core(reading: FieldReader, machine: Machine) -> None:
    """Note a core that there is not, and where it contradicts the machine file."""
    try:
        parameters = load_parameters(machine.core.microarchitecture)
    except InputError as error:
        reading.problem(
            "core.microarchitecture", error.what if error.where is None else f"{error.where}: {error.what}", error.todo
        )
        return
    for key, what, todo, severity in _contradictions(machine, parameters):
        reading.problem(key, what, todo, severity)


def _contradictions(machine: Machine, parameters: Parameters) -> Iterator[tuple[str, str, str, Severity]]:
    """Key, what is wrong, what to do, and how bad it is."""
    if machine.isa != parameters.isa:
        yield "isa", f"is {machine.isa}, but {parameters.name} is {parameters.isa}", "check it, and the core", "error"
    named: set[str] = set()
    for group in _GROUPS:
        for port in getattr(machine.core, group):
            named.add(port)
            if port not in parameters.ports:
                what = f"names port {port!r}, which {parameters.name} lacks"
                yield f"core.{group}", what, suggest(port, parameters.ports), "error"
    left_out = [port for port in parameters.ports if port not in with_dividers(named)]
    if left_out:
        what = f"leaves out {_ports(left_out)} of {parameters.name}"
        todo = "name each in overlapping_ports or non_overlapping_ports: else its time counts nowhere"
        yield "core", what, todo, "warning"


def _place(machine: Machine, key: str) -> Location:
    """The line of a key in the file of a machine."""
    try:
        _, reading = examine(read_document(Path(machine.file), MACHINE_FILE))
    except InputError:
        return Location(machine.file)
    return Location(machine.file, reading.lines.get(key))


def _check_compilers(reading: FieldReader, machine: Machine) -> None:
    """Note flags that the installed compilers refuse, and compilers that are not installed."""
    from kernmodel.code.flags import refused_flags

    for compiler in machine.compilers:
        key = f"compilers.{compiler.name}"
        answer = refused_flags(compiler, machine.isa)
        if answer is None:
            reading.problem(key, "is not installed here, so its flags were not tried", None, "warning")
            continue
        for refusal in answer:
            reading.problem(key, refusal.what, refusal.todo)
