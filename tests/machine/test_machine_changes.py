"""Changing figures of a machine file: what follows, what is refused, and the laws that changes obey."""

from __future__ import annotations

import pickle
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kernmodel.errors import KernmodelError, MachineError, UsageError
from kernmodel.machine.changes.figures import MachineFigures
from kernmodel.machine.load import list_machines, load_machine, load_path
from kernmodel.machine.model import Machine
from kernmodel.report.json.carried import machine_json

NAMES = [summary.name for summary in list_machines()]
CLX = MachineFigures.open("clx")
FIGURES = {name: MachineFigures.open(name) for name in NAMES}
PAGE = (Path(__file__).resolve().parents[2] / "docs/machine-files.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)

numeric = st.sampled_from([(name, one.path) for name in NAMES for one in FIGURES[name].figures() if one.value])
every = st.sampled_from([(name, one.path) for name in NAMES for one in FIGURES[name].figures()])


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A file that has every section, with series of two threads per core."""
    path = tmp_path / "example.yml"
    two = "    - {level: Mem, threads_per_core: 2, cores: 1-2, values: {load: [15, 29]}}\n\npeaks:"
    path.write_text(EXAMPLE.replace("\npeaks:", two, 1))
    return path


def changed(*changes: str, figures: MachineFigures = CLX) -> Machine:
    return figures.machine(tuple(change.split("=", 1)) for change in changes)


def numbers(machine: Machine) -> dict[str, object]:
    """All of a machine but where it comes from."""
    data = machine_json(machine)
    del data["sha256"], data["sources"], data["file"], data["name"]
    return data


def about(value: object) -> object:
    """The same with numbers equal up to rounding."""
    if isinstance(value, dict):
        return {key: about(item) for key, item in value.items()}
    if isinstance(value, list):
        return [about(item) for item in value]
    return pytest.approx(value, rel=1e-12) if isinstance(value, float) else value


def refused(*changes: str, figures: MachineFigures = CLX) -> str:
    with pytest.raises(UsageError) as caught:
        changed(*changes, figures=figures)
    assert caught.value.where == f"--set {changes[-1]}"
    return str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_without_changes_it_is_the_machine_of_the_file(name: str) -> None:
    assert FIGURES[name].machine() == load_machine(name)


@given(numeric, st.sampled_from([2, 4, 8]))
def test_there_and_back_gives_the_same_figures(figure: tuple[str, str], factor: int) -> None:
    name, path = figure
    assume(not path.startswith("core.flop_per_cycle") or path.endswith("total"))  # the total follows upwards only
    figures = FIGURES[name]
    try:
        there = figures.machine([(path, f"x{factor}"), (path, f"x{1 / factor}")])
    except UsageError:
        assume(False)
        return
    assert numbers(there) == about(numbers(load_machine(name)))
    assert there.sha256 != load_machine(name).sha256


@given(every)
def test_a_figure_may_be_set_to_what_it_is_shown_as(figure: tuple[str, str]) -> None:
    name, path = figure
    shown = next(one for one in FIGURES[name].figures() if one.path == path)
    (applied,) = FIGURES[name].applied([(path, shown.text)])[1]
    assert (applied.before, applied.after) == (shown.text, shown.text)
    assert applied.ratio is None or applied.ratio == pytest.approx(1, rel=1e-3)


@given(every)
def test_short_and_full_path_mean_the_same(figure: tuple[str, str]) -> None:
    name, path = figure
    one = FIGURES[name].figure(path)
    assert FIGURES[name].figure(one.short) == one


@given(every, st.text(max_size=12))
def test_any_text_is_taken_or_refused(figure: tuple[str, str], text: str) -> None:
    name, path = figure
    try:
        machine = FIGURES[name].machine([(path, text)])
    except KernmodelError as error:
        assert isinstance(error, UsageError)
        assert error.where == f"--set {path}={text}"
    else:
        assert machine.name == name


@given(st.text(max_size=20))
def test_any_path_is_known_or_refused(path: str) -> None:
    try:
        CLX.figure(path)
    except UsageError as error:
        assert error.todo


@given(st.sampled_from(["L1", "L2", "L3"]), st.sampled_from(["size", "ways", "sets"]), st.floats(0.01, 100))
def test_a_cache_always_holds_whole_sets(level: str, key: str, factor: float) -> None:
    before = CLX.machine().level(level)
    value = {"size": f"{before.size_bytes * factor:f} B"}.get(key, str(max(1, round(getattr(before, key, 1) * factor))))
    try:
        cache = changed(f"{level}.{key}={value}").level(level)
    except UsageError as error:
        assert "is less than the" in str(error)  # no cache is smaller than the one inside
        return
    assert cache.size_bytes == cache.sets * cache.ways * cache.line_bytes
    assert cache.sets >= 1


@given(numeric)
def test_the_machine_of_the_file_stays_as_it_is(figure: tuple[str, str]) -> None:
    name, path = figure
    with suppress(UsageError):
        FIGURES[name].machine([(path, "x2")])
    assert FIGURES[name].machine() == load_machine(name)


EDITS = [
    (["clock=3GHz"], [("clock: 2.5 GHz", "clock: 3 GHz")]),
    (["L2.size=2MiB"], [("size: 1 MiB", "size: 2 MiB"), ("sets: 1024", "sets: 2048")]),
    (["L2.ways=8"], [("ways: 16", "ways: 8"), ("sets: 1024", "sets: 2048")]),
    (["L2.sets=x2"], [("size: 1 MiB", "size: 2 MiB"), ("sets: 1024", "sets: 2048")]),
    (["paths.L2L3.width=+50%"], [("width: 16 B/cy", "width: 24 B/cy")]),
    (["L3Mem.width=20 B/cy"], [("width: measured", "width: 20 B/cy")]),
    (["L2L3.width=measured"], [("width: 16 B/cy", "width: measured")]),
    (["L1L2.penalty_load=1.5 cy/CL"], [("  width: 64 B/cy", "  width: 64 B/cy\n    penalty_load: 1.5 cy/CL")]),
    (["L1.replacement=FIFO"], [("replacement: LRU", "replacement: FIFO")]),
    (["gcc=-O1 -g"], [("gcc: -O3 -march=cascadelake -mtune=cascadelake", "gcc: -O1 -g")]),
    (["microarchitecture=SKX"], [("microarchitecture: CLX", "microarchitecture: SKX")]),
    (["overlapping_ports=[0, 1, 5]"], [("_ports: [0, 0DV, 1, 2, 3, 4, 5, 6, 7]", "_ports: [0, 1, 5]")]),
    (["expression=T_OL + max(T_nOL, T_L1L2, T_L2L3, T_L3Mem)"],
     [("max(T_OL, T_nOL + T_L1L2 + T_L2L3 + T_L3Mem)", "T_OL + max(T_nOL, T_L1L2, T_L2L3, T_L3Mem)")]),
    (["loads_pass_by=false", "threads_per_core=1"], [("pass_by: true", "pass_by: false"), ("core: 2", "core: 1")]),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "edits"), EDITS, ids=[" ".join(changes) for changes, _ in EDITS])
def test_a_change_equals_the_file_edited_by_hand(changes, edits, tmp_path: Path) -> None:
    machine = load_machine("clx")
    text = Path(machine.file).read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    path = tmp_path / "clx.yml"
    path.write_text(text)
    assert numbers(changed(*changes)) == numbers(load_path(path))


def notes_of(change: str, figures: MachineFigures = CLX) -> list[str]:
    path, text = change.split("=", 1)
    (applied,) = figures.applied([(path, text)])[1]
    return [note.text for note in applied.notes]


def test_sizes_are_rounded_to_whole_sets() -> None:
    assert notes_of("L2.size=+10%") == [
        "caches.L2.sets follows: 1126",
        "caches.L2.size is rounded to whole sets of 1 KiB: 1.1 MiB",
    ]
    assert changed("L2.size=+10%").level("L2").size_bytes == 1126 * 1024


def test_the_cache_line_changes_all_sets() -> None:
    machine = changed("cache_line=128B")
    assert [level.sets for level in machine.levels] == [32, 512, 10240]
    assert machine.line_bytes == 128


def test_the_total_of_flop_follows_upwards() -> None:
    assert notes_of("DP.FMA=x2") == ["core.flop_per_cycle.DP.total follows: 64"]
    assert changed("DP.FMA=x2").core.flop_per_cycle["DP"]["total"] == 64
    assert changed("DP.FMA=x0.5").core.flop_per_cycle["DP"]["total"] == 32


@pytest.mark.parametrize("name", ["memory.bandwidth", "Mem.bandwidth", "bandwidths.Mem"])
def test_all_series_of_a_level_are_scaled_alike(name: str) -> None:
    before, after = load_machine("clx"), changed(f"{name}=122.86 GB/s")
    for old, new in zip(before.bandwidths, after.bandwidths, strict=True):
        factor = 2 if old.level == "Mem" else 1
        assert new.bytes_per_second == pytest.approx([factor * value for value in old.bytes_per_second])


def test_the_value_of_a_level_is_the_highest_over_one_domain() -> None:
    before = load_machine("clx")
    within = [
        value
        for series in before.bandwidths
        if series.level == "Mem"
        for value, cores in zip(series.bytes_per_second, series.cores, strict=True)
        if cores <= before.topology.cores_per_numa_domain
    ]
    assert CLX.figure("memory.bandwidth").value == max(within)


def test_one_series_alone() -> None:
    after = changed("Mem.copy=x2")
    scaled = [old for old, new in zip(load_machine("clx").bandwidths, after.bandwidths, strict=True) if old != new]
    assert [(series.level, series.mix.name) for series in scaled] == [("Mem", "copy")]


def test_series_by_threads_per_core(example: Path) -> None:
    figures = MachineFigures.read(example)
    assert figures.figure("Mem.load.2threads").text == "29 GB/s"
    assert figures.figure("Mem.load").text == "61.4 GB/s"
    after = changed("memory.bandwidth=x2", figures=figures)
    assert [series.bytes_per_second[0] / 1e9 for series in after.bandwidths] == pytest.approx([28.6, 27.8, 30])


def test_the_optional_sections(example: Path) -> None:
    figures = MachineFigures.read(example)
    after = changed(
        "memory.channels=8", "transfer_rate=3200 MHz", "peaks.FMA.DP.64B.20=2 TFLOP/s", "evades_from_cores=4",
        figures=figures,
    )  # fmt: skip
    assert after.memory is not None
    assert after.memory.bytes_per_second == 8 * 8 * 3200e6
    assert [peak.flop_per_second for peak in after.peaks] == pytest.approx([2e12, 95.6e9])
    assert after.stores.evades_from_cores == 4
    assert figures.figure("peaks.ADD.DP.8B.20").text == "95.6 GFLOP/s"


def test_zero_times_anything_is_told() -> None:
    assert notes_of("L2L3.penalty_load=x2") == ["paths.L2L3.penalty_load is 0 cy/CL as before"]


def test_how_measured_figures_are_read_is_told() -> None:
    assert "measured bandwidths stay as they are in B/s" in notes_of("clock=3GHz")[0]
    assert "highest value over the cores of a ccNUMA domain" in notes_of("numa_domains_per_socket=1")[0]


def test_changes_apply_in_order() -> None:
    assert changed("clock=3GHz", "clock=x2").clock_hz == 6e9
    machine = changed("L2.size=2MiB", "L2.sets=512")
    assert machine.level("L2").size_bytes == 2**19
    ratios = [applied.ratio for applied in CLX.applied([("clock", "5GHz"), ("clock", "x0.5")])[1]]
    assert ratios == [2.0, 0.5]


def test_the_hash_is_that_of_file_and_changes() -> None:
    hashes = {
        load_machine("clx").sha256,
        changed("clock=3GHz").sha256,
        changed("clock=3000MHz").sha256,
        changed("L2.size=2MiB").sha256,
        changed("L2.size=2MiB", "clock=3GHz").sha256,
    }
    assert len(hashes) == 5
    assert changed("L2.size=2MiB").sha256 == changed("caches.L2.size=2MiB").sha256


def test_sources_say_what_was_changed() -> None:
    before, after = load_machine("clx"), changed("L2.size=2MiB", "L2.ways=8", "memory.bandwidth=x2")
    told = {key for key in before.sources if before.sources[key] != after.sources[key]}
    assert told == {"caches.L2", "bandwidths"}
    assert after.sources["caches.L2"] == (
        f"{before.sources['caches.L2']}; caches.L2.size was 1 MiB, changed by --set caches.L2.size=2MiB"
        "; caches.L2.ways was 16, changed by --set caches.L2.ways=8"
    )
    assert (after.name, after.title, after.file) == (before.name, before.title, before.file)


def test_defaults_are_not_the_file_s() -> None:
    assert CLX.figure("L2L3.penalty_load").source == "not in the file: the default"
    assert CLX.figure("L2L3.width").source == load_machine("clx").sources["paths.L2L3"]


def test_changed_machines_travel_between_processes() -> None:
    machine = changed("memory.bandwidth=x2")
    assert pickle.loads(pickle.dumps(machine)) == machine


REFUSED = {
    "L2.sise=1MiB": ("clx.yml has no figure 'L2.sise'", "did you mean L2.size"),
    "L2=1MiB": ("'L2' is no figure but a section of clx.yml", "name one, such as L2.size"),
    "flop_per_cycle=8": ("name one, such as DP.ADD",),
    "frequency=1GHz": ("no figure 'frequency'", "did you mean clock?"),
    "memory.bandwith=x2": ("did you mean memory.bandwidth?",),
    "qqq=1": ("`what-if -m MACHINE --list` names all figures",),
    "size=1MiB": ("may be one of several figures", "L1.size, L2.size, L3.size"),
    "bandwidth=x2": ("may be one of several", "memory.bandwidth"),
    "memory.channels=8": ("has no section 'memory'", "add it to a copy"),
    "L2.line=64B": ("does not give 'L2.line'",),
    "title=x": ("no figure 'title'",),
    "L2.size=2GHz": ("'2GHz' has no unit of data", "use one of B"),
    "L2.size=2": ("is not a size with a unit",),
    "clock=3": ("is not a frequency with a unit", "GHz"),
    "clock=-1GHz": ("neither a value nor a factor", "+10%"),
    "clock=-100%": ("is no value that it can have",),
    "clock=x1e400": ("is no value that it can have",),
    "sockets=x1e400": ("is no value that it can have",),
    "sockets=x1e300": ("is no whole number",),
    "sockets=x0": ("0 is smaller than 1",),
    "clock=x0": ("is no value that it can have",),
    "sockets=2 GHz": ("is no whole number",),
    "sockets=0": ("0 is smaller than 1",),
    "cores_per_socket=x1.03": ("20 × 1.03 = 20.6 is not a whole number",),
    "L2.ways=x0.01": ("16 × 0.01 = 0.16 is not a whole number",),
    "L3Mem.width=x2": ("paths.L3Mem.width is measured", "change memory.bandwidth"),
    "microarchitecture=x2": ("is CLX, no number that x2 could change",),
    "L1.write_back=x2": ("is true, no number",),
    "L1.write_back=yes": ("is neither true nor false",),
    "L1.replacement=best": ("use one of LRU",),
    "overlapping_ports=0": ("is no list", "write [first, second"),
    "overlapping_ports=[0, [1": ("is no list",),
    "expression=max(T_OL, T_nOL)": ("contradicts the rest of clx.yml", "leaves out T_L1L2"),
    "cores_per_socket=4": ("caches.L3.shared_by: 4 cores of a socket do not divide", "change caches.L3.shared_by too"),
    "cache_line=100B": ("is no power of two",),
    "L1.shared_by=2": ("caches.L2.shared_by", "2 share the level inside"),
    "numa_domains_per_socket=3": ("20 cores do not divide into 3 ccNUMA domains",),
}


@pytest.mark.parametrize("change", REFUSED)
def test_what_cannot_be_changed_so(change: str) -> None:
    text = refused(change)
    for part in REFUSED[change]:
        assert part in text


def test_a_topology_smaller_than_the_measured_series() -> None:
    snb = MachineFigures.open("snb")
    with pytest.raises(UsageError, match=r"bandwidths.measured\[0\].cores: 8 cores, but the machine has 4") as caught:
        changed("sockets=1", "cores_per_socket=4", "L3.shared_by=4", figures=snb)
    assert caught.value.where == "--set cores_per_socket=4"


def test_the_guilty_change_is_named() -> None:
    with pytest.raises(UsageError) as caught:
        changed("clock=3GHz", "L1.shared_by=2", "L2.size=2MiB")
    assert caught.value.where == "--set L1.shared_by=2"
    assert changed("L1.shared_by=2", "L2.shared_by=2").level("L1").cores_sharing == 2


def test_a_broken_file_is_refused_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "broken.yml"
    path.write_text(EXAMPLE.replace("size: 1 MiB", "size: 1 MX"))
    with pytest.raises(MachineError, match=r"broken.yml:\d+: caches.L2.size: '1 MX' has no unit"):
        MachineFigures.open(str(path))
    with pytest.raises(MachineError, match="no such machine file"):
        MachineFigures.open("nothing-like-it")


def test_words_may_begin_as_factors_do() -> None:
    assert changed("gcc=-O1").compilers[0] == replace(load_machine("clx").compilers[0], flags=("-O1",))
