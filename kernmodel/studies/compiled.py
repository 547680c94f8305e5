"""The compiled loop of a kernel: what every study needs that asks what executes, without what it asks of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernmodel.assembly.model import AssemblyLoop, Listing
from kernmodel.errors import Note
from kernmodel.machine.load import load_machine
from kernmodel.studies.predict import _find_loop, _load, _read_code, _shown, _sizes, _start_early, _start_late
from kernmodel.studies.request import CodeOrigin, CodeRequest, KernelRequest

if TYPE_CHECKING:
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
        pending = _start_early(stack, kernel, code, machine, kernel.sizes)
        nest = _load(kernel, kernel.sizes)
        sizes = _sizes(nest, kernel.sizes)
        if pending is None and code.asm is None:
            pending = _start_late(stack, nest, code, machine, kernel.sizes)
        if meanwhile is not None:
            meanwhile(nest, machine, sizes)
        loop, origin = _find_loop(nest, sizes, code, pending)
    notes = tuple(dict.fromkeys((*nest.notes, *loop.notes)))
    return CompiledLoop(nest, machine, sizes, _shown(nest, kernel.sizes, sizes), loop, origin, notes)


def read_code(file: str, code: CodeRequest) -> tuple[Listing, tuple[int, int] | None]:
    """The listing of a file (or of standard input, "-") and its marked region, if it has one."""
    return _read_code(file, code)
