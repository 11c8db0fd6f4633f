"""`UnknownDetectionSet` over a folder that `fix-resize` built: the same pixels as applied on reading."""

from __future__ import annotations

import io
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("torch", reason="the datasets need torch (extra `torch`)")

import torch

from fix_resize.pipeline.building import PipelineSettings, build
from fix_resize.pipeline.selection import select_manifest
from fix_resize.spec import get_spec
from loaders import UnknownDetectionSet
from tests.photographs import COUNT, SHARK, image_file, jpeg
from tests.raising import raises
from wordnet_splits.base.errors import DataError, MissingImageError, SourceError
from wordnet_splits.benchmark.images.pack import pack
from wordnet_splits.benchmark.resolve import load_manifest

pytestmark = pytest.mark.usefixtures("no_roots_of_this_machine")


def built(photographs, out, *, root=None, spec="fix", allow_missing=False, **options):
    where = {"imagenet1k": root or photographs[0]}
    selection = select_manifest(str(photographs[1]), where, groups=("near",), allow_missing=allow_missing)
    return build(
        selection, out, PipelineSettings(get_spec(spec), allow_missing=allow_missing, **options)
    ).folder


@pytest.mark.parametrize("form", ["png", "parquet"])
def test_pixels_are_equal_either_way_and_in_a_store(photographs, tmp_path, form):
    root, manifest = photographs
    folder = built(photographs, tmp_path / "fix", file_format=form)
    pack(load_manifest(manifest), tmp_path / "store", roots={"imagenet1k": root}, groups=["near"])
    read = UnknownDetectionSet(manifest, role="near", roots={"imagenet1k": root})
    expected, labels = next(read.batches(COUNT))
    assert expected.shape == (COUNT, 3, 32, 32)
    for packed in (folder, tmp_path / "store"):
        data = UnknownDetectionSet(manifest, role="near", packed=packed)
        images, found = next(data.batches(COUNT))
        assert torch.equal(images, expected)
        assert torch.equal(found, labels)
        assert data.table.equals(read.table)
        assert [image.tobytes() for image, _ in data] == [image.tobytes() for image, _ in read]
        content, extension = data.encoded(2)
        assert extension == ".png"
        assert Image.open(io.BytesIO(content)).tobytes() == read[2][0].tobytes()
        again = pickle.loads(pickle.dumps(data))
        assert np.array_equal(np.asarray(again[1][0]), np.asarray(read[1][0]))


def test_only_groups_in_a_view_are_looked_up(photographs, tmp_path):
    root, manifest = photographs
    folder = built(photographs, tmp_path / "fix")
    whole = UnknownDetectionSet(manifest, roots={"imagenet1k": root})
    mixed = UnknownDetectionSet(manifest, roots={"imagenet1k": root}, packed=folder)
    assert [image.tobytes() for image, _ in mixed] == [image.tobytes() for image, _ in whole]
    with raises(SourceError, where="imagenet1k"):
        UnknownDetectionSet(manifest, role="id", packed=folder)


def test_another_spec_is_refused(photographs, tmp_path):
    folder = built(photographs, tmp_path / "nearest", spec="nearest")
    with raises(SourceError, where="nearest", naming=("fix", "near", "--spec")):
        UnknownDetectionSet(photographs[1], role="near", packed=folder)


def test_another_original_is_refused(photographs, tmp_path):
    root = Path(shutil.copytree(photographs[0], tmp_path / "imagenet"))
    folder = built(photographs, tmp_path / "fix")
    image_file(root, SHARK, 2).write_bytes(jpeg(77, (320, 300)))
    from tests.photographs import build_photographs

    other = build_photographs(root, tmp_path / "other")
    with raises(SourceError, where="fix", naming=f"{SHARK}_5002"):
        UnknownDetectionSet(other, role="near", packed=folder)


def test_what_was_not_built_is_named_or_reported(photographs, tmp_path):
    root = Path(shutil.copytree(photographs[0], tmp_path / "imagenet"))
    image_file(root, SHARK, 1).unlink()
    folder = built(photographs, tmp_path / "fix", root=root, allow_missing=True)
    with raises(MissingImageError, where="fix", naming=(folder, f"{SHARK}_5001")):
        UnknownDetectionSet(photographs[1], role="near", packed=folder)
    data = UnknownDetectionSet(photographs[1], role="near", packed=folder, allow_missing=True)
    assert data.missing.select(["image_id", "reason"]).to_pylist() == [
        {"image_id": f"{SHARK}_5001", "reason": f"not in {folder}"}
    ]
    whole = UnknownDetectionSet(photographs[1], role="near", roots={"imagenet1k": photographs[0]})
    assert [i.tobytes() for i, _ in data] == [whole[n][0].tobytes() for n in (0, 2, 3)]


def test_changed_pixels_are_noticed(photographs, tmp_path):
    folder = built(photographs, tmp_path / "fix")
    path = next(folder.rglob(f"*{SHARK}_5003*"))
    Image.fromarray(np.zeros((32, 32, 3), np.uint8)).save(path)
    data = UnknownDetectionSet(photographs[1], role="near", packed=folder)
    with raises(DataError, where="n01484850_5003.png", naming=f"{SHARK}_5003"):
        list(data)
