"""Instruction tables: forms and rows, what they cover of code, measurements that contradict them, and new ones."""

from __future__ import annotations

from collections.abc import Iterable
from os import fspath
from pathlib import Path
from typing import TYPE_CHECKING

from kernmodel.api.result import Answer, Result, Views
from kernmodel.errors import InputError, UsageError
from kernmodel.user_files import File, Source, source_of

if TYPE_CHECKING:
    from kernmodel.incore.model import InstructionData
    from kernmodel.incore.tables.coverage import Coverage
    from kernmodel.incore.tables.importers.contradictions import Contradiction
    from kernmodel.incore.tables.importers.uops import ImportReport
    from kernmodel.incore.tables.table import InstructionTable, Operands


def list_instructions(mnemonic: str = "", machine: File | None = None, *, uarch: str | None = None) -> Result[str]:
    """The instruction forms of a table whose mnemonic begins like this, as `kernmodel instructions list`.

    >>> list(km.list_instructions("vfmadd", uarch="SKL"))

    Args:
        mnemonic: the beginning; "": all forms.
        machine, uarch: the machine whose core it is, or a microarchitecture in its place.

    Raises:
        KernmodelError: the machine or microarchitecture is unknown, both are given, or none.
    """
    table = table_of(core_name(machine, uarch))
    forms = [form for form in table.forms() if form.startswith(mnemonic.lower())]
    return _of_table(forms, Views("instruction:form_list", "incore:instruction_list_document", together=True), table)


def instructions(form: str, machine: File | None = None, *, uarch: str | None = None) -> Result[InstructionData]:
    """The rows of a form, or of all forms of a mnemonic, in an instruction table, as `kernmodel instructions show`.

    >>> km.instructions("vaddpd ymm,ymm,m256", uarch="SKL").answer.latencies

    Args:
        machine, uarch: as for `list_instructions`.

    Raises:
        InputError: the table has no such form; names the nearest.
    """
    table = table_of(core_name(machine, uarch), "easy")
    rows = [row for name in _forms(table, form) if (row := table.row(name)) is not None]
    return _of_table(rows, Views("instruction:instruction_report", "incore:instruction_document", together=True), table)


def instruction_coverage(code: Source, machine: File | None = None, *, uarch: str | None = None) -> Result[Coverage]:
    """Which forms of code have a row of their own, a relative's or none, as `kernmodel instructions coverage`.

    >>> [form.form for form in km.instruction_coverage("loop.s", machine="clx") if form.row == "none"]

    Args:
        code: an assembly listing or its text, or an object file.
        machine, uarch: as for `list_instructions`.

    Raises:
        KernmodelError: the input is at fault.
    """
    from kernmodel.code.listing import read_file
    from kernmodel.incore.tables.coverage import coverage

    table = table_of(core_name(machine, uarch))
    listing, _ = read_file(source_of(code), isa_name=table.parameters.isa)
    found = coverage(listing.instructions, table)
    return _of_table(found, Views("instruction:coverage_report", "", together=True), table)


def check_instructions(
    readings: File, machine: File | None = None, *, uarch: str | None = None, explained: bool = False
) -> Result[Contradiction]:
    """The rows that contradict measured reciprocal throughputs, as `kernmodel instructions check`.

    >>> [row.form for row in km.check_instructions("clx.csv", machine="clx") if not row.explanation]

    Args:
        readings: of InstLatx64 (CSV); or a folder with the measurements that carried tables were made of: then the
            rows of whose form two sources (micro-experiments, uops.info, InstLatx64, LLVM) differ by more than 20 %.
        machine, uarch: as for `list_instructions`.
        explained: whether the text lists the rows whose difference is explained too.

    Raises:
        KernmodelError: the input is at fault.
    """
    from kernmodel.incore.tables.importers.contradictions import contradictions
    from kernmodel.incore.tables.importers.disagreements import disagreements
    from kernmodel.incore.tables.importers.recipes import reference_of

    table, path = table_of(core_name(machine, uarch)), Path(readings)
    if several := path.is_dir():
        found = tuple(disagreements(table, path))
    else:
        reference = reference_of(path, table.parameters.name)
        rows = (row for form in table.forms() if form.partition(" [")[0] == form and (row := table.row(form)))
        found = tuple(contradictions(rows, reference))
    views = Views("instruction:contradictions_report", "", together=True)
    options = {"parameters": table.parameters, "explained": explained, "several": several}
    return Result(found, views, options, total=len(found))


