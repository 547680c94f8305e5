"""Rows of forms that were timed: on a host (recorded figures), by ibench and by asmbench (samples in their formats)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from kernmodel.api.code import analyse_loop
from kernmodel.cli.main import main
from kernmodel.errors import InstructionTableError, UsageError
from kernmodel.incore.model import InstructionData
from kernmodel.incore.tables.importers.build import import_uops
from kernmodel.incore.tables.importers.microbenchmarks import read_microbenchmarks
from kernmodel.incore.tables.parameters import canonical_name, load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.incore.tables.timed import Timing, rows_text, timed_row
from kernmodel.machine.load import load_machine
from kernmodel.studies.predict.incore import named_targets

IBENCH = """\
Using frequency 2.45GHz.
vmulss-TP:\t0.502 (clock cycles)\t[DEBUG - result: 0.007813]
vmulsd:\t\t3.013 (clock cycles)\t[DEBUG - result: 1.000000]
vsqrtpd-avx-TP:\t9.010 (clock cycles)\t[DEBUG - result: 1.000000]
vmovapd-load-avx-TP:\t0.503 (clock cycles)\t[DEBUG - result: 1.000000]
vmovapd-store-sse-TP:\t1.001 (clock cycles)\t[DEBUG - result: 1.000000]
vfmadd132pd-mb_y_y-TP:\t0.501 (clock cycles)\t[DEBUG - result: 1.000000]
vfmadd213pd-yyy:\t4.021 (clock cycles)\t[DEBUG - result: 1.000000]
add-i_r-LT:\t1.020 (clock cycles)\t[DEBUG - result: 1.000000]
vaddpd-zzz-mask:\t4.020 (clock cycles)\t[DEBUG - result: 1.000000]
"""
ASMBENCH = """\
vaddpd-y_y_y
Latency: 3.00 cycle
Throughput: 0.50 cycle

imul {src:i64:r}, {srcdst:i64:r}
Latency: 3.01 cycle
Throughput: 1.00 cycle

vaddpd {src:*<4 x double>:b}, {src:<4 x double>:x}, {dst:<4 x double>:x}
Latency: 3.00 cycle
Throughput: 0.51 cycle
"""


def table(core: str = "ZEN3") -> InstructionTable:
    return InstructionTable.open(load_parameters(core))


def row(form: str, core: str = "ZEN3") -> InstructionData:
    found = table(core).row(form)
    assert found is not None
    return found


def with_rows(folder: Path, *timings: Timing, core: str = "ZEN3") -> str:
    """The name of the core with rows of these timings before its table's."""
    (folder / "rows.txt").write_text(rows_text(timings, table(core), ("x",)))
    return f"{core}+{folder / 'rows.txt'}"


def forms(text: str, folder: Path) -> Mapping[str, tuple[float | None, float | None]]:
    (folder / "out.txt").write_text(text)
    found = read_microbenchmarks(folder / "out.txt", table())
    return {one.form: (one.throughput, one.latency) for one in found.forms}


def test_a_timing_that_agrees_changes_the_latency_alone() -> None:
    form = "vaddpd ymm,ymm,ymm"
    found = timed_row(Timing(form, 0.51, "measured here", {("1", "0"): 2.04}), table())
    assert found.ports == row(form).ports
    assert (found.throughput, found.latencies["1", "0"]) == (None, 2.0)
    assert found.source.startswith("measured here; others: ")


@pytest.mark.parametrize(("measured", "keeps"), [(1.4, True), (0.25, False)])
def test_a_throughput_that_ports_do_not_tell_is_written(measured: float, keeps: bool) -> None:
    found = timed_row(Timing("vaddpd ymm,ymm,ymm", measured, "here"), table())
    assert found.throughput == measured
    assert bool(found.ports) is keeps
    assert keeps or "ports of the table left out" in found.source


def test_a_form_that_the_table_lacks_has_no_ports_and_says_so(tmp_path: Path) -> None:
    name = with_rows(tmp_path, Timing("strange r64,r64", 2.0, "here", {("0", "0"): 3.3}))
    found = InstructionTable.open(load_parameters(name)).row("strange r64,r64")
    assert found is not None
    assert (found.ports, found.throughput, found.latencies, found.default_latency) == ((), 2.0, {("0", "0"): 3.3}, 3.3)
    assert "not known" in found.source
    alone = timed_row(Timing("strange r64", 1.0, "here"), table())
    assert (alone.default_latency, "latency not measured" in alone.source) == (1.0, True)


@pytest.mark.parametrize("core", ["ZEN3", "ZEN4", "CLX"])
def test_rows_come_before_those_of_any_table(tmp_path: Path, core: str) -> None:
    """ZEN4's table is one of differences itself; CLX has that of SKX."""
    name = with_rows(tmp_path, Timing("imul r64,r64", 1.0, "here", {("0", "0"): 7.0, ("1", "0"): 7.0}), core=core)
    assert canonical_name(name.lower().replace(core.lower(), core)) == name
    loop = bytes.fromhex("480fafc0")  # imul rax, rax
    before, after = (analyse_loop(loop, uarch=one).answer.incore for one in (core, name))
    assert (before.prediction, after.prediction) == (3.0, 7.0)
    for other in ("add r64,r64", "vdivpd ymm,ymm,ymm"):
        mine = InstructionTable.open(load_parameters(name)).row(other)
        assert mine == row(other, core)


