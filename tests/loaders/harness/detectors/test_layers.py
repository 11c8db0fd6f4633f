"""Detectors over several layers, from pixels and from arrays, against the definitions and pytorch-ood."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from torch import nn

from loaders.harness.data.arrays import Array, Arrays
from loaders.harness.detectors import ConfiguredDetector, get_detector, list_detectors, parse_detectors
from loaders.harness.evaluation.fitting import fit_data, fit_on_benchmark
from loaders.harness.evaluation.model_evaluation import evaluate
from loaders.harness.evaluation.scoring import confidence, fit, predicted
from loaders.harness.extraction.extractor import BenchmarkImages, Extractor
from loaders.harness.extraction.outputs import Store
from loaders.harness.models.hooks import as_maps, find_stages, in_layout_of
from loaders.harness.models.loading import load_model
from loaders.harness.probes.stages import gram_rows, without_first_rank
from loaders.harness.results.rows_from_scores import EvaluatedSets
from tests.loaders.harness.detectors.separable import images
from tests.loaders.harness.models.networks import small_network
from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.resolve import load_manifest

TRAIN, VAL, KNOWN = images(800, seed=1), images(120, seed=2), images(200, seed=3)
OUTSIDE = images(100, seed=5, unknown=True)
SPLITS = {"train": TRAIN, "val": VAL, "ood-val": OUTSIDE}
DIGITS = load_manifest("digits")
SETS = EvaluatedSets.from_manifest(DIGITS)


class Residual(nn.Module):
    """Two resolutions of maps, within containers, and a head behind a pooling that has no module."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        first = nn.Sequential(nn.Conv2d(4, 6, 3, padding=1), nn.ReLU(inplace=True))
        second = nn.Sequential(nn.Conv2d(6, 8, 3, stride=2, padding=1), nn.ReLU())
        self.layers = nn.Sequential(first, second)
        self.head = nn.Linear(8, 6)

    def forward(self, x: Any) -> Any:
        return self.head(self.layers(torch.relu(self.stem(x))).mean((2, 3)))


def run_of(network: Any, folder: Path, **options: Any) -> Any:
    images = BenchmarkImages(DIGITS)
    return Extractor(load_model(network, device="cpu"), images, Store(folder), **options).run()


def scored(chosen: ConfiguredDetector, run: Any, group: str = "digits-6-9") -> Array:
    head = run.group("test", group, chosen.needs).head
    fitted = fit_on_benchmark(chosen, SETS, run, head)
    seen = run.group("test", group, {*chosen.needs, *fitted.probes})
    return confidence(fitted, seen.arrays)


def pixels(group: str, split: str = "test") -> Any:
    data = BenchmarkImages(DIGITS).group(split, group)
    return torch.stack([torch.from_numpy(np.array(image)) for image, _ in data]).permute(0, 3, 1, 2) / 255


def labels(group: str, split: str) -> Any:
    return torch.tensor([label for _, label in BenchmarkImages(DIGITS).group(split, group)])


def test_stages_are_the_last_layers_of_each_resolution() -> None:
    x = torch.rand(2, 3, 8, 8)
    assert find_stages(Residual().eval(), x, "head") == ("layers.0", "layers")
    assert find_stages(small_network().eval(), x, "6") == ("2", "3")
    dense = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), nn.ReLU(), nn.Linear(16, 6))
    assert find_stages(dense.eval(), x, "3") == ("2",)
    headlong = nn.Sequential(nn.Flatten(), nn.Linear(192, 6)).eval()
    assert find_stages(headlong, x, "1") == ()
    model = load_model(headlong, device="cpu")
    model.prepare(x)
    with raises(DataError, where="Sequential", naming="head"):
        model.layers(x, ["stages"])


def test_stages_of_known_architectures() -> None:
    timm = pytest.importorskip("timm", reason="timm is not installed")
    x = torch.rand(1, 3, 64, 64)
    resnet = timm.create_model("resnet18", pretrained=False).eval()
    assert find_stages(resnet, x, "fc")[-4:] == ("layer1", "layer2", "layer3", "layer4")
    swin = timm.create_model("swin_tiny_patch4_window7_224", pretrained=False, img_size=64).eval()
    assert len(find_stages(swin, x, "head.fc")) == 4


