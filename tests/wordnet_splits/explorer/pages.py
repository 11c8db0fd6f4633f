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
