"""Stored activations: what the model gives, once per image, the same bytes however they came about."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from filelock import FileLock
from PIL import Image

from loaders import UnknownDetectionSet
from loaders.harness.activations import Activations, Store, choose_transform, extract
from loaders.harness.extraction import out_of_memory
from loaders.harness.keys import list_key
from loaders.harness.model import load_model
from loaders.harness.store import StoreError
from loaders.harness.transforms import Normalise, Transform, evaluation_transform, recipe_transform, to_uint8
from wordnet_splits.errors import DataError, OutputError, SplitsError, UnknownNameError

from . import extract_digits
from .extract_digits import extract_near
from .networks import CLASSES, FEATURES, Greedy, Poisoned, Scaled, Wrapped, small_network

REPOSITORY = Path(__file__).resolve().parents[3]
SHARD = 128


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def near() -> UnknownDetectionSet:
    return UnknownDetectionSet("digits", role="near")


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Activations]:
    """An undisturbed extraction by one process."""
    store = tmp_path_factory.mktemp("reference")
    return store, extract_near(store, SHARD)


def contents(store: Path) -> dict[str, bytes]:
    """Every file of a store but the lock."""
    files = (path for path in store.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(store)): path.read_bytes() for path in files}


def pixels(data: UnknownDetectionSet) -> Any:
    return torch.stack([to_uint8(data[i][0]) for i in range(len(data))]).float() / 255


def folder_of(store: Path) -> Path:
    (found,) = store.rglob("list.json")
    return found.parent


def test_features_and_logits_are_those_of_the_model(reference: Any, near: UnknownDetectionSet) -> None:
    _, found = reference
    network = small_network().eval()
    with torch.no_grad():
        features = network[:6](pixels(near))
        logits = network(pixels(near))
    assert found.features.shape == (714, FEATURES)
    assert found.logits.shape == (714, CLASSES)
    np.testing.assert_allclose(found.features[:], features.numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.logits[:], logits.numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        found.features[:] @ found.head.weight.T + found.head.bias, found.logits[:], rtol=1e-4, atol=1e-6
    )
    np.testing.assert_array_equal(found.labels, np.full(714, -1))
    assert found.table.equals(near.table)
    assert found.notes == ()


def test_shards_have_fixed_rows_and_record_their_settings(reference: Any) -> None:
    store, _ = reference
    folder = folder_of(store)
    assert folder.parts[-3:] == (reference[1].model_key, reference[1].transform_key, reference[1].list_key)
    rows = [len(np.load(p)) for p in sorted((folder / "forward" / "logits").iterdir())]
    assert rows == [128, 128, 128, 128, 128, 74]
    settings = json.loads((folder / "forward" / "00003.json").read_text())["settings"]
    assert (settings["batch_size"], settings["dtype"], settings["threads"]) == (32, "float32", 1)
    assert settings["libraries"]["torch"] == torch.__version__
    assert settings["device"].startswith("cpu")


def test_a_batch_never_crosses_a_shard(near: UnknownDetectionSet, tmp_path: Path) -> None:
    sizes: list[int] = []

    class Sizes(Wrapped):
        def forward(self, x: Any) -> Any:
            sizes.append(len(x))
            return super().forward(x)

    extract(load_model(Sizes(), device="cpu"), near, Store(tmp_path, 300), batch_size=128)
    forward = [size for size in sizes if size != 8]  # the canary
    assert forward == [128, 128, 44, 128, 128, 44, 114]


def test_nothing_is_forwarded_twice_and_benchmarks_share_groups(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    network = Wrapped()
    model, store = load_model(network, device="cpu"), Store(tmp_path, SHARD)
    first = extract(model, near, store)
    assert network.seen < 714 + 50
    network.seen = 0
    other = UnknownDetectionSet("digits", role="near")  # as another benchmark would name these images
    group = pa.array(["known"] * 714)
    other.table = other.table.set_column(other.table.schema.get_field_index("group"), "group", group)
    again = extract(model, other, store)
    assert network.seen <= 16  # the canary alone
    assert again.list_key == first.list_key
    np.testing.assert_array_equal(again.logits[:], first.logits[:])
    network.seen = 0
    with_probe = extract(model, near, store, probes=["odin[T=10,eps=0]"])
    assert network.seen <= 16 + 2 * 714  # the probe's own passes, not the forward pass
    np.testing.assert_allclose(
        with_probe.arrays["odin[T=10,eps=0]/logits"][:], first.logits[:], rtol=1e-5, atol=1e-6
    )


def test_the_list_key_is_of_source_image_and_view_in_order(near: UnknownDetectionSet) -> None:
    table = near.table
    assert list_key(table) == list_key(table.drop_columns(["label", "role", "digest"]))
    assert list_key(table) != list_key(table.take(pa.array([1, 0, *range(2, 714)])))
    view = table.set_column(table.schema.get_field_index("view"), "view", pa.array(["fix"] * 714))
    assert list_key(table) != list_key(view)


def run_script(store: Path, seconds: float, *launcher: str, **options: Any) -> subprocess.Popen[str]:
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("RANK", "WORLD", "MASTER", "LOCAL_"))},
        "PYTHONPATH": str(REPOSITORY),
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, *launcher, extract_digits.__file__, str(store), str(SHARD), str(seconds)]
    return subprocess.Popen(
        command,
        env=environment,
        cwd=store,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def test_a_killed_and_resumed_extraction_gives_the_same_bytes(reference: Any, tmp_path: Path) -> None:
    process = run_script(tmp_path, 0.1)
    try:
        deadline = time.monotonic() + 120
        while len(list(tmp_path.rglob("forward/0000*.json"))) < 2:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()
    done = len(list(tmp_path.rglob("forward/0000*.json")))
    assert 2 <= done < 6
    folder = folder_of(tmp_path)
    (folder / "forward" / "logits" / "00005.npy.partial").write_bytes(b"half")  # what a kill may leave
    kept = {path: path.stat().st_mtime_ns for path in folder.glob("forward/*.json")}
    resumed = extract_near(tmp_path, SHARD)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # what was done is not done again
    assert contents(tmp_path) == contents(reference[0])
    np.testing.assert_array_equal(resumed.logits[:], reference[1].logits[:])


def test_two_gloo_ranks_give_the_bytes_of_one_process(reference: Any, tmp_path: Path) -> None:
    launcher = ("-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1", "--nproc-per-node=2")
    process = run_script(tmp_path, 0, *launcher)
    out, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors
    assert out.count("714") == 2  # both ranks opened all of it
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

    with pytest.raises(SplitsError, match="out of memory with a batch of one image"):
        extract(load_model(Full(), device="cpu"), near, Store(tmp_path), batch_size=4)


def test_a_forward_pass_that_fails_names_the_model(near: UnknownDetectionSet, tmp_path: Path) -> None:
    class Failing(Wrapped):
        def forward(self, x: Any) -> Any:
            if self.seen > 300:
                raise RuntimeError("shapes cannot be multiplied")
            return super().forward(x)

    with pytest.raises(DataError, match="fails in shard 3: shapes cannot be multiplied") as caught:
        extract(load_model(Failing(), device="cpu"), near, Store(tmp_path, 100), batch_size=50)
    assert caught.value.where == "Failing"
    assert len(list(tmp_path.rglob("forward/*.json"))) == 3  # what was finished is kept


def test_the_hosts_allocator_running_out_counts_as_out_of_memory() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**58)
    assert out_of_memory(caught.value)
    assert not out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))


def test_shards_of_different_settings_are_said_to_differ(near: UnknownDetectionSet, tmp_path: Path) -> None:
    model, store = load_model(small_network(), device="cpu"), Store(tmp_path, 300)
    extract(model, near, store, batch_size=64)
    folder = folder_of(tmp_path)
    (folder / "forward" / "00001.json").unlink()
    found = extract(model, near, store, batch_size=32)
    assert found.notes == ("shards differ in batch_size: 32, 64; equality is rtol 1e-4",)


@pytest.mark.parametrize(
    ("name", "damage", "says"),
    [
        ("forward/features/00002.npy", lambda b: b[:-1] + bytes([b[-1] ^ 1]), "its checksum differs"),
        ("forward/logits/00000.npy", lambda b: b[:200], "its checksum differs"),
        ("odin[T=10,eps=0.01]/logits/00001.npy", lambda b: b"", "its checksum differs"),
        ("forward/logits/00004.npy", None, "cannot be read"),
        ("forward/00001.json", lambda b: b"{", "cannot be read"),
        ("list.json", lambda b: b"[]", "not an object"),
        ("canary/inputs.npy", lambda b: b + b"\0", "its checksum differs"),
    ],
)
def test_a_damaged_store_is_noticed_and_the_file_is_named(
    reference: Any, tmp_path: Path, name: str, damage: Any, says: str
) -> None:
    store = tmp_path / "store"
    shutil.copytree(reference[0], store)
    path = folder_of(store) / name
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(StoreError, match=says) as caught:
        extract_near(store, SHARD)
    assert caught.value.where == str(path)


def test_activations_that_are_not_finite_are_refused_by_name(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    row = 200
    totals = pixels(near).double().sum((1, 2, 3)).numpy()
    first = int(np.flatnonzero(np.abs(totals - totals[row]) < 1e-6)[0])
    model = load_model(Poisoned(float(totals[row])), device="cpu", head="network.6")
    with pytest.raises(DataError, match="NaN or infinite") as caught:
        extract(model, near, Store(tmp_path))
    assert str(near.table["image_id"][first]) in str(caught.value)
    assert not list(tmp_path.rglob("forward/*.json"))


def test_features_in_float16_are_smaller_and_overflow_is_named(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    model = load_model(small_network(), device="cpu")
    half = extract(model, near, Store(tmp_path / "half"), features_dtype="float16")
    whole = extract(model, near, Store(tmp_path / "whole"))
    assert (half.features.dtype, half.logits.dtype) == (np.float16, np.float32)
    np.testing.assert_allclose(half.features[:], whole.features[:], rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(half.logits[:], whole.logits[:])
    with pytest.raises(StoreError, match="stored as float16"):
        extract(model, near, Store(tmp_path / "half"))
    reused = extract(model, near, Store(tmp_path / "whole"), features_dtype="float16")
    assert reused.notes == ("features are float32, as this group was begun",)
    with pytest.raises(DataError, match="store float32"):
        extract(load_model(Scaled(features=1e6)), near, Store(tmp_path / "big"), features_dtype="float16")
    with pytest.raises(UnknownNameError):
        extract(model, near, Store(tmp_path / "other"), features_dtype="int8")


def test_the_canary_notices_code_that_changed_under_the_same_weights(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    first, changed = load_model(Scaled(1.0), device="cpu"), load_model(Scaled(1.01), device="cpu")
    assert first.key == changed.key
    extract(first, near, Store(tmp_path))
    extract(first, near, Store(tmp_path))
    with pytest.raises(StoreError, match="its code has changed"):
        extract(changed, near, Store(tmp_path))


def test_evaluation_mode_and_back(near: UnknownDetectionSet, tmp_path: Path) -> None:
    network = small_network()
    network.train()
    network[1].eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    extract(load_model(network, device="cpu"), near, Store(tmp_path))
    assert network[5].training
    assert not network[1].training
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())
    assert not torch.are_deterministic_algorithms_enabled()


def test_worker_processes_give_the_same_bytes(
    reference: Any, near: UnknownDetectionSet, tmp_path: Path
) -> None:
    model = load_model(extract_digits.Slow(), device="cpu")
    extract(model, near, Store(tmp_path, SHARD), probes=extract_digits.PROBES, batch_size=32, workers=2)
    assert contents(tmp_path) == contents(reference[0])


@pytest.mark.parametrize("workers", [0, 1])
def test_a_transform_that_makes_no_tensor_is_named(
    near: UnknownDetectionSet, tmp_path: Path, workers: int
) -> None:
    with pytest.raises(DataError, match=r"the transform makes Image, not a tensor|no one batch"):
        extract(
            load_model(small_network(), device="cpu"),
            near,
            Store(tmp_path),
            transform=Transform({"broken": 1}, _turned),
            workers=workers,
        )


def _turned(image: Image.Image) -> Image.Image:
    return image.rotate(90)


def test_a_second_extraction_waits_for_the_first(near: UnknownDetectionSet, tmp_path: Path) -> None:
    model = load_model(small_network(), device="cpu")
    first = extract(model, near, Store(tmp_path))
    lock = FileLock(str(folder_of(tmp_path) / ".lock"))
    order: list[str] = []

    def second() -> None:
        extract(model, near, Store(tmp_path))
        order.append("second")

    with lock:
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.3)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]
    assert first.n == 714


def test_a_store_that_cannot_be_written_is_an_output_error(near: UnknownDetectionSet, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        extract(load_model(small_network(), device="cpu"), near, Store(tmp_path / "file"))


def test_no_images_and_odd_batches_are_refused(near: UnknownDetectionSet, tmp_path: Path) -> None:
    model = load_model(small_network(), device="cpu")
    with pytest.raises(DataError, match="a batch of 0 images"):
        extract(model, near, Store(tmp_path), batch_size=0)
    empty = UnknownDetectionSet("digits", role="near")
    empty.table = empty.table.slice(0, 0)
    with pytest.raises(DataError, match="not one image"):
        extract(model, empty, Store(tmp_path))


def test_the_transform_in_force(near: UnknownDetectionSet, tmp_path: Path) -> None:
    model = load_model(small_network(), device="cpu")
    own = UnknownDetectionSet("digits", role="near", transform=lambda image: to_uint8(image).float())
    assert choose_transform(model, near).spec == evaluation_transform("none").spec
    with pytest.raises(DataError, match="add transform_id"):
        extract(model, own, Store(tmp_path))
    assert choose_transform(model, own, transform_id="bytes").spec == {"transform_id": "bytes"}
    batched = UnknownDetectionSet("digits", role="near", batch_transform=Normalise((0.5,) * 3, (0.25,) * 3))
    assert choose_transform(model, batched).std == (0.25,) * 3
    brings = load_model(small_network(), device="cpu", preprocess=evaluation_transform("resize-32"))
    assert choose_transform(brings, near) is brings.preprocess
    assert choose_transform(brings, near, evaluation_transform("none")).spec["evaluation"] == "none"
    mixed = UnknownDetectionSet("digits")
    mixed.manifest = {"recipe": {"transforms": {"gaussian": "resize-32"}}}
    with pytest.raises(DataError, match="one group at a time"):
        choose_transform(model, mixed)


def test_one_step_and_two_steps_of_a_transform_agree(near: UnknownDetectionSet, tmp_path: Path) -> None:
    recipe = {
        "transforms": {"digits": "resize-32"},
        "normalise": {"mean": [0.5, 0.4, 0.3], "sd": [0.2, 0.3, 0.4]},
    }
    two = recipe_transform(recipe, "digits")
    one = Transform({"one": 1}, two, std=two.std)
    model = load_model(small_network(), device="cpu")
    a = extract(model, near, Store(tmp_path), transform=two)
    b = extract(model, near, Store(tmp_path), transform=one)
    assert a.transform_key != b.transform_key
    np.testing.assert_array_equal(a.logits[:], b.logits[:])
    image = Image.new("RGB", (300, 200), (255, 0, 51))
    made = evaluation_transform("resize-256-crop-224", *recipe["normalise"].values())(image)  # type: ignore[attr-defined]
    assert made.shape == (3, 224, 224)
    np.testing.assert_allclose(
        made[:, 0, 0], [(1 - 0.5) / 0.2, (0 - 0.4) / 0.3, (0.2 - 0.3) / 0.4], rtol=1e-6
    )
