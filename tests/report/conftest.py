"""Answers made by hand: a stencil on a small invented machine, so that reports are tested without the stages."""

from __future__ import annotations

import dataclasses

import pytest

from kernmodel.code.model import AddressStream, AssemblyLoop
from kernmodel.errors import Location, Note
from kernmodel.formulas.formula import ONE, ZERO, constant, size, variable
from kernmodel.incore.model import (
    Chain,
    Component,
    FrontEnd,
    InCore,
    InstructionData,
    InstructionReport,
    Parameters,
    PortUse,
    Reason,
    Why,
)
from kernmodel.isa.model import Instruction, MemoryReference
from kernmodel.machine.model import (
    BandwidthSeries,
    CacheLevel,
    Compiler,
    CoreModel,
    Machine,
    StreamMix,
    Topology,
    TransferPath,
)
from kernmodel.machine.overlap import parse_overlap
from kernmodel.models.bandwidths import MemoryBandwidth
from kernmodel.models.ecm import EcmPrediction, ScalingPoint
from kernmodel.models.outside import OutsideWork
from kernmodel.models.transfers import TransferTime
from kernmodel.source.model import Access, Array, ElementType, FlopCount, Loop, LoopNest, Operations
from kernmodel.studies.predict.request import CodeOrigin, EcmAnswer, InCoreAnswer, TrafficAnswer
from kernmodel.traffic.model import (
    AccessTraffic,
    Difference,
    Evasion,
    LayerCondition,
    LevelTraffic,
    PathTraffic,
    Reuse,
    Sampling,
    Traffic,
)
from kernmodel.units import Work

N, M = size("N"), size("M")
COLUMN, ROW = variable("i"), variable("j")
WARNING = Note("test-warning", "a figure was interpolated", where=Location("stencil.c", 4, 9))
ASSUMPTION = Note("test-assumption", "streams are aligned", kind="assumption")


def make_machine() -> Machine:
    def cache(name: str, size: float, sharing: int = 1) -> CacheLevel:
        return CacheLevel(name, size, 8, int(size / 512), 64, "LRU", True, True, sharing, "miss", None, False)

    mix = StreamMix("copy", 1, 1, 0)
    return Machine(
        name="toy",
        title="Toy [processor]",
        vendor="Toys",
        isa="x86-64",
        clock_hz=2e9,
        line_bytes=64,
        topology=Topology(1, 1, 8, 1),
        core=CoreModel("SKL", ("0", "1"), ("2D",), {"DP": {"FMA": 32.0, "total": 32.0}}),
        levels=(cache("L1", 32768), cache("L2", 262144), cache("L3", 8 * 2**20, 8)),
        paths=(
            TransferPath("L1L2", "L1", "L2", 64.0, "half"),
            TransferPath("L2L3", "L2", "L3", 32.0, "half"),
            TransferPath("L3Mem", "L3", "Mem", None, "half"),
        ),
        overlap=parse_overlap("max(T_OL, T_nOL + T_L1L2 + T_L2L3 + T_L3Mem)"),
        bandwidths=(BandwidthSeries("Mem", mix, (1, 2, 8), (10e9, 18e9, 40e9)),),
        compilers=(Compiler("gcc", ("-O3", "-march=skylake")),),
        sources={"topology": "invented", "bandwidths": "invented too"},
        file="toy.yml",
        sha256="0" * 64,
    )


def make_nest() -> LoopNest:
    double = ElementType("double", 8, "float")
    here = Location("stencil.c", 3, 1)
    array = Array("a", double, (M, N), here)
    accesses = tuple(
        Access(
            "a" if kind == "read" else "b",
            kind,
            (row, column),
            row * N + column,
            (N, ONE),
            2,
            1,
            text,
            here,
        )
        for kind, row, column, text in (
            ("read", ROW - 1, COLUMN, "a[j-1][i]"),
            ("read", ROW + 1, COLUMN, "a[j+1][i]"),
            ("write", ROW, COLUMN, "b[j][i]"),
        )
    )
    return LoopNest(
        name="stencil",
        loops=(Loop("j", ONE, M - 1, 1, here), Loop("i", ONE, N - 1, 1, here)),
        arrays={"a": array, "b": dataclasses.replace(array, name="b")},
        accesses=accesses,
        operations=Operations((FlopCount("add", double, 3), FlopCount("mul", double, 1)), scalars={"s": double}),
        symbols={"M": M, "N": N},
        defaults={"M": 5000, "N": 5000},
        file="stencil.c",
        text="/* 2D stencil. */\nfor (j = 1; …)\n",
        function="stencil",
        notes=(),
    )


