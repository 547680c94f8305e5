"""How much of real source files is read: loop nests that are modelled, and why others are not.

    python benchmarks/own_files.py PATH… [-I DIR]… [-D NAME]… [--marked] [--list]

Every PATH is a file, or a folder whose C and C++ files are read. Headers are looked for beside each file, in the
folders of -I, and with --headers in all folders of PATH that hold some. A nest counts as modelled if `kernel loops`
says so. Reasons are grouped by their words, names and numbers left out. --list names the refused nests one by one.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernmodel.errors import KernmodelError
from kernmodel.source.load import FoundNest, find_nests
from kernmodel.source.model import LoopNest

ENDINGS = frozenset({".c", ".cc", ".cpp", ".cxx", ".C"})
HEADERS = frozenset({".h", ".hpp", ".hh", ".hxx", ".inc"})


@dataclass
class Tally:
    """What was found in files.

    Attributes:
        nests, modelled: how many; functions: (file, function) to whether all of its nests are modelled.
        reasons: of nests and files that are not; refused: each with its place.
    """

    nests: int = 0
    modelled: int = 0
    functions: dict[tuple[str, str], bool] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    refused: list[str] = field(default_factory=list)

    def refuse(self, where: str, why: KernmodelError) -> None:
        """Count a refusal."""
        self.reasons[reason(why.what)] += 1
        self.refused.append(f"{where}: {why}")


def reason(what: str) -> str:
    """The words of a message, without the names and numbers in it."""
    plain = re.sub(r"\([^()]*\)|\[[^\[\]]*\]", "", what.split(":", maxsplit=1)[0])
    return re.sub(r"\b(\w*[_\d]\w*|\w)\b(->\w+|\.\w+)*|\s+", " ", plain).strip()[:100]


def files_in(paths: Sequence[Path]) -> Iterator[Path]:
    """The C and C++ files that are given, or stand in folders that are."""
    for path in paths:
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (one for one in found if not path.is_dir() or one.suffix in ENDINGS)


def folders_of_headers(paths: Sequence[Path]) -> tuple[str, ...]:
    """The folders below the paths that hold headers."""
    found = (one.parent for path in paths if path.is_dir() for one in path.rglob("*") if one.suffix in HEADERS)
    return tuple(map(str, dict.fromkeys(found)))


def count(tally: Tally, file: Path, found: Sequence[FoundNest]) -> None:
    """Count the nests of a file."""
    for one in found:
        modelled = isinstance(one.nest, LoopNest)
        key = (str(file), one.function)
        tally.functions[key] = tally.functions.get(key, True) and modelled
        tally.nests += 1
        tally.modelled += modelled
        if not isinstance(one.nest, LoopNest):
            tally.refuse(f"{file.name} {one.function} nest {one.number}", one.nest)


def main() -> None:
    """Count the nests in the files of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("-I", dest="include", action="append", default=[])
    parser.add_argument("-D", dest="defines", action="append", default=[], metavar="NAME[=TEXT]")
    parser.add_argument("--headers", action="store_true", help="look for headers in all folders of PATH")
    parser.add_argument("--marked", action="store_true", help="only functions that a pragma marks, where there is one")
    parser.add_argument("--list", action="store_true", help="name each refused nest")
    given = parser.parse_args()
    defines = {name: text or "1" for name, _, text in (one.partition("=") for one in given.defines)}
    include = (*given.include, *(folders_of_headers(given.paths) if given.headers else ()))
    tally, began, files, unread = Tally(), time.process_time(), 0, 0
    for file in files_in(given.paths):
        files += 1
        try:
            count(tally, file, find_nests(str(file), defines, include=include, marked=given.marked))
        except KernmodelError as error:
            unread += 1
            tally.refuse(file.name, error)
    if given.list:
        print("\n".join(tally.refused))
    whole = sum(tally.functions.values())
    print(f"{files} files, {unread} of them not read, {time.process_time() - began:.1f} s of the processor")
    print(f"{len(tally.functions)} functions with loops, {whole} of them with all nests modelled")
    print(f"{tally.nests} nests, {tally.modelled} modelled ({tally.modelled / max(tally.nests, 1):.0%})")
    for text, number in tally.reasons.most_common(25):
        print(f"  {number:4}  {text}")


if __name__ == "__main__":
    main()
