"""Answers as flat rows: one value a column, for tables, CSV, JSON lines and Parquet.

Names of columns end in their unit. Which columns there are is decided by the machines of a study (their paths and
levels), not by the kernel: what has no meaning (LUP/s of a reduction) or no end (a rate where nothing takes time) is
None.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from kernmodel.models.calls import CALLS
from kernmodel.models.outside import OUTSIDE
from kernmodel.studies.predict.division import scale_divided
from kernmodel.studies.predict.request import Point
from kernmodel.studies.sweep.grid import Axis, Outcome, Row
from kernmodel.traffic.model import reuse_in, strongest_in
from kernmodel.uncertainty import Interval
from kernmodel.units import Work, convert_cycles, meaningful_units
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.machine.model import Machine
    from kernmodel.models.ecm import EcmPrediction, ScalingPoint
    from kernmodel.studies.predict.request import EcmAnswer
    from kernmodel.traffic.model import Traffic

ColumnType = Literal["float", "int", "str"]
Value = float | int | str | None
Say = Callable[["EcmPrediction"], str]
"""Puts the bottleneck of a prediction in words."""

POINT, ERROR = "point", "error"
T_ECM = "T_ECM_cy_per_CL"
_UNITS = {
    "cy/CL": "_cy_per_CL",
    "cy/It": "_cy_per_It",
    "It/s": "_It_per_s",
    "LUP/s": "_LUP_per_s",
    "FLOP/s": "_FLOP_per_s",
    "s": "_s_per_sweep",
}
CORE: Mapping[str, str] = {
    unit: f"{'T_ECM' if unit.startswith('cy') else 'core'}{ending}" for unit, ending in _UNITS.items()
}
"""The column of the prediction for one core by unit."""
ALL_CORES: Mapping[str, str] = {unit: f"all_cores{ending}" for unit, ending in _UNITS.items()}
"""The same of all active cores together."""
LOW, HIGH, DEPENDS = "T_ECM_low_cy_per_CL", "T_ECM_high_cy_per_CL", "T_ECM_depends_on"
"""The columns of the interval of the prediction and of what it depends on; empty where it has none."""
ALL_CORES_ENDS = "all_cores_low_cy_per_CL", "all_cores_high_cy_per_CL", "all_cores_depends_on"
"""The same of all active cores together."""
TIME, REUSE, WHILE = "_cy_per_CL", "reuse_in_", "_while"
_ENDINGS = {ending: unit for unit, ending in _UNITS.items()} | {"_B_per_It": "B/It"}
_INTEGERS = (POINT, "domains", "saturation_simple", "saturation_recursive")
_FLOATS = ("utilization", "iterations_per_CL")
_WORDS = ("binding", "bottleneck", "ol_bound_by", "traffic", "stores", "code", "warnings")
_SEPARATOR = " | "


@dataclass(frozen=True, slots=True)
class RowColumn:
    """A column of records.

    Attributes:
        name: key in the record ("T_L3Mem_cy_per_CL"), stable.
        title: heading for people ("T_L3Mem").
        unit: of the numbers, "" for counts and texts.
        type: of the values (None is possible in all).
    """

    name: str
    title: str
    unit: str
    type: ColumnType

    @property
    def heading(self) -> str:
        """Title and unit ("T_L3Mem cy/CL")."""
        return f"{self.title} {self.unit}" if self.unit else self.title


def answer_row(point: Point, answer: EcmAnswer, say: Say | None = None) -> Row:
    """The row of one answer: T_OL, T_nOL, T_call, every transfer time, T_ECM and the prediction per residence level
    (cy/CL), performance in every unit that has a meaning (None where a time is not known), saturation points, bytes
    over each path per iteration, the largest reuse that holds in each cache, what binds, and the bottleneck, if there
    is one to `say` it.

    Times are of one core while `point.kernel.cores` are active; "all_cores" is the performance of all of them, as
    `kernmodel ecm --cores` gives it. Above one ccNUMA domain it is taken from `answer.scaling`, None if that has not
    this number of cores.
    """
    prediction, traffic = answer.prediction, answer.traffic
    origin = answer.origin
    compiled = (origin.compiler, origin.version, shlex.join(origin.flags))
    unknown, lacking = prediction.unknown, dict.fromkeys(CORE.values())
    return {
        **{f"{name}{TIME}": None if name in unknown else cycles for name, cycles in _times(prediction)},
        **(lacking if unknown else _in_units(prediction.cycles, prediction.work, CORE)),
        **_ends((LOW, HIGH, DEPENDS), prediction.cycles_interval),
        **{from_level(name): None if prediction.is_least(name) else cycles for name, cycles in prediction.levels},
        **_of_all_cores(point, answer),
        "saturation_simple": prediction.saturation_simple,
        "saturation_recursive": prediction.saturation_recursive,
        "saturation_is_least": "yes" if prediction.saturation_is_least else "no",
        **_bytes(traffic, answer.machine),
        **_reuses(traffic, answer.machine),
        "iterations_per_CL": traffic.iterations_per_unit,
        "ol_bound_by": prediction.ol_bound_by,
        "binding": " + ".join(prediction.binding),
        "bottleneck": say(prediction) if say else None,
        "traffic": traffic.method,
        "stores": traffic.stores,
        "code": " ".join(part for part in compiled if part) if origin.compiler else origin.file or "standard input",
        "warnings": _SEPARATOR.join(f"{n.code}: {n}" for n in answer.notes if n.kind == "warning") or None,
    }


def _times(prediction: EcmPrediction) -> Iterator[tuple[str, float]]:
    """The model's times in the order of the columns, T_call also of loops that call nothing."""
    for name, cycles in prediction.times.items():
        if name != CALLS:
            yield name, cycles
        if name == OUTSIDE:
            yield CALLS, prediction.t_call


