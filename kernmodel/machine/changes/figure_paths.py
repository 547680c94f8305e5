"""Where the figures of a machine file stand among its values, and how each is read, replaced and shown.

A `FigurePath` is one figure with its dotted path; `figure_paths` lists all of a file. Values are never changed in
place: `put` gives new ones that share whatever stays the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from kernmodel.machine.files.schema import MACHINE
from kernmodel.schema.fields import Kind, List, Quantity, QuantityOrWord, Rows, Table, Values, scalar
from kernmodel.units import format_bytes, format_si
from kernmodel.value_types import dataclass

Keys = tuple[str | int, ...]

_NO_FIGURES = ("source", "title", "vendor", "benchmark", "unit")
"""Keys that say where figures come from, what they are of, or how they are written."""
_BANDWIDTH, _FLOP_RATE = Quantity("bandwidth"), Quantity("flop rate")


def at(values: Any, keys: Keys) -> Any:
    """The value at a place."""
    for key in keys:
        values = values[key]
    return values


def with_value(values: Any, keys: Keys, new: Any) -> Any:
    """The values with another one at a place; everything beside the way to it is shared."""
    copy = values.copy()
    copy[keys[0]] = with_value(values[keys[0]], keys[1:], new) if len(keys) > 1 else new
    return copy


@dataclass(frozen=True, slots=True)
class FigurePath:
    """A figure that stands at one place of the file.

    Attributes:
        path: dotted path; keys: where the value stands.
        kind: reads the text of a new value.
        source_keys: the row whose `source` covers the figure.
        names: further names that mean the same ("memory.bandwidth").
    """

    path: str
    keys: Keys
    kind: Kind
    source_keys: Keys
    names: tuple[str, ...] = ()

    @property
    def dimension(self) -> str | None:
        """Of the unit; None for plain numbers and words."""
        kind = self.kind.quantity if isinstance(self.kind, QuantityOrWord) else self.kind
        return kind.dimension if isinstance(kind, Quantity) else None

    def get(self, values: Values) -> Any:
        """The figure in base units."""
        return at(values, self.keys)

    def put(self, values: Values, new: Any) -> Values:
        """The values with another figure here."""
        changed: Values = with_value(values, self.keys, new)
        return changed

    def source(self, values: Values) -> str:
        """Where the file says the figure comes from."""
        return str(at(values, self.source_keys)["source"])


@dataclass(frozen=True, slots=True)
class ScaledFigurePath(FigurePath):
    """A figure that the file gives as a number in the unit of its section: one measured peak."""

    def get(self, values: Values) -> float:
        """The figure in base units."""
        return float(at(values, self.keys) * values["peaks"]["unit"])

    def put(self, values: Values, new: float) -> Values:
        """The values with another figure here."""
        changed: Values = with_value(values, self.keys, new / values["peaks"]["unit"])
        return changed


@dataclass(frozen=True, slots=True)
class SeriesFigurePath(FigurePath):
    """Measured series whose highest value over one ccNUMA domain is the figure; all are scaled alike.

    Attributes:
        cells: group of `bandwidths.measured` and stream mix of each series.
    """

    cells: tuple[tuple[int, str], ...] = ()

    def get(self, values: Values) -> float:
        """Highest reported bandwidth of the series over one ccNUMA domain, in B/s."""
        return self.peak(values)[0]

    def peak(self, values: Values) -> tuple[float, str]:
        """The same with the name of the mix that has it."""
        topology, section = values["topology"], values["bandwidths"]
        domain = topology["cores_per_socket"] // topology["numa_domains_per_socket"]
        found = [(_highest(section["measured"][group], mix, domain), mix) for group, mix in self.cells]
        number, mix = max(found, key=lambda pair: pair[0])
        return number * section["unit"], mix

    def put(self, values: Values, new: float) -> Values:
        """The values with all series scaled so that the highest value is `new`."""
        ratio = new / self.get(values)
        for group, mix in self.cells:
            keys = ("bandwidths", "measured", group, "values", mix)
            values = with_value(values, keys, tuple(number * ratio for number in at(values, keys)))
        return values


def _highest(group: Mapping[str, Any], mix: str, domain: int) -> float:
    """The highest value over up to the cores of a domain, else the one of the fewest cores measured."""
    numbers: tuple[float, ...] = group["values"][mix]
    return max(numbers[: max(1, bisect_right(group["cores"], domain))])


def figure_paths(values: Values) -> Iterator[FigurePath]:
    """Every figure that the file has, section by section."""
    yield from (place for place in _places(values) if place.get(values) is not None)
    yield from _bandwidths(values["bandwidths"])
    yield from _peaks(values.get("peaks", {}).get("measured", ()))
    for name in values["compilers"]:
        yield FigurePath(f"compilers.{name}", ("compilers", name), scalar, ())


def left_out(values: Values) -> Iterator[str]:
    """The paths of optional figures that the file does not give."""
    return (place.path for place in _places(values) if place.get(values) is None)


def _places(row: Values, keys: Keys = (), table: Table = MACHINE, source_keys: Keys = ()) -> Iterator[FigurePath]:
    """The figures of a table and of those in it, those that are left out too; lists are no figures by themselves."""
    if "source" in table:
        source_keys = keys
    inner: list[tuple[str, Values, Table]] = []
    for name, entry in table.items():
        if isinstance(entry.kind, Mapping):
            inner += [(name, row[name], entry.kind)] if name in row else []
        elif isinstance(entry.kind, Rows) and isinstance(entry.kind.each, Mapping):
            inner += [(f"{name}.{each}", own, entry.kind.each) for each, own in row[name].items()]
        elif not isinstance(entry.kind, Rows | List) and name not in _NO_FIGURES:
            place = (*keys, name)
            yield FigurePath(".".join(map(str, place)), place, entry.kind, source_keys)
    for name, own, kind in inner:
        yield from _places(own, (*keys, *name.split(".")), kind, source_keys)


def _bandwidths(section: Values) -> Iterator[FigurePath]:
    """Each level as a whole, and each of its series."""
    levels: dict[str, list[tuple[int, str]]] = {}
    for number, group in enumerate(section["measured"]):
        levels.setdefault(group["level"], []).extend((number, mix) for mix in group["values"])
    for level, cells in levels.items():
        names = (f"{level}.bandwidth", *(("memory.bandwidth",) if level == "Mem" else ()))
        if cells:
            yield _series(f"bandwidths.{level}", tuple(cells), names)
        for number, mix in cells:
            threads = section["measured"][number]["threads_per_core"]
            several = f".{threads}threads" if threads > 1 else ""
            yield _series(f"bandwidths.{level}.{mix}{several}", ((number, mix),))


def _series(path: str, cells: tuple[tuple[int, str], ...], names: tuple[str, ...] = ()) -> SeriesFigurePath:
    return SeriesFigurePath(path, ("bandwidths", "measured"), _BANDWIDTH, ("bandwidths",), names, cells)


def _peaks(rows: list[Values]) -> Iterator[FigurePath]:
    seen: set[str] = set()
    for number, row in enumerate(rows):
        path = f"peaks.{row['operation']}.{row['precision']}.{row['register']:g}B.{row['cores']}"
        if path not in seen:
            seen.add(path)
            yield ScaledFigurePath(path, ("peaks", "measured", number, "value"), _FLOP_RATE, ("peaks",))


def shown(place: FigurePath, value: Any) -> str:
    """A figure with its unit."""
    dimension = place.dimension
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(shown(place, item) if isinstance(item, tuple) else _item(item) for item in value)}]"
    if dimension is None or isinstance(value, str):
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    return with_unit(value, dimension)


def _item(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def with_unit(value: float, dimension: str) -> str:
    """A number in base units as people read it."""
    if dimension == "data":
        return format_bytes(value)
    if dimension in _UNITS:
        return f"{value:.6g} {_UNITS[dimension]}"
    return format_si(value, _SI_UNITS[dimension])


_UNITS = {"bytes per cycle": "B/cy", "cycles per cache line": "cy/CL"}
_SI_UNITS = {"frequency": "Hz", "bandwidth": "B/s", "flop rate": "FLOP/s"}


def number_of(value: Any) -> float | None:
    """The figure as a number; None for words, flags and lists."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
