"""What changed since an earlier run of the same checks, and which of its inputs did."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kernmodel.errors import InputError
from kernmodel.limits import YAML_BYTES
from kernmodel.studies.checks.file import ChecksFileError
from kernmodel.studies.checks.model import Changed, CheckResult
from kernmodel.user_files import read_file

SCHEMA = "kernmodel.check/1"
_SAME = 1e-6
"""Relative difference below which figures are the same: JSON keeps all digits, compilers of sums do not."""


def read_earlier(path: str) -> Mapping[str, Mapping[str, Any]]:
    """The checks of an earlier run by name, from its document.

    Raises:
        ChecksFileError: the file cannot be read, or is no document of `kernmodel check --format json`.
    """
    todo = "write one with `kernmodel check FILE --format json > OLD.json`"
    try:
        document = json.loads(read_file(path, "a document of `kernmodel check`", YAML_BYTES, error=ChecksFileError))
        checks = document["checks"]
        if document["schema"] != SCHEMA:
            raise ValueError(document["schema"])
        return {check["name"]: {"figures": dict(check["figures"]), "inputs": dict(check["inputs"])} for check in checks}
    except InputError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ChecksFileError("is no document of `kernmodel check`", where=path, todo=todo) from error


def changes(results: Sequence[CheckResult], earlier: Mapping[str, Mapping[str, Any]]) -> Iterator[Changed]:
    """The figures that are others than in the earlier run, of the checks that both have."""
    for result in results:
        if result.check.name not in earlier or result.error is not None:
            continue
        then = earlier[result.check.name]
        names = tuple(name for name, value in result.inputs.items() if then["inputs"].get(name) != value)
        for figure in {**result.figures, **then["figures"]}:
            before, after = then["figures"].get(figure), result.figures.get(figure)
            if _differ(before, after):
                yield Changed(result.check.name, figure, before, after, names)


def _differ(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return before is not after
    return not math.isclose(before, after, rel_tol=_SAME, abs_tol=_SAME)
