"""`kernmodel sweep` from end to end: files, interruptions, bad input."""

from __future__ import annotations

import csv
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
START = "import sys; from kernmodel.cli.main import main; sys.exit(main())"
SMALL = ("sweep", "-m", "clx", "stencil.c", "-D", "N=100-100000:6log")
SHORT = ("sweep", "-m", "clx", "copy.c", "-D", "N=1000,2000")
"""For what does not depend on the numbers."""


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", START, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True)


@pytest.fixture
def small(run) -> Callable[..., Any]:
    """What SMALL answers with these options, asked once."""

    def answered(*options: str) -> Any:
        if options not in ANSWERS:
            ANSWERS[options] = run(*SMALL, *options)
        return ANSWERS[options]

    return answered


ANSWERS: dict[tuple[str, ...], Any] = {}


def test_the_table_has_what_is_shared_above_and_notes_below(small):
    done = small()
    assert (done.status, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "ECM prediction of stencil on clx over sizes (times in cy/CL)"
    assert sum("cy/CL  " in line for line in lines) == 1 + 6
    assert lines[-1].startswith("  assumption: ")
    header = next(line for line in lines if "T_nOL" in line)
    assert header.split()[:2] == ["N", "T_OL"]
    assert "machine" not in header


def test_rows_of_the_table_equal_those_of_ecm(run, small):
    """The columns that both have; T_ECM has its interval in one of them only."""
    ours, theirs = table(small().out), table(run("ecm", *SMALL[1:]).out)
    both = ours[0].keys() & theirs[0].keys()
    assert {"N", "T_OL", "T_nOL", "T_out", "T_L1L2", "T_L3Mem", "T_ECM cy/CL", "reuse in L2"} <= both
    for own, other in zip(ours, theirs, strict=True):
        for name in both:
            assert own[name].partition(" (")[0] == other[name].partition(" (")[0], name


def table(text: str) -> list[dict[str, str]]:
    """The rows of the first table of a text by their headings."""
    lines = text.splitlines()
    head = next(number for number, line in enumerate(lines) if "T_OL  " in line)
    names = re.split(r"\s{2,}", lines[head].strip())
    rows = (re.split(r"\s{2,}", line.strip()) for line in lines[head + 2 :] if line.strip()[:1].isdigit())
    return [dict(zip(names, cells, strict=True)) for cells in rows]


def test_csv_has_headings_with_units_and_unrounded_numbers(run, small, tmp_path):
    file = tmp_path / "a.csv"
    assert run(*SMALL, "--output", file).status == 0
    document = json.loads(small("--json").out)
    with file.open(newline="") as text:
        rows = list(csv.DictReader(text))
    assert len(rows) == len(document["rows"]) == 6
    headings = {c["name"]: f"{c['title']} {c['unit']}".strip() for c in document["columns"]}
    assert "T_ECM cy/CL" in headings.values()
    for row, record in zip(rows, document["rows"], strict=True):
        for name, value in record.items():
            assert row[headings[name]] == ("" if value is None else str(value))


def test_parquet_comes_back_with_units(run, small, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "a.parquet"
    assert run(*SMALL, "--output", file).status == 0
    table = parquet.read_table(file)
    assert table.to_pylist() == json.loads(small("--json").out)["rows"]
    assert table.schema.field("T_ECM_cy_per_CL").metadata == {b"title": b"T_ECM", b"unit": b"cy/CL"}


def test_csv_and_json_lines_on_standard_output_are_those_of_the_files(run, tmp_path):
    for form in ("csv", "jsonl"):
        file = tmp_path / f"a.{form}"
        done = run(*SHORT, "--format", form, "--output", file)
        assert done.out == file.read_text()


def test_some_points_may_fail(run):
    done = run("sweep", "-m", "clx", "stencil.c", "-D", "N=2,1000")
    assert done.status == 0
    assert "1 of 2 points failed\n  N = 2: " in done.out


def test_all_points_may_not(run, tmp_path):
    file = tmp_path / "a.csv"
    done = run("sweep", "-m", "clx", "stencil.c", "-D", "N=1,2", "--output", file)
    assert done.status == 1
    assert "executes no iteration" in done.err
    assert done.out == ""
    assert not file.exists()


@pytest.mark.thorough
def test_workers_give_the_same_file(run, tmp_path):
    for jobs in (1, 2):
        assert run(*SMALL, "--cores", "1,2,12", "--jobs", jobs, "--output", tmp_path / f"{jobs}.csv").status == 0
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()


@pytest.mark.thorough
@pytest.mark.filterwarnings("default")
def test_a_dask_cluster_gives_the_same_file(run, tmp_path):
    distributed = pytest.importorskip("distributed")
    here, there = tmp_path / "here.csv", tmp_path / "there.csv"
    study = (*SMALL, "-m", "snb", "--set", "L2.size=x1,x2", "--flags=-O2", "--flags=-O3")
    assert run(*study, "--output", here).status == 0
    options = {"protocol": "tcp", "host": "127.0.0.1", "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, **options) as cluster:
        done = run(*study, "--output", there, "--scheduler", cluster.scheduler_address)
    assert (done.status, done.err) == (0, "")
    assert here.read_bytes() == there.read_bytes()


def test_a_drawing_stands_below_the_table(run):
    done = run(*SMALL, "--plot")
    assert done.status == 0
    assert "N > 1024: reuse in L1 j → i" in done.out.splitlines()[-2].strip() + done.out.splitlines()[-1].strip()


def test_a_picture_is_written(run, tmp_path):
    assert run(*SMALL, "--plot", tmp_path / "a.svg").status == 0
    assert "T_ECM" in (tmp_path / "a.svg").read_text()


def cut_off(folder: Path, file: Path, number: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run until the file has some rows, then send the signal."""
    process = start(folder, *arguments)
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up and process.poll() is None:
        if file.exists() and file.read_bytes().count(b"\n") >= 5:
            break
        time.sleep(0.01)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


LONG = ("sweep", "-m", "clx", "stencil.c", "-D", "N=100-100000:160", "--jobs", "2")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    process = start(folder, *LONG, "--resume", "all.jsonl", "--output", "all.csv")
    assert process.communicate() and process.returncode == 0
    return folder


@pytest.mark.thorough
@pytest.mark.parametrize(("number", "option"), [(signal.SIGINT, "--resume"), (signal.SIGTERM, "--output")])
def test_cut_off_and_resumed_equals_uninterrupted(uninterrupted, tmp_path, number, option):
    journal = tmp_path / "run.jsonl"
    done = cut_off(tmp_path, journal, number, *LONG, option, "run.jsonl")
    assert done.returncode == 130
    kept = journal.read_text().splitlines()
    assert 5 <= len(kept) < 160
    assert done.stderr == f"kernmodel: interrupted after {len(kept)} of 160 points; go on with --resume run.jsonl\n"
    process = start(tmp_path, *LONG, "--resume", "run.jsonl", "--output", "run.csv")
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert "160 rows in run.csv" in out
    assert journal.read_bytes() == (uninterrupted / "all.jsonl").read_bytes()
    assert (tmp_path / "run.csv").read_bytes() == (uninterrupted / "all.csv").read_bytes()


@pytest.mark.thorough
def test_csv_and_parquet_keep_what_is_done(uninterrupted, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    arguments = (*LONG, "--resume", "run.jsonl", "--output", "run.parquet")
    done = cut_off(tmp_path, tmp_path / "run.jsonl", signal.SIGTERM, *arguments)
    assert done.returncode == 130
    kept = (tmp_path / "run.jsonl").read_text().splitlines()
    table = parquet.read_table(tmp_path / "run.parquet")
    assert 5 <= table.num_rows == len(kept)
    assert table["N"].to_pylist() == [json.loads(line)["N"] for line in kept]


def test_a_finished_run_is_printed_again_without_evaluation(run, tmp_path):
    file = tmp_path / "run.jsonl"
    first = run(*SHORT, "--resume", file)
    before = file.read_bytes()
    again = run(*SHORT, "--resume", file)
    table = first.out.partition("\nNotes")[0]
    assert again.out.startswith(table)
    assert file.read_bytes() == before


def test_output_and_resume_may_be_the_same_file(run, tmp_path):
    file = tmp_path / "run.jsonl"
    assert run(*SHORT, "--resume", file).status == 0
    assert run(*SHORT, "--resume", file, "--output", file).status == 0
    assert len(file.read_text().splitlines()) == 2


BAD = [
    (("-D", "N=10-5"), 2, "the range '10-5' is empty"),
    (("-D", "Q=3,4"), 1, "no macro or parameter Q"),
    (("--block", "q=3,4"), 2, "no loop q"),
    (("--block", "i=9-3"), 2, "is empty"),
    (("--block", "i"), 2, "is not LOOP=VALUES"),
    (("--set", "L2.sise=1MiB,2MiB"), 2, "L2.size"),
    (("--set", "L2.size=1GHz,2GHz"), 2, "no unit of data"),
    (("--set", "L2.size=4MiB-1MiB:3"), 2, "is empty"),
    (("--compiler", "no-such"), 3, "'no-such' was not found"),
    (("--cores", "1-1000"), 2, "clx has 40"),
    (("-D", "N=1-100000", "-D", "M=1-1000"), 2, "100,000,000 points"),
    (("--output", "x.txt"), 2, "end it in .csv, .jsonl, .parquet"),
    (("--output", "nowhere/x.csv"), 2, "there is no directory nowhere"),
    (("--output", "."), 2, "has no ending"),
    (("--unit", "parsec"), 2, "unknown unit 'parsec'"),
    (("--scheduler", "nonsense"), 2, "no address of a Dask scheduler"),
    (("--scheduler", "tcp://localhost:1", "--jobs", "2"), 2, "--jobs"),
    (("--plot", "x.svg", "-D", "N=1,2", "--cores", "1,2", "--set", "clock=x1,x2"), 2, "3 axes vary"),
    (("--plot", "x.svg"), 2, "nothing varies"),
    (("--plot", "-D", "N=1,2", "--format", "csv"), 2, "--plot"),
    (("--format", "csv", "--json"), 2, "--json is --format json"),
    (("-m", "no-such"), 1, "no such machine file"),
    (("--asm", "x.s", "--flags", "-O2"), 2, "the assembly is given"),
]


@pytest.mark.parametrize(("arguments", "status", "message"), BAD)
def test_bad_input_is_one_line_with_its_status(run, tmp_path, monkeypatch, arguments, status, message):
    monkeypatch.chdir(tmp_path)
    done = run("sweep", "-m", "clx", "stencil.c", *arguments)
    assert done.status == status
    assert message in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_unit_without_meaning_is_refused_before_any_row(run):
    done = run("sweep", "-m", "clx", "dot.c", "-D", "N=1000,2000", "--unit", "LUP/s")
    assert (done.status, done.out) == (2, "")
    assert "LUP/s has no meaning for this kernel" in done.err


def test_a_file_that_exists_is_refused_unless_forced(run, tmp_path):
    for ending in ("csv", "jsonl"):
        file = tmp_path / f"a.{ending}"
        file.write_text("precious")
        done = run(*SHORT, "--output", file)
        assert done.status == 2
        assert "the file exists" in done.err
        assert file.read_text() == "precious"
        assert run(*SHORT, "--output", file, "--force").status == 0
        assert "precious" not in file.read_text()


def test_a_journal_of_another_study_is_refused_and_left_alone(run, tmp_path):
    file = tmp_path / "run.jsonl"
    assert run(*SHORT, "--resume", file).status == 0
    before = file.read_bytes()
    done = run("sweep", "-m", "snb", *SHORT[3:], "--resume", file)
    assert done.status == 1
    assert "another study" in done.err
    assert file.read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_full_disk_is_named_with_the_file(run, tmp_path, ending):
    file = tmp_path / f"full.{ending}"
    file.symlink_to("/dev/full")
    done = run(*SHORT, "--output", file, "--force")
    assert done.status == 1
    assert f"{file}: cannot be written: No space left on device; make room on the disk" in done.err
    assert done.err.count("\n") == 1


def test_a_damaged_line_of_a_journal_is_named(run, tmp_path):
    file = tmp_path / "run.jsonl"
    assert run(*SHORT, "--resume", file).status == 0
    first, second, *rest = file.read_bytes().splitlines(keepends=True)
    damaged = b"".join([first, second[:200] + b"\n", *rest])
    file.write_bytes(damaged)
    done = run(*SHORT, "--resume", file)
    assert done.status == 1
    assert f"{file}:2: the line is no JSON" in done.err
    assert file.read_bytes() == damaged


def test_a_missing_pyarrow_says_what_to_install(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = run(*SHORT, "--output", tmp_path / "a.parquet")
    assert done.status == 3
    assert "kernmodel[parquet]" in done.err


def test_strict_refuses_the_first_warning(run, tmp_path):
    kernel = ("sweep", "-m", "clx", "stencil.c", "--cache", "sim", "-D", "M=200", "-D", "N=200,300")
    told = [line for line in run(*kernel).out.splitlines() if line.startswith("  warning:")]
    done = run(*kernel, "--strict")
    assert done.status == (1 if told else 0)
