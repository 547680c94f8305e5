"""x87 rows: which forms have one, what they say, and how readings and LLVM's models are joined to them."""

import shutil
from functools import partial
from pathlib import Path

import pytest

from kernmodel.code.listing import decode_bytes, read_listing
from kernmodel.code.select import select_without_source
from kernmodel.incore.answer.analyse import analyse
from kernmodel.incore.answer.batch import BlockQuery, Cores, answer
from kernmodel.incore.core import Core, Settings, analyse_block
from kernmodel.incore.model import InstructionData, PortUse
from kernmodel.incore.tables.importers.instlatx64 import EASY, Reading, read_instlatx64
from kernmodel.incore.tables.importers.llvm import TOOLS, Cost, assembly_line, models
from kernmodel.incore.tables.importers.x87 import X87Model, intel_ports, x87_forms, x87_rows, zen_ports
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable

needs_llvm = pytest.mark.skipif(not any(map(shutil.which, TOOLS)), reason="llvm-mca is absent")
CORES = ("SNB", "IVB", "HSW", "SKL", "KBL", "SKX", "CLX", "ICL", "ICX", "TGL", "RKL", "RWC", "GLC", "ZEN", "ZEN2")


def table(name: str, operands: str = "full") -> InstructionTable:
    return InstructionTable.open(load_parameters(name), "easy" if operands == "easy" else "full")


def row(form: str, name: str = "CLX", operands: str = "full") -> InstructionData:
    found = table(name, operands).row(form)
    assert found is not None, (form, name)
    return found


def predicted(code: str, name: str) -> float:
    query = BlockQuery(1, code.replace(" ", ""), name, notion="unrolled")
    found = answer(query, Cores(Settings())).prediction
    assert found is not None
    return found


@pytest.mark.parametrize("name", CORES)
@pytest.mark.parametrize(
    "form", ["fadd st,st", "fmulp st,st", "fdiv m64", "fsqrt", "fld m64", "fstp m64", "fxch st,st"]
)
def test_every_core_with_readings_has_the_common_forms_with_their_source(name: str, form: str) -> None:
    found = row(form, name)
    assert "InstLatx64" in found.source or "LLVM" in found.source


def test_figures_are_those_that_were_measured() -> None:
    # InstLatx64: fadd 3, fmul 5 on Cascade Lake and 4 on Ice Lake, fdiv to 80 bits 16 and every 4.5, fsqrt 21 and 7
    assert (row("fadd st,st").default_latency, row("fmul m64").default_latency) == (3, 5)
    assert row("fmul st,st", "ICL").default_latency == 4
    assert (row("fdiv st,st").default_latency, PortUse(("0DV",), 4.5) in row("fdiv st,st").ports) == (16, True)
    assert (row("fsqrt").default_latency, PortUse(("0DV",), 7.0) in row("fsqrt").ports) == (21, True)
    assert row("fadd st,st", "ZEN").throughput == 1
    assert row("fxam").throughput == 2


def test_easy_operands_leave_older_dividers_early() -> None:
    full, easy = row("fdivp st,st", "SNB"), row("fdivp st,st", "SNB", "easy")
    assert (full.default_latency, easy.default_latency) == (24, 10)
    assert easy.full == full


def test_exchanging_registers_is_done_at_rename() -> None:
    found = row("fxch st,st", "SKL")
    assert (found.ports, found.default_latency, found.throughput) == ((), 0, 0.5)
    assert found.latencies == {("0", "0"): 0, ("1", "1"): 0}


def test_what_nobody_measured_has_no_row() -> None:
    assert all(table(name).row(form) is None for name in CORES for form in ("fsincos", "fyl2x", "fpatan", "fbstp m80"))
    assert all(table(name).row("fscale") is None for name in CORES if name != "HSW")
    assert all(table("BDW").row(form) is None for form in ("fdiv st,st", "fxch st,st", "fsin"))


@pytest.mark.parametrize("name", CORES)
def test_functions_that_were_read_take_as_long_as_their_operands_let_them(name: str) -> None:
    for form in ("fsin", "fcos"):
        full, easy = row(form, name), row(form, name, "easy")
        assert easy.full == full
        assert full.default_latency > 1.8 * easy.default_latency > 0
        assert full.throughput is not None
        assert "µops and ports unknown" in full.source


def test_figures_of_functions_are_those_of_zero_and_of_the_slowest_operand() -> None:
    # InstLatx64 on Skylake: sines of 0 and 1 take 50.3 and 127.3 cycles, cosines of 0 and 0.739 take 53.3 and 130.8
    latencies = [row(form, "SKL", kind).default_latency for form in ("fsin", "fcos") for kind in ("easy", "full")]
    assert latencies == [50, 127, 53, 131]
    assert row("fsin", "SKL").throughput == 127.75


