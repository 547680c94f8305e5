"""The x87 register stack: fixed names for registers while the top moves."""

from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.listing import decode_bytes
from kernmodel.isa.model import Instruction
from kernmodel.isa.x86.x87 import pushed, uses_stack, with_fixed_registers

PUSHES = {"d9c1": "fld st(1)", "dd07": "fld qword [rdi]", "db2f": "fld tbyte [rdi]", "df2f": "fild qword [rdi]"}
PUSHES |= {"d9e8": "fld1", "d9ee": "fldz"}
POPS = {"dec1": "faddp", "dec9": "fmulp", "ddd9": "fstp st(1)", "dd1f": "fstp qword [rdi]", "d8d9": "fcomp"}
POPS |= {"df3f": "fistp qword [rdi]", "dd0f": "fisttp qword [rdi]", "dfe9": "fucomip", "df f1": "fcomip"}
STAYS = {"d8c1": "fadd st,st(1)", "d9c9": "fxch", "d9e1": "fabs", "dd17": "fst qword [rdi]", "d92f": "fldcw [rdi]"}
STAYS |= {"dc07": "fadd qword [rdi]", "d8d1": "fcom", "dbe9": "fucomi", "d9fa": "fsqrt"}
ELSE = {"4801d8": "add rax,rbx", "c5fb58c1": "vaddsd", "c3": "ret"}


def decoded(code: str) -> tuple[Instruction, ...]:
    return decode_bytes(bytes.fromhex(code)).instructions


def named(instruction: Instruction) -> tuple[list[str], list[str]]:
    """Registers that are read and written."""
    operands = instruction.operands
    reads = [o.register for o in operands if o.read and o.register] + list(instruction.implicit_reads)
    writes = [o.register for o in operands if o.written and o.register] + list(instruction.implicit_writes)
    return reads, writes


def test_what_moves_the_top() -> None:
    for codes, moved in ((PUSHES, 1), (POPS, -1), (STAYS, 0), (ELSE, 0)):
        for code in codes:
            assert pushed(decoded(code)[0]) == moved, codes[code]
    assert pushed(decoded("ded9")[0]) == pushed(decoded("dae9")[0]) == -2  # fcompp, fucompp


def test_which_instructions_use_the_stack() -> None:
    assert all(uses_stack(decoded(code)[0]) for codes in (PUSHES, POPS, STAYS) for code in codes if code != "d92f")
    assert not any(uses_stack(decoded(code)[0]) for code in ELSE)


def test_a_product_is_loaded_apart_from_the_sum_it_is_added_to() -> None:
    # fld qword [rdi]; fmul qword [rsi]; faddp st(1),st: the product has a register of its own, the sum was the top
    load, multiply, add = with_fixed_registers(decoded("dd07 dc0e dec1"))
    assert named(load) == ([], ["st7"])
    assert named(multiply) == (["st7"], ["st7"])
    assert named(add) == (["st0", "st7"], ["st0"])


def test_a_store_that_pops_reads_what_was_pushed() -> None:
    load, store, again = with_fixed_registers(decoded("dd07 dd1e d9e1"))  # fld [rdi]; fstp [rsi]; fabs
    assert named(load)[1] == named(store)[0] == ["st7"]
    assert named(again) == (["st0"], ["st0"])


def test_all_else_stays() -> None:
    instructions = decoded("4801d8 dd07 c5fb58c1")
    fixed = with_fixed_registers(instructions)
    assert (fixed[0], fixed[2]) == (instructions[0], instructions[2])
    assert fixed[1].form == instructions[1].form
    assert fixed[1].memory == instructions[1].memory


@given(st.lists(st.sampled_from([*PUSHES, *POPS, *STAYS, *ELSE]), max_size=20))
def test_eight_pushes_too_many_change_nothing(codes: list[str]) -> None:
    """The stack is a ring of eight: after eight more pushes the names are the same."""
    around = with_fixed_registers(decoded("d9e8" * 8 + "".join(codes)))[8:]
    assert [named(i) for i in around] == [named(i) for i in with_fixed_registers(decoded("".join(codes)))]
