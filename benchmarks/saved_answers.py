"""Whether answers stay as they were, bit for bit: for changes that are to change nothing.

    python benchmarks/saved_answers.py REFERENCE.jsonl.gz --data DIR            # write the answers of this version
    python benchmarks/saved_answers.py REFERENCE.jsonl.gz --data DIR --check    # compare this version with them
    python benchmarks/saved_answers.py REFERENCE.jsonl.gz --only ecm,blocks     # some of the groups
    python benchmarks/saved_answers.py REFERENCE.jsonl.gz --check --only traffic --every 20    # each twentieth pair

The answers are the JSON documents of the command line, which outlives what is behind it: `ecm`, `traffic`, `roofline`
of every carried kernel on every carried machine, and `incore --batch` of all blocks under DIR (oracle/, bhive/,
measured/), each on its own core. Paths and temporary names are taken out, nothing else. Write the reference outside the
repository; about fifteen minutes on two cores. Exit status 1 if an answer differs or is missing.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TextIO

GROUPS = ("ecm", "traffic", "roofline", "blocks")
OPTIONS = {"ecm": (), "traffic": ("--cache", "both"), "roofline": ("--model", "all")}
BLOCK_COLUMNS = ("hex", "hex_loop", "hex_unrolled")
CORES = {"zen4-loops-dev.csv.gz": "ZEN4", "redwood-cove-dev.csv.gz": "RWC"}
"""Of files whose rows name none."""
SHOWN = 20


def run(*arguments: str) -> tuple[int, str]:
    """Exit status and standard output of a command, or its message."""
    command = [sys.executable, "-c", "from kernmodel.cli.main import main; main()", *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200"})
    return found.returncode, found.stdout or found.stderr


def names(command: str, key: str) -> list[str]:
    """Carried machines or kernels."""
    return [entry["name"] for entry in json.loads(run(command, "list", "--json")[1])[key]]


def comparable(text: str) -> str:
    """Without paths of this machine and temporary names."""
    return re.sub(r'(/[\w.+-]+)+/(?=[\w.+-]+")', "", re.sub(r"/tmp/[\w./+-]+", "TMP", text))


def kernel_answers(group: str, every: int) -> Iterator[tuple[str, str]]:
    """Key and answer of one command, for all kernels on all machines, or each N-th of these pairs."""
    machines = names("machine", "machines")
    pairs = [(kernel, machine) for kernel in names("kernel", "kernels") for machine in machines][::every]

    def answer(pair: tuple[str, str]) -> tuple[str, str]:
        kernel, machine = pair
        status, text = run(group, "-m", machine, kernel, *OPTIONS[group], "--json")
        return f"{group} {kernel} {machine}", f"{status} {comparable(text)}"

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(answer, pairs)


def block_files(data: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Name of each file of blocks, core, and the hex digits of its blocks."""
    for file in sorted((*data.glob("*/*.csv"), *data.glob("*/*.csv.gz"))):
        with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
            rows = list(csv.DictReader(lines))
        columns = [name for name in BLOCK_COLUMNS if rows and name in rows[0]]
        found: dict[str, dict[str, None]] = {}
        for row in rows if columns else ():
            core = row.get("arch") or CORES.get(file.name)
            for name in columns if core else ():
                if row[name]:
                    found.setdefault(core or "", {})[row[name]] = None
        for core, codes in found.items():
            yield file.name, core, list(codes)


def block_answers(data: Path) -> Iterator[tuple[str, str]]:
    """Key and answer of every block."""
    for name, core, codes in block_files(data):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("\n".join(codes) + "\n")
            file.flush()
            status, text = run("incore", "--uarch", core, "--batch", file.name, "--json")
        lines = text.splitlines()
        if len(lines) != len(codes):
            sys.exit(f"{name} on {core}: {len(lines)} answers for {len(codes)} blocks, exit status {status}")
        for code, line in zip(codes, lines, strict=True):
            yield f"block {name} {core} {code}", comparable(line)


def answers(groups: Sequence[str], data: Path | None, every: int) -> Iterator[tuple[str, str]]:
    """The answers of the groups."""
    for group in groups:
        if group != "blocks":
            yield from kernel_answers(group, every)
        elif data is not None:
            yield from block_answers(data)


def read(path: Path, groups: Sequence[str]) -> dict[str, str]:
    """The kept answers of the groups."""
    wanted = {"block" if group == "blocks" else group for group in groups}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        pairs = (json.loads(line) for line in file)
        return {key: answer for key, answer in pairs if key.split()[0] in wanted}


def write(file: TextIO, found: Iterator[tuple[str, str]]) -> int:
    """Keep the answers; how many there are."""
    return sum(1 for pair in found if file.write(json.dumps(pair) + "\n"))


def compare(kept: Mapping[str, str], found: Iterator[tuple[str, str]], complete: bool) -> int:
    """Print the first differences; how many there are. Only of a complete run may no answer be missing."""
    rest, different, number = dict(kept), 0, 0
    for key, answer in found:
        number += 1
        before = rest.pop(key, None)
        if before == answer:
            continue
        different += 1
        if different <= SHOWN:
            print(f"differs: {key}: {difference(before, answer)}", flush=True)
    if not complete:
        rest = {}
    for key in list(rest)[:SHOWN]:
        print(f"missing: {key}")
    print(f"{number} answers, {different} of them differ, {len(rest)} missing")
    return different + len(rest)


def difference(before: str | None, after: str) -> str:
    """Where two answers differ, by the first key of their documents."""
    if before is None:
        return "is new"
    try:
        one, other = (json.loads(text[text.index("{") :]) for text in (before, after))
    except ValueError:
        return f"{before[:100]!r} is now {after[:100]!r}"
    return first_difference(one, other, "") or "only in its layout"


def first_difference(one: Any, other: Any, path: str) -> str | None:
    """The path of the first values that differ, with both."""
    if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        pairs = [(f"{path}.{key}", one[key], other[key]) for key in one]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(f"{path}[{at}]", *pair) for at, pair in enumerate(zip(one, other, strict=True))]
    else:
        return None if one == other else f"{path}: {str(one)[:80]} is now {str(other)[:80]}"
    return next((text for name, a, b in pairs if (text := first_difference(a, b, name))), None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default=",".join(GROUPS))
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="of the pairs of kernel and machine, only each N-th"
    )
    options = parser.parse_args()
    groups = options.only.split(",")
    if unknown := set(groups) - set(GROUPS):
        parser.error(f"no group {', '.join(sorted(unknown))}; there are {', '.join(GROUPS)}")
    if "blocks" in groups and options.data is None:
        print("without --data no blocks", file=sys.stderr)
    if options.check:
        found = answers(groups, options.data, options.every)
        return 1 if compare(read(options.reference, groups), found, options.every == 1) else 0
    with gzip.open(options.reference, "wt", encoding="utf-8") as file:
        print(f"{write(file, answers(groups, options.data, options.every))} answers kept in {options.reference}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
