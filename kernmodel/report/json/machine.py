"""`kernmodel.machine/1`, `kernmodel.machine-list/1` and `kernmodel.machine-check/1`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kernmodel.machine.files.plain_data import machine_to_dict
from kernmodel.report.json.document import Json, envelope, plain

if TYPE_CHECKING:
    from kernmodel.machine.load import MachineSummary
    from kernmodel.machine.model import Machine
    from kernmodel.schema.fields import Problem


def machine_document(machine: Machine) -> Json:
    """One machine with all its figures and their sources."""
    return envelope("kernmodel.machine/1", {"machine": plain(machine_to_dict(machine))})


def machine_list_document(machines: Iterable[MachineSummary]) -> Json:
    """The carried machines."""
    return envelope("kernmodel.machine-list/1", {"machines": [plain(machine) for machine in machines]})


def machine_check_document(checked: Mapping[str, tuple[Problem, ...]]) -> Json:
    """The problems of each file; one that is fit for use has none that is an error."""
    files = [
        {
            "file": file,
            "ok": not any(problem.severity == "error" for problem in problems),
            "problems": [_problem_json(problem) for problem in problems],
        }
        for file, problems in checked.items()
    ]
    return envelope("kernmodel.machine-check/1", {"files": files})


def _problem_json(problem: Problem) -> Json:
    return {
        "where": str(problem.where),
        "key": problem.key,
        "what": problem.what,
        "todo": problem.todo,
        "severity": problem.severity,
    }
