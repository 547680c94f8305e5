"""Import of Kerncraft's machine files: the shared collection where it is at hand, and small ones written here."""

from dataclasses import replace
from pathlib import Path

import pytest
from own_problems import check_machine

from kernmodel.errors import MachineError
from kernmodel.machine.kerncraft import read_kerncraft
from kernmodel.machine.load import load_machine

COLLECTION = Path(__file__).resolve().parents[2] / "../shared/data/machines-kerncraft"
NAMES = (
    "A64FX_qpace4",
    "ARMv8_ThunderX2-CN9980",
    "BroadwellEP_E5-2630v4",
    "BroadwellEP_E5-2697v4_CoD",
    "CascadelakeSP_Gold-6248_SNC",
    "HaswellEP_E5-2695v3",
    "HaswellEP_E5-2695v3_CoD",
    "IvyBridgeEP_E5-2660v2",
    "IvyBridgeEP_E5-2690v2",
    "SandyBridgeEP_E5-2680",
    "SkylakeSP_Gold-5122",
    "SkylakeSP_Gold-6148",
    "SkylakeSP_Gold-6148_SNC",
    "SkylakeSP_Platinum-8147_2.7GHz",
    "Zen2_EPYC-7452",
    "Zen_EPYC-7451",
    "Zen_Ryzen7-1700X",
)
CARRIED = {
    "clx": "CascadelakeSP_Gold-6248_SNC",
    "skx": "SkylakeSP_Gold-6148",
    "bdw": "BroadwellEP_E5-2697v4_CoD",
    "hsw": "HaswellEP_E5-2695v3",
    "ivb": "IvyBridgeEP_E5-2690v2",
    "snb": "SandyBridgeEP_E5-2680",
    "zen": "Zen_EPYC-7451",
    "zen2": "Zen2_EPYC-7452",
}
SMALL = """\
model name: Somebody's Intel
model type: Intel
clock: 2.0 GHz
sockets: 1
cores per socket: 4
threads per core: 2
NUMA domains per socket: 1
cores per NUMA domain: 4
isa: x86
in-core model: !!omap
- IACA: SKX
- OSACA: CSX
compiler: !!omap
- icc: -O3 -qopenmp
- clang: -O3 -mavx2 -D_POSIX_C_SOURCE=200809L -fopenmp
- gcc: -O3 -fopenmp -lm
FLOPs per cycle:
  DP: {ADD: 16, MUL: 16, FMA: 32, total: 32}
  SP: {ADD: 32, MUL: 32, FMA: 64, total: 32}
overlapping model: {ports: {OSACA: ['0', '2', 2D]}}
non-overlapping model: {ports: {OSACA: [2D]}}
cacheline size: 64 B
memory hierarchy:
- level: L1
  cache per group: {sets: 64, ways: 8, cl_size: 64 B, replacement_policy: LRU, write_allocate: true, write_back: true,
    load_from: L2, store_to: L2}
  size per group: 32 kB
  cores per group: 1.0
  upstream throughput: [architecture code analyzer, [2D]]
  transfers overlap: true
- level: L2
  cache per group: {sets: 1024, ways: 16, cl_size: 64, replacement_policy: LRU, write_allocate: true, write_back: true}
  size per group: 900 kB
  cores per group: 4
  upstream throughput: [64 B/cy, full-duplex]
  transfers overlap: false
- level: MEM
  cores per group: 4
  upstream throughput: [full socket memory bandwidth, half-duplex]
  penalty cycles per cacheline load: 1.5
  transfers overlap: false
benchmarks:
  kernels:
    load: {FLOPs per iteration: 0, read streams: {bytes: 8 B, streams: 1}, write streams: {bytes: 0 B, streams: 0},
      read+write streams: {bytes: 0 B, streams: 0}}
  measurements:
    MEM:
      1: {cores: [1, 2, 4], results: {load: [10 GB/s, 19.5 GB/s, 20000 MB/s]}}
"""


@pytest.fixture
def read(tmp_path: Path):
    """Import a text; gives the text made, the codes of the notes, and a path to load it from."""

    def read_text(text: str):
        original = tmp_path / "Small_Machine.yml"
        original.write_text(text)
        imported = read_kerncraft(original)
        made = tmp_path / "made.yml"
        made.write_text(imported.text)
        return made, {note.code: note for note in imported.notes}

    return read_text


