"""Damaged files never end in anything but a `MachineError` or a list of problems."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernmodel.errors import KernmodelError, MachineError
from kernmodel.machine.kerncraft import read_kerncraft
from kernmodel.machine.load import load_machine, load_path
from kernmodel.studies.predict.machine_check import check_machine_file, core_parameters

KERNCRAFT: dict[str, Any] = {
    "model name": "Intel",
    "clock": "2.0 GHz",
    "sockets": 1,
    "cores per socket": 4,
    "threads per core": 2,
    "NUMA domains per socket": 1,
    "cores per NUMA domain": 4,
    "isa": "x86",
    "in-core model": {"OSACA": "CSX"},
    "compiler": {"gcc": "-O3 -fopenmp"},
    "FLOPs per cycle": {"DP": {"ADD": 16, "MUL": 16, "FMA": 32, "total": 32}},
    "overlapping model": {"ports": {"OSACA": ["0", "2"]}},
    "non-overlapping model": {"ports": {"OSACA": ["2D"]}},
    "cacheline size": "64 B",
    "memory hierarchy": [
        {
            "level": "L1",
            "cache per group": {"sets": 64, "ways": 8, "cl_size": 64, "replacement_policy": "LRU", "load_from": "L2"},
            "size per group": "32 kB",
            "cores per group": 1,
            "transfers overlap": False,
        },
        {
            "level": "MEM",
            "upstream throughput": ["full socket memory bandwidth", "half-duplex"],
            "penalty cycles per cacheline load": 1,
            "transfers overlap": False,
        },
    ],
    "benchmarks": {
        "kernels": {"load": {"FLOPs per iteration": 0, "read streams": {"streams": 1}}},
        "measurements": {"MEM": {1: {"cores": [1, 2], "results": {"load": ["10 GB/s", "19 GB/s"]}}}},
    },
}
CARRIED = yaml.safe_load(Path(load_machine("skx-6140").file).read_text(encoding="utf-8"))
ODD = st.sampled_from(
    [None, "", "x", -1, 0, 1.5, "1 MX", [], {}, [[]], [1, 2], {"a": 1}, {"a": {"b": []}}, True, 10**30, "nan"]
)


@st.composite
def damaged(draw: st.DrawFn, whole: Any) -> Any:
    """`whole` with one value, at any depth, replaced or removed."""
    if isinstance(whole, dict | list) and whole and draw(st.integers(0, 3)):
        keys = list(whole) if isinstance(whole, dict) else list(range(len(whole)))
        key = draw(st.sampled_from(keys))
        changed = dict(whole) if isinstance(whole, dict) else list(whole)
        if draw(st.integers(0, 5)) == 0:
            del changed[key]
        else:
            changed[key] = draw(damaged(whole[key]))
        return changed
    return draw(ODD)


SETTINGS = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.thorough
@SETTINGS
@given(damaged(KERNCRAFT))
def test_import(tmp_path: Path, data: Any) -> None:
    path = tmp_path / "kerncraft.yml"
    path.write_text(yaml.safe_dump(data))
    try:
        text = read_kerncraft(path).text
    except MachineError:
        return
    made = tmp_path / "made.yml"
    made.write_text(text)
    check_machine_file(made)


@pytest.mark.thorough
@SETTINGS
@given(damaged(CARRIED))
def test_load(tmp_path: Path, data: Any) -> None:
    path = tmp_path / "machine.yml"
    path.write_text(yaml.safe_dump(data))
    problems = check_machine_file(path)
    if problems:  # those of the core are found when it is asked for: traffic is known without it
        with pytest.raises(KernmodelError):
            core_parameters(load_path(path))
    else:
        core_parameters(load_path(path))
