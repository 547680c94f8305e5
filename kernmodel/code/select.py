"""Choosing a loop without its source: by hand, by markers, or because it is the only one or clearly the main one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kernmodel.code.calls import call_notes, left_out_note
from kernmodel.code.describe import begin, body_of, describe, floating_work
from kernmodel.code.loops import LoopBody, control_flow, region_flow
from kernmodel.code.markers import instructions_on
from kernmodel.code.model import AssemblyLoop
from kernmodel.code.strides import Analysis, LoopStrides, analyse, loop_strides
from kernmodel.errors import AmbiguousLoopError, AssemblyError, Note, UsageError
from kernmodel.isa.model import Instruction, Listing
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Picked:
    """A loop that the user chose, by option ("chosen") or by markers ("marked"), with its strides, and the analysis of
    the code around it where it is a loop of the listing."""

    strides: LoopStrides
    role: str
    how: str
    analysis: Analysis | None = None


def select_without_source(
    listing: Listing,
    *,
    loop: int | None = None,
    lines: tuple[int, int] | None = None,
    region: tuple[int, int] | None = None,
) -> AssemblyLoop:
    """The loop of `listing` to analyse when there is no C source to match.

    Args:
        listing: the code.
        loop: number of the loop to take (as error messages and `control_flow` number them).
        lines: first and last line of the listing to take.
        region: marked instructions, first and one past the last; `loop` and `lines` go before it.

    Raises:
        AmbiguousLoopError: several innermost loops, none of which is clearly the main one.
        AssemblyError: `lines` holds no instruction.
        UsageError: no such loop, or both `loop` and `lines`.
    """
    picked = pick_by_hand(listing, loop, lines, region)
    if picked is not None:
        return assembly_loop(listing, picked.strides, None, picked.how, picked.role)
    analysis = analyse(listing, control_flow(listing))
    inner = [loop_strides(analysis, body) for body in analysis.flow.loops if body.innermost]
    if not inner:
        return _whole_listing(listing)
    if len(inner) == 1:
        evidence = f"{begin(listing, inner[0].loop)} is the only innermost loop."
        return assembly_loop(listing, inner[0], None, evidence, "main")
    return _main_of(listing, inner)


def pick_by_hand(
    listing: Listing, loop: int | None, lines: tuple[int, int] | None, region: tuple[int, int] | None
) -> Picked | None:
    """The loop that an option or markers name; None if there is neither.

    A stretch of instructions that is exactly the body of a loop is taken as that loop, in its surroundings; any other
    stretch is taken as a body that repeats.

    Raises:
        AssemblyError, UsageError: as `select_without_source`.
    """
    if loop is not None and lines is not None:
        raise UsageError("both choose the code", where="--loop and --lines", todo="give one of them")
    if loop is not None:
        return _pick_number(listing, loop)
    if lines is not None:
        stretch = _stretch_of_lines(listing, *lines)
        return _pick_stretch(listing, *stretch, "chosen", f"Chosen with --lines {lines[0]}-{lines[1]}.")
    if region is not None:
        return _pick_stretch(listing, *region, "marked", "The markers in the listing enclose it.")
    return None


def _pick_number(listing: Listing, number: int) -> Picked:
    analysis = analyse(listing, control_flow(listing))
    for body in analysis.flow.loops:
        if body.number == number:
            return Picked(loop_strides(analysis, body), "chosen", f"Chosen with --loop {number}.", analysis)
    count = len(analysis.flow.loops)
    raise UsageError(
        f"{listing.file} has no loop {number}",
        where="--loop",
        todo=f"choose 1 to {count}" if count else "it has no loop",
    )


def _stretch_of_lines(listing: Listing, first: int, last: int) -> tuple[int, int]:
    """Index of the first, and one past the last, instruction that stands on lines `first` to `last`."""
    stretch = instructions_on(listing, first, last)
    if stretch is None:
        todo = "give the first and last line of the loop's body"
        raise AssemblyError(f"no instruction on lines {first} to {last}", where=listing.file, todo=todo)
    return stretch


def _pick_stretch(listing: Listing, first: int, end: int, role: str, how: str) -> Picked:
    if not 0 <= first < end <= len(listing.instructions):
        raise AssemblyError("the marked region is empty", where=listing.file, todo="put the markers around the loop")
    flow = control_flow(listing)
    whole = set(range(first, end))
    body = next((body for body in flow.loops if set(body.instructions) == whole), None)
    if body is not None:
        analysis = analyse(listing, flow)
        return Picked(loop_strides(analysis, body), role, how, analysis)
    flow = region_flow(listing, first, end)
    return Picked(loop_strides(analyse(listing, flow), flow.loops[0]), role, how)


def _whole_listing(listing: Listing) -> AssemblyLoop:
    """Code without a loop, taken as a body that repeats."""
    flow = region_flow(listing, 0, len(listing.instructions))
    strides = loop_strides(analyse(listing, flow), flow.loops[0])
    note = Note(
        "no-loop", "the listing has no loop: all its instructions are analysed as one body that repeats", "assumption"
    )
    return assembly_loop(listing, strides, None, "The listing has no loop, so all of it is taken.", "chosen", (note,))


def _main_of(listing: Listing, loops: list[LoopStrides]) -> AssemblyLoop:
    """The loop of which all the others are remainders: the same streams, in larger steps.

    Raises:
        AmbiguousLoopError: there is none.
    """
    for main in loops:
        others = [other for other in loops if other is not main]
        if all(_is_remainder(listing, other, main) for other in others):
            count = f"{len(others)} others" if len(others) > 1 else "other"
            evidence = (
                f"{begin(listing, main.loop)}: the {count} innermost {'loops do' if len(others) > 1 else 'loop does'}"
                " the same in smaller steps (peeled or remainder iterations)."
            )
            return assembly_loop(listing, main, None, evidence, "main")
    raise AmbiguousLoopError(
        f"{len(loops)} innermost loops, and none is clearly the main one",
        tuple(describe(listing, strides) for strides in loops),
        where=listing.file,
        todo="choose with --loop N, --lines or markers",
    )


def _is_remainder(listing: Listing, small: LoopStrides, large: LoopStrides) -> bool:
    """Whether each stream of `small` is one of `large` in steps smaller by one common factor."""
    steps_small, steps_large = _steps(small), _steps(large)
    if None in steps_small or None in steps_large or not steps_small:
        return False
    biggest, smallest = max(map(abs, filter(None, steps_large)), default=0), max(map(abs, filter(None, steps_small)))
    factor, rest = divmod(biggest, smallest)
    if rest or factor < 2:
        return False
    same_work = _arithmetic(body_of(listing, small.loop)) == _arithmetic(body_of(listing, large.loop))
    return same_work and {step * factor for step in steps_small if step} == steps_large


def _steps(strides: LoopStrides) -> set[int | None]:
    """The distinct strides of what moves."""
    return {s.stride_bytes for s in strides.streams if s.reference.size_bytes and s.stride_bytes != 0}


def _arithmetic(body: Iterable[Instruction]) -> frozenset[str]:
    """The kinds of floating-point work in a body."""
    return frozenset(floating_work(body))


def assembly_loop(
    listing: Listing,
    strides: LoopStrides,
    iterations_per_pass: float | None,
    evidence: str,
    role: str,
    notes: tuple[Note, ...] = (),
) -> AssemblyLoop:
    """The result of a choice; adds notes if the body branches inside, calls a function, or avoids a call."""
    body = body_of(listing, strides.loop)
    left_out = [listing.instructions[index] for index in strides.loop.left_out]
    avoided = (left_out_note(listing, left_out),) if left_out else ()
    return AssemblyLoop(
        instructions=body,
        isa=listing.isa,
        syntax=listing.syntax,
        file=listing.file,
        label=strides.loop.label,
        iterations_per_pass=iterations_per_pass,
        streams=strides.streams,
        evidence=evidence,
        role=role,
        notes=notes + _branching(listing, strides.loop) + call_notes(listing, body) + avoided,
        function=_function_of(listing, body),
        alignment=listing.alignment(body[0].address),
    )


def _function_of(listing: Listing, body: tuple[Instruction, ...]) -> str:
    """The last name before a body that is no local label, "" if there is none."""
    start = min(instruction.address for instruction in body)
    names = [(address, name) for name, address in listing.labels if address <= start and not name.startswith(".")]
    return max(names, key=lambda label: label[0])[1] if names else ""


_ABOUT_ITERATIONS = ("bytes-per-pass", "operations-per-pass")


def with_iterations(loop: AssemblyLoop, iterations: float | None) -> AssemblyLoop:
    """The loop with the source iterations per pass that the user gives; None: as they were found.

    What was not certain about the number that was found is left out, and a note says both numbers.
    """
    if iterations is None or iterations == loop.iterations_per_pass:
        return loop
    found = f"{loop.iterations_per_pass:g} were found" if loop.iterations_per_pass else "none were found"
    text = f"a pass is taken to execute {iterations:.6g} source iterations, by --iterations-per-pass; {found}"
    notes = tuple(note for note in loop.notes if note.code not in _ABOUT_ITERATIONS)
    by_hand = (*notes, Note("iterations-by-hand", text, "assumption"))
    evidence = f"{loop.evidence} Iterations per pass by hand: {iterations:.6g}."
    return replace(loop, iterations_per_pass=iterations, evidence=evidence, notes=by_hand)


def _branching(listing: Listing, loop: LoopBody) -> tuple[Note, ...]:
    """A note for a body with blocks that some passes skip."""
    body = body_of(listing, loop)
    places = {instruction.address for instruction in body[1:]}
    left_out = {*loop.left_out, *loop.other_ways}
    before_left_out = {index - 1 for index in left_out}  # such a branch has one way only that is analysed
    inside = [
        instruction
        for index, instruction in zip(loop.instructions, body, strict=True)
        if instruction.branch == "conditional" and instruction.target in places and index not in before_left_out
    ]
    if not inside:
        return ()
    text = "the loop branches inside its body; the instructions of all its blocks are counted for every pass"
    return (Note("conditional-blocks", text, "warning", inside[0].place_in(listing.file)),)
