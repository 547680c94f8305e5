"""What several probes of one host say of each figure of one core, and whether their files say how far to trust it.

    kernmodel machine probe -o p1.yml; kernmodel machine probe -o p2.yml; kernmodel machine probe -o p3.yml
    python benchmarks/probe_repeats.py p1.yml p2.yml p3.yml

Printed are the figures of which the files are more than 5 % apart, or which not all of them have. "!" marks those of
which no file states a spread as wide as that: the exit status is 1 where there are any. What is a difference of two
passes (`beside_vectors`, `streams`) is compared with the whole pass, since that is what is measured.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

APART = 5.0
"""Percent."""


_PASS = 15.0
"""Cycles that a pass over a line from memory and two of the last cache takes at least."""


class Found(NamedTuple):
    """A figure of a file, the spread that stands beside it in percent, and the time of which it is a part."""

    value: float
    spread: float = 0.0
    whole: float = 0.0


def main() -> int:
    """Print what differs; the exit status is 1 where a file does not say so."""
    files = [dict(figures(yaml.safe_load(Path(name).read_text(encoding="utf-8")))) for name in sys.argv[1:]]
    names = list(dict.fromkeys(name for one in files for name in one))
    differing = untold = 0
    for name in names:
        found = [one.get(name) for one in files]
        there = [one for one in found if one is not None]
        low, high = min(one.value for one in there), max(one.value for one in there)
        apart = 100 * (high - low) / (max(one.whole for one in there) or low or 1.0)
        if apart <= APART and len(there) == len(files):
            continue
        told = apart <= max(APART, *(one.spread for one in there))
        differing += 1
        untold += not told
        shown = "  ".join("-" if one is None else f"{one.value:g} (± {one.spread:.0f} %)" for one in found)
        print(f"{'' if told else '!':1} {name:24} {apart:6.1f} %  {shown}")
    print(f"of {len(names)} figures of one core {differing} are not within {APART:g} % of one another in all files,")
    print(f"of which {untold} have no spread that says so")
    return 1 if untold else 0


def figures(file: Mapping[str, Any]) -> Iterator[tuple[str, Found]]:
    """The figures of one core in a machine file, by name."""
    yield "clock", Found(float(file["clock"].split()[0]))
    for name, cache in file["caches"].items():
        if "one core can use is not known" not in _words(cache["source"]):
            yield f"{name} size", Found(float(cache["size"].split()[0]), 100 / float(cache["ways"]))
    for name, path in file["paths"].items():
        yield from _of_path(name, path)
    streams = file.get("streams", {"longer": ()})
    for lines, cycles in streams["longer"]:
        ends = re.findall(rf"\b{lines} from memory ([\d.]+) to ([\d.]+)", _words(streams["source"]))[0]
        yield f"streams, {lines} from memory", Found(float(cycles), 100 * _width(*ends) / float(cycles))
    source = _words(file["bandwidths"]["source"])
    for series in file["bandwidths"]["measured"]:
        for mix, values in series["values"].items():
            name = f"{series['level']} {mix}"
            yield name, Found(float(values[0]), _spread(source, name))
    for peak in file.get("peaks", {}).get("measured", ()):
        name = f"{peak['operation']} {peak['precision']} {peak['register']}"
        yield name, Found(float(peak["value"]), _spread(_words(file["peaks"]["source"]), name))


def _of_path(name: str, path: Mapping[str, Any]) -> Iterator[tuple[str, Found]]:
    source = _words(path["source"])
    for lines, cycles in enumerate(path.get("beside_memory", ())):
        yield f"{name} beside {lines} lines", Found(float(cycles), _spread(source, f"{lines} lines"))
    for length, cycles in path.get("run_length", ()):
        yield f"{name} runs of {length} B", Found(float(cycles), _spread(source, f"{length} B"))
    for vectors, cycles in path.get("beside_vectors", ()):
        yield f"{name} {vectors} vectors", Found(float(cycles), _spread(source, f"{vectors} vectors"), _PASS)
    if "small_pages" in path:
        value = float(path["small_pages"].split()[0])
        ends = re.findall(r"differences: [\d.]+ \(([\d.]+) to ([\d.]+)\)", source)
        yield f"{name} small pages", Found(value, 100 * _width(*ends[0]) / value if ends and value else 0.0)


def _words(text: str) -> str:
    return " ".join(text.split())


def _width(low: str, high: str) -> float:
    return float(high) - float(low)


def _spread(source: str, name: str) -> float:
    found = re.findall(rf"(?<![\d.]){re.escape(name)} ([\d.]+) %", source)
    return float(found[-1]) if found else 0.0


if __name__ == "__main__":
    sys.exit(main())
