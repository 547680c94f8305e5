"""At which size a layer condition breaks, exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from kernmodel.traffic.polynomial import Generators, Number, Polynomial
from kernmodel.traffic.streams import generator_value

LARGEST = 2**62
"""Sizes beyond this are not looked at: no array has so many elements."""


def largest_size(
    required: Polynomial, capacity: float, symbol: str, sizes: Mapping[str, int], generators: Generators
) -> int | None:
    """The largest value ≥ 1 of `symbol` for which required ≤ capacity, the other sizes as given.

    Exact: the condition holds at the result and fails at the next value. 0 if it holds for no value; None if it does
    not depend on the symbol or holds for every value. Where a requirement rises and falls with the size, the bound
    nearest to the given size is taken.
    """
    if not any(_contains(generators[name], symbol) for name in required.names()):
        return None
    value = _function(required, symbol, sizes, generators)

    def holds(size: int) -> bool:
        return value(size) <= capacity

    given = sizes[symbol]
    if holds(given):
        low, high = given, 2 * given
        while holds(high):
            low, high = high, 2 * high
            if high > LARGEST:
                return None
        return _bisect(holds, low, high)
    low, high = given // 2, given
    while low and not holds(low):
        low, high = low // 2, low
    return _bisect(holds, low, high)


def _bisect(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The last size that holds, where `low` holds (or is 0) and `high` fails."""
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def _contains(generator: object, symbol: str) -> bool:
    return any(s.name == symbol for s in generator.free_symbols)  # type: ignore[attr-defined]


def _function(
    required: Polynomial, symbol: str, sizes: Mapping[str, int], generators: Generators
) -> Callable[[int], Number]:
    """The requirement as a function of one size."""
    names = required.names()
    if any(not generators[name].is_Symbol for name in names):
        return lambda size: required.value(_values(names, {**sizes, symbol: size}, generators))
    powers: dict[int, Number] = {}
    for monomial, coefficient in required.terms.items():
        others = prod(sizes[name] ** exponent for name, exponent in monomial if name != symbol)
        power = dict(monomial).get(symbol, 0)
        powers[power] = powers.get(power, 0) + coefficient * others
    terms = tuple(powers.items())
    return lambda size: sum((c * size**power for power, c in terms), start=0)


def _values(names: set[str], sizes: Mapping[str, int], generators: Generators) -> dict[str, int]:
    return {name: generator_value(generators[name], sizes) for name in names}


def solution(
    symbol: str, largest: int | None, required: Polynomial, sizes: Mapping[str, int], strides: str = ""
) -> str:
    """The condition solved for one symbol, as text: "N ≤ 1023 (M = 100)"; `strides` are those it was solved with."""
    others = [f"{name} = {sizes[name]}" for name in sorted(required.names()) if name in sizes and name != symbol]
    others += [strides] if strides else []
    given = f" ({', '.join(others)})" if others else ""
    if largest is None:
        return f"every {symbol}{given}"
    if largest == 0:
        return f"no {symbol}{given}"
    return f"{symbol} ≤ {largest}{given}"
