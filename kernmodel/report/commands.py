"""The commands that ask at the command line what was asked for."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kernmodel.user_files import GivenText

if TYPE_CHECKING:
    from kernmodel.studies.predict.request import CodeRequest, KernelRequest
    from kernmodel.traffic.options import SimulationOptions

GIVEN_TEXT = "kernel.c"
"""What a source that was given as text is called in a command: to be saved under this name."""


def commands(names: Sequence[str], kernel: KernelRequest, code: CodeRequest) -> tuple[str, ...]:
    """These commands of `kernmodel` about a kernel, their own options behind the name, as a shell takes them."""
    return tuple(_command(*name.split(), kernel=kernel, code=code) for name in names)


def _command(name: str, *own: str, kernel: KernelRequest, code: CodeRequest) -> str:
    file = GIVEN_TEXT if isinstance(kernel.kernel, GivenText) else kernel.kernel
    options = list(_kernel_options(kernel))
    if name != "blocking":  # which has layer conditions for candidates, and a simulation of its own
        options += [*_cache_options(kernel), *_simulation_options(kernel.simulation)]
    if name != "traffic":
        options += _code_options(code)
    return shlex.join(("kernmodel", name, "-m", kernel.machine, file, *own, *options))


def _kernel_options(kernel: KernelRequest) -> Iterator[str]:
    for size, value in kernel.sizes.items():
        yield from ("-D", f"{size}={value}")
    for macro, _ in kernel.macros:
        yield from ("-D", macro)
    for folder in kernel.include:
        yield from ("-I", folder)
    yield from _given("--nest", kernel.nest)
    yield from _given("--function", kernel.function)
    yield from _given("--source-line", kernel.line)
    if kernel.safety != 1.0:
        yield from ("--safety", f"{kernel.safety:g}")
    yield from _given("--stores", kernel.stores)


def _cache_options(kernel: KernelRequest) -> Iterator[str]:
    if kernel.cache != "auto":
        yield from ("--cache", kernel.cache)


def _simulation_options(simulation: SimulationOptions | None) -> Iterator[str]:
    if simulation is None:
        return
    yield from _given("--policy", simulation.policy and simulation.policy.lower())
    yield from ("--layout", simulation.layout)
    if simulation.pad_bytes:
        yield from ("--pad", str(simulation.pad_bytes))
    if simulation.alias:
        yield "--alias"
    for array, where in simulation.indirect.items():
        yield from ("--indirect", f"{array}={where.text}")
    if simulation.exact:
        yield "--exact"
    if simulation.seed:
        yield from ("--seed", str(simulation.seed))


def _code_options(code: CodeRequest) -> Iterator[str]:
    yield from _given("--asm", code.asm)
    yield from _given("--compiler", code.compiler)
    if code.flags is not None:
        yield f"--flags={shlex.join(code.flags)}"
    yield from _given("--syntax", code.syntax)
    yield from _given("--loop", code.loop)
    if code.lines is not None:
        yield from ("--lines", f"{code.lines[0]}-{code.lines[1]}")
    if code.port_model != "optimal":
        yield from ("--ports", code.port_model)
    if code.classic:
        yield "--classic"
    if code.iterations_per_pass is not None:
        yield from ("--iterations-per-pass", f"{code.iterations_per_pass:g}")
    yield from _given("--data-align", code.data_align)
    for array, offset in code.array_offsets:
        yield from ("--array-offset", f"{array}={offset}")
    for name, low, high in code.call_cycles:
        yield from ("--call-cycles", f"{name}={low:g}" if low == high else f"{name}={low:g}-{high:g}")


def _given(option: str, value: object) -> tuple[str, ...]:
    return () if value is None else (option, str(value))
