"""What a training recipe may name, without torch: recipes are read, checked and listed without it.

The functions of these names are in `losses`, `networks`, `augment` and `optimizers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Literal


@dataclass(frozen=True)
class LossKind:
    """How a loss treats negatives.

    Attributes
    ----------
    negatives : ``none``: it takes none; ``mixed``: shuffled among the knowns; ``beside``: a batch of them
        beside each batch of knowns.
    background : whether the network has one output more, for the negatives.
    parameters : what a recipe may set.
    """

    negatives: Literal["none", "mixed", "beside"]
    background: bool = False
    parameters: tuple[str, ...] = ()


@dataclass(frozen=True)
class NetworkKind:
    """One architecture: a title, and the least height and width of the images it takes."""

    title: str
    smallest: int


LOSSES: Final[dict[str, LossKind]] = {
    "softmax": LossKind("none"),
    "background": LossKind("mixed", background=True),
    "entropic-open-set": LossKind("mixed"),
    "outlier-exposure": LossKind("beside", parameters=("weight",)),
    "energy": LossKind("beside", parameters=("m_in", "m_out", "weight")),
}

NETWORKS: Final[dict[str, NetworkKind]] = {
    "resnet20": NetworkKind("CIFAR ResNet-20 (16-32-64), the network of Kim et al.'s code", 8),
    "resnet20-dropout": NetworkKind("CIFAR ResNet-20 with Kim et al.'s dropout, for MC-dropout", 8),
    "resnet18": NetworkKind("CIFAR ResNet-18 (64-128-256-512)", 16),
    "small-cnn": NetworkKind("the CNN of Abdelzad et al.: convolutions 32 and 64, dense 128, dropout", 6),
    "tiny-cnn": NetworkKind("a CNN for the 8 x 8 digits: convolutions 16 and 32, dense 64", 4),
}

AUGMENTATIONS: Final = ("none", "crop4-flip")

UPDATE_RULES: Final = ("sgd", "adam", "keras-adam", "keras-adamax", "rmsprop", "nadam", "adagrad", "adadelta")


def list_networks(pattern: str = "*") -> tuple[str, ...]:
    """Return the names of the networks that match a shell pattern, sorted.

    >>> list_networks("resnet*")
    ('resnet18', 'resnet20', 'resnet20-dropout')
    """
    return tuple(sorted(name for name in NETWORKS if fnmatchcase(name, pattern)))
