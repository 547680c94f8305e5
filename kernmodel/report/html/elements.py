"""Elements of HTML. Whatever is no `Html` is text of the user's, and escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape

from kernmodel.report.json.document import plain

_VOID = frozenset({"br", "input", "meta"})
Child = object
"""`Html`, text or a number, or an iterable of them; None is nothing."""


class Html(str):
    """Markup, as it stands in the page."""

    __slots__ = ()


def html(*children: Child) -> Html:
    """The children one after the other, text escaped."""
    return Html("".join(_parts(children)))


def element(name: str, /, *children: Child, **attributes: object) -> Html:
    """An element; attributes in Python's spelling (`class_`, `data_link`), without those that are None or False."""
    opened = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Html(opened if name in _VOID else f"{opened}{html(*children)}</{name}>")


def data(value: object) -> Html:
    """A value for the page's script, as JSON that cannot end the element that it stands in."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    escaped = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return Html(f'<script type="application/json">{escaped}</script>')


def _parts(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if isinstance(child, Html):
            yield child
        elif isinstance(child, str):
            yield escape(child)
        elif isinstance(child, Iterable):
            yield from _parts(child)
        elif child is not None:
            yield escape(str(child))


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
