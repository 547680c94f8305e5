"""Parameter files: the carried ones, names and aliases, and what a malformed file is told."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from kernmodel.errors import InputError, InstructionTableError
from kernmodel.incore.core import CODE_ALIGNMENT
from kernmodel.incore.frontend.figures import front_end_parameters
from kernmodel.incore.parameters import (
    UARCH_PATH,
    known_microarchitectures,
    load_parameters,
    parameter_text,
    read_parameters,
)
from kernmodel.incore.pipeline.figures import pipeline_core
from kernmodel.incore.tables import InstructionTable

INTEL = {"SNB", "IVB", "HSW", "BDW", "SKL", "KBL", "CFL", "SKX", "CLX", "ICL", "ICX", "TGL", "RKL", "GLC", "RWC"}
DELIVERED = INTEL | {"ZEN", "ZEN2", "ZEN3", "ZEN4"}

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
    for alias in ("graniterapids", "gnr", "mtl", "meteorlake-p"):
        assert load_parameters(alias).name == "RWC"
    assert (load_parameters("sapphirerapids").name, load_parameters("emr").name) == ("GLC", "GLC")


@pytest.mark.parametrize("name", sorted(INTEL))
def test_intel_cores_have_all_figures_of_the_front_end(name: str) -> None:
    assert front_end_parameters(load_parameters(name)) is not None


MECHANICS = (
    "dispatch delay",
    "port counter gap",
    "alternating ports",
    "predecode delay",
    "microcode width",
    "microcode exit cycles",
    "DSB lines per cycle",
    "store address latency",
    "blocked load cycles",
    "DSB line µops",
    "DSB lines per block",
    "stack synchronisation ports",
    "stack synchronisation latency",
    "load ports",
    "store address ports",
    "store data ports",
)


@pytest.mark.parametrize("name", sorted(INTEL))
def test_the_pipelines_figures_stand_in_the_parameter_files_with_their_sources(name: str) -> None:
    parameters = load_parameters(name)
    assert set(MECHANICS) <= parameters.sources.keys()
    front = front_end_parameters(parameters)
    assert front is not None
    for key in MECHANICS:
        without = replace(parameters, extra={k: v for k, v in parameters.extra.items() if k != key})
        with pytest.raises(InstructionTableError, match=f"figure '{key}' is missing"):
            pipeline_core(without, front)


@pytest.mark.parametrize(
    ("value", "said"),
    [([["2", "12"]], "names ports that the core lacks: 12"), ("23", "is '23', no list"), (["23"], "is '23', no list")],
)
def test_groups_of_ports_have_to_be_lists_of_the_cores_ports(value: object, said: str) -> None:
    parameters = load_parameters("SKL")
    front = front_end_parameters(parameters)
    assert front is not None
    with pytest.raises(InstructionTableError, match=said):
        pipeline_core(replace(parameters, extra={**parameters.extra, "alternating ports": value}), front)


@pytest.mark.parametrize("name", sorted(INTEL))
def test_loads_and_stores_are_told_by_the_ports_of_plain_moves(name: str) -> None:
    parameters = load_parameters(name)
    front = front_end_parameters(parameters)
    assert front is not None
    core = pipeline_core(parameters, front)
    table = InstructionTable.open(parameters)
    load, store = table.row("mov r64,m64"), table.row("mov m64,r64")
    assert load is not None
    assert store is not None
    loads = {frozenset(use.ports) for use in load.ports if not use.ports[0].endswith("D")}
    assert loads <= set(core.load_ports)
    addresses = set(core.store_address_ports) or loads  # before Haswell a store address takes a load port
    assert {frozenset(use.ports) for use in store.ports} == addresses | set(core.store_data_ports)


@pytest.mark.parametrize("name", sorted(INTEL))
def test_offsets_tell_all_lines_apart_that_a_front_end_knows(name: str) -> None:
    front = front_end_parameters(load_parameters(name))
    assert front is not None
    lines = (
        front.predecode_bytes,
        front.fusion_line_bytes,
        front.dsb_bytes,
        front.dsb_line_bytes,
        front.jcc_bytes or 1,
    )
    assert all(CODE_ALIGNMENT % size == 0 for size in lines)


def test_a_file_of_the_user_is_found_by_path_and_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "NEW.yml").write_text(GOOD)
    parameters = load_parameters(str(tmp_path / "NEW.yml"))
    assert parameters.table == str(tmp_path / "X.txt")
    monkeypatch.setenv(UARCH_PATH, str(tmp_path))
    assert "NEW" in known_microarchitectures()
    assert load_parameters("new") == load_parameters("an-alias") == parameters


def test_the_first_folder_of_the_user_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "SKL.yml").write_text(GOOD.replace("A core", folder))
    monkeypatch.setenv(UARCH_PATH, f"{tmp_path / 'one'}{os.pathsep}{tmp_path / 'two'}")
    assert load_parameters("SKL").title == "one"


@pytest.mark.parametrize("name", ["SKL", "RWC", "ZEN4"])
def test_a_written_parameter_file_says_what_it_takes_over(tmp_path: Path, name: str) -> None:
    figures = load_parameters(name)
    (tmp_path / "NEW.yml").write_text(parameter_text(figures, "NEW", "NEW.txt", figures.ports), encoding="utf-8")
    written = read_parameters(tmp_path / "NEW.yml")
    assert (written.ports, written.extra, written.issue_width) == (figures.ports, figures.extra, figures.issue_width)
    assert (written.load_latency, written.store_forward_latency) == (
        figures.load_latency,
        figures.store_forward_latency,
    )
    assert all(source.startswith(f"taken over from {name}: ") for source in written.sources.values())


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
