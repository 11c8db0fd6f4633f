"""Packed stores: what goes in comes out, damage is noticed by row, interrupted work goes on where it was."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from tests.made_manifests import altered
from tests.photographs import (
    COUNT,
    GOLDFISH,
    SHARK,
    TENCH,
    build_photographs,
    image_file,
    jpeg,
    write_root,
)
from tests.raising import raises
from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.benchmark.images import check_store, open_store, part_paths
from wordnet_splits.benchmark.images.pack import pack
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.sources.built_in import load_digits_pixels

from .conftest import build_many, flip


def rows(count: int):
    return np.arange(count)


# -- what goes in comes out ----------------------------------------------------------------------------------


def test_small_images_are_one_array(digits):
    images = open_store(digits.folder).images(("test", "digits-6-9"))
    table = load_manifest("digits").images("test", "digits-6-9")
    grey, _ = load_digits_pixels()
    expected = np.stack([grey[int(i)] for i in table["image_id"].to_pylist()])
    assert np.array_equal(images.pixels(rows(714)), np.repeat(expected[:, None], 3, axis=1))
    some = np.array([5, 700, 5])
    for picture, row in zip(images.pictures(some), some, strict=True):
        assert (picture.mode, picture.size) == ("RGB", (8, 8))
        assert np.array_equal(np.asarray(picture)[:, :, 0], expected[row])
    assert (images.entry.layout, images.entry.shape, len(images)) == ("pixels", (3, 8, 8), 714)
    content, extension = images.encoded(3)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(content)))[:, :, 1], expected[3])
    assert extension == ".png"


def test_photographs_are_the_original_bytes_and_views_are_applied(photographs, tmp_path):
    from fix_resize.resize import apply
    from fix_resize.spec import get_spec

    root, manifest = photographs
    store = pack(load_manifest(manifest), tmp_path / "store", roots={"imagenet1k": root}).store
    known, near = (store.images(("test", group)) for group in ("known", "near"))
    ids = load_manifest(manifest).images("test", "known")["image_id"].to_pylist()
    files = [root / "train" / i.split("_")[0] / f"{i}.JPEG" for i in ids]
    assert [known.raw(n) for n in range(2 * COUNT)] == [file.read_bytes() for file in files]
    assert known.encoded(1) == (files[1].read_bytes(), ".jpg")
    assert known.picture(2).tobytes() == Image.open(files[2]).convert("RGB").tobytes()
    spec = get_spec("fix")
    assert (near.entry.layout, near.entry.spec, near.entry.shape) == ("pixels", spec.id, (3, 32, 32))
    sharks = [image_file(root, SHARK, n) for n in range(COUNT)]
    expected = [apply(spec, Image.open(file).convert("RGB")) for file in sharks]
    assert np.array_equal(near.pixels(rows(COUNT)), np.stack(expected).transpose(0, 3, 1, 2))
    assert check_store(store.folder) == []


@pytest.mark.parametrize(
    ("sizes", "layout"), [([(20, 30)] * 12, "pixels"), ([(20, 30)] * 7 + [(20, 31)] * 5, "files")]
)
def test_small_files_are_kept_decoded_where_all_have_one_size(tmp_path, sizes, layout):
    root = write_root(tmp_path / "root")
    for n, size in enumerate(sizes):
        class_id = (TENCH, GOLDFISH, SHARK)[n // COUNT]
        image_file(root, class_id, n % COUNT).write_bytes(jpeg(n, size))
    store = pack(
        load_manifest(build_photographs(root, tmp_path / "b")),
        tmp_path / "store",
        roots={"imagenet1k": root},
        groups=["known"],
    ).store
    images = store.images(("test", "known"))
    assert images.entry.layout == layout
    expected = [Image.open(image_file(root, c, n)) for c in (TENCH, GOLDFISH) for n in range(COUNT)]
    assert [p.tobytes() for p in images.pictures(rows(8))] == [e.convert("RGB").tobytes() for e in expected]
    assert check_store(store.folder) == []


def test_the_bytes_do_not_depend_on_the_workers(photographs, tmp_path):
    manifest = build_many(tmp_path)
    stores = [pack(load_manifest(manifest), tmp_path / f"w{n}", workers=n).store for n in (1, 2)]
    assert stores[0].parts == stores[1].parts
    assert {e.group: e.rows for e in stores[0].parts.values()} == {"gaussian": 150, "uniform": 200}


def test_opening_reads_one_small_file_and_maps_the_rest(digits):
    images = digits.images(("test", "uniform"))
    again = pickle.loads(pickle.dumps(images))
    assert len(pickle.dumps(images)) < 2000
    assert np.array_equal(again.pixels(rows(500)), images.pixels(rows(500)))
    with pytest.raises(KeyError):
        digits.images(("val", "uniform"))


# -- damage --------------------------------------------------------------------------------------------------


def test_one_flipped_bit_is_noticed_by_its_row_and_only_there(digits):
    part = ("test", "digits-6-9")
    path, _ = part_paths(digits.folder, part)
    flip(path, 5 * 192 + 100)
    images = digits.images(part)
    name = images.image_id(5)
    for read in (images.picture, images.raw, images.encoded, lambda n: images.pixels(np.array([4, n]))):
        with raises(DataError, where="digits-6-9.bin", naming=name) as caught:
            read(5)
        assert str(path) in str(caught.value)
        assert read(6) is not None
    problems = check_store(digits.folder)
    assert [(p.kind, p.source, p.image_id) for p in problems] == [("damaged", "digits", name)]


def test_bytes_of_another_row_are_noticed(digits):
    part = ("test", "digits-6-9")
    _, index = part_paths(digits.folder, part)
    table = pa.ipc.open_file(index.read_bytes()).read_all()
    order = np.arange(714)
    order[[2, 3]] = [3, 2]
    swapped = table.take(pa.array(order))
    for name in ("offset", "crc32"):  # rows 2 and 3 point at each other's bytes, with their checksums
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), swapped[name])
    with pa.OSFile(str(index), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_batch(table.combine_chunks().to_batches()[0])
    images = digits.images(part)
    for row in (2, 3):
        with raises(DataError, where="digits-6-9.bin", naming="checksum"):
            images.raw(row)
    assert images.picture(4)
    assert [p.detail for p in check_store(digits.folder)] == [
        f"{index}: the index has another SHA-256 (pack it again)"
    ]


def test_damage_that_a_checksum_of_32_bits_misses_is_found_by_the_check(digits, monkeypatch):
    path, _ = part_paths(digits.folder, ("test", "uniform"))
    flip(path, 0)
    monkeypatch.setattr("wordnet_splits.benchmark.images.store.PackedImages.damaged", lambda self: [])
    assert [p.detail for p in check_store(digits.folder)] == [f"{path} has another SHA-256"]


@pytest.mark.parametrize("suffix", [".bin", ".arrow"])
def test_truncated_and_absent_files_are_named(digits, suffix):
    path = digits.folder / "test" / f"gaussian{suffix}"
    content = path.read_bytes()
    for left in (content[:-7], content[:3], None):
        path.unlink()
        if left is not None:
            path.write_bytes(left)
        with raises(SourceError, naming=digits.folder):
            digits.images(("test", "gaussian"))
        assert "gaussian" in check_store(digits.folder)[0].detail
        path.write_bytes(content)


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 9, "parts": []}', '{"schema": 1, "parts": [{}]}'])
def test_a_malformed_description_is_refused(digits, text):
    (digits.folder / "packed.json").write_text(text, encoding="utf-8")
    with raises(SourceError, where="packed.json", naming=str(digits.folder)):
        open_store(digits.folder)


def test_a_folder_without_a_store_says_how_to_make_one(tmp_path):
    with raises(SourceError, where=tmp_path):
        open_store(tmp_path)


def test_images_of_another_version_or_spec_are_refused(photographs, tmp_path, monkeypatch):
    root, manifest = photographs
    store = pack(load_manifest(manifest), tmp_path / "store", roots={"imagenet1k": root}).store
    loaded = load_manifest(manifest)
    assert len(store.images_of(loaded, ("test", "near"))) == COUNT
    with monkeypatch.context() as patch:
        patch.setattr("wordnet_splits.benchmark.images.store.spec_id", lambda view: "another")
        with raises(SourceError, where="store", naming="another"):
            store.images_of(loaded, ("test", "near"))
    prints = loaded.data.fingerprints.model_dump()
    prints["images"][0]["images"] = "0" * 64
    loaded, part = altered(loaded, fingerprints=prints), next(iter(loaded.parts))
    with raises(SourceError, where="store"):
        store.images_of(loaded, part)