def import_instructions(source: File, uarch: str) -> Result[tuple[str, ImportReport]]:
    """An instruction table from measurements of uops.info, as `kernmodel instructions import`: its text, and what it
    covers.

    >>> text, report = km.import_instructions("instructions.xml", "ADL-P").answer

    Args:
        source: instructions.xml, JSON lines (plain or gzip), or a folder with those of a carried core; or output of
            ibench or asmbench, whose forms make a file of rows for `--instructions`.
        uarch: the microarchitecture that they describe.

    Raises:
        KernmodelError: the measurements cannot be read, or a tool is missing.
    """
    from kernmodel.incore.tables.importers.build import import_uops

    return Result([import_uops(Path(source), uarch)], Views("instruction:table_text", ""))


def import_core(source: File, uarch: str, folder: File, *, like: str | None = None) -> Result[tuple[str, ...]]:
    """A core that can be used right away, as `kernmodel instructions import --out`: its table, and a parameter file.

    >>> print(km.import_core("instructions.xml", "ADL-P", "cores", like="GLC"))

    Args:
        source: measurements of uops.info, as of `import_instructions`; uarch: the core that they describe.
        folder: where the files go, made if it does not exist; a parameter file that is there stays.
        like: the core whose figures a new parameter file takes over; None: the carried core of the same name.

    Raises:
        KernmodelError: the measurements cannot be read, no figures are known, or the folder cannot be written.
    """
    from kernmodel.incore.tables.importers.build import write_core

    return Result([write_core(Path(source), uarch, Path(folder), like)], Views("instruction:imported_core", ""))


def _of_table(answers: Iterable[Answer], views: Views, table: InstructionTable) -> Result[Answer]:
    found = tuple(answers)
    return Result(found, views, {"parameters": table.parameters}, total=len(found))


def core_name(machine: File | None, uarch: str | None) -> str:
    """The core of a machine, or a microarchitecture.

    Raises:
        UsageError: both are given, or none; KernmodelError: the machine is unknown.
    """
    if (machine is None) == (uarch is None):
        raise UsageError("give either a machine or a microarchitecture", todo="write -m clx or --uarch CLX")
    if machine is None:
        return uarch or ""
    from kernmodel.machine.load import load_machine

    return load_machine(fspath(machine)).core.microarchitecture


def table_of(core: str, operands: Operands = "full") -> InstructionTable:
    """The instruction table of a core.

    Raises:
        InstructionTableError: it is unknown.
    """
    from kernmodel.incore.tables.parameters import load_parameters
    from kernmodel.incore.tables.table import InstructionTable

    return InstructionTable.open(load_parameters(core), operands)


def _forms(table: InstructionTable, wanted: str) -> list[str]:
    """The form itself, or all forms of the mnemonic `wanted`.

    Raises:
        InputError: the table has none; names the nearest forms.
    """
    wanted = " ".join(wanted.lower().replace(", ", ",").split())
    if table.row(wanted) is not None:
        return [wanted]
    forms = [form for form in table.forms() if "[" not in form]
    same = [form for form in forms if form.partition(" ")[0] == wanted]
    if same:
        return same
    from difflib import get_close_matches

    mnemonic = wanted.partition(" ")[0]
    near = [form for form in forms if form.partition(" ")[0] == mnemonic] or forms
    hint = ", ".join(repr(form) for form in get_close_matches(wanted, near, n=4, cutoff=0.4))
    todo = f"did you mean {hint}?" if hint else "see `kernmodel instructions list`"
    raise InputError(f"no row for {wanted!r} in the table of {table.parameters.name}", todo=todo)
