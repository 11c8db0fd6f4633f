"""LSUN in LSUN's own layout, made from real photographs, through the command that builds LSUN-FIX."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from fix_resize import apply, get_spec
from fix_resize.decode import decode
from fix_resize.output import open_output
from fix_resize.pipeline.selection import Selection, select_manifest
from tests.fix_resize.sets import photographs, run_here
from wordnet_splits.base.digests import order_images
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import write_manifest
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.sources import open_source

SCENES = [item.class_id for item in load_catalog("lsun")]
Databases = dict[str, dict[str, bytes]]


def write_databases(root: Path, images: Databases, split: str = "train") -> Path:
    """Write one LMDB folder a scene, as LSUN's download script leaves them."""
    for scene, held in images.items():
        folder = root / f"{scene}_{split}_lmdb"
        folder.mkdir(parents=True)
        with lmdb.open(str(folder), map_size=1 << 26) as env, env.begin(write=True) as transaction:
            for key, value in held.items():
                transaction.put(key.encode("ascii"), value)
    return root


def as_webp(data: bytes) -> bytes:
    """LSUN's own form: the shorter side 256, WebP."""
    image = Image.open(io.BytesIO(data)).convert("RGB")
    image.thumbnail((341, 341))
    buffer = io.BytesIO()
    image.save(buffer, "WEBP", quality=75)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def photos(real_data: Path) -> Databases:
    """Twenty photographs a scene, every other one as WebP, the others the JPEG files that they were."""
    images: Databases = {scene: {} for scene in SCENES}
    for number, path in enumerate(photographs(real_data)):
        data = path.read_bytes()
        data = as_webp(data) if number % 20 < 4 else data
        images[SCENES[number // 20]][hashlib.sha1(path.name.encode()).hexdigest()] = data
    return images


@pytest.fixture(scope="module")
def real_root(photos: Databases, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_databases(tmp_path_factory.mktemp("lsun") / "photographs", photos)


@pytest.fixture(scope="module")
def large_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,200 keys a scene; what they hold is never read."""
    keys = {s: {hashlib.sha1(f"{s}{n}".encode()).hexdigest(): b"x" for n in range(1200)} for s in SCENES}
    return write_databases(tmp_path_factory.mktemp("lsun") / "keys", keys)


def select_lsun(root: Path, **options: Any) -> Selection:
    return select_manifest("unknown-cifar", {"lsun": root}, groups=["lsun"], **options)


def ids(selection: Selection) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {scene: [] for scene in SCENES}
    for class_id, image_id in zip(
        *(selection.table[c].to_pylist() for c in ("class_id", "image_id")), strict=True
    ):
        found[class_id].append(image_id)
    return found


def test_the_command_builds_lsun_fix_from_databases(
    real_root: Path, photos: Databases, tmp_path: Path
) -> None:
    words = ("build", "lsun", "--root", real_root, "--out", tmp_path / "out", "--shard-size", 15, "--json")
    refused = run_here(*words)
    assert (refused.code, "is not published" in refused.err, "--local" in refused.err) == (2, True, True)
    short = run_here(*words, "--local")
    assert (short.code, "20 of 400" in short.err) == (2, True)
    built = run_here(*words, "--local", "--per-class", 4, "--workers", 2)
    assert (built.code, built.json["name"], built.json["images"]) == (0, "lsun@local", 40)
    rows = pq.read_table(tmp_path / "out" / "images.parquet").to_pylist()
    output = open_output(tmp_path / "out")
    assert output.about.population == {"lsun": dict.fromkeys(SCENES, 20)}
    for scene in SCENES:
        drawn = order_images(
            "unknown-cifar", 0, "lsun", scene, [f"train/{scene}/{key}" for key in photos[scene]]
        )
        assert sorted(drawn[:4]) == [row["image_id"] for row in rows if row["class_id"] == scene]
    for row in rows:
        key = row["image_id"].rpartition("/")[2]
        data = photos[row["class_id"]][key]
        assert (row["digest"], row["label"], row["split"]) == (hashlib.sha256(data).digest(), -1, "test")
        np.testing.assert_array_equal(
            output.pixels(row["image_id"]), apply(get_spec("fix"), decode(data).image)
        )
        assert row["file"] == f"test/{row['class_id']}/{key}.png"
    assert run_here("verify", tmp_path / "out").code == 0


def test_what_a_root_holds_is_built_and_what_it_lacks_is_counted(real_root: Path, tmp_path: Path) -> None:
    words = ("build", "lsun", "--root", f"lsun={real_root}", "--out", tmp_path / "out", "--local", "--json")
    built = run_here(*words, "--allow-missing", "--per-class", 25, "--format", "parquet", "--spec", "fix-64")
    assert (built.code, built.json["complete"], built.json["images"]) == (3, False, 200)
    short = {s["class_id"]: (s["wanted"], s["taken"]) for s in built.json["shortfalls"]}
    assert short == dict.fromkeys(SCENES, (25, 20))
    assert open_output(tmp_path / "out").pixels("train/" + next(iter(_first(real_root)))).shape == (64, 64, 3)


def _first(root: Path) -> list[str]:
    batch = next(iter(open_source("lsun", root).scan(["train"])))
    return [image_id.removeprefix("train/") for image_id in batch.column("image_id").to_pylist()]


def test_the_draw_of_kim_is_the_first_part_of_that_of_csi(large_root: Path) -> None:
    kim = ids(select_lsun(large_root, local=True))
    csi = ids(select_lsun(large_root, local=True, per_class=1000))
    assert {scene: len(found) for scene, found in kim.items()} == dict.fromkeys(SCENES, 400)
    assert {scene: len(found) for scene, found in csi.items()} == dict.fromkeys(SCENES, 1000)
    assert all(set(kim[scene]) < set(csi[scene]) for scene in SCENES)


def test_streamed_draws_are_the_draws_of_the_benchmark(large_root: Path) -> None:
    """The first 400 of each scene in the order of all its keys."""
    held: dict[str, list[str]] = {scene: [] for scene in SCENES}
    for batch in open_source("lsun", large_root).scan(["train"]):
        for image_id, scene in zip(
            *(batch.column(c).to_pylist() for c in ("image_id", "class_id")), strict=True
        ):
            held[scene].append(image_id)
    drawn = select_lsun(large_root, local=True)
    assert ids(drawn) == {
        s: sorted(order_images("unknown-cifar", 0, "lsun", s, held[s])[:400]) for s in SCENES
    }


def test_a_manifest_built_here_gives_the_same_set(real_root: Path, tmp_path: Path) -> None:
    """`wordnet-splits build`, then `from-manifest` of the folder it wrote."""
    recipe = load_recipe("unknown-cifar")
    group = next(g for g in recipe.group if g.name == "lsun")
    rule = group.images["test"].model_copy(update={"per_class": 9})
    small = group.model_copy(update={"images": {"test": rule}})
    cifar = tuple(g for g in recipe.group if g.source == "cifar100")
    held = {"group:lsun", "source:cifar100", *(f"group:{g.name}" for g in cifar)}
    leaks = tuple(leak for leak in recipe.known_leak if {leak.a, leak.b} <= held)
    of_its_own = {"name": "tiny", "group": (*cifar, small), "known_leak": leaks}  # and the same draw
    tiny = recipe.model_copy(update=of_its_own)
    built = build_benchmark(tiny, roots={"lsun": real_root}, local=True)
    folder = write_manifest(built.manifest, tmp_path)
    listed = select_manifest(folder, {"lsun": real_root}, groups=["lsun"])
    drawn = select_lsun(real_root, local=True, per_class=9)
    assert ids(listed) == ids(drawn)
    assert listed.table["digest"].null_count == 0
    assert listed.available().all()
    assert load_manifest(folder).name == "tiny@local"
