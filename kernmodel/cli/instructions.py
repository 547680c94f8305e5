"""`kernmodel instructions`: list, show, coverage, check, import."""

from __future__ import annotations

from pathlib import Path

import click

from kernmodel.api import tables as api
from kernmodel.api.options import FileName
from kernmodel.cli import options, types
from kernmodel.cli.command import Group
from kernmodel.cli.output import Shown, show_result, show_text, write_error
from kernmodel.errors import UsageError
from kernmodel.isa import ROWS_ENDING
from kernmodel.output_files import output_file, write_file

target_options = options.together(options.machine_option(required=False), options.uarch_option)


@click.group(cls=Group)
def instructions() -> None:
    """List, show, check and import instruction tables.

    \b
    Example:
      kernmodel instructions show "vaddpd ymm,ymm,m256" -m clx
    """


@instructions.command("list", short_help="List the instruction forms of a table.")
@click.argument("mnemonic", default="")
@target_options
@options.json_option
def list_(mnemonic: str, machine: str | None, uarch: str | None, as_json: bool) -> None:
    """List the instruction forms of a table whose mnemonic begins with MNEMONIC.

    \b
    Example:
      kernmodel instructions list vfmadd -m clx
    """
    show_result(api.list_instructions(mnemonic, machine, uarch=uarch), Shown.of(as_json=as_json))


@instructions.command("show", short_help="Show rows of a table.")
@click.argument("form")
@target_options
@options.json_option
def show_(form: str, machine: str | None, uarch: str | None, as_json: bool) -> None:
    """Show the row of FORM, or of all forms of a mnemonic: ports, latencies, front end, and where it comes from.

    \b
    Example:
      kernmodel instructions show "vaddpd ymm,ymm,m256" -m clx
    """
    show_result(api.instructions(form, machine, uarch=uarch), Shown.of(as_json=as_json))


@instructions.command("coverage", short_help="Which forms of a listing have rows.")
@click.argument("file", type=click.Path())
@target_options
def coverage_(file: str, machine: str | None, uarch: str | None) -> None:
    """Show which instruction forms of FILE, an assembly listing or object file, have a row of their own in the table,
    which ones a relative stands for, and which ones are unknown.

    \b
    Example:
      kernmodel instructions coverage loop.s -m clx
    """
    show_result(api.instruction_coverage(FileName(file), machine, uarch=uarch), Shown.of())


@instructions.command("check", short_help="Compare a table with measured throughputs.")
@click.argument("readings", type=click.Path())
@target_options
@click.option("--explained", is_flag=True, help="Also list the rows whose difference is explained.")
@click.pass_context
def check_(ctx: click.Context, readings: str, machine: str | None, uarch: str | None, explained: bool) -> None:
    """List the rows that contradict READINGS, reciprocal throughputs measured by InstLatx64 (CSV), by more than 15 %,
    with what explains it; exit status 1 if nothing explains one.

    READINGS may be a folder with the measurements that the carried tables were made of (uops, latency-throughput):
    then those on which two sources (micro-experiments, uops.info, InstLatx64, LLVM) differ by more than 20 %, and which
    one the table follows.

    \b
    Example:
      kernmodel instructions check clx.csv -m clx
    """
    found = api.check_instructions(readings, machine, uarch=uarch, explained=explained)
    show_result(found, Shown.of())
    ctx.exit(1 if any(not item.explanation for item in found) else 0)


def rows_file(name: str, machine: str | None, uarch: str | None) -> Path:
    """The file of rows that is to be written, before minutes are measured.

    Raises:
        UsageError: another ending, or no core whose rows they are.
    """
    if not name.endswith(ROWS_ENDING):
        raise UsageError(f"{name} does not end in {ROWS_ENDING}", where="--output", todo="name it so")
    if machine is None and uarch is None:
        raise UsageError("rows belong to the table of a core", where="--output", todo="name it: --uarch ZEN3, or -m")
    return output_file(name, "--output")


@instructions.command("import", short_help="Build a table from measurements.")
@click.argument("source", type=click.Path())
@click.option("--uarch", type=types.Microarchitecture(), required=True, help="Microarchitecture the data describe.")
@click.option("-o", "--output", metavar="FILE", help="Table to write.  [default: standard output]")
@click.option(
    "--out", "folder", metavar="DIR", help="Folder for the table and a parameter file, as --uarch finds them."
)
@click.option("--like", metavar="NAME", help="Core whose figures a new core's parameter file takes over.")
def import_(source: str, uarch: str, output: str | None, folder: str | None, like: str | None) -> None:
    """Build an instruction table from SOURCE, the measurements of uops.info: its instructions.xml, JSON lines (plain
    or gzip), or a folder with those of a carried core (uops/SKL.jsonl.gz). From output of ibench or asmbench it builds
    a file of rows for --instructions.

    With --out the result can be used right away: as --uarch DIR/NAME.yml, or by its name with DIR in the environment
    variable KERNMODEL_UARCH_PATH.

    \b
    Examples:
      kernmodel instructions import instructions.xml --uarch ADL-P --like GLC --out cores
      kernmodel instructions import ibench.txt --uarch ZEN3 -o rows.txt
    """
    if folder is not None:
        if output is not None:
            raise UsageError("-o and --out exclude each other", todo="give one of them")
        for line in api.import_core(source, uarch, folder, like=like).answer:
            write_error(f"kernmodel: {line}")
        return
    target = output_file(output, "--output") if output else None
    text, report = api.import_instructions(source, uarch).answer
    write_error(f"kernmodel: {report.rows} rows cover {report.coverage:.1%} of {report.records} records")
    for reason, strings in report.left_out.items():
        write_error(f"kernmodel: left out {len(strings)}: {reason}")
    if target is None:
        show_text(text)
    else:
        write_file(target, text)
