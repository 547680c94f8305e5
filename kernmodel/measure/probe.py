"""The probe: a machine file of this host, with what was measured here and what a carried machine has for the rest.

Measured are the clock, the bandwidths of one core by level and stream mix, of several in memory, the share of the last
cache that a core can use, how times overlap, and floating-point peaks; caches and processors are as the system tells.
Ports, replacement and how a victim cache is filled come from the carried machine of the same microarchitecture, which
CPUID names, and each source line says so.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise, takewhile
from statistics import median
from typing import Any, Literal

import yaml

from kernmodel.errors import MeasurementError, Note
from kernmodel.machine.files.schema import LEAST_BESIDE
from kernmodel.machine.files.write import write_facts
from kernmodel.machine.load import find_machine, load_machine
from kernmodel.machine.model import RUN_STREAMS
from kernmodel.machine.overlap import parse_overlap
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.bandwidth import LINE, MIXES, mix_name
from kernmodel.measure.first_cache import kept_lines
from kernmodel.measure.host import Effort, Harness
from kernmodel.measure.host_topology import HostCache, HostTopology, host_topology
from kernmodel.measure.model import (
    BandwidthPoint,
    Compositions,
    CoresPoint,
    LinesBeside,
    Peak,
    RunPoint,
    SeveralCores,
    VectorsBeside,
)
from kernmodel.measure.peaks import PeakKind, peak_kinds
from kernmodel.measure.samples import UNROLLED_TOLERANCE, Figure
from kernmodel.measure.several_cores import measure_several_cores, saturates
from kernmodel.measure.shared_cache import kept_shares
from kernmodel.measure.trials import OneCore, Plan, measure_one_core
from kernmodel.schema.fields import LEAST_PAIRS
from kernmodel.value_types import dataclass

Depth = Literal["quick", "default", "thorough"]
_QUICK = ("load", "copy", "update")
_MIXES = ("load", "store", "copy", "update", "daxpy", "stream", "triad", "load4_store", "load8_store")
_CARRIED: Mapping[tuple[str, int], Mapping[str, Sequence[int]]] = {
    ("Intel", 6): {
        "snb": (45,),
        "ivb": (62,),
        "hsw": (63,),
        "bdw": (79, 86),
        "clx": (85,),
        "icx": (106, 108),
        "spr": (143, 207),
        "gnr": (173, 174),
    },
    ("AMD", 0x17): {"zen": range(0x30), "zen2": range(0x30, 0x80)},
    ("AMD", 0x19): {"zen3": (*range(0x10), *range(0x20, 0x60)), "zen4": (*range(0x10, 0x20), *range(0x60, 0xB0))},
}
"""Models by vendor and family (Linux, arch/x86/include/asm/intel-family.h and arch/x86/kernel/cpu/amd.c)."""
_BY_FEATURE = (("amx_tile", "spr"), ("avx512_vbmi2", "icx"), ("avx512f", "skx"), ("avx2", "hsw"), ("avx", "snb"))
"""The newest carried Intel server core that first has a feature, where the model is not known."""
_NO_SOURCE = "not measured"
_SEVERAL = ("load", "copy", "update")
"""Mixes that are measured on several cores."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A probed machine.

    Attributes:
        text: the machine file.
        notes: what is not known or doubtful.
    """

    text: str
    notes: tuple[Note, ...]


def nearest_machine(topology: HostTopology) -> tuple[str, str]:
    """The carried machine whose core this host has, and why that is doubtful ("" where CPUID names it).

    Raises:
        MeasurementError: none comes near.
    """
    models = _CARRIED.get((topology.vendor, topology.family), {})
    named = next((name for name, numbers in models.items() if topology.number in numbers), None)
    place = f"{topology.vendor} family {topology.family} model {topology.number}"
    feature, newest = next((one for one in _BY_FEATURE if one[0] in topology.features), ("", "snb"))
    if topology.vendor == "Intel":
        # a guest may be told another model than it runs on; features it cannot be told in vain
        if named is None or (newest == "spr" and named not in ("spr", "gnr")):
            why = f"CPUID says {place}, which is no carried core; by its extension {feature} {newest} is the nearest"
            return newest, why
        return named, ""
    if named is None:
        if topology.vendor != "AMD":
            raise MeasurementError(
                f"no carried machine is near {place}", todo="write the file by docs/machine-files.md"
            )
        newest = "zen4" if "avx512f" in topology.features else "zen3"
        return newest, f"CPUID says {place}, which is no carried core; {newest} is the nearest"
    return named, ""


def probe_machine(
    harness: Harness, *, depth: Depth = "default", progress: Callable[[str], object] = lambda what: None
) -> Probe:
    """A machine file of this host.

    Args:
        depth: how much is measured: "quick" some 30 s, "default" some 2 min, "thorough" up to 15 min: accesses of all
            widths, peaks of all operations.

    Raises:
        MeasurementError: no carried machine is near, or the host does not let it be measured.
    """
    topology = host_topology()
    name, doubt = nearest_machine(topology)
    notes = [Note("nearest-core", doubt)] if doubt else []
    carried_overlap = load_machine(name).overlap
    found = measure_one_core(harness, topology, plan_of(depth), carried_overlap, progress)
    several = SeveralCores((), ())
    if depth != "quick":
        several = measure_several_cores(topology, _SEVERAL, progress=progress)
    notes += [*found.notes, *several.notes]
    clock = found.bandwidths.clock_hz
    carried: dict[str, Any] = yaml.safe_load(find_machine(name).read_text(encoding="utf-8"))
    times = f", {found.trials} trials" if found.trials > 1 else ""
    here = f"measured on this host by kernmodel machine probe{times}, {datetime.date.today().isoformat()}"
    points = [point for point in found.bandwidths.points if point.cycles_per_line.confirmed]
    system = f"/sys and /proc of this host, {datetime.date.today().isoformat()}"
    facts: dict[str, Any] = {
        "title": f"{topology.model}{', a guest' if topology.hypervisor else ''} with {topology.cores} cores, probed",
        "vendor": topology.vendor,
        "isa": "x86-64",
        "clock": f"{clock / 1e9:.3f} GHz",
        "cache_line": f"{topology.caches[0].line_bytes} B",
        "source": f"{system}; clock by a chain of dependent additions, {here}",
        "topology": _topology(topology, system),
        "core": {**carried["core"], "source": f"derived from the carried {name}.yml: {carried['core']['source']}"},
        "caches": {
            cache.name: _cache(cache, carried["caches"].get(cache.name), name, system, found, here)
            for cache in topology.caches
        },
        "paths": _paths(topology, carried, name, found, here),
        **_streams(found, here),
        "stores": {
            **carried["stores"],
            "source": f"derived from the carried {name}.yml: {carried['stores']['source']}",
        },
        "overlap": _overlap(carried["overlap"], name, found.compositions, here),
        "bandwidths": _bandwidths(found, several.points, clock, here),
        "compilers": {"gcc": "-O3 -march=native", "clang": "-O3 -march=native"},
    }
    peaks = [peak for peak in found.peaks.peaks if peak.per_cycle.confirmed]
    if peaks:
        facts["peaks"] = _peaks(peaks, clock, here)
    notes += _saturation(topology, points, several, clock)
    comments = [f"Probed on {datetime.date.today().isoformat()}; figures that no two rounds confirmed were left out."]
    comments += [f"{note.text}" for note in notes]
    return Probe(write_facts(_texts(facts), comments), tuple(notes))


def _topology(topology: HostTopology, system: str) -> dict[str, Any]:
    """Cores and ccNUMA domains, as the system tells."""
    return {
        "sockets": topology.sockets,
        "numa_domains_per_socket": max(1, topology.domains // topology.sockets),
        "cores_per_socket": max(1, topology.cores // topology.sockets),
        "threads_per_core": topology.threads_per_core,
        "source": system + (" (a guest sees its own share of the processor alone)" if topology.hypervisor else ""),
    }


def _peaks(peaks: Sequence[Peak], clock: float, here: str) -> dict[str, Any]:
    """The measured peaks of one core, which runs at `clock` Hz."""
    return {
        "unit": "GFLOP/s",
        "source": f"{here}; {_spreads((peak.name, peak.per_cycle.spread_percent) for peak in peaks)}",
        "measured": [
            {
                "operation": peak.operation,
                "precision": peak.precision,
                "register": f"{peak.width_bytes} B",
                "cores": 1,
                "value": f"{peak.per_cycle.value * clock / 1e9:.2f}",
            }
            for peak in peaks
        ],
    }


def plan_of(depth: Depth) -> Plan:
    """What a probe measures, and how often: "quick" in some 30 s, "default" in two minutes, on a busy host in up to
    four, "thorough" in 15."""
    wide = x86.vector_bytes()
    usual = tuple(PeakKind(operation, "DP", wide) for operation in ("ADD", "MUL", "FMA"))
    match depth:
        case "quick":
            return Plan(_QUICK, usual, Effort(40, 2, 1.5, UNROLLED_TOLERANCE), beyond=False, least=1, most=1)
        case "default":
            # two trials of some 85 figures fit into its time even where neighbours let none of them be confirmed early
            return Plan(_MIXES, usual, Effort(60, 3, 0.55, UNROLLED_TOLERANCE))
        case "thorough":
            return Plan(_MIXES, tuple(peak_kinds()), Effort(80, 3, 3.0, UNROLLED_TOLERANCE), narrow=True, seconds=780.0)


def _overlap(carried: Mapping[str, Any], name: str, found: Compositions, here: str) -> dict[str, Any]:
    """The carried composition, unless experiments tell it apart from the nearest, which takes its place then; all
    others that they do not tell apart from the nearest are named as undecided."""
    source = f"derived from the carried {name}.yml: {carried['source']}"
    if not found.judged:
        return {**carried, "source": source}
    usual = str(parse_overlap(carried["expression"]))
    best, *others = found.judged
    said = ", ".join(f"{one.expression} {one.error:.1%}" for one in found.judged)
    apart = ", ".join(f"{one.behind:.1%} ± {one.doubt:.1%}" for one in others)
    told = (
        f"mean errors over {best.streams} mixed streams {here}: {said}; behind the first (and standard error): {apart}"
    )
    alike = [best.expression, *(one.expression for one in others if not one.told_apart)]
    taken = usual if usual in alike else best.expression
    undecided = [one for one in alike if one != taken]
    source = f"{source}; not told apart from the nearest" if taken == usual else f"the carried {name}.yml has {usual}"
    facts = {"expression": taken, "source": f"{source}; {told}"}
    return {**facts, "undecided": undecided} if undecided else facts


def _saturation(
    topology: HostTopology, points: Sequence[BandwidthPoint], several: SeveralCores, clock: float
) -> tuple[Note, ...]:
    """Whether it is known how many cores saturate the memory."""
    loads = [one for one in several.points if one.mix == "load"]
    alone = next((one for one in points if (one.level, one.mix) == ("Mem", "load")), None)
    if not loads or alone is None:
        return (Note("saturation-unknown", "bandwidths of several cores were not measured: saturation is not known"),)
    saturated = saturates(loads, alone.bytes_per_cycle.value * clock)
    if saturated:
        return ()
    few = f"{topology.cores} cores are too few to tell" if saturated is None else "more cores still draw more"
    return (Note("saturation-unknown", f"where the memory bandwidth saturates is not known: {few}"),)


def _cache(
    cache: HostCache, carried: Mapping[str, Any] | None, name: str, system: str, found: OneCore, here: str
) -> dict[str, Any]:
    """A cache: its size as the system tells or, of a shared one, what a core can use, and what it keeps of more; the
    rest as of the carried machine."""
    like = dict(carried or {"replacement": "LRU", "write_back": True, "write_allocate": True, "filled_by": "miss"})
    like.pop("kept", None)
    like |= {
        "size": f"{cache.ways * cache.sets * cache.line_bytes // 1024} KiB",
        "ways": cache.ways,
        "sets": cache.sets,
        "shared_by": cache.shared_by,
        "source": f"{system}; how it is filled and replaced, derived from the carried {name}.yml",
    }
    share = found.share
    if share.level == cache.name and share.usable_bytes is not None:
        ways = max(1, min(cache.ways, round(share.usable_bytes * cache.ways / cache.size_bytes)))
        size = ways * cache.sets * cache.line_bytes
        cycles = ", ".join(f"{p.total_bytes / 2**20:.3g} MiB {_ranged(p.cycles_per_line)}" for p in share.points)
        told = f"one core can use {share.usable_bytes / 2**20:.1f} of {cache.size_bytes / 2**20:g} MiB, {here}"
        like |= {"size": f"{size // 1024} KiB", "ways": ways}
        like["source"] += f"; {told}: cycles per line of a load stream {cycles}; written as {ways} of {cache.ways} ways"
        if kept := _kept(found):
            like["kept"] = kept
            like["source"] += "; kept follows from the same times and those of lines beside one from memory"
    elif cache.level == 1 and (lines := kept_lines(found.first)):
        like["kept"] = [[str(size), f"{kept:.3f}"] for size, kept in lines]
        spread = _spreads((f"{one.passed_bytes / 1024:g} KiB", one.cycles.spread_percent) for one in found.first)
        like["source"] += f"; kept {here}, {spread}"
    elif share.level == cache.name:
        like["source"] += "; how much of it one core can use is not known, too few sizes were confirmed"
    return like


def _kept(found: OneCore) -> list[list[str]]:
    """Bytes of data, and the share of their lines that the shared cache keeps; nothing where that is not known."""
    memory = (one.cycles_per_line for one in found.bandwidths.points if (one.level, one.mix) == ("Mem", "load"))
    known = next((one.value for one in memory if one.confirmed), None)
    if known is None:
        return []
    beside = [float(cycles) for cycles in _beside(found.beside, "Mem", found.share.level)]
    return [[str(size), f"{share:.3f}"] for size, share in kept_shares(found.share, beside, known)]


def _paths(
    topology: HostTopology, carried: Mapping[str, Any], name: str, found: OneCore, here: str
) -> dict[str, dict[str, Any]]:
    """Paths between neighbouring levels; a width that nobody published follows from the measured streams, what starting
    a stream from memory costs from the measured runs."""
    measured = {point.level for point in found.bandwidths.points if point.cycles_per_line.confirmed}
    small = found.small_cost
    paths = {}
    for inner, outer in pairwise(topology.level_names):
        like = carried["paths"].get(inner + outer, {"duplex": "half", "width": "unknown"})
        width = like["width"]
        known = width not in ("unknown", "measured")
        source = f"derived from the carried {name}.yml: {like.get('source', 'nothing')}"
        if not known:
            width = "measured" if outer in measured else "unknown"
            source = "by the streams of one core in bandwidths" if outer in measured else _NO_SOURCE
        path: dict[str, Any] = {"width": width, "duplex": like["duplex"]}
        for streams, key in _RUN_KEYS.items() if outer == "Mem" else ():
            own = [point for point in found.runs.points if point.streams == streams]
            if (lengths := _run_lengths(own)) and (streams == 1 or "run_length" in path):
                path[key] = lengths
                spread = _spreads((f"{p.run_bytes} B", p.cycles_per_line.spread_percent) for p in own)
                source += f"; {key} {here}, {spread}"
        for key, further in (("beside_memory", "Mem"), ("beside_last", topology.level_names[-2])):
            if beside := _beside(found.beside, further, outer):
                path[key] = beside
                lines = [one for one in found.beside if (one.outer, one.level) == (further, outer)]
                spread = _spreads((f"{one.count} lines", one.cycles.spread_percent) for one in lines)
                source += f"; {key} {here}, {spread}"
        vectors = _beside_vectors(found.vectors) if outer == "Mem" else []
        if vectors:
            path["beside_vectors"] = vectors
            spread = _spreads((f"{one.vectors} vectors", one.cycles.spread_percent) for one in found.vectors)
            source += f"; beside_vectors {here}, {spread} of the whole pass"
        loads = _beside_loads(found) if vectors else None
        if loads is not None:
            path["beside_loads"] = f"{loads:.2f}"
            spread = _spreads((f"{one.loads} loads", one.cycles.spread_percent) for one in found.loads)
            source += f"; beside_loads {here}, {spread} of the whole pass"
        if outer == "Mem" and small is not None:
            path["small_pages"] = f"{small.value:.2f} cy/CL"
            source += f"; small_pages {here}, the median of the trials' differences: {_ranged(small)}"
        paths[inner + outer] = {**path, "source": source}
    return paths


def _ranged(figure: Figure) -> str:
    """The figure and between what it lies, where that is not the same."""
    low, value, high = (f"{one:.2f}" for one in (figure.low, figure.value, figure.high))
    return value if low == high else f"{value} ({low} to {high})"


def _beside(found: Sequence[LinesBeside], outer: str, level: str) -> list[str]:
    """Cycles that a line from a level takes beside 0, 1, 2, … lines of a cache, as far as all are confirmed; more lines
    take no less. Nothing where these are too few."""
    own = [one.cycles for one in found if (one.outer, one.level) == (outer, level)]
    known = [one.value for one in takewhile(lambda one: one.confirmed, own)]
    return [f"{cycles:.2f}" for cycles in accumulate(known, max)] if len(known) >= LEAST_BESIDE else []


def _beside_vectors(found: Sequence[VectorsBeside]) -> list[list[str]]:
    """By how much passes take longer than that which writes no vectors but those that it loads, by the vectors that
    they write; more of them take no less. Nothing where too few are confirmed."""
    if not found or not found[0].cycles.confirmed:
        return []
    known = [one for one in found if one.cycles.confirmed]
    longer = accumulate((one.cycles.value - found[0].cycles.value for one in known), max)
    pairs = [[str(one.vectors), f"{cycles:.2f}"] for one, cycles in zip(known, longer, strict=True)]
    return pairs if len(pairs) >= LEAST_PAIRS else []


def _beside_loads(found: OneCore) -> float | None:
    """By how much passes with loads from the first cache take longer for each cycle of these loads, beyond what as many
    vectors cost: the median; None where too little is confirmed."""
    known = {one.vectors: one.cycles.value for one in found.vectors if one.cycles.confirmed}
    width = x86.vector_bytes()
    each = next(
        (
            point.cycles_per_line.value * width / LINE
            for point in found.bandwidths.points
            if (point.level, point.mix, point.width_bytes) == ("L1", "load", width) and point.cycles_per_line.confirmed
        ),
        None,
    )
    if each is None or not found.vectors:
        return None
    first = found.vectors[0].vectors
    longer = [
        (one.cycles.value - known[first + one.loads]) / (one.loads * each)
        for one in found.loads
        if one.cycles.confirmed and first + one.loads in known
    ]
    return max(0.0, median(longer)) if len(longer) >= LEAST_PAIRS else None


def _streams(found: OneCore, here: str) -> dict[str, Any]:
    """How many streams the core follows, and by how much passes over more take longer; nothing where that is not
    known."""
    known = {lines: cycles for lines, cycles in found.many.longer.items() if round(median(cycles), 2) > 0}
    if found.many.followed is None or len(known) < LEAST_PAIRS:
        return {}
    longer = [[str(lines), f"{median(cycles):.2f}"] for lines, cycles in known.items()]
    spreads = ", ".join(f"{lines} from memory {cycles[0]:.1f} to {cycles[-1]:.1f}" for lines, cycles in known.items())
    facts = {"followed": found.many.followed, "longer": longer, "source": f"{here}; medians of trials, {spreads} cy"}
    return {"streams": facts}


_RUN_KEYS = {1: "run_length", RUN_STREAMS: "run_length_of_three"}
"""Under which key the runs of so many streams are written."""


def _run_lengths(points: Sequence[RunPoint]) -> list[list[str]]:
    """Bytes and cycles per line of the confirmed lengths that cost no more than the shorter ones; nothing without the
    longest, of which the bandwidth is."""
    if not points or not points[-1].cycles_per_line.confirmed:
        return []
    found: list[tuple[int, float]] = []
    for point in reversed(points):
        cycles = point.cycles_per_line
        if cycles.confirmed and (not found or cycles.value >= found[-1][1]):
            found.append((point.run_bytes, cycles.value))
    return [[str(size), f"{cycles:.2f}"] for size, cycles in reversed(found)] if len(found) > 1 else []


def _bandwidths(found: OneCore, several: Sequence[CoresPoint], clock: float, here: str) -> dict[str, Any]:
    points = [point for point in found.bandwidths.points if point.cycles_per_line.confirmed]
    mixes: dict[str, dict[str, Any]] = {}
    groups: dict[str, dict[str, list[str]]] = {}
    for point in points:
        mix = MIXES[point.mix]
        row: dict[str, Any] = {"read": mix.read, "write": mix.write}
        row |= {"read_write": mix.read_write} if mix.read_write else {}
        row |= {"flops": mix.flops} if mix.flops else {}
        mixes[mix_name(point)] = {**row, "access": f"{point.width_bytes} B"}
        rate = point.bytes_per_cycle.value * clock / 1e9
        groups.setdefault(point.level, {})[mix_name(point)] = [f"{rate:.2f}"]
    spreads = _spreads((f"{point.level} {mix_name(point)}", point.cycles_per_line.spread_percent) for point in points)
    source = f"one core, {here}; {spreads}"
    wide = [*_of_several(several, groups)]
    if wide:
        deciles = (f"{one.mix} on {one.cores} {one.low / 1e9:.1f} to {one.high / 1e9:.1f}" for one in several)
        source += f"; several cores in windows in which all ran undisturbed (deciles in GB/s): {', '.join(deciles)}"
    alone = [{"level": level, "cores": [1], "values": values} for level, values in groups.items() if values]
    pages = {"pages": "huge"} if found.bandwidths.huge else {}
    return {"unit": "GB/s", "source": source, **pages, "mixes": mixes, "measured": [*alone, *wide]}


def _of_several(several: Sequence[CoresPoint], groups: dict[str, dict[str, list[str]]]) -> Iterator[dict[str, Any]]:
    """Series of one core and more, taken out of the groups of one core."""
    found: dict[tuple[str, tuple[int, ...]], dict[str, list[str]]] = {}
    for level, mix in dict.fromkeys((one.level, one.mix) for one in several if one.confirmed):
        rows = [one for one in several if (one.level, one.mix, one.confirmed) == (level, mix, True)]
        alone = groups.get(level, {}).pop(mix, None)
        if alone is not None:
            cores = (1, *(one.cores for one in rows))
            values = [*alone, *(f"{one.bytes_per_second / 1e9:.2f}" for one in rows)]
            found.setdefault((level, cores), {})[mix] = values
    for (level, cores), series in found.items():
        yield {"level": level, "cores": list(cores), "values": series}


def _spreads(figures: Any) -> str:
    return "spread " + ", ".join(f"{what} {percent:.1f} %" for what, percent in figures)


def _texts(value: Any) -> Any:
    """Facts as texts."""
    if isinstance(value, Mapping):
        return {str(key): _texts(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_texts(item) for item in value]
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
