"""Folders of processes that end, and of those that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kernmodel.processes import scratch_folder

pytest.importorskip("fcntl")
HOLD = """
import sys
from kernmodel.processes import scratch_folder
with scratch_folder() as folder:
    (folder / "harness.o").write_bytes(b"x")
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_the_next_run_removes_what_a_killed_one_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    others = tmp_path / "kernmodel-results"
    others.mkdir()
    os.utime(others, (0, 0))
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    left = Path(holder.stdout.readline().strip())
    os.utime(left, (0, 0))
    with scratch_folder():
        assert left.exists()  # its process lives
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdin.close()
    holder.stdout.close()
    with scratch_folder() as own:
        assert sorted(tmp_path.iterdir()) == sorted([others, own])
    assert list(tmp_path.iterdir()) == [others]


def test_a_young_folder_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process may be about to hold it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "kernmodel-scratch-young").mkdir()
    with scratch_folder():
        pass
    assert len(list(tmp_path.iterdir())) == 1
