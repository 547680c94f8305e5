"""What the adapters of other tools share: running a tool within a time limit, and many pieces side by side."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from kernmodel.binary.predictors.protocol import Piece, PieceCycles
from kernmodel.errors import ToolError
from kernmodel.limits import process_count

_SHOWN = 200
_VERSION_SECONDS = 20.0
Key = tuple[bytes, str]
Found = TypeVar("Found")


def found_tool(name: str, variable: str, names: Sequence[str], package: str) -> str:
    """The path of a tool: what an environment variable names, else the first of these names on the path.

    Raises:
        ToolError: there is none; `package` says how to get it.
    """
    given = os.environ.get(variable)
    for one in [given] if given else names:
        path = shutil.which(one)
        if path is not None:
            return path
    wanted = f"{given} ({variable}) is no program" if given else f"none of {', '.join(names)} is installed"
    raise ToolError(wanted, where=name, todo=f"{package}, or name it by the environment variable {variable}")


def llvm_names(tool: str) -> tuple[str, ...]:
    """What a tool of LLVM may be called, the newest versions first."""
    return (*(f"{tool}-{version}" for version in range(24, 14, -1)), tool)


def core_name(tool: str, microarchitecture: str) -> str:
    """What a tool calls one of our cores (`cores.yml`), "" where it has no model of it."""
    from kernmodel.schema.yaml_nodes import load

    file = Path(__file__).with_name("cores.yml")
    return str(load(file.read_text(encoding="utf-8"), file.name)[tool].get(microarchitecture, ""))


def version_of(tool: str) -> str:
    """The first number with dots that a tool gives as its version, "" where it gives none."""
    status, output, _ = said((tool, "--version"), b"", _VERSION_SECONDS)
    found = re.search(r"\d+(?:\.\d+)+", output.decode(errors="replace"))
    return found[0] if found and not status else ""


def said(command: Sequence[str], text: bytes, seconds: float) -> tuple[int, bytes, str]:
    """What a tool answers to a text on its standard input: exit status, output, and what it complains of.

    A tool that takes longer is ended; its status is then -1.

    Raises:
        ToolError: it cannot be executed.
    """
    import subprocess

    try:
        done = subprocess.run(command, input=text, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return -1, b"", f"took longer than {seconds:g} s"
    except OSError as error:
        raise ToolError(f"cannot be executed ({error.strerror})", where=command[0], todo="install it anew") from error
    lines = [line.strip() for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
    told = next((line for line in lines if "error" in line.lower()), lines[-1] if lines else "")
    return done.returncode, done.stdout, told[:_SHOWN]


def each_once(
    pieces: Sequence[Piece], answer: Callable[[Sequence[Piece]], Sequence[PieceCycles]], at_once: int, jobs: int | None
) -> list[PieceCycles]:
    """Answers for pieces of which those with the same bytes and notion are asked for once, `at_once` together, by
    several processes side by side."""
    different: dict[Key, Piece] = {(piece.code, piece.notion): piece for piece in pieces}
    wanted = list(different.values())
    parts = [wanted[k : k + at_once] for k in range(0, len(wanted), at_once)]
    with ThreadPoolExecutor(max(1, min(process_count(jobs), len(parts)))) as threads:
        answers = [one for part in threads.map(answer, parts) for one in part]
    known = dict(zip(different, answers, strict=True))
    return [known[piece.code, piece.notion] for piece in pieces]
