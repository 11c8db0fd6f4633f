"""A benchmark over a hierarchy of one's own: decided by it, carried with it, compared with it."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.raising import mentions, raises
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.command import Command
from wordnet_splits.base.errors import RecipeError
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import Manifest, read_manifest
from wordnet_splits.benchmark.manifest.node_changes import NodeChanges
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.datasets.catalog.own_hierarchy import _lexicon
from wordnet_splits.wordnet.taxonomy import Taxonomy

pytestmark = pytest.mark.usefixtures("own_datasets_forgotten")

CLASSES = {"golden retriever": "retriever", "teapot": "", "zebra": "", "acoustic guitar": ""}
COUNTS = {"train": 1, "test": 2}
ROOT = ("--root", "mypics=pics")
EDGES = {
    "retriever": "dog",
    "dog": "animal",
    "zebra": "animal",
    "teapot": "vessel",
    "acoustic_guitar": "instrument",
    **dict.fromkeys(("animal", "vessel", "instrument"), "thing"),
}
RECIPE = """schema = 1
name = "mine"

[[source]]
name = "mypics"
layout = "folders"
catalog = "pics/mypics.tsv"

[[group]]
name = "known"
role = "id"
source = "mypics"
classes = { listed = ["golden retriever", "teapot"] }
images = { train = { from = "train", all = true }, test = { from = "test", all = true } }

[[group]]
name = "near"
role = "near"
source = "mypics"
classes = { subtree = ["animal"] }
images = { test = { from = "test", all = true } }

