"""The machine files that the package carries: fit, sourced, and true to what their sources say."""

import subprocess
from pathlib import Path

import pytest

from kernmodel.code.compile import find_compiler
from kernmodel.errors import ToolError
from kernmodel.machine.load import FOLDER, load_machine
from kernmodel.machine.model import Compiler, Machine, StoreBehaviour
from kernmodel.machine.overlap import names
from kernmodel.resources import carried_files
from kernmodel.studies.predict.machine_check import check_machine_file

FILES = {path.stem: path for path in carried_files(FOLDER, ".yml")}
MICROARCHITECTURES = {"CLX", "SKX", "BDW", "HSW", "IVB", "SNB", "ZEN", "ZEN2"}
KIB, MIB = 1024, 1024**2
# per machine: microarchitecture, clock, cores, ccNUMA domains per socket, size of the last cache, cores sharing it
FACTS = {
    "clx": ("CLX", 2.5e9, 40, 2, 13.75 * MIB, 10),
    "skx": ("SKX", 2.4e9, 40, 1, 27.5 * MIB, 20),
    "skx-6140": ("SKX", 2.3e9, 18, 1, 24.75 * MIB, 18),
    "bdw": ("BDW", 2.3e9, 36, 2, 22.5 * MIB, 9),
    "hsw": ("HSW", 2.3e9, 28, 1, 35 * MIB, 14),
    "ivb": ("IVB", 3.0e9, 20, 1, 25 * MIB, 10),
    "snb": ("SNB", 2.7e9, 16, 1, 20 * MIB, 8),
    "zen": ("ZEN", 2.3e9, 48, 4, 8 * MIB, 3),
    "zen2": ("ZEN2", 2.35e9, 32, 4, 16 * MIB, 4),
    "tx2": ("TX2", 2.2e9, 64, 1, 32 * MIB, 32),
    "a64fx": ("A64FX@512", 1.8e9, 48, 4, 8 * MIB, 12),
}
PUBLISHED = {
    "graviton2": ("N1", 2.5e9, 64, 1, 32 * MIB, 64),
    "graviton3": ("V1@256", 2.6e9, 64, 1, 32 * MIB, 64),
    "grace": ("V2", 3.2e9, 72, 1, 114 * MIB, 72),
    "m1": ("M1", 3.2e9, 4, 1, 12 * MIB, 4),
    "zen3": ("ZEN3", 2.45e9, 128, 1, 32 * MIB, 8),
    "zen4": ("ZEN4", 3.66e9, 96, 12, 32 * MIB, 8),
    "icx": ("ICX", 2.4e9, 72, 1, 54 * MIB, 36),
    "spr": ("GLC", 2.0e9, 112, 1, 105 * MIB, 56),
    "gnr": ("RWC", 2.4e9, 192, 3, 160 * MIB, 32),
}
"""The same of machines without bandwidths of all levels (tests/studies/test_studies_unknown_figures.py)."""
CODE = {"tx2": ("aarch64", 64), "a64fx": ("aarch64-sve512", 256)}
"""Instruction set and cache line of machines that are not x86-64."""
SERIAL = "max(T_OL, T_nOL + T_L1L2 + T_L2L3 + T_L3Mem)"
OVERLAPS = {
    "zen": "max(T_OL, T_nOL, T_L1L2, T_L2L3 + T_L3Mem)",
    "zen2": "max(T_OL, T_nOL, T_L1L2, T_L2L3, T_L3Mem)",
    "a64fx": "max(T_OL, T_nOL + T_L1L2 + T_L2Mem)",
}
# widths in B/cy and duplexity of L1L2 and L2L3: the machine files of Kerncraft
WIDTHS = {
    "snb": ((32, "half"), (32, "half")),
    "ivb": ((32, "half"), (32, "half")),
    "hsw": ((64, "half"), (32, "half")),
    "bdw": ((64, "half"), (32, "half")),
    "skx": ((64, "half"), (16, "full")),
    "skx-6140": ((64, "half"), (16, "full")),
    "clx": ((64, "half"), (16, "full")),
    "zen": ((32, "full"), (32, "half")),
    "zen2": ((32, "full"), (24, "half")),
    "tx2": ((64, "half"), (32, "half")),
    "a64fx": ((64, "half"),),
}


