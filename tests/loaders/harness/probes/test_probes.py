"""Probes: ODIN against the formula in float64, layer statistics against the layer, names and errors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import nn

from loaders import UnknownDetectionSet, evaluate
from loaders.harness.detectors.logits import ODIN
from loaders.harness.extraction.activations import extract
from loaders.harness.extraction.forward import image_generator
from loaders.harness.extraction.outputs import Store
from loaders.harness.models.class_map import ClassMap
from loaders.harness.models.hooks import capture_outputs
from loaders.harness.models.loading import load_model
from loaders.harness.models.model import Model
from loaders.harness.models.transforms import Transform, evaluation_transform, to_uint8
from loaders.harness.probes import (
    PROBES,
    Dropout,
    LayerStatistic,
    Odin,
    get_probe,
    list_probes,
    parse_probe,
    probe_name,
    register_probe,
    restrict_to_columns,
)
from tests.loaders.harness.long_tables import long_scores
from tests.raising import raises
from wordnet_splits.base.errors import DataError, SplitsError, UnknownNameError, UnusableError

from ..models.networks import small_network

MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.3, 0.4)
NORMALISED = evaluation_transform("none", MEAN, STD)


def images(data: UnknownDetectionSet, n: int) -> Any:
    return torch.stack([NORMALISED(data[i][0]) for i in range(n)])


def odin_by_the_formula(network: Any, x: Any, T: float, eps: float, columns: list[int] | None = None) -> Any:
    """x' = x - eps sign(-grad) / std in float64, the gradient by central differences, image by image."""
    network = network.double().eval()
    out = []
    for image in x.double():
        flat = image.reshape(-1)

        def peak(value: Any, shape: Any = image.shape, label: int | None = None) -> tuple[float, int]:
            with torch.no_grad():
                logits = network(value.reshape(1, *shape))[0]
            chosen = logits if columns is None else logits[columns]
            label = int(chosen.argmax()) if label is None else label
            return float(torch.log_softmax(chosen / T, 0)[label]), label

        _, label = peak(flat)
        step, gradient = 1e-6, torch.zeros_like(flat)
        for i in range(len(flat)):
            moved = flat.clone()
            moved[i] += step
            above = peak(moved, label=label)[0]
            moved[i] -= 2 * step
            gradient[i] = above - peak(moved, label=label)[0]
        gradient = torch.where(gradient.abs() < 1e-13, 0, gradient).reshape(image.shape)
        std = torch.tensor(STD, dtype=torch.float64).view(3, 1, 1)
        moved_image = image - eps * torch.sign(-gradient) / std
        with torch.no_grad():
            out.append(network(moved_image[None])[0])
    return torch.stack(out).numpy()


@pytest.mark.parametrize("columns", [None, (0, 2, 5)])
def test_odin_is_the_formula(near: UnknownDetectionSet, columns: tuple[int, ...] | None) -> None:
    x = images(near, 6)
    model = load_model(small_network(), device="cpu")
    with model.evaluating(NORMALISED):
        ours = Odin(T=2.0, eps=0.05, columns=columns)(model, x)["logits"].numpy()
        unmoved = model.forward(x)[1].detach().numpy()
    wanted = odin_by_the_formula(small_network(), x, 2.0, 0.05, None if columns is None else list(columns))
    np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-4)
    assert np.abs(ours - unmoved).max() > 0.01


