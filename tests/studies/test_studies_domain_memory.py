"""Arrays that are larger than the main memory of a ccNUMA domain."""

from __future__ import annotations

import pytest

import kernmodel as km

SIDE = 32768
"""Rows of 256 KiB: one array of as many rows takes 8 GiB, and one domain of zen has 16 GiB."""


@pytest.mark.parametrize(("rows", "share"), [(SIDE, None), (2 * SIDE, "50%"), (SIDE + 8192, "20%")])
def test_what_lies_in_another_domain_is_told(rows: int, share: str | None) -> None:
    answer = km.ecm("stencil", "zen", M=rows, N=SIDE)
    found = [note for note in answer.notes if note.code == "beyond-domain-memory"]
    assert [note.kind for note in found] == ["warning"] * (share is not None)
    assert all(f"at least {share} of the data" in note.text for note in found)


def test_a_file_that_does_not_say_its_memory_has_no_such_warning() -> None:
    answer = km.ecm("stencil", "hsw", M=16 * SIDE, N=SIDE)
    assert "beyond-domain-memory" not in [note.code for note in answer.notes]
