"""Builds the C engines of the simulations where a C compiler is; without one the package is pure Python.

A wheel carries the shared libraries and is tagged for the platform; an editable installation gets them into the source
tree. `CC` names the compiler; else the first of cc, gcc and clang is taken. `KERNMODEL_TARGET` names another platform
than this one (`TARGETS`), for which zig compiles:

    KERNMODEL_TARGET=manylinux-aarch64 pip wheel --no-deps .
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ENGINES = ("kernmodel/cachesim/_engine", "kernmodel/incore/engine/_pipeline")
"""The libraries; each is made of all C sources in the folder `native` beside it."""
FLAGS = ("-std=c11", "-O3", "-ffp-contract=off", "-shared", "-fPIC", "-fvisibility=hidden")
"""Nothing of this machine only, and no fused multiplications: the Python twins of the engines give the same bits."""


class Target(NamedTuple):
    """A platform that wheels are made for: zig's name of it, the tag of the wheel, the ending of shared libraries."""

    zig: str
    tag: str
    ending: str


TARGETS = {
    "manylinux-x86_64": Target("x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64", ".so"),
    "manylinux-aarch64": Target("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64", ".so"),
    "macos-x86_64": Target("x86_64-macos.11.0", "macosx_11_0_x86_64", ".dylib"),
    "macos-arm64": Target("aarch64-macos.11.0", "macosx_11_0_arm64", ".dylib"),
}
VARIABLE = "KERNMODEL_TARGET"


def target() -> Target | None:
    """The platform that is asked for, None: this one.

    Raises:
        ValueError: it is not known.
    """
    name = os.environ.get(VARIABLE)
    if not name:
        return None
    if name not in TARGETS:
        raise ValueError(f"{VARIABLE}={name} is not known; use one of {', '.join(TARGETS)}")
    return TARGETS[name]


def helpers(root: Path) -> Any:
    """The module `kernmodel.engines` of the tree that is built, which is not installed yet."""
    spec = importlib.util.spec_from_file_location("kernmodel_engines", root / "kernmodel" / "engines.py")
    if spec is None or spec.loader is None:
        raise ImportError("kernmodel/engines.py is missing")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiler() -> list[str] | None:
    """The command of the C compiler, or None."""
    other = target()
    if other is not None:  # -s: without its debug information a library is 20 times smaller
        return [sys.executable, "-m", "ziglang", "cc", "-target", other.zig, "-s"]
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    found = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    return [found] if found else None


def build(folder: Path, library: Path, engines: Any) -> str | None:
    """Compile the sources in a folder and put the library in its place at once (it may be in use).

    Returns:
        What went wrong, or None.
    """
    command = compiler()
    if command is None:
        return "no C compiler (cc, gcc or clang) is on the PATH"
    made = library.with_suffix(".new")
    marked = f'-DKERNMODEL_SOURCES="{engines.sources_hash(folder)}"'
    sources = [str(path) for path in engines.sources_of(folder) if path.suffix == ".c"]
    try:
        result = subprocess.run(
            [*command, *FLAGS, marked, "-o", str(made), *sources], capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    if result.returncode:
        made.unlink(missing_ok=True)
        return f"{shlex.join(command)} failed:\n{result.stderr.strip()}"
    made.replace(library)
    return None


class EngineBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling for each wheel."""

    def dependencies(self) -> list[str]:
        """What has to be installed for the build."""
        return [] if target() is None else ["ziglang>=0.13"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the files are gathered."""
        root = Path(self.root)
        self._made = Path(tempfile.mkdtemp(prefix="kernmodel-"))
        engines, other = helpers(root), target()
        if other is not None and version == "editable":
            raise ValueError(f"{VARIABLE} is for wheels; an editable installation is for this platform")
        ending = engines.ENDING if other is None else other.ending
        for number, name in enumerate(ENGINES):
            place = name + ending
            library = root / place if version == "editable" else self._made / f"{number}{ending}"
            failure = build((root / name).parent / engines.NATIVE, library, engines)
            if failure and other is not None:
                raise RuntimeError(f"the engine {place} cannot be compiled for {other.tag}: {failure}")
            if failure:
                library.unlink(missing_ok=True)  # in the source tree one of an earlier build may stand
                self.app.display_warning(
                    f"kernmodel: the compiled engine {place} is left out, because {failure}\n"
                    "Its simulation runs in pure Python, some hundred times slower."
                )
            elif version != "editable":
                build_data["force_include"][str(library)] = place
                platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
                build_data["pure_python"] = False
                build_data["tag"] = f"py3-none-{platform if other is None else other.tag}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """The libraries are in the wheel."""
        shutil.rmtree(self._made, ignore_errors=True)