def from_level(level: str) -> str:
    """The column of the prediction if the data came from this level."""
    return f"T_ECM_from_{level}{TIME}"


def warnings_of(row: Row) -> tuple[tuple[str, str], ...]:
    """Code and text of the warnings in a row."""
    text = row.get("warnings")
    parts = text.split(_SEPARATOR) if isinstance(text, str) else []
    pairs = (part.partition(": ") for part in parts)
    return tuple((code, text) for code, _, text in pairs)


def _in_units(cycles: float, work: Work, names: Mapping[str, str]) -> dict[str, Value]:
    found = {names[unit]: convert_cycles(cycles, unit, work) for unit in meaningful_units(work)}
    return {name: found[name] if math.isfinite(found.get(name, math.inf)) else None for name in names.values()}


def _ends(names: Sequence[str], interval: Interval | None) -> dict[str, Value]:
    """Low and high end of an interval and its cause; None where there is none."""
    ends = (None, None, None) if interval is None else (interval.low, interval.high, interval.cause)
    return dict(zip(names, ends, strict=True))


def interval_of_all_cores(row: Row, unit: str) -> Interval | None:
    """Between which values the performance of all cores lies, in a unit; None where it is known."""
    low_end, high_end, depends = ALL_CORES_ENDS
    values = (row.get(name) for name in (ALL_CORES[unit], ALL_CORES["cy/CL"], low_end, high_end))
    known = [one for one in values if isinstance(one, int | float) and one > 0]
    if len(known) < 4:
        return None
    number, cycles, low, high = known
    held = Interval(low / cycles, high / cycles, str(row[depends]), "")
    return held.map(lambda share: number / share if unit.endswith("/s") else number * share)


def _of_all_cores(point: Point, answer: EcmAnswer) -> dict[str, Value]:
    scaled = _scaled(point, answer)
    if scaled is None:
        return dict.fromkeys((*ALL_CORES.values(), *ALL_CORES_ENDS, *_SCALING))
    values = _in_units(scaled.cycles, answer.prediction.work, ALL_CORES)
    saturated = None if scaled.saturated is None else "yes" if scaled.saturated else "no"
    scaling = (scaled.domains, scaled.utilization, saturated)
    return {**values, **_ends(ALL_CORES_ENDS, scaled.cycles_interval), **dict(zip(_SCALING, scaling, strict=True))}


_SCALING = ("domains", "utilization", "saturated")


def _scaled(point: Point, answer: EcmAnswer) -> ScalingPoint | None:
    cores = point.kernel.cores
    found = next((scaled for scaled in answer.scaling if scaled.cores == cores), None)
    if answer.prediction.unknown:
        return None
    if found is not None or cores > answer.machine.topology.cores_per_numa_domain:
        return found
    spread = point.kernel.spread
    return scale_divided(lambda *_: answer.prediction, cores, answer.machine, spread, answer.nest, answer.sizes)[0]


def _bytes(traffic: Traffic, machine: Machine) -> dict[str, Value]:
    per_line = machine.line_bytes / traffic.iterations_per_unit
    values: dict[str, Value] = {}
    for path in traffic.paths:
        values[f"{path.path}_in_B_per_It"] = path.loads * per_line
        values[f"{path.path}_out_B_per_It"] = path.evictions * per_line
    return values


