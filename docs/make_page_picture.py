"""Take the picture of a page for the README: python docs/make_page_picture.py (needs playwright and chromium)."""

from __future__ import annotations

import os
import shutil
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

import kernmodel as km
from kernmodel.resources import carried_folder

PICTURE = Path(__file__).parent / "pictures" / "page-stencil-clx.png"
WIDTH, HEIGHT, SCALE, COLOURS = 1280, 1500, 0.7, 64


def main() -> None:
    """Make the page of the stencil in a folder of its own, so that it names no path of this host, and show it."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(carried_folder("kernels") / "stencil.c", folder)
        shutil.copy(carried_folder("machine-files") / "clx.yml", folder)
        os.chdir(folder)
        km.kernel_report("stencil.c", "clx.yml").html("stencil.html")
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SCALE)
            page.goto((Path(folder) / "stencil.html").as_uri())
            taken = Image.open(BytesIO(page.screenshot()))
            chromium.close()
        taken.convert("RGB").quantize(COLOURS).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
