"""Loading by name and path, the list of machines, and the machine as plain data."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernmodel.errors import MachineError
from kernmodel.machine.load import list_machines, load_machine
from kernmodel.report.json.carried import machine_json

CARRIED = (
    *("a64fx", "bdw", "clx", "gnr", "grace", "graviton2", "graviton3", "hsw", "icx", "ivb", "m1", "skx", "skx-6140"),
    *("snb", "spr", "tx2", "zen", "zen2", "zen3", "zen4"),
)


def test_name_with_and_without_ending_and_path(tmp_path: Path) -> None:
    by_name = load_machine("clx")
    assert by_name == load_machine("clx.yml")
    copy = tmp_path / "mine.yml"
    copy.write_bytes(Path(by_name.file).read_bytes())
    by_path = load_machine(str(copy))
    assert (by_path.name, by_path.file, by_path.sha256) == ("mine", str(copy), by_name.sha256)


def test_a_file_that_changes_is_another_machine(tmp_path: Path) -> None:
    file = tmp_path / "mine.yml"
    text = Path(load_machine("clx").file).read_text(encoding="utf-8")
    for clock, expected in (("2.5 GHz", 2.5e9), ("3 GHz", 3e9)):
        file.write_text(text.replace("clock: 2.5 GHz", f"clock: {clock}"))
        assert load_machine(str(file)).clock_hz == expected
    assert load_machine(str(file)) is load_machine(str(file))


def test_a_path_goes_before_a_carried_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "clx.yml").write_bytes(Path(load_machine("snb").file).read_bytes())
    monkeypatch.chdir(tmp_path)
    assert load_machine("clx.yml").core.microarchitecture == "SNB"


def test_unknown_name_and_directory(tmp_path: Path) -> None:
    with pytest.raises(
        MachineError, match=r"^clxx: no such machine file; give a path, or one of the carried ones \(nearest: clx"
    ):
        load_machine("clxx")
    with pytest.raises(MachineError, match="is a directory, not a machine file"):
        load_machine(str(tmp_path))


def test_list() -> None:
    machines = list_machines()
    assert tuple(machine.name for machine in machines) == CARRIED
    clx = machines[2]
    assert (clx.core.microarchitecture, clx.topology.cores, clx.topology.numa_domains, clx.clock_hz) == (
        "CLX",
        40,
        4,
        2.5e9,
    )
    assert [(cache.name, cache.size_bytes) for cache in clx.levels][:2] == [("L1", 32 * 1024), ("L2", 1024**2)]


@pytest.mark.parametrize("name", CARRIED)
def test_machine_as_plain_data(name: str) -> None:
    machine = load_machine(name)
    data = json.loads(json.dumps(machine_json(machine), allow_nan=False))
    assert data["overlap"] == str(machine.overlap)
    assert data["topology"]["cores"] == machine.topology.cores
    assert [level["size_bytes"] for level in data["levels"]] == [level.size_bytes for level in machine.levels]
    assert data["sources"] == dict(machine.sources)
    assert len(data["bandwidths"]) == len(machine.bandwidths)
    for row, series in zip(data["bandwidths"], machine.bandwidths, strict=True):
        assert tuple(row["bytes_per_second"]) == series.bytes_per_second
        assert row["mix"]["write_allocate_factor"] == series.mix.write_allocate_factor


def test_loading_imports_nothing_heavy() -> None:
    code = (
        "import sys; from kernmodel.machine.load import list_machines; list_machines();"
        "print([name for name in ('sympy', 'pint', 'pycparser', 'numpy', 'rich', 'click') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
