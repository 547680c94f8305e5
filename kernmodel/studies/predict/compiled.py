"""The compiled loop of a kernel: what every study needs that asks what executes, without what it asks of it.

The compiler is started before the source is analysed, where the text can be compiled as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import field, replace
from typing import TYPE_CHECKING, Protocol

from kernmodel.code.model import AssemblyLoop
from kernmodel.errors import InputError, UsageError
from kernmodel.isa.model import Listing
from kernmodel.patterns import pattern
from kernmodel.source.text import is_description
from kernmodel.studies.predict.request import CodeOrigin, CodeRequest, KernelRequest
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.code.compile import Compilation, CompiledAssembly, FoundCompiler
    from kernmodel.machine.model import Compiler
    from kernmodel.source.model import LoopNest


class Toolchain(Protocol):
    """What code is compiled for: a `Machine`, or this host."""

    @property
    def isa(self) -> str:
        """Name of the instruction set."""
        ...

    @property
    def compilers(self) -> tuple[Compiler, ...]:
        """Compilers and their flags, the preferred first."""
        ...


def refuse_description(kernel: KernelRequest, code: CodeRequest) -> None:
    """Refuse to compile what is described, rather than written in C.

    Raises:
        InputError: it is, and there is no assembly of it.
    """
    if code.asm is None and is_description(kernel.kernel):
        todo = "give --asm FILE, or ask `traffic --cycles` for the transfers and `roofline` for the bounds"
        what = "describes a kernel, and no code of it: its in-core part is not known"
        raise InputError(what, where=kernel.kernel, todo=todo)


def start_early(stack: ExitStack, kernel: KernelRequest, code: CodeRequest, machine: Toolchain) -> Compilation | None:
    """Start the compiler before the source is analysed, where the text can be compiled as it stands."""
    from kernmodel.source.emit.whole_function import quick_compilable

    refuse_description(kernel, code)
    if code.asm is not None:
        return None
    text = quick_compilable(kernel.kernel, kernel.defines, function=kernel.function)
    if text is None:
        return None
    return stack.enter_context(_start(text, kernel.kernel, code, machine, kernel, kernel.defines))


def start_late(
    stack: ExitStack, nest: LoopNest, code: CodeRequest, machine: Toolchain, kernel: KernelRequest
) -> Compilation:
    """Start the compiler on what the analysed source becomes as a function (bare loop nests)."""
    from kernmodel.source.emit.compilable import compilable_source, defines_beside

    text = compilable_source(nest, kernel.defines, kernel.include)
    defines = {**defines_beside(nest, kernel.defines, kernel.include), **kernel.defines}
    return stack.enter_context(_start(text, nest.file, code, machine, kernel, defines))


def chosen_compiler(machine: Toolchain, code: CodeRequest) -> tuple[FoundCompiler, tuple[str, ...]]:
    """The compiler that is run for this code on this machine, and its flags.

    Raises:
        ToolError: none is installed, or not the one requested.
    """
    from kernmodel.code.compile import find_compiler

    compiler = find_compiler(machine.compilers, code.compiler, machine.isa)
    return compiler, compiler.flags if code.flags is None else code.flags


_SIMD = pattern(r"^[ \t]*#[ \t]*pragma[ \t]+omp\b.*\bsimd\b", re.MULTILINE)
"""Pragmas that decide the code of a loop, wherever threads are."""
_OPENMP_SIMD = frozenset({"gcc", "clang", "icx"})


def _start(
    text: str,
    name: str,
    code: CodeRequest,
    machine: Toolchain,
    kernel: KernelRequest,
    defines: Mapping[str, str | int],
) -> Compilation:
    from kernmodel.code.compile import start_compile
    from kernmodel.source.emit.library_loops import with_library_loops
    from kernmodel.source.emit.whole_function import compiler_defines

    compiler, flags = chosen_compiler(machine, code)
    if code.flags is None and compiler.name in _OPENMP_SIMD and _SIMD.search(text):
        flags = (*flags, "-fopenmp-simd")
    macros = compiler_defines(text, defines)
    lines = kernel.is_one_of_several
    text = with_library_loops(text, name)
    return start_compile(
        text, name=name, compiler=compiler, flags=flags, defines=macros, include=kernel.include, lines=lines
    )


@dataclass(frozen=True, slots=True)
class CompiledListing:
    """Decoded code in which the loops of kernels are found.

    Attributes:
        region: lines that markers enclose, None without markers.
        source_lines: by line of the listing the line of the source, where the compiler gives it.
    """

    listing: Listing
    origin: CodeOrigin
    region: tuple[int, int] | None = None
    source_lines: Mapping[int, int] = field(default_factory=dict)


def read_compiled(made: CompiledAssembly, file: str, isa_name: str) -> CompiledListing:
    """What the compiler made of a source file, decoded."""
    from kernmodel.code.listing import read_listing
    from kernmodel.code.markers import lines_of_source

    listing = read_listing(made.text, f"assembly of {made.name}", isa_name=isa_name)
    origin = CodeOrigin(None, made.compiler, made.version, made.flags, made.command)
    return CompiledListing(listing, origin, None, lines_of_source(made.text, file))


def read_given(code: CodeRequest, isa_name: str) -> CompiledListing:
    """The assembly of the user, decoded."""
    file = code.asm or "-"
    listing, region = read_code(file, code, isa_name)
    return CompiledListing(listing, CodeOrigin(file, None, None, (), ()), region)


def refuse_misplaced(align: int | None, offsets: Mapping[str, int], nest: LoopNest) -> None:
    """Refuse offsets of arrays that a kernel does not have, and places where no compiler puts elements.

    Args:
        align: bytes at multiples of which all arrays begin, None: as the code says; offsets: of arrays by name.

    Raises:
        UsageError: there is one.
    """
    for name, array in nest.arrays.items():
        if align is not None and align % array.element.size_bytes:
            what = (
                f"{align}: elements of {name} ({array.element.name}) begin at multiples of {array.element.size_bytes} B"
            )
            raise UsageError(what, where="--data-align", todo=f"write --data-align {array.element.size_bytes} or more")
    for name, offset in offsets.items():
        if name not in nest.arrays:
            what, todo = f"the kernel has no array {name}", f"name one of {', '.join(nest.arrays)}"
            raise UsageError(what, where="--array-offset", todo=todo)
        element = nest.arrays[name].element
        if offset % element.size_bytes:
            what = f"{name}={offset}: elements of {name} ({element.name}) begin at multiples of {element.size_bytes} B"
            below = offset - offset % element.size_bytes
            todo = f"write --array-offset {name}={below} or {name}={below + element.size_bytes}"
            raise UsageError(what, where="--array-offset", todo=todo)


def find_kernel_loop(
    nest: LoopNest, sizes: Mapping[str, int], code: CodeRequest, compiled: CompiledListing
) -> AssemblyLoop:
    """The loop of the kernel in decoded code."""
    from kernmodel.code.match import choose_loop
    from kernmodel.code.select import with_iterations
    from kernmodel.studies.predict.expectation import expectation
    from kernmodel.studies.predict.rows import with_whole_rows

    told = expectation(nest, sizes, compiled.origin.flags)
    told = replace(told, lines=nest.inner_lines, source_lines=compiled.source_lines)
    loop = choose_loop(compiled.listing, told, loop=code.loop, lines=code.lines, region=compiled.region)
    loop = with_whole_rows(loop, nest, sizes) if code.iterations_per_pass is None else loop
    lines = compiled.source_lines
    of_source = tuple(lines.get(item.line, 0) for item in loop.instructions) if lines else ()
    return replace(with_iterations(loop, code.iterations_per_pass), source_lines=of_source)


def read_code(file: str, code: CodeRequest, isa_name: str | None = None) -> tuple[Listing, tuple[int, int] | None]:
    """The listing of a file (or standard input) and its marked region, if it has one."""
    from kernmodel.code.listing import read_file
    from kernmodel.code.markers import marked_region

    listing, text = read_file(file, syntax=code.syntax, isa_name=isa_name)
    return listing, marked_region(listing, text)
