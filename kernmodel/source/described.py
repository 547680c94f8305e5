"""Kernels that are described in YAML in place of C: arrays, loops, what an iteration reads, writes and computes.

The format is that of Kerncraft's kernel descriptions (`kerncraft --kernel-description`), with default sizes beside;
docs/kernels.md documents it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

from kernmodel.errors import SourceError, UnsupportedKernelError
from kernmodel.formulas.formula import ZERO, Formula, constant, size, variable
from kernmodel.schema.document import FileKind
from kernmodel.schema.entry import Entry, parse_entry
from kernmodel.schema.fields import suggest
from kernmodel.source.model import Access, Array, ElementType, FlopCount, Loop, LoopNest, Operation, Operations
from kernmodel.source.parse.c_types import element_type
from kernmodel.source.parse.delinearise import recomposed

KIND = FileKind("kernel description", "docs/kernels.md", SourceError)
_KEYS = ("arrays", "loops", "data sources", "data destinations", "flops", "constants", "code")
_LOOP_KEYS = ("index", "start", "stop", "step")
_ARRAY_KEYS = ("type", "dimension")
_SIGNS: dict[str, Operation] = {"+": "add", "-": "add", "*": "mul", "/": "div"}
_FLOPS = {**_SIGNS, **{name: name for name in get_args(Operation) if name != "function"}}
_NAME = re.compile(r"[A-Za-z_]\w*")
_MOST = 10**6
"""FLOP of a kind in an iteration."""

_LONGEST = 100
"""Characters of an expression."""


def described_nest(text: str, file: str, sizes: Mapping[str, str | int]) -> LoopNest:
    """The loop nest that a text describes.

    Args:
        file: its name in messages; sizes: values that go before the text's own.

    Raises:
        InputError: no YAML; SourceError: an unknown or missing key, a value that cannot be read, an index that does not
            fit; UnsupportedKernelError: an index that is not affine.
    """
    root = parse_entry(text, file, KIND)
    keys = _keys(root, _KEYS, ("arrays", "loops"))
    reader = _Reader(_loop_names(keys["loops"]))
    arrays = dict(reader.arrays(keys["arrays"]))
    loops = tuple(map(reader.loop, _loops(keys["loops"])))
    used: dict[object, Access] = {}
    for key, kind in (("data sources", "read"), ("data destinations", "write")):
        for access in reader.accesses(keys[key], kind, arrays, loops) if key in keys else ():
            same = (kind, access.array, access.index)
            again = used.get(same)
            used[same] = access if again is None else replace(again, count=again.count + 1)
    accesses = tuple(used.values())
    if not accesses:
        todo = "write at least one index under `data sources` or `data destinations`"
        raise _error(root, "reads and writes nothing", todo)
    floats = [array.element for array in arrays.values() if array.element.kind == "float"]
    widest = max(floats, key=lambda one: one.size_bytes, default=ElementType("double", 8, "float"))
    given = dict(_constants(keys["constants"])) if "constants" in keys else {}
    beside = {name: int(value) for name, value in sizes.items() if name in reader.sizes and str(value).isdigit()}
    return LoopNest(
        name=Path(file).stem,
        loops=loops,
        arrays={name: arrays[name] for name in dict.fromkeys(access.array for access in accesses)},
        accesses=accesses,
        operations=Operations(tuple(_flops(keys["flops"], widest)) if "flops" in keys else ()),
        symbols=dict(reader.sizes),
        defaults={name: value for name, value in {**given, **beside}.items() if name in reader.sizes},
        file=file,
        text=text,
        function=None,
        notes=(),
    )


def _error(entry: Entry, what: str, todo: str) -> SourceError:
    return SourceError(f"{entry.key}: {what}" if entry.key else what, where=entry.where, todo=todo)


def _keys(entry: Entry, known: tuple[str, ...], needed: tuple[str, ...]) -> dict[str, Entry]:
    """The values of a mapping whose keys are known."""
    found = entry.mapping()
    for name, value in found.items():
        if name not in known:
            raise _error(value, "is not known", suggest(name, known))
    for name in needed:
        if name not in found:
            raise _error(entry, f"has no {name!r}", f"add it, as {KIND.guide} shows")
    return found


def _loops(entry: Entry) -> Iterator[dict[str, Entry]]:
    loops = entry.items()
    if not loops:
        raise _error(entry, "is empty", "give the loops, the outermost first")
    for loop in loops:
        yield _keys(loop, _LOOP_KEYS, ("index", "start", "stop"))


def _loop_names(entry: Entry) -> tuple[str, ...]:
    """The variables of the loops, outermost first."""
    names: list[str] = []
    for loop in _loops(entry):
        name = loop["index"].text()
        if not _NAME.fullmatch(name):
            raise _error(loop["index"], f"{name[:40]!r} is no name", "name the loop variable")
        if name in names:
            raise _error(loop["index"], f"{name} is the variable of a loop further out", "give each loop its own")
        names.append(name)
    return tuple(names)


def _constants(entry: Entry) -> Iterator[tuple[str, int]]:
    for name, value in entry.mapping().items():
        yield name, value.integer(1)


def _flops(entry: Entry, element: ElementType) -> Iterator[FlopCount]:
    for sign, count in entry.mapping().items():
        if sign not in _FLOPS:
            raise _error(count, f"{sign} is no operation", suggest(sign, _FLOPS))
        number = count.integer(0, _MOST)
        if number:
            yield FlopCount(_FLOPS[sign], element, number)


class _Reader:
    """Reads expressions; the names in them that are no loop's are sizes."""

    def __init__(self, loops: tuple[str, ...]) -> None:
        self._loops = loops
        self.sizes: dict[str, Formula] = {}

    def expression(self, entry: Entry) -> Formula:
        """A sum of products of integers, sizes and loop variables."""
        text = entry.text()
        if len(text) > _LONGEST:
            raise _error(entry, f"has more than {_LONGEST} characters", "write a shorter expression")
        try:
            return self._value(ast.parse(text, mode="eval").body)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            todo = "write integers, sizes and loop variables with + - * and brackets, as in 2*N-1"
            raise _error(entry, f"{text[:60]!r} is no index expression", todo) from None

    def _value(self, node: ast.expr) -> Formula:
        """The value of a node of Python's grammar, which is that of C here.

        Raises:
            ValueError: it is none of those that are known.
        """
        match node:
            case ast.Constant(value=int(value)) if not isinstance(node.value, bool) and abs(value) < 2**62:
                return constant(value)
            case ast.Name(id=name):
                return self._symbol(name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._value(operand)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._value(left) + self._value(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return self._value(left) - self._value(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self._value(left) * self._value(right)
        raise ValueError(f"{type(node).__name__} is not known")

    def _symbol(self, name: str) -> Formula:
        if name in self._loops:
            return variable(name)
        return self.sizes.setdefault(name, size(name))

    def arrays(self, entry: Entry) -> Iterator[tuple[str, Array]]:
        """The arrays by name, without scalars (`dimension: null`)."""
        for name, told in entry.mapping().items():
            if not _NAME.fullmatch(name):
                raise _error(told, "is no name", "begin it with a letter")
            keys = _keys(told, _ARRAY_KEYS, ("type",))
            dimension = keys.get("dimension")
            if dimension is None or dimension.is_null:
                continue
            shape = tuple(self._free(part, "an extent in sizes", self._loops) for part in _parts(dimension))
            yield name, Array(name, _type(keys["type"]), shape, told.where)

    def _free(self, entry: Entry, what: str, of: tuple[str, ...]) -> Formula:
        """An expression without variables of these loops."""
        found = self.expression(entry)
        wrong = next((symbol for symbol in found.free_symbols if symbol in of), None)
        if wrong is not None:
            raise _error(entry, f"{found} holds the loop variable {wrong}", f"write {what}")
        return found

    def loop(self, keys: Mapping[str, Entry]) -> Loop:
        """A loop."""
        index = keys["index"].text()
        step = keys["step"].integer(-_MOST, _MOST) if "step" in keys else 1
        if not step:
            raise _error(keys["step"], "is 0", "write by how much the variable advances")
        inside = self._loops[self._loops.index(index) :]
        bound = "a bound in sizes and variables of loops further out"
        start, stop = (self._free(keys[name], bound, inside) for name in ("start", "stop"))
        return Loop(index, start, stop, step, keys["index"].where)

    def accesses(
        self, entry: Entry, kind: str, arrays: Mapping[str, Array], loops: tuple[Loop, ...]
    ) -> Iterator[Access]:
        """The references of one kind."""
        for name, told in entry.mapping().items():
            indices = told.items()
            if all(one.is_null for one in indices) and name not in arrays:
                continue  # scalars, as Kerncraft lists them
            if name not in arrays:
                raise _error(told, "is no array of `arrays`", suggest(name, arrays))
            for one in indices:
                yield self._access(one, kind, arrays[name], loops)

    def _access(self, entry: Entry, kind: str, array: Array, loops: tuple[Loop, ...]) -> Access:
        index = tuple(self.expression(part) for part in _parts(entry))
        if len(index) != len(array.shape):
            what = f"has {len(index)} indices, but {array.name} has {len(array.shape)} dimensions"
            raise _error(entry, what, "write one for each dimension")
        offset = recomposed(index, array.shape[1:])
        parts = offset.linear([loop.variable for loop in loops])
        text = array.name + "".join(f"[{part.text()}]" for part in _parts(entry))
        if parts is None:
            todo = "write sums of loop variables with constant factors"
            raise UnsupportedKernelError(f"{text} is not affine in the loop variables", where=entry.where, todo=todo)
        return Access(
            array=array.name,
            kind="read" if kind == "read" else "write",
            index=index,
            offset=offset,
            coefficients=tuple(parts[0].get(loop.variable, ZERO) for loop in loops),
            depth=len(loops),
            count=1,
            text=text,
            location=entry.where,
        )


def _parts(entry: Entry) -> tuple[Entry, ...]:
    """The elements of a list; a single value is a list of one."""
    return entry.items() if entry.is_list else (entry,)


def _type(entry: Entry) -> ElementType:
    """The type of elements, in C's words; Kerncraft writes them as a list of one."""
    words = " ".join(part.text() for part in _parts(entry))
    found = element_type(words.split())
    if found is None:
        raise _error(entry, f"{words[:40]!r} is no arithmetic type of C", "write double, float, int or long")
    return found