def _reuses(traffic: Traffic, machine: Machine) -> dict[str, Value]:
    """Per cache the loops that carry the largest reuse that holds (of simulated traffic the share of hits), and while
    which sizes it does."""
    values: dict[str, Value] = {}
    for level in machine.levels:
        held = strongest_in(traffic, level.name)
        values[f"{REUSE}{level.name}"] = reuse_in(traffic, level.name)
        values[f"{REUSE}{level.name}{WHILE}"] = ", ".join(held.solved.values()) or None if held else None
    return values


def study_columns(axes: Sequence[Axis], machines: Sequence[Machine]) -> tuple[RowColumn, ...]:
    """The columns of a study on these machines, known before there is an answer."""
    names = dict.fromkeys(name for part in zip(*map(_parts, machines), strict=True) for one in part for name in one)
    return columns_of(axes, names)


def columns_of(axes: Sequence[Axis], names: Iterable[str]) -> tuple[RowColumn, ...]:
    """The columns of a study: its coordinates first, then those of its rows by name, `error` last."""
    types: list[ColumnType] = ["int" if axis.kind in ("size", "cores", "block") else "str" for axis in axes]
    titles = map(coordinate_name, axes)
    coordinates = (RowColumn(title, title, "", kind) for title, kind in zip(titles, types, strict=True))
    return (_column(POINT), *coordinates, *map(_column, names), _column(ERROR))


def _parts(machine: Machine) -> Iterator[tuple[str, ...]]:
    """The names of a record in its order, in parts, so that those of several machines stay together."""
    yield ("T_OL_cy_per_CL", "T_nOL_cy_per_CL", f"{OUTSIDE}{TIME}", f"{CALLS}{TIME}")
    yield tuple(f"{path.time_name}{TIME}" for path in machine.paths)
    yield (*CORE.values(), LOW, HIGH, DEPENDS)
    yield tuple(from_level(level) for level in machine.residence_levels)
    yield (*ALL_CORES.values(), *ALL_CORES_ENDS, *_SCALING)
    yield ("saturation_simple", "saturation_recursive", "saturation_is_least")
    yield tuple(f"{path.name}_{way}_B_per_It" for path in machine.paths for way in ("in", "out"))
    yield tuple(f"{REUSE}{level.name}{end}" for level in machine.levels for end in ("", WHILE))
    yield ("iterations_per_CL", "ol_bound_by", *(name for name in _WORDS if name != "ol_bound_by"))


_PART_TITLES = {"core": "one core", "all_cores": "all cores"}


def _column(name: str) -> RowColumn:
    ending = next((ending for ending in _ENDINGS if name.endswith(ending)), None)
    if ending is not None:
        stem = name.removesuffix(ending)
        return RowColumn(name, _PART_TITLES.get(stem, stem), _ENDINGS[ending], "float")
    kind: ColumnType = "int" if name in _INTEGERS else "float" if name in _FLOATS else "str"
    return RowColumn(name, name.replace("_", " "), "", kind)


_RESERVED = frozenset(
    {POINT, ERROR, "study", "cores", "machine", "compiler", "flags", *CORE.values(), LOW, HIGH, DEPENDS,
     *ALL_CORES.values(), *ALL_CORES_ENDS, *_SCALING, "saturation_is_least", *_INTEGERS, *_FLOATS, *_WORDS}
)  # fmt: skip


def coordinate_name(axis: Axis) -> str:
    """The column of an axis: its label; `block_i` for blocks of loop i, `size_x` for a size named as another column."""
    if axis.kind == "block":
        return f"block_{axis.name}"
    if axis.kind == "size" and axis.name in _RESERVED:
        return f"size_{axis.name}"
    return axis.label


def coordinate(value: object) -> Value:
    """The value of an axis as it stands in a row: flags as one text."""
    if isinstance(value, tuple):
        return shlex.join(value)
    return value if isinstance(value, int | str) else None


def row_of(axes: Sequence[Axis], coordinates: Sequence[object], outcome: Outcome[Row]) -> Row:
    """The whole row of a point: its number (`point`), its coordinates, its record, and `error`."""
    names = map(coordinate_name, axes)
    return {
        POINT: outcome.index,
        **dict(zip(names, map(coordinate, coordinates), strict=True)),
        **(outcome.view or {}),
        ERROR: outcome.error,
    }


def complete(columns: Sequence[RowColumn], row: Row) -> Row:
    """The row with all columns, in their order; None where it has no value."""
    return {column.name: row.get(column.name) for column in columns}
