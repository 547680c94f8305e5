"""The output of likwid-bench (LIKWID 4 and 5): one or several runs in one file, whatever stands between them.

A run names its kernel ("Test:"), its threads, the size of the data and the rate; bytes are those of loads and stores.
Which level the data lay in follows from their size and the machine. "Cycles" of likwid-bench are ticks of the time
stamp counter, so only peaks are taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kernmodel.errors import Location, Note
from kernmodel.machine.benchmarks.facts import ELEMENT_BYTES, facts
from kernmodel.machine.benchmarks.model import BenchmarkFile, MeasuredBandwidth, Streams
from kernmodel.machine.model import MeasuredPeak

TOOL = "likwid-bench"
_TEST = re.compile(r"^Test: *(\S+)", re.MULTILINE)
_LINE = re.compile(r"^([A-Z][A-Za-z0-9 /().]*):[ \t]*([-+0-9.eE]+)", re.MULTILINE)
_THREADS = re.compile(r"^Using ([0-9]+) threads", re.MULTILINE)
_MEGA = 1e6
_PEAK = "peakflops"


def is_likwid_bench(text: str) -> bool:
    """Whether a text holds runs of likwid-bench."""
    return _TEST.search(text) is not None and "MByte/s:" in text


def read_likwid_bench(text: str, file: str, isa: str) -> BenchmarkFile:
    """The runs in a text.

    Args:
        isa: of the machine, by which names of kernels are read.
    """
    bandwidths: list[MeasuredBandwidth] = []
    peaks: list[MeasuredPeak] = []
    notes: list[Note] = []
    for line, name, run in _runs(text):
        found = _rate(name, run) if name.startswith(_PEAK) else _bandwidth(name, run, isa)
        if isinstance(found, MeasuredBandwidth):
            bandwidths.append(found)
        elif isinstance(found, MeasuredPeak):
            peaks.append(found)
        else:
            notes.append(
                Note("benchmark-left-out", f"the run of {name} is left out: {found}", where=Location(file, line))
            )
    return BenchmarkFile(TOOL, file, tuple(bandwidths), tuple(peaks), {}, tuple(notes))


def _runs(text: str) -> Iterator[tuple[int, str, Mapping[str, float]]]:
    """Line, kernel and figures of each run."""
    starts = [*_TEST.finditer(text)]
    for match, end in zip(starts, [*(one.start() for one in starts[1:]), len(text)], strict=True):
        part = text[match.end() : end]
        threads = _THREADS.search(part)
        figures = {key: _number(value) for key, value in _LINE.findall(part)}
        yield (
            text.count("\n", 0, match.start()) + 1,
            match[1],
            figures | {"threads": float(threads[1] if threads else 0)},
        )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _precision(words: list[str]) -> str:
    return "SP" if "sp" in words else "DP"


def _width(words: list[str], isa: str) -> int | None:
    """Bytes of an access by the words of a kernel's name; None: they do not say."""
    named = next((width for word, width in facts("likwid_width").items() if word in words), None)
    scalar = ELEMENT_BYTES[_precision(words)] if isa == "x86-64" else None
    return scalar if named is None else int(named)


def _bandwidth(name: str, run: Mapping[str, float], isa: str) -> MeasuredBandwidth | str:
    """The run, or why it is left out."""
    base, *words = name.split("_")
    if base in facts("likwid_by_line"):
        return "it touches one element of each cache line"
    if set(words) & set(facts("likwid_streaming")):
        return "its stores go past the caches, which stream mixes of machine files do not"
    read, write = int(run.get("Loads per update", -1)), int(run.get("Stores per update", -1))
    size, rate, threads = run.get("Size per thread", 0.0), run.get("MByte/s", 0.0), int(run["threads"])
    if min(read, write) < 0 or read + write == 0 or min(size, rate, threads) <= 0:
        return "its output is not whole (threads, Size per thread, MByte/s, Loads and Stores per update)"
    in_place = facts("likwid_in_place").get(base, 0 if read == 0 or write == 0 else None)
    if in_place is None:
        return "whether it stores where it loads is not known of this kernel"
    volume, flops = run.get("Data volume (Byte)", 0.0), run.get("Number of Flops", 0.0)
    each = (read + write) * ELEMENT_BYTES[_precision(words)]
    streams = Streams(
        name, f"{TOOL} {name}", read, write, int(in_place), round(flops * each / volume) if volume else 0.0,
        _width(words, isa),
    )  # fmt: skip
    return MeasuredBandwidth(streams, threads, rate * _MEGA, bytes_per_core=size)


def _rate(name: str, run: Mapping[str, float]) -> MeasuredPeak | str:
    """The run of a kernel that computes in registers, or why it is left out."""
    words = name.split("_")[1:]
    rate, threads = run.get("MFlops/s", 0.0), int(run["threads"])
    if min(rate, threads) <= 0:
        return "its output is not whole (threads, MFlops/s)"
    if "fma" not in words:
        return "it mixes additions and multiplications, peaks of machine files are of one kind of instruction"
    precision = _precision(words)
    width = _width(words, "") or ELEMENT_BYTES[precision]
    return MeasuredPeak("FMA", precision, width, threads, rate * _MEGA)
