"""The analysis with the carried tables."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from subprocess import run

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.code.listing import read_listing
from kernmodel.code.model import AssemblyLoop
from kernmodel.errors import StrictError, refuse_warnings
from kernmodel.incore.answer.analyse import PortModel, analyse
from kernmodel.incore.engine.ports import optimal_bound
from kernmodel.incore.model import FrontEnd, InCore, InstructionData, Parameters, PortUse
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.isa.model import Instruction
from kernmodel.report.text.reasons import reason_text

TRIAD = """.L10:
vmovapd (%r15,%rax), %ymm0
vmovapd (%r12,%rax), %ymm3
vfmadd132pd 0(%r13,%rax), %ymm3, %ymm0
vmovapd %ymm0, (%r14,%rax)
addq $32, %rax
cmpq %rcx, %rax
jne .L10
"""


@cache
def core(name: str) -> tuple[Parameters, InstructionTable]:
    parameters = load_parameters(name)
    return parameters, InstructionTable.open(parameters)


@cache
def loop_of(text: str) -> AssemblyLoop:
    listing = read_listing(text.replace(";", "\n") + "\n", "body.s", syntax="att")
    return AssemblyLoop(listing.instructions, listing.isa, "att", "body.s", "", 4.0, (), "", "main", ())


def answer(text: str, name: str = "SKL", port_model: PortModel = "optimal", offset: int = 16) -> InCore:
    """At an offset at which no branch of TRIAD meets the JCC erratum."""
    return analyse(loop_of(text), *core(name), port_model=port_model, offset=offset)


def test_the_headline_is_the_larger_bound_with_its_reason() -> None:
    by_ports = answer(TRIAD)
    assert (by_ports.prediction, by_ports.bound_by, by_ports.throughput) == (2.0, "throughput", 2.0)
    assert by_ports.binding_ports == ("2", "3")
    assert reason_text(by_ports.reason) == "ports 2, 3 are busy 2.00 cycles per pass with 3× vmovapd, vfmadd132pd"
    by_chain = answer("vaddsd %xmm1, %xmm0, %xmm0")
    assert (by_chain.prediction, by_chain.bound_by) == (4.0, "dependency")
    assert (
        reason_text(by_chain.reason)
        == "the dependency chain from pass to pass takes 4.00 cycles per pass: vaddsd (zmm0)"
    )
    assert by_chain.iterations_per_pass == 4.0


def test_the_reason_names_only_the_first_of_many() -> None:
    chain = answer("mulsd %xmm1, %xmm0;addsd %xmm2, %xmm0;subsd %xmm3, %xmm0;divsd %xmm4, %xmm0;maxsd %xmm5, %xmm0")
    assert reason_text(chain.reason).endswith("(zmm0) → … (1 more)")
    assert reason_text(chain.reason).count(" → ") == 4
    ports = tuple("abcdefghi")
    parameters = replace(core("SKL")[0], ports=ports, issue_width=16, front_end=None, pipeline=None)

    class Everywhere:
        def lookup(self, instruction: Instruction) -> InstructionData:
            return vector(instruction.form, *ports)

    wide = analyse(
        loop_of(";".join(f"vaddpd %ymm{k}, %ymm15, %ymm{k + 7}" for k in range(7))), parameters, Everywhere()
    )
    assert wide.binding_ports == ports
    assert reason_text(wide.reason).startswith("ports a, b, c, d and 5 more are busy")


def test_rows_sum_to_the_shown_totals() -> None:
    for port_model in ("optimal", "even"):
        result = answer(TRIAD, port_model=port_model)  # type: ignore[arg-type]
        for number, total in enumerate(result.port_sums):
            assert total == pytest.approx(sum(row.pressure[number] for row in result.rows))
        assert max(result.port_sums) == pytest.approx(result.throughput)
        shares = [row.on_critical_path for row in result.rows if row.on_critical_path is not None]
        assert sum(shares) == pytest.approx(result.critical_path.cycles)
        assert result.lcd is not None
        assert sum(row.on_lcd or 0.0 for row in result.rows) == pytest.approx(result.lcd.cycles)


def test_compare_and_branch_fuse_and_take_the_ports_of_the_branch() -> None:
    compare, branch = answer(TRIAD).rows[-2:]
    assert compare.eliminated
    assert sum(compare.pressure) == 0.0
    assert sum(branch.pressure) == 1.0
    assert branch.pressure[core("SKL")[0].ports.index("6")] == 1.0


def test_a_compare_with_memory_keeps_its_load_when_fused() -> None:
    compare = answer(".L1: addq $8, %rax; cmpq %rcx, (%rax); jne .L1").rows[1]
    ports = core("SKL")[0].ports
    assert sum(compare.pressure[ports.index(port)] for port in ("2", "3")) == 1.0
    assert sum(compare.pressure[ports.index(port)] for port in ("0", "1", "5", "6")) == 0.0
    assert not compare.eliminated


def test_instructions_that_cannot_fuse_keep_their_port() -> None:
    apart = answer(".L1: cmpq %rcx, %rax; leaq 8(%rax), %rax; jne .L1")
    carry_after_inc = answer(".L1: incq %rax; ja .L1")
    assert sum(apart.rows[0].pressure) == 1.0
    assert sum(carry_after_inc.rows[0].pressure) == 1.0


def test_the_even_model_has_no_fusion_and_no_branch_ports() -> None:
    compare, branch = answer(TRIAD, port_model="even").rows[-2:]
    ports = core("SKL")[0].ports
    assert [compare.pressure[ports.index(port)] for port in ("0", "1", "5", "6")] == [0.25] * 4
    assert sum(branch.pressure) == 0.0


def test_an_indexed_store_takes_its_own_row() -> None:
    """Port 7 has no adder for an index (Intel optimization manual, Haswell)."""
    ports = core("SKL")[0].ports
    indexed = answer("vmovapd %ymm0, (%rax,%rcx)", port_model="even").rows[0]
    simple = answer("vmovapd %ymm0, (%rax)", port_model="even").rows[0]
    assert indexed.pressure[ports.index("7")] == 0.0
    assert simple.pressure[ports.index("7")] == pytest.approx(1 / 3)


def test_unknown_instructions_are_shown_counted_as_uncertain_and_refused_when_strict() -> None:
    class Without:
        def lookup(self, instruction: object) -> None:
            return None

    result = analyse(loop_of("addq $8, %rax; nop"), core("SKL")[0], Without())
    assert result.uncertain == ("add r64,i8", "nop")
    assert [row.known for row in result.rows] == [False, False]
    assert result.prediction == 0.0
    first = result.notes[0]
    assert (first.code, first.kind, str(first.where)) == ("unknown-instruction", "warning", "body.s:1")
    with pytest.raises(StrictError, match="no row in the instruction table of SKL"):
        refuse_warnings(result.notes)


def test_a_region_without_branch_is_analysed_as_a_loop_body_and_says_so() -> None:
    notes = answer("vaddsd %xmm1, %xmm0, %xmm0").notes
    assert [(note.code, note.kind) for note in notes] == [("no-branch", "assumption")]
    assert "no-branch" not in [note.code for note in answer(TRIAD).notes]


def test_an_empty_region_takes_no_time() -> None:
    result = analyse(replace(loop_of("nop"), instructions=()), *core("SKL"))
    assert (result.prediction, result.lcd, result.critical_path.members) == (0.0, None, ())
    assert result.port_sums == (0.0,) * len(result.ports)


def vector(form: str, *ports: str) -> InstructionData:
    front = FrontEnd(1, 1, 0, complex_decoder=False, simple_decoders=4, fusible_with=())
    return InstructionData(form, (PortUse(ports, 1.0),), {}, 1.0, 1, None, "no", False, front, None, "test")


class Vectors:
    def lookup(self, instruction: object) -> InstructionData:
        form: str = instruction.form  # type: ignore[attr-defined]
        ports = {"vaddpd zmm,zmm,zmm": ("0", "5"), "imul r64,r64": ("1",), "vaddpd ymm,ymm,ymm": ("0", "1")}
        return vector(form, *ports[form])


def test_512_bit_registers_close_the_vector_units_of_a_port() -> None:
    """Field of the parameters, not of the code: xmm and ymm µops lose port 1, integer µops keep it."""
    parameters = replace(core("SKL")[0], front_end=None, pipeline=None, closed_by_widest="1")
    wide = "vaddpd %zmm0, %zmm1, %zmm2; vaddpd %ymm3, %ymm4, %ymm5; imulq %rax, %rbx"
    uses = analyse(loop_of(wide), parameters, Vectors()).uses
    assert [use.ports for row in uses for use in row] == [("0", "5"), ("0",), ("1",)]
    narrow = "vaddpd %ymm3, %ymm4, %ymm5; imulq %rax, %rbx"
    uses = analyse(loop_of(narrow), parameters, Vectors()).uses
    assert [use.ports for row in uses for use in row] == [("0", "1"), ("1",)]
    elsewhere = analyse(loop_of(wide), replace(parameters, closed_by_widest=None), Vectors()).uses
    assert elsewhere[1][0].ports == ("0", "1")


def test_a_measured_throughput_beyond_the_ports_bounds_the_pass() -> None:
    class Locked:
        def lookup(self, instruction: object) -> InstructionData:
            return replace(vector("lock add m64,r64", "0"), throughput=18.0)

    result = analyse(loop_of("lock addq %rax, (%rbx); lock addq %rax, 64(%rbx)"), core("SKL")[0], Locked())
    assert (result.throughput, result.binding_ports) == (36.0, ())
    assert "measured reciprocal throughput" in reason_text(result.reason)


def test_the_uses_of_the_answer_give_its_bound() -> None:
    result = answer(TRIAD)
    assert optimal_bound(use for row in result.uses for use in row)[0] == result.throughput


def test_the_analysis_needs_no_heavy_module() -> None:
    code = (
        "import sys, kernmodel.incore.answer.analyse; "
        "print(sorted({'numpy', 'sympy', 'networkx', 'scipy', 'pint'} & set(sys.modules)))"
    )
    assert run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


# --- laws ------------------------------------------------------------------------------------------------------------

POOL = (
    "vaddpd %ymm{a}, %ymm{b}, %ymm{c}",
    "vfmadd231pd %ymm{a}, %ymm{b}, %ymm{c}",
    "vmulpd (%r{m}), %ymm{a}, %ymm{b}",
    "vmovapd %ymm{a}, 32(%r{m})",
    "vdivpd %ymm{a}, %ymm{b}, %ymm{c}",
    "vxorpd %xmm{a}, %xmm{a}, %xmm{a}",
    "vmovapd %ymm{a}, %ymm{b}",
    "vmovsd (%rsp), %xmm{a}",
    "vmovsd %xmm{a}, (%rsp)",
    "vcvtsi2sdq %r{m}, %xmm{a}, %xmm{b}",
    "addq $8, %r{m}",
    "imulq %r{n}, %r{m}",
    "adcq %r{n}, %r{m}",
)


@st.composite
def bodies(draw: st.DrawFn, most: int = 7) -> list[str]:
    register = st.integers(0, 4)
    pointer = st.integers(8, 11)
    lines = []
    for _ in range(draw(st.integers(1, most))):
        fields = {"a": draw(register), "b": draw(register), "c": draw(register), "m": draw(pointer), "n": draw(pointer)}
        lines.append(draw(st.sampled_from(POOL)).format(**fields))
    return lines


def lcd_of(result: InCore) -> float:
    return result.lcd.cycles if result.lcd else 0.0


@settings(deadline=None, max_examples=40)
@given(bodies(), st.sampled_from(["SKL", "ZEN2"]), st.sampled_from(["optimal", "even"]))
def test_unrolling_by_two_leaves_the_cycles_per_iteration_alone(lines: list[str], name: str, model: PortModel) -> None:
    once, twice = answer(";".join(lines), name, model), answer(";".join(lines + lines), name, model)
    assert twice.throughput == pytest.approx(2 * once.throughput)
    assert lcd_of(twice) == pytest.approx(2 * lcd_of(once))
    if not once.components:  # the front end sees other code
        assert twice.prediction == pytest.approx(2 * once.prediction)


def renamed(line: str, vectors: list[int], pointers: list[int]) -> str:
    words = line.replace("(", "( ").replace(")", " )").replace(",", " ,").split()
    for position, word in enumerate(words):
        if word.startswith(("%ymm", "%xmm")):
            words[position] = word[:4] + str(vectors[int(word[4:])])
        elif word.startswith("%r") and word[2:].isdigit():
            words[position] = f"%r{pointers[int(word[2:]) - 8]}"
    return " ".join(words)


@settings(deadline=None, max_examples=40)
@given(
    bodies(),
    bodies(2),
    st.randoms(use_true_random=False),
    st.permutations(range(5)),
    st.permutations(range(8, 12)),
)
def test_laws_of_bounds(
    lines: list[str], more: list[str], random: object, vectors: list[int], pointers: list[int]
) -> None:
    """Of a body without branch: its order, the names of its registers, the port model, more instructions, its chain."""
    text = ";".join(lines)
    result = answer(text)
    shuffled = answer(";".join(sorted(lines, key=lambda _: random.random())))  # type: ignore[attr-defined]
    assert shuffled.throughput == pytest.approx(result.throughput)
    others = answer(";".join(renamed(line, vectors, pointers) for line in lines))
    assert others.port_sums == pytest.approx(result.port_sums)
    assert lcd_of(others) == pytest.approx(lcd_of(result))
    assert others.critical_path.cycles == pytest.approx(result.critical_path.cycles)
    even = answer(text, port_model="even")
    assert even.throughput >= result.throughput - 1e-9
    assert lcd_of(even) == lcd_of(result)
    assert answer(";".join(lines + more)).throughput >= result.throughput - 1e-9
    # a cycle over one pass, cut at its back edge, is a path of the pass, and that edge is paid by its first member
    through_memory = result.lcd is not None and any(name.startswith("memory") for name in result.lcd.carriers)
    if result.lcd is not None and result.lcd.passes == 1 and not through_memory:
        assert result.lcd.cycles <= result.critical_path.cycles + 1e-9
