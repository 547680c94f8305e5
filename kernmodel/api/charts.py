"""Kernels under the rooflines: charts of all models, and the application-driven reading of one kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import fspath
from typing import TYPE_CHECKING, Literal

from kernmodel.api.options import (
    CODE,
    CacheOptions,
    CodeOptions,
    Kernel,
    Nest,
    Sizes,
    is_c_source,
    kernel_request,
    kernels_of,
    nest_choices,
    one_of,
    one_point_of,
    points_of,
    refuse,
    values_by_name,
)
from kernmodel.api.result import Result, Views
from kernmodel.errors import UsageError
from kernmodel.patterns import pattern
from kernmodel.units import plain_number
from kernmodel.user_files import File, source_of
from kernmodel.value_types import dataclass

if TYPE_CHECKING:
    from kernmodel.studies.predict.arranged import AxisLimits, Range
    from kernmodel.studies.predict.roofline import CarmAnswer, RooflineAnswer
    from kernmodel.traffic.options import CacheMode

Model = Literal["orm", "hierarchical", "carm", "irm", "adcarm", "all"]
SAME_AXES: Literal["same"] = "same"


@dataclass(frozen=True, slots=True)
class ChartOptions:
    """What stands on charts of kernels beside their predictions, and how they are set beside one another.

    Attributes:
        measured: a file of measured kernels, as of `evaluate_kernels`, or with the columns kernel, FLOP/s and bytes.
        versions: whether the kernels are versions of one, in this order: an arrow joins each with the next.
        by_time: whether size and colour of the points tell the share of time that each kernel takes.
        calls: how often each is executed for that, once by default: by name, or texts "NAME=COUNT".
        axes: "same" for the same limits on all charts, or limits as text: "0.01-100,1-4000" FLOP/B and GFLOP/s.
    """

    measured: File | None = None
    versions: bool = False
    by_time: bool = False
    calls: Mapping[str, float] | Sequence[str] = ()
    axes: str | None = None

    def arrange(self, answer: RooflineAnswer) -> RooflineAnswer:
        """The charts with what is asked for.

        Raises:
            KernmodelError: a file or a text that cannot be read; what is asked for does not fit the kernels.
        """
        if self.calls and not self.by_time:
            raise UsageError("counts for the shares of time", where="--calls", todo="give it with --by-time")
        axes = _axes(self.axes)
        if self.measured is not None:
            from kernmodel.evaluate.charted import with_measured

            answer = with_measured(answer, fspath(self.measured))
        if not (self.versions or self.by_time or axes):
            return answer
        from kernmodel.studies.predict.arranged import arranged

        return arranged(answer, versions=self.versions, calls=_calls(self.calls) if self.by_time else None, axes=axes)


CHART = ChartOptions()


def _calls(given: Mapping[str, float] | Sequence[str]) -> dict[str, float]:
    """How often kernels are executed, by name.

    Raises:
        UsageError: one is not of the form NAME=COUNT.
    """
    pairs = given.items() if isinstance(given, Mapping) else (text.rpartition("=")[::2] for text in given)
    found = {}
    for name, value in pairs:
        try:
            count = plain_number(str(value))
        except ValueError:
            count = -1.0
        if not name or not 0 <= count < float("inf"):
            what = f"{name}={value} is no count of a kernel"
            raise UsageError(what, where="--calls", todo="write --calls stencil=100")
        found[name] = count
    return found


_NUMBER = r"\s*(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)\s*"
_LIMITS = pattern(rf"{_NUMBER}-{_NUMBER},{_NUMBER}-{_NUMBER}")


def _axes(text: str | None) -> AxisLimits | Literal["same"] | None:
    """Limits of axes from text.

    Raises:
        UsageError: it is neither "same" nor two ranges above 0.
    """
    if text is None or text == SAME_AXES:
        return SAME_AXES if text else None
    match = _LIMITS.fullmatch(text)
    left, right, bottom, top = map(float, match.groups()) if match else (0.0,) * 4
    if not (0 < left < right < float("inf") and 0 < bottom < top < float("inf")):
        what, todo = f"{text!r} gives no limits", "write same, or FLOP/B and GFLOP/s: 0.01-100,1-4000"
        raise UsageError(what, where="--axes", todo=todo)
    from kernmodel.studies.predict.arranged import AxisLimits

    rates: Range = (1e9 * bottom, 1e9 * top)
    return AxisLimits((left, right), rates)


def roofline_chart(
    kernels: Kernel | Sequence[Kernel],
    machine: File,
    *,
    model: Model = "hierarchical",
    cores: int | None = None,
    mix: File | None = None,
    chart: ChartOptions = CHART,
    cache: CacheMode | CacheOptions = "auto",
    code: CodeOptions = CODE,
    strict: bool = False,
    **sizes: Sizes,
) -> Result[RooflineAnswer]:
    """Arithmetic intensity, roofs, bound and what limits of kernels, as `kernmodel roofline`.

    >>> km.roofline_chart(["stencil.c", "triad.c"], machine="clx", N=1000).plot("chart.svg")

    Args:
        kernels: C kernels as for `ecm`, or one assembly file or text; empty: only `mix`.
        model: original, hierarchical, cache-aware, integrated or application-driven roofline, or "all".
        cores: active cores, of which all roofs and points are; None: all of one ccNUMA domain.
        mix: a file that gives the instruction mix in place of the code's.
        chart: measurements beside the predictions, versions joined, shares of time, limits of the axes.
        machine, cache, code, strict: as for `ecm`; sizes: several values chart each point.

    Raises:
        KernmodelError: the input is at fault, or a tool is missing.
    """
    from kernmodel.studies.predict.nests import nests_of
    from kernmodel.studies.predict.roofline import MODELS, ChartRequest, chart_code, chart_kernels

    one_of("--model", model, (*MODELS, "all"))
    files = kernels_of(kernels)
    of_source = _is_of_source(files, mix, code, values_by_name(sizes))
    models = MODELS if model == "all" else (model,)
    request = ChartRequest(fspath(machine), models, cores, _path(mix), code.mask_utilization)
    if of_source:
        points = points_of(sizes, files)
        asked = [kernel_request(file, machine, points[0], cache) for file in files]
        answer = chart_kernels(request, [nest for one in asked for nest in nests_of(one)], code.request(), points)
    else:
        answer = chart_code(request, _listing(files), code.request())
    return Result([chart.arrange(answer)], _CHART, strict=strict)


def carm_chart(
    kernel: Kernel | None,
    machine: File,
    *,
    cores: int | None = None,
    mix: File | None = None,
    measured: File | None = None,
    cache: CacheMode | CacheOptions = "auto",
    code: CodeOptions = CODE,
    strict: bool = False,
    **sizes: Sizes,
) -> Result[CarmAnswer]:
    """The application-driven cache-aware roofline of one kernel and its reading, as `kernmodel carm`.

    >>> print(km.carm_chart("iso3dfd.c", machine="skx-6140"))

    Args:
        kernel: a C kernel as for `ecm`, an assembly file or text, or None for `mix` alone.
        cores, mix: as for `roofline_chart`; measured: as of `ChartOptions`.
        machine, cache, code, strict, sizes: as for `ecm`; one value of each size.

    Raises:
        KernmodelError: the input is at fault, or a tool is missing.
    """
    from kernmodel.studies.predict.roofline import ChartRequest, read_code, read_kernel

    files = () if kernel is None else kernels_of(kernel)
    of_source = _is_of_source(files, mix, code, values_by_name(sizes))
    request = ChartRequest(fspath(machine), ("adcarm",), cores, _path(mix), code.mask_utilization)
    if of_source:
        asked = kernel_request(files[0], machine, one_point_of(sizes, files), cache)
        answer = read_kernel(request, asked, code.request())
    else:
        answer = read_code(request, _listing(files), code.request())
    if measured is not None:
        from kernmodel.evaluate.charted import carm_with_measured

        answer = carm_with_measured(answer, fspath(measured))
    return Result([answer], _CARM, strict=strict)


def _path(file: File | None) -> str | None:
    return None if file is None else fspath(file)


def _listing(files: Sequence[Nest]) -> str | None:
    return source_of(files[0].source) if files else None


def _is_of_source(files: Sequence[Nest], mix: File | None, code: CodeOptions, sizes: Iterable[str]) -> bool:
    """Whether a chart is of C kernels, rather than of one listing or (no file) a mix.

    Raises:
        UsageError: options that do not fit the files.
    """
    if not files and mix is None:
        raise UsageError("there is no kernel", todo="give a C kernel, an assembly file, or --mix FILE")
    of_nest = nest_choices(files)
    if len(files) > 1:
        of_loop = {"--loop": code.loop, "--lines": code.lines, "--iterations-per-pass": code.iterations_per_pass}
        refuse({"--asm": code.asm, **of_nest, **of_loop, "--mix": mix}, "several kernels are given")
    if files and all(is_c_source(file.source) for file in files):
        return True
    if len(files) > 1:
        wrong = next(file for file in files if not is_c_source(file.source))
        what = "is no C source; several kernels are C files"
        raise UsageError(what, where=source_of(wrong.source), todo="chart it on its own")
    of_source = {"-D": tuple(sizes), **of_nest, "--asm": code.asm}
    refuse({**of_source, "--compiler": code.compiler, "--flags": code.flags}, "there is no C source")
    return False


_CHART = Views(
    *("roofline:roofline_report", "roofline:roofline_document"),
    *("roofline:roofline_figure", "roofline_text:roofline_text"),
    charts="rooflines:roofline_charts",
)
_CARM = Views(
    *("carm:carm_report", "roofline:carm_document", "roofline:carm_figure", "roofline_text:carm_text"),
    charts="rooflines:carm_charts",
)
