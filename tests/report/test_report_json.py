from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path

import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

import kernmodel
from kernmodel.machine.load import summarise
from kernmodel.machine.schema import check_machine
from kernmodel.report import json_ecm, json_incore, json_instruction, json_kernel, json_machine, json_traffic
from kernmodel.report.json_common import dumps, envelope, plain
from kernmodel.report.kernel import KernelSummary

GOLDEN = Path(__file__).parent / "schemas"
DOCS = Path(__file__).parents[2] / "docs" / "json.md"
NAMED = {
    "sizes", "defaults", "sources", "breaks_at", "solved", "served_by", "arithmetic_intensity", "arrays", "scalars",
    "flop_per_cycle",
}  # fmt: skip
"""Objects whose keys are names of the user's or of the machine's."""


def key_paths(value: object, path: str = "") -> set[str]:
    """All paths of keys in a document; elements of lists as `[]`, keys that are names as `*`."""
    if isinstance(value, dict):
        named = path.rpartition(".")[2] in NAMED
        found = set()
        for key, item in value.items():
            here = f"{path}.{'*' if named else key}"
            found |= {here} | key_paths(item, here)
        return found
    if isinstance(value, list):
        return set().union(*(key_paths(item, f"{path}[]") for item in value))
    return set()


@pytest.fixture
def documents(
    scaled_answer, traffic_answer, incore_answer, toy_machine, toy_parameters, nest, instruction_row, tmp_path
):
    broken = tmp_path / "broken.yml"
    broken.write_text("- 1\n")
    made = (
        json_ecm.ecm_document(scaled_answer, "cy/CL"),
        json_ecm.ecm_sweep_document((scaled_answer, scaled_answer), "It/s"),
        json_traffic.traffic_document(traffic_answer),
        json_traffic.traffic_sweep_document((traffic_answer,)),
        json_incore.incore_document(dataclasses.replace(incore_answer, machine=toy_machine)),
        json_machine.machine_document(toy_machine),
        json_machine.machine_list_document((summarise(toy_machine),)),
        json_machine.machine_check_document({str(broken): check_machine(broken)}),
        json_kernel.kernel_document(nest, nest.defaults),
        json_kernel.kernel_list_document((KernelSummary("stencil", "A stencil.", "stencil.c"),)),
        json_instruction.instruction_document((instruction_row,), toy_parameters),
        json_instruction.instruction_list_document(("addpd xmm,m128",), toy_parameters),
    )
    return {document["schema"]: document for document in made}


def golden_name(schema: str) -> str:
    return schema.removeprefix("kernmodel.").replace("/", "-") + ".txt"


def test_every_schema_has_its_golden_list(documents):
    assert {golden_name(schema) for schema in documents} == {file.name for file in GOLDEN.glob("*.txt")}


def test_keys_are_those_of_the_schema(documents):
    """A changed key set is a new version of the schema: change its number, docs/json.md and the list together."""
    for schema, document in documents.items():
        expected = (GOLDEN / golden_name(schema)).read_text().split()
        assert sorted(key_paths(document)) == expected, schema


def test_every_key_and_schema_is_documented(documents):
    documented = set(re.findall(r"`([^`]+)`", DOCS.read_text(encoding="utf-8")))
    keys = {
        path.rpartition(".")[2].replace("[]", "") for document in documents.values() for path in key_paths(document)
    }
    assert keys - documented - {"*"} == set()
    assert set(documents) - documented == set()


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
    assert plain(2 * sympy.Symbol("N") + 1) == "2*N + 1"
    assert plain(sympy.Integer(3)) == "3"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=20,
    )
)
def test_any_plain_value_survives_a_round_trip(value):
    document = envelope("kernmodel.test/1", {"value": plain(value)})
    assert json.loads(dumps(document), parse_constant=pytest.fail) == document
