"""A bounded memory of what was made from what."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from kernmodel.errors import KernmodelError
from kernmodel.value_types import dataclass

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class _Refused:
    """That a value could not be made, and why."""

    error: KernmodelError


class Memo(Generic[Value]):
    """The values that were asked for last, by key; an error about the input is remembered as a value is."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[Hashable, Value | _Refused] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of this key, made if it is not there.

        Raises:
            KernmodelError: that of `make`, now or when it was called for this key.
        """
        found: Value | _Refused
        if key in self._kept:
            self._kept.move_to_end(key)
            found = self._kept[key]
        else:
            try:
                found = make()
            except KernmodelError as error:
                found = _Refused(error)
            self._kept[key] = found
            if len(self._kept) > self._limit:
                self._kept.popitem(last=False)
        if isinstance(found, _Refused):
            # the frames of the first time would keep alive all that they hold
            raise found.error.with_traceback(None)
        return found

    def __contains__(self, key: Hashable) -> bool:
        return key in self._kept
