"""Assertions about predictions, for continuous integration."""

from __future__ import annotations

from os import fspath
from typing import TYPE_CHECKING

from kernmodel.api.result import Result, Views
from kernmodel.user_files import File

if TYPE_CHECKING:
    from kernmodel.studies.checks.model import ChecksAnswer


def check(file: File, *, against: File | None = None) -> Result[ChecksAnswer]:
    """Judge the assertions of a file about predictions, as `kernmodel check`.

    >>> km.check("checks.yml").answer.holds

    Args:
        file: of checks (docs/check.md).
        against: the JSON document of an earlier run; the answer says what changed since.

    Raises:
        InputError: a file cannot be read. A kernel that cannot be predicted is a check that fails.
    """
    from kernmodel.studies.checks.changes import changes, read_earlier
    from kernmodel.studies.checks.file import read_checks
    from kernmodel.studies.checks.judge import judged
    from kernmodel.studies.checks.model import ChecksAnswer

    checks = read_checks(fspath(file))
    earlier = None if against is None else read_earlier(fspath(against))
    results = tuple(judged(checks))
    name = None if against is None else fspath(against)
    return Result([ChecksAnswer(fspath(file), results, name, tuple(changes(results, earlier or {})))], _CHECKS)


_CHECKS = Views("checks:checks_report", "checks:checks_document")
