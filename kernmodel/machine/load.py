"""From the name that a user gives to a `Machine`: `load_machine`, and the list of carried ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kernmodel.errors import InputError, MachineError
from kernmodel.isa import at_vectors, isa_of, split_rows, split_vectors, with_rows
from kernmodel.limits import remembered
from kernmodel.machine.files.schema import MACHINE_FILE, read_machine
from kernmodel.machine.model import Machine
from kernmodel.resources import carried_files, resolve
from kernmodel.schema.document import document_in, read_text

FOLDER = "machine-files"
ENDING = ".yml"


def find_machine(name_or_path: str) -> Path:
    """The machine file meant by a name: a path first, else a carried one with or without its ending.

    Raises:
        MachineError: there is none; names the nearest carried ones.
    """
    try:
        return resolve(name_or_path, FOLDER, ENDING, "machine file")
    except InputError as error:
        raise MachineError(error.what, where=error.where, todo=error.todo) from error


def load_machine(name_or_path: str) -> Machine:
    """The machine called `name_or_path`: a path first, else a carried machine file ("clx" or "clx.yml"); with "@256"
    behind it one with vectors of so many bits, where its core lets them be chosen; with "+FILE.txt" one whose core has
    the rows of a file before those of its instruction table.

    Raises:
        MachineError: no such file, or the first problem of the file, with file, line and dotted key. `machine check`
            lists all of them.
    """
    bare, bits = split_vectors(name_or_path)
    name, rows = split_rows(bare)
    machine = load_path(find_machine(name))
    if rows is not None:
        core = with_rows(split_rows(machine.core.microarchitecture)[0], rows)
        machine = replace(machine, core=replace(machine.core, microarchitecture=core))
    return machine if bits is None else _with_vectors(machine, bits)


def _with_vectors(machine: Machine, bits: int) -> Machine:
    """The machine with vectors of another length: code, compilers and core are of that length."""
    isa = isa_of(machine.isa)
    found = [isa.with_vectors(bits, one.flags) for one in machine.compilers]
    if None in found or not found:
        raise MachineError(f"{machine.name} has no vectors of {bits} bits", where="--vl", todo="leave it out")
    told = [one for one in found if one is not None]
    core = at_vectors(split_vectors(machine.core.microarchitecture)[0], bits)
    return replace(
        machine,
        name=at_vectors(machine.name, bits),
        isa=told[0][0],
        core=replace(machine.core, microarchitecture=core),
        compilers=tuple(replace(one, flags=flags) for one, (_, flags) in zip(machine.compilers, told, strict=True)),
    )


def load_path(path: Path) -> Machine:
    """The machine described by the file at `path`; raises `MachineError` as `load_machine` does."""
    return _described(path, *read_text(path, MACHINE_FILE))


@remembered  # those who ask about many kernels name the same machines again and again
def _described(path: Path, text: str, digest: str) -> Machine:
    """The machine that the text of a file describes."""
    machine, problems = read_machine(document_in(path, MACHINE_FILE, text, digest))
    if machine is None:
        raise next(problem for problem in problems if problem.severity == "error").error()
    return machine


def list_machines() -> tuple[Machine, ...]:
    """The carried machines, sorted by name.

    Raises:
        MachineError: a carried file is malformed.
    """
    machines = (load_path(path) for path in carried_files(FOLDER, ENDING))
    return tuple(sorted(machines, key=lambda machine: machine.name))
