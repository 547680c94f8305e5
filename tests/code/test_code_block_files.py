"""Files of many blocks: lines of hex digits, CSV, gzip, and lines that hold no block."""

from __future__ import annotations

import gzip
import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.code.block_files import BlockLine, block_lines, read_lines
from kernmodel.errors import AssemblyError


def lines_of(text: str, column: str | None = None) -> list[BlockLine]:
    return list(block_lines(text.splitlines(keepends=True), "b.txt", column))


def test_plain_lines_keep_their_numbers():
    assert lines_of("4801d8\n# a comment\n\n 90 \n") == [BlockLine(1, "4801d8"), BlockLine(3, ""), BlockLine(4, "90")]


def test_csv_by_its_header():
    assert lines_of("id,hex\n1,4801d8\n2,90\n") == [BlockLine(2, "4801d8"), BlockLine(3, "90")]
    assert lines_of("\ufeffhex\n90\n") == [BlockLine(2, "90")]


def test_csv_by_the_name_of_a_column():
    assert lines_of("id, code\n1, 90\n", "code") == [BlockLine(2, "90")]
    with pytest.raises(AssemblyError, match=r"'cod'.*choose one of: id, code"):
        lines_of("id,code\n1,90\n", "cod")


def test_csv_without_the_column_is_told_from_hex_digits():
    with pytest.raises(AssemblyError, match="no column 'hex'"):
        lines_of("id,code\n1,90\n")
    assert [line.code for line in lines_of("48,01,d8\n90\n")] == ["48,01,d8", "90"]


def test_a_short_row_is_an_error_of_its_line():
    first, second = lines_of("id,hex\n1\n2,90\n")
    assert first.number == 2
    assert first.code is None
    assert "'hex'" in (first.error or "")
    assert second == BlockLine(3, "90")


def test_an_empty_file_has_no_blocks():
    assert lines_of("") == []


def test_binary_is_no_text():
    with pytest.raises(AssemblyError, match="is no text"):
        lines_of("\x00\x01,\x02\n")


@given(st.lists(st.binary(min_size=1, max_size=8)))
def test_gzip_or_not_is_the_same(tmp_path_factory, blocks):
    folder = tmp_path_factory.mktemp("blocks")
    text = "".join(block.hex() + "\n" for block in blocks)
    (folder / "b.txt").write_text(text)
    (folder / "b.gz").write_bytes(gzip.compress(text.encode()))
    plain, packed = (list(block_lines(read_lines(str(folder / name)), name)) for name in ("b.txt", "b.gz"))
    assert plain == packed == [BlockLine(number, block.hex()) for number, block in enumerate(blocks, 1)]


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"90\n" * 1000)[:20])
    for path, part in ((tmp_path / "x.gz", "damaged"), (tmp_path, "directory"), (tmp_path / "no", "No such")):
        with pytest.raises(AssemblyError, match=part):
            list(read_lines(str(path)))


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"90\n\xff\n")))
    assert [line.strip() for line in read_lines("-")] == ["90", "\ufffd"]
