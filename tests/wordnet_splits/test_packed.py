"""Packed stores: what goes in comes out, damage is noticed by row, interrupted work goes on where it was."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from tests.photographs import COUNT, GOLDFISH, SHARK, TENCH, build_photographs, image_file, jpeg, write_root
from wordnet_splits.build import build
from wordnet_splits.cli.main import app, run
from wordnet_splits.digits_data import load_digits_pixels
from wordnet_splits.errors import DataError, MissingImageError, OutputError, SourceError, UnknownNameError
from wordnet_splits.manifest import load_manifest
from wordnet_splits.packed import check_store, open_store, part_paths
from wordnet_splits.packing import pack
from wordnet_splits.sources import root_variable, source_names

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def no_roots_of_this_machine(monkeypatch, tmp_path):
    for name in source_names():
        monkeypatch.delenv(root_variable(name), raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """(root, manifest folder), not to be changed."""
    folder = tmp_path_factory.mktemp("photographs")
    root = write_root(folder / "imagenet")
    return root, build_photographs(root, folder / "build")


@pytest.fixture
def digits(tmp_path):
    return pack("digits", tmp_path / "digits", splits=["test"]).store


@pytest.fixture
def command(capsys):
    """Run a command and return (exit code, the JSON object on stdout)."""

    def call(*arguments: object) -> tuple[int, dict]:
        code = run(app, ["pack", *map(str, arguments), "--json"], "wordnet-splits")
        return code, json.loads(capsys.readouterr().out)

    return call


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
    store = pack(manifest, tmp_path / "store", roots={"imagenet1k": root}).store
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
        build_photographs(root, tmp_path / "b"),
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
    stores = [pack(manifest, tmp_path / f"w{n}", workers=n).store for n in (1, 2)]
    assert stores[0].parts == stores[1].parts
    assert {e.group: e.rows for e in stores[0].parts.values()} == {"gaussian": 150, "uniform": 200}


def build_many(folder: Path) -> Path:
    """A benchmark of two groups of noise, each of several chunks of work."""
    text = 'schema = 1\nname = "many"\ndraw = "many"\n'
    for source, role, count in (("gaussian", "far", 150), ("uniform", "near", 200)):
        text += f'[[group]]\nname = "{source}"\nrole = "{role}"\nsource = "{source}"\n'
        text += "noise = { shape = [4, 4, 3], seed = 0 }\nclasses = { rest = true }\n"
        text += f"images = {{ test = {{ generate = {count} }} }}\n"
    recipe = folder / "many.toml"
    recipe.write_text(text, encoding="utf-8")
    made = build(recipe, out=folder / "build").folder
    assert made is not None
    return made


def test_opening_reads_one_small_file_and_maps_the_rest(digits):
    images = digits.images(("test", "uniform"))
    again = pickle.loads(pickle.dumps(images))
    assert len(pickle.dumps(images)) < 2000
    assert np.array_equal(again.pixels(rows(500)), images.pixels(rows(500)))
    with pytest.raises(KeyError):
        digits.images(("val", "uniform"))


# -- damage --------------------------------------------------------------------------------------------------


def flip(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 1]))


def test_one_flipped_bit_is_noticed_by_its_row_and_only_there(digits):
    part = ("test", "digits-6-9")
    path, _ = part_paths(digits.folder, part)
    flip(path, 5 * 192 + 100)
    images = digits.images(part)
    name = images.image_id(5)
    for read in (images.picture, images.raw, images.encoded, lambda n: images.pixels(np.array([4, n]))):
        with pytest.raises(DataError, match=rf"image '{name}' do not match their checksum") as caught:
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
        with pytest.raises(DataError, match="checksum"):
            images.raw(row)
    assert images.picture(4)
    assert [p.detail for p in check_store(digits.folder)] == [
        f"{index}: the index has another SHA-256 (pack it again)"
    ]


def test_damage_that_a_checksum_of_32_bits_misses_is_found_by_the_check(digits, monkeypatch):
    path, _ = part_paths(digits.folder, ("test", "uniform"))
    flip(path, 0)
    monkeypatch.setattr("wordnet_splits.packed.PackedImages.damaged", lambda self: [])
    assert [p.detail for p in check_store(digits.folder)] == [f"{path} has another SHA-256"]


@pytest.mark.parametrize("suffix", [".bin", ".arrow"])
def test_truncated_and_absent_files_are_named(digits, suffix):
    path = digits.folder / "test" / f"gaussian{suffix}"
    content = path.read_bytes()
    for left in (content[:-7], content[:3], None):
        path.unlink()
        if left is not None:
            path.write_bytes(left)
        with pytest.raises(SourceError, match=rf"{digits.folder}/test/gaussian.*pack it again"):
            digits.images(("test", "gaussian"))
        assert "gaussian" in check_store(digits.folder)[0].detail
        path.write_bytes(content)


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 9, "parts": []}', '{"schema": 1, "parts": [{}]}'])
def test_a_malformed_description_is_refused(digits, text):
    (digits.folder / "packed.json").write_text(text, encoding="utf-8")
    with pytest.raises(SourceError, match=str(digits.folder)):
        open_store(digits.folder)


def test_a_folder_without_a_store_says_how_to_make_one(tmp_path):
    with pytest.raises(SourceError, match="wordnet-splits pack BENCHMARK"):
        open_store(tmp_path)


def test_images_of_another_version_or_spec_are_refused(photographs, tmp_path, monkeypatch):
    root, manifest = photographs
    store = pack(manifest, tmp_path / "store", roots={"imagenet1k": root}).store
    loaded = load_manifest(manifest)
    assert len(store.images_of(loaded, ("test", "near"))) == COUNT
    with monkeypatch.context() as patch:
        patch.setattr("wordnet_splits.packed.spec_id", lambda view: "another")
        with pytest.raises(SourceError, match="another resize spec"):
            store.images_of(loaded, ("test", "near"))
    loaded.data["fingerprints"]["images"][0]["images"] = "0" * 64
    part = next(iter(loaded.parts))
    with pytest.raises(SourceError, match="packed from other rows than those of photographs"):
        store.images_of(loaded, part)


# -- missing images ------------------------------------------------------------------------------------------


@pytest.fixture
def damaged_root(photographs, tmp_path):
    root = Path(shutil.copytree(photographs[0], tmp_path / "imagenet"))
    image_file(root, TENCH, 1).unlink()
    image_file(root, TENCH, 2).write_bytes(jpeg(50, (300, 300)))
    image_file(root, SHARK, 0).write_bytes(b"")
    return root


def test_without_allow_missing_nothing_is_left_half_written(photographs, damaged_root, tmp_path):
    out = tmp_path / "store"
    with pytest.raises(MissingImageError, match=rf"2 images are altered or missing: imagenet1k:{TENCH}_5001"):
        pack(photographs[1], out, roots={"imagenet1k": damaged_root}, groups=["known"])
    assert [p for p in out.rglob("*") if p.is_file()] == []
    with pytest.raises(SourceError, match="near needs the images of imagenet1k, which has no root"):
        pack(photographs[1], out, groups=["near"])


def test_allow_missing_reports_each_image_and_a_later_run_completes(photographs, damaged_root, tmp_path):
    out, (root, manifest) = tmp_path / "store", photographs
    result = pack(manifest, out, roots={"imagenet1k": damaged_root}, allow_missing=True)
    assert not result.complete
    assert {(p.image_id, p.kind, p.class_id) for p in result.missing} == {
        (f"{TENCH}_5001", "missing", TENCH),
        (f"{TENCH}_5002", "altered", TENCH),
        (f"{SHARK}_5000", "altered", SHARK),
    }
    known = result.store.images(("test", "known"))
    assert known.manifest_rows.tolist() == [0, 3, 4, 5, 6, 7]
    assert known.raw(1) == image_file(root, TENCH, 3).read_bytes()
    noise = part_paths(out, ("test", "noise"))[0].stat().st_ino
    completed = pack(manifest, out, roots={"imagenet1k": root})
    assert completed.complete
    assert completed.store.parts["test", "known"].rows == 2 * COUNT
    assert part_paths(out, ("test", "noise"))[0].stat().st_ino == noise


def test_allow_missing_leaves_out_what_has_no_root(photographs, tmp_path):
    result = pack(photographs[1], tmp_path / "store", allow_missing=True)
    assert sorted(result.store.parts) == [("test", "noise")]
    assert len(result.missing) == 3 * COUNT
    assert {p.detail for p in result.missing} == {"imagenet1k has no root"}


def test_the_dataset_reads_an_incomplete_store_only_when_allowed(photographs, damaged_root, tmp_path):
    pytest.importorskip("torch", reason="the datasets need torch (extra `torch`)")
    from loaders import UnknownDetectionSet

    root, manifest = photographs
    out = tmp_path / "store"
    pack(manifest, out, roots={"imagenet1k": damaged_root}, allow_missing=True)
    with pytest.raises(MissingImageError, match=rf"2 images of group known .* first '{TENCH}_5001'"):
        UnknownDetectionSet(manifest, role="id", packed=out)
    data = UnknownDetectionSet(manifest, role="id", packed=out, allow_missing=True)
    assert data.missing["image_id"].to_pylist() == [f"{TENCH}_5001", f"{TENCH}_5002"]
    whole = UnknownDetectionSet(manifest, role="id", roots={"imagenet1k": root})
    kept = [0, 3, 4, 5, 6, 7]
    assert data.table.equals(whole.table.take(kept))
    assert [image.tobytes() for image, _ in data] == [whole[n][0].tobytes() for n in kept]


def test_the_dataset_takes_from_roots_what_no_store_holds(photographs, tmp_path):
    pytest.importorskip("torch", reason="the datasets need torch (extra `torch`)")
    from loaders import UnknownDetectionSet

    root, manifest = photographs
    stores = [tmp_path / group for group in ("near", "noise")]
    for out in stores:
        pack(manifest, out, roots={"imagenet1k": root}, groups=[out.name])
    data = UnknownDetectionSet(manifest, packed=stores, roots={"imagenet1k": root})
    read = UnknownDetectionSet(manifest, roots={"imagenet1k": root})
    assert [image.tobytes() for image, _ in data] == [image.tobytes() for image, _ in read]
    with pytest.raises(SourceError, match="known needs .* no root, and no packed store holds it"):
        UnknownDetectionSet(manifest, packed=stores)


# -- interrupted and mistaken runs ---------------------------------------------------------------------------


class Interrupting:
    """Progress that presses Ctrl-C in the midst of the second part."""

    def __init__(self) -> None:
        self.parts = 0

    @contextmanager
    def task(self, what, total):
        self.parts += 1
        yield self

    def advance(self, steps=1):
        if self.parts == 2:
            raise KeyboardInterrupt


def test_an_interrupted_run_keeps_the_finished_parts(tmp_path):
    manifest, out = build_many(tmp_path), tmp_path / "store"
    with pytest.raises(KeyboardInterrupt):
        pack(manifest, out, progress=Interrupting())
    assert len(open_store(out).parts) == 1
    assert check_store(out) == []
    assert list(out.rglob("*.part")) == []
    finished = {path: path.stat().st_ino for path in out.rglob("*.bin")}
    resumed = pack(manifest, out)
    assert {path: path.stat().st_ino for path in finished} == finished
    assert resumed.store.parts == pack(manifest, tmp_path / "undisturbed").store.parts


KILLED = """
import sys, time
from pathlib import Path
from wordnet_splits import packing, part_writer
write = part_writer._Index.write
def slow(self, path, task):
    write(self, path, task)
    if task.part[1] == "uniform":
        print("now", flush=True)
        time.sleep(60)
