from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from key_paths import NAMED, key_paths, last_keys

import kernmodel
from kernmodel.cachesim.model import CacheSpec, Counters, Hierarchy, LevelCounters
from kernmodel.cachesim.run import CheckedCase, Difference, Simulation
from kernmodel.code.mix import FpClass, InstructionMix, MemoryClass
from kernmodel.evaluate.model import BlockFile, Category, Evaluation, Group, Judged, KnownBlock
from kernmodel.evaluate.statistics import Summary
from kernmodel.formulas.formula import constant, size
from kernmodel.incore.answer.batch import BlockResult
from kernmodel.incore.answer.explain import explain
from kernmodel.incore.answer.mechanisms import MechanismCost
from kernmodel.incore.model import Reason, Why
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.models.chart import Case, ComputeRoof, LevelShare, MemoryRoof, Point, Roofline
from kernmodel.models.findings import Findings, WhatIf
from kernmodel.report.json import carried as json_carried
from kernmodel.report.json import ecm as json_ecm
from kernmodel.report.json import incore as json_incore
from kernmodel.report.json import roofline as json_roofline
from kernmodel.report.json import traffic as json_traffic
from kernmodel.report.json.document import document as make_document
from kernmodel.report.json.document import dumps, plain
from kernmodel.report.json.evaluation import evaluation_document
from kernmodel.report.text.kernel import KernelSummary
from kernmodel.source.model import IndirectIndex
from kernmodel.studies.predict.incore import Alignment, Outcome
from kernmodel.studies.predict.machine_check import check_machine_file
from kernmodel.studies.predict.mix import MixAnswer, MixPart, SourceComparison
from kernmodel.studies.predict.roofline import CarmAnswer, Charted, RooflineAnswer, Subject

GOLDEN = Path(__file__).parent / "schemas"
DOCS = Path(__file__).parents[2] / "docs" / "json.md"
NAMES = {
    *NAMED, "breaks_at", "solved", "served_by", "arithmetic_intensity", "arrays", "scalars", "flop_per_cycle",
    "phases[]", "components",
}  # fmt: skip
"""Objects whose keys are names of the user's or of the machine's."""

DIFFERENCE = Difference(1, "L1", "loads", 3, 4)
SIMULATION = Simulation(
    Hierarchy((CacheSpec("L1", 4, 2),)),
    caches_from="caches.yml",
    accesses_from="cases.json",
    case="copy",
    engine="python",
    phases=(Counters({"L1": LevelCounters(4, 1, 3, 0, 0, 0, 0, 1)}, 3, 0, 0, 0, ((1, 3),), 4),),
    differences=(DIFFERENCE,),
)

BLOCK_RESULT = BlockResult(2, "90", "SKL", "loop", 1.0, "throughput", Reason(Why.NO_PORT), {"ports": 1.0}, ("ports",))
COST = MechanismCost(BLOCK_RESULT.reason, 1.0, 0.5)
KNOWN_BLOCK = KnownBlock(2, "SKL", "90", "loop", None, 2.0, {"uica": 1.0}, None, True)
SUMMARY = Summary(1, 50.0, 50.0, None, (0.0, 0.0, 0.0))
EVALUATION = Evaluation(
    BlockFile("b.csv", "BHive", "measured", "measured", ("measured", "uica"), (KNOWN_BLOCK,), ((3, "no code"),)),
    groups=(Group("SKL", "loop", {"kernmodel": SUMMARY, "uica": SUMMARY}),),
    categories=(Category("what binds", "ports", {"kernmodel": SUMMARY, "uica": SUMMARY}),),
    worst=(Judged(KNOWN_BLOCK, BLOCK_RESULT, 1.0, 50.0),),
    failed=((4, "the block is empty"),),
    left_out=1,
    uncertain=0,
    placed=0,
)


def with_all_keys(traffic, simulated):
    """Traffic in which no part is missing: counts of a simulation with the conditions of layer conditions."""
    return dataclasses.replace(simulated, conditions=traffic.conditions)


def simulation() -> Simulation:
    """One cache, of which one counter is not as a case states it."""
    counters = Counters({"L1": LevelCounters(4, 3, 1, 2, 2, 0, 0, 1)}, 1, 0, 0, 0, ((5, 1),), 6)
    wrong = Difference(1, "L1", "stores", 3, 2)
    hierarchy = Hierarchy((CacheSpec("L1", 64, 8),))
    return Simulation(hierarchy, "caches.yml", "cases.json", "a", "python", (counters,), (wrong,))


