"""The table of limits: the documentation shows what the code has, and one option lifts them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from kernmodel import limits
from kernmodel.errors import KernmodelError
from kernmodel.source.load import parse_kernel

LIMITS = [value for value in vars(limits).values() if isinstance(value, limits.Limit)]
PAGE = Path(__file__).parents[1] / "docs" / "cli.md"


def test_the_documentation_shows_all_limits():
    rows = "\n".join(f"| {limit.name} | {limit.text} |" for limit in LIMITS)
    assert f"| limit | |\n| --- | --- |\n{rows}\n\n" in PAGE.read_text(encoding="utf-8")


def test_limits_are_lifted_and_put_back():
    limit = LIMITS[0]
    with limits.restored():
        limits.lift()
        assert limit.most == math.inf
        assert not limit.exceeded(10**30)
    assert limit.exceeded(limit.default + 1)
    with limits.no_limits():
        assert not limit.exceeded(limit.default + 1)
    assert limit.exceeded(limit.default + 1)
    assert not limit.exceeded(limit.default)


def test_what_was_taken_on_without_limits_is_refused_with_them(monkeypatch):
    monkeypatch.setattr("kernmodel.source.parse.build.REFERENCES", limits.Limit("references", 1))
    text = "void f(double *x, double *y) { for (int i = 0; i < 9; ++i) y[i] = 17.0 * x[i]; }"
    with limits.no_limits():
        assert len(parse_kernel(text, "k.c").accesses) == 2
    with pytest.raises(KernmodelError, match="references"):
        parse_kernel(text, "k.c")
