"""`--watch`: answers again when a file is saved; `--format gcc`: answers as messages."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from kernmodel.cli.watch import watch
from kernmodel.errors import UsageError
from kernmodel.user_files import read_file, recording_reads

ROOT = Path(__file__).parents[2]
START = "import signal, sys; from kernmodel.cli.main import main; {}; sys.exit(main())".format(
    "signal.signal(signal.SIGINT, signal.default_int_handler)"  # ignored in what a shell starts in the background
)
COPY = "double a[N], b[N];\nfor (int i = 0; i < N; ++i)\n    a[i] = b[i];\n"
ENDS = (130,)


class Answers:
    """Answers that read some files, and what the pause between them does to the files."""

    def __init__(self, *files: Path, saves=(), status: int = 0) -> None:
        self.files, self.saves, self.status = list(files), list(saves), status
        self.read: list[list[bytes]] = []

    def answer(self) -> int:
        from kernmodel.limits import TEXT_BYTES

        self.read.append([read_file(file, "a file", TEXT_BYTES) for file in self.files])
        return self.status

    def pause(self, seconds: float) -> None:
        if not self.saves:
            raise KeyboardInterrupt
        self.saves.pop(0)()

    def run(self) -> int:
        return watch(self.answer, ENDS, self.pause)


def touched(file: Path, text: str, moment: int) -> None:
    file.write_text(text)
    os.utime(file, ns=(moment, moment))


def nothing() -> None:
    pass


def test_it_answers_when_any_file_is_saved_and_not_otherwise(tmp_path, capsys):
    one, two = tmp_path / "one.c", tmp_path / "two.h"
    touched(one, "1", 1)
    touched(two, "2", 1)
    saves = [nothing, lambda: touched(two, "3", 3), nothing, nothing, lambda: touched(one, "1", 2), nothing]
    answers = Answers(one, two, saves=saves)
    assert answers.run() == 0
    assert answers.read == [[b"1", b"2"], [b"1", b"3"], [b"1", b"3"]]
    assert capsys.readouterr().err.splitlines() == [f"kernmodel: {two} saved", f"kernmodel: {one} saved"]


def test_a_file_that_is_replaced_may_be_gone_for_a_moment(tmp_path):
    one = tmp_path / "one.c"
    touched(one, "1", 1)
    answers = Answers(one, saves=[one.unlink, nothing, lambda: touched(one, "2", 2), nothing])
    answers.run()
    assert answers.read == [[b"1"], [b"2"]]


def test_a_save_in_several_steps_is_one(tmp_path):
    one = tmp_path / "one.c"
    touched(one, "1", 1)
    steps = [partial(touched, one, text, moment) for moment, text in ((2, ""), (3, "2"), (4, "22"))]
    answers = Answers(one, saves=[*steps, nothing])
    answers.run()
    assert answers.read == [[b"1"], [b"22"]]


def test_what_is_saved_during_an_answer_is_not_missed(tmp_path):
    one = tmp_path / "one.c"
    touched(one, "1", 1)
    answers = Answers(one, saves=[lambda: touched(one, "2", 2), nothing, nothing])
    plain = answers.answer

    def saving() -> int:
        status = plain()
        if len(answers.read) == 2:
            touched(one, "3", 3)
        return status

    answers.answer = saving
    answers.run()
    assert answers.read == [[b"1"], [b"2"], [b"3"]]


def test_an_answer_that_fails_before_it_reads_waits_too(tmp_path):
    one = tmp_path / "one.c"
    touched(one, "1", 1)
    answers = Answers(one, saves=[lambda: touched(one, "2", 2), nothing, nothing])
    plain = answers.answer

    def failing() -> int:
        return plain() if not answers.read else answers.read.append([]) or 1

    answers.answer = failing
    assert answers.run() == 1
    assert answers.read == [[b"1"], []]


def test_it_ends_with_the_status_of_the_last_answer(tmp_path):
    one = tmp_path / "one.c"
    one.touch()
    assert Answers(one, status=1).run() == 1
    interrupted = Answers(one, saves=[lambda: one.write_text("1")], status=130)
    assert (interrupted.run(), len(interrupted.read)) == (130, 1)


def test_without_a_file_there_is_nothing_to_watch():
    with pytest.raises(UsageError, match="no file was read"):
        Answers().run()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ecm", "-m", "clx", "-"), "--watch: standard input cannot be watched; give a file"),
        (("incore", "-m", "clx", "-"), "--watch: standard input cannot be watched; give a file"),
        (("ecm", "-m", "clx", "nosuch.c"), "nosuch.c: no such kernel"),
    ],
)
def test_what_no_save_would_mend_ends_it(run, monkeypatch, arguments, message):
    """The machine file alone was watched, for ever."""
    monkeypatch.setattr("kernmodel.cli.watch.watch", None)  # to call it is a bug
    outcome = run(*arguments, "--watch")
    assert outcome.status in (1, 2) and outcome.err.startswith(f"kernmodel: error: {message}")


def test_reading_knows_files_and_no_pipes(tmp_path):
    from kernmodel.limits import TEXT_BYTES

    file = tmp_path / "a"
    file.touch()
    with recording_reads() as read:
        read_file(file, "a file", TEXT_BYTES)
        read_file(os.devnull, "a file", TEXT_BYTES)
    read_file(__file__, "a file", TEXT_BYTES)
    assert set(read) == {file}


def test_a_command_that_watches(tmp_path):
    """End to end: a header that is saved changes the answer, a slip is told, Ctrl-C ends it quietly."""
    (tmp_path / "sizes.h").write_text("#define N 1000\n")
    (tmp_path / "copy.c").write_text('#include "sizes.h"\n' + COPY)
    command = [sys.executable, "-c", START, "traffic", "-m", "clx", "copy.c", "--watch", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, text=True, **pipes) as process, limited(process):
        assert next_document(process)["kernel"]["sizes"] == {"N": 1000}
        (tmp_path / "sizes.h").write_text("#define N 20000\n")
        assert next_document(process)["kernel"]["sizes"] == {"N": 20000}
        (tmp_path / "copy.c").write_text("a slip")
        assert process.stderr.readline().endswith("sizes.h saved\n")
        assert process.stderr.readline() == "kernmodel: copy.c saved\n"
        assert process.stderr.readline().startswith("kernmodel: error: copy.c:")
        (tmp_path / "copy.c").write_text("#define N 5000\n" + COPY)
        assert next_document(process)["kernel"]["sizes"] == {"N": 5000}
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode in (0, 130)  # 130: the last answer was still being made
    assert (out, err.removesuffix("kernmodel: error: interrupted\n")) == ("", "kernmodel: copy.c saved\n")


@contextmanager
def limited(process: subprocess.Popen[str]) -> Iterator[None]:
    """End a process of which nothing comes any more."""
    timer = threading.Timer(120, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        process.kill()


def next_document(process: subprocess.Popen[str]) -> dict:
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line == "}\n":
            return json.loads("".join(lines))
    raise AssertionError(process.stderr.read())


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("rows.c")
    path.write_text(
        "#define N 4000\ndouble a[N][N], b[N][N];\nvoid rows(void)\n{\n    for (int j = 1; j < N; ++j)\n"
        "        for (int i = 0; i < N; ++i)\n            b[j][i] = a[j - 1][i] + a[j][i];\n}\n"
    )
    return path


def test_messages_stand_where_they_belong(run, kernel):
    done = run("ecm", "-m", "clx", kernel, "--format", "gcc")
    assert (done.status, done.err) == (0, "")
    places = re.findall(r"^rows\.c:(\d+):(\d+): note: (\S+)", done.out, re.MULTILINE)
    assert places == [("6", "9", "T_ECM"), ("7", "23", "a[j-1][i]"), ("7", "37", "a[j][i]"), ("7", "13", "b[j][i]")]
    assert len(done.out.splitlines()) == len(places)  # nothing to warn of
    headline = run("ecm", "-m", "clx", kernel).out.partition("T_ECM ")[2].splitlines()[0]
    assert headline in done.out
    more = run("ecm", "-m", "clx", kernel, "--format", "gcc", "-v").out.splitlines()
    assert len(more) > 1 + len(places)
    assert all(re.match(r"rows\.c:\d+:\d+: (note|warning): ", line) for line in more)


def test_all_nests_have_messages(run, kernel):
    kernel.write_text(kernel.read_text()[:-2] + "    for (int i = 0; i < N; ++i)\n        a[0][i] = b[i * i][0];\n}\n")
    done = run("ecm", "-m", "clx", kernel, "--format", "gcc")
    assert done.status == 0
    assert f"{kernel}:6:9: note: T_ECM" in done.out
    assert f"{kernel}:9:19: error: index b[i*i][0] is not affine" in done.out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("a[j - 1][i]", "a[j * j][i]"), ":7:23: error: index a[j*j][i] is not affine"),
        (("b[j][i] =", "c[j][i] ="), ":7:"),
        (("i < N", "i < N + 1"), ":7:"),
    ],
)
def test_what_is_wrong_is_an_error_at_its_place(run, kernel, change, message):
    kernel.write_text(kernel.read_text().replace(*change))
    done = run("ecm", "-m", "clx", kernel, "--format", "gcc")
    assert (done.status, done.err) == (1, "")
    (line,) = done.out.splitlines()
    assert line.startswith(f"{kernel}{message}"), line
    assert ": error: " in line


def test_a_bound_is_told_as_one(run):
    done = run("ecm", "-m", "gnr", "triad.c", "-D", "N=100000000", "--format", "gcc")
    assert "note: T_ECM ≥ " in done.out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--json",), "--json: does not fit: --format gcc"),
        (("--cores", "1-4"), "--cores: does not fit"),
        (("--plot",), "--plot: does not fit"),
        (("-D", "N=100,200"), "--format gcc: is of one point of sizes"),
    ],
)
def test_what_does_not_fit_is_refused(run, kernel, more, message):
    done = run("ecm", "-m", "clx", kernel, "--format", "gcc", *more)
    assert (done.status, done.out) == (2, "")
    assert message in done.err


def test_errors_without_a_place_are_told_as_always(run):
    done = run("ecm", "-m", "nothing", "stencil.c", "--format", "gcc")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("kernmodel: error: nothing")


def test_format_json_is_json(run):
    answers = [
        run("ecm", "-m", "clx", "triad.c", "-D", "N=100", *form).out for form in (["--json"], ["--format", "json"])
    ]
    assert answers[0] == answers[1]
