"""A machine file with the bandwidths and peaks that another tool measured: `kernmodel machine import RESULTS -m FILE`.

Everything else stays as the machine file has it. Series of a level for which there are new ones are left out, since
they may be another host's; peaks give way to new ones of their kind. Of several runs of one benchmark the fastest
counts: what disturbs only takes time.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernmodel.errors import MachineError, Note
from kernmodel.machine.benchmarks.carm_tool import is_carm_tool, read_carm_tool
from kernmodel.machine.benchmarks.likwid_bench import is_likwid_bench, read_likwid_bench
from kernmodel.machine.benchmarks.model import BenchmarkFile, MeasuredBandwidth, Streams
from kernmodel.machine.files.schema import MACHINE_FILE
from kernmodel.machine.files.write import write_facts
from kernmodel.machine.kerncraft import Imported
from kernmodel.machine.load import find_machine, load_path
from kernmodel.machine.model import Machine, MeasuredPeak
from kernmodel.schema.document import FileKind, plain, read_document, read_text
from kernmodel.units import parse_quantity
from kernmodel.words import count

_FILE = FileKind("file of benchmark results", "docs/machine-files.md", MachineError)
_MEMORY = "Mem"
_MIXED = 2.0
"""Data of up to so many times a cache lie partly in it: such runs say nothing of the level beyond."""
_UNLIKE = 0.1
_KIB = 1024


def is_benchmark(file: str | Path) -> bool:
    """Whether a file holds results of likwid-bench or the CARM Tool.

    Raises:
        MachineError: it cannot be read.
    """
    text, _ = read_text(Path(file), _FILE)
    return is_likwid_bench(text) or is_carm_tool(text)


def take_over(files: Sequence[str | Path], machine: str) -> Imported:
    """The text of a machine file with what the files of results say.

    Args:
        machine: path or name of the machine file that they belong to.

    Raises:
        MachineError: a file cannot be read or is of no known tool; nothing in them is of use; the machine file is
            malformed.
    """
    path = find_machine(machine)
    known = load_path(path)
    read = [_read(file, known.isa) for file in files]
    notes = [note for one in read for note in one.notes]
    notes += [note for one in read for note in _other_caches(one, known)]
    notes += _left_out(read, known)
    placed, peaks = _placed(read, known), _fastest_peaks(read, known)
    if not placed and not peaks:
        where, todo = str(files[0]), "see the notes of what is left out: " + "; ".join(note.text for note in notes)
        raise MachineError("no bandwidth and no peak for this machine is in it", where=where, todo=todo)
    if any(cores > 1 for _, _, cores in placed):
        what = "threads are taken for cores: one thread on each, those of a cache side by side"
        notes.append(Note("threads-are-cores", what, "assumption"))
    facts = dict(_lists(plain(read_document(path, MACHINE_FILE).root)))
    source = "; ".join(f"{one.tool} as reported, {Path(one.file).name}" for one in read)
    if placed:
        facts["bandwidths"] = _bandwidths(facts["bandwidths"], placed, source, known.name)
        _fill_in_widths(facts["paths"], known, {level for level, _, cores in placed if cores == 1}, source)
    if peaks:
        facts["peaks"] = _peaks(facts.get("peaks"), peaks, source)
    comments = [f"{path.name} with results of {' and '.join(dict.fromkeys(one.tool for one in read))}."]
    comments += [f"{note.code}: {note.text}" for note in notes]
    return Imported(write_facts(facts, comments), tuple(notes))


def _lists(value: Any) -> Any:
    """Facts with lists where documents have tuples."""
    if isinstance(value, Mapping):
        return {key: _lists(item) for key, item in value.items()}
    return [_lists(item) for item in value] if isinstance(value, tuple) else value


def _read(file: str | Path, isa: str) -> BenchmarkFile:
    text, _ = read_text(Path(file), _FILE)
    if is_carm_tool(text):
        return read_carm_tool(text, str(file))
    if is_likwid_bench(text):
        return read_likwid_bench(text, str(file), isa)
    what = "is no output of likwid-bench and no roofline CSV of the CARM Tool"
    raise MachineError(what, where=str(file), todo="without -m, FILE is a machine file of Kerncraft")


def _other_caches(found: BenchmarkFile, machine: Machine) -> Iterable[Note]:
    """Caches whose size the tool took for another."""
    for level in machine.levels:
        kib = found.cache_kib.get(level.name)
        if kib and abs(kib * _KIB - level.size_bytes) > _UNLIKE * level.size_bytes:
            own = level.size_bytes / level.cores_sharing
            if abs(kib * _KIB - own) > _UNLIKE * own:
                what = (
                    f"{found.tool} went by {kib:g} KiB of {level.name}, {machine.name} has {level.size_bytes / _KIB:g}"
                )
                yield Note("other-caches", f"{what}: are the results of this machine?")


_Key = tuple[str, str, int]
_Placed = Mapping[_Key, MeasuredBandwidth]
_Kind = tuple[str, str, int, int]
"""Operation, precision, bytes of a register and cores of a peak."""


def _placed(read: Sequence[BenchmarkFile], machine: Machine) -> _Placed:
    """The fastest run of each level, benchmark and number of cores."""
    found: dict[_Key, MeasuredBandwidth] = {}
    for run in (run for one in read for run in one.bandwidths if not _why_not(run, machine)):
        key = (_level(run, machine), run.streams.name, run.cores)
        if key not in found or found[key].bytes_per_second < run.bytes_per_second:
            found[key] = run
    return found


def _fastest_peaks(read: Sequence[BenchmarkFile], machine: Machine) -> Mapping[_Kind, MeasuredPeak]:
    """The fastest run of each kind of peak."""
    found: dict[_Kind, MeasuredPeak] = {}
    for peak in (peak for one in read for peak in one.peaks if not _too_many(peak.cores, machine)):
        kind = (peak.operation, peak.precision, peak.width_bytes, peak.cores)
        if kind not in found or found[kind].flop_per_second < peak.flop_per_second:
            found[kind] = peak
    return found


def _left_out(read: Sequence[BenchmarkFile], machine: Machine) -> Iterator[Note]:
    """Runs that the machine has no place for."""
    for one in read:
        reasons = [(run.streams.name, run.cores, _why_not(run, machine)) for run in one.bandwidths]
        reasons += [
            (f"{peak.operation} {peak.precision}", peak.cores, _too_many(peak.cores, machine)) for peak in one.peaks
        ]
        for name, cores, why in reasons:
            if why:
                yield Note("benchmark-left-out", f"{name} on {count(cores, 'core')} is left out: {why} ({one.tool})")


def _why_not(run: MeasuredBandwidth, machine: Machine) -> str:
    """Why a run has no place in the machine file; "": it has one."""
    level = _level(run, machine)
    if not level:
        return f"{run.bytes_per_core * run.cores / _KIB:g} KiB lie in more than one level"
    return _too_many(run.cores, machine) or (
        "" if level in machine.residence_levels else f"{machine.name} has no {level}"
    )


def _too_many(cores: int, machine: Machine) -> str:
    """What is wrong with so many threads; "": nothing."""
    most = machine.topology.cores
    return f"{cores} threads, {machine.name} has {count(most, 'core')}" if cores > most else ""


def _level(run: MeasuredBandwidth, machine: Machine) -> str:
    """The level that holds the data; "" where they lie in two."""
    if run.level:
        return run.level
    for level in machine.levels:
        sharing = min(run.cores, level.cores_sharing)
        share = run.bytes_per_core * sharing / level.size_bytes
        if share < _MIXED:
            return level.name if share <= 1 else ""
    return _MEMORY


def _bandwidths(old: Mapping[str, Any], placed: _Placed, source: str, name: str) -> dict[str, Any]:
    """The section with the new series in place of those of their levels."""
    levels = {level for level, _, _ in placed}
    kept = [group for group in old["measured"] if group["level"] not in levels]
    used = {mix for group in kept for mix in group["values"]}
    factor = 1 / parse_quantity(f"1 {old['unit']}", "bandwidth")
    series: dict[tuple[str, str], dict[int, float]] = {}
    streams: dict[str, Streams] = {}
    for (level, mix, cores), run in sorted(placed.items()):
        series.setdefault((level, mix), {})[cores] = run.bytes_per_second * factor
        streams[mix] = run.streams
    groups: dict[tuple[str, tuple[int, ...]], dict[str, list[str]]] = {}
    for (level, mix), by_cores in series.items():
        values = [f"{value:.10g}" for value in by_cores.values()]
        groups.setdefault((level, tuple(by_cores)), {})[mix] = values
    new = [{"level": level, "cores": [*map(str, cores)], "values": rows} for (level, cores), rows in groups.items()]
    mixes = {mix: row for mix, row in old["mixes"].items() if mix in used and mix not in streams}
    return {
        "unit": old["unit"],
        "source": f"{source}; of {', '.join(sorted(used))}, {name}: {old['source']}" if used else source,
        "mixes": {**mixes, **{mix: one.facts for mix, one in streams.items()}},
        "measured": [*kept, *new],
    }


def _fill_in_widths(paths: dict[str, Any], machine: Machine, levels: Container[str], source: str) -> None:
    """Let the time of paths whose width nobody gives follow from the streams of one core."""
    for path in machine.paths:
        if path.name in machine.unknown_paths and path.outer in levels:
            paths[path.name] |= {"width": "measured", "source": f"by the streams of one core in bandwidths ({source})"}


def _peaks(old: Mapping[str, Any] | None, peaks: Mapping[_Kind, MeasuredPeak], source: str) -> dict[str, Any]:
    """The section with the new peaks in place of those of their kinds."""
    unit = old["unit"] if old else "GFLOP/s"
    factor = 1 / parse_quantity(f"1 {unit}", "flop rate")
    new = [
        {
            "operation": peak.operation,
            "precision": peak.precision,
            "register": f"{peak.width_bytes} B",
            "cores": str(peak.cores),
            "value": f"{peak.flop_per_second * factor:.10g}",
        }
        for _, peak in sorted(peaks.items())
    ]
    kept = [row for row in (old or {}).get("measured", ()) if _kind_of(row) not in peaks]
    old_source = f"; others: {old['source']}" if old and kept else ""
    return {"unit": unit, "source": source + old_source, "measured": [*kept, *new]}


def _kind_of(row: Mapping[str, str]) -> _Kind:
    """The kind of a peak as it stands in a machine file."""
    return row["operation"], row["precision"], int(parse_quantity(row["register"], "data")), int(row["cores"])
