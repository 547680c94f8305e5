"""What is executed outside the innermost loop: the term of its own, by hand, its laws, and that `classic` has none."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from kernmodel.incore.answer.outside import OutsideCycles, WayCycles, outside_cycles
from kernmodel.incore.tables.table import InstructionTable
from kernmodel.models.outside import OutsideWork
from kernmodel.studies.predict.ecm import predict_ecm, predict_ecm_sweep
from kernmodel.studies.predict.outside import outside_work
from kernmodel.studies.predict.request import CodeRequest, EcmAnswer, KernelRequest
from kernmodel.uncertainty import Interval

pytestmark = pytest.mark.needs("gcc")

AVERAGE = """
void average(int n, int m, const double *restrict a, double *restrict b) {
    for (int i = 0; i < n; ++i) {
        double s = 0.0;
        for (int k = 0; k < m; ++k) s += a[i + k];
        b[i] = s / m;
    }
}
"""
STENCIL = """
void stencil(int n, int m, double a[restrict m][n], double b[restrict m][n], double s) {
    for (int j = 1; j < m - 1; ++j)
        for (int i = 1; i < n - 1; ++i)
            b[j][i] = (a[j][i - 1] + a[j][i + 1] + a[j - 1][i] + a[j + 1][i]) * s;
}
"""
SQUARED = """
void squared(int n, int m, const double a[restrict m][n], double *restrict b) {
    double s = b[0];
    for (int j = 0; j < m; ++j) {
        s = s * s;
        for (int i = 0; i < n; ++i) s += a[j][i];
    }
    b[0] = s;
}
"""
GCC = CodeRequest(compiler="gcc")
WAY = WayCycles(straight=2.0, slots=8.0, chain=0.0, restarts=False, tail=0.0, tail_steps=0, loops=())


@pytest.fixture(scope="module")
def answer_of(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("outside")

    @cache
    def answer(text: str, machine: str, code: CodeRequest = GCC, **sizes: int) -> EcmAnswer:
        file: Path = folder / "kernel.c"
        file.write_text(text)
        return predict_ecm(KernelRequest(str(file), machine, dict(sizes)), code)

    return answer


@pytest.fixture(scope="module")
def rows_of(tmp_path_factory: pytest.TempPathFactory):
    """The terms of rows of these lengths, with one compilation."""
    file: Path = tmp_path_factory.mktemp("rows") / "kernel.c"

    def rows(text: str, machine: str, lengths: list[int]) -> list[OutsideWork]:
        file.write_text(text)
        points = [{"n": length + 2, "m": 10} for length in lengths]
        return [outside_of(one) for one in predict_ecm_sweep(KernelRequest(str(file), machine, points[0]), GCC, points)]

    return rows


def outside_of(answer: EcmAnswer) -> OutsideWork:
    assert answer.prediction.outside is not None
    return answer.prediction.outside


def test_a_moving_average_pays_the_division_of_every_row(answer_of) -> None:
    """16 additions in a chain take 64 cycles, but those of several rows are executed at once: 2 cycles for a pass of
    four remain. The division of a row keeps the divider of Cascade Lake busy for 4."""
    answer = answer_of(AVERAGE, "clx", n=10000, m=16)
    outside = outside_of(answer)
    assert answer.loop.around is not None
    assert all("vdivsd" in [i.mnemonic for i in way.straight] for way in answer.loop.around.ways)
    assert (outside.length, outside.entries, outside.known) == (16, 0.5, True)
    assert outside.outer_cycles >= 0.5 * 4
    # the penalty of Cascade Lake, of which chains that are still waited for hide a part
    assert 0.5 * 0.75 * 14 < outside.entry_cycles <= 0.5 * 14
    assert outside.remainder_cycles == 0  # 16 are 4 passes of 4
    assert answer.prediction.t_ol == 32
    assert 32 - outside.overlap_cycles >= 0.5 * 4 * 2
    assert outside.overlap_cycles > 16
    assert answer.prediction.cycles == pytest.approx(32 - outside.overlap_cycles + outside.cycles)


def test_the_exit_of_a_short_loop_is_an_interval(answer_of) -> None:
    answer = answer_of(AVERAGE, "clx", n=10000, m=16)
    interval, outside = answer.prediction.cycles_interval, outside_of(answer)
    assert interval is not None and outside.exit == "unknown"
    without = answer.prediction.cycles - outside.entry_cycles
    assert (interval.low, interval.high) == pytest.approx((without, answer.prediction.cycles))
    assert "branch predictor" in interval.cause
    long = answer_of(AVERAGE, "clx", n=10000, m=1000)
    assert outside_of(long).exit == "mispredicted"
    assert long.prediction.cycles_interval is None


def test_classic_is_the_body_alone(answer_of) -> None:
    full = answer_of(STENCIL, "hsw", n=30, m=30)
    classic = answer_of(STENCIL, "hsw", replace(GCC, classic=True), n=30, m=30)
    assert outside_of(full).cycles > 0.1 * classic.prediction.cycles
    assert classic.prediction.outside is None and classic.prediction.t_out == 0
    assert (classic.prediction.t_ol, classic.prediction.t_nol) == (full.prediction.t_ol, full.prediction.t_nol)
    times = classic.prediction.times
    nothing_hides = times["T_nOL"] + sum(t.cycles for t in classic.prediction.transfers)
    assert classic.prediction.cycles == max(times["T_OL"], nothing_hides)
    assert full.prediction.cycles == pytest.approx(classic.prediction.cycles + full.prediction.t_out)


@pytest.mark.thorough
@pytest.mark.parametrize("machine", ["hsw", "zen2"])
def test_the_term_falls_with_the_length_of_the_loop_and_vanishes(rows_of, machine: str) -> None:
    """Among lengths that leave the same remainder; iterations that fill no pass of four cost more than others."""
    passes = (2, 6, 63, 64, 10_000, 1_000_000)
    rows = rows_of(STENCIL, machine, [4 * number + left for left in (0, 1, 3) for number in passes])
    for some in (rows[:6], rows[6:12], rows[12:]):
        cycles = [one.cycles for one in some]
        assert cycles == sorted(cycles, reverse=True)
        assert cycles[-1] < 1e-3 < cycles[0]
    assert [one.remainder_cycles > 0 for one in (rows[0], rows[6], rows[12])] == [False, True, True]


def test_rows_of_changing_length_are_averaged_and_surprise_the_predictor() -> None:
    answer = predict_ecm(KernelRequest("trmv", "clx", {"N": 5000}), GCC)
    outside = outside_of(answer)
    assert outside.length == pytest.approx(2500.5, rel=0.01)
    assert outside.exit == "mispredicted"
    assert answer.loop.around is not None
    assert {way.tail_steps for way in answer.loop.around.ways} == {0, 1, 2, 3}


def test_assembly_without_its_surroundings_is_told(answer_of, tmp_path: Path) -> None:
    """The loop alone: remainders are estimated, what the loops around do is left out, and a note says so."""
    listing = tmp_path / "loop.s"
    listing.write_text(
        ".L4:\n\tvmovupd (%r8,%rax), %ymm3\n\tvaddpd (%rdx,%rax), %ymm3, %ymm0\n\tvaddpd (%rdi,%rax), %ymm0, %ymm0\n"
        "\tvaddpd (%rsi,%rax), %ymm0, %ymm0\n\tvmulpd %ymm1, %ymm0, %ymm0\n\tvmovupd %ymm0, (%rcx,%rax)\n"
        "\taddq $32, %rax\n\tcmpq %r9, %rax\n\tjne .L4\n"
    )
    request = KernelRequest("stencil", "hsw", {"N": 25, "M": 30})
    answer = predict_ecm(request, CodeRequest(asm=str(listing)))
    outside, body = outside_of(answer), answer.incore.prediction
    assert not outside.known and outside.outer_cycles == 0
    # 23 iterations are 5 passes of 4 and 3 more, one at a time in as many instructions as a pass
    assert outside.remainder_cycles == pytest.approx(8 / 23 * 3 * body * (1 - 1 / 4))
    assert "around-unknown" in {note.code for note in answer.notes}
    assert "around-unknown" not in {note.code for note in answer_of(STENCIL, "hsw", n=25, m=30).notes}


def test_unknown_remainders_of_unrolled_loops_are_whole_vectors_and_single_iterations(tmp_path: Path) -> None:
    """Of 23 iterations, 16 fill a pass of four vectors; one vector more is as fast as there, three more are not."""
    one = (
        "\tvmovupd {0}(%r8,%rax), %ymm3\n\tvaddpd {0}(%rdx,%rax), %ymm3, %ymm0\n\tvaddpd {0}(%rdi,%rax), %ymm0, %ymm0\n"
        "\tvaddpd {0}(%rsi,%rax), %ymm0, %ymm0\n\tvmulpd %ymm1, %ymm0, %ymm0\n\tvmovupd %ymm0, {0}(%rcx,%rax)\n"
    )
    listing = tmp_path / "loop.s"
    listing.write_text(
        ".L4:\n" + "".join(map(one.format, (0, 32, 64, 96))) + "\taddq $128, %rax\n\tcmpq %r9, %rax\n\tjne .L4\n"
    )

    def at(length: int) -> tuple[float, OutsideWork, Interval]:
        answer = predict_ecm(KernelRequest("stencil", "hsw", {"N": length + 2, "M": 30}), CodeRequest(asm=str(listing)))
        interval = answer.prediction.cycles_interval
        assert interval is not None
        return answer.incore.prediction / 16, outside_of(answer), interval

    share, outside, interval = at(23)
    assert outside.remainder_cycles == pytest.approx(8 / 23 * 3 * share * (4 - 1))
    assert outside.single_cycles == pytest.approx(8 / 23 * 7 * share * (4 - 1))
    assert "how iterations that fill no pass are executed" in interval.cause
    assert at(24)[1].remainder_cycles == 0 < (at(24)[1].single_cycles or 0)
    assert at(32)[1].single_cycles == 0


def test_a_loop_that_nothing_surrounds_is_entered_once_a_sweep() -> None:
    """How often the nest is called, the kernel does not say: neither calling it nor leaving it counts."""
    answer = predict_ecm(KernelRequest("copy", "hsw", {"N": 240}), GCC)
    assert outside_of(answer).cycles == 0
    interval = answer.prediction.cycles_interval
    assert interval is not None and interval.cause == "addresses of the arrays"  # nothing of exits


def test_a_loop_that_is_called_again_and_again_is_left_each_time() -> None:
    """As a measurement calls it: 256 passes, whose end Zen 3 does not foresee, take 16 cycles more."""
    asked = KernelRequest("copy", "zen3", {"N": 1024})
    once, again = (predict_ecm(asked, replace(GCC, called_again=called)) for called in (False, True))
    more = again.prediction.cycles - once.prediction.cycles
    assert more == pytest.approx(16 * 8 / 1024)
    few = predict_ecm(replace(asked, sizes={"N": 160}), replace(GCC, called_again=True))  # 40 passes
    assert outside_of(few).entry_cycles == 0
    chain = predict_ecm(replace(asked, kernel="dot"), replace(GCC, called_again=True))
    assert chain.prediction.cycles == pytest.approx(24.0)  # passes that wait for one another hide it


def test_exits_that_the_core_is_known_to_foresee_cost_nothing() -> None:
    """Zen 4 foresees the ends of 36 passes."""
    code = OutsideCycles((WAY,), (), True, 1.0, 3.0, 9.0, None, 13.0, 36, ())
    answer = predict_ecm(KernelRequest("stencil", "hsw", {"N": 1000, "M": 100}), GCC)

    def at(length: int) -> OutsideWork:
        sizes = {"N": length + 2, "M": 100}
        return outside_work(answer.nest, sizes, answer.loop, answer.incore, code, 8.0)

    assert [at(4 * passes).exit for passes in (36, 37, 64, 65)] == ["foreseen", "unknown", "unknown", "mispredicted"]
    code = replace(code, mispredicted=61)
    assert [at(4 * passes).exit for passes in (37, 60, 61)] == ["unknown", "unknown", "mispredicted"]
    assert at(144).entry_cycles == 0
    assert at(400).entry_cycles == pytest.approx(8 / 400 * 13)


@pytest.mark.parametrize(
    ("passes", "together"),
    [(10, 10 * 4 / (1 + 50 / 10)), (50, 50 * 4 / 2), (99, 99 * 4 / 2), (100, 50 * 4), (1000, 950 * 4)],
)
def test_chains_of_several_rows_overlap(passes: int, together: float) -> None:
    """A chain of 4 cycles a pass, 50 passes in flight: long rows end with 50 passes of the next one done, of short rows
    several are executed at once; none faster than the 3 cycles that a pass takes without its chain."""
    way = replace(WAY, slots=0.0, restarts=True)
    code = OutsideCycles((way,), (), True, 4.0, 3.0, 4.0, 200, 13.0, 0, ())
    answer = predict_ecm(KernelRequest("stencil", "hsw", {"N": 1000, "M": 100}), GCC)
    incore = replace(answer.incore, prediction=4.0)
    sizes = {"N": 4 * passes + 2, "M": 100}
    found = outside_work(answer.nest, sizes, answer.loop, incore, code, 4.0 * passes)
    assert found.overlap_cycles == pytest.approx(passes * 4 - max(together, passes * 3))
    alone = replace(code, ways=(replace(way, restarts=False),))
    assert outside_work(answer.nest, sizes, answer.loop, incore, alone, 4.0 * passes).overlap_cycles == 0


SUM = """
sum:
.L2:
	xorl	%ecx, %ecx
	vxorpd	%xmm0, %xmm0, %xmm0
