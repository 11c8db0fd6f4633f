"""``wordnet-splits site``: its data are the manifests' tables, and nothing of them is lost."""

from __future__ import annotations

import shutil
from collections import Counter
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conftest import REPOSITORY
from tests.raising import mentions
from tests.wordnet_splits.command import Command
from tests.wordnet_splits.explorer.conftest import NAMES
from tests.wordnet_splits.explorer.pages import read, rows
from wordnet_splits.audit.thresholds import thresholds
from wordnet_splits.base.errors import OutputError
from wordnet_splits.benchmark.explain import explain_class
from wordnet_splits.benchmark.manifest.loading import manifest_names
from wordnet_splits.benchmark.recipe import FLAGSHIPS
from wordnet_splits.benchmark.resolve import find_manifest, load_manifest
from wordnet_splits.explorer import make_site
from wordnet_splits.explorer.columns import reduced_tree
from wordnet_splits.explorer.leaderboard_page import fpr_metric, leaderboard_page
from wordnet_splits.explorer.writing import _write
from wordnet_splits.studies.robust import BUILT_IN
from wordnet_splits.wordnet.taxonomy import load

RESULTS = Path(__file__).parents[3] / "manifests" / "results"
MOST_BYTES = 1_000_000
"""Of the site of one benchmark without pictures and download."""


@pytest.mark.parametrize("name", NAMES)
def test_every_class_is_there_with_its_evidence(site: Path, name: str) -> None:
    page, index = read(site, f"benchmark/{name}"), read(site, "index")
    found, held = rows(page["classes"]), load_manifest(name).classes.to_pylist()
    synsets = read(site, "synsets")
    (about,) = (one for one in index["benchmarks"] if one["name"] == name)
    for row, due in zip(found, held, strict=True):
        assert [row[key] for key in ("source", "class_id", "evidence", "distance", "label")] == [
            due[key] for key in ("source", "class_id", "evidence", "distance", "label")
        ]
        assert index["roles"][row["role"]] == due["role"]
        if due["group"]:
            assert page["rules"][row["rule"]] == about["rules"][due["group"]]
        own = None if row["synset"] is None else synsets["wnid"][row["synset"]]
        assert own == due["own_wnid"]
        assert row["mean"] == (None if due["mean"] is None else pytest.approx(due["mean"], abs=1e-6))
        if row["nearest"] is not None:
            assert index["roles"][found[row["nearest"]]["role"]] == "id"
            assert found[row["nearest"]]["class_id"] == due["nearest_id"]
    assert about["roles"] == Counter(row["role"] for row in held)
    assert about["fingerprint"] == load_manifest(name).fingerprint


