"""Joining two copies of a dataset: OpenOOD's numbers to the publisher's ids, by rule and by pixels."""

from __future__ import annotations

import csv
import gzip
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

import wordnet_splits as ws
from tests.wordnet_splits.command import Command
from wordnet_splits.base.errors import SourceError, UnknownNameError
from wordnet_splits.catalog.inventory import load_inventory
from wordnet_splits.duplicates import join as joining
from wordnet_splits.duplicates.join_rules import join_rules

EACH = 3
Truth = dict[str, str]
"""OpenOOD's id -> the publisher's."""


@pytest.fixture
def command(capsys: Any, monkeypatch: Any, tmp_path: Path) -> Command:
    return Command(capsys, monkeypatch, tmp_path)


def pictures(path: Path) -> list[tuple[str, int, np.ndarray]]:
    """File name, label and pixels (32, 32, 3) of a publisher's pickle."""
    batch = pickle.loads(path.read_bytes(), encoding="latin1")
    labels = batch.get("fine_labels", batch.get("labels"))
    pixels = np.asarray(batch["data"], np.uint8).reshape(-1, 3, 32, 32)
    return [
        (name.removesuffix(".png"), label, np.dstack(list(planes)))
        for name, label, planes in zip(batch["filenames"], labels, pixels, strict=True)
    ]


def save(root: Path, image_id: str, pixels: np.ndarray) -> None:
    path = root / f"{image_id}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def copy(tmp_path: Path, real_data: Path) -> tuple[Path, Truth]:
    """Some of CIFAR-10's test pictures as OpenOOD lays them out, numbered in an order of their own."""
    names = ws.load_catalog("cifar10").column("class_id")
    held: dict[int, list[tuple[str, np.ndarray]]] = {label: [] for label in range(10)}
    for name, label, pixels in pictures(real_data / "cifar-10-batches-py/test_batch"):
        if len(held[label]) < EACH:
            held[label].append((name, pixels))
    truth = {}
    rng = np.random.default_rng(0)
    for label, found in held.items():
        for (name, pixels), number in zip(found, rng.permutation(1000)[:EACH] + 1, strict=True):
            image_id = f"test/{names[label]}/{number:04d}"
            truth[image_id] = f"test/{names[label]}/{name}"
            save(tmp_path / "images_classic/cifar10", image_id, pixels)
    return tmp_path, truth


def test_an_openood_folder_is_joined_to_the_publishers_ids_by_pixels(copy: tuple[Path, Truth]) -> None:
    root, truth = copy
    found = ws.join("openood-cifar10", "cifar10", roots={"openood-cifar10": root})
    assert {p.a_id: p.b_id for p in found.pairs} == truth
    assert {p.how for p in found.pairs} == {"digest"}
    assert all(p.class_id == p.a_id.split("/")[1] for p in found.pairs)
    assert found.complete
    assert found.ambiguous == 0
    assert found.splits == ("test",)  # of CIFAR-10's training images no digest is shipped
    assert len(found.unmatched_b) == 10_000 - len(truth)
    back = ws.join("cifar10", "openood-cifar10", roots={"openood-cifar10": root})
    assert {p.b_id: p.a_id for p in back.pairs} == truth
    assert not back.complete


def test_what_has_no_counterpart_is_named_and_never_guessed(copy: tuple[Path, Truth]) -> None:
    root, truth = copy
    folder = root / "images_classic/cifar10"
    altered, twice, broken = sorted(truth)[:3]
    pixels = np.asarray(Image.open(folder / f"{altered}.png")).copy()
    pixels[0, 0, 0] ^= 1
    save(folder, altered, pixels)
    again = f"{twice.rpartition('/')[0]}/1000"
    save(folder, again, np.asarray(Image.open(folder / f"{twice}.png")))
    path = folder / f"{broken}.png"
    path.write_bytes(path.read_bytes()[:200])
    found = ws.join("openood-cifar10", "cifar10", roots={"openood-cifar10": root})
    left = {k: v for k, v in truth.items() if k not in (altered, broken)}
    assert {p.a_id: p.b_id for p in found.pairs} == left
    assert found.unmatched_a == [altered, again]
    assert [(p.kind, p.image_id) for p in found.problems] == [("unreadable", broken)]
    assert [p.a_id for p in found.pairs if p.how == "order"] == [twice]
    assert found.ambiguous == 1
    assert not found.complete


