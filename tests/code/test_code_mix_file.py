"""Mixes as files: what the format says, the paper's mixes, Intel SDE, and every way to get it wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernmodel.code.mix import FpClass, InstructionMix, MemoryClass
from kernmodel.code.mix_file import read_mix
from kernmodel.errors import InputError

DATA = Path(__file__).parent / "data"
MEMORY = "memory: [{size: 8 B, loads: 2, stores: 1}]\n"


@pytest.fixture
def read(tmp_path):
    def read_text(text: str) -> InstructionMix:
        path = tmp_path / "mix.yml"
        path.write_text(text)
        return read_mix(path)

    return read_text


def test_the_scalar_mix_of_the_paper():
    mix = read_mix(DATA / "iso3dfd-scalar.yml")
    assert mix.load_store_ratio == pytest.approx(63)
    by_size = {size: sum(n for kind, n in mix.memory if kind.size_bytes == size) for size in (4, 8)}
    assert by_size == pytest.approx({4: 0.65, 8: 0.35})
    assert mix.fp == ((FpClass("add", "SP", 1), 1.0),)
    assert mix.shares_only
    assert mix.intensity is None


def test_the_avx512_mix_of_the_paper():
    mix = read_mix(DATA / "iso3dfd-avx512.yml")
    assert mix.load_store_ratio == pytest.approx(14)
    assert dict(mix.memory)[MemoryClass(64, "vector", store=False)] == pytest.approx(0.6 * 14 / 15)
    assert dict(mix.memory)[MemoryClass(8, "scalar", store=True)] == pytest.approx(0.4 / 15)
    assert dict(mix.fp) == pytest.approx({FpClass("add", "SP", 16): 0.87, FpClass("fma", "SP", 16): 0.13})
    assert [note.code for note in mix.notes] == ["one-load-store-ratio"]


def test_counts(read):
    mix = read(
        """
        title: by hand
        source: a paper
        per: iteration
        other: 3
        memory:
          - {size: 64, loads: 2, stores: 1, masked: true}
          - {size: 32 B, kind: vector, stores: 0.5, streaming: true}
          - {size: 8, kind: gather, loads: 8}
          - {size: 8, loads: 1}
          - {size: 8, kind: scalar, loads: 1}
        fp:
          - {operation: sub, precision: double, width: AVX512, count: 2, masked: true}
          - {operation: MAX, precision: SP, lanes: 4, count: 1}
          - {operation: div, precision: x87, width: scalar, count: 0}
        """
    )
    assert dict(mix.memory) == {
        MemoryClass(8, "gather", store=False): 8,
        MemoryClass(8, "scalar", store=False): 2,
        MemoryClass(64, "vector", store=False, masked=True): 2,
        MemoryClass(64, "vector", store=True, masked=True): 1,
        MemoryClass(32, "vector", store=True, streaming=True): 0.5,
    }
    assert dict(mix.fp) == {FpClass("add", "DP", 8, masked=True): 2, FpClass("compare", "SP", 4): 1}
    assert (mix.per, mix.other, mix.shares_only) == ("source iteration", 3, False)
    assert mix.intensity == 16 / (8 * 8 + 2 * 8 + 3 * 64 + 16)


def test_shares_of_loads_and_stores(read):
    mix = read("memory: [{size: 8, loads: 40 %, stores: 20 %}, {size: 64, loads: 40 %}]")
    assert (mix.loads, mix.stores) == (pytest.approx(0.8), pytest.approx(0.2))
    assert not mix.shares_only  # there is only one kind, so nothing is unrelated
    assert mix.flops == 0


@pytest.mark.parametrize(("ratio", "loads"), [("loads only", 1), ("inf", 1), ("stores only", 0), ("0", 0), ("1", 0.5)])
def test_load_store_ratios(read, ratio, loads):
    mix = read(f"load_store_ratio: {ratio}\nmemory: [{{size: 8, share: 1}}]")
    assert mix.load_share == loads


@pytest.mark.parametrize("text", ["0.5", "0.5 FLOP/B"])
def test_shares_with_an_intensity_are_one_mix(read, text):
    mix = read((DATA / "iso3dfd-avx512.yml").read_text() + f"intensity: {text}\n")
    assert mix.intensity == pytest.approx(0.5)
    assert not mix.shares_only


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("# nothing\n", "holds only comments"),
        ("{}", "neither memory nor floating-point"),
        ("[1]", "is no mapping"),
        ("memory: 3", ":1: memory: is no list"),
        ("memory: []", "is no list with entries"),
        ("memory: [\n  3]", ":2: memory[1]: is no mapping"),
        ("memry: []", "memry: is an unknown key; did you mean 'memory'?"),
        ("title: a\ntitle: b", "given twice"),
        ("a: [", "is not valid YAML"),
        (
            MEMORY + "fp:\n  - {operation: ad, precision: DP, lanes: 1, count: 1}",
            ":3: fp[1].operation: 'ad' is unknown",
        ),
        (MEMORY + "fp: [{operation: ad, precision: DP, lanes: 1, count: 1}]", "did you mean 'add'?"),
        (MEMORY + "fp: [{operation: add, precision: DQ, lanes: 1, count: 1}]", "did you mean 'dp'?"),
        (MEMORY + "fp: [{precision: DP, lanes: 1, count: 1}]", "has no operation"),
        (MEMORY + "fp: [{operation: add, lanes: 1, count: 1}]", "has no precision"),
        (MEMORY + "fp: [{operation: add, precision: DP, count: 1}]", "has neither lanes nor width"),
        (MEMORY + "fp: [{operation: add, precision: DP, lanes: 1}]", "has neither count nor share"),
        (MEMORY + "fp: [{operation: add, precision: DP, lanes: 1, count: 1, share: 1}]", "has both count and share"),
        (MEMORY + "fp: [{operation: add, precision: DP, lanes: 0, count: 1}]", "no number of lanes"),
        (MEMORY + "fp: [{operation: add, precision: DP, lanes: 1.5, count: 1}]", "no number of lanes"),
        (
            MEMORY + "fp: [{operation: add, precision: DP, width: AVX2, count: 1}]",
            "'AVX2' is unknown; did you mean 'avx",
        ),
        (MEMORY + "fp: [{operation: add, precision: X87, width: AVX, count: 1}]", "x87 has none"),
        (MEMORY + "fp: [{operation: add, precision: DP, lanes: 1, count: -1}]", "-1 is negative"),
        (MEMORY + "fp: [{operation: add, precision: DP, lanes: 1, count: .nan}]", "'.nan' is no number"),
        (MEMORY + "fp: [{operation: add, precision: DP, lanes: 1, count: 1e999}]", "is no number"),
        (MEMORY + "fp: [{operation: add, precision: DP, lanes: 1, count: }]", "is no single value"),
        (MEMORY + "fp: [{operation: add, precision: DP, lanes: 1, count: 1, masked: 2}]", "'2' is unknown"),
        ("memory: [{size: 8, loads: 0, stores: 0}]", "all entries are zero"),
        ("memory: [{size: 8}]", "memory[1]: has no number"),
        ("memory: [{loads: 1}]", "memory[1]: has no size"),
        ("memory: [{size: 128, loads: 1}]", "128 is no size of an access"),
        ("memory: [{size: 0, loads: 1}]", "0 is no size of an access"),
        ("memory: [{size: 4 Hz, loads: 1}]", "memory[1].size"),
        ("memory: [{size: 8, kind: wide, loads: 1}]", "use one of scalar, vector, gather, scatter"),
        ("memory: [{size: 8, kind: gather, stores: 1}]", "a gather does not store"),
        ("memory: [{size: 8, kind: scatter, loads: 1}]", "a scatter does not load"),
        ("memory: [{size: 8, loads: 1, streaming: true}]", "there are none"),
        ("memory: [{size: 8, share: 1}]", "does not tell loads from stores"),
        ("memory: [{size: 8, share: 1, loads: 1}]", "has a share and loads"),
        ("memory: [{size: 8, loads: 50 %, stores: 0.5}]", "mixes shares and counts"),
        ("memory:\n- {size: 8, loads: 50 %}\n- {size: 4, loads: 1}", ":3: memory[2]: mixes shares and counts"),
        ("memory: [{size: 8, loads: 50 %, stores: 48 %}]", "the shares sum to 0.98, not to 1"),
        ("load_store_ratio: 2\n" + MEMORY, "stands beside loads and stores"),
        ("load_store_ratio: 2", "no memory instructions to apply to"),
        ("load_store_ratio: -2\nmemory: [{size: 8, share: 1}]", "-2 is negative"),
        ("intensity: 1\n" + MEMORY, "stands beside counts"),
        (MEMORY + "served: {}", "names no level"),
        (MEMORY + "served: {L1: 50 %, L2: 3}", "mixes shares and bytes"),
        (MEMORY + "served: {L1: 50 %, L2: 30 %}", "the shares sum to 0.8, not to 1"),
        (MEMORY + "served: {L1: 0, L2: 0 B}", "all levels serve nothing"),
        (MEMORY + "served: {L1: 3 Hz}", "served.L1"),
        (MEMORY + "served: 3", "served"),
    ],
)
def test_errors_say_where_and_what(read, text, message):
    with pytest.raises(InputError) as caught:
        read(text)
    assert message in str(caught.value)
    assert "mix.yml" in str(caught.value)
    assert caught.value.todo


@pytest.mark.parametrize("written", ["{L1: 75 %, Mem: 25 %}", "{L1: 300, Mem: 100}", "{L1: 3 kB, Mem: 1000 B}"])
def test_bytes_that_levels_served_are_shares(read, written):
    assert dict(read(MEMORY + f"served: {written}").served) == pytest.approx({"L1": 0.75, "Mem": 0.25})


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x80")
    for name, what in (("missing.yml", "No such file"), (".", "directory"), ("binary", "not text")):
        with pytest.raises(InputError, match=what):
            read_mix(tmp_path / name)


def test_shares_within_the_tolerance_are_brought_to_one(read):
    mix = read("memory: [{size: 8, loads: 33 %}, {size: 4, loads: 33 %}, {size: 64, stores: 33.5 %}]")
    assert mix.loads + mix.stores == pytest.approx(1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 50), min_size=1, max_size=5))
def test_shares_and_counts_of_the_same_mix_agree(read, numbers):
    sizes = (1, 2, 4, 8, 64)
    total = sum(numbers)
    counts = ", ".join(f"{{size: {size}, loads: {n}}}" for size, n in zip(sizes, numbers, strict=False))
    shares = ", ".join(f"{{size: {size}, loads: {100 * n / total} %}}" for size, n in zip(sizes, numbers, strict=False))
    counted, shared = read(f"memory: [{counts}]"), read(f"memory: [{shares}]")
    assert dict(shared.memory) == pytest.approx({kind: n / total for kind, n in counted.memory})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(read, text):
    try:
        read(text)
    except InputError as error:
        assert "mix.yml" in str(error)


def test_sde():
    mix = read_mix(DATA / "sde-mix.txt")
    assert dict(mix.memory) == {
        MemoryClass(8, "scalar", store=False): 100,
        MemoryClass(32, "vector", store=False): 2000,
        MemoryClass(32, "vector", store=True): 1000,
    }
    assert dict(mix.fp) == {
        FpClass("add", "DP", 4): 1000,
        FpClass("fma", "DP", 4): 1000,
        FpClass("fma", "SP", 16): 400,
        FpClass("div", "DP", 1): 20,
        FpClass("convert", "DP", 1): 10,
        FpClass("add", "X87", 1): 7,
        FpClass("compare", "DP", 8): 5,
    }
    assert mix.per == "run"
    assert [note.code for note in mix.notes] == ["sde-mix", "not-counted", "not-counted"]


def test_sde_adds_up_threads_where_there_are_no_global_counts(read):
    section = "# EMIT_DYNAMIC_STATS FOR TID {0}\n*mem-read-8 10\nADDSD_XMMsd_XMMsd 5\n# END_DYNAMIC_STATS\n"
    mix = read(section.format(0) + "*mem-read-8 77\n" + section.format(1))
    assert (mix.loads, mix.flops) == (20, 10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("*mem-read-8 10\nVADDPD 5\n", ":2: VADDPD does not tell how wide it is"),
        ("# EMIT_GLOBAL_DYNAMIC_STATS\n# END_GLOBAL_DYNAMIC_STATS\n*mem-read-8 3\n", "has no counts"),
        ("# EMIT_GLOBAL_DYNAMIC_STATS\n*mem-read-8 3\n# EMIT_GLOBAL_DYNAMIC_STATS\n", ":3: emits its counts more than"),
    ],
)
def test_sde_that_cannot_be_used(read, text, message):
    with pytest.raises(InputError) as caught:
        read(text)
    assert message in str(caught.value)
