"""Parameter files: the carried ones, names and aliases, and what a malformed file is told."""

from pathlib import Path

import pytest

from kernmodel.errors import InputError, InstructionTableError
from kernmodel.incore.parameters import known_microarchitectures, load_parameters, read_parameters

DELIVERED = {"SNB", "IVB", "HSW", "BDW", "SKL", "SKX", "CLX", "ZEN", "ZEN2", "ZEN3"}

GOOD = """
name: X
title: A core
isa: x86-64
aliases: [an-alias]
table: X.txt
ports: ["0", "1"]
figures:
  load latency: {value: 5 cy, source: manual}
  store forward latency: {value: 4 cy, source: manual}
  issue width: {value: 4, source: manual}
  LSD: {value: true, source: manual}
"""


def test_all_delivered_cores_are_known() -> None:
    assert set(known_microarchitectures()) >= DELIVERED


@pytest.mark.parametrize("name", known_microarchitectures())
def test_every_figure_of_a_carried_core_has_a_source(name: str) -> None:
    parameters = load_parameters(name)
    figures = {*parameters.extra, "load latency", "store forward latency", "issue width"}
    assert set(parameters.sources) == figures
    assert all(len(source) > 5 for source in parameters.sources.values())
    assert parameters.name == name
    assert len(set(parameters.ports)) == len(parameters.ports)


def test_name_in_any_case_and_alias() -> None:
    assert load_parameters("skl") == load_parameters("Skylake") == load_parameters("SKL")
    assert load_parameters("skylake-avx512").name == "SKX"
    assert load_parameters("znver2").name == "ZEN2"


def test_aliases_are_unique() -> None:
    aliases = [alias for name in known_microarchitectures() for alias in load_parameters(name).aliases]
    assert len(set(aliases)) == len(aliases)


def test_skylake_x_and_cascade_lake_share_the_table_but_not_the_loop_stream_detector() -> None:
    skx, clx = load_parameters("SKX"), load_parameters("CLX")
    assert skx.table == clx.table
    assert (skx.extra["LSD"], clx.extra["LSD"]) == (False, True)  # erratum SKX150 against Cascade Lake


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InstructionTableError) as error:
        load_parameters("pentium")
    assert "'pentium'" in str(error.value)
    assert all(name in str(error.value) for name in DELIVERED)


def test_a_good_file(tmp_path: Path) -> None:
    (tmp_path / "X.yml").write_text(GOOD)
    parameters = read_parameters(tmp_path / "X.yml")
    assert (parameters.load_latency, parameters.store_forward_latency, parameters.issue_width) == (5, 4, 4)
    assert parameters.extra == {"LSD": True}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("title: A core\n", "", "'title' is missing"),
        ("load latency: {value: 5 cy, source: manual}", "x: {value: 1, source: manual}", "'load latency' is missing"),
        ("5 cy", "5 ns", "no unit of cycles"),
        ("value: 4, source: manual", "value: four, source: manual", "'four' is no whole number"),
        ("LSD: {value: true, source: manual}", "LSD: true", "'LSD' needs a value and a source"),
        ("isa: x86-64", "isa: [", "no YAML"),
        (GOOD, "- a\n- b\n", "no mapping"),
    ],
)
def test_malformed_files_are_named_with_what_is_wrong(tmp_path: Path, old: str, new: str, said: str) -> None:
    file = tmp_path / "X.yml"
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(InputError) as error:
        read_parameters(file)
    assert said in str(error.value)
    assert str(file) in str(error.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InstructionTableError, match="cannot be read"):
        read_parameters(tmp_path / "none.yml")