def test_the_step_raises_the_confidence_of_the_predicted_class(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    found = extract(
        load_model(small_network(), device="cpu"),
        near,
        Store(tmp_path, 300),
        probes=["odin[T=1,eps=0.01]", Odin(1, 0.0)],
    )
    before, after = found.logits[:], found.arrays["odin[T=1,eps=0.01]/logits"][:]
    label = before.argmax(1)[:, None]
    gain = [
        np.take_along_axis(torch.log_softmax(torch.tensor(z), 1).numpy(), label, 1) for z in (after, before)
    ]
    assert (gain[0] > gain[1]).mean() > 0.99
    np.testing.assert_array_equal(found.arrays["odin[T=1,eps=0]/logits"][:], before)


def test_a_step_does_not_depend_on_the_batch_or_on_other_probes(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    model = load_model(small_network(), device="cpu")
    alone = extract(model, near, Store(tmp_path / "a"), probes=["odin[T=10,eps=0.02]"], batch_size=7)
    names = ["odin[T=1000,eps=0.02]", "odin[T=10,eps=0.01]", "odin[T=10,eps=0.02]", "layer[layer=2]"]
    together = extract(model, near, Store(tmp_path / "b"), probes=names, batch_size=7)
    name = "odin[T=10,eps=0.02]/logits"
    np.testing.assert_array_equal(alone.arrays[name][:], together.arrays[name][:])
    np.testing.assert_array_equal(alone.logits[:], together.logits[:])
    whole = extract(model, near, Store(tmp_path / "c"), probes=["odin[T=10,eps=0.02]"], batch_size=714)
    np.testing.assert_allclose(whole.arrays[name][:], alone.arrays[name][:], rtol=1e-4, atol=1e-4)


def test_probes_of_one_temperature_share_the_gradient(near: UnknownDetectionSet, tmp_path: Path) -> None:
    calls = {"n": 0}

    def network(x: Any) -> tuple[Any, Any]:
        calls["n"] += 1
        features = x.flatten(1)
        return features, features[:, :4] * features[:, 4:8]

    model = load_model(network, device="cpu", model_id="products")
    names = [f"odin[T=10,eps={eps}]" for eps in (0, 0.1, 0.2, 0.3)]
    extract(model, near, Store(tmp_path), probes=names, batch_size=714)
    canary = 2  # computed, then compared
    assert calls["n"] == canary + 1 + 1 + len(names)  # the forward pass, the gradient, a step each


def test_layer_statistics_are_of_the_layer_even_before_a_step_in_place(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    model = load_model(small_network(), device="cpu")
    names = ["layer[layer=1,statistic=mean]", "layer[layer=1,statistic=sum]", "layer[layer=4]"]
    found = extract(model, near, Store(tmp_path, 100), probes=names, transform=NORMALISED)
    network = small_network().eval()
    with torch.no_grad():
        maps = network[:2](images(near, len(near)))
        flat = network[:5](images(near, len(near)))
    assert float(maps.min()) < 0  # the ReLU behind it works in place
    expected = {"mean": maps.mean((2, 3)), "sum": maps.sum((2, 3))}
    for statistic, values in expected.items():
        stored = found.arrays[f"layer[layer=1,statistic={statistic}]/maps"]
        np.testing.assert_allclose(stored[:], values.numpy(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        found.arrays["layer[layer=4,statistic=mean]/maps"][:], flat.numpy(), rtol=1e-4, atol=1e-5
    )


def test_a_layer_is_read_outside_an_extraction_too(near: UnknownDetectionSet) -> None:
    model = load_model(small_network(), device="cpu")
    x = images(near, 3)
    with model.evaluating(NORMALISED):
        assert LayerStatistic("0")(model, x)["maps"].shape == (3, 8)


def test_names_carry_the_parameters_and_are_read_back() -> None:
    assert probe_name(Odin()) == "odin[T=1000,eps=0.0014]"
    assert (
        f"{probe_name(Odin(10, 0.002))}/logits" == ODIN(T=10, eps=0.002).array
    )  # what the detector asks for
    assert parse_probe("odin") == Odin()
    assert parse_probe("odin[eps=0.002,T=10]/logits") == Odin(10, 0.002)
    assert parse_probe("layer[layer=network.2,statistic=sum]") == LayerStatistic("network.2", "sum")
    assert parse_probe(probe_name(Odin(7, 0.5))) == Odin(7, 0.5)
    restricted = restrict_to_columns(Odin(), ClassMap((2, 0), 4))
    assert probe_name(restricted).startswith("odin[T=1000,eps=0.0014,columns=")
    assert restrict_to_columns(Odin(), ClassMap((0, 1, 2), 3)) == Odin()
    assert restrict_to_columns(LayerStatistic("x"), ClassMap((2, 0), 4)) == LayerStatistic("x")
    assert {"odin", "layer"} <= set(list_probes())
    assert list_probes("od*") == ("odin",)


@pytest.mark.parametrize(
    ("text", "error", "where"),
    [
        ("odn", UnknownNameError, None),
        ("odin[t=1]", UnknownNameError, "odin"),
        ("odin[T=hot]", DataError, "odin: T"),
        ("odin[T=0]", DataError, "odin: T"),
        ("odin[eps=-1]", DataError, "odin: eps"),
        ("odin[T]", DataError, "probe"),
        ("odin[T=1", DataError, "probe"),
        ("../odin", UnknownNameError, None),
        ("layer", DataError, "layer"),
        ("layer[layer=1,statistic=max]", DataError, "layer: statistic"),
        ("mahalanobis_step", DataError, "mahalanobis_step"),
    ],
)
def test_a_probe_that_cannot_be_is_refused(text: str, error: type[SplitsError], where: str | None) -> None:
    with pytest.raises(error) as caught:
        parse_probe(text)
    assert caught.value.where == where


def test_errors_of_probes_name_what_is_wrong(near: UnknownDetectionSet, tmp_path: Path) -> None:
    model = load_model(small_network(), device="cpu")
    with raises(UnknownNameError, where="model", naming="conv1"):
        extract(model, near, Store(tmp_path), probes=["layer[layer=conv1]"])
    unknown_std = Transform({"bare": 1}, lambda image: to_uint8(image).float())
    with raises(UnusableError, where="Sequential"):
        extract(model, near, Store(tmp_path), probes=["odin"], transform=unknown_std)
    function = load_model(lambda x: (x.flatten(1), x.flatten(1)[:, :4]), device="cpu", model_id="f")
    with raises(DataError, where="f"):
        extract(function, near, Store(tmp_path), probes=["layer[layer=conv1]"])


def test_a_probe_of_ones_own(near: UnknownDetectionSet, tmp_path: Path) -> None:
    @register_probe("norms")
    @dataclass(frozen=True)
    class Norms:
        p: int = 2

        def __call__(self, model: Model, x: Any) -> dict[str, Any]:
            return {"input": x.flatten(1).norm(p=self.p, dim=1)}

    try:
        found = extract(
            load_model(small_network(), device="cpu"),
            near,
            Store(tmp_path, 300),
            probes=[get_probe("norms", p=1)],
        )
        wanted = torch.stack([to_uint8(near[i][0]) for i in range(len(near))]).double().sum((1, 2, 3)) / 255
        np.testing.assert_allclose(found.arrays["norms[p=1]/input"][:], wanted, rtol=1e-5)
    finally:
        PROBES.remove("norms")
    with raises(SplitsError, where="object"):
        register_probe("bare")(object)


def test_the_class_map_gives_the_probe_made_for_its_columns(
    near: UnknownDetectionSet, tmp_path: Path
) -> None:
    model = load_model(small_network(), device="cpu")
    classes = ClassMap((4, 1, 0), 6)
    probes = [Odin(2, 0.05), restrict_to_columns(Odin(2, 0.05), classes), LayerStatistic("1")]
    found = extract(model, near, Store(tmp_path), probes=probes)
    data = found.data(classes)
    name = "odin[T=2,eps=0.05]/logits"
    mine = found.arrays[f"{probe_name(probes[1])}/logits"][:][:, [4, 1, 0]]
    assert sorted(data) == ["features", "layer[layer=1,statistic=mean]/maps", "logits", name]
    np.testing.assert_array_equal(data[name][:], mine)
    assert not np.array_equal(mine, found.arrays[name][:][:, [4, 1, 0]])
    np.testing.assert_array_equal(found.data()[name][:], found.arrays[name][:])


@dataclass(frozen=True)
class NoisyLogits:
    """The logits of images with noise added, drawn for each image by itself."""

    sd: float = 0.1

    passes: ClassVar[int] = 1
    random: ClassVar[bool] = True

    def __call__(self, model: Model, x: Any, generators: Any) -> dict[str, Any]:
        noise = torch.stack([torch.randn(x.shape[1:], generator=g) for g in generators])
        with torch.no_grad():
            return {"logits": model.forward(x + self.sd * noise)[1]}


def test_dropout_averages_its_passes_whatever_the_batches(near: UnknownDetectionSet, tmp_path: Path) -> None:
    """Against the definition, with the masks drawn outside: the one dropout layer stands before the head."""
    network = small_network()
    found = []
    for number, (batch_size, shard) in enumerate([(128, 300), (7, 64)]):
        torch.manual_seed(number)
        store = Store(tmp_path / str(number), shard)
        stored = extract(
            load_model(network, device="cpu"),
            near,
            store,
            probes=["dropout[passes=9]"],
            batch_size=batch_size,
        )
        names = ("logits", "information", "variance")
        found.append({k: stored.arrays[f"dropout[passes=9]/{k}"][:] for k in names})
    for name, values in found[0].items():
        np.testing.assert_allclose(found[1][name], values, rtol=1e-4, atol=1e-6)
    features = torch.from_numpy(np.array(stored.features[:40])).double()
    rows = near.table.slice(0, 40).select(["source", "image_id", "view"]).to_pylist()
    means, informations, variances = [], [], []
    for feature, row in zip(features, rows, strict=True):
        generator = image_generator("dropout[passes=9]", *row.values())
        masks = torch.stack([torch.rand(32, generator=generator) for _ in range(9)]) >= 0.5
        with torch.no_grad():
            p = network.double()[6](feature * masks / 0.5).softmax(1)
        mean = p.mean(0)
        means.append(mean.log().numpy())
        informations.append(float((p * p.log()).sum(1).mean() - (mean * mean.log()).sum()))
        variances.append(float(((p - mean) ** 2).mean()))
    np.testing.assert_allclose(found[0]["logits"][:40], means, rtol=1e-4)
    np.testing.assert_allclose(found[0]["information"][:40], informations, rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(found[0]["variance"][:40], variances, rtol=1e-4, atol=1e-9)
    assert not any(part._forward_hooks for part in network.modules())


def test_dropout_goes_over_the_benchmarks_columns(near: UnknownDetectionSet, tmp_path: Path) -> None:
    classes = ClassMap((4, 1, 0), 6)
    probe = restrict_to_columns(Dropout(5), classes)
    found = extract(load_model(small_network(), device="cpu"), near, Store(tmp_path), probes=[probe])
    logits = found.data(classes)["dropout[passes=5]/logits"][:]
    again = extract(load_model(small_network(), device="cpu"), near, Store(tmp_path), probes=[probe])
    np.testing.assert_array_equal(again.data(classes)["dropout[passes=5]/logits"][:], logits)
    assert logits.shape == (len(near), 3)
    np.testing.assert_allclose(np.exp(logits).sum(axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("kind", [nn.Dropout, nn.Dropout1d, nn.Dropout2d])
def test_dropout_of_every_kind_drops_its_share(kind: Any) -> None:
    dropping = nn.Sequential(kind(0.25), nn.Flatten(), nn.Linear(12, 2)).eval()
    model = load_model(dropping, device="cpu")
    x = torch.ones(2000, 3, 4) if kind is nn.Dropout1d else torch.ones(2000, 3, 2, 2)
    generators = [image_generator("test", str(i)) for i in range(len(x))]
    with capture_outputs(dropping, ["1"]) as seen:
        Dropout(1)(model, x, generators)
    maps = seen["1"].unflatten(1, (3, 4))
    assert float((maps == 0).float().mean()) == pytest.approx(0.25, abs=0.02)
    assert float(maps.max()) == pytest.approx(1 / 0.75)
    whole_channels = bool((maps == maps[..., :1]).all())
    assert whole_channels == (kind is not nn.Dropout)


def test_a_model_without_dropout_is_refused() -> None:
    Dropout().require(load_model(small_network(), device="cpu"), None)
    plain = load_model(nn.Sequential(nn.Flatten(), nn.Linear(12, 2)), device="cpu")
    with raises(DataError, where="Sequential"):
        Dropout(2)(plain, torch.ones(1, 3, 2, 2), [image_generator("x")])
    with pytest.raises(DataError):
        Dropout(0)


def test_a_probe_that_draws_repeats_whatever_the_batches(
    near: UnknownDetectionSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROBES._entries, "noisy", NoisyLogits)
    monkeypatch.setattr(NoisyLogits, "kind", "noisy", raising=False)
    monkeypatch.setattr(NoisyLogits, "layers", (), raising=False)
    found = []
    for number, (batch_size, shard) in enumerate([(128, 300), (7, 300), (50, 64)]):
        torch.manual_seed(number)
        store = Store(tmp_path / str(number), shard)
        model = load_model(small_network(), device="cpu")
        stored = extract(model, near, store, probes=["noisy[sd=0.1]"], batch_size=batch_size)
        found.append(stored.arrays["noisy[sd=0.1]/logits"][:])
        assert not np.allclose(found[-1], stored.logits[:], atol=1e-3)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[2], found[0], rtol=1e-4, atol=1e-5)


K = 3
STEPPING = "odin[eps=0.1],ip_ts_mlv[eps=0.1],mdsens"
GREY, RGB, VECTORS = (1, 6, 6), (3, 6, 6), (10,)


def network(shape: tuple[int, ...]) -> Any:
    torch.manual_seed(0)
    if len(shape) == 1:
        return nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, K))
    layers = [
        nn.Conv2d(shape[0], 4, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64, 8),
        nn.ReLU(),
        nn.Linear(8, K),
    ]
    return nn.Sequential(*layers)


def sets(shape: tuple[int, ...]) -> dict[str, Any]:
    def drawn(n: int, seed: int) -> tuple[Any, Any]:
        numbers = torch.Generator().manual_seed(seed)
        return torch.randn(n, *shape, generator=numbers), torch.arange(n) % K

    return {
        name: drawn(30, seed)
        for seed, name in enumerate(("id", "near", "id/train", "id/val", "external/val"))
    }


@pytest.mark.parametrize("shape", [GREY, RGB, VECTORS], ids=["grey", "rgb", "vectors"])
def test_models_of_any_channels_take_steps(shape: tuple[int, ...]) -> None:
    found = evaluate(network(shape), sets=sets(shape), detectors=STEPPING, std=1)
    assert len(found.detectors) == 3
    assert all(
        len(found.values("auroc", group="near", detector=name)["value"].tolist()) == 1
        for name in found.detectors
    )


def test_one_standard_deviation_is_that_of_every_channel() -> None:
    given = sets(RGB)
    values = [
        evaluate(network(RGB), sets=given, detectors="odin[eps=0.1]", std=std)
        .confidences("odin[eps=0.1]")
        .tolist()
        for std in (0.5, (0.5, 0.5, 0.5), (0.5, 0.5, 1.0))
    ]
    assert values[0] == values[1] != values[2]


def test_standard_deviations_of_other_channels_are_refused() -> None:
    with raises(DataError, where="Sequential", naming="3"):
        evaluate(network(GREY), sets=sets(GREY), detectors="odin", std=(0.2, 0.3, 0.4))


def test_odin_on_vectors_is_the_formula() -> None:
    """x' = x - eps sign(-gradient) / std, by hand."""
    net, given = network(VECTORS), sets(VECTORS)
    found = evaluate(net, sets=given, detectors="ip_ts_mlv[T=10,eps=0.1]", std=2)
    x = given["near"][0].clone().requires_grad_(True)
    torch.log_softmax(net(x) / 10, dim=1).max(dim=1).values.sum().backward()
    with torch.no_grad():
        due = net(x - 0.1 * torch.sign(-x.grad) / 2).max(dim=1).values
    scores = long_scores(found).to_pandas()
    ours = torch.tensor(scores[scores.group == "near"].confidence.to_numpy())
    torch.testing.assert_close(ours.float(), due)
