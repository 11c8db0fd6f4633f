"""Datasets of the Hub, as the ``datasets`` library saves and caches them, and by name."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.hub_server import Fault, Hub, Repo, at_hand
from tests.imported import Imported
from tests.raising import mentions, raises
from tests.wordnet_splits import own_pictures as own
from tests.wordnet_splits.datasets.sources.test_declared import rows
from wordnet_splits.base import errors
from wordnet_splits.datasets.sources import open_source

datasets = Imported("datasets", "it writes what is read here")
pytestmark = pytest.mark.usefixtures("own_datasets_forgotten", "no_roots_of_this_machine")

CLASSES = ["zebra", "teapot", "golden retriever"]  # in the publisher's order, which is not the alphabet's
COUNTS = {"train": 2, "test": 1}
CARD = """---
configs:
- config_name: plain
  default: true
  data_files:
  - split: train
    path: plain/train-*
  - split: test
    path: plain/test-*
- config_name: other
  data_files: other/*.parquet
---
"""


def png(number: int) -> bytes:
    file = io.BytesIO()
    own.picture(number).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def made() -> Any:
    """A dataset of two splits: two images a class in train, one in test."""
    features = datasets.Features({"img": datasets.Image(), "label": datasets.ClassLabel(names=CLASSES)})
    parts = {}
    for split, count in COUNTS.items():
        labels = [c for _ in range(count) for c in range(3)]
        first = 100 if split == "test" else 0
        images = [{"bytes": png(first + n), "path": f"{n}.png"} for n in range(len(labels))]
        held = {"img": images, "label": labels}
        parts[split] = datasets.Dataset.from_dict(held, features=features, split=split)
    return datasets.DatasetDict(parts)


EXPECTED = sorted(
    (f"{split}/{n}", CLASSES[n % 3], split) for split, count in COUNTS.items() for n in range(3 * count)
)


def declared(root: Path, more: str = "") -> Path:
    root.mkdir(parents=True, exist_ok=True)
    own.catalog(root / "saved.tsv", CLASSES, COUNTS)
    own.declare(root, "saved", "hub", more)
    return root


def published(made: Any, hub: Hub, folder: Path) -> None:
    """Put the dataset on the Hub of this machine as Parquet, two shards of train, with a card."""
    tree = {"README.md": CARD.encode(), "other/one.parquet": b"another configuration"}
    for split, shards in (("train", 2), ("test", 1)):
        for number in range(shards):
            name = f"plain/{split}-{number:05d}-of-{shards:05d}.parquet"
            made[split].shard(shards, number, contiguous=True).to_parquet(str(folder / "one.parquet"))
            tree[name] = (folder / "one.parquet").read_bytes()
    hub.repos["ORG/Small"] = Repo()
    hub.repos["ORG/Small"].commit(tree)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, made: Any) -> Iterator[Hub]:
    """A Hub on this machine that holds the dataset, and empty caches."""
    for name in ("HF_HOME", "HF_HUB_CACHE", "HF_DATASETS_CACHE"):
        monkeypatch.delenv(name, raising=False)
    with at_hand(monkeypatch, tmp_path) as state:
        published(made, state, tmp_path)
        yield state


@pytest.mark.parametrize("one", [True, False])
def test_what_is_saved_to_disk(tmp_path: Path, made: Any, one: bool) -> None:
    from wordnet_splits.linking.classes import declared_classes

    root = tmp_path / "saved"
    (made["test"] if one else made).save_to_disk(str(root))
    source = open_source("saved", declared(root))
    expected = [row for row in EXPECTED if not one or row[2] == "test"]
    assert rows(source) == expected
    for image_id, _, split in expected:
        number = int(image_id.partition("/")[2]) + (100 if split == "test" else 0)
        assert source.read([image_id]) == [png(number)]
    assert [c.class_id for c in declared_classes("saved", root).classes] == CLASSES


def renamed(root: Path, names: list[str]) -> None:
    """Change the names of the labels in every ``dataset_info.json``."""
    for path in root.rglob("dataset_info.json"):
        info = json.loads(path.read_text("utf-8"))
        info["features"]["label"]["names"] = names
        path.write_text(json.dumps(info), "utf-8")


def test_labels_have_the_names_that_the_library_gives_them(tmp_path: Path, made: Any) -> None:
    from wordnet_splits.linking.classes import declared_classes

    root = tmp_path / "saved"
    made.save_to_disk(str(root))
    swapped = [CLASSES[1], CLASSES[0], CLASSES[2]]
    renamed(root, swapped)
    theirs = datasets.load_from_disk(str(root))
    expected = {
        f"{split}/{n}": part.features["label"].int2str(label)
        for split, part in theirs.items()
        for n, label in enumerate(part["label"])
    }
    found = rows(open_source("saved", declared(root)))
    assert {image_id: class_id for image_id, class_id, _ in found} == expected
    assert expected["train/0"] == CLASSES[1]
    assert [c.class_id for c in declared_classes("saved", root).classes] == swapped


@pytest.mark.parametrize(
    ("names", "where"),
    [
        (CLASSES[:2], "data-00000-of-00001.arrow"),
        ([*CLASSES[:2], CLASSES[0]], "data-00000-of-00001.arrow: label"),
        ("zebra", "dataset_info.json"),
        ([], "dataset_info.json"),
        ([1, 2, 3], "dataset_info.json"),
    ],
)
def test_names_that_are_too_few_or_doubled_are_refused(
    tmp_path: Path, made: Any, names: list[str], where: str
) -> None:
    from wordnet_splits.linking.classes import declared_classes

    root = tmp_path / "saved"
    made["test"].save_to_disk(str(root))
    renamed(root, names)
    own.declare(root, "saved", "hub")
    with raises(errors.SourceError, where=where):
        declared_classes("saved", root)


@pytest.mark.parametrize("layout", ["parquet", "hub"])
def test_the_hint_about_images_outside_is_true(tmp_path: Path, layout: str) -> None:
    """Of what `datasets` writes, `save_to_disk` holds the images, and `to_parquet` of 5.2 does not."""
    (tmp_path / "one.png").write_bytes(png(1))
    features = datasets.Features({"img": datasets.Image(), "label": datasets.ClassLabel(names=CLASSES)})
    outside = datasets.Dataset.from_dict({"img": [str(tmp_path / "one.png")], "label": [1]}, features)
    root = tmp_path / "saved"
    root.mkdir()
    if layout == "hub":
        datasets.DatasetDict({"test": outside}).save_to_disk(str(root))
    else:
        outside.to_parquet(str(root / "test.parquet"))
    own.catalog(root / "saved.tsv", CLASSES, COUNTS)
    own.declare(root, "saved", layout)
    source = open_source("saved", root)
    ids = [image_id for image_id, _, _ in rows(source)]
    if layout == "hub":
        assert len(source.read(ids)) == 1
        return
    with raises(errors.SourceError, where="test.parquet group 0 row 0", naming="save_to_disk"):
        source.read(ids)


def test_doubled_names_in_parquet_are_refused(tmp_path: Path) -> None:
    from wordnet_splits.linking.classes import declared_classes

    features = datasets.Features({"img": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])})
    held = datasets.Dataset.from_dict({"img": [{"bytes": png(1), "path": None}], "label": [1]}, features)
    held.to_parquet(str(tmp_path / "test.parquet"))
    table = pq.read_table(tmp_path / "test.parquet")
    written = table.schema.metadata[b"huggingface"].replace(b'["a", "b"]', b'["a", "a"]')
    pq.write_table(table.replace_schema_metadata({"huggingface": written}), tmp_path / "test.parquet")
    own.declare(tmp_path, "saved", "parquet")
    with raises(errors.SourceError, where="test.parquet: label"):
        declared_classes("saved", tmp_path)


def test_a_name_reads_the_hub_and_then_needs_it_no_more(tmp_path: Path, hub: Hub) -> None:
    root = declared(tmp_path / "root", 'dataset = "ORG/Small"\n')
    source = open_source("saved", root)
    assert rows(source) == EXPECTED
    assert source.read(["test/2", "train/4"]) == [png(102), png(4)]
    assert not any("other" in line for line in hub.asked)
    hub.repos.clear()
    asked = len(hub.asked)
    assert rows(open_source("saved", root)) == EXPECTED
    assert len(hub.asked) == asked


def test_the_cache_of_datasets_is_read_first_and_has_the_same_ids(
    tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch, made: Any
) -> None:
    cache = tmp_path / "datasets"
    monkeypatch.setenv("HF_DATASETS_CACHE", str(cache))
    commit = "0123456789" * 4
    for split in COUNTS:
        made[split].to_parquet(str(tmp_path / f"{split}.parquet"))
    files = {split: str(tmp_path / f"{split}.parquet") for split in COUNTS}
    datasets.load_dataset("parquet", data_files=files, cache_dir=str(tmp_path / "loaded"))
    (copy,) = (path.parent for path in (tmp_path / "loaded").rglob("dataset_info.json"))
    # where `datasets` keeps what load_dataset("ORG/Small") makes of the Hub's Parquet
    held = cache / "ORG___small" / "plain" / "0.0.0" / commit
    shutil.copytree(copy, held)
    (held / "cache-0123456789abcdef.arrow").write_bytes(b"of a map")
    by_name = declared(tmp_path / "root", f'dataset = "ORG/Small@{commit[:8]}"\nconfig = "plain"\n')
    source = open_source("saved", by_name)
    assert rows(source) == EXPECTED
    assert source.read(["test/2", "train/4"]) == [png(102), png(4)]
    assert hub.asked == []
    shutil.copytree(held, held.with_name("f" * 40))
    declared(tmp_path / "root", 'dataset = "ORG/Small"\n')
    with raises(errors.SourceError, where="ORG___small", naming=("2", "ORG/Small")):
        rows(open_source("saved", by_name))
    folder = declared(held)
    assert rows(open_source("saved", folder)) == EXPECTED
    (held / "parquet-test.arrow").unlink()
    with raises(errors.SourceError, naming="test"):
        rows(open_source("saved", folder))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('dataset = "ORG/Smal"\n', ()),
        ('dataset = "Small"\n', "Small"),
        ('dataset = "ORG/Small"\nconfig = "plane"\n', ("2", "plain", "other")),
        ('dataset = "ORG/Small"\nimages = "*.arrow"\n', "*.arrow"),
        ('dataset = "ORG/Small@v2"\n', ()),
        ("", ("dataset_dict.json", "state.json", "dataset_info.json")),
    ],
)
def test_a_wrong_name_is_one_line(tmp_path: Path, hub: Hub, more: str, said: object) -> None:
    root = declared(tmp_path / "root", more)
    with pytest.raises(errors.SplitsError) as caught:
        rows(open_source("saved", root))
    assert mentions(caught.value.line(), said)


def test_a_hub_that_fails_midway_leaves_nothing_half(tmp_path: Path, hub: Hub) -> None:
    root = declared(tmp_path / "root", 'dataset = "ORG/Small"\n')
    hub.faults.append(Fault("GET", "/resolve/.*test-", code=403))
    with pytest.raises(errors.HubError):
        rows(open_source("saved", root))
    assert rows(open_source("saved", root)) == EXPECTED


def test_a_key_of_the_hub_in_another_layout_is_refused(tmp_path: Path) -> None:
    own.declare(tmp_path, "saved", "parquet", 'dataset = "ORG/Small"\n')
    with raises(errors.DataError, where="dataset.toml", naming="hub"):
        open_source("saved", tmp_path)


def test_images_that_lie_elsewhere_are_not_read(tmp_path: Path) -> None:
    own.class_folders(tmp_path / "pictures", CLASSES, {"": 1})
    loaded = datasets.load_dataset(
        "imagefolder", data_dir=str(tmp_path / "pictures"), cache_dir=str(tmp_path / "loaded")
    )
    (cache,) = (path.parent for path in (tmp_path / "loaded").rglob("dataset_info.json"))
    source = open_source("saved", declared(cache))
    assert len(rows(source)) == 3
    with raises(errors.SourceError, where="imagefolder-train.arrow group 0 row 0"):
        source.read(["train/0"])
    loaded.save_to_disk(str(tmp_path / "saved"))
    source = open_source("saved", declared(tmp_path / "saved"))
    (first,) = (tmp_path / "pictures" / "golden retriever").iterdir()
    assert source.read(["train/0"]) == [first.read_bytes()]


@pytest.mark.parametrize("kind", ["no arrow", "cut", "outside", "compressed", "offsets"])
def test_a_damaged_folder_is_one_line(tmp_path: Path, made: Any, kind: str) -> None:
    root = tmp_path / "saved"
    made["test"].save_to_disk(str(root))
    (file,) = root.glob("*.arrow")
    if kind == "no arrow":
        file.write_bytes(b"no arrow")
    elif kind == "cut":
        file.write_bytes(file.read_bytes()[:-200])
    elif kind == "outside":
        state = json.loads((root / "state.json").read_text())
        state["_data_files"][0]["filename"] = "../out.arrow"
        (root / "state.json").write_text(json.dumps(state))
    else:
        image_type = pa.struct({"bytes": pa.binary(), "path": pa.string()})
        schema = pa.schema({"img": image_type, "label": pa.string()})
        image = pa.array([{"bytes": bytes(1 << 20), "path": ""}] * 2, image_type)
        if kind == "offsets":
            offsets = pa.py_buffer(np.array([0, 1 << 30, 1], np.int32))
            far = pa.Array.from_buffers(pa.binary(), 2, [None, offsets, pa.py_buffer(b"x")])
            image = pa.StructArray.from_arrays([far, pa.array(["", ""])], fields=list(image_type))
        batch = pa.record_batch([image, pa.array(["zebra"] * 2)], schema=schema)
        options = pa.ipc.IpcWriteOptions(compression="lz4" if kind == "compressed" else None)
        with pa.ipc.new_stream(str(file), schema, options=options) as stream:
            stream.write_batch(batch)
    declared(root)
    with pytest.raises(errors.SplitsError) as caught:
        rows(open_source("saved", root))
    assert "\n" not in caught.value.line()
    assert str(tmp_path) in caught.value.line()
