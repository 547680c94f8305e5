"""What predictions start from: machines and kernels, listed, checked, imported and shown."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

from kernmodel.api.options import Kernel, Nest, Sizes, macros_of, one_point_of
from kernmodel.api.result import Result, Views
from kernmodel.errors import UsageError
from kernmodel.user_files import File, source_of

if TYPE_CHECKING:
    from kernmodel.machine.kerncraft import Imported
    from kernmodel.machine.model import Machine
    from kernmodel.report.text.kernel import KernelSummary
    from kernmodel.schema.fields import Problem
    from kernmodel.source.load import FoundNest
    from kernmodel.source.model import LoopNest


def load_machine(name: File) -> Result[Machine]:
    """The machine of a file or a carried name, as `kernmodel machine show`.

    >>> km.load_machine("clx").answer.levels[0].size_bytes

    Raises:
        MachineError: no such file, or its first problem with the place.
    """
    from kernmodel.machine.load import load_machine as load

    return Result([load(fspath(name))], _MACHINE)


_MACHINES = Views("machine:machine_list", "carried:machine_list_document", together=True)
_CHECKED = Views("machine:machine_check", "carried:machine_check_document", together=True)
_IMPORTED = Views("machine:machine_text", "")
_KERNELS = Views("kernel:kernel_list", "carried:kernel_list_document", together=True)
_MACHINE = Views("machine:machine_report", "carried:machine_document")


def list_machines() -> Result[Machine]:
    """The carried machines, as `kernmodel machine list`.

    >>> [machine.name for machine in km.list_machines()]
    """
    from kernmodel.machine.load import list_machines as carried

    machines = carried()
    return Result(machines, _MACHINES, total=len(machines))


def check_machines(
    files: Sequence[File], *, carried: bool = False, compilers: bool = False
) -> Result[tuple[str, tuple[Problem, ...]]]:
    """The problems of machine files, as `kernmodel machine check`: each file with all that is wrong.

    >>> [str(problem) for file, problems in km.check_machines(["my-machine.yml"]) for problem in problems]

    Args:
        files: paths or carried names; carried: all carried ones too.
        compilers: also try the flags of installed compilers.

    Raises:
        MachineError: no such file; UsageError: no file at all.
    """
    from kernmodel.machine.load import ENDING, FOLDER, find_machine
    from kernmodel.resources import carried_files
    from kernmodel.studies.predict.machine_check import check_machine_file

    paths = [*(find_machine(fspath(name)) for name in files), *(carried_files(FOLDER, ENDING) if carried else ())]
    if not paths:
        raise UsageError("no machine file to check", todo="give files, or --carried for the carried ones")
    checked = {str(path): check_machine_file(path, compilers=compilers) for path in paths}
    return Result(checked.items(), _CHECKED, total=len(checked))


def import_machine(files: File | Sequence[File], machine: File | None = None) -> Result[Imported]:
    """A machine file made of another tool's files, as `kernmodel machine import`; notes name what is missing or
    doubtful.

    >>> Path("my-skx.yml").write_text(km.import_machine("SkylakeSP_Gold-6148.yml").text())

    Args:
        files: a machine file of Kerncraft; or results of likwid-bench and the CARM Tool.
        machine: whose bandwidths and peaks the results are: its file with these in it is made. Kerncraft's file needs
            none.

    Raises:
        MachineError: a file cannot be read; results that say nothing of the machine. UsageError: `machine` is missing
            or of no use.
    """
    from kernmodel.machine.benchmarks.take_over import is_benchmark, take_over
    from kernmodel.machine.kerncraft import read_kerncraft

    given = [fspath(file) for file in ([files] if isinstance(files, str | PathLike) else files)]
    if machine is not None:
        return Result([take_over(given, fspath(machine))], _IMPORTED)
    if any(map(is_benchmark, given)):
        what, todo = "holds results of benchmarks", "name the machine file that they go into: -m zen3"
        raise UsageError(what, where=next(filter(is_benchmark, given)), todo=todo)
    if len(given) != 1:
        raise UsageError("several machine files make no one", todo="import them one by one")
    return Result([read_kerncraft(Path(given[0]))], _IMPORTED)


def list_kernels() -> Result[KernelSummary]:
    """The carried kernels, as `kernmodel kernel list`.

    >>> [kernel.name for kernel in km.list_kernels()]
    """
    from kernmodel.report.text.kernel import KernelSummary, about
    from kernmodel.resources import carried_files

    texts = {file: file.read_text(encoding="utf-8") for file in carried_files("kernels", ".c")}
    kernels = [KernelSummary(file.stem, about(file.stem, text), str(file)) for file, text in texts.items()]
    return Result(kernels, _KERNELS, total=len(kernels))


def load_kernel(kernel: Kernel, **sizes: Sizes) -> Result[LoopNest]:
    """What is derived from the source of a kernel: loops, arrays, accesses, operations, as `kernmodel kernel show`.

    >>> km.load_kernel("stencil.c").answer.flops_per_iteration

    Args:
        kernel, sizes: as for `ecm`; one value of each size.

    Raises:
        SourceError: it cannot be read, or is no C that the models cover.
    """
    from kernmodel.source.load import load_kernel as load
    from kernmodel.source.nest.sizes import sizes_of

    nest, given = kernel if isinstance(kernel, Nest) else Nest(kernel), one_point_of(sizes, kernel)
    defines: dict[str, str | int] = {**macros_of(nest), **given}
    loaded = load(
        source_of(nest.source),
        defines,
        nest=nest.nest,
        function=nest.function,
        line=nest.line,
        include=nest.include,
        stated=nest.stated(),
    )
    # a kernel without default sizes can be shown, but sizes that are given must fit
    known = sizes_of(loaded, given) if given or set(loaded.symbols) <= set(loaded.defaults) else {}
    return Result([loaded], _KERNEL, {"values": known})


def find_nests(kernel: Kernel, *, headers: bool = False, **sizes: Sizes) -> Result[FoundNest]:
    """All loop nests of a file, each with what is read of it or why it is not, as `kernmodel kernel loops`.

    >>> [(found.function, found.number) for found in km.find_nests("stencil.c")]

    Args:
        kernel, sizes: as for `ecm`; of a `Nest` its function limits what is listed.
        headers: also the nests of the headers that the file includes, which are left out where it has some of its own.

    Raises:
        SourceError: it cannot be read as C.
    """
    from kernmodel.source.load import list_nests

    nest, given = kernel if isinstance(kernel, Nest) else Nest(kernel), one_point_of(sizes, kernel)
    defines: dict[str, str | int] = {**macros_of(nest), **given}
    source, stated = source_of(nest.source), nest.stated()
    found = list_nests(source, defines, function=nest.function, include=nest.include, stated=stated, headers=headers)
    return Result(found.nests, _NESTS, {"left_out": found.left_out}, total=len(found.nests))


_NESTS = Views("kernel:nests_report", "carried:nests_document", together=True)
_KERNEL = Views("kernel:kernel_report", "carried:kernel_document")
