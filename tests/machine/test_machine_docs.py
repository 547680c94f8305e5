"""The page "add a machine" holds a complete example, every key of the schema, and every note of the import."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kernmodel.machine.files import schema
from kernmodel.machine.load import FOLDER, load_machine
from kernmodel.resources import carried_files
from kernmodel.schema.fields import List, Rows, Table
from kernmodel.studies.predict.machine_check import check_machine_file

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/machine-files.md").read_text(encoding="utf-8")


def test_the_example_is_fit_for_use(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "example.yml"
    path.write_text(example)
    assert check_machine_file(path) == ()
    assert [series.cores for series in load_machine(str(path)).bandwidths] == [(1, 2, 3, 4, 10)] * 2


def _tables(table: Table, name: str = "") -> Iterator[tuple[str, Table]]:
    """The tables of a file with the section of the page that describes each."""
    yield name, table
    for key, entry in table.items():
        kind = entry.kind.each if isinstance(entry.kind, Rows | List) else entry.kind
        if isinstance(kind, Mapping):
            yield from _tables(kind, name or key)


@pytest.mark.parametrize(("section", "table"), tuple(_tables(schema.MACHINE)))
def test_every_key_is_described_in_its_section_and_optional_ones_as_such(section: str, table: Table) -> None:
    heading = f"### `{section}`" if section else "### At the top"
    text = PAGE.split(f"{heading}\n")[1].split("\n### ")[0].split("\n## ")[0]
    lines = {key: line for line in text.splitlines() for key in re.findall(r"`(\w+)`", line.split(" | ")[0])}
    for key, entry in table.items():
        assert f"`{key}`" in text or (not section and f"### `{key}`" in PAGE), key
        if lines.get(key, "").startswith(f"| `{key}` |"):
            said = re.search(r"\| (?:optional|of a victim cache only)\b", lines[key])
            assert (said is None) == entry.required, key


@pytest.mark.parametrize("section", [key for key in schema.MACHINE if f"### `{key}`" in PAGE])
def test_no_key_is_described_that_there_is_not(section: str) -> None:
    text = PAGE.split(f"### `{section}`\n")[1].split("\n### ")[0].split("\n## ")[0]
    described = {key for line in text.splitlines() for key in re.findall(r"^\| (`.+?`) \|", line)}
    known = {key for name, table in _tables(schema.MACHINE) if name == section for key in table}
    assert {name for group in described for name in re.findall(r"`(\w+)`", group)} <= known


@pytest.mark.parametrize("word", (*schema.EVASION, *schema.OPERATIONS))
def test_every_kind_of_evasion_and_operation_is_described(word: str) -> None:
    assert f"`{word}`" in PAGE


def test_every_note_of_the_import_is_described() -> None:
    code = (ROOT / "kernmodel/machine/kerncraft.py").read_text(encoding="utf-8")
    codes = set(re.findall(r'(?:note|Note)\(\s*"([a-z-]+)"', code))
    assert len(codes) > 10
    assert {code for code in codes if f"`{code}`" not in PAGE} == set()


def test_every_carried_machine_has_its_sources_listed() -> None:
    listed = set(re.findall(r"^- \*\*(.+?)\*\*:", PAGE, re.MULTILINE))
    assert listed == {path.stem for path in carried_files(FOLDER, ".yml")}
