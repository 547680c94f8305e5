"""YAML that would end the process, or stand for more than it holds."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kernmodel import limits
from kernmodel.errors import InputError, MachineError
from kernmodel.limits import YAML_DEPTH, Limit
from kernmodel.schema import yaml_nodes

GROWING = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)
DEEP = ("[" * 30_000, "{a: " * 30_000, "- " * 30_000, "? " * 30_000, "".join(f"{' ' * n}a:\n" for n in range(3000)))


@pytest.mark.parametrize("text", DEEP, ids=lambda text: text[:4])
def test_nesting_is_refused_before_the_stack_ends(text):
    for read in (yaml_nodes.compose, yaml_nodes.load):
        with pytest.raises(InputError, match=r"f\.yml:\d+: is nested too deeply; .* 100 with --no-limits"):
            read(text, "f.yml")
        if not text.startswith("a"):  # what the stack does not hold is refused in any case
            with limits.restored(), pytest.raises(InputError, match="nested too deeply"):
                limits.lift()
                read(text, "f.yml")


def test_depth_is_counted_to_the_digit():
    deepest = "[" * YAML_DEPTH.default + "]" * YAML_DEPTH.default
    assert yaml_nodes.load(deepest, "f") is not None
    with pytest.raises(MachineError, match="too deeply"):
        yaml_nodes.load(f"[{deepest}]", "f", error=MachineError)


def test_values_are_counted(monkeypatch):
    monkeypatch.setattr(yaml_nodes, "YAML_VALUES", Limit("values", 10))
    assert yaml_nodes.load("[1, 2, 3, 4, 5, 6, 7, 8, 9]", "f") == list(range(1, 10))
    with pytest.raises(InputError, match="holds more than 10 values; split it, or"):
        yaml_nodes.load("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", "f")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (GROWING, "its anchors stand for 1,2"),
        ("a: &a [*a]", "an anchor holds itself"),
        ("&a {b: {c: *a}}", "an anchor holds itself"),
    ],
)
def test_anchors_that_grow(text, what):
    for read in (yaml_nodes.compose, yaml_nodes.load):
        with pytest.raises(InputError, match=what):
            read(text, "f")


@pytest.mark.parametrize("text", ["a: 2020-99-99", f"a: {'1' * 5000}", "[a, b]: 1", "a: !!python/name:os.system x"])
def test_values_that_are_none(text):
    with pytest.raises(InputError, match=r"f(:\d+:\d+)?: "):
        yaml_nodes.load(text, "f")


TEXTS = st.recursive(
    st.sampled_from(["1", "x", "-.inf", "１２", "&a 1", "*a", "'", "!!float x", "2020-13-45", "9" * 400, "~", "\t"]),
    lambda parts: (
        st.lists(parts, max_size=4).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(parts, parts), max_size=3).map(
            lambda pairs: f"{{{', '.join(f'{k}: {v}' for k, v in pairs)}}}"
        )
        | st.tuples(parts, st.integers(1, 300)).map(lambda pair: "[" * pair[1] + pair[0] + "]" * pair[1])
        | st.lists(parts, max_size=3).map(lambda items: "".join(f"- {item}\n" for item in items))
    ),
    max_leaves=12,
)


@settings(max_examples=40, deadline=None)
@given(TEXTS)
def test_any_text_is_values_or_one_message(text):
    """What PyYAML reads, this reads alike; what it refuses, or what is too deep, is one message."""
    try:
        expected = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except Exception:
        expected = InputError
    try:
        found = yaml_nodes.load(text, "f")
    except InputError:
        assert expected is InputError or "[" * 90 in text or "&a" in text
    else:
        assert repr(found) == repr(expected)
