"""Parameter files: the carried ones, names and aliases, and what a malformed file is told."""

import os
import re
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from parameter_files import with_figures

from kernmodel.errors import InputError, InstructionTableError
from kernmodel.incore.core import CODE_ALIGNMENT
from kernmodel.incore.engine.modelled_core import pipeline_core
from kernmodel.incore.tables.core_parameters import (
    FRONT_ENDS,
    MECHANISMS,
    FrontEndParameters,
    Parameters,
    declared,
    front_end_kind,
    front_end_parameters,
)
from kernmodel.incore.tables.parameters import (
    _DATA,
    UARCH_PATH,
    check_parameters,
    known_microarchitectures,
    load_parameters,
    parameter_text,
    read_parameters,
)
from kernmodel.incore.tables.table import InstructionTable

INTEL = {"SNB", "IVB", "HSW", "BDW", "SKL", "KBL", "CFL", "SKX", "CLX", "ICL", "ICX", "TGL", "RKL", "GLC", "RWC"}
DELIVERED = INTEL | {"ZEN", "ZEN2", "ZEN3", "ZEN4"}

GOOD = """
name: X
title: A core
isa: x86-64
aliases: [an-alias]
table: X.txt
ports: ["0", "1"]
front_end: none
figures:
  load latency: {value: 5 cy, source: manual}
  store forward latency: {value: 4 cy, source: manual}
  issue width: {value: 4, source: manual}
  branch misprediction: {value: 15 cy, source: manual}
"""


def test_all_delivered_cores_are_known() -> None:
    assert set(known_microarchitectures()) >= DELIVERED


@pytest.mark.parametrize("name", known_microarchitectures())
def test_every_figure_of_a_carried_core_has_a_source(name: str) -> None:
    parameters = load_parameters(name)
    assert set(_required(name)) <= set(parameters.sources)
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


def _required(name: str) -> list[str]:
    kind = front_end_kind(load_parameters(name))
    groups = (Parameters, *MECHANISMS.values(), *FRONT_ENDS[kind].values())
    return sorted({each.figure.key for group in groups for each in declared(group) if each.required})


@pytest.mark.parametrize("name", ["SKL", "ZEN4"])
def test_what_the_kind_of_front_end_needs_has_to_be_there(name: str, tmp_path: Path) -> None:
    text = (_DATA / f"{name}.yml").read_text(encoding="utf-8")
    for key in _required(name):
        text = re.sub(rf"^  {re.escape(key)}: .*\n", "", text, flags=re.MULTILINE)
    (tmp_path / "X.yml").write_text(text, encoding="utf-8")
    _, problems = check_parameters(tmp_path / "X.yml")
    assert sorted(problem.key for problem in problems if problem.what == "is missing") == [
        f"figures.{key}" for key in _required(name)
    ]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("alternating ports", [["2", "12"]], "names port '12', which the core lacks"),
        ("alternating ports", "23", "is no list"),
        ("alternating ports", ["23"], "is no list"),
        ("load ports", [["2D"]], "names port '2D', which the core lacks"),
        ("stack synchronisation ports", ["0", "8"], "names port '8', which the core lacks"),
        ("decoders", "four", "'four' is no whole number"),
        ("decoders", "４", "is no whole number"),
        ("decoders", 0, "0 is smaller than 1"),
        ("decoders", 65, "65 is larger than 64"),
        ("decoders", True, "'true' is no whole number"),
        ("LSD", 1, "'1' is neither true nor false"),
        ("LSD unroll", {1: "x"}, "'x' is no whole number"),
        ("load latency", "5 ns", "no unit of cycles"),
        ("load latency", 5, "is not a cycles with a unit"),
        ("load latency", "1e300 cy", "is more than 1000 cy"),
        ("store forward latency", "-4 cy", "is negative"),
        ("predecode block bytes", 24, "24 is no power of two"),
        ("ROB entries", 8, "8 hold less than two cycles of µops (12)"),
        ("JCC erratum", False, "has no meaning where 'JCC erratum' is false"),
        ("JCC erratum block bytes", None, "figures.JCC erratum block bytes: is missing"),
        ("fast pointer chasing latency", None, "figures.fast pointer chasing latency: is missing"),
        ("fast pointer chasing latency", "6 cy", "6 cy is longer than the load latency"),
        ("fused with conditional jumps", "cmp tset", "'tset' is unknown; did you mean 'test'?"),
        ("false output dependencies", "POPCNT", "'POPCNT' is no mnemonic"),
        ("op cache entries", 4096, "has no meaning with front_end intel-uop-cache; leave it out, or write"),
    ],
)
def test_a_figure_of_another_type_or_out_of_range_is_refused(key: str, value: object, said: str) -> None:
    with pytest.raises(InstructionTableError, match=re.escape(said)):
        with_figures(load_parameters("SKL"), {key: value})


