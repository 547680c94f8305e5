from __future__ import annotations

import dataclasses

import pytest
from text_reports import line_with, text_of

from kernmodel.errors import UsageError
from kernmodel.machine.model import StoreBehaviour
from kernmodel.report.layout import cells
from kernmodel.report.text import ecm, incore, instruction, kernel, machine, sections, traffic
from kernmodel.report.text.render import Style, stream
from kernmodel.report.text.sections import notes_section

POINTS = ({"N": 5000}, {"N": 1234567})


def test_ecm_names_its_inputs(ecm_answer):
    text = text_of(ecm.ecm_report(ecm_answer, "cy/CL"))
    for part in ("Toy [processor]", "gcc 12.2.0", "-O3 -march=skylake", "M = 5000, N = 5000", "stencil.c", "toy.yml"):
        assert part in text


def test_ecm_shows_shorthand_prediction_and_bottleneck(ecm_answer):
    text = text_of(ecm.ecm_report(ecm_answer, "cy/CL"))
    assert "{8.0 ‖ 4.0 | 5.0 | 6.0 | 6.4} cy/CL" in text
    assert "{T_OL ‖ T_nOL | T_L1L2 | T_L2L3 | T_L3Mem}" in text
    assert "{8.0 ⌉ 9.0 ⌉ 15.0 ⌉ 21.4} cy/CL" in text
    assert "Memory bandwidth: T_L3Mem takes 30 %" in text


def test_ecm_headline_follows_the_unit(ecm_answer):
    text = text_of(ecm.ecm_report(ecm_answer, "LUP/s"))
    assert "T_ECM = 747.7 MLUP/s" in text
    assert "(* T_ECM; s: one sweep of the nest)" in text
    row = line_with(text, "* Mem")
    for part in ("21.40 cy/CL", "2.675 cy/It", "747.7 MIt/s", "2.991 GFLOP/s", "33.41 ms"):
        assert part in row


def test_ecm_leaves_out_units_without_meaning(ecm_answer):
    work = dataclasses.replace(ecm_answer.prediction.work, updates_per_iteration=None, iterations_per_sweep=None)
    answer = dataclasses.replace(ecm_answer, prediction=dataclasses.replace(ecm_answer.prediction, work=work))
    text = text_of(ecm.ecm_report(answer, "cy/CL"))
    assert "LUP/s" not in text
    assert "no time of a sweep" in text
    with pytest.raises(UsageError, match="no lattice"):
        ecm.ecm_report(answer, "LUP/s")


def test_ecm_shows_the_condition_that_holds_and_the_next_one(ecm_answer):
    text = text_of(ecm.ecm_report(ecm_answer, "cy/CL"))
    assert "no" in line_with(text, "(32*N - 16) B ≤ 32 KiB").split()
    assert "N ≤ 8192" in line_with(text, "(32*N - 16) B ≤ 256 KiB")
    assert "64 B ≤ 256 KiB" not in text, "a weaker condition than one that holds says nothing"


def test_ecm_names_both_saturation_rules(ecm_answer):
    text = text_of(ecm.ecm_report(ecm_answer, "cy/CL"))
    assert "n_S = 4 cores of 8" in line_with(text, "simple rule ⌈T_ECM/T_Mem⌉")
    assert "n_S = 5 cores of 8" in line_with(text, "recursive latency-aware rule")


@pytest.mark.parametrize(("number", "part"), [(None, "does not saturate within its"), (1, "1 core of")])
def test_saturation_beyond_a_domain(ecm_answer, number, part):
    prediction = dataclasses.replace(ecm_answer.prediction, saturation_recursive=number)
    text = text_of(ecm.ecm_report(dataclasses.replace(ecm_answer, prediction=prediction), "cy/CL"))
    assert part in line_with(text, "recursive latency-aware rule")


def test_no_saturation_where_memory_is_idle(ecm_answer):
    prediction = ecm_answer.prediction
    still = dataclasses.replace(prediction.transfers[-1], cycles=0.0, penalty_cycles=0.0)
    prediction = dataclasses.replace(prediction, transfers=(*prediction.transfers[:-1], still))
    text = text_of(ecm.ecm_report(dataclasses.replace(ecm_answer, prediction=prediction), "cy/CL"))
    assert "nothing moves over the memory path" in text


