"""The build: one place of the version, and wheels for other platforms (hatch_build.py)."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import kernmodel

ROOT = Path(__file__).parents[1]


@pytest.fixture
def hook() -> ModuleType:
    pytest.importorskip("hatchling", reason="hatchling, which builds the package, is not installed")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_stands_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "kernmodel/__init__.py"
    text = (ROOT / "kernmodel" / "__init__.py").read_text()
    assert text.count(f'__version__ = "{kernmodel.__version__}"') == 1
    assert f"\n## {kernmodel.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_targets_name_platform_tag_and_ending(hook, monkeypatch) -> None:
    monkeypatch.setenv("CC", "gcc -m64")
    monkeypatch.delenv(hook.VARIABLE, raising=False)
    assert (hook.target(), hook.compiler()) == (None, ["gcc", "-m64"])
    for name, found in hook.TARGETS.items():
        monkeypatch.setenv(hook.VARIABLE, name)
        assert hook.target() == found
        assert hook.compiler()[1:] == ["-m", "ziglang", "cc", "-target", found.zig, "-s"]
        assert found.ending == (".dylib" if "macos" in name else ".so")
        machine = found.zig.partition("-")[0]
        assert found.tag.endswith({"aarch64": ("aarch64", "arm64")}.get(machine, machine))


def test_an_unknown_target_is_refused(hook, monkeypatch) -> None:
    monkeypatch.setenv(hook.VARIABLE, "amiga")
    with pytest.raises(ValueError, match="KERNMODEL_TARGET=amiga is not known; use one of manylinux-x86_64"):
        hook.target()


def test_a_source_distribution_has_what_the_build_reads() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert all((ROOT / name.lstrip("/")).exists() for name in included)
    needed = {"/hatch_build.py", "/kernmodel", "/machine-files", "/kernels", "/README.md"}
    assert needed <= set(included)
