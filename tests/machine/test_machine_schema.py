"""Every class of problem that a machine file can have, with its line and its message."""

from dataclasses import replace
from pathlib import Path

import pytest
from own_problems import check_machine

from kernmodel.errors import MachineError
from kernmodel.machine.load import load_machine
from kernmodel.machine.model import MeasuredPeak, MemoryChannels, StoreBehaviour, TransferPath

MINIMAL = """\
title: A machine
vendor: Nobody
isa: x86-64
clock: 2 GHz
cache_line: 64 B
source: invented for this test
topology:
  sockets: 2
  numa_domains_per_socket: 2
  cores_per_socket: 4
  threads_per_core: 1
  source: invented
core:
  microarchitecture: SKX
  overlapping_ports: [0, 1]
  non_overlapping_ports: [2D]
  flop_per_cycle:
    DP: {ADD: 8, FMA: 16, total: 16}
  source: invented
caches:
  L1:
    size: 32 KiB
    ways: 8
    sets: 64
    replacement: LRU
    write_back: true
    write_allocate: true
    shared_by: 1
    filled_by: miss
    source: invented
  L2:
    size: 1 MiB
    ways: 16
    sets: 1024
    replacement: LRU
    write_back: true
    write_allocate: false
    shared_by: 2
    filled_by: victims
    clean_victims: true
    loads_pass_by: false
    source: invented
paths:
  L1L2: {width: 64 B/cy, duplex: full, source: invented}
  L2Mem: {width: measured, duplex: half, penalty_load: 1 cy/CL, source: invented}
overlap: {expression: "max(T_OL, T_nOL + T_L1L2 + T_L2Mem)", source: invented}
bandwidths:
  unit: GB/s
  source: invented
  mixes:
    copy: {read: 1, write: 1}
  measured:
    - level: Mem
      cores: 1-4
      values:
        copy: [10, 18, 20, 20.5]
compilers:
  gcc: -O3
"""

