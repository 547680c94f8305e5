"""The compiled loop of a kernel: what every study needs that asks what executes, without what it asks of it.

The compiler is started before the source is analysed, where the text can be compiled as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from kernmodel.code.model import AssemblyLoop
from kernmodel.isa.model import Listing
from kernmodel.studies.predict.request import CodeOrigin, CodeRequest, KernelRequest

if TYPE_CHECKING:
    from kernmodel.code.compile import Compilation, FoundCompiler
    from kernmodel.machine.model import Machine
    from kernmodel.source.model import LoopNest


def start_early(stack: ExitStack, kernel: KernelRequest, code: CodeRequest, machine: Machine) -> Compilation | None:
    """Start the compiler before the source is analysed, where the text can be compiled as it stands."""
    from kernmodel.source.emit.whole_function import quick_compilable

    if code.asm is not None:
        return None
    text = quick_compilable(kernel.kernel, kernel.defines, function=kernel.function)
    if text is None:
        return None
    return stack.enter_context(_start(text, kernel.kernel, code, machine, kernel, kernel.defines))


def start_late(
    stack: ExitStack, nest: LoopNest, code: CodeRequest, machine: Machine, kernel: KernelRequest
) -> Compilation:
    """Start the compiler on what the analysed source becomes as a function (bare loop nests)."""
    from kernmodel.source.emit.compilable import compilable_source, defines_beside

    text = compilable_source(nest, kernel.defines, kernel.include)
    defines = {**defines_beside(nest, kernel.defines, kernel.include), **kernel.defines}
    return stack.enter_context(_start(text, nest.file, code, machine, kernel, defines))


def chosen_compiler(machine: Machine, code: CodeRequest) -> tuple[FoundCompiler, tuple[str, ...]]:
    """The compiler that is run for this code on this machine, and its flags.

    Raises:
        ToolError: none is installed, or not the one requested.
    """
    from kernmodel.code.compile import find_compiler

    compiler = find_compiler(machine.compilers, code.compiler, machine.isa)
    return compiler, compiler.flags if code.flags is None else code.flags


def _start(
    text: str,
    name: str,
    code: CodeRequest,
    machine: Machine,
    kernel: KernelRequest,
    defines: Mapping[str, str | int],
) -> Compilation:
    from kernmodel.code.compile import start_compile
    from kernmodel.source.emit.whole_function import compiler_defines

    compiler, flags = chosen_compiler(machine, code)
    macros = compiler_defines(text, defines)
    lines = kernel.is_one_of_several
    return start_compile(
        text, name=name, compiler=compiler, flags=flags, defines=macros, include=kernel.include, lines=lines
    )


def find_kernel_loop(
    nest: LoopNest, sizes: Mapping[str, int], code: CodeRequest, pending: Compilation | None, isa_name: str
) -> tuple[AssemblyLoop, CodeOrigin]:
    """The loop of the kernel in the user's assembly or in what the compiler made, which has to be of `isa_name`."""
    from kernmodel.code.listing import read_listing
    from kernmodel.code.markers import lines_of_source
    from kernmodel.code.match import choose_loop
    from kernmodel.code.select import with_iterations
    from kernmodel.studies.predict.expectation import expectation

    if pending is not None:
        made = pending.finish()
        listing, region = read_listing(made.text, f"assembly of {made.name}", isa_name=isa_name), None
        source_lines = lines_of_source(made.text, nest.file)
        origin = CodeOrigin(None, made.compiler, made.version, made.flags, made.command)
    else:
        file = code.asm or "-"
        listing, region = read_code(file, code, isa_name)
        source_lines = {}
        origin = CodeOrigin(file, None, None, (), ())
    told = expectation(nest, sizes, origin.flags)
    told = replace(told, lines=nest.inner_lines, source_lines=source_lines)
    loop = choose_loop(listing, told, loop=code.loop, lines=code.lines, region=region)
    return with_iterations(loop, code.iterations_per_pass), origin


def read_code(file: str, code: CodeRequest, isa_name: str | None = None) -> tuple[Listing, tuple[int, int] | None]:
    """The listing of a file (or standard input) and its marked region, if it has one."""
    from kernmodel.code.listing import read_file
    from kernmodel.code.markers import marked_region

    listing, text = read_file(file, syntax=code.syntax, isa_name=isa_name)
    return listing, marked_region(listing, text)
