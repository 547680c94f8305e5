"""`kernmodel incore`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernmodel.cli import options
from kernmodel.cli.command import Command
from kernmodel.cli.output import print_line, show, show_json, show_notes, show_rows
from kernmodel.errors import InputError, UsageError
from kernmodel.output_files import write_file

if TYPE_CHECKING:
    from kernmodel.errors import Note
    from kernmodel.incore.answer.batch import BlockQuery, BlockResult
    from kernmodel.incore.core import Settings
    from kernmodel.studies.predict.incore import CodeSource, Outcome, Target
    from kernmodel.studies.predict.request import InCoreAnswer

_RANGE = re.compile(r"(0[xX][0-9a-fA-F]+|[0-9]+)-(0[xX][0-9a-fA-F]+|[0-9]+)")
_ALL = "all"
_GRAPHS = (".dot", ".gv", ".svg")
_LINE = 64
"""Bytes of a line of the instruction cache, in which addresses repeat for the front end."""


class Addresses(options.ParamType):
    """Two addresses, the second one past the last byte."""

    name = "range"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """First and end."""
        match = _RANGE.fullmatch(str(value).strip())
        first, end = (int(match[1], 0), int(match[2], 0)) if match else (0, 0)
        if first >= end:
            todo = "write the first address and the one behind the last byte: 0x401000-0x401040"
            raise UsageError(f"{value!r} is no range of addresses", where="--range", todo=todo)
        return first, end


class Align(options.ParamType):
    """An address modulo 64, or `all`."""

    name = "offset"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """The offset, or "all"."""
        if value == _ALL:
            return _ALL
        text = str(value)
        offset = int(text, 0) if re.fullmatch("0[xX][0-9a-fA-F]{1,4}|[1-9][0-9]{0,4}|0", text) else _LINE
        if offset >= _LINE:
            what = f"{value!r} is neither an address modulo {_LINE} nor {_ALL!r}"
            raise UsageError(what, where="--align", todo=f"write --align 16 (0 to {_LINE - 1}), or --align all")
        return offset


_source_options = options.together(
    click.option("--hex", "hex_digits", metavar="DIGITS", help="The code itself, as hex digits."),
    click.option("--raw", is_flag=True, help="FILE is machine code and nothing else."),
    click.option("--function", metavar="F", help="Function of an object or executable."),
    click.option("--range", "addresses", type=Addresses(), metavar="A-B", help="Addresses in an object or executable."),
    click.option("--region", metavar="NAME", help="Name of the marked region, of several."),
    click.option("--all-loops", is_flag=True, help="A table of every innermost loop."),
)
_batch_options = options.together(
    click.option("--batch", metavar="FILE", help="A file of blocks: hex digits a line, or CSV; - is standard input."),
    click.option("--hex-column", metavar="NAME", help="Column of a CSV file of blocks.  [default: hex]"),
    click.option("--jobs", type=options.Count(min=1), metavar="N", help="Processes of --batch.  [default: all cores]"),
)
_model_options = options.together(
    click.option(
        "--notion",
        type=click.Choice(["auto", "loop", "unrolled"]),
        default="auto",
        show_default=True,
        help="A loop's body, or copied one behind the other; auto: a loop if it ends in a branch.",
    ),
    click.option("--align", type=Align(), metavar="N|all", help="Address of the first byte modulo 64; all: every one."),
    click.option(
        "--operands",
        type=click.Choice(["full", "easy"]),
        default="full",
        show_default=True,
        help="Operands of divisions: those that take longest, or few bits as in measurements of throughput.",
    ),
    click.option(
        "--memory",
        type=click.Choice(["moving", "different", "stack"]),
        default="moving",
        show_default=True,
        help="Which loads read what the block stored: by addresses that move, or by equal registers only.",
    ),
    click.option("--estimate", is_flag=True, help="Give instructions without a row that of their nearest relative."),
)
_answer_options = options.together(
    click.option("--explain", is_flag=True, help="Why, and what would help."),
    click.option("--graph", metavar="OUT", help="Write the dependency graph: OUT.dot, or OUT.svg with Graphviz."),
)


@click.command(cls=Command)
@click.argument("file", type=click.Path(allow_dash=True), required=False)
@options.machine_option(required=False)
@options.uarch_option
@_source_options
@options.loop_options
@_model_options
@_answer_options
@_batch_options
@options.output_options
def incore(file: str | None, machine: str | None, uarch: str | None, **given: Any) -> None:
    """How the core executes the loop in FILE: assembly, an object or executable, raw bytes, or - (standard input).

    --uarch takes several names separated by commas, or all, and then prints one table.

    \b
    Examples:
      kernmodel incore -m clx triad.s --explain
      kernmodel incore --uarch skl --hex 4801d84801c3ffc975f7
      kernmodel incore --uarch all loop.o --function daxpy
      kernmodel incore --uarch skl --batch blocks.txt --json > out.jsonl
    """
    _check_use(file, machine, uarch, given)
    targets = _targets(machine, uarch)
    settings = _settings(given)
    if given["batch"] is not None:
        _answer_batch(targets, settings, given)
        return
    source = _source(file, given)
    if len(targets) > 1 or source.all_loops:
        _answer_many(source, targets, settings, given)
    else:
        _answer_one(source, targets[0], settings, given)


def _check_use(file: str | None, machine: str | None, uarch: str | None, given: dict[str, Any]) -> None:
    """Refuse what does not say exactly one code and one way to the core.

    Raises:
        UsageError: names what is missing or twice there.
    """
    if (machine is None) == (uarch is None):
        raise UsageError("give either a machine or a microarchitecture", todo="write -m clx or --uarch CLX")
    named = {"FILE": file, "--hex": given["hex_digits"], "--batch": given["batch"]}
    codes = [name for name, value in named.items() if value is not None]
    if len(codes) != 1:
        what = f"{' and '.join(codes)} are both code" if codes else "no code is given"
        raise UsageError(what, todo="give a FILE (- for standard input), --hex DIGITS or --batch FILE")
    if file is not None and Path(file).suffix.lower() == ".c":
        todo = f"use kernmodel ecm -v {file}, or compile it with -S first"
        raise UsageError("is C source, not assembly", where=file, todo=todo)
    if given["raw"] and file is None:
        raise UsageError("says what FILE is", where="--raw", todo="leave it out")


def _targets(machine: str | None, uarch: str | None) -> tuple[Target, ...]:
    from kernmodel.studies.predict.incore import machine_target, named_targets

    return (machine_target(machine),) if machine is not None else named_targets(uarch or "")


def _settings(given: dict[str, Any]) -> Settings:
    from kernmodel.incore.core import Settings

    return Settings(
        notion=given["notion"],
        port_model=given["ports"],
        offset=None if given["align"] == _ALL else given["align"],
        operands=given["operands"],
        memory=given["memory"],
        estimate=given["estimate"],
    )


def _source(file: str | None, given: dict[str, Any]) -> CodeSource:
    from kernmodel.studies.predict.incore import CodeSource

    names = ("hex_digits", "raw", "syntax", "function", "addresses", "loop", "lines", "region", "all_loops")
    return CodeSource(file, **{name: given[name] for name in (*names, "iterations_per_pass")})


def _answer_one(source: CodeSource, target: Target, settings: Settings, given: dict[str, Any]) -> None:
    from kernmodel.studies.predict.incore import alignments, analyse_one
    from kernmodel.studies.predict.incore import explanation as explained

    graph_file = None if given["graph"] is None else _graph_file(given["graph"])
    answer = analyse_one(source, target, settings)
    options.accept_notes(answer.notes, given["strict"])
    if graph_file is not None:
        _write_graph(graph_file, answer, settings)
    explanation = explained(answer, settings) if given["explain"] else None
    grouped = alignments(answer, settings) if given["align"] == _ALL else ()
    if given["as_json"]:
        from kernmodel.report.json.incore import incore_document

        show_json(incore_document(answer, explanation, grouped))
        return
    from kernmodel.report.text.incore import incore_report

    extra: list[Any] = []
    if explanation or grouped:
        from kernmodel.report.text.explanation import alignment_section, explanation_section

        extra += explanation_section(answer.incore, explanation) if explanation else ()
        extra += alignment_section(grouped) if grouped else ()
    show(incore_report(answer, verbose=given["verbose"], extra=extra))


def _graph_file(path: str) -> Path:
    """The file for the graph.

    Raises:
        UsageError: a directory, or an ending of something else.
    """
    target = options.output_file(path)
    if target.suffix.lower() not in _GRAPHS:
        todo = f"end it in {', '.join(_GRAPHS)}; Graphviz draws others: dot -Tpng graph.dot > graph.png"
        raise UsageError(f"the ending {target.suffix!r} is not known", where=f"--graph {path}", todo=todo)
    return target


def _write_graph(path: Path, answer: InCoreAnswer, settings: Settings) -> None:
    """Write the dependency graph as DOT, or draw it where the name ends in .svg.

    Raises:
        ToolError: an SVG file, but no Graphviz.
    """
    from kernmodel.report.dependency_graph import dot_text, svg_of
    from kernmodel.studies.predict.incore import dependencies

    title = f"{answer.origin.file} on {answer.parameters.name}"
    text = dot_text(answer.incore, dependencies(answer, settings), title)
    write_file(path, svg_of(text) if path.suffix.lower() == ".svg" else text)


def _answer_many(source: CodeSource, targets: tuple[Target, ...], settings: Settings, given: dict[str, Any]) -> None:
    """One table over cores and loops."""
    from kernmodel.studies.predict.incore import analyse_many

    for name in ("explain", "graph", "align"):
        if given[name] and (name != "align" or given[name] == _ALL):
            raise UsageError("wants one loop on one core", where=f"--{name}", todo="leave it out of a table")
    notes: dict[Note, None] = {}

    def noted(outcomes: Iterator[Outcome]) -> Iterator[Outcome]:
        for outcome in outcomes:
            if outcome.answer is not None:
                options.accept_notes(outcome.answer.notes, given["strict"])
                notes.update(dict.fromkeys(outcome.answer.notes))
            yield outcome

    outcomes = noted(analyse_many(source, targets, settings))
    if given["as_json"]:
        from kernmodel.report.json.incore import incore_sweep_document

        show_json(incore_sweep_document(outcomes))
        return
    from kernmodel.report.text.incore import OUTCOME_COLUMNS

    show_rows(OUTCOME_COLUMNS, outcomes)
    show_notes(notes)


def _answer_batch(targets: tuple[Target, ...], settings: Settings, given: dict[str, Any]) -> None:
    """A line per block, as they come."""
    from kernmodel.incore.answer.batch import answer_all, answers_shown, refused

    if len(targets) > 1:
        raise UsageError("takes one microarchitecture", where="--batch", todo="call it once for each")
    one_block = ("function", "addresses", "loop", "lines", "region", "all_loops", "explain", "graph", "syntax")
    names = {"addresses": "range", "all_loops": "all-loops", "iterations_per_pass": "iterations-per-pass"}
    for name in (*one_block, "iterations_per_pass"):
        if given[name]:
            what = "does not go with --batch"
            raise UsageError(what, where=f"--{names.get(name, name)}", todo="leave it out")
    if given["align"] == _ALL:
        raise UsageError("wants one block", where="--align all", todo="give one offset for all blocks of --batch")
    queries = _queries(targets[0], given)
    answered = 0
    if given["as_json"]:
        show = _refused_line if given["strict"] else _line
        for line, is_answer in answers_shown(queries, settings, show, given["jobs"]):
            answered += is_answer
            print_line(line)
    else:
        from kernmodel.report.text.incore import BLOCK_COLUMNS

        def counted(results: Iterator[BlockResult]) -> Iterator[BlockResult]:
            nonlocal answered
            for result in results:
                answered += result.error is None
                yield result

        results = answer_all(queries, settings, given["jobs"])
        show_rows(BLOCK_COLUMNS, counted(map(refused, results) if given["strict"] else results))
    if not answered:
        raise InputError("no block has an answer", where=given["batch"], todo="the lines say why")


def _line(result: BlockResult) -> tuple[str, bool]:
    """A line of JSON, and whether it is an answer."""
    from kernmodel.report.json.incore import block_line

    return block_line(result), result.error is None


def _refused_line(result: BlockResult) -> tuple[str, bool]:
    """The same with --strict."""
    from kernmodel.incore.answer.batch import refused

    return _line(refused(result))


def _queries(target: Target, given: dict[str, Any]) -> Iterator[BlockQuery]:
    from kernmodel.code.block_files import block_lines, read_lines
    from kernmodel.incore.answer.batch import BlockQuery

    file = given["batch"]
    for line in block_lines(read_lines(file), file, given["hex_column"]):
        yield BlockQuery(line.number, line.code, target.microarchitecture, error=line.error)
