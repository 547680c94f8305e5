"""The compiled engine, reached by ctypes: the shared library beside this file, made from `native/` on installation."""

from __future__ import annotations

import ctypes
import time
import weakref
from array import array
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from kernmodel.cachesim.model import (
    MEMORY,
    POLICIES,
    Counters,
    Hierarchy,
    LevelCounters,
    Position,
    Program,
)
from kernmodel.cachesim.programs import (
    KINDS,
    MASK64,
    address_limit,
    address_overflow,
    indirect_range,
    loop_overflow,
    seeded,
)
from kernmodel.engines import ENDING, load_engine
from kernmodel.errors import InputError

LIBRARY_NAME = "_engine" + ENDING

_BUDGET, _SWEEP, _BRINK, _ADDRESS, _BOUND = 0, 1, 2, -1, -2
_LEVEL_COUNTERS, _WHOLE_COUNTERS = 7, 5
_TRACE_PIECE = 1 << 21
_INDIRECT_KINDS = {"uniform": 0, "banded": 1, "table": 2, "digits": 3}
_CALL_SECONDS = 0.2
"""How long one call of the library should take: Ctrl-C waits for its end."""
_PROGRAMS = 64
"""Programs that are kept ready to be executed."""

_Words = ctypes.POINTER(ctypes.c_int64)
_Unsigned = ctypes.POINTER(ctypes.c_uint64)
_Bytes = ctypes.POINTER(ctypes.c_uint8)
_SIGNATURES: Mapping[str, tuple[object, tuple[object, ...]]] = {
    "km_new": (ctypes.c_void_p, (_Words, ctypes.c_int, _Unsigned, ctypes.c_int, ctypes.c_int)),
    "km_free": (None, (ctypes.c_void_p,)),
    "km_first_refused": (
        ctypes.c_int64,
        (_Bytes, _Unsigned, _Unsigned, ctypes.c_int64, ctypes.c_int, ctypes.c_uint64),
    ),
    "km_trace": (None, (ctypes.c_void_p, _Bytes, _Unsigned, _Unsigned, ctypes.c_int64)),
    "km_reserve": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_int64)),
    "km_walk_new": (ctypes.c_void_p, (ctypes.c_void_p, _Words, ctypes.c_int64, _Words, ctypes.c_int64)),
    "km_walk_begin": (None, (ctypes.c_void_p, _Words, ctypes.c_int)),
    "km_walk_run": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, _Unsigned)),
    "km_walk_values": (None, (ctypes.c_void_p, _Words)),
    "km_walk_culprit": (ctypes.c_int64, (ctypes.c_void_p,)),
    "km_walk_free": (None, (ctypes.c_void_p,)),
    "km_counters": (None, (ctypes.c_void_p, _Unsigned)),
    "km_served_rows": (ctypes.c_int64, (ctypes.c_void_p,)),
    "km_served": (None, (ctypes.c_void_p, _Unsigned)),
    "km_reset": (None, (ctypes.c_void_p,)),
    "km_flush": (None, (ctypes.c_void_p,)),
}


@cache
def library() -> ctypes.CDLL | None:
    """The library; None where it was not built, cannot be loaded here, or was made of other sources."""
    loaded = load_engine(Path(__file__).with_name(LIBRARY_NAME))
    for name, (result, arguments) in _SIGNATURES.items() if loaded is not None else ():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def _required() -> ctypes.CDLL:
    loaded = library()
    assert loaded is not None, "engine.py asks first"
    return loaded


