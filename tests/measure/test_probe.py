"""The probe: which carried machine is near, and that what it writes is a machine file (recorded figures)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernmodel.errors import MeasurementError
from kernmodel.machine.files.schema import MACHINE_FILE, read_machine
from kernmodel.measure import probe
from kernmodel.measure.host_topology import HostCache, HostTopology
from kernmodel.measure.model import BandwidthPoint, Bandwidths, Peak, Peaks
from kernmodel.measure.samples import Figure
from kernmodel.schema.document import document_of

CACHES = (
    HostCache(1, 48 << 10, 12, 64, 64, 1),
    HostCache(2, 2 << 20, 16, 2048, 64, 1),
    HostCache(3, 105 << 20, 15, 114688, 64, 2),
)
GUEST = HostTopology(
    "Xeon", "Intel", 6, 167, 8, frozenset({"avx", "avx2", "avx512f", "avx512vbmi2", "amx_tile"}), True, 1, 1, 2, 1,
    CACHES, 1 << 34, "madvise",
)  # fmt: skip
# cycles a line of all streams, as measured on a guest with two cores of Sapphire Rapids
CYCLES = {"L1": (0.53, 0.99), "L2": (1.26, 4.96), "L3": (6.56, 15.41), "Mem": (13.1, 27.91)}


def figure(value: float, confirmed: bool = True) -> Figure:
    return Figure(value, value, value * 1.01, 40, 60, confirmed)


def probed(monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...] = ()) -> probe.Probe:
    points = tuple(
        BandwidthPoint(mix, level, 64, 1 << 20, figure(cycles, level not in missing), figure(64 * accesses / cycles))
        for level, both in CYCLES.items()
        for (mix, accesses), cycles in zip((("load", 1), ("copy", 2)), both, strict=True)
    )
    peaks = Peaks((Peak("FMA", "DP", 64, "vfmadd231pd zmm,zmm,zmm", figure(32.0)),), 2.3e9, ())
    monkeypatch.setattr(probe, "host_topology", lambda: GUEST)
    monkeypatch.setattr(probe, "measure_bandwidths", lambda *_, **__: Bandwidths(points, 2.3e9, True, ()))
    monkeypatch.setattr(probe, "measure_peaks", lambda *_, **__: peaks)
    return probe.probe_machine(None)  # type: ignore[arg-type]


def test_a_probe_is_a_machine_file(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, problems = read_machine(document_of(probed(monkeypatch).text, "mine.yml", MACHINE_FILE))
    assert machine is not None, problems
    assert [level.size_bytes for level in machine.levels] == [cache.size_bytes for cache in CACHES]
    rate = next(one for one in machine.bandwidths if (one.level, one.mix.name) == ("Mem", "load")).bytes_per_second[0]
    assert rate == pytest.approx(64 / 13.1 * 2.3e9, rel=0.01)
    assert "derived from the carried spr.yml" in machine.sources["core"]
    assert "measured on this host" in machine.sources["bandwidths"]
    assert all(path.bytes_per_cycle is None for path in machine.paths[1:])


def test_what_is_not_confirmed_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, problems = read_machine(document_of(probed(monkeypatch, ("L3",)).text, "mine.yml", MACHINE_FILE))
    assert machine is not None, problems
    assert not [one for one in machine.bandwidths if one.level == "L3"]


@pytest.mark.parametrize(
    ("vendor", "family", "number", "features", "name", "doubtful"),
    [
        ("Intel", 6, 143, {"amx_tile"}, "spr", False),
        ("Intel", 6, 173, {"amx_tile"}, "gnr", False),
        ("Intel", 6, 106, {"avx512_vbmi2"}, "icx", False),
        ("Intel", 6, 85, {"avx512f"}, "clx", False),
        ("Intel", 6, 167, {"amx_tile"}, "spr", True),
        ("Intel", 6, 106, {"amx_tile"}, "spr", True),
        ("AMD", 25, 17, {"avx512f"}, "zen4", False),
        ("AMD", 25, 1, {"avx2"}, "zen3", False),
        ("AMD", 26, 2, {"avx512f"}, "zen4", True),
    ],
)
def test_the_core_is_that_of_cpuid_unless_extensions_contradict(
    vendor: str, family: int, number: int, features: set[str], name: str, doubtful: bool
) -> None:
    host = replace(GUEST, vendor=vendor, family=family, number=number, features=frozenset(features))
    found, why = probe.nearest_machine(host)
    assert (found, bool(why)) == (name, doubtful)


def test_a_host_near_no_carried_machine_is_refused() -> None:
    with pytest.raises(MeasurementError, match="no carried machine is near"):
        probe.nearest_machine(replace(GUEST, vendor="unknown"))
