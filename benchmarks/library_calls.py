"""What calls of the C library's mathematical functions take on this host, as a table for `kernmodel/incore/data`.

    python benchmarks/library_calls.py [FUNCTION…] [--vectors] > ZEN3.calls.txt

Each function is called over thousands of arguments, which are random in a range, by a loop that loads an argument,
calls, and stores the result. "beside others" is what that takes beyond the same loop with an addition in place of the
call; "in a chain" the same where each argument depends on the last result, by a multiplication with 0 and an addition.
Ranges differ where a function takes another way through its code: the branches that choose it are mispredicted where
arguments are mixed. Vectors (libmvec) are of so many lanes as their names say (`_ZGVdN4v_exp`: AVX2, four lanes, one
argument).

Times are cycles of the core; samples in which something else ran are left out (docs/measuring.md).
"""

from __future__ import annotations

import argparse
import platform
import random
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from typing import NamedTuple

from kernmodel.errors import MeasurementError
from kernmodel.measure.host import Case, Effort, Harness
from kernmodel.measure.host_topology import host_topology
from kernmodel.measure.samples import Figure

Range = tuple[float, float]
_MODERATE, _MIXED, _LARGE, _POSITIVE = (0.3, 0.8), (-3.0, 3.0), (-1e3, 1e3), (0.5, 3.0)
_NEAR_ONE, _ABOVE_ONE, _WIDE, _UNIT, _BROAD = (0.95, 1.05), (1.0, 2.0), (1e-6, 1e6), (-0.99, 0.99), (-80.0, 80.0)
_FUNCTIONS: dict[str, tuple[tuple[Range, ...], ...]] = {
    **dict.fromkeys(("exp", "exp2", "expm1", "sinh", "cosh"), ((_MIXED,), (_MODERATE,), (_BROAD,))),
    **dict.fromkeys(("log", "log2", "log10", "log1p"), ((_POSITIVE,), (_NEAR_ONE,), (_WIDE,))),
    **dict.fromkeys(("sin", "cos", "tan"), ((_MIXED,), (_MODERATE,), (_ABOVE_ONE,), (_LARGE,))),
    **dict.fromkeys(("asin", "acos"), ((_UNIT,), (_MODERATE,))),
    **dict.fromkeys(("atan", "tanh", "erf", "cbrt"), ((_MIXED,), (_MODERATE,), (_ABOVE_ONE,), (_LARGE,))),
    "pow": ((_POSITIVE, _MIXED), (_WIDE, _MIXED)),
    "atan2": ((_MIXED, _MIXED), (_MODERATE, _POSITIVE)),
    "hypot": ((_POSITIVE, _MODERATE), (_WIDE, _WIDE)),
    "fmod": ((_POSITIVE, _MODERATE), (_WIDE, _POSITIVE)),
}
"""Ranges of the arguments of each function, those taken to be usual first."""
_SCALAR_ONLY = ("fmod",)
_VECTORS = {"b": 16, "d": 32, "e": 64}
"""Bytes of a vector by the letter of the vector ABI: SSE, AVX2, AVX-512."""
_FEATURES = {"b": "sse4_2", "d": "avx2", "e": "avx512f"}
_ARGUMENTS = 16384
_CHUNK = 1024
"""Calls of a sample; the next one goes on with other arguments, so that no predictor learns them."""
_EFFORT = Effort(samples=60, rounds=3, seconds=4.0)
_DRIVER = """
typedef {element} number __attribute__((vector_size({bytes})));
typedef number loose __attribute__((aligned({align})));
extern number {function}({kinds});
static {element} first[{count}] __attribute__((aligned(64))) = {{{first}}};
static {element} second[{count}] __attribute__((aligned(64))) = {{{second}}};
static {element} results[64] __attribute__((aligned(64)));
#define EACH(call) for (long i = 0; i < {chunk} * {lanes}; i += {lanes}) call
#define A (*(loose *)(first + at + i))
#define B (*(loose *)(second + at + i))
#define OUT (*(loose *)(results + (i & 15)))
void km_kernel(long repetitions, long which, char **buffers)
{{
    static long begin;
    long at = begin = (begin + {chunk} * {lanes}) % {count};
    number last = {{0}}, zero = {{0}};
    (void)buffers;
    __asm__ volatile("" : "+x"(zero));
    for (long r = 0; r < repetitions; r++)
        switch (which) {{
        case 0: EACH(OUT = {function}({values})); break;
        case 1: EACH(OUT = {plain}); break;
        case 2: EACH(last = {function}({chained})); break;
        default: EACH(last = A + zero * last); break;
        }}
    *(loose *)results = last;
}}
"""


