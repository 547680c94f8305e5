"""All components of a block together: which bind, how they are said, and the laws that hold between them."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from parameter_files import with_figures

from kernmodel.code.blocks import block_of_bytes
from kernmodel.incore.answer.analyse import analyse
from kernmodel.incore.answer.batch import BlockQuery, Cores, answer
from kernmodel.incore.answer.components import FRONT_TO_BACK
from kernmodel.incore.answer.explain import binding_components, components_of, explain
from kernmodel.incore.core import Core, Settings, analyse_block, predictions_at
from kernmodel.incore.model import InCore
from kernmodel.report.text.reasons import reason_text

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
CORES = ("SNB", "HSW", "SKL", "CLX", "ICL", "RWC")
PARTS = (
    "4801d8",
    "4803064883c708",
    "c5fb1004c8",
    "c5fb58c1",
    "c5fb590c0a",
    "c5fb110c0f",
    "90",
    "0fafc1",
    "66b83412",
    "48f7f1",
    "f20f51c1",
    "488b00",
    "50",
    "58",
    "8904244c8b2424",
    "4889d8",
)
BRANCH = "75%02x"


@cache
def core(name: str) -> Core:
    return Core.open(name, Settings())


@st.composite
def codes(draw: st.DrawFn, loop: bool | None = None) -> str:
    code = "".join(draw(st.lists(st.sampled_from(PARTS), min_size=1, max_size=7)))
    if draw(st.booleans()) if loop is None else loop:
        code += "ffc9" + BRANCH % (256 - len(code) // 2 - 4)
    return code


def incore_of(code: str, name: str = "SKL", **changes) -> InCore:
    loop = block_of_bytes(bytes.fromhex(code), file="x")
    return analyse_block(loop, core(name), replace(Settings(), **changes))


def cycles_of(incore: InCore) -> dict[str, float]:
    return {part.name: part.cycles for part in incore.components if part.applies}


@pytest.mark.parametrize(
    ("code", "name", "changes", "binding", "bound_by", "words"),
    [
        ("66b8341266b83412", "SKL", {}, "predecode", "front end", "length-changing prefix"),
        ("4801d84801d84801d84801d8", "SKL", {}, "precedence", "dependency", "the dependency chain from pass to pass"),
        ("c5f5e5c2" * 3, "SKL", {}, "ports", "throughput", "ports 0, 1"),
        ("c5fd51c1", "SKL", {}, "divider", "throughput", "port 0DV is busy"),
        ("90" * 9, "SKL", {}, "predecode", "front end", "the predecoder takes"),
    ],
)
def test_what_binds_is_said(code, name, changes, binding, bound_by, words):
    incore = incore_of(code, name, **changes)
    assert binding in binding_components(incore)
    assert incore.bound_by == bound_by
    assert words in reason_text(incore.reason)


def test_components_stand_front_to_back_and_idle_ones_do_not_apply():
    incore = incore_of("4801d84801c3ffc975f6", "HSW")
    names = [part.name for part in incore.components]
    assert names == [name for name in FRONT_TO_BACK if name in names]
    applies = {part.name: part.applies for part in incore.components}
    assert applies["LSD"] and not applies["predecode"] and not applies["DSB"]
    assert all(reason_text(part.reason) for part in incore.components)


def test_the_erratum_leads_to_the_decoders():
    """A branch that ends at a boundary of 32 bytes keeps the loop out of the µop cache on Skylake."""
    code = "4801d84801c3ffc975f6"
    free, barred = incore_of(code, offset=0), incore_of(code, offset=22)
    assert "DSB" in cycles_of(free)
    assert {"predecode", "decode"} <= set(cycles_of(barred))
    assert "decode" not in cycles_of(free)


def test_unlaminated_pairs_issue_together():
    """Three pairs do not fill groups of four as six µops would; Haswell's loop buffer ends groups, too."""
    incore = incore_of("c5f55804c8" * 3 + "ffc9" + BRANCH % (256 - 19), "HSW")
    issue = cycles_of(incore)["issue"]
    assert issue >= 7 / 4
    assert incore.prediction >= issue


def test_cores_without_front_end_know_renaming_beside_ports_and_dependencies():
    """An own core of which no more is known than the width of its front end."""
    parameters = core("ZEN2").parameters
    loop = block_of_bytes(bytes.fromhex("4801d84801c3ffc975f6"), file="x")
    incore = analyse(loop, replace(parameters, front_end=None), core("ZEN2").table)
    assert [part.name for part in incore.components] == ["issue", "ports", "precedence"]
    assert components_of(incore) == incore.components
    assert incore.components[0].cycles == 4 / 6
    assert reason_text(incore.components[0].reason) == "the renamer issues 4 µops, 6 a cycle, in 0.67 cycles per pass"


