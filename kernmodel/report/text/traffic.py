"""The answer of `kernmodel traffic` as text: layer conditions in formulas and numbers, traffic per path and access; or
a table over sizes and cores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from kernmodel.report.layout import (
    Blocks,
    Column,
    Heading,
    Line,
    Pair,
    Table,
    Value,
    entry,
    fields,
    left,
    lines,
    right,
    table,
)
from kernmodel.report.number_text import MISSING, decimal, short
from kernmodel.report.text.caches import (
    STORES,
    byte_tables,
    comparison_section,
    evaded_share,
    evasion_section,
    level_table,
    sampling_section,
)
from kernmodel.report.text.sections import kernel_fields, machine_fields, notes_section, sources_section, unit_of_work
from kernmodel.traffic.conditions.requirements import in_few_sets
from kernmodel.traffic.model import ENDS, SYMBOLIC, carriers, intensity_intervals, reuse_in
from kernmodel.uncertainty import union, with_interval
from kernmodel.units import format_bytes, format_share
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.machine.model import Machine
    from kernmodel.models.transfers import TransferTime
    from kernmodel.studies.predict.request import EcmAnswer, TrafficAnswer
    from kernmodel.traffic.model import LayerCondition, Traffic

_UNCOUNTED = "several-index-patterns"
"""Code of the note by which layer conditions say that they left out reuse."""


def traffic_report(answer: TrafficAnswer, *, verbose: bool = False) -> Blocks:
    """The whole answer for one point."""
    traffic, machine = answer.traffic, answer.machine
    pairs = (
        *kernel_fields(answer.nest, answer.sizes),
        *machine_fields(machine),
        *_method_fields(answer),
        ("active cores", str(traffic.cores)),
        ("unit of work", unit_of_work(traffic)),
    )
    return (
        *fields(f"Data traffic of {answer.nest.name} on {machine.name}", *pairs),
        *comparison_section(answer.symbolic, answer.traffic, answer.differences),
        *_symbolic_sections(answer, verbose=verbose),
        *path_table(traffic, machine),
        *evasion_section(traffic, machine),
        *level_table(traffic),
        *(transfer_table(answer.transfers) if answer.transfers is not None else ()),
        *(byte_tables(traffic, machine) if verbose else ()),
        *_intensity(traffic, machine),
        *access_table(traffic),
        *sampling_section(traffic, verbose=verbose),
        *(sources_section(machine.sources, f"Sources of {machine.file}") if verbose else ()),
        *notes_section(answer.notes),
    )


def _symbolic_sections(answer: TrafficAnswer, *, verbose: bool) -> Blocks:
    """What layer conditions say, where they were asked for."""
    symbolic = answer.symbolic or answer.traffic
    if symbolic.method != SYMBOLIC:
        return ()
    texts = [text for _, _, _, text in symbolic.transitions]
    return (
        *_condition_table(symbolic),
        *(_reuse_table(symbolic) if verbose else ()),
        *lines("Transition points (largest size for which a condition holds)", texts),
        *(access_table(symbolic, " by layer conditions") if verbose and answer.symbolic else ()),
    )


def _method_fields(answer: TrafficAnswer) -> tuple[Pair, ...]:
    return (("method", _method_text(answer)), ("stores", STORES[answer.traffic.stores]))


def _method_text(answer: TrafficAnswer) -> str:
    """How the traffic was found; where it was simulated for want of layer conditions, a note says why."""
    traffic = answer.traffic
    if traffic.method == SYMBOLIC:
        all_reuse = not any(note.code == _UNCOUNTED for note in traffic.notes)
        applies = " (they apply to every reference)" if all_reuse else ""
        return f"{SYMBOLIC}{applies}, safety factor {traffic.safety:g} on the cache sizes"
    if answer.symbolic:
        return f"{traffic.method}, beside {SYMBOLIC} with safety factor {answer.symbolic.safety:g} on the cache sizes"
    return traffic.method


def carried_by(condition: LayerCondition) -> str:
    """The loops that carry the reuses of a condition ("j", "sweep")."""
    return carriers(condition) or MISSING


def holds_text(condition: LayerCondition) -> str:
    """Whether it holds ("yes", "no"), or for which share of the iterations ("33% of It")."""
    if condition.holds or not condition.share:
        return "yes" if condition.holds else "no"
    return f"{format_share(condition.share)} of It"


def inequality(condition: LayerCondition) -> str:
    """The condition as a formula, with its numbers ("(32*N - 16) B ≤ 32 KiB: 156.2 KiB needed")."""
    formula = f"{_in_brackets(condition.required_bytes)} B ≤ {format_bytes(condition.capacity_bytes)}"
    return f"{formula}{in_few_sets(condition)}: {format_bytes(condition.required)} needed"


def _in_brackets(formula: object) -> str:
    """A formula as the factor of a unit: in brackets if it is a sum."""
    text = str(formula)
    return f"({text})" if " " in text else text


def condition_columns(*names: str) -> tuple[Column, ...]:
    """Columns of a table of layer conditions."""
    known = (
        left("cache", "cache"),
        left("reuse along", carried_by),
        left("condition", inequality),
        left("holds", holds_text),
        left("holds for", lambda condition: "; ".join(condition.solved.values()) or "for every size"),
        right("hits", "hits"),
        right("misses", "misses"),
    )
    by_name = {column.header: column for column in known}
    return tuple(by_name[name] for name in names)


CONDITIONS = "Layer conditions (bytes needed ≤ bytes a core has)"


def _condition_table(traffic: Traffic) -> Blocks:
    columns = condition_columns("cache", "reuse along", "condition", "holds", "holds for", "hits", "misses")
    none = lines("Layer conditions", ["none: no reference can reuse the line of another"])
    return table(CONDITIONS, columns, traffic.conditions) or none


def _reuse_table(traffic: Traffic) -> Blocks:
    """Every reuse on its own: which reference finds the line that which other one touched."""
    columns = (
        left("cache", lambda found: found[0].cache),
        left("reference", lambda found: found[1].access),
        left("reuses the line of", lambda found: found[1].source),
        left("along", lambda found: found[1].carried_by),
        left("needs", lambda found: f"{_in_brackets(found[1].required_bytes)} B = {format_bytes(found[1].required)}"),
        right("saves CL", lambda found: short(found[1].lines_saved)),
    )
    return table(
        "Reuses", columns, ((condition, reuse) for condition in traffic.conditions for reuse in condition.reuses)
    )


def path_table(traffic: Traffic, machine: Machine) -> Blocks:
    """Traffic per path: lines (with their formulas, where there are any), bytes per unit of work and per iteration."""
    names = ("loads CL", "stores CL", "clean victims CL", "B/CL", "B/It")
    columns = [Column("path", "left"), *map(Column, names)]
    if traffic.method == SYMBOLIC:
        columns.append(Column("formulas (loads, stores, clean victims)", "left", fold=True))
    registers = (traffic.register_loads_bytes, traffic.register_stores_bytes)
    size = machine.line_bytes

    def row(name: str, lines: Iterable[str], moved: float, formulas: str) -> tuple[str, ...]:
        cells = (name, *lines, decimal(moved, 1), decimal(moved / traffic.iterations_per_unit), formulas)
        return cells[: len(columns)]

    rows = [row("registers-L1", (*(decimal(value / size) for value in registers), MISSING), sum(registers), "")]
    for path in traffic.paths:
        shown = (with_interval(getattr(path, name), interval, decimal) for name, interval in path.intervals.items())
        formulas = (path.loads_formula, path.stores_formula, path.clean_victims_formula)
        moved = path.lines * size
        rows.append(row(path.path, shown, moved, ", ".join(map(str, formulas))))
    return (Heading("Traffic per path"), Table(tuple(columns), tuple(rows)))


def transfer_table(transfers: Iterable[TransferTime]) -> Blocks:
    """What each path takes, and by which figure of the machine."""
    columns = (
        right("time", "name"),
        right("cy/CL", _cycles),
        right("of it penalty", "penalty_cycles"),
        right("B/CL", lambda transfer: decimal(transfer.bytes, 1)),
        left("bandwidth", _bandwidth_text),
    )
    return table("Transfer times", columns, transfers, always=True)


def _cycles(transfer: TransferTime) -> str:
    from kernmodel.models.ecm import UNKNOWN

    return decimal(transfer.cycles) if transfer.known else UNKNOWN


def _bandwidth_text(transfer: TransferTime) -> str:
    found = transfer.bandwidth
    if not transfer.known:
        return "not known"
    if found is None:
        return "width of the path in B/cy"
    rate = f"{found.bytes_per_second / 1e9:.1f} GB/s"
    return f"{rate} measured with {found.mix.name} on {count(found.cores, 'core')}, write-allocates counted"


def _intensity(traffic: Traffic, machine: Machine) -> Blocks:
    if not traffic.flops_per_iteration:
        return lines("Arithmetic intensity", ["none: the innermost loop has no floating-point operations"])
    intervals = intensity_intervals(traffic, machine)
    pairs = (
        (level, "nothing moves" if value is None else with_interval(value, intervals.get(level), _flop_per_byte))
        for level, value in traffic.arithmetic_intensity.items()
    )
    return fields(f"Arithmetic intensity ({short(traffic.flops_per_iteration)} FLOP/It)", *pairs)


def _flop_per_byte(value: float) -> str:
    return f"{short(value)} FLOP/B"


def access_table(traffic: Traffic, by: str = "") -> Blocks:
    """Which level serves each reference, in cache lines per unit of work; `by` says by which method."""
    levels = dict.fromkeys(level for access in traffic.accesses for level in access.served_by)
    columns = (
        left("reference", "access"),
        left("kind", "kind"),
        *(right(level, entry("served_by", level)) for level in levels),
        left("why", "reason", fold=True),
    )
    title = f"Traffic per reference{by} (cache lines per unit of work by the level that serves it)"
    return table(title, columns, traffic.accesses, always=True)


TrafficUnit = Literal["CL", "B", "B/It"]
"""Units of the traffic in a sweep: cache lines or bytes per unit of work, bytes per iteration."""

_INTERVAL_WIDTH = len("0% (0% … 100%)")


def sweep_inputs(answer: TrafficAnswer, points: Sequence[Mapping[str, int]], cores: Sequence[int]) -> Blocks:
    """What all points of sizes and core counts share."""
    varied = {"sizes": len(points), "cores": len(cores)}
    over = " and ".join(name for name, number in varied.items() if number > 1)
    several = len(cores) > 1
    pairs = (
        ("kernel", f"{answer.nest.name}, {answer.nest.file}"),
        *machine_fields(answer.machine),
        *_method_fields(answer),
        *(() if several else (("active cores", str(answer.traffic.cores)),)),
    )
    title = f"Data traffic of {answer.nest.name} on {answer.machine.name} over {over}"
    return (*fields(title, *pairs), Line(""))


def size_columns(
    points: Iterable[Mapping[str, int]], names: Iterable[str], sizes: Value = "sizes"
) -> tuple[Column, ...]:
    """A column for each size symbol of a sweep, wide enough for its largest value; `sizes` are those of a row."""
    points = tuple(points)
    widths = {name: max(len(str(point.get(name, ""))) for point in points) for name in names}
    return tuple(right(name, entry(sizes, name), least=width) for name, width in widths.items())


def sweep_columns(
    answer: TrafficAnswer,
    unit: TrafficUnit,
    points: Sequence[Mapping[str, int]],
    cores: Sequence[int] = (1,),
    *,
    compared: bool = False,
) -> tuple[Column, ...]:
    """The columns of a sweep over answers: sizes, cores, lines toward the core (in), modified lines and clean victims
    away from it (out) per path, what the paths take where that was asked for, and what is reused in each cache.

    Args:
        unit: of the traffic.
        points: all sizes, which must fit the columns.
        cores: the core counts; a column of their own if there are several.
        compared: whether layer conditions stand beside the simulation.
    """
    methods = {" lc": "symbolic", " sim": "traffic"} if compared else {"": "traffic"}
    paths = (
        right(f"{path.path} {kind}{method} {unit}", partial(_moved, unit, source, number, kind))
        for number, path in enumerate(answer.traffic.paths)
        for kind in ("in", "out")
        for method, source in methods.items()
    )
    return (
        *size_columns(points, answer.sizes),
        *((right("cores", "traffic.cores"),) if len(cores) > 1 else ()),
        *paths,
        *((right("evaded", _evaded, least=_INTERVAL_WIDTH),) if answer.traffic.stores == "evading" else ()),
        *(
            right(f"{transfer.name} cy/CL", partial(_cycles_of, number))
            for number, transfer in enumerate(answer.transfers or ())
        ),
        *reuse_columns(answer.machine),
        *((left("differs by", _differs_by),) if compared else ()),
    )


def reuse_columns(machine: Machine) -> tuple[Column, ...]:
    """Columns of answers with traffic: what is found again in each cache; by layer conditions where both are there."""

    def reuse(cache: str, answer: TrafficAnswer | EcmAnswer) -> str | None:
        return reuse_in(getattr(answer, "symbolic", None) or answer.traffic, cache)

    return tuple(left(f"reuse in {level.name}", partial(reuse, level.name)) for level in machine.levels)


def _cycles_of(number: int, answer: TrafficAnswer) -> str:
    return _cycles((answer.transfers or ())[number])


def _differs_by(answer: TrafficAnswer) -> str | None:
    return ", ".join(dict.fromkeys(difference.reason_code for difference in answer.differences)) or None


def _evaded(answer: TrafficAnswer) -> str | None:
    """The share of the write-allocates that is evaded; nothing where there are none to evade at these sizes."""
    return None if answer.traffic.evasion is None else evaded_share(answer.traffic.evasion)


def _moved(unit: TrafficUnit, source: str, number: int, kind: str, answer: TrafficAnswer) -> str | None:
    """Loads, or stores and clean victims together, of a path; with their interval."""
    traffic: Traffic | None = getattr(answer, source)
    if traffic is None:
        return None
    size, path = answer.machine.line_bytes, traffic.paths[number]
    factor = {"CL": 1.0, "B": size, "B/It": size / answer.traffic.iterations_per_unit}[unit]
    value, interval = path.loads, path.intervals["loads"]
    if kind == "out":
        value, interval = path.evictions, union((path.intervals["stores"], path.intervals["clean_victims"]))
        if interval is not None:
            low, high = (path.at(end) for end in ENDS)
            interval = replace(interval, low=low.evictions, high=high.evictions)
    return with_interval(value, interval, lambda lines: decimal(lines * factor), cause=False)
