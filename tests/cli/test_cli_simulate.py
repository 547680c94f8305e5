"""`kernmodel simulate`: traces, machines, cases files, and the ways to ask for them that do not work."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

CACHES = "L1: {sets: 2, ways: 2, load_from: L2, store_to: L2}\nL2: {size: 1 KiB, ways: 4}\n"
TRACE = "# two lines, one of them written\nL 0x0 8\nS 8 8\nL 64 8\nN 4096 64\n"
CASES = {
    "cases": [
        {
            "id": name,
            "levels": [{"name": "L1", "sets": 4, "ways": 2, "load_from": "MEM", "store_to": "MEM"}],
            "sequence": {"kind": "streams", "n": 800, "loads": 1},
            "repeat": 2,
            "phases": [{"L1": {"load_misses": misses}, "MEM": {"memory_loads": 200}}, {"L1": {"loads": 800}}],
        }
        for name, misses in (("good", 100), ("bad", 99))
    ]
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "caches.yml").write_text(CACHES)
    (tmp_path / "trace.txt").write_text(TRACE)
    (tmp_path / "cases.json").write_text(json.dumps(CASES))
    return tmp_path


def test_a_trace_as_text(run, files):
    outcome = run("simulate", "caches.yml", "trace.txt")
    assert (outcome.status, outcome.err) == (0, "")
    table = {line.split()[0]: line.split() for line in outcome.out.splitlines() if line[:2] in ("L1", "L2")}
    assert table["L1"][1:] == ["2", "0", "2", "1", "1", "0", "0", "0", "0"]
    assert table["L2"][1:] == ["2", "0", "2", "0", "0", "0", "0", "0", "0"]
    assert "streamed lines  1" in outcome.out
    assert "accesses     4 from trace.txt" in outcome.out


def test_a_trace_in_json(run, files):
    document = json.loads(run("simulate", "caches.yml", "trace.txt", "--json").out)
    assert document["schema"] == "kernmodel.simulation/1"
    assert document["accesses"] == 4
    assert (document["accesses_from"], document["caches_from"], document["case"]) == ("trace.txt", "caches.yml", None)
    assert [level["load_from"] for level in document["hierarchy"]["levels"]] == ["L2", "MEM"]
    (phase,) = document["phases"]
    assert phase["L1"]["store_hits"] == 1
    assert phase["MEM"] == {"memory_loads": 2, "memory_stores": 0, "streamed_lines": 1, "streamed_parts": 0}
    assert document["differences"] is None


def test_phases_count_anew(run, files):
    first, second = json.loads(run("simulate", "caches.yml", "trace.txt", "--repeat", 2, "--json").out)["phases"]
    assert (first["L1"]["load_misses"], second["L1"]["load_misses"]) == (2, 0)
    assert "Phase 2" in run("simulate", "caches.yml", "trace.txt", "--repeat", 2).out


def test_policy_and_seed_are_those_asked_for(run, files):
    document = json.loads(run("simulate", "caches.yml", "trace.txt", "--policy", "random", "--seed", 9, "--json").out)
    assert [level["policy"] for level in document["hierarchy"]["levels"]] == ["RANDOM", "RANDOM"]
    assert document["hierarchy"]["seed"] == 9


def test_both_engines_count_the_same(run, files):
    found = [
        json.loads(run("simulate", "caches.yml", "trace.txt", "--json", *options).out)["phases"]
        for options in ([], ["--engine", "python"], ["--no-skip"])
    ]
    assert found[0] == found[1] == found[2]


def test_a_trace_from_standard_input(files):
    code = "import sys; from kernmodel.cli.main import main; sys.exit(main(['simulate', 'caches.yml', '-', '--json']))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=TRACE, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["accesses"] == 4
    done = subprocess.run(command, input="L 0 8\nL 0\n", capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("kernmodel: error: standard input:2: 'L 0' is no access")


def test_the_caches_of_a_machine(run, files):
    one, four = (
        json.loads(run("simulate", "-m", "clx", "trace.txt", "--json", *options).out)["hierarchy"]["levels"]
        for options in ([], ["--cores", 4])
    )
    assert [level["name"] for level in one] == ["L1", "L2", "L3"]
    assert one[1]["victim_level"] == "L3"
    assert four[2]["sets"] * 4 == one[2]["sets"]
    assert four[:2] == one[:2]


def test_it_starts_without_what_it_does_not_need(files):
    code = (
        "from kernmodel.cli.main import main; main(['simulate', 'caches.yml', 'trace.txt']); import sys;"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {"numpy", "sympy", "pycparser", "rich", "pint", "kernmodel.source", "kernmodel.incore"}


def test_a_check_names_what_differs(run, files):
    outcome = run("simulate", "--cases", "cases.json")
    assert outcome.status == 1
    assert outcome.out.splitlines() == [
        "good: ok",
        "bad: phase 1: L1 load_misses: 99 expected, 100 counted",
        "2 cases, 1 with differences",
    ]


def test_a_check_in_json(run, files):
    outcome = run("simulate", "--cases", "cases.json", "--json")
    assert outcome.status == 1
    document = json.loads(outcome.out)
    assert document["schema"] == "kernmodel.simulation-check/1"
    assert [(case["case"], case["ok"]) for case in document["cases"]] == [("good", True), ("bad", False)]
    assert document["cases"][1]["differences"] == [
        {"phase": 1, "level": "L1", "counter": "load_misses", "expected": 99, "counted": 100}
    ]


def test_a_check_in_which_nothing_differs(run, files):
    (files / "one.json").write_text(json.dumps(CASES["cases"][0]))
    outcome = run("simulate", "--cases", "one.json")
    assert (outcome.status, outcome.out) == (0, "good: ok\n1 case, all as stated\n")


def test_one_case_prints_its_counters(run, files):
    outcome = run("simulate", "--cases", "cases.json", "--case", "good")
    assert outcome.status == 0
    assert "all as stated" in outcome.out
    outcome = run("simulate", "--cases", "cases.json", "--case", "bad", "--json")
    assert outcome.status == 1
    document = json.loads(outcome.out)
    assert document["phases"][0]["L1"]["load_misses"] == 100
    assert len(document["differences"]) == 1


def test_the_phases_of_a_document_are_those_of_a_cases_file(run, files):
    """What one prints, the other accepts."""
    case = CASES["cases"][0]
    document = json.loads(run("simulate", "--cases", "cases.json", "--case", "good", "--json").out)
    levels = document["hierarchy"]["levels"]
    (files / "own.json").write_text(json.dumps(case | {"levels": levels, "phases": document["phases"]}))
    assert run("simulate", "--cases", "own.json").out.startswith("good: ok\n")


def test_a_case_on_other_caches(run, files):
    outcome = run("simulate", "caches.yml", "cases.json", "--case", "bad", "--json")
    assert outcome.status == 0
    document = json.loads(outcome.out)
    assert (document["case"], document["caches_from"], document["differences"]) == ("bad", "caches.yml", None)
    assert set(document["phases"][0]) == {"L1", "L2", "MEM"}


REFUSED = {
    "nothing": ([], 2, "needs the caches and the accesses; write kernmodel simulate HIERARCHY TRACE"),
    "no trace": (["caches.yml"], 2, "needs the caches and the accesses"),
    "three files": (["caches.yml", "trace.txt", "trace.txt"], 2, "takes two files"),
    "a machine and two files": (["-m", "clx", "caches.yml", "trace.txt"], 2, "-m: takes one file, not 2"),
    "cores without a machine": (["--cores", "2", "caches.yml", "trace.txt"], 2, "--cores: shares the caches"),
    "too many cores": (["-m", "clx", "--cores", "999", "trace.txt"], 2, "999"),
    "cases and a hierarchy": (["--cases", "cases.json", "caches.yml"], 2, "--cases: takes the caches from its file"),
    "cases and a machine": (["--cases", "cases.json", "-m", "clx"], 2, "--cases: takes the caches from its file"),
    "a check with another policy": (["--cases", "cases.json", "--policy", "FIFO"], 2, "leave out --policy"),
    "a case of a trace": (["caches.yml", "trace.txt", "--case", "x"], 2, "trace.txt is a trace"),
    "an unknown case": (["--cases", "cases.json", "--case", "goop"], 1, "no case 'goop'; did you mean 'good'?"),
    "several cases and no choice": (["caches.yml", "cases.json"], 1, "holds 2 cases; choose one with --case"),
    "an unknown policy": (["caches.yml", "trace.txt", "--policy", "LFU"], 2, "--policy"),
    "no phases": (["caches.yml", "trace.txt", "--repeat", "0"], 2, "--repeat"),
    "absurdly many phases": (["caches.yml", "trace.txt", "--repeat", "99999999"], 2, "--repeat"),
    "an unknown machine": (["-m", "nine", "trace.txt"], 1, "nine: no such machine file"),
    "a missing hierarchy": (["absent.yml", "trace.txt"], 1, "absent.yml: cannot be read: No such file"),
    "a missing trace": (["caches.yml", "absent.txt"], 1, "absent.txt: cannot be read: No such file"),
    "missing cases": (["--cases", "absent.json"], 1, "absent.json: cannot be read: No such file"),
    "a directory for a trace": (["caches.yml", "."], 1, ".: is a directory, not a trace"),
    "a directory for a hierarchy": ([".", "trace.txt"], 1, ".: is a directory, not a hierarchy"),
    "an empty name": (["", "trace.txt"], 1, "is a directory"),
    "a trace for a hierarchy": (["trace.txt", "trace.txt"], 1, "trace.txt:"),
    "a hierarchy for a trace": (["caches.yml", "caches.yml"], 1, "caches.yml:1: holds no case"),
    "a hierarchy for cases": (["--cases", "caches.yml"], 1, "caches.yml:1: holds no case"),
}


@pytest.mark.parametrize(("arguments", "status", "part"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(run, files, arguments, status, part):
    outcome = run("simulate", *arguments)
    assert outcome.status == status, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("kernmodel: error: ")
    assert outcome.err.count("\n") == 1
    assert part in outcome.err