def test_the_way_is_the_one_that_explain_tells(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wordnet_splits.benchmark.explain.load_manifest", cache(load_manifest))
    page, synsets = read(site, "benchmark/unknown-cifar-clean"), read(site, "synsets")
    for row in rows(page["classes"])[:40:10]:
        (told,) = (
            one
            for one in explain_class("unknown-cifar-clean", row["class_id"]).classes
            if one["source"] == row["source"]
        )
        names = [synsets["wnid"][number] for number in row["way"] or []]
        assert names == [one["wnid"] for one in (*told["up"], *told["down"][1:])]
        if names:
            assert names[row["lcs_at"]] == told["lcs"]
            assert len(names) - 1 == row["distance"]


@pytest.mark.parametrize("name", NAMES)
def test_the_tree_holds_every_class_once_below_its_hypernyms(site: Path, name: str) -> None:
    page, synsets, taxonomy = read(site, f"benchmark/{name}"), read(site, "synsets"), load()
    nodes = rows(page["tree"])
    assert sorted(row for node in nodes for row in node["rows"]) == list(
        range(len(page["classes"]["class_id"]))
    )
    children = Counter(node["parent"] for node in nodes)
    for number, node in enumerate(nodes):
        assert node["parent"] < number
        assert node["rows"] or children[number] > 1
        if node["synset"] is not None and node["parent"] >= 0:
            above = nodes[node["parent"]]["synset"]
            assert taxonomy.is_ancestor(synsets["wnid"][above], synsets["wnid"][node["synset"]])


def test_a_tree_of_three_words() -> None:
    taxonomy = load()
    dog, wolf, spoon = (taxonomy.from_name(name) for name in ("dog.n.01", "wolf.n.01", "spoon.n.01"))
    found = [(taxonomy.name(wnid), parent) for wnid, parent in reduced_tree([dog, wolf, spoon], taxonomy)]
    assert found == [
        ("whole.n.02", -1),
        ("animal.n.01", 0),
        ("dog.n.01", 1),
        ("wolf.n.01", 1),
        ("spoon.n.01", 0),
    ]


def test_a_class_is_found_in_all_benchmarks(site: Path) -> None:
    search = read(site, "search")
    at = search["class_id"].index("castle")
    held = {search["benchmark"][one]: row for one, row, _ in search["in"][at]}
    assert set(held) == {"rungs-cifar100", "unknown-cifar-clean"}
    for name, row in held.items():
        assert read(site, f"benchmark/{name}")["classes"]["class_id"][row] == "castle"


def test_the_index_begins_with_the_flagships(tmp_path: Path) -> None:
    make_site(tmp_path / "pages", ["digits", FLAGSHIPS[0]])
    assert [one["name"] for one in read(tmp_path / "pages", "index")["benchmarks"]] == [
        FLAGSHIPS[0],
        "digits",
    ]


def test_imagenet21k_has_every_class_with_its_nearest(site: Path) -> None:
    page, synsets = read(site, "imagenet21k"), read(site, "synsets")
    found = {synsets["wnid"][row["synset"]]: row for row in rows(page) if row["class"]}
    due = thresholds().rows()
    assert len(found) == len(due) + 1_000
    assert sum(row["known"] for row in found.values()) == 1_000
    for one in due[::500]:
        row = found[one["class_id"]]
        assert (row["kin"] or None, row["mean"]) == (one["relation"], pytest.approx(one["value"], abs=1e-6))
        assert synsets["wnid"][row["nearest"]] == one["nearest"]


def test_a_named_site_has_the_roles_of_the_committed_table_of_readings(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = pq.read_table(REPOSITORY / "docs" / "robust.parquet").to_pylist()
    names = ("sense", "hierarchy", "path", "wup", "mean")
    for name, used in (("digits", names[:2]), ("osc-p3", names[:2]), ("rungs-cifar100", names[:4])):
        make_site(tmp_path / name, [name])
        page = read(tmp_path / name, f"benchmark/{name}")
        due = {(row["source"], row["class_id"]): row for row in committed if row["benchmark"] == name}
        readings = page["readings"]
        assert readings["meanings"] == [BUILT_IN[reading] for reading in used]
        for row, role, roles, why in zip(
            rows(page["classes"]), readings["role"], readings["roles"], readings["why"], strict=True
        ):
            expected = due[row["source"], row["class_id"]]
            assert [role, why, *roles] == [expected[key] for key in ("candidate", "why", *used)], expected
    assert read(site, "benchmark/digits")["readings"] is None  # a site of all benchmarks
    monkeypatch.setattr("wordnet_splits.studies.robust.MOST_READ", 11)
    make_site(tmp_path / "digits", ["digits"])
    assert list(read(tmp_path / "digits", "benchmark/digits")["readings"]) == ["absent"]


def test_a_folder_of_something_else_stays(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputError):
        make_site(tmp_path, ["digits"])
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_the_command_and_the_same_again_is_the_same(command: Command, tmp_path: Path) -> None:
    found = command("site", "digits", "--out", "pages", "--json").json
    assert found["benchmarks"] == ["digits"]
    assert found["pages"] == ["distances"]  # nothing that does not concern it, and it has no entries
    assert found["bytes"] < MOST_BYTES
    before = {path: path.read_bytes() for path in Path("pages").rglob("*") if path.is_file()}
    assert found["bytes"] == sum(map(len, before.values()))
    make_site(Path("pages"), ["digits"])
    assert before == {path: path.read_bytes() for path in Path("pages").rglob("*") if path.is_file()}
    assert mentions(command("site", "digit", "--out", "other").error, "digits")
    assert command("site", "digits", "--out", "other", "--results", ".").error
    assert "other" not in {path.name for path in tmp_path.iterdir()}


def test_a_place_or_benchmark_that_cannot_be_is_one_line(command: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert command("site", "digits", "--out", "file").error
    for here in (".", str(tmp_path), str(tmp_path.parent)):
        assert command("site", "digits", "--out", here).error
    assert mentions(command("site", "digits", "digits", "--out", "a").error, "digits")
    assert {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")} == {"file"}


def test_half_a_surrogate_pair_of_a_title_is_written(tmp_path: Path) -> None:
    title = "half \udc80"  # which UTF-8 does not have
    _write(tmp_path, "index", {"title": title})
    assert read(tmp_path, "index") == {"title": title}


@pytest.mark.sampled("docs", one_in=20)
@pytest.mark.parametrize("name", manifest_names())
def test_the_site_of_each_benchmark_is_small(tmp_path: Path, name: str) -> None:
    assert make_site(tmp_path / "pages", [name]).bytes < MOST_BYTES


def test_the_site_of_the_largest_benchmark_is_small(tmp_path: Path) -> None:
    sizes = {name: (find_manifest(name) / "classes.parquet").stat().st_size for name in manifest_names()}
    largest = max(sizes, key=lambda name: sizes[name])
    assert make_site(tmp_path / "pages", [largest]).bytes < MOST_BYTES


@pytest.mark.results
def test_the_leaderboard_has_every_entry() -> None:
    page = leaderboard_page(RESULTS, [load_manifest(name) for name in manifest_names()])
    assert (page["elsewhere"], page["refused"]) == (0, [])
    assert len(page["entries"]) == len(list(RESULTS.glob("*/entry.json")))
    assert all(entry["commands"] and all(entry["sets"]["seen"]) for entry in page["entries"])
    assert page["fpr"]["openood-cifar100-drawn"] == "fpr95_ood_positive"


def test_the_leaderboard_averages_runs_and_names_fingerprints(tmp_path: Path) -> None:
    for entry in ("optimizers-fashion-small", "rungs-cifar100-all", "unknown-cifar-tinyval-resnet20-short"):
        shutil.copytree(RESULTS / entry, tmp_path / entry)
    benchmarks = ("optimizers-fashion-small", "rungs-cifar100", "unknown-cifar-tinyval")
    page = leaderboard_page(tmp_path, [load_manifest(name) for name in benchmarks])
    assert (page["elsewhere"], page["refused"]) == (0, [])
    assert page["metrics"]["gamma"]["better"] == "higher"
    assert page["metrics"]["nearness_trend"]["better"] is None
    assert page["noise"]["unknown-cifar-tinyval"] == ["gaussian"]
    assert fpr_metric("openood-cifar100-drawn") == "fpr95_ood_positive"
    assert page["fpr"]["rungs-cifar100"] == "fpr95_id_positive"
    by_name = {entry["name"]: entry for entry in page["entries"]}
    assert by_name["rungs-cifar100-all"]["images"] == load_manifest("rungs-cifar100").fingerprint
    assert all(entry["commands"] and all(entry["sets"]["seen"]) for entry in page["entries"])
    assert "compared with nothing" in " ".join(by_name["optimizers-fashion-small"]["missing"])
    names = [entry["name"] for entry in page["entries"]]
    table = rows(page["rows"])
    two = [row for row in table if names[row["entry"]] == "unknown-cifar-tinyval-resnet20-short"]
    assert {row["runs"] for row in two} == {1, 2}
    wanted = {"detector": "mcp", "group": "cifar-60", "metric": "auroc"}
    (near,) = (row for row in two if wanted.items() <= row.items())
    assert round(100 * near["value"], 2) == 64.88  # as manifests/results/README.md has it
