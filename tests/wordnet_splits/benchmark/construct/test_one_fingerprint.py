"""One benchmark, one fingerprint: whatever the machine, the copy, the file order or what a root lacks."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wordnet_splits.datasets.sources.trees import png, write_shards
from wordnet_splits.benchmark.checks.freeze import freeze
from wordnet_splits.benchmark.checks.verify import verify_benchmark
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.construct.population import count_difference
from wordnet_splits.benchmark.manifest import Manifest, read_manifest
from wordnet_splits.benchmark.resolve import find_manifest, load_manifest
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.sources import open_source

from ...command import Finished, spawn
from ...recipes import FAR, KNOWN, group, write_dtd, write_recipe

ANIMALS = '{ listed = ["bear", "beaver", "bee", "beetle"] }'
MINE = (
    group(
        "known",
        "id",
        "cifar100",
        ANIMALS,
        '{ val = { from = "train", per_class = 5 }, test = { from = "test", all = true },'
        ' train = { from = "train", per_class = 30 } }',
    ),
    group(
        "near", "near", "cifar100", "{ rest = true, draw = 6 }", '{ test = { from = "test", total = 100 } }'
    ),
    group("digits", "far", "digits", '{ listed = ["8"] }', '{ test = { from = "all", per_class = 40 } }'),
    group(
        "noise",
        "far",
        "uniform",
        "{ rest = true }",
        "{ test = { generate = 40 } }",
        "noise = { shape = [32, 32, 3] }",
    ),
)


def fingerprints(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["fingerprints"]
    return found


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a manifest: the same library writes the same bytes."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def mine(tmp_path_factory) -> Path:
    return write_recipe(tmp_path_factory.mktemp("recipe"), *MINE)


@pytest.fixture(scope="module")
def pickles(real_data) -> Path:
    return real_data / "cifar-100-python"


@pytest.fixture(scope="module")
def reference(mine, pickles, tmp_path_factory) -> Path:
    """The build from the publisher's pickles."""
    folder = build_benchmark(
        mine, roots={"cifar100": pickles}, out=tmp_path_factory.mktemp("reference")
    ).folder
    assert folder is not None
    assert fingerprints(folder)["pixels_in_all"]
    return folder


@pytest.fixture(scope="module")
def drawn(reference, pickles) -> dict[str, Any]:
    """The pixels of every CIFAR image drawn, in an order that is nobody's."""
    table = load_manifest(reference).images()
    ids = [r["image_id"] for r in table.to_pylist() if r["source"] == "cifar100"]
    assert len(ids) == 4 * (5 + 30 + 100) + 100
    random.Random(0).shuffle(ids)
    return dict(zip(ids, open_source("cifar100", pickles).read(ids), strict=True))


# -- copies ----------------------------------------------------------------------------------------------


def test_png_files_written_in_any_order_and_other_files_between(mine, reference, drawn, tmp_path):
    root = tmp_path / "cifar100"
    for number, (image_id, pixels) in enumerate(drawn.items()):
        path = root / f"{image_id}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(pixels))
        if number % 50 == 0:
            (path.parent / f"copy of {path.stem}.txt").touch()
    built = build_benchmark(mine, roots={"cifar100": root}, out=tmp_path / "out")
    assert contents(tmp_path / "out" / "mine") == contents(reference)
    assert built.manifest.complete


def test_the_hubs_parquet_whose_rows_have_no_names(mine, reference, drawn, tmp_path):
    labels = {c.class_id: c.index for c in load_catalog("cifar100")}
    for split in ("train", "test"):
        chosen = {i: pixels for i, pixels in drawn.items() if i.startswith(f"{split}/")}
        table = pa.table(
            {
                "img": [{"bytes": png(pixels), "path": None} for pixels in chosen.values()],
                "fine_label": [labels[image_id.split("/")[1]] for image_id in chosen],
            }
        )
        write_shards(tmp_path / "hub" / "cifar100", split, table, shards=3)
    build_benchmark(mine, roots={"cifar100": tmp_path / "hub"}, out=tmp_path / "out")
    assert contents(tmp_path / "out" / "mine") == contents(reference)


def test_without_any_pixels_the_draw_is_the_same(mine, reference):
    """Inventories know every digest of CIFAR-100, so not even the pixels' fingerprint needs the pixels."""
    assert build_benchmark(mine).manifest.data.as_dict()["fingerprints"] == fingerprints(reference)


# -- machines --------------------------------------------------------------------------------------------

MACHINES = {
    "one": {
        "PYTHONHASHSEED": "1",
        "LC_ALL": "C",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONUTF8": "0",
        "TZ": "Pacific/Kiritimati",
    },
    "two": {
        "PYTHONHASHSEED": "4294967295",
        "LC_ALL": "tr_TR.UTF-8",
        "LANG": "tr_TR.UTF-8",
        "TZ": "America/St_Johns",
    },
}


@pytest.mark.parametrize(
    ("machine", "workers"), [pytest.param("one", 1, marks=pytest.mark.oracle), ("two", 2)]
)
def test_hash_seed_locale_time_zone_and_workers(mine, pickles, reference, tmp_path, machine, workers):
    done = spawn(
        tmp_path,
        *("build", mine, "--root", f"cifar100={pickles}", "--out", "out", "--workers", workers, "--json"),
        env=MACHINES[machine],
    )
    assert done.code == 0, done.err
    assert done.json["built"][0]["fingerprint"] == fingerprints(reference)["images_in_all"]
    assert contents(tmp_path / "out" / "mine") == contents(reference)