@pytest.mark.parametrize(
    ("name", "key", "value", "said"),
    [
        ("ZEN4", "scheduler entries", [24, 24, 24, 24, 28, 5], "5 is smaller than 6"),
        ("ZEN4", "non-scheduling queue entries", 3, "3 is smaller than 6"),
        ("ZEN4", "op queue entries", 8, "8 hold less than the op cache width, 9"),
        ("ZEN4", "ROB entries", 5, "5 hold less than the issue width, 6"),
        ("TX2", "ROB entries", 3, "3 hold less than the issue width, 4"),
    ],
)
def test_a_buffer_that_a_cycle_does_not_fit_in_is_refused(name: str, key: str, value: object, said: str) -> None:
    """The simulation would wait for ever for room in it."""
    with pytest.raises(InstructionTableError, match=re.escape(said)):
        with_figures(load_parameters(name), {key: value})


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("interleaved ports", None, "stands alone; give it with interleaved ports"),
        ("interleaving fills", None, "interleaving fills: is missing; give it with interleaved ports"),
        ("interleaving gaps", [9], "interleaving gaps: has 1 number; write 2"),
        ("interleaving delays", [3, 2, 1, 2], "counts what left sooner than what entered"),
        ("interleaving delays", [3, 2, 8, 2], "or later than after 7 cycles"),
        (
            "interleaved ports",
            [["FP0", "FP2"], ["FP1", "FP3"], ["FP4", "FP5"]],
            "are no pairs of ports of two schedulers",
        ),
        ("interleaved ports", [["FP0", "FP1"], ["FP2"]], "are no pairs of ports of two schedulers"),
        ("interleaved ports", [["FP0", "FP1"], ["FP2", "FP3"]], "interleaved ports: are not the queued ports"),
    ],
)
def test_interleaved_ports_are_pairs_of_two_schedulers_behind_a_queue(key: str, value: object, said: str) -> None:
    with pytest.raises(InstructionTableError, match=re.escape(said)):
        with_figures(load_parameters("ZEN4"), {key: value})


def test_a_refused_figure_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "X.yml"
    file.write_text(GOOD.replace("issue width: {value: 4,", "issue width: {value: 0,"))
    with pytest.raises(InstructionTableError, match=re.escape(f"{file}:12: figures.issue width: 0 is smaller than 1")):
        read_parameters(file)


def test_the_kind_of_front_end_is_named_not_guessed() -> None:
    skl = load_parameters("SKL")
    with pytest.raises(InstructionTableError, match="front_end: 'intel-uop-cash' is unknown; did you mean"):
        with_figures(skl, {}, front_end="intel-uop-cash")
    with pytest.raises(InstructionTableError, match="has no meaning with front_end none"):
        with_figures(skl, {}, front_end="none")


def _swapped(key: str) -> str:
    """The key with two letters in the middle changed for one another, with one doubled where they are equal."""
    middle = len(key) // 2
    found = key[: middle - 1] + key[middle] + key[middle - 1] + key[middle + 1 :]
    return found if found != key else key[:middle] + key[middle] + key[middle:]


_MISSPELLINGS: tuple[Callable[[str], str], ...] = (
    _swapped,
    lambda key: key[:-1],
    lambda key: key[1:],
    lambda key: f"{key[:-1]}q",
)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "misspelt"),
    [*((name, _swapped) for name in sorted(DELIVERED)), *(("GLC", other) for other in _MISSPELLINGS[1:])],
)
def test_every_misspelt_figure_is_refused_with_the_right_one(
    name: str, misspelt: Callable[[str], str], tmp_path: Path
) -> None:
    pattern = re.compile(r"^  (\S[^:\n]*): *(?=\{|$)", re.MULTILINE)
    text = (_DATA / f"{name}.yml").read_text(encoding="utf-8")
    (tmp_path / "X.yml").write_text(pattern.sub(lambda found: f"  {misspelt(found[1])}: ", text), encoding="utf-8")
    parameters, problems = check_parameters(tmp_path / "X.yml")
    told = {problem.where.line: problem.todo for problem in problems}
    lines = text.split("\n")
    meant = {n: f"did you mean {found[1]!r}?" for n, line in enumerate(lines, 1) if (found := pattern.match(line))}
    assert parameters is None
    assert told == meant