def test_explaining_simulates_the_block_without_each_part():
    incore = incore_of("c5f55804c8" * 3 + "ffc9" + BRANCH % (256 - 19), "SKL")
    assert binding_components(incore) == ("issue",)
    ideal = {item.component: item.prediction for item in explain(incore, core("SKL")).idealised}
    assert ideal["issue"] < incore.prediction


# --- laws ------------------------------------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(codes(), st.sampled_from(CORES))
def test_the_prediction_is_the_slowest_component(code, name):
    incore = incore_of(code, name)
    assert incore.prediction == max(cycles_of(incore).values())
    assert binding_components(incore)


@settings(max_examples=25, deadline=None)
@given(codes(), st.sampled_from(CORES))
def test_no_prediction_rises_when_a_component_is_idealised(code, name):
    incore = incore_of(code, name)
    for item in explain(incore, core(name)).idealised:
        assert item.prediction <= incore.prediction + 1e-9
        assert item.speed_up >= 1


@settings(max_examples=30, deadline=None)
@given(codes(), st.sampled_from(("SNB", "SKL", "ICL")), st.sampled_from(["predecode width", "decoders", "issue width"]))
def test_a_slower_front_end_is_no_faster(code, name, slowed):
    """Of the bounds; the greedy schedule itself may gain where µops come later."""
    loop, parameters, table = block_of_bytes(bytes.fromhex(code), file="x"), core(name).parameters, core(name).table
    slower = with_figures(parameters, {slowed: 2})
    before = analyse(loop, parameters, table, notion="unrolled")
    after = analyse(loop, slower, table, notion="unrolled")
    with_slower = {part.name: part.cycles for part in after.components}
    for part in before.components:
        assert part.name == "pipeline" or with_slower[part.name] >= part.cycles - 1e-9


@settings(max_examples=40, deadline=None)
@given(codes(), st.sampled_from((*CORES, "ZEN2")), st.integers(0, 63), st.sampled_from(["auto", "loop", "unrolled"]))
def test_batch_is_single(code, name, offset, notion):
    chosen = Settings(offset=offset, notion=notion)
    loop = block_of_bytes(bytes.fromhex(code), file="x")
    single = analyse_block(loop, core(name), chosen)
    result = answer(BlockQuery(1, code, name), Cores(chosen))
    assert (result.prediction, result.bound_by, result.reason) == (single.prediction, single.bound_by, single.reason)
    assert result.components == {part.name: part.cycles for part in components_of(single) if part.applies}
    assert result.binding == binding_components(single)
    warnings = [note.code for note in (*loop.notes, *single.notes) if note.kind == "warning"]
    assert result.warnings == tuple(dict.fromkeys(warnings))


@pytest.mark.thorough
@settings(max_examples=30, deadline=None)
@given(st.lists(codes(), min_size=2, max_size=5))
def test_what_came_before_in_a_batch_changes_nothing(blocks):
    cores = Cores(Settings())
    together = [answer(BlockQuery(1, code, "SKL"), cores) for code in blocks]
    assert together == [answer(BlockQuery(1, code, "SKL"), Cores(Settings())) for code in blocks]


@settings(max_examples=10, deadline=None)
@given(codes(), st.sampled_from(("SNB", "SKL")))
def test_offsets_at_once_are_offsets_one_by_one(code, name):
    loop = block_of_bytes(bytes.fromhex(code), file="x")
    at_once = list(predictions_at(loop, core(name), Settings(), range(0, 64, 9)))
    assert at_once == [incore_of(code, name, offset=offset).prediction for offset in range(0, 64, 9)]


# --- accuracy --------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["SKL", "HSW", "SNB"])
@pytest.mark.parametrize("notion", ["loop", "unrolled"])
def test_mean_difference_to_uica_on_blocks_of_applications(name, notion):
    path = DATA / "oracle" / "dev.csv.gz"
    if not path.exists():
        pytest.skip("no ../shared/data")
    with gzip.open(path, "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["arch"] == name and not float(row["n_unknown"] or 0)]
    cores = Cores(Settings(operands="easy", memory="different"))
    errors = []
    for row in rows[::6]:
        code, truth = row[f"hex_{notion}"], row[f"uica_{notion[0]}"]
        if code and truth and float(truth):
            found = answer(BlockQuery(1, code, name, notion), cores).prediction
            errors.append(abs((found or 0.0) / float(truth) - 1))
    assert fmean(errors) < 0.02
