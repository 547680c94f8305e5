"""The console's entry, which ends the process at once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def kernmodel(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "kernmodel", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("machine", "list"), 0), (("machine", "show", "nothing"), 1), (("machine", "list", "--nothing"), 2)],
)
def test_status_and_messages_are_those_of_main(run, arguments, status):
    done, within = kernmodel(*arguments), run(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (within.status, within.out, within.err)
    assert done.returncode == status


def test_all_of_a_long_output_arrives():
    done = kernmodel("machine", "show", "clx", "--json")
    assert len(done.stdout) > 10_000
    assert json.loads(done.stdout)["schema"] == "kernmodel.machine/1"


def test_what_python_does_at_its_end_is_done_where_something_needs_it():
    """Without it, handlers that modules registered do not run."""
    start = "import atexit, sys; {}; sys.argv = ['kernmodel', 'machine', 'list']; atexit.register(print, 'the end');"
    start += "from kernmodel.cli.main import console; sys.exit(console())"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ends = []
    for loaded in ("pass", "import concurrent.futures.process"):
        command = [sys.executable, "-c", start.format(loaded)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        ends.append(done.stdout.endswith("the end\n"))
    assert ends == [False, True]
