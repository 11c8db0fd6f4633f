"""Cells that a spreadsheet or a Markdown page would run are written so that neither does."""

from __future__ import annotations

import csv
import doctest
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordnet_splits.base import tabular
from wordnet_splits.base.jsonable import Jsonable, to_json
from wordnet_splits.base.tabular import csv_cell, from_csv_cell, markdown_table, markdown_text, write_csv

FORMULAS = ["=1+1", "+cmd", "-x", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''@x", "-", "+1 dog"]
PLAIN = ["dog", "", "-1", "+1.5", "-.5e-3", "1-2", "'dog'", "a=b"]
TEXTS = st.text(st.sampled_from("'=+-@\t\r1.e a|<"), max_size=6)


def written(rows: list[list[object]]) -> list[list[str]]:
    text = io.StringIO()
    write_csv(text, rows)
    return list(csv.reader(io.StringIO(text.getvalue(), newline="")))


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_get_an_apostrophe(text: str) -> None:
    assert csv_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", PLAIN)
def test_other_texts_and_numbers_stay(text: str) -> None:
    assert csv_cell(text) == text


@given(TEXTS)
def test_every_text_comes_back(text: str) -> None:
    assert from_csv_cell(csv_cell(text)) == text


def test_numbers_and_nothing_are_no_formulas() -> None:
    assert written([["=x", -1, -0.5, None, "-1"]]) == [["'=x", "-1", "-0.5", "", "-1"]]


def test_markdown_has_no_html_and_no_columns_of_its_own() -> None:
    assert (
        markdown_text("<img src=x onerror=y> & a\nb\\|c") == "&lt;img src=x onerror=y&gt; &amp; a b\\\\\\|c"
    )
    head, rule, row = markdown_table(("a|b", "n"), [("CC BY | <b>NC</b>", 3)], right=("n",)).splitlines()
    assert (head, rule) == ("| a\\|b | n |", "|---|---:|")
    assert row == "| CC BY \\| &lt;b&gt;NC&lt;/b&gt; | 3 |"


def test_examples() -> None:
    assert doctest.testmod(tabular).failed == 0


@dataclass(frozen=True)
class Part:
    digest: bytes
    path: Path


@dataclass(frozen=True)
class Result(Jsonable):
    name: str
    parts: tuple[Part, ...]
    counts: dict[int, float | None]
    seen: frozenset[str] = frozenset()
    table: Any = field(default=None, repr=False)
    _cache: int = 3

    omitted: ClassVar = ("table",)
    derived: ClassVar = ("ok",)

    @property
    def ok(self) -> bool:
        return not self.seen


def test_fields_then_derived_properties() -> None:
    result = Result("a", (Part(b"\x01\xff", Path("x/y")),), {1: None}, frozenset({"c", "b"}), object())
    expected = {
        "name": "a",
        "parts": [{"digest": "01ff", "path": "x/y"}],
        "counts": {"1": None},
        "seen": ["b", "c"],
        "ok": False,
    }
    assert list(result.as_dict().items()) == list(expected.items())
    assert json.loads(json.dumps(result.as_dict())) == expected


def test_a_jsonable_inside_another_says_itself_what_it_is() -> None:
    assert to_json([Result("a", (), {})])[0]["ok"] is True
