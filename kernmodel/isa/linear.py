"""Linear expressions over registers and other symbols: what addresses and the registers they are made of hold."""

from __future__ import annotations

from collections.abc import Callable

from kernmodel.isa.model import MemoryReference
from kernmodel.value_types import dataclass

_HALF = 1 << 63


@dataclass(frozen=True, slots=True)
class Linear:
    """constant + Σ coefficient × symbol; `terms` sorted by symbol, without zeros."""

    constant: int
    terms: tuple[tuple[str, int], ...] = ()

    def coefficient(self, symbol: str) -> int:
        """The coefficient of `symbol`, 0 if absent."""
        return next((factor for name, factor in self.terms if name == symbol), 0)

    def __add__(self, other: Linear) -> Linear:
        if not other.terms:
            return Linear(self.constant + other.constant, self.terms) if other.constant else self
        if not self.terms:
            return Linear(self.constant + other.constant, other.terms)
        total = dict(self.terms)
        for symbol, factor in other.terms:
            total[symbol] = total.get(symbol, 0) + factor
        return Linear(self.constant + other.constant, tuple(sorted((s, f) for s, f in total.items() if f)))

    def __mul__(self, factor: int) -> Linear:
        if factor == 1:
            return self
        if factor == 0:
            return ZERO
        return Linear(self.constant * factor, tuple((symbol, f * factor) for symbol, f in self.terms))

    def __sub__(self, other: Linear) -> Linear:
        return self + other * -1

    def times(self, other: Linear) -> Linear | None:
        """The product, None where neither factor is a constant."""
        if self.terms and other.terms:
            return None
        return self * other.constant if self.terms else other * self.constant

    def shifted_right(self, bits: int) -> Linear | None:
        """The quotient by 2^bits, with the constant rounded down; None where a coefficient does not divide."""
        if any(factor % (1 << bits) for _, factor in self.terms):
            return None
        return Linear(self.constant >> bits, tuple((symbol, factor >> bits) for symbol, factor in self.terms))

    def wrapped(self) -> Linear:
        """The same as a register of 64 bits holds it: constant and coefficients modulo 2^64, as signed numbers."""
        if all(-_HALF <= number < _HALF for number in (self.constant, *[factor for _, factor in self.terms])):
            return self
        terms = [(symbol, (factor + _HALF) % (2 * _HALF) - _HALF) for symbol, factor in self.terms]
        constant = (self.constant + _HALF) % (2 * _HALF) - _HALF
        return Linear(constant, tuple((symbol, factor) for symbol, factor in terms if factor))

    def __str__(self) -> str:
        parts = [symbol if factor == 1 else f"{factor}*{symbol}" for symbol, factor in self.terms]
        return " + ".join(parts + ([str(self.constant)] if self.constant or not parts else []))


ZERO = Linear(0)


def symbol(name: str) -> Linear:
    """The expression that is one symbol."""
    return Linear(0, ((name, 1),))


@dataclass(frozen=True, slots=True)
class Comparison:
    """What flags stand for: zero, sign and signed order are those of `difference` against zero.

    The carry flag is set where `carry` is negative; None where that is not known. After a comparison or subtraction
    that is the difference itself; adding −c carries where the result is not negative.
    """

    difference: Linear
    carry: Linear | None = None

    @classmethod
    def of_sum(cls, total: Linear, sign: int, addend: Linear) -> Comparison:
        """What flags stand for after an addend was added (sign 1) or subtracted (−1) to give the total."""
        if sign < 0:
            return cls(total, total)
        negative = not addend.terms and addend.constant < 0
        return cls(total, total * -1 - Linear(1) if negative else None)


RegisterValues = Callable[[str], Linear | None]
"""What a register holds, None where that is not known."""
MemoryValues = Callable[[int], Linear | None]
"""What memory holds at an instruction's n-th memory reference, None where that is not known."""


def address_of(reference: MemoryReference, registers: RegisterValues, program_counter: str = "") -> Linear | None:
    """The address of a memory reference, None where a register of it holds something unknown.

    Names of symbols and segments are constants of it; addresses relative to the program counter are resolved already.
    """
    constant = reference.displacement
    terms: dict[str, int] = {}
    if reference.symbol:
        terms[f"&{reference.symbol}"] = 1
    if reference.segment:
        terms[f"{reference.segment}:"] = 1
    for name, scale in ((reference.base, 1), (reference.index, reference.scale)):
        if name and name != program_counter:
            value = registers(name)
            if value is None:
                return None
            constant += value.constant * scale
            for term, factor in value.terms:
                terms[term] = terms.get(term, 0) + factor * scale
    if len(terms) < 2:
        return Linear(constant, tuple(terms.items()))
    return Linear(constant, tuple(sorted((term, factor) for term, factor in terms.items() if factor)))
