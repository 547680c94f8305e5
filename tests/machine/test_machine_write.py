"""Facts written as the text of a machine file and read again."""

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel.machine.files.schema import MACHINE_FILE
from kernmodel.machine.files.write import with_unit, write_facts
from kernmodel.schema.document import compose
from kernmodel.units import parse_quantity

TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")) | st.just(" "), min_size=1, max_size=200
).filter(lambda text: bool(text.strip()))
WORDS = TEXT.map(str.strip)
KEYS = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,8}", fullmatch=True)
ROWS = st.dictionaries(KEYS, WORDS, min_size=1, max_size=4)
FACTS = st.dictionaries(
    KEYS, WORDS | ROWS | st.lists(WORDS, max_size=5) | st.lists(ROWS, min_size=1, max_size=3), min_size=1, max_size=5
)


@pytest.mark.thorough
@settings(max_examples=300, deadline=None)
@given(FACTS, WORDS)
def test_any_facts_read_back(facts: dict[str, object], comment: str) -> None:
    assert yaml.load(write_facts(facts, [comment]), Loader=yaml.BaseLoader) == facts


@given(st.floats(1e-6, 1e18), st.sampled_from(["data", "frequency", "bandwidth"]))
def test_quantities_read_back(value: float, dimension: str) -> None:
    assert parse_quantity(with_unit(value, dimension), dimension) == value


def test_sizes_have_the_unit_people_use() -> None:
    assert [with_unit(size, "data") for size in (32 * 1024, 13.75 * 1024**2, 64, 2**30)] == [
        "32 KiB",
        "13.75 MiB",
        "64 B",
        "1 GiB",
    ]
    assert with_unit(2.35e9, "frequency") == "2.35 GHz"


def test_unknown_facts_become_comments_to_fill_in() -> None:
    text = write_facts({"title": "x", "core": {"microarchitecture": None, "source": "y"}})
    assert "  # microarchitecture:  (not known; fill it in)\n" in text
    root = compose(text, "x.yml", MACHINE_FILE)
    assert [key.value for key, _ in root.value] == ["title", "core"]
