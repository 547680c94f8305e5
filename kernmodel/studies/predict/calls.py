"""The functions that compiled code calls, with what each call takes on the core, or that it is not known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kernmodel.code.calls import CALL, Call, calls_in, named, remedy
from kernmodel.errors import Location, Note
from kernmodel.incore.tables.calls import CallTime, call_times
from kernmodel.models.calls import CalledFunction, CallWork

if TYPE_CHECKING:
    from kernmodel.code.model import AssemblyLoop
    from kernmodel.incore.model import Parameters
    from kernmodel.models.outside import OutsideWork
    from kernmodel.studies.predict.request import CallCycles


def call_work(
    loop: AssemblyLoop,
    outside: OutsideWork | None,
    passes: float,
    parameters: Parameters,
    given: Sequence[CallCycles],
) -> CallWork | None:
    """The functions that a loop calls, and the code that is executed each time that it is entered; None without any.

    Args:
        outside: how often a unit of work enters the loop; None leaves the code around it out.
        passes: of the loop in a unit of work; given: what the user says of functions.

    Raises:
        InstructionTableError: the core's table of calls is malformed.
    """
    inside = calls_in(loop.instructions)
    ways = loop.around.ways if loop.around and outside and outside.entries else ()
    around = max((calls_in(way.straight, repeats=False) for way in ways), key=len, default=())
    if not (inside or around):
        return None
    known, stated = call_times(parameters), {one.name: one for one in given}
    entries = outside.entries if outside else 0.0
    found = [_function(call, passes, known, stated) for call in inside]
    found += [replace(_function(call, entries, known, stated), around=True) for call in around]
    return CallWork(tuple(found))


def _function(
    call: Call, executed: float, known: Mapping[str, tuple[CallTime, ...]], stated: Mapping[str, CallCycles]
) -> CalledFunction:
    share, per_unit = call.chained / call.count, call.count * executed
    # compilers name copies of a function with its name and a suffix
    own = stated.get(call.name) or stated.get(call.name.partition(".")[0])
    if own is not None:
        middle = (own.low + own.high) / 2
        return CalledFunction(call.name, per_unit, share, middle, own.low, own.high, "", "--call-cycles")
    times = known.get(call.name) or known.get(call.name.removeprefix("__").removesuffix("_finite"))
    if not times:
        return CalledFunction(call.name, per_unit, share, None)
    cycles = [share * one.chained + (1 - share) * one.cycles for one in times]
    usual = times[0]
    return CalledFunction(
        call.name, per_unit, share, cycles[0], min(cycles), max(cycles), usual.arguments, usual.source
    )


def with_call_notes(notes: Sequence[Note], calls: CallWork | None, given: Sequence[CallCycles]) -> list[Note]:
    """The notes of a loop, those that it calls a function with what is known of its time."""
    if calls is None:
        return list(notes)
    rest = [note for note in notes if note.code != CALL]
    places = {note.text: note.where for note in notes if note.code == CALL}
    told = [_note(one, places) for one in calls.functions]
    return [*rest, *told, *_not_called(calls, given)]


def _note(one: CalledFunction, places: Mapping[str, Location | None]) -> Note:
    where = next((place for text, place in places.items() if f" {named(one.name)}," in text), None)
    if one.cycles is None:
        who = "the code around the loop calls" if one.around else "each pass calls"
        how = f"measure it and give it with --call-cycles {one.name or 'NAME'}=CYCLES"
        text = f"{who} {named(one.name)}, whose time is not included: {how}{remedy(one.name)}"
        return Note(CALL, text, "warning", where)
    waits = ", each waiting for the last" if one.chained else ""
    span = f", {one.low:.3g} to {one.high:.3g} with others" if one.low < one.high else ""
    which = f" with arguments of {one.arguments}" if one.arguments else ""
    text = f"a call of {one.name} takes {one.cycles:.3g} cycles{which}{span}{waits} ({one.source}){remedy(one.name)}"
    return Note("call-time", text, "assumption", where)


def _not_called(calls: CallWork, given: Sequence[CallCycles]) -> Iterator[Note]:
    names = {one.name.partition(".")[0] for one in calls.functions} | {one.name for one in calls.functions}
    for one in given:
        if one.name not in names:
            called = ", ".join(sorted(filter(None, names)))
            yield Note("not-called", f"--call-cycles {one.name}: the loop calls {called}", "assumption")
