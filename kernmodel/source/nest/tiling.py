"""Cache blocking of a loop nest: which loops may be blocked, the blocked nest, and the nest inside one block.

A blocked loop `i` becomes a loop `i_block` over blocks, outside, and the loop `i` within one block, at its old place:

    for (int i_block = 1; i_block < N - 1; i_block += BLOCK_I)
        for (int j = 1; j < M - 1; ++j)
            for (int i = i_block; i < MIN(i_block + BLOCK_I, N - 1); ++i)

Loops over blocks stand outside all loops of the *band*: the innermost loops that may be permuted freely (every
dependence distance is non-negative along each of them) and have no statements between them (Wolf and Lam, A data
locality optimizing algorithm, PLDI 1991: a nest can be tiled where it is fully permutable).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernmodel.errors import UsageError
from kernmodel.formulas.formula import ZERO, Formula, constant, maximum, minimum, pushed_in, size, variable
from kernmodel.source.model import Access, Loop, LoopNest, Parallel
from kernmodel.source.nest.dependence import reasons_against
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class Band:
    """The loops that may be blocked. Every array element still sees its operations in the order of the source, so that
    results are the same bit for bit: permutable loops keep every dependence, and carried scalars are refused.

    Attributes:
        loops: variables, outermost first; empty where there is none.
        refused: by variable of every other loop, why it may not ("a[j-1][i+1] depends on …", "the statement in line 9
            stands between the loops").
    """

    loops: tuple[str, ...]
    refused: Mapping[str, str]


def band(nest: LoopNest) -> Band:
    """Which loops of a nest may be blocked, and why the others may not. Arrays of different names are taken as
    different memory."""
    against = reasons_against(nest)
    variables = tuple(loop.variable for loop in nest.loops)
    last = next((v for v in reversed(variables) if v in against), None)
    first = 0 if last is None else variables.index(last) + 1
    refused = {
        v: against.get(v, f"it encloses the loop over {last}, which may not be blocked") for v in variables[:first]
    }
    return Band(variables[first:], refused)


def tile(nest: LoopNest, blocks: Mapping[str, int]) -> LoopNest:
    """The nest with these loops cut into blocks of so many *iterations* (block size × |step| in the variable).

    The loops over blocks stand outside the band, in the order of `blocks`: loops of the band may be permuted freely,
    and so may the loops over their blocks. The text of the nest stays that of the user: `tiled_source` gives the other
    one.

    Raises:
        UsageError: a loop that the nest lacks (names those it has), or that may not be blocked (says why); a block size
            below 1.
    """
    first = check_blocks(nest, blocks)
    names = block_variables(nest)
    outer = [
        replace(loop, variable=names[loop.variable], step=loop.step * blocks[loop.variable])
        for loop in blocked_loops(nest, blocks)
    ]
    inner = [
        _within_block(loop, names[loop.variable], blocks[loop.variable]) if loop.variable in blocks else loop
        for loop in nest.loops[first:]
    ]
    return replace(
        nest,
        loops=(*nest.loops[:first], *outer, *inner),
        divided=nest.divided.difference(blocks),  # their ends are those of blocks
        parallel=nest.parallel and _divided(nest.parallel, first, len(outer)),
        accesses=tuple(_moved_in(access, first, len(outer)) for access in nest.accesses),
        between=tuple((depth + (len(outer) if depth > first else 0), place) for depth, place in nest.between),
    )


def blocked_loops(nest: LoopNest, blocks: Mapping[str, int]) -> list[Loop]:
    """The loops that are cut into blocks, in the order in which the loops over their blocks stand."""
    loops = {loop.variable: loop for loop in nest.loops}
    return [loops[name] for name in blocks]


def _divided(parallel: Parallel, first: int, blocked: int) -> Parallel:
    """The pragma, which stays with its loop; `blocked` loops over blocks stand before the loop of this number. Loops on
    both sides of them are not divided as one."""
    if parallel.loop >= first:
        return replace(parallel, loop=parallel.loop + blocked)
    return replace(parallel, collapse=min(parallel.collapse, first - parallel.loop)) if blocked else parallel


def whole_blocks(nest: LoopNest, blocks: Mapping[str, int]) -> LoopNest | None:
    """The blocked nest as if all blocks were whole: the last one of each loop reaches past its end.

    All iterations of the loops over blocks are alike then, and stand for the blocked nest away from its end. A blocked
    loop counts from the start of its block, which goes into the offsets of the accesses.

    Returns:
        None where bounds of other loops depend on a blocked one, so that blocks differ in more than their last one.

    Raises:
        As `tile`.
    """
    tiled, names = tile(nest, blocks), block_variables(nest)
    blocked = {loop.variable: names[loop.variable] for loop in nest.loops if loop.variable in blocks}
    if any(loop.bounded_by & set(blocked) for loop in nest.loops):
        return None
    loops = tuple(
        replace(loop, start=ZERO, stop=constant(blocks[loop.variable] * loop.step)) if loop.variable in blocks else loop
        for loop in tiled.loops
    )
    numbers = {loop.variable: number for number, loop in enumerate(loops)}
    return replace(
        tiled, loops=loops, accesses=tuple(_from_block(access, blocked, numbers) for access in tiled.accesses)
    )


def _from_block(access: Access, blocked: Mapping[str, str], numbers: Mapping[str, int]) -> Access:
    """The access with blocked loops that count from the start of their block."""
    moved = {name: variable(name) + variable(block) for name, block in blocked.items()}
    coefficients = list(access.coefficients)
    for name, block in blocked.items():
        coefficients[numbers[block]] = coefficients[numbers[name]]
    return replace(
        access,
        index=tuple(part.substitute(moved) for part in access.index),
        offset=access.offset.substitute(moved),
        coefficients=tuple(coefficients),
        indirect=tuple(replace(one, position=one.position.substitute(moved)) for one in access.indirect),
    )


def inside_block(nest: LoopNest, loops: Sequence[str]) -> tuple[LoopNest, Mapping[str, Formula]]:
    """The nest within one block, its block sizes as symbols: layer conditions of it are formulas in the block sizes.

    Each of `loops` runs over `B_<variable>` iterations from its start (its stop becomes start + B·step), and the loops
    over blocks are left out.

    Returns:
        The nest, and the size symbol (positive integer) by loop variable; the symbols are among `nest.symbols`.

    Raises:
        As `tile`.
    """
    check_blocks(nest, dict.fromkeys(loops, 1))
    taken = _names(nest)
    symbols = {loop.variable: size(fresh(f"B_{loop.variable}", taken)) for loop in nest.loops if loop.variable in loops}
    shortened = tuple(
        replace(loop, stop=pushed_in(loop.start + symbols[loop.variable] * loop.step))
        if loop.variable in symbols
        else loop
        for loop in nest.loops
    )
    known = {**nest.symbols, **{str(symbol): symbol for symbol in symbols.values()}}
    return replace(nest, loops=shortened, symbols=known), symbols


# Checks and names


def check_blocks(nest: LoopNest, blocks: Mapping[str, int]) -> int:
    """The number of the band's first loop.

    Raises:
        UsageError: as `tile`.
    """
    allowed, variables = band(nest), [loop.variable for loop in nest.loops]
    for name, length in blocks.items():
        if name not in variables:
            raise UsageError(f"{nest.name} has no loop {name}", todo=f"choose among its loops {', '.join(variables)}")
        if name in allowed.refused:
            others = ", ".join(allowed.loops)
            raise UsageError(
                f"the loop over {name} of {nest.name} may not be blocked: {allowed.refused[name]}",
                todo=f"block {others}" if others else "none of its loops may be blocked",
            )
        if length < 1:
            raise UsageError(f"the block size of {name} is {length}", todo="give at least 1 iteration")
    return len(variables) - len(allowed.loops)


def block_variables(nest: LoopNest) -> dict[str, str]:
    """A name for the loop over blocks of each loop, by its variable, that the source does not use."""
    taken = _names(nest)
    return {loop.variable: fresh(f"{loop.variable}_block", taken) for loop in nest.loops}


def fresh(name: str, taken: set[str]) -> str:
    """The name, or with a number behind it where it is taken; it is taken afterwards."""
    number, chosen = 1, name
    while chosen in taken:
        number += 1
        chosen = f"{name}{number}"
    taken.add(chosen)
    return chosen


def _names(nest: LoopNest) -> set[str]:
    return {*re.findall(r"[A-Za-z_]\w*", nest.text), *nest.symbols, *(loop.variable for loop in nest.loops)}


# Loops and accesses of the blocked nest


def _within_block(loop: Loop, block: str, size: int) -> Loop:
    start = variable(block)
    nearest = minimum if loop.step > 0 else maximum
    return replace(loop, start=start, stop=nearest(start + size * loop.step, loop.stop))


def _moved_in(access: Access, first: int, added: int) -> Access:
    """The access with `added` more loops around those from number `first` on."""
    zeros = (ZERO,) * added
    return replace(
        access,
        coefficients=(*access.coefficients[:first], *zeros, *access.coefficients[first:]),
        depth=access.depth + (added if access.depth > first else 0),
    )