# what to replace, by what, and the message from the line number on
CASES = {
    "wrong unit": ("size: 1 MiB", "size: 1 MX", ":32: caches.L2.size: '1 MX' has no unit of data; use one of B, byte"),
    "no unit": ("clock: 2 GHz", "clock: 2", ":4: clock: '2' is not a frequency with a unit; write a number"),
    "runs out of order": (
        "penalty_load: 1 cy/CL",
        "run_length: [[4 KiB, 20], [512, 40]]",
        ":45: paths.L2Mem.run_length: 512 follows 4096; sort the pairs, each length once",
    ),
    "a run without cycles": (
        "penalty_load: 1 cy/CL",
        "run_length: [[512], [1024, 40]]",
        ":45: paths.L2Mem.run_length: is no list of at least two pairs; write [[bytes, cycles per line], …]",
    ),
    "runs that take no time": (
        "penalty_load: 1 cy/CL",
        "run_length: [[512, 0], [1024, 40]]",
        ":45: paths.L2Mem.run_length: '0' is not a cycles per cache line with a unit",
    ),
    "more kept of more data": (
        "loads_pass_by: false",
        "loads_pass_by: false\n    kept: [[1 MiB, 0.5], [2 MiB, 0.75]]",
        ":42: caches.L2.kept: keeps 0.75 of 2 MiB, but only 0.5 of 1 MiB; check the shares",
    ),
    "a share above one": (
        "loads_pass_by: false",
        "loads_pass_by: false\n    kept: [[1 MiB, 1.5], [2 MiB, 0]]",
        ":42: caches.L2.kept: 1.5 is more than 1",
    ),
    "vectors without a course": (
        "penalty_load: 1 cy/CL",
        "beside_vectors: [[3, 5]]",
        ":45: paths.L2Mem.beside_vectors: is no list of at least two pairs; "
        "write [[vectors written, cycles longer], …]",
    ),
    "one figure beside nothing": (
        "penalty_load: 1 cy/CL",
        "beside_memory: [9.8, 10.1]",
        ":45: paths.L2Mem.beside_memory: has too few figures; write the cycles beside 0, 1, 2, … lines",
    ),
    "other dimension": ("clock: 2 GHz", "clock: 2 KiB", ":4: clock: '2 KiB' has no unit of frequency"),
    "zero": ("clock: 2 GHz", "clock: 0 GHz", ":4: clock: '0 GHz' is not greater than zero"),
    "negative penalty": ("1 cy/CL", "-1 cy/CL", ":45: paths.L2Mem.penalty_load: '-1 cy/CL' is negative"),
    "missing key": ("clock: 2 GHz\n", "", ":1: clock: is missing"),
    "missing key of a section": ("    ways: 16\n", "", ":31: caches.L2.ways: is missing"),
    "missing section": ("compilers:\n  gcc: -O3\n", "", ":1: compilers: is missing"),
    "level without source": (
        "loads_pass_by: false\n    source: invented",
        "loads_pass_by: false",
        ":31: caches.L2.source: is missing",
    ),
    "unknown key": ("    ways: 16", "    weys: 16", ":33: caches.L2.weys: is an unknown key; did you mean 'ways'?"),
    "unknown key at the top": ("isa:", "ida:", ":3: ida: is an unknown key; did you mean 'isa'?"),
    "unknown word": ("isa: x86-64", "isa: riscv", ":3: isa: 'riscv' is unknown; use one of x86-64, aarch64"),
    "innermost cache with sets by a hash": (
        "filled_by: miss\n    source: invented",
        "filled_by: miss\n    hashed: true\n    source: invented",
        ":30: caches.L1.hashed: the innermost cache finds its sets by the place within a page",
    ),
    "hashed is no word": (
        "loads_pass_by: false",
        "loads_pass_by: false\n    hashed: slices",
        ":42: caches.L2.hashed: 'slices' is neither true nor false",
    ),
    "no flag": ("write_back: true", "write_back: yes", ":26: caches.L1.write_back: 'yes' is neither true nor false"),
    "no whole number": ("ways: 16", "ways: 16.5", ":33: caches.L2.ways: '16.5' is no whole number"),
    "a list for a value": ("ways: 16", "ways: [16]", ":33: caches.L2.ways: is a list; write a single value"),
    "a value for a mapping": (
        "  L1L2: {width: 64 B/cy, duplex: full, source: invented}",
        "  L1L2: 64 B/cy",
        ":44: paths.L1L2: is no mapping",
    ),
    "empty text": ("vendor: Nobody", "vendor:", ":2: vendor: is empty"),
    "duplicate key": (
        "    ways: 16",
        "    ways: 16\n    ways: 8",
        ":34: caches.L2.ways: is given twice; leave out this one or the one in line 33",
    ),
    "size": (
        "sets: 1024",
        "sets: 1000",
        ":32: caches.L2.size: 1 MiB is not sets × ways × line = 1000 × 16 × 64 B = 1000 KiB",
    ),
    "cache line": ("cache_line: 64 B", "cache_line: 60 B", ":5: cache_line: 60 B is no power of two"),
    "line of a level": (
        "    ways: 16",
        "    line: 128 B\n    ways: 16",
        ":33: caches.L2.line: 128 B is not the cache_line of 64 B",
    ),
    "domains": (
        "numa_domains_per_socket: 2",
        "numa_domains_per_socket: 3",
        ":9: topology.numa_domains_per_socket: 4 cores do not divide into 3 ccNUMA domains",
    ),
    "sharing": (
        "shared_by: 2",
        "shared_by: 3",
        ":38: caches.L2.shared_by: 4 cores of a socket do not divide into groups of 3",
    ),
    "sharing inside out": (
        "shared_by: 1",
        "shared_by: 4",
        ":38: caches.L2.shared_by: 2 cores share it, but 4 share the level inside",
    ),
    "names of levels": ("  L2:", "  L5:", ":20: caches: the levels are L1, L5; name them L1, L2, innermost first"),
    "innermost victims": (
        "filled_by: miss",
        "filled_by: victims\n    clean_victims: true\n    loads_pass_by: true",
        ":29: caches.L1.filled_by: the innermost cache has no victims to take",
    ),
    "clean victims missing": (
        "    clean_victims: true\n",
        "",
        ":31: caches.L2.clean_victims: is missing; say whether clean victims enter",
    ),
    "loads pass by missing": (
        "    loads_pass_by: false\n",
        "",
        ":31: caches.L2.loads_pass_by: is missing; say whether lines from further out pass",
    ),
    "clean victims meaningless": (
        "filled_by: victims",
        "filled_by: miss",
        ":40: caches.L2.clean_victims: has no meaning",
    ),
    "inclusive victims": (
        "clean_victims: true",
        "clean_victims: true\n    inclusive: true",
        ":41: caches.L2.inclusive: a cache filled by victims cannot be inclusive",
    ),
    "path missing": ("  L1L2: {width: 64 B/cy, duplex: full, source: invented}\n", "", ":43: paths.L1L2: is missing"),
    "path too many": ("  L2Mem:", "  L2L3:", ":45: paths.L2L3: joins no neighbouring levels; did you mean"),
    "path unmeasured": (
        "level: Mem",
        "level: L2",
        ":45: paths.L2Mem.width: is measured, but bandwidths.measured has no series of Mem",
    ),
    "width": ("64 B/cy", "64 B", ":44: paths.L1L2.width: '64 B' has no unit of bytes per cycle; use one of B/cy"),
    "duplex": ("duplex: full", "duplex: both", ":44: paths.L1L2.duplex: 'both' is unknown; use one of half, full"),
    "overlap unknown": (
        "T_L2Mem)",
        "T_L2L3 + T_L2Mem)",
        ":46: overlap.expression: names 'T_L2L3', a time that there is not; did you mean",
    ),
    "overlap missing": (" + T_L2Mem", "", ":46: overlap.expression: leaves out T_L2Mem"),
    "overlap twice": ("T_nOL +", "T_nOL + T_nOL +", ":46: overlap.expression: names T_nOL 2 times"),
    "overlap no expression": (
        "T_nOL +",
        "T_nOL -",
        ":46: overlap.expression: overlap 'max(T_OL, T_nOL - T_L1L2 + T_L2Mem)': 'T_nOL - T_L1L2' is not allowed",
    ),
    "ports in both": ("[2D]", "[2D, 0]", ":16: core.non_overlapping_ports: '0' is among the overlapping_ports too"),
    "port twice": ("[0, 1]", "[0, 1, 0]", ":15: core.overlapping_ports: names '0' twice"),
    "no ports": ("[0, 1]", "[]", ":15: core.overlapping_ports: is empty"),
    "ports no list": ("[2D]", "2D", ":16: core.non_overlapping_ports: is no list"),
    "total": ("total: 16", "total: 8", ":18: core.flop_per_cycle.DP.total: 8 is smaller than FMA with 16"),
    "precision": ("    DP:", "    HP:", ":18: core.flop_per_cycle.HP: is an unknown key; did you mean"),
    "series too short": (", 20.5]", "]", ":56: bandwidths.measured[0].values.copy: has 3 values for 4 core counts"),
    "series of one": ("[10, 18, 20, 20.5]", "[20.5]", ":56: bandwidths.measured[0].values.copy: has 1 value for 4"),
    "series not positive": ("20.5", "0", ":56: bandwidths.measured[0].values.copy: 0 is not greater than zero"),
    "series no number": ("20.5", "fast", ":56: bandwidths.measured[0].values.copy: 'fast' is no number"),
    "series not finite": ("20.5", "nan", ":56: bandwidths.measured[0].values.copy: 'nan' is no number"),
    "series empty": ("[10, 18, 20, 20.5]", "[]", ":56: bandwidths.measured[0].values.copy: is an empty list"),
    "cores unsorted": (
        "cores: 1-4",
        "cores: [1, 2, 4, 3]",
        ":54: bandwidths.measured[0].cores: core counts do not ascend: 3 follows 4",
    ),
    "cores malformed": ("cores: 1-4", "cores: 1 to 4", ":54: bandwidths.measured[0].cores: '1 to 4' is no core count"),
    "cores too many": (
        "cores: 1-4",
        "cores: [1, 2, 3, 9]",
        ":54: bandwidths.measured[0].cores: 9 cores, but the machine has 8",
    ),
    "threads too many": (
        "cores: 1-4",
        "cores: 1-4\n      threads_per_core: 2",
        ":55: bandwidths.measured[0].threads_per_core: 2 exceeds the topology's 1",
    ),
    "level of a series": (
        "level: Mem",
        "level: Men",
        ":53: bandwidths.measured[0].level: 'Men' is no level; did you mean 'Mem'?",
    ),
    "mix of a series": (
        "        copy: [",
        "        cope: [",
        ":56: bandwidths.measured[0].values.cope: is no mix of bandwidths.mixes; did you mean 'copy'?",
    ),
    "mix without streams": ("{read: 1, write: 1}", "{read: 0, write: 0}", ":51: bandwidths.mixes.copy: has no streams"),
    "mix read and written": (
        "{read: 1, write: 1}",
        "{read: 1, write: 1, read_write: 2}",
        ":51: bandwidths.mixes.copy.read_write: 2 exceeds the read or write streams",
    ),
    "unit of bandwidth": (
        "unit: GB/s",
        "unit: GB",
        ":48: bandwidths.unit: 'GB' is no unit of bandwidth; use one of B/s",
    ),
    "no compiler": ("  gcc: -O3", "  {}", ":57: compilers: is empty"),
    "number of digits": ("ways: 16", f"ways: {'9' * 5000}", ":33: caches.L2.ways: '999"),
}


