from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from loaders.harness.training.checkpoint import (
    build_from,
    load_checkpoint,
    load_state,
    portable_state,
    read_metadata,
    save_checkpoint,
    save_state,
)
from loaders.harness.training.recipe import load_recipe
from tests.raising import raises
from wordnet_splits.base.errors import DataError, OutputError, UnsafeDataError

from ..altering import assert_no_alteration_passes, reseal

NETWORK = {"name": "tiny-cnn", "outputs": 3, "background": None, "channels": 1, "size": [8, 8]}
EPOCH = {"epoch": 1, "rate": 0.1, "loss": 1.5, "val_loss": None}
METADATA: dict[str, Any] = {
    "recipe": load_recipe("digits-demo").as_dict(),
    "network": NETWORK,
    "optimizer": "adam",
    "seed": 0,
    "benchmark": {
        "name": "digits",
        "version": 1,
        "fingerprint": "f" * 64,
        "parts": [{"split": "train", "group": "id", "rows": 3, "images": "a" * 64, "pixels": None}],
    },
    "classes": ["a", "b", "c"],
    "input": {"mean": [0.0, 0.5, 0.5], "std": [1.0, 0.5, 0.25]},
    "outliers": "none",
    "method": None,
    "start": {"run": "other-s0", "sha256": "b" * 64},
    "machine": {"device": "cpu", "precision": "float32", "threads": 1, "torch": "2"},
    "run": "digits-demo-tiny-cnn-s0",
    "series": "digits-demo-tiny-cnn",
    "epochs_trained": 2,
    "selected_epoch": 1,
    "selected": EPOCH,
    "history": [EPOCH, {**EPOCH, "epoch": 2, "val_accuracy": 0.5}],
    "command": None,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    return save_checkpoint(tmp_path / "run", portable_state(build_from(NETWORK)), METADATA)


def test_round_trip(folder: Path) -> None:
    torch.manual_seed(0)
    module = build_from(NETWORK).eval()
    x = torch.rand(2, 3, 8, 8)
    for path in (folder, folder / "model.pt", str(folder / "model.json")):
        loaded = load_checkpoint(path)
        assert torch.equal(loaded(x), module(x))
        assert not loaded.training
        assert (loaded.classes, loaded.background) == (("a", "b", "c"), None)
        assert loaded.metadata == read_metadata(folder)


def test_weights_load_with_weights_only(folder: Path) -> None:
    state = torch.load(folder / "model.pt", weights_only=True)
    assert set(state) == set(build_from(NETWORK).state_dict())


def test_bytes_depend_on_values_not_on_memory_layout(tmp_path: Path) -> None:
    module = build_from(NETWORK)
    plain = save_checkpoint(tmp_path / "a", portable_state(module), METADATA)
    module.to(memory_format=torch.channels_last)
    other = save_checkpoint(tmp_path / "b", portable_state(module), METADATA)
    assert (plain / "model.pt").read_bytes() == (other / "model.pt").read_bytes()


def test_other_weights_are_noticed(folder: Path) -> None:
    blob = bytearray((folder / "model.pt").read_bytes())
    blob[len(blob) // 2] ^= 1
    (folder / "model.pt").write_bytes(bytes(blob))
    with raises(DataError, where="model.pt", naming="model.json"):
        load_checkpoint(folder)


def test_weights_of_another_network_are_refused(folder: Path) -> None:
    save_checkpoint(folder, portable_state(build_from({**NETWORK, "outputs": 5})), METADATA)
    with raises(DataError, where="model.pt", naming="2"):
        load_checkpoint(folder)


def test_no_field_of_a_trained_model_can_be_altered(folder: Path) -> None:
    assert assert_no_alteration_passes(folder / "model.json", lambda: load_checkpoint(folder)) > 200


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda d: d["input"].update(mean=["0", "0", "0"]), "input.mean.0"),
        (lambda d: d["input"].update(std=[1.0, 0.0, 1.0]), "input.std.1"),
        (lambda d: d.update(classes=["a", "b"]), ("2", "network", "3")),
        (lambda d: d["network"].update(outputs=-3), "network.outputs"),
        (lambda d: d["network"].update(outputs=10**9), "network.outputs"),
        (lambda d: d["network"].update(size=[10**6, 8]), "network.size.0"),
        (lambda d: d["network"].update(size=[1024, 1024]), ()),
        (lambda d: d["network"].update(size=[2, 2]), "2"),
        (lambda d: d["network"].update(name="resnet18", size=[32, 32]), ()),
        (lambda d: d["network"].update(background=0), ()),
        (lambda d: d.pop("benchmark"), "benchmark"),
        (lambda d: d.update(optimizer="sgd"), "sgd"),
        (lambda d: d.update(selected_epoch=7), ()),
        (
            lambda d: d.update(weights={"file": "../model.pt", "sha256": "c" * 64}),
            "weights.file",
        ),
    ],
)
def test_what_a_checksum_made_anew_cannot_hide(folder: Path, change: Any, named: object) -> None:
    reseal(folder / "model.json", change)
    with raises(DataError, naming=named):
        load_checkpoint(folder)


def write_state(folder: Path, value: object) -> None:
    """Write what is no state of a training, with the checksum of one."""
    buffer = io.BytesIO()
    torch.save(value, buffer)
    (folder / "training.pt").write_bytes(buffer.getvalue() + hashlib.sha256(buffer.getvalue()).digest())


def test_code_in_a_state_file_is_not_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "run",))

    write_state(tmp_path, Evil())
    with raises(UnsafeDataError, where="training.pt"):
        load_state(tmp_path)
    assert not (tmp_path / "run").exists()


def test_absent_and_foreign_models(tmp_path: Path, folder: Path) -> None:
    with raises(DataError, where="nowhere"):
        load_checkpoint(tmp_path / "nowhere")
    (folder / "model.json").write_text(json.dumps({"schema": 99}))
    with raises(DataError, where="model.json", naming="schema"):
        load_checkpoint(folder)
    (folder / "model.json").write_text("{")
    with raises(DataError, where="model.json"):
        load_checkpoint(folder)


def test_state_round_trip_and_damage(tmp_path: Path) -> None:
    assert load_state(tmp_path) is None
    best = {"epoch": 1, "weights": {"w": torch.ones(2)}}
    save_state(
        tmp_path,
        {
            "history": [{"epoch": 1, "gamma": None}],
            "best": best,
            "trainer": {},
            "earlier_machines": [],
            "request": "{}",
        },
    )
    state = load_state(tmp_path)
    assert state is not None
    assert state["history"] == [{"epoch": 1, "gamma": None}]
    file = tmp_path / "training.pt"
    whole = file.read_bytes()
    altered = bytearray(whole)
    altered[len(whole) // 2] ^= 1
    for damaged in (b"", whole[:100], whole[:-1], whole + b"\0", bytes(altered)):
        file.write_bytes(damaged)
        with raises(DataError, where="training.pt"):
            load_state(tmp_path)
    write_state(tmp_path, {"history": []})
    with raises(DataError, where="training.pt"):
        load_state(tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with raises(OutputError, where="model.pt"):
        save_checkpoint(tmp_path / "file" / "run", {}, METADATA)


def test_a_failed_write_leaves_the_old_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (folder / "model.pt").read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with raises(OutputError, where="model.pt"):
        save_checkpoint(folder, {"w": torch.ones(1)}, METADATA)
    assert (folder / "model.pt").read_bytes() == before
    assert not list(folder.glob(".*part"))
