from __future__ import annotations

from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.report.layout import Column, Fields, Heading, Line, Table, left, right
from kernmodel.report.text.render import Style, render, stream, to_ascii

CELL = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=("C", "Z", "M", "Lo", "Lm", "So")), max_size=30)
SIGNS = st.text(alphabet="abcXYZ 0189.,:;()[]{}<>=*+-/%$_‖⌈⌉≤×µ·→é", max_size=20).map(str.strip)
COLUMNS = (left("a", itemgetter(0)), right("b", itemgetter(1)), left("c", itemgetter(2), fold=True))


def test_markup_of_the_users_text_is_not_interpreted():
    table = Table((Column("instruction", "left"),), (("mov [bold]rax[/bold], :smile:",),))
    assert "mov [bold]rax[/bold], :smile:" in render((table,), Style())


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=5))
def test_nothing_is_cut_off_in_a_pipe(rows: list[tuple[str, str, str]]):
    text = render((Table(COLUMNS, tuple(rows)),), Style())
    assert all(cell in text for row in rows for cell in row)


@pytest.mark.parametrize("width", [10, 40, 80])
def test_columns_that_may_not_fold_stay_whole_on_a_narrow_terminal(width: int):
    long = "vfmadd231pd (%rax,%rcx,8), %ymm12, %ymm13"
    text = render((Table(COLUMNS, ((long, "1234567.89", "a reason in several words"),)),), Style(width=width))
    assert long in text
    assert "1234567.89" in text
    assert all(word in text for word in ("reason", "several", "words"))


def test_folding_columns_fold_on_a_terminal_and_not_in_a_pipe():
    words = "many words that go on and on and on"
    table = Table(COLUMNS, (("x", "1", words),))
    assert words in render((table,), Style())
    narrow = render((table,), Style(width=32))
    assert max(map(len, narrow.splitlines())) <= 32
    assert narrow.split()[4:] == ["x", "1", *words.split()]


def test_numbers_stay_whole_where_a_table_is_wider_than_the_terminal():
    table = Table(tuple(Column(str(port)) for port in range(40)), (("0.50",) * 40,), (("1.00",) * 40,))
    text = render((table,), Style(width=80))
    assert text.count("0.50") == text.count("1.00") == 40


def test_no_escape_sequence_without_colour():
    blocks = (Heading("h"), Line("l", "warning"), Fields((("k", "v"),)), Table(COLUMNS, (("x", "1", "y"),)))
    assert "\x1b" not in render(blocks, Style())
    assert "\x1b[33ml" in render(blocks, Style(color=True))


def test_sums_stand_behind_a_rule():
    table = Table((Column("n"),), (("1",), ("2",)), (("3",),))
    lines = render((table,), Style()).splitlines()
    assert set(lines[-2]) == {"-"}
    assert lines[-1].strip() == "3"


@given(st.text())
def test_ascii_output_is_ascii(text: str):
    assert to_ascii(text).isascii()


def test_the_signs_of_the_field_have_ascii_forms():
    assert to_ascii("{8.0 ‖ 4.0 | 5.0} {8.0 ⌉ 9.0} ⌈T_ECM/T_Mem⌉ N ≤ 3") == (
        "{8.0 || 4.0 | 5.0} {8.0 \\ 9.0} ceil(T_ECM/T_Mem) N <= 3"
    )


def test_rows_are_streamed_as_they_arrive():
    seen: list[int] = []

    def rows():
        for number in range(3):
            seen.append(number)
            yield (str(number), "1", "x")

    lines = stream(COLUMNS, rows(), Style())
    header, rule = next(lines), next(lines)
    assert header.split() == ["a", "b", "c"]
    assert set(rule) == {"-"}
    assert next(lines).split() == ["0", "1", "x"]
    assert seen == [0]
    assert len(list(lines)) == 2


def test_a_streamed_table_without_rows_has_its_header():
    assert len(list(stream(COLUMNS, (), Style()))) == 2


@given(st.lists(st.tuples(SIGNS, SIGNS, SIGNS), min_size=1, max_size=5), st.booleans())
def test_a_table_in_a_pipe_is_what_rich_makes_of_it(rows: list[tuple[str, str, str]], summed: bool):
    """The padding of our own must not differ from that of a wide terminal without colours."""
    table = Table(COLUMNS, tuple(rows), tuple(rows[:1]) if summed else ())
    assert render((table,), Style()) == render((table,), Style(width=100_000))