def test_scaling_table(scaled_answer):
    text = text_of(ecm.ecm_report(scaled_answer, "cy/CL"))
    assert line_with(text, "100%").split() == (
        ["8", "1", "6.40", "cy/CL", "2.500", "GIt/s", "2.500", "GLUP/s", "10.00", "GFLOP/s", "3.34", "100%", "yes"]
    )


def test_warnings_stand_before_assumptions(ecm_answer):
    lines = text_of(ecm.ecm_report(ecm_answer, "cy/CL")).splitlines()
    assert lines[-2:] == ["  warning: stencil.c:4:9: a figure was interpolated", "  assumption: streams are aligned"]


def test_verbose_ecm_shows_how_it_comes_about(ecm_answer):
    brief = text_of(ecm.ecm_report(ecm_answer, "cy/CL"))
    text = text_of(ecm.ecm_report(ecm_answer, "cy/CL", verbose=True))
    for part in (
        "the strides match",
        "row reuse holds in L2",
        "60.0 GB/s measured with copy",
        "invented too",
        "a manual",
    ):
        assert part in text
        assert part not in brief
    assert "32 B" in line_with(text[text.index("Assembly loop") :], "vaddpd")


def test_sweep_row_shows_times_and_reuses(ecm_answer):
    lines = list(stream(ecm.sweep_columns(ecm_answer, "It/s", POINTS), ecm.sweep_items(ecm_answer), Style()))
    assert " ".join(lines[2].split()) == (
        "5000 5000 8.00 4.00 0.00 5.00 6.00 6.40 8.00 9.00 15.00 21.40 747.7 MIt/s i j j"
    )


def test_a_sweep_has_room_for_its_largest_sizes(ecm_answer):
    wider = dataclasses.replace(ecm_answer, sizes={"M": 5000, "N": 1234567})
    lines = list(stream(ecm.sweep_columns(ecm_answer, "s", POINTS), (ecm_answer, wider), Style()))
    assert len({len(line) for line in lines if "ms" in line}) == 1


def test_sweep_with_cores_has_a_row_for_each_count(scaled_answer):
    lines = list(stream(ecm.sweep_columns(scaled_answer, "s", POINTS), ecm.sweep_items(scaled_answer), Style()))
    assert len(lines) == 2 + 2
    assert lines[3].split()[-1] == "yes"


def test_traffic_shows_conditions_as_formula_and_number(traffic_answer):
    text = text_of(traffic.traffic_report(traffic_answer))
    row = line_with(text, "(32*N - 16) B ≤ 32 KiB: 156.2 KiB needed")
    assert "N ≤ 1024" in row
    assert "N ≤ 1024: reuse over loop j fits L1" in text


def test_traffic_per_path_in_lines_and_bytes(traffic_answer):
    text = text_of(traffic.traffic_report(traffic_answer))
    assert line_with(text, "L2L3").split()[:6] == ["L2L3", "2.00", "1.00", "0.00", "192.0", "24.00"]
    assert line_with(text, "registers-L1").split()[-2:] == ["320.0", "40.00"]


def test_traffic_intensity_per_level(traffic_answer):
    text = text_of(traffic.traffic_report(traffic_answer))
    assert "0.1667 FLOP/B" in text
    assert "nothing moves" in text
    without = dataclasses.replace(traffic_answer.traffic, flops_per_iteration=0.0)
    text = text_of(traffic.traffic_report(dataclasses.replace(traffic_answer, traffic=without)))
    assert "no floating-point operations" in text


def test_traffic_without_reuse(traffic_answer):
    without = dataclasses.replace(traffic_answer.traffic, conditions=())
    text = text_of(traffic.traffic_report(dataclasses.replace(traffic_answer, traffic=without)))
    assert "no reference can reuse the line of another" in text


@pytest.mark.parametrize(("unit", "first"), [("CL", "4.00"), ("B", "256.00"), ("B/It", "32.00")])
def test_traffic_sweep_in_each_unit(traffic_answer, unit, first):
    row = cells(traffic.sweep_columns(traffic_answer, unit, POINTS), traffic_answer)
    assert row[2] == first
    assert row[-3:] == ("i", "j", "j")


