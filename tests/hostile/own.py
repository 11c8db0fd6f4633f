"""Datasets of one's own, benchmarks that carry them, words to map, entries, a repository of the Hub."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.hostile import reading
from tests.hostile.kind import Kind
from tests.hostile.running import finish
from tests.wordnet_splits import own_pictures as own
from wordnet_splits.benchmark.resolve import find_manifest
from wordnet_splits.datasets.catalog.table import CATALOGS

CLASSES = ("golden retriever", "teapot", "zebra", "acoustic guitar")
COUNTS = {"train": 1, "test": 2}
ROOT = ("--root", "mypics=pics")
_INVENTORY = ("wordnet-splits", "sources", "inventory", "mypics", *ROOT)
_DECLARED = ["pics/dataset.toml", "pics/mypics.tsv"]
_ROWS = [
    (f"{split}/{name}/{n}.png", name, split)
    for split, count in COUNTS.items()
    for name in CLASSES
    for n in range(count)
]


def _in_folders(folder: Path) -> None:
    pics = folder / "pics"
    own.class_folders(pics, CLASSES, COUNTS)
    own.catalog(pics / "mypics.tsv", CLASSES, COUNTS)
    own.declare(pics, "mypics", "folders")


def _in_csv(folder: Path) -> None:
    pics = folder / "pics"
    own.table(pics, _ROWS, ("file", "label", "split"))
    own.catalog(pics / "mypics.tsv", CLASSES, COUNTS)
    own.declare(pics, "mypics", "csv", COLUMNS)


COLUMNS = 'columns = { image = "file", class = "label", split = "split" }\n'


def _in_parquet(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pics = folder / "pics"
    own.table(pics / "made", _ROWS, ("file", "label", "split"))
    rows = [
        {"file": {"bytes": (pics / "made" / path).read_bytes(), "path": path}, "label": name, "split": split}
        for path, name, split in _ROWS
    ]
    shutil.rmtree(pics / "made")
    pq.write_table(pa.Table.from_pylist(rows), pics / "rows.parquet")
    own.catalog(pics / "mypics.tsv", CLASSES, COUNTS)
    own.declare(pics, "mypics", "parquet", COLUMNS)


def _in_coco(folder: Path) -> None:
    pics = folder / "pics"
    for split in COUNTS:
        rows = [(path.replace("/", " "), name) for path, name, s in _ROWS if s == split]
        own.table(pics / f"{split}2017", [(path,) for path, _ in rows], ("unused",))
        document = {
            "images": [{"id": n, "file_name": path} for n, (path, _) in enumerate(rows)],
            "annotations": [
                {
                    "id": n,
                    "image_id": n,
                    "category_id": CLASSES.index(name),
                    "area": 10.5,
                    "bbox": [0, 0, 3, 4],
                }
                for n, (_, name) in enumerate(rows)
            ],
            "categories": [{"id": n, "name": name} for n, name in enumerate(CLASSES)],
        }
        (pics / "annotations").mkdir(exist_ok=True)
        (pics / "annotations" / f"instances_{split}2017.json").write_text(json.dumps(document))
    own.catalog(pics / "mypics.tsv", CLASSES, COUNTS)
    own.declare(pics, "mypics", "coco")


def _carrying(folder: Path) -> None:
    """Make a benchmark that carries its dataset's declaration, catalog and inventory."""
    _in_folders(folder)
    finish(folder, *_INVENTORY)
    sides = ("--id", "mypics:golden retriever,teapot", "--near", "mypics")
    finish(folder, "wordnet-splits", "new", "mine", *sides, *ROOT)
    finish(folder, "wordnet-splits", "build", "mine.toml", "--out", "made", *ROOT)
    shutil.rmtree(folder / "pics")


