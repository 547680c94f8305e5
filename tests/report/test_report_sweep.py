"""The report, the document and the files of a sweep."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from key_paths import key_paths

from kernmodel.errors import Note, UsageError
from kernmodel.report.json.document import dumps
from kernmodel.report.json.sweep import sweep_document
from kernmodel.report.row_files import check_row_file, open_row_file
from kernmodel.report.text.render import Style, render, stream
from kernmodel.report.text.sections import merged_notes
from kernmodel.report.text.sweep import Gathered, check_unit, row_columns, sweep_inputs
from kernmodel.studies.predict.request import Change, CodeRequest, KernelRequest, Point
from kernmodel.studies.sweep.grid import Axis, Grid, Outcome
from kernmodel.studies.sweep.rows import RowColumn, answer_row, complete, row_of, study_columns
from kernmodel.studies.sweep.study import SweepStudy

GOLDEN = Path(__file__).parent / "schemas" / "studies"
BASE = Point(
    KernelRequest("stencil.c", "toy", {"M": 5000}, cores=2),
    CodeRequest(flags=("-O2",)),
    (Change("L2.size", "2MiB"),),
    (("i", 64),),
)
AXES = (Axis("machine", "", ("toy", "old")), Axis("size", "N", (100, 20000)))
COLUMNS = (
    RowColumn("n", "n", "", "int"),
    RowColumn("t", "T", "cy/CL", "float"),
    RowColumn("s", "s", "", "str"),
)


@pytest.fixture
def study(toy_machine) -> SweepStudy:
    return SweepStudy(Grid(BASE, AXES), (toy_machine, toy_machine), study_columns(AXES, [toy_machine]))


@pytest.fixture
def rows(study, ecm_answer) -> list:
    made = []
    for index in range(4):
        view = None if index == 3 else answer_row(BASE, ecm_answer)
        outcome = Outcome(index, BASE, view, "it is too small" if view is None else None)
        made.append(complete(study.columns, row_of(AXES, study.grid.coordinates(index), outcome)))
    return made


def table_of(study, rows, unit="cy/CL") -> list[str]:
    return list(stream(row_columns(study, unit), rows, Style()))


def test_the_base_stands_above(study, rows):
    text = render(sweep_inputs(study, rows[0]), Style())
    assert text.startswith("ECM prediction of stencil over machines and sizes (times in cy/CL)")
    for line in ("kernel        stencil.c", "sizes         M = 5000", "active cores  2", "changed       L2.size=2MiB",
                 "blocked       i in blocks of 64", "flags         -O2"):  # fmt: skip
        assert f"  {line}\n" in text


def test_three_kinds_of_axes_are_listed_with_commas(toy_machine):
    axes = (*AXES[:1], Axis("cores", "", (1, 2)), AXES[1])
    study = SweepStudy(Grid(BASE, axes), (toy_machine, toy_machine), study_columns(axes, [toy_machine]))
    assert "over machines, cores and sizes (" in render(sweep_inputs(study, None), Style())


def test_a_line_for_each_row_under_its_heading(study, rows):
    lines = table_of(study, rows)
    header = lines[0].split()
    assert header[:9] == ["machine", "N", "T_OL", "T_nOL", "T_out", "T_call", "T_L1L2", "T_L2L3", "T_L3Mem"]
    assert "all cores cy/CL" in lines[0]
    first = ["toy", "100", "8.00", "4.00", "0.00", "0.00", "5.00", "6.00", "6.40", "21.40", "cy/CL"]
    assert lines[2].split()[: len(first)] == first
    assert lines[5].split() == ["old", "20000", *["-"] * 14][: len(lines[5].split())]
    assert len({len(line) for line in lines[2:5]}) == 1


def test_calls_have_no_column_where_nothing_is_called(study, rows):
    def titles(study, known):
        return [column.header for column in row_columns(study, "cy/CL", known)]

    sizes = SweepStudy(Grid(BASE, AXES[1:]), study.machines[:1], study_columns(AXES[1:], study.machines[:1]))
    assert "T_call" not in titles(sizes, rows) and "T_call" in titles(sizes, ()) and "T_call" in titles(study, rows)
    assert "T_call" in titles(sizes, [{**rows[0], "T_call_cy_per_CL": None}])


def test_rates_have_a_prefix(study, rows):
    assert "747.7 MLUP/s" in table_of(study, rows, "LUP/s")[2]


def test_a_unit_without_meaning_is_refused(rows):
    with pytest.raises(UsageError, match="LUP/s has no meaning"):
        check_unit({**rows[0], "core_LUP_per_s": None}, "LUP/s")
    check_unit(rows[0], "LUP/s")


def test_failures_are_counted_and_the_first_are_named():
    gathered = Gathered()
    axes = (Axis("size", "N", tuple(range(30))),)
    for index in range(30):
        gathered.add(axes, {"point": index, "N": index, "error": f"error {index}" if index >= 5 else None}, ())
    text = render(gathered.failures(), Style())
    assert "25 of 30 points failed" in text
    assert "N = 5: error 5" in text
    assert "… and 15 more" in text
    assert (gathered.done, gathered.failed, gathered.first_error) == (30, 25, "error 5")


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 3), st.integers(0, 3)), max_size=30))
def test_notes_are_merged_as_if_all_were_kept(values):
    notes = [Note(code, f"{first} lines of {second} B") for code, first, second in values]
    gathered = Gathered()
    gathered.add_notes(notes)
    assert gathered.notes() == merged_notes(notes)
    assert sum(map(len, gathered._notes.values())) <= 6


def test_the_document_has_the_keys_of_its_schema(study, rows):
    document = sweep_document(study, "0" * 16, rows, (Note("a", "b"),))
    assert json.loads(dumps(document)) == document
    found = sorted(path for path in key_paths(document) if not path.startswith(".rows[]."))
    golden = GOLDEN / "sweep-1.txt"
    assert found == golden.read_text().split(), "a key that is gone or renamed needs a new version of the schema"
    assert [list(row) for row in document["rows"]] == [[c["name"] for c in document["columns"]]] * 4


values = st.tuples(
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), min_size=1),
)


@given(st.lists(values, min_size=1, max_size=20))
def test_csv_comes_back(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("rows") / "a.csv"
    with open_row_file(path, COLUMNS) as file:
        for row in cells:
            file.add(dict(zip("nts", row, strict=True)))
    with path.open(newline="", encoding="utf-8") as text:
        header, *found = csv.reader(text)
    assert header == ["n", "T cy/CL", "s"]
    back = [(int(n) if n else None, float(t) if t else None, s or None) for n, t, s in found]
    assert back == cells


@given(st.lists(values, min_size=1, max_size=20), st.integers(1, 7))
def test_parquet_comes_back(tmp_path_factory, cells, group):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path_factory.mktemp("rows") / "a.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kernmodel.report.row_files._GROUP", group)
        with open_row_file(path, COLUMNS) as file:
            for row in cells:
                file.add(dict(zip("nts", row, strict=True)))
    table = parquet.read_table(path)
    assert [tuple(row.values()) for row in table.to_pylist()] == cells
    assert table.schema.field("t").metadata[b"unit"] == b"cy/CL"
    assert parquet.ParquetFile(path).num_row_groups == -(-len(cells) // group)


def test_a_file_without_rows_is_not_begun(tmp_path):
    for ending in ("csv", "parquet"):
        with open_row_file(tmp_path / f"a.{ending}", COLUMNS):
            pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a", "a.txt", "no/a.csv", "d.csv"])
def test_files_that_cannot_be_written_are_refused(tmp_path, name):
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(UsageError):
        check_row_file(str(tmp_path / name), force=True)
