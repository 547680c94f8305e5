"""The compiled loop of a kernel: what every study needs that asks what executes, without what it asks of it.

The compiler is started before the source is analysed, where the text can be compiled as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernmodel.assembly.model import AssemblyLoop, Listing
from kernmodel.errors import Note
from kernmodel.machine.load import load_machine
from kernmodel.studies.predict.request import CodeOrigin, CodeRequest, KernelRequest

if TYPE_CHECKING:
    from kernmodel.assembly.compile import Compilation, FoundCompiler
    from kernmodel.machine.model import Machine
    from kernmodel.source.model import LoopNest


@dataclass(frozen=True, slots=True)
class CompiledLoop:
    """A kernel with the loop that executes it.

    Attributes:
        sizes: values of the size symbols; shown: with those that decide what the source says, for reports.
        notes: of the source and of the loop.
    """

    nest: LoopNest
    machine: Machine
    sizes: Mapping[str, int]
    shown: Mapping[str, int]
    loop: AssemblyLoop
    origin: CodeOrigin
    notes: tuple[Note, ...]


def compiled_loop(
    kernel: KernelRequest,
    code: CodeRequest,
    meanwhile: Callable[[LoopNest, Machine, Mapping[str, int]], None] | None = None,
) -> CompiledLoop:
    """Read the kernel, compile it (or read `code.asm`), and find its loop.

    Args:
        meanwhile: called with the nest, the machine and the sizes while the compiler runs.

    Raises:
        KernmodelError: any stage's error about its input.
    """
    machine = load_machine(kernel.machine)
    with ExitStack() as stack:
        pending = start_early(stack, kernel, code, machine, kernel.sizes)
        nest = load(kernel, kernel.sizes)
        sizes = checked_sizes(nest, kernel.sizes)
        if pending is None and code.asm is None:
            pending = start_late(stack, nest, code, machine, kernel.sizes)
        if meanwhile is not None:
            meanwhile(nest, machine, sizes)
        loop, origin = find_kernel_loop(nest, sizes, code, pending)
    notes = tuple(dict.fromkeys((*nest.notes, *loop.notes)))
    return CompiledLoop(nest, machine, sizes, shown_sizes(nest, kernel.sizes, sizes), loop, origin, notes)


def load(kernel: KernelRequest, sizes: Mapping[str, int]) -> LoopNest:
    """The nest that is asked for, read with these values of the macros that decide what the source says."""
    from kernmodel.source.load import load_kernel

    return load_kernel(kernel.kernel, sizes, nest=kernel.nest, function=kernel.function)


def checked_sizes(nest: LoopNest, point: Mapping[str, int]) -> dict[str, int]:
    """The value of every size symbol at a point, checked."""
    from kernmodel.source.sizes import sizes_of

    return sizes_of(nest, point)


def shown_sizes(nest: LoopNest, point: Mapping[str, int], sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes with the values that decide what the source says: of steps, and of conditions where -D gives them."""
    from kernmodel.source.sizes import deciding_names

    fixed = {name: value for name, value in nest.defaults.items() if name not in nest.symbols}
    return fixed | {name: point[name] for name in deciding_names(nest, point)} | dict(sizes)


def start_early(
    stack: ExitStack, kernel: KernelRequest, code: CodeRequest, machine: Machine, sizes: Mapping[str, int]
) -> Compilation | None:
    """Start the compiler before the source is analysed, where the text can be compiled as it stands."""
    from kernmodel.source.quick import quick_compilable

    if code.asm is not None:
        return None
    text = quick_compilable(kernel.kernel, sizes)
    return None if text is None else stack.enter_context(_start(text, kernel.kernel, code, machine, sizes))


def start_late(
    stack: ExitStack, nest: LoopNest, code: CodeRequest, machine: Machine, sizes: Mapping[str, int]
) -> Compilation:
    """Start the compiler on what the analysed source becomes as a function (bare loop nests)."""
    from kernmodel.source.codegen import compilable_source

    return stack.enter_context(_start(compilable_source(nest, sizes), nest.file, code, machine, sizes))


def chosen_compiler(machine: Machine, code: CodeRequest) -> tuple[FoundCompiler, tuple[str, ...]]:
    """The compiler that is run for this code on this machine, and its flags.

    Raises:
        ToolError: none is installed, or not the one requested.
    """
    from kernmodel.assembly.compile import find_compiler

    compiler = find_compiler(machine.compilers, code.compiler)
    return compiler, compiler.flags if code.flags is None else code.flags


def _start(text: str, name: str, code: CodeRequest, machine: Machine, sizes: Mapping[str, int]) -> Compilation:
    from kernmodel.assembly.compile import start_compile
    from kernmodel.source.quick import compiler_defines

    compiler, flags = chosen_compiler(machine, code)
    macros = {macro: int(value) for macro, value in compiler_defines(text, sizes).items()}
    return start_compile(text, name=name, compiler=compiler, flags=flags, defines=macros)


def find_kernel_loop(
    nest: LoopNest, sizes: Mapping[str, int], code: CodeRequest, pending: Compilation | None
) -> tuple[AssemblyLoop, CodeOrigin]:
    """The loop of the kernel in the user's assembly or in what the compiler made."""
    from kernmodel.assembly.listing import read_listing
    from kernmodel.assembly.select import with_iterations
    from kernmodel.studies.predict.expectation import expectation, find_loop

    if pending is not None:
        made = pending.finish()
        listing, region = read_listing(made.text, f"assembly of {made.name}"), None
        origin = CodeOrigin(None, made.compiler, made.version, made.flags, made.command)
    else:
        file = code.asm or "-"
        listing, region = read_code(file, code)
        origin = CodeOrigin(file, None, None, (), ())
    told = expectation(nest, sizes, origin.flags)
    loop = find_loop(listing, told, loop=code.loop, lines=code.lines, region=region)
    return with_iterations(loop, code.iterations_per_pass), origin


def read_code(file: str, code: CodeRequest) -> tuple[Listing, tuple[int, int] | None]:
    """The listing of a file (or standard input) and its marked region, if it has one."""
    from kernmodel.assembly.listing import read_file
    from kernmodel.assembly.markers import marked_region

    listing, text = read_file(Path(file), syntax=code.syntax)
    return listing, marked_region(listing, text)
