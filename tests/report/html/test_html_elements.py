from __future__ import annotations

import json
import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.report.html.blocks import blocks_html
from kernmodel.report.html.elements import data, element, html
from kernmodel.report.layout import Column, Fields, Heading, Line, Table

TEXTS = st.text(alphabet=st.sampled_from("<>&\"'/!-ab \n"), max_size=12)


@given(TEXTS, TEXTS)
def test_text_and_attributes_come_back_as_they_were_and_open_no_element(text, value):
    found = element("p", text, data_of=value)
    match = re.fullmatch(r'<p data-of="([^"]*)">([^<]*)</p>', found)
    assert match is not None
    assert (unescape(match[1]), unescape(match[2])) == (value, text)


@given(TEXTS)
def test_data_come_back_and_cannot_end_their_element(text):
    found = data({"key": text})
    body = found.removeprefix('<script type="application/json">').removesuffix("</script>")
    assert "<" not in body
    assert json.loads(body) == {"key": text}


def test_numbers_that_are_not_finite_are_null():
    assert data([float("nan"), float("inf"), 1.5]) == '<script type="application/json">[null,null,1.5]</script>'


def test_children_may_be_lists_and_nothing():
    assert html("a", None, ["b", element("br")], 3) == "ab<br>3"


def test_attributes_that_are_false_are_left_out():
    assert element("input", hidden=False, required=True, list=None) == "<input required>"


@pytest.mark.parametrize("text", ["</script>", "<b>", "a & b", '"'])
def test_every_block_escapes_its_text(text):
    column = Column(text, "left")
    blocks = (Heading(text), Line(text), Fields(((text, text),)), Table((column,), ((text,),), ((text,),)))
    found = blocks_html(blocks)
    assert text not in re.sub(r"</?[a-z][^<>]*>", "", found)
    assert unescape(re.sub(r"<[^<>]*>", "|", found)).count(text) == 7


def test_a_table_scrolls_by_itself_and_has_a_name():
    found = blocks_html((Heading("Traffic"), Table((Column("path", "left"),), (("L1L2",),))))
    assert '<div class="table" tabindex="0" role="region" aria-label="Traffic">' in found
    assert '<th scope="col" class="left">path</th>' in found
