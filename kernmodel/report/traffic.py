"""The answer of `kernmodel traffic` as text: layer conditions in formulas and numbers, traffic per path and access."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from kernmodel.report.caches import STORES, byte_tables, evasion_section, level_table, sampling_section
from kernmodel.report.comparison import comparison_section
from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table
from kernmodel.report.numbers import MISSING, decimal, short, with_interval
from kernmodel.report.sections import kernel_fields, machine_fields, notes_section, sources_section, unit_of_work
from kernmodel.traffic.conditions.requirements import in_few_sets
from kernmodel.traffic.model import SYMBOLIC, carriers, intensity_intervals
from kernmodel.units import format_bytes, format_share

if TYPE_CHECKING:
    from kernmodel.machine.model import Machine
    from kernmodel.studies.predict.request import TrafficAnswer
    from kernmodel.traffic.model import LayerCondition, PathTraffic, Traffic

_UNCOUNTED = "several-index-patterns"
"""Code of the note by which layer conditions say that they left out reuse."""


def traffic_report(answer: TrafficAnswer, *, verbose: bool = False) -> tuple[Block, ...]:
    """The whole answer for one point."""
    traffic, machine = answer.traffic, answer.machine
    sources = sources_section(machine.sources, f"Sources of {machine.file}") if verbose else ()
    return (
        *_inputs(answer),
        *comparison_section(answer.symbolic, answer.traffic, answer.differences),
        *_symbolic_sections(answer, verbose=verbose),
        *path_table(traffic, machine),
        *evasion_section(traffic, machine),
        *level_table(traffic),
        *(byte_tables(traffic, machine) if verbose else ()),
        *_intensity(traffic, machine),
        *access_table(traffic),
        *sampling_section(traffic, verbose=verbose),
        *sources,
        *notes_section(answer.notes),
    )


def _symbolic_sections(answer: TrafficAnswer, *, verbose: bool) -> tuple[Block, ...]:
    """What layer conditions say, where they were asked for."""
    symbolic = answer.symbolic or answer.traffic
    if symbolic.method != SYMBOLIC:
        return ()
    return (
        *_condition_table(symbolic),
        *(_reuse_table(symbolic) if verbose else ()),
        *_transitions(symbolic),
        *(access_table(symbolic, " by layer conditions") if verbose and answer.symbolic else ()),
    )


def _inputs(answer: TrafficAnswer) -> tuple[Block, ...]:
    traffic = answer.traffic
    pairs = (
        *kernel_fields(answer.nest, answer.sizes),
        *machine_fields(answer.machine),
        ("method", method_text(answer)),
        ("stores", STORES[traffic.stores]),
        ("active cores", str(traffic.cores)),
        ("unit of work", unit_of_work(traffic)),
    )
    return (Heading(f"Data traffic of {answer.nest.name} on {answer.machine.name}"), Fields(pairs))


def method_text(answer: TrafficAnswer) -> str:
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


def _condition_table(traffic: Traffic) -> tuple[Block, ...]:
    if not traffic.conditions:
        return (Heading("Layer conditions"), Line("  none: no reference can reuse the line of another"))
    columns = tuple(
        Column(name, align)
        for name, align in _align(
            left=("cache", "reuse along", "condition", "holds", "holds for"), right=("hits", "misses")
        )
    )
    rows = tuple(
        (
            condition.cache,
            carried_by(condition),
            inequality(condition),
            holds_text(condition),
            "; ".join(condition.solved.values()) or "for every size",
            str(condition.hits),
            str(condition.misses),
        )
        for condition in traffic.conditions
    )
    return (Heading("Layer conditions (bytes needed ≤ bytes a core has)"), Table(columns, rows))


def _align(*, left: tuple[str, ...], right: tuple[str, ...]) -> Iterator[tuple[str, Literal["left", "right"]]]:
    yield from ((name, "left") for name in left)
    yield from ((name, "right") for name in right)


def _reuse_table(traffic: Traffic) -> tuple[Block, ...]:
    """Every reuse on its own: which reference finds the line that which other one touched."""
    names = ("cache", "reference", "reuses the line of", "along", "needs")
    columns = (*(Column(name, "left") for name in names), Column("saves CL"))
    rows = tuple(
        (
            c.cache,
            r.access,
            r.source,
            r.carried_by,
            f"{_in_brackets(r.required_bytes)} B = {format_bytes(r.required)}",
            short(r.lines_saved),
        )
        for c in traffic.conditions
        for r in c.reuses
    )
    return (Heading("Reuses"), Table(columns, rows)) if rows else ()


def _transitions(traffic: Traffic) -> tuple[Block, ...]:
    lines = tuple(Line(f"  {text}") for _, _, _, text in traffic.transitions)
    return (Heading("Transition points (largest size for which a condition holds)"), *lines) if lines else ()


def path_table(traffic: Traffic, machine: Machine) -> tuple[Block, ...]:
    """Traffic per path: lines (with their formulas, where there are any), bytes per unit of work and per iteration."""
    names = ("loads CL", "stores CL", "clean victims CL", "B/CL", "B/It")
    formulas = (Column("formulas (loads, stores, clean victims)", "left", fold=True),)
    columns = (
        Column("path", "left"),
        *(Column(name) for name in names),
        *(formulas if traffic.method == SYMBOLIC else ()),
    )
    registers = (traffic.register_loads_bytes, traffic.register_stores_bytes)
    size = machine.line_bytes
    first = (
        "registers-L1",
        *(decimal(value / size) for value in registers),
        MISSING,
        *_bytes(sum(registers), traffic),
        "",
    )
    rows = (first, *(_path_row(path, traffic, size) for path in traffic.paths))
    return (Heading("Traffic per path"), Table(columns, tuple(row[: len(columns)] for row in rows)))


def _path_row(path: PathTraffic, traffic: Traffic, line_bytes: int) -> tuple[str, ...]:
    counts = (path.loads, path.stores, path.clean_victims)
    formulas = (path.loads_formula, path.stores_formula, path.clean_victims_formula)
    shown = (with_interval(getattr(path, name), interval, decimal) for name, interval in path.intervals.items())
    cells = (path.path, *shown)
    return (*cells, *_bytes(sum(counts) * line_bytes, traffic), ", ".join(map(str, formulas)))


def _bytes(value: float, traffic: Traffic) -> tuple[str, str]:
    return decimal(value, 1), decimal(value / traffic.iterations_per_unit)


def _intensity(traffic: Traffic, machine: Machine) -> tuple[Block, ...]:
    if not traffic.flops_per_iteration:
        return (Heading("Arithmetic intensity"), Line("  none: the kernel has no floating-point operations"))
    intervals = intensity_intervals(traffic, machine)
    pairs = tuple(
        (level, "nothing moves" if value is None else with_interval(value, intervals.get(level), _flop_per_byte))
        for level, value in traffic.arithmetic_intensity.items()
    )
    return (Heading(f"Arithmetic intensity ({short(traffic.flops_per_iteration)} FLOP/It)"), Fields(pairs))


def _flop_per_byte(value: float) -> str:
    return f"{short(value)} FLOP/B"


def access_table(traffic: Traffic, by: str = "") -> tuple[Block, ...]:
    """Which level serves each reference, in cache lines per unit of work; `by` says by which method."""
    levels = tuple(dict.fromkeys(level for access in traffic.accesses for level in access.served_by))
    columns = (
        Column("reference", "left"),
        Column("kind", "left"),
        *(Column(level) for level in levels),
        Column("why", "left", fold=True),
    )
    rows = tuple(
        (access.access, access.kind, *(decimal(access.served_by.get(level)) for level in levels), access.reason)
        for access in traffic.accesses
    )
    return (
        Heading(f"Traffic per reference{by} (cache lines per unit of work by the level that serves it)"),
        Table(columns, rows),
    )
