"""YAML and JSON of users as nodes or values: parsed once, of limited depth and size, errors with line and column.

Composing nests as deep as the text does, on the stack of C where libyaml does it, so depth is counted meanwhile.
Anchors make a text stand for more than it holds; what it stands for is counted too, before anybody walks it.
"""

from __future__ import annotations

from typing import Any

import yaml

from kernmodel.errors import InputError, Location
from kernmodel.limits import YAML_DEPTH, YAML_VALUES

# libyaml's parser is ten times faster than the one in Python; not every build of PyYAML has it
_Base: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TODO = "check indentation, quotes and brackets at or above this line"
_DEEPEST = 5_000
"""Levels that composing takes in any case: beyond, the stack of C may end."""


class _TooMuchError(Exception):
    """The text holds more than is taken on; where, if that is known."""

    def __init__(self, what: str, todo: str, node: yaml.Node | None = None) -> None:
        super().__init__(what)
        self.todo = todo
        self.node = node


class _Counted:
    """Counts values and their depth while a loader composes."""

    depth = 0
    values = 0

    def __init__(self, text: str) -> None:
        super().__init__(text)  # type: ignore[call-arg]  # that of a loader
        self.deepest = min(YAML_DEPTH.most, _DEEPEST)
        self.most_values = YAML_VALUES.most

    def descend_resolver(self, current_node: yaml.Node | None, current_index: object) -> None:
        """Called by loaders before they compose a node."""
        self.depth += 1
        self.values += 1
        if self.depth > self.deepest:
            raise _TooMuchError("is nested too deeply", YAML_DEPTH.todo("close the brackets"), current_node)
        if self.values > self.most_values:
            raise _TooMuchError(
                f"holds more than {YAML_VALUES.text} values", YAML_VALUES.todo("split it"), current_node
            )

    def ascend_resolver(self) -> None:
        """Called by loaders after they composed a node."""
        self.depth -= 1


class _BaseLoader(_Counted, _Base):  # type: ignore[misc]
    """Every scalar stays text."""


class _SafeLoader(_Counted, _Safe):  # type: ignore[misc]
    """Scalars become what YAML takes them for."""


def compose(text: str, file: str, *, error: type[InputError] = InputError) -> yaml.Node | None:
    """The outermost node of `text`, whose scalars are as written; None if it holds only comments.

    Args:
        text: YAML or JSON; file: its name in messages.
        error: class of the errors.

    Raises:
        InputError: broken syntax, several documents, nested too deeply, or too many values.
    """
    return _composed(_BaseLoader, text, file, error)[0]


def load(text: str, file: str, *, error: type[InputError] = InputError) -> Any:
    """What `text` stands for in plain Python values.

    Raises:
        InputError: as `compose`; or a value that is none (a date without a day).
    """
    node, loader = _composed(_SafeLoader, text, file, error)
    if node is None:
        return None
    try:
        return loader.construct_document(node)
    except yaml.YAMLError as wrong:
        raise _syntax_error(wrong, file, error) from wrong
    except (ValueError, TypeError, RecursionError) as wrong:
        raise error(f"holds a value that cannot be read: {wrong}", where=file, todo="put it in quotes") from wrong


def _composed(kind: Any, text: str, file: str, error: type[InputError]) -> tuple[yaml.Node | None, Any]:
    """The outermost node, and the loader that made it."""
    try:
        loader = kind(text)
        node = loader.get_single_node()
        if "&" in text and node is not None:
            _refuse_growth(node)
    except _TooMuchError as wrong:
        where = Location(file, wrong.node.start_mark.line + 1) if wrong.node is not None else file
        raise error(str(wrong), where=where, todo=wrong.todo) from wrong
    except RecursionError as wrong:
        raise error("is nested too deeply", where=file, todo=YAML_DEPTH.todo("close the brackets")) from wrong
    except yaml.YAMLError as wrong:
        raise _syntax_error(wrong, file, error) from wrong
    return node, loader


def _refuse_growth(root: yaml.Node) -> None:
    """Refuse anchors that make a node hold itself, or more values than a file may hold."""
    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()
    stack = [root]
    while stack:
        node = stack[-1]
        if id(node) in sizes:
            stack.pop()
            continue
        children = _children(node)
        collections = [child for child in children if isinstance(child, yaml.CollectionNode)]
        waiting = [child for child in collections if id(child) not in sizes]
        if not waiting:
            scalars = len(children) - len(collections)
            sizes[id(node)] = 1 + scalars + sum(sizes[id(child)] for child in collections)
            open_nodes.discard(id(stack.pop()))
            continue
        open_nodes.add(id(node))
        if any(id(child) in open_nodes for child in waiting):
            raise _TooMuchError("an anchor holds itself", "write the value out", node)
        stack += waiting
    if YAML_VALUES.exceeded(sizes[id(root)]):
        what = f"its anchors stand for {sizes[id(root)]:,} values"
        raise _TooMuchError(what, YAML_VALUES.todo("write the values out"), root)


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _syntax_error(wrong: yaml.YAMLError, file: str, error: type[InputError]) -> InputError:
    mark = getattr(wrong, "problem_mark", None)
    where = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file)
    problem = getattr(wrong, "problem", None) or getattr(wrong, "reason", None) or str(wrong).partition("\n")[0]
    if "nesting depth" in problem:  # from version 6.0.4 on PyYAML has a limit of its own
        line = Location(file, mark.line + 1) if mark else where
        return error("is nested too deeply", where=line, todo=YAML_DEPTH.todo("close the brackets"))
    return error(f"is not valid YAML: {problem}", where=where, todo=_TODO)
