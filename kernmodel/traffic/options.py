"""What a user may choose about the way traffic is found. Light: the simulator is not imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from kernmodel.value_types import dataclass

CacheMode = Literal["auto", "lc", "sim", "both"]
Layout = Literal["padded", "pages", "packed", "heap"]
StoreMode = Literal["regular", "nt", "evading"]
ReplacementPolicy = Literal["LRU", "FIFO", "RANDOM", "MRU", "PLRU"]


@dataclass(frozen=True, slots=True)
class Distribution:
    """Where the values of an index array point.

    `kind` "uniform" (anywhere in the array indexed, or in its first `extent` elements where that is not 0), "banded"
    (within `width` elements of the diagonal of these), or "table" (`values`, repeated); `text` as the user wrote it."""

    kind: Literal["uniform", "banded", "table"]
    text: str
    width: int = 0
    values: tuple[int, ...] = ()
    extent: int = 0


@dataclass(frozen=True, slots=True)
class SimulationOptions:
    """Choices of the cache simulation.

    Attributes:
        policy: replacement in all caches; None: as the machine file says.
        layout: "padded": every array begins on a page of its own, spread over the sets of the first cache; "pages": the
            same without spreading; "packed": the arrays follow one another without a gap; "heap": as malloc places
            them.
        order: of the arrays in memory, those not named behind the others; (): as they are declared.
        pad_bytes: bytes between the arrays, in addition.
        alias: every array begins at the same set of every cache.
        indirect: by name of the index array, the distribution of its values.
        seed: of random replacement and random indices.
        exact: simulate whole sweeps whatever they cost, instead of windows.
        lanes: iterations of the innermost loop of which each access touches the elements at once, as vector code does.
    """

    policy: ReplacementPolicy | None = None
    layout: Layout = "padded"
    order: tuple[str, ...] = ()
    pad_bytes: int = 0
    alias: bool = False
    indirect: Mapping[str, Distribution] = field(default_factory=dict)
    seed: int = 0
    exact: bool = False
    lanes: int = 1
