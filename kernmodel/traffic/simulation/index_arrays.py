"""Where the values of index arrays point: the distributions that the user states, as the simulator takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernmodel.cachesim.model import Form, Indirection
from kernmodel.cachesim.programs import indirect_value
from kernmodel.errors import InputError, Note, UnsupportedKernelError, UsageError
from kernmodel.source.model import Access, IndirectIndex, LoopNest
from kernmodel.source.nest.counting import put_in
from kernmodel.source.nest.sizes import shape_of
from kernmodel.traffic.options import Distribution
from kernmodel.traffic.simulation.bounds import Interval, form_of, form_range
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class IndirectValues:
    """The distribution of every index array of a nest, by name, and the seed of random values."""

    distributions: Mapping[str, Distribution]
    seed: int = 0

    def of(
        self,
        nest: LoopNest,
        access: Access,
        pitches: Sequence[int],
        sizes: Mapping[str, int],
        ranges: Sequence[Interval],
    ) -> tuple[Indirection, ...]:
        """What index arrays add to the address of an access.

        Args:
            nest, access: what the index stands in.
            pitches: bytes per unit of the value of each index.
            sizes: values of the size symbols.
            ranges: of the loop variables.

        Raises:
            InputError: an index array without a distribution, values beyond the array, an array without an extent.
            UnsupportedKernelError: a position that is not affine in the loop variables.
        """
        pairs = zip(access.indirect, pitches, strict=True)
        return tuple(self._one(nest, access, index, pitch, sizes, ranges) for index, pitch in pairs)

    def _one(
        self,
        nest: LoopNest,
        access: Access,
        index: IndirectIndex,
        pitch: int,
        sizes: Mapping[str, int],
        ranges: Sequence[Interval],
    ) -> Indirection:
        position = form_of(index.position, [loop.variable for loop in nest.loops], sizes)
        if position is None:
            raise UnsupportedKernelError(
                f"the position {index.text} is not affine in the loop variables",
                where=access.location,
                todo="write it as a sum of constants times loop variables",
            )
        if not index.array:
            return _digits(index, position, pitch, sizes, ranges)
        distribution = self.distributions.get(index.array)
        if distribution is None:
            raise InputError(
                f"{access.text} depends on the values of {index.array}, which are not known",
                where=access.location,
                todo=f"state where they point with --indirect {index.array}=uniform|banded:K|FILE",
            )
        # the same values wherever the array is read, others in other arrays
        stated = Indirection(
            position=position,
            scale=pitch,
            kind=distribution.kind,
            extent=_extent(nest, access, index, distribution, sizes),
            width=distribution.width,
            table=distribution.values,
            positions=max(1, form_range(position, ranges)[1] + 1),
            seed=self.seed + sorted(self.distributions).index(index.array),
        )
        if not index.through:
            return stated
        place, entry = next(
            (one, entry)
            for one in nest.accesses
            for entry in one.indirect
            if one.array == index.array and entry.name == index.through
        )
        return _composed(stated, self._one(nest, place, entry, 1, sizes, ranges), access)


def _composed(outer: Indirection, inner: Indirection, access: Access) -> Indirection:
    """The values of an index array at the entries that another one names, as a table over the entries of that one.

    Raises:
        InputError: it would be too long.
    """
    if inner.positions > _MOST_ENTRIES:
        what = f"{access.text} reads an index array through {inner.positions:,} entries of another"
        todo = f"at most {_MOST_ENTRIES:,} are simulated; put the two together before the nest, c[i] = a[b[i]]"
        raise InputError(what, where=access.location, todo=todo)
    first, second = replace(inner, position=_ENTRY), replace(outer, position=_ENTRY, positions=inner.extent)
    table = tuple(indirect_value(second, (indirect_value(first, (at,)),)) for at in range(inner.positions))
    return replace(outer, kind="table", table=table, positions=inner.positions)


_ENTRY = Form(0, (1,))
_MOST_ENTRIES = 4_000_000


def _digits(
    index: IndirectIndex,
    position: Form,
    pitch: int,
    sizes: Mapping[str, int],
    ranges: Sequence[Interval],
) -> Indirection:
    """A quotient or remainder: what is divided is not negative, as `sizes_of` makes sure."""
    divisor = int(put_in(index.divisor, sizes, ()))
    last = max(0, form_range(position, ranges)[1] // divisor)
    if index.modulus is not None:
        last = int(put_in(index.modulus, sizes, ())) - 1
    return Indirection(position, pitch, "digits", last + 1, positions=divisor)


def indirect_values(nest: LoopNest, distributions: Mapping[str, Distribution], seed: int) -> IndirectValues:
    """The distributions for a nest, checked against its index arrays.

    Raises:
        UsageError: a distribution for a name that is no index array of the nest.
    """
    arrays = nest.index_arrays
    for name in distributions:
        if name not in arrays:
            listed = f"its index arrays are {', '.join(arrays)}" if arrays else "it has no index arrays"
            raise UsageError(f"{name} is no index array of {nest.name}", where="--indirect", todo=listed)
    return IndirectValues(distributions, seed)


def indirect_notes(nest: LoopNest, distributions: Mapping[str, Distribution]) -> tuple[Note, ...]:
    """What is assumed of the index arrays."""
    texts = (f"the values of {name} are taken as {distributions[name].text}" for name in nest.index_arrays)
    return tuple(Note("indirect", text, "assumption") for text in texts)


def _extent(
    nest: LoopNest, access: Access, index: IndirectIndex, distribution: Distribution, sizes: Mapping[str, int]
) -> int:
    """How many values an index may take without leaving the dimension that it selects from."""
    shape = shape_of(nest.arrays[access.array], sizes)
    dimension = next(k for k, part in enumerate(access.index) if index.name in part.free_symbols)
    largest = max(distribution.values, default=distribution.extent - 1)
    if dimension >= len(shape):
        if distribution.kind != "table" and not distribution.extent:
            raise InputError(
                f"{access.array} has no extent that {index.text} could be spread over",
                where=access.location,
                todo=f"say it, as in {index.array}={distribution.text}:5000, or declare {access.array}[N]",
            )
        return largest + 1
    if largest >= shape[dimension]:
        raise InputError(
            f"{index.text} reaches {largest}, but {access.array} has 0 to {shape[dimension] - 1} there",
            where=access.location,
            todo=f"mend the values of {index.array} or the shape of {access.array}",
        )
    return distribution.extent or shape[dimension]
