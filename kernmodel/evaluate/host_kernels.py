"""Kernels of C sources, compiled as `ecm` compiles them and run on this host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from kernmodel.code.compile import CompilerChoice, find_compiler, start_compile
from kernmodel.code.listing import read_listing
from kernmodel.code.markers import lines_of_source
from kernmodel.code.match import choose_loop
from kernmodel.errors import MeasurementError
from kernmodel.machine.load import load_machine
from kernmodel.machine.model import Compiler
from kernmodel.measure.host_topology import HostTopology, host_topology
from kernmodel.measure.kernels import Conditions, KernelCode, level_bytes, measure_kernel, sizes_in
from kernmodel.measure.model import KernelMeasurement
from kernmodel.source.emit.compilable import compilable_source, defines_beside
from kernmodel.source.emit.whole_function import compiler_defines
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.sizes import sizes_of
from kernmodel.studies.predict.expectation import expectation
from kernmodel.studies.predict.nests import read_nest
from kernmodel.studies.predict.request import CodeRequest, KernelRequest

ALL = "all"
NATIVE = (Compiler("gcc", ("-O3", "-march=native")), Compiler("clang", ("-O3", "-march=native")))
"""Compilers where no machine file names any."""
_ISA = "x86-64"


def host_kernels(
    request: KernelRequest,
    code: CodeRequest,
    level: str | None,
    conditions: Conditions,
    progress: Callable[[str], object] = lambda what: None,
) -> Iterator[KernelMeasurement]:
    """Measurements of a kernel at its sizes, in a level, or in each level in turn.

    Args:
        request: kernel and sizes; its machine names compilers and flags, "": -O3 -march=native.
        level: "L1" to "Mem" or "all"; None: the sizes as they are.

    Raises:
        KernmodelError: the input is at fault, a tool is missing, or the host does not let it be measured.
    """
    from kernmodel.measure.bandwidth import level_sizes

    topology = host_topology()
    choices = load_machine(request.machine).compilers if request.machine else NATIVE
    levels: Sequence[str | None] = tuple(level_sizes(topology)) if level == ALL else (level,)
    for one in levels:
        progress(f"{Path(request.kernel).stem} {one or ''}".rstrip())
        yield host_kernel(request, code, choices, one, conditions, topology)


def host_kernel(
    request: KernelRequest,
    code: CodeRequest,
    choices: Sequence[CompilerChoice],
    level: str | None,
    conditions: Conditions,
    topology: HostTopology,
) -> KernelMeasurement:
    """One kernel, measured; arguments as of `host_kernels`."""
    nest = read_nest(request)
    sizes = sizes_of(nest, dict(request.sizes))
    if level is not None:
        sizes = sizes_in(nest, sizes, level_bytes(topology, level))
        request = replace(request, sizes={**request.sizes, **sizes})
        nest = read_nest(request)
        sizes = sizes_of(nest, dict(request.sizes))
    made = _code(request, code, choices, nest, sizes)
    return measure_kernel(
        nest, sizes, made, request.defines, level=level or "", conditions=conditions, topology=topology
    )


def _code(
    request: KernelRequest, code: CodeRequest, choices: Sequence[CompilerChoice], nest: LoopNest, sizes: dict[str, int]
) -> KernelCode:
    """The assembly of the kernel and the loop in it that `ecm` analyses."""
    compiler = find_compiler(tuple(choices), code.compiler, _ISA)
    flags = compiler.flags if code.flags is None else code.flags
    if code.asm is None:
        text = compilable_source(nest, request.defines, request.include)
        defines = {**defines_beside(nest, request.defines, request.include), **request.defines}
        with start_compile(
            text,
            name=nest.file,
            compiler=compiler,
            flags=flags,
            defines=compiler_defines(text, defines),
            include=request.include,
            lines=request.is_one_of_several,
        ) as running:
            assembly = running.finish().text
        name = f"assembly of {nest.file}"
    else:
        name, assembly = code.asm, Path(code.asm).read_text(encoding="utf-8", errors="surrogateescape")
        if "\0" in assembly:
            raise MeasurementError("is no assembly text", where=name, todo="give a listing that the assembler takes")
    listing = read_listing(assembly, name, syntax=code.syntax, isa_name=_ISA)
    told = expectation(nest, sizes, flags)
    told = replace(told, lines=nest.inner_lines, source_lines=lines_of_source(assembly, nest.file))
    loop = choose_loop(listing, told, loop=code.loop, lines=code.lines)
    return KernelCode(assembly, loop, compiler.command, flags)
