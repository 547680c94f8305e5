"""Kernels of C sources, compiled as `ecm` compiles them and run on this host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from kernmodel.code.listing import read_file
from kernmodel.errors import InputError, MeasurementError
from kernmodel.machine.load import load_machine
from kernmodel.machine.model import Compiler
from kernmodel.measure.bandwidth import level_sizes
from kernmodel.measure.host_topology import HostTopology, host_topology
from kernmodel.measure.kernels import Conditions, KernelCode, level_bytes, measure_kernel, sizes_in, starting_sizes
from kernmodel.measure.model import KernelMeasurement
from kernmodel.source.model import LoopNest
from kernmodel.source.nest.sizes import deciding_names, sizes_of
from kernmodel.studies.predict.compiled import (
    Toolchain,
    chosen_compiler,
    find_kernel_loop,
    read_compiled,
    read_given,
    refuse_misplaced,
    start_late,
)
from kernmodel.studies.predict.nests import read_nest
from kernmodel.studies.predict.request import CodeRequest, KernelRequest
from kernmodel.user_files import GivenText
from kernmodel.value_types import dataclass

ALL = "all"
_ISA = "x86-64"


@dataclass(frozen=True, slots=True)
class Native:
    """This host as a target of compilers, where no machine file names any."""

    isa: str = _ISA
    compilers: tuple[Compiler, ...] = (
        Compiler("gcc", ("-O3", "-march=native")),
        Compiler("clang", ("-O3", "-march=native")),
    )


@dataclass(frozen=True, slots=True)
class HostRun:
    """A measurement, and what asks a model for the same: the kernel at the sizes that ran, and its code as it lay.

    Attributes:
        code: the assembly that was linked, the address of its loop, and where the arrays began.
    """

    measured: KernelMeasurement
    request: KernelRequest
    code: CodeRequest


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
    topology = host_topology()
    target: Toolchain = load_machine(request.machine) if request.machine else Native()
    nest = read_nest(request)
    levels: Sequence[str | None] = tuple(level_sizes(topology)) if level == ALL else (level,)
    for one in levels:
        progress(f"{Path(request.kernel).stem} {one or ''}".rstrip())
        yield host_kernel(request, nest, code, target, one, conditions, topology).measured


def host_kernel(
    request: KernelRequest,
    nest: LoopNest,
    code: CodeRequest,
    target: Toolchain,
    level: str | None,
    conditions: Conditions,
    topology: HostTopology,
) -> HostRun:
    """One kernel, measured; arguments as of `host_kernels`, with its nest."""
    if target.isa != _ISA:
        what = f"the machine executes {target.isa}, this host {_ISA}: its code does not run here"
        raise InputError(what, where=request.machine or None, todo="give a machine file of this host")
    refuse_misplaced(conditions.data_align, dict(conditions.array_offsets), nest)
    given = dict(request.sizes)
    sizes = sizes_of(nest, given if level is None else starting_sizes(nest, given))
    if level is not None:
        sizes = sizes_in(nest, sizes, level_bytes(topology, level))
        request = replace(request, sizes={**request.sizes, **sizes})
        if deciding_names(nest, request.sizes):
            nest = read_nest(request)
    made = _code(request, code, target, nest, sizes)
    measured = measure_kernel(
        nest, sizes, made, request.defines, level=level or "", conditions=conditions, topology=topology
    )
    offsets = tuple((array.name, array.offset) for array in measured.arrays)
    if not any(offset for _, offset in offsets):
        offsets = ()  # what predictions take anyway, also where the code does not show which access is of which array
    text = GivenText(made.assembly)
    return HostRun(
        measured,
        replace(request, sizes={**request.sizes, **sizes}),
        replace(code, asm=text, align=measured.loop_offset, data_align=None, array_offsets=offsets, called_again=True),
    )


def _code(
    request: KernelRequest, code: CodeRequest, target: Toolchain, nest: LoopNest, sizes: dict[str, int]
) -> KernelCode:
    """The assembly of the kernel and the loop in it that `ecm` analyses."""
    compiler, _ = chosen_compiler(target, code)
    if code.asm is None:
        with ExitStack() as stack:
            made = start_late(stack, nest, code, target, request).finish()
        text, compiled = made.text, read_compiled(made, nest.file, target.isa)
    else:
        _, text = read_file(code.asm, syntax=code.syntax, isa_name=target.isa)
        if not text:
            what = "is no assembly text"
            raise MeasurementError(what, where=code.asm, todo="give a listing that the assembler takes")
        compiled = read_given(code, target.isa)
    origin, loop = compiled.origin, find_kernel_loop(nest, sizes, code, compiled)
    return KernelCode(text, loop, compiler.command, origin.flags, origin.compiler, origin.version)