def _shared(name: str) -> Path:
    if not COLLECTION.is_dir():
        pytest.skip(f"the collection of Kerncraft machine files is not at hand ({COLLECTION})")
    return COLLECTION / f"{name}.yml"


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_every_shared_file_gives_a_machine(name: str, tmp_path: Path) -> None:
    path = _shared(name)
    made = tmp_path / f"{name}.yml"
    made.write_text(read_kerncraft(path).text)
    problems = [problem.key for problem in check_machine(made) if problem.severity == "error"]
    # its measurements are those of an EPYC 7451 with 24 cores per socket, so none are left
    expected = ["paths.L3Mem.width"] if name == "Zen_Ryzen7-1700X" else []
    assert problems == expected
    assert path.name in made.read_text()


@pytest.mark.parametrize("name", sorted(CARRIED))
def test_carried_machines_agree_with_their_origin(name: str, tmp_path: Path) -> None:
    """Where a carried file and its Kerncraft origin differ, the file says why; these figures do not differ."""
    made = tmp_path / "made.yml"
    made.write_text(read_kerncraft(_shared(CARRIED[name])).text)
    carried, imported = load_machine(name), load_machine(str(made))
    assert replace(carried.topology, domain_memory_bytes=None) == imported.topology  # Kerncraft knows no memory
    assert carried.clock_hz == imported.clock_hz
    assert carried.paths == imported.paths
    assert carried.overlap == imported.overlap
    assert carried.core.overlapping_ports == imported.core.overlapping_ports
    one_thread = tuple(series for series in imported.bandwidths if series.threads_per_core == 1)
    assert carried.bandwidths == one_thread
    changed = {"clx": {"L3"}, "bdw": {"L3"}, "zen": {"L1"}}.get(name, set())
    for ours, theirs in zip(carried.levels, imported.levels, strict=True):
        same = (ours.size_bytes, ours.ways, ours.sets) == (theirs.size_bytes, theirs.ways, theirs.sets)
        assert same == (ours.name not in changed)
        assert (ours.filled_by, ours.write_allocate, ours.cores_sharing) == (
            theirs.filled_by,
            theirs.write_allocate,
            theirs.cores_sharing,
        )


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        (
            "CascadelakeSP_Gold-6248_SNC",
            "inconsistent-flop-rate",
            "SP total of 32 FLOP/cy is smaller than its parts; 64",
        ),
        ("HaswellEP_E5-2695v3", "suspicious-flop-rate", "DP total of 16 FLOP/cy exceeds FMA as well as ADD + MUL (8)"),
        ("IvyBridgeEP_E5-2690v2", "inconsistent-size", "22118400 B of L3 is not sets × ways × line = 25 MiB"),
        ("ARMv8_ThunderX2-CN9980", "misspelt-key", "'penalty cycles per cachlinie store'"),
        ("A64FX_qpace4", "missing-fact", "FLOPs per cycle of DP are not given"),
        ("Zen_Ryzen7-1700X", "foreign-measurements", "go to more cores than the machine has"),
        ("Zen_EPYC-7451", "loads-through-victims", "L3 takes victims, yet loads go through it too"),
        ("SkylakeSP_Gold-6148", "its-own-doubts", "bandwidth measurements need valida"),
        ("BroadwellEP_E5-2697v4_CoD", "unusual-share", "L3 has 1.25 MiB for each core, the machine bdw 2.5 MiB"),
    ],
)
def test_known_errors_are_named(name: str, code: str, text: str) -> None:
    imported = read_kerncraft(_shared(name))
    assert any(note.code == code and text in note.text for note in imported.notes), imported.notes


def test_facts_carry_over(read) -> None:
    made, notes = read(SMALL)
    machine = load_machine(str(made))
    assert (machine.core.microarchitecture, machine.core.non_overlapping_ports) == ("CLX", ("2D", "3D"))
    assert str(machine.overlap) == "max(T_OL, T_nOL, T_L1L2 + T_L2Mem)"
    inner, memory = machine.paths
    assert (inner.bytes_per_cycle, inner.duplex) == (64, "full")
    assert (memory.bytes_per_cycle, memory.duplex, memory.penalty_load, memory.penalty_store) == (None, "half", 1.5, 0)
    (series,) = machine.bandwidths
    assert (series.level, series.cores, series.bytes_per_second) == ("Mem", (1, 2, 4), (10e9, 19.5e9, 20e9))
    assert machine.core.flop_per_cycle["SP"]["total"] == 64
    assert machine.level("L2").size_bytes == 1024**2
    assert [(compiler.name, compiler.flags) for compiler in machine.compilers] == [
        ("gcc", ("-O3",)),
        ("clang", ("-O3", "-mavx2")),
        ("icc", ("-O3",)),
    ]
    assert set(notes) >= {"inconsistent-size", "inconsistent-flop-rate", "dropped-flags"}
    assert all("Small_Machine.yml" in source for source in machine.sources.values())