def test_incore_row_of_an_instruction(incore_answer):
    text = text_of(incore.incore_report(incore_answer))
    row = line_with(text, "vaddpd").split()
    assert row[:6] == ["0.50", "0.50", "1.00", "4.0", "4.0", "10"]
    assert "vmulpd [bold]%ymm0[/bold]" in text


def test_incore_sums_per_pass_and_iteration(incore_answer):
    text = text_of(incore.incore_report(incore_answer))
    assert line_with(text, "  per pass").split() == ["1.50", "0.50", "1.00", "4.00", "8.00", "per", "pass"]
    assert line_with(text, "per source iteration (4 in a pass)").split()[:4] == ["0.38", "0.12", "0.25", "1.00"]


def test_incore_headline_gives_its_reason_and_its_doubt(incore_answer):
    text = text_of(incore.incore_report(incore_answer))
    assert "4.00 cy per pass = 1.000 cy/It, bound by precedence; uncertain: 1 unknown instruction" in text
    assert "2 instructions wait for each other" in text
    assert "upper bound" in line_with(text, "CP, critical path")
    assert line_with(text, "mystery %rax").startswith("?")
    assert "? no row in the instruction table of SKL" in text


def test_incore_without_dependency_or_known_iterations(incore_answer):
    changed = dataclasses.replace(incore_answer.incore, lcd=None, iterations_per_pass=None, uncertain=())
    text = text_of(incore.incore_report(dataclasses.replace(incore_answer, incore=changed)))
    assert "none" in line_with(text, "LCD, loop-carried")
    assert "cy/It" not in text
    assert "uncertain" not in text


def test_machine_shows_figures_and_sources(toy_machine):
    text = text_of(machine.machine_report(toy_machine))
    for part in (
        "2 GHz",
        "32 KiB",
        "64 B/cy",
        "by measured bandwidth",
        "10.0 GB/s (1 core)",
        "40.0 GB/s",
        "invented too",
    ):
        assert part in text
    verbose = text_of(machine.machine_report(toy_machine, verbose=True))
    assert "18.0" in verbose


@pytest.mark.parametrize(
    ("stores", "words"),
    [
        (StoreBehaviour(), ("yes", "never evaded")),
        (StoreBehaviour(streaming=False, evasion="near-saturation", evades_from_cores=9), ("no", "from 9 cores")),
        (StoreBehaviour(evasion="near-saturation"), ("yes", "from where is not known")),
        (StoreBehaviour(evasion="unknown"), ("yes", "is not known")),
    ],
)
def test_machine_says_what_stores_do(toy_machine, stores, words):
    text = text_of(machine.machine_report(dataclasses.replace(toy_machine, stores=stores)))
    assert line_with(text, "streaming stores").split()[-1] == words[0]
    assert words[1] in line_with(text, "write-allocates")


def test_kernel_shows_what_was_derived(nest):
    text = text_of(kernel.kernel_report(nest, nest.defaults))
    for part in ("M × N", "N*j + i", "M = 5000, N = 5000", "/* 2D stencil. */", "3 times in double"):
        assert part in text


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("/* A stencil. More. */ int i;", "A stencil."),
        ("// Sum of a vector,\n// in order. Rest\nint i;", "Sum of a vector, in order."),
        ("/*\n * Copy\n * of a\n */", "Copy of a"),
        ("int i; /* late */", ""),
        ("", ""),
    ],
)
def test_first_sentence(source: str, sentence: str):
    assert kernel.first_sentence(source) == sentence


def test_a_kernel_says_what_it_computes_without_its_name():
    assert kernel.about("copy", "/* copy: a[i] = b[i]. Simple. */") == "a[i] = b[i]."


def test_figures_that_share_a_source_stand_together():
    lines = text_of(sections.sources_section({"a": "x", "b": "y", "c": "x"}, "Sources")).splitlines()
    assert lines == ["Sources", "  a, c:", "    x", "  b:", "    y"]


def test_instruction_row_with_its_indexed_variant(instruction_row, toy_parameters):
    text = text_of(instruction.instruction_report([instruction_row], toy_parameters))
    for part in ("1 cy on 0 1", "base register of operand 2", "zero idiom", "fuses with ja", "indexed memory operand"):
        assert part in text


def test_no_notes_no_section():
    assert notes_section(()) == ()
