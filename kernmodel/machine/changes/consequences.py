"""What follows from a change: sets from the size of a cache, its size from the sets, the total of FLOP from its parts.

A cache holds sets × ways × line bytes. Whatever of the four changes, one other follows, and sizes are rounded to whole
sets.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel.errors import Note
from kernmodel.machine.changes.figure_paths import FigurePath, SeriesFigurePath, shown, with_value
from kernmodel.schema.fields import Values
from kernmodel.units import format_bytes, format_si

_DOMAIN = "measured series stay as they are; what counts is their highest value over the cores of a ccNUMA domain then"
_READING = {
    "clock": "measured bandwidths stay as they are in B/s; widths in B/cy grow and shrink with the clock",
    "topology.cores_per_socket": _DOMAIN,
    "topology.numa_domains_per_socket": _DOMAIN,
}
"""Figures that decide how measured bandwidths are read."""


def follow(values: Values, place: FigurePath, before: Values) -> tuple[Values, tuple[Note, ...]]:
    """The values with everything that follows from the change at `place`, and notes of what that is."""
    notes: list[Note] = []
    match place.keys:
        case ("caches", str(name), "sets"):
            values = _size_from_sets(values, name, notes)
        case ("caches", str(name), "size" | "ways" | "line"):
            values = _sets_from_size(values, name, notes)
        case ("cache_line",):
            values = _line_everywhere(values, notes)
        case ("core", "flop_per_cycle", str(precision), operation) if operation != "total":
            values = _total_from_parts(values, precision, notes)
    if place.path in _READING:
        notes.append(Note("measured-unchanged", _READING[place.path], "assumption"))
    if isinstance(place, SeriesFigurePath):
        notes.append(_scaled(place, before, values))
    return values, tuple(notes)


def _follows(path: str, value: object) -> Note:
    return Note("figure-follows", f"{path} follows: {value}", "assumption")


def _line(values: Values, name: str) -> float:
    return float(values["caches"][name]["line"] or values["cache_line"])


def _size_from_sets(values: Values, name: str, notes: list[Note]) -> Values:
    row = values["caches"][name]
    size = row["sets"] * row["ways"] * _line(values, name)
    notes.append(_follows(f"caches.{name}.size", format_bytes(size)))
    return dict(with_value(values, ("caches", name, "size"), size))


def _sets_from_size(values: Values, name: str, notes: list[Note]) -> Values:
    row = values["caches"][name]
    set_bytes = row["ways"] * _line(values, name)
    sets = max(1, round(row["size"] / set_bytes))
    if sets != row["sets"]:
        notes.append(_follows(f"caches.{name}.sets", sets))
    if sets * set_bytes != row["size"]:
        text = f"caches.{name}.size is rounded to whole sets of {format_bytes(set_bytes)}: "
        notes.append(Note("figure-rounded", text + format_bytes(sets * set_bytes), "assumption"))
    return dict(with_value(values, ("caches", name), row | {"sets": sets, "size": sets * set_bytes}))


def _line_everywhere(values: Values, notes: list[Note]) -> Values:
    for name, row in values["caches"].items():
        if row["line"]:
            values = with_value(values, ("caches", name, "line"), values["cache_line"])
        values = _sets_from_size(values, name, notes)
    return values


def _total_from_parts(values: Values, precision: str, notes: list[Note]) -> Values:
    rates = values["core"]["flop_per_cycle"][precision]
    most = max(rate for rate in rates.values() if rate is not None)
    if most == rates["total"]:
        return values
    notes.append(_follows(f"core.flop_per_cycle.{precision}.total", f"{most:g}"))
    return dict(with_value(values, ("core", "flop_per_cycle", precision, "total"), most))


def _scaled(place: SeriesFigurePath, before: Values, after: Values) -> Note:
    """Which series were scaled, and which of them the figure is of."""
    old, mix = place.peak(before)
    ratio = place.get(after) / old
    series = _series_in_words([mix for _, mix in place.cells])
    level = place.path.split(".")[1]
    peak = f"the highest over one ccNUMA domain is that of {mix}, {format_si(old, 'B/s')} before"
    return Note("series-scaled", f"{series} of {level} × {ratio:.4g}; {peak}", "assumption")


def _series_in_words(mixes: Sequence[str]) -> str:
    if len(mixes) == 1:
        return f"the measured series {mixes[0]}"
    return f"all {len(mixes)} measured series"


def describe_source(source: str, place: FigurePath, before: object, text: str) -> str:
    """The source of a section in which a figure was changed."""
    return f"{source}; {place.path} was {shown(place, before)}, changed by --set {place.path}={text}"
