"""What cores do with instructions, as far as dependencies go: one hand-made loop for each rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.code.listing import read_listing
from kernmodel.incore.answer.components import bounds_of, dependency_graph
from kernmodel.incore.dependences.addresses import MemoryPolicy
from kernmodel.incore.dependences.cycles import maximum_cycle_ratio
from kernmodel.incore.engine.analyser import Analyser
from kernmodel.incore.engine.compiled import library
from kernmodel.incore.engine.modelled_core import modelled_core
from kernmodel.incore.engine.twin import PythonEngine
from kernmodel.incore.model import InstructionData, Parameters
from kernmodel.incore.tables.core_parameters import LoadParameters, RegisterParameters
from kernmodel.isa.model import Instruction

CORE = Parameters(
    name="TEST",
    title="Hand-made",
    isa="x86-64",
    ports=("0",),
    load_latency=5.0,
    store_forward_latency=4.0,
    issue_width=4,
    table="",
    aliases=(),
    sources={},
    loads=LoadParameters(pointer_chasing=True, pointer_latency=4.0, pointer_reach=2048, forwarded=2.0),
    registers=RegisterParameters(high_bytes_apart=True, false_dependencies=("popcnt",), synchronisation=1.0),
)
MERGED = replace(CORE, registers=CORE.registers._replace(high_bytes_apart=False))


def row(form: str, default: float = 1.0, **fields: object) -> InstructionData:
    base = InstructionData(form, (), {}, default, 1, None, "no", False, None, None, "hand-made")
    return replace(base, **fields)  # type: ignore[arg-type]


def stack(form: str, **latencies: float) -> InstructionData:
    pairs = {tuple(pair.split("_")): cycles for pair, cycles in latencies.items()}
    return row(form, 0.0, latencies={("rsp", "rsp"): 0.0, **pairs})


ROWS = {
    r.form: r
    for r in (
        row("mov r64,m64", 0.0, latencies={("A1", "0"): 5.0, ("X1", "0"): 5.0}),
        row("mov r32,m32", 0.0, latencies={("A1", "0"): 5.0, ("X1", "0"): 5.0}),
        row("mov m64,r64", 0.0),
        row("movaps xmm,m128", 0.0, latencies={("A1", "0"): 7.0}),
        row("movaps m128,xmm", 0.0, latencies={("1", "M0"): 1.0}),
        row("mov r64,r64", 1.0, eliminated=True),
        row("add r64,m64", 1.0, latencies={("A1", "0"): 6.0}),
        row("addps xmm,xmm", 4.0),
        row("inc m64", 1.0, latencies={("M0", "M0"): 1.0}),
        stack("push r64"),
        stack("pop r64", rsp_0=5.0, M_0=0.0),
        row("shl r64,cl", 2.0, latencies={("0", "0"): 1.0, ("1", "0"): 1.0, ("F", "0"): 0.0}),
        row("popcnt r64,r64", 3.0),
        row("lzcnt r64,r64", 3.0, latencies={("0", "0"): 0.0}),
        row("mov r8h,r8", 1.0, latencies={("0", "0"): 0.0}),
        row("cvtsi2sd xmm,r64", 4.0),
        row("sqrtsd xmm,xmm", 13.0),
        row("imul r64,r64", 3.0),
    )
}


def body(text: str) -> tuple[Instruction, ...]:
    return read_listing(text.replace(";", "\n") + "\n", "body.s", syntax="att").instructions


def rows_of(instructions: Sequence[Instruction]) -> list[InstructionData]:
    return [ROWS.get(instruction.form) or row(instruction.form) for instruction in instructions]


def lcd(text: str, core: Parameters = CORE, memory: MemoryPolicy = "moving") -> float:
    instructions = body(text)
    graph = dependency_graph(instructions, rows_of(instructions), core, memory=memory)
    cycle = maximum_cycle_ratio(len(graph.owners), graph.edges)
    return cycle.ratio if cycle else 0.0


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        # pointer chasing: straight from a load, also of 32 bits, from the stack, or through an eliminated move
        ("movq 8(%rax), %rax", 4.0),
        ("movl (%rax), %eax", 4.0),
        ("movq %rax, %rbx; movq (%rbx), %rax", 4.0),
        ("movq %rax, %rbx; movq %rbx, %rcx; movq (%rcx), %rax", 4.0),
        ("movq %rbp, %rsp; popq %rbp", 4.0),
        ("addq (%rax), %rax", 6.0),
        # not through what computes, an index, or far away
        ("movq (%rax), %rax; addq $8, %rax", 6.0),
        ("movq (%rbx,%rax), %rax", 5.0),
        ("movq 4096(%rax), %rax", 5.0),
    ],
)
def test_fast_pointer_chasing(text: str, cycles: float) -> None:
    assert lcd(text) == cycles


def test_a_register_loaded_by_itself_waits_for_its_address_once() -> None:
    """The decoder gives rdi of `mov (%rdi),%rdi` as read beside the operands, because it is written."""
    slow = row("mov r64,m64", 9.0, latencies={("A1", "0"): 5.0, ("M1", "0"): 0.0})
    instructions = body("movq (%rdi), %rdi")
    graph = dependency_graph(instructions, [slow], CORE)
    assert [edge.latency for edge in graph.edges if edge.passes] == [4.0]


def test_the_stack_engine_updates_rsp_at_no_cost_but_that_of_bringing_it_up_to_date() -> None:
    assert lcd("pushq %rax; pushq %rbx; popq %rcx; popq %rdx") == 0.0
    # one for the add, one for the µop before it
    assert lcd("addq $16, %rsp; popq %rbx; popq %rbp") == 2.0
    # rsp is up to date after the first instruction that needs it
    assert lcd("movq (%rsp), %rax; addq $16, %rsp; popq %rbx; popq %rbp") == 2.0
    assert lcd("pushq %rbx; subq $8, %rsp; subq $8, %rsp") == 3.0
    # a write of rsp makes what the engine keeps void
    assert lcd("popq %rbx; movq %rbp, %rsp; addq $8, %rsp") == 0.0


def test_facile_counts_the_stack_engine_only_before_updates_of_rsp() -> None:
    assert lcd("pushq %rbp; movq %rsp, %rbp; subq $8, %rsp") == 2.0
    assert lcd("pushq %rbp; movq %rsp, %rbp; subq $8, %rsp", memory="stack") == 1.0
    assert lcd("pushq %rbp; subq $8, %rsp", memory="stack") == 2.0


def test_variable_shifts_do_not_wait_for_the_flags_that_they_keep() -> None:
    assert lcd("leaq (%rbx), %rax; shlq %cl, %rax; testq %rax, %rax") == 0.0
    assert lcd("leaq (%rbx), %rax; shlq %cl, %rax") == 2.0  # flags do wait for flags
    assert lcd("leaq (%rbx), %rax; shlq %cl, %rax; addq $1, %rdx; adcq %rdx, %rdi") == 1.0


def test_some_instructions_wait_for_the_register_that_they_overwrite() -> None:
    assert lcd("popcntq %rax, %rbx") == 3.0
    assert lcd("lzcntq %rax, %rbx") == 0.0
    assert lcd("popcntq %rax, %rbx", replace(CORE, registers=RegisterParameters())) == 0.0


def test_high_bytes_apart_carry_values_of_their_own() -> None:
    own = "movzbl %ah, %ebx; imulq %rax, %rax; movb %bl, %ah"
    assert lcd("addb %bl, %ah; imulq %rdx, %rax; movl $0, %edx") == 4.0  # reading rax joins both
    assert lcd("imulq %rdx, %rcx; movb %cl, %ch; movl $1, %edx") == 4.0
    assert lcd("imulq %rdx, %rcx; movb %bl, %ah; movzbl %ah, %ebx") == 3.0
    assert lcd("addb $1, %al; addb $1, %ah") == 1.0
    assert lcd("addb $1, %al; addb $1, %ah", MERGED) == 2.0
    assert lcd("movb $1, %ah; addb $1, %al") == 1.0
    assert lcd("movb $1, %ah; addb $1, %al", MERGED) == 2.0
    assert lcd(own) == lcd(own, MERGED)


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        ("movb $1, %al", 1.0),
        ("movw $1, %ax", 1.0),
        ("movl $1, %eax", 0.0),
        ("sete %al", 1.0),
        ("cmoveq %rbx, %rax", 1.0),
        ("cvtsi2sdq %rax, %xmm0", 4.0),
        ("sqrtsd %xmm1, %xmm0", 13.0),
        ("movss %xmm1, %xmm0", 1.0),
        ("movss (%rax), %xmm0", 0.0),
        ("incq %rax; adcq %rbx, %rcx", 1.0),
    ],
)
def test_partial_and_conditional_writes_keep_the_old_value(text: str, cycles: float) -> None:
    assert lcd(text) == cycles


def test_push_and_pop_hand_values_on_but_not_rsp() -> None:
    assert lcd("pushq %rbp; popq %rbp") == 4.0
    assert lcd("popq %rax; imulq %rax, %rbx") == 3.0


def test_facile_takes_the_shortest_round_trip_through_memory() -> None:
    copy = "movq (%rax), %rbx; movq %rbx, (%rax)"
    assert (lcd(copy), lcd(copy, memory="stack")) == (4.0, 2.0)
    vector = "movaps (%rax), %xmm0; addps %xmm1, %xmm0; movaps %xmm0, (%rax)"
    assert (lcd(vector), lcd(vector, memory="stack")) == (4.0 + 4.0 + 1.0, 4.0 + 4.0)
    assert (lcd("incq (%rax)"), lcd("incq (%rax)", memory="stack")) == (5.0, 4.0)


# --- laws ---

_LINES = (
    "addq %{0}, %{1}",
    "movq %{0}, %{1}",
    "imulq %{0}, %{1}",
    "movq 8(%{0}), %{1}",
    "movq %{0}, 16(%{1})",
    "leaq (%{0},%{1},4), %{0}",
    "xorl %{0}, %{0}",
    "adcq %{0}, %{1}",
    "incq 8(%{0})",
    "addb $1, %{0}",
    "cmoveq %{0}, %{1}",
    "addq (%{0},%{1}), %{1}",
)
_REGISTERS = ("r8", "r9", "r10", "r11", "r12")
_PLACES = st.integers(0, len(_REGISTERS) - 1)
_LOOPS = st.lists(st.tuples(st.sampled_from(_LINES), _PLACES, _PLACES), min_size=1, max_size=8)
_POLICIES: tuple[MemoryPolicy, ...] = ("moving", "different", "stack")


def text_of(loop: list[tuple[str, int, int]], names: Sequence[str]) -> str:
    lines = []
    for line, first, second in loop:
        narrow = {"xorl": "d", "addb": "b"}.get(line.split()[0], "")
        lines.append(line.format(names[first] + narrow, names[second] + narrow))
    return ";".join(lines)


@pytest.mark.thorough
@settings(deadline=None, max_examples=60)
@given(_LOOPS, st.permutations(_REGISTERS), st.sampled_from(_POLICIES))
def test_renaming_registers_changes_nothing(
    loop: list[tuple[str, int, int]], names: list[str], memory: MemoryPolicy
) -> None:
    assert lcd(text_of(loop, names), memory=memory) == lcd(text_of(loop, _REGISTERS), memory=memory)


@pytest.mark.thorough
@settings(deadline=None, max_examples=60)
@given(_LOOPS)
def test_two_copies_of_a_body_take_twice_as_long(loop: list[tuple[str, int, int]]) -> None:
    """The unrolled notion: copies one behind the other have the dependencies of the loop.

    Addresses of unknown stride are compared within a pass only, so that two copies may show more.
    """
    text = text_of(loop, _REGISTERS)
    assert lcd(f"{text};{text}") >= 2 * lcd(text) - 1e-9
    registers = text_of([line for line in loop if "(" not in line[0] or line[0].startswith("lea")], _REGISTERS)
    if registers:
        assert lcd(f"{registers};{registers}") == pytest.approx(2 * lcd(registers))


@settings(deadline=None, max_examples=40)
@given(_LOOPS, st.sampled_from(_POLICIES))
def test_both_engines_make_the_same_graph(loop: list[tuple[str, int, int]], memory: MemoryPolicy) -> None:
    if library() is None:
        pytest.skip("the engine was not built")
    instructions = body(text_of(loop, _REGISTERS))
    model = modelled_core(CORE, memory)
    analysers = [Analyser(model), Analyser(model, engine=PythonEngine(model))]
    graphs = [bounds_of(instructions, rows_of(instructions), own, "loop", 0).graph for own in analysers]
    assert graphs[0] == graphs[1]


@settings(deadline=None, max_examples=40)
@given(_LOOPS)
def test_edges_within_a_pass_lead_forwards_and_vertices_stand_in_program_order(
    loop: list[tuple[str, int, int]],
) -> None:
    instructions = body(text_of(loop, _REGISTERS))
    graph = dependency_graph(instructions, rows_of(instructions), CORE)
    assert all(edge.source < edge.target for edge in graph.edges if not edge.passes)
    assert all(first <= second for first, second in pairwise(graph.owners))
    assert len(graph.owners) == len(graph.carriers) == len(graph.entry)