def test_rows_of_another_core_are_refused(tmp_path: Path) -> None:
    name = with_rows(tmp_path, Timing("imul r64,r64", 1.0, "here"))
    with pytest.raises(InstructionTableError, match=r"holds rows for ZEN3\.txt"):
        load_parameters(name.replace("ZEN3", "ZEN4", 1))
    (tmp_path / "rows.txt").write_text("imul r64,r64 | | 1 | 3 | | | - | t\n")
    with pytest.raises(InstructionTableError, match="is no file of rows"):
        load_parameters(name)


def test_rows_that_lead_back_to_themselves_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("#! base b.txt = x\n")
    (tmp_path / "b.txt").write_text("#! base a.txt = x\n")
    with pytest.raises(InstructionTableError, match="leads back"):
        InstructionTable(tmp_path / "a.txt", load_parameters("ZEN3"))


def test_rows_are_added_to_those_of_a_file(tmp_path: Path) -> None:
    with_rows(tmp_path, Timing("imul r64,r64", 1.0, "old"), Timing("add r64,r64", 0.25, "old"))
    text = rows_text([Timing("add r64,r64", 0.25, "new")], table(), (), tmp_path / "rows.txt")
    assert "old" in text and "new" in text
    assert [line.partition(" |")[0] for line in text.splitlines() if line[0] != "#"] == ["add r64,r64", "imul r64,r64"]


def test_a_machine_file_names_its_rows(tmp_path: Path) -> None:
    with_rows(tmp_path, Timing("imul r64,r64", 1.0, "here", {("0", "0"): 7.0}))
    text = Path(load_machine("zen3").file).read_text()
    (tmp_path / "mine.yml").write_text(
        text.replace("microarchitecture: ZEN3", "microarchitecture: ZEN3\n  instructions: rows.txt")
    )
    mine, other = load_machine(str(tmp_path / "mine.yml")), load_machine(f"zen3+{tmp_path / 'rows.txt'}")
    assert mine.core == other.core
    assert load_parameters(mine.core.microarchitecture) == replace(
        load_parameters("ZEN3"), table=str(tmp_path / "rows.txt")
    )


def test_names_of_ibench_are_forms(tmp_path: Path) -> None:
    assert forms(IBENCH, tmp_path) == {
        "vmulss xmm,xmm,xmm": (0.502, None),
        "vmulsd xmm,xmm,xmm": (None, 3.013),
        "vsqrtpd ymm,ymm": (9.01, None),
        "vmovapd ymm,m256": (0.503, None),
        "vmovapd m128,xmm": (1.001, None),
        "vfmadd132pd ymm,ymm,m256": (0.501, None),
        "vfmadd213pd ymm,ymm,ymm": (None, 4.021),
        "add r64,i8": (None, 1.02),
    }


def test_names_of_asmbench_are_forms(tmp_path: Path) -> None:
    assert forms(ASMBENCH, tmp_path) == {
        "vaddpd ymm,ymm,ymm": (0.5, 3.0),
        "imul r64,r64": (1.0, 3.01),
        "vaddpd ymm,ymm,m256": (0.51, 3.0),
    }


def test_an_import_says_what_is_left_out_and_what_is_taken_for_what(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text(IBENCH)
    text, report = import_uops(tmp_path / "out.txt", "ZEN3")
    assert (report.records, report.rows) == (9, 8)
    assert any("zzz-mask" in reason for reason in report.left_out)
    assert "add-i_r-LT is taken for add r64,i8, not for" in text
    assert "measured by ibench, out.txt" in text


def test_an_imported_file_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out.txt").write_text(ASMBENCH.replace("3.01", "9.02"))
    rows = str(tmp_path / "rows.txt")
    assert main(["instructions", "import", str(tmp_path / "out.txt"), "--uarch", "ZEN3", "-o", rows]) == 0
    assert main(["incore", "--hex", "480fafc0", "--uarch", "zen3", "--instructions", rows]) == 0
    assert "9.00 cy per pass" in capsys.readouterr().out
    assert main(["incore", "--hex", "480fafc0", "--uarch", "zen3", "--instructions", "rows"]) == 2
    assert main(["instructions", "import", str(tmp_path / "out.txt"), "--uarch", "ZEN3", "--out", str(tmp_path)]) == 1


def test_of_several_cores_those_take_rows_whose_table_they_are_for(tmp_path: Path) -> None:
    file = with_rows(tmp_path, Timing("imul r64,r64", 1.0, "here")).partition("+")[2]
    names = [target.microarchitecture for target in named_targets(f"SKL+{file},ZEN3+{file}")]
    assert names == ["SKL", f"ZEN3+{file}"]
    every = [target.microarchitecture for target in named_targets(f"all+{file}")]
    assert [name for name in every if "+" in name] == [f"ZEN3+{file}"]
    assert len(every) == len(named_targets("all"))
    with pytest.raises(UsageError, match=r"for ZEN3\.txt, which is the table of none of these cores"):
        named_targets(f"SKL+{file},ZEN4+{file}")


@pytest.mark.parametrize("time", ["1.0.0", "0.000", "-nan", "-1.5", "inf"])
def test_a_time_that_is_no_number_of_cycles_is_left_out_and_named(time: str, tmp_path: Path) -> None:
    path = tmp_path / "ibench.txt"
    path.write_text(f"vaddpd-yyy-TP:\t{time} (clock cycles)\nvmulpd-yyy-TP:\t0.5 (clock cycles)\n")
    found = read_microbenchmarks(path, InstructionTable.open(load_parameters("ZEN4")))
    assert [timing.form for timing in found.forms] == ["vmulpd ymm,ymm,ymm"]
    assert any(f"its time is {time!r}" in note.text for note in found.notes)
