"""Machine files held against the cores they name, against themselves, and against compilers."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from kernmodel.cli.main import main
from kernmodel.errors import MachineError
from kernmodel.incore.core import Settings
from kernmodel.machine.files.stream_mixes import contradictions
from kernmodel.machine.load import find_machine, load_machine
from kernmodel.machine.model import Machine
from kernmodel.studies.predict.incore import analyse_one, machine_target
from kernmodel.studies.predict.machine_check import check_machine_file, core_parameters
from kernmodel.studies.predict.request import Loop

CARRIED = ("bdw", "clx", "hsw", "ivb", "skx", "skx-6140", "snb", "zen", "zen2")
SHARED = Path(__file__).parents[3] / "shared" / "data"
CLX = find_machine("clx").read_text(encoding="utf-8")


def problems(folder: Path, *edits: tuple[str, str], text: str = CLX, compilers: bool = False) -> list[str]:
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    (folder / "my.yml").write_text(text, encoding="utf-8")
    found = check_machine_file(folder / "my.yml", compilers=compilers)
    return [str(problem).removeprefix(f"{folder}/") for problem in found]


def test_ports_that_the_core_lacks_are_errors(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, ("overlapping_ports: [0,", "overlapping_ports: [0, 5D,"))
    assert re.fullmatch(
        r"my.yml:\d+: core.overlapping_ports: names port '5D', which CLX lacks; did you mean '5'\?", said
    )


def test_ports_that_count_nowhere_are_warnings(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, ("overlapping_ports: [0, 0DV, 1,", "overlapping_ports: [0, 0DV,"))
    assert "warning: core: leaves out port 1 of CLX" in said  # 0DV goes with 0 where it is not named


def test_an_unknown_core_is_named_with_the_nearest(tmp_path: Path) -> None:
    (said,) = problems(tmp_path, ("microarchitecture: CLX", "microarchitecture: CLXX"))
    assert "core.microarchitecture: unknown microarchitecture 'CLXX'; did you mean CLX?" in said


def test_the_core_may_be_a_file_whose_faults_are_told(tmp_path: Path) -> None:
    (tmp_path / "MY.yml").write_text("name: MY\n", encoding="utf-8")
    (said,) = problems(tmp_path, ("microarchitecture: CLX", f"microarchitecture: {tmp_path / 'MY.yml'}"))
    assert f"core.microarchitecture: {tmp_path / 'MY.yml'}:1: title: is missing" in said


def test_another_instruction_set_than_the_core_s_is_an_error(tmp_path: Path) -> None:
    assert any("isa: is aarch64, but CLX is x86-64" in said for said in problems(tmp_path, ("x86-64", "aarch64")))


def test_ports_are_checked_where_a_machine_is_used(tmp_path: Path) -> None:
    problems(tmp_path, ("overlapping_ports: [0,", "overlapping_ports: [0, P9,"))
    with pytest.raises(MachineError, match=r"my.yml:\d+: core.overlapping_ports: names port 'P9', which CLX lacks"):
        core_parameters(load_machine(str(tmp_path / "my.yml")))
    with pytest.raises(MachineError, match="names port 'P9'"):
        analyse_one(Loop(hex_digits="4801d8"), machine_target(str(tmp_path / "my.yml")), Settings())


def test_ecm_warns_of_busy_ports_that_count_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    problems(tmp_path, ("overlapping_ports: [0, 0DV, 1, 2, 3, 4,", "overlapping_ports: [0, 0DV, 1, 2, 3,"))
    listing = tmp_path / "copy.s"
    listing.write_text(
        ".L1:\n vmovupd (%rsi,%rax), %ymm0\n vmovupd %ymm0, (%rdi,%rax)\n addq $32, %rax\n cmpq %rcx, %rax\n jne .L1\n"
    )
    source = tmp_path / "copy.c"
    source.write_text("double a[N], b[N];\nfor (int i = 0; i < N; ++i) a[i] = b[i];\n")
    arguments = ["ecm", str(source), "-m", str(tmp_path / "my.yml"), "-D", "N=100", "--asm", str(listing)]
    assert main(arguments) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "names port 4, which this loop needs, neither in overlapping_ports nor" in told
    assert main([*arguments, "--strict"]) == 1


_L2, _SMALL_L2 = "size: 1 MiB\n    ways: 16\n    sets: 1024", "size: 16 KiB\n    ways: 16\n    sets: 16"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("clock: 2.5 GHz", "clock: 1000000 GHz", "clock: '1000000 GHz' is more than 20 GHz"),
        ("clock: 2.5 GHz", "clock: 1e-300 Hz", "clock: '1e-300 Hz' is less than 10 MHz"),
        ("clock: 2.5 GHz", "clock: -2.5 GHz", "is not greater than zero"),
        ("clock: 2.5 GHz", "clock: ２.5 GHz", "clock: "),
        ("cache_line: 64 B", "cache_line: 4 KiB", "cache_line: '4 KiB' is more than 1 KiB"),
        ("cache_line: 64 B", "cache_line: 128 B", "is not sets × ways × line"),
        ("sockets: 2", "sockets: 100000", "topology.sockets: 100000 is larger than 256"),
        ("sockets: 2", "sockets: ２", "topology.sockets: '２' is no whole number"),
        ("ways: 16\n    sets: 1024", "ways: 16\n    sets: 16", "caches.L2.size: 1 MiB is not sets × ways × line"),
        (
            "size: 1 MiB\n    ways: 16\n    sets: 1024",
            "size: 16 KiB\n    ways: 16\n    sets: 16",
            "caches.L2.size: 16 KiB is less than the 32 KiB of L1",
        ),
        ("load_width: 128 B/cy", "load_width: 1e9 B/cy", "core.load_width: '1e9 B/cy' is more than 4096 B/cy"),
        ("unit: GB/s", "unit: TB/s", "can load and store"),
        ("unit: GB/s", "unit: B/s", "is less than 1 MB/s; check bandwidths.unit"),
    ],
)
def test_absurd_figures_are_errors(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert any(said in line and "warning" not in line for line in problems(tmp_path, (old, new)))


def test_an_inclusive_cache_holds_what_is_inside(tmp_path: Path) -> None:
    hsw = find_machine("hsw").read_text(encoding="utf-8")
    shared = re.search(r"L3:.*?shared_by: (\d+)", hsw, re.DOTALL)
    assert shared is not None
    found = problems(
        tmp_path,
        ("    size: 256 KiB\n    ways: 8\n    sets: 512", "    size: 8 MiB\n    ways: 8\n    sets: 16384"),
        text=hsw,
    )
    assert any("caches.L3.inclusive: is true, but" in said for said in found)


def scaled(machine: Machine, level: str, factors: dict[str, float]) -> Machine:
    series = (
        replace(one, bytes_per_second=tuple(rate * factors.get(one.mix.name, 1.0) for rate in one.bytes_per_second))
        if one.level == level
        else one
        for one in machine.bandwidths
    )
    return replace(machine, bandwidths=tuple(series))


@pytest.mark.parametrize("name", CARRIED)
def test_the_carried_bandwidths_do_not_contradict_one_another(name: str) -> None:
    assert list(contradictions(load_machine(name))) == []


@pytest.mark.parametrize("name", [name for name in CARRIED if name != "skx-6140"])
@pytest.mark.parametrize(
    "factors",
    [
        {"update": 1 / 2, "daxpy": 2 / 3},  # each array once
        {"update": 1 / 2},
        {"daxpy": 2 / 3},
        {"update": 2.0},
        {"copy": 3 / 2, "triad": 5 / 4},  # write-allocates counted, and corrected for once more
    ],
)
def test_mixes_in_memory_that_are_counted_otherwise_are_found(name: str, factors: dict[str, float]) -> None:
    machine = scaled(load_machine(name), "Mem", factors)
    found = {machine.bandwidths[number].level for number, _, _ in contradictions(machine)}
    assert found == {"Mem"}


def test_narrow_accesses_are_held_against_nothing() -> None:
    machine = load_machine("clx")
    narrow = tuple(
        replace(one, mix=replace(one.mix, name=f"{one.mix.name}-8B", access_bytes=8),
                bytes_per_second=tuple(rate / 4 for rate in one.bytes_per_second))
        for one in machine.bandwidths
    )  # fmt: skip
    assert list(contradictions(replace(machine, bandwidths=(*machine.bandwidths, *narrow)))) == []


def test_lines_that_are_only_written_may_cost_more() -> None:
    """A copy as one core of Milan is measured to make it beside a daxpy: 18.3 and 36.0 GB/s."""
    machine = load_machine("clx")
    rates = {"copy": 18.3e9, "daxpy": 36.0e9}
    one_core = tuple(
        replace(one, cores=(1,), bytes_per_second=(rates[one.mix.name],))
        for one in machine.bandwidths
        if one.level == "Mem" and one.mix.name in rates
    )
    assert len(one_core) == 2
    assert list(contradictions(replace(machine, bandwidths=one_core))) == []


def test_an_update_counted_per_stream_is_told_with_its_line(tmp_path: Path) -> None:
    host = SHARED / "measured" / "zen4-host.yml"
    if not host.exists():
        pytest.skip(f"no {host.name}")
    text = host.read_text(encoding="utf-8")
    assert problems(tmp_path, text=text) == []
    (said,) = problems(tmp_path, ("update: [71.8, 74.0]", "update: [35.9, 37.0]"), text=text)
    assert "warning: bandwidths.measured[0].values.update: takes 2 times as long as 'store', which moves" in said
    (said,) = problems(tmp_path, ("daxpy: [50.9, 57.4]", "daxpy: [33.9, 38.3]"), text=text)
    assert "values.daxpy: takes 1." in said


@pytest.fixture
def compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of commands for PATH: a gcc that knows two cores, and a clang that knows two others."""
    folder = tmp_path / "bin"
    folder.mkdir()
    texts = {
        "gcc": "error: bad value 'nocore' for '-march=' switch\nnote: valid arguments to '-march=' switch are: znver3",
        "clang": "error: unknown target CPU 'nocore'\nnote: valid target CPU values are: znver3, znver4",
    }
    for name, text in texts.items():
        command = folder / name
        command.write_text(
            f'#!/bin/sh\ncase "$*" in *-march=nocore*) printf "%s\\n" "{text}" >&2; exit 1;; esac\nexit 0\n'
        )
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}/bin")
    return folder


