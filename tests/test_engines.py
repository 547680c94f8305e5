"""Compiled engines and the sources that they are made of."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kernmodel import engines
from kernmodel.engines import ENDING, NATIVE, load_engine, sources_hash

SOURCE = "const char *km_sources(void) { return KERNMODEL_SOURCES; }\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    native = tmp_path / NATIVE
    native.mkdir()
    (native / "engine.c").write_text(SOURCE, encoding="utf-8")
    return native


def build(native: Path) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    library = native.parent / f"_engine{ENDING}"
    marked = f'-DKERNMODEL_SOURCES="{sources_hash(native)}"'
    subprocess.run([compiler, "-shared", "-fPIC", marked, "-o", library, native / "engine.c"], check=True)
    return library


def test_a_library_of_the_sources_beside_it_is_loaded(folder: Path) -> None:
    assert load_engine(build(folder)) is not None


def test_a_library_of_other_sources_is_refused_and_that_is_said_once(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "_refused", set())
    library = build(folder)
    (folder / "engine.c").write_text(SOURCE + "\n", encoding="utf-8")
    assert load_engine(library) is None
    assert capsys.readouterr().err == (
        "kernmodel: note: the compiled engine _engine was made of other C sources than those beside it: "
        "slow Python does its work; run `pip install -e .` in the checkout\n"
    )
    assert load_engine(library) is None
    assert capsys.readouterr().err == ""


def test_a_header_counts_as_a_source(folder: Path) -> None:
    library = build(folder)
    (folder / "more.h").write_text("", encoding="utf-8")
    assert load_engine(library) is None


def test_without_sources_nothing_is_checked(folder: Path) -> None:
    library = build(folder)
    shutil.rmtree(folder)
    assert load_engine(library) is not None


def test_what_is_no_library_is_none(tmp_path: Path) -> None:
    assert load_engine(tmp_path / "nothing.so") is None
    (tmp_path / "text.so").write_text("no library", encoding="utf-8")
    assert load_engine(tmp_path / "text.so") is None


def test_libraries_of_this_checkout_are_up_to_date() -> None:
    """In a checkout after `pip install -e .`; else nothing is there to be tested."""
    from kernmodel import cachesim
    from kernmodel.incore import engine as pipeline

    found = []
    for package, name in ((cachesim, "_engine"), (pipeline, "_pipeline")):
        library = Path(package.__file__ or "").with_name(name + ENDING)
        if library.exists():
            found.append(library)
            assert load_engine(library) is not None, f"{name} is stale: install again"
    if not found:
        pytest.skip("no engine was built")
