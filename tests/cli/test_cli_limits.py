"""Limits, special files and standard streams through the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = (sys.executable, "-m", "kernmodel")


def in_shell(script: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which `kernmodel` is the command."""
    command = f'kernmodel() {{ "{sys.executable}" -m kernmodel "$@"; }}; {script}'
    inherited = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=inherited, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("script", "status", "out", "err"),
    [
        ("kernmodel machine list >&-", 1, "", "kernmodel: error: standard output: is closed\n"),
        ("kernmodel machine list --json >/dev/full", 1, "", "standard output: No space left on device\n"),
        ("kernmodel incore --uarch skl - <&-", 1, "", "standard input: cannot be read: it is closed; give an assembly"),
        ("kernmodel kernel show stencil <&- 2>&-", 0, "stencil", ""),
        ("kernmodel machine show nothing 2>&-", 1, "", ""),
        ("kernmodel kernel show <(echo 'double a[9]; for(int i=0;i<9;++i) a[i]=0;')", 0, "a[i]", ""),
    ],
)
def test_streams(tmp_path, script, status, out, err):
    done = in_shell(script, tmp_path)
    assert done.returncode == status, done
    assert out in done.stdout
    assert err in done.stderr
    assert "Traceback" not in done.stderr
    assert bool(done.stderr) == bool(err)


READERS = {
    "machine": ("machine", "check"),
    "machine of a command": ("traffic", "stencil", "-m"),
    "import": ("machine", "import"),
    "kernel": ("kernel", "show"),
    "hierarchy": ("simulate", "PATH", "--case", "x", "trace"),
    "cases": ("simulate", "--cases"),
    "listing": ("incore", "--uarch", "skl"),
    "code": ("incore", "--uarch", "skl", "--raw"),
    "object": ("incore", "--uarch", "skl", "--range", "0x0-0x4"),
    "batch": ("incore", "--uarch", "skl", "--batch"),
    "measured": ("evaluate", "blocks"),
    "mix": ("mix", "--mix"),
    "assembly": ("mix", "triad", "-m", "clx", "--asm"),
    "table": ("instructions", "import", "--uarch", "QQ"),
    "readings": ("instructions", "check", "--uarch", "CLX"),
    "core": ("incore", "--hex", "4801d8", "--uarch"),
    "covered": ("instructions", "coverage", "--uarch", "CLX"),
}


@pytest.mark.parametrize("arguments", READERS.values(), ids=READERS)
@pytest.mark.parametrize("kind", ["/dev/zero", "/dev/random", "directory", "fifo"])
def test_every_file_may_be_something_else(run, tmp_path, monkeypatch, arguments, kind):
    from kernmodel import user_files
    from kernmodel.limits import Limit

    monkeypatch.setattr(user_files, "PIPE_SECONDS", Limit("time", 0, "s"))
    path = Path(kind) if kind.startswith("/") else tmp_path / "thing.yml"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    words = arguments if "PATH" in arguments else (*arguments, "PATH")
    outcome = run(*(path if word == "PATH" else word for word in words))
    assert outcome.status in (1, 2), outcome
    assert path.name in outcome.err + outcome.out
    assert "bug" not in outcome.err


def descendants(process: int) -> set[int]:
    """The processes that this one started, and those that they did."""
    found: set[int] = set()
    waiting = [process]
    while waiting:
        folder = Path("/proc") / str(waiting.pop()) / "task"
        for task in folder.iterdir() if folder.is_dir() else ():
            children = [int(number) for number in (task / "children").read_text().split()]
            found.update(children)
            waiting += children
    return found


@pytest.mark.thorough
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts processes in /proc")
def test_many_jobs_are_few_processes_and_an_interrupt_ends_them(tmp_path):
    """A compiler that hangs keeps two workers busy, whatever --jobs says; Ctrl-C leaves nobody behind."""
    compiler = tmp_path / "gcc"
    compiler.write_text("#!/bin/sh\nexec sleep 60\n")
    compiler.chmod(0o755)
    words = (
        "sweep",
        "-m",
        "clx",
        "stencil",
        "--jobs",
        "100000",
        "--compiler",
        str(compiler),
        "--flags",
        "-O1",
        "--flags",
        "-O2",
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([*MODULE, *words], env=environment, stderr=subprocess.PIPE, text=True, process_group=0)
    try:
        started: set[int] = set()
        while process.poll() is None and len(started) < 4:  # two workers, each with its compiler
            started = descendants(process.pid)
            time.sleep(0.05)
        time.sleep(0.2)
        started = descendants(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=30)
    finally:
        process.kill()
    assert len(started) == 4
    assert process.returncode == 130
    assert err.startswith("kernmodel: interrupted after 0 of 2 points")
    assert err.count("\n") == 1
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists() and "State:\tZ" not in status_of(pid)]


def status_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return "State:\tZ"
