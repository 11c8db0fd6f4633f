"""`UnknownDetectionSet`: items as torchvision's, batches, choice of parts, errors that name what lacks."""

from __future__ import annotations

import copy
import io
import pickle
import pickletools

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch", reason="the datasets need torch (extra `torch`)")

import torch
from torch.utils.data import ConcatDataset, DataLoader, Subset

from loaders import UnknownDetectionSet
from tests.photographs import COUNT, SHARK, TENCH, image_file
from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.datasets.sources.built_in import load_digits_pixels

pytestmark = pytest.mark.usefixtures("no_roots_of_this_machine")


def floats(images):
    return images.to(torch.float32).div(255)


def to_tensor(image):
    return torch.from_numpy(np.array(image).transpose(2, 0, 1).copy())


@pytest.fixture
def known(photographs):
    root, manifest = photographs
    return UnknownDetectionSet(manifest, group="known", roots={"imagenet1k": root})


# -- items ---------------------------------------------------------------------------------------------------


def test_digits_need_no_root_and_are_the_embedded_images():
    data = UnknownDetectionSet("digits", role="id")
    grey, classes = load_digits_pixels()
    assert data.classes == ["zero", "one", "two", "three", "four", "five"]
    assert len(data) == 6 * 60 == data.table.num_rows
    for n, row in enumerate(data.table.to_pylist()[::37]):
        image, label = data[37 * n]
        assert (image.mode, image.size, type(label)) == ("RGB", (8, 8), int)
        index = int(row["image_id"])
        assert np.array_equal(np.asarray(image), np.repeat(grey[index][:, :, None], 3, axis=2))
        assert label == row["label"] == classes[index]


def test_the_items_are_those_of_the_table_in_its_order():
    data = UnknownDetectionSet("digits")
    assert set(data.table["group"].to_pylist()) == {"digits-0-5", "digits-6-9", "gaussian", "uniform"}
    assert [label for _, label in data] == data.table["label"].to_pylist()
    assert set(data.labels[np.array(data.table["role"].to_pylist()) != "id"].tolist()) == {-1}


def test_an_index_counts_from_the_end_and_ends():
    data = UnknownDetectionSet("digits", group="uniform")
    assert data[-1][0].tobytes() == data[len(data) - 1][0].tobytes() != data[0][0].tobytes()
    assert data[np.int64(3)][0].tobytes() == data[3][0].tobytes()
    for index in (len(data), -len(data) - 1):
        with pytest.raises(IndexError, match="500"):
            data[index]


def test_a_transform_gets_the_picture():
    data = UnknownDetectionSet("digits", role="near", transform=lambda image: image.size)
    assert data[5] == ((8, 8), -1)
    assert data.__getitems__([1, 0]) == [((8, 8), -1)] * 2


def test_photographs_are_decoded_as_torchvision_does(known, photographs):
    root, _ = photographs
    expected = Image.open(image_file(root, TENCH, 2)).convert("RGB")
    row = known.table["image_id"].to_pylist().index(f"{TENCH}_5002")
    image, label = known[row]
    assert (image.mode, image.size, label) == ("RGB", expected.size, 0)
    assert image.tobytes() == expected.tobytes()
    assert known.encoded(row) == (image_file(root, TENCH, 2).read_bytes(), ".jpg")


def test_a_view_is_applied_on_reading(photographs):
    from fix_resize.resize import apply
    from fix_resize.spec import get_spec

    root, manifest = photographs
    data = UnknownDetectionSet(manifest, role="near", roots={"imagenet1k": root})
    for row, (image, label) in zip(data.table.to_pylist(), data, strict=True):
        original = Image.open(root / "train" / SHARK / f"{row['image_id']}.JPEG").convert("RGB")
        assert np.array_equal(np.asarray(image), apply(get_spec("fix"), original))
        assert (row["view"], label) == ("fix", -1)
    content, extension = data.encoded(0)
    assert extension == ".png"
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(content))), np.asarray(data[0][0]))


# -- batches -------------------------------------------------------------------------------------------------


def test_batches_are_the_items_as_one_tensor():
    data = UnknownDetectionSet("digits")
    pairs = list(data.batches(300))
    images, labels = (torch.cat(column) for column in zip(*pairs, strict=True))
    assert [len(y) for _, y in pairs] == [300] * 6 + [274]
    assert (images.dtype, images.shape) == (torch.uint8, (len(data), 3, 8, 8))
    assert images.is_contiguous()
    assert torch.equal(images, torch.stack([to_tensor(image) for image, _ in data]))
    assert (labels.dtype, labels.tolist()) == (torch.int64, data.labels.tolist())
    assert [len(y) for _, y in data.batches(300, drop_last=True)] == [300] * 6


