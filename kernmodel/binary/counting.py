"""Counting how often blocks run in an unmodified file: in a copy of the function in the running program's memory.

The program is started stopped; a copy of the function that counts (`Isa.counted_copy`) is put near it, the old entry
jumps to it, and the old body becomes traps. An indirect jump finds the old places in its table: there stands a jump to
the copy where there is room, else a trap that the tracer answers. A trap where no block was known to begin makes one,
and the program is started again. Nothing of the file is changed.
"""

from __future__ import annotations

import os
import platform
import signal
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import Literal

from kernmodel.binary.blocks import cut_block
from kernmodel.binary.loop_nest import natural_loops
from kernmodel.binary.occurrences import Method, Occurrences
from kernmodel.binary.program import BasicBlock, Function
from kernmodel.binary.qemu import emulator_for, qemu_run
from kernmodel.binary.runs import Command, Told, ended_badly, plain_run, too_long
from kernmodel.binary.tracing import NotTracedError, Stop, TracedProgram, free_stretch, traced_run
from kernmodel.errors import AssemblyError, InputError, Location, Note, ToolError
from kernmodel.isa import isa_of
from kernmodel.isa.counting import CountedBlock, CountedCopy, Counter
from kernmodel.value_types import dataclass

_MOST_STARTS = 200
_RUNS = 2
_QEMU_SLOWDOWN = 2.0
"""Times of a run under qemu alone that one with the plugin takes at most: qemu 7.2 on Zen 3, 2026."""
_SHOWN = 3
_PAGE = 4096
_TRAP = b"\xcc"
_WORD = 8


@dataclass(frozen=True, slots=True)
class CountedRun:
    """One run: counters by what they count, what the run found out of the function, how it ended."""

    function: Function
    counts: Mapping[Counter, int]
    seconds: float
    exit_status: int
    notes: tuple[Note, ...]


def count_occurrences(
    function: Function,
    command: Command,
    *,
    method: Method | Literal["auto"] = "auto",
    limit: float | None = None,
    told: Told = lambda what: None,
) -> tuple[Function, Occurrences]:
    """How often the blocks of a function run, by two runs of the program that agree.

    Args:
        function: of the file that the command runs, or of a library that it loads.
        method: "auto" counts in a copy where that is possible, else by callgrind.
        limit: seconds that a fallback may take by its estimate, None: as long as the program may run.
        told: is told what is being done.

    Returns:
        The function, with the blocks that only running it showed, and what was counted.

    Raises:
        InputError: the program cannot be run or fails, takes too long, is not deterministic, or never runs the
            function; NotTracedError, ToolError: no way of counting is possible here.
    """
    if not function.runnable:
        raise InputError("is an object: it cannot be run", where=function.file, todo="link it into a program")
    foreign = is_foreign(function)
    if foreign and method not in ("auto", "qemu"):
        refuse_foreign(function)
    emulated = foreign or method == "qemu"
    plain = plain_run(emulator_for(function.isa).command(command) if emulated else command, told)
    if plain.exit_status:
        raise ended_badly(command, plain.exit_status, plain.said)
    found: list[tuple[Function, Occurrences]] = []
    for _ in range(_RUNS):
        known = found[-1][0] if found else function
        found.append(_counted(known, command, method, plain.seconds, limit, told))
        ran = found[-1][1]
        if ran.exit_status != plain.exit_status:
            raise _changed(command, ran)
        if not ran.calls:
            raise never_ran(function)
    (_, first), (known, second) = found
    if first.blocks != second.blocks or first.edges != second.edges or first.calls != second.calls:
        raise _not_deterministic(command, first, second)
    return known, replace(second, runs=_RUNS, seconds=min(first.seconds, second.seconds))


def is_foreign(function: Function) -> bool:
    """Whether its code is of another processor than this host's."""
    return platform.machine().lower() not in isa_of(function.isa).hosts


def refuse_foreign(function: Function) -> None:
    """Refuse code of another processor than this host's.

    Raises:
        ToolError: it is.
    """
    if is_foreign(function):
        what = f"holds {function.isa} code, which this host ({platform.machine()}) does not run"
        todo = "run it on such a host; qemu counts here (--method qemu), and binary blocks works"
        raise ToolError(what, where=function.file, todo=todo)