def _hierarchy(folder: Path) -> None:
    """Make a recipe over a hierarchy of the digits, and the benchmark that carries it."""
    parents = {str(digit): "even" if digit % 2 == 0 else "odd" for digit in range(10)}
    parents |= {"even": "digit", "odd": "digit"}
    edges = "".join(f"{child}\t{parent}\tis-a\n" for child, parent in parents.items())
    (folder / "tree.tsv").write_text(f"child\tparent\tkind\n{edges}", "utf-8")
    nodes = "".join(f"{node}\tthe {node}|{node}\tone of them\t3\n" for node in (*parents, "digit"))
    (folder / "nodes.tsv").write_text(f"node\tnames\tgloss\tcount\n{nodes}", "utf-8")
    recipe = (CATALOGS.parent / "recipes" / "digits.toml").read_text("utf-8")
    groups = recipe[recipe.index("[[group]]") : recipe.index("[[group]]", recipe.index('role = "near"'))]
    head = 'schema = 1\nname = "mine"\n\n[hierarchy]\nfile = "tree.tsv"\n\n'
    (folder / "mine.toml").write_text(head + groups, "utf-8")
    finish(folder, *_BUILD)


@cache  # one set of results for all examples
def _results() -> dict[str, bytes]:
    from tempfile import TemporaryDirectory

    from loaders.harness.evaluation.run_evaluation import evaluate_runs
    from loaders.harness.leaderboard import submit
    from tests.loaders.harness.evaluation.fake_runs import fake_run
    from wordnet_splits.benchmark.resolve import load_manifest

    manifest = load_manifest("digits")
    with TemporaryDirectory() as scratch:
        results = evaluate_runs(manifest, [fake_run(manifest, splits=("train", "test"))], "msp")
        results.write(Path(scratch, "results"))
        entry = submit(Path(scratch, "results"), by="somebody", name="linear", to=Path(scratch, "entries"))
        return {path.name: path.read_bytes() for path in entry.iterdir()}


def _entry(folder: Path) -> None:
    (folder / "entries" / "linear").mkdir(parents=True)
    for name, content in _results().items():
        (folder / "entries" / "linear" / name).write_bytes(content)


def _names(folder: Path) -> None:
    names = ("blue whale", "caf\u00e9", "crane", "Hund", "ramen\tfood", "monarch\tinsect", "7", "other")
    (folder / "names.txt").write_text("\n".join(names) + "\n", "utf-8")


def _repository(folder: Path) -> None:
    shutil.copytree(find_manifest("digits"), folder / "repository" / "digits")


def _of(name: str, make: Callable[[Path], None], *files: str) -> Kind:
    return Kind(f"own dataset ({name})", make, _INVENTORY, [*files, *_DECLARED])


_NAMED = ("wordnet-splits", "catalog", "make", "--names", "names.txt", "--out", "catalog.tsv")
_BUILD = ("wordnet-splits", "build", "mine.toml", "--out", "made")
_VERIFY = ("wordnet-splits", "verify", "./made/mine")
OWN = (
    _of("folders", _in_folders, "pics/*/*/*.png"),
    _of("CSV", _in_csv, "pics/labels.csv"),
    _of("Parquet", _in_parquet, "pics/*.parquet"),
    _of("COCO", _in_coco, "pics/annotations/*.json"),
    Kind("benchmark that carries its dataset", _carrying, _VERIFY, ["made/mine/**/*"], True, 30),
    Kind("own hierarchy", _hierarchy, _BUILD, ["*.tsv", "mine.toml"]),
    Kind("benchmark that carries its hierarchy", _hierarchy, _VERIFY, ["made/mine/**/*"], True, 20),
    Kind("names of classes", _names, _NAMED, ["names.txt"], ends=3),
    Kind("repository of the Hub", _repository, reading.pull, ["repository/**/*"], True),
)
"""Kinds that are read without torch."""

_ENTRIES = ("unknown-eval", "recompute", "--check", "entries")
ENTRIES = (Kind("leaderboard entry", _entry, _ENTRIES, ["entries/**/*.parquet", "entries/**/*.json"], True),)
"""Kinds whose reader needs torch."""