# replaces the line of `overlap`, and the message from the line number on
STORES = """stores:
  streaming: true
  write_allocate_evasion: near-saturation
  evades_from_cores: 2
  source: invented
"""
STORES_CASES = {
    "no word": (
        "near-saturation",
        "sometimes",
        ":48: stores.write_allocate_evasion: 'sometimes' is unknown; use one of",
    ),
    "no flag": ("true", "yes", ":47: stores.streaming: 'yes' is neither true nor false"),
    "missing": ("  streaming: true\n", "", ":46: stores.streaming: is missing"),
    "no source": ("  source: invented\n", "", ":46: stores.source: is missing"),
    "cores meaningless": (
        "near-saturation",
        "always",
        ":49: stores.evades_from_cores: has no meaning where write_allocate_evasion is not near-saturation",
    ),
    "cores beyond a domain": (
        "cores: 2",
        "cores: 3",
        ":49: stores.evades_from_cores: 3 exceeds the 2 cores of a ccNUMA domain",
    ),
    "unknown key": ("streaming: true", "streams: true", ":47: stores.streams: is an unknown key; did you mean"),
}


@pytest.fixture
def write(tmp_path: Path):
    def write_file(text: str | bytes, name: str = "foo.yml") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write_file


def test_the_minimal_file_is_fit(write) -> None:
    assert check_machine(write(MINIMAL)) == ()


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES)
def test_problem(write, case: str) -> None:
    old, new, expected = CASES[case]
    assert old in MINIMAL
    path = write(MINIMAL.replace(old, new, 1))
    messages = [str(problem) for problem in check_machine(path)]
    assert any(message.startswith(f"{path}{expected}") for message in messages), messages
    with pytest.raises(MachineError) as caught:
        load_machine(str(path))
    assert str(caught.value) == messages[0]
    assert caught.value.exit_status == 1


