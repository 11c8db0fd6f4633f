"""The components of a run: recipe and seed, machine, images on the device, batches and loss terms."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from wordnet_splits.base.errors import DataError, unknown

from ..models.devices import Ranks, deterministic_kernels
from .checkpoints.recipe import TrainingRecipe
from .data import Images, TrainingData
from .methods.interface import OUTLIER, Method, Term

Precision = Literal["float32", "bf16", "fp16"]


@dataclass(frozen=True)
class Run:
    """One model to train: recipe, network, one of the recipe's optimizers, seed."""

    recipe: TrainingRecipe
    network: str
    optimizer: str
    seed: int

    @property
    def series(self) -> str:
        """Name that all seeds of a model share, e.g. ``kim-cifar-resnet20-e20-n5000``."""
        recipe = self.recipe
        optimizer = f"-{self.optimizer}" if len(recipe.optimizer) > 1 else ""
        epochs = f"-e{recipe.epochs}" if recipe.shortened else ""
        images = f"-n{recipe.images}" if recipe.images else ""
        network = re.sub(r"[^\w.-]+", "-", self.network)
        return f"{recipe.name}-{network}{optimizer}{epochs}{images}"

    @property
    def name(self) -> str:
        """Name of the run and of its folder."""
        return f"{self.series}-s{self.seed}"


@dataclass(frozen=True)
class Machine:
    """Device and precision of a run; equal machines give equal bytes."""

    device: Any
    precision: Precision
    ranks: Ranks = field(default_factory=Ranks)

    def as_dict(self) -> dict[str, Any]:
        """Return the record for the checkpoint."""
        cuda = self.device.type == "cuda"
        processes = {"ranks": self.ranks.world} if self.ranks.world > 1 else {}
        return {
            **processes,
            "device": torch.cuda.get_device_name(self.device) if cuda else "cpu",
            "precision": self.precision,
            "threads": None if cuda else torch.get_num_threads(),
            "torch": str(torch.__version__),
        }


@dataclass(frozen=True)
class DeviceData:
    """A benchmark's images on the device, knowns and negatives in one pool; shared by all runs."""

    facts: TrainingData
    pool: Images
    n_known: int
    val: Images | None
    val_negatives: Images | None

    @classmethod
    def of(cls, data: TrainingData, device: Any) -> DeviceData:
        """Move a benchmark's images to a device; negatives, labelled -1, follow the knowns."""
        images = data.train
        if data.negatives is not None:
            if data.negatives.pixels.shape[1:] != images.pixels.shape[1:]:
                raise DataError("negatives and knowns differ in size", hint="resize the negatives")
            labels = torch.full_like(data.negatives.labels, OUTLIER)
            pixels = torch.cat([images.pixels, data.negatives.pixels])
            images = Images(pixels, torch.cat([images.labels, labels]))
        val, negatives = (None if s is None else s.to(device) for s in (data.val, data.val_negatives))
        return cls(data, images.to(device), len(data.train), val, negatives)

    @property
    def n_negatives(self) -> int:
        """Number of negatives."""
        return len(self.pool) - self.n_known


def derive_seed(seed: int, *purpose: object) -> int:
    """Return a 63-bit seed for one purpose, e.g. ``derive_seed(0, "epoch", 3)``."""
    text = "\x1f".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


@contextmanager
def reproducible(device: Any) -> Iterator[None]:
    """Use deterministic kernels, and restore torch's settings and random state afterwards."""
    with (
        torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
        deterministic_kernels(),
    ):
        yield


def epoch_batches(
    n_known: int, n_negatives: int, mode: str, batch: int, ratio: int, generator: Any
) -> Iterator[Tensor]:
    """Yield the pool rows of each step of an epoch (the pool holds knowns first, then negatives).

    ``none``: shuffled knowns. ``mixed``: knowns and negatives shuffled together. ``beside``: ``batch`` knowns
    and ``ratio * batch`` negatives, which are reshuffled when all have been used.
    """
    if mode == "beside":
        needed = ratio * n_known
        rounds = [
            torch.randperm(n_negatives, generator=generator) for _ in range(math.ceil(needed / n_negatives))
        ]
        outliers = (n_known + torch.cat(rounds)[:needed]).split(ratio * batch)
        knowns = torch.randperm(n_known, generator=generator).split(batch)
        yield from (torch.cat(pair) for pair in zip(knowns, outliers, strict=True))
    else:
        rows = n_known + (n_negatives if mode == "mixed" else 0)
        yield from torch.randperm(rows, generator=generator).split(batch)


