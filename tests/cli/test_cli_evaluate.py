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
