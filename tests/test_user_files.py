"""What users name as a file: regular ones, pipes, and what never ends."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel import limits, user_files
from kernmodel.errors import AssemblyError, InputError
from kernmodel.limits import Limit
from kernmodel.user_files import lines_of, opened, read_file

SMALL = Limit("bytes of a test", 1000, "B")


@pytest.fixture
def hurried(monkeypatch) -> None:
    """Pipes are given up soon."""
    monkeypatch.setattr(user_files, "PIPE_SECONDS", Limit("time", 0, "s"))


def fed(path: Path, data: bytes) -> threading.Thread:
    """Somebody who writes `data` into a FIFO."""
    thread = threading.Thread(target=lambda: path.write_bytes(data))
    thread.start()
    return thread


def test_what_is_no_file_is_refused(tmp_path):
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(tmp_path / "s"))
    kinds = {tmp_path: "directory", "/dev/zero": "device", "/dev/random": "device", tmp_path / "s": "socket"}
    for path, kind in kinds.items():
        with pytest.raises(InputError, match=f"{path}: is a {kind}, not a list; give a list"):
            read_file(path, "a list", SMALL)
        with pytest.raises(AssemblyError, match=f"is a {kind}"), opened(path, "a list", error=AssemblyError):
            pass
    listening.close()
    assert read_file(os.devnull, "a list", SMALL) == b""


@pytest.mark.parametrize("name", ["missing", "nul\0l", "x" * 300])
def test_names_that_are_no_file(tmp_path, name):
    with pytest.raises(InputError, match="; give a list"):
        read_file(tmp_path / name, "a list", SMALL)


def test_a_file_is_read_up_to_its_limit(tmp_path):
    path = tmp_path / "f"
    path.write_bytes(b"x" * 1000)
    assert read_file(path, "a list", SMALL) == b"x" * 1000
    path.write_bytes(b"x" * 1001)
    with pytest.raises(InputError, match=r"is larger than 1,000 B; .* or lift the limit of 1,000 B with --no-limits"):
        read_file(path, "a list", SMALL)
    with limits.restored():
        limits.lift()
        assert len(read_file(path, "a list", SMALL)) == 1001
    # a file without a size of its own is counted while it is read
    with pytest.raises(InputError, match="larger"):
        read_file("/proc/kallsyms", "a list", SMALL)


def test_a_pipe_is_read_and_remembered(tmp_path):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = fed(path, b"hello")
    assert [read_file(path, "a list", SMALL), read_file(path, "a list", SMALL)] == [b"hello"] * 2
    writer.join()


def test_a_pipe_without_end_is_cut_off(tmp_path):
    reader, writer = os.pipe()
    os.write(writer, b"x" * 2000)
    with pytest.raises(InputError, match="larger than 1,000 B"):
        read_file(f"/dev/fd/{reader}", "a list", SMALL)
    os.close(reader)
    os.close(writer)


def test_a_pipe_without_a_writer_does_not_hang(tmp_path, hurried):
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with pytest.raises(InputError, match="nothing came out of this pipe within 0 s; see whether its writer runs, or"):
        read_file(path, "a list", SMALL)
    with pytest.raises(InputError, match="nothing came"), opened(path, "a list") as stream:
        stream.read()


@given(st.lists(st.binary(max_size=40)))
def test_lines_are_those_of_the_file(parts):
    data = b"\n".join(parts)
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        assert list(lines_of(stream, "f")) == data.splitlines(keepends=True) or b"\r" in data or b"\x0b" in data


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(user_files, "LINE_BYTES", Limit("line", 10, "B"))
    path = tmp_path / "f"
    path.write_bytes(b"short\n" + b"x" * 11)
    with opened(path, "a list") as stream, pytest.raises(InputError, match="f: line 2 has no end within 10 B"):
        list(lines_of(stream, "f"))


def test_closed_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    readers: list[Callable[[], object]] = [
        lambda: read_file("-", "a list", SMALL),
        lambda: opened("-", "a list").__enter__(),
    ]
    for read in readers:
        with pytest.raises(InputError, match="standard input: cannot be read: it is closed; give a list"):
            read()
