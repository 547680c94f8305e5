"""Kernels: the loop of a C source as the compiler made it, run on this host over its own arrays.

The assembly that is analysed is the assembly that is linked; a function around it calls it over and over with arrays
of normal numbers. Time of a call is that of all its iterations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from kernmodel.code.model import AssemblyLoop
from kernmodel.errors import InputError, MeasurementError, Note
from kernmodel.isa import isa_of
from kernmodel.measure.bandwidth import level_sizes
from kernmodel.measure.blocks import doubts
from kernmodel.measure.host import APART, CALLS_TO_TELL, Buffer, Case, Effort, Harness, repetitions
from kernmodel.measure.host_topology import HostTopology
from kernmodel.measure.model import KernelMeasurement, PlacedArray
from kernmodel.measure.samples import LEAST_LONG, LONG, REPEATED, Figure, is_repeated, repeated
from kernmodel.source.emit.compilable import compilable_source, function_name
from kernmodel.source.model import Array, LoopNest
from kernmodel.source.nest.counting import index_range, numeric_loops, put_in
from kernmodel.source.nest.sizes import iterations_per_sweep, shape_of
from kernmodel.source.parse.syntax import Node, c_ast, parse_program
from kernmodel.value_types import dataclass

EFFORT = Effort(samples=40, rounds=3, seconds=4.0)
_LONG_CALL = 3_000_000
_FEW = 8
"""Samples of a round at most, where a call takes longer than `_LONG_CALL` cycles."""
_LEAST_TIMES, _MOST_TIMES, _APART_SECONDS = 3, 5, 0.25
"""How often a kernel is measured, and the time from the beginning of one to that of the next."""
_MOST_SECONDS = 15.0
"""Time after which it is not measured again: rounds of calls that take seconds are as far apart as those."""
_MOST_MEMORY = 1 << 31
_SCALAR = {"double": "0.5", "float": "0.5f"}
_STEPS = 60
_LEAST = 8
"""Smallest value that a size is scaled to."""


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions of a measurement, named as the options of all commands.

    Attributes:
        align: address of the loop modulo 64, None: as the compiler places it.
        data_align: bytes at multiples of which arrays begin; array_offsets: where single ones begin modulo a cache
            line.
        huge: whether arrays lie in huge pages.
    """

    align: int | None = None
    data_align: int | None = None
    array_offsets: tuple[tuple[str, int], ...] = ()
    huge: bool = True

    def start(self, number: int, array: str) -> int:
        """Offset of the start of an array from a multiple of 2 MiB."""
        given = dict(self.array_offsets)
        step = 64 if self.data_align is None else max(self.data_align, 1)
        base = -(-number * APART // max(step, 64)) * max(step, 64)
        if array in given:
            return base + given[array]
        # at multiples of `data_align`, and at none of more
        return base + (step if self.data_align is not None and self.data_align < 64 else 0)


@dataclass(frozen=True, slots=True)
class KernelCode:
    """The code of a kernel: its assembly, the loop in it, and what made it.

    Attributes:
        command: of the compiler that links it.
        flags: with which it was compiled; compiler, version: family and version as the compiler signs them. None, and
            no flags, where the assembly was given.
    """

    assembly: str
    loop: AssemblyLoop
    command: str
    flags: tuple[str, ...] = ()
    compiler: str | None = None
    version: str | None = None


_START = 1000


def sizes_in(nest: LoopNest, sizes: Mapping[str, int], wanted_bytes: float) -> dict[str, int]:
    """Sizes near those given, all by one factor, at which the arrays together have so many bytes.

    Raises:
        InputError: the extent of an array is not declared, or no size changes them.
    """
    low, high = 1e-6, 1e6
    for _ in range(_STEPS):
        middle = (low * high) ** 0.5
        if data_bytes(nest, _scaled(nest, sizes, middle)) > wanted_bytes:
            high = middle
        else:
            low = middle
    found = _scaled(nest, sizes, low)
    got = data_bytes(nest, found)
    if not 0.5 * wanted_bytes <= got <= 1.5 * wanted_bytes:
        what = f"no sizes near {dict(sizes)} give {wanted_bytes / 1024:.0f} KiB of data"
        raise InputError(what, where=nest.name, todo="give sizes with -D, without --level")
    return found


def starting_sizes(nest: LoopNest, given: Mapping[str, int]) -> dict[str, int]:
    """The sizes from which those of a level are scaled: as given, and 1,000 for extents of arrays without a value."""
    return {name: _START for name in _extents(nest) if name not in nest.defaults} | dict(given)


def _extents(nest: LoopNest) -> set[str]:
    """The sizes that say how large arrays are; all where no array is declared with its extents."""
    free = {str(s) for array in nest.arrays.values() for extent in array.shape for s in extent.free_symbols}
    return {name for name, symbol in nest.symbols.items() if str(symbol) in free} or set(nest.symbols)


def _scaled(nest: LoopNest, sizes: Mapping[str, int], factor: float) -> dict[str, int]:
    """Each size by the factor, which is spread over the dimensions of the largest array."""
    names = _extents(nest)
    part = factor ** (1 / max(1, len(names)))
    return {name: max(_LEAST, round(value * part)) if name in names else value for name, value in sizes.items()}


def data_bytes(nest: LoopNest, sizes: Mapping[str, int]) -> int:
    """Bytes of all arrays."""
    return sum(array_elements(nest, array, sizes) * array.element.size_bytes for array in nest.arrays.values())


def array_elements(nest: LoopNest, array: Array, sizes: Mapping[str, int]) -> int:
    """Elements of an array: as declared, else one more than the largest index."""
    if array.shape:
        return prod(shape_of(array, sizes))
    loops = numeric_loops(nest.loops, sizes)
    most = 0
    variables = [loop.variable for loop in nest.loops]
    for access in nest.accesses:
        if access.array != array.name:
            continue
        parts = None if access.indirect else put_in(access.offset, sizes, variables).linear(variables)
        found = (
            None if parts is None else index_range({str(k): int(v) for k, v in parts[0].items()}, int(parts[1]), loops)
        )
        if found is None:
            what = f"how large {array.name} is cannot be told from the source"
            raise InputError(what, where=nest.file, todo="declare its extents")
        most = max(most, found[1] + 1)
    return most


def level_bytes(topology: HostTopology, level: str) -> float:
    """Bytes of data that lie in a level.

    Raises:
        InputError: there is no such level, or not enough memory.
    """
    sizes = level_sizes(topology)
    if level not in sizes:
        raise InputError(f"data cannot be placed in {level} here", where="--level", todo=f"choose {', '.join(sizes)}")
    return sizes[level]


def measure_kernel(
    nest: LoopNest,
    sizes: Mapping[str, int],
    code: KernelCode,
    defines: Mapping[str, str | int],
    *,
    level: str = "",
    conditions: Conditions | None = None,
    topology: HostTopology,
    effort: Effort = EFFORT,
) -> KernelMeasurement:
    """Cycles per iteration of a kernel on this host.

    Args:
        sizes: of every size symbol; defines: the macros that it was compiled with.
        level: where the data lie, "" where nobody asked.

    Raises:
        InputError: a parameter that cannot be given; MeasurementError: the host does not let it be measured.
    """
    conditions = conditions or Conditions()
    arrays = list(nest.arrays.values())
    needed = data_bytes(nest, sizes)
    if needed > min(_MOST_MEMORY, topology.memory_bytes / 2):
        what = f"the arrays need {needed / 2**20:.0f} MiB"
        raise MeasurementError(what, where=nest.name, todo="give smaller sizes, or measure on a host with more memory")
    driver = _driver(nest, sizes, defines)
    text = code.assembly if conditions.align is None else aligned_assembly(code, conditions.align)
    with Harness({"kernel.s": text, "driver.c": driver}, flags=(), compiler=code.command) as harness:
        harness.take_kernel()
        address = loop_address(harness.program, function_name(nest), code.loop)
        placed = tuple(_place(harness, nest, number, array, sizes, conditions) for number, array in enumerate(arrays))
        iterations = iterations_per_sweep(nest, sizes)
        begun = time.monotonic()
        alone = harness.call_cycles([Case(1)])
        shared = needed > topology.private_bytes
        taken = effort if alone < _LONG_CALL else long_effort(effort, (time.monotonic() - begun) / CALLS_TO_TELL)
        taken = taken.beside_others() if shared else taken
        times = repetitions(alone)
        figures = spaced(lambda: harness.figure([Case(times)], lambda ends: ends[0] / (times * iterations), taken))
        cycles = repeated(figures, shared=shared)
        clock = harness.clock_hz()
        long = cycles.value * iterations > LONG * harness.brackets().clock_cycles
    notes = (
        *_index_notes(nest), *_notes(cycles, address, conditions, placed, long=long), *_repetition_notes(figures)
    )  # fmt: skip
    return KernelMeasurement(
        nest.name, dict(sizes), level, needed, iterations, cycles, clock, address % 64 if address is not None else None,
        placed, code.compiler, code.version, code.flags, notes,
    )  # fmt: skip


def long_effort(effort: Effort, call_seconds: float) -> Effort:
    """The effort for calls of so many seconds each: as many samples a round as let all rounds be made in time."""
    fit = int(effort.seconds / effort.rounds / call_seconds)
    return replace(effort, samples=min(max(fit, LEAST_LONG), _FEW))


def spaced(measure: Callable[[], Figure]) -> list[Figure]:
    """The same figure several times, some time apart, until two confirm one another.

    Rounds of a short call are over within milliseconds, in which neighbours, prefetchers and how caches replace their
    lines stay as they are: the same copy in L3 took 5.5 cycles a line or 7.5, each confirmed, and changed from one to
    the other within a second.
    """
    found: list[Figure] = []
    end = time.monotonic() + _MOST_SECONDS
    while True:
        begun = time.monotonic()
        found.append(measure())
        if len(found) >= (_LEAST_TIMES if is_repeated(found) else _MOST_TIMES) or time.monotonic() > end:
            return found
        time.sleep(max(0.0, begun + _APART_SECONDS - time.monotonic()))


def _index_notes(nest: LoopNest) -> Iterator[Note]:
    """A warning where elements are chosen by values of an array, which nobody gave."""
    names = ", ".join(dict.fromkeys(access.array for access in nest.accesses if access.indirect))
    if names:
        yield Note("index-zeros", f"index arrays hold zeros: every access of {names} through them is of one element")


def _repetition_notes(figures: Sequence[Figure]) -> Iterator[Note]:
    """A warning where confirmed figures differ from time to time."""
    told = [one.value for one in figures if one.confirmed]
    if not told or len(figures) == 1 or is_repeated(figures):
        return
    what = f"no two of {len(figures)} figures, some time apart, agree within {REPEATED:.0%}"
    between = f"{min(told):.3g} to {max(told):.3g} cycles an iteration" if len(told) > 1 else "one alone is confirmed"
    yield Note("not-repeated", f"{what}: {between}")


def _place(
    harness: Harness, nest: LoopNest, number: int, array: Array, sizes: Mapping[str, int], conditions: Conditions
) -> PlacedArray:
    size = array_elements(nest, array, sizes) * array.element.size_bytes
    kind = "zero" if array.element.kind == "integer" else array.element.name
    fill = kind if kind in ("double", "float") else "zero"
    place = harness.buffer(number, Buffer(size + 64, conditions.start(number, array.name), conditions.huge, fill))
    huge = place.huge_bytes >= size // 2 and place.huge_bytes > 0
    return PlacedArray(array.name, size, place.address % 64, huge)


def _notes(
    cycles: Figure, address: int | None, conditions: Conditions, placed: Sequence[PlacedArray], *, long: bool
) -> tuple[Note, ...]:
    notes = doubts(cycles)
    if address is None:
        what = "the loop that was analysed was not found again in the linked program"
        notes.append(Note("other-loop", f"{what}: another may have been measured"))
    large = [one for one in placed if one.size_bytes >= 2 << 20]
    if conditions.huge and any(not one.huge for one in large):
        notes.append(Note("no-huge-pages", "huge pages were asked for and not got: more time goes into the TLB"))
    if long and cycles.confirmed:
        what = "calls take milliseconds, in which a neighbour on the core or in the caches does not show"
        notes.append(Note("long-samples", f"{what}: on a busy host the figure may be too high"))
    return tuple(notes)


def _driver(nest: LoopNest, sizes: Mapping[str, int], defines: Mapping[str, str | int]) -> str:
    """C that calls the kernel as often as it is told, with buffers for its arrays.

    Raises:
        InputError: a parameter that is no array, size or number.
    """
    source = compilable_source(nest, defines)
    program = parse_program(source, nest.file, dict(defines))
    name = function_name(nest)
    function = next((one for one in program.functions if one.decl.name == name), None)
    if function is None:
        raise InputError(f"there is no function {name}", where=nest.file, todo="choose one with --function")
    parameters = [] if function.decl.type.args is None else function.decl.type.args.params
    types, values = [], []
    arrays = list(nest.arrays)
    for parameter in parameters:
        kind, value = _argument(parameter, arrays, sizes, nest)
        if kind != "void":
            types.append(kind)
            values.append(value)
    outside = [array for array in arrays if f"buffers[{arrays.index(array)}]" not in values]
    if outside:
        what = f"{outside[0]} is no parameter of {name}, so its place cannot be chosen"
        raise InputError(what, where=nest.file, todo="make the arrays parameters of the function")
    return (
        f"extern void {name}({', '.join(types) or 'void'});\n"
        "void km_kernel(long repetitions, long argument, char **buffers)\n{\n"
        "    static double results[64];\n    (void)argument, (void)results;\n"
        f"    for (long r = 0; r < repetitions; r++)\n        {name}({', '.join(values)});\n}}\n"
    )


def _argument(parameter: Node, arrays: Sequence[str], sizes: Mapping[str, int], nest: LoopNest) -> tuple[str, str]:
    """Type and value of a parameter."""
    if isinstance(parameter, c_ast.Typename):
        return "void", ""
    if isinstance(parameter.type, c_ast.ArrayDecl | c_ast.PtrDecl):
        if parameter.name in arrays:
            return "char *", f"buffers[{arrays.index(parameter.name)}]"
        return "double *", "results"
    kind = " ".join(getattr(parameter.type.type, "names", ()))
    if parameter.name in sizes:
        return kind if kind in _INTEGERS else "long", str(sizes[parameter.name])
    if kind in _SCALAR:
        return kind, _SCALAR[kind]
    if kind in _INTEGERS:
        return kind, "1"
    todo = "make it an array, a size, or a double or float"
    raise InputError(f"the parameter {parameter.name} cannot be given a value", where=nest.file, todo=todo)


_INTEGERS = ("int", "long", "unsigned int", "unsigned", "unsigned long", "long int", "size_t", "short", "long long")


def aligned_assembly(code: KernelCode, align: int) -> str:
    """The assembly with the head of the loop at this address modulo 64.

    Raises:
        MeasurementError: the loop has no label of its own in it.
    """
    label = f"{code.loop.label}:"
    lines = code.assembly.splitlines()
    at = next((number for number, line in enumerate(lines) if line.strip().startswith(label)), None)
    if not code.loop.label or at is None:
        raise MeasurementError("the loop has no label to align", where="--align", todo="leave out --align")
    before = [line for line in lines[max(0, at - 3) : at] if not line.strip().startswith(".p2align")]
    return (
        "\n".join(
            [*lines[: max(0, at - 3)], *before, ".p2align 6", *([f".nops {align}"] if align else []), *lines[at:]]
        )
        + "\n"
    )


def loop_address(program: bytes, function: str, loop: AssemblyLoop) -> int | None:
    """Where the loop lies in the linked program: the one place in its function with the same instructions."""
    code = isa_of(loop.isa).read_object(program, "the linked program")
    wanted = [item.form for item in loop.instructions]
    found = []
    for symbol in code.symbols:
        if symbol.name.partition(".")[0] != function or not symbol.size:
            continue
        section = next(one for one in code.sections if one.number == symbol.section)
        items = list(code.instructions(section, symbol.address, symbol.address + symbol.size))
        forms = [item.form for item in items]
        found += [items[at].address for at in range(len(forms)) if forms[at : at + len(wanted)] == wanted]
    return found[0] if found else None
