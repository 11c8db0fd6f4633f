"""Entries of the leaderboard: written of results that recompute, and checked against them again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from loaders.harness import check_results
from loaders.harness.cli.main import app
from loaders.harness.evaluation.about import IN_PYTHON
from loaders.harness.evaluation.of_runs import evaluate_runs
from loaders.harness.leaderboard import check_entries, read_entry, submit
from tests.loaders.harness.altering import alterations, altered, refusal, reseal
from tests.loaders.harness.evaluation.fake_runs import OPEN_SET, fake_run
from wordnet_splits.cli.runner import run
from wordnet_splits.manifest import load_manifest


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluated") / "linear"
    manifest = load_manifest("digits")
    runs = [fake_run(manifest, seed, splits=("train", "test")) for seed in (0, 1)]
    evaluate_runs(manifest, runs, "mcp,energy").write(folder)
    return folder


@pytest.fixture
def entries(results: Path, tmp_path: Path) -> Path:
    submit(results, by="somebody", to=tmp_path / "entries")
    return tmp_path / "entries"


def test_an_entry_names_the_fingerprints_of_its_benchmark(entries: Path) -> None:
    entry = read_entry(entries / "linear")
    manifest = load_manifest("digits")
    assert (entry.name, entry.by, entry.facts.benchmark) == ("linear", "somebody", "digits")
    assert entry.facts.images == manifest.fingerprint
    assert entry.facts.classes == manifest.data.fingerprints.classes
    for one in entry.facts.sets:
        assert one.listed == manifest.images_fingerprint(("test", one.group))
        assert one.scored == one.expected == manifest.images("test", one.group).num_rows
    assert [network.model_key for network in entry.facts.networks] == ["fake-key-0", "fake-key-1"]
    assert entry.commands[0].startswith("unknown-eval run --benchmark digits --model ")
    assert check_entries(entries).ok
    assert check_results(entries / "linear").ok


def test_every_altered_fact_is_found_though_sealed_again(entries: Path) -> None:
    file = entries / "linear" / "entry.json"
    facts = json.loads(file.read_text())["facts"]
    tried = list(alterations(facts))
    for what, path, new in tried:
        reseal(file, lambda held, path=path, new=new: held.update(facts=altered(facts, path, new)))
        assert not check_entries(entries).ok, (what, path)
    assert len(tried) > 50


def test_a_row_without_an_entry_or_of_other_scores_is_refused(entries: Path, results: Path) -> None:
    shutil.copytree(results, entries / "unsubmitted")
    found = {Path(one.folder).name: one for one in check_entries(entries).entries}
    assert found["linear"].ok
    assert [d.table for d in found["unsubmitted"].differences] == ["entry"]
    table = pq.read_table(entries / "linear" / "scores.parquet")
    scores = table["confidence"].to_pylist()
    scores[0] += 1
    changed = table.set_column(table.schema.get_field_index("confidence"), "confidence", [scores])
    pq.write_table(changed.cast(table.schema), entries / "linear" / "scores.parquet")
    found = {Path(one.folder).name: one for one in check_entries(entries).entries}
    assert {"files", "results", "entry"} <= {d.table for d in found["linear"].differences}


def test_an_entry_under_another_name_is_found(entries: Path) -> None:
    (entries / "linear").rename(entries / "better")
    (found,) = check_entries(entries).entries
    assert [(d.column, d.stored, d.recomputed) for d in found.differences] == [("name", "linear", "better")]


def test_what_does_not_recompute_is_not_submitted(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "altered"
    shutil.copytree(results, folder)
    reseal(folder / "about.json", lambda held: held.update(files={}))
    line = refusal(lambda: submit(folder, by="me", to=tmp_path / "entries"))
    assert line is not None
    assert "values differ from what their scores give" in line
    assert not (tmp_path / "entries").exists()


def test_a_name_is_taken_once(entries: Path, results: Path, tmp_path: Path) -> None:
    submit(results, by="somebody else", to=entries)  # the same results: told anew
    assert read_entry(entries / "linear").by == "somebody else"
    other = tmp_path / "other" / "linear"
    manifest = load_manifest("digits")
    evaluate_runs(manifest, [fake_run(manifest, 5, splits=("train", "test"))], "mcp").write(other)
    line = refusal(lambda: submit(other, by="me", to=entries))
    assert line == f"{entries / 'linear'}: is another entry (give this one another --name)"
    submit(other, by="me", name="linear-5", to=entries)
    assert {Path(one.folder).name for one in check_entries(entries).entries} == {"linear", "linear-5"}


def test_a_model_given_in_python_is_repeated_by_what_its_author_says(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(results, folder)
    reseal(folder / "about.json", lambda held: held["about"]["runs"][0].update(weights=IN_PYTHON))
    line = refusal(lambda: submit(folder, by="me", to=tmp_path / "entries"))
    assert line is not None
    assert "the model fake was given in Python" in line
    entry = read_entry(submit(folder, by="me", commands=["python train.py"], to=tmp_path / "entries"))
    assert entry.commands == ("python train.py",)


def test_images_of_a_benchmark_that_nobody_has_are_named_as_not_compared(tmp_path: Path) -> None:
    evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "msp").write(tmp_path / "own")
    entry = read_entry(submit(tmp_path / "own", by="me", to=tmp_path / "entries"))
    assert entry.facts.classes is None
    assert all(one.seen and one.listed is None for one in entry.facts.sets)


def test_the_command_says_what_comes_next(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["submit", str(results), "--by", "me", "--to", str(tmp_path), "--name"]
    assert run(app, [*words, "first"], "unknown-eval") == 0
    out, err = capsys.readouterr()
    assert out == f"first: 2 detectors on digits, written to {tmp_path / 'first'}\n"
    assert "open a pull request" in err
    assert run(app, [*words, "second", "--json"], "unknown-eval") == 0
    assert json.loads(capsys.readouterr().out)["facts"]["benchmark"] == "digits"
    assert run(app, ["check-results", str(tmp_path), "--json"], "unknown-eval") == 0
    assert [row["ok"] for row in json.loads(capsys.readouterr().out)["entries"]] == [True, True]
    assert run(app, [*words, "No Name"], "unknown-eval") == 2
    assert "entry No Name: is malformed at name" in capsys.readouterr().err
    (tmp_path / "first" / "entry.json").unlink()
    assert run(app, ["check-results", str(tmp_path)], "unknown-eval") == 1
