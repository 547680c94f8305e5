"""Finding the loop that executes a kernel: address streams of each innermost loop against the source's accesses.

One pass of a loop body executes u source iterations if every address it moves advances by u times what a source access
advances per iteration. That is checked against the bytes that a pass stores (u × element × written references) or,
where nothing is stored, loads. Among the loops that fit, the one with the most iterations per pass is the main loop;
the others are its peeled and remainder loops, or the fallback of a version for arrays that may overlap. Loops of other
nests that move the same bytes differ in their floating-point work. The method and its limits stand in
docs/loop-finding.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from math import inf

from kernmodel.code.balance import Block, ExpectedWork, Span, WholeLoops, least_moved, most_moved, operations
from kernmodel.code.calls import called_name
from kernmodel.code.describe import (
    begin,
    body_of,
    describe,
    describe_streams,
    floating_work,
    has_floating_work,
    vector_bytes,
)
from kernmodel.code.loops import control_flow
from kernmodel.code.model import (
    LOOPS_COLLAPSED,
    LOOPS_REMOVED,
    AddressStream,
    AssemblyLoop,
    ExpectedAccess,
    Surroundings,
)
from kernmodel.code.select import Picked, assembly_loop, pick_by_hand
from kernmodel.code.strides import Analysis, LoopStrides, analyse, loop_strides, versions
from kernmodel.code.surroundings import Step, surroundings
from kernmodel.errors import AmbiguousLoopError, AssemblyError, Location, Note
from kernmodel.isa import isa_of
from kernmodel.isa.model import Instruction, Listing
from kernmodel.value_types import NamedTuple, dataclass
from kernmodel.words import count


@dataclass(frozen=True, slots=True)
class ExpectedIndirect:
    """An access of the source whose index is read from an index array at each step: its address has no stride."""

    array: str
    element_bytes: int
    written: bool


@dataclass(frozen=True, slots=True)
class OuterLoop:
    """Another loop of the nest: what the accesses of the innermost body do per step of its variable.

    Attributes:
        variable: its name.
        expected, indirect: as of `Expectation`.
        whole: loops within it that a step may execute entirely, if they are unrolled.
        trip_count: its iterations, where they are known and the same in every execution.
        exchangeable: the loops within it may also stand around it; else `expected` holds where a step executes
            `whole`, because they begin elsewhere at each step of it.
    """

    variable: str
    expected: tuple[ExpectedAccess, ...]
    indirect: tuple[ExpectedIndirect, ...] = ()
    whole: tuple[WholeLoops, ...] = ()
    trip_count: int | None = None
    exchangeable: bool = True


@dataclass(frozen=True, slots=True)
class Expectation:
    """What the source says of the loop that executes it: the evidence by which the compiled loop is recognised.

    Attributes:
        expected: the accesses of the innermost body per iteration of the innermost loop; () for a kernel without
            arrays.
        indirect: those among them that have no stride, because an index array places them.
        outer: the same accesses per step of the other loops, outermost first, for compilers that exchange loops or
            unroll the inner one.
        work: floating-point operations per iteration: a further cross-check, what tells loops apart that move the same
            bytes, and the only measure of kernels without moving arrays; None: not known.
        variable: name of the innermost loop's variable.
        trip_count: iterations of the innermost loop, where they are known and the same in every execution.
        function: the C function: only this one is looked at, if the listing has a label of that name.
        lines: first and last line of the innermost loop in its source, if known.
        source_lines: line of the source by line of the listing, where the compiler says it: only loops that come mostly
            from `lines` are looked at, if there are any.
    """

    expected: tuple[ExpectedAccess, ...]
    indirect: tuple[ExpectedIndirect, ...] = ()
    outer: tuple[OuterLoop, ...] = ()
    work: ExpectedWork | None = None
    variable: str = ""
    trip_count: int | None = None
    function: str | None = None
    lines: tuple[int, int] | None = None
    source_lines: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fit:
    """How a loop fits the source.

    Attributes:
        strides: the loop.
        block: what one pass of it executes.
        variable: the outer loop variable that the loop runs over, None for the innermost one.
        loops_off: by how many the loops in which it stands are more or fewer than the source has around such blocks.
        exact: the bytes stored and loaded agree.
        works: so does the arithmetic, as the source writes it.
        proof: what was cross-checked, in words.
        doubts: what was not certain.
    """

    strides: LoopStrides
    block: Block
    variable: str | None
    loops_off: int
    exact: bool
    works: bool
    proof: str
    doubts: tuple[Note, ...]

    @property
    def steps(self) -> int:
        """Steps of the matched loop variable per pass."""
        return self.block.steps

    @property
    def copies(self) -> int:
        """Executions of the innermost body per step: more than 1 where other loops are unrolled into the body or run
        over vector lanes."""
        return self.block.bodies

    @property
    def iterations(self) -> int:
        """Source iterations that one pass executes (innermost bodies)."""
        return self.steps * self.copies


@dataclass(frozen=True, slots=True)
class _Moving:
    """The moving address streams of a loop, bytes per pass by stride; `unknown` are those whose stride is no number."""

    stored: Mapping[int, int]
    loaded: Mapping[int, int]
    unknown_stored: int
    unknown_loaded: int

    @property
    def strides(self) -> set[int]:
        """The distinct strides."""
        return {*self.stored, *self.loaded}


@dataclass(frozen=True, slots=True)
class _Source:
    """What is expected of a loop: accesses per step of its variable, work per innermost body, and who it is.

    `works` says whether the body computes with floating-point numbers, None where that is not known. `variable` is None
    for the innermost loop; `name` is the name of its variable, and `inner` that of the innermost loop, as far as known.
    `trips` has the trip counts of all loops of the nest, outermost first. `whole` and `exchangeable` are as of an
    `OuterLoop`.
    """

    expected: tuple[ExpectedAccess, ...]
    indirect: tuple[ExpectedIndirect, ...]
    work: ExpectedWork
    works: bool | None
    variable: str | None
    name: str
    inner: str
    trips: Mapping[str, int | None]
    whole: tuple[WholeLoops, ...] = ()
    exchangeable: bool = True

    @property
    def most_steps(self) -> int | None:
        """Steps of an execution of the loop; None where they are not known, or differ."""
        return self.trips.get(self.name)

    @property
    def around(self) -> tuple[str, ...]:
        """The loops around this one."""
        names = list(self.trips)
        return tuple(names[: names.index(self.name)])

    def loops(self, block: Block) -> int:
        """The loops that code has which executes the nest in such blocks."""
        jammed = block.along is not None and block.copies == self.trips.get(block.along)
        return len(self.trips) - len(block.whole.variables) - jammed

    @property
    def others(self) -> tuple[str, ...]:
        """The variables of the other loops that an access moves with or stays in."""
        return tuple(dict.fromkeys(name for access in self.expected for name, _ in access.others))

    def indirect_bytes(self, *, written: bool) -> int:
        """Bytes per step of the references that index arrays place."""
        return sum(access.element_bytes for access in self.indirect if access.written == written)

    def bytes_of(self, stride: int, *, written: bool) -> int:
        """Bytes per step of the references that move by `stride`."""
        same = (a for a in self.expected if a.stride_bytes == stride and a.written == written)
        return sum(access.element_bytes for access in same)

    def strides(self, *, written: bool | None = None) -> set[int]:
        """The distinct strides of what moves, of the written or of all accesses."""
        chosen = (a for a in self.expected if written is None or a.written == written)
        return {a.stride_bytes for a in chosen if a.stride_bytes}


def choose_loop(
    listing: Listing,
    told: Expectation,
    *,
    loop: int | None = None,
    lines: tuple[int, int] | None = None,
    region: tuple[int, int] | None = None,
) -> AssemblyLoop:
    """The loop of `listing` that executes the kernel, and how many source iterations one pass of it executes.

    Args:
        listing: what the compiler made of the kernel.
        told: what the source says.
        loop, lines, region: choice by hand, as in `select_without_source`.

    Raises:
        AmbiguousLoopError: loops that fit equally well and differ in nothing that decides.
        AssemblyError: no loop fits, or the compiler replaced the loop by a library call.
        UsageError: the choice by hand names no loop.
    """
    picked = pick_by_hand(listing, loop, lines, region)
    if picked is not None:
        return _by_hand(listing, picked, _sources(told), told.trip_count)
    analysis = analyse(listing, control_flow(listing))
    found, trip_count = choose_fit(analysis, told), told.trip_count
    return replace(
        _result(listing, found.main, found.notes + _removed_loops(analysis, found, told), found.source, trip_count),
        around=_around(analysis, found.main, found.fits, found.source, trip_count),
    )


class Choice(NamedTuple):
    """How loops fit what the source says: the best of them, all that do, and what there is to note."""

    main: Fit
    fits: Sequence[Fit]
    source: _Source
    notes: tuple[Note, ...]


def choose_fit(analysis: Analysis, told: Expectation) -> Choice:
    """The innermost loop that executes the kernel.

    Raises:
        AmbiguousLoopError, AssemblyError: as `choose_loop`.
    """
    try:
        return _choice(analysis, _innermost(analysis, told.function), told)
    except AssemblyError as error:
        called = _called_from(analysis.listing, told.function)
        loops = [strides for name in called for strides in _innermost(analysis, name)]
        if not loops:
            raise
        try:
            found = _choice(analysis, loops, told)
        except AssemblyError:
            raise error from None
    text = f"the loop stands in {' or '.join(called)}, which {told.function} calls: the compiler did not inline it"
    return found._replace(notes=(*found.notes, Note("called-function", text, "assumption")))


def _choice(analysis: Analysis, loops: list[LoopStrides], told: Expectation) -> Choice:
    """The one among these loops that executes the kernel."""
    own = _from_lines(loops, analysis.listing, told)
    source, fits = _fitting(analysis, own or loops, _sources(told), told.trip_count)
    main, notes = _choose(analysis.listing, fits, source, told.trip_count)
    if own is not None and not own:
        notes = (*notes, *_from_other_lines(main, analysis.listing, told))
    return Choice(main, fits, source, (*notes, *_few_steps(main, source)))


def _few_steps(main: Fit, source: _Source) -> Iterator[Note]:
    """A warning where the loop executes less than half of the steps of its loop in the source, and so is the rest of
    another, which does not fit: vectors whose elements are gathered have no stride that is known."""
    trips, passes = source.trips.get(source.name), main.strides.passes
    if trips and passes is not None and 2 * passes * main.steps < trips:
        text = (
            f"the loop executes {count(passes * main.steps, 'step')} of the {trips} of {source.name or 'the source'}: "
            "the others are those of a loop that does not fit, which may take most of the time: see --loop"
        )
        yield Note("few-steps", text)


def _from_other_lines(main: Fit, listing: Listing, told: Expectation) -> Iterator[Note]:
    """A warning where the compiler says that no instruction of the chosen loop comes from the loop of the source."""
    body = body_of(listing, main.strides.loop)
    lines = {told.source_lines[one.line] for one in body if one.line in told.source_lines}
    first, last = told.lines or (0, 0)
    if lines and not any(first <= line <= last for line in lines):
        text = (
            f"no compiled loop comes from line {first} of the source: the compiler made straight code of it, or none; "
            f"the one taken, which fits, comes from line {min(lines)}: see --loop, or give other --flags"
        )
        yield Note("loop-from-elsewhere", text, where=Location(listing.file, body[0].line or None))


def _called_from(listing: Listing, function: str | None) -> list[str]:
    """The functions of the listing that a function calls, and those that they call, in that order."""
    known = {name for name, _ in listing.labels if not name.startswith(".L")}
    names = [function] if function in known else []
    for name in names:
        start, end = _extent(listing, name)
        for instruction in listing.instructions:
            if instruction.branch in ("call", "jump") and start <= instruction.address < end:
                called = called_name(instruction, {})
                if called in known and called not in names:
                    names.append(called)
    return [str(name) for name in names[1:]]


def _around(
    analysis: Analysis, main: Fit, fits: Sequence[Fit], source: _Source, trip_count: int | None
) -> Surroundings | None:
    """The code around the chosen loop; None where that is more than one loop of the source."""
    if _is_collapsed(main, trip_count):
        return None
    step = Step(
        stored=sum(source.bytes_of(stride, written=True) for stride in source.strides()) * main.copies,
        loaded=sum(source.bytes_of(stride, written=False) for stride in source.strides()) * main.copies,
        work={kind: count * main.copies for kind, count in source.work.total.items()},
    )
    remainders = {fit.strides.loop.number: fit.steps for fit in fits if fit is not main}
    return surroundings(analysis, main.strides.loop, remainders, step)


def _fitting(
    analysis: Analysis, loops: list[LoopStrides], sources: tuple[_Source, ...], trip_count: int | None
) -> tuple[_Source, list[Fit]]:
    """The loops that work where the source does and fit the innermost of the sources that any fits (best: exactly).

    Where loops fit several sources exactly, those count that execute most: an inner loop that is unrolled in the
    outer one often has a loop of its own for the last iterations of that. Only where none is left, the work may differ:
    compilers fold it and move it out of the loop.

    Raises:
        AssemblyError: no loop fits.
    """
    listing = analysis.listing
    found: list[list[Fit]] = [[] for _ in sources]
    for strides in loops:
        ways = [(n, fit) for n, s in enumerate(sources) if (fit := _fit(listing, strides, s, trip_count)) is not None]
        if ways:
            number, best = min(ways, key=lambda one: _misfit(one[1]))
            found[number].append(best)
    every = list(zip(sources, found, strict=True))
    working = [
        (source, [fit for fit in fits if not _works_otherwise(listing, fit.strides, source)]) for source, fits in every
    ]
    exact = [(source, fits) for source, fits in working if any(fit.exact for fit in fits)]
    if exact:
        (_, first), *others = exact
        return next((one for one in others if _executes_most(analysis, one[1], first)), exact[0])
    for source, fits in working:
        if fits:
            return source, fits
    for source, fits in every:
        if fits:
            return source, fits
    raise _nothing_fits(listing, loops, sources)


def _misfit(fit: Fit) -> tuple[bool, int, bool]:
    """How badly a loop fits a source, to tell which of several sources, the innermost first, it executes."""
    return not fit.exact, fit.loops_off, not fit.works


def _executes_most(analysis: Analysis, fits: Sequence[Fit], others: Sequence[Fit]) -> bool:
    """Whether `fits` execute more than twice as many iterations of the source as `others` in the innermost loop around
    both, as far as all passes are known: versions of one loop execute all of them, or as good as all."""
    done, rest = _executed(analysis, fits), _executed(analysis, others)
    shared = [around for around in done if around in rest]
    return bool(shared) and done[shared[0]] > 2 * rest[shared[0]]


def _executed(analysis: Analysis, fits: Sequence[Fit]) -> dict[int | None, int]:
    """Iterations of the source that these loops execute each time that a loop around them (None: the function) does, of
    those around all of them and from within; empty where the passes of one are not known."""
    loops = {loop.number: loop for loop in analysis.flow.loops}
    found: list[dict[int | None, int]] = []
    # of versions of a body one is executed
    for fit in {one.strides.loop.number: one for one in fits if one.exact}.values():
        loop, passes, done = fit.strides.loop, fit.strides.passes, fit.iterations
        found.append({})
        while passes is not None:
            done *= passes
            found[-1][loop.parent] = done
            if loop.parent is None:
                break
            loop = loops[loop.parent]
            passes = loop_strides(analysis, loop).passes
    return {around: sum(one[around] for one in found) for around in found[0] if all(around in one for one in found)}


def _work_note(item: _Balance, source: _Source) -> Note:
    text = f"the arithmetic does not agree with the source: {item}"
    if item.found < item.allowed.least and source.work.reassociated:
        text = f"the compiler was allowed to reorder arithmetic, and saved some: {item}"
        return Note("operations-per-pass", text, "assumption")
    return Note("operations-per-pass", text)


def _works_otherwise(listing: Listing, strides: LoopStrides, source: _Source) -> bool:
    """Whether only one of loop and source computes with floating-point numbers."""
    done = has_floating_work(body_of(listing, strides.loop))
    return done is not None and source.works is not None and done != source.works


def _sources(told: Expectation) -> tuple[_Source, ...]:
    """What the innermost loop does, then what the other loops do, from the inside out."""
    work, variable = told.work or ExpectedWork(), told.variable
    works = None if told.work is None or any(work.total.values()) else False
    works = True if any(work.total.get(kind) for kind in _KINDS) else works
    trips = {outer.variable: outer.trip_count for outer in told.outer} | {variable: told.trip_count}
    inner = _Source(told.expected, told.indirect, work, works, None, variable, variable, trips)
    others = (
        _Source(
            *(other.expected, other.indirect, work, works, other.variable, other.variable, variable, trips),
            *(other.whole, other.exchangeable),
        )
        for other in reversed(told.outer)
    )
    return (inner, *(other for other in others if other.strides()))


_KINDS = ("div", "sqrt", "mul", "add")
"""Kinds of work, the ones that compilers rewrite least first."""


def _innermost(analysis: Analysis, function: str | None) -> list[LoopStrides]:
    listing = analysis.listing
    start, end = _extent(listing, function)
    inner = [body for body in analysis.flow.loops if body.innermost]
    inside = [body for body in inner if start <= listing.instructions[body.instructions[0]].address < end]
    return [version for body in inside for version in _versions(analysis, loop_strides(analysis, body))]


def _versions(analysis: Analysis, whole: LoopStrides) -> tuple[LoopStrides, ...]:
    """The versions of a loop's body, if they compute with different vectors: those are of the same iterations, and the
    narrower ones for arrays that overlap. Else the source may have the branch, and the loop is taken as it is."""
    found = versions(analysis, whole)
    widths = {vector_bytes(body_of(analysis.listing, version.loop)) for version in found}
    return found if len(widths) == len(found) else (whole,)


def _from_lines(loops: list[LoopStrides], listing: Listing, told: Expectation) -> list[LoopStrides] | None:
    """The loops that come mostly from the lines of the source's loop; None where that is not known."""
    if told.lines is None or not told.source_lines:
        return None
    first, last = told.lines

    def share(strides: LoopStrides) -> float:
        known = (told.source_lines.get(instruction.line) for instruction in body_of(listing, strides.loop))
        lines = [line for line in known if line is not None]
        return sum(first <= line <= last for line in lines) / max(1, len(lines))

    return [strides for strides in loops if share(strides) > 1 / 2]


