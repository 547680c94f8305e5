"""Measurements on this host, as `kernmodel measure`, `machine probe` and `validate`."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kernmodel.api.options import CODE, CodeOptions, Kernel, Sizes, kernel_request, kernels_of, one_of, one_point_of
from kernmodel.api.result import Result, Views
from kernmodel.errors import InputError, UsageError
from kernmodel.machine.pages import Pages
from kernmodel.user_files import File, Source, source_of

if TYPE_CHECKING:
    from kernmodel.evaluate.validation_model import Validation
    from kernmodel.incore.tables.table import InstructionTable
    from kernmodel.measure.model import (
        Bandwidths,
        BlockMeasurement,
        InstructionMeasurement,
        InstructionMeasurements,
        KernelMeasurement,
        Peaks,
    )
    from kernmodel.measure.probe import Probe

Progress = Callable[[str], object]
"""Is told what is measured next."""


def measure_block(
    code: str | bytes, *, notion: Literal["loop", "unrolled"] | None = None, align: int = 0, strict: bool = False
) -> Result[BlockMeasurement]:
    """Cycles per pass of machine code on this host, its data in L1, as `kernmodel measure block`.

    >>> km.measure_block("4801d8").answer.cycles.value

    Args:
        code: of x86-64, as bytes or in hex digits.
        notion: how passes follow one another; None: as a loop if it ends in a branch to its beginning.
        align: address of the block modulo 64.
        strict: raise for a figure that is not confirmed.

    Raises:
        AssemblyError: it is no code, or code that must not run; MeasurementError: it raises a signal, or the host does
            not let it be measured.
    """
    from kernmodel.code.blocks import parse_hex
    from kernmodel.measure.blocks import measure_block as measure
    from kernmodel.measure.host import Harness

    data = code if isinstance(code, bytes) else parse_hex(code, "--hex")
    with Harness() as harness:
        harness.seal()
        answer = measure(harness, data, notion=notion, offset=align)
    return Result([answer], Views("measure:block_report", "measure:block_document"), strict=strict)


def measure_peaks(*, progress: Progress = lambda what: None) -> Result[Peaks]:
    """FLOP per cycle of one core of this host, by operation, precision and register, as `kernmodel measure peaks`.

    >>> {(p.operation, p.width_bytes): p.per_cycle.value for p in km.measure_peaks().answer.peaks}

    Raises:
        MeasurementError: the host does not let it be measured.
    """
    from kernmodel.measure.host import Harness
    from kernmodel.measure.peaks import measure_peaks as measure

    with Harness() as harness:
        harness.seal()
        answer = measure(harness, progress=progress)
    return Result([answer], Views("measure:peaks_report", "measure:peaks_document"))


def measure_instruction(form: str, *, ports: bool = False) -> Result[InstructionMeasurement]:
    """Reciprocal throughput and latencies of an instruction form on this host, as `kernmodel measure instruction`.

    >>> km.measure_instruction("vaddpd ymm,ymm,ymm").answer.latencies["2 → 1"].value

    Args:
        form: as in instruction tables.
        ports: also what it costs beside known forms.

    Raises:
        InputError: no such form, or one that is not measured; MeasurementError: the host does not execute it.
    """
    from kernmodel.measure.host import Harness
    from kernmodel.measure.instructions import measure_instruction as measure

    with Harness() as harness:
        harness.seal()
        answer = measure(harness, form, ports=ports)
    return Result([answer], Views("measure:instruction_report", "measure:instruction_document"))


def measure_instructions(
    forms: Sequence[str] = (),
    unknown: Source | bytes | None = None,
    *,
    machine: File | None = None,
    uarch: str | None = None,
    ports: bool = False,
    progress: Progress = lambda what: None,
) -> Measurements:
    """Several instruction forms on this host, as `kernmodel measure instruction` with `--unknown`, `--hex` or several
    forms; those that cannot be measured are left out and named.

    >>> km.measure_instructions(unknown="loop.s", uarch="ZEN3").rows("rows.txt")

    Args:
        forms: as in instruction tables.
        unknown: code, of whose forms all are measured that the core's table has no row for.
        machine, uarch: whose core it is; needed for `unknown` and for rows.
        ports: also what each costs beside known forms.

    Raises:
        KernmodelError: the code or the core is at fault, the table lacks none of its forms, or the host does not let it
            be measured.
    """
    from kernmodel.api.tables import core_name, table_of
    from kernmodel.measure.host import Harness
    from kernmodel.measure.instructions import measure_instructions as measure

    wanted, core = list(forms), None
    if not (machine is None and uarch is None and unknown is None):
        core = core_name(machine, uarch)
    if unknown is not None:
        wanted += _unknown_forms(unknown, table_of(core or ""))
        if not wanted:
            what = f"the table of {core} has a row for each form of the code: there is nothing to measure"
            raise InputError(what, todo="name a FORM to measure it all the same")
    with Harness() as harness:
        harness.seal()
        answer = measure(harness, wanted, ports=ports, progress=progress)
    return Measurements([answer], core)


def _unknown_forms(code: Source | bytes, table: InstructionTable) -> list[str]:
    """The forms of code that a table has no row for."""
    from kernmodel.code.blocks import block_of_bytes
    from kernmodel.code.listing import read_file
    from kernmodel.incore.tables.coverage import coverage

    isa = table.parameters.isa
    if isinstance(code, bytes):
        instructions = block_of_bytes(code, file="--hex", isa_name=isa).instructions
    else:
        instructions = read_file(source_of(code), isa_name=isa)[0].instructions
    return [one.form for one in coverage(instructions, table) if one.row == "none"]


class Measurements(Result["InstructionMeasurements"]):
    """The answer of `measure_instructions`; `rows` makes rows of an instruction table of it."""

    def __init__(self, answers: Sequence[InstructionMeasurements], core: str | None) -> None:
        super().__init__(answers, Views("measure:instructions_report", "measure:instructions_document"))
        self._core = core

    def rows(self, file: File) -> str:
        """The text of a file of rows with what is confirmed, for `--instructions` and machine files.

        Args:
            file: that it is for; if it is there its other rows stay.

        Raises:
            UsageError: the core is not known, or nothing is confirmed; InstructionTableError: `file` holds rows for
                another table.
        """
        from kernmodel.api.tables import table_of
        from kernmodel.incore.tables.timed import rows_text
        from kernmodel.isa import split_rows
        from kernmodel.measure.host_topology import host_topology
        from kernmodel.measure.instructions import timing_of

        if self._core is None:
            todo = "name its core: --uarch ZEN3, or -m mine.yml"
            raise UsageError("rows belong to the table of a core", todo=todo)
        today = datetime.date.today().isoformat()
        host = host_topology()
        place = f"{host.model}, family {host.family} model {host.number}"
        source = f"measured on this host ({place}) by kernmodel measure instruction, {today}"
        timings = [timing for one in self.answer.forms if (timing := timing_of(one, source)) is not None]
        if not timings:
            why = "no form was measured so that two rounds confirm it"
            raise UsageError(f"there are no rows to write to {file}: {why}", todo="name forms that can be measured")
        path, table = Path(file), table_of(split_rows(self._core)[0])
        return rows_text(timings, table, ("Rows measured on this host.",), path if path.exists() else None)


def measure_bandwidth(
    *,
    levels: Sequence[str] = (),
    mixes: Sequence[str] = (),
    widths: Sequence[int] = (),
    pages: Pages = "huge",
    progress: Progress = lambda what: None,
) -> Result[Bandwidths]:
    """Bandwidths of one core of this host, by level and stream mix, as `kernmodel measure bandwidth`.

    >>> {(p.level, p.mix): p.bytes_per_cycle.value for p in km.measure_bandwidth(levels=["L1"]).answer.points}

    Args:
        levels, mixes, widths: which of them (bytes of registers); empty: all levels, all mixes, the widest registers.
        pages: "huge" or "4k".

    Raises:
        UsageError: an unknown mix; MeasurementError: the host does not let it be measured.
    """
    from kernmodel.measure.bandwidth import MIXES
    from kernmodel.measure.bandwidth import measure_bandwidths as measure
    from kernmodel.measure.host import Harness
    from kernmodel.measure.host_topology import host_topology

    for mix in mixes:
        one_of("--mix", mix, tuple(MIXES))
    with Harness() as harness:
        answer = measure(
            harness,
            host_topology(),
            levels=levels,
            mixes=mixes,
            widths=widths,
            huge=pages == "huge",
            progress=progress,
        )
    return Result([answer], Views("measure:bandwidth_report", "measure:bandwidth_document"))


def measure_kernel(
    kernel: Kernel,
    machine: File | None = None,
    *,
    level: str | None = None,
    code: CodeOptions = CODE,
    pages: Pages = "huge",
    strict: bool = False,
    progress: Progress = lambda what: None,
    **sizes: Sizes,
) -> Result[KernelMeasurement]:
    """Run a loop kernel on this host, as `kernmodel measure kernel`: the loop that `ecm` analyses, over its own arrays.

    >>> km.measure_kernel("triad.c", level="L2").answer.cycles.value

    Args:
        kernel: as for `ecm`; its arrays have to be parameters.
        machine: whose compilers and flags are taken; None: gcc or clang with -O3 -march=native.
        level: where the data are to lie ("L1" to "Mem"; "all": each in turn): sizes are scaled to it, extents without a
            value from 1,000. None: the sizes as they are.
        code: assembly or compiler and flags; `align` places the loop, `data_align` and `array_offsets` the arrays.
        pages: "huge" or "4k".
        sizes: one value of each size.

    Raises:
        KernmodelError: the input is at fault, a tool is missing, or the host does not let it be measured.
    """
    from kernmodel.evaluate.host_kernels import host_kernels
    from kernmodel.measure.kernels import Conditions

    request = kernel_request(kernel, machine or "", one_point_of(sizes, kernel))
    asked = code.request()
    conditions = Conditions(asked.align, asked.data_align, asked.array_offsets, pages == "huge")
    found = tuple(host_kernels(request, asked, level, conditions, progress))
    return Result(found, _KERNEL_VIEWS, total=len(found), strict=strict)


_KERNEL_VIEWS = Views("measure:kernels_report", "measure:kernels_document", together=True)


def probe_machine(
    *, depth: Literal["quick", "default", "thorough"] = "default", progress: Progress = lambda what: None
) -> Result[Probe]:
    """A machine file of this host, as `kernmodel machine probe`: what was measured, the rest of a carried machine.

    >>> Path("mine.yml").write_text(km.probe_machine(depth="quick").text())

    Args:
        depth: "quick" some 30 s, "default" some minutes on a busy host, "thorough" up to 15 min.

    Raises:
        MeasurementError: no carried machine is near, or the host does not let it be measured.
    """
    from kernmodel.measure.host import Harness
    from kernmodel.measure.probe import probe_machine as probe

    with Harness() as harness:
        answer = probe(harness, depth=depth, progress=progress)
    return Result([answer], Views("machine:machine_text", ""))


def validate(
    machine: File,
    kernels: Kernel | Sequence[Kernel] = (),
    *,
    levels: Sequence[str] = (),
    code: CodeOptions = CODE,
    pages: Pages = "huge",
    explain: float | None = 30.0,
    progress: Progress = lambda what: None,
    **sizes: Sizes,
) -> Result[Validation]:
    """Run kernels on this host and compare with what its machine file predicts, as `kernmodel validate`.

    >>> [(p.kernel, p.level, p.error_percent) for p in km.validate("mine.yml", ["triad.c"]).answer.points]

    Args:
        machine: of this host.
        kernels: as for `measure_kernel`; none: all that are carried.
        levels: where the data are to lie; none: all levels of this host.
        code: compiler and flags, `align`, `data_align` and `array_offsets`, for measurement and prediction alike.
        pages: "huge" or "4k".
        explain: error in percent beyond which experiments look for the cause; None: beyond 30, only such as run nothing
            again.
        sizes: from which the sizes of each level are scaled, one value each; extents of arrays that have none start at
            1,000.

    Raises:
        KernmodelError: the machine file is at fault, a tool is missing, or nothing can be measured here.
    """
    from kernmodel.evaluate.validation import LARGE_PERCENT, Plan
    from kernmodel.evaluate.validation import validate as run
    from kernmodel.measure.kernels import Conditions
    from kernmodel.resources import carried_files

    chosen = kernels_of(kernels) or kernels_of(tuple(file.name for file in carried_files("kernels", ".c")))
    requests = [kernel_request(kernel, machine, one_point_of(sizes, kernel)) for kernel in chosen]
    asked = code.request()
    conditions = Conditions(asked.align, asked.data_align, asked.array_offsets, pages == "huge")
    again = explain is not None
    plan = Plan(asked, conditions, tuple(levels), LARGE_PERCENT if explain is None else explain, again)
    return Result([run(requests, plan, progress)], _VALIDATION)


_VALIDATION = Views("validation:validation_report", "validation:validation_document", "validation:validation_figure")