[[group]]
name = "far"
role = "far"
source = "mypics"
classes = { not = { below_parent_of = "group:known" } }
images = { test = { from = "test", all = true } }
"""
TABLE = '[hierarchy]\nfile = "tree.tsv"\nname = "things"\n'


def write_tree(path: Path, **changed: str) -> None:
    """Write the edges; ``changed`` has other parents, "" for none."""
    rows = [f"{child}\t{parent}\n" for child, parent in {**EDGES, **changed}.items() if parent]
    path.write_text("child\tparent\n" + "".join(rows), encoding="utf-8")


def write_catalog(path: Path, **nodes: str) -> None:
    """Write the catalog of the classes; ``nodes`` are other cells of the column wnids."""
    own.catalog(path, CLASSES, COUNTS)
    head, *rows = path.read_text(encoding="utf-8").splitlines()[1:]
    lines = [head]
    for row in rows:
        cells = row.split("\t")
        node = nodes.get(cells[0].replace(" ", "_"), CLASSES[cells[0]])
        cells[4:7] = [node, "exact" if node else "", ""]
        lines.append("\t".join(cells))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def here(command: Command, tmp_path: Path) -> Path:
    """A folder with a recipe, its hierarchy and its dataset."""
    own.class_folders(Path("pics"), CLASSES, COUNTS)
    write_catalog(Path("pics/mypics.tsv"))
    write_tree(Path("tree.tsv"))
    Path("mine.toml").write_text(RECIPE.replace("\n[[source]]", f"\n{TABLE}\n[[source]]", 1))
    own.attribute(Path("mine.toml"))
    return tmp_path


@pytest.fixture
def built(here: Path, command: Command) -> Manifest:
    """The benchmark, built there."""
    assert command("build", "mine.toml", *ROOT).code == 0
    return read_manifest(here / "build" / "mine", check="all")


def test_it_decides_by_the_nodes_and_says_so(built: Manifest, here: Path, command: Command) -> None:
    rows = {row["class_id"]: row for row in built.classes.to_pylist()}
    assert {c: (r["wnids"], r["role"]) for c, r in rows.items()} == {
        "golden retriever": (["retriever"], "id"),
        "teapot": (["teapot"], "id"),
        "zebra": (["zebra"], "near"),
        "acoustic guitar": (["acoustic_guitar"], "far"),
    }
    zebra = rows["zebra"]
    assert (zebra["nearest_id"], zebra["nearest_wnid"], zebra["lcs"], zebra["distance"]) == (
        "golden retriever",
        "retriever",
        "animal",
        3,
    )
    taxonomy = taxonomy_of(built)
    assert taxonomy.title == built.data.taxonomy.name == "things"
    assert (built.data.taxonomy.hierarchy, built.data.taxonomy.version) == ("own", taxonomy.version)
    sources = here / "build/mine/sources"
    prints = built.data.fingerprints.hierarchy
    assert prints is not None
    for name, digest in (("hierarchy.tsv", prints.tree), ("nodes.tsv", prints.nodes)):
        assert hashlib.sha256((sources / name).read_bytes()).hexdigest() == digest
    again = taxonomy_of(load_recipe(here / "mine.toml"))
    assert [again.parents(node) for node in again] == [taxonomy.parents(node) for node in taxonomy]
    assert json.loads((here / "build/mine/manifest.json").read_text())["recipe"]["hierarchy"] == {
        "file": "tree.tsv",
        "name": "things",
    }
    assert command("verify", "build/mine", *ROOT).code == 0


@pytest.mark.extensions("wordnet_splits.audit")
def test_names_of_its_classes_are_read_in_it(built: Manifest, command: Command) -> None:
    assert command("audit", "names", "--benchmark", "build/mine").code == 0
    Path("names.txt").write_text("teapot\nretriever\n")
    found = command("audit", "names", "names.txt", "--benchmark", "build/mine", "--json").json["names"]
    assert [(row["name"], row["problems"], row["other"]) for row in found] == [
        ("teapot", ["mix_up"], "teapot"),
        ("retriever", ["mix_up"], "golden retriever"),
    ]
    pytest.importorskip("torch")
    from loaders.harness.models.vision_language import id_classes

    assert id_classes(built) == (["golden retriever", "teapot"], ["golden retriever", "teapot"])


def test_a_stranger_pulls_and_verifies_it_without_the_files(
    built: Manifest, here: Path, command: Command
) -> None:
    pytest.importorskip("yaml", reason="cards are written with it")
    assert command("hub", "publish", "build/mine", "--out", "published").code == 0
    files = {path.name for path in Path("published/mine/sources").iterdir()}
    assert {"hierarchy.tsv", "nodes.tsv", "mypics.tsv", "mypics.toml"} <= files
    for path in (Path("tree.tsv"), Path("mine.toml"), Path("pics/mypics.tsv")):
        path.unlink()
    assert command("hub", "pull", "./published", "--out", "pulled").code == 0
    assert command("verify", "pulled/mine", *ROOT).code == 0
    assert command("diff", "pulled/mine", "build/mine").code == 0
    assert command("build", "pulled/mine", *ROOT, "--out", "again").code == 0
    assert command("diff", "pulled/mine", "again/mine").code == 0
    assert command("freeze", "pulled/mine", "--manifests", "frozen").code == 0
    assert read_manifest(here / "frozen/mine", check="all").sources_fingerprint == built.sources_fingerprint


def test_no_wordnet_decides_it(built: Manifest, here: Path) -> None:
    for benchmark in (built, load_recipe(built), load_recipe(here / "mine.toml")):
        with raises(RecipeError, where="mine", naming="things"):
            taxonomy_of(benchmark, "nltk")
    with raises(RecipeError, where="mine", naming="things"):
        build_benchmark(here / "mine.toml", taxonomy=Taxonomy.embedded())


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["fingerprints"].pop("hierarchy"),
        lambda data: data["taxonomy"].update(hierarchy="wordnet"),
        lambda data: data["taxonomy"].update(name="a\nb"),
        lambda data: data["taxonomy"].update(version=""),
        lambda data: (data["taxonomy"].update(hierarchy="wordnet"), data["fingerprints"].pop("hierarchy")),
    ],
)
def test_a_manifest_that_denies_it_is_refused(
    built: Manifest, command: Command, change: Callable[[dict[str, Any]], object]
) -> None:
    path = Path("build/mine/manifest.json")
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    assert mentions(command("verify", "build/mine").error, "manifest.json")


def _moved(text: str) -> str:
    return text.replace("zebra\tanimal", "zebra\tvessel")


@pytest.mark.parametrize(
    ("file", "claimed"), [("hierarchy.tsv", False), ("nodes.tsv", False), ("hierarchy.tsv", True)]
)
def test_an_altered_hierarchy_is_refused(built: Manifest, command: Command, file: str, claimed: bool) -> None:
    pytest.importorskip("yaml", reason="cards are written with it")
    assert command("hub", "publish", "build/mine", "--out", "published").code == 0
    for folder in ("build/mine", "published/mine"):
        path = Path(folder, "sources", file)
        text = path.read_text(encoding="utf-8")
        changed = _moved(text) if file == "hierarchy.tsv" else text.replace("\tzebra", "\tstriped zebra")
        assert changed != text
        path.write_text(changed, encoding="utf-8")
        if claimed:
            manifest = Path(folder, "manifest.json")
            data = json.loads(manifest.read_text())
            data["fingerprints"]["hierarchy"]["tree"] = hashlib.sha256(changed.encode()).hexdigest()
            manifest.write_text(json.dumps(data))
    assert command("verify", "build/mine").code in (1, 2)  # 2: a rule takes no class over the other tree
    sums = Path("published/SHA256SUMS")
    lines = [line.split("  ")[1] for line in sums.read_text().splitlines()]
    digests = {name: hashlib.sha256(Path("published", name).read_bytes()).hexdigest() for name in lines}
    sums.write_text("".join(f"{digest}  {name}\n" for name, digest in digests.items()))
    assert command("hub", "pull", "./published", "--out", "pulled").code == 2
    assert not Path("pulled/mine").exists()


def test_another_version_of_it_is_another_benchmark(built: Manifest, here: Path, command: Command) -> None:
    shutil.copytree("build/mine", "before/mine")
    assert command("freeze", "build/mine", "--manifests", "frozen").code == 0
    write_tree(Path("tree.tsv"), retriever="animal", dog="", tea="thing")
    assert command("build", "mine.toml", *ROOT).code == 0
    again = read_manifest(here / "build/mine", check="all")
    assert again.fingerprint == built.fingerprint
    assert again.sources_fingerprint != built.sources_fingerprint
    changed = command("diff", "before/mine", "build/mine", "--json")
    assert changed.code == 1
    found = changed.json["hierarchy"]
    assert found["moved"] == [{"node": "retriever", "before": ["dog"], "after": ["animal"]}]
    assert (found["came"], found["went"], found["renamed"]) == (["tea"], ["dog"], [])
    assert sum(mentions(word, node) for word in changed.json["words"] for node in ("tea", "dog")) >= 2
    assert command("freeze", "build/mine", "--manifests", "frozen").code == 2
    assert len(list(NodeChanges("things 1", "things 1", same=False).sentences())) == 1


def test_a_variant_and_a_dataset_bring_it_also(here: Path, command: Command) -> None:
    """By ``extends``, by ``dataset.toml`` under a root, and by ``[source.hierarchy]``."""
    Path("variant.toml").write_text('extends = "mine.toml"\nname = "variant"\ndrop = ["far"]\n')
    shutil.copy("tree.tsv", "pics/tree.tsv")
    Path("pics/nodes.tsv").write_text(
        "node\tnames\n" + "".join(f"{node}\t{node}\n" for node in {*EDGES, "thing"})
    )
    own.declare(Path("pics"), "mypics", "folders", TABLE)
    head, _, groups = RECIPE.replace('"mine"', '"rooted"').partition("[[source]]")
    Path("rooted.toml").write_text(head + groups[groups.index("[[group]]") :])
    nested = TABLE.replace("[hierarchy]", "[source.hierarchy]")
    Path("nested.toml").write_text(
        RECIPE.replace('"mine"', '"nested"').replace("\n[[group]]", f"\n{nested}\n[[group]]", 1)
    )
    rows = {}
    for name in ("mine", "variant", "rooted", "nested"):
        assert command("build", f"{name}.toml", *ROOT).code == 0, name
        manifest = read_manifest(here / "build" / name, check="all")
        rows[name] = manifest.data.fingerprints.hierarchy
        assert manifest.data.taxonomy.name == "things"
    assert len({(row.tree, row.nodes) for row in rows.values() if row}) == 1
    assert None not in rows.values()


def test_a_lexicon_of_wn_is_carried_as_files(
    here: Path, command: Command, lexicon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_catalog(
        Path("pics/mypics.tsv"),
        golden_retriever="oewn-3-n",
        teapot="oewn-6-n",
        zebra="oewn-2-n",
        acoustic_guitar="oewn-4-n",
    )
    _recipe('file = "tree.tsv"\nname = "things"', f'wn = "{lexicon}"')()
    _recipe('["animal"]', '["oewn-2-n"]')()
    _recipe('{ not = { below_parent_of = "group:known" } }', '{ listed = ["acoustic guitar"] }')()
    assert command("build", "mine.toml", *ROOT).code == 0
    built = read_manifest(here / "build/mine", check="all")
    assert (built.data.taxonomy.name, built.data.taxonomy.version) == ("oewn", "2024")
    evidence = {row["class_id"]: row["evidence"] for row in built.classes.to_pylist()}
    assert "animal (oewn-2-n)" in evidence["zebra"]
    monkeypatch.setattr("wn.config.data_directory", here / "without")
    _lexicon.cache_clear()
    assert command("verify", "build/mine", *ROOT).code == 0
    assert command("build", "mine.toml", *ROOT, "--out", "again").code == 2


def _recipe(old: str, new: str) -> Callable[[], None]:
    def change() -> None:
        path = Path("mine.toml")
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

    return change


def _dataset(text: str) -> Callable[[], None]:
    return _recipe('catalog = "pics/mypics.tsv"\n', f'catalog = "pics/mypics.tsv"\n{text}')


def _two_trees() -> None:
    write_tree(Path("other.tsv"), zebra="thing")
    _dataset('[source.hierarchy]\nfile = "other.tsv"\n')()


def _outside() -> None:
    write_tree(Path("../tree.tsv"))
    _recipe('file = "tree.tsv"', 'file = "../tree.tsv"')()


FILE = 'file = "tree.tsv"'
BAD = {
    "a class of an ID group at no node": (
        lambda: write_tree(Path("tree.tsv"), teapot=""),
        "recipe",
        ["teapot", "line 3"],
    ),
    "a catalog with an unknown node": (
        lambda: write_catalog(Path("pics/mypics.tsv"), zebra="zebras"),
        "data",
        ["zebras", "mypics.tsv:4"],
    ),
    "a node twice in a class": (
        lambda: write_catalog(Path("pics/mypics.tsv"), zebra="zebra zebra"),
        "data",
        ["mypics.tsv:4"],
    ),
    "two hierarchies": (_two_trees, "recipe", ["mine.toml", "other.tsv"]),
    "WordNet beside a hierarchy": (
        lambda: (_recipe(TABLE, 'hierarchy = "wordnet"\n')(), _dataset(f"[source.hierarchy]\n{FILE}\n")()),
        "recipe",
        ["mine.toml", "wordnet"],
    ),
    "a file outside the folder": (_outside, "data", ["../tree.tsv"]),
    "an absolute path": (_recipe(FILE, 'file = "/etc/passwd"'), "data", ["/etc/passwd"]),
    "an absent file": (_recipe(FILE, 'file = "trees.tsv"'), "data", ["trees.tsv"]),
    "an absent file of nodes": (_recipe(FILE, FILE + '\nnodes = "names.tsv"'), "data", ["names.tsv"]),
    "file and wn": (_recipe(FILE, FILE + '\nwn = "oewn:2024"'), "recipe", ["mine.toml"]),
    "neither file nor wn": (_recipe(FILE, "").__call__, "recipe", ["mine.toml"]),
    "nodes of a lexicon": (_recipe(FILE, 'wn = "oewn:2024"\nnodes = "nodes.tsv"'), "recipe", ["nodes"]),
    "an unknown key": (_recipe(FILE, FILE + '\nfiles = "x"'), "recipe", ["files"]),
    "another word for it": (_recipe(TABLE, 'hierarchy = "birds"\n'), "recipe", ["hierarchy"]),
    "a name of two lines": (_recipe('"things"', '"a\\nb"'), "recipe", ["name"]),
    "a dataset called nodes": (_recipe('name = "mypics"', 'name = "nodes"'), "recipe", ["nodes"]),
    "a dataset called hierarchy": (_recipe('name = "mypics"', 'name = "hierarchy"'), "recipe", ["hierarchy"]),
    "a cycle": (lambda: write_tree(Path("tree.tsv"), animal="dog"), "taxonomy", ["tree.tsv"]),
    "a rule that names no node": (_recipe('["animal"]', '["plant"]'), "taxonomy", ["plant", "mine.toml"]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(here: Path, command: Command, case: str) -> None:
    change, kind, naming = BAD[case]
    change()
    finished = command("build", "mine.toml", *ROOT, "--json")
    assert finished.code == 2, finished
    error = finished.json["error"]
    text = " ".join(filter(None, (error["where"], error["what"])))
    assert "\n" not in text
    assert (error["kind"], mentions(text, *naming)) == (kind, True), error
