"""One prediction from end to end, and the same kernel over many sizes.

The stages meet here and nowhere else. The compiler is started before sympy is imported, so that both take their time at
once; a sweep over sizes compiles once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kernmodel.assembly.compile import Compilation, find_compiler, start_compile
from kernmodel.assembly.model import AssemblyLoop, Listing
from kernmodel.errors import Note, UsageError
from kernmodel.incore.model import InCore, Parameters
from kernmodel.incore.parameters import load_parameters
from kernmodel.incore.tables import InstructionTable
from kernmodel.machine.load import load_machine
from kernmodel.machine.model import Machine
from kernmodel.studies.request import CodeOrigin, CodeRequest, EcmAnswer, InCoreAnswer, KernelRequest, TrafficAnswer

if TYPE_CHECKING:
    from kernmodel.models.ecm import EcmPrediction
    from kernmodel.source.model import LoopNest
    from kernmodel.traffic.model import Traffic


def predict_ecm(kernel: KernelRequest, code: CodeRequest, scaling_cores: Sequence[int] = ()) -> EcmAnswer:
    """The ECM prediction of one kernel on one machine at one point.

    Args:
        scaling_cores: core counts to predict the performance for; empty for none.

    Raises:
        KernmodelError: any stage's error about its input.
    """
    return next(predict_ecm_sweep(kernel, code, (kernel.sizes,), scaling_cores))


def predict_ecm_sweep(
    kernel: KernelRequest,
    code: CodeRequest,
    points: Sequence[Mapping[str, int]],
    scaling_cores: Sequence[int] = (),
) -> Iterator[EcmAnswer]:
    """The ECM prediction for each point of sizes, as they come; the kernel is compiled once, at the largest sizes."""
    machine = load_machine(kernel.machine)
    _check_cores(machine, scaling_cores)
    parameters = load_parameters(machine.core.microarchitecture)
    compiled_at = _largest(points)
    with ExitStack() as stack:
        pending = _start_early(stack, kernel, code, machine, compiled_at)
        nest = _load(kernel, compiled_at)
        if pending is None and code.asm is None:
            pending = _start_late(stack, nest, code, machine, compiled_at)
        sizes = [_sizes(nest, point) for point in points]
        stages = _Stages(nest, machine, kernel.safety)
        first = stages.traffic(sizes[0], kernel.cores)  # while the compiler runs
        at = _sizes(nest, compiled_at)
        loop, origin = _find_loop(nest, at, code, pending)
    incore = _analyse(loop, parameters, code)
    notes = () if len(points) == 1 or code.asm else (_compiled_once(at),)
    for number, values in enumerate(sizes):
        traffic = stages.traffic(values, kernel.cores) if number else first
        yield _answer(stages, values, traffic, loop, origin, parameters, incore, scaling_cores, notes)


def predict_traffic(kernel: KernelRequest) -> TrafficAnswer:
    """The data traffic of one kernel on one machine at one point."""
    return next(predict_traffic_sweep(kernel, (kernel.sizes,)))


def predict_traffic_sweep(kernel: KernelRequest, points: Sequence[Mapping[str, int]]) -> Iterator[TrafficAnswer]:
    """The data traffic for each point of sizes, as they come."""
    machine = load_machine(kernel.machine)
    nest = _load(kernel, _largest(points))
    stages = _Stages(nest, machine, kernel.safety)
    for point in points:
        sizes = _sizes(nest, point)
        traffic = stages.traffic(sizes, kernel.cores)
        yield TrafficAnswer(nest, machine, sizes, traffic, (*nest.notes, *traffic.notes))


def analyse_code(code: CodeRequest, *, file: str, machine: str | None, microarchitecture: str | None) -> InCoreAnswer:
    """The in-core analysis of an assembly listing, an object file, or "-" (standard input).

    Exactly one of `machine` and `microarchitecture` is given.
    """
    from kernmodel.assembly.select import select_without_source

    target = load_machine(machine) if machine is not None else None
    parameters = load_parameters(target.core.microarchitecture if target else (microarchitecture or ""))
    listing, region = _read_code(file, code)
    loop = select_without_source(listing, loop=code.loop, lines=code.lines, region=region)
    incore = _analyse(loop, parameters, code)
    origin = CodeOrigin(file, None, None, (), ())
    return InCoreAnswer(target, parameters, loop, incore, origin, (*loop.notes, *incore.notes))


@dataclass(frozen=True, slots=True)
class _Stages:
    """What stays the same over the points of a sweep."""

    nest: LoopNest
    machine: Machine
    safety: float

    def traffic(self, sizes: Mapping[str, int], cores: int) -> Traffic:
        from kernmodel.traffic.layer_conditions import layer_conditions

        return layer_conditions(self.nest, self.machine, sizes, cores=cores, safety=self.safety)


def _answer(
    stages: _Stages,
    sizes: Mapping[str, int],
    traffic: Traffic,
    loop: AssemblyLoop,
    origin: CodeOrigin,
    parameters: Parameters,
    incore: InCore,
    scaling_cores: Sequence[int],
    notes: tuple[Note, ...],
) -> EcmAnswer:
    from kernmodel.models.ecm import predict, scale

    prediction = predict(traffic, incore, stages.machine)
    predict_at = _prediction_by_cores(stages, sizes, incore)
    scaling = tuple(scale(predict_at, cores, stages.machine) for cores in scaling_cores)
    everything = (*notes, *stages.nest.notes, *traffic.notes, *loop.notes, *incore.notes, *prediction.notes)
    return EcmAnswer(
        nest=stages.nest,
        machine=stages.machine,
        sizes=sizes,
        traffic=traffic,
        origin=origin,
        loop=loop,
        parameters=parameters,
        incore=incore,
        prediction=prediction,
        scaling=scaling,
        notes=tuple(dict.fromkeys(everything)),
    )


def _prediction_by_cores(stages: _Stages, sizes: Mapping[str, int], incore: InCore) -> Callable[[int], EcmPrediction]:
    """The single-core prediction with n active cores in a domain, each n computed once."""
    from kernmodel.models.ecm import predict

    @cache
    def predict_at(cores: int) -> EcmPrediction:
        return predict(stages.traffic(sizes, cores), incore, stages.machine)

    return predict_at


def _check_cores(machine: Machine, cores: Sequence[int]) -> None:
    available = machine.topology.cores
    if cores and max(cores) > available:
        todo = f"give 1 to {available}"
        raise UsageError(f"{max(cores)} cores, but {machine.name} has {available}", where="--cores", todo=todo)


def _largest(points: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The largest value of each size over all points."""
    return {name: max(point[name] for point in points) for name in points[0]}


