"""Models of every kind give features and logits; heads are found; weights cannot run code."""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from loaders.harness.data.arrays import Head
from loaders.harness.models.class_map import Label, LabelSpace
from loaders.harness.models.loading import load_model, open_models
from loaders.harness.models.model import Model
from loaders.harness.models.sources import SOURCES
from tests.raising import raises
from wordnet_splits.base.errors import DataError, SplitsError, UnknownNameError, UnsafeDataError
from wordnet_splits.base.lazy import MissingPackageError

from .networks import CLASSES, FEATURES, small_network

X = torch.linspace(0, 1, 4 * 3 * 8 * 8).reshape(4, 3, 8, 8)


def outputs(model: Model, x: Any = X) -> tuple[Any, Any]:
    model.prepare(x)
    if model.module is not None:
        for part in model.module.modules():
            part.training = False
    with torch.no_grad():
        features, logits = model.forward(x)
    return features.numpy(), logits.numpy()


def agrees(head: Head | None, features: Any, logits: Any) -> bool:
    assert head is not None
    return np.allclose(features @ head.weight.T + head.bias, logits, rtol=1e-4, atol=1e-5)


class Branches(nn.Module):
    """Several linear layers; the one called last gives no logits."""

    def __init__(self, final: Any = None) -> None:
        super().__init__()
        self.first, self.fc, self.projection = (
            nn.Linear(192, 16),
            nn.Linear(16, 5, bias=False),
            nn.Linear(16, 5),
        )
        self.final = final or nn.Identity()
        self.as_dict = False

    def forward(self, x: Any) -> Any:
        hidden = self.first(x.flatten(1)).relu()
        logits = self.final(self.fc(hidden))
        self.projection(hidden)
        return {"logits": logits} if self.as_dict else logits


def test_the_head_is_the_linear_layer_that_gives_the_logits() -> None:
    module = Branches().eval()
    model = load_model(module, device="cpu")
    features, logits = outputs(model)
    assert model.head_name == "fc"
    assert features.shape == (4, 16)
    assert agrees(model.head, features, logits)
    module.as_dict = True
    np.testing.assert_array_equal(outputs(load_model(module, device="cpu"))[1], logits)


def test_a_named_head_gives_its_input_and_no_matrix_where_something_follows() -> None:
    module = Branches(final=nn.LogSoftmax(1))
    with raises(DataError, where="Branches", naming="fc"):
        load_model(module, device="cpu").prepare(X)
    model = load_model(module, device="cpu", head="fc")
    features, logits = outputs(model)
    assert features.shape == (4, 16)
    np.testing.assert_allclose(np.exp(logits).sum(1), 1, rtol=1e-5)
    assert model.head is None
    with raises(UnknownNameError, where="Branches", near="fc"):
        load_model(module, device="cpu", head="fcc")


def test_a_class_of_networks_is_no_network() -> None:
    with raises(DataError, where="Branches", naming="Branches()"):
        load_model(Branches, device="cpu")