def _counted(
    function: Function, command: Command, method: str, plain: float, limit: float | None, told: Told
) -> tuple[Function, Occurrences]:
    """One counted run by the method that is possible; callgrind also where a copy makes the program fail."""
    from kernmodel.binary.callgrind import callgrind_run

    if method == "qemu" or is_foreign(function):
        told(f"counting with qemu: about {_QEMU_SLOWDOWN * plain:.0f} s")
        return qemu_run(function, command, told)
    if method in ("auto", "re-encoded"):
        try:
            run = counted_run(function, command, told=told)
            if not run.exit_status or method != "auto" or which("valgrind") is None:
                return run.function, occurrences_of(run)
        except (NotTracedError, AssemblyError):
            if method != "auto":
                raise
    return function, callgrind_run(function, command, plain, limit, told)


def never_ran(function: Function) -> InputError:
    """The error for a function that the program does not execute; its clones may run in its place."""
    clones = ", ".join(function.clones)
    todo = f"clones of it may run in its place: {clones}" if clones else "it may be inlined where it is called"
    return InputError(f"{function.name} never ran", where=function.file, todo=todo)


def _changed(command: Command, ran: Occurrences) -> InputError:
    how = f"signal {-ran.exit_status}" if ran.exit_status < 0 else f"status {ran.exit_status}"
    what = f"ends with {how} when the function is counted, and well when it is not"
    todo = "a function that throws exceptions, or reads or changes its own code, is counted with --method callgrind"
    if which("valgrind") is None:
        todo += " (package valgrind)"
    return InputError(what, where=command.words[0], todo=todo)


def _not_deterministic(command: Command, first: Occurrences, second: Occurrences) -> InputError:
    places = differing(first, second)
    shown = "; ".join(f"block {address:#x}: {one:,} and {two:,}" for address, one, two in places[:_SHOWN])
    what = f"is not deterministic: two runs differ ({shown or 'in what followed what'})"
    return InputError(what, where=command.words[0], todo="fix its seeds, threads and inputs")


class _AgainError(Exception):
    """Something was found out that the copy has to know: another block, or that several threads count."""

    def __init__(self, function: Function, shared: bool) -> None:
        super().__init__()
        self.function = function
        self.shared = shared


def counted_run(function: Function, command: Command, *, told: Told = lambda what: None) -> CountedRun:
    """Run the program once and count.

    Raises:
        InputError: the program cannot be run, takes too long, or does not have the function in its memory.
        NotTracedError: this system or instruction set does not allow it.
    """
    shared = False
    for _ in range(_MOST_STARTS):
        try:
            return _one_run(function, command, shared, told)
        except _AgainError as again:
            function, shared = again.function, again.shared
    todo = "count with --method callgrind"
    raise InputError(f"{function.name} jumps to ever more places that are not known", where=function.file, todo=todo)


def _one_run(function: Function, command: Command, shared: bool, told: Told) -> CountedRun:
    with traced_run(command, told, "counting") as (program, counters, _):
        placed = _place(program, function, counters, shared)
        begun = time.monotonic()
        status, notes = _follow(program, function, command, placed, shared)
        seconds = time.monotonic() - begun
        size = _WORD * len(placed.copy.counters)
        values = struct.unpack(f"<{len(placed.copy.counters)}Q", os.pread(counters, size, 0))
        counts = dict(zip(placed.copy.counters, values, strict=True))
        return CountedRun(function, counts, seconds, status, notes)


@dataclass(frozen=True, slots=True)
class _Placed:
    """The copy in the program: what was added to addresses of the file, where traps send the program, and what stands
    in place of the old code, by address."""

    copy: CountedCopy
    shift: int
    traps: Mapping[int, int]
    bent: Mapping[int, bytes]


def _place(program: TracedProgram, function: Function, counters: int, shared: bool) -> _Placed:
    """Put the copy into the program and bend the old code to it."""
    shift = load_shift(program, function)
    size = sum(len(block.code) for block in function.blocks)
    room = rounded(12 * size + 256 * len(function.blocks) + _PAGE)
    counted = rounded(4 * _WORD * len(function.blocks) + _PAGE)
    place = free_stretch(program.mappings(), function.entry + shift, room + counted)
    if place is None:
        raise NotTracedError("there is no room near the function for its copy", todo="count with --method callgrind")
    isa = isa_of(function.isa)
    copy = isa.counted_copy(counted_blocks(function), function.entry, place, place + room, shift=shift, shared=shared)
    if copy is None or len(copy.code) > room:
        raise NotTracedError(f"{function.isa} code is not counted by a copy", todo="count with --method qemu")
    os.ftruncate(counters, counted)
    if not program.map_memory(place, room, executable=True) or not program.map_memory(place + room, counted, counters):
        raise NotTracedError("the program has no memory for the copy", todo="see ulimit -v")
    program.close_descriptor(counters)
    program.write(place, copy.code)
    traps = bend(program, function, copy.entry, copy.arrivals, shift)
    old = {block.address + shift: len(block.code) for block in _reached(function)}
    return _Placed(copy, shift, traps, {place: program.read(place, size) for place, size in old.items()})


