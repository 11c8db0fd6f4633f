"""`pack`: missing images, interrupted and mistaken runs, and the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

from tests.made_manifests import altered
from tests.photographs import COUNT, SHARK, TENCH, build_photographs, image_file, jpeg, write_root
from tests.raising import raises
from wordnet_splits.base.errors import MissingImageError, OutputError, SourceError, UnknownNameError
from wordnet_splits.benchmark.images import check_store, open_store, part_paths
from wordnet_splits.benchmark.images.pack import pack
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.cli.main import app, run

from .conftest import build_many, flip

REPOSITORY = Path(__file__).parents[4]


# -- missing images ------------------------------------------------------------------------------------------


def test_without_allow_missing_nothing_is_left_half_written(photographs, damaged_root, tmp_path):
    out = tmp_path / "store"
    with raises(MissingImageError, where="photographs@local", naming=(f"{TENCH}_5001", "2", "imagenet1k")):
        pack(load_manifest(photographs[1]), out, roots={"imagenet1k": damaged_root}, groups=["known"])
    assert [p for p in out.rglob("*") if p.is_file()] == []
    with raises(SourceError, where="imagenet1k", naming="near"):
        pack(load_manifest(photographs[1]), out, groups=["near"])


def test_allow_missing_reports_each_image_and_a_later_run_completes(photographs, damaged_root, tmp_path):
    out, (root, manifest) = tmp_path / "store", photographs
    result = pack(load_manifest(manifest), out, roots={"imagenet1k": damaged_root}, allow_missing=True)
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
    completed = pack(load_manifest(manifest), out, roots={"imagenet1k": root})
    assert completed.complete
    assert completed.store.parts["test", "known"].rows == 2 * COUNT
    assert part_paths(out, ("test", "noise"))[0].stat().st_ino == noise


def test_allow_missing_leaves_out_what_has_no_root(photographs, tmp_path):
    result = pack(load_manifest(photographs[1]), tmp_path / "store", allow_missing=True)
    assert sorted(result.store.parts) == [("test", "noise")]
    assert len(result.missing) == 3 * COUNT
    assert {p.detail for p in result.missing} == {"imagenet1k has no root"}


def test_the_dataset_reads_an_incomplete_store_only_when_allowed(photographs, damaged_root, tmp_path):
    pytest.importorskip("torch", reason="the datasets need torch (extra `torch`)")
    from loaders import UnknownDetectionSet

    root, manifest = photographs
    out = tmp_path / "store"
    pack(load_manifest(manifest), out, roots={"imagenet1k": damaged_root}, allow_missing=True)
    with raises(MissingImageError, where="store", naming=(f"{TENCH}_5001", "2")):
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
        pack(load_manifest(manifest), out, roots={"imagenet1k": root}, groups=[out.name])
    data = UnknownDetectionSet(manifest, packed=stores, roots={"imagenet1k": root})
    read = UnknownDetectionSet(manifest, roots={"imagenet1k": root})
    assert [image.tobytes() for image, _ in data] == [image.tobytes() for image, _ in read]
    with raises(SourceError, where="imagenet1k"):
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

    def advance(self, steps=1, *, note=""):
        if self.parts == 2:
            raise KeyboardInterrupt


def test_an_interrupted_run_keeps_the_finished_parts(tmp_path):
    manifest, out = build_many(tmp_path), tmp_path / "store"
    with pytest.raises(KeyboardInterrupt):
        pack(load_manifest(manifest), out, progress=Interrupting())
    assert len(open_store(out).parts) == 1
    assert check_store(out) == []
    assert list(out.rglob("*.part")) == []
    finished = {path: path.stat().st_ino for path in out.rglob("*.bin")}
    resumed = pack(load_manifest(manifest), out)
    assert {path: path.stat().st_ino for path in finished} == finished
    assert resumed.store.parts == pack(load_manifest(manifest), tmp_path / "undisturbed").store.parts


KILLED = """
import sys, threading
from pathlib import Path
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.benchmark.images import pack as packing
write = packing._write_index
def slow(path, task, columns):
    write(path, task, columns)
    if task.part[1] == "uniform":
        print("now", flush=True)
        threading.Event().wait()
packing._write_index = slow
packing.pack(load_manifest(sys.argv[1]), Path(sys.argv[2]))
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
    resumed = pack(load_manifest(manifest), out)
    assert resumed.store.parts == pack(load_manifest(manifest), tmp_path / "undisturbed").store.parts
    assert check_store(out) == []
    assert list(out.rglob(".*.part")) == []


