"""Builds the C engines of the simulations where a C compiler is; without one the package is pure Python.

A wheel carries the shared libraries and is tagged for the platform; an editable installation gets them into the source
tree. `CC` names the compiler; else the first of cc, gcc and clang is taken.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ENDING = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
ENGINES = {
    "kernmodel/cachesim/_engine": "kernmodel/cachesim/native/engine.c",
    "kernmodel/incore/pipeline/_pipeline": "kernmodel/incore/pipeline/_pipeline.c",
}
"""The source of each library."""
FLAGS = ("-std=c11", "-O3", "-shared", "-fPIC", "-fvisibility=hidden")


def compiler() -> list[str] | None:
    """The command of the C compiler, or None."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    found = next((path for name in ("cc", "gcc", "clang") if (path := shutil.which(name))), None)
    return [found] if found else None


def build(source: Path, library: Path) -> str | None:
    """Compile and put the library in its place at once (it may be in use); what went wrong, or None."""
    command = compiler()
    if command is None:
        return "no C compiler (cc, gcc or clang) is on the PATH"
    made = library.with_suffix(".new")
    try:
        result = subprocess.run(
            [*command, *FLAGS, "-o", str(made), str(source)], capture_output=True, text=True, check=False
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

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the files are gathered."""
        root = Path(self.root)
        self._made = Path(tempfile.mkdtemp(prefix="kernmodel-"))
        for number, (name, source) in enumerate(ENGINES.items()):
            place = name + ENDING
            library = root / place if version == "editable" else self._made / f"{number}{ENDING}"
            failure = build(root / source, library)
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
                build_data["tag"] = f"py3-none-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """The libraries are in the wheel."""
        shutil.rmtree(self._made, ignore_errors=True)
