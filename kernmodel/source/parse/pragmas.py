"""What a kernel says of itself: `#pragma kernmodel updates 2`, which compilers pass over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernmodel.errors import SourceError
from kernmodel.patterns import pattern
from kernmodel.source.parse.syntax import Node, Program, c_ast, pragma_words, walk

_NUMBER = pattern(r"\d+(\.\d+)?")


def updates_said(program: Program, function: Node, nest: Node) -> float | None:
    """Lattice updates of an iteration, as a pragma inside of the nest or before it says; None: none does.

    Raises:
        SourceError: a pragma of kernmodel that cannot be read, two that differ, one outside of a function.
    """
    for node in program.once(_owned, program.globals):
        raise _wrong(program, node, "stands outside of a function", "write it before the loop nest")
    said = [(node, _updates(program, node)) for node in _pragmas_of(function, nest)]
    for node, number in said[1:]:
        if number != said[0][1]:
            raise _wrong(program, node, "says something else than the one before", "leave one of them")
    return said[0][1] if said else None


def _pragmas_of(function: Node, nest: Node) -> list[Node]:
    """The pragmas between the nest before and this one, and those in this one."""
    before: list[Node] = []
    for node in _opened(function.body):
        if node is nest:
            return [*before, *(part for part in walk(nest) if _own(part))]
        before = [] if isinstance(node, c_ast.For) else [*before, node] if _own(node) else before
    return before


def _opened(node: Node) -> Iterator[Node]:
    """The statements and pragmas of a body, blocks opened."""
    for item in node.block_items or ():
        if isinstance(item, c_ast.Compound):
            yield from _opened(item)
        else:
            yield item


def _owned(nodes: Sequence[Node]) -> tuple[Node, ...]:
    return tuple(filter(_own, nodes))


def _own(node: Node) -> bool:
    return pragma_words(node)[:1] == ["kernmodel"]


def _updates(program: Program, node: Node) -> float:
    words = pragma_words(node)[1:]
    if len(words) != 2 or words[0] != "updates" or not _NUMBER.fullmatch(words[1]):
        raise _wrong(program, node, "cannot be read", "write #pragma kernmodel updates 2, with a number from 0")
    return float(words[1])


def _wrong(program: Program, node: Node, what: str, todo: str) -> SourceError:
    return SourceError(f"#pragma {' '.join(pragma_words(node))} {what}", where=program.location(node), todo=todo)
