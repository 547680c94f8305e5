"""What a user states of the lines of a source: how often conditions hold, and how many iterations loops have."""

from __future__ import annotations

import pytest

from kernmodel.errors import SourceError
from kernmodel.source.load import parse_kernel
from kernmodel.source.model import LoopNest, Stated

TEXT = """void f(int n, double *a, const double *b, const double *c, const int *k) {
    for (int i = 1; i < n; ++i) {
        if (c[i] > 0.0)
            a[i] = b[i] * 2.0 + 1.0;
        else
            a[i] = 0.0;
        if (k[i] == 3)
            continue;
        a[i] = a[i] / b[i];
        if (i > 3)
            a[i] = a[i] * 3.0;
    }
}
"""


def nest_of(text: str = TEXT, taken: dict[int, float] | None = None, trips: dict[int, int] | None = None) -> LoopNest:
    return parse_kernel(text, "x.c", stated=Stated(tuple((taken or {}).items()), tuple((trips or {}).items())))


def shares(nest: LoopNest) -> dict[str, float]:
    return {f"{access.kind} {access.text}": access.executed for access in nest.accesses}


def test_conditions_that_the_data_decide_hold_in_half_of_the_cases() -> None:
    nest = nest_of()
    # c[i] > 0: multiply, add; what follows the continue is executed in half of the iterations, i > 3 as if always
    assert nest.operations.flops_per_iteration == 0.5 * 2 + 0.5 * (1 + 1)
    assert [(one.location.line, one.share, one.taken) for one in nest.operations.branches] == [(3, 1, 0.5), (7, 1, 0.5)]
    # a[i] is written on both sides, and twice behind the continue
    assert shares(nest) == {"read c[i]": 1, "read b[i]": 1, "write a[i]": 2, "read k[i]": 1, "read a[i]": 1}


def test_probabilities_are_taken_as_stated() -> None:
    nest = nest_of(taken={3: 0.25, 7: 0.9, 10: 0.5})
    assert nest.operations.flops_per_iteration == pytest.approx(0.25 * 2 + 0.1 * 1 + 0.05)
    assert shares(nest)["write a[i]"] == pytest.approx(1 + 0.1 + 0.05)
    assert next(note.text for note in nest.notes if "as stated" in note.text).endswith("probability 0.25, as stated")
    assert nest_of(taken={3: 1.0, 7: 0.0}).operations.flops_per_iteration == 4


LOOPS = {
    "for (int i = 0; i < n; ++i) if (c[i] == 0.0) break;": "0 to 7",
    "for (int i = 4; ; i += 2) if (c[i] == 0.0) break;": "4 to 18",
    "for (int i = n; i > 2; i = i - 3) if (c[i] == 0.0) break;": "n to n - 21",
    "double s = 0.0; int i = 0; while (s < 9.0) s += c[i++];": "0 to 7",
    "for (int i = 0, k = n; c[i] > 0.0; i++, k--) if (c[k] == 0.0) break;": "0 to 7",
    "double s = 0.0; int i = 0; do { s += c[i]; i++; } while (s < 9.0);": "0 to 7",
}


@pytest.mark.parametrize("body", LOOPS)
def test_loops_have_the_iterations_that_are_stated(body: str) -> None:
    nest = nest_of(f"void f(int n, const double *c) {{\n{body} }}", trips={2: 7})
    first, last = LOOPS[body].split(" to ")
    assert [str(nest.inner.start), str(nest.inner.stop)] == [first, last]
    codes = {note.code for note in nest.notes}
    assert "stated-trips" in codes and "early-exit" not in codes
    assert nest.accesses[0].text.startswith("c[i")


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (Stated(taken=((4, 0.5),)), "no branch stands at line 4; --taken takes the lines 3, 7, 10"),
        (Stated(trip_counts=((3, 5),)), "no loop stands at line 3; --trip-count takes the lines 2"),
    ],
)
def test_lines_without_such_a_thing_are_refused(stated: Stated, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        parse_kernel(TEXT, "x.c", stated=stated)
