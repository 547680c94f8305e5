"""Run the examples of README.md and docs/: every `$ command` in a ```console block, and every line of a ```shell block,
must exit with the status it should and print what stands below it; so must every `>>>` example in a ```pycon block.

    python docs/run_examples.py [--update] [FILE.md ...]

The commands of a document run in one temporary folder, in order, so that later ones may use files of earlier ones, its
```pycon blocks in one interpreter; ```c, ```asm, ```yaml and ```python blocks whose first line is a comment naming a
file are written there. `# exit N` at the end of a command states an exit status other than 0. Commands that install are
left to the check itself. Where nothing stands below a command, it may print what it likes; `...` stands for any text.
Figures depend on the code that the compiler makes: with another gcc than GCC, whose outputs the documents show, exit
statuses alone are compared, and it is said. With --update, what differs in ```console blocks is replaced by what the
commands print now. The documents run side by side, one on each core.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import doctest
import io
import os
import re
import subprocess
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kernmodel.resources import carried_folder

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(console|shell|pycon|c|asm|yaml|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"^\s*(?://|/\*|#)\s*([\w.-]+\.(?:c|s|yml|py))\b")
COMMAND = re.compile(r"\$ ((?:.*\\\n)*.*)\n?")
STATUS = re.compile(r"#\s*exit (\d+)\s*$")
MEASURING = ("kernmodel measure ", "kernmodel machine probe", "kernmodel validate")
NOT_MEASURED = 3
GCC = "12"
LEFT_OUT = ("pip ", "python -m venv", "python3 -m venv", "git ", ". ", "source ", "python -m pip", "python -m pytest")


def gcc_version() -> str:
    """The major version of gcc on this machine, or "" without it."""
    try:
        return subprocess.run(["gcc", "-dumpversion"], capture_output=True, text=True, check=False).stdout.strip()
    except FileNotFoundError:
        return ""


def run_document(document: Path, *, update: bool, compared: bool) -> list[str]:
    """Run one document's examples; the failures. Outputs count if `compared`, and are replaced by `update`."""
    failures: list[str] = []
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:

        def run_block(match: re.Match[str]) -> str:
            kind, body = match.groups()
            if kind == "console":
                blocks = run_commands(body, Path(folder), document.name, failures)
                if compared and not update:
                    failures.extend(difference for block in blocks if (difference := block.difference(document.name)))
                return "```console\n" + "".join(block.renewed() for block in blocks) + "```"
            if kind == "shell":
                for line in body.splitlines():
                    if line and not line.startswith(("#", *LEFT_OUT)):
                        run(line, Path(folder), document.name, failures)
            elif kind == "pycon":
                run_python(body, names, Path(folder), document.name, failures)
            elif name := FILE_NAME.match(body):
                (Path(folder) / name[1]).write_text(body)
            return match[0]

        text = document.read_text()
        updated = BLOCK.sub(run_block, text)
    if update and updated != text:
        document.write_text(updated)
    return failures


class Shown(NamedTuple):
    """One command of a block: its lines, what the document shows below it, and what it prints now (None: not run)."""

    lines: str
    shown: str
    printed: str | None

    @property
    def holds(self) -> bool:
        """Whether the document may stay as it is."""
        if self.printed is None or not self.shown:
            return True
        return doctest.OutputChecker().check_output(self.shown, self.printed, doctest.ELLIPSIS)

    def renewed(self) -> str:
        """The command with its present output."""
        return self.lines + (self.shown if self.holds else self.printed or "")

    def difference(self, document: str) -> str:
        """What the document shows otherwise than the command prints; "" if nothing."""
        if self.holds:
            return ""
        printed = (self.printed or "").splitlines()
        lines = difflib.unified_diff(self.shown.splitlines(), printed, "shown", "printed", n=0, lineterm="")
        return "\n  ".join([f"{document}: {self.lines.strip()}", *lines])


def run_commands(body: str, folder: Path, document: str, failures: list[str]) -> list[Shown]:
    """Run the commands of one block."""
    commands: list[Shown] = []
    for part in re.split(r"^(?=\$ )", body, flags=re.MULTILINE):
        if not (found := COMMAND.match(part)):
            commands.append(Shown(part, "", None))
            continue
        command = re.sub(r"\\\n>?\s*", " ", found[1]).strip()
        left_out = command.startswith(LEFT_OUT)
        commands.append(
            Shown(found[0], part[found.end() :], None if left_out else run(command, folder, document, failures))
        )
    return commands


def run_python(body: str, names: dict[str, object], folder: Path, document: str, failures: list[str]) -> None:
    """Run the `>>>` examples of one block with the names of those before."""
    test = doctest.DocTestParser().get_doctest(body, names, document, None, None)
    told = io.StringIO()
    with contextlib.chdir(folder):
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
        failed = runner.run(test, out=told.write, clear_globs=False).failed
    names.update(test.globs)
    print(f"{'FAIL' if failed else 'ok  '}         {document}: {len(test.examples)} examples of Python", flush=True)
    if failed:
        failures.append(f"{document}:\n{told.getvalue()}")


def run(command: str, folder: Path, document: str, failures: list[str]) -> str:
    """Run one command; what it prints, with the folder of the carried files left out."""
    status = STATUS.search(command)
    expected = int(status[1]) if status else 0
    environment = os.environ | {"COLUMNS": "120"}
    shell = ["bash", "-o", "pipefail", "-c", command]
    started = time.monotonic()
    done = subprocess.run(shell, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    if done.returncode == NOT_MEASURED and command.startswith(MEASURING):  # this host lets nothing be measured
        expected = NOT_MEASURED
    verdict = "ok  " if done.returncode == expected else "FAIL"
    print(f"{verdict} {time.monotonic() - started:5.1f} s {document}: {command}", flush=True)
    if done.returncode != expected:
        failures.append(f"{document}: {command}\n  exit {done.returncode}, not {expected}\n  {done.stderr[-500:]}")
    return (done.stdout + done.stderr).replace(f"{carried_folder('kernels').parent}/", "")


def main() -> int:
    """Run the given documents, or README and all of docs."""
    parser = argparse.ArgumentParser(description="Run the examples of the documentation.")
    parser.add_argument("--update", action="store_true", help="replace the output shown by what is printed now")
    parser.add_argument("documents", nargs="*", type=Path)
    options = parser.parse_args()
    documents = options.documents or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    compared = gcc_version() == GCC
    if not compared:
        other = gcc_version() or "none"
        print(f"documents show what gcc {GCC} leads to, this is {other}: exit statuses alone are compared")
    with ProcessPoolExecutor(max_tasks_per_child=1) as pool:
        told = pool.map(partial(run_document, update=options.update, compared=compared), documents)
        failures = [failure for of_document in told for failure in of_document]
    print("\n".join(failures) or "all examples run")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