MIX = InstructionMix(
    memory=((MemoryClass(32, "vector", store=False), 1.0), (MemoryClass(32, "vector", store=True), 0.5)),
    fp=((FpClass("add", "DP", 4), 1.0),),
    other=1.0,
    source="loop .L3 of stencil.s",
)
CHART = Roofline(
    model="adcarm",
    bytes_meant="core-side bytes of load and store instructions",
    memory_roofs=(MemoryRoof("L1", 1e12, "L1", "measured", scaled=True),),
    compute_roofs=(ComputeRoof("DP AVX ADD", 1e11, "scaled", "derived"),),
    points=(Point("stencil", "", 0.1, 1e9),),
    bound=2e9,
    bound_by="L1",
    region="memory",
    above="L1",
    below=None,
    cores=10,
    notes=(),
    iterations_per_second=5e8,
)
SHARES = (LevelShare("L1", 40.0, 1e12, 1.0, 1.0),)


def mix_answer(answer, machine) -> MixAnswer:
    comparison = SourceComparison("FLOP", 4.0, 4.0, "")
    part = MixPart(MIX, 1.0, answer.loop, answer.origin, answer.nest, answer.sizes, (comparison,))
    return MixAnswer("stencil", MIX, (part,), machine, ())


def subject(answer) -> Subject:
    parameters = load_parameters("CLX")
    case = Case(answer.machine, parameters, InstructionTable.open(parameters), 10, mix=MIX, performance=1e9)
    return Subject("stencil", case, 2.5e8, answer, answer.nest, answer.sizes, answer.loop, answer.origin, ())


def roofline_answer(answer) -> RooflineAnswer:
    kernel = Charted(subject(answer), (CHART,), SHARES)
    return RooflineAnswer(answer.machine, 10, ("adcarm",), (kernel,), answer.notes, {"bad.c": "why"})


def carm_answer(answer) -> CarmAnswer:
    what_if = WhatIf("wider accesses", "all loads", "adcarm", "L2", 2e9, 4e9, 2.0, None, CHART)
    reading = Findings(CHART, dataclasses.replace(CHART, model="carm"), SHARES, "L1", 1e9, (what_if,), ("so",))
    return CarmAnswer(answer.machine, 10, subject(answer), reading, answer.notes)


@pytest.fixture
def documents(
    scaled_answer, compared_answer, incore_answer, toy_machine, toy_parameters, nest, instruction_row, tmp_path
):
    traffic = with_all_keys(compared_answer.symbolic, compared_answer.traffic)
    traffic_answer = dataclasses.replace(
        compared_answer, traffic=traffic, symbolic=traffic, transfers=scaled_answer.prediction.transfers
    )
    scaled_answer = dataclasses.replace(scaled_answer, traffic=traffic)
    value = IndirectIndex("idx_i", "idx", nest.accesses[0].offset, "idx[i]")
    nest = dataclasses.replace(nest, accesses=(dataclasses.replace(nest.accesses[0], indirect=(value,)),))
    broken = tmp_path / "broken.yml"
    broken.write_text("- 1\n")
    made = (
        json_ecm.ecm_document(scaled_answer, "cy/CL"),
        json_ecm.ecm_sweep_document((scaled_answer, scaled_answer), "It/s"),
        json_traffic.traffic_document(traffic_answer),
        json_traffic.traffic_sweep_document((traffic_answer,)),
        json_traffic.simulation_document(simulation()),
        json_traffic.simulation_check_document([CheckedCase("a", simulation().differences or ())], "cases.json"),
        json_incore.incore_document(
            dataclasses.replace(incore_answer, machine=toy_machine),
            dataclasses.replace(
                explain(incore_answer.incore), mechanisms=(MechanismCost(BLOCK_RESULT.reason, 1.0, 0.5),)
            ),
            (Alignment(4.0, (0, 1), incore_answer.incore),),
        ),
        json_incore.incore_sweep_document(
            (Outcome("SKL", incore_answer.loop, dataclasses.replace(incore_answer, machine=toy_machine)),)
        ),
        json_incore.block_document(BLOCK_RESULT),
        evaluation_document(EVALUATION),
        json_carried.machine_document(toy_machine),
        json_carried.machine_list_document((toy_machine,)),
        json_carried.machine_check_document([(str(broken), check_machine_file(broken))]),
        json_carried.kernel_document(nest, nest.defaults),
        json_carried.kernel_list_document((KernelSummary("stencil", "A stencil.", "stencil.c"),)),
        json_incore.instruction_document((instruction_row,), toy_parameters),
        json_incore.instruction_list_document(("addpd xmm,m128",), toy_parameters),
        json_roofline.mix_document(mix_answer(scaled_answer, toy_machine)),
        json_roofline.roofline_document(roofline_answer(scaled_answer)),
        json_roofline.carm_document(carm_answer(scaled_answer)),
        json_traffic.simulation_document(SIMULATION),
        json_traffic.simulation_check_document([CheckedCase("copy", (DIFFERENCE,))], "cases.json"),
    )
    return {document["schema"]: document for document in made}


