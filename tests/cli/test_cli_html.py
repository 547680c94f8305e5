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