def _extent(listing: Listing, function: str | None) -> tuple[float, float]:
    """Addresses of a function: from its label to the next one that is not local; everything if it has no label."""
    start = next((address for name, address in listing.labels if name == function), None)
    if start is None:
        return -inf, inf
    later = [address for name, address in listing.labels if address > start and not name.startswith(".L")]
    return start, min(later, default=inf)


def _fit(listing: Listing, strides: LoopStrides, source: _Source, trip_count: int | None) -> Fit | None:
    """How the loop fits, None if it does not."""
    if not source.strides():
        return _fit_by_work(listing, strides, source, trip_count)
    seen = _seen(listing, strides)
    fits = [_fit_steps(strides, seen, source, u) for u in _candidates(seen.moving, source)]
    return max((fit for fit in fits if fit is not None), key=lambda f: (f.exact, -f.loops_off, f.steps), default=None)


@dataclass(frozen=True, slots=True)
class _Pass:
    """What one pass of a loop does.

    Attributes:
        body: its instructions.
        moving: the bytes that it moves.
        loops: in how many loops it stands, itself counted.
        low, high: its floating-point operations, where vectors may be half empty, and where all their lanes count.
        conditional: it may leave something out.
        calls: it calls functions.
    """

    body: tuple[Instruction, ...]
    moving: _Moving
    loops: int
    low: Mapping[str, int]
    high: Mapping[str, int]
    conditional: bool
    calls: bool


