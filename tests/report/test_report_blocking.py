"""The report and the document of `kernmodel blocking`, of answers made by hand."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from key_paths import NAMED, key_paths

from kernmodel.errors import Note, UsageError
from kernmodel.formulas.formula import size
from kernmodel.models.ecm import ScalingPoint
from kernmodel.models.outside import OutsideWork
from kernmodel.report.json.blocking import blocking_document
from kernmodel.report.json.document import dumps
from kernmodel.report.text.blocking import blocking_report, headline
from kernmodel.report.text.render import Style, render
from kernmodel.studies.blocking.answer import BlockingAnswer, BlockLimit, Candidate, MemoryRun, TemporalPotential
from kernmodel.uncertainty import Interval

GOLDEN = Path(__file__).parent / "schemas" / "studies"
B_I, B_J, N = map(size, ("B_i", "B_j", "N"))
LIMIT = BlockLimit(
    cache="L2",
    capacity_bytes=262144.0,
    carried_by="j",
    accesses=("a[j-1][i]", "a[j+1][i]"),
    loops=("i",),
    required_bytes=32 * B_I * N**2 + 16,
    solved={"i": "B_i ≤ 448 (N = 5000)"},
    largest={"i": 448},
    lines_saved=2.0,
)
OUTSIDE = OutsideWork(448.0, 0.02, 0.25, 0.125, 0.5, "unknown", known=True)
BOTH = dataclasses.replace(
    LIMIT, loops=("j", "i"), solved={"j": "B_j ≤ 9 (B_i = 99)", "i": "B_i ≤ 99 (B_j = 9)"}, largest={"j": 9, "i": 99}
)


@pytest.fixture
def answer(ecm_answer) -> BlockingAnswer:
    prediction = ecm_answer.prediction
    faster = dataclasses.replace(prediction, levels=(*prediction.levels[:-1], ("Mem", 17.25)), outside=OUTSIDE)
    best = Candidate(
        blocks={"i": 448},
        cache="L2",
        limit=LIMIT,
        traffic=ecm_answer.traffic,
        halo_share=0.0123,
        prediction=faster,
        speedup=prediction.cycles / 17.25,
        because="block i to 448: the rows of a need 32*B_i*N**2 + 16 B of 256 KiB in L2",
        run=MemoryRun(3584.0, "a[j+1][i]", None),
    )
    second = dataclasses.replace(best, blocks={"j": 9, "i": 96}, limit=BOTH, because="rows fit too.")
    return BlockingAnswer(
        before=ecm_answer,
        limits=(LIMIT, BOTH),
        candidates=(best, second),
        saturated=(all_cores(6.4), all_cores(3.2)),
        temporal=(TemporalPotential("L2", 9.0, 2.4),),
        refused={"k": "the statement in line 9 stands between the loops"},
        sweep=((64, prediction), (448, faster), (1024, prediction)),
        notes=(Note("block-safety", "a factor", "assumption"),),
    )


def text_of(answer: BlockingAnswer, unit: str = "cy/CL", *, verbose: bool = False, ascii_only: bool = False) -> str:
    return render(blocking_report(answer, unit, verbose=verbose), Style(ascii_only=ascii_only))


def section(text: str, title: str) -> list[str]:
    lines = text.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith(title))
    return lines[start : next((k for k in range(start, len(lines)) if not lines[k]), len(lines))]


def test_the_headline_says_what_to_do_and_why(answer):
    assert headline(answer, "cy/CL") == (
        "block i to 448 in L2: 21.40 → 17.25 cy/CL from memory (1.24×),",
        "because the rows of a need 32·B_i·N^2 + 16 B of 256 KiB in L2.",
    )
    assert "748.1 MLUP/s → 928.2 MLUP/s" not in headline(answer, "LUP/s")[0]
    assert "block i to 448 in L2: 747.7 → 927.5 MLUP/s from memory" in headline(answer, "LUP/s")[0]
    both = dataclasses.replace(answer, candidates=answer.candidates[1:])
    assert headline(both, "cy/CL")[0].startswith("block j to 9 and i to 96 in L2")


def test_a_unit_without_meaning_is_refused(answer):
    work = dataclasses.replace(answer.before.prediction.work, updates_per_iteration=None)
    before = dataclasses.replace(answer.before, prediction=dataclasses.replace(answer.before.prediction, work=work))
    with pytest.raises(UsageError):
        text_of(dataclasses.replace(answer, before=before), "LUP/s")


def all_cores(cycles: float, interval: Interval | None = None) -> ScalingPoint:
    return ScalingPoint(8, 1, 1 / cycles, cycles, 1.0, True, 4 * cycles, interval)


def test_all_cores_have_both_ends_where_their_memory_is_not_known(answer) -> None:
    """What a block saves of memory is worth less to cores that share nothing of it."""
    before, after = Interval(2.0, 6.4, "memory", ""), Interval(1.6, 3.2, "memory", "")
    unsure = dataclasses.replace(answer, saturated=(all_cores(6.4, before), all_cores(3.2, after)))
    text = text_of(unsure)
    assert "6.40 cy/CL (2.00 to 6.40)" in text and "3.20 cy/CL (1.60 to 3.20) (2.00× (1.25× to 2.00×))" in text
    document = blocking_document(unsure, "cy/CL")["saturated"]
    assert document["after"]["cycles_interval"]["low"] == 1.6
    assert "cycles_interval" not in blocking_document(answer, "cy/CL")["saturated"]["after"]


def test_candidates_stand_in_order(answer):
    rows = section(text_of(answer), "Candidates")
    assert rows[0].endswith("(without blocking 21.40 cy/CL and 3.00 CL from and to memory)")
    assert rows[3].startswith("i = 448        L2   21.40 → 17.25     1.24×       3.00  1.2%")
    assert rows[3].endswith("3.5 KiB *  reuse along j fits")
    assert rows[4].startswith("j = 9, i = 96  L2   21.40 → 17.25     1.24×       3.00  1.2%")
    assert rows[5].startswith("  * runs from memory below 4 KiB: what they cost was not measured on this machine")


def test_runs_are_marked_where_they_are_short_and_nobody_measured_them(answer):
    for run, cell in (
        (MemoryRun(3584.0, "a[j][i]", 1.5), "3.5 KiB"),
        (MemoryRun(4096.0, "a[j][i]", None), "4 KiB"),
        (None, "-"),
    ):
        candidate = dataclasses.replace(answer.candidates[0], run=run)
        known = dataclasses.replace(answer, candidates=(candidate,))
        assert f"  {cell}  reuse along j fits" in text_of(known)
        assert "restart streams" not in text_of(known)
        document = blocking_document(known, "cy/CL")["candidates"][0]["run"]
        assert document is None if run is None else not document["marked"]
    marked = blocking_document(answer, "cy/CL")["candidates"][0]["run"]
    assert marked["marked"] and not marked["measured"] and "may restart streams" in marked["text"]


def test_many_candidates_are_cut_without_verbose(answer):
    many = dataclasses.replace(answer, candidates=answer.candidates[:1] * 11)
    assert "… and 3 candidates more (-v)" in text_of(many)
    assert len(section(text_of(many, verbose=True), "Candidates")) == 3 + 11 + 1


def test_conditions_are_closed_forms(answer):
    rows = section(text_of(answer), "Layer conditions that fail")
    assert "(32·B_i·N^2 + 16) B ≤ 256 KiB" in rows[3]
    assert "B_i ≤ 448 (N = 5000)" in rows[3] and "a[j-1][i], a[j+1][i]" in rows[3]
    assert "B_j ≤ 9 (B_i = 99); B_i ≤ 99 (B_j = 9)" in rows[4]


def test_the_rest_of_the_report(answer):
    text = text_of(answer)
    assert "caches            as 1 active core has them, safety factor 1 on their sizes" in text
    assert section(text, "Loops that may not")[1] == "  k  the statement in line 9 stands between the loops"
    assert [line.split() for line in section(text, "All 8 cores of a ccNUMA domain")[1:]] == [
        ["without", "blocking", "6.40", "cy/CL"],
        ["i", "to", "448", "3.20", "cy/CL", "(2.00×)"],
    ]
    assert section(text, "Blocking in time: potential only")[3].split() == ["L2", "9.00", "2.40×"]
    assert "assumption: a factor" in text
    assert text_of(answer, ascii_only=True).isascii()


def test_verbose_has_the_parts_of_the_best_candidate(answer):
    text = text_of(answer, verbose=True)
    parts = "0.25 remainder + 0.12 outer loops + 0.50 exits, if mispredicted; each entry of the inner loop has 448"
    assert f"T_out = 0.88 cy/CL, beside all other times ({parts} iterations)" in text
    assert section(text, "Why, candidate")[2].endswith("rows fit too.")
    assert "Traffic per path" in text
    assert section(text, "Times over block sizes")[3].split()[0] == "64"
    assert "block of i" in text


def test_references_with_one_condition_stand_in_one_row(answer):
    more = dataclasses.replace(LIMIT, accesses=("b[j-1][i]",), lines_saved=1.0)
    rows = section(text_of(dataclasses.replace(answer, limits=(LIMIT, more, BOTH))), "Layer conditions")[3:]
    assert len([row for row in rows if row.startswith("L2")]) == 2
    assert rows[0].split()[-4:] == ["3.00", "a[j-1][i],", "a[j+1][i],", "b[j-1][i]"]


def test_nothing_is_gained(answer):
    why = Note("nothing-to-block", "blocking buys nothing: all reuse fits as it is", "assumption")
    nothing = dataclasses.replace(answer, candidates=(), limits=(), saturated=None, temporal=(), sweep=(), notes=(why,))
    assert text_of(nothing, verbose=True).count("blocking buys nothing: all reuse fits as it is") == 1
    assert headline(dataclasses.replace(nothing, notes=()), "cy/CL") == ("blocking buys nothing",)
    assert "Layer conditions that fail" in text_of(dataclasses.replace(nothing, limits=(LIMIT,)))


def test_lines_of_memory_count_both_ways(answer):
    assert answer.before.traffic.memory_lines == 3.0


def test_the_document_has_its_schema(answer):
    document = json.loads(dumps(blocking_document(answer, "cy/CL")))
    assert document["schema"] == "kernmodel.blocking/1"
    named = {*NAMED, "blocks", "solved", "largest", "refused", "times"}
    assert sorted(key_paths(document, named)) == (GOLDEN / "blocking-1.txt").read_text().split()


def test_the_document_has_the_numbers(answer):
    document = blocking_document(answer, "cy/CL")
    assert document["headline"]["before"] == 21.4 and document["headline"]["after"] == 17.25
    best = document["candidates"][0]
    assert best["blocks"] == {"i": 448} and best["prediction"]["cycles"] == 17.25
    assert best["short_loops"] == {
        "length": 448.0,
        "entries": 0.02,
        "remainder_cycles": 0.25,
        "outer_cycles": 0.125,
        "entry_cycles": 0.5,
        "cycles": 0.875,
        "overlap_cycles": 0.0,
        "straight_cycles": 0.0,
        "exit": "unknown",
        "known": True,
    }
    assert best["limit"]["required_bytes"] == "32*B_i*N**2 + 16"
    assert document["saturated"]["after"]["cycles"] == 3.2
    assert document["sweep"]["loop"] == "i" and [p["block"] for p in document["sweep"]["points"]] == [64, 448, 1024]
    nothing = dataclasses.replace(answer, candidates=(), saturated=None, sweep=())
    assert json.loads(dumps(blocking_document(nothing, "cy/CL")))["sweep"] == {"loop": None, "points": []}
