"""Every reason of the in-core analysis has a sentence."""

from __future__ import annotations

from kernmodel.incore.model import Reason, Why
from kernmodel.report.text.reasons import SENTENCES, reason_text


def test_every_reason_has_a_sentence() -> None:
    assert set(SENTENCES) == set(Why)
    assert reason_text(None) == ""


def test_long_lists_are_cut_and_repeated_names_are_counted() -> None:
    ports = Reason(Why.PORTS, 2.0, names=tuple("abcdefg"), users=("add", "mul", "add"))
    assert reason_text(ports) == "ports a, b, c, d and 3 more are busy 2.00 cycles per pass with 2× add, mul"
    chain = Reason(Why.DEPENDENCY, 9.0, {"passes": 2}, ("r1",) * 6, ("add",) * 6)
    told = " → ".join(4 * ["add (r1)"])
    assert reason_text(chain) == f"the dependency chain over 2 passes takes 9.00 cycles per pass: {told} → … (2 more)"
