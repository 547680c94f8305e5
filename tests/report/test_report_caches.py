"""Simulated traffic as text: what the caches do, what is evaded, how much was simulated, and the comparison."""

from __future__ import annotations

import dataclasses

import pytest
from text_reports import line_with, text_of

from kernmodel.errors import Note
from kernmodel.report.layout import cells
from kernmodel.report.text import caches, ecm, kernel, sections, traffic
from kernmodel.report.text.render import Style, stream
from kernmodel.source.model import IndirectIndex

POINTS = ({"N": 5000}, {"N": 1234567})


def section(text: str, title: str) -> str:
    """The part of a report below a heading that begins like this, up to the next blank line."""
    return text[text.index(title) :].partition("\n\n")[0]


def test_each_cache_shows_hits_misses_and_victims_apart(simulated_answer):
    table = section(text_of(traffic.traffic_report(simulated_answer)), "Requests per cache and unit of work (L1")
    assert line_with(table, "24.00").split() == ["L1", "24.00", "20.60", "3.40", "8.00", "7.00", "1.00", "1.00", "3.40"]
    assert line_with(table, "dirty victims").split()[-4:] == ["dirty", "victims", "clean", "victims"]


def test_verbose_shows_bytes_per_unit_of_work_and_per_iteration(simulated_answer):
    brief = text_of(traffic.traffic_report(simulated_answer))
    text = text_of(traffic.traffic_report(simulated_answer, verbose=True))
    paths = section(text, "Bytes per path, by kind")
    assert line_with(paths, "L1L2").split() == ["L1L2", "281.6", "64.0", "0.0", "35.20", "8.00", "0.00"]
    evicted = section(text, "Bytes that each cache evicts")
    assert line_with(evicted, "L1").split() == ["L1", "64.0", "217.6", "8.00", "27.20"]
    requests = section(text, "Requests per cache and iteration")
    assert line_with(requests, "L1").split()[:3] == ["L1", "3.0000", "2.5750"]
    assert "Bytes per path, by kind" not in brief


def test_simulated_lines_have_no_formulas(simulated_answer, traffic_answer):
    assert "formulas" in section(text_of(traffic.traffic_report(traffic_answer)), "Traffic per path")
    assert "formulas" not in section(text_of(traffic.traffic_report(simulated_answer)), "Traffic per path")


def test_layer_conditions_stand_in_no_simulated_answer(simulated_answer):
    text = text_of(traffic.traffic_report(simulated_answer))
    assert "Layer conditions" not in text
    assert line_with(text, "  method").split(None, 1)[1] == "simulation"


def test_the_method_says_that_layer_conditions_apply_unless_they_left_out_reuse(traffic_answer):
    text = text_of(traffic.traffic_report(traffic_answer))
    assert "they apply to every reference" in line_with(text, "  method")
    left_out = Note("several-index-patterns", "array a is indexed in 2 ways")
    doubtful = dataclasses.replace(traffic_answer.traffic, notes=(left_out,))
    text = text_of(traffic.traffic_report(dataclasses.replace(traffic_answer, traffic=doubtful)))
    assert "every reference" not in text


def test_an_evasion_that_is_not_known_is_an_interval(simulated_answer):
    text = section(text_of(traffic.traffic_report(simulated_answer)), "Write-allocates from memory")
    assert "50% (0% … 100%)" in line_with(text, "evaded")
    assert "1.00 … 2.00 CL = 64.00 … 128.00 B/CL = 8.00 … 16.00 B/It" in line_with(text, "L3Mem loads")
    assert "how busy the memory is" in text


def test_an_evasion_that_is_known_is_a_number(simulated_answer):
    known = dataclasses.replace(simulated_answer.traffic.evasion, low=0.5, high=0.5)
    changed = dataclasses.replace(simulated_answer.traffic, evasion=known)
    text = text_of(caches.evasion_section(changed, simulated_answer.machine))
    assert line_with(text, "evaded").split() == ["evaded", "50%"]
    assert "1.50 CL = 96.00 B/CL = 12.00 B/It" in text


def test_no_evasion_no_section(traffic_answer):
    assert caches.evasion_section(traffic_answer.traffic, traffic_answer.machine) == ()


@pytest.mark.parametrize(("settled", "word"), [(True, "yes"), (False, "no")])
def test_the_simulation_says_how_much_and_whether_it_settled(simulated_answer, settled, word):
    sampling = dataclasses.replace(simulated_answer.traffic.sampling, settled=settled)
    changed = dataclasses.replace(simulated_answer.traffic, sampling=sampling)
    text = text_of(caches.sampling_section(changed, verbose=True))
    assert "12,000 iterations (3 windows) after 40,000 of warm-up" in text
    assert line_with(text, "  settled").split()[1].rstrip(",") == word
    assert "three windows agree" in text
    assert "three windows agree" not in text_of(caches.sampling_section(changed))


