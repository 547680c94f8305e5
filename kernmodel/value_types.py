"""`dataclass` and `NamedTuple` for value types, made in a fraction of the time that the standard library's take.

A command loads some 270 frozen classes with slots. The standard library compiles six methods of each of them from text,
about 1 ms in all, so that every command began with 0.3 s of it, half as much as `import sympy`
(`benchmarks/cold_start.py` prints what a class costs). Only `__init__` has to be text, for its parameters, and is
compiled when a class has made a few values, since of most classes a command makes none or few; what compares, hashes,
prints and guards a value is the same code for all classes. They are data classes for everybody else:
`dataclasses.fields`, `replace`, `asdict`, `match` and pickle take them. The same holds for classes with slots that are
not frozen, whose values can be changed.

`NamedTuple` leaves annotations as they are written, where the standard library's compiles each of them.

`LateMapping` is a mapping that is made when it is first asked for, for fields that few readers of a value look at.
"""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from inspect import get_annotations, signature
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["LateMapping", "NamedTuple", "dataclass"]

if TYPE_CHECKING:  # type checkers know the standard library's and what it makes
    from dataclasses import dataclass
    from typing import NamedTuple
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, **options: Any) -> Any:
        """The decorator `dataclasses.dataclass`; classes with slots are made faster, all others by it.

        Raises:
            TypeError: a field without a default follows one with a default.
        """
        quick = slots and options.keys() <= {"kw_only", "eq"}

        def make(one: type) -> type:
            annotations = get_annotations(one)
            if quick and not _has_others(annotations):
                return _with_slots(one, annotations, frozen, **options)
            return dataclasses.dataclass(one, frozen=frozen, slots=slots, **options)

        return make if cls is None else make(cls)

    class _Tuples(type):
        """Makes a class of `NamedTuple` a tuple with names, of its annotations."""

        def __new__(maker, name: str, bases: tuple[type, ...], content: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(maker, name, bases, content)
            fields = content["__annotations__"]
            defaults = [content[field] for field in fields if field in content]
            made = namedtuple(name, fields, defaults=defaults, module=content["__module__"])
            for attribute in content.keys() - fields.keys():
                setattr(made, attribute, content[attribute])
            return made

    class NamedTuple(metaclass=_Tuples):
        """The base `typing.NamedTuple`, for modules that import `annotations` from `__future__`."""


Fields = dict[str, "dataclasses.Field[Any]"]
_FEW = 20
"""Values of a class that are made before compiling its `__init__` takes less time."""
_set = object.__setattr__


def _has_others(annotations: dict[str, Any]) -> bool:
    """Whether an annotation of a class may be none of a field."""
    written = str(annotations)
    return "ClassVar" in written or "InitVar" in written or "KW_ONLY" in written


def _with_slots(
    cls: type, annotations: dict[str, Any], frozen: bool, *, eq: bool = True, kw_only: bool = False
) -> type:
    """The class with slots for its fields, and methods that make it a value: compared by its fields, and hashed if
    frozen."""
    fields = _fields_of(cls, annotations, kw_only)
    inherited = {name for base in cls.__mro__[1:] for name in base.__dict__.get("__slots__", ())}
    library = _Library(cls, kw_only)
    content: dict[str, Any] = {
        "__init__": _late_initialiser(cls, fields),
        "__signature__": _Late(lambda: _signature(cls, fields)),
        "__repr__": _representation([name for name, one in fields.items() if one.repr]),
        "__getstate__": _state,
        "__setstate__": _set_state,
        "__match_args__": tuple([name for name, one in fields.items() if not one.kw_only]),
        "__dataclass_fields__": _Late(lambda: library.made.__dataclass_fields__),
        "__dataclass_params__": _Late(lambda: library.made.__dataclass_params__),
        "__slots__": tuple([name for name in fields if name not in inherited]),
    }
    if eq:
        compared = _values_of([name for name, one in fields.items() if one.compare])
        content["__eq__"] = _equality(compared)
        content["__hash__"] = (lambda self: hash(compared(self))) if frozen else None
    if frozen:
        content |= {"__setattr__": _refuse_assignment, "__delattr__": _refuse_deletion}
    own = dict(cls.__dict__)
    for name in ("__dict__", "__weakref__", *fields):
        own.pop(name, None)  # defaults stand in __init__; as attributes of the class they would hide the slots
    if own.get("__hash__", ...) is None:  # Python's mark for a class that writes __eq__ alone
        del own["__hash__"]
    made = type(cls)(cls.__name__, cls.__bases__, content | own)
    made.__qualname__ = cls.__qualname__
    return made


def _fields_of(cls: type, annotations: dict[str, Any], kw_only: bool) -> Fields:
    """The fields, inherited ones first.

    Raises:
        TypeError: a field without a default follows one with a default.
    """
    fields: Fields = {}
    for base in cls.__mro__[-1:0:-1]:
        fields |= getattr(base, "__dataclass_fields__", {})
    for name, annotation in annotations.items():
        given = cls.__dict__.get(name, dataclasses.MISSING)
        one = given if isinstance(given, dataclasses.Field) else dataclasses.field(default=given)
        one.type = annotation
        if one.kw_only is dataclasses.MISSING:
            one.kw_only = kw_only
        fields[name] = one
    required = [_is_required(one) for one in fields.values() if not one.kw_only]
    if sorted(required, reverse=True) != required:
        raise TypeError(f"{cls.__qualname__}: a field without a default follows one with a default")
    return fields


def _is_required(one: dataclasses.Field[Any]) -> bool:
    return dataclasses.MISSING is one.default is one.default_factory


class _Library:
    """What the standard library makes of a class, which is asked for it late."""

    def __init__(self, cls: type, kw_only: bool) -> None:
        self._cls, self._kw_only = cls, kw_only

    @cached_property
    def made(self) -> Any:
        """The class with the library's `__dataclass_fields__` and `__dataclass_params__`."""
        return dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=self._kw_only)(self._cls)