def test_stores_as_a_carried_machine_of_the_core(read) -> None:
    made, _ = read(SMALL)
    machine = load_machine(str(made))
    assert machine.stores == load_machine("clx").stores
    assert "as in the machine file clx" in machine.sources["stores"]


def test_stores_of_an_unknown_core_are_unknown(read) -> None:
    made, notes = read(SMALL.replace("OSACA: CSX", "OSACA: XYZ"))
    assert "# stores:  (not known; fill it in)" in made.read_text()
    assert load_machine(str(made)).stores.evasion == "unknown"
    assert "missing-fact" in notes


def test_ports_of_an_unknown_core_keep_their_names(read) -> None:
    made, notes = read(SMALL.replace("OSACA: CSX", "OSACA: XYZ"))
    core = load_machine(str(made)).core
    assert (core.overlapping_ports, core.non_overlapping_ports) == (("0", "2"), ("2D",))
    assert "foreign-ports" in notes


def test_victims(read) -> None:
    text = SMALL.replace("    load_from: L2, store_to: L2}", "    load_from: , victims_to: L2, store_to: L2}")
    made, notes = read(text)
    level = load_machine(str(made)).level("L2")
    assert (level.filled_by, level.clean_victims) == ("victims", True)
    assert "loads-through-victims" not in notes


@pytest.mark.parametrize(
    ("old", "new", "missing", "key"),
    [
        ("sockets: 1\n", "", "sockets is not given", "topology.sockets"),
        ("- OSACA: CSX\n", "", "the microarchitecture (in-core model of OSACA) is not given", "core.microarchitecture"),
        ("ways: 16, ", "", "ways of L2 is not given", "caches.L2.ways"),
        ("[64 B/cy, full-duplex]", "", "width of L1L2 is not given", "paths.L1L2.width"),
        ("model type: Intel", "model type: x", "vendor is not given", "vendor"),
        (SMALL[SMALL.index("benchmarks:") :], "", "measured bandwidth is not given", "paths.L2Mem.width"),
    ],
)
def test_what_is_missing_is_named_and_left_to_fill_in(read, old: str, new: str, missing: str, key: str) -> None:
    text = SMALL.replace("Somebody's Intel", "Somebody's") if key == "vendor" else SMALL
    assert old in text
    made, _ = read(text.replace(old, new))
    assert f"missing-fact: {missing}" in made.read_text()
    assert key in [problem.key for problem in check_machine(made)]


def test_missing_overlap_flags_are_taken_as_serial_with_a_note(read) -> None:
    made, notes = read(SMALL.replace("  transfers overlap: true\n", ""))
    assert "`transfers overlap` of L1 is not given; T_nOL is taken as serial" in notes["missing-fact"].text
    assert str(load_machine(str(made)).overlap) == "max(T_OL, T_nOL + T_L1L2 + T_L2Mem)"


def test_inconsistent_domains(read) -> None:
    _, notes = read(SMALL.replace("cores per NUMA domain: 4", "cores per NUMA domain: 3"))
    assert "3 cores in each of 1 NUMA domains are not the 4 cores of a socket" in notes["inconsistent-topology"].text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("- a\n", "is no Kerncraft machine file: it lacks 'memory hierarchy', 'clock', 'cores per socket'"),
        ("clock: 2 GHz\ncores per socket: 1\nmemory hierarchy: L1\n", "it lacks a list of levels"),
        ("clock: 2 GHz\ncores per socket: 1\nmemory hierarchy: [{level: L1}]\n", "does not end with MEM"),
        ("a: [1\n", "is not valid YAML"),
        ("a: !!python/object/apply:os.system [true]\n", "is not valid YAML: could not determine a constructor"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "other.yml"
    path.write_text(text)
    with pytest.raises(MachineError) as caught:
        read_kerncraft(path)
    assert message in str(caught.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MachineError, match="cannot be read: No such file"):
        read_kerncraft(tmp_path / "nowhere.yml")
