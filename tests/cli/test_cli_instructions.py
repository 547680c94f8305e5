"""`kernmodel instructions` coverage, check and import into a folder."""

from pathlib import Path

SOURCE = """
        .text
f:
        vaddpd  (%rax), %ymm1, %ymm2
        vaddpd  %zmm1, %zmm2, %zmm3{%k1}{z}
        fsincos
        jne     f
"""
READINGS = """isa,form,latency_cycles,reciprocal_throughput_cycles
AVX,"{VEX}  VADDPD ymm, ymm, ymm",4.0,0.50
AVX512F,"VADDPD zmm, zmm, zmm",4.0,0.50
"""


def test_coverage_tells_exact_approximated_and_missing_rows(run, tmp_path):
    (tmp_path / "loop.s").write_text(SOURCE)
    outcome = run("instructions", "coverage", str(tmp_path / "loop.s"), "-m", "clx")
    assert outcome.status == 0
    assert "unmasked form of vaddpd zmm,zmm,zmm" in outcome.out
    assert "4 forms: 1 without a row (1 instruction), 1 approximated (1 instruction), 2 exact" in outcome.out


def test_check_compares_with_readings(run, tmp_path):
    file = tmp_path / "x.csv"
    file.write_text(READINGS)
    assert run("instructions", "check", str(file), "--uarch", "CLX").status == 0
    file.write_text(READINGS.replace('zmm, zmm, zmm",4.0,0.50', 'zmm, zmm, zmm",4.0,2.00'))
    outcome = run("instructions", "check", str(file), "--uarch", "CLX")
    assert outcome.status == 1
    assert "vaddpd zmm,zmm,zmm" in outcome.out
    assert "unexplained" in outcome.out


def test_show_has_the_row_for_easy_and_for_full_operands(run):
    out = run("instructions", "show", "vdivpd ymm,ymm,ymm", "--uarch", "SNB").out
    assert "20 cy on 0DV" in out
    assert "44 cy on 0DV" in out
    assert "with the operands that take longest" in out


def test_show_says_whose_row_it_is(run):
    assert "as its successor Redwood Cove" in run("instructions", "show", "add r64,r64", "--uarch", "spr").out


def test_import_into_a_folder_refuses_two_outputs(run, tmp_path):
    outcome = run(
        "instructions", "import", "x.xml", "--uarch", "SKL", "-o", str(tmp_path / "t"), "--out", str(tmp_path)
    )
    assert outcome.status == 2
    assert "exclude each other" in outcome.err


def test_import_of_a_new_core_asks_for_its_figures(run, tmp_path):
    outcome = run("instructions", "import", "x.xml", "--uarch", "NEW", "--out", str(tmp_path / "d"))
    assert outcome.status == 1
    assert "--like" in outcome.err
    assert not Path(tmp_path / "d").exists()