def make_condition(cache: str, capacity: float, *, rows: bool) -> LayerCondition:
    """The condition of the row reuse (32N − 16 B), or of the reuse within a row (which always holds)."""
    formula = 32 * N - 16 if rows else constant(64)
    required = float(formula.value({"N": 5000}))
    along, lines = ("j", 2.0) if rows else ("i", 0.0)
    limit = int((capacity + 16) // 32)
    return LayerCondition(
        cache=cache,
        capacity_bytes=capacity,
        required_bytes=formula,
        required=required,
        holds=required <= capacity,
        reuses=(Reuse("a", "a[j-1][i]", along, "a[j+1][i]", formula, required, lines),),
        breaks_at={"N": limit} if rows else {"N": None},
        solved={"N": f"N ≤ {limit}"} if rows else {},
        hits=3 if rows else 1,
        misses=2 if rows else 4,
    )


def make_traffic() -> Traffic:
    caches = (("L1", 32768.0), ("L2", 262144.0), ("L3", 8.0 * 2**20))
    conditions = tuple(make_condition(name, size, rows=rows) for name, size in caches for rows in (False, True))
    one = ONE
    return Traffic(
        method="layer conditions",
        iterations_per_unit=8.0,
        unit_stream="b[j][i]",
        iterations_per_sweep=24980004.0,
        updates_per_iteration=1.0,
        flops_per_iteration=4.0,
        register_loads_bytes=256.0,
        register_stores_bytes=64.0,
        paths=(
            PathTraffic("L1L2", 4.0, 1.0, 0.0, 4 * one, one, 0 * one),
            PathTraffic("L2L3", 2.0, 1.0, 0.0, 2 * one, one, 0 * one),
            PathTraffic("L3Mem", 2.0, 1.0, 0.0, 2 * one, one, 0 * one),
        ),
        accesses=(
            AccessTraffic("a", "a[j-1][i]", "read", {"L2": 1.0}, "row reuse holds in L2"),
            AccessTraffic("b", "b[j][i]", "write", {"Mem": 1.0}, "first touch"),
        ),
        conditions=conditions,
        arithmetic_intensity={"L1": 0.1, "L2": 0.1, "L3": 1 / 6, "Mem": None},
        cores=1,
        safety=1.0,
        sizes={"M": 5000, "N": 5000},
        notes=(),
    )


def make_simulated() -> Traffic:
    """The same point simulated: some rows conflict in L1, and half of the write-allocates may be evaded."""
    zero = ZERO
    numbers = {"L1L2": (4.4, 1.0, 0.0), "L2L3": (2.0, 1.0, 0.0), "L3Mem": (1.5, 1.0, 0.0)}
    return dataclasses.replace(
        make_traffic(),
        method="simulation",
        conditions=(),
        paths=tuple(PathTraffic(name, *lines, zero, zero, zero, 1.0) for name, lines in numbers.items()),
        levels=(
            LevelTraffic("L1", 24.0, 20.6, 3.4, 8.0, 7.0, 1.0, 1.0, 3.4),
            LevelTraffic("L2", 4.4, 2.4, 2.0, 1.0, 1.0, 0.0, 1.0, 1.0),
            LevelTraffic("L3", 2.0, 0.0, 2.0, 1.0, 1.0, 0.0, 1.0, 1.0),
        ),
        stores="evading",
        evasion=Evasion(0.5, 0.0, 1.0, "it depends on how busy the memory is"),
        sampling=Sampling(40000, 12000, False, 3, True, 0.001, 0.005, "three windows agree"),
    )


def make_instruction(text: str, form: str, line: int, memory: tuple[MemoryReference, ...] = ()) -> Instruction:
    mnemonic = form.partition(" ")[0]
    return Instruction(text, line, line, 4, mnemonic, form, (), (), (), "", "", memory, None, None, False, 32, False)


def make_loop() -> AssemblyLoop:
    reference = MemoryReference("rax", None, 1, 0, None, None, 32, True, False)
    instructions = (
        make_instruction("vaddpd (%rax,%rcx), %ymm1, %ymm1", "vaddpd ymm,ymm,m256", 10, (reference,)),
        make_instruction("vmulpd [bold]%ymm0[/bold], %ymm1, %ymm1", "vmulpd ymm,ymm,ymm", 11),
        make_instruction("mystery %rax", "mystery r64", 12),
    )
    stream = AddressStream(0, reference, 32)
    return AssemblyLoop(
        instructions, "x86-64", "att", "stencil.s", ".L3", 4.0, (stream,), "the strides match", "main", ()
    )


def make_incore(loop: AssemblyLoop) -> InCore:
    def row(index: int, pressure: tuple[float, ...], lcd: float | None, **values: bool) -> InstructionReport:
        known = values.get("known", True)
        return InstructionReport(
            loop.instructions[index], pressure, 4.0, 4.0, lcd, known, values.get("eliminated", False), "a table"
        )

    return InCore(
        microarchitecture="SKL",
        ports=("0", "1", "2D"),
        port_model="optimal",
        rows=(row(0, (0.5, 0.5, 1.0), 4.0), row(1, (1.0, 0.0, 0.0), None), row(2, (0.0, 0.0, 0.0), None, known=False)),
        uses=((PortUse(("0", "1"), 1.0), PortUse(("2D",), 1.0)), (PortUse(("0",), 1.0),), ()),
        port_sums=(1.5, 0.5, 1.0),
        throughput=1.5,
        binding_ports=("0",),
        lcd=Chain(4.0, (0,), ("ymm1",), 1),
        critical_path=Chain(8.0, (0, 1), ("ymm1", ""), 1),
        prediction=4.0,
        bound_by="dependency",
        reason=CHAIN,
        iterations_per_pass=4.0,
        uncertain=("mystery r64",),
        notes=(),
        components=(
            Component("decode", 5.0, False, Reason(Why.IDLE, names=("DSB",))),
            Component("DSB", 0.75, True, Reason(Why.UOP_CACHE, 0.75, {"entries": 3})),
            Component("ports", 1.5, True, Reason(Why.BINDING_PORTS, 1.5, names=("0",))),
            Component("precedence", 4.0, True, CHAIN),
        ),
    )


def make_parameters() -> Parameters:
    figures = {"load latency": "a manual"}
    return Parameters("SKL", "Toy core", "x86-64", ("0", "1", "2D"), 4.0, 5.0, 4, "skl.table", (), figures)


CHAIN = Reason(Why.CHAIN, 4.0, {"instructions": 2})


def make_prediction(traffic: Traffic) -> EcmPrediction:
    mix = StreamMix("copy", 1, 1, 0)
    bandwidth = MemoryBandwidth("Mem", mix, 60e9, 8, 2 / 3, 2 / 3)
    return EcmPrediction(
        machine="toy",
        cores=1,
        t_ol=8.0,
        t_nol=4.0,
        ol_bound_by="dependency",
        transfers=(
            TransferTime("T_L1L2", 5.0, 0.0, 320.0, None),
            TransferTime("T_L2L3", 6.0, 0.0, 192.0, None),
            TransferTime("T_L3Mem", 6.4, 0.0, 192.0, bandwidth),
        ),
        levels=(("L1", 8.0), ("L2", 9.0), ("L3", 15.0), ("Mem", 21.4)),
        overlap="max(T_OL, T_nOL + T_L1L2 + T_L2L3 + T_L3Mem)",
        binding=("T_nOL", "T_L1L2", "T_L2L3", "T_L3Mem"),
        core_reason=CHAIN,
        saturation_simple=4,
        saturation_recursive=5,
        work=Work(8.0, traffic.flops_per_iteration, traffic.updates_per_iteration, traffic.iterations_per_sweep, 2e9),
        notes=(),
        outside=OutsideWork(4998.0, 0.0016, 0.0, 0.001, 0.003, "mispredicted", known=True),
    )


@pytest.fixture
def toy_machine() -> Machine:
    return make_machine()


@pytest.fixture
def toy_parameters() -> Parameters:
    return make_parameters()


@pytest.fixture
def instruction_row() -> InstructionData:
    front = FrontEnd(1, 2, 0, True, 0, ("ja",))
    ports = (PortUse(("0", "1"), 1.0),)
    plain = InstructionData(
        "addpd xmm,m128", ports, {("A1", "0"): 9.0}, 4.0, 2, 0.5, "zero", True, front, None, "a table"
    )
    return dataclasses.replace(plain, indexed=plain)


@pytest.fixture
def nest() -> LoopNest:
    return make_nest()


@pytest.fixture
def traffic_answer() -> TrafficAnswer:
    traffic = make_traffic()
    return TrafficAnswer(make_nest(), make_machine(), traffic.sizes, traffic, (ASSUMPTION, WARNING))


@pytest.fixture
def simulated_answer(traffic_answer: TrafficAnswer) -> TrafficAnswer:
    return dataclasses.replace(traffic_answer, traffic=make_simulated())


@pytest.fixture
def compared_answer(simulated_answer: TrafficAnswer) -> TrafficAnswer:
    conflicts = "rows that are a multiple of 4 KiB apart share their sets"
    found = (
        Difference("L1L2", "loads", 4.0, 4.4, 0.1, "not-settled", conflicts),
        Difference("L3Mem", "loads", 2.0, 1.5, -0.25, "evasion", "write-allocates are evaded"),
    )
    return dataclasses.replace(simulated_answer, symbolic=make_traffic(), differences=found)


@pytest.fixture
def incore_answer() -> InCoreAnswer:
    loop = make_loop()
    origin = CodeOrigin("stencil.s", None, None, (), ())
    return InCoreAnswer(None, make_parameters(), loop, make_incore(loop), origin, (WARNING,))


@pytest.fixture
def ecm_answer() -> EcmAnswer:
    loop, traffic = make_loop(), make_traffic()
    flags = ("-O3", "-march=skylake")
    return EcmAnswer(
        nest=make_nest(),
        machine=make_machine(),
        sizes=traffic.sizes,
        traffic=traffic,
        origin=CodeOrigin(None, "gcc", "12.2.0", flags, ("gcc", *flags, "-S", "stencil.c")),
        loop=loop,
        parameters=make_parameters(),
        incore=make_incore(loop),
        prediction=make_prediction(traffic),
        scaling=(),
        notes=(ASSUMPTION, WARNING),
    )


@pytest.fixture
def scaled_answer(ecm_answer: EcmAnswer) -> EcmAnswer:
    points = (
        ScalingPoint(1, 1, 1 / 21.4, 21.4, 0.3, False, 21.4),
        ScalingPoint(8, 1, 1 / 6.4, 6.4, 1.0, True, 21.4),
    )
    return dataclasses.replace(ecm_answer, scaling=points)