def test_a_finished_store_is_not_packed_again(digits):
    packed = [path for path in digits.folder.rglob("*.*") if path.suffix != ".json"]
    for path in packed:
        os.utime(path, (0, 0))  # whoever writes it leaves another time
    before = {path: path.stat().st_mtime_ns for path in packed}
    pack(load_manifest("digits"), digits.folder, splits=["test"])
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_parts_of_an_older_version_are_replaced_and_removed(photographs, tmp_path):
    root, manifest = photographs
    out = tmp_path / "store"
    pack(load_manifest(manifest), out, roots={"imagenet1k": root})
    later = load_manifest(manifest)
    prints = later.data.fingerprints.model_dump()
    rows = [{**row, "images": "1" * 64} for row in prints["images"] if row["group"] != "noise"]
    groups = [row.model_dump() for row in later.groups if row.group != "noise"]
    later = altered(later, groups=groups, fingerprints={**prints, "images": rows})
    store = pack(load_manifest(later), out, roots={"imagenet1k": root}).store
    assert sorted(store.parts) == [("test", "known"), ("test", "near")]
    assert {entry.images for entry in store.parts.values()} == {"1" * 64}
    assert not [path for path in out.rglob("*") if "noise" in path.name]


def without_digests(manifest: Manifest) -> Manifest:
    """The manifest as it is where no root was at hand."""
    prints = manifest.data.fingerprints.model_dump()
    rows = [{**row, "pixels": None} for row in prints["images"]]
    plain = altered(manifest, fingerprints={**prints, "images": rows, "pixels_in_all": None})
    for part, read in plain.parts.items():
        table = read()
        at, empty = table.column_names.index("digest"), pa.nulls(len(table), pa.binary(32))
        plain.parts[part] = partial(table.set_column, at, "digest", empty)
    return plain


def test_pictures_that_changed_since_are_packed_again_where_no_digest_is_known(tmp_path):
    root, other = write_root(tmp_path / "root"), write_root(tmp_path / "other")
    manifest = without_digests(load_manifest(build_photographs(root, tmp_path / "built")))
    image_file(other, TENCH, 1).write_bytes(jpeg(50, (320, 300)))
    out, roots = tmp_path / "store", ({"imagenet1k": at} for at in (root, root, other))
    stores = [pack(load_manifest(manifest), out, roots=given).store for given in roots]
    before, again, after = (store.parts["test", "known"] for store in stores)
    assert again == before
    store = pack(load_manifest(manifest), tmp_path / "fresh", roots={"imagenet1k": other}).store
    fresh = store.parts["test", "known"]
    assert (after.sha256, after.sha256 != before.sha256) == (fresh.sha256, True)
    kept = open_store(out)
    assert kept.images_of(manifest, ("test", "known")).raw(1) == image_file(other, TENCH, 1).read_bytes()


def test_a_store_of_pictures_that_the_manifest_did_not_know_is_refused_by_one_that_does(
    photographs, tmp_path
):
    """Its ids are the same, its pictures may be of another copy."""
    root, manifest = photographs
    unknown = without_digests(load_manifest(manifest))
    store = pack(load_manifest(unknown), tmp_path / "store", roots={"imagenet1k": root}).store
    with raises(SourceError, where="store"):
        store.images_of(load_manifest(manifest), ("test", "known"))
    packed = pack(load_manifest(manifest), tmp_path / "store", roots={"imagenet1k": root}).store
    assert len(packed.images_of(load_manifest(manifest), ("test", "known"))) == 2 * COUNT


def test_a_store_of_another_benchmark_is_left_alone(digits, tmp_path):
    with raises(OutputError, where="digits"):
        pack(load_manifest(build_many(tmp_path)), digits.folder)
    assert check_store(digits.folder) == []


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path):
    (tmp_path / "file").touch()
    with raises(OutputError, where="file"):
        pack(load_manifest("digits"), tmp_path / "file" / "store")


@pytest.mark.parametrize(
    ("options", "message"), [({"groups": ["digits-6"]}, "digits-6-9"), ({"splits": ["tst"]}, "test")]
)
def test_unknown_names_get_their_neighbours(tmp_path, options, message):
    with raises(UnknownNameError, where="digits", naming=message):
        pack(load_manifest("digits"), tmp_path / "store", **options)
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
