"""Pages about kernels: everything that the other questions answer, in one file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import fspath
from typing import TYPE_CHECKING

from kernmodel.api.options import (
    CODE,
    CacheOptions,
    CodeOptions,
    Kernel,
    Sizes,
    Values,
    kernel_request,
    kernels_of,
    one_of,
    one_point_of,
    refuse,
    values_by_name,
)
from kernmodel.api.result import Result, Views
from kernmodel.errors import UsageError
from kernmodel.user_files import File

if TYPE_CHECKING:
    from kernmodel.studies.comparison import ComparisonReport
    from kernmodel.studies.predict.roofline import RooflineAnswer
    from kernmodel.studies.report import KernelReport
    from kernmodel.traffic.options import CacheMode


def kernel_report(
    kernel: Kernel,
    machine: File,
    *,
    over: Mapping[str, Values] | None = None,
    without: Sequence[str] = (),
    measured: File | None = None,
    cache: CacheMode | CacheOptions = "auto",
    code: CodeOptions = CODE,
    progress: Callable[[Sequence[str]], Iterable[str]] = iter,
    strict: bool = False,
    **sizes: Sizes,
) -> Report:
    """Everything about a kernel on a machine, as `kernmodel report`: its page is `.html("stencil.html")`.

    >>> km.kernel_report("stencil.c", machine="clx", N=4000).html("stencil.html")

    Args:
        over: a size and the values for the charts over sizes: `{"N": "100-10000:40log"}`; None: those around the one
            that is asked for, of the size that layer conditions depend on.
        without: parts to leave out: "sizes", "rooflines", "carm", "dependences", "scaling", "blocking", "sensitivity".
        measured: a file of measurements beside the predictions, as of `ChartOptions`.
        progress: is given the names of the parts and gives them on, one after the other.
        kernel, machine, cache, code, strict, sizes: as for `ecm`; one value of each size.

    Raises:
        KernmodelError: the input is at fault, or a tool is missing. What fails in a part is said there.
    """
    from kernmodel.studies.report import PARTS
    from kernmodel.studies.report import report as study

    for name in without:
        one_of("--without", name, PARTS)
    _check_readable(measured)
    request = kernel_request(kernel, machine, one_point_of(sizes, kernel), cache)
    answer = study(request, code.request(), over=_one_size(over), without=tuple(without), watched=progress)
    return Report([_with_measured(answer, measured)], _REPORT, strict=strict)


def _check_readable(measured: File | None) -> None:
    """Read measurements before anything is predicted, which takes long.

    Raises:
        InputError: they cannot be read.
    """
    if measured is not None:
        from kernmodel.evaluate.charted import read_rows

        read_rows(fspath(measured))


def _with_measured(answer: KernelReport, measured: File | None) -> KernelReport:
    """The report with measurements on its charts."""
    if measured is None:
        return answer
    from kernmodel.evaluate.charted import carm_with_measured, with_measured

    file, charts, reading = fspath(measured), answer.rooflines, answer.carm
    if charts.answer is not None:
        charts = replace(charts, answer=with_measured(charts.answer, file))
    if reading.answer is not None:
        reading = replace(reading, answer=carm_with_measured(reading.answer, file))
    return replace(answer, rooflines=charts, carm=reading)


def comparison_report(
    kernels: Kernel | Sequence[Kernel],
    machines: Sequence[File],
    *,
    measured: File | None = None,
    cache: CacheMode | CacheOptions = "auto",
    code: CodeOptions = CODE,
    progress: Callable[[Sequence[str]], Iterable[str]] = iter,
    strict: bool = False,
    **sizes: Sizes,
) -> ComparedReport:
    """Several kernels, or the nests of a file, on one or several machines, as `kernmodel report`.

    >>> km.comparison_report(["stencil.c", "triad.c"], ["clx", "zen2"], N=4000).html("both.html")

    Args:
        measured: a file of measurements beside the predictions, as of `ChartOptions`.
        code: its `compiler`, `flags`, `ports` and `classic`.
        progress: is given the names of the machines and gives them on, one after the other.
        kernels, machines, cache, strict, sizes: as for `compare`.

    Raises:
        KernmodelError: the input is at fault on all machines.
    """
    from kernmodel.studies.comparison import comparison

    def beside(answer: RooflineAnswer) -> RooflineAnswer:
        if measured is None:
            return answer
        from kernmodel.evaluate.charted import with_measured

        return with_measured(answer, fspath(measured))

    names, files = [fspath(machine) for machine in machines], kernels_of(kernels)
    given = {"--asm": code.asm, "--loop": code.loop, "--lines": code.lines}
    refuse(given | {"--iterations-per-pass": code.iterations_per_pass}, "several kernels are given")
    _check_readable(measured)
    requests = [kernel_request(file, names[0], one_point_of(sizes, file), cache) for file in files]
    answer = comparison(requests, names, code.request(), beside=beside, watched=progress)
    return ComparedReport([answer], _COMPARED, strict=strict)


def _one_size(over: Mapping[str, Values] | None) -> tuple[str, tuple[int, ...]] | None:
    if over is None:
        return None
    found = values_by_name({"sizes": over})
    if len(found) != 1:
        what = f"{len(found)} sizes are given"
        raise UsageError(what, where="--over", todo="give the values of one: --over N=100-10000:40log")
    return next(iter(found.items()))


class Report(Result["KernelReport"]):
    """The answer of `report` for one kernel on one machine."""

    _known: list[KernelReport]

    def _page(self, unit: str | None, command: str) -> str:
        from kernmodel.report.html.kernel import kernel_page

        return kernel_page(self.answer)

    def verdict(self) -> str:
        """The prediction and what holds the kernel back, in a sentence or two."""
        from kernmodel.report.text.report import verdict

        return verdict(self.answer)


class ComparedReport(Result["ComparisonReport"]):
    """The answer of `report` for several kernels or machines."""

    _known: list[ComparisonReport]

    def _page(self, unit: str | None, command: str) -> str:
        from kernmodel.report.html.comparison import comparison_page

        return comparison_page(self.answer)

    def verdict(self) -> str:
        """Of each kernel where it is fastest, in a sentence."""
        from kernmodel.report.text.report import comparison_verdicts

        return " ".join(comparison_verdicts(self.answer))


_COMPARED = Views("report:comparison_summary", "report:comparison_document")
_REPORT = Views("report:report_summary", "report:report_document")
