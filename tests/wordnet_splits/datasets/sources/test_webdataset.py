"""Tar shards of a user's own, as WebDataset has them, and what a newcomer gets wrong."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.raising import mentions
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.datasets.sources.test_declared import rows
from wordnet_splits.base import errors
from wordnet_splits.datasets.sources import open_source

pytestmark = pytest.mark.usefixtures("own_datasets_forgotten", "no_roots_of_this_machine")


def png(number: int) -> bytes:
    file = io.BytesIO()
    own.picture(number).save(file, "PNG")
    return file.getvalue()


def shard(path: Path, files: Mapping[str, bytes | str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            content = data.encode() if isinstance(data, str) else data
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def declared(root: Path, more: str = "") -> Path:
    root.mkdir(exist_ok=True)
    own.declare(root, "tars", "webdataset", more)
    own.catalog(root / "tars.tsv", ["teapot", "zebra"], {"train": 2, "test": 1})
    return root


@pytest.mark.parametrize("kind", ["cls", "json", "txt", "number", "named"])
def test_shards_of_every_kind_of_label(tmp_path: Path, kind: str) -> None:
    root = declared(tmp_path / "tars", 'columns = { class = "kind" }\n' if kind == "named" else "")
    if kind == "number":
        (root / "classnames.txt").write_text("teapot\nzebra\n")

    def label(class_id: str) -> tuple[str, str]:
        return {
            "cls": ("cls", class_id),
            "json": ("json", json.dumps({"label": class_id, "width": 10})),
            "txt": ("txt", class_id + "\n"),
            "number": ("cls", str(["teapot", "zebra"].index(class_id))),
            "named": ("json", json.dumps({"label": 7, "kind": class_id})),
        }[kind]

    held = {"train/a": "teapot", "train/b": "zebra", "test/c": "zebra"}
    pictures = {image_id: png(number) for number, image_id in enumerate(held)}
    for split in ("train", "test"):
        files: dict[str, bytes | str] = {}
        for image_id, class_id in held.items():
            of, _, key = image_id.partition("/")
            if of == split:
                ending, text = label(class_id)
                files |= {f"{key}.png": pictures[image_id], f"{key}.{ending}": text}
        shard(root / f"{split}-000000.tar", files)
    source = open_source("tars", root)
    assert rows(source) == sorted((i, c, i.partition("/")[0]) for i, c in held.items())
    assert source.read(list(pictures)) == list(pictures.values())
    assert source.unexpected == {}


def test_keys_that_recur_have_their_shard_in_the_id(tmp_path: Path) -> None:
    root = declared(tmp_path / "tars")
    for number in range(2):
        shard(
            root / f"train-{number}.tar",
            {"a.png": png(number), "a.cls": "zebra", "b.png": png(9), "._a.png": b"x"},
        )
    source = open_source("tars", root)
    assert rows(source) == [(f"train/train-{n}/a", "zebra", "train") for n in range(2)]
    assert source.unexpected == {f"train-{n}.tar: {key}": 1 for n in range(2) for key in ("b", "")}
    assert source.read(["train/train-1/a"]) == [png(1)]


def test_a_field_may_say_the_split(tmp_path: Path) -> None:
    root = declared(tmp_path / "tars", 'columns = { class = "label", split = "part" }\n')
    files: dict[str, bytes | str] = {}
    for number, about in enumerate(({"part": "train"}, {"part": "test"}, {"part": 3}, {})):
        files |= {f"{number}.png": png(number), f"{number}.json": json.dumps({"label": "zebra", **about})}
    shard(root / "shard-0.tar", files)
    source = open_source("tars", root)
    assert rows(source) == [("test/1", "zebra", "test"), ("train/0", "zebra", "train")]
    assert source.unexpected == {"shard-0.tar: 2": 1, "shard-0.tar: 3": 1}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"a.png": b"x", "a.cls": "3"}, "3"),
        ({"a.png": b"x"}, ()),
        ({"../a.png": b"x", "../a.cls": "zebra"}, ()),
        ({"a.png": b"x", "a.json": "{"}, ()),
        ({"a.png": b"x", "a.cls": b"\xff"}, ()),
        (None, ()),
    ],
)
def test_what_a_newcomer_gets_wrong(
    tmp_path: Path, files: dict[str, bytes | str] | None, said: object
) -> None:
    from wordnet_splits.linking.classes import declared_classes

    root = declared(tmp_path / "tars")
    if files is not None:
        shard(root / "train-0.tar", files)
    with pytest.raises(errors.SplitsError) as caught:
        declared_classes("tars", root)
    assert mentions(str(caught.value), said)
    assert str(root) in str(caught.value)