@pytest.mark.parametrize(
    "key", ["name", "title", "isa", "aliases", "table", "ports", "front_end", "sources", "figures"]
)
def test_every_misspelt_key_is_refused_with_the_right_one(key: str, tmp_path: Path) -> None:
    text = (_DATA / "SKL.yml").read_text(encoding="utf-8")
    for misspelt in _MISSPELLINGS:
        (tmp_path / "X.yml").write_text(text.replace(f"\n{key}:", f"\n{misspelt(key)}:", 1), encoding="utf-8")
        _, problems = check_parameters(tmp_path / "X.yml")
        assert [problem.todo for problem in problems] == [f"did you mean {key!r}?"]


def test_the_page_lists_every_figure_as_declared() -> None:
    page = (Path(__file__).parents[2] / "docs" / "microarchitectures.md").read_text(encoding="utf-8")
    for group in (Parameters, *MECHANISMS.values(), *(g for groups in FRONT_ENDS.values() for g in groups.values())):
        for each in declared(group):
            row = rf"\n\| `{re.escape(each.figure.key)}` \| {re.escape(each.figure.kind.values)}(?: \(\S+\))? \| \w"
            assert re.search(row, page), row


def _fits(value: object, hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    return isinstance(value, get_origin(hint) or hint) and isinstance(value, bool) == (hint is bool)


@pytest.mark.parametrize("name", known_microarchitectures())
def test_values_have_the_declared_types(name: str) -> None:
    parameters = load_parameters(name)
    kind = front_end_kind(parameters)
    for owner in (parameters, *(attrgetter(group)(parameters) for group in (*MECHANISMS, *FRONT_ENDS[kind]))):
        for each in declared(type(owner)):
            value = getattr(owner, each.attribute)
            assert _fits(value, get_type_hints(type(owner))[each.attribute]), each.figure.key


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
    assert loads <= set(core.memory.load_ports)
    addresses = set(core.memory.store_address_ports) or loads  # before Haswell a store address takes a load port
    assert {frozenset(use.ports) for use in store.ports} == addresses | set(core.memory.store_data_ports)


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
    assert (written.ports, written.sources.keys()) == (figures.ports, figures.sources.keys())
    same = dict.fromkeys(("name", "title", "table", "aliases", "sources"))
    assert replace(written, **same) == replace(figures, **same)  # type: ignore[arg-type]
    assert all(source.startswith(f"taken over from {name}: ") for source in written.sources.values())


def test_aliases_are_unique() -> None:
    aliases = [alias for name in known_microarchitectures() for alias in load_parameters(name).aliases]
    assert len(set(aliases)) == len(aliases)


def test_skylake_x_and_cascade_lake_share_the_table_but_not_the_loop_stream_detector() -> None:
    skx, clx = load_parameters("SKX"), load_parameters("CLX")
    assert skx.table == clx.table
    assert isinstance(skx.front_end, FrontEndParameters) and isinstance(clx.front_end, FrontEndParameters)
    assert (skx.front_end.lsd, clx.front_end.lsd) == (False, True)  # erratum SKX150 against Cascade Lake


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(InstructionTableError) as error:
        load_parameters("pentium")
    assert "'pentium'" in str(error.value)
    assert all(name in str(error.value) for name in DELIVERED)


def test_a_good_file(tmp_path: Path) -> None:
    (tmp_path / "X.yml").write_text(GOOD)
    parameters = read_parameters(tmp_path / "X.yml")
    assert (parameters.load_latency, parameters.store_forward_latency, parameters.issue_width) == (5, 4, 4)
    assert (parameters.misprediction, parameters.front_end, parameters.pipeline) == (15.0, None, None)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("title: A core\n", "", "title: is missing"),
        (
            "load latency: {value: 5 cy, source: manual}",
            "x: {value: 1, source: manual}",
            "figures.load latency: is missing",
        ),
        ("5 cy", "5 ns", "no unit of cycles"),
        ("value: 4, source: manual", "value: four, source: manual", "'four' is no whole number"),
        ("branch misprediction: {value: 15 cy, source: manual}", "branch misprediction: 15 cy", "is no mapping"),
        ("value: 15 cy, source: manual", "value: 15 cy", "branch misprediction.source: is missing"),
        ("front_end: none", "", "front_end: is missing"),
        ("aliases: [an-alias]", "aliases: an-alias", "aliases: is no list"),
        ("isa: x86-64", "isa: [", "not valid YAML"),
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