def golden_name(schema: str) -> str:
    return schema.removeprefix("kernmodel.").replace("/", "-") + ".txt"


def test_every_schema_has_its_golden_list(documents):
    assert {golden_name(schema) for schema in documents} == {file.name for file in GOLDEN.glob("*.txt")}


def test_keys_are_those_of_the_schema(documents):
    """Keys may be added to a version, with docs/json.md and the list; one that goes makes a new version."""
    for schema, document in documents.items():
        expected = (GOLDEN / golden_name(schema)).read_text().split()
        assert sorted(key_paths(document, NAMES)) == expected, schema


def documented() -> set[str]:
    return set(re.findall(r"`([^`]+)`", DOCS.read_text(encoding="utf-8")))


def test_every_key_and_schema_is_documented(documents):
    paths = set().union(*(key_paths(document, NAMES) for document in documents.values()))
    assert last_keys(paths) - documented() == set()
    assert set(documents) - documented() == set()


@pytest.mark.parametrize("file", sorted((GOLDEN / "studies").glob("*.txt")), ids=lambda file: file.stem)
def test_every_key_and_schema_of_the_studies_is_documented(file: Path):
    """Their own tests hold the documents to these lists."""
    assert last_keys(file.read_text().split()) - documented() == set()
    assert f"kernmodel.{file.stem.replace('-1', '/1')}" in documented()


def test_documents_are_standard_json_in_ascii(documents):
    for document in documents.values():
        text = dumps(document)
        assert text.isascii()
        assert json.loads(text, parse_constant=pytest.fail) == document


def test_documents_name_the_version_of_the_tool(documents):
    assert {document["version"] for document in documents.values()} == {kernmodel.__version__}


def test_ecm_carries_inputs_and_values(documents):
    document = documents["kernmodel.ecm/1"]
    assert document["machine"]["sha256"] == "0" * 64
    assert document["kernel"]["sizes"] == {"M": 5000, "N": 5000}
    assert document["code"]["command"][0] == "gcc"
    assert document["headline"] == {"unit": "cy/CL", "value": 21.4}
    level = document["prediction"]["levels"][-1]
    assert level["in_units"]["LUP/s"] == pytest.approx(2e9 / 21.4 * 8)
    assert document["traffic"]["conditions"][1]["required_bytes"] == "32*N - 16"
    assert document["scaling"][1]["speedup"] == pytest.approx(21.4 / 6.4)
    assert [note["kind"] for note in document["notes"]] == ["assumption", "warning"]
    assert document["notes"][1]["where"] == "stencil.c:4:9"


def test_traffic_of_one_method_has_no_symbolic_twin(traffic_answer, compared_answer):
    alone = json_traffic.traffic_document(traffic_answer)
    assert (alone["symbolic"], alone["differences"]) == (None, [])
    assert (alone["traffic"]["levels"], alone["traffic"]["evasion"], alone["traffic"]["sampling"]) == ([], None, None)
    both = json_traffic.traffic_document(compared_answer)
    assert both["symbolic"]["method"] == "layer conditions"
    assert both["traffic"]["method"] == "simulation"
    assert both["differences"][0]["reason_code"] == "not-settled"
    assert both["traffic"]["stores"] == "evading"
    assert both["traffic"]["levels"][1] == {
        "level": "L2", "loads": 4.4, "load_hits": 2.4, "load_misses": 2.0,
        "stores": 1.0, "store_hits": 1.0, "store_misses": 0.0, "dirty_evictions": 1.0, "clean_evictions": 1.0,
    }  # fmt: skip


def test_a_sweep_is_one_document(documents):
    assert len(documents["kernmodel.ecm-sweep/1"]["points"]) == 2


def test_a_check_names_place_and_problem(documents):
    file = documents["kernmodel.machine-check/1"]["files"][0]
    assert file["ok"] is False
    assert "is no mapping" in file["problems"][0]["what"]


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_is_null(value: float):
    assert plain({"a": (value, 1.0)}) == {"a": [None, 1.0]}


def test_formulas_are_text():
    assert plain(2 * size("N") + 1) == "2*N + 1"
    assert plain(constant(3)) == "3"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=20,
    )
)
def test_any_plain_value_survives_a_round_trip(value):
    document = make_document("kernmodel.test/1", value=value)
    assert json.loads(dumps(document), parse_constant=pytest.fail) == document