def test_equal_pictures_of_a_class_are_joined_in_the_order_of_their_ids(
    real_data: Path, tmp_path: Path
) -> None:
    alike = ["carassius_auratus_s_000150", "goldfish_s_000186"]  # CIFAR-100 holds one picture under both
    held = {n: p for n, _, p in pictures(real_data / "cifar-100-python/train") if n in alike}
    for number, name in enumerate(reversed(alike), start=1):
        save(tmp_path, f"train/aquarium_fish/{number:04d}", held[name])
    found = ws.join("openood-cifar100", "cifar100", roots={"openood-cifar100": tmp_path})
    assert [(p.a_id[-4:], p.b_id.rpartition("/")[2], p.how) for p in found.pairs] == [
        ("0001", alike[0], "order"),
        ("0002", alike[1], "order"),
    ]
    assert found.ambiguous == 2


def idx_labels(path: Path) -> list[int]:
    return list(gzip.decompress(path.read_bytes())[8:])


def test_mnist_is_joined_by_the_number_in_the_name_and_every_label_agrees(real_data: Path) -> None:
    found = ws.join("openood-mnist", "mnist")
    assert (len(found.pairs), found.unmatched_a, found.unmatched_b) == (70_000, [], [])
    files = {"train": "train-labels-idx1-ubyte.gz", "test": "t10k-labels-idx1-ubyte.gz"}
    labels = {split: idx_labels(real_data / "mnist" / file) for split, file in files.items()}
    for pair in found.pairs:  # <split>/<digit>_<index> and <split>/<index>
        split, _, index = pair.b_id.partition("/")
        assert pair.a_id == f"{split}/{labels[split][int(index)]}_{index}"
    assert ws.join("mnist", "openood-mnist").pairs[0].a_id == "test/0"


