"""The instruction mix of a kernel, of a listing or of a file, and what the source says beside it.

docs/instruction-mix.md says what is counted, which loops weigh in, and what the reasons mean.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING

from kernmodel.code.mix import InstructionMix, combined_mix, instruction_mix
from kernmodel.errors import Note, UsageError
from kernmodel.isa import isa_of
from kernmodel.isa.model import FpOperation
from kernmodel.isa.protocol import Registers
from kernmodel.studies.predict.request import CodeOrigin, CodeRequest, KernelRequest, Point
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.code.model import AddressStream, AssemblyLoop
    from kernmodel.machine.model import Machine
    from kernmodel.source.model import Access, LoopNest
    from kernmodel.studies.predict.stages import Stages


@dataclass(frozen=True, slots=True)
class SourceComparison:
    """A count of the source beside that of the code, both per source iteration.

    Attributes:
        what: "bytes loaded", "bytes stored", "FLOP", or a kind of operation ("additions"), lanes counted.
        source, code: the two counts.
        reason: why they differ, or how the code does it; empty where there is nothing to say.
    """

    what: str
    source: float
    code: float
    reason: str


@dataclass(frozen=True, slots=True)
class MixPart:
    """One loop that weighs in.

    Attributes:
        mix: of this loop alone.
        weight: iterations (or passes) that it executes, 1 where it is the only loop.
        nest, sizes: the source where there is one, and the sizes.
        comparisons: the source beside the code; empty without a source.
    """

    mix: InstructionMix
    weight: float
    loop: AssemblyLoop
    origin: CodeOrigin
    nest: LoopNest | None = None
    sizes: Mapping[str, int] | None = None
    comparisons: tuple[SourceComparison, ...] = ()


@dataclass(frozen=True, slots=True)
class MixAnswer:
    """The answer of `kernmodel mix`; `parts` is empty where the mix is given as a file."""

    name: str
    mix: InstructionMix
    parts: tuple[MixPart, ...]
    machine: Machine | None
    notes: tuple[Note, ...]


def mix_of_kernel(kernel: KernelRequest, code: CodeRequest, nests: Sequence[int] = ()) -> MixAnswer:
    """The mix of a kernel's main loop; of several nests of its file, each weighted by its iterations.

    Args:
        nests: numbers of the nests (1-based); empty for the one that `kernel` names.

    Raises:
        KernmodelError: any stage's error about its input.
    """
    from kernmodel.studies.predict.stages import Stages

    stages = Stages()
    points = [Point(replace(kernel, nest=number), code) for number in nests] or [Point(kernel, code)]
    parts = tuple(_part_of_kernel(stages, point, alone=len(points) == 1) for point in points)
    read = [stages.nest(point.kernel) for point in points]
    name = read[0].name if len(read) == 1 else read[0].file
    notes = (*(note for nest in read for note in nest.notes), *_steady_state(stages, points))
    return _answer(name, parts, stages.machine(kernel.machine), notes)


def mix_of_code(
    file: str, code: CodeRequest, *, machine: str | None = None, passes: Mapping[int, float] | None = None
) -> MixAnswer:
    """The mix of a loop of a listing, an object file or "-"; or of several, each weighted by its passes.

    Args:
        passes: how often each loop (by number) is passed; None for the one that `code` names or that is found.

    Raises:
        KernmodelError: the file cannot be read, or no loop can be chosen.
    """
    from kernmodel.code.select import select_without_source, with_iterations
    from kernmodel.studies.predict.compiled import read_code

    target = _target(machine)
    listing, region = read_code(file, code, None if target is None else target.isa)
    origin = CodeOrigin(file, None, None, (), ())
    if passes is None:
        loop = select_without_source(listing, loop=code.loop, lines=code.lines, region=region)
        chosen = [(with_iterations(loop, code.iterations_per_pass), 1.0)]
    else:
        chosen = [(select_without_source(listing, loop=number), count) for number, count in passes.items()]
    parts = tuple(MixPart(instruction_mix(loop), weight, loop, origin) for loop, weight in chosen)
    return _answer(file, parts, target, ())


def mix_of_file(file: str, *, machine: str | None = None) -> MixAnswer:
    """The mix that a file describes (docs/instruction-mix.md).

    Raises:
        InputError: as `read_mix`.
    """
    from kernmodel.code.mix_file import read_mix

    target = _target(machine)
    mix = read_mix(Path(file))
    return MixAnswer(file, mix, (), target, (*mix.notes, *_nothing_notes(mix)))


def _target(machine: str | None) -> Machine | None:
    if machine is None:
        return None
    from kernmodel.machine.load import load_machine  # a mix without a machine reads no YAML

    return load_machine(machine)


def _answer(name: str, parts: tuple[MixPart, ...], machine: Machine | None, notes: tuple[Note, ...]) -> MixAnswer:
    mix = parts[0].mix if len(parts) == 1 else combined_mix([(part.mix, part.weight) for part in parts])
    everything = dict.fromkeys((*notes, *mix.notes, *_nothing_notes(mix)))
    return MixAnswer(name, mix, parts, machine, tuple(everything))


def _nothing_notes(mix: InstructionMix) -> tuple[Note, ...]:
    """That there is nothing to compute or nothing to move, which decides what a roofline can say."""
    notes = []
    if not mix.flops:
        text = "no floating-point operation: the intensity is 0 FLOP/B, and a roofline shows bandwidth only"
        notes.append(Note("no-flop", text, "assumption"))
    if not mix.bytes:
        text = "no memory access: there is no intensity, and a roofline shows compute roofs only"
        notes.append(Note("no-access", text, "assumption"))
    return tuple(notes)


def _part_of_kernel(stages: Stages, point: Point, *, alone: bool) -> MixPart:
    from kernmodel.source.nest.sizes import iterations_per_sweep

    code = stages.code(point, stages.machine(point.kernel.machine))
    (sizes, shown), nest, mix = stages.sizes(point, point), stages.nest(point.kernel), instruction_mix(code.loop)
    if not alone and not code.loop.iterations_per_pass:
        what = f"{nest.name}: it is not known how many iterations a pass of its loop executes"
        raise UsageError(what, where="--nests", todo="leave this nest out, or leave the loop to be found")
    weight = 1.0 if alone else float(iterations_per_sweep(nest, sizes))
    comparisons = compare_with_source(nest, code.loop, mix)
    return MixPart(mix, weight, code.loop, code.origin, nest, shown, comparisons)


def _steady_state(stages: Stages, points: Sequence[Point]) -> Iterator[Note]:
    """That only the main loop is counted, with the iterations that say how far that holds."""
    from kernmodel.source.nest.sizes import trip_counts

    for point in points:
        trips = trip_counts(stages.nest(point.kernel), stages.sizes(point, point)[0])[-1]
        text = (
            f"the mix is that of the main loop: what runs before, after and around it is left out; the inner loop runs "
            f"over {trips:.10g} iterations at a time"
        )
        yield Note("main-loop-only", text, "assumption")


def compare_with_source(nest: LoopNest, loop: AssemblyLoop, mix: InstructionMix) -> tuple[SourceComparison, ...]:
    """What the source says beside what the code does; empty where the iterations of a pass are not known."""
    if not loop.iterations_per_pass:
        return ()
    return (_bytes_moved(nest, loop, mix, False), _bytes_moved(nest, loop, mix, True), *_operations(nest, mix))


def _bytes_moved(nest: LoopNest, loop: AssemblyLoop, mix: InstructionMix, stored: bool) -> SourceComparison:
    inner = [a for a in nest.accesses if a.depth == len(nest.loops) and (a.kind == "write") == stored]
    resting = [access for access in inner if not access.moves(nest.loops)]
    source = _source_bytes(nest, inner)
    code = sum(kind.size_bytes * count for kind, count in mix.memory if kind.store == stored)
    fixed = _fixed_bytes(loop, stored)
    moving_source, moving_code = source - _source_bytes(nest, resting), code - sum(fixed.values())
    reasons = []
    if resting and sum(fixed.values()) < _source_bytes(nest, resting):
        names = ", ".join(dict.fromkeys(access.text for access in resting))
        verb = "does" if len(resting) == 1 else "do"
        reasons.append(f"{names} {verb} not move in the inner loop: kept in a register")
    if not isclose(moving_source, moving_code):
        reasons.append(_moving_reason(moving_source, moving_code, stored, mix))
    verb = "to" if stored else "from"
    reasons += [f"{count:.4g} B {verb} {place}" for place, count in fixed.items()]
    return SourceComparison("bytes stored" if stored else "bytes loaded", source, code, "; ".join(reasons))


def _source_bytes(nest: LoopNest, accesses: Sequence[Access]) -> float:
    return float(sum(nest.bytes_of(access) * access.count for access in accesses))


def _moving_reason(source: float, code: float, stored: bool, mix: InstructionMix) -> str:
    if code < source:
        if stored:
            return "elements written more than once are stored once"
        return "elements that several references or iterations share are loaded once"
    if any(kind.masked and kind.store == stored for kind, _ in mix.memory):
        return "masked accesses count at full width"
    return "elements are stored more than once" if stored else "elements are loaded more than once"


def _fixed_bytes(loop: AssemblyLoop, stored: bool) -> dict[str, float]:
    """Bytes per source iteration that the code moves at addresses that do not advance, by where they are."""
    found: Counter[str] = Counter()
    for stream in loop.streams:
        if stream.stride_bytes == 0 and (stream.reference.written if stored else stream.reference.read):
            found[_place(stream, isa_of(loop.isa).registers)] += stream.reference.size_bytes
    return {place: count / (loop.iterations_per_pass or 1.0) for place, count in found.items() if count}


def _place(stream: AddressStream, registers: Registers) -> str:
    base = stream.reference.base
    if base == registers.stack_pointer:
        return "the stack"
    return "constants" if base == registers.program_counter else "addresses that do not move"


_KINDS: Mapping[str, tuple[tuple[FpOperation, ...], tuple[str, ...]]] = {
    "additions": (("add", "fma"), ("add", "fma")),
    "multiplications": (("mul", "fma"), ("mul", "fma")),
    "divisions": (("div",), ("div",)),
    "square roots": (("sqrt",), ("sqrt",)),
    "comparisons": (("compare",), ("compare",)),
}
"""Operations of instructions and of the source that count as one kind."""


def _operations(nest: LoopNest, mix: InstructionMix) -> tuple[SourceComparison, ...]:
    """FLOP, and each kind of operation that either of the two has, with every lane counted."""
    done: defaultdict[str, float] = defaultdict(float)
    for kind, count in mix.fp:
        done[kind.operation] += kind.lanes * count
    said: Counter[str] = Counter()
    for flops in nest.operations.flops:
        said[flops.operation] += flops.count
    rows = []
    for what, (by_code, by_source) in _KINDS.items():
        source, code = float(sum(said[name] for name in by_source)), float(sum(done[name] for name in by_code))
        if source or code:
            rows.append(SourceComparison(what, source, code, _operation_reason(what, source, code, done)))
    source, code = float(nest.operations.flops_per_iteration), mix.flops
    reason = "" if isclose(source, code) else _flop_reason(source, code, nest, mix, done)
    return (SourceComparison("FLOP", source, code, reason), *rows)


def _operation_reason(what: str, source: float, code: float, done: Mapping[str, float]) -> str:
    fused = done["fma"]
    reasons = [f"{fused:.4g} by FMA instructions"] if fused and what in ("additions", "multiplications") else []
    if code < source and what in ("divisions", "square roots") and done["other"]:
        reasons.append("approximations (rcp, rsqrt) and their refinement replace them")
    return "; ".join(reasons)


def _flop_reason(source: float, code: float, nest: LoopNest, mix: InstructionMix, done: Mapping[str, float]) -> str:
    names = {flops.name for flops in nest.operations.flops if flops.operation == "function" and flops.name}
    if code > source and any(kind.masked for kind, _ in mix.fp):
        return "masked lanes count in full, and the code computes both sides of a condition"
    if code > source and names:
        return f"the code computes {', '.join(sorted(names))}, which count no FLOP in the source"
    if done["other"]:
        return "approximations (rcp, rsqrt) and their refinement replace divisions or square roots"
    if code > source:
        return "the code computes more than the source says (recomputed or speculative values)"
    return "the code computes common or constant subexpressions once"
