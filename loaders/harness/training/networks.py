"""Small networks of the papers; each ends in one ``nn.Linear`` over its features.

>>> build_network("resnet20", num_classes=40).fc
Linear(in_features=64, out_features=40, bias=True)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from fix_resize.spec import Size
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.lazy import need
from wordnet_splits.base.untrusted import import_object, user_errors

from .choices import NETWORKS, list_networks
from .methods.network import evaluation_mode


def build_network(name: str, num_classes: int, *, channels: int = 3, size: Size = (32, 32)) -> nn.Module:
    """Return a freshly initialised network; its weights are drawn from torch's global generator.

    Parameters
    ----------
    name : see `list_networks`; ``timm:NAME``; ``torchvision:NAME``; ``MODULE:NAME``, a function of the number
        of outputs that returns a module.
    num_classes : outputs, a background class included.
    channels : 3, or 1 for grey images (still given as three equal channels, which are averaged); the residual
        networks always look at three.
    size : (h, w) of the images.

    Raises
    ------
    UnknownNameError : no such network. DataError : images too small for it.
    """
    if ":" in name:
        return _foreign_network(name, num_classes, size)
    kind = NETWORKS[name]
    if min(size) < kind.smallest:
        raise DataError(
            f"images of {size[0]} x {size[1]} are too small for network {name!r}",
            hint=f"it needs {kind.smallest} x {kind.smallest}; others: {', '.join(list_networks())}",
        )
    module = globals()[kind.module] if isinstance(kind.module, str) else kind.module
    network: nn.Module = module(num_classes, channels, size, **kind.options)
    return network


def _foreign_network(name: str, num_classes: int, size: Size) -> nn.Module:
    """Return a network of another library or of a user."""
    library, _, architecture = name.partition(":")
    problem = f"network {name!r} cannot be made"
    with user_errors(problem, where="--network", hint="unknown-eval list recipes lists the shipped networks"):
        if library == "timm":
            timm = need("timm", "models", where=name)
            network = timm.create_model(architecture, pretrained=False, num_classes=num_classes)
        elif library == "torchvision":
            models = need("torchvision.models", "torch", where=name)
            network = models.get_model(architecture, weights=None, num_classes=num_classes)
        else:
            network = import_object(name, where="--network")(num_classes)
    if not isinstance(network, nn.Module):
        raise DataError(f"{problem}: {type(network).__name__} is not an nn.Module", where="--network")
    check_outputs(network, name, num_classes, size)
    return WrappedNetwork(network) if isinstance(network, nn.Sequential) else network


def check_outputs(network: nn.Module, name: str, num_classes: int, size: Size) -> None:
    """Raise DataError unless a network gives logits (n, num_classes) for images of a size."""
    device = next(network.parameters()).device
    with (
        user_errors(f"network {name!r} cannot take images of {size[0]} x {size[1]}", where="--network"),
        evaluation_mode(network),
    ):
        logits = network(torch.zeros(2, 3, *size, device=device))
    shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
    if shape != (2, num_classes):
        raise DataError(
            f"network {name!r} gives {shape} for two images where logits {(2, num_classes)} are expected",
            where="--network",
            hint="give an output for each ID class, and one for outliers if the method has a background",
        )


class WrappedNetwork(nn.Module):
    """A wrapper of an ``nn.Sequential``, so that heads added to the network are not called in its chain."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.__name__ = type(network).__name__  # the model's name in results

    def _get_name(self) -> str:
        return self.__name__

    def __repr__(self) -> str:
        return repr(self.network) if len(self._modules) == 1 else super().__repr__()

    def forward(self, x: Tensor) -> Tensor:
        """(n, 3, h, w) -> logits (n, K)."""
        logits: Tensor = self.network(x)
        return logits


