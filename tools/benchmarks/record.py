"""The stored run of ``make bench``, and the table of docs/reference/performance.md that is made from it.

``python -m tools.benchmarks.record`` rewrites the table.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tools.benchmarks.rows import Row

REPOSITORY = Path(__file__).resolve().parents[2]
RECORD = REPOSITORY / "docs" / "benchmarks.json"
PAGE = REPOSITORY / "docs" / "reference" / "performance.md"
PEERS = (
    *("faiss-cpu", "networkx", "nltk", "numba", "numpy", "pillow", "pyarrow", "pybktree", "pytorch-ood"),
    *("scikit-learn", "simplejpeg", "torch", "torchvision"),
)
HEAD = ("| what | ours | peer | ratio |", "|---|---|---|---:|")
TABLE = re.compile(rf"{re.escape(HEAD[0])}\n{re.escape(HEAD[1])}\n(?:\|.*\n)*")


def machine() -> dict[str, Any]:
    """Return the machine and the versions of peers."""
    versions = {}
    for name in PEERS:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {"python": platform.python_version(), "cores": os.cpu_count(), "versions": versions}


def store(path: Path, module: str, rows: Sequence[Row], load: float) -> None:
    """Store a module's rows and the load before it ran in a record; rows of other modules stay."""
    record = json.loads(path.read_text("utf-8")) if path.exists() else {"modules": {}}
    record["machine"] = machine()
    record["modules"][module] = {"load": round(load, 1), "rows": [row._asdict() for row in rows]}
    record["modules"] = dict(sorted(record["modules"].items()))
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


def measured(record: Mapping[str, Any]) -> list[Row]:
    """Return the rows that were measured, in the order of the modules."""
    rows = [Row(**row) for of_module in record["modules"].values() for row in of_module["rows"]]
    return [row for row in rows if row.ok is not None]


def table(rows: Iterable[Row]) -> str:
    """Return rows in Markdown."""
    lines = []
    for row in rows:
        ratio = "" if row.ratio is None else f"{row.ratio:,.0f}" if row.ratio >= 100 else f"{row.ratio:.3g}"
        cells = (row.name, row.ours, "" if row.peer == "-" else row.peer, ratio)
        lines.append("|" + "".join(f" {cell} |" if cell else " |" for cell in cells))
    return "\n".join((*HEAD, *lines)) + "\n"


def page(record: Mapping[str, Any]) -> str:
    """Return the page with the table of a record."""
    text = table(measured(record)).replace("\\", r"\\")
    return TABLE.sub(text, PAGE.read_text("utf-8"), count=1)


if __name__ == "__main__":
    PAGE.write_text(page(json.loads(RECORD.read_text("utf-8"))), "utf-8")
