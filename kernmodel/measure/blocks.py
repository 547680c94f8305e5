"""Blocks of machine code: cycles per pass on this host.

Two calls that differ in the number of passes alone are timed in turn; their difference counts, so that what stands
around the block drops out. Every page that the block touches is the same one, so its data are in L1; a block that
walks on and stores nothing there, if not too fast, has a few pages and as few passes as stay in L1. General registers
point to places of their own in the first page, and memory holds addresses into it; vectors hold numbers near 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernmodel.errors import AssemblyError, Location, MeasurementError, Note
from kernmodel.incore.dependences.addresses import BodyAccesses, address_step
from kernmodel.isa import isa_of
from kernmodel.isa.linear import Comparison, Linear, symbol
from kernmodel.isa.model import Instruction, Notion
from kernmodel.measure import code_x86 as x86
from kernmodel.measure.host import Case, Effort, FaultError, Harness, repetitions
from kernmodel.measure.host_topology import first_processor
from kernmodel.measure.model import BlockMeasurement
from kernmodel.measure.samples import Figure
from kernmodel.value_types import dataclass

EFFORT = Effort()
_ISA = "x86-64"
_UNSAFE_TEXT = """
syscall sysenter sysexit int int1 int3 into ud hlt xbegin xend xabort enclu
xrstor fxrstor ldmxcsr vldmxcsr fldcw fldenv frstor wrfsbase wrgsbase wrpkru popf
std lss lfs lgs umwait tpause monitor mwait clui stui uiret senduipi ptwrite
"""
_UNSAFE = tuple(_UNSAFE_TEXT.split())
"""Beginnings of instructions that ask for the system, change how others work, or leave the block."""
_WANTED_INSTRUCTIONS, _WANTED_BYTES = 320, 6000
_LEAST_COPIES, _MOST_PASSES = 4, 400
_OWN_PAGES, _PAGE_BYTES, _LEAST_WALKED = 6, 4096, 32
"""Pages of a block that walks on, which L1 holds, and the fewest passes in the shorter call."""
_PROBE_SECONDS = 5
"""After which code that is called for the first time is taken not to end."""
_CONTINUES = {"ne": 0, "l": 1, "b": 1, "g": -1, "a": -1}
"""By condition the sign that the step of what is compared must have for it to end at zero; 0: any."""


def measure_block(
    harness: Harness, code: bytes, *, notion: Notion | None = None, offset: int = 0, effort: Effort = EFFORT
) -> BlockMeasurement:
    """Cycles per pass of a block in L1.

    Args:
        harness: a child that measures blocks alone.
        code: machine code of x86-64, the passes of which follow one another.
        notion: how they do; None: as a loop if the block ends in a branch to its beginning.
        offset: address of the block modulo 64.

    Raises:
        AssemblyError: it is no code, or code that must not or cannot run so.
        MeasurementError: it raises a signal, or the host does not let it be measured.
    """
    instructions = tuple(isa_of(_ISA).decode(code, 0))
    refuse_unsafe(instructions, code)
    closing = _closing_branch(instructions)
    notion = notion or ("loop" if closing else "unrolled")
    body = instructions[:-1] if closing else instructions
    if not body:
        raise AssemblyError("the block is a branch and nothing else", where="--hex", todo="give a block with work")
    walked, stores = walked_bytes(body)
    # what is stored would be loaded some passes later where pages are different ones
    held = (_OWN_PAGES - 1) * _PAGE_BYTES // (2 * walked) if walked and not stores else 0
    apart = held >= _LEAST_WALKED
    most = held if apart else _MOST_PASSES
    plan = _loop_plan(instructions, body, code, closing, most) if notion == "loop" else _copies_plan(body, code, most)
    passes = plan.passes
    try:
        for candidate in plan.bodies:
            text = f"{x86.aligned(offset)}{candidate.text}"
            function = x86.function(text, instructions=body, first=candidate.first)
            harness.load(function, pages=_OWN_PAGES if apart else 1)
            cycles = slope(harness, candidate.cases, passes, effort)
            return BlockMeasurement(
                code.hex(), tuple(item.text for item in instructions), notion, candidate.own_branch, offset, passes,
                cycles, harness.clock_hz(), _notes(cycles, candidate, closing, notion, walked, apart),
            )  # fmt: skip
    except FaultError as error:
        raise MeasurementError(error.what, where="--hex", todo=error.todo) from error
    raise MeasurementError(
        "no register is free to count passes", where="--hex", todo="measure it with --notion unrolled"
    )


def refuse_unsafe(instructions: Sequence[Instruction], code: bytes) -> None:
    """Refuse what must not run.

    Raises:
        AssemblyError: the bytes are no code; a privileged instruction, one that asks for the system, leaves the block
            by a jump or call, or reaches through a segment register.
    """
    if not instructions or sum(item.length for item in instructions) != len(code):
        raise AssemblyError("is no x86-64 code from the first byte to the last", where="--hex", todo="give all bytes")
    for number, item in enumerate(instructions, 1):
        why = _why_unsafe(item, last=number == len(instructions))
        if why:
            where = Location("--hex", number)
            raise AssemblyError(f"{item.text} {why}; it is not executed", where=where, todo="leave it out of the block")


def _why_unsafe(item: Instruction, *, last: bool) -> str:
    if isa_of(_ISA).is_privileged(item):
        return "is privileged"
    if item.mnemonic.startswith(_UNSAFE):
        return "asks for the system or changes how other instructions work"
    if item.branch is not None and not (last and item.branch == "conditional" and item.target == 0):
        return "leaves the block"
    if any(reference.segment in ("fs", "gs") for reference in item.memory):
        return "reaches through a segment register"
    if any(operand.kind in ("seg", "cr", "dr") and operand.written for operand in item.operands):
        return "writes a segment register"
    low, high = x86.SAVE, x86.DATA
    for reference in item.memory:
        absolute = reference.base in (None, "rip", "eip") and reference.index is None
        if absolute and low <= reference.displacement < high:
            return "reaches memory that the measurement needs"
    return ""


def _closing_branch(instructions: Sequence[Instruction]) -> Instruction | None:
    last = instructions[-1]
    return last if last.branch == "conditional" and last.target == 0 else None


@dataclass(frozen=True, slots=True)
class _Body:
    """What a function repeats: its text, lines that set registers before, and the arguments of the two calls."""

    text: str
    first: tuple[str, ...]
    cases: tuple[int, int]
    own_branch: bool = False


@dataclass(frozen=True, slots=True)
class _Plan:
    """The ways to repeat a block, the best first, and how many passes the shorter call has for each repetition."""

    bodies: tuple[_Body, ...]
    passes: int


def _copies_plan(body: Sequence[Instruction], code: bytes, most: int) -> _Plan:
    length = sum(item.length for item in body)
    copies = min(most, max(_LEAST_COPIES, min(_WANTED_INSTRUCTIONS // len(body), _WANTED_BYTES // length)))
    return _Plan((_Body(x86.repeated(code[:length], copies), (), (1, 2)),), copies)


def _loop_plan(
    instructions: Sequence[Instruction],
    body: Sequence[Instruction],
    code: bytes,
    closing: Instruction | None,
    most: int,
) -> _Plan:
    passes = min(most, max(64, min(_MOST_PASSES, 4 * _WANTED_INSTRUCTIONS // len(body))))
    found = []
    if closing is not None:
        first = _trips_by_own_branch(body, closing)
        if first is not None:
            text = x86.as_bytes(code)
            found.append(_Body(text, first, (passes, 2 * passes), own_branch=True))
    used = _registers(instructions)
    free = next((name for name in reversed(x86.GENERAL) if name not in used), None)
    if free is not None:
        length = sum(item.length for item in body)
        found.append(_Body(x86.counted(code[:length], free), (), (passes, 2 * passes)))
    return _Plan(tuple(found), passes)


def _registers(instructions: Sequence[Instruction]) -> set[str]:
    found: set[str] = set()
    for item in instructions:
        found |= {operand.register for operand in item.operands if operand.register}
        found |= {*item.implicit_reads, *item.implicit_writes}
        found |= {name for reference in item.memory for name in (reference.base, reference.index) if name}
    return found


def _trips_by_own_branch(body: Sequence[Instruction], closing: Instruction) -> tuple[str, ...] | None:
    """Lines that set a register so that the loop's own branch ends it after as many passes as the argument says; None
    where what it tests is no linear function of the passes."""
    values: dict[str, Linear | None] = {name: symbol(name) for name in (*x86.GENERAL, "rsp")}
    compared: Comparison | None = None
    isa = isa_of(_ISA)
    for item in body:
        effect = isa.effect(item, values.get, lambda _: None)
        new = dict(effect.registers)
        for name in item.registers_written:
            values[name] = new.get(name)
        values.update(new)
        if item.flags_written:
            compared = effect.compared
    condition = isa.condition(closing)
    if compared is None or condition not in _CONTINUES:
        return None
    return _control(compared.difference, values, _CONTINUES[condition], body)


def _control(
    difference: Linear, after: dict[str, Linear | None], sign: int, body: Sequence[Instruction]
) -> tuple[str, ...] | None:
    step = 0
    for name, factor in difference.terms:
        value = after.get(name)
        moved = None if value is None else value - symbol(name)
        if moved is None or moved.terms:
            return None
        step += factor * moved.constant
    if step == 0 or (sign and (step > 0) != (sign > 0)):
        return None
    addressed = {name for item in body for ref in item.memory for name in (ref.base, ref.index)}
    candidates = [name for name, factor in difference.terms if abs(factor) == 1 and name in x86.GENERAL]
    if not candidates:
        return None
    chosen = min(candidates, key=lambda name: name in addressed)
    factor = difference.coefficient(chosen)
    others = sum(f * x86.start_value(name) for name, f in difference.terms if name != chosen)
    # the difference of the first pass is `difference`; it is to be zero in pass number `argument`
    start = factor * (step - difference.constant - others)
    if abs(start) >= 1 << 31 or abs(step) >= 1 << 20:
        return None
    return x86.trips_into(chosen, -factor * step, start)


def slope(harness: Harness, arguments: tuple[int, int], passes: int, effort: Effort) -> Figure:
    """Cycles per pass of the code that is loaded: of the passes by which calls with these two arguments differ."""
    times = repetitions(harness.call_cycles([Case(1, argument) for argument in arguments], _PROBE_SECONDS))
    cases = [Case(times, argument) for argument in arguments]
    return harness.figure(cases, lambda ends: (ends[1] - ends[0]) / (times * passes), effort)


def copies_of(harness: Harness, lines: Sequence[str], effort: Effort, first: Sequence[str] = ()) -> Figure:
    """Cycles per pass over these instructions in Intel syntax, by copies; `first` are executed before them.

    Raises:
        AssemblyError: the assembler rejects one; MeasurementError: they raise a signal here.
    """
    code = x86.assembled("\n".join(lines))
    copies = max(1, min(_WANTED_INSTRUCTIONS // len(lines), _WANTED_BYTES // len(code)))
    instructions = tuple(isa_of(_ISA).decode(code, 0))
    harness.load(x86.function(x86.repeated(code, copies), instructions=instructions, first=first))
    return slope(harness, (1, 2), copies, effort)


def walked_bytes(body: Sequence[Instruction]) -> tuple[int, bool]:
    """The most bytes by which an address that is accessed moves from pass to pass, 0 where none is known to; whether
    one does that is stored to."""
    loads, stores = BodyAccesses([address_step(item) for item in body]).moving()
    return max((abs(access.stride) for access in (*loads, *stores)), default=0), any(access.stride for access in stores)


def _notes(
    cycles: Figure, body: _Body, closing: Instruction | None, notion: Notion, walked: int, apart: bool
) -> tuple[Note, ...]:
    one = "all pages that the block touches are one, in L1; stores may meet loads there"
    few = f"the block walks on by {walked} bytes a pass, over pages that are all in L1"
    notes = [Note("few-pages", few, "assumption") if apart else Note("one-page", one, "assumption")]
    if walked and not apart and first_processor().get("vendor_id") == "AuthenticAMD":
        what = f"the block walks on by {walked} bytes a pass, over one page that has an address for each one it touches"
        how = "AMD's L1 finds a line slowly by another address than its last: up to twice as long as over an array"
        notes.append(Note("walks", f"{what}; {how} (measure kernel)"))
    if notion == "loop" and not body.own_branch:
        what = "passes are counted by a register that the block leaves alone (dec, jnz)"
        notes.append(Note("own-counter", f"{what}, in place of its branch" if closing else what, "assumption"))
    if notion == "unrolled" and closing is not None:
        notes.append(Note("branch-dropped", "the branch at the end was left out of the copies", "assumption"))
    notes += doubts(cycles)
    return tuple(notes)


def doubts(figure: Figure, what: str = "the figure") -> list[Note]:
    """A warning where a figure is not confirmed."""
    if figure.confirmed:
        return []
    total = figure.accepted + figure.refused
    if figure.value:
        text = f"{what}: no two rounds agree ({figure.accepted} of {total} samples count): it is not judged"
    else:
        text = f"{what}: too few samples count ({figure.accepted} of {total}): this host is too busy to judge it"
    return [Note("not-confirmed", text)]
