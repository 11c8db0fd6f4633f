"""Entries of the leaderboard: written of results that recompute, and checked against them again."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loaders.harness import check_results, remeasure
from loaders.harness.cli.main import app
from loaders.harness.detectors import DETECTORS
from loaders.harness.evaluation.run_evaluation import evaluate_runs
from loaders.harness.leaderboard import check_entries, read_entry, submission, submit
from loaders.harness.leaderboard.submission import trained_on_outliers
from loaders.harness.models.origin import WeightsOrigin
from loaders.harness.results.entries import facts_of
from loaders.harness.results.results import Results
from tests.loaders.harness.altering import alterations, altered, refusal, reseal
from tests.loaders.harness.evaluation.fake_runs import OPEN_SET, fake_manifest, fake_run
from tests.raising import mentions, raises
from wordnet_splits.base.errors import DataError, OutputError
from wordnet_splits.base.terminal.runner import run
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.explorer.leaderboard_page import leaderboard_page
from wordnet_splits.hub.entries import FITTED_ON_OUTLIERS

DIGITS = [load_manifest("digits")]


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


def test_every_altered_fact_is_found_though_sealed_again(
    entries: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = check_results(entries / "linear")  # once: no table is altered
    assert checked.ok
    monkeypatch.setattr(submission, "check_results", lambda folder, **options: checked)
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
    scores = table["mcp/0"].to_pylist()
    scores[0] += 1
    changed = table.set_column(table.schema.get_field_index("mcp/0"), "mcp/0", [scores])
    pq.write_table(changed.cast(table.schema), entries / "linear" / "scores.parquet")
    found = {Path(one.folder).name: one for one in check_entries(entries).entries}
    assert {"files", "results", "entry"} <= {d.table for d in found["linear"].differences}


def test_shares_check_each_entry_once(entries: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(entries / "linear", entries / "linear-copy")
    checked = [
        Path(entry.folder).name
        for share in (1, 2)
        for entry in check_entries(entries, share=(share, 2)).entries
    ]
    assert checked == ["linear", "linear-copy"]
    for arguments, message in (
        ((str(entries), "--shard", "3/3"), ("3", "2")),
        ((str(entries), "--shard", "0/2"), "0/2"),
        ((str(entries / "linear"), "--shard", "1/2"), ()),
    ):
        assert run(app, ["recompute", "--check", *arguments], "unknown-eval") == 2
        assert mentions(capsys.readouterr().err, message)


def forge(folder: Path, column: str, value: object) -> None:
    """Write another value into every row of results, and seal table and entry again."""
    table = pq.read_table(folder / "results.parquet")
    at = table.schema.get_field_index(column)
    forged = table.set_column(
        at, table.schema.field(at), [pa.array([value] * len(table), table.schema.types[at])]
    )
    pq.write_table(forged, folder / "results.parquet")
    seal(folder)


def seal(folder: Path) -> None:
    about = folder / "about.json"
    reseal(about, lambda held: held["files"].update({"results.parquet": sha256(folder / "results.parquet")}))
    reseal(folder / "entry.json", lambda held: held["facts"].update(about=sha256(about)))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_version_that_no_benchmark_has_is_found(entries: Path) -> None:
    folder = entries / "linear"
    reseal(folder / "about.json", lambda held: held["about"].update(version=999))
    reseal(folder / "entry.json", lambda held: held["facts"].update(facts_of(folder).model_dump(mode="json")))
    (checked,) = check_entries(entries).entries
    assert [(d.column, d.stored, d.recomputed) for d in checked.differences] == [("version", 999, 1)]


def without(column: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        table = pq.read_table(folder / "results.parquet")
        pq.write_table(table.drop_columns([column]), folder / "results.parquet")
        seal(folder)

    return damage


def of_type(column: str, values: pa.Array) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        table = pq.read_table(folder / "results.parquet")
        column_values = pa.concat_arrays([values] * table.num_rows)
        at = table.schema.get_field_index(column)
        pq.write_table(table.set_column(at, column, column_values), folder / "results.parquet")
        seal(folder)

    return damage


def about_is(text: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / "about.json").write_text(text)
        reseal(folder / "entry.json", lambda held: held["facts"].update(about=sha256(folder / "about.json")))

    return damage


def _empty(folder: Path) -> None:
    pq.write_table(pq.read_table(folder / "results.parquet").slice(0, 0), folder / "results.parquet")
    seal(folder)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "no rows": _empty,
    "no intervals": without("lo"),
    "no metrics": without("metric"),
    "metrics that are absent": lambda folder: forge(folder, "metric", None),
    "values that are texts": of_type("value", pa.array(["0.9"])),
    "about.json without tables": about_is('{"files": {}}'),
    "about.json that is a list": about_is("[]"),
    "about.json of other tables": about_is('{"files": 3}'),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_bad_entry_costs_the_leaderboard_one_row(entries: Path, results: Path, damage: str) -> None:
    submit(results, by="somebody", name="sound", to=entries)
    DAMAGES[damage](entries / "linear")
    page = leaderboard_page(entries, DIGITS)
    assert [entry["name"] for entry in page["entries"]] == ["sound"]
    assert [refused["name"] for refused in page["refused"]] == ["linear"]
    (entries / "sound" / "entry.json").unlink()
    assert mentions(str(refusal(lambda: leaderboard_page(entries, DIGITS))), "linear")


def test_an_entry_names_the_level_of_its_intervals(results: Path, tmp_path: Path) -> None:
    for name, over in (("a", "images"), ("b", "classes")):
        remeasure(results, bootstrap=5, over=over).write(tmp_path / name)
        submit(tmp_path / name, by="me", to=tmp_path / "entries")
    entries = leaderboard_page(tmp_path / "entries", DIGITS)["entries"]
    assert [entry["over"] for entry in entries] == ["images", "classes"]
    assert ["--over classes" in entry["commands"][0] for entry in entries] == [False, True]


def trained_in(name: str) -> WeightsOrigin:
    return WeightsOrigin(kind="trained", spec=f"trained:models/{name}")


def test_outliers_are_stated_or_found_in_the_record_of_training(
    entries: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit(results, by="somebody", name="stated", outliers="TIN-597", to=entries)
    assert read_entry(entries / "stated").outliers == "TIN-597"
    assert read_entry(entries / "linear").outliers == ""
    about = Results.read(results).about
    runs = tuple(
        run.model_copy(update={"weights": WeightsOrigin(kind="trained", spec=f"trained:models/{run.name}")})
        for run in about.runs
    )
    trained = about.model_copy(update={"runs": runs})
    assert trained_on_outliers(trained) == ""  # the folders are not here
    for use, found in (("beside", "external training images of digits"), ("none", "")):
        record = {"outliers": use, "benchmark": {"name": "digits"}}
        monkeypatch.setattr(
            "loaders.harness.training.checkpoint.read_metadata", lambda path, record=record: record
        )
        assert trained_on_outliers(trained) == found
    learning = {name for name, spec in DETECTORS.registered.items() if "ood-val" in spec.splits}
    assert learning == FITTED_ON_OUTLIERS


def test_entries_of_other_benchmarks_are_left_out_of_a_site(entries: Path) -> None:
    page = leaderboard_page(entries, [load_manifest("rungs-cifar100")])
    assert (page["entries"], page["elsewhere"], page["refused"]) == ([], 1, [])
    data = load_manifest("digits").data
    changed = data.model_copy(
        update={"fingerprints": data.fingerprints.model_copy(update={"classes": "0" * 64})}
    )
    namesake = replace(load_manifest("digits"), data=changed)
    assert leaderboard_page(entries, [namesake])["elsewhere"] == 1
    assert leaderboard_page(entries, DIGITS)["elsewhere"] == 0


def test_a_link_in_an_entry_is_refused(entries: Path, tmp_path: Path) -> None:
    table = entries / "linear" / "results.parquet"
    table.rename(tmp_path / "elsewhere.parquet")
    table.symlink_to(tmp_path / "elsewhere.parquet")
    (checked,) = check_entries(entries).entries
    assert [d.stored for d in checked.differences] == ["is a link, and an entry contains only files"]


def test_an_entry_under_another_name_is_found(entries: Path) -> None:
    (entries / "linear").rename(entries / "better")
    (found,) = check_entries(entries).entries
    assert [(d.column, d.stored, d.recomputed) for d in found.differences] == [("name", "linear", "better")]


def test_what_does_not_recompute_is_not_submitted(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "altered"
    shutil.copytree(results, folder)
    reseal(folder / "about.json", lambda held: held.update(files={}))
    with raises(DataError, where="altered"):
        submit(folder, by="me", to=tmp_path / "entries")
    assert not (tmp_path / "entries").exists()


def test_a_name_is_taken_once(entries: Path, results: Path, tmp_path: Path) -> None:
    submit(results, by="somebody else", to=entries)  # the same results: told anew
    assert read_entry(entries / "linear").by == "somebody else"
    other = tmp_path / "other" / "linear"
    manifest = load_manifest("digits")
    evaluate_runs(manifest, [fake_run(manifest, 5, splits=("train", "test"))], "mcp").write(other)
    with raises(OutputError, where="linear"):
        submit(other, by="me", to=entries)
    submit(other, by="me", name="linear-5", to=entries)
    assert {Path(one.folder).name for one in check_entries(entries).entries} == {"linear", "linear-5"}


def test_a_model_given_in_python_is_repeated_by_what_its_author_says(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    shutil.copytree(results, folder)
    reseal(folder / "about.json", lambda held: held["about"]["runs"][0].update(weights={"kind": "python"}))
    line = refusal(lambda: submit(folder, by="me", to=tmp_path / "entries"))
    assert line is not None
    assert "the model fake was given in Python" in line
    entry = read_entry(submit(folder, by="me", commands=["python train.py"], to=tmp_path / "entries"))
    assert entry.commands == ("python train.py",)


def test_a_model_s_name_that_no_entry_can_hold_is_refused(tmp_path: Path) -> None:
    manifest = load_manifest("digits")
    results = evaluate_runs(manifest, [fake_run(manifest, splits=("train", "test"))], "mcp")
    (network,) = results.about.runs
    about = results.about.model_copy(update={"runs": (network.model_copy(update={"model": "m" * 60_000}),)})
    at = results.results.schema.get_field_index("model")
    names = pa.array(["m" * 60_000] * results.results.num_rows)
    table = results.results.set_column(at, results.results.schema.field(at), names)
    replace(results, about=about, results=table).write(tmp_path / "long")
    line = refusal(lambda: submit(tmp_path / "long", by="me", to=tmp_path / "entries"))
    assert line is not None
    assert line.startswith(
        f"facts of {tmp_path / 'long'}: is malformed at networks.0.model: String should have"
    )
    assert len(line) < 1000


def test_images_of_a_benchmark_that_nobody_has_are_named_as_not_compared(tmp_path: Path) -> None:
    evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "msp").write(tmp_path / "own")
    entry = read_entry(submit(tmp_path / "own", by="me", to=tmp_path / "entries"))
    assert entry.facts.classes is None
    assert all(one.seen and one.listed is None for one in entry.facts.sets)


def test_shifted_sets_that_were_not_scored_are_facts(tmp_path: Path) -> None:
    sets = [
        ("imagenet-1k", "id", "test", 40),
        ("imagenet-r", "csid", "test", 40),
        ("ninco", "near", "test", 30),
    ]
    manifest = fake_manifest(sets, name="openood-imagenet1k")
    held = evaluate_runs(manifest, [fake_run(manifest)], "msp")
    version = load_manifest(manifest.name).version
    replace(held, about=held.about.model_copy(update={"version": version})).write(tmp_path / "held")
    shifted = {one.group: one.scored for one in facts_of(tmp_path / "held").sets if one.role == "csid"}
    assert shifted == {"imagenet-v2": 0, "imagenet-c": 0, "imagenet-r": 40}


def test_results_on_an_own_benchmark_are_not_sent_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate_runs(OPEN_SET, [fake_run(OPEN_SET)], "msp").write(tmp_path / "own")
    words = ["submit", str(tmp_path / "own"), "--by", "me", "--out", str(tmp_path / "entries")]
    assert run(app, words, "unknown-eval") == 0
    said = capsys.readouterr().err
    assert "pull request" not in said
    assert "next: keep it as results/own next to the folders of the benchmarks" in said


def test_the_command_says_what_comes_next(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["submit", str(results), "--by", "me", "--out", str(tmp_path), "--name"]
    assert run(app, [*words, "first"], "unknown-eval") == 0
    out, err = capsys.readouterr()
    assert out == f"first: 2 detectors on digits, written to {tmp_path / 'first'}\n"
    assert "open a pull request" in err
    assert run(app, [*words, "second", "--json"], "unknown-eval") == 0
    assert json.loads(capsys.readouterr().out)["facts"]["benchmark"] == "digits"
    assert run(app, ["recompute", "--check", str(tmp_path), "--json"], "unknown-eval") == 0
    assert [row["ok"] for row in json.loads(capsys.readouterr().out)["entries"]] == [True, True]
    assert run(app, [*words, "No Name"], "unknown-eval") == 2
    assert "entry No Name: is malformed at name" in capsys.readouterr().err
    (tmp_path / "first" / "entry.json").unlink()
    assert run(app, ["recompute", "--check", str(tmp_path)], "unknown-eval") == 1


def test_files_for_the_hub_are_read_by_its_library(results: Path, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    hub = pytest.importorskip("huggingface_hub")
    repo = tmp_path / "model"
    submit(
        results,
        by="me",
        to=tmp_path / "to",
        hub="org/set",
        model_repo=repo,
        url="https://example.org",
    )
    files = sorted(path.relative_to(repo).as_posix() for path in repo.rglob("*.yaml"))
    assert files == [".eval_results/digits-energy.yaml", ".eval_results/digits-mcp.yaml"]
    entries = hub.parse_eval_result_entries(yaml.safe_load((repo / files[1]).read_text()))
    assert [(e.dataset_id, e.task_id) for e in entries] == [
        ("org/set", "digits-near"),
        ("org/set", "digits-far"),
    ]
    assert entries[0].source_url == "https://example.org"
    assert entries[0].notes.startswith("detector mcp, mean of 2 runs, version 1, wordnet-splits ")
    rows = Results.read(results).results.to_pylist()
    expected = {
        role: [
            row["value"]
            for row in rows
            if (row["detector"], row["metric"], row["group"], row["role"]) == ("mcp", "auroc", "(mean)", role)
        ]
        for role in ("near", "far")
    }
    assert all(len(values) == 2 for values in expected.values())
    assert [e.value for e in entries] == [pytest.approx(sum(values) / 2) for values in expected.values()]


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"hub": "org/set"}, "submit"),
        ({"model_repo": "model"}, "submit"),
        ({"hub": "org/set@v1", "model_repo": "model"}, "org/set@v1"),
    ],
)
def test_wrong_places_of_the_hub_are_refused(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, str], where: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with raises(DataError, where=where):
        submit(results, by="me", to="to", **arguments)
    assert list(tmp_path.iterdir()) == []
