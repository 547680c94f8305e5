"""A second instruction set takes one folder: from its listing to the ECM report, by hand-computed numbers.

daxpy on the toy core, per pass of four iterations: pipe 0 takes both write-backs, the fma, the comparison and the
branch, 5 cycles; pipe 1 two loads and a store, 3 cycles. A cache line is two passes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from toy import Toy

import kernmodel as km
from kernmodel import isa
from kernmodel.cli.main import main
from kernmodel.code.listing import read_listing
from kernmodel.code.loops import control_flow
from kernmodel.code.strides import analyse, loop_strides
from kernmodel.errors import AssemblyError
from kernmodel.incore.engine import analyser

FOLDER = Path(__file__).parent
LISTING, KERNEL, MACHINE, CORE = (str(FOLDER / name) for name in ("daxpy.s", "daxpy.c", "toy_machine.yml", "TOY.yml"))
CODE = km.CodeOptions(asm=LISTING)
SUM = """
.loop:  ldi v1, [r1], 32
        ldi v2, [r1], 32
        fadd v3, v3, v1
        fadd v4, v4, v2
        cmp r1, r2
        bne .loop
"""
PREFIX_SUM = """
.loop:  ldi v1, [r1], 32
        fadd v1, v1, v0
        st v1, [r1]         // what the next pass loads
        cmp r1, r2
        bne .loop
"""
COUNTED = """
        add r2, r1, 512
.loop:  ldi v1, [r1], 32
        ldi v2, [r1], 32
        st v2, [r1-64]
        cmp r1, r2
        bne .loop
"""
X86 = """
.L3:    vmovupd (%rsi,%rax), %ymm1
        vfmadd213pd (%rdi,%rax), %ymm0, %ymm1
        vmovupd %ymm1, (%rdi,%rax)
        addq $32, %rax
        cmpq %rax, %rdx
        jne .L3
"""


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The instruction set is known in these tests only, and its core is found by the name that the machine gives."""
    monkeypatch.setattr(isa, "_known", dict(isa._known))
    monkeypatch.setenv("KERNMODEL_UARCH_PATH", str(FOLDER))
    isa.register(Toy())
    yield
    isa.isa_of.cache_clear()


# ---- listing → loop


def strides_of(text: str) -> tuple[list[int | None], int | None]:
    listing = read_listing(text, "k.s", isa_name="toy")
    flow = control_flow(listing)
    (loop,) = flow.loops
    found = loop_strides(analyse(listing, flow), loop)
    return [stream.stride_bytes for stream in found.streams], found.passes


def test_listing() -> None:
    listing = read_listing(Path(LISTING).read_text(encoding="utf-8"), LISTING)
    assert (listing.isa, listing.syntax) == ("toy", "toy")
    assert listing.labels == (("daxpy", 0), (".loop", 0))
    assert [one.form for one in listing.instructions] == [
        "ldi v,m256,i", "ldi v,m256,i", "fma v,v,v", "st v,m256", "cmp r,r", "bne rel", "ret",
    ]  # fmt: skip
    assert [one.line for one in listing.instructions] == [3, 4, 5, 6, 7, 8, 9]


def test_what_is_no_instruction_is_named_with_its_line() -> None:
    with pytest.raises(AssemblyError, match=r"k\.s:2: 'fma v1, r0, v0' is no instruction of toy"):
        read_listing("nop\nfma v1, r0, v0\n", "k.s", isa_name="toy")


def test_strides_go_through_write_backs() -> None:
    listing = read_listing(Path(LISTING).read_text(encoding="utf-8"), LISTING)
    assert strides_of(Path(LISTING).read_text(encoding="utf-8")) == ([32, 32, 32], None)
    assert [reference.displacement for one in listing.instructions for reference in one.memory] == [0, 0, -32]
    # two write-backs of one base, and 512 bytes in steps of 64
    assert strides_of(COUNTED) == ([64, 64, 64], 8)


# ---- mix


def test_mix() -> None:
    mix = km.mix(LISTING).answer.mix
    assert (mix.loads, mix.stores, mix.other) == (2, 1, 2)
    assert [(kind.store, kind.size_bytes, count) for kind, count in mix.memory] == [(False, 32, 2), (True, 32, 1)]
    ((kind, count),) = mix.fp
    assert (kind.operation, kind.precision, kind.lanes, count) == ("fma", "DP", 4, 1)
    assert "intensity (CARM)    0.08333 FLOP/B" in km.mix(LISTING).text()  # 8 FLOP on 96 B


# ---- in-core


