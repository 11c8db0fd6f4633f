"""The steps of a training: their batches, the loss of a batch, and gradients replayed as CUDA graphs.

A step of a small network on a GPU is mostly launches from Python: docs/computing.md has the rates of a
ResNet-20 with and without replayed graphs.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from wordnet_splits.base.errors import DataError, unknown

from .methods.classification import Softmax
from .methods.interface import Batch, Method, Term
from .methods.uncertainty import Crl, Edl

REPLAYABLE = frozenset({Softmax.step, Crl.step, Edl.step})
"""Steps of tensor arithmetic alone: no code reads a tensor's value, and state tensors change in place."""
REPLAYED_NETWORKS = ("resnet18", "resnet20", "resnet20-dropout", "tiny-cnn")
"""Networks that `make gpu` trains to compare a replayed graph with the plain steps."""
WARM_UPS = 3
"""Number of passes before the first capture, while libraries choose their kernels."""


class Cost(NamedTuple):
    """The cost of a method: seconds per epoch, and images forward and backward for each ID image."""

    seconds: float
    forward: float
    backward: float


def derive_seed(seed: int, *purpose: object) -> int:
    """Return a 63-bit seed for one purpose, e.g. ``derive_seed(0, "epoch", 3)``."""
    text = "\x1f".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


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
    """
    where = f"training method {method.name!r}"
    if not isinstance(terms, Mapping):
        raise DataError(
            f"its step must return the parts of the loss by name, got {type(terms).__name__}",
            where=where,
            hint=f"return {{{next(iter(method.parts))!r}: values}}",
        )
    means = {}
    for name, term in terms.items():
        values, weight = term if isinstance(term, Term) else Term(term)
        if name not in method.parts:
            raise unknown("part of the loss", name, method.parts, where=where)
        if not isinstance(values, Tensor):
            message = f"the part {name!r} of its loss must be a tensor, got {type(values).__name__}"
            raise DataError(message, where=where)
        if values.ndim > 1 or values.numel() == 0:
            raise DataError(
                f"the part {name!r} of its loss must have a value per image, got shape {tuple(values.shape)}",
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
    """Return the parts of a loss with the mean of their values, and the loss."""
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


class GradientGraph:
    """The gradients of a batch of fixed shapes, captured once and replayed with other images.

    Parameters
    ----------
    gradients : batch -> the numbers of a step; leaves gradients in ``parameters``.
    parameters : those with gradients.
    changed_tensors : tensors that a pass changes, as running means.
    batch : of the shapes to capture.
    pool : of the memory, shared by the graphs of a training.
    warm : whether batches of these shapes have been passed before.
    """

    def __init__(
        self,
        gradients: Callable[[Batch], Tensor],
        parameters: Sequence[Tensor],
        changed_tensors: Sequence[Tensor],
        batch: Batch,
        pool: Any,
        *,
        warm: bool,
    ) -> None:
        self._parameters, self._device = parameters, parameters[0].device
        self._batch = Batch(tuple(map(torch.clone, batch.views)), batch.labels.clone(), batch.index.clone())
        if not warm:
            with torch.cuda.device(self._device), torch.random.fork_rng(devices=[self._device]):
                _warm_up(lambda: gradients(self._batch), changed_tensors)
        for parameter in parameters:
            parameter.grad = None  # so that the graph's own memory receives the gradients
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(self._device), torch.cuda.graph(self._graph, pool=pool):
            self._numbers = gradients(self._batch)
        self._gradients = [parameter.grad for parameter in parameters]

    def replay(self, batch: Batch) -> Tensor:
        """Compute the gradients of a batch, and return the numbers of the step, valid until the next."""
        for static, tensor in zip(_tensors(self._batch), _tensors(batch), strict=True):
            static.copy_(tensor)
        with torch.cuda.device(self._device):
            self._graph.replay()
        for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
            parameter.grad = gradient
        return self._numbers


def is_replayable(method: Method, network: str) -> bool:
    """Return whether the step of a method on a network is one that a graph was seen to replay."""
    return type(method).step in REPLAYABLE and network in REPLAYED_NETWORKS


def _tensors(batch: Batch) -> tuple[Tensor, ...]:
    return (*batch.views, batch.labels, batch.index)


def _warm_up(gradients: Callable[[], Tensor], changed_tensors: Sequence[Tensor]) -> None:
    """Compute the gradients a few times on a separate stream, then restore the tensors."""
    before = [tensor.clone() for tensor in changed_tensors]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(WARM_UPS):
            gradients()
    torch.cuda.current_stream().wait_stream(stream)
    with torch.no_grad():
        for tensor, value in zip(changed_tensors, before, strict=True):
            tensor.copy_(value)
