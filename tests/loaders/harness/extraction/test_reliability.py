"""Extractions killed, divided, short of memory, damaged or wrong: the same bytes, or an error by name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from filelock import FileLock

from loaders import UnknownDetectionSet
from loaders.harness.extraction.activations import extract
from loaders.harness.extraction.outputs import Store
from loaders.harness.extraction.stored_list import StoredList, StoreError
from loaders.harness.models.loading import load_model
from tests.raising import raises
from tests.wordnet_splits.command import REPOSITORY
from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError, OutputError, SplitsError

from ..altering import reseal
from ..models.networks import CLASSES, Greedy, Poisoned, Wrapped, small_network
from ..ranks import run_two_ranks
from . import extract_digits
from .extract_digits import extract_near
from .stored import SHARD, contents, folder_of, pixels


def test_a_killed_and_resumed_extraction_gives_the_same_bytes(reference: Any, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, extract_digits.__file__, str(tmp_path), str(SHARD), "2"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "standing still\n", process.communicate()
    process.kill()
    process.communicate()
    done = len(list(tmp_path.rglob("forward/0000*.json")))
    assert done == 2
    folder = folder_of(tmp_path)
    (folder / "forward" / "logits" / ".00005.npy.0.part").write_bytes(b"half")  # what a kill may leave
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("forward/*.json")}
    resumed = extract_near(tmp_path, SHARD)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # what was done is not done again
    assert contents(tmp_path) == contents(reference[0])
    np.testing.assert_array_equal(resumed.logits[:], reference[1].logits[:])


def test_two_gloo_ranks_give_the_bytes_of_one_process(reference: Any, tmp_path: Path) -> None:
    words = [extract_digits.__file__, str(tmp_path), str(SHARD), "0"]
    for code, out, errors in run_two_ranks(words, tmp_path):
        assert code == 0, errors
        assert out == "714 False\n"  # each rank opened all of it, and none imported torch's compiler
    assert contents(tmp_path) == contents(reference[0])


def test_out_of_memory_restarts_the_shard_at_half_the_batch_and_the_store_says_so(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    found = extract(load_model(Greedy(), device="cpu"), near, Store(tmp_path / "a", 300), batch_size=64)
    assert found.notes == (
        "out of memory at batch 64: shard 0 restarted at 32",
        "out of memory at batch 32: shard 0 restarted at 16",
    )
    records = [json.loads(p.read_text()) for p in sorted(folder_of(tmp_path / "a").glob("forward/*.json"))]
    assert [record["settings"]["batch_size"] for record in records] == [16, 16, 16]
    again = extract(load_model(Greedy(), device="cpu"), near, Store(tmp_path / "a", 300), batch_size=64)
    assert again.notes == found.notes
    calm = extract(load_model(Greedy(), device="cpu"), near, Store(tmp_path / "b", 300), batch_size=16)
    np.testing.assert_array_equal(found.logits[:], calm.logits[:])
    assert calm.notes == ()


def test_one_image_too_large_is_an_error(near: UnknownDetectionSet, tmp_path: Path) -> None:
    class Full(Wrapped):
        def forward(self, x: Any) -> Any:
            if self.seen > 40:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory")
            return super().forward(x)

    with raises(SplitsError, where="Full"):
        extract(load_model(Full(), device="cpu"), near, Store(tmp_path), batch_size=4)


def test_a_forward_pass_that_fails_names_the_model(near: UnknownDetectionSet, tmp_path: Path) -> None:
    class Failing(Wrapped):
        def forward(self, x: Any) -> Any:
            if self.seen > 300:
                raise RuntimeError("shapes cannot be multiplied")
            return super().forward(x)

    with raises(DataError, where="Failing", naming="3") as caught:
        extract(load_model(Failing(), device="cpu"), near, Store(tmp_path, 100), batch_size=50)
    assert caught.value.where == "Failing"
    assert len(list(tmp_path.rglob("forward/*.json"))) == 3  # what was finished is kept


def test_shards_of_different_settings_are_said_to_differ(near: UnknownDetectionSet, tmp_path: Path) -> None:
    model, store = load_model(small_network(), device="cpu"), Store(tmp_path, 300)
    extract(model, near, store, batch_size=64)
    folder = folder_of(tmp_path)
    (folder / "forward" / "00001.json").unlink()
    found = extract(model, near, store, batch_size=32)
    assert found.notes == ("shards differ in batch_size: 32, 64; equality is rtol 1e-4",)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("forward/features/00002.npy", lambda b: b[:-1] + bytes([b[-1] ^ 1])),
        ("forward/logits/00000.npy", lambda b: b[:200]),
        ("odin[T=10,eps=0.01]/logits/00001.npy", lambda b: b""),
        ("forward/logits/00004.npy", None),
        ("forward/00001.json", lambda b: b"{"),
        ("forward/00001.json", lambda b: b"[" * 500),
        ("list.json", lambda b: b"[]"),
        ("canary/inputs.npy", lambda b: b + b"\0"),
    ],
)
def test_a_damaged_store_is_noticed_and_the_file_is_named(
    reference: Any, tmp_path: Path, name: str, damage: Any
) -> None:
    store = tmp_path / "store"
    shutil.copytree(reference[0], store)
    path = folder_of(store) / name
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(StoreError) as caught:
        extract_near(store, SHARD)
    assert caught.value.where == str(path)


def test_activations_that_are_not_finite_are_refused_by_name(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    row = 200
    totals = pixels(near).double().sum((1, 2, 3)).numpy()
    first = int(np.flatnonzero(np.abs(totals - totals[row]) < 1e-6)[0])
    model = load_model(Poisoned(float(totals[row])), device="cpu", head="network.6")
    with raises(DataError, where="Poisoned on digits-6-9, forward") as caught:
        extract(model, near, Store(tmp_path))
    assert str(near.table["image_id"][first]) in str(caught.value)
    assert not list(tmp_path.rglob("forward/*.json"))


def test_a_second_extraction_waits_for_the_first(
    near: UnknownDetectionSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_model(small_network(), device="cpu")
    first = extract(model, near, Store(tmp_path))
    lock = FileLock(str(folder_of(tmp_path).with_name(f".{folder_of(tmp_path).name}.lock")))
    (folder_of(tmp_path) / "forward" / "00000.json").unlink()  # complete activations are read without a lock
    order: list[str] = []
    refused = threading.Event()

    class Watched(FileLock):
        def _acquire(self) -> None:
            super()._acquire()
            if not self.is_locked:
                refused.set()

    monkeypatch.setattr(files, "FileLock", Watched)

    def second() -> None:
        extract(model, near, Store(tmp_path))
        order.append("second")

    with lock:
        thread = threading.Thread(target=second)
        thread.start()
        assert refused.wait(60)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]
    assert first.n == 714


def test_a_store_that_cannot_be_written_is_an_output_error(near: UnknownDetectionSet, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        extract(load_model(small_network(), device="cpu"), near, Store(tmp_path / "file"))


def test_no_images_and_odd_batches_are_refused(near: UnknownDetectionSet, tmp_path: Path) -> None:
    model = load_model(small_network(), device="cpu")
    with raises(DataError, naming=("batch_size", "4096")):
        extract(model, near, Store(tmp_path), batch_size=0)
    empty = UnknownDetectionSet("digits", role="near")
    empty.table = empty.table.slice(0, 0)
    with raises(DataError, where="Sequential"):
        extract(model, empty, Store(tmp_path))


def group_of(store: Path) -> StoredList:
    return Store(store).list_at(*folder_of(store).relative_to(store).parts, n=714)


@pytest.mark.parametrize(
    ("name", "change", "where"),
    [
        ("list.json", lambda d: d.update(n=10**18), "list.json"),
        ("list.json", lambda d: d.update(model_key="0" * 64), "list.json"),
        ("list.json", lambda d: d["transform"].update(mean=[9, 9, 9]), "list.json"),
        ("list.json", lambda d: d.update(schema=2), "list.json"),
        ("list.json", lambda d: d["canary"].update(rows=[10**9] * 16), "list.json"),
        ("list.json", lambda d: d.update(shard_rows=0), "list.json"),
        ("list.json", lambda d: d.update(features_dtype="float64"), "list.json"),
        ("forward/00001.json", lambda d: d.update(shard=0), "00001.json"),
        ("forward/00001.json", lambda d: d.update(unit="odin"), "00001.json"),
        ("forward/00001.json", lambda d: d["arrays"].update({"../x": d["arrays"]["logits"]}), "00001.json"),
        ("forward/00001.json", lambda d: d["arrays"].pop("logits"), "00001.json"),
        (
            "forward/00001.json",
            lambda d: d["arrays"]["logits"].update(shape=[CLASSES, SHARD]),
            "00001.npy",
        ),
    ],
)
def test_what_a_checksum_made_anew_cannot_hide(
    reference: Any, tmp_path: Path, name: str, change: Any, where: str
) -> None:
    store = tmp_path / "store"
    shutil.copytree(reference[0], store)
    reseal(folder_of(store) / name, change)
    with raises(StoreError, where=where) as caught:
        extract_near(store, SHARD)
    assert str(folder_of(store)) in str(caught.value.where)


def test_a_pipe_in_the_place_of_a_stored_file_does_not_hang(reference: Any, tmp_path: Path) -> None:
    store = tmp_path / "store"
    shutil.copytree(reference[0], store)
    folder, group = folder_of(store), group_of(store)
    for name in ("forward/logits/00000.npy", "forward/00000.json"):
        (folder / name).unlink()
        os.mkfifo(folder / name)
        with pytest.raises(StoreError):
            group.open("forward")


@pytest.mark.parametrize(
    ("name", "part", "key"), [("list.json", None, "model"), ("forward/00001.json", "settings", "device")]
)
def test_records_of_a_store_are_sealed(
    reference: Any, tmp_path: Path, name: str, part: str | None, key: str
) -> None:
    path = folder_of(Path(shutil.copytree(reference[0], tmp_path / "store"))) / name
    content = json.loads(path.read_text())
    (content[part] if part else content)[key] = "other"
    path.write_text(json.dumps(content))
    with raises(StoreError, where=path):
        extract_near(tmp_path / "store", SHARD)