class BasicBlock(nn.Module):
    """Two 3x3 convolutions with batch norm around a shortcut (1x1 convolution where the shape changes)."""

    def __init__(self, inside: int, outside: int, stride: int, dropout: float) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.shortcut = nn.Identity()
        if stride != 1 or inside != outside:
            convolution = nn.Conv2d(inside, outside, 1, stride, bias=False)
            self.shortcut = nn.Sequential(convolution, nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        """(n, inside, h, w) -> (n, outside, h / stride, w / stride)."""
        y = self.dropout(functional.relu(self.bn1(self.conv1(x))))
        y = self.dropout(self.bn2(self.conv2(y)))
        return functional.relu(y + self.shortcut(x))


class CifarResNet(nn.Module):
    """A residual network for small images: a 3x3 stem without pooling, then stages of basic blocks.

    Parameters
    ----------
    widths, blocks : channels and number of blocks of each stage; each stage but the first halves the maps.
    dropout : after every convolution of a block.
    head_dropout : before the head.
    """

    def __init__(
        self,
        num_classes: int,
        channels: int,
        size: Size,
        *,
        widths: tuple[int, ...],
        blocks: int,
        dropout: float = 0.0,
        head_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, widths[0], 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(widths[0])
        stages, inside = [], widths[0]
        for number, width in enumerate(widths):
            strides = [2 if number else 1] + [1] * (blocks - 1)
            layers = []
            for stride in strides:
                layers.append(BasicBlock(inside, width, stride, dropout))
                inside = width
            stages.append(nn.Sequential(*layers))
        self.stages = nn.Sequential(*stages)
        self.dropout = nn.Dropout(head_dropout) if head_dropout else nn.Identity()
        self.fc = nn.Linear(inside, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        """(n, 3, h, w) -> logits (n, num_classes)."""
        x = functional.relu(self.bn1(self.conv1(x)))
        x = self.stages(x).mean((2, 3))  # adaptive pooling has no deterministic backward pass on CUDA
        return self.fc(self.dropout(x))


class PlainCNN(nn.Module):
    """Pairs of 3x3 convolutions with batch norm; most of the work is at 15 x 15 and below, for CPUs.

    The layout follows K. Jordan, 94% on CIFAR-10 in 3.29 Seconds on a Single GPU, 2024 (airbench), with
    ReLU, narrower stages, mean pooling, and a trained stem.

    Parameters
    ----------
    stem : channels of the 2x2 convolution without padding that begins.
    widths : channels of each stage, whose
        first convolution is followed by 2x2 maximum pooling.
    """

    def __init__(
        self, num_classes: int, channels: int, size: Size, *, stem: int, widths: tuple[int, ...]
    ) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, stem, 2)
        stages, inside = [], stem
        for width in widths:
            layers = [_convolution(inside, width), nn.MaxPool2d(2), nn.BatchNorm2d(width), nn.ReLU()]
            layers += [_convolution(width, width), nn.BatchNorm2d(width), nn.ReLU()]
            stages.append(nn.Sequential(*layers))
            inside = width
        self.stages = nn.Sequential(*stages)
        self.fc = nn.Linear(inside, num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """(n, 3, h, w) -> logits (n, num_classes)."""
        x = self.stages(functional.relu(self.conv1(x))).mean((2, 3))
        return self.fc(x)


def _convolution(inside: int, outside: int) -> nn.Conv2d:
    return nn.Conv2d(inside, outside, 3, padding=1, bias=False)


class SmallCNN(nn.Module):
    """Two 3x3 convolutions, 2x2 maximum pooling, two dense layers, dropout after pooling and between them.

    Parameters
    ----------
    widths : of the convolutions.
    dense : units of the first dense layer.
    padding : 0 ("valid") or 1 ("same").
    dropouts : after pooling, before the head.
    """

    def __init__(
        self,
        num_classes: int,
        channels: int,
        size: Size,
        *,
        widths: tuple[int, int],
        dense: int,
        padding: int,
        dropouts: tuple[float, float],
    ) -> None:
        super().__init__()
        self.channels = channels
        self.features = nn.Sequential(  # one part, so that passes with dropout share its output
            nn.Conv2d(channels, widths[0], 3, padding=padding),
            nn.ReLU(),
            nn.Conv2d(widths[0], widths[1], 3, padding=padding),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.dropout1, self.dropout2 = nn.Dropout(dropouts[0]), nn.Dropout(dropouts[1])
        side = [(s - 4 * (1 - padding)) // 2 for s in size]
        self.dense = nn.Linear(widths[1] * side[0] * side[1], dense)
        self.head = nn.Linear(dense, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):  # Keras' defaults, since the paper used Keras
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(n, 3, h, w) -> logits (n, num_classes)."""
        if self.channels == 1:
            x = x.mean(1, keepdim=True)
        x = self.dropout1(self.features(x)).flatten(1)
        return self.head(self.dropout2(functional.relu(self.dense(x))))


def imagenet_resnet(
    num_classes: int,
    channels: int,
    size: Size,
    *,
    name: str,
    dropout: float = 0.0,
    head_dropout: float = 0.0,
    narrow: bool = False,
) -> nn.Module:
    """Return a residual network of torchvision's for large images, with bottleneck blocks.

    Parameters
    ----------
    dropout : after every convolution of a block; before its ReLU, which gives the same values as after it.
    head_dropout : before the head.
    narrow : whether the features are as many as the outputs, with a head without bias.
    """
    models = need("torchvision.models", "torch", where=name)
    network: nn.Module = models.get_model(name, weights=None, num_classes=num_classes)
    if dropout:
        for block in (part for part in network.modules() if hasattr(part, "bn3")):
            for norm in ("bn1", "bn2", "bn3"):
                setattr(block, norm, nn.Sequential(getattr(block, norm), nn.Dropout(dropout)))
    head: nn.Module = network.fc
    if head_dropout:
        network.fc = nn.Sequential(nn.Dropout(head_dropout), head)
    if narrow:
        network.fc = nn.Sequential(head, nn.Linear(num_classes, num_classes, bias=False))
    return network