@pytest.mark.parametrize("shape", [(2, 5, 3, 3), (2, 3, 3, 5), (2, 4, 3, 5), (2, 7, 5), (2, 5)])
def test_maps_have_channels_first_whatever_the_layout(shape: tuple[int, ...]) -> None:
    output = torch.arange(float(np.prod(shape))).reshape(shape)
    maps = as_maps(output)
    expected = {(2, 5, 3, 3): 5, (2, 3, 3, 5): 5, (2, 4, 3, 5): 4, (2, 7, 5): 5, (2, 5): 5}
    assert maps.shape[1] == expected[shape]
    assert torch.equal(in_layout_of(maps, output), output)


def test_gram_rows_are_sums_of_gram_matrices() -> None:
    maps = torch.randn(3, 5, 7, dtype=torch.float64)
    for p in (1, 2, 3, 4):
        power = maps**p
        sums = (power @ power.transpose(1, 2)).sum(2)
        expected = sums.sign() * sums.abs() ** (1 / p)
        torch.testing.assert_close(gram_rows(maps, 4)[:, p - 1], expected)
    assert bool(torch.isfinite(gram_rows(1e6 * torch.rand(1, 4, 9), 9)).all())


@pytest.mark.parametrize("shape", [(3, 8, 4), (3, 4, 9)])
def test_the_first_rank_is_taken_off(shape: tuple[int, ...]) -> None:
    maps = torch.randn(shape, dtype=torch.float64)
    u, s, v = torch.linalg.svd(maps, full_matrices=False)
    s[:, 0] = 0
    torch.testing.assert_close(without_first_rank(maps), u @ torch.diag_embed(s) @ v)
    with raises(DataError, where="rankfeat"):
        without_first_rank(torch.randn(2, 8, 1))


def test_gram_from_pixels_is_that_of_pytorch_ood(tmp_path: Path) -> None:
    """Of one layer, as theirs takes the scale of a layer from training images drawn at random."""
    theirs = pytest.importorskip("pytorch_ood.detector", reason="pytorch-ood is not installed")
    network = Residual().eval()
    x = pixels("digits-0-5", "train")
    with torch.no_grad():
        network.head.bias -= network(x).mean(0)  # so that it does not predict one class for all
        said = network(x).argmax(1)
    (chosen,) = parse_detectors("gram[powers=3,layers=layers]")
    ours = scored(chosen, run_of(network, tmp_path))

    def maps(x: Any) -> Any:
        return network.layers(torch.relu(network.stem(x)))

    detector = theirs.Gram(lambda x: network.head(x.mean((2, 3))), [maps], 6, [1, 2, 3])
    detector.validation_fraction = 0.0
    missing = [k for k in range(6) if not (said == k).any()]  # theirs wants some of every class
    assert len(missing) < 4
    detector.fit([(x, said), *((x, torch.full((len(x),), k)) for k in missing)])
    reference = -detector.predict(pixels("digits-6-9")).numpy()
    assert stats.spearmanr(ours, reference).statistic == pytest.approx(1, abs=1e-4)


def test_gram_of_a_class_never_predicted_has_the_range_of_all() -> None:
    logits = np.asarray(TRAIN["logits"]).copy()
    logits[:, 2] = -9
    (chosen,) = parse_detectors("gram")
    state = fit(chosen, {"train": TRAIN.replace(logits=logits), "val": VAL}).state["early"]
    np.testing.assert_array_equal(state.least[2], np.delete(state.least, 2, 0).min(axis=0))
    np.testing.assert_array_equal(state.greatest[2], np.delete(state.greatest, 2, 0).max(axis=0))


