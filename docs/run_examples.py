"""Run the examples of README.md and docs/: every `$ command` in a ```console block must exit with the status it should.

    python docs/run_examples.py [FILE.md ...]

A block's commands run in one temporary folder per document, in order, so that later ones may use files of earlier ones
(```c and ```asm blocks whose first line is a comment naming a file are written there). `# exit N` at the end of a command
states an exit status other than 0. Installation commands (pip, venv, git) are left to the check itself.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```(console|c|asm|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE_NAME = re.compile(r"^\s*(?://|/\*|#)\s*([\w.-]+\.(?:c|s|yml))\b")
LEFT_OUT = ("pip ", "python -m venv", "python3 -m venv", "git ", ". ", "source ", "python -m pip", "python -m pytest")


def commands_of(block: str) -> list[tuple[str, int]]:
    """The commands of a console block with the exit status each must have."""
    joined = re.sub(r"\\\n>?\s*", " ", block)
    result = []
    for line in joined.splitlines():
        if line.startswith("$ ") and not line[2:].startswith(LEFT_OUT):
            status = re.search(r"#\s*exit (\d+)\s*$", line)
            result.append((line[2:], int(status[1]) if status else 0))
    return result


def run_document(document: Path) -> list[str]:
    """The failures of one document's examples."""
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for match in BLOCK.finditer(document.read_text()):
            kind, body = match.groups()
            name = FILE_NAME.match(body)
            if kind != "console":
                if name:
                    (Path(folder) / name[1]).write_text(body)
                continue
            for command, expected in commands_of(body):
                done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
                print(f"{'ok  ' if done.returncode == expected else 'FAIL'} {document.name}: {command}")
                if done.returncode != expected:
                    failures.append(f"{document.name}: {command}\n  exit {done.returncode}, not {expected}\n  {done.stderr[-500:]}")
    return failures


def main() -> int:
    """Run the given documents, or README and all of docs."""
    given = [Path(name) for name in sys.argv[1:]]
    documents = given or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    failures = [failure for document in documents for failure in run_document(document)]
    print("\n".join(failures) or "all examples run")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
