"""Laukemann, Hammer, Hager, Wellein: Automatic throughput and critical path analysis of x86 and ARM kernels (2019).

Table II is the ThunderX2 listing (AArch64). Table I gives numbers of codes by ifort and gfortran that the paper does
not print, so there is nothing to analyse; docs/incore.md says so. What the text states of the model is tested here.
"""

from __future__ import annotations

import pytest

from kernmodel.code.listing import read_listing
from kernmodel.code.model import AssemblyLoop
from kernmodel.incore.answer.analyse import analyse
from kernmodel.incore.model import InCore
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable


def analysed(text: str) -> InCore:
    listing = read_listing(text, "body.s", syntax="att")
    loop = AssemblyLoop(listing.instructions, listing.isa, "att", "body.s", "", None, (), "", "marked", ())
    parameters = load_parameters("CLX")
    return analyse(loop, parameters, InstructionTable.open(parameters), port_model="even")


def test_cascade_lake_has_eight_ports_a_divider_and_two_data_ports() -> None:
    """Section II: "eight ports, plus one divider pipeline port and two data ports"."""
    ports = load_parameters("CLX").ports
    assert sum(port.isdigit() for port in ports) == 8
    assert [port for port in ports if not port.isdigit()] == ["0DV", "2D", "3D"]


def test_a_divide_occupies_port_0_once_and_the_divider_for_four_cycles() -> None:
    """Section II, with the scalar double divide."""
    answer = analysed("vdivsd %xmm0, %xmm1, %xmm2\n")
    pressure = {port: cycles for port, cycles in zip(answer.ports, answer.rows[0].pressure, strict=True) if cycles}
    assert pressure == {"0": 1.0, "0DV": 4.0}


def test_an_add_takes_half_a_cycle_on_each_of_two_ports() -> None:
    """Section II."""
    answer = analysed("vaddpd %ymm0, %ymm1, %ymm2\n")
    pressure = {port: cycles for port, cycles in zip(answer.ports, answer.rows[0].pressure, strict=True) if cycles}
    assert pressure == {"0": 0.5, "1": 0.5}


def test_a_load_and_its_operation_are_separate_parts_of_the_path() -> None:
    """Section II-C, rule 4: the address enters a load vertex, the register operand does not wait for the load."""
    by_register = analysed("vaddsd (%rax), %xmm0, %xmm0\n")
    assert by_register.lcd is not None
    assert by_register.lcd.cycles == 4.0
    assert by_register.critical_path.cycles > by_register.lcd.cycles


def test_critical_path_brackets_the_loop_carried_dependency() -> None:
    """Section III-A: the run time lies between the longest cyclic LCD path and the CP; Gauss-Seidel in place."""
    answer = analysed(
        """1:
        vmovsd 8(%rsi,%rax,8), %xmm1
        vaddsd (%rdx,%rax,8), %xmm1, %xmm1
        vaddsd (%rcx,%rax,8), %xmm1, %xmm1
        vaddsd %xmm0, %xmm1, %xmm1
        vmulsd %xmm2, %xmm1, %xmm0
        vmovsd %xmm0, (%rsi,%rax,8)
        incq %rax
        cmpq %rdi, %rax
        jne 1b
        """
    )
    assert answer.lcd is not None
    assert answer.lcd.cycles == 8.0  # the add of the left neighbour and the product: each of 4 cycles
    assert answer.throughput < answer.lcd.cycles < answer.critical_path.cycles
    assert answer.prediction == answer.lcd.cycles


@pytest.mark.parametrize("register", ["%xmm0", "%xmm3"])
def test_a_zeroed_register_breaks_the_chain(register: str) -> None:
    """Section II-C, rule 2: no edge past a break of dependency."""
    answer = analysed(f"vxorpd {register}, {register}, {register}\nvaddsd %xmm1, {register}, {register}\n")
    assert answer.lcd is None
