"""MNIST and Fashion-MNIST: grey pictures of 28 x 28 without names, in idx files or the Hub's Parquet.

References: LeCun, Bottou, Bengio, Haffner, Gradient-based learning applied to document recognition, 1998;
Xiao, Rasul, Vollgraf, Fashion-MNIST, 2017.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from wordnet_splits.sources.layouts.idx import SIDE, IdxLayout, class_ids
from wordnet_splits.sources.layouts.layout import Layout
from wordnet_splits.sources.layouts.parquet_pictures import HubLayout
from wordnet_splits.sources.source import Source, register_source

SPLITS = ("train", "test")
SHAPE = (SIDE, SIDE, 3)


class IdxSource(Source):
    """Pictures of 28 x 28 in idx files or the Hub's Parquet."""

    splits: ClassVar[tuple[str, ...]] = SPLITS
    lossless: ClassVar[bool] = True
    idx: ClassVar[IdxLayout]
    hub: ClassVar[HubLayout]

    @classmethod
    def layouts(cls, root: Path) -> Iterator[Layout]:
        """Yield idx files and Parquet files."""
        yield from cls.idx.layouts(root)
        yield from cls.hub.positional(cls.name, root, class_ids(cls.name))


@register_source
class Mnist(IdxSource):
    """60,000 train and 10,000 test pictures of handwritten digits."""

    name: ClassVar[str] = "mnist"
    looks_for: ClassVar[str] = (
        "train-images-idx3-ubyte and train-labels-idx1-ubyte, or t10k-..., plain or .gz, of digits; "
        "or mnist/*.parquet"
    )
    idx: ClassVar[IdxLayout] = IdxLayout("mnist", ("MNIST/raw", "raw", "mnist"), similar=("fashion-mnist",))
    hub: ClassVar[HubLayout] = HubLayout(("image",), "label", ("mnist",), SPLITS, SHAPE, in_config=True)


@register_source
class FashionMnist(IdxSource):
    """60,000 train and 10,000 test pictures of clothes."""

    name: ClassVar[str] = "fashion-mnist"
    looks_for: ClassVar[str] = (
        "train-images-idx3-ubyte and train-labels-idx1-ubyte, or t10k-..., plain or .gz, of clothes; "
        "or fashion_mnist/*.parquet"
    )
    idx: ClassVar[IdxLayout] = IdxLayout(
        "fashion-mnist", ("FashionMNIST/raw", "raw", "fashion-mnist"), similar=("mnist",)
    )
    hub: ClassVar[HubLayout] = HubLayout(
        *(("image",), "label", ("fashion_mnist",), SPLITS, SHAPE),
        in_config=True,
        misspelt={"T - shirt / top": "T-shirt/top"},  # the Hub's card
    )
