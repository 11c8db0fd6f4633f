"""What a run starts from: published weights, a file, another run; the recipes that must start from one."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import loaders
from loaders.harness.models.weights import RANDOM
from loaders.harness.training import starting
from loaders.harness.training.checkpoint import load_checkpoint
from loaders.harness.training.data import DeviceData, TrainingData
from loaders.harness.training.recipe import VARIANTS, Run, load_recipe, recipe_names
from loaders.harness.training.starting import open_start, with_start
from loaders.harness.training.trainer import Trainer
from tests.raising import raises
from wordnet_splits.base.errors import DataError, UnsafeDataError
from wordnet_splits.benchmark.resolve import load_manifest

from .toy import CPU, recipe, train

TORCHVISION = "torchvision:resnet18"
NEW_WEIGHTS = {"mos/short"}
"""Variants that name new weights as a departure."""


def refuse(spec: str, **options: Any) -> Any:
    raise DataError(f"{spec} {options['weights']}", where="published")


@pytest.mark.parametrize("variant", ["", *VARIANTS])
def test_a_recipe_with_a_start_refuses_without_it(
    variant: str, data: TrainingData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "load_model", refuse)
    every = [*recipe_names(), *map("/".join, product(recipe_names(), VARIANTS))]
    by_name, starts = {found.name: found for found in map(load_recipe, every)}, 0
    for name in recipe_names():
        shipped = load_recipe(f"{name}/{variant}" if variant else name)
        if shipped.start in (None, RANDOM):
            dropped = load_recipe(name).start is not None
            assert dropped == (f"{name}/{variant}" in NEW_WEIGHTS), name
            continue
        starts += 1
        run = Run(shipped, shipped.network, next(iter(shipped.optimizer)), 0)
        network = data.describe_network(run.network, background=False)
        if ":" in shipped.start:
            with raises(DataError, where="published", naming="torchvision:resnet50 IMAGENET1K_V1"):
                open_start(run, network, data, tmp_path, None)
        else:
            first = Run(by_name[shipped.start], shipped.network, run.optimizer, 0)
            with raises(DataError, where=str(tmp_path), naming=first.name):
                open_start(run, network, data, tmp_path, None)
    assert starts >= 5


def begun(data: TrainingData, folder: Path, start: str, **changes: Any) -> tuple[Trainer, dict[str, Any]]:
    toy = recipe(**changes)
    run = Run(toy, toy.network, "adam", 0)
    network = data.describe_network(toy.network, background=False)
    opened = open_start(run, network, data, folder, start)
    assert opened is not None
    return Trainer(run, DeviceData.from_data(data, CPU.device), CPU, opened), opened.record


def digest(state: dict[str, Tensor]) -> str:
    total = hashlib.sha256()
    for name in sorted(state):
        value = state[name].contiguous()
        total.update(f"\x1e{name}\x1f{value.dtype}\x1f{tuple(value.shape)}\x1f".encode())
        total.update(value.numpy().tobytes())
    return total.hexdigest()


@pytest.fixture
def published() -> dict[str, Tensor]:
    torchvision = pytest.importorskip("torchvision")
    torch.manual_seed(5)
    module: nn.Module = torchvision.models.resnet18(weights=None)
    return {
        name: t + torch.rand_like(t) if t.is_floating_point() else t
        for name, t in module.state_dict().items()
    }


@pytest.mark.parametrize(
    ("start", "prefix"),
    [
        ("file", ""),
        ("file", "module."),
        ("file#ema", "model."),
        (f"{TORCHVISION}/IMAGENET1K_V1", ""),
        ("timm:resnet18", ""),
    ],
)
def test_published_weights_and_files_are_loaded_but_for_the_classifier(
    start: str,
    prefix: str,
    published: dict[str, Tensor],
    data: TrainingData,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", lambda *a, **k: published)
    if start.startswith("timm:"):
        pytest.importorskip("timm")
        monkeypatch.setattr("timm.models._builder.load_state_dict_from_hf", lambda *a, **k: {**published})
    state, source = {f"{prefix}{name}": value for name, value in published.items()}, start
    if start.startswith("file"):
        key = start.partition("#")[2]
        torch.save({key: state, "other": state} if key else state, tmp_path / "w.pth")
        start = f"{tmp_path / 'w.pth'}{'#' if key else ''}{key}"
        source = f"w.pth{'#' if key else ''}{key}"
    trainer, record = begun(data, tmp_path, start, network=TORCHVISION)
    assert record == {"source": source, "sha256": digest(state)}
    assert trainer.new_classifier
    own = trainer.module.state_dict()
    assert own["fc.weight"].shape == (3, 512)
    assert all(torch.equal(own[name], value) for name, value in published.items() if name[:3] != "fc.")
    if prefix:
        return
    (trained,) = train(data, tmp_path, series=start, network=TORCHVISION, epochs=1)
    assert load_checkpoint(trained.folder).metadata["start"] == record


def test_a_run_is_loaded_whole_and_without_its_classifier_for_other_classes(
    data: TrainingData, tmp_path: Path
) -> None:
    (first,) = train(data, tmp_path, epochs=1)
    old = load_checkpoint(first.folder).state_dict()
    for start in ("toy-tiny-cnn", f"trained:{first.folder}", f"{first.folder}/model.pt"):
        trainer, record = begun(data, tmp_path / "blobs", start)
        pt = hashlib.sha256((first.folder / "model.pt").read_bytes()).hexdigest()
        assert record == {"run": "toy-tiny-cnn-s0", "sha256": pt}
        assert not trainer.new_classifier
        assert all(torch.equal(value, old[name]) for name, value in trainer.module.state_dict().items())
    others = replace(data, classes=("light", "dark", "middle"))
    changed: list[dict[str, Any]] = [{}, {"method": {"name": "mos"}}, {"method": {"name": "cider"}}]
    for changes, start in product(changed, (f"trained:{first.folder}", f"{first.folder}/model.pt")):
        trainer, _ = begun(others, tmp_path, start, **changes)
        head = f"{trainer.model.head_name}."
        own = trainer.module.state_dict()
        assert trainer.new_classifier
        kept = {name for name in own if not name.startswith(head)}
        assert kept == {name for name in old if not name.startswith(head)}
        assert all(torch.equal(own[name], old[name]) for name in kept)
        assert not any(torch.equal(own[n], old[n]) for n in old if n.startswith(head) and n in own)


def test_the_classifier_is_kept_for_the_same_classes_alone(data: TrainingData) -> None:
    manifest = load_manifest("openood-imagenet1k")
    rows = manifest.classes.select(["role", "label", "wnids", "name"]).to_pylist()
    labelled = sorted((r["label"], r["wnids"][0], r["name"]) for r in rows if r["role"] == "id")
    wnids, names = ([row[column] for row in labelled] for column in (1, 2))
    thousand = replace(data, classes=tuple(names), manifest=manifest)
    assert starting._are_classes(wnids, thousand)
    assert not starting._are_classes([wnids[1], wnids[0], *wnids[2:]], thousand)
    assert not starting._are_classes(wnids[:200], thousand)


def test_a_run_with_another_start_is_named_by_it(tmp_path: Path) -> None:
    torch.save({"w": torch.zeros(1)}, tmp_path / "w.pth")
    mos, plain = load_recipe("mos/imagenet"), load_recipe("openood-short")
    given = {"random": "random", f"{tmp_path}/w.pth": "w-pth", f"trained:{tmp_path}/r-s0": "r-s0"}
    (tmp_path / "q-s0").mkdir()
    for file in ("model.pt", "model.json"):
        (tmp_path / "q-s0" / file).touch()
    given[f"{tmp_path}/q-s0/model.pt"] = "q-s0"
    for start, name in given.items():
        changed = with_start(mos, start)
        assert changed.name == f"mos-imagenet-from-{name}"
        assert len(changed.differs) == len(mos.differs) + 1
        assert str(tmp_path) not in str(changed.as_dict())
    assert with_start(plain, "random") is plain
    assert with_start(mos, "openood-imagenet") is mos


def test_other_networks_and_files_are_refused(
    published: dict[str, Tensor], data: TrainingData, tmp_path: Path
) -> None:
    torch.save(published, tmp_path / "w.pth")
    torch.save({"net": nn.Linear(2, 2)}, tmp_path / "code.pth")
    torch.save({n: t for n, t in published.items() if "layer4.1" not in n}, tmp_path / "part.pth")
    with raises(DataError, where="w.pth", naming="layer1.2.bn1.bias"):
        begun(data, tmp_path, f"{tmp_path}/w.pth", network="torchvision:resnet34")
    with raises(DataError, where="part.pth", naming="layer4.1.bn1.bias"):
        begun(data, tmp_path, f"{tmp_path}/part.pth", network=TORCHVISION)
    with raises(UnsafeDataError, where="code.pth"):
        begun(data, tmp_path, f"{tmp_path}/code.pth", network=TORCHVISION)
    with raises(DataError, where="none.pth"):
        begun(data, tmp_path, f"{tmp_path}/none.pth", network=TORCHVISION)


def test_frozen_layers_keep_their_weights(data: TrainingData, tmp_path: Path) -> None:
    (first,) = train(data, tmp_path, epochs=1)
    (second,) = train(data, tmp_path, series="toy-tiny-cnn", name="top", trained_layers=["dense"])
    old, new = (dict(load_checkpoint(t.folder).named_parameters()) for t in (first, second))
    assert {n.partition(".")[0] for n in old if not torch.equal(old[n], new[n])} == {"dense", "head"}
    with raises(DataError, naming=("dens", "dense")):
        train(data, tmp_path, name="typo", trained_layers=["dens"])


def test_a_module_given_in_python_is_its_own_start() -> None:
    module = nn.Sequential(nn.Flatten(), nn.Linear(192, 6))
    short: dict[str, Any] = {"epochs": 1, "images": 60, "device": "cpu"}
    assert load_recipe("ish/short").start
    network: Any = loaders.train(module, "digits", recipe="ish/short", **short)
    moved = (network.network[1].weight - module[1].weight).norm() / module[1].weight.norm()
    assert 0 < float(moved.detach()) < 0.5
    with raises(DataError, naming="openood-short-plain-cnn-s0"):
        loaders.train("plain-cnn", "digits", recipe="ish/short", **short)
