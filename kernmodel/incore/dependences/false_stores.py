"""Loads that wait for stores to other addresses: those whose last 12 bits are the same.

A core that compares a load with the stores in flight by the last 12 bits of their addresses takes one that overlaps for
the source of the data. The load waits until that store has its data, then finds that the addresses differ, and is
executed again (4-KByte aliasing in the Intel 64 and IA-32 Architectures Optimization Reference Manual, 248966: such
loads "wait", which makes a loop serial where the load of the next pass meets the store of this one). It gets its data
a load latency after the data of the store.

Shown alone by stencils that were measured on Ivy Bridge (docs/accuracy.md): where planes are 32 bytes longer than a
multiple of 4096, `a[k-1][j][i]` meets what the pass before stored to `b[k][j][i]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernmodel.incore.dependences.addresses import AddressStep, BodyAccesses, Forwarding, MovingAccess

ALIASED_BYTES = 4096
"""Addresses that differ by a multiple of this have the same last 12 bits."""


def aliased_stores(
    accesses: BodyAccesses, starts: Mapping[int, int], latencies: Mapping[int, float], reach: int
) -> tuple[Forwarding, ...]:
    """The stores that loads of a loop body wait for without need.

    Args:
        accesses: of the body.
        starts: by instruction, where its access begins in the first pass, modulo `ALIASED_BYTES`.
        latencies: by instruction, of its load.
        reach: how many stores before a load may be in flight still.
    """
    if not starts:
        return ()
    loads, stores = accesses.moving()
    found = []
    for load in loads:
        for store in stores:
            known = load.instruction in starts and store.instruction in starts
            same = load.address.terms == store.address.terms  # that they are compared with in full
            if not known or same or not load.stride or load.stride != store.stride:
                continue
            apart = starts[load.instruction] - starts[store.instruction]
            passes = _passes(load, store, apart, max(1, reach // len(stores)))
            if passes is not None:
                cycles = round(latencies.get(load.instruction, 0.0))
                places = (_place(accesses.steps, store, 4), _place(accesses.steps, load, 3))
                found.append(Forwarding(*places, passes, whole=True, cycles=cycles))
    return tuple(found)


def _passes(load: MovingAccess, store: MovingAccess, apart: int, most: int) -> int | None:
    """After how many passes, the fewest, the load overlaps what the store wrote in the last 12 bits."""
    for passes in range(store.instruction >= load.instruction, most + 1):
        distance = (apart + passes * load.stride) % ALIASED_BYTES
        if distance < store.size or distance > ALIASED_BYTES - load.size:
            return passes
    return None


def _place(steps: Sequence[AddressStep], access: MovingAccess, way: int) -> tuple[int, int]:
    """The instruction, and the number of its memory reference that is read (3) or written (4)."""
    return access.instruction, next(place[0] for place in steps[access.instruction].places if place[way])
