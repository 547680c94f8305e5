"""The answer of `kernmodel blocking` as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING

from kernmodel.models.memory_ends import cycles_ratio
from kernmodel.report.layout import Blocks, Line, entry, fields, left, right, table
from kernmodel.report.number_text import decimal, time_in
from kernmodel.report.text.bottleneck import bottleneck_text
from kernmodel.report.text.ecm import outside_fields, performance_text
from kernmodel.report.text.sections import code_fields, kernel_fields, machine_fields, notes_section, unit_of_work
from kernmodel.report.text.traffic import access_table, path_table
from kernmodel.studies.blocking.answer import UNMEASURED_RUN
from kernmodel.uncertainty import with_interval
from kernmodel.units import format_bytes
from kernmodel.words import count

if TYPE_CHECKING:
    from kernmodel.models.ecm import EcmPrediction
    from kernmodel.studies.blocking.answer import BlockingAnswer, BlockLimit, Candidate

_SHOWN = 8
"""Candidates that are listed without -v."""

SHORT_RUN = (
    f"runs from memory below {format_bytes(UNMEASURED_RUN)}: what they cost was not measured on this machine, and "
    "they may restart streams, so that the blocked loop may be slower than predicted"
)
"""What the asterisk means."""

_NOTHING = "nothing-to-block"
"""The note that says why blocking buys nothing: it stands in place of the headline."""


def blocking_report(answer: BlockingAnswer, unit: str, *, verbose: bool = False) -> Blocks:
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
        *fields("Loops that may not be blocked", *answer.refused.items()),
        *_saturated(answer, unit),
        *_temporal(answer),
        *(_details(answer) if verbose else ()),
        *notes_section(note for note in answer.notes if note.code != _NOTHING),
    )


def _inputs(answer: BlockingAnswer) -> Blocks:
    before = answer.before
    cores = count(before.traffic.cores, "active core")
    return fields(
        f"Cache blocking of {before.nest.name} on {before.machine.name}",
        *kernel_fields(before.nest, before.sizes),
        *machine_fields(before.machine),
        *code_fields(before.origin),
        ("caches", f"as {cores} has them, safety factor {before.traffic.safety:g} on their sizes"),
        ("unit of work", unit_of_work(before.traffic)),
        ("without blocking", f"{before.prediction.shorthand()}, T_ECM = {before.prediction.cycles:.2f} cy/CL"),
    )


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


def _candidates(answer: BlockingAnswer, *, verbose: bool) -> Blocks:
    before = answer.before.prediction
    columns = (
        left("block", lambda found: ", ".join(f"{variable} = {size}" for variable, size in found.blocks.items())),
        left("for", "cache"),
        right("T_ECM cy/CL", lambda found: f"{decimal(before.cycles)} → {decimal(found.prediction.cycles)}"),
        right("speed-up", "speedup", _speedup),
        right("memory CL", lambda found: found.traffic.memory_lines),
        right("halo", "halo_share", "{:.1%}".format),
        right("short loops cy/CL", "prediction.t_out"),
        right("runs from memory", _run),
        left("because", lambda found: f"reuse along {found.limit.carried_by} fits"),
    )
    shown = answer.candidates if verbose else answer.candidates[:_SHOWN]
    title = (
        f"Candidates, the best first (without blocking {before.cycles:.2f} cy/CL and "
        f"{answer.before.traffic.memory_lines:.2f} CL from and to memory)"
    )
    left_out = len(answer.candidates) - len(shown)
    more = (Line(f"  … and {count(left_out, 'candidate')} more (-v)"),) if left_out else ()
    marked = any(candidate.run is not None and candidate.run.is_marked for candidate in shown)
    told = (Line(f"  * {SHORT_RUN}"),) if marked else ()
    return (*table(title, columns, shown), *more, *told)


def _run(candidate: Candidate) -> str | None:
    """The shortest contiguous run, an asterisk behind it where it may cost more than is predicted."""
    run = candidate.run
    return None if run is None else f"{format_bytes(run.bytes)}{' *' if run.is_marked else ''}"


def _limits(limits: Iterable[BlockLimit]) -> Blocks:
    """The conditions; references of which the same is asked stand in one row."""
    alike: dict[tuple[str, ...], list[BlockLimit]] = {}
    for limit in limits:
        alike.setdefault(_condition_cells(limit), []).append(limit)
    columns = (
        left("cache", lambda same: same[0][0]),
        left("reuse along", lambda same: same[0][1]),
        left("blocked", lambda same: same[0][2]),
        left("condition", lambda same: same[0][3]),
        left("holds for", lambda same: same[0][4]),
        right("saves CL", lambda same: float(sum(limit.lines_saved for limit in same[1]))),
        left("references", lambda same: ", ".join(name for limit in same[1] for name in limit.accesses), fold=True),
    )
    title = "Layer conditions that fail without blocking, and the block sizes for which they hold"
    return table(title, columns, alike.items())


def _condition_cells(limit: BlockLimit) -> tuple[str, ...]:
    condition = f"{formula_text(limit.required_bytes)} B ≤ {format_bytes(limit.capacity_bytes)}"
    return (limit.cache, limit.carried_by, ", ".join(limit.loops), condition, "; ".join(limit.solved.values()))


def formula_text(formula: object) -> str:
    """A formula as the field writes it ("32·B_i + 240", in brackets if it is a sum)."""
    text = _field_signs(str(formula))
    return f"({text})" if " " in text else text


def _field_signs(text: str) -> str:
    return text.replace("**", "^").replace("*", "·")


def _saturated(answer: BlockingAnswer, unit: str) -> Blocks:
    """Performance of a whole ccNUMA domain: where memory is what saturates, fewer lines from memory are all that
    helps."""
    if answer.saturated is None or not answer.candidates:
        return ()
    before, after = answer.saturated
    work, gain = answer.before.prediction.work, cycles_ratio(before, after)
    times = with_interval(gain.value, gain.interval(), _speedup, cause=False)
    return fields(
        f"All {count(answer.before.machine.topology.cores_per_numa_domain, 'core')} of a ccNUMA domain",
        ("without blocking", performance_text(before, unit, work)),
        (blocks_text(answer.candidates[0].blocks), f"{performance_text(after, unit, work)} ({times})"),
    )


def _temporal(answer: BlockingAnswer) -> Blocks:
    columns = (
        left("blocks kept in", "cache"),
        right("T_ECM cy/CL at best", "cycles"),
        right("speed-up at most", "speedup", _speedup),
    )
    title = (
        "Blocking in time: potential only, if several sweeps ran over the data of a block (--emit writes none of it)"
    )
    return table(title, columns, answer.temporal)


def _details(answer: BlockingAnswer) -> Blocks:
    """Where the time of the best candidate goes, its traffic, and the times over block sizes."""
    if not answer.candidates:
        return ()
    best, before = answer.candidates[0], answer.before.prediction
    reasons = ((f"block {blocks_text(found.blocks)}", reason(found)) for found in answer.candidates)
    return (
        *fields(
            f"Best candidate ({blocks_text(best.blocks)})",
            ("without blocking", before.shorthand()),
            ("blocked", best.prediction.shorthand()),
            ("bottleneck", bottleneck_text(best.prediction)),
            *outside_fields(best.prediction),
        ),
        *fields("Why, candidate by candidate", *reasons),
        *path_table(best.traffic, answer.before.machine),
        *access_table(best.traffic),
        *_sweep(answer),
    )


def _sweep(answer: BlockingAnswer) -> Blocks:
    names = answer.sweep[0][1].times if answer.sweep else ()
    columns = (
        right(f"block of {answer.swept_loop}", itemgetter(0)),
        *(right(name, entry(_times, name)) for name in names),
        right("T_ECM", lambda point: point[1].cycles),
    )
    return table("Times over block sizes (cy/CL)", columns, answer.sweep)


def _times(point: tuple[int, EcmPrediction]) -> Mapping[str, float]:
    return point[1].times
