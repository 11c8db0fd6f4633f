"""The tables of figures are made from the stored run."""

from __future__ import annotations

import json

from tools.benchmarks.record import FIRST_PAGE, RECORD, measured, pages


def test_the_pages_show_the_stored_run() -> None:
    record = json.loads(RECORD.read_text("utf-8"))
    names = [row.name for row in measured(record)]
    assert len(set(names)) == len(names)
    assert set(FIRST_PAGE) <= set(names)
    for path, text in pages(record).items():
        assert path.read_text("utf-8") == text, "python -m tools.benchmarks.record"