def test_rankfeat_from_pixels_is_that_of_pytorch_ood(tmp_path: Path) -> None:
    theirs = pytest.importorskip("pytorch_ood.detector", reason="pytorch-ood is not installed")
    network = Residual().eval()
    (chosen,) = parse_detectors("rankfeat[layers=layers]")
    ours = scored(chosen, run_of(network, tmp_path))

    def maps(x: Any) -> Any:
        return network.layers(torch.relu(network.stem(x)))

    detector = theirs.RankFeat(maps, lambda x: network.head(x.mean((2, 3))))
    reference = -detector.predict(pixels("digits-6-9")).detach().numpy()
    np.testing.assert_allclose(ours, reference, rtol=1e-4)


def test_rankfeat_averages_the_last_two_stages_and_predicts_from_them(tmp_path: Path) -> None:
    run = run_of(Residual(), tmp_path)
    each = [f"rankfeat[of={of}]/logits" for of in ("stages", "layers.0", "layers")]
    found = run.group("test", "digits-6-9", each).arrays
    both, first, second = (np.asarray(found[name]) for name in each)
    np.testing.assert_allclose(both, (first + second) / 2, rtol=1e-5, atol=1e-6)
    own = predicted(fit(get_detector("rankfeat")), Arrays({each[0]: both}))
    np.testing.assert_array_equal(own["logits"][:], both)


def test_mahalanobis_of_layers_is_that_of_pytorch_ood() -> None:
    theirs = pytest.importorskip("pytorch_ood.detector", reason="pytorch-ood is not installed")
    chosen = get_detector("mdsens", eps=0.0)
    fitted = fit(chosen, {"train": TRAIN, "val": VAL}).calibrated(VAL)
    unit = "stages[of=stages,statistic=mean]"

    def layers(data: Arrays) -> list[Any]:
        return [torch.from_numpy(np.array(view)) for view in data.under(unit).values()]

    known = torch.from_numpy(np.array(TRAIN["labels"]))
    spreads = [spread for _, spread in fitted.state.usual.values()]
    weights = [2 * TRAIN.n / spread for spread in spreads]  # theirs are halves, of scatters and not variances
    detector = theirs.MultiMahalanobis([nn.Identity()] * len(spreads), weights).fit_structured(
        layers(TRAIN), known
    )
    reference = -detector.predict_structured(layers(KNOWN)).numpy()
    ours = confidence(fitted, KNOWN)
    np.testing.assert_allclose(ours - ours.mean(), reference - reference.mean(), rtol=1e-3, atol=1e-2)


def test_a_step_uses_the_fitted_gaussians_and_raises_the_confidence(tmp_path: Path) -> None:
    """A probe that uses fitted state, from pixels, against the definition in float64."""
    network = Residual()
    run = run_of(network, tmp_path, batch_size=64)
    chosen = get_detector("mdsens", eps=0.01, layers="layers")
    fitted = fit_on_benchmark(chosen, SETS, run, None)
    (probe,) = fitted.probes
    stepped = run.group("test", "digits-6-9", {*chosen.needs, probe}).arrays
    gaussians = {k: torch.from_numpy(v).double() for k, v in fitted.state.arrays.items()}
    network.double().eval()
    x = pixels("digits-6-9")[:50].double().requires_grad_(True)

    def at(inputs: Any) -> Any:
        features = network.layers(torch.relu(network.stem(inputs))).mean((2, 3))
        points = (features - gaussians["layers/centre"]) @ gaussians["layers/whiten"]
        return -torch.cdist(points, gaussians["layers/means"]).square().amin(1)

    before = at(x)
    (gradient,) = torch.autograd.grad(before.sum(), x)
    after = at(x + 0.01 * gradient.sign()).detach().numpy()
    name = f"mahalanobis_step[state={fitted.state.arrays.key},eps=0.01]/layers"
    np.testing.assert_allclose(np.asarray(stepped[name])[:50], after, rtol=1e-3)
    assert (after > before.detach().numpy()).mean() > 0.95


