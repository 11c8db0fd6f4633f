"""Every command on a benchmark whose hierarchy is its own; WordNet is never loaded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.raising import mentions, raises
from tests.wordnet_splits import own_tree
from tests.wordnet_splits.command import Command
from tests.wordnet_splits.explorer.pages import read
from tests.wordnet_splits.own_pictures import picture
from tests.wordnet_splits.own_tree import FAR, KNOWN, NEAR, PARENTS, TITLE
from tests.wordnet_splits.toy import Definitions
from wordnet_splits.base.errors import DataError, RecipeError
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.datasets.catalog import declarations
from wordnet_splits.negatives.mining import mine_negatives
from wordnet_splits.wordnet.taxonomy import synsets

TRUTH = Definitions(PARENTS)


@pytest.fixture(scope="module", autouse=True)
def _no_wordnet() -> Iterator[None]:
    def refuse() -> None:
        raise AssertionError("WordNet is loaded")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synsets, "_embedded", refuse)
        patch.setattr(declarations, "_REGISTERED", {})  # the datasets of this module are forgotten, too
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_tree.build_own(tmp_path_factory.mktemp("own"))


def test_roles_distances_and_subsumers_are_those_of_the_tree(built: Path) -> None:
    rows = pq.read_table(built / "classes.parquet").to_pylist()
    groups = {"known": KNOWN, "near": NEAR, "far": FAR}
    assert {name: "".join(r["class_id"] for r in rows if r["group"] == name) for name in groups} == groups
    for row in rows:
        c, nearest = row["class_id"], row["nearest_id"]
        others = [k for k in KNOWN if k != c]
        distances = {k: TRUTH.distance(c, k) for k in others}
        assert row["wnids"] == [c]
        assert row["distance"] == distances[nearest] == min(distances.values())
        deepest = max(TRUTH.max_depth(a) for a in TRUTH.common(c, nearest))
        assert row["lcs"] in [a for a in TRUTH.common(c, nearest) if TRUTH.max_depth(a) == deepest]
        assert "WordNet" not in row["evidence"]
        assert "synset" not in row["evidence"]


def test_commands_read_and_name_the_hierarchy(built: Path, command: Command) -> None:
    name = str(built)
    row = command("explain", name, "nought", "--json").json
    assert (row["class_id"], row["gloss"], row["hierarchy"]) == ("0", "the zero", TITLE)
    row = command("explain", name, "7", "--json").json
    assert [node["wnid"] for node in (*row["up"], *row["down"])] == [
        "7",
        "odd",
        "number",
        "number",
        "even",
        "0",
    ]
    assert mentions(command("explain", name, "7").out, TITLE)
    sets = {s["group"]: (s["min"], s["max"]) for s in command("distance", name, "--json").json["sets"]}
    assert sets == {"near": (2, 2), "far": (4, 4)}
    assert command("audit", "leaks", name, "--json").json["leaks"][0]["pairs"] == [["1", "5"], ["1", "7"]]
    assert command("verify", name).code == 0
    robust = command("audit", "robust", name, "--json").json
    assert mentions(robust["notes"][0], TITLE)
    assert {c["hierarchy"] for c in robust["classes"]} == {None}
    assert {c["role"] for c in robust["classes"] if c["path"] == c["role"] == "far"} == {"far"}
    assert {r["subtrees"] for r in command("power", name, "--json").json["sets"]} == {5, 2}
    assert "WordNet" not in command("cite", name).out
    assert command(
        "wordnet", "compare", "7", "nought", "--wordnet", built.parents[1] / "tree.tsv", "--json"
    ).json["distance"] == TRUTH.distance("7", "0")
    tree = command("wordnet", "tree", "--wordnet", built.parents[1] / "tree.tsv", "--json").json
    assert (tree["wnid"], tree["synsets"]) == ("sign", 17)


def test_lists_are_compared_in_the_hierarchy_of_their_benchmarks(built: Path, command: Command) -> None:
    near, known = f"{built}:near", f"{built}:known"
    audit = command("audit", "list", near, "--against", known, "--json").json
    assert {c["id"]: c["distance"] for c in audit["classes"]} == {
        c: min(TRUTH.distance(c, k) or 0 for k in KNOWN) for c in NEAR
    }
    Path("words.txt").write_text("number\nseven\nnought\n")
    words = command("audit", "list", "words.txt", "--against", known)
    assert mentions(words.out, TITLE)
    counts = command(
        "audit", "thresholds", "words.txt", "--against", known, "--measure", "distance", "--json"
    ).json
    assert {c["name"]: (c["relation"], c["value"]) for c in counts["classes"]} == {
        "number": ("above", 2),
        "seven": (None, 4),
    }
    negatives = command("audit", "negatives", "words.txt", "--known", known, "--ood", built, "--json").json
    assert [(w["relation"], [n["class_id"] for n in w["names"]]) for w in negatives["words"]] == [
        ("above", []),
        (None, ["7"]),
        ("equal", []),
    ]
    shutil.copytree(built, Path("others", built.name))  # the OOD sets of a copy are over the same hierarchy
    usual = command("audit", "negatives", "words.txt", "--known", known, "--manifests", "others", "--json")
    assert usual.json["words"] == negatives["words"]


def test_pages_and_cards_name_the_hierarchy_and_its_files(built: Path, command: Command) -> None:
    assert command("site", built, "--out", "site").code == 0
    (entry,) = read(Path("site"), "index")["benchmarks"]
    assert (entry["hierarchy"], entry["node"]) == (TITLE, "node")
    nodes = read(Path("site"), "synsets")
    assert dict(zip(nodes["wnid"], nodes["name"], strict=True))["0"] == "zero, nought"
    pages = [
        json.dumps(read(Path("site"), str(f.relative_to("site/data"))[:-3]))
        for f in Path("site/data").rglob("*.js")
    ]
    assert not any("WordNet" in page for page in pages)
    pytest.importorskip("yaml", reason="cards are written with it")
    assert command("hub", "publish", built, "--out", "published").code == 0
    card = Path("published/README.md").read_text()
    croissant = json.loads(Path("published", own_tree.BENCHMARK, "croissant.json").read_text())
    files = {entry["contentUrl"] for entry in croissant["distribution"]}
    for text in (card, croissant["rai:dataCollection"]):
        assert mentions(text, TITLE, "sources/hierarchy.tsv", "sources/nodes.tsv")
        assert "WordNet" not in text
    assert {"sources/hierarchy.tsv", "sources/nodes.tsv"} < files


LACKING = {
    "parts": '{ part_whole_with = "group:known" }',
    "glosses": '{ gloss_mentions = "group:known" }',
    "names": '{ shares_name_with = "group:known" }',
}
SENSES = '{ overlaps = "group:known", senses = "any" }'
KEYWORDS = '{ not = { clear_of = { with = "group:known" } } }'


@pytest.mark.parametrize(
    ("rule", "lacking", "nodes"),
    [
        (LACKING["parts"], "parts", True),
        *((rule, lacking, False) for lacking, rule in LACKING.items()),
        (SENSES, "names", False),
        (KEYWORDS, "names", False),
    ],
)
def test_a_rule_is_refused_that_reads_what_the_hierarchy_lacks(
    rule: str, lacking: str, nodes: bool, tmp_path: Path
) -> None:
    own_tree.write_tree(tmp_path, nodes=nodes)
    recipe = own_tree.write_own_recipe(tmp_path, near=rule)
    with raises(RecipeError, where="group near", naming=(lacking, TITLE)):
        build_benchmark(recipe)


def test_two_hierarchies_are_not_compared_and_wordnet_is_not_mined(built: Path, command: Command) -> None:
    error = command("audit", "list", "cifar10", "--against", f"{built}:known").error
    assert mentions(error, "cifar10", TITLE)
    with raises(DataError, where=":known", naming=TITLE):
        mine_negatives(f"{built}:known")


def test_authors_bring_a_tree(command: Command, tmp_path: Path) -> None:
    tree = own_tree.write_tree(tmp_path)
    recipe = tmp_path / "there" / "mine.toml"
    sets = ("--id", "digits:0,2,4", "--near", "digits:mean=0.4", "--far", "digits:mean=0.4")
    made: dict[str, Any] = command("new", "mine", *sets, "--hierarchy", tree, "--out", recipe, "--json").json
    sizes = {row["group"]: row["actual"] for row in made["groups"] if row["split"] == "classes"}
    assert sizes == {"known": len(KNOWN), "near-digits": len(NEAR), "far-digits": len(FAR)}
    assert {path.name for path in recipe.parent.iterdir()} == {"mine.toml", "hierarchy.tsv", "nodes.tsv"}

    for number, name in enumerate(("zero", "four", "three", "five", "seven") * 4):
        path = tmp_path / "pics" / name / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(number).save(path)
    arguments = ("benchmark", "pics", "--known", "pics:zero", "--hierarchy", tree, "--out", "out")
    report = command(*arguments, "--accept", "--json").json
    assert report["verified"] is True
    rows = pq.read_table(tmp_path / "out" / "pics" / "classes.parquet").to_pylist()
    assert {row["name"]: (row["wnids"], row["role"], row["distance"]) for row in rows} == {
        "zero": (["0"], "id", None),
        **{name: ([c], "near", 2) for name, c in {"three": "3", "four": "4"}.items()},
        **{name: ([c], "far", 4) for name, c in {"five": "5", "seven": "7"}.items()},
    }
