"""Results of likwid-bench and the CARM Tool in machine files; samples are written here, in the tools' formats."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kernmodel.cli.main import main
from kernmodel.errors import MachineError
from kernmodel.machine.benchmarks.take_over import take_over
from kernmodel.machine.files.schema import MACHINE_FILE, read_machine
from kernmodel.machine.kerncraft import Imported
from kernmodel.machine.model import Machine
from kernmodel.schema.document import document_of

CARM_HEADS = (
    "Name:,venus,L1 Size:,32,L2 Size:,512,L3 Size:,{l3},,L1,L1,L2,L2,L3,L3,DRAM,DRAM,FP,FP,FP FMA,FP_FMA\n"
    "Date,ISA,Precision,Threads,Loads,Stores,Interleaved,DRAM Bytes,FP Inst.,GB/s,I/Cycle,GB/s,I/Cycle,GB/s,I/Cycle,"
    "GB/s,I/Cycle,Gflop/s,I/Cycle,Gflop/s,I/Cycle\n"
)
CARM_RUN = "2026-01-05 10:00:00,{isa},dp,{threads},{loads},{stores},No,524288,add,{rates},28.1,1.9,0,0\n"


def run(test: str, kib: float, rate: float, loads: int, stores: int, threads: int = 1, flops: int = 0) -> str:
    """What likwid-bench prints of a run."""
    size, each = int(kib * 1024), 8 * (loads + stores)
    updates = size // each * 1000
    lines = "\n".join(f"Group: 0 Thread {n} Global Thread {n} running on hwthread {n}" for n in range(threads))
    return (
        f"{'-' * 80}\nLIKWID MICRO BENCHMARK\nTest: {test}\n{'-' * 80}\nUsing 1 work groups\nUsing {threads} threads\n"
        f"{lines}\n{'-' * 80}\nCycles:\t\t\t2450012345\nCPU Clock:\t\t2450000000\nTime:\t\t\t1.000005e+00 sec\n"
        f"Iterations:\t\t1000\nSize (Byte):\t\t{size * threads}\nSize per thread:\t{size}\n"
        f"Number of Flops:\t{updates * flops}\nMFlops/s:\t\t{rate / 8 * flops:.2f}\n"
        f"Data volume (Byte):\t{updates * each}\nMByte/s:\t\t{rate:.2f}\nCycles per update:\t0.5\n"
        f"Loads per update:\t{loads}\nStores per update:\t{stores}\nUOPs:\t\t\t1\n{'-' * 80}\n"
    )


def imported(folder: Path, *texts: str) -> tuple[Machine, Imported]:
    """The machine file of Zen 3 with the results in files with these texts."""
    files = [folder / f"results{number}" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    found = take_over(files, "zen3")
    machine, problems = read_machine(document_of(found.text, "mine.yml", MACHINE_FILE))
    assert machine is not None, problems
    return machine, found


def series(machine: Machine) -> dict[tuple[str, str], tuple[Sequence[int], Sequence[float]]]:
    return {(one.level, one.mix.name): (one.cores, one.bytes_per_second) for one in machine.bandwidths}


def test_level_and_streams_follow_from_what_likwid_bench_says(tmp_path: Path) -> None:
    text = (
        run("load_avx", 16, 150e3, 1, 0) + run("update_avx", 16, 90e3, 1, 1) + run("triad", 1 << 18, 21e3, 3, 1, 1, 2)
        + run("load_avx", 1 << 15, 160e3, 1, 0, threads=8) + run("load_avx", 16, 140e3, 1, 0)
    )  # fmt: skip
    machine, found = imported(tmp_path, text)
    assert series(machine) == {
        ("L1", "load_avx"): ((1,), (150e9,)),  # of two runs the faster
        ("L1", "update_avx"): ((1,), (90e9,)),
        ("Mem", "load_avx"): ((8,), (160e9,)),
        ("Mem", "triad"): ((1,), (21e9,)),
    }
    mixes = {one.mix.name: one.mix for one in machine.bandwidths}
    assert (mixes["update_avx"].read_write, mixes["update_avx"].access_bytes) == (1, 32)
    assert (mixes["triad"].read, mixes["triad"].flops_per_iteration, mixes["triad"].access_bytes) == (3, 2, 8)
    assert machine.paths[-1].bytes_per_cycle is None and not machine.unknown_paths
    assert "likwid-bench" in machine.sources["bandwidths"]
    assert [note.code for note in found.notes] == ["threads-are-cores"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (run("store_mem_avx", 16, 1e5, 0, 1), "past the caches"),
        (run("clload", 16, 1e5, 1, 0), "one element of each cache line"),
        (run("mine_avx", 16, 1e5, 1, 1), "stores where it loads is not known"),
        (run("load_avx", 48, 1e5, 1, 0), "lie in more than one level"),
        (run("load_avx", 48 << 10, 1e5, 1, 0), "lie in more than one level"),
        (run("load_avx", 16, 1e5, 1, 0, threads=999), "999 threads"),
        (run("peakflops_avx", 16, 1e5, 1, 0, flops=16), "mixes additions and multiplications"),
        (run("load_avx", 16, 1e5, 1, 0).replace("MByte/s", "MByte/h") + "MByte/s: 0\n", "not whole"),
    ],
)
def test_what_does_not_belong_is_left_out_and_said(tmp_path: Path, text: str, why: str) -> None:
    good = run("load_avx", 16, 1.5e5, 1, 0)
    machine, found = imported(tmp_path, good + text)
    assert series(machine) == {("L1", "load_avx"): ((1,), (1.5e11,))}
    assert any(why in note.text for note in found.notes)
    (tmp_path / "alone").write_text(text)
    with pytest.raises(MachineError, match="no bandwidth and no peak"):
        take_over([tmp_path / "alone"], "zen3")


def test_rates_of_fma_are_peaks(tmp_path: Path) -> None:
    machine, _ = imported(tmp_path, run("peakflops_sp_avx_fma", 16, 1e5, 1, 0, flops=16))
    assert [(p.operation, p.precision, p.width_bytes, p.cores) for p in machine.peaks] == [("FMA", "SP", 32, 1)]
    assert machine.peaks[0].flop_per_second == pytest.approx(2e11)


def test_a_run_of_the_carm_tool_gives_each_level_and_a_peak(tmp_path: Path) -> None:
    runs = CARM_RUN.format(isa="avx2", threads=1, loads=2, stores=1, rates="190.5,2,80.25,1,60,0.9,24,0.3")
    runs += CARM_RUN.format(isa="scalar", threads=1, loads=8, stores=1, rates="50,2,45,2,0,0,20,0.3")
    runs += CARM_RUN.format(isa="rvv1.0_vl4_lmul1", threads=1, loads=8, stores=1, rates="50,2,45,2,0,0,20,0.3")
    machine, found = imported(tmp_path, CARM_HEADS.format(l3=32768) + runs)
    wide, narrow = "carm-2ld-1st-avx2-dp", "carm-8ld-1st-scalar-dp"
    assert {key: rates[0] / 1e9 for key, (_, rates) in series(machine).items()} == {
        ("L1", wide): 190.5, ("L2", wide): 80.25, ("L3", wide): 60, ("Mem", wide): 24,
        ("L1", narrow): 50, ("L2", narrow): 45, ("Mem", narrow): 20,
    }  # fmt: skip
    assert {one.mix.name: one.mix.access_bytes for one in machine.bandwidths} == {wide: 32, narrow: 8}
    assert [(p.operation, p.width_bytes, p.flop_per_second) for p in machine.peaks] == [
        ("ADD", 8, 28.1e9), ("ADD", 32, 28.1e9),
    ]  # fmt: skip
    assert [note.code for note in found.notes] == ["benchmark-left-out"]


def test_caches_of_another_size_are_named(tmp_path: Path) -> None:
    line = CARM_RUN.format(isa="avx2", threads=1, loads=1, stores=0, rates="190.5,2,80,1,60,0.9,24,0.3")
    _, found = imported(tmp_path, CARM_HEADS.format(l3=8192) + line)
    assert [note.code for note in found.notes] == ["other-caches"]


@pytest.mark.parametrize("broken", ["dp,1,2", "dp,1,2,x,No,1,add" + 12 * ",1", "dp,0,0,0,No,1,add" + 12 * ",1"])
def test_a_broken_line_is_named(tmp_path: Path, broken: str) -> None:
    (tmp_path / "x.csv").write_text(CARM_HEADS.format(l3=1) + "2026-01-05,avx2," + broken + "\n")
    with pytest.raises(MachineError) as caught:
        take_over([tmp_path / "x.csv"], "zen3")
    assert str(caught.value).startswith(f"{tmp_path / 'x.csv'}:3")


def test_series_of_other_levels_and_hosts_stay_or_go(tmp_path: Path) -> None:
    (tmp_path / "out").write_text(run("load_avx512", 16, 3e5, 1, 0))
    found = take_over([tmp_path / "out"], "clx")
    machine, _ = read_machine(document_of(found.text, "mine.yml", MACHINE_FILE))
    assert machine is not None
    assert {mix for level, mix in series(machine) if level == "L1"} == {"load_avx512"}
    assert len({mix for level, mix in series(machine) if level == "Mem"}) > 1


def test_results_without_a_machine_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").write_text(run("load_avx", 16, 1e5, 1, 0))
    assert main(["machine", "import", str(tmp_path / "out")]) == 2
    assert "-m zen3" in capsys.readouterr().err
    assert main(["machine", "import", str(tmp_path / "out"), "-m", "zen3", "-o", str(tmp_path / "mine.yml")]) == 0
    assert main(["machine", "check", str(tmp_path / "mine.yml")]) == 0
