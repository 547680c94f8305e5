"""`dataclass` for value types, made in a third of the time that `dataclasses.dataclass` takes.

A command loads some 270 frozen classes with slots. The standard library compiles six methods of each of them from text,
about 1 ms in all, so that every command began with 0.3 s of it, half as much as `import sympy`
(`benchmarks/cold_start.py` prints what a class costs). Only `__init__` has to be text, for its parameters, and is
compiled when the first value is made, since of many classes a command makes none; what compares, hashes, prints and
guards a value is the same code for all classes. They are data classes for everybody else:
`dataclasses.fields`, `replace`, `asdict`, `match` and pickle take them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:  # type checkers know the standard decorator and what it makes
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, **options: Any) -> Any:
        """The decorator `dataclasses.dataclass`; frozen classes with slots are made faster, all others by it.

        Raises:
            TypeError: a field without a default follows one with a default.
        """
        quick = frozen and slots and options.keys() <= {"kw_only"}

        def make(one: type) -> type:
            if quick:
                return _value_type(one, **options)
            return dataclasses.dataclass(one, frozen=frozen, slots=slots, **options)

        return make if cls is None else make(cls)


def _value_type(cls: type, kw_only: bool = False) -> type:
    """The class with slots for its fields, and methods that make it a value: compared and hashed by its fields."""
    plain: Any = dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)
    fields = dataclasses.fields(plain)
    names = [one.name for one in fields]
    inherited = {name for base in cls.__mro__[1:] for name in base.__dict__.get("__slots__", ())}
    compared = _values_of([one.name for one in fields if one.compare])
    content: dict[str, Any] = {
        "__init__": _late_initialiser(cls, fields),
        "__signature__": _Signature(cls, fields),
        "__eq__": _equality(compared),
        "__hash__": lambda self: hash(compared(self)),
        "__repr__": _representation([one.name for one in fields if one.repr]),
        "__setattr__": _refuse_assignment,
        "__delattr__": _refuse_deletion,
        "__getstate__": _state,
        "__setstate__": _set_state,
        "__slots__": tuple(name for name in names if name not in inherited),
    }
    own = dict(cls.__dict__)
    for name in ("__dict__", "__weakref__", *names):
        own.pop(name, None)  # defaults stand in __init__; as attributes of the class they would hide the slots
    if own.get("__hash__", ...) is None:  # Python's mark for a class that writes __eq__ alone
        del own["__hash__"]
    made = type(cls)(cls.__name__, cls.__bases__, content | own)
    made.__qualname__ = cls.__qualname__
    return made


def _late_initialiser(cls: type, fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """What stands for the method `__init__` until the first value is made.

    Raises:
        TypeError: a field without a default follows one with a default.
    """
    required = [dataclasses.MISSING is one.default is one.default_factory for one in fields if not one.kw_only]
    if sorted(required, reverse=True) != required:
        raise TypeError(f"{cls.__qualname__}: a field without a default follows one with a default")

    def initialise(self: Any, *values: Any, **named: Any) -> None:
        made = _initialiser(cls, fields)
        for owner in type(self).__mro__:
            if owner.__dict__.get("__init__") is initialise:
                type.__setattr__(owner, "__init__", made)
        made(self, *values, **named)

    return initialise


class _Signature:
    """The attribute `__signature__` of a class, which `inspect` asks for: that of the real `__init__`."""

    def __init__(self, cls: type, fields: tuple[dataclasses.Field[Any], ...]) -> None:
        self._made_of = cls, fields

    def __get__(self, value: object, owner: type) -> Any:
        import inspect

        whole = inspect.signature(_initialiser(*self._made_of))
        return whole.replace(parameters=list(whole.parameters.values())[1:])


def _initialiser(cls: type, fields: tuple[dataclasses.Field[Any], ...]) -> Callable[..., None]:
    """The method `__init__`: fields as parameters, keyword-only ones last; then `__post_init__`."""
    known: dict[str, Any] = {"_set": object.__setattr__, "_not_given": dataclasses.MISSING}
    parameters: dict[bool, list[str]] = {False: [], True: []}
    lines = []
    for one in fields:
        name, value = one.name, one.name
        default = ""
        if one.default is not dataclasses.MISSING:
            known[f"_default_{name}"], default = one.default, f"=_default_{name}"
        elif one.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"], default = one.default_factory, "=_not_given"
            value = f"_make_{name}() if {name} is _not_given else {name}"
        parameters[bool(one.kw_only)].append(name + default)
        lines.append(f"_set(self, {name!r}, {value})")
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
    made.__annotations__ = {one.name: one.type for one in fields} | {"return": None}
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
        object.__setattr__(self, one.name, value)
