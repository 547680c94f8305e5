"""Conditions of sizes and loop variables: FLOP and accesses, counted, against the loops as executed."""

from __future__ import annotations

import pytest

import kernmodel as km
from kernmodel.source.load import parse_kernel

HEAD = """void f(int n, double a[restrict n][n], double b[restrict n][n])
{
    for (int j = %s)
        for (int i = %s) {
            %s
        }
}
"""
DOWN = "n - 1; j >= 0; --j", "n - 1; i > 0; i -= 1"
UP = "0; j < n; ++j", "0; i < n; ++i"
TRIANGLE = "0; j < n; ++j", "j; i < n; ++i"
APART = "1; j < n; j += 2", "2; i < n; i += 3"
EACH = "a[j][i] += 1.0;"
CONDITIONS = {
    "i < j": lambda n, j, i: i < j,
    "i != j && j > 3": lambda n, j, i: i != j and j > 3,
    "i == 0 || j == 0 || i == n - 1": lambda n, j, i: i == 0 or j == 0 or i == n - 1,
    "!(i + j < n)": lambda n, j, i: not i + j < n,
    "j": lambda n, j, i: j != 0,
    "2 * i >= n - 3": lambda n, j, i: 2 * i >= n - 3,
    "n > 40": lambda n, j, i: n > 40,
}


def iterations(loops: tuple[str, str], n: int) -> list[tuple[int, int]]:
    """The values of j and i."""
    if loops is DOWN:
        return [(j, i) for j in reversed(range(n)) for i in reversed(range(1, n))]
    if loops is APART:
        return [(j, i) for j in range(1, n, 2) for i in range(2, n, 3)]
    return [(j, i) for j in range(n) for i in range(j if loops is TRIANGLE else 0, n)]


@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("loops", [UP, DOWN, TRIANGLE, APART], ids=["up", "down", "triangle", "apart"])
def test_flop_and_accesses_are_those_of_the_iterations_in_which_it_holds(
    loops: tuple[str, str], condition: str
) -> None:
    n, holds = 17, CONDITIONS[condition]
    if loops is APART and ("j" in condition.replace("j == 0", "") and "i" in condition):
        pytest.skip("a loop with a step whose start would follow another variable is not counted")
    nest = parse_kernel(
        HEAD % (*loops, f"if ({condition}) {EACH} else b[j][i] = a[j][i] * 2.0 + 1.0;"), "x.c", {"n": n}
    )
    places = iterations(loops, n)
    share = sum(holds(n, j, i) for j, i in places) / len(places)
    assert nest.operations.flops_per_iteration == pytest.approx(share + 2 * (1 - share))
    written = {access.array: access.executed for access in nest.writes()}
    assert written == pytest.approx({"a": share, "b": 1 - share})


def test_conditions_within_conditions_and_behind_continue() -> None:
    body = "if (i > j) continue; if (i == 3) { a[j][i] = 1.0 + a[j][i]; } if (j > 5) { if (i < 2) b[j][i] *= 2.0; }"
    nest = parse_kernel(HEAD % (*UP, body), "x.c", {"n": 9})
    places = [(j, i) for j, i in iterations(UP, 9) if i <= j]
    written = {access.array: access.executed for access in nest.writes()}
    third = sum(i == 3 for _, i in places) / 81
    assert written == pytest.approx({"a": third, "b": sum(j > 5 and i < 2 for j, i in places) / 81})


def test_what_is_not_known_counts_on_all_sides() -> None:
    nest = parse_kernel(HEAD % (*UP, f"if (i < j) {EACH} else b[j][i] = 1.0;"), "x.c")
    assert [access.executed for access in nest.writes()] == [1, 1]
    assert any("all sides" in note.text for note in nest.notes)


def test_lines_are_those_of_the_ranges() -> None:
    text = HEAD % (*UP, "if (i < j) a[j][i] = 1.0; else b[j][i] = 1.0;")
    for n in (400, 1600):
        traffic = km.data_traffic(text, "bdw", cache="lc", n=n).answer.traffic
        lines = {row.array: sum(row.served_by.values()) for row in traffic.accesses}
        below = n * (n - 1) / 2 / n**2
        assert lines == pytest.approx({"a": below, "b": 1 - below})
        assert traffic.path("L1L2").loads == pytest.approx(1)


NULL = "#include <stddef.h>\nvoid f(int n, double *a, double *b) { for (int i = 0; i < n; ++i) %s }"


@pytest.mark.parametrize(
    ("statement", "writes"),
    [
        ("{ if (a) a[i] = b[i]; }", 1.0),
        ("{ if (a != NULL && i < 25) a[i] = b[i]; }", 0.25),
        ("{ if (!a || b == 0) continue; a[i] = b[i]; }", 1.0),
        ("{ if (0 == a) b[i] = 1.0; else a[i] = b[i]; }", 1.0),
        ("a[i] = b ? b[i] : 0.0;", 1.0),
    ],
)
def test_pointers_that_are_tested_are_no_null_pointers(statement: str, writes: float) -> None:
    nest = parse_kernel(NULL % statement, "f.c", defines={"n": 100})
    stores = {access.array: access.share for access in nest.accesses if access.kind == "write" and access.share}
    assert stores == {"a": pytest.approx(writes)}
    assert statement.startswith("a") or "null-pointer" in {note.code for note in nest.notes}
