"""Results on disk: columns, exact recomputation, and what a changed score or row does to it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loaders.harness.evaluation import results as written
from loaders.harness.evaluation.check import check_results
from loaders.harness.evaluation.results import Results
from loaders.harness.evaluation.rows_from_scores import MAX_BLOCKS
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.evaluation.schema import MAY_BE_EMPTY, SCHEMAS, MetricOptions
from tests.loaders.harness.altering import recompute_once, refusal, reseal
from tests.loaders.harness.evaluation.fake_runs import fake_manifest, fake_run
from tests.raising import mentions, raises
from tools.stored_results import read_stored
from wordnet_splits.base.errors import DataError, OutputError, UnknownNameError
from wordnet_splits.benchmark.resolve import load_manifest

MANIFEST = fake_manifest(
    [
        ("known", "id", "train", 40),
        ("known", "id", "test", 30),
        ("shifted", "csid", "test", 12),
        ("negative", "external", "test", 16),
        ("near-a", "near", "test", 20),
        ("far-a", "far", "test", 24),
    ]
)


@pytest.fixture(scope="module")
def computed() -> Results:
    runs = [fake_run(MANIFEST, seed) for seed in (0, 1)]
    return evaluate_runs(
        MANIFEST, runs, ["msp", "knn[k=5]", "ensemble"], options=MetricOptions(replicates=5, seed=3)
    )


@pytest.fixture(scope="module")
def stored(computed: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    computed.write(folder)
    return folder


@pytest.fixture
def folder(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "results"))


def test_written_and_read_back(computed: Results, folder: Path) -> None:
    again = Results.read(folder)
    assert again.about == computed.about
    for name in SCHEMAS:
        table = getattr(again, name)
        assert table.schema.equals(SCHEMAS[name])
        np.testing.assert_equal(table.to_pylist(), getattr(computed, name).to_pylist())


def test_the_columns_are_those_promised(folder: Path) -> None:
    assert pq.read_schema(folder / "results.parquet").names == [
        *("benchmark", "version", "images_fingerprint", "model", "model_key", "transform_key", "run"),
        *("detector", "params", "chosen_on", "group", "role", "metric", "value", "lo", "hi", "n_id", "n_ood"),
    ]
    stored = pq.read_table(folder / "scores.parquet")
    blocks = json.loads(stored.schema.metadata[b"blocks"])
    assert stored.column_names == [
        *("source", "image_id", "group"),
        *(f"confidence.{number}" for number in range(len(blocks))),
    ]
    assert {detector for detector, _ in blocks} == set(Results.read(folder).detectors)


def test_every_row_recomputes_from_the_stored_confidences(folder: Path) -> None:
    found = check_results(folder)
    assert found.ok
    assert found.compared > 300
    assert found.exact == found.values  # on the machine that wrote them


def rewrite(path: Path, column: str, values: pa.Array) -> None:
    table = read_stored(path)
    pq.write_table(
        table.set_column(table.schema.get_field_index(column), table.schema.field(column), values), path
    )


def test_one_changed_confidence_is_noticed(folder: Path) -> None:
    values = read_stored(folder / "scores.parquet")["confidence"].to_numpy().copy()
    values[0] = values.min() - 1
    rewrite(folder / "scores.parquet", "confidence", pa.array(values))
    found = check_results(folder)
    assert not found.ok
    assert {"files", "results", "by_class", "by_nearness"} == {p.table for p in found.differences}
    assert all(p.row.startswith("msp, 0") for p in found.differences if p.table == "results")


def test_one_changed_value_is_noticed_and_named(folder: Path) -> None:
    table = read_stored(folder / "results.parquet")
    values = table["value"].to_numpy().copy()
    row = next(
        i
        for i, r in enumerate(table.to_pylist())
        if (r["detector"], r["group"], r["metric"], r["run"]) == ("ensemble", "far-a", "auroc", 0)
    )
    values[row] += 1e-9
    rewrite(folder / "results.parquet", "value", pa.array(values))
    altered, problem = check_results(folder).differences
    assert (altered.table, altered.row) == ("files", "results.parquet")
    assert (problem.row, problem.column) == ("ensemble, 0, far-a, far, auroc", "value")
    assert problem.stored == pytest.approx(problem.recomputed, abs=1e-8)


def test_an_invented_row_and_a_dropped_one_are_noticed(folder: Path) -> None:
    table = read_stored(folder / "results.parquet")
    names = table["metric"].to_pylist()
    names[5] = "wishful"
    rewrite(folder / "results.parquet", "metric", pa.array(names))
    problems = [p for p in check_results(folder).differences if p.table != "files"]
    assert {(p.stored, p.recomputed) for p in problems} == {("a row", None), (None, "a row")}


@pytest.mark.parametrize("table", SCHEMAS)
def test_an_emptied_cell_is_an_error(folder: Path, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recompute_once(monkeypatch)
    path = folder / f"{table}.parquet"
    whole = read_stored(path)
    for field in whole.schema:
        values = [None, *whole[field.name].to_pylist()[1:]]
        rewrite(path, field.name, pa.array(values, field.type))
        if field.name in MAY_BE_EMPTY:
            assert not check_results(folder).ok
        else:
            with raises(DataError, naming=field.name):
                check_results(folder)
        pq.write_table(whole, path)


def test_a_row_twice_is_an_error(folder: Path) -> None:
    table = read_stored(folder / "results.parquet")
    pq.write_table(pa.concat_tables([table, table.slice(3, 1)]), folder / "results.parquet")
    with pytest.raises(DataError):
        check_results(folder)


def test_an_image_in_the_place_of_another_is_refused(folder: Path) -> None:
    for name in ("scores", "predictions"):
        table = read_stored(folder / f"{name}.parquet")
        pq.write_table(table.take([1, *range(1, len(table))]), folder / f"{name}.parquet")
    with raises(DataError, where="predictions"):
        check_results(folder)


def test_other_images_than_predicted_are_refused(folder: Path) -> None:
    table = read_stored(folder / "scores.parquet")
    pq.write_table(table.slice(1), folder / "scores.parquet")
    with raises(DataError, where="msp, run 0"):
        check_results(folder)


def test_not_a_results_folder(folder: Path, tmp_path: Path) -> None:
    with raises(DataError, where=tmp_path, naming="about.json"):
        check_results(tmp_path)
    shutil.copy(folder / "scores.parquet", folder / "by_class.parquet")
    with raises(DataError, where="by_class.parquet"):
        check_results(folder)
    (folder / "by_class.parquet").write_bytes(b"PAR1")
    with raises(DataError, where="by_class.parquet"):
        check_results(folder)


def test_an_unwritable_folder_is_an_error(computed: Results, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with raises(OutputError, where="file"):
        computed.write(tmp_path / "file" / "below")


def alterations(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every field of a JSON value, by its path, with another value of its type."""
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in list(items):
            yield from alterations(inner, (*path, key))
        yield path, [*value, "more"] if isinstance(value, list) else {**value, "more": 1}
    else:
        other = {bool: not value, int: 7, float: 0.25, str: f"{value}x", type(None): "something"}
        yield path, other[type(value)] if other[type(value)] != value else 8


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return the value with the field at ``path`` replaced."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(value[path[0]], path[1:], new)
    return copy


