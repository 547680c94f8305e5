"""From C to the ECM model on AArch64 machines, by a cross compiler; and by a listing where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

import kernmodel as km
from kernmodel.code.compile import find_compiler
from kernmodel.errors import ToolError
from kernmodel.machine.kerncraft import read_kerncraft
from kernmodel.machine.load import load_machine

LISTING = """
f:      mov x3, 0
        cmp x4, 0
        ble .L2
        whilelo p0.d, xzr, x4
.L3:    ld1d z0.d, p0/z, [x1, x3, lsl 3]
        st1d z0.d, p0, [x0, x3, lsl 3]
        incd x3
        whilelo p0.d, x3, x4
        b.any .L3
.L2:    ret
"""
COPY = "void copy(double *restrict a, const double *restrict b) { for (long i = 0; i < 100000; ++i) a[i] = b[i]; }\n"


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    path = tmp_path / "copy.c"
    path.write_text(COPY, encoding="utf-8")
    (tmp_path / "copy.s").write_text(LISTING, encoding="utf-8")
    return str(path)


def test_a_line_of_256_bytes_and_vectors_of_512_bits(kernel: str) -> None:
    answer = km.ecm(kernel, "a64fx", code=km.CodeOptions(asm=kernel.replace(".c", ".s"))).answer
    assert answer.loop.iterations_per_pass == 8
    # four passes a line: on EAGA and EAGB a load, a store, which the first cache serves alone, and whilelo
    assert answer.prediction.t_nol == 4 * (1 + 2 + 1) / 2
    # the simulated pipeline with data in L1, in which nothing is slower than these ports (issue: 6 / 4)
    assert answer.prediction.t_ol == 4 * 2


@pytest.mark.needs("aarch64-linux-gnu-gcc")
@pytest.mark.parametrize(("machine", "iterations"), [("tx2", 8), ("a64fx", 32)])
def test_compiled_for_the_machine(kernel: str, machine: str, iterations: int) -> None:
    prediction = km.ecm(kernel, machine).answer.prediction
    assert load_machine(machine).line_bytes == 8 * iterations
    # one line is loaded from L1 and one stored: with 16 or 64 bytes an access, two ports; a store of A64FX takes both
    access, store = (16, 1) if machine == "tx2" else (64, 2)
    assert prediction.t_nol == (8 * iterations / access) * (1 + store) / 2


def test_without_a_cross_compiler_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    with pytest.raises(ToolError, match=r"no C compiler for aarch64 was found.*install gcc-aarch64-linux-gnu"):
        find_compiler(load_machine("tx2").compilers, isa_name="aarch64")


@pytest.mark.parametrize(
    ("machine", "width", "loads_per_cycle", "cycles"), [("tx2", 16, 2.0, 1.0), ("a64fx", 64, 2.0, 1.5)]
)
def test_adcarm_scales_the_roofs_by_neon_and_sve(
    tmp_path: Path, machine: str, width: int, loads_per_cycle: float, cycles: float
) -> None:
    """A copy in vectors: the roof of L1 is that of a load beside a store (adCARM, equation 1), by ports."""
    (tmp_path / "copy.c").write_text(COPY, encoding="utf-8")
    neon = LISTING.replace("ld1d z0.d, p0/z, [x1, x3, lsl 3]", "ldr q0, [x1, x3, lsl 3]")
    neon = neon.replace("st1d z0.d, p0, [x0, x3, lsl 3]", "str q0, [x0, x3, lsl 3]").replace("incd x3", "add x3, x3, 2")
    neon = neon.replace("whilelo p0.d, x3, x4\n        b.any", "cmp x3, x4\n        b.lo").replace(
        "        whilelo p0.d, xzr, x4\n", ""
    )
    (tmp_path / "copy.s").write_text(LISTING if machine == "a64fx" else neon, encoding="utf-8")
    code = km.CodeOptions(asm=tmp_path / "copy.s")
    findings = km.carm_chart(str(tmp_path / "copy.c"), machine, cores=1, code=code).answer.findings
    clock = load_machine(machine).clock_hz
    first = next(roof for roof in findings.roofline.memory_roofs if roof.level == "L1")
    assert first.bytes_per_second <= 2 * width / cycles * clock * 1.001
    (only_loads,) = [roof for roof in findings.beside.memory_roofs if roof.level == "L1"]
    assert only_loads.bytes_per_second <= loads_per_cycle * width * clock * 1.001
    assert first.scaled
    assert f"{width} B" in first.origin


COLLECTION = Path(__file__).resolve().parents[2] / "../shared/data/machines-kerncraft"


@pytest.mark.skipif(not COLLECTION.is_dir(), reason="no ../shared/data/machines-kerncraft")
@pytest.mark.parametrize(("name", "core"), [("A64FX_qpace4", "A64FX@512"), ("ARMv8_ThunderX2-CN9980", "TX2")])
def test_imported_machines_are_usable(tmp_path: Path, name: str, core: str) -> None:
    from kernmodel.studies.predict.machine_check import check_machine_file

    file = tmp_path / "mine.yml"
    file.write_text(read_kerncraft(COLLECTION / f"{name}.yml").text, encoding="utf-8")
    assert load_machine(str(file)).core.microarchitecture == core
    assert not [one for one in check_machine_file(file) if one.severity == "error"]
    (tmp_path / "copy.c").write_text(COPY, encoding="utf-8")
    (tmp_path / "copy.s").write_text(LISTING, encoding="utf-8")
    if core != "TX2":
        answer = km.ecm(str(tmp_path / "copy.c"), str(file), code=km.CodeOptions(asm=tmp_path / "copy.s")).answer
        assert answer.prediction.cycles > answer.prediction.t_nol
