"""Are results what their scores give? Every row of a folder recomputed from its stored confidences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wordnet_splits.errors import DataError
from wordnet_splits.progress import Progress

from .derive import Classes, derive
from .measure import Options
from .results import Results

TOLERANCE = 1e-12
"""Relative and absolute: the order in which a processor adds may differ in the last digit."""
ROW = ("detector", "run", "group", "role", "metric")
CLASS = ("detector", "run", "group", "role", "source", "class_id")
BIN = ("detector", "run", "low", "high")


@dataclass(frozen=True)
class Problem:
    """A value that is not what the scores give; ``column`` is empty for a row that only one of them has."""

    table: str
    row: str
    column: str
    stored: Any
    recomputed: Any


@dataclass(frozen=True)
class Checked:
    """The outcome of `check_results`.

    Attributes
    ----------
    rows : rows compared. exact : of their values those equal to the last bit.
    problems : what differs.
    """

    folder: str
    rows: int
    exact: int
    values: int
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        """Whether everything recomputes."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as ``check-results --json`` prints it."""
        found = {"rows": self.rows, "values": self.values, "exact": self.exact}
        return {"ok": self.ok, "folder": self.folder, **found, "problems": [asdict(p) for p in self.problems]}


def check_results(folder: str | Path, *, progress: Progress | None = None) -> Checked:
    """Recompute every row of a folder that `Results.write` wrote, intervals included, and compare.

    Raises
    ------
    DataError : a file is absent or damaged, or scores and predictions hold different images.
    """
    stored = Results.read(Path(folder))
    options, classes = _asked(stored.about, str(folder))
    similarity = {
        (row["source"], row["class_id"]): row["similarity"]
        for row in stored.by_class.select(["source", "class_id", "similarity"]).to_pylist()
    }
    found = derive(stored.scores, stored.predictions, similarity, options, classes, progress=progress)
    comparison = _Comparison()
    comparison.table(
        "results",
        _keyed(stored.results.to_pylist(), ROW),
        _keyed(({"detector": d, "run": r, **row._asdict()} for (d, r), row in found.results), ROW),
        ("value", "lo", "hi", "n_id", "n_ood"),
    )
    comparison.table(
        "by_class",
        _keyed(stored.by_class.to_pylist(), CLASS),
        _keyed(({"detector": d, "run": r, **row._asdict()} for (d, r), row in found.classes), CLASS),
        ("n_ood", "auroc"),
    )
    comparison.table(
        "by_nearness",
        _keyed(stored.by_nearness.to_pylist(), BIN),
        _keyed(({"detector": d, "run": r, **row._asdict()} for (d, r), row in found.bins), BIN),
        ("n_ood", "auroc"),
    )
    return Checked(
        str(folder), comparison.rows, comparison.exact, comparison.values, tuple(comparison.problems)
    )


def _asked(about: Mapping[str, Any], where: str) -> tuple[Options, Classes]:
    """Return with which options the results were computed."""
    try:
        given = dict(about["options"])
        options = Options(**{**given, "prevalences": tuple(given["prevalences"])})
        return options, Classes(int(about["known_classes"]), bool(about["other_columns"]))
    except (KeyError, TypeError, ValueError):
        raise DataError("does not say with which options it was computed", where=where) from None


Rows = dict[tuple[Any, ...], Mapping[str, Any]]


def _keyed(rows: Iterable[Mapping[str, Any]], key: tuple[str, ...]) -> Rows:
    found: Rows = {}
    for row in rows:
        if found.setdefault(tuple(row[name] for name in key), row) is not row:
            raise DataError(f"two rows of {', '.join(str(row[name]) for name in key)}")
    return found


class _Comparison:
    def __init__(self) -> None:
        self.rows = self.exact = self.values = 0
        self.problems: list[Problem] = []

    def table(self, name: str, stored: Rows, recomputed: Rows, columns: tuple[str, ...]) -> None:
        """Compare two tables row by row."""
        for key in [*stored, *(key for key in recomputed if key not in stored)]:
            self.rows += 1
            row = ", ".join(map(str, key))
            if key not in stored or key not in recomputed:
                held, due = ("a row" if key in table else None for table in (stored, recomputed))
                self.problems.append(Problem(name, row, "", held, due))
                continue
            for column in columns:
                self._value(name, row, column, stored[key][column], recomputed[key][column])

    def _value(self, table: str, row: str, column: str, held: Any, due: Any) -> None:
        self.values += 1
        if held == due or (_is_nan(held) and _is_nan(due)):
            self.exact += 1
        elif not _close(held, due):
            self.problems.append(Problem(table, row, column, held, due))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _close(held: Any, due: Any) -> bool:
    if not isinstance(held, float) or not isinstance(due, float):
        return False
    return math.isclose(held, due, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