def test_oodl_is_that_of_scikit_learn_on_the_layer_that_tells_validation_images_apart() -> None:
    fitted = fit(get_detector("oodl", nu=0.05), SPLITS)
    unit = "stages[of=stages,statistic=sum]"
    found = {}
    for layer in ("early", "late"):
        train, known = (np.asarray(d.under(unit)[layer], dtype=np.float64) for d in (TRAIN, KNOWN))
        scaler = StandardScaler().fit(train)
        machine = OneClassSVM(nu=0.05, kernel="rbf", gamma="scale").fit(scaler.transform(train))
        found[layer] = machine.decision_function(scaler.transform(known))
    np.testing.assert_allclose(confidence(fitted, KNOWN), found[fitted.state.layer], rtol=0.05, atol=0.05)
    assert stats.spearmanr(confidence(fitted, KNOWN), found[fitted.state.layer]).statistic > 0.99
    noise = np.random.default_rng(0)
    blind = {
        split: data.replace(**{f"{unit}/late": noise.normal(size=(data.n, 3)).astype(np.float32)})
        for split, data in SPLITS.items()
    }
    assert fit(get_detector("oodl"), blind).state.layer == "early"


@pytest.mark.parametrize("nu", [0.05, 0.5])
def test_oodl_above_a_size_approximates_the_exact_machine(nu: float) -> None:
    exact = fit(get_detector("oodl", nu=nu), SPLITS)
    near = fit(get_detector("oodl", nu=nu, components=400, above=TRAIN.n - 1), SPLITS)
    assert near.state.layer == exact.state.layer
    both = [np.concatenate([confidence(f, data) for data in (KNOWN, OUTSIDE)]) for f in (exact, near)]
    assert stats.spearmanr(*both).statistic > 0.98
    again = fit(get_detector("oodl", nu=nu, components=400, above=0), SPLITS)
    np.testing.assert_array_equal(confidence(again, KNOWN), confidence(near, KNOWN))
    below = fit(get_detector("oodl", nu=nu, components=400, above=TRAIN.n), SPLITS)
    np.testing.assert_array_equal(confidence(below, KNOWN), confidence(exact, KNOWN))
    with raises(DataError, naming="components"):
        fit(get_detector("oodl", components=TRAIN.n + 1, above=0), SPLITS)


def test_oodl_learns_from_validation_images_if_asked() -> None:
    chosen = get_detector("oodl", nu=0.05, images="val")
    assert chosen.splits == ("val", "ood-val")
    found = fit(chosen, {"val": VAL, "ood-val": OUTSIDE})
    due = fit(get_detector("oodl", nu=0.05), {**SPLITS, "train": VAL})
    np.testing.assert_array_equal(confidence(found, KNOWN), confidence(due, KNOWN))


NEEDS_OOD = ("oodl", "opengan")
NEEDS_MODEL = ("mcm", "neglabel", "output")  # a zero-shot one, or one of a training method


@pytest.mark.parametrize("name", [n for n in list_detectors() if n not in NEEDS_OOD + NEEDS_MODEL])
def test_every_detector_from_pixels_whatever_the_batches(name: str, tmp_path: Path) -> None:
    chosen = get_detector(name)
    if chosen.spec.models == "many":
        pytest.skip("joins models: see test_model_evaluation")
    found = [
        scored(chosen, run_of(small_network(), tmp_path / str(size), batch_size=size)) for size in (128, 17)
    ]
    spread = float(found[0].max() - found[0].min())
    assert spread > 0
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-4 * spread)


def test_what_needs_layers_is_left_out_of_a_preset_for_a_function() -> None:
    model = load_model(lambda x: (x.flatten(1), x.flatten(1)[:, :6]), device="cpu", model_id="f")
    found = evaluate(model, "digits", "preset:openood", groups=["uniform"])
    assert {"gram", "mdsens", "rankfeat"}.isdisjoint(found.detectors)
    assert any("gram is left out: it needs layers of the network" in note for note in found.about.notes)


def test_fitting_on_several_splits_gives_each_by_its_name(tmp_path: Path) -> None:
    chosen = get_detector("gram")
    data = fit_data(chosen, SETS, run_of(small_network(), tmp_path))
    assert isinstance(data, dict)
    assert {split: one.n for split, one in data.items()} == {"train": 603, "val": 120}
    oodl = get_detector("oodl")
    with raises(DataError, where="digits", naming="oodl"):
        fit_data(oodl, SETS, run_of(small_network(), tmp_path))
