"""Kernels on machines: the ECM prediction, data traffic, performance over cores, blocking, and machines compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from os import fspath
from typing import TYPE_CHECKING, get_args

from kernmodel.api.options import (
    CACHE,
    CODE,
    CacheOptions,
    CodeOptions,
    Kernel,
    Sizes,
    Values,
    kernel_request,
    kernels_of,
    nest_choices,
    one_of,
    one_point_of,
    points_of,
    refuse,
    values_of,
)
from kernmodel.api.result import Result, TableViews, Views
from kernmodel.errors import UsageError
from kernmodel.machine.cores import Placement, Schedule, Spread
from kernmodel.machine.pages import Pages
from kernmodel.user_files import File

if TYPE_CHECKING:
    from kernmodel.studies.blocking.answer import BlockingAnswer
    from kernmodel.studies.compare import CompareAnswer
    from kernmodel.studies.predict.request import EcmAnswer, KernelRequest, TrafficAnswer
    from kernmodel.studies.predict.whole import NestAnswer
    from kernmodel.studies.scaling import ScalingAnswer
    from kernmodel.traffic.options import CacheMode

_ALONE = 4
"""Predictions that one process makes sooner than several can start."""

MOST_SCALED = 16
"""Points of sizes whose performance over cores stands beside each other."""


def ecm(
    kernel: Kernel,
    machine: File,
    *,
    cores: Values = (),
    cache: CacheMode | CacheOptions = "auto",
    code: CodeOptions = CODE,
    pages: Pages | None = None,
    strict: bool = False,
    **sizes: Sizes,
) -> Result[EcmAnswer]:
    """Predict the runtime of a loop kernel with the ECM model, as `kernmodel ecm`.

    >>> km.ecm("stencil.c", machine="clx", N=4000, M=4000).answer.prediction.shorthand()

    Args:
        kernel: a C file, the name of a carried kernel, C source, or a `Nest` of one that has several.
        machine: a machine file, or the name of a carried one.
        cores: core counts to scale over ("1-20"); the prediction itself is of one core.
        cache: how the traffic is found.
        code: which code executes the kernel.
        pages: in which the data lie, "huge" or "4k"; None: as where the machine's bandwidths were measured.
        strict: raise `StrictError` for the first warning.
        sizes: values of the kernel's sizes; several give an answer for each point.

    Raises:
        KernmodelError: the input is at fault, or a tool is missing.
    """
    from kernmodel.studies.predict.ecm import predict_ecm_sweep

    points = points_of(sizes, kernel)
    one_of("--pages", pages, get_args(Pages))
    request = replace(kernel_request(kernel, machine, points[0], cache), pages=pages)
    answers = predict_ecm_sweep(request, code.request(), points, values_of(cores, "--cores") if cores else ())
    return Result(answers, _ECM, {"points": points}, total=len(points), strict=strict)


_ECM = Views(
    *("ecm:ecm_report", "ecm:ecm_document", "ecm:ecm_figure", "ecm:ecm_text"),
    unit="cy/CL",
    table=TableViews("ecm:sweep_columns", "ecm:ecm_sweep_document", "ecm:sweep_inputs", "ecm:sweep_items"),
    charts="ecm:ecm_charts",
)


def ecm_nests(
    kernel: Kernel,
    machine: File,
    *,
    cache: CacheMode | CacheOptions = "auto",
    code: CodeOptions = CODE,
    pages: Pages | None = None,
    strict: bool = False,
    **sizes: Sizes,
) -> Result[NestAnswer[EcmAnswer]]:
    """The ECM prediction of every loop nest of a file, or of a function of it: `kernmodel ecm` where none is chosen.

    >>> [one.found.number for one in km.ecm_nests("solver.c", machine="clx", N=1000)]

    Args:
        kernel: as for `ecm`; of a `Nest` its function limits what is predicted.
        machine, cache, code, pages, strict, sizes: as for `ecm`; one value of each size, and no choice of one loop.

    Raises:
        KernmodelError: the input is at fault for every nest, or a tool is missing.
    """
    from kernmodel.studies.predict.whole import predict_each

    one_of("--pages", pages, get_args(Pages))
    request = replace(kernel_request(kernel, machine, one_point_of(sizes, kernel), cache), pages=pages)
    asked = code.request()
    refuse({"--loop": code.loop, "--lines": code.lines, "--asm": code.asm}, "there are several loop nests")
    return Result(predict_each(request, asked), _ECM_NESTS, total=0, strict=strict)


_ECM_NESTS = Views("nests:ecm_nests_report", "nests:ecm_nests_document", unit="cy/CL", together=True)


def data_traffic(
    kernel: Kernel,
    machine: File,
    *,
    cores: Values = 1,
    cycles: bool = False,
    cache: CacheMode | CacheOptions = "auto",
    strict: bool = False,
    **sizes: Sizes,
) -> Result[TrafficAnswer]:
    """How the data of a loop kernel moves between the caches, as `kernmodel traffic`.

    >>> km.data_traffic("3d-7pt.c", machine="skx", cache="both", N=400)

    Args:
        cores: active cores that share the shared caches; several give an answer for each.
        cycles: also what each path takes for its traffic (`transfers`), as in the ECM model.
        kernel, machine, cache, strict, sizes: as for `ecm`; `cache="both"` compares both ways.

    Raises:
        KernmodelError: the input is at fault.
    """
    from kernmodel.studies.predict.traffic import predict_traffic_sweep

    points, counts = points_of(sizes, kernel), values_of(cores, "--cores")
    request = kernel_request(kernel, machine, points[0], cache)
    answers, total = predict_traffic_sweep(request, points, counts, timed=cycles), len(points) * len(counts)
    over = {"points": points, "cores": counts, "compared": request.cache == "both"}
    return Result(answers, _TRAFFIC, over, total=total, strict=strict)


_TRAFFIC = Views(
    *("traffic:traffic_report", "traffic:traffic_document"),
    unit="CL",
    units=("CL", "B", "B/It"),
    table=TableViews("traffic:sweep_columns", "traffic:traffic_sweep_document", "traffic:sweep_inputs"),
    charts="traffic:traffic_charts",
)


def traffic_nests(
    kernel: Kernel,
    machine: File,
    *,
    cores: int = 1,
    cache: CacheMode | CacheOptions = "auto",
    strict: bool = False,
    **sizes: Sizes,
) -> Result[NestAnswer[TrafficAnswer]]:
    """The data traffic of every loop nest of a file, or of a function of it: `kernmodel traffic` where none is chosen.

    >>> print(km.traffic_nests("solver.c", machine="clx", N=1000))

    Args:
        kernel, machine, cache, strict, sizes: as for `ecm_nests`.
        cores: active cores that share the shared caches.

    Raises:
        KernmodelError: the input is at fault for every nest.
    """
    from kernmodel.studies.predict.whole import traffic_of_each

    request = kernel_request(kernel, machine, one_point_of(sizes, kernel), cache, cores)
    return Result(traffic_of_each(request), _TRAFFIC_NESTS, total=0, strict=strict)


_TRAFFIC_NESTS = Views(
    *("nests:traffic_nests_report", "nests:traffic_nests_document"),
    unit="CL",
    units=("CL", "B", "B/It"),
    together=True,
)


def scale(
    kernel: Kernel,
    machine: File,
    *,
    cores: Values = (),
    schedule: Schedule | None = None,
    placement: Placement = "compact",
    cache: CacheMode | CacheOptions = "auto",
    code: CodeOptions = CODE,
    strict: bool = False,
    **sizes: Sizes,
) -> Result[ScalingAnswer]:
    """The performance of a loop kernel over the cores of a machine, and what limits, as `kernmodel scaling`.

    >>> km.scale("stencil.c", machine="clx").plot("scaling.svg")

    Args:
        cores: core counts, such as "1-40"; none: all of the machine.
        schedule: "static": every core has the same work, so that the slowest decides; "dynamic"; None: as the pragma of
            the nest says (`omp parallel for schedule(…)`), else static.
        placement: "compact": one ccNUMA domain after the other; "scatter": round the domains.
        kernel, machine, cache, code, strict, sizes: as for `ecm`; up to 16 points of sizes.

    Raises:
        KernmodelError: the input is at fault, or a tool is missing.
    """
    points = points_of(sizes, kernel)
    if len(points) > MOST_SCALED:
        what = f"{len(points)} points of sizes, but at most {MOST_SCALED} stand beside each other"
        raise UsageError(what, where="-D", todo="take fewer, or ask `kernmodel sweep`")
    request = kernel_request(kernel, machine, points[0], cache)
    spread = Spread(schedule, placement)
    requests = [replace(request, sizes=point, spread=spread) for point in points]
    counts = values_of(cores, "--cores") if cores else ()
    return Result(_scaled(requests, code, counts), _SCALING, total=len(points), strict=strict)


def _scaled(kernels: Iterable[KernelRequest], code: CodeOptions, cores: tuple[int, ...]) -> Iterator[ScalingAnswer]:
    from kernmodel.studies.predict.stages import Stages
    from kernmodel.studies.scaling import scaling

    stages, request = Stages(), code.request()
    return (scaling(kernel, request, cores, stages=stages) for kernel in kernels)


_SCALING = Views(
    *("scaling:scaling_report", "ecm:scaling_document", "scaling:scaling_figure", "scaling:scaling_text"),
    charts="scaling:scaling_charts",
    together=True,
)


def block(
    kernel: Kernel,
    machine: File,
    *,
    loops: str | Sequence[str] | None = None,
    cores: int = 1,
    cache: CacheOptions = CACHE,
    code: CodeOptions = CODE,
    strict: bool = False,
    **sizes: Sizes,
) -> Blocking:
    """Which loops of a kernel to block for the caches, by how much, and what it buys, as `kernmodel blocking`.

    >>> print(km.block("3d-7pt.c", machine="clx", N=800).source())

    Args:
        loops: block only these ("i,j"); None: all that may be blocked.
        cores: active cores that share the shared caches.
        cache: its `stores` and `safety`; the traffic is by layer conditions.
        kernel, machine, code, strict, sizes: as for `ecm`; one value of each size.

    Raises:
        KernmodelError: the input is at fault, or a tool is missing.
    """
    from kernmodel.studies.blocking.study import blocking

    request = kernel_request(kernel, machine, one_point_of(sizes, kernel), replace(cache, mode="lc"), cores)
    return Blocking([blocking(request, code.request(), _loops(loops))], _BLOCKING, strict=strict)


def _loops(loops: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if loops is None:
        return None
    names = tuple(name.strip() for name in (loops.split(",") if isinstance(loops, str) else loops))
    if not all(names):
        raise UsageError(f"{loops!r} is no list of loops", where="--loops", todo="write --loops i,j")
    return tuple(dict.fromkeys(names))


class Blocking(Result["BlockingAnswer"]):
    """The answer of `block`; `source` is the blocked kernel."""

    _known: list[BlockingAnswer]

    def source(self) -> str:
        """The C source of the best candidate, blocked.

        Raises:
            InputError: blocking buys nothing.
        """
        from kernmodel.studies.blocking.study import blocked_source

        return blocked_source(self.answer)


_BLOCKING = Views(
    *("blocking:blocking_report", "blocking:blocking_document", "blocking:blocking_figure", "blocking:blocking_text"),
    unit="cy/CL",
    charts="blocking:blocking_charts",
)


def compare(
    kernels: Kernel | Sequence[Kernel],
    machines: Sequence[File],
    *,
    cache: CacheMode | CacheOptions = "auto",
    code: CodeOptions = CODE,
    strict: bool = False,
    **sizes: Sizes,
) -> Result[CompareAnswer]:
    """Kernels, and all nests of files of which none is chosen, on several machines: what limits on each, and why, as
    `kernmodel compare`.

    >>> print(km.compare("stencil.c", ["snb", "hsw", "clx"]))

    Args:
        machines: files or carried names; "all" stands for every carried one.
        code: its `compiler`, `flags`, `ports`, `classic` and, of one kernel, `iterations_per_pass`.
        kernels, cache, strict, sizes: as for `ecm`; one value of each size.

    Raises:
        KernmodelError: the input is at fault on all machines.
    """
    several = kernels_of(kernels)
    given = [one for number, one in enumerate(several) if one not in several[:number]]
    if len(given) > 1:
        refuse({**nest_choices(given), "--iterations-per-pass": code.iterations_per_pass}, "several kernels are given")
    names = [fspath(machine) for machine in machines]
    requests = [kernel_request(kernel, names[0], one_point_of(sizes, kernel), cache) for kernel in given]
    return Result([_compared(requests, names, code)], _COMPARED, strict=strict)


def _compared(kernels: Sequence[KernelRequest], machines: Sequence[str], code: CodeOptions) -> CompareAnswer:
    from kernmodel.studies.compare import ALL, compare
    from kernmodel.studies.predict.nests import nests_of
    from kernmodel.studies.sweep.executors import local_processes

    kernels = [nest for kernel in kernels for nest in nests_of(kernel)]
    if len(kernels) > 1:
        refuse({"--iterations-per-pass": code.iterations_per_pass}, "several nests are asked for")
    few = ALL not in machines and len(kernels) * len(machines) <= _ALONE
    with nullcontext() if few else local_processes() as executor:
        return compare(kernels, machines, code.request(), executor=executor)


_COMPARED = Views(
    *("compare:compare_report", "ecm:compare_document", "compare:compare_figure", "compare:compare_text"),
    charts="compare:compare_charts",
)
