"""From C to the ECM model on AArch64 machines, by a cross compiler; and by a listing where there is none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import kernmodel as km
from kernmodel.code.compile import find_compiler
from kernmodel.errors import ToolError
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
    # four passes a line: each two loads or stores on EAGA and EAGB, and the address of whilelo on EAGA
    assert answer.prediction.t_nol == 4 * 1.5
    assert answer.prediction.t_ol == 4 * 6 / 4  # six µops, four issued in a cycle


@pytest.mark.skipif(shutil.which("aarch64-linux-gnu-gcc") is None, reason="no aarch64-linux-gnu-gcc")
@pytest.mark.parametrize(("machine", "iterations"), [("tx2", 8), ("a64fx", 32)])
def test_compiled_for_the_machine(kernel: str, machine: str, iterations: int) -> None:
    prediction = km.ecm(kernel, machine).answer.prediction
    assert load_machine(machine).line_bytes == 8 * iterations
    # one line is loaded from L1 and one stored: with 16 or 64 bytes an access, two address ports
    assert prediction.t_nol == (8 * iterations / (16 if machine == "tx2" else 64)) * 2 / 2


def test_without_a_cross_compiler_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    with pytest.raises(ToolError, match=r"no C compiler for aarch64 was found.*install gcc-aarch64-linux-gnu"):
        find_compiler(load_machine("tx2").compilers, isa_name="aarch64")
