"""What a machine offers: P_i per kind of floating-point instruction, B^y_{i,r} per level, access and load/store ratio.

Measured figures of the machine file where there are some, else derived from ports and transfer widths and marked so.
Cache-aware bandwidths count the bytes of load and store instructions; bandwidths between levels count cache lines.
The rules are those of docs/adcarm.md, "What the machine offers".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Literal

from kernmodel.code.mix import FpClass
from kernmodel.errors import MachineError, Note
from kernmodel.incore.engine.ports import optimal_bound
from kernmodel.incore.model import InstructionData, Parameters, PortUse
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa import isa_of
from kernmodel.isa.model import FpOperation, Precision
from kernmodel.machine.model import BandwidthSeries, Machine, TransferPath
from kernmodel.models.bandwidths import MEMORY, Origin, at_cores, nearest_bandwidth, with_cores
from kernmodel.traffic.model import PathLines
from kernmodel.value_types import dataclass
from kernmodel.words import count

Ratio = Literal["loads", "2:1", "1:1", "stores"]

RATIOS: dict[Ratio, float] = {"loads": 1.0, "2:1": 2 / 3, "1:1": 1 / 2, "stores": 0.0}
"""The load/store ratios that benchmarks measure (the paper, Figure 3), by their share of loads."""

_SAME = 1e-6
"""Shares of loads that differ by less are one ratio."""


@dataclass(frozen=True, slots=True)
class ComputeCeiling:
    """P_i: FLOP/s of `cores` cores that execute nothing but instructions of one class at full rate."""

    kind: FpClass
    flop_per_second: float
    origin: Origin
    source: str


@dataclass(frozen=True, slots=True)
class MemoryCeiling:
    """B^y_{i,r}: bytes/s of `cores` cores whose loads and stores of one access size are all served by one level.

    Attributes:
        level: "L1", …, "Mem".
        size_bytes: of one access (i).
        load_share: loads over all memory instructions (r: 1 loads only, 2/3, 1/2, 0 stores only).
    """

    level: str
    size_bytes: int
    load_share: float
    bytes_per_second: float
    origin: Origin
    source: str


_ELEMENTS: dict[Precision, int] = {"DP": 8, "SP": 4, "HP": 2}
_X87_BYTES = 10
_MEASURED_NAMES: dict[FpOperation, str] = {"add": "ADD", "mul": "MUL", "fma": "FMA", "div": "DIV", "sqrt": "SQRT"}


def register_bytes(kind: FpClass) -> int:
    """Bytes of the registers that hold the lanes of an instruction; of one element where it is scalar."""
    return _ELEMENTS[kind.precision] * kind.lanes if kind.precision in _ELEMENTS else _X87_BYTES


def compute_ceiling(
    machine: Machine, parameters: Parameters, table: InstructionTable, kind: FpClass, cores: int
) -> ComputeCeiling | None:
    """P_i by lanes × FLOP × instructions per cycle × clock × cores; None where the core has no such instruction.

    Instructions per cycle are those of the instruction table: the ports of the instruction, the time it keeps a
    divider, and the issue width. A measured figure of the machine file goes before. Masks do not count (equation 4 is
    the model's).
    """
    if not kind.flops:
        return None
    found = _measured_peak(machine, kind, cores)
    if found is not None:
        return found
    row = _fp_row(table, kind)
    if row is None:
        return None
    cycles = _cycles(((row, 1.0),), parameters)
    rate = kind.flops / cycles * machine.clock_hz * cores
    source = f"{row.form} every {cycles:g} cy on the ports of {table.parameters.name} ({row.source})"
    return ComputeCeiling(kind, rate, "derived", source)


def joint_performance(
    machine: Machine,
    parameters: Parameters,
    table: InstructionTable,
    counts: Iterable[tuple[FpClass, float]],
    cores: int,
) -> float | None:
    """FLOP/s of a mix of floating-point instructions that share the ports as an ideal scheduler lets them.

    The mix may be faster than each class alone (AMD Zen adds and multiplies on different pipes), or slower than its
    fastest class. None where the table lacks one of the instructions, or there are none.
    """
    rows: list[tuple[InstructionData, float]] = []
    flops, widest_register = 0.0, 0
    for kind, number in counts:
        row = _fp_row(table, kind) if kind.flops else None
        if kind.flops and row is None:
            return None
        if row is not None and number > 0:
            rows.append((row, number))
            flops += kind.flops * number
            widest_register = max(widest_register, register_bytes(kind))
    closed = parameters.closed_by_widest if isa_of(parameters.isa).vector_bytes[:1] == (widest_register,) else None
    return flops / _cycles(rows, parameters, closed) * machine.clock_hz * cores if rows else None


def widest(table: InstructionTable, operation: FpOperation, precision: Precision) -> FpClass | None:
    """The widest instruction of an operation that the table has, None where there is none."""
    for size in isa_of(table.parameters.isa).vector_bytes:
        kind = FpClass(operation, precision, size // _ELEMENTS[precision]) if precision in _ELEMENTS else None
        if kind is not None and _fp_row(table, kind) is not None:
            return kind
    return None


def peak_notes(machine: Machine, parameters: Parameters, table: InstructionTable) -> tuple[Note, ...]:
    """Where the instruction table and the FLOP rates of the machine file disagree (the table's count), or mixes exceed
    the machine's peak."""
    notes = []
    for precision in ("DP", "SP"):
        rates = machine.core.flop_per_cycle.get(precision, {})
        for operation, name in _MEASURED_NAMES.items():
            kind = widest(table, operation, precision)
            row = _fp_row(table, kind) if kind else None
            if kind is None or row is None or name not in rates:
                continue
            own = kind.flops / _cycles(((row, 1.0),), parameters)
            if not math.isclose(own, rates[name], rel_tol=0.01):
                text = (
                    f"{precision} {name}: {own:g} FLOP/cy by the instruction table, {rates[name]:g} by {machine.file}"
                )
                notes.append(Note("peak-differs", text))
    return tuple(notes)


def _measured_peak(machine: Machine, kind: FpClass, cores: int) -> ComputeCeiling | None:
    """The measured figure for this kind at the nearest number of cores, in proportion to the cores."""
    found = [
        peak
        for peak in machine.peaks
        if (peak.operation, peak.precision, peak.width_bytes)
        == (_MEASURED_NAMES.get(kind.operation), kind.precision, register_bytes(kind))
    ]
    if not found:
        return None
    peak = min(found, key=lambda one: (abs(one.cores - cores), one.cores))
    source = machine.sources.get("peaks", machine.file)
    if peak.cores == cores:
        return ComputeCeiling(kind, peak.flop_per_second, "measured", source)
    value = peak.flop_per_second / peak.cores * cores
    on = count(peak.cores, "core")
    return ComputeCeiling(kind, value, "derived", f"{source}; measured on {on}, taken in proportion")


def _fp_row(table: InstructionTable, kind: FpClass) -> InstructionData | None:
    """A representative row: the first form between registers that the table has."""
    return _first_row(table, isa_of(table.parameters.isa).fp_forms(kind.operation, kind.precision, kind.lanes))


def _cycles(rows: Iterable[tuple[InstructionData, float]], parameters: Parameters, closed: object = None) -> float:
    """Cycles of so many instructions of each row, independent of one another: ports, dividers, issue.

    `closed` is a port that takes no vector µops (port 1 beside 512-bit registers), None for none.
    """
    uses: list[PortUse] = []
    measured = slots = 0.0
    for row, number in rows:
        for use in row.ports:
            ports = tuple(port for port in use.ports if port != closed) or use.ports
            uses.append(PortUse(ports, use.cycles * number))
        measured += (row.throughput or 0.0) * number
        slots += (row.front_end.retire_slots if row.front_end else row.uops) * number
    return max(optimal_bound(uses)[0], measured, slots / parameters.issue_width)


def memory_ceiling(
    machine: Machine,
    parameters: Parameters,
    table: InstructionTable,
    *,
    level: str,
    size_bytes: int,
    load_share: float,
    cores: int,
) -> MemoryCeiling:
    """B^y_{i,r}; `load_share` between two known ratios is interpolated (harmonically: times add).

    A measured series of this access size holds at its ratio. Between two measured ratios the time per byte is linear in
    the share of loads, along the fastest of the series; beyond them it leads to the derived figure of the next ratio of
    `RATIOS`. Without a series of this size: the rate at which the core issues such loads and stores to L1, at most what
    wider accesses are measured to get from the level, at most what the paths to it can move.

    Raises:
        BandwidthNotKnownError: nothing measured, and a width that it could be derived from is not known.
        MachineError: nothing measured, and the ports that it could be derived from are not known.
    """
    offer = _Offer(machine, parameters, table, cores)
    return offer.ceiling(level, size_bytes, load_share)


def best_ceiling(
    machine: Machine, parameters: Parameters, table: InstructionTable, *, level: str, cores: int
) -> MemoryCeiling:
    """The most that any access size and any load/store ratio gets from a level: the roof of the cache-aware model.

    Raises:
        MachineError: as `memory_ceiling`.
    """
    offer = _Offer(machine, parameters, table, cores)
    # what inner levels were measured with limits derived figures of outer ones
    known = [point for name in machine.residence_levels for point in offer.measured(name)]
    sizes = {widest_access(table), *(point.size for point in known)}
    shares = {*RATIOS.values(), *(point.load_share for point in known)}
    found = [offer.ceiling(level, size, share) for size in sorted(sizes) for share in sorted(shares)]
    return max(found, key=lambda one: (one.bytes_per_second, one.size_bytes, one.load_share))


def widest_access(table: InstructionTable) -> int:
    """Bytes of the widest load of the core.

    Raises:
        MachineError: the instruction table has no load that is known here.
    """
    accesses = isa_of(table.parameters.isa).access_forms("load")
    for size, forms in accesses.items():
        if _first_row(table, forms) is not None:
            return size
    raise MachineError(
        f"the instruction table of {table.parameters.name} has no load of a known form",
        where=str(table.path),
        todo=f"add rows such as {next(forms[0] for forms in accesses.values())}" if accesses else "add rows of loads",
    )


def issue_ceiling(
    machine: Machine,
    parameters: Parameters,
    table: InstructionTable,
    *,
    size_bytes: int,
    load_share: float,
    cores: int,
) -> MemoryCeiling:
    """Bytes/s of loads and stores that the cores can issue: ports, issue width, load and store width of the core.

    An access of a size between two (10 B of the x87) takes the ports of the next larger one.

    Raises:
        MachineError: the instruction table has no such loads or stores.
    """
    loads, stores = _access_row(table, "load", size_bytes), _access_row(table, "store", size_bytes)
    cycles = _cycles(((loads, load_share), (stores, 1 - load_share)), parameters)
    widths = machine.core.load_bytes_per_cycle, machine.core.store_bytes_per_cycle
    if widths[0] and widths[1]:
        cycles = max(cycles, load_share * size_bytes / widths[0], (1 - load_share) * size_bytes / widths[1])
    rate = size_bytes / cycles * machine.clock_hz * cores
    source = f"{size_bytes / cycles:g} B/cy by the ports of {table.parameters.name} ({loads.form}, {stores.form})"
    return MemoryCeiling(machine.levels[0].name, size_bytes, load_share, rate, "derived", source)


def _access_row(table: InstructionTable, kind: Literal["load", "store"], size: int) -> InstructionData:
    forms = isa_of(table.parameters.isa).access_forms(kind)
    for candidate in sorted(forms):
        row = _first_row(table, forms[candidate]) if candidate >= size else None
        if row is not None:
            return row
    raise MachineError(
        f"{table.parameters.name} has no {kind} of {size} B, so its rate cannot be derived",
        where=str(table.path),
        todo=f"add a measured series with `access: {size} B` to the machine file, or the row to the table",
    )


def _first_row(table: InstructionTable, forms: Sequence[str]) -> InstructionData | None:
    return next((row for form in forms if (row := table.row(form)) is not None), None)


class BandwidthNotKnownError(MachineError):
    """A machine file has neither a measured bandwidth nor a width for a path."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A bandwidth at one share of loads, for all cores that are asked for."""

    load_share: float
    size: int
    bytes_per_second: float
    origin: Origin
    source: str


@dataclass(frozen=True, slots=True)
class _Offer:
    """What so many cores of a machine get."""

    machine: Machine
    parameters: Parameters
    table: InstructionTable
    cores: int

    def ceiling(self, level: str, size: int, share: float) -> MemoryCeiling:
        """`memory_ceiling` of this many cores."""
        known = _fastest([point for point in self.measured(level) if point.size == size])
        anchors = {*RATIOS.values(), *(point.load_share for point in known)}
        low = max(value for value in anchors if value <= share + _SAME)
        high = min(value for value in anchors if value >= share - _SAME)
        points = [self._at(level, size, value, known) for value in sorted({low, high})]
        value = points[0] if len(points) == 1 else _interpolated(points, share)
        return MemoryCeiling(level, size, share, value.bytes_per_second, value.origin, value.source)

    def _at(self, level: str, size: int, share: float, known: list[_Known]) -> _Known:
        """At a ratio of `RATIOS` or of a series; no derived figure exceeds that of the level inside."""
        if known and known[0].load_share - _SAME < share < known[-1].load_share + _SAME:
            value = _interpolated(known, share)
        elif known:
            value = self._beyond(level, size, min(known, key=lambda one: abs(one.load_share - share)), share)
        else:
            value = self._derived(level, size, share)
        if value.origin == "derived":
            value = min((value, *self._inside(level, size, share)), key=_rate)
        return value

    def _inside(self, level: str, size: int, share: float) -> list[_Known]:
        """What the level inside offers, as a limit: no data arrive faster than they pass it. The first has none."""
        names = self.machine.residence_levels
        depth = names.index(level)
        if not depth or not self._known_at(names[depth - 1]):
            return []
        inner = self.ceiling(names[depth - 1], size, share)
        return [_Known(share, size, inner.bytes_per_second, "derived", f"as from {inner.level}: {inner.source}")]

    def _known_at(self, level: str) -> bool:
        """Whether anything is known of a level: a series, or the widths of all paths to it."""
        names, paths = self.machine.residence_levels, self.machine.paths
        return bool(self.measured(level)) or all(
            path.bytes_per_cycle is not None for path in paths[: names.index(level)]
        )

    def measured(self, level: str) -> list[_Known]:
        """All measured series of a level with one thread per core, brought to this many cores."""
        series = [one for one in self.machine.bandwidths if one.level == level and one.threads_per_core == 1]
        return [self._known(one) for one in series]

    def _known(self, series: BandwidthSeries) -> _Known:
        value, origin, how = at_cores(self.machine, series, self.cores)
        mix = series.mix
        size = mix.access_bytes if mix.access_bytes is not None else widest_access(self.table)
        guess = "" if mix.access_bytes is not None else f", accesses taken to be of {size} B"
        name = self.machine.sources.get(f"bandwidths.mixes.{mix.name}", mix.name)
        return _Known(mix.load_share, size, value, origin, f"{name}{how}{guess}")

    def _beyond(self, level: str, size: int, known: _Known, share: float) -> _Known:
        """A ratio beyond those measured of this size: what series of other sizes get there, else by the lines that it
        moves for each byte; at most what the core issues."""
        issued = self._issue(size, share)
        others = _fastest([point for point in self.measured(level) if point.size > size])
        if others and others[0].load_share - _SAME < share < others[-1].load_share + _SAME:
            wider = _interpolated(others, share)
            source = f"as wider accesses: {wider.source}"
            return min(issued, _Known(share, size, wider.bytes_per_second, "derived", source), key=_rate)
        path = self._path_to(level)
        if path is None:
            return issued
        factor = _lines(self.machine, path, known.load_share) / _lines(self.machine, path, share)
        source = f"{known.source}, at {known.load_share:.0%} loads; by the lines over {path.name}"
        return min(issued, _Known(share, size, known.bytes_per_second * factor, "derived", source), key=_rate)

    def _derived(self, level: str, size: int, share: float) -> _Known:
        """A size without a series: the issue rate, at most what other sizes get from the level, or what paths move."""
        limits = [self._issue(size, share)]
        sizes = {point.size for point in self.measured(level)}
        if level == self.machine.levels[0].name:
            sizes = {other for other in sizes if other > size}
        others = [self.ceiling(level, other, share) for other in sorted(sizes)]
        if others:
            best = max(others, key=lambda one: one.bytes_per_second)
            source = f"as {best.size_bytes} B accesses: {best.source}"
            limits.append(_Known(share, size, best.bytes_per_second, "derived", source))
        else:
            limits += self._by_paths(level, size, share)
        return min(limits, key=_rate)

    def _by_paths(self, level: str, size: int, share: float) -> list[_Known]:
        """What the paths to a level of which nothing was measured can move, as far as they are known.

        Raises:
            BandwidthNotKnownError: the last of them is not.
        """
        names = self.machine.residence_levels
        paths = self.machine.paths[: names.index(level)]
        limits = []
        for path in paths:
            try:
                width, source = _path_width(self.machine, path, self.cores)
            except BandwidthNotKnownError:
                if path.outer == level:
                    raise
                continue
            rate = width / _lines(self.machine, path, share)
            limits.append(_Known(share, size, rate, "derived", source))
        return limits

    def _issue(self, size: int, share: float) -> _Known:
        found = issue_ceiling(
            self.machine, self.parameters, self.table, size_bytes=size, load_share=share, cores=self.cores
        )
        return _Known(share, size, found.bytes_per_second, "derived", found.source)

    def _path_to(self, level: str) -> TransferPath | None:
        return next((path for path in self.machine.paths if path.outer == level), None)


def _rate(known: _Known) -> float:
    return known.bytes_per_second


def _fastest(known: Sequence[_Known]) -> list[_Known]:
    """The series that no mixture of others outruns: the lower convex hull of time per byte over the share of loads."""
    ordered = sorted(known, key=lambda one: (one.load_share, -one.bytes_per_second))
    hull: list[_Known] = []
    for point in ordered:
        if hull and point.load_share - hull[-1].load_share < _SAME:
            continue
        while len(hull) > 1 and _above(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _above(left: _Known, middle: _Known, right: _Known) -> bool:
    """Whether the middle one takes longer than left and right ones mixed to its ratio."""
    return _time(left, right, middle.load_share) < 1 / middle.bytes_per_second


def _time(left: _Known, right: _Known, share: float) -> float:
    """Seconds per byte at a share between two, by linear interpolation."""
    weight = (share - left.load_share) / (right.load_share - left.load_share)
    return (1 - weight) / left.bytes_per_second + weight / right.bytes_per_second


def _interpolated(points: Sequence[_Known], share: float) -> _Known:
    for point in points:
        if abs(point.load_share - share) < _SAME:
            return point
    left, right = next((a, b) for a, b in pairwise(points) if a.load_share <= share <= b.load_share)
    origin: Origin = "derived" if "derived" in (left.origin, right.origin) else "interpolated"
    source = f"between {left.load_share:.0%} loads ({left.source}) and {right.load_share:.0%} ({right.source})"
    return _Known(share, left.size, 1 / _time(left, right, share), origin, source)


def known(ceiling: Callable[[], MemoryCeiling]) -> MemoryCeiling | None:
    """A ceiling, None where the machine file has no bandwidth that it could come from."""
    try:
        return ceiling()
    except BandwidthNotKnownError:
        return None


def theoretical_bandwidth(machine: Machine, level: str, cores: int) -> float | None:
    """Bytes/s between a level and the one inside it in theory, one direction of a full-duplex path; None if not given.

    L1: load and store width of the cores; caches: the width of the path; memory: its channels on the sockets in use
    (the paper, Table 1, "ORM bandwidth").
    """
    core = machine.core
    if level == machine.levels[0].name:
        widths = core.load_bytes_per_cycle, core.store_bytes_per_cycle
        return (widths[0] + widths[1]) * machine.clock_hz * cores if widths[0] and widths[1] else None
    if level == MEMORY:
        sockets = math.ceil(cores / machine.topology.cores_per_socket)
        return machine.memory.bytes_per_second * sockets if machine.memory else None
    width = next(path.bytes_per_cycle for path in machine.paths if path.outer == level)
    return width * machine.clock_hz * cores if width is not None else None


def path_bandwidth(machine: Machine, path: str, flow: PathLines, cores: int) -> MemoryCeiling:
    """Bytes/s between two neighbouring levels (original, hierarchical): measured, or width × clock × cores.

    Measured, with data in the outer level: the stream mix nearest to the lines on the path (`nearest_bandwidth`), which
    T_Mem of the ECM model takes too, at this number of cores. Both directions count, so a full-duplex path moves at
    most twice its width.

    Args:
        path: its name ("L1L2", …).
        flow: the lines on the path, in any unit.

    Raises:
        BandwidthNotKnownError: neither width nor measurement, nor theoretical bandwidth of the memory.
    """
    found = next(one for one in machine.paths if one.name == path)
    if found.bytes_per_cycle is None:
        return _measured_path(machine, found, flow, cores)
    if _has_streams(machine, found) and found.outer != MEMORY and _comes_from(flow):
        return _measured_cache(machine, found, flow, cores)
    width, source = _path_width(machine, found, cores)
    lines, occupying = sum(flow), flow.occupying(found)
    rate, share = (width * lines / occupying, flow.loads / lines) if lines else (width, 1.0)
    return MemoryCeiling(found.outer, machine.line_bytes, share, rate, "derived", source)


def _has_streams(machine: Machine, path: TransferPath) -> bool:
    return any(one.level == path.outer and one.threads_per_core == 1 for one in machine.bandwidths)


_MOSTLY = 0.9
"""Lines that come over a path for each that leaves over it, from which on they come from the level beyond."""


def _comes_from(flow: PathLines) -> bool:
    """Whether the lines on a path come from the level beyond, as those of streams that were measured there do: lines
    from further out may go past a victim cache, which takes what leaves the cache inside all the same."""
    return flow.loads > 0 and flow.loads >= _MOSTLY * (flow.stores + flow.clean_victims)


def _measured_cache(machine: Machine, path: TransferPath, flow: PathLines, cores: int) -> MemoryCeiling:
    """The same of a cache. Streams are counted by what they load and store: what they push into a victim cache comes
    on top, for them as for the kernel."""
    made = _measured_path(machine, path, flow, cores)
    counted = flow.loads + flow.stores
    return replace(made, bytes_per_second=made.bytes_per_second * sum(flow) / counted)


def _measured_path(machine: Machine, path: TransferPath, flow: PathLines, cores: int) -> MemoryCeiling:
    total = flow.loads + flow.stores
    share = flow.loads / total if total else 1.0
    if not _has_streams(machine, path):
        width, source = _path_width(machine, path, cores)
        return MemoryCeiling(path.outer, machine.line_bytes, share, width, "derived", source)
    found = nearest_bandwidth(machine, path.outer, share)
    value, origin, how = with_cores(machine, found, cores)
    mix = machine.sources.get(f"bandwidths.mixes.{found.mix.name}", found.mix.name)
    source = f"{mix}{how}, {found.mix_read_share:.0%} of lines loaded"
    return MemoryCeiling(path.outer, machine.line_bytes, share, value, origin, source)


def _path_width(machine: Machine, path: TransferPath, cores: int) -> tuple[float, str]:
    """Bytes/s that a path moves, one direction if full-duplex, without a measurement.

    Raises:
        BandwidthNotKnownError: its width is to be measured, but was not, and is no memory with known channels.
    """
    source = machine.sources.get(f"paths.{path.name}", machine.file)
    theory = theoretical_bandwidth(machine, path.outer, cores)
    if path.bytes_per_cycle is not None and path.outer == MEMORY:
        domains = math.ceil(cores / machine.topology.cores_per_numa_domain)
        return (
            path.bytes_per_cycle * machine.clock_hz * domains,
            f"width of {path.name} for each ccNUMA domain ({source})",
        )
    if theory is not None:
        what = "memory channels" if path.outer == MEMORY else f"width of {path.name}"
        return theory, f"{what} ({machine.sources.get('memory', source) if path.outer == MEMORY else source})"
    raise BandwidthNotKnownError(
        f"has no bandwidth of {path.outer}, measured or by width",
        where=machine.file,
        todo=f"add a series of {path.outer} under bandwidths"
        + ("" if path.outer != MEMORY else ", or a section memory"),
    )


def _lines(machine: Machine, path: TransferPath, load_share: float) -> float:
    """Bytes that occupy a path for each byte of load and store instructions that the level beyond serves, at best.

    At best stores go to lines that are loaded anyway: loads move max(ρ, 1 − ρ) inward, stores 1 − ρ outward; a victim
    cache takes every line that leaves the level inside. One direction of a full-duplex path counts, the longer one.
    """
    inward, outward = max(load_share, 1 - load_share), 1 - load_share
    if path.outer != MEMORY and machine.level(path.outer).clean_victims:
        outward = inward
    return inward + outward if path.duplex == "half" else max(inward, outward)
