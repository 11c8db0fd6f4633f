"""The data of a site, read as its pages do: one call a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read(folder: Path, key: str) -> Any:
    """What a file of data hands on."""
    text = (folder / "data" / f"{key}.js").read_text("utf-8")
    assert text.startswith(f"site.add({json.dumps(key)},")
    assert text.endswith(");\n")
    return json.loads(text[len(f"site.add({json.dumps(key)},") : -len(");\n")])


def rows(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Columns as rows; all are as long."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
