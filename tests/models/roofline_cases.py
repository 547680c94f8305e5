"""Kernels by hand and by hypothesis for the tests of the roofline family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from hypothesis import strategies as st

from kernmodel.code.mix import FpClass, InstructionMix, MemoryClass
from kernmodel.formulas.formula import ZERO
from kernmodel.incore.engine.ports import optimal_bound
from kernmodel.incore.model import Chain, InCore, Parameters, PortUse, Reason, Why
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.machine.load import load_machine
from kernmodel.machine.model import BandwidthSeries, Machine, StreamMix
from kernmodel.models.chart import Case
from kernmodel.traffic.model import AccessTraffic, PathTraffic, Traffic

CARRIED = ("bdw", "clx", "hsw", "ivb", "skx", "skx-6140", "snb", "zen", "zen2")
LEVELS = ("L1", "L2", "L3", "Mem")


@cache
def core(machine: str) -> Case:
    """A case without a kernel: machine, parameters and table."""
    return case_on(carried(machine))


@cache
def _core(microarchitecture: str) -> tuple[Parameters, InstructionTable]:
    parameters = load_parameters(microarchitecture)
    return parameters, InstructionTable.open(parameters)


def case_on(machine: Machine) -> Case:
    return Case(machine, *_core(machine.core.microarchitecture))


@cache
def carried(name: str) -> Machine:
    return load_machine(name)


def mix(
    memory: Mapping[tuple[int, bool], float], fp: Mapping[FpClass, float] | None = None, *, shares: bool = False
) -> InstructionMix:
    """A mix from {(size, store): count} and {class: count}."""
    return InstructionMix(
        memory=tuple(
            (MemoryClass(size, "scalar" if size <= 8 else "vector", store), count)
            for (size, store), count in memory.items()
            if count
        ),
        fp=tuple((kind, count) for kind, count in (fp or {}).items() if count),
        other=0.0,
        source="test",
        shares_only=shares,
    )


def traffic(
    lines: Mapping[str, tuple[float, float]],
    served: Mapping[str, Mapping[str, float]],
    *,
    flops: float = 2.0,
    registers: tuple[float, float] = (128.0, 64.0),
    write_allocates: float = 0.0,
) -> Traffic:
    """Traffic by loads and stores of each path, and who serves each reference; a name that ends in "=" is a store."""
    zero = ZERO
    paths = tuple(
        PathTraffic(name, loads, stores, 0.0, zero, zero, zero, write_allocates)
        for name, (loads, stores) in lines.items()
    )
    accesses = tuple(
        AccessTraffic(name[0], name.rstrip("="), "write" if name.endswith("=") else "read", by, "")
        for name, by in served.items()
    )
    return Traffic("test", 8, "a[i]", 1000, 1, flops, *registers, paths, accesses, (), (), {}, 1, 1.0, {}, ())


def incore(loads: float, stores: float, fmas: float, lcd: float = 0.0, passes: float = 8.0) -> InCore:
    """The in-core answer of so many 64 B loads and stores and FMA instructions a pass on a Skylake SP core."""
    row = (
        PortUse(("2", "3"), loads),
        PortUse(("2D", "3D"), loads),
        PortUse(("2", "3", "7"), stores),
        PortUse(("4",), stores),
        PortUse(("0", "5"), fmas),
    )
    uses = tuple(use for use in row if use.cycles)
    bound, binding = optimal_bound(uses)
    chain = Chain(lcd, (0,), ("zmm0",), 1)
    return InCore(
        "CLX", ("0",), "optimal", (), (uses,), (bound,), bound, binding, chain if lcd else None, chain, max(bound, lcd),
        "throughput", Reason(Why.NO_PORT), passes, (), (),
    )  # fmt: skip


TRIAD = traffic(
    {"L1L2": (4, 1), "L2L3": (4, 1), "L3Mem": (4, 1)},
    {"a[i]=": {"L1": 0, "Mem": 1}, "b[i]": {"L1": 0, "Mem": 1}, "c[i]": {"Mem": 1}, "d[i]": {"Mem": 1}},
    registers=(192, 64),
    write_allocates=1,
)
"""a[i] = b[i] + c[i] * d[i] from memory: three lines loaded, one allocated, one written."""

SIZES = st.sampled_from((1, 2, 4, 8, 16, 32, 64))
COUNTS = st.floats(0.01, 20)


def fp_classes(table: InstructionTable) -> st.SearchStrategy[FpClass]:
    registers = (16, 32, 64) if table.row("vmovups zmm,m512") else (16, 32)
    return st.builds(
        lambda operation, precision, size, masked: FpClass(
            operation, precision, max(1, size // (8 if precision == "DP" else 4)), masked
        ),
        st.sampled_from(("add", "mul", "fma", "div", "sqrt", "compare", "convert")),
        st.sampled_from(("DP", "SP")),
        st.sampled_from((0, *registers)),
        st.booleans(),
    )


@st.composite
def mixes(draw: st.DrawFn, table: InstructionTable, sizes: st.SearchStrategy[int] = SIZES) -> InstructionMix:
    memory = draw(st.dictionaries(st.tuples(sizes, st.booleans()), COUNTS, min_size=1, max_size=5))
    return mix(memory, draw(st.dictionaries(fp_classes(table), COUNTS, max_size=4)))


STREAMS = st.builds(
    lambda read, write, access: StreamMix(f"m{read}{write}{access}", read, write, 0, access_bytes=access),
    st.integers(0, 3),
    st.integers(1, 2),
    st.sampled_from((8, 16, 32, None)),
)


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    """A carried machine, sometimes with other series: fewer ratios, other sizes, any bandwidths."""
    base = carried(draw(st.sampled_from(CARRIED)))
    if draw(st.booleans()):
        return base
    cores = tuple(sorted(draw(st.sets(st.integers(1, base.topology.cores), min_size=1, max_size=3))))
    series = []
    for level in LEVELS:
        for stream in draw(st.lists(STREAMS, max_size=3, unique_by=lambda one: one.name)):
            values = tuple(draw(st.floats(1e9, 1e12)) for _ in cores)
            series.append(BandwidthSeries(level, stream, cores, values))
    series.append(BandwidthSeries("Mem", StreamMix("load", 1, 0, 0), cores, tuple(20e9 * count for count in cores)))
    return replace(base, bandwidths=tuple(series))


@st.composite
def cases(draw: st.DrawFn, *, only_carried: bool = False) -> Case:
    """A machine, a number of its cores, and a mix that it can execute, without traffic."""
    found = core(draw(st.sampled_from(CARRIED))) if only_carried else case_on(draw(machines()))
    widest = 64 if found.table.row("vmovups zmm,m512") else 32
    sizes = st.sampled_from([size for size in (1, 2, 4, 8, 16, 32, 64) if size <= widest])
    return replace(
        found,
        cores=draw(st.integers(1, found.machine.topology.cores)),
        mix=draw(mixes(found.table, sizes)),
        mask_utilization=draw(st.floats(0.05, 1)),
    )
