"""Machines written as text and read again."""

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernmodel.machine.load import load_machine, load_path
from kernmodel.machine.model import (
    BandwidthSeries,
    Machine,
    MeasuredPeak,
    MemoryChannels,
    StoreBehaviour,
    StreamMix,
    TransferPath,
)
from kernmodel.machine.schema import MACHINE_FILE
from kernmodel.machine.write import machine_to_text, with_unit, write_facts
from kernmodel.schema.document import compose
from kernmodel.units import parse_quantity

CARRIED = ("bdw", "clx", "hsw", "ivb", "skx", "skx-6140", "snb", "zen", "zen2")


def _read_again(machine: Machine, folder: Path) -> Machine:
    path = folder / f"{machine.name}.yml"
    path.write_text(machine_to_text(machine, ["written by a test: with, all # signs"]), encoding="utf-8")
    again = load_path(path)
    return replace(again, file=machine.file, sha256=machine.sha256)


@pytest.mark.parametrize("name", CARRIED)
def test_carried_machines_read_back(name: str, tmp_path: Path) -> None:
    machine = load_machine(name)
    again = _read_again(machine, tmp_path)
    assert again == machine
    assert machine_to_text(again) == machine_to_text(machine)


TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")) | st.just(" "), min_size=1, max_size=200
).filter(lambda text: bool(text.strip()))
POSITIVE = st.floats(1e-3, 1e15)
MIXES = st.builds(
    StreamMix,
    name=st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True),
    read=st.integers(1, 4),
    write=st.integers(0, 4),
    read_write=st.just(0),
    flops_per_iteration=st.integers(0, 9).map(float),
    access_bytes=st.none() | st.sampled_from((1, 2, 4, 8, 16, 32, 64)),
)
RATES = st.floats(1e6, 4e9)
"""Bytes per second that any core can load."""
MEMORY = st.builds(MemoryChannels, st.integers(1, 12), st.floats(1, 64), st.floats(1e6, 1e12))
PEAKS = st.builds(
    MeasuredPeak,
    st.sampled_from(("ADD", "MUL", "FMA", "DIV", "SQRT")),
    st.sampled_from(("DP", "SP")),
    st.sampled_from((4, 8, 16, 32, 64)),
    st.integers(1, 40),
    st.floats(1, 1e12),
)


STORES = st.builds(StoreBehaviour, st.booleans(), st.sampled_from(("never", "always", "instruction", "unknown")))
STORES |= st.builds(StoreBehaviour, st.booleans(), st.just("near-saturation"), st.none() | st.integers(1, 10))


@st.composite
def machines(draw: st.DrawFn) -> Machine:
    base = load_machine("clx")
    cores = tuple(sorted(draw(st.sets(st.integers(1, base.topology.cores), min_size=1, max_size=8))))
    mixes = draw(st.lists(MIXES, min_size=1, max_size=3, unique_by=lambda mix: mix.name))
    series = tuple(
        BandwidthSeries(level, mix, cores, tuple(draw(RATES) for _ in cores))
        for level in ("L1", "Mem")
        for mix in mixes
    )
    sources = {key: draw(TEXT).strip() for key in base.sources if not key.startswith("bandwidths.mixes")}
    width, penalty = draw(st.floats(0.5, 256)), draw(st.floats(0, 9))
    widths = draw(st.none() | st.tuples(st.floats(1, 256), st.floats(1, 256)))
    memory, peaks = draw(st.none() | MEMORY), tuple(draw(st.lists(PEAKS, max_size=2)))
    sources |= {"memory": "a data sheet"} if memory else {}
    sources |= {"peaks": "a benchmark"} if peaks else {}
    runs = tuple((size, draw(POSITIVE)) for size in sorted(draw(st.sets(POSITIVE, min_size=2, max_size=8))))
    last = replace(base.paths[2], penalty_load=penalty, run_length=draw(st.sampled_from(((), runs))))
    paths = (replace(base.paths[0], bytes_per_cycle=width), base.paths[1], last)
    return replace(
        base,
        title=draw(TEXT).strip(),
        clock_hz=draw(st.floats(1e9, 5e9)),
        bandwidths=series,
        paths=paths,
        sources=MappingProxyType(sources),
        stores=draw(STORES),
        core=replace(
            base.core,
            load_bytes_per_cycle=widths[0] if widths else None,
            store_bytes_per_cycle=widths[1] if widths else None,
        ),
        memory=memory,
        peaks=peaks,
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(machines())
def test_any_machine_reads_back(tmp_path: Path, machine: Machine) -> None:
    assert _read_again(machine, tmp_path) == machine


@given(st.floats(1e-6, 1e18), st.sampled_from(["data", "frequency", "bandwidth"]))
def test_quantities_read_back(value: float, dimension: str) -> None:
    assert parse_quantity(with_unit(value, dimension), dimension) == value


def test_sizes_have_the_unit_people_use() -> None:
    assert [with_unit(size, "data") for size in (32 * 1024, 13.75 * 1024**2, 64, 2**30)] == [
        "32 KiB",
        "13.75 MiB",
        "64 B",
        "1 GiB",
    ]
    assert with_unit(2.35e9, "frequency") == "2.35 GHz"


def test_unknown_facts_become_comments_to_fill_in() -> None:
    text = write_facts({"title": "x", "core": {"microarchitecture": None, "source": "y"}})
    assert "  # microarchitecture:  (not known; fill it in)\n" in text
    root = compose(text, "x.yml", MACHINE_FILE)
    assert [key.value for key, _ in root.value] == ["title", "core"]


def test_machine_that_says_nothing_of_stores_reads_back(tmp_path: Path) -> None:
    machine = load_machine("clx")
    sources = {name: source for name, source in machine.sources.items() if name != "stores"}
    silent = replace(machine, stores=StoreBehaviour(evasion="unknown"), sources=MappingProxyType(sources))
    assert "stores:" not in machine_to_text(silent)
    assert _read_again(silent, tmp_path) == silent


def test_duplex_and_measured_width_are_written() -> None:
    path = TransferPath("L1L2", "L1", "L2", None, "full", 1.5, 0.0)
    machine = load_machine("skx")
    text = machine_to_text(replace(machine, paths=(path, *machine.paths[1:])))
    assert "  L1L2:\n    width: measured\n    duplex: full\n    penalty_load: 1.5 cy/CL\n    source:" in text
