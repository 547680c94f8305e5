"""Execute the notebooks of the documentation and write them with their outputs: python docs/run_notebooks.py [FOLDER].

Any cell that fails is an error. Needs `pip install -e '.[docs]'`. FOLDER is site/notebooks by default.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient

DOCS = Path(__file__).resolve().parent
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.py"))


def main() -> None:
    """Execute each in a folder of its own."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS.parent / "site" / "notebooks"
    target.mkdir(parents=True, exist_ok=True)
    for source in NOTEBOOKS:
        started = time.monotonic()
        notebook = jupytext.read(source)
        with tempfile.TemporaryDirectory() as folder:
            NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
        shown = sum(bool(cell.get("outputs")) for cell in notebook.cells)
        nbformat.write(notebook, target / f"{source.stem}.ipynb")
        print(f"ok  {time.monotonic() - started:5.1f} s {source.name}: {shown} cells show something", flush=True)


if __name__ == "__main__":
    main()
