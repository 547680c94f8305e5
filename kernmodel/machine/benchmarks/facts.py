"""Facts of other tools' benchmarks, from benchmarks.yml."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from kernmodel.errors import MachineError
from kernmodel.schema.yaml_nodes import load

_FILE = Path(__file__).with_name("benchmarks.yml")
ELEMENT_BYTES = {"DP": 8, "SP": 4}


@cache
def _facts() -> Any:
    return load(_FILE.read_text(encoding="utf-8"), str(_FILE), error=MachineError)


def facts(section: str) -> Any:
    """A section: a mapping or a list of words."""
    return _facts()[section]
