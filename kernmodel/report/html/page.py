"""The document around the elements: one file with its style and its script, which asks nothing of a network."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from kernmodel import __version__
from kernmodel.report.html.elements import Html, element
from kernmodel.value_types import dataclass

_HERE = Path(__file__).parent
_PREDICTED = "Times and rates are predicted, unless they are said to be measured."


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: its title, what it is called in addresses, and its elements."""

    title: str
    name: str
    content: Html


def page(title: str, lead: Html, sections: Sequence[Section]) -> str:
    """The whole document.

    Args:
        lead: stands below the title, before the first section.
    """
    style, script = (Html((_HERE / name).read_text(encoding="utf-8")) for name in ("page.css", "page.js"))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        element("meta", name="generator", content=f"kernmodel {__version__}"),
        element("title", title),
        element("style", style),
    )
    contents = [element("li", element("a", section.title, href=f"#{section.name}")) for section in sections]
    body = element(
        "body",
        element("a", "Skip to the contents", class_="skip", href="#main"),
        element("header", element("h1", title), lead),
        element("nav", element("ul", contents), aria_label="Sections") if len(sections) > 1 else None,
        element("main", [_section(section) for section in sections], id="main"),
        element("footer", element("p", f"Made by kernmodel {__version__}. {_PREDICTED}")),
        element("script", script),
    )
    return "<!doctype html>\n" + element("html", head, "\n", body, lang="en") + "\n"


def _section(section: Section) -> Html:
    return element("section", element("h2", section.title), section.content, id=section.name)


def _policy(script: Html) -> str:
    """What browsers are to let the page do: run this script and no other, and fetch nothing."""
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"