class CompiledEngine:
    """The caches of a hierarchy, in memory that belongs to the library until this object goes."""

    def __init__(self, hierarchy: Hierarchy, skip: bool) -> None:
        self._library = _required()
        self._hierarchy = hierarchy
        self.last_address = address_limit(hierarchy) - 1
        fields = _level_words(hierarchy)
        count = len(hierarchy.levels)
        generators = (ctypes.c_uint64 * count)(*(seeded(hierarchy.seed + index) for index in range(count)))
        self.handle = self._library.km_new(_words(fields), count, generators, hierarchy.combining_buffers, skip)
        if not self.handle:
            raise InputError("its caches do not fit into memory", where="the hierarchy", todo="make them smaller")
        weakref.finalize(self, self._library.km_free, self.handle)
        self._walks: dict[int, _Walk] = {}

    def first_refused(self, kinds: memoryview, addresses: memoryview, sizes: memoryview) -> int | None:
        """The number of the first access of a trace that cannot be executed."""
        signed = (addresses.format == "q") + 2 * (sizes.format == "q")
        arrays = _arrays(kinds, addresses, sizes)
        found: int = self._library.km_first_refused(*arrays, len(kinds), signed, self.last_address)
        return None if found < 0 else found

    def run_trace(self, kinds: memoryview, addresses: memoryview, sizes: memoryview) -> None:
        """Accesses one after another, in pieces so that Ctrl-C is heard."""
        for first in range(0, len(kinds), _TRACE_PIECE):
            piece = slice(first, first + _TRACE_PIECE)
            arrays = _arrays(kinds[piece], addresses[piece], sizes[piece])
            self._library.km_trace(self.handle, *arrays, len(kinds[piece]))

    def reserve(self, references: int) -> None:
        """Counters for so many references at least."""
        self._library.km_reserve(self.handle, references)

    def sweep(self, program: Program, start: Position | None, most: int | None) -> tuple[int, Position | None]:
        """Execute a sweep or a part of it."""
        walk = self._walks.get(id(program))
        if walk is None:
            if len(self._walks) >= _PROGRAMS:
                self._walks.clear()
            walk = self._walks[id(program)] = _Walk(self, program)  # it holds the program, so that its number stays
        return walk.sweep(start, most)

    def counters(self) -> Counters:
        """What was counted."""
        levels = self._hierarchy.levels
        counts = (ctypes.c_uint64 * (_LEVEL_COUNTERS * len(levels) + _WHOLE_COUNTERS))()
        self._library.km_counters(self.handle, counts)
        rows, columns = self._library.km_served_rows(self.handle), len(levels) + 1
        served = (ctypes.c_uint64 * max(1, rows * columns))()
        self._library.km_served(self.handle, served)
        loads, stores, lines, parts, accesses = counts[-_WHOLE_COUNTERS:]
        return Counters(
            levels={
                spec.name: _level_counters(*counts[index * _LEVEL_COUNTERS : (index + 1) * _LEVEL_COUNTERS])
                for index, spec in enumerate(levels)
            },
            memory_loads=loads,
            memory_stores=stores,
            streamed_lines=lines,
            streamed_parts=parts,
            served=tuple(tuple(served[row * columns : (row + 1) * columns]) for row in range(rows)),
            accesses=accesses,
        )

    def reset_counters(self) -> None:
        """All counters to zero."""
        self._library.km_reset(self.handle)

    def flush(self) -> None:
        """Send off the combining buffers."""
        self._library.km_flush(self.handle)


