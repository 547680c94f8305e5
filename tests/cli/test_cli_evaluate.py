"""`kernmodel evaluate`."""

from __future__ import annotations

import json

import pytest

TABLE = """arch,hex,measured,uica,facile,sane
SKL,4801d8,1.0,1.0,1.0,1
SKL,480fafc3,3.1,3.0,3.0,1
SKL,480fafc3,3.1,3.0,3.0,0
HSW,4801d8,1.0,1.0,1.0,1
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "blocks.csv"
    path.write_text(TABLE)
    return path


def test_statistics_beside_the_peers(run, table):
    outcome = run("evaluate", "blocks", table, "--worst", "1")
    assert (outcome.status, outcome.err) == (0, "")
    assert "4 predicted, 0 refused, 0 left out" in outcome.out
    assert "HSW   unrolled  facile" in outcome.out
    assert outcome.out.count("cy per pass (") == 1


def test_choices_and_json(run, table):
    arguments = ("--uarch", "skl", "--sane", "--distinct", "--column", "uica", "--json")
    document = json.loads(run("evaluate", "blocks", table, *arguments).out)
    assert (document["schema"], document["reference"], document["kind"]) == ("kernmodel.evaluation/1", "uica", "model")
    (group,) = document["groups"]
    assert (group["core"], group["summaries"][0]["predictor"], group["summaries"][0]["count"]) == (
        "SKL",
        "kernmodel",
        2,
    )
    assert document["left_out"] == 2


@pytest.mark.parametrize(
    ("arguments", "status", "part"),
    [
        (("--notion", "loop"), 1, "no block to evaluate"),
        (("--uarch", "zen"), 1, "no block to evaluate"),
        (("--uarch", "pentium"), 1, "pentium"),
        (("--column", "iaca"), 2, "choose measured"),
    ],
)
def test_what_cannot_be_evaluated(run, table, arguments, status, part):
    outcome = run("evaluate", "blocks", table, *arguments)
    assert outcome.status == status
    assert part in outcome.err


def test_a_file_that_is_not_there(run, tmp_path):
    for path in (tmp_path, tmp_path / "missing.csv"):
        outcome = run("evaluate", "blocks", path)
        assert (outcome.status, outcome.out) == (1, "")
        assert "cannot be read" in outcome.err or "is a directory" in outcome.err


LOOP = """.L3:
        vmovupd (%rsi,%rax), %ymm0
        vmovupd %ymm0, (%rdi,%rax)
        addq    $32, %rax
        cmpq    %rax, %rdx
        jne     .L3
"""


def test_kernels_as_text_document_and_picture(run, tmp_path):
    (tmp_path / "copy.s").write_text(LOOP)
    file, picture = tmp_path / "kernels.csv", tmp_path / "copy.svg"
    rows = ("n=1000,1,2.5", "n=20000000,1,40", "n=30000000,2,20")
    source = "void copy(int n, double a[restrict n], double b[restrict n]) { for (int i = 0; i < n; ++i) a[i] = b[i]; }"
    (tmp_path / "copy.c").write_text(source)
    lines = [f"copy,copy.c,copy.s,clx,{row}" for row in rows]
    file.write_text("\n".join(("kernel,source,listing,machine,sizes,cores,measured", *lines, "copy,,,clx,n=1,1,x")))
    outcome = run("evaluate", "kernels", file, "--sample", "2", "--cache", "lc", "--jobs", "1", "--plot", picture)
    assert outcome.status == 0, outcome.err
    assert "3 predicted, 0 refused, 1 skipped" in outcome.out
    assert "measured" in picture.read_text()
    document = json.loads(run("evaluate", "kernels", file, "--cache", "lc", "--jobs", "1", "--json").out)
    assert document["schema"] == "kernmodel.kernel-evaluation/1"
    assert len(document["series"][0]["points"]) == 3
    assert run("evaluate", "kernels", file, "--machine", "zen", "--jobs", "1").status == 1
