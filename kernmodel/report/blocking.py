"""The answer of `kernmodel blocking` as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kernmodel.report.ecm import outside_fields
from kernmodel.report.layout import Block, Column, Fields, Heading, Line, Table
from kernmodel.report.numbers import count, decimal, time_in
from kernmodel.report.sections import code_fields, kernel_fields, machine_fields, notes_section, unit_of_work
from kernmodel.report.traffic import access_table, path_table
from kernmodel.studies.blocking.answer import UNMEASURED_RUN
from kernmodel.units import format_bytes

if TYPE_CHECKING:
    from kernmodel.studies.blocking.answer import BlockingAnswer, BlockLimit, Candidate
    from kernmodel.traffic.model import Traffic

_SHOWN = 8
"""Candidates that are listed without -v."""

SHORT_RUN = (
    f"runs from memory below {format_bytes(UNMEASURED_RUN)}: what they cost was not measured on this machine, and "
    "they may restart streams, so that the blocked loop may be slower than predicted"
)
"""What the asterisk means."""

_NOTHING = "nothing-to-block"
"""The note that says why blocking buys nothing: it stands in place of the headline."""


def blocking_report(answer: BlockingAnswer, unit: str, *, verbose: bool = False) -> tuple[Block, ...]:
    """The whole answer; `unit` (one of `units.TIME_UNITS`) is the unit of the headline.

    Raises:
        UsageError: the unit has no meaning for this kernel.
    """
    return (
        *_inputs(answer),
        Line(""),
        *(Line(f"  {line}", "strong") for line in headline(answer, unit)),
        *_candidates(answer, verbose=verbose),
        *_limits(answer.limits),
        *_refused(answer.refused),
        *_saturated(answer, unit),
        *_temporal(answer),
        *(_details(answer) if verbose else ()),
        *notes_section(note for note in answer.notes if note.code != _NOTHING),
    )


def _inputs(answer: BlockingAnswer) -> tuple[Block, ...]:
    before = answer.before
    traffic = before.traffic
    cores = count(traffic.cores, "active core")
    pairs = (
        *kernel_fields(before.nest, before.sizes),
        *machine_fields(before.machine),
        *code_fields(before.origin),
        ("caches", f"as {cores} has them, safety factor {traffic.safety:g} on their sizes"),
        ("unit of work", unit_of_work(traffic)),
        ("without blocking", f"{before.prediction.shorthand()}, T_ECM = {before.prediction.cycles:.2f} cy/CL"),
    )
    return (Heading(f"Cache blocking of {before.nest.name} on {before.machine.name}"), Fields(pairs))


def headline(answer: BlockingAnswer, unit: str) -> tuple[str, ...]:
    """What to do, and what it buys: "block i to 448 in L2: 22.10 → 17.30 cy/CL from memory" and the reason below; or
    why blocking buys nothing."""
    if not answer.candidates:
        return (next((note.text for note in answer.notes if note.code == _NOTHING), "blocking buys nothing"),)
    best = answer.candidates[0]
    source = " from memory" if answer.before.prediction.memory_cycles or best.prediction.memory_cycles else ""
    change = f"{_change(answer, best, unit)}{source} ({_speedup(best.speedup)})"
    return (f"block {blocks_text(best.blocks)} in {best.cache}: {change},", f"because {reason(best)}")


def blocks_text(blocks: Mapping[str, int]) -> str:
    """Block sizes in words ("j to 12 and i to 448")."""
    return " and ".join(f"{variable} to {size}" for variable, size in blocks.items())


def reason(candidate: Candidate) -> str:
    """Why a candidate is faster, as a clause that ends in a full stop; its block sizes are not said again."""
    clause = candidate.because.removeprefix(f"block {blocks_text(candidate.blocks)}: ")
    return f"{_field_signs(clause).rstrip('.')}."


def _change(answer: BlockingAnswer, candidate: Candidate, unit: str) -> str:
    """Time or rate before and after, the unit once where both have it with the same prefix."""
    before = answer.before.prediction
    one, two = (time_in(found.cycles, unit, found.work) for found in (before, candidate.prediction))
    first, _, prefix = one.rpartition(" ")
    return f"{first if two.endswith(' ' + prefix) else one} → {two}"


def _speedup(value: float) -> str:
    return f"{value:.2f}×"


def memory_lines(traffic: Traffic) -> float:
    """Cache lines per unit of work over the path to memory, in both directions."""
    path = traffic.paths[-1]
    return path.loads + path.stores + path.clean_victims


def _candidates(answer: BlockingAnswer, *, verbose: bool) -> tuple[Block, ...]:
    if not answer.candidates:
        return ()
    before = answer.before
    names = ("T_ECM cy/CL", "speed-up", "memory CL", "halo", "short loops cy/CL", "runs from memory")
    columns = (
        Column("block", "left"),
        Column("for", "left"),
        *map(Column, names),
        Column("because", "left"),
    )
    shown = answer.candidates if verbose else answer.candidates[:_SHOWN]
    title = (
        f"Candidates, the best first (without blocking {before.prediction.cycles:.2f} cy/CL and "
        f"{memory_lines(before.traffic):.2f} CL from and to memory)"
    )
    left = len(answer.candidates) - len(shown)
    more = (Line(f"  … and {count(left, 'candidate')} more (-v)"),) if left else ()
    marked = any(candidate.run is not None and candidate.run.is_marked for candidate in shown)
    told = (Line(f"  * {SHORT_RUN}"),) if marked else ()
    return (Heading(title), Table(columns, tuple(_row(answer, candidate) for candidate in shown)), *more, *told)


def _row(answer: BlockingAnswer, candidate: Candidate) -> tuple[str, ...]:
    return (
        ", ".join(f"{variable} = {size}" for variable, size in candidate.blocks.items()),
        candidate.cache,
        f"{decimal(answer.before.prediction.cycles)} → {decimal(candidate.prediction.cycles)}",
        _speedup(candidate.speedup),
        decimal(memory_lines(candidate.traffic)),
        f"{candidate.halo_share:.1%}",
        decimal(candidate.prediction.t_out),
        _run(candidate),
        f"reuse along {candidate.limit.carried_by} fits",
    )


def _run(candidate: Candidate) -> str:
    """The shortest contiguous run, an asterisk behind it where it may cost more than is predicted."""
    run = candidate.run
    if run is None:
        return "-"
    return f"{format_bytes(run.bytes)}{' *' if run.is_marked else ''}"


def _limits(limits: Iterable[BlockLimit]) -> tuple[Block, ...]:
    """The conditions; references of which the same is asked stand in one row."""
    names = ("cache", "reuse along", "blocked", "condition", "holds for", "references")
    columns = (*(Column(name, "left") for name in names[:-1]), Column("saves CL"), Column(names[-1], "left", fold=True))
    alike: dict[tuple[str, ...], list[BlockLimit]] = {}
    for limit in limits:
        alike.setdefault(_condition_cells(limit), []).append(limit)
    rows = tuple(
        (
            *cells,
            decimal(sum(limit.lines_saved for limit in same)),
            ", ".join(access for limit in same for access in limit.accesses),
        )
        for cells, same in alike.items()
    )
    title = "Layer conditions that fail without blocking, and the block sizes for which they hold"
    return (Heading(title), Table(columns, rows)) if rows else ()


def _condition_cells(limit: BlockLimit) -> tuple[str, ...]:
    condition = f"{formula_text(limit.required_bytes)} B ≤ {format_bytes(limit.capacity_bytes)}"
    return (limit.cache, limit.carried_by, ", ".join(limit.loops), condition, "; ".join(limit.solved.values()))


def formula_text(formula: object) -> str:
    """A formula as the field writes it ("32·B_i + 240", in brackets if it is a sum)."""
    text = _field_signs(str(formula))
    return f"({text})" if " " in text else text


def _field_signs(text: str) -> str:
    return text.replace("**", "^").replace("*", "·")


def _refused(refused: Mapping[str, str]) -> tuple[Block, ...]:
    return (Heading("Loops that may not be blocked"), Fields(tuple(refused.items()))) if refused else ()


def _saturated(answer: BlockingAnswer, unit: str) -> tuple[Block, ...]:
    """Performance of a whole ccNUMA domain: where memory is what saturates, fewer lines from memory are all that
    helps."""
    if answer.saturated is None or not answer.candidates:
        return ()
    before, after = answer.saturated
    work = answer.before.prediction.work
    domain = count(answer.before.machine.topology.cores_per_numa_domain, "core")
    pairs = (
        ("without blocking", time_in(before, unit, work)),
        (f"{blocks_text(answer.candidates[0].blocks)}", f"{time_in(after, unit, work)} ({_speedup(before / after)})"),
    )
    return (Heading(f"All {domain} of a ccNUMA domain"), Fields(pairs))


def _temporal(answer: BlockingAnswer) -> tuple[Block, ...]:
    if not answer.temporal:
        return ()
    columns = (Column("blocks kept in", "left"), Column("T_ECM cy/CL at best"), Column("speed-up at most"))
    rows = tuple((found.cache, decimal(found.cycles), _speedup(found.speedup)) for found in answer.temporal)
    title = (
        "Blocking in time: potential only, if several sweeps ran over the data of a block (--emit writes none of it)"
    )
    return (Heading(title), Table(columns, rows))


def _details(answer: BlockingAnswer) -> tuple[Block, ...]:
    """Where the time of the best candidate goes, its traffic, and the times over block sizes."""
    if not answer.candidates:
        return ()
    best, before = answer.candidates[0], answer.before.prediction
    pairs = (
        ("without blocking", before.shorthand()),
        ("blocked", best.prediction.shorthand()),
        ("bottleneck", best.prediction.bottleneck),
        *outside_fields(best.prediction),
    )
    return (
        Heading(f"Best candidate ({blocks_text(best.blocks)})"),
        Fields(pairs),
        *_reasons(answer),
        *path_table(best.traffic, answer.before.machine),
        *access_table(best.traffic),
        *_sweep(answer),
    )


def _reasons(answer: BlockingAnswer) -> tuple[Block, ...]:
    """Why each candidate is faster."""
    pairs = tuple((f"block {blocks_text(found.blocks)}", reason(found)) for found in answer.candidates)
    return (Heading("Why, candidate by candidate"), Fields(pairs))


def _sweep(answer: BlockingAnswer) -> tuple[Block, ...]:
    if not answer.sweep:
        return ()
    names = tuple(answer.sweep[0][1].times)
    columns = tuple(Column(name) for name in (f"block of {swept_loop(answer)}", *names, "T_ECM"))
    rows = tuple(
        (str(size), *(decimal(found.times[name]) for name in names), decimal(found.cycles))
        for size, found in answer.sweep
    )
    return (Heading("Times over block sizes (cy/CL)"), Table(columns, rows))


def swept_loop(answer: BlockingAnswer) -> str:
    """The loop whose block size `BlockingAnswer.sweep` varies: the innermost blocked one of the best candidate."""
    return list(answer.candidates[0].blocks)[-1] if answer.candidates else ""
