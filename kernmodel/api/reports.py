"""Pages about kernels: everything that the other questions answer, in one file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kernmodel.api.options import (
    CODE,
    CacheOptions,
    CodeOptions,
    Kernel,
    Sizes,
    Values,
    kernel_request,
    one_of,
    one_point_of,
    values_by_name,
)
from kernmodel.api.result import Result, Views
from kernmodel.errors import UsageError
from kernmodel.user_files import File

if TYPE_CHECKING:
    from kernmodel.studies.report import KernelReport
    from kernmodel.traffic.options import CacheMode


def kernel_report(
    kernel: Kernel,
    machine: File,
    *,
    over: Mapping[str, Values] | None = None,
    without: Sequence[str] = (),
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
        progress: is given the names of the parts and gives them on, one after the other.
        kernel, machine, cache, code, strict, sizes: as for `ecm`; one value of each size.

    Raises:
        KernmodelError: the input is at fault, or a tool is missing. What fails in a part is said there.
    """
    from kernmodel.studies.report import PARTS
    from kernmodel.studies.report import report as study

    for name in without:
        one_of("--without", name, PARTS)
    request = kernel_request(kernel, machine, one_point_of(sizes, kernel), cache)
    answer = study(request, code.request(), over=_one_size(over), without=tuple(without), watched=progress)
    return Report([answer], _REPORT, strict=strict)


def _one_size(over: Mapping[str, Values] | None) -> tuple[str, tuple[int, ...]] | None:
    if over is None:
        return None
    found = values_by_name({"sizes": over})
    if len(found) != 1:
        what = f"{len(found)} sizes are given"
        raise UsageError(what, where="--over", todo="give the values of one: --over N=100-10000:40log")
    return next(iter(found.items()))


class Report(Result["KernelReport"]):
    """The answer of `report`."""

    _known: list[KernelReport]

    def _page(self, unit: str | None, command: str) -> str:
        from kernmodel.report.html.kernel import kernel_page

        return kernel_page(self.answer)


_REPORT = Views("report:report_summary", "report:report_document")