def test_maps_before_a_convolutional_head_are_averaged() -> None:
    network = nn.Sequential(nn.Conv2d(3, 8, 1), nn.Conv2d(8, 5, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model = load_model(network, device="cpu", head="1")
    features, _ = outputs(model)
    np.testing.assert_allclose(features, network[0](X).mean((2, 3)).detach().numpy(), rtol=1e-5, atol=1e-6)
    assert model.head is None


def test_head_rows_are_restricted_and_features_are_not() -> None:
    model = load_model(small_network(), device="cpu")
    features, logits = outputs(model)
    assert features.shape == (4, FEATURES)
    assert agrees(model.head.rows([4, 1]), features, logits[:, [4, 1]])


def test_the_key_is_of_tensors_and_architecture() -> None:
    key = load_model(small_network(), device="cpu").key
    assert key == load_model(small_network(), device="cpu", restrict="full", background="last").key
    assert key != load_model(small_network(seed=1), device="cpu").key
    other = small_network()
    other[5].p = 0.4  # no tensor, another network
    assert key != load_model(other, device="cpu").key
    assert key != load_model(small_network(), device="cpu", head="6").key
    assert key != load_model(small_network().double(), device="cpu").key
    moved = small_network()
    moved[1].running_var[3] += 1e-3
    assert key != load_model(moved, device="cpu").key


def test_a_model_in_half_precision_takes_its_own_type() -> None:
    assert load_model(small_network().to(torch.bfloat16), device="cpu").dtype == torch.bfloat16


def test_a_function_gives_a_pair_and_may_have_a_name() -> None:
    def pair(x: Any) -> tuple[Any, Any]:
        return x.flatten(1), x.flatten(1)[:, :3]

    assert not load_model(pair, device="cpu").identified
    model = load_model(pair, device="cpu", model_id="pair")
    assert outputs(model)[1].shape == (4, 3)
    assert model.head is None
    assert model.key != load_model(pair, device="cpu", model_id="other").key
    with raises(DataError, where="one", naming=("4", "3", "8")):
        load_model(lambda x: x, device="cpu", model_id="one").prepare(X)
    with raises(DataError, where="pair"):
        load_model(pair, model_id="pair", weights="x.pt")
    with raises(DataError, where="timm:resnet18", naming=("mine", "model_id")):
        load_model("timm:resnet18", model_id="mine")
    with raises(DataError, naming=("mine", "model_id")):
        open_models(["timm:resnet18"], model_id="mine")


def test_inputs_that_do_not_fit_are_named() -> None:
    with raises(DataError, where="Branches", naming=("4", "3", "9")):
        load_model(Branches(), device="cpu").prepare(torch.zeros(4, 3, 9, 9))
    maps = nn.Conv2d(3, 4, 3)
    with raises(DataError, where="Conv2d", naming=("4", "6")):
        load_model(maps, device="cpu").prepare(X)


def test_what_is_named_module_and_name_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_networks.py").write_text(
        "import torch\nfrom torch import nn\n"
        "class Small(nn.Sequential):\n"
        "    def __init__(self, k=4):\n        super().__init__(nn.Flatten(), nn.Linear(192, k))\n"
        "def make(k=5):\n    return Small(k)\n"
        "ready = Small(6)\nnumber = 3\n"
        "def pair(x):\n    return x.flatten(1), x.flatten(1)[:, :7]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name, classes in {"Small": 4, "make": 5, "ready": 6}.items():
        assert outputs(load_model(f"my_networks:{name}", device="cpu"))[1].shape == (4, classes)
    assert outputs(load_model("my_networks:make", options={"k": 9}, device="cpu"))[1].shape == (4, 9)
    assert outputs(load_model("my_networks:pair", model_id="p", device="cpu"))[1].shape == (4, 7)
    with raises(UnknownNameError, where="--model my_networks", near="ready"):
        load_model("my_networks:redy")
    for made in ("ready", "pair"):  # options would change nothing
        with pytest.raises(DataError) as refused:
            load_model(f"my_networks:{made}", options={"k": 9}, device="cpu")
        assert refused.value.where == f"my_networks:{made}"
    with pytest.raises(DataError) as refused:
        load_model("my_networks:number", device="cpu")
    assert refused.value.where == "my_networks:number"
    with raises(DataError, where="--model"):
        load_model("no_such_module:net")


@pytest.mark.parametrize("tensor", ["parameter", "buffer"])
def test_a_network_without_values_is_refused(tensor: str) -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(192, 6, device="meta" if tensor == "parameter" else None))
    if tensor == "buffer":
        network.register_buffer("scale", torch.ones(1, device="meta"))
    with pytest.raises(DataError) as refused:
        load_model(network, model_id="net", device="cpu")
    assert refused.value.where == "net"


def test_unknown_kinds_of_models_are_refused() -> None:
    assert {"exported", "hf", "timm", "torchvision"} <= set(SOURCES)
    for name in ("resnet-18", "resnet18"):
        with pytest.raises(UnknownNameError) as refused:
            load_model(f"torchvison:{name}")
        assert (refused.value.where, refused.value.near[0]) == (f"torchvison:{name}", "torchvision")
    with raises(DataError, where="int"):
        load_model(3)


class Exploding:
    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, ("exploded",))


def test_weights_are_read_without_unpickling_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trained = small_network(seed=5)
    torch.save(
        {"state_dict": {f"module.{k}": v for k, v in trained.state_dict().items()}, "epoch": 3}, "good.pt"
    )
    model = load_model(small_network(), device="cpu", weights="good.pt")
    assert model.key == load_model(trained, device="cpu").key
    torch.save({"state_dict": trained.state_dict(), "x": Exploding()}, "bad.pt")
    (tmp_path / "bare.pth").write_bytes(pickle.dumps(Exploding()))
    for name in ("bad.pt", "bare.pth"):
        with pytest.raises(UnsafeDataError):
            load_model(small_network(), weights=name)
    assert not (tmp_path / "exploded").exists()
    torch.save(trained, "module.pt")
    with raises(UnsafeDataError, where="module.pt", naming="model.state_dict"):
        load_model(small_network(), weights="module.pt")