def test_a_rule_that_labels_contradict_joins_little(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = join_rules()["openood-mnist"]
    shifted = replace(rule, first=1, reason="a shift by one")
    monkeypatch.setattr(joining, "join_rules", lambda: {"openood-mnist": shifted})
    found = ws.join("openood-mnist", "mnist")
    assert 5_000 < len(found.pairs) < 10_000  # a tenth of the labels agree by chance
    assert not found.complete


def test_svhn_is_joined_by_a_number_from_one(tmp_path: Path) -> None:
    found = ws.join("openood-svhn", "svhn")
    assert (len(found.pairs), found.unmatched_a, found.unmatched_b) == (26_032, [], [])
    assert ("test/022008_2", "test/22007") in {(p.a_id, p.b_id) for p in found.pairs}


@pytest.fixture
def in_order(tmp_path: Path, real_data: Path) -> tuple[Path, Path, Truth]:
    """A small CIFAR-10 in the publisher's files, and a copy numbered in their order: root, copy, truth."""
    names = ws.load_catalog("cifar10").column("class_id")
    root, copied = tmp_path / "publisher", tmp_path / "openood"
    root.mkdir()
    batch = pickle.loads((real_data / "cifar-10-batches-py/test_batch").read_bytes(), encoding="latin1")
    few = {key: batch[key][:200] for key in ("labels", "data", "filenames")}
    (root / "test_batch").write_bytes(pickle.dumps(few, protocol=2))
    truth: Truth = {}
    for name, label, pixels in pictures(root / "test_batch"):
        before = sum(image_id.split("/")[1] == names[label] for image_id in truth)
        image_id = f"test/{names[label]}/{before + 1:04d}"
        truth[image_id] = f"test/{names[label]}/{name}"
        save(copied, image_id, pixels)
    return root, copied, truth


def test_by_position_is_the_nth_of_its_class_and_marked_as_a_guess(
    in_order: tuple[Path, Path, Truth], command: Command
) -> None:
    root, copied, truth = in_order
    roots = {"openood-cifar10": copied, "cifar10": root}
    found = ws.join("openood-cifar10", "cifar10", by="position", roots=roots)
    assert {p.a_id: p.b_id for p in found.pairs} == truth
    assert {(p.how, p.digest) for p in found.pairs} == {("unverified", None)}
    assert not found.verified
    assert found.splits == ("test",)
    by_pixels = ws.join("openood-cifar10", "cifar10", roots=roots)  # of this made copy the guess is right
    assert by_pixels.verified
    assert {p.a_id: p.b_id for p in by_pixels.pairs} == truth
    back = ws.join("cifar10", "openood-cifar10", by="position", roots=roots)
    assert {p.b_id: p.a_id for p in back.pairs} == truth
    given = ("--root", f"openood-cifar10={copied}", "--root", f"cifar10={root}", "--by", "position")
    done = command("join", "openood-cifar10", "cifar10", *given, "--out", "guess.csv")
    assert done.code == 0
    assert "UNVERIFIED guess" in done.out
    assert "joined     200, unverified" in done.out
    with Path("guess.csv").open() as file:
        assert {row["how"] for row in csv.DictReader(file)} == {"unverified"}
    assert command("join", "openood-cifar10", "cifar10", *given, "--json").json["verified"] is False


def test_by_position_where_a_class_has_other_counts_is_refused(in_order: tuple[Path, Path, Truth]) -> None:
    root, copied, truth = in_order
    roots = {"openood-cifar10": copied, "cifar10": root}
    last = max(image_id for image_id in truth if "/cat/" in image_id)
    (copied / f"{last}.png").rename(copied / "test/cat/0999.png")
    with pytest.raises(SourceError, match="the numbers do not run from 1 to"):
        ws.join("openood-cifar10", "cifar10", by="position", roots=roots)
    (copied / "test/cat/0999.png").unlink()
    with pytest.raises(SourceError, match="test cat: .* images and .*: no place can be told"):
        ws.join("openood-cifar10", "cifar10", by="position", roots=roots)


def test_by_position_of_tin597_needs_no_root() -> None:
    found = ws.join("openood-tin597", "imagenet1k", by="position")
    assert (len(found.pairs), found.unmatched_a, found.unmatched_b) == (29_850, [], [])
    table = load_inventory("imagenet1k", "val")
    assert table is not None
    tench = sorted(r["image_id"] for r in table.to_pylist() if r["class_id"] == "n01440764")
    pairs = {p.a_id: p.b_id for p in found.pairs}
    assert [pairs[f"n01440764_{n}"] for n in range(50)] == tench
    assert {p.how for p in found.pairs} == {"unverified"}


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("openood-mnist", "mnist", "no guess by position is made"),
        ("openood-cifar10", "cifar100", "no guess by position is made"),
        ("openood-cifar100", "cifar100", "only the publisher's pickle files of cifar100 have his order"),
    ],
)
def test_by_position_only_where_places_are_known(a: str, b: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        ws.join(a, b, by="position")


def test_nothing_frozen_knows_of_the_guess() -> None:
    """No module but join reads it."""
    package = Path(ws.__file__).parent
    reads = re.compile(r"duplicates\.join_rules|position_guesses")
    users = {p.name for p in package.rglob("*.py") if reads.search(p.read_text(encoding="utf-8"))}
    assert users == {"join.py", "join_rules.py"}


def test_another_way_to_join_is_refused(command: Command) -> None:
    assert "unknown way to join 'place'" in command("join", "openood-mnist", "mnist", "--by", "place").error


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        ("openood-cifar10", "cifar10", "no root given for source openood-cifar10"),
        ("openood-tin597", "cifar10", "stored as JPEG and cifar10 without loss"),
    ],
)
def test_what_cannot_be_compared_is_refused(a: str, b: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        ws.join(a, b)


def test_an_unknown_source_offers_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'openood-cifar10'"):
        ws.join("openood-cifar1", "cifar10")


def test_the_command_writes_the_table(copy: tuple[Path, Truth], command: Command) -> None:
    root, truth = copy
    flag = f"openood-cifar10={root}"
    done = command("join", "openood-cifar10", "cifar10", "--root", flag, "--out", "join.csv")
    assert done.code == 0
    assert f"joined     {len(truth):,}" in done.out
    with Path("join.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["a_id", "b_id", "class", "digest", "how"]
    assert {row["a_id"]: row["b_id"] for row in rows} == truth
    done = command("join", "cifar10", "openood-cifar10", "--root", flag, "--out", "join.parquet", "--json")
    assert done.code == 3  # most of CIFAR-10 is not in the folder
    assert done.json["joined"] == len(truth)
    assert sorted(pq.read_table("join.parquet")["b_id"].to_pylist()) == sorted(truth)


def test_the_command_says_that_nothing_is_joined_and_refuses_other_endings(
    copy: tuple[Path, Truth], command: Command
) -> None:
    root, _ = copy
    done = command("join", "openood-cifar10", "cifar100", "--root", f"openood-cifar10={root}")
    assert done.code == 1
    assert "joined     0" in done.out
    assert "written as .csv or .parquet" in command("join", "openood-svhn", "svhn", "--out", "join.txt").error
    assert "--root openood-cifar10=DIR" in command("join", "openood-cifar10", "cifar10").error
