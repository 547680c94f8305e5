from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kernmodel.cli.main import main

ROOT = Path(__file__).parents[2]
START = "import sys; from kernmodel.cli.main import main; sys.exit(main())"


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


@pytest.fixture
def run(capsys, monkeypatch) -> Callable[..., Outcome]:
    """Run a command in this process, as the entry point does."""
    monkeypatch.delenv("KERNMODEL_DEBUG", raising=False)

    def run_command(*arguments: object) -> Outcome:
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return run_command


@pytest.fixture
def document(run) -> Callable[..., dict]:
    """The JSON document of a command that neither fails nor complains."""

    def read(*arguments: object) -> dict:
        outcome = run(*arguments, "--json")
        assert (outcome.status, outcome.err) == (0, "")
        return json.loads(outcome.out)

    return read


@pytest.fixture
def run_apart(tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a command in a process of its own, in an empty directory."""

    def run_process(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", START, *arguments]
        inherited = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        return subprocess.run(command, cwd=tmp_path, env=inherited, capture_output=True, text=True, check=False)

    return run_process
