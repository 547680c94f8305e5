"""The table format: rows survive a round trip, every row is found by search, malformed rows are named."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.errors import InstructionTableError, Location
from kernmodel.incore.model import FrontEnd, InstructionData, Parameters, PortUse
from kernmodel.incore.tables.parameters import known_microarchitectures, load_parameters
from kernmodel.incore.tables.table import (
    DATA,
    InstructionTable,
    Legend,
    format_ports,
    format_row,
    parse_ports,
    parse_row,
    table_text,
)

LEGEND = Legend({"u": "a source"}, {"a": ("je", "jne")})
LINE = "vaddpd ymm,ymm,m256 | 1*p01+1*p23+1*p23D | 2 | 4 A2>0:12 | | | 1/1/0 | u"

PORT_GROUPS = st.sampled_from(
    [
        *(
            ("0",),
            ("0", "1"),
            ("2", "3"),
            ("2D", "3D"),
            ("0DV",),
            ("2", "3", "A"),
            ("2D", "3D", "AD"),
            ("5", "B"),
            ("B",),
        ),
        *(("FP0", "FP1"), ("FP3DV",), ("IDV",), ("ST",), ("ST0", "ST1"), ("ALU0",), ("AGU0", "AGU1")),
    ]
)
CYCLES = st.integers(0, 400).map(lambda quarters: quarters / 4)
OPERANDS = st.sampled_from(["0", "1", "F", "rax", "A1", "M1", "M"])
FRONT_ENDS = st.builds(
    FrontEnd,
    retire_slots=st.integers(0, 99),
    uops_mite=st.integers(0, 9),
    uops_ms=st.integers(0, 99),
    complex_decoder=st.booleans(),
    simple_decoders=st.integers(0, 4),
    fusible_with=st.sampled_from([(), ("je", "jne")]),
)
ROWS = st.builds(
    InstructionData,
    form=st.sampled_from(["add r64,r64", "vaddpd zmm{k},zmm,m64b", "lea r64,m [b+i*s+d]"]),
    ports=st.lists(st.builds(PortUse, PORT_GROUPS, CYCLES.filter(bool)), max_size=4).map(tuple),
    latencies=st.dictionaries(st.tuples(OPERANDS, OPERANDS), CYCLES, max_size=5),
    default_latency=CYCLES,
    uops=st.integers(0, 99),
    throughput=st.none() | CYCLES,
    breaks_dependency=st.sampled_from(["no", "dependency", "zero"]),
    eliminated=st.booleans(),
    front_end=st.none() | FRONT_ENDS,
    indexed=st.none(),
    source=st.just("a source"),
)


FULL_ROWS = st.builds(lambda row, full: replace(row, full=replace(full, form=row.form)), ROWS, ROWS)


@given(FULL_ROWS, st.booleans())
def test_rows_for_easy_and_for_full_operands_survive_the_round_trip(row: InstructionData, indexed: bool) -> None:
    assert row.full is not None
    if indexed:
        row = replace(row, indexed=replace(row, full=None), full=replace(row.full, indexed=row.full))
    with temporary_table(table_text(("A table.",), [row], LEGEND.sources)) as table:
        full = table.row(row.form)
        easy = InstructionTable(table.path, table.parameters, "easy").row(row.form)
    assert full is not None
    assert easy is not None
    assert full.full is None
    assert replace(easy.full or easy, indexed=None) == replace(full, indexed=None)
    assert full.ports == (row.full or row).ports
    assert (easy.ports, easy.default_latency) == (row.ports, row.default_latency)
    assert (easy.indexed is not None) == (full.indexed is not None) == indexed
    if easy.indexed is not None:
        assert easy.indexed.full == full.indexed


def test_large_counts_are_written_as_whole_numbers() -> None:
    use = PortUse(("0",), 1758583.0)
    assert format_ports((use,)) == "1758583*p0"
    assert parse_ports(format_ports((use,))) == (use,)


def test_a_table_of_differences_takes_other_rows_from_its_base(tmp_path: Path) -> None:
    row = parse_row(LINE, LEGEND)
    others = [replace(row, form=form) for form in ("a r64", "b r64")]
    (tmp_path / "BASE.txt").write_text(table_text(("A table.",), others, LEGEND.sources))
    own = [replace(row, form="b r64", uops=7)]
    (tmp_path / "X.txt").write_text(table_text(("More.",), own, LEGEND.sources, ("BASE.txt", "as the base")))
    table = InstructionTable(tmp_path / "X.txt", load_parameters("SKL"))
    first, second = table.row("a r64"), table.row("b r64")
    assert first is not None
    assert second is not None
    assert (first.uops, first.source) == (2, "as the base; a source")
    assert (second.uops, second.source) == (7, "a source")
    assert table.row("c r64") is None
    assert list(table.forms()) == ["a r64", "b r64"]
    (tmp_path / "Y.txt").write_text(table_text(("More.",), own, LEGEND.sources, ("X.txt", "as the other")))
    above = InstructionTable(tmp_path / "Y.txt", load_parameters("SKL")).row("a r64")
    assert above is not None
    assert above.source == "as the other; as the base; a source"
    (tmp_path / "BASE.txt").write_text(table_text(("A table.",), others, LEGEND.sources, ("Y.txt", "as Y")))
    with pytest.raises(InstructionTableError, match=r"its base Y\.txt leads back to it"):
        InstructionTable(tmp_path / "Y.txt", load_parameters("SKL"))


def with_index_latencies(row: InstructionData) -> InstructionData:
    """The row as it is read: index registers as their base where they are not listed."""
    index = {("X" + s[1:], t): cycles for (s, t), cycles in row.latencies.items() if s[0] == "A"}
    return replace(row, latencies={**index, **row.latencies})


@given(ROWS)
def test_a_row_survives_the_round_trip(row: InstructionData) -> None:
    assert parse_row(format_row(row, LEGEND), LEGEND) == with_index_latencies(row)


@given(st.lists(st.builds(PortUse, PORT_GROUPS, CYCLES.filter(bool)), max_size=6).map(tuple))
def test_port_usage_survives_the_round_trip(uses: tuple[PortUse, ...]) -> None:
    assert parse_ports(format_ports(uses)) == uses


@given(st.sets(st.text("abcd [],", min_size=1, max_size=12).map(str.strip).filter(bool), min_size=1, max_size=40))
def test_every_row_of_a_table_is_found_and_no_other(forms: set[str]) -> None:
    row = parse_row(LINE, LEGEND)
    forms = {form for form in forms if not form.startswith("[") and " [" not in form}
    if not forms:
        return
    with temporary_table(
        table_text(("A table.",), [replace(row, form=form) for form in forms], LEGEND.sources)
    ) as table:
        for form in forms:
            found = table.row(form)
            assert found is not None
            assert found.form == form
        assert table.row("e") is None
        assert table.row("") is None
        assert table.row("a source") is None


class temporary_table:
    """A table of this text in a file that goes away."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __enter__(self) -> InstructionTable:
        import tempfile

        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "X.txt"
        path.write_text(self.text, encoding="utf-8")
        return InstructionTable(path, load_parameters("SKL"))

    def __exit__(self, *_: object) -> None:
        self.folder.cleanup()