class Function(NamedTuple):
    """A function of the library: `symbol` as code calls it, for `lanes` numbers at once of the C type `element`, which
    takes `size` bytes."""

    name: str
    symbol: str
    element: str
    size: int
    lanes: int = 1

    @property
    def bytes(self) -> int:
        """Bytes of all its lanes."""
        return self.size * self.lanes


def functions(names: Sequence[str], *, vectors: bool) -> Iterator[Function]:
    """Both precisions of each function, and their vector forms that this host can execute."""
    known = host_topology().features
    for name in names:
        for element, size, ending in (("double", 8, ""), ("float", 4, "f")):
            yield Function(name, name + ending, element, size)
            for letter, width in _VECTORS.items() if vectors and name not in _SCALAR_ONLY else ():
                if _FEATURES[letter] in known:
                    operands, lanes = "v" * len(_FUNCTIONS[name][0]), width // size
                    yield Function(name, f"_ZGV{letter}N{lanes}{operands}_{name}{ending}", element, size, lanes)


def driver(function: Function, ranges: Sequence[Range]) -> str:
    """C that calls the function over random arguments in these ranges."""
    source = random.Random(1)
    several = len(ranges) > 1
    columns = [[_drawn(source, span) for _ in range(_ARGUMENTS)] for span in (*ranges, ranges[0])[:2]]
    text = _DRIVER.format(
        element=function.element,
        bytes=function.bytes,
        align=function.size,
        lanes=function.lanes,
        function=function.symbol,
        kinds="number, number" if several else "number",
        count=_ARGUMENTS,
        chunk=_CHUNK,
        first=", ".join(columns[0]),
        second=", ".join(columns[1]),
        values="A, B" if several else "A",
        plain="A + B" if several else "A + zero",
        chained="A + zero * last, B" if several else "A + zero * last",
    )
    return text if function.lanes > 1 else text.replace(f" __attribute__((vector_size({function.bytes})))", "")


def _drawn(source: random.Random, span: Range) -> str:
    """A number in a range; where that spans magnitudes, all of them alike."""
    low, high = span
    drawn = low * (high / low) ** source.random() if low > 0 and high / low > 1e3 else source.uniform(low, high)
    return f"{drawn:.9g}"


def measured(function: Function, ranges: Sequence[Range]) -> tuple[Figure, Figure]:
    """Cycles of a call beside others, and in a chain.

    Raises:
        MeasurementError: the library has no such function, or this host cannot be measured.
    """
    flags = ("-O2", "-w", "-fno-builtin", *(("-mavx2", "-mfma") if function.bytes >= 32 else ()))
    flags += ("-mavx512f",) if function.bytes == 64 else ()
    with Harness({"calls.c": driver(function, ranges)}, flags=flags) as harness:
        harness.take_kernel()
        beside = harness.figure([Case(1, 0), Case(1, 1)], _difference, _EFFORT)
        chained = harness.figure([Case(1, 2), Case(1, 3)], _difference, _EFFORT)
    return beside, chained


def _difference(cycles: Sequence[float]) -> float:
    return (cycles[0] - cycles[1]) / _CHUNK


def _line(function: Function, ranges: Sequence[Range], figures: Sequence[Figure]) -> str:
    spans = ", ".join(f"{low:g} to {high:g}" for low, high in ranges)
    values = " | ".join(f"{figure.value:.1f}" for figure in figures)
    spreads = "; ".join(f"{figure.spread_percent:.1f} %{'' if figure.confirmed else '?'}" for figure in figures)
    return f"{function.symbol} | {spans} | {values} | {spreads} | m"


def main() -> None:
    """Measure, and print a line for each function and range."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("functions", nargs="*", metavar="FUNCTION", choices=[[], *_FUNCTIONS])
    parser.add_argument("--vectors", action="store_true", help="libmvec's functions too")
    given = parser.parse_args()
    library, host = " ".join(platform.libc_ver()), host_topology()
    model = f"{host.model} (family {host.family}, model {host.number})"
    print("# function | arguments | cycles beside others | cycles in a chain | spread of both | source")
    print(f"#! source m = measured on {date.today().isoformat()} on {model}, {library}, by benchmarks/library_calls.py")
    for function in functions(given.functions or tuple(_FUNCTIONS), vectors=given.vectors):
        for ranges in _FUNCTIONS[function.name]:
            try:
                print(_line(function, ranges, measured(function, ranges)), flush=True)
            except MeasurementError as error:
                print(f"{function.symbol}: {error}", file=sys.stderr)
                break


if __name__ == "__main__":
    main()
