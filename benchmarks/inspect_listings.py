"""The assembly of the loops that INSPECT measured, out of its pages, for `measured_kernels.py --listings FOLDER`.

    git clone https://github.com/RRZE-HPC/INSPECT
    python benchmarks/inspect_listings.py INSPECT FOLDER

Each page `stencils/<dimension>/<radius>/…/<machine>/index.md` shows the loop that IACA or OSACA analysed. It is written
as `<stencil>@<machine>.s`, so that GNU as takes it: the branch goes to a label before the loop, marks of the analyser
go, and no-ops lose the operands that the disassembler gave them without brackets.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

_SHOWN = re.compile(r"capture source_code_asm -%\}\n(.*?)\n\{%- endcapture", re.DOTALL)
_MARK = re.compile(r"^[XP*]+\s+(?=[\w.])")
"""Of OSACA before a line: on the critical path, an unknown instruction, one without a port."""
_NOP = re.compile(r"^(\s*nop)[ \t].*$")


def main() -> None:
    """Write the listings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for page in sorted(given.repository.glob("stencils/*/*/*/*/*/*/*/index.md")):
        *stencil, machine = page.parent.relative_to(given.repository / "stencils").parts
        text = listing(page.read_text(encoding="utf-8"))
        if text is not None:
            (given.folder / f"{'-'.join(stencil)}@{machine}.s").write_text(text, encoding="utf-8")
            count += 1
    print(f"{given.folder}: {count} listings")


def listing(page: str) -> str | None:
    """The loop of a page as GNU as takes it; None where the page shows none."""
    shown = _SHOWN.search(page)
    lines = [_NOP.sub(r"\1", _MARK.sub("", line)) for line in shown[1].splitlines() if line.strip()] if shown else []
    if not lines or not lines[-1].lstrip().startswith("j"):
        return None
    syntax = [] if any("%" in line for line in lines) else [".intel_syntax noprefix"]
    return "\n".join([*syntax, ".L0:", *lines[:-1], f"{lines[-1].split()[0]} .L0", ""])


if __name__ == "__main__":
    main()
