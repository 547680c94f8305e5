"""Open the built site as files, in a browser, and search it: `mkdocs build --strict && python docs/check_site.py`.

Nothing may go to a network, and nothing may fail on the way. Without playwright and chromium it says so and passes.
"""

from __future__ import annotations

import shutil
from pathlib import Path

SITE = Path(__file__).resolve().parent.parent / "site"
SEARCHED = {"memory impact": "glossary.html", "layer conditions": "layer-conditions.html"}
"""What is searched for, and a page that must be among the results."""


def main() -> int:
    """Search for each; what went wrong."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("the site was not opened: playwright and chromium are not installed")
        return 0
    failures: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("console", lambda message: failures.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.on("request", lambda asked: None if asked.url.startswith(("file:", "data:", "blob:")) else outside(asked))

        def outside(asked: object) -> None:
            failures.append(f"asks for {asked}")

        for words, expected in SEARCHED.items():
            page.goto((SITE / "index.html").as_uri())
            page.locator(".md-search__input").click()
            page.keyboard.type(words)
            found = page.locator(".md-search-result__link")
            found.first.wait_for(state="attached", timeout=30_000)
            pages = [link.get_attribute("href") or "" for link in found.all()]
            if not any(expected in one for one in pages):
                failures.append(f"{words!r} finds {pages}, not {expected}")
        browser.close()
    print("\n".join(failures) or f"the site was searched for {', '.join(SEARCHED)}")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