def test_microcode_without_ports_has_the_microops_of_the_model() -> None:
    found = row("fprem", "HSW")
    assert (found.ports, found.uops, found.default_latency) == ((), 28, 19)
    assert "ports unknown" in found.source
    assert predicted("d9f8 d9c9", "HSW") >= 28 / 4  # fprem; fxch: issue at least


def test_what_moves_the_top_only_has_its_throughput() -> None:
    assert row("fincstp", "SKL").ports == (PortUse(("0", "5"), 1.0),)
    contradicted = row("fdecstp", "ICL")  # LLVM has two µops, InstLatx64 two instructions per cycle
    assert (contradicted.ports, contradicted.throughput) == ((), 0.5)
    assert "throughput by InstLatx64" in contradicted.source


def test_comparing_and_popping_twice_is_known_by_its_twin() -> None:
    assert row("fcompp", "SKL").ports == row("fucompp", "SKL").ports == (PortUse(("0",), 1.0),)


def test_without_readings_the_divider_is_busy_as_the_model_says() -> None:
    found = row("fsqrt", "BDW")
    assert (found.default_latency, PortUse(("0DV",), 9.0) in found.ports) == (23, True)


@pytest.mark.parametrize("name", ["SNB", "HSW", "BDW", "SKL", "ICL", "RWC"])
def test_the_status_word_merges_into_ax_in_a_cycle(name: str) -> None:
    # uops.info measures a cycle from the old to the new register of sldt, str and 16-bit moves, which merge as well;
    # the row's own latency is that of the status word
    found = row("fnstsw r16", name)
    assert found.latencies == {("0", "0"): 1}
    assert found.default_latency >= 2
    assert "uops.info" in found.source
    assert predicted("dfe0", name) == 1


@pytest.mark.parametrize(
    ("code", "measured"),
    [
        ("db2e db7e40 48ffc9 75f5", 8.96),  # fld m80; fstp m80 elsewhere
        ("db2e db3e 48ffc9 75f7", 16.4),  # to the same place
        ("dd06 dcc0 dd1e 48ffc9 75f5", 19.7),  # fld m64; fadd st,st; fstp m64
        ("d9c9 d8c2 48ffc9 75f7", 3.33),  # fxch st(1); fadd st,st(2)
        ("ddd2 ddd3 ddd4 ddd5 48ffc9 75f3", 1.99),  # fst st(2) to st(5)
        ("d9c0 ddd9 48ffc9 75f7", 1.99),  # fld st; fstp st(1)
    ],
)
def test_loops_of_a_zen_3(code: str, measured: float) -> None:
    """Regression: 80 bits were taken for 64, stores of the x87 unit for general-purpose ones, an exchange waited for
    both of its registers, and moves between registers had no row."""
    query = BlockQuery(1, code.replace(" ", ""), "ZEN3", notion="loop")
    found = answer(query, Cores(Settings())).prediction
    assert found == pytest.approx(measured, rel=0.06)


def test_80_bits_have_rows_where_they_were_measured() -> None:
    """LLVM's models have the figures of 64 bits for them."""
    for form in ("fld m80", "fstp m80"):
        assert all(table(name).row(form) is None for name in CORES)
        assert "measured" in row(form, "ZEN3").source
        assert "measured" in row(form, "ZEN4").source


def test_forms_are_those_of_the_decoder() -> None:
    codes = ("d8c1", "dec1", "dc07", "de07", "d9c1", "dd07", "df2f", "ddd9", "dd1f", "df3f", "dd0f")
    codes += ("d9fe", "d9ff", "ded9", "dae9", "d9f7", "d9f6", "d9d0", "dbe3", "dbe2")
    codes += ("d9c9", "d9e1", "d9fa", "d9e8", "d8d1", "dbe9", "dac1", "d92f", "d93f", "dfe0", "d8f1", "def9", "da37")
    forms = [decode_bytes(bytes.fromhex(code)).instructions[0].form for code in codes]
    assert set(forms) <= set(x87_forms())
    assert all(table("SKL").row(form) is not None for form in forms)


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("fadd st,st", "fadd st, st(1)"),
        ("faddp st,st", "faddp st(1), st"),
        ("fxch st,st", "fxch st(1)"),
        ("fucomp st,st", "fucomp st(1)"),
        ("fucomip st,st", "fucomip st, st(1)"),
        ("fld st", "fld st(1)"),
        ("fld m80", "fld tbyte ptr [rsi]"),
        ("fnstsw r16", "fnstsw ax"),
        ("fsqrt", "fsqrt"),
    ],
)
def test_lines_for_llvm(form: str, line: str) -> None:
    assert assembly_line(form) == line


