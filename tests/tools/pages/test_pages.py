"""The pages that set our figures beside the papers' hold exactly what the committed results give.

``python -m tests.tools.pages.test_pages PAGE`` prints the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.selection import cases
from tools.pages import batches, class_sets, kim, nearness, openood, optimizers, training

ROOT = Path(__file__).resolve().parents[3]
PAGES = {
    "batches": batches,
    "class-sets": class_sets,
    "kim-cifar40": kim,
    "nearness": nearness,
    "openood-cifar100": openood,
    "optimizers": optimizers,
    "training-study": training,
}


def rows_of(name: str) -> Iterator[str]:
    """Yield the rows of a page's tables in order, a blank line between tables."""
    for table in PAGES[name].tables(ROOT / "manifests" / "results"):
        yield from ("| " + " | ".join(row) + " |" for row in table)
        yield ""


@pytest.mark.docs
@pytest.mark.parametrize("name", cases(PAGES, always="class-sets"))
def test_the_page_holds_what_is_computed(name: str) -> None:
    page = (ROOT / "docs" / "evidence" / f"{name}.md").read_text(encoding="utf-8").splitlines()
    computed = [row for row in rows_of(name) if row]
    assert computed
    assert [line for line in page if line in computed] == computed
    shown = [line for line in page if line.startswith("|")]
    heads = sum(line.startswith("|---") for line in shown)
    assert len(shown) == len(computed) + 2 * heads, "a table of the page holds a row that nothing computes"


@pytest.mark.docs
def test_the_fidelity_page_holds_the_aurc_against_near() -> None:
    page = (ROOT / "docs" / "evidence" / "fidelity.md").read_text(encoding="utf-8").splitlines()
    rows = ["| " + " | ".join(row) + " |" for row in kim.against_near(ROOT / "manifests" / "results")]
    assert {row.replace("|  |", "| |") for row in rows} <= set(page)


@pytest.mark.docs
def test_the_page_of_conclusions_holds_the_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    computed = [*import_module("generating.conclusions").rows()]
    page = (ROOT / "docs" / "conclusions.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in page if line in computed] == computed


if __name__ == "__main__":
    print("\n".join(rows_of(sys.argv[1])))
