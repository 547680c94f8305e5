"""What is wrong with a machine file by itself, without the core that it names."""

from __future__ import annotations

from pathlib import Path

from kernmodel.errors import MachineError
from kernmodel.machine.files.schema import MACHINE_FILE, examine
from kernmodel.schema.document import read_document
from kernmodel.schema.fields import Problem
from kernmodel.studies.predict.machine_check import check_machine_file


def check_machine(path: Path) -> tuple[Problem, ...]:
    """All problems, in the order of their lines."""
    try:
        document = read_document(path, MACHINE_FILE)
    except MachineError:
        return check_machine_file(path)
    _, reading = examine(document)
    return tuple(sorted(reading.problems, key=lambda problem: problem.where.line or 0))