def _compiled_once(sizes: Mapping[str, int]) -> Note:
    at = ", ".join(f"{name}={value}" for name, value in sizes.items())
    return Note(
        "compiled-once", f"the kernel was compiled once, with {at}; all points share its in-core time", "assumption"
    )


def _load(kernel: KernelRequest, sizes: Mapping[str, int]) -> LoopNest:
    from kernmodel.source.load import load_kernel

    return load_kernel(kernel.kernel, sizes, nest=kernel.nest, function=kernel.function)


def _sizes(nest: LoopNest, point: Mapping[str, int]) -> dict[str, int]:
    from kernmodel.source.sizes import sizes_of

    return sizes_of(nest, point)


def _start_early(
    stack: ExitStack, kernel: KernelRequest, code: CodeRequest, machine: Machine, sizes: Mapping[str, int]
) -> Compilation | None:
    """Start the compiler before the source is analysed, where the text can be compiled as it stands."""
    from kernmodel.source.quick import quick_compilable

    if code.asm is not None:
        return None
    text = quick_compilable(kernel.kernel, sizes)
    return None if text is None else stack.enter_context(_start(text, kernel.kernel, code, machine, sizes))


def _start_late(
    stack: ExitStack, nest: LoopNest, code: CodeRequest, machine: Machine, sizes: Mapping[str, int]
) -> Compilation:
    """Start the compiler on what the analysed source becomes as a function (bare loop nests)."""
    from kernmodel.source.codegen import compilable_source

    return stack.enter_context(_start(compilable_source(nest, sizes), nest.file, code, machine, sizes))


def _start(text: str, name: str, code: CodeRequest, machine: Machine, sizes: Mapping[str, int]) -> Compilation:
    from kernmodel.source.quick import compiler_defines

    compiler = find_compiler(machine.compilers, code.compiler)
    flags = compiler.flags if code.flags is None else code.flags
    macros = {macro: int(value) for macro, value in compiler_defines(text, sizes).items()}
    return start_compile(text, name=name, compiler=compiler, flags=flags, defines=macros)


def _find_loop(
    nest: LoopNest, sizes: Mapping[str, int], code: CodeRequest, pending: Compilation | None
) -> tuple[AssemblyLoop, CodeOrigin]:
    """The loop of the kernel in the user's assembly or in what the compiler made."""
    from kernmodel.assembly.listing import read_listing
    from kernmodel.studies.expectation import expectation, find_loop

    if code.asm is not None:
        listing, region = _read_code(code.asm, code)
        origin = CodeOrigin(code.asm, None, None, (), ())
    else:
        assert pending is not None, "the compiler is started wherever no assembly is given"
        made = pending.finish()
        listing, region = read_listing(made.text, made.name), None
        origin = CodeOrigin(None, made.compiler, made.version, made.flags, made.command)
    told = expectation(nest, sizes)
    return find_loop(listing, told, loop=code.loop, lines=code.lines, region=region), origin


def _read_code(file: str, code: CodeRequest) -> tuple[Listing, tuple[int, int] | None]:
    """The listing of a file (or standard input) and its marked region, if it has one."""
    from kernmodel.assembly.listing import read_file
    from kernmodel.assembly.markers import marked_region

    listing, text = read_file(Path(file), syntax=code.syntax)
    return listing, marked_region(listing, text)


def _analyse(loop: AssemblyLoop, parameters: Parameters, code: CodeRequest) -> InCore:
    from kernmodel.incore.analyse import analyse

    return analyse(loop, parameters, InstructionTable.open(parameters), port_model=code.port_model)