def counted_blocks(function: Function) -> list[CountedBlock]:
    """The blocks of a function as copies are made of them."""
    return [
        CountedBlock(one.address, one.code, one.instructions, one.successors, one.ending == "indirect")
        for one in function.blocks
    ]


def rounded(size: int) -> int:
    """The size in whole pages."""
    return -(-size // _PAGE) * _PAGE


def load_shift(program: TracedProgram, function: Function) -> int:
    """What is added to the file's addresses in the program's memory; a library is waited for until the loader is done.

    Raises:
        InputError: the program does not load the file.
    """
    shift = _shift_now(program, function)
    if shift is None:
        entry = program.entry()
        saved = program.read(entry, 1)
        program.write(entry, _TRAP)
        stop = program.run()
        if stop.kind == "trap" and stop.value == entry:
            program.write(entry, saved)
            program.go_on_at(stop.process, entry)
            shift = _shift_now(program, function)
    if shift is None:
        todo = "give the program that has the function behind --, or that loads the library that has it"
        raise InputError("is not what the program runs, nor a library that it loads", where=function.file, todo=todo)
    return shift


def _shift_now(program: TracedProgram, function: Function) -> int | None:
    file = Path(function.file).resolve()
    mapped = [one for one in program.mappings() if one.path == str(file)]
    if not mapped:
        return None
    if not function.position_independent:
        return 0
    lowest = min(mapped, key=lambda one: one.first)
    return lowest.first - _first_address(file)


def _first_address(file: Path) -> int:
    """The lowest address that a file asks for, at the start of a page."""
    from elftools.elf.elffile import ELFFile

    with file.open("rb") as stream:
        wanted = [one["p_vaddr"] for one in ELFFile(stream).iter_segments() if one["p_type"] == "PT_LOAD"]
    return int(min(wanted, default=0)) // _PAGE * _PAGE


def bend(
    program: TracedProgram, function: Function, entry: int, arrivals: Mapping[int, int], shift: int
) -> dict[int, int]:
    """Turn the old code into traps, and its blocks into jumps to their copies where there is room; where traps at the
    beginnings of blocks go to, by address in the program.

    Args:
        entry: where calls go in place of the function's entry; arrivals: by block, where other jumps go.
        shift: what is added to addresses of the file.
    """
    isa = isa_of(function.isa)
    reached = _reached(function)
    for block in reached:
        program.write(block.address + shift, _TRAP * len(block.code))
    traps = {}
    starts = sorted(block.address for block in reached)
    for block in reached:
        goal = entry if block.address == function.entry else arrivals[block.address]
        here = block.address + shift
        jump = isa.jump(here, goal)
        following = next((one for one in starts if one > block.address), None)
        ends = max((one.end for one in function.ranges if one.first <= block.address < one.end), default=block.end)
        room = min(following if following is not None else ends, ends) - block.address
        if jump and len(jump) <= room and (len(jump) <= len(block.code)):
            program.write(here, jump)
        else:
            traps[here] = goal
    return traps


def _reached(function: Function) -> list[BasicBlock]:
    """The blocks to which something known leads: others may be data, and stay as they are. Where an indirect jump goes
    is not known, all may be meant."""
    known = {block.address: block for block in function.blocks}
    seen, waiting = set[int](), [function.entry]
    while waiting:
        address = waiting.pop()
        if address not in seen:
            seen.add(address)
            waiting += known[address].successors
            if known[address].ending == "indirect" and not known[address].successors:
                return list(function.blocks)
    return [block for block in function.blocks if block.address in seen]


def _follow(
    program: TracedProgram, function: Function, command: Command, placed: _Placed, shared: bool
) -> tuple[int, tuple[Note, ...]]:
    """Let the program run to its end; its exit status (negative: a signal).

    Raises:
        _AgainError: the copy has to know more; InputError: it takes too long.
    """
    notes: tuple[Note, ...] = ()
    inside = {item.address + placed.shift: block for block in _reached(function) for item in block.instructions}
    while True:
        stop = program.run()
        if stop.kind == "trap" and stop.value in placed.traps:
            program.go_on_at(stop.process, placed.traps[stop.value])
        elif stop.kind == "trap" and stop.value in inside:
            raise _AgainError(_with_leader(function, stop.value - placed.shift), shared)
        elif stop.kind == "trap":
            program.pass_on(stop.process, signal.SIGTRAP)
        elif stop.kind in ("clone", "fork") and not shared:
            raise _AgainError(function, True)
        elif stop.kind == "exec" and stop.process == program.process:
            notes = (note_of_exec(function),)
        elif stop.kind == "exiting" and stop.process == program.process and not notes:
            if any(program.read(place, len(code)) != code for place, code in placed.bent.items()):
                notes = (note_of_changes(function),)
        elif stop.kind in ("exited", "killed"):
            return ended(program, command, stop, "it was counted"), notes


def note_of_exec(function: Function) -> Note:
    """What is said of a program that calls exec."""
    text = "the program replaced itself by another (exec): what ran after that does not count"
    return Note("replaced", text, "warning", Location(function.file))


def note_of_changes(function: Function) -> Note:
    """What is said of a program that writes into its own code."""
    text = f"the program changed the code of {function.name} while it ran: all this is of the code in the file"
    return Note("changed-code", text, "warning", Location(function.file))


def ended(program: TracedProgram, command: Command, stop: Stop, what: str) -> int:
    """The exit status of a program that has ended, negative: the signal.

    Raises:
        InputError: it was stopped since it took too long.
    """
    if program.timed_out:
        raise too_long(command, what)
    return stop.value if stop.kind == "exited" else -stop.value


def _with_leader(function: Function, address: int) -> Function:
    """The function in which a block begins at this instruction, to which indirect jumps go."""
    blocks: list[BasicBlock] = []
    for block in function.blocks:
        if block.address < address < block.end:
            blocks += cut_block(block, address)
        else:
            blocks.append(block)
    blocks = [
        replace(one, successors=tuple(sorted({*one.successors, address}))) if one.ending == "indirect" else one
        for one in blocks
    ]
    loops = natural_loops({one.address: one.successors for one in blocks}, function.entry)
    return replace(function, blocks=tuple(blocks), loops=loops)


def occurrences_of(run: CountedRun) -> Occurrences:
    """What the counters say."""
    function, counts = run.function, run.counts
    arrived = {one.address: count for one, count in counts.items() if one.kind == "arrivals"}
    blocks = {block.address: counts.get(Counter("block", block.address), 0) for block in function.blocks}
    edges: dict[tuple[int, int], int] = {}
    indirect = [block for block in function.blocks if block.ending == "indirect"]
    ambiguous = False
    for block in function.blocks:
        if block.ending == "indirect":
            for one in block.successors:
                if sum(one in other.successors for other in indirect) == 1:
                    edges[block.address, one] = arrived.get(one, 0)
                else:
                    ambiguous = True
        else:
            edges |= _edges(block, blocks, arrived, counts)
    notes = run.notes
    if ambiguous:
        text = "several indirect jumps have the same targets: which of them went there is not counted"
        notes = (*notes, Note("indirect-edges", text, "warning", Location(function.file)))
    unreached = len(function.blocks) - len(_reached(function))
    if unreached:
        text = f"{unreached} blocks that nothing known leads to (handlers of exceptions?) are not counted"
        notes = (*notes, Note("uncounted", text, "warning", Location(function.file)))
    return Occurrences(
        blocks=blocks,
        edges=edges,
        calls=counts.get(Counter("calls"), 0),
        method="re-encoded",
        seconds=run.seconds,
        exit_status=run.exit_status,
        notes=notes,
    )


def _edges(
    block: BasicBlock, blocks: Mapping[int, int], arrived: Mapping[int, int], counts: Mapping[Counter, int]
) -> dict[tuple[int, int], int]:
    """How often each successor followed a block that ends in no indirect jump."""
    ran = blocks[block.address]
    if block.ending in ("falls", "jumps"):
        return {(block.address, one): ran for one in block.successors}
    behind = block.end
    # where that is no other block's successor, it ran as often as it was come to
    passed = counts.get(Counter("edge", block.address, behind), blocks.get(behind, 0) - arrived.get(behind, 0))
    found = {}
    for one in block.successors:
        found[block.address, one] = passed if one == behind else ran - passed
    if block.ending == "branches" and len(block.successors) == 1 and block.successors[0] == behind:
        target = block.instructions[-1].target
        found[block.address, behind] = ran if target == behind else passed
    return found


def differing(first: Occurrences, second: Occurrences) -> Sequence[tuple[int, int, int]]:
    """Blocks that did not run equally often in two runs, with both counts."""
    known = sorted({*first.blocks, *second.blocks})
    return [
        (one, first.blocks.get(one, 0), second.blocks.get(one, 0))
        for one in known
        if first.blocks.get(one, 0) != second.blocks.get(one, 0)
    ]
