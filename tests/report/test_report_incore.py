"""The in-core reports that are asked for: components, explanation, alignments, tables, graphs, evaluations."""

from __future__ import annotations

import dataclasses

import pytest
from text_reports import line_with, text_of

from kernmodel.errors import ToolError
from kernmodel.evaluate.model import BlockFile, Category, Evaluation, Group, Judged, KnownBlock
from kernmodel.evaluate.statistics import Summary
from kernmodel.incore.answer.batch import BlockResult
from kernmodel.incore.answer.explain import explain
from kernmodel.incore.dependences.cycles import Edge
from kernmodel.incore.dependences.graph import Graph
from kernmodel.incore.model import Reason, Why
from kernmodel.report.dependency_graph import dot_text, svg_of
from kernmodel.report.layout import cells
from kernmodel.report.text.binding import bound_text
from kernmodel.report.text.evaluation import evaluation_report
from kernmodel.report.text.explanation import alignment_section, explanation_section
from kernmodel.report.text.incore import BLOCK_COLUMNS, OUTCOME_COLUMNS, components_section, incore_report
from kernmodel.report.text.render import Style
from kernmodel.studies.predict.incore import Alignment, Outcome

PLAIN = Style()


def test_components_front_to_back_with_marks(incore_answer):
    text = text_of(components_section(incore_answer.incore))
    names = [line.split()[0] for line in text.splitlines()[3:12]]
    assert names == ["predecode", "decode", "DSB", "LSD", "issue", "ports", "divider", "precedence", "pipeline"]
    assert line_with(text, "LSD").split() == ["LSD", "n/a"]
    assert line_with(text, "(5.00)").split()[:2] == ["decode", "(5.00)"]
    assert line_with(text, "precedence").split()[:4] == ["precedence", "4.00", "100", "%"]
    assert "binds" in line_with(text, "precedence")
    assert "binds" not in line_with(text, "ports")
    assert "in brackets" in text


def test_no_components_no_section(incore_answer):
    bare = dataclasses.replace(incore_answer.incore, components=())
    assert components_section(bare) == ()
    assert "maximum of TP and LCD" in text_of(incore_report(dataclasses.replace(incore_answer, incore=bare)))
    assert bound_text(bare) == "precedence"


def test_headline_comes_before_the_tables(incore_answer):
    text = text_of(incore_report(incore_answer))
    assert text.index("4.00 cy per pass") < text.index("Components") < text.index("Port pressure")


def test_notion_and_offset_are_said(incore_answer):
    unrolled = dataclasses.replace(incore_answer.incore, notion="unrolled", offset=13)
    text = text_of(incore_report(dataclasses.replace(incore_answer, incore=unrolled)))
    assert "(unrolled), first byte at 13 modulo 64" in text


def test_an_estimated_row_is_marked(incore_answer):
    incore = incore_answer.incore
    guessed = dataclasses.replace(incore.rows[0], source="estimated as add r64,r64: a table")
    changed = dataclasses.replace(incore, rows=(guessed, *incore.rows[1:]))
    text = text_of(incore_report(dataclasses.replace(incore_answer, incore=changed)))
    assert [line[:1] for line in text.splitlines() if "vaddpd" in line] == ["~"]
    assert "~ no row either, but estimated" in text


def test_the_explanation_names_what_binds_and_what_would_help(incore_answer):
    incore = incore_answer.incore
    text = text_of(explanation_section(incore, explain(incore)))
    assert line_with(text, "binds  ").split() == ["binds", "precedence"]
    assert "ports, 1.50 cy per pass: 2.50 cy below the prediction" in text
    assert "Longest loop-carried dependency: 4.00 cy per pass" in text
    assert line_with(text, "2.67×").split() == ["precedence", "1.50", "2.67×", "ports"]
    assert "port 0" in text


def test_a_block_without_another_bound(incore_answer):
    only = incore_answer.incore.components[-1:]
    incore = dataclasses.replace(incore_answer.incore, components=only)
    assert "no bound" in text_of(explanation_section(incore, explain(incore)))


def test_alignments_as_ranges(incore_answer):
    incore = incore_answer.incore
    text = text_of(alignment_section((Alignment(4.0, (0, 1, 2, 7, 9, 10), incore), Alignment(5.0, (3,), incore))))
    assert "0-2, 7, 9-10" in text
    assert line_with(text, "5.00").split()[-1] == "3"


