"""The screenshots of ``docs/site``: of a site, and of a page of pairs to judge (``make screens``)."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

from wordnet_splits.duplicates.find import find_duplicates
from wordnet_splits.explorer import make_site

BENCHMARKS = ("unknown-imagenet", "unknown-cifar-clean")
DESKTOP: dict[str, Any] = {"viewport": {"width": 1100, "height": 1180}}
DARK: dict[str, Any] = {"viewport": {"width": 1100, "height": 1000}, "color_scheme": "dark"}
PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 1.5}
PAIRS: dict[str, Any] = {"viewport": {"width": 900, "height": 420}}


def write_screens(folder: Path) -> None:
    """Write the screenshots into a folder; needs playwright and the system's Chromium."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as work, sync_playwright() as playwright:
        make_site(Path(work, "site"), BENCHMARKS)
        pairs = find_duplicates("digits", "digits", Path(work, "pairs"), threshold=8)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        index = Path(work, "site", "index.html").as_uri()

        def shoot(name: str, address: str, options: dict[str, Any], act: Callable[[Any], None]) -> None:
            page = browser.new_context(offline=True, **options).new_page()
            page.goto(address)
            page.wait_for_selector("h1")
            act(page)
            image = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
            image.quantize(dither=Image.Dither.NONE).save(folder / f"{name}.png", optimize=True)

        shoot("benchmark", f"{index}#/benchmark/unknown-imagenet", DESKTOP, _nothing)
        shoot("dark", f"{index}#/class/unknown-imagenet/imagenet1k/n01632777", DARK, _open_readings)
        shoot("phone", f"{index}#/benchmark/unknown-cifar-clean", PHONE, _scroll_to_classes)
        shoot("duplicates", pairs.page.resolve().as_uri(), PAIRS, _judge)


def _nothing(page: Any) -> None:
    """Leave the page as it opens."""


def _open_readings(page: Any) -> None:
    page.click("summary:has-text('the role holds')")


def _scroll_to_classes(page: Any) -> None:
    page.locator("h2", has_text="Classes").evaluate("heading => heading.scrollIntoView()")


def _judge(page: Any) -> None:
    page.locator("input").first.fill("AB")
    for place, verdict in enumerate(("same", "different")):
        page.locator("select").nth(place).select_option(verdict)


if __name__ == "__main__":
    write_screens(Path(*sys.argv[1:2] or ("docs", "site")))