def test_weights_that_do_not_fit_are_named(tmp_path: Path) -> None:
    torch.save(small_network(classes=9).state_dict(), tmp_path / "nine.pt")
    with raises(DataError, where="nine.pt", naming=("2", "6.bias", "6.weight")):
        load_model(small_network(), weights=tmp_path / "nine.pt")
    torch.save({"a": torch.zeros(1)}, tmp_path / "a.pt")
    with raises(DataError, where="a.pt", naming=("0.bias", "0.weight", "1.bias")):
        load_model(small_network(), weights=tmp_path / "a.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    (tmp_path / "text.pt").write_text("hello")
    for name in ("list.pt", "text.pt", "none.pt"):
        with raises(SplitsError, where=name):
            load_model(small_network(), weights=tmp_path / name)


@pytest.mark.parametrize(
    "dtype", [torch.int8, torch.uint8, torch.int64, torch.complex64, torch.float8_e4m3fn]
)
def test_weights_without_their_scale_or_imaginary_part_are_refused(tmp_path: Path, dtype: Any) -> None:
    state = small_network(seed=5).state_dict()
    torch.save({**state, "6.weight": (100 * state["6.weight"]).to(dtype)}, tmp_path / "w.pt")
    with pytest.raises(DataError) as caught:
        load_model(small_network(), device="cpu", weights=tmp_path / "w.pt")
    assert caught.value.where == str(tmp_path / "w.pt")
    torch.save({name: value.to(torch.float16) for name, value in state.items()}, tmp_path / "half.pt")
    assert load_model(small_network(), device="cpu", weights=tmp_path / "half.pt").dtype == torch.float32


@pytest.mark.filterwarnings("ignore")
def test_a_quantised_network_says_so_and_has_a_key_of_its_weights() -> None:
    networks = [nn.Sequential(nn.Flatten(), nn.Linear(192, 60)) for _ in range(2)]
    networks[1].load_state_dict(networks[0].state_dict())
    with torch.no_grad():
        networks[1][1].weight[30, 90] *= -1  # beyond what a printed tensor shows
    models = [
        load_model(torch.ao.quantization.quantize_dynamic(network, {nn.Linear}), device="cpu")
        for network in networks
    ]
    assert models[0].key != models[1].key
    for model in models:
        assert len(model.notes) == 1
        assert model.prepare(X).shape == (4, 60)


def test_safetensors_are_read(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    trained = small_network(seed=5)
    safetensors.save_file(trained.state_dict(), tmp_path / "w.safetensors")
    model = load_model(small_network(), device="cpu", weights=tmp_path / "w.safetensors")
    assert model.key == load_model(trained, device="cpu").key


def test_torchvision_models_bring_their_preprocessing(tmp_path: Path) -> None:
    model = load_model("torchvision:mobilenet_v3_small", weights="random", device="cpu")
    features, logits = outputs(model, torch.rand(2, 3, *model.preprocess.size))
    assert (features.shape, logits.shape) == ((2, 1024), (2, 1000))
    assert model.preprocess is not None
    assert model.preprocess.std == (0.229, 0.224, 0.225)
    assert model.preprocess.spec["crop"] == [224]
    assert agrees(model.head, features, logits)
    from torchvision.models import mobilenet_v3_small

    torch.save(mobilenet_v3_small(num_classes=7).state_dict(), tmp_path / "seven.pt")
    fitted = load_model("torchvision:mobilenet_v3_small", weights=tmp_path / "seven.pt", device="cpu")
    assert fitted.module.classifier[3].out_features == 7
    with raises(UnknownNameError, near="mobilenet_v3_small"):
        load_model("torchvision:mobilenet_v3_smal")
    with raises(UnknownNameError, where="torchvision:mobilenet_v3_small", naming="IMAGENET1K_V1"):
        load_model("torchvision:mobilenet_v3_small", weights="IMAGENET1K_V9")
    with raises(DataError, where="torchvision:mobilenet_v3_small", naming="random"):
        load_model("torchvision:mobilenet_v3_small", options={"num_classes": 3})


def test_published_torchvision_weights_are_read_as_tensors_and_know_their_classes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from torchvision.models import mobilenet_v3_small

    asked: list[Any] = []

    def fetched(self: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD"))
        return mobilenet_v3_small().state_dict()

    monkeypatch.setattr("torchvision.models._api.WeightsEnum.get_state_dict", fetched)
    model = load_model("torchvision:mobilenet_v3_small", device="cpu")
    assert asked == ["1"]
    assert "TORCH_FORCE_WEIGHTS_ONLY_LOAD" not in os.environ
    wnids = tuple(f"n{i:08}" for i in range(1000))
    space = LabelSpace((Label(wnids[7], "seven"), Label(wnids[998], "last but one")), {"imagenet1k": wnids})
    assert model.class_map(space, 1000).columns == (7, 998)
    nowhere = LabelSpace((Label("a", "a"), Label("b", "b")), {"cifar100": ("a", "b")})
    with raises(DataError, where="torchvision:mobilenet_v3_small/DEFAULT", naming=("1000", "2")):
        model.class_map(nowhere, 1000)


def test_timm_models_bring_their_preprocessing_and_wnids(tmp_path: Path) -> None:
    timm = pytest.importorskip("timm")
    model = load_model("timm:test_resnet", weights="random", device="cpu")
    assert model.preprocess is not None
    assert json.dumps(model.preprocess.spec)
    features, logits = outputs(model, torch.rand(2, 3, *model.preprocess.size))
    assert agrees(model.head, features, logits)
    torch.save(timm.create_model("test_resnet", num_classes=7).state_dict(), tmp_path / "seven.pt")
    fitted = load_model("timm:test_resnet", weights=tmp_path / "seven.pt", device="cpu")
    assert outputs(fitted, torch.rand(2, 3, *model.preprocess.size))[1].shape == (2, 7)
    with raises(UnknownNameError, near="test_resnet"):
        load_model("timm:test_resnt")

    wnids = load_model(timm.create_model("resnet10t"), device="cpu").classes
    assert wnids is not None
    assert (len(wnids), wnids[0], wnids[999]) == (1000, "n01440764", "n15075141")
    assert list(wnids) == sorted(wnids)


@pytest.mark.parametrize("spec", ["timm:resnet18", "hf:some/model"])
def test_an_absent_package_names_the_extra(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("timm", "transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    with raises(MissingPackageError, naming="[models]"):
        load_model(spec)


def test_hugging_face_classifiers_are_read_from_a_folder(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=32,
        patch_size=16, num_labels=2, id2label={0: "tench, Tinca tinca", 1: "goldfish"},
    )  # fmt: skip
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path, safe_serialization=True)
    transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(tmp_path)
    model = load_model(f"hf:{tmp_path}", device="cpu")
    features, logits = outputs(model, torch.rand(2, 3, 32, 32))
    assert (features.shape, logits.shape, model.head_name) == ((2, 16), (2, 2), "classifier")
    assert model.classes == ("tench, Tinca tinca", "goldfish")
    assert model.preprocess is not None
    assert model.preprocess.std == (0.5, 0.5, 0.5)
    (tmp_path / "model.safetensors").unlink()
    with raises(DataError, naming="classifier"):
        load_model(f"hf:{tmp_path}")


def test_exported_programs_are_trusted_by_word_only(tmp_path: Path) -> None:
    network = small_network().eval()
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(network, (X,), dynamic_shapes=({0: batch},))
    path = tmp_path / "network.pt2"
    torch.export.save(program, path)
    with raises(UnsafeDataError, where="exported:network.pt2", naming="--trust-model"):
        load_model(f"exported:{path}")
    model = load_model(f"exported:{path}", device="cpu", trust_model=True)
    model.prepare(X)
    features, logits = model.forward(X[:3])
    assert features is None
    assert logits.shape == (3, CLASSES)
    torch.testing.assert_close(logits, network(X[:3]), rtol=1e-5, atol=1e-6)
    with raises(DataError, where="exported:network.pt2"):
        model.prepare(torch.zeros(2, 3, 9, 9))
    (tmp_path / "text.pt2").write_text("hello")
    for name in ("text.pt2", "none.pt2"):
        with raises(DataError, where=name):
            load_model(f"exported:{tmp_path / name}", trust_model=True)
    softmax = torch.export.export(nn.Sequential(network, nn.Softmax(1)).eval(), (X,))
    torch.export.save(softmax, tmp_path / "softmax.pt2")
    with pytest.raises(DataError):
        load_model(f"exported:{tmp_path / 'softmax.pt2'}", trust_model=True).prepare(X)