class _Walk:
    """A program in the library, and where it stands."""

    def __init__(self, engine: CompiledEngine, program: Program) -> None:
        self.program = program
        self._library = _required()
        tables = array("q")
        words = _program_words(program, engine.last_address, tables)
        table = (ctypes.c_int64 * len(tables)).from_buffer(tables) if tables else None
        self._handle = self._library.km_walk_new(engine.handle, _words(words), len(words), table, len(tables))
        if not self._handle:
            raise InputError("does not fit into memory", where="the program", todo="make its tables smaller")
        weakref.finalize(self, self._library.km_walk_free, self._handle)
        self._budget = 1 << 20

    def sweep(self, start: Position | None, most: int | None) -> tuple[int, Position | None]:
        """As `CompiledEngine.sweep`.

        In calls of a fraction of a second, because Python hears Ctrl-C between them.
        """
        values = None if start is None else _words(list(start.values))
        self._library.km_walk_begin(self._handle, values, start is None or start.fresh)
        done, executed = 0, ctypes.c_uint64()
        while True:
            left = MASK64 if most is None else most - done
            begun = time.perf_counter()
            state = self._library.km_walk_run(self._handle, left, self._budget, ctypes.byref(executed))
            done += executed.value
            if state == _BUDGET:
                self._adapt(time.perf_counter() - begun)
            elif state in (_SWEEP, _BRINK):
                return done, None if state == _SWEEP else self._position()
            else:
                raise self._error(state)

    def _position(self) -> Position:
        """Right before the next inner iteration."""
        values = (ctypes.c_int64 * len(self.program.loops))()
        self._library.km_walk_values(self._handle, values)
        return Position(tuple(values), fresh=False)

    def _adapt(self, seconds: float) -> None:
        """A call that used up its budget took so long."""
        if seconds < _CALL_SECONDS / 2:
            self._budget *= 2
        elif seconds > _CALL_SECONDS and self._budget > 1:
            self._budget //= 2

    def _error(self, state: int) -> InputError:
        if state == _BOUND:
            return loop_overflow()
        return address_overflow(self._library.km_walk_culprit(self._handle))


def _words(values: list[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * len(values)).from_buffer(array("q", values))


def _array(view: memoryview, item: type[ctypes.c_uint64] | type[ctypes.c_uint8]) -> object:
    """The memory of a view as an array of the library; read-only memory is copied."""
    kind = item * len(view)
    return kind.from_buffer_copy(view) if view.readonly else kind.from_buffer(view)


def _arrays(kinds: memoryview, addresses: memoryview, sizes: memoryview) -> tuple[object, object, object]:
    return _array(kinds, ctypes.c_uint8), _array(addresses, ctypes.c_uint64), _array(sizes, ctypes.c_uint64)


def _level_words(hierarchy: Hierarchy) -> list[int]:
    """The caches in numbers, in the order of `new_level` in the C code."""
    index = {spec.name: number for number, spec in enumerate(hierarchy.levels)} | {MEMORY: len(hierarchy.levels)}
    words: list[int] = []
    for spec in hierarchy.levels:
        words += (spec.sets, spec.ways, spec.line_bytes, spec.sub_blocks, POLICIES.index(spec.policy))
        words += (spec.write_back, spec.write_allocate, index[spec.load_from], index[spec.store_to])
        words += (-1 if spec.victim_level is None else index[spec.victim_level],)
        words += (spec.clean_victims, spec.inclusive, spec.hashed_lines.bit_length() if spec.hashed else 0)
    return words


def _program_words(program: Program, last_address: int, tables: array[int]) -> list[int]:
    """A program in numbers, in the order of `km_walk_new` in the C code; tables are appended to `tables`."""
    indirections = sum(len(reference.indirections) for reference in program.references)
    words = [len(program.loops), len(program.references), indirections, ctypes.c_int64(last_address).value]
    for loop in program.loops:
        words.append(loop.step)
        for bound in (loop.start, loop.stop):
            words += (bound.pick == "min", len(bound.groups))
            for group in bound.groups:
                words.append(len(group))
                for form in group:
                    words += (form.constant, *form.coefficients)
    for reference in program.references:
        address = reference.address
        words += (KINDS[reference.kind], reference.size_bytes, reference.depth, reference.place == "after")
        words += (len(reference.indirections), address.constant, *address.coefficients)
        for each in reference.indirections:
            words += (_INDIRECT_KINDS[each.kind], each.scale, each.extent, each.width, each.positions)
            words += (ctypes.c_int64(seeded(each.seed)).value, len(tables), len(each.table), *indirect_range(each))
            words += (each.position.constant, *each.position.coefficients)
            tables.extend(each.table)
    return words


def _level_counters(
    load_hits: int, load_misses: int, store_hits: int, store_misses: int, dirty: int, clean: int, invalidations: int
) -> LevelCounters:
    loads, stores = load_hits + load_misses, store_hits + store_misses
    return LevelCounters(loads, load_hits, load_misses, stores, store_hits, store_misses, dirty, clean, invalidations)
