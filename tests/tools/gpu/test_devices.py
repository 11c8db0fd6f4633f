"""Training, extraction and probes on every device at hand: what only a GPU reaches; `make gpu` runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed (extra [torch])")

from loaders.harness import evaluate  # noqa: E402 - they import torch
from loaders.harness.extraction.activations import extract  # noqa: E402 - imports torch
from loaders.harness.extraction.outputs import Store  # noqa: E402 - imports torch
from loaders.harness.models.loading import load_model  # noqa: E402 - imports torch
from loaders.harness.probes.stages import without_first_rank  # noqa: E402 - imports torch
from loaders.harness.training.choices import UPDATE_RULES  # noqa: E402 - imports torch
from loaders.harness.training.data import DeviceData, load_training_data  # noqa: E402 - imports torch
from loaders.harness.training.machine import choose_machine, reproducible  # noqa: E402 - imports torch
from loaders.harness.training.methods import list_methods  # noqa: E402 - imports torch
from loaders.harness.training.methods.image_operations import crop_and_flip  # noqa: E402 - imports torch
from loaders.harness.training.networks import build_network  # noqa: E402 - imports torch
from loaders.harness.training.recipe import load_recipe  # noqa: E402 - imports torch
from loaders.harness.training.runs import plan_runs, train_runs  # noqa: E402 - imports torch
from loaders.harness.training.steps import REPLAYED_NETWORKS  # noqa: E402 - imports torch
from loaders.harness.training.trainer import Trainer  # noqa: E402 - imports torch
from tests.imported import Imported  # noqa: E402 - imported with them
from tests.loaders.harness.long_tables import long_scores  # noqa: E402 - after importorskip
from tests.loaders.harness.training.methods.stand_ins import recipe_of, small_data, spec_of  # noqa: E402 - imports torch
from tests.raising import raises  # noqa: E402 - after importorskip
from wordnet_splits.base.errors import DataError  # noqa: E402 - imports torch
from wordnet_splits.base.progress import Silent  # noqa: E402 - imports torch

benches = Imported("tools.gpu.benches")
HAS_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=HAS_CUDA)]
PROBES = ("odin[T=10,eps=0.01]", "stages", "gram[powers=2]", "dropout[passes=3]")
DETECTORS = "msp,knn,mahalanobis,vim,odin,gram,rankfeat,mdsens,mc_dropout,gradnorm,react"
pytestmark = pytest.mark.parametrize("device", DEVICES)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trainer(device: str, rule: str = "sgd", precision: str = "float32", network: str = "tiny-cnn") -> Trainer:
    data = load_training_data("digits", images=60)
    given = {"sgd": {"rule": rule, "lr": 0.01}}
    recipe = load_recipe("digits-demo")
    recipe = type(recipe).model_validate({**dict(recipe), "optimizer": given, "augment": "crop4-flip"})
    machine = choose_machine(device, precision)
    (run,) = plan_runs(recipe, network=network)
    return Trainer(run, DeviceData.from_data(data, machine.device), machine)


def weights(one: Trainer) -> dict[str, Any]:
    return one.state()["weights"]


@pytest.mark.parametrize("rule", sorted(UPDATE_RULES))
def test_an_epoch_repeats_and_goes_on_from_its_state(device: str, rule: str, tmp_path: Path) -> None:
    with reproducible(torch.device(device)), Silent().task("", 0) as task:
        whole, first, second = (trainer(device, rule) for _ in range(3))
        for epoch in range(2):
            whole.train_epoch(epoch, task)
        first.train_epoch(0, task)
        torch.save(first.state(), tmp_path / "state.pt")
        second.restore(torch.load(tmp_path / "state.pt", map_location="cpu", weights_only=True))
        second.train_epoch(1, task)
        for name, value in weights(whole).items():
            assert torch.equal(value, weights(second)[name]), name


@pytest.mark.parametrize("name", list_methods())
def test_every_training_method_trains_resumes_and_scores(device: str, name: str, tmp_path: Path) -> None:
    spec, machine = spec_of(name, tmp_path), choose_machine(device, "float32")
    (run,) = plan_runs(recipe_of(spec))
    with reproducible(machine.device):
        data = DeviceData.from_data(small_data(), machine.device)
        whole, first, second = (Trainer(run, data, machine) for _ in range(3))
        for epoch in range(2):
            whole.train_epoch(epoch, Silent())
        first.train_epoch(0, Silent())
        torch.save(first.state(), tmp_path / "state.pt")
        second.restore(torch.load(tmp_path / "state.pt", map_location="cpu", weights_only=True))
        second.train_epoch(1, Silent())
        for name, value in weights(whole).items():
            assert torch.equal(value, weights(second)[name]), name
    images = torch.randn(6, 3, 8, 8, device=machine.device)
    whole.module.eval()
    with torch.no_grad():
        for output in whole.method.outputs and whole.method.confidences(whole.model, images).values():
            assert output.shape == (6,)
            assert output.device.type == machine.device.type
            assert bool(output.isfinite().all())


@pytest.mark.parametrize("network", REPLAYED_NETWORKS)
@pytest.mark.parametrize("name", ["softmax", "augmix", "crl", "edl"])
def test_a_replayed_graph_gives_the_bytes_of_the_steps(
    device: str, name: str, network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = choose_machine(device, "float32")
    (run,) = plan_runs(recipe_of(name), network=network)
    with reproducible(machine.device):
        data = DeviceData.from_data(small_data(size=16), machine.device)
        replayed = Trainer(run, data, machine)
        assert replayed.replays == (device == "cuda")
        with monkeypatch.context() as patch:
            patch.setattr("loaders.harness.training.trainer.is_replayable", lambda method, network: False)
            plain = Trainer(run, data, machine)
        for epoch in range(3):
            rows = [trainer.train_epoch(epoch, Silent()) for trainer in (plain, replayed)]
            assert rows[0] == rows[1]
    for key, value in weights(plain).items():
        assert torch.equal(value, weights(replayed)[key]), key


@pytest.mark.parametrize("precision", ["float32", "bf16", "fp16"])
def test_every_precision_learns(device: str, precision: str, tmp_path: Path) -> None:
    if device == "cpu" and precision == "fp16":
        with raises(DataError, naming="fp16"):
            choose_machine(device, precision)
        return
    recipe = load_recipe("digits-demo").with_epochs(3)
    machine = choose_machine(device, precision)
    (trained,) = train_runs(plan_runs(recipe), load_training_data("digits", images=300), tmp_path, machine)
    history = trained.metadata["history"]
    assert history[-1]["loss"] < history[0]["loss"]
    assert trained.metadata["machine"]["precision"] == precision


def test_crops_are_those_of_the_cpu(device: str) -> None:
    images = torch.randint(0, 256, (50, 3, 8, 8), dtype=torch.uint8)
    here = crop_and_flip(images.to(device), torch.Generator().manual_seed(3)).cpu()
    assert torch.equal(here, crop_and_flip(images, torch.Generator().manual_seed(3)))


@pytest.mark.parametrize("network", ["resnet20-dropout", "small-cnn"])
def test_activations_and_probes_are_those_of_the_cpu(device: str, network: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = build_network(network, 6, size=(8, 8)).eval()
    data = benches.RandomImages(96, 8)
    there, here = (
        extract(
            load_model(module, device=where),
            data,
            Store(tmp_path / str(n)),
            probes=PROBES,
            batch_size=n,
            transform=benches.NORMALISED,
        ).arrays
        for where, n in (("cpu", 64), (device, 50))  # batches of another size, too
    )
    assert set(there) == set(here)
    for name in there:
        found, expected = (np.asarray(arrays[name], np.float64) for arrays in (here, there))
        if name.startswith("odin"):  # the sign of a gradient near zero may differ: in few logits, and little
            assert np.quantile(np.abs(found - expected), 0.95) < 1e-2, name
        else:
            least = 2e-4 * np.abs(expected).max()
            np.testing.assert_allclose(found, expected, rtol=2e-3, atol=least, err_msg=name)


def test_the_first_rank_is_taken_off(device: str) -> None:
    maps = torch.randn(4, 6, 9, generator=torch.Generator().manual_seed(1)).to(device)
    u, s, v = torch.linalg.svd(maps.double(), full_matrices=False)
    expected = maps.double() - s[:, :1, None] * u[:, :, :1] * v[:, :1]
    assert torch.allclose(without_first_rank(maps).double(), expected, atol=1e-5)


def test_detectors_of_every_kind_score(device: str) -> None:
    torch.manual_seed(0)
    module = build_network("small-cnn", 6, size=(8, 8)).eval()
    results = evaluate(module, "digits", DETECTORS, groups=["uniform"], device=device)
    scores = long_scores(results).to_pandas()
    assert scores["detector"].nunique() == DETECTORS.count(",") + 1
    assert np.isfinite(scores["confidence"]).all()


def test_labels_of_a_loader_may_be_on_the_device(device: str) -> None:
    labels = torch.arange(8, device=device) % 6
    known, far = ([(torch.rand(8, 3, 8, 8, device=device), labels) for _ in range(2)] for _ in range(2))
    module = build_network("small-cnn", 6, size=(8, 8)).eval()
    results = evaluate(module, sets={"id": known, "far": far}, detectors="msp", device=device)
    assert {row["role"] for row in results.to_pandas().to_dict("records")} >= {"far"}