class _Late:
    """An attribute of a class that is made when it is asked for."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    def __get__(self, value: object, owner: type) -> Any:
        return self._make()


def _signature(cls: type, fields: Fields) -> Any:
    """What `inspect` tells of a class: the signature of its real `__init__`."""
    whole = signature(_initialiser(cls, fields))
    return whole.replace(parameters=list(whole.parameters.values())[1:])


def _late_initialiser(cls: type, fields: Fields) -> Callable[..., None]:
    """The method `__init__` of a class of which few values were made: the real one is compiled when there are more, or
    when what is given does not fit."""
    positions = [name for name, one in fields.items() if not one.kw_only]
    required = {name for name, one in fields.items() if _is_required(one)}
    left = _FEW

    def initialise(self: Any, *values: Any, **named: Any) -> None:
        nonlocal left
        left -= 1
        given = dict(zip(positions, values, strict=False), **named)
        fits = len(given) == len(values) + len(named) and required <= given.keys() <= fields.keys()
        if fits and left > 0:
            for name, one in fields.items():
                _set(self, name, given[name] if name in given else _default(one))
            if hasattr(self, "__post_init__"):
                self.__post_init__()
            return
        owner = next((one for one in type(self).__mro__ if one.__dict__.get("__init__") is initialise), type(self))
        made = _initialiser(cls, fields, owner)
        type.__setattr__(owner, "__init__", made)
        made(self, *values, **named)

    return initialise


def _default(one: dataclasses.Field[Any]) -> Any:
    return one.default if one.default_factory is dataclasses.MISSING else one.default_factory()


def _initialiser(cls: type, fields: Fields, slotted: type | None = None) -> Callable[..., None]:
    """The method `__init__`: fields as parameters, keyword-only ones last; then `__post_init__`.

    Args:
        slotted: the class that was made of it, whose slots are filled directly, in three quarters of the time.
    """
    known: dict[str, Any] = {"_not_given": dataclasses.MISSING}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    lines = []
    for name, one in fields.items():
        value, default = name, ""
        if one.default is not dataclasses.MISSING:
            known[f"_default_{name}"], default = one.default, f"=_default_{name}"
        elif one.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"], default = one.default_factory, "=_not_given"
            value = f"_make_{name}() if {name} is _not_given else {name}"
        parameters[bool(one.kw_only)].append(name + default)
        known[f"_set_{name}"] = getattr(slotted, name).__set__ if slotted else None
        lines.append(f"_set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    by_name = ["*", *parameters[True]] if parameters[True] else []
    header = f"def __init__({', '.join(['self', *parameters[False], *by_name])}):"
    try:
        exec("\n ".join([header, *(lines or ["pass"])]), known)
    except SyntaxError as error:
        raise TypeError(f"{cls.__qualname__}: {error.msg}") from None
    made: Callable[..., None] = known["__init__"]
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    made.__annotations__ = {name: one.type for name, one in fields.items()} | {"return": None}
    return made


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What gives the values of these fields of an object."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _equality(compared: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, object], bool]:
    def equal(self: Any, other: object) -> bool:
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _representation(names: list[str]) -> Callable[[Any], str]:
    def representation(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return representation


def _refuse_assignment(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    """For pickle, which cannot assign to a frozen value: the values of the fields in their order."""
    return [getattr(self, one.name) for one in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for one, value in zip(dataclasses.fields(self), state, strict=True):
        _set(self, one.name, value)


_Value = TypeVar("_Value")


class LateMapping(Mapping[str, _Value]):
    """The mapping that a call gives, made when it is first looked at."""

    def __init__(self, make: Callable[[], Mapping[str, _Value]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> Mapping[str, _Value]:
        return self._make()

    def __getitem__(self, key: str) -> _Value:
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def __repr__(self) -> str:
        return repr(self._made)
