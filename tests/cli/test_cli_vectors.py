"""`--vl`: the length of SVE's vectors as a condition of `incore` and `ecm`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kernmodel as km
from kernmodel.cli.main import main
from kernmodel.errors import InstructionTableError, MachineError
from kernmodel.incore.tables.parameters import canonical_name, load_parameters
from kernmodel.machine.load import load_machine

# gcc 12 -O3 -march=armv8.2-a+sve of triad.c: a loop of any length of vectors
WHILE_LOOP = """
.L2:
    ld1d z1.d, p0/z, [x1, x3, lsl 3]
    ld1d z0.d, p0/z, [x2, x3, lsl 3]
    fmad z0.d, p1/m, z2.d, z1.d
    st1d z0.d, p0, [x0, x3, lsl 3]
    incd x3
    whilelo p0.d, x3, x4
    b.any .L2
"""


@pytest.mark.parametrize(("bits", "lanes"), [(128, 2), (256, 4), (512, 8)])
def test_a_while_loop_steps_by_the_vectors_of_the_machine(bits: int, lanes: int, tmp_path: Path) -> None:
    (tmp_path / "triad.s").write_text(WHILE_LOOP, encoding="utf-8")
    code = km.CodeOptions(asm=tmp_path / "triad.s")
    answer = km.ecm("triad.c", machine=f"a64fx@{bits}", code=code, N=10_000_000).answer
    assert answer.loop.iterations_per_pass == lanes
    assert {one.size_bytes for item in answer.loop.instructions for one in item.memory} == {bits // 8}


def test_the_option_gives_the_length(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "k.s").write_text(WHILE_LOOP, encoding="utf-8")
    for arguments in (["--uarch", "A64FX"], ["-m", "a64fx"]):
        assert main(["incore", str(tmp_path / "k.s"), *arguments, "--vl", "256", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["code"]["loop"]["isa"] == "aarch64-sve256"


def test_only_lengths_that_a_core_has() -> None:
    assert load_parameters("A64FX").isa == "aarch64"
    assert load_parameters("A64FX@512").isa == "aarch64-sve512"
    assert load_parameters("a64fx@128").isa == "aarch64-sve128"
    assert canonical_name("a64fx@128") == "A64FX@128"
    for name in ("V1@512", "TX2@128", "SKL@256", "A64FX@384"):
        with pytest.raises(InstructionTableError, match="has no vectors of"):
            load_parameters(name)
    with pytest.raises(MachineError, match="clx has no vectors of 256 bits"):
        load_machine("clx@256")


def test_compilers_are_told() -> None:
    machine = load_machine("a64fx@256")
    assert all("-msve-vector-bits=256" in compiler.flags for compiler in machine.compilers)
    assert machine.core.microarchitecture == "A64FX@256"


def test_a_core_with_several_lengths_is_not_given_one_in_silence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.s").write_text(WHILE_LOOP, encoding="utf-8")
    bytes_of_ld1d = ["incore", "--hex", "2140e3a5"]
    for arguments in (["incore", str(tmp_path / "k.s")], bytes_of_ld1d):
        for core in ("A64FX", "V1", "TX2"):
            assert main([*arguments, "--uarch", core]) == 1
            assert "vector length is not known; say it (--vl 512" in capsys.readouterr().err
        assert main([*arguments, "--uarch", "V2"]) == 0
    assert load_machine("a64fx").core.microarchitecture == "A64FX@512"


def test_a_table_of_all_cores_names_each_length_that_the_code_may_have(tmp_path: Path) -> None:
    (tmp_path / "k.s").write_text(WHILE_LOOP, encoding="utf-8")
    (tmp_path / "neon.s").write_text(".L: fadd v0.2d, v1.2d, v2.2d\nb.ne .L\n", encoding="utf-8")

    def cores(file: str, uarch: str) -> list[str]:
        return [one.microarchitecture for one in km.analyse_loops(tmp_path / file, uarch=uarch)]

    assert cores("k.s", "all") == ["A64FX@128", "A64FX@256", "A64FX@512", "N2", "V1@128", "V1@256", "V2"]
    assert cores("k.s", "all@256") == ["A64FX@256", "V1@256"]
    assert cores("neon.s", "all") == ["A64FX", "A72", "M1", "N1", "N2", "TSV110", "TX2", "V1", "V2"]