def test_all_problems_are_collected_in_the_order_of_lines(write) -> None:
    text = MINIMAL.replace("clock: 2 GHz", "clock: fast").replace("ways: 16", "ways: many").replace("20.5", "-1")
    problems = check_machine(write(text))
    assert [problem.key for problem in problems] == ["clock", "caches.L2.ways", "bandwidths.measured[0].values.copy"]
    assert [problem.where.line for problem in problems] == [4, 33, 56]


def test_one_mistake_gives_one_problem(write) -> None:
    """A figure that cannot be read has its own problem; the checks that need it stay silent."""
    for old, new in (
        ("size: 1 MiB", "size: big"),
        ("cores_per_socket: 4", "cores_per_socket: x"),
        ("unit: GB/s", "unit: x"),
    ):
        assert len(check_machine(write(MINIMAL.replace(old, new)))) == 1


def test_same_series_twice(write) -> None:
    group = MINIMAL[MINIMAL.index("    - level: Mem") : MINIMAL.index("compilers:")]
    problems = check_machine(write(MINIMAL.replace("compilers:", f"{group}compilers:")))
    assert [str(problem).partition(": ")[2] for problem in problems] == [
        "bandwidths.measured[1].values.copy: Mem with 1 thread(s) per core has this mix already; keep one of the series"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", ": is empty; docs/machine-files.md says what a machine file holds"),
        (b"  \n\n", ": is empty"),
        (b"# only a comment\n", ":1: is no mapping but only comments"),
        (b"- a\n- b\n", ":1: is no mapping but a list; write keys with values"),
        (b"hello\n", ":1: is no mapping but a single value"),
        (b"a: [1, 2\nb: 3\n", ":2:2: is not valid YAML: "),
        (b"a: 1\n\tb: 2\n", ":2:1: is not valid YAML: "),
        (b"a: 1\n---\nb: 2\n", ":2:1: is not valid YAML: "),
        (b"\x7fELF\x02\x01\x01\0\0\xff\xfe", ": is not text in UTF-8"),
        (b"a: b\0c\n", ": is not text but a binary file"),
        (b"a: \x01\n", ": is not valid YAML: "),
        (b"[" * 20000, ": is "),
        (b"&a [*a]: 1\n", ":1: an anchor holds itself"),
        (b"? [a, b]\n: 1\n", ": has a key in line 1 that is no name"),
    ],
)
def test_files_that_are_no_machine_files(write, text: bytes, message: str) -> None:
    path = write(text)
    problems = [str(problem) for problem in check_machine(path)]
    assert any(message in problem and problem.startswith(str(path)) for problem in problems), problems
    with pytest.raises(MachineError):
        load_machine(str(path))