.L4:
	vmovupd	(%rdi,%rcx), %zmm4
	vmulpd	(%rsi,%rcx), %zmm4, %zmm1
	addq	$64, %rcx
	vaddsd	%xmm1, %xmm0, %xmm0
	vunpckhpd	%xmm1, %xmm1, %xmm3
	valignq	$3, %ymm1, %ymm1, %ymm2
	vaddsd	%xmm3, %xmm0, %xmm0
	vextractf64x2	$1, %ymm1, %xmm3
	vextractf64x4	$1, %zmm1, %ymm1
	vaddsd	%xmm3, %xmm0, %xmm0
	vaddsd	%xmm2, %xmm0, %xmm0
	vunpckhpd	%xmm1, %xmm1, %xmm2
	vaddsd	%xmm1, %xmm0, %xmm0
	vaddsd	%xmm2, %xmm0, %xmm0
	vextractf64x2	$1, %ymm1, %xmm2
	valignq	$3, %ymm1, %ymm1, %ymm1
	vaddsd	%xmm2, %xmm0, %xmm0
	vaddsd	%xmm1, %xmm0, %xmm0
	cmpq	$2048, %rcx
	jne	.L4
	addq	$2048, %rdi
	addq	$8, %rdx
	vmovsd	%xmm0, -8(%rdx)
	cmpq	%rdi, %rax
	jne	.L2
	ret
