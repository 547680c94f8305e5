"""What OpenMP pragmas say of a nest: which of its loops is divided over threads, and how (OpenMP 5.2, 11.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernmodel.patterns import pattern
from kernmodel.source.model import Parallel, Scheduling
from kernmodel.source.parse.chains import Chain
from kernmodel.source.parse.preprocess import integer_literal
from kernmodel.source.parse.syntax import Node, Program, c_ast, pragma_words, walk

_DIVIDES = pattern(r"^omp\b[^(]*\b(?:for|distribute|loop|taskloop)\b")
_COLLAPSE = pattern(r"\bcollapse\s*\(\s*(\w+)\s*\)")
_SCHEDULE = pattern(r"\bschedule\s*\(\s*(?:[\w, ]+:\s*)?(static|dynamic|guided|auto|runtime)\s*(?:,\s*([^()]*))?\)")
_KINDS: dict[str, Scheduling] = {"static": "static", "dynamic": "dynamic", "guided": "guided"}


def parallel_of(program: Program, function: Node, found: Chain) -> Parallel | None:
    """How the outermost pragma that divides a loop of a chain does so; None: none divides one."""
    said = program.once(_said, function)
    for number, level in enumerate(found.levels):
        text = said.get(id(level.statement), "")
        if _DIVIDES.search(text):
            return _read(text, number, len(found.levels) - number, program, level.statement)
    return None


def _said(function: Node) -> dict[int, str]:
    """The pragma of each loop of a function that has one, by the loop's `id`."""
    return {id(loop): text for loop, text in _pragmas(function.body)}


def _pragmas(body: Node) -> Iterator[tuple[Node, str]]:
    """The loops that stand behind pragmas of OpenMP, each with the texts of these."""
    for block in walk(body):
        before: list[str] = []
        for item in (block.block_items or ()) if isinstance(block, c_ast.Compound) else ():
            if words := pragma_words(item):
                before += [" ".join(words)] if words[0] == "omp" else []
                continue
            if isinstance(item, c_ast.For) and before:
                yield item, next(filter(_DIVIDES.search, before), before[0])
            before = []


def _read(text: str, loop: int, inside: int, program: Program, statement: Node) -> Parallel:
    known = program.preprocessed.values
    collapse, schedule = _COLLAPSE.search(text), _SCHEDULE.search(text)
    levels = _number(collapse[1], known) if collapse else 1
    chunk = _number(schedule[2], known) if schedule and schedule[2] else None
    kind = _KINDS.get(schedule[1]) if schedule else "dynamic" if "taskloop" in text else None
    return Parallel(loop, min(max(levels or 1, 1), inside), kind, chunk, text, program.location(statement))


def _number(text: str, known: Mapping[str, int]) -> int | None:
    return known.get(text.strip(), integer_literal(text.strip()))
