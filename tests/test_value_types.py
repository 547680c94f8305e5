"""Value types behave as the standard library's frozen data classes with slots, whose decorator they replace."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import re
import typing
from typing import Any, ClassVar, Generic, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernmodel.value_types import NamedTuple, dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Point:
    """A point with a mark that equality does not see."""

    x: int
    y: int = 2
    tags: list[str] = dataclasses.field(default_factory=list, compare=False)
    mark: str = dataclasses.field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Solid(Point):
    """A point with a height, which is given by name or not at all."""

    z: int = 3

    def __post_init__(self) -> None:
        if self.z < 0:
            raise ValueError("below")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    width: int = 1
    depth: int


@dataclass(frozen=True, slots=True)
class Box(Generic[T]):
    content: T

    @property
    def twice(self) -> tuple[T, T]:
        return self.content, self.content


@dataclass(slots=True)
class Counter:
    count: int = 0
    names: list[str] = dataclasses.field(default_factory=list)


@dataclass(slots=True, eq=False)
class Apart:
    count: int


@dataclasses.dataclass(frozen=True, slots=True)
class Standard:
    x: int
    y: int = 2
    tags: list[str] = dataclasses.field(default_factory=list, compare=False)
    mark: str = dataclasses.field(default="", compare=False, repr=False)


numbers = st.integers(-3, 3)


@given(numbers, numbers, numbers, numbers)
def test_equality_hash_and_text_are_those_of_the_standard_decorator(a: int, b: int, c: int, d: int) -> None:
    first, second = Point(a, b, mark="first"), Point(c, d, ["other"])
    one, other = Standard(a, b, mark="first"), Standard(c, d, ["other"])
    assert (first == second) == (one == other)
    assert first != one
    assert hash(first) == hash(one)
    assert repr(first) == repr(one).replace("Standard", "Point")
    assert str(inspect.signature(Point))[: len("(x: 'int', y: 'int' = 2")] == "(x: 'int', y: 'int' = 2"


@given(numbers, numbers, st.lists(st.text(max_size=2), max_size=2))
def test_pickle_copy_and_replace_keep_all_fields(x: int, z: int, tags: list[str]) -> None:
    value = Solid(x, tags=tags, mark="m", z=abs(z))
    for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), dataclasses.replace(value)):
        assert again == value
        assert dataclasses.astuple(again) == dataclasses.astuple(value) == (x, 2, tags, "m", abs(z))
    assert dataclasses.replace(value, x=9).x == 9


def test_values_cannot_be_changed_and_have_no_dictionary() -> None:
    value: Any = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="x"):
        value.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="y"):
        del value.y
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.other = 1
    assert not hasattr(value, "__dict__")
    assert Solid.__slots__ == ("z",)


def test_each_value_gets_a_default_of_its_own() -> None:
    assert Point(1).tags == []
    assert Point(1).tags is not Point(1).tags


def test_parameters() -> None:
    with pytest.raises(TypeError):
        Named(3)  # type: ignore[misc, call-arg]
    assert Named(depth=2) == Named(width=1, depth=2)
    with pytest.raises(ValueError, match="below"):
        Solid(1, z=-1)
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("values", "named"), [((1, 2, [], "", 5), {}), ((1,), {"x": 1}), ((), {"y": 1}), ((1,), {"other": 2})]
)
def test_values_that_do_not_fit_are_refused_as_the_standard_decorator_does(
    values: tuple[Any, ...], named: dict[str, Any]
) -> None:
    with pytest.raises(TypeError) as expected:
        Standard(*values, **named)
    for _ in range(3):  # by the real __init__ from the first time on
        with pytest.raises(TypeError, match=re.escape(str(expected.value).partition(".")[2])):
            Point(*values, **named)


def test_the_first_values_are_made_as_the_later_ones() -> None:
    @dataclass(frozen=True, slots=True)
    class Many:
        x: int
        y: list[int] = dataclasses.field(default_factory=list)
        z: int = 3

    made = [Many(1, z=4) for _ in range(50)]
    assert all(one == made[0] and one.y == [] and one.z == 4 for one in made)
    assert len({id(one.y) for one in made}) == 50
    assert Many.__init__.__annotations__["z"] == "int"  # compiled by now


def test_names_of_class_variables_are_no_fields() -> None:
    @dataclass(frozen=True, slots=True)
    class Counted:
        x: int
        unit: ClassVar[str] = "cy"

    assert [one.name for one in dataclasses.fields(Counted)] == ["x"]
    assert Counted(1).unit == "cy"


class Pair(NamedTuple):
    """Two numbers."""

    first: int
    second: int = 2

    @property
    def total(self) -> int:
        """Their sum."""
        return self.first + self.second


def test_named_tuples_are_those_of_the_standard_library() -> None:
    assert Pair(1) == (1, 2) == Pair(first=1)
    assert Pair(1).total == 3
    assert Pair._fields == ("first", "second")
    assert repr(Pair(1)) == "Pair(first=1, second=2)"
    assert pickle.loads(pickle.dumps(Pair(1)))._replace(second=5).total == 6
    assert typing.get_type_hints(Pair) == {"first": int, "second": int}
    assert Pair.__doc__ == "Two numbers."
    with pytest.raises(TypeError):
        Pair()  # type: ignore[call-arg]


def test_a_field_without_default_behind_one_with_default_is_refused() -> None:
    with pytest.raises(TypeError, match="default"):

        @dataclass(frozen=True, slots=True)
        class Wrong:
            first: int = 1
            second: int  # type: ignore[misc]


def test_generic_and_matched() -> None:
    match Box(5):
        case Box(content=5 as found):
            assert found == 5
    match Point(1, 4):
        case Point(x, y):
            assert (x, y) == (1, 4)
    assert Box("a").twice == ("a", "a")


def test_values_with_slots_that_are_not_frozen_can_be_changed_and_have_no_hash() -> None:
    counter: Any = Counter()
    counter.count += 1
    assert counter == Counter(1) != Counter(1, ["a"])
    assert repr(counter) == "Counter(count=1, names=[])"
    assert Counter.__hash__ is None  # type: ignore[comparison-overlap]
    assert pickle.loads(pickle.dumps(counter)) == counter
    with pytest.raises(AttributeError):
        counter.other = 1
    assert len({Apart(1), Apart(1)}) == 2
    assert Apart(1) != Apart(1)


def test_other_data_classes_are_made_by_the_library() -> None:
    @dataclass
    class Open:
        count: int = 0

    value: Any = Open()
    value.other = 1
    assert value == Open()