def test_a_comparison_shows_both_numbers_and_the_reason(compared_answer):
    text = text_of(traffic.traffic_report(compared_answer))
    table = section(text, "Layer conditions and simulation")
    assert line_with(table, "L1L2   loads").split() == ["L1L2", "loads", "4.00", "4.40", "+0.40", "not", "settled"]
    assert line_with(table, "L1L2   stores").split() == ["L1L2", "stores", "1.00", "1.00", "agree"]
    assert "clean victims" not in table, "nothing of that kind moves"
    assert "  not settled (L1L2 loads): rows that are a multiple" in table
    assert "(32*N - 16) B ≤ 32 KiB" in text, "layer conditions are shown too"
    assert "3.40" in section(text, "Requests per cache"), "and what was simulated"


def test_one_reason_is_printed_once(compared_answer):
    first = compared_answer.differences[0]
    again = dataclasses.replace(first, path="L2L3")
    text = text_of(caches.comparison_section(compared_answer.symbolic, compared_answer.traffic, (first, again)))
    assert text.count(first.reason) == 1
    assert "(L1L2 loads, L2L3 loads)" in text


def test_verbose_comparison_shows_both_tables_of_references(compared_answer):
    text = text_of(traffic.traffic_report(compared_answer, verbose=True))
    assert "Traffic per reference by layer conditions" in text
    assert text.count("Traffic per reference") == 2


def test_a_sweep_over_cores_has_a_column_for_them(traffic_answer):
    points, cores = ({"N": 5000},), (1, 8)
    more = dataclasses.replace(traffic_answer, traffic=dataclasses.replace(traffic_answer.traffic, cores=8))
    lines = list(stream(traffic.sweep_columns(traffic_answer, "CL", points, cores), (traffic_answer, more), Style()))
    assert lines[0].split()[:3] == ["M", "N", "cores"]
    assert [line.split()[2] for line in lines[2:]] == ["1", "8"]
    inputs = text_of(traffic.sweep_inputs(traffic_answer, points, cores))
    assert "over cores" in inputs
    assert "active cores" not in inputs


def test_a_simulated_row_shows_the_share_of_hits_and_of_evaded_lines(simulated_answer):
    row = cells(traffic.sweep_columns(simulated_answer, "CL", POINTS), simulated_answer)
    assert row[-4:] == ("50% (0% … 100%)", "hits 86%", "hits 63%", "hits 33%")


def test_notes_of_many_points_that_differ_in_numbers_are_one():
    def note(text: str, kind: str = "assumption") -> Note:
        return Note("shared-cache", text, kind)

    texts = (f"each of {n} cores has {60 / n:g} of 60 sets of {cache}" for cache in ("L2", "L3") for n in (2, 4))
    notes = (*(note(text) for text in texts), note("each of 2 cores", "warning"), note("each of 2 cores", "warning"))
    merged = sections.merged_notes(notes)
    assert [(n.kind, n.text) for n in merged] == [
        ("assumption", "each of … cores has … of 60 sets of L2"),
        ("assumption", "each of … cores has … of 60 sets of L3"),
        ("warning", "each of 2 cores"),
    ]


def test_a_compared_row_shows_both_and_why(compared_answer, simulated_answer):
    columns = traffic.sweep_columns(compared_answer, "CL", POINTS, compared=True)
    both = {column.header: column.cell(compared_answer) for column in columns}
    assert (both["L1L2 in lc CL"], both["L1L2 in sim CL"]) == ("4.00", "4.40")
    assert (both["L3Mem out lc CL"], both["L3Mem out sim CL"]) == ("1.00", "1.00")
    assert both["reuse in L2"] == "j"
    assert both["differs by"] == "not-settled, evasion"
    alone = {column.header: column.cell(simulated_answer) for column in columns}
    assert (alone["L1L2 in lc CL"], alone["L1L2 in sim CL"], alone["differs by"]) == ("-", "4.40", "-")


def test_simulated_ecm_shows_counts_in_place_of_conditions(ecm_answer, simulated_answer):
    answer = dataclasses.replace(ecm_answer, traffic=simulated_answer.traffic)
    text = text_of(ecm.ecm_report(answer, "cy/CL"))
    assert "by simulation" in line_with(text, "  traffic")
    assert "Requests per cache" in text
    assert "50% (0% … 100%)" in text
    assert "Layer conditions" not in text
    assert "Bytes per path, by kind" in text_of(ecm.ecm_report(answer, "cy/CL", verbose=True))
    row = cells(ecm.sweep_columns(answer, "cy/CL", POINTS), *ecm.sweep_items(answer))
    assert row[-3:] == ("hits 86%", "hits 63%", "hits 33%")


def test_kernel_shows_indices_read_from_arrays(nest):
    value = IndirectIndex("idx_i", "idx", nest.accesses[0].offset, "idx[i]")
    first = dataclasses.replace(nest.accesses[0], indirect=(value,))
    outer = dataclasses.replace(nest.accesses[1], depth=1, after_inner=True)
    text = text_of(kernel.kernel_report(dataclasses.replace(nest, accesses=(first, first, outer)), nest.defaults))
    table = section(text, "Indices read from arrays")
    assert line_with(table, "idx_i").split()[:2] == ["idx_i", "idx"]
    assert table.count("idx_i") == 1
    assert "after the inner loop" in line_with(text, "a[j+1][i]")
    assert "Indices read" not in text_of(kernel.kernel_report(nest, nest.defaults))
