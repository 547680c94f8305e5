"""What a change of the machine, of the flags or of the compiler is worth."""

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
    kernel_request,
    one_point_of,
)
from kernmodel.api.result import Result, Views
from kernmodel.errors import UsageError
from kernmodel.studies.predict.request import Change
from kernmodel.user_files import File

if TYPE_CHECKING:
    from kernmodel.machine.changes.figures import Figure as MachineFigure
    from kernmodel.machine.changes.figures import MachineFigures
    from kernmodel.studies.what_if.code import CodeAnswer
    from kernmodel.studies.what_if.machine import WhatIfAnswer
    from kernmodel.studies.what_if.sensitivity import SensitivityAnswer
    from kernmodel.traffic.options import CacheMode

Changes = Mapping[str, str] | Sequence[str | Change]
"""Figures of the machine file and their new values: `{"L2.size": "2MiB", "memory.bandwidth": "x2"}`, or texts
"L2.size=2MiB"."""


def what_if(
    kernel: Kernel,
    machine: File,
    changes: Changes,
    *,
    cores: int = 1,
    cache: CacheMode | CacheOptions = "auto",
    code: CodeOptions = CODE,
    strict: bool = False,
    **sizes: Sizes,
) -> Result[WhatIfAnswer]:
    """What changes of the machine do to the runtime of a kernel, each alone and all together, as `kernmodel what-if
    --set`.

    >>> print(km.what_if("stencil.c", "clx", {"L2.size": "2MiB", "clock": "3GHz"}))

    Args:
        changes: figures of the machine file (`machine_figures` lists them) and their new values.
        cores: cores that run the kernel.
        kernel, machine, cache, code, strict, sizes: as for `ecm`; one value of each size.

    Raises:
        KernmodelError: the input is at fault, or a tool is missing.
    """
    from kernmodel.studies.what_if.machine import what_if as study

    request = kernel_request(kernel, machine, one_point_of(sizes, kernel), cache)
    answer = study(request, code.request(), changes_of(changes), cores)
    return Result([answer], _WHAT_IF, strict=strict)


def compare_code(
    kernel: Kernel,
    machine: File,
    codes: Iterable[CodeOptions],
    *,
    changes: Changes = (),
    cores: int = 1,
    cache: CacheMode | CacheOptions = "auto",
    strict: bool = False,
    **sizes: Sizes,
) -> Result[CodeAnswer]:
    """What other compilers and flags do to the runtime of a kernel, as `kernmodel what-if --flags --compiler`.

    >>> print(km.compare_code("stencil.c", "clx", [km.CodeOptions(flags="-O2"), km.CodeOptions(compiler="clang")]))

    Args:
        codes: what is compared with the code of the machine's own compiler and flags.
        kernel, machine, changes, cores, cache, strict, sizes: as for `what_if`.

    Raises:
        KernmodelError: the input is at fault, or a tool is missing.
    """
    from kernmodel.studies.what_if.code import compare_code as study

    variants = list(codes)
    if not variants:
        raise UsageError("there is nothing to change", where="what-if", todo="give codes to compare")
    asked = [replace(variants[0], compiler=None, flags=None), *variants]
    request = kernel_request(kernel, machine, one_point_of(sizes, kernel), cache)
    answer = study(request, [code.request() for code in asked], cores, changes_of(changes))
    return Result([answer], _CODE, strict=strict)


def sensitivity(
    kernel: Kernel,
    machine: File,
    *,
    step: float = 0.1,
    cores: int = 1,
    cache: CacheMode | CacheOptions = "auto",
    code: CodeOptions = CODE,
    progress: Callable[[Sequence[MachineFigure]], Iterable[MachineFigure]] = iter,
    strict: bool = False,
    **sizes: Sizes,
) -> Result[SensitivityAnswer]:
    """What every figure of the machine file is worth for a kernel, as `kernmodel what-if --sensitivity`.

    >>> km.sensitivity("stencil.c", machine="clx").plot("tornado.svg")

    Args:
        step: by which each figure is changed, as a share.
        progress: is given the figures and gives them on, one after the other.
        kernel, machine, cores, cache, code, strict, sizes: as for `what_if`.

    Raises:
        KernmodelError: the input is at fault, or a tool is missing.
    """
    from kernmodel.studies.what_if.sensitivity import sensitivity as study

    request = kernel_request(kernel, machine, one_point_of(sizes, kernel), cache)
    answer = study(request, code.request(), cores, step, progress)
    return Result([answer], _SENSITIVITY, strict=strict)


def machine_figures(machine: File) -> Result[MachineFigures]:
    """The figures of a machine file that can be changed, as `kernmodel what-if --list`.

    Raises:
        MachineError: no such machine, or a malformed file.
    """
    from kernmodel.machine.changes.figures import MachineFigures

    return Result([MachineFigures.open(fspath(machine))], _FIGURES)


def changes_of(changes: Changes) -> tuple[Change, ...]:
    """The changes, in order; what they mean is not checked yet.

    Raises:
        UsageError: a text that is no PATH=VALUE.
    """
    if isinstance(changes, Mapping):
        return tuple(Change(path, str(value)) for path, value in changes.items())
    return tuple(change if isinstance(change, Change) else parse_change(change) for change in changes)


def parse_change(text: str) -> Change:
    """`PATH=VALUE`.

    Raises:
        UsageError: it is none.
    """
    path, equals, value = text.partition("=")
    if not (equals and path.strip() and value.strip()):
        todo = "write --set L2.size=2MiB or --set L2.size=x2"
        raise UsageError(f"{text!r} is no PATH=VALUE", where="--set", todo=todo)
    return Change(path.strip(), value.strip())


_WHAT_IF = Views("what_if:what_if_report", "what_if:what_if_document", unit="cy/CL")
_CODE = Views("what_if:code_report", "what_if:code_document", unit="cy/CL")
_SENSITIVITY = Views(
    *("what_if:sensitivity_report", "what_if:sensitivity_document", "tornado:tornado_figure", "tornado:tornado_text"),
    unit="cy/CL",
    charts="sensitivity:sensitivity_charts",
)
_FIGURES = Views("what_if:figures_report", "what_if:figures_document")
