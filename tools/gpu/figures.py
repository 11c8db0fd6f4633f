"""A step's figures by name, written to disk at once, so that a stopped step keeps them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tools.benchmarks.rows import Row
from wordnet_splits.base import files


class Figures:
    """Figures by name."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._found: dict[str, Any] = {}

    def add(self, name: str, value: Any) -> None:
        """Keep a figure, and print it for the log."""
        self._found[name] = value
        print(f"{name}: {value}", flush=True)
        files.write_json(self._path, self._found)

    def add_row(self, row: Row) -> None:
        """Keep a row of ``make bench``."""
        ratio = "" if row.ratio is None else f", {row.ratio:,.2f} x"
        peer = f"; {row.peer}" if row.peer else ""
        self.add(row.name, f"{row.ours}{peer}{ratio} (target {row.target})")


def step_arguments(description: str) -> argparse.ArgumentParser:
    """Return the arguments that every step takes: ``--device``, ``--seconds``, ``--figures``, ``--tiny``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", required=True)
    parser.add_argument("--seconds", type=float, required=True, help="when it will be stopped")
    parser.add_argument("--figures", type=Path, required=True)
    parser.add_argument("--tiny", action="store_true", help="the same on next to nothing")
    return parser