def check_table(parameters: Parameters) -> int:
    """Parse every row of a table and check order and ports; the number of rows.

    Raises:
        InstructionTableError: a row is malformed, out of order, twice there, or names a port that the parameter file
            does not list; names file and line.
    """
    table = InstructionTable.open(parameters, "easy")
    known = set(parameters.ports)
    lines = table.path.read_text(encoding="utf-8").splitlines()
    forms = [(number, line.partition(" |")[0]) for number, line in enumerate(lines, 1) if not line.startswith("#")]
    for (_, form), (number, following) in pairwise(forms):
        if following.encode() <= form.encode():
            where = Location(str(table.path), number)
            todo = "sort the rows by their bytes"
            raise InstructionTableError(f"{following!r} is out of order or there twice", where=where, todo=todo)
    for number, form in forms:
        row = table.row(form)
        strange = {port for use in row.ports for port in use.ports} - known if row else set()
        if row is None or strange:
            what = f"{form!r} " + (f"names unknown ports {sorted(strange)}" if row else "is not found")
            todo = "list the ports in the parameter file, or correct the form"
            raise InstructionTableError(what, where=Location(str(table.path), number), todo=todo)
    return len(forms)


@pytest.mark.thorough
@pytest.mark.parametrize("name", known_microarchitectures())
def test_carried_tables_are_sorted_well_formed_and_name_ports_of_their_core(name: str) -> None:
    parameters = load_parameters(name)
    assert check_table(parameters) > 0
    assert sum(1 for _ in InstructionTable.open(parameters).forms()) > 2200


def test_carried_tables_are_of_reasonable_size() -> None:
    sizes = {path: path.stat().st_size for path in DATA.glob("*.txt")}
    assert sizes
    assert max(sizes.values()) < 600_000


def test_the_indexed_variant_hangs_on_its_row() -> None:
    row = InstructionTable.open(load_parameters("SKL")).row("vaddpd ymm,ymm,m256")
    assert row is not None
    assert row.indexed is not None
    assert row.indexed.form == row.form
    assert (row.front_end.retire_slots, row.indexed.front_end.retire_slots) == (1, 2)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (" | u", " | x", "source 'x'"),
        ("1*p01", "1*01", "'1*01' is no port usage"),
        ("A2>0:12", "A2>0", "'A2>0' is no latency"),
        ("1/1/0", "1/1", "'1/1' is no front end"),
        ("| 2 |", "| two |", "two"),
        (" | | ", " | fast | ", "'fast'"),
        (" | u", "", "7 cells instead of 8"),
    ],
)
def test_malformed_rows_are_named_with_file_line_and_reason(old: str, new: str, said: str) -> None:
    text = "# A table.\n#! source u = a source\n" + LINE.replace(old, new, 1) + "\n"
    with temporary_table(text) as table, pytest.raises(InstructionTableError) as error:
        table.row("vaddpd ymm,ymm,m256")
    assert said in str(error.value)
    assert "X.txt:3" in str(error.value)


def test_a_missing_or_empty_table_is_an_error(tmp_path: Path) -> None:
    parameters = replace(load_parameters("SKL"), table=str(tmp_path / "none.txt"))
    with pytest.raises(InstructionTableError, match=r"none\.txt: cannot be read"):
        InstructionTable.open(parameters)
    (tmp_path / "none.txt").touch()
    with pytest.raises(InstructionTableError, match=r"none\.txt"):
        InstructionTable.open(parameters)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (("b r64 | | 1 | 0 | | | - | u", "a r64 | | 1 | 0 | | | - | u"), "out of order"),
        (("a r64 | | 1 | 0 | | | - | u", "a r64 | | 1 | 0 | | | - | u"), "out of order"),
        (("a r64 | 1*p9 | 1 | 0 | | | - | u",), "unknown ports"),
    ],
)
def test_the_check_finds_disorder_and_unknown_ports(tmp_path: Path, rows: tuple[str, ...], said: str) -> None:
    path = tmp_path / "X.txt"
    path.write_text("\n".join(("#! source u = a source", *rows, "")))
    with pytest.raises(InstructionTableError) as error:
        check_table(replace(load_parameters("SKL"), table=str(path)))
    assert said in str(error.value)
    assert str(path) in str(error.value)
