"""Values of suites: the file, a variant of a kernel, what was found of it, and how good predictors are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from kernmodel.binary.residency import MOST_MISSES
from kernmodel.evaluate.statistics import Summary
from kernmodel.value_types import dataclass


@dataclass(frozen=True, slots=True)
class SuiteFile:
    """What a suite is made of: every kernel by every compiler with every set of flags and every block size.

    Attributes:
        file: as it was given.
        kernels: C files, each with a `main` that calls the function.
        compilers: commands; flags: sets of flags, split into words; always: flags of all variants.
        block: sizes of the blocks into which the kernel's loops are cut, None: as the source stands.
        function: the name of the function that counts, the same in all kernels.
        aside: names of kernels that no rule may be suggested by; they are judged apart.
    """

    file: str
    kernels: tuple[Path, ...]
    compilers: tuple[str, ...]
    flags: tuple[tuple[str, ...], ...]
    always: tuple[str, ...]
    block: tuple[int | None, ...]
    function: str
    aside: frozenset[str]

    @property
    def variants(self) -> tuple[Variant, ...]:
        """All variants, those of a kernel one behind the other."""
        return tuple(
            Variant(kernel, compiler, flags, block)
            for kernel in self.kernels
            for compiler in self.compilers
            for flags in self.flags
            for block in self.block
        )


@dataclass(frozen=True, slots=True)
class Variant:
    """One binary of a suite: a kernel, how it is compiled, and the size of its blocks."""

    kernel: Path
    compiler: str
    flags: tuple[str, ...]
    block: int | None

    @property
    def name(self) -> str:
        """What tells it from all others, for people and records."""
        blocked = f" blocked {self.block}" if self.block else ""
        return f"{self.kernel.stem} {self.compiler} {' '.join(self.flags)}{blocked}"


@dataclass(frozen=True, slots=True)
class Observed:
    """What was found of a variant without measuring it.

    Attributes:
        name: of the variant; key: of all that it depends on.
        failed: why there is nothing, "" where there is.
        binary: path of the executable.
        calls: of the function in the counted run; instructions: executed in a call.
        blocks: hex digits of the blocks that ran (calls cut out), with how often they ran in a call.
        predicted: own cycles of a call, by the letter of the way, and "ecm".
        low: where those depend on what is not known, the least; by the letter of the way.
        refused: by the letter of the way, why there is no prediction.
        data: where its data lie, None where addresses were not traced.
    """

    name: str
    key: str
    failed: str = ""
    binary: str = ""
    calls: int = 0
    instructions: float = 0.0
    blocks: tuple[tuple[str, float], ...] = ()
    predicted: Mapping[str, float] = field(default_factory=dict)
    low: Mapping[str, float] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, float] | None = None

    @property
    def is_resident(self) -> bool | None:
        """Whether the first cache holds the data (`residency.MOST_MISSES`); None where that is not known."""
        return None if self.data is None else self.data["misses_per_access"] <= MOST_MISSES


@dataclass(frozen=True, slots=True)
class Measured:
    """The measured time of a variant: cycles of the smallest call, by how many percent the second
    smallest run lies above it, or why there is none."""

    name: str
    key: str
    cycles: float = 0.0
    spread_percent: float = 0.0
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """A variant with a measurement and predictions.

    Attributes:
        variant: the binary.
        measured: cycles of the smallest call; spread_percent: by how much the second run lies above it.
        predicted: cycles of a call by the predictor's name and way ("kernmodel (c)"); None where it has none.
        data: footprint_bytes, misses_per_access and misses_per_line; None where addresses were not traced.
        is_resident: whether the first cache holds the data; None where that is not known.
    """

    variant: Variant
    measured: float
    spread_percent: float
    predicted: Mapping[str, float | None]
    data: Mapping[str, float] | None = None
    is_resident: bool | None = None


@dataclass(frozen=True, slots=True)
class Class:
    """Variants of one kind: `grouping` says by what; per predictor, its errors on those that it predicts.

    Attributes:
        count: variants; `Summary.count` of a predictor beside it is its coverage.
    """

    grouping: str
    name: str
    count: int
    summaries: Mapping[str, Summary]


@dataclass(frozen=True, slots=True)
class SuiteAnswer:
    """The answer of `kernmodel binary suite`.

    Attributes:
        file: as it was given; core: whose predictions these are; output: where records, binaries and tables are.
        predictors: with their versions, in the order of the tables.
        judged: variants that were measured; failed: others, by name, and why.
        classes: "all" first, then kernels kept aside and the others, by compiler, flags and block.
        seconds: that this run took, by what it did; reused: records that an earlier run had left.
    """

    file: str
    core: str
    output: str
    predictors: Mapping[str, str]
    judged: tuple[Judged, ...]
    failed: tuple[tuple[str, str], ...]
    classes: tuple[Class, ...]
    seconds: Mapping[str, float]
    reused: int
