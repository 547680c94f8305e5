"""Checks of a machine file's figures against one another: what each alone may be, but not together.

They run on whatever could be read, so that one run reports everything; figures that are missing or malformed have their
own problem already and are passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from kernmodel.machine.overlap import CORE_TIMES, Overlap, names
from kernmodel.patterns import pattern
from kernmodel.schema.fields import FieldReader, Values, suggest
from kernmodel.units import format_bytes
from kernmodel.words import count

_LEVEL_NAME = pattern(r"[A-Za-z][A-Za-z0-9_]*")

_VICTIM_CACHE = {
    "clean_victims": "clean victims enter this victim cache",
    "loads_pass_by": "lines from further out pass this victim cache by on their way to the level inside",
}
"""What a victim cache must state, and no other cache may."""


_ACCESSES = (1, 2, 4, 8, 16, 32, 64)
"""Bytes that one load or store instruction, or one element or register of a floating-point instruction, may have."""


def check_figures(reading: FieldReader, values: Values) -> None:
    """Note every contradiction among the figures of a machine file."""
    line = values.get("cache_line")
    if line and (line != int(line) or int(line).bit_count() != 1):
        reading.problem("cache_line", f"{line:g} B is no power of two", "write the size of a cache line, such as 64 B")
    _check_topology(reading, values.get("topology", {}))
    _check_core(reading, values.get("core", {}))
    caches = values.get("caches", {})
    for name, row in caches.items():
        _check_cache(reading, f"caches.{name}", row, line)
    _check_hierarchy(reading, caches, values.get("topology", {}))
    _check_paths(reading, values)
    _check_stores(reading, values.get("stores", {}), values.get("topology", {}))
    _check_overlap(reading, values)
    _check_bandwidths(reading, values)
    _check_peaks(reading, values)
    if values.get("compilers") == {} and not any(problem.key == "compilers" for problem in reading.problems):
        reading.problem("compilers", "is empty", "write at least one line such as `gcc: -O3`")


def _known(row: Values, *keys: str) -> tuple[Any, ...] | None:
    """The values of `keys`, or None if one of them could not be read."""
    found = tuple(row.get(key) for key in keys)
    return None if None in found else found


def _check_topology(reading: FieldReader, row: Values) -> None:
    figures = _known(row, "cores_per_socket", "numa_domains_per_socket")
    if figures and figures[0] % figures[1]:
        what = f"{figures[0]} cores do not divide into {figures[1]} ccNUMA domains"
        reading.problem("topology.numa_domains_per_socket", what, "check cores_per_socket and numa_domains_per_socket")


def _check_core(reading: FieldReader, row: Values) -> None:
    overlapping, others = row.get("overlapping_ports", ()), row.get("non_overlapping_ports", ())
    widths = _known(row, "load_width", "store_width")
    if widths is None and (row.get("load_width") or row.get("store_width")):
        given = "load_width" if row.get("load_width") else "store_width"
        reading.problem(f"core.{given}", "stands alone", "give load_width and store_width, or neither")
    for port in others:
        if port in overlapping:
            reading.problem(
                "core.non_overlapping_ports", f"{port!r} is among the overlapping_ports too", "name it in one"
            )
    if overlapping == () and "overlapping_ports" in row:
        reading.problem("core.overlapping_ports", "is empty", "name the ports whose time overlaps with data transfers")
    for precision, rates in row.get("flop_per_cycle", {}).items():
        for operation, rate in rates.items():
            if rate and rate > rates.get("total", rate):
                key = f"core.flop_per_cycle.{precision}.total"
                what = f"{rates['total']:g} is smaller than {operation} with {rate:g}"
                reading.problem(key, what, "the total is the most FLOP/cy of any mix")


def _check_cache(reading: FieldReader, key: str, row: Values, cache_line: float | None) -> None:
    line = row.get("line") or cache_line
    figures = _known(row, "size", "sets", "ways")
    if figures and line:
        size, sets, ways = figures
        product = sets * ways * line
        if size != product:
            factors = f"sets × ways × line = {sets} × {ways} × {line:g} B"
            what = f"{format_bytes(size)} is not {factors} = {format_bytes(product)}"
            reading.problem(f"{key}.size", what, f"correct one of them (the product is {product:.0f} B)")
    if cache_line and row.get("line") and row["line"] != cache_line:
        what = f"{row['line']:g} B is not the cache_line of {cache_line:g} B"
        reading.problem(f"{key}.line", what, "leave it out: all levels move lines of one size")
    _check_kept(reading, f"{key}.kept", row.get("kept") or ())
    victims = row.get("filled_by") == "victims"
    for name, question in _VICTIM_CACHE.items():
        if victims and row.get(name, False) is None:
            reading.problem(f"{key}.{name}", "is missing", f"say whether {question} (true or false)")
        if not victims and row.get(name) is not None:
            reading.problem(f"{key}.{name}", "has no meaning where filled_by is not victims", "leave it out")
    if victims and row.get("inclusive"):
        reading.problem(
            f"{key}.inclusive", "a cache filled by victims cannot be inclusive", "write false, or filled_by: miss"
        )


def _check_kept(reading: FieldReader, key: str, kept: tuple[tuple[float, float], ...]) -> None:
    """Of more data a cache keeps no larger share of the lines."""
    for (less, before), (more, after) in pairwise(kept):
        if after > before:
            what = f"keeps {after:g} of {format_bytes(more)}, but only {before:g} of {format_bytes(less)}"
            reading.problem(key, what, "check the shares: of more data no larger share is kept")


def _check_hierarchy(reading: FieldReader, caches: dict[str, Values], topology: Values) -> None:
    expected = [f"L{number}" for number in range(1, len(caches) + 1)]
    if not caches and "caches" in reading.lines:
        reading.problem("caches", "names no cache", "write at least L1")
    for name in caches:
        if not _LEVEL_NAME.fullmatch(name):
            what = f"{name[:40]!r} is no name of a cache"
            reading.problem(f"caches.{name}", what, "begin it with a letter, such as L1; letters and digits follow")
    if list(caches) != expected:
        what = f"the levels are {', '.join(caches)}"
        reading.problem("caches", what, f"name them {', '.join(expected)}, innermost first")
    for name in list(caches)[:1]:
        if caches[name].get("filled_by") == "victims":
            reading.problem(f"caches.{name}.filled_by", "the innermost cache has no victims to take", "write miss")
        if caches[name].get("hashed"):
            what = "the innermost cache finds its sets by the place within a page, which nothing spreads"
            reading.problem(f"caches.{name}.hashed", what, "leave it out")
    for (inside, inner), (name, outer) in pairwise(caches.items()):
        _check_sizes(reading, (inside, inner), (name, outer))
        sharing = _known(inner, "shared_by"), _known(outer, "shared_by")
        if sharing[0] and sharing[1] and sharing[1][0] < sharing[0][0]:
            what = f"{sharing[1][0]} cores share it, but {sharing[0][0]} share the level inside"
            reading.problem(f"caches.{name}.shared_by", what, "count the cores of one instance")
    cores = topology.get("cores_per_socket")
    for name, row in caches.items():
        if cores and row.get("shared_by") and cores % row["shared_by"]:
            what = f"{cores} cores of a socket do not divide into groups of {row['shared_by']}"
            reading.problem(f"caches.{name}.shared_by", what, "count the cores of one instance")


def _check_sizes(reading: FieldReader, inside: tuple[str, Values], outside: tuple[str, Values]) -> None:
    """Note a cache that is smaller than one inside, or than all caches inside whose lines it is said to hold."""
    (inner_name, inner), (name, outer) = inside, outside
    known, outer_known = _known(inner, "size", "shared_by"), _known(outer, "size", "shared_by")
    if known is None or outer_known is None:
        return
    (size, cores), (outer_size, outer_cores) = known, outer_known
    sizes = f"{format_bytes(outer_size)} is less than the {format_bytes(size)} of {inner_name}"
    if outer_size < size:
        reading.problem(f"caches.{name}.size", sizes, "give the size of a whole instance, also of a shared cache")
    elif outer.get("inclusive") and outer_size * cores < size * outer_cores:
        what = f"is true, but {format_bytes(outer_size)} cannot hold {inner_name} of {outer_cores} cores"
        reading.problem(f"caches.{name}.inclusive", what, "write false, or check size and shared_by")


def path_names(caches: Values) -> tuple[str, ...]:
    """The names of the paths between neighbouring levels: "L1L2", …, "L3Mem"."""
    return tuple(inner + outer for inner, outer in pairwise((*caches, "Mem")))


def _check_paths(reading: FieldReader, values: Values) -> None:
    paths, expected = values.get("paths"), path_names(values.get("caches", {}))
    if paths is None or not expected:
        return
    for name in expected:
        if name not in paths:
            reading.problem(f"paths.{name}", "is missing", "each pair of neighbouring levels needs its path")
    for name in paths:
        if name not in expected:
            reading.problem(f"paths.{name}", "joins no neighbouring levels", suggest(name, expected))
    measured = {group.get("level") for group in values.get("bandwidths", {}).get("measured", ())}
    for name, (_, outer) in zip(expected, pairwise((*values["caches"], "Mem")), strict=False):
        if paths.get(name, {}).get("width") == "measured" and outer not in measured:
            what = f"is measured, but bandwidths.measured has no series of {outer}"
            reading.problem(f"paths.{name}.width", what, "add the series, or write the width in B/cy, or unknown")
        if paths.get(name, {}).get("width") == "unknown":
            _check_unknown(reading, name, outer, measured=outer in measured)
    _check_beside(reading, paths, expected)
    for name, row in paths.items():
        for series in ("run_length", "run_length_of_three"):
            _check_run_length(reading, f"paths.{name}.{series}", row.get(series) or ())
        if row.get("run_length_of_three") and not row.get("run_length"):
            what = "has no meaning without what runs of one stream take"
            reading.problem(f"paths.{name}.run_length_of_three", what, "add run_length, or leave it out")


_BESIDE = {
    "beside_memory": (slice(None, -1), "between caches"),
    "beside_last": (slice(None, -2), "to caches before the last"),
    "beside_vectors": (slice(-1, None), "to memory"),
    "beside_loads": (slice(-1, None), "to memory"),
}
"""Of which of the paths each key says something."""


def _check_beside(reading: FieldReader, paths: Mapping[str, Values], expected: Sequence[str]) -> None:
    """Warn of figures of lines beside others on paths of which they say nothing: nobody would read them."""
    for key, (places, which) in _BESIDE.items():
        for name in expected:
            if paths.get(name, {}).get(key) is not None and name not in expected[places]:
                known = ", ".join(expected[places]) or "none here"
                what = f"says nothing of this path, only of paths {which} ({known})"
                reading.problem(f"paths.{name}.{key}", what, "move it there, or leave it out", severity="warning")


def _check_unknown(reading: FieldReader, name: str, outer: str, *, measured: bool) -> None:
    """Note a path of which nothing is known, and refuse to call that unknown which was measured."""
    key = f"paths.{name}.width"
    if measured:
        reading.problem(key, f"is unknown, but bandwidths.measured has a series of {outer}", "write measured")
        return
    what = f"is unknown: T_{name} is too, and T_ECM with data from {outer} is at least the rest"
    reading.problem(key, what, "write the width in B/cy, or measured and the series", severity="warning")


def _check_run_length(reading: FieldReader, key: str, runs: tuple[tuple[float, float], ...]) -> None:
    """Longer runs start less often: a line of them cannot take longer."""
    for (short, before), (long, after) in pairwise(runs):
        if after > before:
            what = (
                f"a line of runs of {format_bytes(long)} takes {after:g} cy, "
                f"longer than the {before:g} cy of runs of {format_bytes(short)}"
            )
            reading.problem(key, what, "measure again: longer runs start less often", severity="warning")


def _check_stores(reading: FieldReader, row: Values, topology: Values) -> None:
    cores, key = row.get("evades_from_cores"), "stores.evades_from_cores"
    if not cores:
        return
    if row.get("write_allocate_evasion", "near-saturation") != "near-saturation":
        what = "has no meaning where write_allocate_evasion is not near-saturation"
        reading.problem(key, what, "leave it out")
    figures = _known(topology, "cores_per_socket", "numa_domains_per_socket")
    if figures and cores > figures[0] // figures[1]:
        what = f"{cores} exceeds the {figures[0] // figures[1]} cores of a ccNUMA domain"
        reading.problem(key, what, "count active cores of one ccNUMA domain")


def _check_overlap(reading: FieldReader, values: Values) -> None:
    section = values.get("overlap", {})
    expression = section.get("expression")
    if expression is None or not values.get("caches"):
        return
    expected = (*CORE_TIMES, *(f"T_{name}" for name in path_names(values["caches"])))
    _check_times(reading, "overlap.expression", expression, expected)
    for other in section.get("undecided") or ():
        _check_times(reading, "overlap.undecided", other, expected)
        if other == expression:
            reading.problem("overlap.undecided", f"has {other} again, which is the expression", "leave it out")


def _check_times(reading: FieldReader, key: str, expression: Overlap, expected: Sequence[str]) -> None:
    """Whether an expression names each time once."""
    found = list(names(expression))
    for name in dict.fromkeys(found):
        if name not in expected:
            reading.problem(key, f"names {name!r}, a time that there is not", suggest(name, expected))
    for name in expected:
        if name not in found:
            reading.problem(key, f"leaves out {name}", f"name each of {', '.join(expected)}")
        elif found.count(name) > 1:
            reading.problem(key, f"names {name} {found.count(name)} times", "name each time once")


def _check_bandwidths(reading: FieldReader, values: Values) -> None:
    section = values.get("bandwidths", {})
    for name, row in section.get("mixes", {}).items():
        _check_mix(reading, f"bandwidths.mixes.{name}", row)
    seen: set[tuple[str, str, int]] = set()
    for index, group in enumerate(section.get("measured", ())):
        key = f"bandwidths.measured[{index}]"
        _check_group(reading, key, group, values)
        for mix in group.get("values", {}):
            which = (group.get("level", ""), mix, group.get("threads_per_core", 1))
            if which in seen:
                what = f"{which[0]} with {which[2]} thread(s) per core has this mix already"
                reading.problem(f"{key}.values.{mix}", what, "keep one of the series")
            seen.add(which)


def _check_mix(reading: FieldReader, key: str, row: Values) -> None:
    streams = _known(row, "read", "write", "read_write")
    _check_access(reading, f"{key}.access", row.get("access"))
    if streams and not streams[0] + streams[1]:
        reading.problem(key, "has no streams", "count its read and write streams")
    if streams and streams[2] > min(streams[:2]):
        reading.problem(
            f"{key}.read_write", f"{streams[2]} exceeds the read or write streams", "it counts in both others"
        )


def _check_peak(reading: FieldReader, key: str, row: Values, section: Values, clock: float | None) -> None:
    """Note a measured peak that so many cores cannot reach by far."""
    figures, factor = _known(row, "value", "cores"), section.get("unit")
    if figures and factor and clock and figures[0] * factor > _MOST_FLOP_PER_CYCLE * clock * figures[1]:
        what = f"{figures[0]:g} is more than {_MOST_FLOP_PER_CYCLE:g} FLOP/cy of {count(figures[1], 'core')}"
        reading.problem(key, what, "check peaks.unit and the number")


def _check_access(reading: FieldReader, key: str, size: float | None) -> None:
    if size is not None and size not in _ACCESSES:
        sizes = ", ".join(str(one) for one in _ACCESSES)
        reading.problem(key, f"{size:g} B is no size of an access", f"write one of {sizes} with the unit B")


def _check_peaks(reading: FieldReader, values: Values) -> None:
    section = values.get("peaks", {})
    figures = _known(values.get("topology", {}), "sockets", "cores_per_socket")
    for index, row in enumerate(section.get("measured", ())):
        key = f"peaks.measured[{index}]"
        _check_access(reading, f"{key}.register", row.get("register"))
        _check_peak(reading, f"{key}.value", row, section, values.get("clock"))
        if figures and row.get("cores", 0) > figures[0] * figures[1]:
            what = f"{row['cores']} cores, but the machine has {figures[0] * figures[1]}"
            reading.problem(f"{key}.cores", what, "check the topology and the cores")


_WIDEST = 1024.0
"""Bytes per cycle that no core loads and stores, where a file does not say how many it does: eight registers of 1024
bits."""
_SLOWEST = 1e6
"""B/s that every core moves."""
_TURBO = 2.0
"""By how much the clock of a measurement may exceed that of the file."""
_MOST_FLOP_PER_CYCLE = 65536.0


def _check_rates(
    reading: FieldReader, key: str, numbers: tuple[float, ...], cores: tuple[int, ...], values: Values
) -> None:
    """Note a bandwidth that loads and stores of so many cores cannot make, or that is no bandwidth at all."""
    factor, clock = values["bandwidths"].get("unit"), values.get("clock")
    if not factor or not clock:
        return
    core = values.get("core", {})
    width = (core.get("load_width") or 0.0) + (core.get("store_width") or 0.0) or _WIDEST
    least, most = _SLOWEST / factor, width * clock * _TURBO / factor  # of one core, in the file's unit
    wrong = next((one for one in zip(numbers, cores, strict=False) if not least <= one[0] <= most * one[1]), None)
    if wrong and wrong[0] < least:
        reading.problem(key, f"{wrong[0]:g} is less than 1 MB/s", "check bandwidths.unit")
    elif wrong:
        what = f"{wrong[0]:g} is more than {count(wrong[1], 'core')} can load and store ({most * wrong[1]:.4g})"
        reading.problem(key, what, "check bandwidths.unit, clock and widths")


def _check_group(reading: FieldReader, key: str, group: Values, values: Values) -> None:
    mixes, topology = values["bandwidths"].get("mixes", {}), values.get("topology", {})
    levels = (*values.get("caches", {}), "Mem")
    if group.get("level", "Mem") not in levels:
        reading.problem(f"{key}.level", f"{group['level']!r} is no level", suggest(group["level"], levels))
    for mix, numbers in group.get("values", {}).items():
        if mix not in mixes:
            reading.problem(f"{key}.values.{mix}", "is no mix of bandwidths.mixes", suggest(mix, mixes))
        _check_rates(reading, f"{key}.values.{mix}", numbers, group.get("cores", ()), values)
        if group.get("cores") and len(numbers) != len(group["cores"]):
            what = f"has {count(len(numbers), 'value')} for {count(len(group['cores']), 'core count')}"
            reading.problem(f"{key}.values.{mix}", what, "give one value for each core count")
    figures = _known(topology, "sockets", "cores_per_socket")
    if figures and group.get("cores") and group["cores"][-1] > figures[0] * figures[1]:
        what = f"{group['cores'][-1]} cores, but the machine has {figures[0] * figures[1]}"
        reading.problem(f"{key}.cores", what, "check the topology and the core counts")
    threads = topology.get("threads_per_core")
    if threads and group.get("threads_per_core", 1) > threads:
        what = f"{group['threads_per_core']} exceeds the topology's {threads}"
        reading.problem(f"{key}.threads_per_core", what, "check the topology")