def test_a_row_of_the_table_over_cores(incore_answer):
    row = cells(OUTCOME_COLUMNS, Outcome("SKL", incore_answer.loop, incore_answer))
    assert row[0] == "SKL"
    assert row[3:5] == ("4.00", "precedence")
    assert "1 unknown instruction" in row[5]
    refused = Outcome("SNB", incore_answer.loop, None, "needs AVX2")
    assert cells(OUTCOME_COLUMNS, refused)[3:] == ("-", "-", "needs AVX2")


def test_rows_of_a_batch():
    good = BlockResult(
        1, "90", "SKL", "loop", 0.25, "front end", Reason(Why.NO_PORT), {"issue": 0.25}, ("issue",), ("x r",)
    )
    bad = BlockResult(2, "zz", "SKL", error="no hex")
    assert [cells(BLOCK_COLUMNS, result) for result in (good, bad)] == [
        ("1", "0.25", "issue", "loop", "90 (unknown: x r)"),
        ("2", "-", "-", "-", "no hex"),
    ]


GRAPH = Graph(
    owners=(0, 0, 1),
    carriers=("loaded", "zmm1", "zmm2"),
    entry=(0.0, 0.0, 0.0),
    edges=(Edge(0, 1, 4.0, 0), Edge(1, 2, 3.0, 0), Edge(2, 0, 5.0, 1)),
    latencies=(4.0, 3.0, 0.0),
    blocked=(),
    incomparable=False,
)


def test_the_graph_in_dot(incore_answer):
    incore = incore_answer.incore
    quoted = dataclasses.replace(incore.rows[1].instruction, text='vmulpd "x"')
    incore = dataclasses.replace(
        incore, rows=(incore.rows[0], dataclasses.replace(incore.rows[1], instruction=quoted), incore.rows[2])
    )
    text = dot_text(incore, GRAPH, "a title")
    assert 'i1 [label="2: vmulpd \\"x\\""]' in text
    assert "(load, then 4 cy)" in line_with(text, "i0 [")
    assert 'i0 -> i1 [label="zmm1: 3 cy"]' in text
    assert 'i1 -> i0 [label="zmm2: 5 cy, next pass", style=dashed]' in text
    assert text.count("{") == text.count("}") == 1


def test_drawing_needs_graphviz(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ToolError, match="Graphviz"):
        svg_of("digraph {}")


def test_drawing_by_graphviz(tmp_path, monkeypatch):
    tool = tmp_path / "dot"
    tool.write_text('#!/bin/sh\n[ "$1" = -Tsvg ] && read line && echo "<svg>$line</svg>"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert svg_of("digraph {}\n") == "<svg>digraph {}</svg>\n"
    tool.write_text("#!/bin/sh\necho broken >&2\nexit 1\n")
    with pytest.raises(ToolError, match="broken"):
        svg_of("digraph {}")


def test_an_evaluation_as_text():
    block = KnownBlock(7, "SKL", "4801d8", "loop", None, 2.0, {"uica": 1.0}, None, True)
    result = BlockResult(
        7,
        "4801d8",
        "SKL",
        "loop",
        1.0,
        "dependency",
        Reason(Why.NO_DEPENDENCY),
        {"ports": 0.25, "precedence": 1.0},
        ("precedence",),
    )
    summary, peer = Summary(1, 50.0, 50.0, None, (0.0, 0.0, 0.0)), Summary(0, None, None, None, (0.0, 0.0, 0.0))
    evaluation = Evaluation(
        BlockFile("b.csv", "BHive", "measured", "measured", ("measured",), (block,), ((3, "no code"),)),
        groups=(Group("SKL", "loop", {"kernmodel": summary, "uica": peer}),),
        categories=(Category("what binds", "precedence", {"kernmodel": summary, "uica": peer}),),
        worst=(Judged(block, result, 1.0, 50.0),),
        failed=tuple((line, "broken") for line in range(20)),
        left_out=2,
        uncertain=1,
    )
    text = text_of(evaluation_report(evaluation))
    assert "1 predicted, 20 refused, 2 left out" in text
    assert line_with(text, "SKL   loop    kernmodel").split()[3:6] == ["1", "50.00", "50.00"]
    assert line_with(text, "SKL   loop    uica").split()[3:] == ["0", *["-"] * 6]
    assert "line 7, SKL, loop: kernmodel 1.00, measured 2.00 cy per pass (-50.0 %)" in text
    assert "add rax,rbx" in text
    assert "… and 15 more" in text
