"""What used to be accepted and meant something else, or nothing; where files go; which signs are written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernmodel import engines
from kernmodel.errors import InputError
from kernmodel.output_files import write_file

ROOT = Path(__file__).parents[2]
ECM = ("ecm", "-m", "clx", "stencil")
HEX = ("incore", "--hex", "4801d8", "--uarch")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("traffic", "-m", "clx", "stencil", "-D", "i=5"), "i is the variable of a loop"),
        (("traffic", "-m", "clx", "stencil", "-D", "N=100", "-D", "N=200"), "-D N: is given twice"),
        (("sweep", "-m", "clx", "stencil", "-D", "N=100", "-D", "N=100"), "-D N: is given twice"),
        (("ecm", "-m", "clx", "-m", "snb", "stencil"), "--machine: is given 2 times"),
        ((*ECM, "--safety", "0.5", "--safety", "1"), "--safety: is given 2 times"),
        ((*ECM, "-D", "N=１００"), "'１００'"),
        ((*ECM, "-D", "N=1_000"), "'1_000'"),
        ((*ECM, "--nest", "１"), "'１' is not a whole number"),
        ((*ECM, "--loop", "1_0"), "'1_0' is not a whole number"),
        ((*ECM, "--lines", "１-２"), "--lines"),
        ((*ECM, "--cores", "１"), "--cores"),
        ((*ECM, "--safety", "０.５"), "--safety"),
        ((*ECM, "--safety", "1e308"), "--safety"),
        ((*ECM, "--safety", "1e-300"), "--safety"),
        (("roofline", "-m", "clx", "triad", "--mask-utilization", "０.５"), "--mask-utilization"),
        (("sweep", "-m", "clx", "stencil", "--jobs", "２"), "--jobs"),
        (("sweep", "-m", "clx", "stencil", "--set", "L2.size=x２"), "--set"),
        (("what-if", "-m", "clx", "stencil", "--set", "clock=３GHz"), "clock"),
        ((*HEX, "skl", "--align", "-1"), "--align"),
        ((*HEX, "skl", "--align", "64"), "0 to 63"),
        ((*HEX, "skl", "--align", "１"), "--align"),
        ((*HEX, "skl,,hsw"), "a name is missing"),
        ((*HEX, "skl,"), "a name is missing"),
        ((*HEX, "skl", "--graph", "x.png"), ".dot, .gv, .svg"),
        ((*HEX, "skl", "--graph", "x"), ".dot, .gv, .svg"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_refused_with_status_2(run, tmp_path, monkeypatch, arguments, part):
    monkeypatch.chdir(tmp_path)
    outcome = run(*arguments)
    assert (outcome.status, outcome.out) == (2, ""), outcome
    assert part in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_the_ends_of_what_is_accepted(run):
    for arguments in ((*HEX, "skl", "--align", "63"), (*HEX, "skl", "--align", "0x3f"), (*HEX, "skl, hsw")):
        assert run(*arguments).status == 0
    assert run("sweep", "-m", "clx", "-m", "snb", "triad", "--format", "csv").status == 0


@pytest.mark.parametrize("name", ["-.inf", ".inf", "1e5", "１"])
def test_caches_have_names(run, tmp_path, name):
    from kernmodel.resources import carried_folder

    (tmp_path / "m.yml").write_text(
        (carried_folder("machine-files") / "clx.yml").read_text().replace("  L3:", f"  {name}:")
    )
    checked = run("machine", "check", tmp_path / "m.yml")
    assert checked.status == 1
    assert f"{name!r} is no name of a cache" in checked.out
    (tmp_path / "h.yml").write_text(f"{name}: {{size: 32 KiB, ways: 8}}\n")
    (tmp_path / "t.txt").write_text("L 0 8\n")
    outcome = run("simulate", tmp_path / "h.yml", tmp_path / "t.txt")
    assert outcome.status == 2
    assert f"{name!r} is no name of a cache" in outcome.err


def test_repeated_columns(run, tmp_path):
    path = tmp_path / "b.csv"
    path.write_text("hex,cycles,hex\n4801d8,1,4801d8\n")
    for arguments in (("incore", "--uarch", "skl", "--batch"), ("evaluate", "blocks", "--uarch", "skl")):
        outcome = run(*arguments, path)
        assert outcome.status == 2
        assert "b.csv: has the column 'hex' twice" in outcome.err


@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_a_batch_without_an_answer(run, tmp_path, form):
    path = tmp_path / "b.txt"
    for text, status in (("zz\n", 1), ("zz\n4801d8\n", 0), ("# nothing\n", 1), ("", 1)):
        path.write_text(text)
        outcome = run("incore", "--uarch", "skl", "--batch", path, *form)
        assert outcome.status == status
        assert ("b.txt: no block has an answer" in outcome.err) == bool(status)
    path.write_text("arch,hex,cycles\nSKL,zz,1.0\n")
    outcome = run("evaluate", "blocks", path, *form)
    assert outcome.status == 1
    assert "b.txt: no block has an answer" in outcome.err


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "out.yml"

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:3])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    for before in ([], ["out.yml"]):
        with pytest.raises(InputError, match=r"out\.yml: cannot be written: No space left on device; make room"):
            write_file(path, "much")
        assert [file.name for file in tmp_path.iterdir()] == before
        path.write_text("kept")
    assert path.read_text() == "kept"


def test_a_file_keeps_its_mode_and_its_links(tmp_path):
    path, link = tmp_path / "out", tmp_path / "link"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    write_file(link, "new")
    assert (path.read_text(), path.stat().st_mode & 0o777, link.is_symlink()) == ("new", 0o640, True)
    with pytest.raises(InputError, match="/dev/full: cannot be written: No space left"):
        write_file(Path("/dev/full"), "x" * 100_000)


@pytest.mark.parametrize(
    "arguments",
    [
        (*HEX, "skl", "--graph", "OUT.dot"),
        ("sweep", "-m", "clx", "triad", "--output", "OUT.csv", "--force"),
    ],
    ids=lambda words: words[0],
)
def test_every_message_names_its_file(run, tmp_path, arguments):
    target = next(word for word in arguments if word.startswith("OUT"))
    path = tmp_path / target
    path.symlink_to("/dev/full")
    outcome = run(*(path if word == target else word for word in arguments))
    assert outcome.status in (1, 2)
    assert f"{path}: cannot be written: No space left on device" in outcome.err


def apart(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    inherited = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-m", "kernmodel", *arguments]
    return subprocess.run(command, env=inherited, capture_output=True, check=False)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "environment",
    [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}],
    ids=lambda environment: " ".join(environment),
)
def test_the_c_locale(environment):
    done = apart("traffic", "-m", "clx", "triad", "-v", **environment)
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert b"?" not in done.stdout
    helped = apart("sweep", "-h", **environment)
    assert (helped.returncode, helped.stdout.isascii(), helped.stderr) == (0, True, b"")
    assert b"10^7" in helped.stdout
    refused = apart("kernel", "show", "ö‖", **environment)
    assert (refused.returncode, refused.stderr.isascii()) == (1, True)


def test_every_sign_of_the_package_has_a_spelling():
    from kernmodel.report.text.render import to_ascii

    signs = {sign for path in (ROOT / "kernmodel").rglob("*.py") for sign in path.read_text(encoding="utf-8")}
    unknown = {sign for sign in signs if not sign.isascii() and "\\" in to_ascii(sign).replace("\\", "", sign == "⌉")}
    assert unknown <= set("\ufeff\U0010ffff")


def test_notes_and_bottleneck_fit_the_terminal():
    from kernmodel.errors import Note
    from kernmodel.report.layout import Fields
    from kernmodel.report.text.render import Style, render
    from kernmodel.report.text.sections import notes_section

    note = Note(
        "x", "caches are taken as fully associative with LRU replacement, and much more is said of them", "warning"
    )
    blocks = (Fields((("bottleneck", "Memory bandwidth: T_L3Mem takes 34 % of the 25.8 cy/CL at 54.8 GB/s."),)),)
    for width in (40, 60, 200):
        text = render((*notes_section([note]), *blocks), Style(width=width))
        assert max(map(len, text.splitlines())) <= width
        assert " ".join(text.split()) == " ".join(render((*notes_section([note]), *blocks), Style()).split())
    assert len(render(notes_section([note]), Style(width=60)).splitlines()) == 3


def test_a_missing_engine_is_said_once(run, monkeypatch, tmp_path):
    with monkeypatch.context() as patched:
        patched.setattr("kernmodel.machine.load.list_machines", lambda: engines.missing.add("_engine") or ())
        outcome = run("machine", "list", "--json")
    assert outcome.err == (
        "kernmodel: note: the compiled engine _engine is missing: slow Python did its work; "
        "install kernmodel where there is a C compiler\n"
    )
    assert run("machine", "list", "--json").err == ""
    assert engines.load_engine(tmp_path / "_none.so") is None
    assert engines.missing == {"_none"}
    engines.missing.clear()