@pytest.fixture(params=sorted(FACTS))
def machine(request: pytest.FixtureRequest) -> Machine:
    return load_machine(request.param)


def test_all_are_here() -> None:
    assert set(FILES) == {*FACTS, *PUBLISHED}


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_published_facts(name: str) -> None:
    machine = load_machine(name)
    topology, last = machine.topology, machine.levels[-1]
    core = (machine.core.microarchitecture, machine.clock_hz, topology.cores, topology.numa_domains_per_socket)
    assert (*core, last.size_bytes, last.cores_sharing) == PUBLISHED[name]
    assert machine.line_bytes == (128 if name == "m1" else 64)
    test_every_section_has_its_source(machine)


@pytest.mark.parametrize("name", sorted(FACTS))
def test_check_finds_nothing(name: str) -> None:
    assert check_machine_file(FILES[name]) == ()


def test_facts(machine: Machine) -> None:
    microarchitecture, clock, cores, domains, size, sharing = FACTS[machine.name]
    last = machine.levels[-1]
    assert machine.core.microarchitecture == microarchitecture
    assert (machine.clock_hz, machine.isa, machine.line_bytes) == (clock, *CODE.get(machine.name, ("x86-64", 64)))
    assert (machine.topology.cores, machine.topology.numa_domains_per_socket) == (cores, domains)
    assert (last.size_bytes, last.cores_sharing) == (size, sharing)


def test_paths_and_overlap(machine: Machine) -> None:
    *inner, memory = machine.paths
    assert tuple((path.bytes_per_cycle, path.duplex) for path in inner) == WIDTHS[machine.name]
    assert memory.bytes_per_cycle is None
    assert str(machine.overlap) == OVERLAPS.get(machine.name, SERIAL)
    assert set(names(machine.overlap)) == {"T_OL", "T_nOL", *(path.time_name for path in machine.paths)}
    penalties = (memory.penalty_load, memory.penalty_store)
    assert penalties == {"zen2": (0.585, 2.57), "tx2": (2.56, 2.56)}.get(machine.name, (0, 0))


def test_victim_caches(machine: Machine) -> None:
    victims = machine.core.microarchitecture in {"SKX", "CLX", "ZEN", "ZEN2", "TX2"}
    assert [level.filled_by for level in machine.levels[:2]] == ["miss", "miss"]
    assert machine.levels[-1].filled_by == ("victims" if victims else "miss")
    assert machine.levels[-1].clean_victims is victims


def test_every_section_has_its_source(machine: Machine) -> None:
    expected = {"machine", "topology", "core", "stores", "overlap", "bandwidths"}
    expected |= {f"caches.{level.name}" for level in machine.levels} | {f"paths.{path.name}" for path in machine.paths}
    assert expected <= set(machine.sources)
    assert all(len(source) > 10 for source in machine.sources.values())


def test_evasion_of_write_allocates(machine: Machine) -> None:
    """It begins with Ice Lake SP (SpecI2M); AMD needs non-temporal stores, ThunderX2 nothing, A64FX DC ZVA."""
    evades = {"tx2": "always", "a64fx": "instruction"}.get(machine.name, "never")
    assert machine.stores == StoreBehaviour(machine.name not in CODE, evades, evades_from_cores=None)  # type: ignore[arg-type]


def test_ports(machine: Machine) -> None:
    overlapping, others = set(machine.core.overlapping_ports), set(machine.core.non_overlapping_ports)
    if machine.vendor == "Intel":
        small = machine.core.microarchitecture in {"SNB", "IVB"}
        assert others == {"2D", "3D"}
        assert overlapping == {"0", "0DV", "1", "2", "3", "4", "5"} | (set() if small else {"6", "7"})
    elif machine.name in CODE:
        assert others == {"tx2": {"3", "4", "5"}, "a64fx": {"EAGA", "EAGB"}}[machine.name]
    else:
        assert others == {"LD0", "LD1"}
        assert overlapping >= {"FP0", "FP3", "FP3DV", "ALU0", "ALU3", "IDV", "AGU0", "AGU1", "ST"}
        assert ("AGU2" in overlapping) == (machine.name == "zen2")