def _seen(listing: Listing, strides: LoopStrides) -> _Pass:
    body = body_of(listing, strides.loop)
    return _Pass(
        body=body,
        moving=_moving(strides),
        loops=strides.loop.depth,
        low=floating_work(body, half=True),
        high=floating_work(body),
        conditional=any(instruction.branch == "conditional" for instruction in body[:-1]) or any(map(_is_masked, body)),
        calls=any(instruction.branch == "call" for instruction in body),
    )


def _moving(strides: LoopStrides) -> _Moving:
    """The moving streams, each byte counted once."""
    spans: dict[tuple[bool, int | None], dict[object, list[tuple[int, int]]]] = {}
    for stream, address in zip(strides.streams, strides.addresses, strict=True):
        reference = stream.reference
        if stream.stride_bytes == 0:
            continue
        for written in _directions(stream):
            key = (written, stream.stride_bytes)
            # the displacement tells references of one base apart; those of different bases cannot be compared
            span = (address.constant, address.constant + _PADDED.get(reference.size_bytes, reference.size_bytes))
            spans.setdefault(key, {}).setdefault(address.terms, []).append(span)
    total = {key: sum(map(_union, bases.values())) for key, bases in spans.items()}
    return _Moving(
        stored={stride: size for (written, stride), size in total.items() if written and stride is not None},
        loaded={stride: size for (written, stride), size in total.items() if not written and stride is not None},
        unknown_stored=total.get((True, None), 0),
        unknown_loaded=total.get((False, None), 0),
    )