def test_readings_of_x87_by_form(tmp_path: Path) -> None:
    lines = ("FXCH st(i),0.5,0.5", '"FADD st(i), st (st = 0.0)",3,1', '"FADD st(i), st",3.0,1.0', "FABS,1,1")
    lines += ('"FDIV80 st(i), st",24,23', "FDIV80 (x/1.0l),10,9", '"FDIV32 st(i), st",14,13', "FSQRT80 (1.0l),8,7")
    lines += (
        "FSIN80 (0.0),50,51",
        "FSIN80 (0.0) + FADD,52,52",
        "FSIN80 (Pi/8) + FADD,113,",
        "FSIN80 (1.0) + FADD,127,128",
    )
    lines += ("FSIN80 (Pi) + FADD,101,92", "FCOS80 (0.739...)+FADD,130,131", "FMUL st(2i) FADD st(2i+1),5,")
    lines += ("FSQRT80 (0.0l),6,6",)
    header = "isa,form,latency_cycles,reciprocal_throughput_cycles"
    path = tmp_path / "x.csv"
    path.write_text("\n".join([header, *(f"X87,{line}" for line in lines)]) + "\n")
    found = read_instlatx64(path)
    divisions = {"fdiv st,st", "fdiv st,st" + EASY, "fsqrt" + EASY}
    assert set(found) == {"fxch st,st", "fadd st,st", "fabs", "fsin", "fsin" + EASY, "fcos"} | divisions
    assert found["fdiv st,st"] == Reading(24.0, 23.0)
    assert (found["fsin" + EASY], found["fsin"]) == (Reading(50.0, 51.0), Reading(127.0, 128.0))


def test_ports_that_compute() -> None:
    cost = Cost(2, 10, 1, {"SPRPort05": 1, "SPRPort02": 0.5, "SPRPort03": 0.5, "SPRPort11": 0.3}, True, False)
    assert intel_ports(models()["sapphirerapids"], cost) == (PortUse(("5",), 1.0),)
    booked_twice = Cost(1, 1, 1, {"Zn3FP0": 1, "Zn3FP1": 1, "Zn3ALU0": 1}, False, False)
    assert zen_ports(booked_twice) == (PortUse(("FP0", "FP1"), 1.0),)


@needs_llvm
def test_rows_follow_the_readings_and_the_plain_moves() -> None:
    base = {form: row(form, "SKL") for form in ("movsd xmm,m64", "movsd m64,xmm")}
    model = X87Model("skylake", "a model", partial(intel_ports, models()["skylake"]), "0DV", "a CPU", 4)
    readings = {"fadd st,st": Reading(7.0, 3.0), "fabs": Reading(1.0, 0.25)}
    found = {item.form: item for item in x87_rows(base, readings, model)}
    assert (found["faddp st,st"].default_latency, found["faddp st,st"].throughput) == (7, 3)
    assert found["fadd m32"].latencies["A0", "st0"] == 7 + base["movsd xmm,m64"].latencies["A1", "0"]
    assert found["fiadd m32"].latencies["M0", "st0"] == 7 + 3  # LLVM's conversion
    assert found["fst m64"].ports == base["movsd m64,xmm"].ports
    assert found["fst m64"].indexed is not None
    assert "fabs" not in found  # the reading is faster than the model's ports
    assert not {"fdiv st,st", "fsin", "fxch st,st"} & found.keys()  # known by readings alone
    assert PortUse(("0DV",), 7.0) in found["fsqrt"].ports  # LLVM's


LOOPS = {
    # fld and fmul from memory, faddp: a sum of products waits for its addition
    "dd04c7 dc0cc6 dec1 48ffc0 4839c2 75f0": 3.0,
    # fld, fmul st,st(1), fadd from memory, fstp: passes do not wait for each other
    "dd04c7 d8c9 dc04c6 dd1cc6 48ffc0 4839c2 75ee": 2.0,
}


@pytest.mark.parametrize("code", LOOPS)
def test_values_are_followed_through_the_stack(code: str) -> None:
    query = BlockQuery(1, code.replace(" ", ""), "SKL")
    assert answer(query, Cores(Settings())).prediction == pytest.approx(LOOPS[code], abs=0.01)


def test_a_pass_that_pushes_and_pops_hands_nothing_to_the_next() -> None:
    """Whoever asks: `fld` gives the top of the stack a new value, and so a new register."""
    code = (
        ".L3:\n fldt (%rdx,%rax)\n fadd %st(0), %st\n fstpt (%rsi,%rax)\n addq $16, %rax\n cmpq %rax, %rdi\n jne .L3\n"
    )
    loop = select_without_source(read_listing(code, "k.s", syntax="att"))
    found = analyse(loop, load_parameters("CLX"), table("CLX"))
    assert found.lcd is not None and found.lcd.cycles == 1.0
    assert found.prediction == analyse_block(loop, Core.of(load_parameters("CLX"), Settings()), Settings()).prediction