def refused(folder: Path) -> bool:
    try:
        return not check_results(folder).ok
    except DataError:
        return True


def test_every_field_of_about_json_is_covered(folder: Path) -> None:
    whole = json.loads((folder / "about.json").read_text())
    fields = list(alterations(whole))
    assert len(fields) > 60
    for path, new in fields:
        (folder / "about.json").write_text(json.dumps(put(whole, path, new)))
        assert refused(folder), path
        with pytest.raises(DataError):
            Results.read(folder)
    (folder / "about.json").write_text(json.dumps(whole))
    assert check_results(folder).ok


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_column_of_every_table_is_covered(
    folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recompute_once(monkeypatch)
    path = folder / f"{name}.parquet"
    table, before = read_stored(path), path.read_bytes()
    for column in table.column_names:
        values = table[column].to_pylist()
        values[-1] = {str: "x", int: 12345, float: 0.125, type(None): None}[type(values[-1])]
        if values[-1] is None:
            values[-1] = "x" if pa.types.is_string(table.schema.field(column).type) else 1
        rewrite(path, column, pa.array(values, table.schema.field(column).type))
        assert refused(folder), column
        path.write_bytes(before)
    for other in (table.slice(1), pa.concat_tables([table, table.slice(0, 1)]), table.drop_columns(["run"])):
        pq.write_table(other, path)
        assert refused(folder)
    path.write_bytes(before)
    assert check_results(folder).ok


def test_files_may_not_be_absent(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        path.unlink()
        with raises(DataError, naming=path.name):
            check_results(folder)
        path.write_bytes(content)


def test_images_are_compared_with_the_benchmark(tmp_path: Path) -> None:
    """Consistent tables over other rows than the benchmark's: the checksums hold, the images do not."""
    manifest = load_manifest("digits")
    computed = evaluate_runs(manifest, [fake_run(manifest)], "msp", groups=["digits-6-9"])
    computed.write(tmp_path / "whole")
    found = check_results(tmp_path / "whole")
    assert (found.ok, found.benchmark) == (True, "images compared with digits, version 1")
    labels = computed.predictions["label"].to_pylist()
    labels[0] = (labels[0] + 1) % 6
    column = computed.predictions.schema.get_field_index("label")
    other = computed.predictions.set_column(
        column, SCHEMAS["predictions"].field("label"), pa.array(labels, pa.int32())
    )
    replace(computed, predictions=other).write(tmp_path / "other")
    found = check_results(tmp_path / "other")
    assert {"predictions", "results"} >= {one.table for one in found.differences} >= {"predictions"}
    made = check_results(tmp_path / "whole", MANIFEST)
    assert {one.row for one in made.differences if one.table == "about"} >= {"benchmark"}


def said_to_be(computed: Results, **change: Any) -> Results:
    """Return results that say other facts of themselves, in ``about`` as in every row."""
    table = computed.results
    for name, value in change.items():
        at = table.schema.get_field_index(name)
        values = pa.array([value] * table.num_rows, table.schema.types[at])
        table = table.set_column(at, table.schema.field(at), values)
    return replace(computed, about=computed.about.model_copy(update=change), results=table)


@pytest.mark.parametrize("name", ["digits", "digits@local"])
def test_what_the_evaluation_read_is_compared_with_the_benchmark(tmp_path: Path, name: str) -> None:
    """Another normalisation leaves every table consistent: only the fingerprint tells."""
    manifest = load_manifest("digits")
    computed = evaluate_runs(manifest, [fake_run(manifest)], "msp", groups=["digits-6-9"])
    computed = said_to_be(computed, benchmark=name)
    computed.write(tmp_path / "same")
    assert check_results(tmp_path / "same").ok
    about = computed.about.model_copy(update={"evaluation_fingerprint": "e" * 64})
    replace(computed, about=about).write(tmp_path / "b")
    (difference,) = check_results(tmp_path / "b").differences
    assert difference.column == "fingerprint of evaluation"
    assert difference.recomputed == manifest.evaluation_fingerprint


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"benchmark": "no-such-benchmark"}, "images not compared: there is no no-such-benchmark here"),
        ({"version": 99}, "images not compared: digits is at version 1 here"),
    ],
)
def test_a_benchmark_that_is_absent_or_of_another_version_is_not_compared(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    manifest = load_manifest("digits")
    computed = evaluate_runs(manifest, [fake_run(manifest)], "msp", groups=["digits-6-9"])
    said_to_be(computed, **change).write(tmp_path)
    found = check_results(tmp_path)
    assert (found.ok, found.benchmark) == (True, said)
    given = check_results(tmp_path, manifest)  # one that is named is compared, whatever its version
    assert given.benchmark == "images compared with digits, version 1"
    with raises(UnknownNameError, near="digits"):
        check_results(tmp_path, "digit")


@pytest.mark.parametrize(
    ("option", "value"),
    [("replicates", 10**9), ("bins", 10**12), ("prevalences", [0.5] * 10**5), ("seed", -1), ("level", 1.0)],
)
def test_a_folder_that_asks_for_endless_work_is_refused(folder: Path, option: str, value: Any) -> None:
    reseal(folder / "about.json", lambda sealed: sealed["about"]["options"].update({option: value}))
    line = refusal(lambda: check_results(folder))
    assert line is not None
    assert mentions(line, f"about.options.{option}", "about.json")


@pytest.mark.parametrize("name", ["scores", "predictions"])
def test_tables_of_endless_blocks_or_rows_are_refused(folder: Path, name: str) -> None:
    path = folder / f"{name}.parquet"
    row = read_stored(path).slice(0, 1)

    def repeated(rows: int) -> pa.Table:
        columns = [pa.repeat(row[column][0], rows) for column in row.column_names]
        return pa.Table.from_arrays(columns, schema=row.schema)

    names = pa.array([f"detector {n}" for n in range(MAX_BLOCKS + 1)])
    many = repeated(len(names)).set_column(0, row.schema.field("detector"), names)
    pq.write_table(many, path)
    assert refusal(lambda: check_results(folder)) == (
        f"{name}: 10,001 pairs of detector and run, at most 10,000"
    )
    pq.write_table(repeated(1_100_000), path)  # some kilobytes on the disk
    line = refusal(lambda: check_results(folder))
    assert line is not None
    assert mentions(line, "1,100,000")


class Killed(BaseException):
    """What no handler of errors catches."""


@pytest.mark.parametrize("after", range(7))
def test_a_kill_while_new_results_are_written_leaves_the_old_ones_whole(
    computed: Results, folder: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in folder.glob("[!.]*")}
    left = iter(range(after))

    def or_killed(write: Callable[..., Any]) -> Callable[..., Any]:
        def attempt(*given: Any, **options: Any) -> Any:
            if next(left, None) is None:
                raise Killed
            return write(*given, **options)

        return attempt

    others = replace(computed, scores=computed.scores.slice(0, 10))
    with monkeypatch.context() as patched:
        for name in ("write_table", "_checksums", "write_sealed"):
            patched.setattr(written, name, or_killed(getattr(written, name)))
        with pytest.raises(Killed):
            others.write(folder)
    assert {path.name: path.read_bytes() for path in folder.glob("[!.]*")} == before
    assert Results.read(folder).detectors == computed.detectors


def test_what_a_killed_run_left_is_cleared(computed: Results, folder: Path) -> None:
    (folder / ".scores.parquet.0.part").write_bytes(b"half")
    computed.write(folder)
    assert not list(folder.glob(".*.part"))


@pytest.mark.parametrize(
    ("metric", "filters", "named"),
    [
        ("aurocc", {"group": "near-a"}, ("aurocc", "auroc")),
        ("auroc", {"group": "neara"}, ("neara", "near-a")),
        ("auroc", {"group": "near-a", "role": "near-a"}, ("near-a", "role")),
        ("auroc", {"group": "near-a", "detector": "mps"}, ("mps", "detector")),
    ],
)
def test_values_of_a_mistyped_name_are_not_an_empty_list(
    computed: Results, metric: str, filters: dict[str, str], named: object
) -> None:
    assert len(computed.values("auroc", group="near-a", role="near", detector="msp")) == 2
    with raises(UnknownNameError, where="made", naming=named):
        computed.values(metric, **filters)