"""


def test_rows_of_sums_in_the_pipeline(tmp_path: Path) -> None:
    """604 cycles a row on Zen 4 (`kernmodel measure kernel matvec.c -D N=256 -D M=256`), of which the additions alone
    take 768. The shuffles, which wait for no sum, leave the schedulers at once."""
    listing = tmp_path / "matvec.s"
    listing.write_text(SUM)
    code = CodeRequest(asm=str(listing))
    prediction = predict_ecm(KernelRequest("matvec", "zen4", {"N": 256, "M": 256}), code).prediction
    outside = prediction.outside
    assert outside is not None
    assert prediction.t_ol == pytest.approx(24.26, abs=0.01)  # 24 by the chain: a shuffle takes its pipe at times
    row = (prediction.t_ol - outside.overlap_cycles + outside.cycles) / outside.entries
    assert row == pytest.approx(604, rel=0.05)


@pytest.mark.parametrize(
    ("length", "tail_steps", "less"),
    [(20, 12, 3 * 4 - 5), (22, 14, 3 * 4 + 2 - 5), (20, 4, 0.0), (20, 20, 0.0), (21, 12, 0.0)],
)
def test_straight_code_executes_steps_in_place_of_passes(length: int, tail_steps: int, less: float) -> None:
    """Passes of 4 steps and 4 cycles, beside steps that take five cycles in all: with 12 of them a row of 20 makes
    two passes. A pass's worth of them may be a statement; all of them leave no pass; with one step over it is not
    known how the row is executed."""
    way = replace(WAY, tail=5.0, tail_steps=tail_steps)
    code = OutsideCycles((way,), (), True, 1.0, 3.0, 4.0, None, 13.0, 36, ())
    answer = predict_ecm(KernelRequest("stencil", "hsw", {"N": 1000, "M": 100}), GCC)
    found = outside_work(
        answer.nest,
        {"N": length + 2, "M": 100},
        answer.loop,
        replace(answer.incore, prediction=4.0),
        code,
        1.0 * length,
    )
    assert found.straight_cycles == pytest.approx(less)
    assert found.less_cycles == found.straight_cycles
    if less:
        assert found.remainder_cycles == 0
    either = replace(code, ways=(way, WAY))  # where the code can leave these steps to the loop, it does
    both = outside_work(answer.nest, {"N": 22, "M": 100}, answer.loop, answer.incore, either, 20.0)
    assert both.straight_cycles == 0


def test_a_chain_goes_through_a_product_with_itself(answer_of) -> None:
    """mulsd %xmm0,%xmm0 begins each row with the sum of the last one: no row starts before that is known."""
    answer = answer_of(SQUARED, "clx", CodeRequest(compiler="gcc", flags=("-O2",)), n=100, m=100)
    code = outside_cycles(answer.loop, answer.incore, answer.parameters, InstructionTable.open(answer.parameters))
    assert [(way.chain, way.restarts) for way in code.ways] == [(4.0, False)]


def test_inner_loops_that_the_compiler_unrolled_are_part_of_the_body() -> None:
    """Rows of 21 are one pass of straight-line code."""
    answer = predict_ecm(KernelRequest("stencil", "clx", {"N": 23, "M": 5000}), GCC)
    assert outside_of(answer).cycles < 0.01
