"""The dependency rules, on hand-made table rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernmodel.code.listing import read_listing
from kernmodel.code.model import AssemblyLoop
from kernmodel.incore.answer.analyse import analyse
from kernmodel.incore.model import Chain, InCore, InstructionData, Parameters
from kernmodel.incore.tables.core_parameters import LoadParameters
from kernmodel.isa.model import Instruction

PARAMETERS = Parameters(
    name="TEST",
    title="Hand-made",
    isa="x86-64",
    ports=("0", "1"),
    load_latency=5.0,
    store_forward_latency=4.0,
    issue_width=4,
    table="",
    aliases=(),
    sources={},
)


def row(form: str, default: float = 1.0, **fields: object) -> InstructionData:
    latencies = fields.pop("latencies", {})
    base = InstructionData(
        form=form,
        ports=(),
        latencies=latencies,  # type: ignore[arg-type]
        default_latency=default,
        uops=1,
        throughput=None,
        breaks_dependency="no",
        eliminated=False,
        front_end=None,
        indexed=None,
        source="hand-made",
    )
    return replace(base, **fields)  # type: ignore[arg-type]


class HandMade:
    """Rows by form; what is not listed has a latency of 1."""

    def __init__(self, *rows: InstructionData) -> None:
        self.rows = {r.form: r for r in rows}

    def lookup(self, instruction: Instruction) -> InstructionData:
        return self.rows.get(instruction.form) or row(instruction.form)


def loop_of(text: str) -> AssemblyLoop:
    listing = read_listing(text.replace(";", "\n") + "\n", "body.s", syntax="att")
    return AssemblyLoop(listing.instructions, listing.isa, "att", "body.s", "", None, (), "", "marked", ())


def answer(text: str, *rows: InstructionData, parameters: Parameters = PARAMETERS) -> InCore:
    return analyse(loop_of(text), parameters, HandMade(*rows))


def lcd(text: str, *rows: InstructionData, parameters: Parameters = PARAMETERS) -> float:
    chain = answer(text, *rows, parameters=parameters).lcd
    return chain.cycles if chain else 0.0


ADD = row("vaddsd xmm,xmm,xmm", 4.0)
FMA = row("vfmadd231sd xmm,xmm,xmm", 4.0, latencies={("0", "0"): 2.0})
LOAD = row("mov r64,m64", 0.0, latencies={("A1", "0"): 5.0, ("X1", "0"): 6.0})
STORE = row("vmovsd m64,xmm", 0.0, latencies={("1", "M0"): 1.0, ("A0", "M0"): 7.0})
LOAD_SD = row("vmovsd xmm,m64", 0.0, latencies={("A1", "0"): 7.0})


def test_latency_belongs_to_the_pair_of_operands() -> None:
    assert lcd("vfmadd231sd %xmm1, %xmm2, %xmm0", FMA) == 2.0
    assert lcd("vfmadd231sd %xmm0, %xmm2, %xmm0", FMA) == 4.0


def test_only_flow_dependencies_count() -> None:
    """Overwriting a register (WAW) or what another instruction read before (WAR) is no dependency: it is renamed."""
    assert answer("vaddsd %xmm1, %xmm2, %xmm0; vaddsd %xmm0, %xmm3, %xmm4; vaddsd %xmm1, %xmm2, %xmm0", ADD).lcd is None


def test_a_chain_over_two_registers_spans_two_passes() -> None:
    chain = answer("vaddsd %xmm0, %xmm2, %xmm3; vaddsd %xmm1, %xmm2, %xmm0; vmovapd %xmm3, %xmm1", ADD).lcd
    assert chain is not None
    assert (chain.cycles, chain.passes) == (4.5, 2)


def test_narrow_writes_wait_for_the_old_value_and_32_bit_writes_do_not() -> None:
    assert lcd("movb $1, %al") == 1.0
    assert lcd("movl $1, %eax") == 0.0


def test_merging_scalar_operations_wait_for_their_destination() -> None:
    assert lcd("cvtsi2sdq %rax, %xmm0", row("cvtsi2sd xmm,r64", 4.0)) == 4.0
    assert lcd("vcvtsi2sdq %rax, %xmm1, %xmm0", row("vcvtsi2sd xmm,xmm,r64", 4.0)) == 0.0


def test_zero_idioms_break_chains_at_rename() -> None:
    zero = row("vxorpd xmm,xmm,xmm", 1.0, breaks_dependency="zero")
    text = "vxorpd %xmm0, %xmm0, %xmm0; vaddsd %xmm1, %xmm0, %xmm0"
    assert lcd(text, zero, ADD) == 0.0
    assert answer(text, zero, ADD).critical_path.cycles == 4.0
    assert answer(text, zero, ADD).rows[0].eliminated
    assert not answer("vxorpd %xmm0, %xmm1, %xmm0", zero).rows[0].eliminated
    assert lcd("vxorpd %xmm0, %xmm1, %xmm0", zero) == 1.0


def test_dependency_breakers_execute() -> None:
    breaker = row("vpcmpeqd xmm,xmm,xmm", 1.0, breaks_dependency="dependency")
    assert lcd("vpcmpeqd %xmm0, %xmm0, %xmm0", breaker) == 0.0
    assert not answer("vpcmpeqd %xmm0, %xmm0, %xmm0", breaker).rows[0].eliminated
    # the register does not matter, but the carry flag does
    assert lcd("sbbq %rax, %rax", row("sbb r64,r64", breaks_dependency="dependency")) == 1.0


def test_eliminated_moves_take_no_time() -> None:
    move = row("mov r64,r64", 1.0, eliminated=True)
    assert lcd("movq %rax, %rbx; addq %rbx, %rax", move) == 1.0
    assert lcd("movq %rax, %rax; addq $1, %rax", move) == 2.0
    assert not answer("movq %rax, %rax", move).rows[0].eliminated


def test_carry_flag_apart_from_the_others() -> None:
    """inc leaves the carry flag alone, so a chain of adc passes it."""
    adc = row("adc r64,r64", 2.0)
    assert lcd("adcq %rax, %rbx; incq %rcx", adc) == 2.0
    assert lcd("adcq %rax, %rbx; addq $8, %rcx", adc) == 2.0
    chain = answer("adcq %rax, %rdx; movq %rsi, %rdx; incq %rcx", adc).lcd
    assert chain is not None
    assert chain.carriers == ("flags",)
    broken = answer("adcq %rax, %rdx; movq %rsi, %rdx; addq $8, %rcx", adc).lcd
    assert broken is not None
    assert broken.carriers == ("rcx",)


def test_carry_latency_where_it_differs() -> None:
    apart = row("adc r64,r64", 1.0, latencies={("C", "C"): 3.0})
    chain = answer("adcq %rax, %rdx; movq %rsi, %rdx", apart).lcd
    assert chain is not None
    assert (chain.cycles, chain.carriers) == (3.0, ("carry flag",))


def test_branches_carry_nothing() -> None:
    result = answer("1: cmpq %rax, %rbx; jne 1b")
    assert result.lcd is None
    assert result.rows[1].latency == 0.0


def test_address_and_data_latency_of_a_load_differ() -> None:
    assert lcd("movq (%rax), %rax", LOAD) == 5.0
    assert lcd("movq (%rbx,%rax), %rax", LOAD) == 6.0
    added = row("vaddsd xmm,xmm,m64", 4.0, latencies={("A2", "0"): 11.0})
    assert lcd("vaddsd (%rax), %xmm0, %xmm0", added) == 4.0
    assert answer("vaddsd (%rax), %xmm0, %xmm0", added).critical_path.cycles == 11.0


def test_an_unlisted_address_latency_is_that_of_the_load_and_the_operation() -> None:
    assert lcd("addq (%rax), %rax", row("add r64,m64", 1.0)) == 6.0


def test_fast_pointer_chasing_needs_a_loaded_base_and_nothing_else() -> None:
    fast = replace(PARAMETERS, loads=LoadParameters(pointer_chasing=True, pointer_latency=4.0, pointer_reach=2048))
    assert lcd("movq 8(%rax), %rax", LOAD, parameters=fast) == 4.0
    assert lcd("movq 2048(%rax), %rax", LOAD, parameters=fast) == 5.0
    assert lcd("movq (%rbx,%rax), %rax", LOAD, parameters=fast) == 6.0
    assert lcd("movq (%rax), %rax; addq $8, %rax", LOAD, parameters=fast) == 6.0


def test_store_to_load_forwarding_takes_the_data_not_the_address() -> None:
    text = "vmovsd (%rsp), %xmm0; vaddsd %xmm1, %xmm0, %xmm0; vmovsd %xmm0, (%rsp)"
    chain = answer(text, ADD, STORE, LOAD_SD).lcd
    assert chain is not None
    # add 4, store data 1, forward 4
    assert chain.cycles == 9.0
    assert chain.members == (0, 1, 2)
    assert chain.carriers == ("zmm0", "zmm0", "memory (%rsp)")


def test_the_chain_does_not_run_through_the_address_of_a_store() -> None:
    """A store with a moving address (`str d5,[x14],8` of OSACA's ThunderX2 example) carries its data only."""
    text = "vmovsd (%rbx), %xmm0; vmovsd %xmm1, (%rbx,%rax); vaddsd (%rcx), %xmm0, %xmm2; imulq $3, %rax, %rax"
    result = answer(text, STORE, LOAD_SD, row("imul r64,r64,i8", 3.0))
    assert result.lcd is not None
    assert (result.lcd.cycles, result.lcd.carriers) == (3.0, ("rax",))


def test_gauss_seidel_in_place_is_bound_through_memory() -> None:
    text = """vmovsd -8(%rdi,%rax,8), %xmm0; vaddsd 8(%rdi,%rax,8), %xmm0, %xmm0
              vmulsd %xmm1, %xmm0, %xmm0; vmovsd %xmm0, (%rdi,%rax,8); incq %rax"""
    added = row("vaddsd xmm,xmm,m64", 4.0, latencies={("A2", "0"): 11.0})
    chain = answer(text, added, STORE, LOAD_SD, row("vmulsd xmm,xmm,xmm", 4.0)).lcd
    assert chain is not None
    assert chain.cycles == 4.0 + 4.0 + 1.0 + 4.0
    assert chain.carriers[-1] == "memory (%rdi,%rax,8)"


def test_a_dependency_over_more_passes_counts_less() -> None:
    text = "vmovsd -{}(%rax), %xmm0; vaddsd %xmm1, %xmm0, %xmm0; vmovsd %xmm0, (%rax); addq $8, %rax"
    by_distance = [lcd(text.format(8 * k), ADD, STORE, LOAD_SD) for k in (1, 2, 3)]
    assert by_distance == [9.0, 4.5, 3.0]


def test_read_modify_write_in_place() -> None:
    rmw = row("add m64,r64", 1.0, latencies={("A0", "M0"): 6.0, ("A0", "F"): 6.0})
    assert lcd("addq %rax, (%rdi)", rmw) == 5.0
    assert answer("addq %rax, (%rdi); addq $8, %rdi", rmw).lcd == Chain(1.0, (1,), ("rdi",), 1)


def test_the_stack_pointer_waits_for_nothing_that_is_pushed_or_popped() -> None:
    push, pop = row("push r64", 0.0), row("pop r64", 0.0, latencies={("rsp", "0"): 5.0})
    result = answer("movq (%rsp), %rbx; pushq %rbx; popq %rcx; popq %rdx", push, pop, LOAD)
    assert result.lcd is None


def test_partial_forwarding_is_a_warning() -> None:
    notes = answer("vmovsd %xmm0, (%rsp); vmovapd (%rsp), %xmm1").notes
    assert [note.code for note in notes if note.kind == "warning"] == ["store-forward-blocked"]


def test_critical_path_starts_with_its_load_and_ends_with_the_last_latency() -> None:
    path = answer("vmovsd (%rax), %xmm0; vaddsd %xmm0, %xmm1, %xmm2; vmovsd %xmm2, (%rbx)", ADD, STORE, LOAD_SD)
    assert path.critical_path.cycles == 7.0 + 4.0 + 1.0
    assert [r.on_critical_path for r in path.rows] == [7.0, 4.0, 1.0]
    assert path.critical_path.carriers == ("zmm0", "zmm2", "memory (%rbx)")


@pytest.mark.parametrize(
    ("memory", "att", "intel"),
    [
        ("8(%rax,%rcx,2)", "memory 8(%rax,%rcx,2)", "memory [rax+rcx*2+8]"),
        ("(,%rcx,8)", "memory (,%rcx,8)", "memory [rcx*8]"),
        ("-16(%rsp)", "memory -16(%rsp)", "memory [rsp-16]"),
        ("%fs:(%rax)", "memory %fs:(%rax)", "memory fs:[rax]"),
    ],
)
def test_memory_is_named_in_the_syntax_of_the_listing(memory: str, att: str, intel: str) -> None:
    loop = loop_of(f"addq %rdx, {memory}")
    for syntax, name in (("att", att), ("intel", intel)):
        chain = analyse(replace(loop, syntax=syntax), PARAMETERS, HandMade()).lcd
        assert chain is not None
        assert chain.carriers == (name,)