def test_unreadable_file(write, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, mode: str) -> bytes:
        raise PermissionError(13, "Permission denied")

    path = write(MINIMAL)
    monkeypatch.setattr(Path, "open", refuse)
    assert [str(problem) for problem in check_machine(path)] == [
        f"{path}: cannot be read: Permission denied; give a machine file"
    ]


def test_byte_order_mark_and_windows_line_ends(write) -> None:
    text = MINIMAL.replace("\n", "\r\n")
    assert check_machine(write(b"\xef\xbb\xbf" + text.encode())) == ()


def test_missing_sections_are_named_once_each(write) -> None:
    problems = check_machine(write("a: b\n"))
    assert ":1: a: is an unknown key; use one of title, vendor, isa, clock" in str(problems[0])
    assert len(problems) == len({problem.key for problem in problems}) == 13


def with_stores(section: str) -> str:
    return MINIMAL.replace("overlap: {", f"{section}overlap: {{")


def test_stores(write) -> None:
    machine = load_machine(str(write(with_stores(STORES))))
    assert machine.stores == StoreBehaviour(True, "near-saturation", 2)
    assert machine.sources["stores"] == "invented"


@pytest.mark.parametrize("case", STORES_CASES)
def test_problems_of_stores(case: str, write) -> None:
    old, new, message = STORES_CASES[case]
    problems = [str(problem) for problem in check_machine(write(with_stores(STORES.replace(old, new))))]
    assert any(message in problem for problem in problems), problems


def test_file_that_names_no_instruction_set_is_of_x86(write) -> None:
    assert load_machine(str(write(MINIMAL.replace("isa: x86-64\n", "")))).isa == "x86-64"


@pytest.mark.parametrize(("isa", "streaming"), [("x86-64", True), ("aarch64", False)])
def test_file_without_stores_knows_nothing_of_evasion(isa: str, streaming: bool, write) -> None:
    machine = load_machine(str(write(MINIMAL.replace("isa: x86-64", f"isa: {isa}"))))
    assert machine.stores == StoreBehaviour(streaming, "unknown", None)
    assert "stores" not in machine.sources


WIDTHS = "  load_width: 128 B/cy\n  store_width: 64 B/cy\n"
MEMORY = "memory: {channels: 2, channel_width: 8 B, transfer_rate: 2666 MHz, source: invented}\n"
PEAKS = """peaks:
  unit: GFLOP/s
  source: invented
  measured:
    - {operation: FMA, precision: DP, register: 64 B, cores: 2, value: 120}
"""


def with_roofline_figures(old: str = "", new: str = "") -> str:
    text = MINIMAL.replace("  non_overlapping_ports:", WIDTHS + "  non_overlapping_ports:", 1)
    text = text.replace("overlap: {", f"{MEMORY}{PEAKS}overlap: {{", 1)
    text = text.replace("{read: 1, write: 1}", "{read: 1, write: 1, access: 32 B}", 1)
    assert not old or old in text
    return text.replace(old, new) if old else text


