from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from loaders.harness.training.checkpoints import (
    build_from,
    load_checkpoint,
    load_state,
    portable,
    read_metadata,
    save_checkpoint,
    save_state,
)
from wordnet_splits.errors import DataError, OutputError

NETWORK = {"name": "tiny-cnn", "outputs": 3, "background": None, "channels": 1, "size": [8, 8]}
METADATA: dict[str, Any] = {"network": NETWORK, "classes": ["a", "b", "c"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    return save_checkpoint(tmp_path / "run", portable(build_from(NETWORK)), METADATA)


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
    plain = save_checkpoint(tmp_path / "a", portable(module), METADATA)
    module.to(memory_format=torch.channels_last)
    other = save_checkpoint(tmp_path / "b", portable(module), METADATA)
    assert (plain / "model.pt").read_bytes() == (other / "model.pt").read_bytes()


def test_other_weights_are_noticed(folder: Path) -> None:
    blob = bytearray((folder / "model.pt").read_bytes())
    blob[len(blob) // 2] ^= 1
    (folder / "model.pt").write_bytes(bytes(blob))
    with pytest.raises(DataError, match="not those that model.json describes"):
        load_checkpoint(folder)


def test_weights_of_another_network_are_refused(folder: Path) -> None:
    save_checkpoint(folder, portable(build_from({**NETWORK, "outputs": 5})), METADATA)
    with pytest.raises(DataError, match="do not fit the network"):
        load_checkpoint(folder)


def test_code_in_a_state_file_is_not_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "run",))

    torch.save(Evil(), tmp_path / "training.pt")
    with pytest.raises(DataError, match="damaged"):
        load_state(tmp_path)
    assert not (tmp_path / "run").exists()


def test_absent_and_foreign_models(tmp_path: Path, folder: Path) -> None:
    with pytest.raises(DataError, match="no trained model here"):
        load_checkpoint(tmp_path / "nowhere")
    (folder / "model.json").write_text(json.dumps({"schema": 99}))
    with pytest.raises(DataError, match="schema 1"):
        load_checkpoint(folder)
    (folder / "model.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        load_checkpoint(folder)


def test_state_round_trip_and_damage(tmp_path: Path) -> None:
    assert load_state(tmp_path) is None
    save_state(tmp_path, {"history": [{"epoch": 1, "gamma": None}], "weights": {"w": torch.ones(2)}})
    state = load_state(tmp_path)
    assert state is not None
    assert state["history"] == [{"epoch": 1, "gamma": None}]
    file = tmp_path / "training.pt"
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(DataError, match="training.pt: damaged"):
        load_state(tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        save_checkpoint(tmp_path / "file" / "run", {}, METADATA)


def test_a_failed_write_leaves_the_old_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (folder / "model.pt").read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        save_checkpoint(folder, {"w": torch.ones(1)}, METADATA)
    assert (folder / "model.pt").read_bytes() == before
    assert not list(folder.glob(".*partial"))
