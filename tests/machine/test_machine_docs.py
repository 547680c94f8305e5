"""The page "add a machine" holds a complete example, every key of the schema, and every note of the import."""

import re
from pathlib import Path

import pytest

from kernmodel.machine.files import schema
from kernmodel.machine.files.schema import check_machine
from kernmodel.machine.load import FOLDER, load_machine
from kernmodel.resources import carried_files

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/machine-files.md").read_text(encoding="utf-8")
TABLES = (schema.MACHINE, schema.TOPOLOGY, schema.CORE, schema.FLOP, schema.CACHE, schema.PATH, schema.OVERLAP)
TABLES += (schema.BANDWIDTHS, schema.MIX, schema.SERIES, schema.STORES, schema.MEMORY, schema.PEAKS, schema.PEAK)


def test_the_example_is_fit_for_use(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "example.yml"
    path.write_text(example)
    assert check_machine(path) == ()
    assert [series.cores for series in load_machine(str(path)).bandwidths] == [(1, 2, 3, 4, 10)] * 2


@pytest.mark.parametrize("key", sorted({key for table in TABLES for key in table}))
def test_every_key_is_described(key: str) -> None:
    assert f"`{key}`" in PAGE


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