def test_figures_of_rooflines(write) -> None:
    machine = load_machine(str(write(with_roofline_figures())))
    assert (machine.core.load_bytes_per_cycle, machine.core.store_bytes_per_cycle) == (128, 64)
    assert machine.memory == MemoryChannels(2, 8, 2666e6)
    assert machine.memory.bytes_per_second == pytest.approx(42.656e9)
    assert machine.peaks == (MeasuredPeak("FMA", "DP", 64, 2, 120e9),)
    assert {series.mix.access_bytes for series in machine.bandwidths} == {32}
    assert (machine.sources["memory"], machine.sources["peaks"]) == ("invented", "invented")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("  store_width: 64 B/cy\n", "", "core.load_width: stands alone; give load_width and store_width, or neither"),
        ("load_width: 128 B/cy", "load_width: 128 B", "core.load_width: '128 B' has no unit of bytes per cycle"),
        ("channels: 2, ", "", "memory.channels: is missing"),
        ("2666 MHz", "2666", "memory.transfer_rate: '2666' is not a frequency with a unit"),
        ("access: 32 B", "access: 24 B", "access: 24 B is no size of an access; write one of 1, 2, 4"),
        ("operation: FMA", "operation: FFT", "peaks.measured[0].operation: 'FFT' is unknown; use one of ADD"),
        ("register: 64 B", "register: 63 B", "peaks.measured[0].register: 63 B is no size of an access"),
        ("cores: 2, value", "cores: 9999, value", "peaks.measured[0].cores: 9999 cores, but the machine has"),
        ("value: 120", "value: -1", "peaks.measured[0].value: -1 is not greater than zero"),
        ("unit: GFLOP/s", "unit: GB/s", "peaks.unit: 'GB/s' is no unit of flop rate"),
        (PEAKS[PEAKS.index("  measured:") :], "", "peaks.measured: is missing"),
    ],
)
def test_problems_of_figures_of_rooflines(old: str, new: str, message: str, write) -> None:
    problems = [str(problem) for problem in check_machine(write(with_roofline_figures(old, new)))]
    assert any(message in problem for problem in problems), problems


def test_runs_that_take_longer_the_longer_they_are_get_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "made.yml"
    path.write_text(MINIMAL.replace("penalty_load: 1 cy/CL", "run_length: [[512, 40], [4 KiB, 41 cy/CL]]"))
    (problem,) = check_machine(path)
    assert problem.severity == "warning"
    assert "paths.L2Mem.run_length: a line of runs of 4 KiB takes 41 cy, longer than the 40 cy" in str(problem)
    assert load_machine(str(path)).paths[-1].run_length == ((512.0, 40.0), (4096.0, 41.0))


@pytest.mark.parametrize(
    ("key", "which"), [("beside_memory", "between caches"), ("beside_last", "to caches before the last")]
)
def test_figures_of_lines_beside_others_get_a_warning_on_paths_of_which_they_say_nothing(
    key: str, which: str, tmp_path: Path
) -> None:
    path = tmp_path / "made.yml"
    path.write_text(MINIMAL.replace("penalty_load: 1 cy/CL", f"{key}: [2.4, 4.7, 7.0]"))
    (problem,) = check_machine(path)
    assert problem.severity == "warning"
    assert f"paths.L2Mem.{key}: says nothing of this path, only of paths {which}" in str(problem)


def test_lines_of_short_runs_take_longer_than_the_bandwidth_says() -> None:
    path = TransferPath("L3Mem", "L3", "Mem", None, "half", run_length=((512.0, 42.0), (1024.0, 33.0), (4096.0, 7.0)))
    assert [path.restart_cycles(size) for size in (64, 512, 1024, 4096, 1e9)] == [35.0, 35.0, 26.0, 0.0, 0.0]
    # half way between 8 and 16 lines: 8 lines in 336 cycles, 16 in 528, 12 in 432
    assert path.restart_cycles(768) == pytest.approx(432 / 12 - 7)
    assert replace(path, run_length=()).restart_cycles(64) == 0.0


def test_keys_of_earlier_versions_are_not_read_any_more(tmp_path: Path) -> None:
    path = tmp_path / "old.yml"
    path.write_text(MINIMAL.replace("penalty_load: 1 cy/CL", "beside_work: [[0.5, 5], [1, 4]]"))
    (problem,) = check_machine(path)
    assert problem.severity == "warning"
    assert "paths.L2Mem.beside_work: is not read any more; leave it out; beside_vectors and beside_loads" in str(
        problem
    )
    assert load_machine(str(path)).paths[-1].beside_vectors == ()