@pytest.mark.parametrize("engine", ["compiled", "twin"])
def test_in_core(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if engine == "twin":
        monkeypatch.setattr(analyser, "knows", lambda _: False)
    answer = km.analyse_loop(LISTING, uarch="TOY").answer.incore
    assert answer.ports == ("0", "1") and tuple(answer.port_sums) == (5, 3)
    assert (answer.throughput, answer.lcd.cycles, answer.prediction) == (5, 3, 5)
    assert answer.critical_path.cycles == 6 + 5 + 1  # ldi, fma, st


@pytest.mark.parametrize(
    ("text", "ports", "cycles", "carried"),
    [
        (SUM, (6, 2), 3 + 3, ("r1", "r1")),  # the write-backs wait for one another, not for the loads
        (PREFIX_SUM, (4, 2), 7 + 4 + 1, ("v1", "v1", "memory [r1]")),  # forwarded, fadd, st
    ],
)
def test_chains_through_the_base_and_through_memory(
    text: str, ports: tuple[int, int], cycles: float, carried: tuple[str, ...]
) -> None:
    answer = km.analyse_loop(text, uarch="TOY").answer.incore
    assert tuple(answer.port_sums) == ports
    assert answer.lcd.cycles == answer.prediction == cycles
    assert answer.lcd.carriers == carried


@pytest.mark.parametrize("core", ["plaything", CORE])
def test_chains_are_explained_and_drawn(core: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if core == CORE:  # found by its path alone
        monkeypatch.delenv("KERNMODEL_UARCH_PATH")
    result = km.analyse_loop(LISTING, uarch=core, explain=True, core=km.CoreOptions(align="all"))
    assert "port 0 is busy 5.00 cycles per pass with 2× ldi, fma, cmp, bne" in result.text()
    assert [each.offsets for each in result.alignments] == [tuple(range(64))]
    result.graph(str(tmp_path / "g.dot"))
    assert "ldi v1, [r0], 32" in (tmp_path / "g.dot").read_text(encoding="utf-8")


# ---- ECM, report


def test_machine() -> None:
    machine = km.load_machine(MACHINE).answer
    assert (machine.isa, machine.core.microarchitecture) == ("toy", "TOY")
    assert not machine.stores.streaming  # as the instruction set says, for the file says nothing


def test_ecm() -> None:
    answer = km.ecm(KERNEL, MACHINE, code=CODE).answer
    assert answer.loop.iterations_per_pass == 4
    prediction = answer.prediction
    assert (prediction.t_ol, prediction.t_nol) == (2 * 5, 2 * 3)
    # x and y in, y out: 3 lines of 64 B, at 32 B/cy; and of the 8 cy that one core's stream of loads takes for a line
    # from memory, 2 are the loads and 2 L1L2
    assert [one.cycles for one in prediction.transfers] == pytest.approx([6, 3 * (8 - 2 - 2)])
    assert prediction.cycles == pytest.approx(6 + 6 + 12)


def test_report_in_text_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["ecm", "-m", MACHINE, KERNEL, "--asm", LISTING]
    assert main([*command, "-v"]) == 0
    text = capsys.readouterr().out
    assert "{10.0 ‖ 6.0 | 6.0 | 12.0} cy/CL" in text
    assert "Assembly loop (toy syntax)" in text and "ldi v2, [r1], 32" in text
    assert main([*command, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["microarchitecture"]["isa"] == document["code"]["loop"]["isa"] == "toy"
    assert [stream["stride_bytes"] for stream in document["code"]["loop"]["streams"]] == [32, 32, 32]
    assert (document["prediction"]["t_ol"], document["prediction"]["t_nol"]) == (10, 6)


def test_roofs_stand_on_its_forms() -> None:
    text = km.roofline_chart(KERNEL, MACHINE, code=CODE).text()
    assert "DP 4 lanes FMA  " in text and "fma v,v,v every 1 cy on the ports of TOY" in text
    assert "32 B/cy by the ports of TOY (ld v,m256, st v,m256)" in text


# ---- what is of another instruction set


def test_mismatches_say_which_is_which(tmp_path: Path) -> None:
    theirs = tmp_path / "x86.s"
    theirs.write_text(X86, encoding="utf-8")
    with pytest.raises(AssemblyError, match=r"daxpy\.s: looks like toy assembly, not x86-64"):
        _ = km.ecm(KERNEL, "clx", code=CODE).answer
    with pytest.raises(AssemblyError, match=r"x86\.s: looks like x86-64 assembly, not toy"):
        _ = km.ecm(KERNEL, MACHINE, code=replace(CODE, asm=str(theirs))).answer
    with pytest.raises(AssemblyError, match=r"daxpy\.s: looks like toy assembly, not x86-64"):
        _ = km.analyse_loop(LISTING, uarch="SKL").answer
    with pytest.raises(AssemblyError, match=r"x86\.s: looks like x86-64 assembly, not toy"):
        _ = km.analyse_loop(str(theirs), uarch="TOY").answer
    on_toy, on_skylake = (one.error for one in km.analyse_loops(LISTING, uarch="TOY,SKL"))
    assert on_toy is None and on_skylake == "is toy code, but Intel Skylake (client) executes x86-64"


class Silent(Toy):
    """The same, not told from others by its texts."""

    def evidence(self, text: str) -> int | None:
        return None


@pytest.mark.parametrize("cores", ["TOY", "TOY," + CORE])
def test_listings_that_no_text_tells_are_what_the_core_executes(cores: str) -> None:
    isa.register(Silent())
    assert [one.answer.incore.prediction for one in km.analyse_loops(LISTING, uarch=cores)] == [5] * len(
        cores.split(",")
    )
    assert km.analyse_loop(LISTING, uarch="TOY").answer.incore.prediction == 5


def test_a_machine_has_a_core_of_its_instruction_set(tmp_path: Path) -> None:
    text = Path(MACHINE).read_text(encoding="utf-8")
    (tmp_path / "m.yml").write_text(text.replace("isa: toy", "isa: x86-64"), encoding="utf-8")
    with pytest.raises(km.KernmodelError, match=r"isa: is x86-64, but TOY is toy"):
        _ = km.ecm(KERNEL, str(tmp_path / "m.yml"), code=CODE).answer


def test_what_it_has_not_is_said() -> None:
    with pytest.raises(AssemblyError, match="toy machine code cannot be decoded; give an assembly listing"):
        _ = km.analyse_loop(km.Loop(hex_digits="00000000"), uarch="TOY").answer
