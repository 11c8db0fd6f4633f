"""Scores as they are stored: wide and back, whatever the images of each detector are."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from loaders.harness.evaluation.check import check_results
from loaders.harness.evaluation.results import Results, leave_out_scores
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.evaluation.schema import SCORES
from loaders.harness.evaluation.wide_tables import BLOCKS, lengthen, widen
from tests.loaders.harness.evaluation.fake_runs import OPEN_SET, fake_run
from tests.raising import raises
from wordnet_splits.base.errors import DataError

ROWS = [("a", 0, "x", 0.1), ("a", 0, "y", 0.2), ("a", 1, "x", 0.3), ("a", 1, "y", 0.4), ("b", 0, "x", 0.5)]


def scores(rows: list[tuple[str, int, str, float]]) -> pa.Table:
    columns = [[*column] for column in zip(*rows, strict=True)] if rows else [[], [], [], []]
    detectors, runs, images, confidences = columns
    known = {"detector": detectors, "run": runs, "image_id": images, "confidence": confidences}
    known |= {"source": ["digits"] * len(rows), "group": ["few"] * len(rows)}
    return pa.table([pa.array(known[f.name], f.type) for f in SCORES], schema=SCORES)


def restored(stored: pa.Table, metadata: dict[str, str], *, max_rows: int = 99) -> pa.Table:
    table = stored.replace_schema_metadata(metadata)
    return lengthen("scores", table, SCORES, max_rows=max_rows, where="here")


@pytest.mark.parametrize(
    "rows", [ROWS[:4], ROWS[:2], ROWS, [*ROWS[:3], ROWS[4]], [*ROWS[:2], *ROWS[2:4][::-1]], []]
)
def test_a_table_is_the_same_after_storing(rows: list[tuple[str, int, str, float]]) -> None:
    table = scores(rows)
    assert restored(*widen("scores", table)).equals(table)


def test_ids_are_stored_once() -> None:
    stored, metadata = widen("scores", scores(ROWS[:4]))
    assert stored.column_names == ["source", "image_id", "group", "confidence.0", "confidence.1"]
    assert (stored.num_rows, metadata) == (2, {BLOCKS: '[["a", 0], ["a", 1]]'})


@pytest.mark.parametrize(
    ("blocks", "named"),
    [
        ('[["a", 0]]', "scores"),
        ("[[1, 2], [3, 4]]", ()),
        ("[[", ()),
        ('[["a", 0], ["a", 1]]', "3"),
    ],
)
def test_other_metadata_is_refused(blocks: str, named: object) -> None:
    stored, _ = widen("scores", scores(ROWS[:4]))
    with raises(DataError, where="here", naming=named):
        restored(stored, {BLOCKS: blocks}, max_rows=3)


def test_scores_left_out_are_said_and_the_rest_recomputes(tmp_path: Path) -> None:
    runs = [fake_run(OPEN_SET, seed=0), fake_run(OPEN_SET, seed=1)]
    evaluate_runs(OPEN_SET, runs, "msp").write(tmp_path)
    whole = check_results(tmp_path)
    leave_out_scores(tmp_path, [1])
    part = check_results(tmp_path)
    assert part.ok
    assert part.compared == whole.compared / 2
    assert part.benchmark.startswith("1 runs without scores not recomputed")
    leave_out_scores(tmp_path, [0])
    assert not (tmp_path / "scores.parquet").exists()
    assert check_results(tmp_path).benchmark.startswith("nothing recomputed")
    with raises(DataError, where="made"):
        Results.read(tmp_path).require_scores("a plot")


def test_scores_that_are_merely_absent_are_an_error(tmp_path: Path) -> None:
    evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "msp").write(tmp_path)
    (tmp_path / "scores.parquet").unlink()
    with raises(DataError, where="scores.parquet"):
        check_results(tmp_path)