_PADDED = {10: 16}
"""Bytes of the element that a number of the x87 unit is moved as."""


def _directions(stream: AddressStream) -> tuple[bool, ...]:
    """False for a load, True for a store, both for an operand that is updated in place."""
    reference = stream.reference
    return (False,) * (reference.read and reference.size_bytes > 0) + (True,) * reference.written


def _union(spans: list[tuple[int, int]]) -> int:
    """Bytes covered by intervals."""
    covered, reach = 0, -(1 << 80)
    for start, end in sorted(spans):
        covered += max(0, end - max(start, reach))
        reach = max(reach, end)
    return covered


def _candidates(moving: _Moving, source: _Source) -> list[int]:
    """Steps per pass that explain every stride that is a number, and leave no source stride without a stream."""
    wanted, observed = source.strides(), moving.strides
    steps = {o // w for o in observed for w in wanted if o % w == 0 and o // w > 0}
    explained = [u for u in sorted(steps) if all(o % u == 0 and o // u in wanted for o in observed)]
    unknown = moving.unknown_loaded + moving.unknown_stored
    placed = source.indirect_bytes(written=False) + source.indirect_bytes(written=True)
    doubtful = not _placed_by_indices(moving, source, unknown // placed if placed else 0)
    complete = [u for u in explained if doubtful or {u * w for w in wanted} <= observed]
    if complete or observed:
        return complete
    # strides that are parameters (BLAS): what is stored counts, and where nothing is, what is loaded
    for written, found in ((True, moving.unknown_stored), (False, moving.unknown_loaded)):
        moved = sum(source.bytes_of(w, written=written) for w in source.strides(written=written))
        per_step = moved + source.indirect_bytes(written=written)
        if per_step:
            return [found // per_step] if found and found % per_step == 0 else []
    return []


def _placed_by_indices(moving: _Moving, source: _Source, bodies: int) -> bool:
    """Whether the streams without a stride are those that the source's index arrays place in so many bodies."""
    loaded, stored = (bodies * source.indirect_bytes(written=written) for written in (False, True))
    return (moving.unknown_loaded, moving.unknown_stored) == (loaded, stored)


def _fit_steps(strides: LoopStrides, seen: _Pass, source: _Source, steps: int) -> Fit | None:
    """The fit with `steps` steps of the source's variable per pass, None if the streams contradict it."""
    if not _directions_fit(seen.moving, source, steps):
        return None
    block, balance = _balanced_block(seen, source, steps)
    unknown = not _placed_by_indices(seen.moving, source, steps * block.bodies)
    doubts = [_doubt_unknown(strides)] if unknown else []
    moved = [item for item in balance if item.moved and item.misses]
    if moved:
        words = "; ".join(map(str, moved))
        doubts.append(Note("bytes-per-pass", f"the bytes do not agree with the source: {words}"))
    return Fit(
        strides=strides,
        block=block,
        variable=source.variable,
        loops_off=abs(seen.loops - source.loops(block)),
        exact=not moved and not unknown,
        works=not any(item.misses for item in _work_balance(seen, source, block, strict=True)),
        proof=_proof(seen, source, block),
        doubts=tuple(doubts),
    )


@dataclass(frozen=True, slots=True)
class _Balance:
    """One quantity of a pass against what the source allows for the iterations that the pass executes."""

    what: str
    place: str
    found: int
    allowed: Span
    iterations: int
    moved: bool

    @property
    def misses(self) -> int:
        """How far it is off."""
        return self.allowed.misses(self.found)

    @property
    def off(self) -> float:
        """The same as a part of the bound that is missed: what every number of iterations does too little of is no
        reason to take the one that may do the most."""
        return self.misses / max(1, self.allowed.least if self.found < self.allowed.least else self.allowed.most)

    def __str__(self) -> str:
        iterations = count(self.iterations, "iteration")
        return f"{self.found} {self.what} in a pass{self.place}, {self.allowed} in {iterations} of the source"


def _balanced_block(seen: _Pass, source: _Source, steps: int) -> tuple[Block, tuple[_Balance, ...]]:
    """The block of iterations that one pass executes, and its balance: the smallest that explains everything.

    If none does, the one that is least off. Where loads and stores leave several, the loops around the code decide,
    then the work.
    """
    trips = source.trips

    def off(block: Block) -> float:
        """How far the pass is outside of what the block may move and compute, as parts of that."""
        return sum(item.off for item in _balances(seen, source, block))

    def partly(block: Block) -> bool:
        """Loops that are unrolled within an outer one are unrolled entirely, or jammed."""
        along = block.along
        return along is not None and along not in source.around and block.copies != trips.get(along)

    def untypical(block: Block) -> tuple[int, int]:
        """How far the work is from what the source writes for the block, first where vectors may be half empty, then if
        all their lanes count; 0 if the source has none."""
        wanted = {kind: steps * block.bodies * source.work.total.get(kind, 0) for kind in _KINDS}
        if not any(wanted.values()):
            return 0, 0
        ends = [(seen.low.get(kind, 0), seen.high.get(kind, 0), wanted[kind]) for kind in _KINDS]
        half, full = ([(low, high, work) for low, high, work in ends], [(high, high, work) for _, high, work in ends])
        return sum(Span(*e[:2]).misses(e[2]) for e in half), sum(Span(*e[:2]).misses(e[2]) for e in full)

    blocks = list(_blocks(source, steps))
    rough = {block: _roughly_off(seen, source, block) for block in blocks}
    possible = [block for block in blocks if not rough[block]] or [min(blocks, key=lambda block: rough[block])]

    def preference(block: Block) -> tuple[object, ...]:
        placed = not _placed_by_indices(seen.moving, source, steps * block.bodies)
        loops = abs(seen.loops - source.loops(block))
        along = block.along is not None, block.along != source.inner
        return off(block), placed, loops, partly(block), untypical(block), block.bodies, along

    best = min(possible, key=preference)
    return best, tuple(_balances(seen, source, best))


_MOST_JAMMED = 16
"""Iterations of another loop that compilers put into one pass at most, unless they unroll a short loop entirely."""


def _blocks(source: _Source, steps: int) -> Iterator[Block]:
    """The blocks of iterations that one pass may execute, smaller ones first."""
    counts, most = range(2, _MOST_JAMMED + 1), source.most_steps
    entirely = {(*whole.variables, len(whole.points)) for whole in source.whole}
    if source.exchangeable:
        yield Block(source.name, steps, most_steps=most)
        for along in source.others:
            for copies in counts:
                if (along, copies) not in entirely:
                    yield Block(source.name, steps, copies, along, most_steps=most)
    for whole in source.whole:
        yield Block(source.name, steps, whole=whole, most_steps=most)
        # with loops left between, they were exchanged
        if len(source.around) + 1 + len(whole.variables) == len(source.trips) and whole.alike:
            for along in source.around:
                for copies in counts:
                    if copies != source.trips.get(along):  # else that loop is another one that is executed entirely
                        yield Block(source.name, steps, copies, along, whole, most)


def _roughly_off(seen: _Pass, source: _Source, block: Block) -> float:
    """How much more the pass does than the block may do at most, or less than the work that has to be left."""
    total = 0.0
    for written, moved in ((False, seen.moving.loaded), (True, seen.moving.stored)):
        most = most_moved(source.expected, block, written=written)
        total += sum(max(0, size / max(1, most.get(s // block.steps, 0)) - 1) for s, size in moved.items())
    return total + sum(item.off for item in _work_balance(seen, source, block))


def _balances(seen: _Pass, source: _Source, block: Block) -> Iterator[_Balance]:
    """Loads and stores by stride, and operations by kind, against what the source allows."""
    moving = seen.moving
    sides = ((False, moving.loaded, moving.unknown_loaded), (True, moving.stored, moving.unknown_stored))
    for written, moved, unknown in sides:
        least = least_moved(source.expected, block, written=written, conditional=seen.conditional)
        for stride, most in most_moved(source.expected, block, written=written).items():
            found = moved.get(block.steps * stride, 0)
            # streams without a known stride may be any of the source's
            allowed = Span(max(0, least.get(stride, 0) - unknown), most)
            what, place = "B stored" if written else "B loaded", f" with a stride of {block.steps * stride:+d} B"
            yield _Balance(what, place, found, allowed, block.steps * block.bodies, True)
    yield from _work_balance(seen, source, block)


def _is_masked(instruction: Instruction) -> bool:
    return instruction.has_mask or isa_of(instruction.isa).is_masked_move(instruction)


def _work_balance(seen: _Pass, source: _Source, block: Block, *, strict: bool = False) -> Iterator[_Balance]:
    """Operations by kind against what the source allows; nothing where the source's are not known.

    `strict`: although the compiler was allowed to reorder arithmetic, and so to save some.
    """
    if not source.works:
        return
    for kind, allowed in operations(source.work, block, seen.high).items():
        least, most = (sum(done.get(part, 0) for part in kind.split(" and ")) for done in (seen.low, seen.high))
        unknown = source.work.open_ended or seen.calls
        span = Span(0, max(most, allowed.most)) if unknown else allowed
        span = Span(0, span.most) if source.work.reassociated and not strict else span
        found = least if most > span.most else most
        yield _Balance(f"{kind} operations", "", found, span, block.steps * block.bodies, False)


def _proof(seen: _Pass, source: _Source, block: Block) -> str:
    """What was cross-checked, in words."""
    moving = seen.moving
    stores = source.strides(written=True) or source.indirect_bytes(written=True)
    moved, unknown = (moving.stored, moving.unknown_stored) if stores else (moving.loaded, moving.unknown_loaded)
    proof = f"{sum(moved.values()) + unknown} B {'stored' if stores else 'loaded'} per pass"
    if _copies_by_work(seen.body, source, block.steps) == block.bodies:
        proof += f" and {_work_words(seen.body, source)}"
    return proof


def _directions_fit(moving: _Moving, source: _Source, steps: int) -> bool:
    """Whether stores move only where the source writes, and each written array is stored to."""
    written = {steps * stride for stride in source.strides(written=True)}
    unknown, placed = moving.unknown_stored > 0, source.indirect_bytes(written=True) > 0
    if (placed and not unknown) or (unknown and not written and not placed):
        return False
    return set(moving.stored) <= written and ((unknown and not placed) or written <= set(moving.stored))


def _doubt_unknown(strides: LoopStrides) -> Note:
    number = sum(1 for s in strides.streams if s.stride_bytes is None and s.reference.size_bytes)
    return Note("unknown-stride", f"{number} address streams of the loop have no stride that is known as a number")


def _doubt_work(listing: Listing, fit: Fit, source: _Source) -> tuple[Note, ...]:
    """Warnings where the loop computes something else than the source, or as much of it as other iterations would."""
    if not _works_otherwise(listing, fit.strides, source):
        balance = _work_balance(_seen(listing, fit.strides), source, fit.block, strict=True)
        return tuple(_work_note(item, source) for item in balance if item.misses)
    loop, kernel = ("no", "some") if source.works else ("some", "no")
    text = f"the loop does {loop} floating-point work and the source {kernel}: it may be the loop of another nest"
    return (Note("work-differs", text),)


def _copies_by_work(body: Iterable[Instruction], source: _Source, steps: int) -> int | None:
    """Innermost bodies per step by counting floating-point operations, None where they do not divide."""
    done = floating_work(body)
    for kind in _KINDS:
        if source.work.total.get(kind) and done[kind]:
            copies, rest = divmod(done[kind], source.work.total.get(kind, 0) * steps)
            return copies if copies and not rest else None
    return None


def _work_words(body: Iterable[Instruction], source: _Source) -> str:
    done = floating_work(body)
    counts = [(done[kind], kind) for kind in _KINDS if source.work.total.get(kind) and done[kind]]
    return count(counts[0][0], f"{counts[0][1]} operation")


def _fit_by_work(listing: Listing, strides: LoopStrides, source: _Source, trip_count: int | None) -> Fit | None:
    """Fit of a kernel without moving arrays: the loop that does its arithmetic and moves no address."""
    body = body_of(listing, strides.loop)
    if _moving(strides).strides or (any(source.work.total.values()) and not floating_work(body)):
        return None
    iterations = _copies_by_work(body, source, 1)
    proof = f"{_work_words(body, source)} per pass" if iterations else "nothing in the body counts iterations"
    by_passes = trip_count // strides.passes if trip_count and strides.passes else None
    if iterations is None and by_passes:
        iterations, proof = by_passes, f"{strides.passes} passes for {trip_count} iterations"
    if iterations is None:
        return None
    return Fit(strides, Block(source.name, iterations), None, 0, True, True, proof, ())


def _choose(
    listing: Listing, fits: Sequence[Fit], source: _Source, trip_count: int | None
) -> tuple[Fit, tuple[Note, ...]]:
    """The main loop among those that fit, and notes on what decided.

    Raises:
        AmbiguousLoopError: two different loops remain.
    """
    best = [fit for fit in fits if fit.exact] or list(fits)
    if trip_count is not None:
        best = [fit for fit in best if fit.steps <= trip_count or fit.variable] or best
        best = _of_the_nest(listing, best, source, trip_count)
    notes: list[Note] = []
    for rank, code, text in _RANKS:
        top = max(rank(listing, fit, source) for fit in best)
        kept = [fit for fit in best if rank(listing, fit, source) == top]
        if len(kept) < len(best) and text:
            notes.append(Note(code, text, "assumption"))
        best = kept
    first, *others = best
    if any(_forms(listing, fit) != _forms(listing, first) for fit in others):
        raise AmbiguousLoopError(
            f"{len(best)} loops fit the kernel equally well",
            tuple(describe(listing, fit.strides, fit.iterations) for fit in best),
            where=listing.file,
            todo="choose with --loop N",
        )
    if others:
        text = f"the loop stands {len(best)} times in the listing with the same instructions; the first is taken"
        notes.append(Note("loop-copies", text, "assumption"))
    return first, tuple(notes)


def _forms(listing: Listing, fit: Fit) -> tuple[str, ...]:
    return tuple(instruction.form for instruction in body_of(listing, fit.strides.loop))


def _of_the_nest(listing: Listing, fits: list[Fit], source: _Source, trip_count: int) -> list[Fit]:
    """`fits` without those that stand beside a loop with the source's work, although they are no part of it.

    Main, peeled and remainder loops share the iterations, and a fallback version has other vectors. So two loops with
    equal vectors, each of which does most of the iterations, are two loops of the source.
    """

    def alike(fit: Fit) -> tuple[int, bool]:
        return _rank_width(listing, fit, source), (fit.strides.passes or 0) * fit.steps * 2 > trip_count

    best = {key: max(_rank_work(listing, fit, source) for fit in fits if alike(fit) == key) for key in map(alike, fits)}
    return [fit for fit in fits if not alike(fit)[1] or _rank_work(listing, fit, source) == best[alike(fit)]]


def _rank_iterations(listing: Listing, fit: Fit, source: _Source) -> int:
    return fit.iterations


def _rank_width(listing: Listing, fit: Fit, source: _Source) -> int:
    return vector_bytes(body_of(listing, fit.strides.loop))


def _rank_work(listing: Listing, fit: Fit, source: _Source) -> int:
    """How little the loop's floating-point operations differ from the source's."""
    if source.works is None:
        return 0
    done = floating_work(body_of(listing, fit.strides.loop))
    return -sum(abs(done[kind] - fit.iterations * source.work.total.get(kind, 0)) for kind in _KINDS)


def _rank_accesses(listing: Listing, fit: Fit, source: _Source) -> int:
    """How little the bytes that the loop loads and stores differ from the source's, array by array of one stride."""
    moving, steps = _moving(fit.strides), fit.steps
    sides = ((moving.loaded, False), (moving.stored, True))
    return -sum(
        abs(moved.get(steps * stride, 0) - fit.iterations * source.bytes_of(stride, written=written))
        for moved, written in sides
        for stride in source.strides()
    )


def _rank_depth(listing: Listing, fit: Fit, source: _Source) -> int:
    return fit.strides.loop.depth


def _rank_passes(listing: Listing, fit: Fit, source: _Source) -> int:
    return fit.strides.passes or 0


_RANKS = (
    (_rank_iterations, "", ""),
    (
        _rank_width,
        "fallback-loop",
        "a loop with the same iterations per pass but narrower vectors is taken for the version for overlapping arrays",
    ),
    (_rank_work, "other-work", "a loop with the same strides but other floating-point work is left aside"),
    (_rank_accesses, "other-accesses", "a loop with the same strides that loads or stores other bytes is left aside"),
    (_rank_depth, "outside-copy", "a copy of the loop outside the outer loop is taken for its peeled iteration"),
    (_rank_passes, "shorter-copy", "a copy of the loop with fewer passes is left aside"),
)
"""What decides among the loops that fit, in this order, and the note where a later one has to."""


def _result(
    listing: Listing, fit: Fit, notes: tuple[Note, ...], source: _Source, trip_count: int | None
) -> AssemblyLoop:
    """The chosen loop with its evidence."""
    evidence = f"{begin(listing, fit.strides.loop)}: {'; '.join(_reasons(fit, source, trip_count))}."
    where = Location(listing.file, body_of(listing, fit.strides.loop)[0].line or None)
    doubts = fit.doubts + _doubt_work(listing, fit, source)
    found = tuple(replace(note, where=where) for note in doubts + notes + _transformations(fit, source, trip_count))
    loop = assembly_loop(listing, fit.strides, float(fit.iterations), evidence, "main", found)
    along = fit.block.along if fit.variable is None else None
    return replace(loop, variable=fit.variable, steps=fit.steps, along=along, whole=fit.block.whole.variables)


def _reasons(fit: Fit, source: _Source, trip_count: int | None) -> list[str]:
    """Why this loop, and how its iterations per pass were found and cross-checked."""
    strides, per = fit.strides, "iteration" if fit.variable is None else f"step of {fit.variable}"
    number = sum(1 for s in strides.streams if s.stride_bytes and s.reference.size_bytes)
    if not source.strides():
        reasons = [f"it does the kernel's arithmetic, {fit.proof}"]
    elif number:
        moves = f"its {number} moving address streams advance" if number > 1 else "its moving address stream advances"
        reasons = [f"{moves} per pass by {fit.steps} × the source's strides per {per}", fit.proof]
    else:
        reasons = [f"{fit.proof}, as {fit.steps} × the source does per {per}"]
    if fit.copies > 1:
        reasons.append(f"{fit.copies} executions of the innermost body each")
    if strides.passes is not None and fit.variable is None:
        total = strides.passes * fit.steps
        of = f" of {trip_count}" if trip_count is not None and total <= trip_count else ""
        reasons.append(f"{strides.passes} passes × {fit.steps} = {total}{of} iterations")
    return reasons


def _transformations(fit: Fit, source: _Source, trip_count: int | None) -> tuple[Note, ...]:
    """Notes on loops that the compiler exchanged or folded into one another."""
    if _is_collapsed(fit, trip_count):
        text = "the compiler made one loop of the inner loop and those around it"
        return (Note(LOOPS_COLLAPSED, text, "assumption"),)
    notes, block = [], fit.block
    whole = block.whole.variables
    if fit.variable is not None and len(source.around) + 1 + len(whole) < len(source.trips):
        text = f"the compiler exchanged loops: the innermost loop of the code runs over {fit.variable}"
        notes.append(Note("loops-exchanged", text))
    if whole:
        loops = f"inner loops ({', '.join(whole)})" if len(whole) > 1 else "inner loop"
        bodies = f"{'' if block.whole.alike else 'up to '}{len(block.whole.points)} inner iterations"
        text = f"the compiler unrolled the {loops}: a step of {fit.variable} executes {bodies}"
        notes.append(Note("inner-loop-unrolled", text, "assumption"))
    if block.copies > 1:
        text = f"the compiler executes {block.copies} iterations of the loop over {block.along} at once"
        notes.append(Note("outer-loop-unrolled", f"{text} (unroll-and-jam or vector lanes)", "assumption"))
    return tuple(notes)


def _removed_loops(analysis: Analysis, found: Choice, told: Expectation) -> tuple[Note, ...]:
    """That the function executes the loop in no other, though the source does: a loop that only does the same again
    is removed by compilers, and one of few iterations may be unrolled."""
    main, listing = found.main, analysis.listing
    start, end = _extent(listing, told.function)
    whole = start >= 0 and any(i.branch == "return" and start <= i.address < end for i in listing.instructions)
    whole &= start <= listing.instructions[main.strides.loop.instructions[0]].address < end
    moved = main.variable is not None or main.copies > 1 or _is_collapsed(main, told.trip_count)
    if not told.outer or not whole or moved or main.strides.loop.parent is not None:
        return ()
    if any(note.code == "loop-copies" for note in found.notes):
        return ()
    names = ", ".join(dict.fromkeys(outer.variable for outer in told.outer))
    text = (
        f"the compiled function has no loop around this one: the compiler removed or unrolled the loop over {names}; "
        "what is said of all its iterations, as the time of the nest and what caches hold, is that of the source"
    )
    return (Note(LOOPS_REMOVED, text, "warning"),)


def _is_collapsed(fit: Fit, trip_count: int | None) -> bool:
    """Whether the loop executes more iterations than the inner loop of the source."""
    return fit.variable is None and trip_count is not None and (fit.strides.passes or 0) * fit.steps > trip_count


def _by_hand(listing: Listing, picked: Picked, sources: tuple[_Source, ...], trip_count: int | None) -> AssemblyLoop:
    """A loop that the user chose: matched as far as it fits, never refused."""
    strides, how, role, analysis = picked.strides, picked.how, picked.role, picked.analysis
    fitting = [(fit, s) for s in sources if (fit := _fit(listing, strides, s, trip_count)) is not None]
    if fitting:
        # what stands around a stretch of lines is not known
        fit, source = min(fitting, key=lambda one: _misfit(one[0]) if analysis else (not one[0].exact,))
        result = _result(listing, fit, (), source, trip_count)
        around = None
        if analysis is not None:
            others = (s for s in _innermost(analysis, None) if s.loop.number != strides.loop.number)
            fits = [f for s in others if (f := _fit(listing, s, source, trip_count)) is not None]
            around = _around(analysis, fit, fits, source, trip_count)
        return replace(result, role=role, evidence=f"{how} {result.evidence}", around=around)
    text = f"the chosen code does not fit the kernel: it has {describe_streams(strides)}, {_wanted(sources[0])}"
    note = Note("unmatched-loop", text, where=Location(listing.file, body_of(listing, strides.loop)[0].line or None))
    return assembly_loop(listing, strides, None, how, role, (note,))


def _wanted(source: _Source) -> str:
    """What the source expects, in words."""
    moving = [a for a in source.expected if a.stride_bytes]
    if not moving:
        return "the source moves no array in its innermost loop"
    parts = [f"{'store' if a.written else 'load'} {a.array} {a.stride_bytes:+d} B" for a in moving]
    parts += [f"{'store' if a.written else 'load'} {a.array} through an index" for a in source.indirect]
    return f"the source has per iteration {', '.join(dict.fromkeys(parts))}"


_LIBRARY = ("memcpy", "memmove", "memset")


_KEEP_LOOPS = "--param=max-completely-peel-times=1 (gcc) or -fno-unroll-loops (clang)"
"""Flags with which compilers leave loops of few iterations loops."""


def _nothing_fits(listing: Listing, loops: list[LoopStrides], sources: Sequence[_Source]) -> AssemblyError:
    """The error for a listing without a fitting loop: says what was found and what was expected."""
    isa = isa_of(listing.isa)
    for instruction in listing.instructions:
        called = next((name for name in _LIBRARY if name in instruction.text), None)
        repeated = isa.repeats(instruction) and any(reference.written for reference in instruction.memory)
        if repeated or (called and instruction.branch in ("call", "jump")):
            what = f"the loop is {'a call of ' + called if called else instruction.text.strip()}"
            todo = (
                f"compile with -fno-tree-loop-distribute-patterns (gcc) or -fno-builtin-{called or 'memcpy'} (clang); "
                "where the source itself calls it, leave --asm out: a loop stands for it"
            )
            return AssemblyError(what, where=instruction.place_in(listing.file), todo=todo)
    if not loops:
        what = "the code has no loop: the compiler unrolled it entirely, or removed it"
        todo = f"give larger sizes with -D, --flags with {_KEEP_LOOPS}, or another listing with --asm"
        return AssemblyError(what, where=listing.file, todo=todo)
    found = "\n".join(f"  {describe(listing, strides)}" for strides in loops)
    todo = f"choose by hand with --loop N, --lines or markers:\n{found}"
    if any(source.whole for source in sources):
        short = f"the compiler may have unrolled the loop over {sources[0].name} into one that has others within it"
        todo = f"{short}: give larger sizes with -D, or --flags with {_KEEP_LOOPS}; else {todo}"
    what = f"no loop of the code fits the kernel: {_wanted(sources[0])}"
    return AssemblyError(what, where=listing.file, todo=todo)
