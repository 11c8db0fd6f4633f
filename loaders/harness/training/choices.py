"""Networks, augmentations, update rules and schedules of the rate that a training recipe may name.

Each table is the only place where its names are declared. It holds names of functions and classes, not the
objects, so that recipes are read, checked and listed without torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from wordnet_splits.base.registry import Registry


@dataclass(frozen=True)
class NetworkKind:
    """A network architecture.

    Attributes
    ----------
    title : short description.
    smallest : least height and width of its images.
    module : (outputs, channels 1 or 3, (h, w), **options) -> initialised module of images (n, 3, h, w), or
        its name in `networks`.
    """

    title: str
    smallest: int
    module: str | Callable[..., Any]
    options: Mapping[str, Any] = field(default_factory=dict)


LIBRARIES: Final = ("timm", "torchvision")
"""Prefixes of the names of libraries' networks, as in ``timm:resnet18``."""
RESNET20: Final = {"widths": (16, 32, 64), "blocks": 3}
Builder = TypeVar("Builder", bound=Callable[..., Any])

NETWORKS: Final = Registry[NetworkKind]("network", "", "wordnet_splits.networks")


def register_network(name: str, title: str, *, smallest: int, **options: Any) -> Callable[[Builder], Builder]:
    """Register the decorated function or class as a network; see `NetworkKind` for the parameters."""
    return NETWORKS.register(name, lambda module: NetworkKind(title, smallest, module, options))


_SHIPPED: Final = {
    "resnet20": NetworkKind(
        "CIFAR ResNet-20 (16-32-64), the network of Kim et al.'s code", 8, "CifarResNet", RESNET20
    ),
    "resnet20-dropout": NetworkKind(
        "CIFAR ResNet-20 with Kim et al.'s dropout, for MC-dropout",
        8,
        "CifarResNet",
        {**RESNET20, "dropout": 0.2, "head_dropout": 0.1},
    ),
    "resnet18": NetworkKind(
        "CIFAR ResNet-18 (64-128-256-512)", 16, "CifarResNet", {"widths": (64, 128, 256, 512), "blocks": 2}
    ),
    "plain-cnn": NetworkKind(
        "a plain CNN of seven convolutions (32, then pairs of 64-128-256) with batch norm, for CPUs",
        9,
        "PlainCNN",
        {"stem": 32, "widths": (64, 128, 256)},
    ),
    "small-cnn": NetworkKind(
        "the CNN of Abdelzad et al.: convolutions 32 and 64, dense 128, dropout",
        6,
        "SmallCNN",
        {"widths": (32, 64), "dense": 128, "padding": 0, "dropouts": (0.25, 0.5)},
    ),
    "tiny-cnn": NetworkKind(
        "a CNN for the 8 x 8 digits: convolutions 16 and 32, dense 64",
        4,
        "SmallCNN",
        {"widths": (16, 32), "dense": 64, "padding": 1, "dropouts": (0.1, 0.2)},
    ),
    "resnet50-openset": NetworkKind(
        "ResNet-50 of Palechor et al.: as many features as outputs, then logits without bias",
        16,
        "imagenet_resnet",
        {"name": "resnet50", "narrow": True},
    ),
    "resnet152-dropout": NetworkKind(
        "ResNet-152 with Kim et al.'s dropout, for MC-dropout",
        16,
        "imagenet_resnet",
        {"name": "resnet152", "dropout": 0.2, "head_dropout": 0.1},
    ),
}
for _name, _kind in _SHIPPED.items():
    NETWORKS.add(_name, _kind, shipped=True)

AUGMENTATIONS: Final = {
    "none": "identity",
    "crop4-flip": "crop_and_flip",
    "crop-flip": "crop_within_and_flip",
    "crop-resize-flip": "crop_resize_and_flip",
}
"""Augmentation -> name of a function in `methods.image_operations`."""

UPDATE_RULES: Final = {
    "sgd": "SGD",
    "adam": "Adam",
    "keras-adam": "KerasAdam",
    "keras-adamax": "KerasAdamax",
    "rmsprop": "RMSprop",
    "nadam": "NAdam",
    "adagrad": "Adagrad",
    "adadelta": "Adadelta",
}
"""Update rule -> name of a class in `training.optimizers` or ``torch.optim``."""


def named_code(network: str, method: str) -> list[str]:
    """Return the names of a method and a network that are ``MODULE:NAME``, not of a library's network."""
    code = [method] if ":" in method else []
    return code + ([network] if ":" in network and network.partition(":")[0] not in LIBRARIES else [])


def list_networks(pattern: str = "*") -> tuple[str, ...]:
    """Return the names of the networks that match a shell pattern, sorted.

    >>> list_networks("resnet*-dropout")
    ('resnet152-dropout', 'resnet20-dropout')
    """
    return NETWORKS.names(pattern)


class _Schedule(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Constant(_Schedule):
    """The same rate throughout."""

    kind: Literal["constant"]

    def factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """Return 1."""
        return 1.0


class Steps(_Schedule):
    """x factor from each milestone epoch on (counted from 0: ``120`` is after 120 epochs)."""

    kind: Literal["steps"]
    milestones: tuple[int, ...]
    by: float = Field(gt=0, lt=1, alias="factor")

    def factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """Return ``by`` to the number of milestones passed."""
        epoch = step // steps_per_epoch
        return float(self.by ** sum(epoch >= milestone for milestone in self.milestones))

    def scaled(self, old: int, new: int) -> Steps:
        """Return the milestones at the same fractions of ``new`` epochs as they have of ``old``."""
        milestones = tuple(round(m * new / old) for m in self.milestones)
        return Steps(kind="steps", milestones=milestones, factor=self.by)


class Cosine(_Schedule):
    """Half a cosine from 1 to ``end`` over all steps."""

    kind: Literal["cosine"]
    end: float = Field(default=0.0, ge=0, lt=1)

    def factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """Return the factor of a step, counted from 0."""
        return self.end + (1 - self.end) * _half_cosine(step / (steps_per_epoch * epochs))


class OneCycle(_Schedule):
    """Linear from near 0 to 1 over the first ``warmup`` of all steps, then half a cosine down to 0."""

    kind: Literal["one-cycle"]
    warmup: float = Field(default=0.25, gt=0, lt=1)

    def factor(self, step: int, steps_per_epoch: int, epochs: int) -> float:
        """Return the factor of a step, counted from 0."""
        total = steps_per_epoch * epochs
        rise = max(1, round(self.warmup * total))
        if step < rise:
            return (step + 1) / rise
        return _half_cosine((step - rise) / max(1, total - rise))


def _half_cosine(progress: float) -> float:
    return 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


Schedule = Annotated[Constant | Steps | Cosine | OneCycle, Field(discriminator="kind")]
