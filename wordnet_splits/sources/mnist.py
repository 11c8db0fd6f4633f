"""MNIST and Fashion-MNIST: grey pictures of 28 x 28 without names, in idx files or the Hub's Parquet.

References: LeCun, Bottou, Bengio, Haffner, Gradient-based learning applied to document recognition, 1998;
Xiao, Rasul, Vollgraf, Fashion-MNIST, 2017.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

from wordnet_splits.sources.base import register
from wordnet_splits.sources.layouts.idx import SIDE, IdxLayout, class_ids
from wordnet_splits.sources.layouts.parquet_nameless import HubLayout
from wordnet_splits.sources.layouts.parquet_positional import hub_positions
from wordnet_splits.sources.layouts.positional import PositionalLayout, PositionalSource

SPLITS = ("train", "test")
SHAPE = (SIDE, SIDE, 3)
DIGITS = IdxLayout("mnist", ("MNIST/raw", "raw", "mnist"), like=("fashion-mnist",))
CLOTHES = IdxLayout("fashion-mnist", ("FashionMNIST/raw", "raw", "fashion-mnist"), like=("mnist",))
CARD = MappingProxyType({"T - shirt / top": "T-shirt/top"})  # how the Hub's card spells a class


@register
class Mnist(PositionalSource):
    """60,000 train and 10,000 test pictures of handwritten digits."""

    name: ClassVar[str] = "mnist"
    splits: ClassVar[tuple[str, ...]] = SPLITS
    looks_for: ClassVar[str] = (
        "train-images-idx3-ubyte and train-labels-idx1-ubyte, or t10k-..., plain or .gz, of digits; "
        "or mnist/*.parquet"
    )
    layouts: ClassVar[Mapping[str, PositionalLayout]] = MappingProxyType(
        {
            "idx": DIGITS.positions(),
            "parquet": hub_positions(
                HubLayout(("image",), "label", ("mnist",), SPLITS, SHAPE, named=True), class_ids("mnist")
            ),
        }
    )


@register
class FashionMnist(PositionalSource):
    """60,000 train and 10,000 test pictures of clothes."""

    name: ClassVar[str] = "fashion-mnist"
    splits: ClassVar[tuple[str, ...]] = SPLITS
    looks_for: ClassVar[str] = (
        "train-images-idx3-ubyte and train-labels-idx1-ubyte, or t10k-..., plain or .gz, of clothes; "
        "or fashion_mnist/*.parquet"
    )
    layouts: ClassVar[Mapping[str, PositionalLayout]] = MappingProxyType(
        {
            "idx": CLOTHES.positions(),
            "parquet": hub_positions(
                HubLayout(("image",), "label", ("fashion_mnist",), SPLITS, SHAPE, named=True, misspelt=CARD),
                class_ids("fashion-mnist"),
            ),
        }
    )
