"""Programs of tests/binary/programs, built once a session; what a host has no compiler for is skipped visibly."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
Build = Callable[..., Path]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds a program with these flags; the same one is built once."""
    built: dict[tuple[str, ...], Path] = {}

    def made(source: str, *flags: str, compiler: str = "gcc") -> Path:
        if shutil.which(compiler) is None:
            pytest.skip(f"no {compiler} here")
        key = (compiler, source, *flags)
        if key not in built:
            folder = tmp_path_factory.mktemp("program")
            target = folder / Path(source).stem
            command = [compiler, "-o", str(target), str(PROGRAMS / source), *flags, "-lm"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"{compiler} cannot build {source}: {done.stderr[:200]}")
            built[key] = target
        return built[key]

    return made
