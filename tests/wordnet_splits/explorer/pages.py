"""The data of a site, read as its pages do: one call a file."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any


def read(folder: Path, key: str) -> Any:
    """What a file of data hands on."""
    text = (folder / "data" / f"{key}.js").read_text("ascii")
    match = re.fullmatch(r'site\.add\((".*"),"([\w+/=]+)"\);\n', text)
    assert match
    assert json.loads(match[1]) == key
    return json.loads(zlib.decompress(base64.b64decode(match[2])))


def rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Columns as rows; all are as long."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


class Reader:
    """A page in a browser without a network; at the end nobody has complained or asked elsewhere."""

    def __init__(self, browser: Any, folder: Path, **options: Any) -> None:
        self.folder = folder
        options.setdefault("viewport", {"width": 1200, "height": 900})
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def opens(self, route: str) -> Any:
        self.page.goto("about:blank")  # so that nothing of the page before is taken for this one
        self.page.goto(f"{(self.folder / 'index.html').as_uri()}#/{route}")
        self.page.wait_for_selector("main:not([aria-busy]) h1")
        return self.page

    def column(self, column: int, table: int = 0) -> list[str]:
        cells = f"document.querySelectorAll('table')[{table}].tBodies[0].rows"
        return list(self.page.evaluate(f"[...{cells}].map(row => row.cells[{column}].textContent)"))

    def active(self) -> str:
        """The row of the tree that a screen reader is told of, by its name."""
        active = self.page.locator("[role=tree]").get_attribute("aria-activedescendant")
        return str(self.page.locator(f"#{active}").text_content())

    def close(self) -> None:
        assert self.complaints == []
        here = self.folder.as_uri() + "/"
        assert [url for url in self.requests if not url.startswith((here, "data:,", "about:blank"))] == []
        self.context.close()
