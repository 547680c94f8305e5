"""Run the examples of README.md and docs/: every `$ command` in a ```console block, and every line of a ```shell block,
must exit with the status it should; every `>>>` example in a ```pycon block must print what stands below it.

    python docs/run_examples.py [--update] [FILE.md ...]

The commands of a document run in one temporary folder, in order, so that later ones may use files of earlier ones, its
```pycon blocks in one interpreter; ```c, ```asm, ```yaml and ```python blocks whose first line is a comment naming a
file are written there. `# exit N` at the end of a command states an exit status other than 0. Commands that install are
left to the check itself. With --update, the output shown in ```console blocks is replaced by what the commands print
now. The documents run side by side, one on each core.
"""

from __future__ import annotations

import argparse
import contextlib
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

from kernmodel.resources import carried_folder

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(console|shell|pycon|c|asm|yaml|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"^\s*(?://|/\*|#)\s*([\w.-]+\.(?:c|s|yml|py))\b")
STATUS = re.compile(r"#\s*exit (\d+)\s*$")
MEASURING = ("kernmodel measure ", "kernmodel machine probe", "kernmodel validate")
NOT_MEASURED = 3
LEFT_OUT = ("pip ", "python -m venv", "python3 -m venv", "git ", ". ", "source ", "python -m pip", "python -m pytest")


def run_document(document: Path, *, update: bool) -> list[str]:
    """Run one document's examples, in place of their output if `update`; the failures."""
    failures: list[str] = []
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:

        def run_block(match: re.Match[str]) -> str:
            kind, body = match.groups()
            if kind == "console":
                return f"```console\n{run_commands(body, Path(folder), document.name, failures)}```"
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


def run_commands(body: str, folder: Path, document: str, failures: list[str]) -> str:
    """Run the commands of one block; the block with their present output."""
    shown: list[str] = []
    kept = ""
    for line in re.sub(r"\\\n>?\s*", " ", body).splitlines(keepends=True):
        if not line.startswith("$ "):
            kept += line
            continue
        shown.append(kept)
        kept = ""
        shown.append(line)
        if not line[2:].startswith(LEFT_OUT):
            shown.append(run(line[2:].strip(), folder, document, failures))
            kept = "\0"  # what stood below is replaced
    shown.append(kept)
    return "".join(part for part in shown if not part.startswith("\0"))


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
    with ProcessPoolExecutor(max_tasks_per_child=1) as pool:
        told = pool.map(partial(run_document, update=options.update), documents)
        failures = [failure for of_document in told for failure in of_document]
    print("\n".join(failures) or "all examples run")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