@pytest.mark.oracle
@pytest.mark.parametrize(("machine", "workers"), [("one", 2), ("two", 1)])
def test_a_whole_benchmark_on_another_machine(pickles, tmp_path, machine, workers):
    """All 30,000 images of CIFAR-100 read, and the table of every class and image as it is frozen."""
    done: Finished = spawn(
        tmp_path,
        *("build", "unknown-cifar", "--root", f"cifar100={pickles}", "--workers", workers, "--json"),
        env=MACHINES[machine],
    )
    assert done.code == 0, done.err
    here, frozen = (
        fingerprints(tmp_path / "build" / "unknown-cifar"),
        fingerprints(find_manifest("unknown-cifar")),
    )
    assert here == frozen
    cifar = [row for row in here["images"] if row["group"].startswith("cifar")]
    assert sum(row["rows"] for row in cifar) == 30_000
    assert all(row["pixels"] for row in cifar)


def test_rules_and_draws_of_other_benchmarks_on_another_machine(tmp_path):
    done = spawn(tmp_path, "verify", "digits", "unknown-imagenet", "--json", env=MACHINES["one"])
    assert done.code == 0, done.out
    assert [b["name"] for b in done.json["benchmarks"]] == ["digits", "unknown-imagenet"]


def test_the_clock_and_the_files_times_are_in_nothing(mine, pickles, reference, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 0.0)
    monkeypatch.chdir(tmp_path)
    build_benchmark(mine, roots={"cifar100": Path(os.path.relpath(pickles))}, out=Path("out"))
    assert contents(tmp_path / "out" / "mine") == contents(reference)


# -- writers ---------------------------------------------------------------------------------------------

WRITERS: dict[str, dict[str, Any]] = {
    "old": {"version": "1.0", "compression": "gzip", "use_dictionary": True, "row_group_size": 11},
    "plain": {"version": "2.4", "compression": "none", "use_dictionary": False, "data_page_version": "2.0"},
}


@pytest.mark.parametrize("writer", WRITERS)
def test_tables_that_another_parquet_writer_wrote_again(mine, reference, pickles, tmp_path, writer):
    freeze(read_manifest(reference.parent / "mine"), manifests=tmp_path)
    before = contents(tmp_path / "mine")
    for path in (tmp_path / "mine").rglob("*.parquet"):
        pq.write_table(pq.read_table(path), path, **WRITERS[writer])
    after = contents(tmp_path / "mine")
    assert all(before[name] != after[name] for name in after if name.endswith(".parquet"))
    assert verify_benchmark(read_manifest(tmp_path / "mine"), roots={"cifar100": pickles}).problems == []


# -- roots that lack something ---------------------------------------------------------------------------


def image_ids(manifest: Manifest, name: str) -> list[str]:
    ids: list[str] = manifest.images("test", name).column("image_id").to_pylist()
    return ids


@pytest.fixture(scope="module")
def textures(tmp_path_factory) -> tuple[Path, Path, list[str]]:
    """A recipe, a root of which it draws a quarter, and that draw."""
    folder = tmp_path_factory.mktemp("textures")
    recipe = write_recipe(folder, KNOWN, FAR)
    whole = build_benchmark(recipe, roots={"dtd": write_dtd(folder / "dtd")}).manifest
    return recipe, folder / "dtd", image_ids(whole, "far")


@settings(max_examples=15)
@given(data=st.data())
def test_an_incomplete_root_never_changes_a_draw(textures, data, tmp_path_factory):
    recipe, whole, drawn = textures
    files = sorted(p.relative_to(whole) for p in whole.rglob("*.jpg"))
    kept = data.draw(st.lists(st.sampled_from(files), unique=True, min_size=1), label="files that are left")
    root = tmp_path_factory.mktemp("incomplete")
    for path in kept:
        (root / path.parent).mkdir(parents=True, exist_ok=True)
        os.link(whole / path, root / path)
    built = build_benchmark(recipe, roots={"dtd": root}, allow_missing=True)
    held = {f"{path.parent.name}/{path.stem}" for path in kept}
    assert image_ids(built.manifest, "far") == [i for i in drawn if i in held]
    assert sorted(p.image_id or "" for p in built.problems) == [i for i in drawn if i not in held]
    assert built.manifest.complete == (not built.problems)


@settings(max_examples=25)
@given(
    data=st.data(),
    source=st.sampled_from(["food101", "cifar10", "caltech256"]),
)
def test_a_scan_that_lacks_or_adds_an_image_is_no_population(data, source):
    """A root whose counts are not the publisher's is never drawn from, be the difference one image."""
    catalog = load_catalog(source)
    split = catalog.splits[0]
    counts = {c.class_id: catalog.count(c.class_id, split) or 0 for c in catalog}
    assert count_difference(catalog, split, counts) is None
    changed = data.draw(st.sampled_from(sorted(counts)), label="class")
    times = data.draw(st.integers(-counts[changed], 3).filter(bool), label="images more")
    total = sum(counts.values())
    reason = count_difference(catalog, split, {**counts, changed: counts[changed] + times})
    assert reason is not None
    assert reason.startswith(f"the root holds {total + times:,} of {total:,} {split} images of {source}")