part_writer._Index.write = slow
packing.pack(sys.argv[1], Path(sys.argv[2]))
"""


def test_a_killed_run_is_resumed_to_the_same_bytes(tmp_path):
    manifest, out = build_many(tmp_path), tmp_path / "store"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(manifest), str(out)], stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"now\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert len(list(out.rglob(".*.part"))) == 2
    assert list(open_store(out).parts) == [("test", "gaussian")]
    resumed = pack(manifest, out)
    assert resumed.store.parts == pack(manifest, tmp_path / "undisturbed").store.parts
    assert check_store(out) == []
    assert list(out.rglob(".*.part")) == []


def test_a_finished_store_is_not_packed_again(digits):
    before = {path: path.stat().st_mtime_ns for path in digits.folder.rglob("*.*") if path.suffix != ".json"}
    time.sleep(0.01)
    pack("digits", digits.folder, splits=["test"])
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_parts_of_an_older_version_are_replaced_and_removed(photographs, tmp_path):
    root, manifest = photographs
    folder = Path(shutil.copytree(manifest, tmp_path / "photographs@local"))
    out = tmp_path / "store"
    pack(folder, out, roots={"imagenet1k": root})
    data = json.loads((folder / "manifest.json").read_text())
    data["fingerprints"]["images"] = [r for r in data["fingerprints"]["images"] if r["group"] != "noise"]
    for row in data["fingerprints"]["images"]:
        row["images"] = "1" * 64
    (folder / "manifest.json").write_text(json.dumps(data))
    store = pack(folder, out, roots={"imagenet1k": root}).store
    assert sorted(store.parts) == [("test", "known"), ("test", "near")]
    assert {entry.images for entry in store.parts.values()} == {"1" * 64}
    assert not [path for path in out.rglob("*") if "noise" in path.name]


def test_a_store_of_another_benchmark_is_left_alone(digits, tmp_path):
    with pytest.raises(OutputError, match="holds the packed images of digits, not of many"):
        pack(build_many(tmp_path), digits.folder)
    assert check_store(digits.folder) == []


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written"):
        pack("digits", tmp_path / "file" / "store")


@pytest.mark.parametrize(
    ("options", "message"), [({"groups": ["digits-6"]}, "digits-6-9"), ({"splits": ["tst"]}, "test")]
)
def test_unknown_names_get_their_neighbours(tmp_path, options, message):
    with pytest.raises(UnknownNameError, match=message):
        pack("digits", tmp_path / "store", **options)
    assert not (tmp_path / "store").exists()


# -- the command ---------------------------------------------------------------------------------------------


def test_the_command_packs_checks_and_reports(photographs, damaged_root, tmp_path, command):
    root, manifest = photographs
    out = tmp_path / "store"
    code, said = command(manifest, "--out", out, "--root", f"imagenet1k={damaged_root}")
    assert (code, said["error"]["kind"]) == (2, "missing-image")
    arguments = (manifest, "--out", out, "--root", f"imagenet1k={damaged_root}", "--allow-missing")
    code, said = command(*arguments)
    assert (code, said["packed"]["complete"], len(said["packed"]["missing"])) == (3, False, 3)
    code, said = command(manifest, "--out", out, "--root", f"imagenet1k={root}")
    assert (code, said["packed"]["complete"], said["packed"]["awaiting"]) == (0, True, [])
    assert {part["group"]: part["rows"] for part in said["packed"]["parts"]} == {
        "known": 2 * COUNT,
        "near": COUNT,
        "noise": 5,
    }
    assert command("--out", out, "--check") == (0, {"ok": True, "problems": []})
    flip(out / "test" / "near.bin", 0)
    code, said = command("--out", out, "--check")
    assert (code, said["ok"], said["problems"][0]["image_id"]) == (1, False, f"{SHARK}_5000")


def test_the_command_without_a_benchmark_says_what_to_give(command, tmp_path):
    assert command()[1]["error"]["what"] == "no benchmark given"
    assert command("--check")[1]["error"]["hint"] == "give --out DIR"
    code, said = command("--check", "--out", tmp_path)
    assert (code, said["error"]["kind"]) == (2, "source")


def test_the_command_prints_a_table(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(app, ["pack", "digits", "--split", "val"], "wordnet-splits") == 0
    assert "val    digits-0-5  digits  raw   pixels   120" in capsys.readouterr().out
    assert check_store(tmp_path / "packed" / "digits") == []
    assert run(app, ["pack", "digits", "--check"], "wordnet-splits") == 0
    assert "every byte is as it was packed" in capsys.readouterr().out
