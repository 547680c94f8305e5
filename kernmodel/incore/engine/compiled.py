"""The compiled engine, reached by ctypes: the shared library beside this file, made from `native/`."""

from __future__ import annotations

import ctypes
from array import array
from functools import cache
from pathlib import Path

from kernmodel.engines import ENDING, load_engine
from kernmodel.incore.engine.program import PORTS, REASONS, Program

LIBRARY_NAME = "_pipeline" + ENDING


@cache
def library() -> ctypes.CDLL | None:
    """The library, None where it was not built or is of other sources."""
    found = load_engine(Path(__file__).with_name(LIBRARY_NAME))
    if found is None:
        return None
    found.km_pipeline.argtypes = (*(ctypes.c_void_p,) * 7, ctypes.c_double, ctypes.c_void_p)
    found.km_pipeline.restype = ctypes.c_int32
    return found


def run(program: Program, engine: ctypes.CDLL) -> tuple[int, ...]:
    """The numbers of `simulate.run`, by the library.

    Raises:
        MemoryError: there is not enough memory.
    """
    result = array("q", bytes(8 * (4 + len(REASONS) + PORTS)))
    numbers = (program.core.numbers(), *program[1:-1])
    places = [piece.buffer_info()[0] for piece in numbers]
    if engine.km_pipeline(*places, program.floor, result.buffer_info()[0]):
        raise MemoryError("the pipeline simulation needs more memory")
    return tuple(result)