def test_flags_are_tried_with_the_compilers_that_are_installed(tmp_path: Path, compilers: Path) -> None:
    block = "compilers:\n  gcc: -O3 -march=nocore\n  clang: -O3 -march=znver4\n  icx: -O3\n"
    text = CLX[: CLX.index("compilers:")] + block
    assert problems(tmp_path, text=text) == []
    refused, absent = problems(tmp_path, text=text, compilers=True)
    assert (
        f"compilers.gcc: {compilers / 'gcc'} refuses -march=nocore; the nearest that it takes is -march=znver"
        in refused
    )
    assert "warning: compilers.icx: is not installed here, so its flags were not tried" in absent
    text = text.replace("clang: -O3 -march=znver4", "clang: -O3 -march=nocore").replace(
        "gcc: -O3 -march=nocore", "gcc: -O3"
    )
    refused, _ = problems(tmp_path, text=text, compilers=True)
    assert "compilers.clang: " in refused and "the nearest that it takes is -march=znver" in refused


@pytest.mark.thorough
@pytest.mark.parametrize("name", [path.name for path in sorted((SHARED / "machines-kerncraft").glob("*.yml"))] or [""])
def test_what_is_imported_passes_the_check_or_says_what_to_mend(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not name:
        pytest.skip("no machine files of Kerncraft")
    made = tmp_path / "made.yml"
    status = main(["machine", "import", str(SHARED / "machines-kerncraft" / name), "-o", str(made)])
    errors = [str(problem) for problem in check_machine_file(made) if problem.severity == "error"]
    assert status == (1 if errors else 0)
    told = capsys.readouterr().err
    assert all(f"to mend: {error}" in told for error in errors)
