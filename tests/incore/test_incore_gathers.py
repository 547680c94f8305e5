"""Gathers and masks of cores with AVX-512: rows by InstLatx64's readings and the VEX forms, and loops of them."""

from __future__ import annotations

import pytest

from kernmodel.code.blocks import block_of_bytes
from kernmodel.incore.core import Core, Settings, analyse_block
from kernmodel.incore.model import InCore, InstructionData
from kernmodel.incore.tables.parameters import load_parameters
from kernmodel.incore.tables.table import InstructionTable

KMOVB, KXNORW = "c5f990d1", "c5f446c9"  # kmovb k2,k1; kxnorw k1,k1,k1
UNDER_K2, UNDER_K1 = "62f2fd4a920cc7", "62f2fd49920cc7"  # vgatherdpd zmm1{k2},[rdi+ymm0*8]; {k1}
LATENCY = 23  # InstLatx64 on a Core i9-12900K: 22.9 through the index
TIME = 3  # InstLatx64: 2.994, and what two and three gathers add to loops on a Redwood Cove core


def row(form: str, core: str = "RWC") -> InstructionData:
    found = InstructionTable.open(load_parameters(core)).row(form)
    assert found is not None
    return found


def loop(code: str, core: str = "RWC") -> InCore:
    length = len(bytes.fromhex(code)) + 4
    block = block_of_bytes(bytes.fromhex(f"{code}ffc975{256 - length:02x}"), file="x")
    return analyse_block(block, Core.open(core, Settings()), Settings())


@pytest.mark.parametrize(
    ("form", "cycles"),
    [
        ("vgatherdpd xmm,vsib_xmm,xmm", 1.465),
        ("vgatherdpd ymm,vsib_xmm,ymm", 1.993),
        ("vgatherdpd zmm{k},vsib_ymm", 2.994),
        ("vpgatherdd zmm{k},vsib_zmm", 5.728),
        ("vscatterdpd vsib_ymm{k},zmm", 7.967),
    ],
)
def test_gathers_take_the_measured_time(form: str, cycles: float) -> None:
    assert row(form).throughput == pytest.approx(cycles, abs=0.125)


def test_a_gather_merges_into_its_register_at_the_end() -> None:
    """As the VEX form of uops.info: 1 cycle from the register that is overwritten, much more from index and mask."""
    wide, narrow = row("vgatherdpd zmm{k},vsib_ymm"), row("vgatherdpd ymm,vsib_xmm,ymm")
    assert wide.latencies["0", "0"] == narrow.latencies["0", "0"] == 1
    assert wide.latencies["A1", "0"] == wide.latencies["k1", "0"] == LATENCY
    assert wide.front_end == narrow.front_end


@pytest.mark.parametrize("code", [KMOVB + UNDER_K2, KXNORW + UNDER_K1], ids=["a mask moved", "a mask set"])
def test_gathers_of_a_loop_do_not_wait_for_each_other(code: str) -> None:
    """Neither for the register that they overwrite (28 cycles were claimed) nor for the mask, which each leaves 0."""
    incore = loop(code)
    assert incore.lcd is not None
    assert incore.lcd.cycles <= 2
    assert incore.prediction == pytest.approx(TIME, rel=0.05)


@pytest.mark.parametrize(
    ("code", "measured", "off"),
    [
        ("c5e976d2c4e2e9920cde", 4.0, 0.02),  # vpcmpeqd xmm2,xmm2,xmm2; vgatherdpd xmm1,[rsi+xmm3*8],xmm2
        ("c5ed76d2c4e2ed920cde", 5.0, 0.02),  # of four elements
        ("c5ed76d2c4e26d920c9e", 8.0, 0.13),  # vgatherdps, of eight; where in its microcode the loads are is not known
        ("c5f546c962f2fd49920cde", 9.0, 0.13),  # kxnorb k1,k1,k1; vgatherdpd zmm1{k1},[rsi+ymm3*8]
    ],
)
def test_gathers_of_zen_4_wait_for_the_register_that_they_overwrite_at_their_end(
    code: str, measured: float, off: float
) -> None:
    """As an EPYC of family 25, model 17 executes them; when all of their operations waited for it, they took 4.0, 6.9,
    14.0 and 16.0 cycles, two to three times the chain that their own rows have."""
    found = loop(8 * code, "ZEN4")
    assert found.prediction / 8 == pytest.approx(measured, rel=off)
    assert found.lcd is not None
    assert found.lcd.cycles / 8 <= measured


def test_a_move_into_a_mask_takes_what_the_round_trip_leaves() -> None:
    """4 cycles there and back (InstLatx64), of which 3 back."""
    assert row("kmovw k,r32").default_latency + row("kmovw r32,k").default_latency == 4


def test_comparisons_with_memory_wait_for_the_load() -> None:
    assert row("vcmppd k,zmm,m512,i8").latencies["A2", "0"] > row("vcmppd k,zmm,zmm,i8").default_latency


def test_512_bits_have_the_microops_that_were_measured_of_256() -> None:
    """A conversion from memory is one µop and a load; between registers it is a shuffle more."""
    for width in ("ymm", "zmm"):
        half = {"ymm": ("xmm", "m128"), "zmm": ("ymm", "m256")}[width]
        vector = [sum(use.cycles for use in row(f"vcvtps2pd {width},{kind}").ports if use.ports[0] in "015")
                  for kind in half]  # fmt: skip
        assert vector == [2, 1]


def test_a_load_under_a_mask_takes_a_cycle_more_than_its_data() -> None:
    assert row("vmovapd zmm{k},m512").default_latency == 1
    assert row("vmovapd zmm,m512").default_latency == 0