def mean_terms(
    method: Method, terms: Mapping[str, Term | Tensor], sizes: Collection[int] = ()
) -> dict[str, Term]:
    """Return the parts of a loss with the mean of their values.

    Parameters
    ----------
    sizes : numbers of images, ID images and outliers of the batch. A part that depends on the image alone
        has one value, or as many values as a multiple of a size.

    Raises
    ------
    DataError : a part that is not declared, none at all, or values of another shape than (m,) or ().
    """
    where = f"training method {method.name!r}"
    if not isinstance(terms, Mapping):
        raise DataError(
            f"its step returned a {type(terms).__name__}, not the named parts of a loss",
            where=where,
            hint=f"return {{{next(iter(method.parts))!r}: values}}",
        )
    means = {}
    for name, term in terms.items():
        values, weight = term if isinstance(term, Term) else Term(term)
        if name not in method.parts:
            raise unknown("part of the loss", name, method.parts, where=where)
        if not isinstance(values, Tensor):
            message = f"the part {name!r} of its loss is a {type(values).__name__}, not a tensor"
            raise DataError(message, where=where)
        if values.ndim > 1 or values.numel() == 0:
            raise DataError(
                f"the part {name!r} of its loss has shape {tuple(values.shape)}, not one value per image",
                where=where,
            )
        per_image = values.ndim == 1 and method.parts[name].depends == "image"
        if per_image and sizes and all(len(values) % size for size in sizes):
            numbers = " or ".join(map(str, sorted(sizes)))
            raise DataError(
                f"the part {name!r} of its loss has {len(values)} values for a batch of {numbers} images",
                where=where,
                hint="return a value per image, or declare the part as Part(depends='batch')",
            )
        means[name] = Term(values.mean() if values.ndim else values, weight)
    if not means:
        raise DataError("its step returned no part of a loss", where=where)
    return means


def loss_of(
    method: Method, terms: Mapping[str, Term | Tensor], sizes: Collection[int] = ()
) -> tuple[dict[str, Term], Tensor]:
    """Return the parts of a loss with the mean of their values, and the loss.

    Raises
    ------
    DataError : as `mean_terms`, or the loss is not a real number with a gradient.
    """
    means = mean_terms(method, terms, sizes)
    loss, where = sum_terms(means), f"training method {method.name!r}"
    if loss.ndim or not loss.is_floating_point():
        message = f"its loss must be a real number, got {loss.dtype} of shape {tuple(loss.shape)}"
        raise DataError(message, where=where)
    if not loss.requires_grad:
        hint = "are all parts detached, or computed without gradients?"
        raise DataError("its loss has no gradient", where=where, hint=hint)
    return means, loss


def sum_terms(means: Mapping[str, Term]) -> Tensor:
    """Return the loss: the sum of weight x mean of each part."""
    weighted = [
        values if not isinstance(weight, Tensor) and weight == 1 else weight * values
        for values, weight in means.values()
    ]
    loss = weighted[0]
    for value in weighted[1:]:
        loss = loss + value
    return loss


def known_probabilities(logits: Tensor, *, background: bool) -> Tensor:
    """Softmax over all columns, the background column (last) dropped afterwards: (n, K)."""
    probabilities = torch.softmax(logits, dim=1)
    return probabilities[:, :-1] if background else probabilities


def copied(value: Any, device: Any = None) -> Any:
    """Return a copy of a method's state, with its tensors on a device (by default their current one)."""
    if isinstance(value, Tensor):
        return value.detach().to(device or value.device).clone()
    if isinstance(value, dict):
        return {key: copied(part, device) for key, part in value.items()}
    return [copied(part, device) for part in value] if isinstance(value, list) else value
