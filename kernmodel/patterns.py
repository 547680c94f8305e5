"""Regular expressions that are compiled when they are first used.

To compile one takes Python 0.1 to 1 ms, and a command uses half of those in the modules that it loads
(docs/speed.md).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

__all__ = ["pattern"]

if TYPE_CHECKING:
    from re import compile as pattern  # what type checkers know of it
else:

    class pattern:  # noqa: N801  # it takes the place of a function
        """`re.compile`, put off: what the compiled pattern has is looked up at the first use, once a name."""

        def __init__(self, expression: str, flags: int = 0) -> None:
            self._given = expression, flags

        def __getattr__(self, name: str) -> Any:
            value = getattr(re.compile(*self._given), name)  # compiled once: `re` remembers
            self.__dict__[name] = value
            return value
