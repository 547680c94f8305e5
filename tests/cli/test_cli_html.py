from __future__ import annotations

import pytest


def test_commands_write_pages_once(run, tmp_path):
    file = tmp_path / "triad.html"
    assert run("ecm", "-m", "clx", "triad.c", "--html", file).status == 0
    first = file.read_text(encoding="utf-8")
    assert f"kernmodel ecm -m clx triad.c --html {file}" in first
    refused = run("ecm", "-m", "clx", "triad.c", "--html", file)
    assert refused.status == 2
    assert "the file exists; give another name, or --force" in refused.err
    assert file.read_text(encoding="utf-8") == first
    assert run("ecm", "-m", "clx", "triad.c", "--html", file, "--force").status == 0


def test_a_report_whose_page_is_there_is_refused_by_the_option_that_was_given(run, tmp_path):
    file = tmp_path / "triad.html"
    file.write_text("mine")
    refused = run("report", "triad.c", "-m", "clx", "-o", file)
    assert refused.status == 2
    assert refused.err.startswith(f"kernmodel: error: -o {file}: the file exists")
    assert file.read_text() == "mine"


@pytest.mark.parametrize(
    ("name", "said"),
    [("page.pdf", "is no name of a page"), ("there/page.html", "there is no directory"), ("", "is empty")],
)
def test_places_that_cannot_be_written_are_refused_at_once(run, tmp_path, monkeypatch, name, said):
    monkeypatch.chdir(tmp_path)
    outcome = run("ecm", "-m", "clx", "triad.c", "--html", name)
    assert (outcome.status, outcome.out) == (2, "")
    assert said in outcome.err
    assert list(tmp_path.iterdir()) == []


LITTLE = ("--over", "N=1000,2000", "--without", "carm", "--without", "blocking", "--without", "sensitivity")


def test_a_report_is_written_and_told_of_in_a_line(run, tmp_path):
    file = tmp_path / "triad.html"
    done = run("report", "triad.c", "-m", "clx", "-o", file, *LITTLE)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"{file}: T_ECM = ")
    assert "kernmodel what-if -m clx triad.c --sensitivity" in file.read_text(encoding="utf-8")
    assert run("report", "triad.c", "-m", "clx", "-o", file, *LITTLE).status == 2


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ((), 2, "there is no file for the page; give -o FILE.html"),
        (("-o", "page.html", "--over", "N"), 2, "'N' is no NAME=VALUES"),
        (("-o", "page.html", "--over", "Q=1-4"), 1, "the kernel has no size Q; take one of N"),
        (("-o", "page.html", "--without", "all"), 2, "'all' is not known"),
        (("-o", "page.txt"), 2, "is no name of a page"),
        (("-o", "page.html", "--measured", "none.csv"), 1, "none.csv: cannot be read: No such file or directory"),
    ],
)
def test_reports_that_cannot_be_made_are_refused(run, tmp_path, monkeypatch, arguments, status, said):
    monkeypatch.chdir(tmp_path)
    outcome = run("report", "triad.c", "-m", "clx", *arguments)
    assert (outcome.status, outcome.out) == (status, "")
    assert said in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_reports_of_several_kernels_and_nests_compare_them(run, tmp_path):
    page, file = tmp_path / "both.html", tmp_path / "app.c"
    done = run("report", "triad.c", "copy.c", "-m", "clx", "-o", page, "-D", "N=100000")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"{page}: triad on clx: T_ECM = ")
    loop = "for (int i = 0; i < 1000; ++i) a[i] = {} * a[i];"
    file.write_text(f"double a[1000];\nvoid app(void) {{\n{loop.format(2.0)}\n{loop.format(3.0)}\n}}\n")
    done = run("report", file, "-m", "clx", "-o", page, "--force")
    assert "app nest 1 on clx" in done.out
    assert "app nest 2 on clx" in done.out
    refused = run("report", "triad.c", "copy.c", "-m", "clx", "--over", "N=1-4", "-o", page, "--force")
    assert (refused.status, refused.out) == (2, "")
    assert "--over: does not fit: kernels or machines are compared; leave it out" in refused.err


def test_a_batch_of_lines_has_no_page(run, tmp_path):
    file, page = tmp_path / "blocks.txt", tmp_path / "page.html"
    file.write_text("4801d8\n")
    outcome = run("incore", "--uarch", "skl", "--batch", file, "--json", "--html", page)
    assert (outcome.status, outcome.out) == (2, "")
    assert "--html: does not go with --batch --json" in outcome.err
    assert not page.exists()