def test_a_batch_may_be_of_several_parts_in_any_order():
    plain = UnknownDetectionSet("digits")
    data = UnknownDetectionSet("digits", batch_transform=floats)
    order = np.random.default_rng(0).permutation(len(data))[:200].tolist()
    batch = data.__getitems__(order)
    assert torch.equal(batch.images, torch.stack([floats(to_tensor(plain[n][0])) for n in order]))  # type: ignore[attr-defined]
    assert batch.labels.tolist() == [plain[n][1] for n in order]  # type: ignore[attr-defined]
    assert torch.equal(data[order[7]][0], batch[7][0])
    assert data[order[7]][1] == batch[7][1]


@pytest.mark.parametrize(
    "wrap", [lambda d: d, lambda d: Subset(d, range(1, len(d))), lambda d: ConcatDataset([d, d])]
)
def test_a_loader_collates_batches_and_items_alike(wrap):
    whole = DataLoader(wrap(UnknownDetectionSet("digits", batch_transform=floats)), batch_size=64)
    items = DataLoader(
        wrap(UnknownDetectionSet("digits", transform=lambda image: floats(to_tensor(image)))), batch_size=64
    )
    for (x, y), (a, b) in zip(whole, items, strict=True):
        assert torch.equal(x, a)
        assert torch.equal(y, b)


def test_a_loader_does_not_copy_a_batch():
    data = UnknownDetectionSet("digits", batch_transform=lambda images: kept.append(images) or images)
    kept: list[object] = []
    x, _ = next(iter(DataLoader(data, batch_size=10)))
    assert x is kept[0]


def test_a_batch_pickles_to_plain_pairs():
    batch = UnknownDetectionSet("digits", batch_transform=floats).__getitems__([3, 4])
    content = pickle.dumps(batch)
    assert b"loaders" not in content
    assert [(type(pair), label) for pair in (pickle.loads(content)) for label in pair[1:]] == [
        (tuple, -1)
    ] * 2


def test_images_of_different_sizes_are_no_batch_and_are_named(known):
    with raises(DataError, naming=(f"{TENCH}_5001", f"{TENCH}_5000", "300", "310")):
        next(known.batches(2))


def test_groups_of_different_sizes_are_no_batch_and_are_named(photographs):
    root, manifest = photographs
    data = UnknownDetectionSet(manifest, roots={"imagenet1k": root})
    one_of_each = [data.table["group"].to_pylist().index(group) for group in ("known", "noise")]
    data.batch_transform = floats
    with raises(DataError, naming="32x32x3/s0/00000"):
        data.__getitems__(one_of_each[::-1])


def test_a_transform_makes_them_one_size_for_the_batch(photographs):
    root, manifest = photographs
    data = UnknownDetectionSet(
        manifest,
        role="id",
        roots={"imagenet1k": root},
        transform=lambda image: image.resize((16, 12)),
        batch_transform=floats,
    )
    (images, labels) = next(data.batches(100))
    assert (images.shape, images.dtype) == ((2 * COUNT, 3, 12, 16), torch.float32)
    assert labels.tolist() == [0] * COUNT + [1] * COUNT
    data.transform = to_tensor
    with raises(DataError, naming=("3", "300", "320")):
        next(data.batches(100))


def test_a_batch_transform_keeps_the_number_of_images():
    data = UnknownDetectionSet("digits", batch_transform=lambda images: images[1:])
    with raises(DataError, naming=("9", "10")):
        next(data.batches(10))
    with pytest.raises(DataError):
        next(data.batches(0))


# -- pickles and the Hub -------------------------------------------------------------------------------------


def test_a_pickle_gives_the_same_items_and_names_no_loaders(known):
    list(known)
    for data in (known, UnknownDetectionSet("digits")):
        content = pickle.dumps(data)
        names = [str(word) for _, word, _ in pickletools.genops(content) if word is not None]
        assert not [name for name in names if name.partition(".")[0] == "loaders"]  # of a module
        for again in (pickle.loads(content), copy.deepcopy(data)):
            assert again.table.equals(data.table)
            assert [(i.tobytes(), y) for i, y in again] == [(i.tobytes(), y) for i, y in data]


class Halves(UnknownDetectionSet):
    """A user's subclass."""

    def __len__(self):
        return super().__len__() // 2


def test_a_subclass_pickles_as_itself():
    data = pickle.loads(pickle.dumps(Halves("digits")))
    assert type(data) is Halves
    assert len(data) == 1037
    assert type(Halves.parts("digits")["uniform"]) is Halves


def test_to_hf_has_the_images_and_class_names(photographs, tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets", reason="to_hf needs datasets (extra `hub`)")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    root, manifest = photographs
    data = UnknownDetectionSet(manifest, roots={"imagenet1k": root}, transform=to_tensor)
    hub = data.to_hf()
    assert hub.features["label"].names == data.classes == ["tench", "goldfish"]
    assert hub["image_id"][:] == data.table["image_id"].to_pylist()
    assert hub["label"][:] == data.labels.tolist()
    data.transform = None
    for row, (image, _) in zip(hub, data, strict=True):
        assert row["image"].convert("RGB").tobytes() == image.tobytes()
    first = datasets.Image(decode=False)
    assert hub.cast_column("image", first)[0]["image"]["bytes"] == data.encoded(0)[0]
