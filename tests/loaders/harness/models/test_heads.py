"""A head is used only where it gives the logits; features are the input of the head."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from loaders.harness import evaluate
from loaders.harness.data.array_checks import HEAD_ROWS, gives_logits
from loaders.harness.data.arrays import NEEDS_HEAD, Head
from loaders.harness.detectors import parse_detectors
from loaders.harness.models.hooks import pooled
from loaders.harness.models.loading import load_model
from wordnet_splits.base.errors import DataError, UnusableError

K, WIDTH = 6, 32
X = torch.rand(8, 3, 8, 8, generator=torch.Generator().manual_seed(0))
DIGITS: dict[str, Any] = {"benchmark": "digits", "groups": ["digits-6-9"], "device": "cpu"}


class Net(nn.Module):
    """A network of a body and a head, whose forward pass is a function of both and the images."""

    def __init__(
        self, head: nn.Module | None = None, forward: Callable[[Any, Any], Any] | None = None
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(192, WIDTH), nn.ReLU())
        self.embed = nn.Conv2d(3, WIDTH, 4, 4)
        self.head = head or nn.Linear(WIDTH, K)
        self.aux = nn.Linear(192, K)
        self.pass_ = forward or (lambda net, x: net.head(net.body(x)))

    def forward(self, x: Any) -> Any:
        return self.pass_(self, x)


def prepared(network: Any, **options: Any) -> tuple[Any, Any, Any]:
    """Return a model, its features and its logits."""
    model = load_model(network.eval(), device="cpu", **options)
    with torch.no_grad():
        model.prepare(X.to(model.dtype))
        return model, *model.forward(X.to(model.dtype))


class Cosine(nn.Linear):
    def forward(self, x: Any) -> Any:
        return 20 * functional.linear(functional.normalize(x), functional.normalize(self.weight))


class Cooled(nn.Linear):
    def forward(self, x: Any) -> Any:
        return super().forward(x) / 1.1


class Spread(nn.Linear):
    def forward(self, x: Any) -> Any:
        return super().forward(x).flip(1)


def hooked() -> nn.Module:
    head = nn.Linear(WIDTH, K)
    head.register_forward_hook(lambda module, inputs, output: output / 3)
    return head


def in_place(net: Any, x: Any) -> Any:
    return net.head(net.body(x)).div_(2)


@pytest.mark.parametrize(
    "network",
    [
        Net(Cosine(WIDTH, K, bias=False)),
        Net(Cooled(WIDTH, K)),
        Net(Spread(WIDTH, K)),
        Net(hooked()),
        Net(forward=in_place),
        Net(Cooled(WIDTH, K)).bfloat16(),
        Net(hooked()).half(),
    ],
    ids=["cosine", "temperature", "rows", "hook", "in place", "bfloat16", "half"],
)
def test_a_head_that_does_not_give_the_logits_is_left_out_with_a_note(network: Any) -> None:
    model, features, _ = prepared(network)
    assert model.head is None
    assert features.shape == (len(X), WIDTH)
    assert len(model.notes) == 1
    model.require({"features"})
    with pytest.raises(UnusableError) as refused:
        model.require({"head"})
    assert refused.value.what != NEEDS_HEAD


@pytest.mark.parametrize(
    "head",
    [
        nn.Linear(WIDTH, K),
        nn.Linear(WIDTH, K, bias=False),
        nn.utils.parametrizations.weight_norm(nn.Linear(WIDTH, K)),
        nn.utils.parametrizations.spectral_norm(nn.Linear(WIDTH, K)),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_head_that_gives_the_logits_is_used(head: nn.Module, dtype: torch.dtype) -> None:
    model, _, _ = prepared(Net(head).to(dtype))
    assert model.head is not None
    assert not model.notes


def test_detectors_without_their_head_are_named_in_the_table_and_run_without_it() -> None:
    network = Net(Cooled(WIDTH, K))
    results = evaluate(network, detectors="preset:openood", **DIGITS)
    assert "react" not in results.detectors
    assert {"msp", "knn"} <= set(results.detectors)
    assert any("react" in note for note in results.about.notes)
    with pytest.raises(DataError) as caught:
        evaluate(network, detectors="react", **DIGITS)
    assert caught.value.where == "Net"


def tokens(net: Any, x: Any) -> Any:
    return net.head(net.embed(x).flatten(2).transpose(1, 2)).mean(1)


def channels_last(net: Any, x: Any) -> Any:
    return net.head(net.embed(x).permute(0, 2, 3, 1)).mean((1, 2))


@pytest.mark.parametrize("forward", [tokens, channels_last])
def test_tokens_and_channels_last_are_averaged_over_positions(forward: Any) -> None:
    network = Net(forward=forward)
    model, features, logits = prepared(network, head="head")
    with torch.no_grad():
        expected = network.embed(X).mean((2, 3))
    torch.testing.assert_close(features, expected, rtol=1e-5, atol=1e-6)
    assert model.head is not None  # the mean of the positions' logits is that of their mean
    head_logits = features.numpy() @ model.head.weight.T + model.head.bias
    assert np.allclose(head_logits, logits.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "shape", "width"),
    [
        (nn.Linear(5, 3), (2, 5, 5), 5),
        (nn.Linear(5, 3), (2, 7, 7, 5), 5),
        (nn.Conv2d(5, 3, 1), (2, 5, 5, 5), 5),
        (nn.Conv2d(5, 3, 1), (2, 5, 4, 3), 5),
        (nn.Sequential(nn.Dropout(), nn.Conv2d(5, 3, 1)), (2, 5, 5, 5), 5),
        (nn.Sequential(nn.LayerNorm(5), nn.Linear(5, 3)), (2, 9, 5), 5),
        (nn.Sequential(nn.BatchNorm2d(5), nn.AdaptiveAvgPool2d(1)), (2, 5, 4, 4), 5),
        (nn.Sequential(nn.Flatten(), nn.Linear(80, 3)), (2, 5, 4, 4), 5),
        (nn.AdaptiveAvgPool2d(1), (2, 5, 4, 4), 5),
        (nn.Identity(), (2, 4, 4, 5), 5),
        (nn.Identity(), (2, 5), 5),
        (nn.Identity(), (2, 4, 5), None),
        (nn.Identity(), (2, 4, 4, 4), None),
        (nn.Identity(), (2, 3, 4, 5), None),
        (nn.Sequential(nn.LayerNorm(5), nn.Linear(5, 3)), (2, 5, 5), None),
    ],
)
def test_the_axis_of_the_features_is_that_of_the_heads_weights(
    layer: nn.Module, shape: tuple[int, ...], width: int | None
) -> None:
    maps = torch.rand(shape)
    if width is None:
        with pytest.raises(DataError) as caught:
            pooled(maps, layer, "net")
        assert caught.value.where == "net"
    else:
        assert pooled(maps, layer, "net").shape == (2, width)


def pair_of(first: str, second: str) -> Callable[[Any, Any], Any]:
    def forward(net: Any, x: Any) -> Any:
        hidden = net.body(x)
        parts = {"logits": net.head(hidden), "aux": net.aux(x.flatten(1)), "features": hidden}
        return parts[first], parts[second]

    return forward


def test_of_two_outputs_as_wide_as_each_other_the_logits_are_named() -> None:
    for order in (("logits", "aux"), ("aux", "logits")):
        network = Net(forward=pair_of(*order))
        with pytest.raises(DataError) as caught:
            prepared(network)
        assert caught.value.where == "Net"
        _, features, logits = prepared(network, head="head")
        assert torch.equal(logits, network.head(network.body(X)))
        assert features.shape == (len(X), WIDTH)
    for order in (("logits", "features"), ("features", "logits")):
        network = Net(forward=pair_of(*order))
        assert torch.equal(prepared(network)[2], network.head(network.body(X)))
    square = nn.Linear(K, K)  # features that a linear layer gives, as many as classes
    network = Net(square, lambda net, x: (net.aux(x.flatten(1)), net.head(net.aux(x.flatten(1)))))
    assert torch.equal(prepared(network)[2], square(network.aux(X.flatten(1))))


def test_a_function_says_which_of_two_equally_wide_outputs_are_logits() -> None:
    def outputs(x: Any) -> tuple[Any, Any]:
        return x.flatten(1)[:, :K], x.flatten(1)[:, K : 2 * K]

    with pytest.raises(DataError):
        load_model(outputs, device="cpu", model_id="pair").prepare(X)
    named = load_model(lambda x: dict(zip(("features", "logits"), outputs(x), strict=True)), device="cpu")
    assert torch.equal(named.prepare(X), outputs(X)[1])


def changing(net: Any, x: Any) -> Any:
    hidden = net.body(x)
    logits = net.head(hidden)
    hidden.zero_()
    return logits


def by_keyword(net: Any, x: Any) -> Any:
    return net.head(input=net.body(x))


@pytest.mark.parametrize("options", [{}, {"head": "head"}])
@pytest.mark.parametrize("forward", [changing, by_keyword])
def test_features_are_those_that_went_into_the_head(forward: Any, options: Any) -> None:
    network = Net(forward=forward)
    model, features, _ = prepared(network, **options)
    assert torch.equal(features, network.body(X))
    assert model.head is not None


def compiled(network: nn.Module) -> nn.Module:
    module: nn.Module = torch.compile(network, backend="eager")
    return module


def compiled_in_place(network: nn.Module) -> nn.Module:
    network.compile(backend="eager")
    return network


@pytest.mark.skipif(not hasattr(torch.compiler, "set_stance"), reason="of PyTorch 2.6")
@pytest.mark.parametrize("compile_", [compiled, compiled_in_place])
def test_compiled_networks_are_hooked_after_they_were_called(compile_: Any) -> None:
    plain, network = Net(), compile_(Net().eval())
    with torch.no_grad():
        network(X)
        network(X[:2])
    model, features, logits = prepared(network)
    assert torch.equal(features, plain.body(X))
    assert torch.equal(logits, plain(X))
    assert model.head is not None


def squeezed() -> nn.Module:
    layers = nn.Conv2d(3, 16, 1), nn.Conv2d(16, K, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return nn.Sequential(*layers)


def test_squeezenet_runs_every_detector_of_logits_and_one_line_names_the_others() -> None:
    network = pytest.importorskip("torchvision").models.squeezenet1_1(weights=None, num_classes=K)
    of_one = [found for found in parse_detectors("preset:all") if found.spec.models == "one"]
    on_logits = [found.label for found in of_one if {*found.needs} == {"logits"}]
    assert len(on_logits) >= 11
    found = evaluate(
        network, detectors=",".join([*on_logits, "preset:simple"]), transform="resize-32", **DIGITS
    )
    assert {*found.detectors} == {*on_logits}
    model = load_model(network, device="cpu")
    model.prepare(torch.rand(2, 3, 32, 32))
    on_features = [found for found in of_one if "features" in found.needs]
    assert len(on_features) >= 15
    for detector in on_features:
        with pytest.raises(UnusableError):
            model.require(detector.needs)
    (line,) = (line for line in found.about.remarks if "knn" in line)
    assert "knn, mahalanobis" in line
    assert sum("is left out" in note for note in found.about.notes) == 2


def test_a_classifier_without_linear_layers_runs_detectors_on_logits() -> None:
    results = evaluate(squeezed(), detectors="preset:simple", **DIGITS)
    assert {"msp", "energy", "mls"} <= set(results.detectors)
    for name in ("knn", "mahalanobis"):
        assert name not in results.detectors
        assert any(name in note for note in results.about.notes)
    with pytest.raises(DataError) as caught:
        evaluate(squeezed(), detectors="knn", **DIGITS)
    assert caught.value.where == "Sequential"
    assert "knn[k=5]" in evaluate(squeezed(), detectors="knn[k=5]", head="1", **DIGITS).detectors


@pytest.mark.parametrize(
    "model",
    [
        lambda x: x.flatten(1)[:, :K] * 1j,
        lambda x: x.flatten(1)[:, :K].numpy() * 1j,
        lambda x: (x.flatten(1) * 1j, x.flatten(1)[:, :K]),
        Net(nn.Linear(WIDTH, K, dtype=torch.complex64), lambda net, x: net.head(net.body(x) + 0j)),
        Net(forward=lambda net, x: net.head(net.body(x)) + 1j),
    ],
    ids=["logits", "numpy", "features", "head", "bias"],
)
def test_complex_outputs_are_refused(model: Any) -> None:
    with pytest.raises(DataError) as caught:
        load_model(model, device="cpu", model_id="complex").prepare(X)
    assert caught.value.where == "complex"


FAULTS: dict[str, Callable[[Any, Any, Any], tuple[Any, Any]]] = {
    "swapped": lambda w, b, g: (w[[1, 0, *range(2, len(w))]], b),
    "reversed": lambda w, b, g: (w[::-1], b[::-1]),
    "no bias": lambda w, b, g: (w, 0 * b),
    "temperature": lambda w, b, g: (w * 1.1, b * 1.1),
    "one row": lambda w, b, g: (np.vstack([w[:-1], w[-1:] * 1.2]), b),
    "other seed": lambda w, b, g: (g.permuted(w, axis=1), b),
    "features": lambda w, b, g: (np.roll(w, 1, axis=1), b),
    "a row less": lambda w, b, g: (w[:-1], b[:-1]),
    "a row more": lambda w, b, g: (np.vstack([w, w[:1]]), np.append(b, 0)),
    "a column less": lambda w, b, g: (w[:, :-1], b),
}


def bits(values: Any, kept: int) -> Any:
    """Return float32 values with so many bits of their fraction, the others cut off, as GPUs do for TF32."""
    mask = np.uint32((0xFFFFFFFF << (23 - kept)) & 0xFFFFFFFF)
    return (np.ascontiguousarray(values, dtype=np.float32).view(np.uint32) & mask).view(np.float32)


def bfloat16(values: Any) -> Any:
    return torch.from_numpy(np.array(values, np.float32)).bfloat16().float().numpy()


def product(features: Any, weight: Any, bias: Any) -> Any:
    return (features.astype(np.float64) @ weight.T + bias).astype(np.float32)


def half(values: Any) -> Any:
    return values.astype(np.float16)


PRECISIONS: dict[str, Callable[[Any, Any, Any], tuple[Any, Any]]] = {
    "float32": lambda f, w, b: (f, product(f, w, b)),
    "tf32": lambda f, w, b: (f, product(bits(f, 10), bits(w, 10), b)),
    "float16 stored": lambda f, w, b: (half(f), product(f, w, b)),
    "bfloat16 stored": lambda f, w, b: (bfloat16(f), product(f, w, b)),
    "float16 computed": lambda f, w, b: (f, half(product(half(f), half(w), half(b)))),
    "bfloat16 computed": lambda f, w, b: (f, bfloat16(product(bfloat16(f), bfloat16(w), bfloat16(b)))),
}


@pytest.mark.fuzz
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=pytest.mark.always) if n < 2 else n for n in range(200)]
)
def test_rounding_is_told_from_faults(seed: int) -> None:
    g = np.random.default_rng(seed)
    n, d, k = (int(g.integers(*limits)) for limits in ((1, 2 * HEAD_ROWS), (2, 600), (2, 300)))
    features = g.normal(size=(n, d)) + g.choice([0, 1]) * g.normal(size=d)
    features = (features if g.random() < 0.5 else features.clip(0)).astype(np.float32) * g.choice(
        [0.01, 1, 9]
    )
    spread = float(np.sqrt(np.square(features).mean()))
    weight = (g.normal(size=(k, d)) / np.sqrt(d)).astype(np.float32)
    bias = (spread * g.normal(size=k)).astype(np.float32)
    for precision, computed in PRECISIONS.items():
        arrays = computed(features, weight, bias)
        assert gives_logits(Head(weight, bias), *arrays), precision
        for fault, changed in FAULTS.items():
            wrong = (np.array(part) for part in changed(weight, bias, np.random.default_rng(seed)))
            assert not gives_logits(Head(*wrong), *arrays), (precision, fault)


class Outputs(NamedTuple):
    logits: Any
    auxiliary: Any


BODIES: dict[str, Callable[[Any], Any]] = {
    "flat": lambda maps: maps.mean((2, 3)),
    "tokens": lambda maps: maps.flatten(2).transpose(1, 2),
    "channels last": lambda maps: maps.permute(0, 2, 3, 1),
}
LAYERS: list[Callable[..., nn.Module]] = [nn.Linear, Cosine, Cooled, Spread]
AFTER: list[Callable[[Any], Any]] = [lambda z: z, lambda z: z / 2, lambda z: z.mul_(3), lambda z: z.tanh()]
FORMS: list[Callable[[Any, Any, Any], Any]] = [
    lambda logits, features, aux: logits,
    lambda logits, features, aux: (features, logits),
    lambda logits, features, aux: (logits, features),
    lambda logits, features, aux: (logits, aux),
    lambda logits, features, aux: (aux, logits),
    lambda logits, features, aux: {"logits": logits, "aux": aux},
    lambda logits, features, aux: Outputs(logits, aux),
]


@pytest.mark.sampled("fuzz", one_in=20)
@pytest.mark.parametrize("seed", range(300))
def test_a_network_gives_its_logits_the_input_of_its_head_and_no_other_head_or_is_refused(seed: int) -> None:
    random = Random(seed)
    body, layer, after, form = map(random.choice, (list(BODIES.values()), LAYERS, AFTER, FORMS))
    by_keyword, changes, width = random.random() < 0.5, random.random() < 0.3, random.choice([WIDTH, K])
    embed, head = nn.Conv2d(3, width, 4, 4), layer(width, K, bias=random.random() < 0.7)
    seen: dict[str, Any] = {}

    def forward(net: Any, x: Any) -> Any:
        hidden = body(net.embed(x)).contiguous()
        output = after(net.head(input=hidden) if by_keyword else net.head(hidden))
        positions = list(range(1, hidden.ndim - 1))
        logits = output.mean(positions) if positions else output
        features = hidden.mean(positions) if positions else hidden.clone()
        seen.update(logits=logits.clone(), features=features.clone())
        if changes:
            hidden.mul_(0)
        return form(logits, features, net.aux(x.flatten(1)))

    network = Net(head, forward)
    network.embed = embed
    try:
        model, features, logits = prepared(network, **({"head": "head"} if random.random() < 0.6 else {}))
    except DataError:
        return
    assert torch.equal(logits, seen["logits"])
    torch.testing.assert_close(features, seen["features"])
    if model.head is not None:
        assert gives_logits(model.head, features.numpy(), logits.numpy())
    elif layer is nn.Linear and after is AFTER[0]:
        raise AssertionError("the head gives the logits")