def test_memory_bandwidth_covers_a_domain(machine: Machine) -> None:
    """The memory time takes the largest measured figure within a ccNUMA domain; some series must reach into one."""
    series = [series for series in machine.bandwidths if series.level == "Mem"]
    assert series
    for one in series:
        assert one.threads_per_core == 1
        assert min(one.cores) <= machine.topology.cores_per_numa_domain
        assert 5e9 < max(one.bytes_per_second) < 300e9


def test_peak_flop_rates_are_consistent(machine: Machine) -> None:
    double, single = machine.core.flop_per_cycle["DP"], machine.core.flop_per_cycle["SP"]
    assert {name: 2 * rate for name, rate in double.items()} == dict(single)
    assert double["total"] >= double.get("FMA", 0)


def test_table_1_of_adcarm() -> None:
    """adCARM paper, Table 1: ORM bandwidths of 18 cores at 2.3 GHz follow from the widths, the peak from the FMA."""
    machine = load_machine("skx-6140")
    per_cycle = machine.topology.cores * machine.clock_hz
    assert machine.core.load_bytes_per_cycle is not None
    assert machine.core.store_bytes_per_cycle is not None
    first = machine.core.load_bytes_per_cycle + machine.core.store_bytes_per_cycle
    assert first * per_cycle / 1e9 == pytest.approx(7948.8)
    assert machine.memory is not None
    assert machine.memory.bytes_per_second / 1e9 == pytest.approx(42.66, abs=0.005)
    widths = [path.bytes_per_cycle for path in machine.paths[:2]]
    assert [width * per_cycle / 1e9 for width in widths if width] == pytest.approx([2649.6, 662.4])
    assert machine.core.flop_per_cycle["DP"]["FMA"] * per_cycle / 1e9 == pytest.approx(1324.8)


def test_every_series_says_the_size_of_its_accesses(machine: Machine) -> None:
    """As the names of the benchmarks say; Zen's copy is measured with SSE, all others with the widest instructions."""
    sizes = {series.mix.name: series.mix.access_bytes for series in machine.bandwidths}
    widest = {"SKX": 64, "CLX": 64, "A64FX@512": 64, "TX2": 16}.get(machine.core.microarchitecture, 32)
    small = {"zen": {"copy"}, "skx-6140": {"load-sse"}}.get(machine.name, set())
    assert sizes == {name: 16 if name in small else widest for name in sizes}


def test_measured_figures_of_adcarm() -> None:
    """adCARM paper, Section 3 and Eq. (2)."""
    found = {(series.level, series.mix.name): series.bytes_per_second for series in load_machine("skx-6140").bandwidths}
    expected = {("L1", "load"): 5288.75, ("L1", "2ld-1st"): 5562.42, ("L2", "load"): 2630.12, ("Mem", "load"): 41.41}
    expected |= {("L1", "load-sse"): 1319.28}
    assert {key: value[0] / 1e9 for key, value in found.items()} == pytest.approx(expected)


def _compilations() -> list[tuple[str, tuple[str, ...], str]]:
    machines = [load_machine(name) for name in FILES]
    return sorted({(one.name, one.flags, machine.isa) for machine in machines for one in machine.compilers})


def test_default_compiler_is_gcc(machine: Machine) -> None:
    assert [compiler.name for compiler in machine.compilers] == ["gcc", "clang"]
    flags = {flag for compiler in machine.compilers for flag in compiler.flags}
    assert not flags & {"-fopenmp", "-ffast-math", "-Ofast"}


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "flags", "isa_name"), _compilations())
def test_flags_are_accepted(name: str, flags: tuple[str, ...], isa_name: str, tmp_path: Path) -> None:
    try:
        found = find_compiler((Compiler(name, flags),), isa_name=isa_name)
    except ToolError:
        pytest.skip(f"no {name} for {isa_name} here")
    source = tmp_path / "copy.c"
    source.write_text("void copy(double *a, const double *b, long n) { for (long i = 0; i < n; ++i) a[i] = b[i]; }\n")
    command_line = [found.command, *found.flags, "-Werror", "-S", "-o", str(tmp_path / "copy.s"), str(source)]
    done = subprocess.run(command_line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
