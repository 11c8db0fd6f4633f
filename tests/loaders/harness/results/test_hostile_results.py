"""Results of anyone's: whole by their checksums, nonsense inside. Every command ends in a line or works."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.results.check import check_results
from loaders.harness.results.results import ABOUT, Results
from tests.loaders.harness.altering import reseal
from tests.loaders.harness.evaluation.fake_runs import fake_run
from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.benchmark.resolve import load_manifest


@pytest.fixture(scope="module")
def honest() -> Results:
    manifest = load_manifest("digits")
    return evaluate_runs(manifest, [fake_run(manifest, seed, splits=("test",)) for seed in (0, 1)], "mcp,mls")


def changed(
    table: str, column: str, value: Any, *, rows: slice = slice(None)
) -> Callable[[Results], Results]:
    def change(held: Results) -> Results:
        found: pa.Table = getattr(held, table)
        values = found[column].to_pylist()
        values[rows] = [value] * len(values[rows])
        place = found.schema.names.index(column)
        array = pa.array(values, found.schema.field(column).type)
        return replace(held, **{table: found.set_column(place, found.schema.field(column), array)})

    return change


SOME = slice(0, 40)
LIES = {
    "no value": changed("results", "value", None),
    "values beyond numbers": changed("results", "value", float("inf")),
    "a detector of the results alone": changed("results", "detector", "x", rows=SOME),
    "another model per row": changed("results", "model", "y", rows=SOME),
    "a run that nobody described": changed("results", "run", 7, rows=SOME),
    "other metrics": changed("results", "metric", "zzz"),
    "sets of no name": changed("results", "group", ""),
    "no scores": lambda held: replace(held, scores=held.scores.slice(0, 0)),
    "NaN among scores": changed("scores", "mcp/0", float("nan"), rows=SOME),
    "scores of another run": lambda held: replace(
        held, scores=held.scores.rename_columns([*held.scores.column_names[:-1], "mls/99"])
    ),
    "predictions beyond the classes": changed("predictions", "prediction/(model)/0", 2**31 - 1, rows=SOME),
    "predictions below": changed("predictions", "prediction/(model)/0", -(2**31), rows=SOME),
    "no predictions": changed("predictions", "prediction/(model)/0", None),
    "labels beyond": changed("scores", "label", 2**31 - 1, rows=SOME),
    "probabilities beyond": changed("predictions", "max_probability/(model)/0", 1e30),
    "classes that are none": changed("scores", "class_id", "\x00" * 2000, rows=SOME),
    "roles that are none": changed("scores", "role", "friend", rows=SOME),
    "no auroc of classes": changed("by_class", "auroc", None),
    "similarities beyond": changed("by_class", "similarity", float("inf")),
}


REPORTED = (
    *("no value", "predictions beyond the classes", "no predictions"),
    *("classes that are none", "no auroc of classes"),
)
"""Lies for which the whole page is made too, which takes seconds."""


@pytest.mark.sampled("fuzz", one_in=3)
@pytest.mark.parametrize("lie", LIES)
def test_every_command_ends_in_a_line_or_works(lie: str, honest: Results, tmp_path: Path) -> None:
    from loaders.harness import compare, report
    from loaders.harness.report.accessor import GRAPH, plot
    from loaders.harness.report.plots import list_plots
    from loaders.harness.report.plots.selection import Selection

    LIES[lie](honest).write(tmp_path / "lying")
    held = tmp_path / "lying"
    with suppress(SplitsError):
        held = Results.read(held)
    attempts: list[Callable[[], object]] = [
        lambda: str(compare(held, bootstrap=3)),
        lambda: compare(held, bootstrap=0, robustness=[4]),
        lambda: plot(held, GRAPH, tmp_path / "a.graphml"),
    ]
    with suppress(SplitsError):
        subject = Selection.from_results([held], replicates=2)
        attempts += [partial(kind.plot, subject) for kind in list_plots()]
    if lie in REPORTED:
        attempts.append(lambda: report(held, tmp_path / "a.html", mistakes=2))
    for attempt in attempts:
        line = ""
        try:
            attempt()
        except SplitsError as error:
            line = str(error)
        assert "\n" not in line


ELSEWHERE = (
    "https://host.invalid/x/digits",
    "hf://datasets/a/b@v1/c",
    "../digits",
    "./digits",
    "..",
    "x" * 3000,
)


@pytest.mark.parametrize("name", [*ELSEWHERE, "a\nb", ""])
def test_results_name_a_benchmark_and_never_an_address_or_a_path(
    name: str, honest: Results, tmp_path: Path
) -> None:
    honest.write(tmp_path)
    reseal(tmp_path / ABOUT, lambda content: content["about"].update(benchmark=name))
    for read in (Results.read, check_results):
        with pytest.raises(DataError) as refused:
            read(tmp_path)
        assert refused.value.where == str(tmp_path / ABOUT)


@pytest.mark.parametrize("mapping", ["source:/etc/passwd", "source:../x", "/etc/passwd", "source:"])
def test_results_name_a_source_for_their_columns_and_never_a_file(
    mapping: str, honest: Results, tmp_path: Path
) -> None:
    facts = {"restrict": "columns", "columns": 6, "of": 6, "background": None, "mapping": mapping}
    honest.write(tmp_path)
    reseal(tmp_path / ABOUT, lambda content: content["about"]["runs"][0].update(class_map=facts))
    with pytest.raises(DataError) as refused:
        Results.read(tmp_path)
    assert refused.value.where == str(tmp_path / ABOUT)
