"""Builds: counts, draws that nothing moves, absence, leaks, and the manifest on disk."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.raising import raises
from wordnet_splits.base import digests
from wordnet_splits.base.errors import (
    DataError,
    ManifestError,
    MissingImageError,
    OutputError,
    RecipeError,
    SourceError,
)
from wordnet_splits.base.files import locked
from wordnet_splits.benchmark.construct import build_benchmark
from wordnet_splits.benchmark.manifest import altered
from wordnet_splits.benchmark.manifest.tables import images_fingerprint
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog.inventory import load_inventory

from ...recipes import EVERY, FAR, HEAD, KNOWN, group
from .conftest import rows


def test_digits_is_what_the_issue_asks_for(digits):
    counts = {(g.group, g.split): g.actual for g in digits.groups}
    assert counts["digits-0-5", "val"] == 6 * 20
    assert counts["digits-0-5", "test"] == 6 * 60
    inventory = load_inventory("digits", "all")
    assert inventory is not None
    of_id = sum(c in "012345" for c in inventory.column("class_id").to_pylist())
    assert counts["digits-0-5", "train"] == of_id - 6 * 80
    assert counts["digits-6-9", "test"] == 1797 - of_id
    assert counts["gaussian", "test"] == counts["uniform", "test"] == 500
    assert digits.fingerprint is not None
    assert digits.data.fingerprints.pixels_in_all is not None


def test_a_draw_takes_images_in_key_order_val_then_test_then_train(digits):
    inventory = load_inventory("digits", "all")
    assert inventory is not None
    pairs = zip(
        inventory.column("image_id").to_pylist(), inventory.column("class_id").to_pylist(), strict=True
    )
    threes = digests.order_images("digits", 0, "digits", "3", [i for i, c in pairs if c == "3"])
    cut = {"val": threes[:20], "test": threes[20:80], "train": threes[80:]}
    for split, expected in cut.items():
        table = digits.images(split, "digits-0-5").to_pylist()
        assert [r["image_id"] for r in table if r["class_id"] == "3"] == sorted(expected)


def test_labels_follow_the_publishers_order():
    table = build_benchmark("unknown-cifar-tinyval").manifest.classes.to_pylist()
    labels = [(r["label"], r["class_id"]) for r in table if r["role"] == "id"]
    assert [n for n, _ in sorted(labels)] == list(range(40))
    assert [c for _, c in sorted(labels)] == sorted(c for _, c in labels)  # CIFAR-100 is alphabetical
    assert {r["label"] for r in table if r["role"] != "id"} == {-1}


def test_tables_are_in_their_order(digits):
    keys = [(r["role"], r["group"], r["source"], r["class_id"]) for r in digits.classes.to_pylist()]
    assert keys == sorted(keys)
    images = [
        (r["split"], r["role"], r["group"], r["source"], r["class_id"], r["image_id"])
        for r in digits.images().to_pylist()
    ]
    assert images == sorted(images)


def test_every_class_of_every_source_is_in_the_class_table_with_evidence():
    table = build_benchmark("osc-p2").manifest.classes
    assert table.num_rows == 1000
    assert all(table.column("evidence").to_pylist())
    assert all(r["via"] for r in table.to_pylist() if r["role"] != "excluded")
    excluded = [r for r in table.to_pylist() if r["role"] == "excluded"]
    assert len(excluded) == 1000 - 30 - 31 - 55
    assert {(r["group"], r["label"]) for r in excluded} == {("", -1)}


def test_another_seed_is_another_draw_with_its_own_name(digits):
    other = build_benchmark("digits", seed=1).manifest
    assert other.name == "digits@seed=1"
    assert rows(digits, "val", "digits-0-5") != rows(other, "val", "digits-0-5")
    assert rows(digits, "test", "digits-6-9") == rows(other, "test", "digits-6-9")


def test_a_later_count_never_moves_an_earlier_split(recipe):
    def with_test(count: int) -> list[str]:
        images = (
            f'{{ val = {{ from = "all", per_class = 5 }}, test = {{ from = "all", per_class = {count} }} }}'
        )
        manifest = build_benchmark(
            recipe(group("known", "id", "digits", '{ listed = ["0", "1"] }', images))
        ).manifest
        return rows(manifest, "val", "known")

    assert with_test(3) == with_test(40)


def test_a_manifest_written_and_read_is_the_same(built, digits):
    read = load_manifest(built.folder)
    assert read.data == digits.data
    assert read.images().equals(digits.images())
    assert altered(read) == []
    assert sorted(p.name for p in built.folder.parent.iterdir()) == ["digits"]


def test_writing_twice_gives_the_same_bytes(built, tmp_path):
    build_benchmark("digits", out=tmp_path)
    files = [path for path in built.folder.rglob("*") if path.is_file()]
    assert len(files) == 8
    for path in files:
        again = tmp_path / "digits" / path.relative_to(built.folder)
        assert path.read_bytes() == again.read_bytes()


def test_another_parquet_writer_changes_no_fingerprint(folder):
    before = load_manifest(folder).data.fingerprints
    for path in folder.rglob("*.parquet"):
        table = pq.read_table(path)
        pq.write_table(
            table, path, version="1.0", compression="snappy", row_group_size=7, use_dictionary=False
        )
    manifest = load_manifest(folder)
    assert altered(manifest) == []
    assert images_fingerprint([manifest.images()]).images == before.images_in_all


MANY = '{ test = { from = "all", per_class = 500 } }'
ZERO = '{ listed = ["0"] }'
AGAIN = group("again", "near", "digits", ZERO)


@pytest.mark.parametrize(
    ("groups", "where", "naming"),
    [
        ([group("known", "id", "digits", ZERO, MANY)], "line 7: group known, test", ("0", "500", "178")),
        ([KNOWN, AGAIN + "reuse = true\n"], "line 15: group again, test", ()),
        ([KNOWN, AGAIN], "line 15: group again", ()),
    ],
    ids=["more images than there are", "an image in two roles", "a class taken"],
)
def test_groups_that_cannot_be_filled(recipe, groups, where, naming):
    with raises(RecipeError, where=f"mine.toml, {where}", naming=naming):
        build_benchmark(recipe(*groups))


def far_from_imagenet(wnid: str) -> str:
    images = '{ test = { from = "val", all = true } }'
    return group("far", "far", "imagenet1k", f'{{ subtree = ["{wnid}"] }}', images)


PETS = group("known", "id", "cifar10", '{ listed = ["dog", "cat"] }', EVERY.replace('"all"', '"test"'))
LEAKY = (PETS, far_from_imagenet("n02084071"))


def known_leak(kind: str, count: int) -> str:
    return (
        f'[[known_leak]]\nkind = "{kind}"\na = "group:known"\nb = "group:far"\n'
        f'count = {count}\nreason = "a test"\n'
    )


def test_an_unnamed_leak_is_an_error_and_a_named_one_is_recorded(recipe):
    with raises(RecipeError, where="mine", naming=("known", "far", "ancestry")):
        build_benchmark(recipe(*LEAKY))
    entry = known_leak("ancestry", 118)
    leaks = build_benchmark(recipe(*LEAKY, entry)).manifest.data.leaks
    named = [leak for leak in leaks if leak.b == "group:far"]
    assert [(leak.kind, leak.count, leak.severity, leak.reason) for leak in named] == [
        ("ancestry", 118, "known", "a test")
    ]
    with raises(RecipeError, where="mine", naming=("118", "ancestry", "117")):
        build_benchmark(recipe(*LEAKY, entry.replace("118", "117")))


def test_a_known_leak_that_matches_nothing_is_an_error(recipe):
    with raises(RecipeError, where="mine"):
        build_benchmark(recipe(*LEAKY, known_leak("class", 3), head=HEAD + "reproduces = true\n"))


def test_drop_leaks_makes_the_cleaned_variant(recipe):
    mixed = far_from_imagenet("n02075296")
    manifest = build_benchmark(recipe(PETS, mixed, head=HEAD + "drop_leaks = true\n")).manifest
    far = [r["name"] for r in manifest.classes.to_pylist() if r["group"] == "far"]
    assert {leak.kind for leak in manifest.data.leaks} == {"sibling"}  # recorded, and no more
    assert any("bear" in name for name in far)  # carnivores that are neither dog nor cat stay
    assert not any("chihuahua" in name.lower() for name in far)
    gone = [r for r in manifest.classes.to_pylist() if "removed as a leak" in r["evidence"]]
    assert len(gone) >= 118
    assert {r["role"] for r in gone} == {"excluded"}
    assert " (below the ID class " in gone[0]["evidence"]


# -- roots -----------------------------------------------------------------------------------------------


def test_a_root_fills_digests_and_moves_no_draw(recipe, textures, tmp_path):
    path = recipe(KNOWN, FAR)
    without, given = build_benchmark(path).manifest, build_benchmark(path, roots={"dtd": textures}).manifest
    assert without.fingerprint == given.fingerprint
    assert without.data.fingerprints.pixels_in_all is None
    assert given.data.fingerprints.pixels_in_all is not None


@pytest.mark.parametrize("workers", [1, 2])
def test_a_missing_image_is_named_never_replaced(recipe, textures, workers):
    path = recipe(KNOWN, FAR)
    chosen = rows(build_benchmark(path).manifest, "test", "far")
    (textures / "images" / f"{chosen[0]}.jpg").unlink()
    (textures / "images" / f"{chosen[1]}.jpg").write_bytes(b"\xff\xd8\xff\xe0 not a picture")
    with raises(MissingImageError, where="mine", naming=("60", "dtd", "missing", "unreadable")):
        build_benchmark(path, roots={"dtd": textures}, workers=workers)
    left = build_benchmark(path, roots={"dtd": textures}, allow_missing=True, workers=workers)
    assert rows(left.manifest, "test", "far") == sorted(chosen[2:])
    assert not left.manifest.complete
    assert {(p.image_id, p.kind) for p in left.problems} == {
        (chosen[0], "missing"),
        (chosen[1], "unreadable"),
    }


def test_a_local_build_draws_from_what_a_root_holds_of_an_inventory(recipe, textures, tmp_path):
    fives = '{ test = { from = "all", per_class = 5 } }'
    two, rest = '{ listed = ["banded", "dotted"] }', '{ listed = ["braided"] }'
    held = {i for i in sorted(load_inventory("dtd", "all")["image_id"].to_pylist()) if i[:6] == "banded"}
    for gone in sorted(held)[10:]:
        (textures / "images" / f"{gone}.jpg").unlink()
    drawn = recipe(KNOWN, group("far", "far", "dtd", two, fives), group("near", "near", "dtd", rest))
    roots = {"dtd": textures}
    with pytest.raises(MissingImageError):
        build_benchmark(drawn, roots=roots)
    found = build_benchmark(drawn, roots=roots, local=True)
    assert found.manifest.name == "mine@local"
    assert found.manifest.complete
    assert found.problems == []
    taken = rows(found.manifest, "test", "far")
    assert sorted(i.split("/")[0] for i in taken) == ["banded"] * 5 + ["dotted"] * 5
    assert {i for i in taken if i.startswith("banded")} <= set(sorted(held)[:10])
    order = digests.order_images("mine", 0, "dtd", "banded", sorted(held)[:10])
    assert {i for i in taken if i.startswith("banded")} == set(order[:5])
    populations = {g.group: g.population for g in found.manifest.groups if g.split == "test"}
    assert populations == {"known": None, "far": 10 + 120, "near": 0}


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, MemoryError, OSError(28, "no space"), SourceError("bad")]
)
def test_a_reading_that_ends_early_goes_on_where_it_was(recipe, textures, tmp_path, monkeypatch, error):
    from wordnet_splits.benchmark.construct import digesting as pixels

    path, out = recipe(KNOWN, FAR), tmp_path / "out"
    monkeypatch.setattr(pixels, "CHUNK", 10)
    reading = pixels.digest_chunk
    done: list[str] = []

    def interrupted(job):
        if len(done) >= 30:
            raise error
        done.extend(job[1])
        return reading(job)

    monkeypatch.setattr(pixels, "digest_chunk", interrupted)
    with pytest.raises(error if isinstance(error, type) else type(error)):
        build_benchmark(path, roots={"dtd": textures}, out=out)
    assert not (out / "mine").exists()
    again: list[str] = []
    monkeypatch.setattr(pixels, "digest_chunk", lambda job: again.extend(job[1]) or reading(job))
    resumed = build_benchmark(path, roots={"dtd": textures}, out=out)
    assert not set(done) & set(again)
    assert len(done) + len(again) == 60
    whole = build_benchmark(path, roots={"dtd": textures})
    assert resumed.manifest.data.fingerprints == whole.manifest.data.fingerprints
    assert not (out / ".mine.journal").exists()


def test_a_picture_replaced_after_an_interrupted_build_is_read_again(recipe, textures, tmp_path):
    """The journal of a build that failed is no witness of files that were changed since."""
    path, out = recipe(KNOWN, FAR), tmp_path / "out"
    first, *_, last = rows(build_benchmark(path).manifest, "test", "far")
    lost = textures / "images" / f"{last}.jpg"
    held = lost.read_bytes()
    lost.unlink()
    with pytest.raises(MissingImageError):
        build_benchmark(path, roots={"dtd": textures}, out=out)
    lost.write_bytes(held)
    replaced = textures / "images" / f"{first}.jpg"
    Image.new("RGB", (70, 70), "red").save(replaced)
    built = build_benchmark(path, roots={"dtd": textures}, out=out)
    digests = built.manifest.images("test", "far").select(["image_id", "digest"]).to_pylist()
    found = {row["image_id"]: row["digest"] for row in digests}
    assert found[first] == hashlib.sha256(replaced.read_bytes()).digest()
    assert (
        built.manifest.data.fingerprints
        == build_benchmark(path, roots={"dtd": textures}).manifest.data.fingerprints
    )


def test_two_builds_into_one_folder_at_once(tmp_path):
    with (
        locked(tmp_path / "digits", busy="another build is writing here"),
        raises(OutputError, where="digits"),
    ):
        build_benchmark("digits", out=tmp_path)


def test_an_output_is_a_path_or_a_text(tmp_path):
    assert build_benchmark("digits", out=str(tmp_path)).folder == tmp_path / "digits"
    with pytest.raises(DataError) as error:
        build_benchmark("digits", out=5)
    assert error.value.where == "out"


def test_an_output_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with raises(OutputError, where="file"):
        build_benchmark("digits", out=tmp_path / "file")


def test_a_damaged_manifest_is_one_clear_error(folder):
    path = folder / "classes.parquet"
    path.write_bytes(path.read_bytes()[:100])
    with raises(ManifestError, where="classes.parquet"):
        load_manifest(folder)
    pq.write_table(pa.table({"source": ["x"]}), path)
    with raises(ManifestError, where="classes.parquet", naming="class_id"):
        load_manifest(folder)
