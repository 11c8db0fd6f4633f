"""The authors' archives, as made trees: real pictures of CIFAR-100, and drawn ones of ImageNet and DTD."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.raising import mentions
from tests.wordnet_splits.datasets.sources.trees import in_class_folders, some, write_images
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.recipe import load_recipe
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog.inventory import load_inventory
from wordnet_splits.datasets.sources import Source, open_source
from wordnet_splits.exchange import import_benchmark
from wordnet_splits.exchange.kim_archive import benches

ID = ("apple", "baby", "bear")
NEAR = ("girl", "cattle", "wolf")
TWINS = ("test/baby/baby_s_000223", "test/girl/baby_s_000223")  # CIFAR-100 has one picture under two classes
DTD, IMAGENET = some("dtd", "all"), some("imagenet1k", "val")
Picked = dict[str, list[str]]


@pytest.fixture(scope="module")
def picked() -> Picked:
    """Ten ids of each class: the first of the training split, of the test split with the twins."""
    found: Picked = {}
    for split in ("train", "test"):
        table = load_inventory("cifar100", split)
        for class_id in (*ID, *NEAR):
            prefix = f"{split}/{class_id}/"
            ids = [i for i in table["image_id"].to_pylist() if i.startswith(prefix)]
            found[prefix] = sorted({*ids[:9], *(t for t in TWINS if t in ids)})
    return found


@pytest.fixture(scope="module")
def cifar100(real_data) -> Source:
    return open_source("cifar100", real_data / "cifar-100-python")


def draw(root: Path, cifar100: Source, folders: Mapping[str, Iterable[str]]) -> Path:
    """Write pictures of CIFAR-100 as PNG into folders, under names that say nothing."""
    for folder, ids in folders.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        for number, image_id in enumerate(ids):
            cifar100.decode(cifar100.read([image_id])[0]).save(root / folder / f"{number}.png")
    return root


@pytest.fixture(scope="module")
def bench(cifar100, picked, tmp_path_factory) -> Path:
    folders = {}
    for class_id in ID:
        train, test = picked[f"train/{class_id}/"], picked[f"test/{class_id}/"]
        folders[f"train/cifar40/{class_id}"] = train[:6]
        folders[f"valid/cifar40/labels/{class_id}"] = train[6:]
        folders[f"test/cifar40/labels/{class_id}"] = test
    folders["valid/cifar40/no-labels/0"] = [i for c in ID for i in picked[f"train/{c}/"][6:]]
    folders["test/cifar40/no-labels/0"] = [i for c in ID for i in picked[f"test/{c}/"]]
    # torchvision's reader wants a folder; its name must not be believed
    folders["test/cifar60/no-labels/apple"] = [i for c in NEAR for i in picked[f"test/{c}/"]]
    return draw(tmp_path_factory.mktemp("kim") / "cifar-bench", cifar100, folders)


def images(manifest: Manifest, split: str, group: str) -> dict[str, str]:
    table = manifest.images(split, group)
    return dict(zip(table["image_id"].to_pylist(), table["class_id"].to_pylist(), strict=True))


def classes(manifest: Manifest, group: str) -> list[str]:
    return sorted(r["class_id"] for r in manifest.classes.to_pylist() if r["group"] == group)


def test_every_picture_gets_its_id(bench, picked, tmp_path):
    done = import_benchmark("kim-archive", bench, tmp_path)
    assert (done.name, done.unmatched, done.problems) == ("unknown-cifar-paper", [], [])
    made = load_manifest(tmp_path / "unknown-cifar-paper")
    for split, publisher, cut in (("train", "train", slice(6)), ("val", "train", slice(6, None))):
        wanted = {i: c for c in ID for i in picked[f"{publisher}/{c}/"][cut]}
        assert images(made, split, "cifar-40") == wanted
    assert images(made, "test", "cifar-40") == {i: c for c in ID for i in picked[f"test/{c}/"]}
    assert images(made, "test", "cifar-60") == {i: c for c in NEAR for i in picked[f"test/{c}/"]}
    assert classes(made, "cifar-40") == sorted(ID)
    assert classes(made, "cifar-60") == sorted(NEAR)
    evidence = {r["class_id"]: r["evidence"] for r in made.classes.to_pylist()}
    assert "unknown-cifar-paper/test_cifar-60" in evidence["wolf"]
    table = pq.read_table(tmp_path / "lists" / "unknown-cifar-paper" / "test_cifar-60.parquet")
    assert table.schema.metadata[b"origin"] == b"imported from cifar-bench"


def test_twins_of_two_classes_go_where_the_classes_are(bench, tmp_path):
    made = import_benchmark("kim-archive", bench, tmp_path).manifest
    assert images(made, "test", "cifar-40")[TWINS[0]] == "baby"
    assert images(made, "test", "cifar-60")[TWINS[1]] == "girl"


def test_twins_of_two_ood_classes_are_not_guessed(cifar100, picked, command, tmp_path):
    sets = {"test/cifar40/labels/apple": picked["test/apple/"], "test/cifar60/no-labels/0": TWINS[:1]}
    draw(tmp_path / "one", cifar100, sets)
    assert command("import", "kim-archive", "one").error
    done = command("import", "kim-archive", "one", "--allow-missing", "--json")
    assert done.code == 3
    assert done.json["imported"]["unmatched"] == ["test/cifar60/no-labels/0/0.png"]
    draw(tmp_path / "two", cifar100, {**sets, "test/cifar60/no-labels/0": TWINS})
    assert command("import", "kim-archive", "two", "--out", "both").code == 0
    made = load_manifest(tmp_path / "both" / "unknown-cifar-paper")
    assert images(made, "test", "cifar-60") == {TWINS[0]: "baby", TWINS[1]: "girl"}


def test_a_picture_of_another_split_or_class_has_no_id(cifar100, picked, command, tmp_path):
    train, test = picked["train/apple/"][:2], picked["test/apple/"][:2]
    sets = {
        "test/cifar40/labels/apple": [test[0], train[0]],
        "test/cifar40/labels/bear": [test[1]],
        "train/cifar40/apple": [train[1], train[1]],
        "test/cifar60/no-labels/0": [test[1]],
    }
    draw(tmp_path / "odd", cifar100, sets)
    done = command("import", "kim-archive", "odd", "--allow-missing", "--json")
    assert done.code == 3
    assert sorted(done.json["imported"]["unmatched"]) == [
        "test/cifar40/labels/apple/1.png",
        "test/cifar40/labels/bear/0.png",
        "test/cifar60/no-labels/0/0.png",
        "train/cifar40/apple/1.png",
    ]
    made = load_manifest(tmp_path / "imported" / "unknown-cifar-paper")
    assert classes(made, "cifar-40") == ["apple", "bear"]
    assert made.images()["image_id"].to_pylist() == [test[0], train[1]]


def test_sets_that_cannot_be_told_are_named(cifar100, picked, command, tmp_path):
    sets = {"test/cifar40/labels/apple": picked["test/apple/"]}
    for name in ("lsun-fix", "svhn", "describable-textures", "isun"):
        sets[f"test/{name}/no-labels/0"] = picked["test/bear/"][:3]
    draw(tmp_path / "data" / "cifar-bench", cifar100, sets)
    write_images(tmp_path / "dtd", in_class_folders(DTD, "images", extension="jpg"))
    textures = tmp_path / "data/cifar-bench/test/describable-textures/no-labels/0"
    banded = sorted((tmp_path / "dtd" / "images" / "banded").iterdir())
    for number, file in enumerate(banded):
        (textures / f"x{number}.jpg").write_bytes(file.read_bytes())
    refused = command("import", "kim-archive", "data", "--root", "dtd=dtd").error
    reasons = {
        "test/describable-textures": "no remaining image of dtd is equal",
        "test/isun": "unknown set",
        "test/lsun-fix": "the authors resized them, so they cannot equal images of lsun",
        "test/svhn": "the original images are required (--root svhn=DIR)",
    }
    for name, reason in reasons.items():
        assert mentions(refused, name, reason, "3")
    assert not (tmp_path / "imported").exists()
    done = command("import", "kim-archive", "data", "--root", "dtd=dtd", "--allow-missing", "--json")
    assert done.code == 3
    left = {row["set"]: (row["images"], row["reason"]) for row in done.json["imported"]["left_out"]}
    assert left == {name: (3, reason) for name, reason in reasons.items()}
    made = load_manifest(tmp_path / "imported" / "unknown-cifar-paper")
    assert images(made, "test", "dtd") == {f"banded/{file.stem}": "banded" for file in banded}
    assert {row.group for row in made.groups} == {"cifar-40", "dtd"}


def test_imagenet_by_its_files_and_without_them(command, tmp_path):
    known = sorted({row[1] for row in IMAGENET})
    write_images(tmp_path / "root", in_class_folders(IMAGENET, "val"))
    for wnid, folder in zip(known, ("imagenet200/labels/%s", "near-imagenet200/no-labels/x"), strict=False):
        target = tmp_path / "imagenet-bench" / "test" / (folder % wnid if "%" in folder else folder)
        target.mkdir(parents=True)
        for number, file in enumerate(sorted((tmp_path / "root" / "val" / wnid).iterdir())):
            (target / f"{number}.JPEG").write_bytes(file.read_bytes())
    root = f"imagenet1k={tmp_path / 'root'}"
    assert command("import", "kim-archive", "imagenet-bench", "--root", root).code == 0
    made = load_manifest(tmp_path / "imported" / "unknown-imagenet-paper")
    for group, wnid in zip(("imagenet-200", "near-200"), known, strict=False):
        assert images(made, "test", group) == {i: c for i, c, _ in IMAGENET if c == wnid}
    done = command("import", "kim-archive", "imagenet-bench", "--out", "bare", "--allow-missing")
    assert done.code == 3
    assert "test/imagenet200: 2 images have no id: the original images are required" in done.err
    bare = load_manifest(tmp_path / "bare" / "unknown-imagenet-paper")
    assert (classes(bare, "imagenet-200"), classes(bare, "near-200")) == ([known[0]], [])
    assert bare.images().num_rows == 0


def test_it_can_be_verified_and_built_again(bench, command, tmp_path):
    made = import_benchmark("kim-archive", bench, tmp_path / "out")
    done = command("verify", tmp_path / "out" / "unknown-cifar-paper")
    assert done.code == 0, done
    recipe = load_recipe(tmp_path / "out" / "unknown-cifar-paper.toml")
    assert command("build", tmp_path / "out" / "unknown-cifar-paper.toml", "--out", "again").code == 0
    assert load_manifest(tmp_path / "again" / "unknown-cifar-paper").fingerprint == made.fingerprint
    published = {g.name: dict(g.published) for g in load_recipe("unknown-cifar").group}
    assert {g.name: dict(g.published) for g in recipe.group} == {
        name: published[name] for name in ("cifar-40", "cifar-60")
    }


def test_what_ours_shares_with_it(bench, picked, command, tmp_path):
    done = command("import", "kim-archive", bench, "--json")
    assert (done.code, done.err) == (0, "")
    found = done.json["imported"]
    assert found["like"] == "unknown-cifar"
    ours = load_manifest("unknown-cifar")
    counted = {(row["group"], row["of"]): row for row in found["in_common"]}
    theirs = {"cifar-40": set(ID), "cifar-60": set(NEAR)}
    for group, members in theirs.items():
        their_images = {i for c in members for i in picked[f"test/{c}/"]}
        for of, a, b in (
            ("classes", set(classes(ours, group)), members),
            ("test", set(images(ours, "test", group)), their_images),
        ):
            row = counted[group, of]
            assert (row["both"], row["only_a"], row["only_b"]) == (len(a & b), len(a - b), len(b - a))
    assert counted["dtd", "classes"]["only_a"] == 47
    said = command("import", "kim-archive", bench, "--out", "other").out
    assert "only unknown-cifar-paper" in said


def test_the_table_names_groups_of_ours():
    for one in benches():
        assert one.id_set == {"cifar-bench": "cifar40", "imagenet-bench": "imagenet200"}[one.folder]
        ours = {group.name for group in one.recipe.group}
        assert ours - {*one.sets.values()} <= {"gaussian"}
        assert {*one.sets.values()} <= ours


APPLE = "test/cifar40/labels/apple"
BAD: dict[str, tuple[list[str], str, str, object]] = {
    "nothing": ([], "", "", "in"),
    "another": (list(in_class_folders(DTD, "images", extension="jpg")), "", "", ("cifar40", "imagenet200")),
    "both": (
        [f"{b.folder}/test/{b.id_set}/labels/x/0.png" for b in benches()],
        "",
        "",
        ("cifar-bench", "imagenet-bench"),
    ),
    "no image": ([], "empty folder", APPLE, "in"),
    "no folder": ([f"{APPLE}/0.png", "test/svhn/0.png"], "", "", "no-labels"),
    "truncated": ([f"{APPLE}/0.png"], "cut", f"{APPLE}/0.png", "0.png"),
    "truncated JPEG": (
        ["test/imagenet200/labels/n01440764/0.JPEG"],
        "cut",
        "test/imagenet200/labels/n01440764/0.JPEG",
        "0.JPEG",
    ),
    "empty file": ([f"{APPLE}/0.png", f"{APPLE}/1.png"], "empty", f"{APPLE}/1.png", "1.png"),
    "a file elsewhere": ([f"{APPLE}/1.png"], "link to secret.png", f"{APPLE}/0.png", "secret.png"),
    "a folder elsewhere": ([f"{APPLE}/1.png"], "link to elsewhere", "test/svhn", "elsewhere"),
    "a circle": ([f"{APPLE}/1.png"], "link to in/test", f"{APPLE}/again", "apple/again"),
    "a pipe": ([], "pipe", f"{APPLE}/0.png", "0.png"),
    "no class": (["test/cifar40/labels/fig/0.png"], "", "", "cifar40"),
}
"""Images of a folder, a change of a path in it, and names in the error."""


def write_bad(root: Path, images: list[str], change: str, path: str) -> None:
    write_images(root, images)
    root.mkdir(exist_ok=True)
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if change == "empty folder":
        target.mkdir()
    elif change == "pipe":
        os.mkfifo(target)
    elif change == "empty":
        target.write_bytes(b"")
    elif change == "cut":
        target.write_bytes(target.read_bytes()[:-200])
    elif change:
        outside = root.parent / change.removeprefix("link to ")
        if outside.suffix:
            outside.write_bytes(b"x")
        else:
            outside.mkdir(exist_ok=True)
        target.symlink_to(outside)


@pytest.mark.parametrize("case", BAD)
def test_it_is_refused_in_one_line(case, command, tmp_path):
    *written, named = BAD[case]
    write_bad(tmp_path / "in", *written)
    root = tmp_path / "root"
    write_images(root, in_class_folders(IMAGENET, "val"))
    given = ("--root", f"imagenet1k={root}", "--allow-missing")
    assert mentions(command("import", "kim-archive", "in", *given).error, named)
    assert not (tmp_path / "imported").exists()


def test_a_folder_that_is_not_there_and_options_that_say_nothing(bench, command, tmp_path):
    assert command("import", "kim-archive", "absent").error
    (tmp_path / "file").touch()
    assert command("import", "kim-archive", "file").error
    for option in (("--split", "val"), ("--role", "svhn=near"), ("--source", "svhn")):
        assert command("import", "kim-archive", bench, *option).error
    assert command("export", "digits", "--format", "kim-archive", "--out", "x").error
    assert mentions(command("import", "kim-archiv", bench).error, "kim-archive")
