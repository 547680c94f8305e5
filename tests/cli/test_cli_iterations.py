"""`--iterations-per-pass`: on every command that matches a loop, in place of the number that was found."""

from __future__ import annotations

import json

import pytest

TRIAD = """
triad:
.L3:
        vmovupd (%rsi,%rax), %ymm0
        vfmadd231pd (%rdx,%rax), %ymm2, %ymm0
        vmovupd %ymm0, (%rdi,%rax)
        addq    $32, %rax
        cmpq    %rcx, %rax
        jne     .L3
        ret
"""


@pytest.fixture
def document(run, tmp_path):
    listing = tmp_path / "triad.s"
    listing.write_text(TRIAD)

    def run_command(command: str, *options: str) -> dict:
        code = ("triad", "--asm", listing) if command != "incore" else (listing,)
        outcome = run(command, "-m", "clx", *code, "--json", *options)
        assert outcome.status == 0, outcome.err
        return json.loads(outcome.out)

    return run_command


def test_the_core_takes_as_many_times_longer_per_iteration_as_a_pass_has_fewer(document):
    found, by_hand = document("ecm"), document("ecm", "--iterations-per-pass", "1.6")
    assert by_hand["code"]["loop"]["iterations_per_pass"] == 1.6
    for term in ("t_ol", "t_nol"):
        assert by_hand["prediction"][term] == pytest.approx(2.5 * found["prediction"][term])
    (note,) = (note for note in by_hand["notes"] if note["code"] == "iterations-by-hand")
    assert note["kind"] == "assumption"
    assert "1.6 source iterations" in note["text"] and "4 were found" in note["text"]
    assert document("ecm", "--iterations-per-pass", "4")["notes"] == found["notes"]


@pytest.mark.parametrize("command", ["scaling", "roofline", "carm", "mix", "what-if", "sweep"])
def test_every_command_that_matches_a_loop_takes_it(document, command):
    options = ("--set", "clock=2GHz") if command == "what-if" else ()
    text = json.dumps(document(command, "--iterations-per-pass", "2", *options))
    assert "iterations-by-hand" in text


def test_code_without_a_source_gets_numbers_per_iteration(document):
    found = document("incore", "--iterations-per-pass", "4")
    assert found["incore"]["iterations_per_pass"] == 4


def test_it_is_said_of_one_loop_and_one_kernel(run, tmp_path):
    listing = tmp_path / "triad.s"
    listing.write_text(TRIAD)
    refused = [
        ("incore", "-m", "clx", listing, "--all-loops"),
        ("compare", "-m", "clx", "triad", "copy"),
        ("roofline", "-m", "clx", "triad", "copy"),
        ("mix", listing, "--weigh", "1=2"),
    ]
    for command in refused:
        outcome = run(*command, "--iterations-per-pass", "4")
        assert outcome.status == 2 and "--iterations-per-pass" in outcome.err, (command, outcome)
