"""A real browser for the tests of pages: Debian's chromium, driven by playwright. Without them they are skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which
from typing import Any

import pytest


@dataclass
class Opened:
    """A page in the browser, with what went wrong in it and what it asked for."""

    page: Any
    faults: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Open the text of a page, without a network, so many pixels wide."""
    contexts = []

    def open_page(text: str, width: int = 1280, **options: Any) -> Opened:
        file = tmp_path / f"page-{len(contexts)}.html"
        file.write_text(text, encoding="utf-8")
        viewport = {"width": width, "height": 900}
        context = browser.new_context(viewport=viewport, offline=True, has_touch=width < 600, **options)
        contexts.append(context)
        found = Opened(context.new_page())
        found.page.on("console", lambda message: found.faults.append(message.text))
        found.page.on("pageerror", lambda error: found.faults.append(str(error)))
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.goto(file.as_uri())
        return found

    yield open_page
    for context in contexts:
        context.close()
