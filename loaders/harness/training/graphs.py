"""Gradients replayed as CUDA graphs: a step of a small network on a GPU is mostly launches from Python.

docs/computing.md has the rates of a ResNet-20 with and without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .methods.classification import Softmax
from .methods.interface import Batch, Method
from .methods.uncertainty import Crl, Edl

REPLAYABLE = frozenset({Softmax.step, Crl.step, Edl.step})
"""Steps of tensor arithmetic alone: no code reads a tensor's value, and state tensors change in place."""
NETWORKS = ("resnet18", "resnet20", "resnet20-dropout", "tiny-cnn")
"""Networks that `make gpu` trains to compare a replayed graph with the plain steps."""
WARM_UPS = 3
"""Number of passes before the first capture, while libraries choose their kernels."""


class GradientGraph:
    """The gradients of a batch of fixed shapes, captured once and replayed with other images.

    Parameters
    ----------
    gradients : batch -> the numbers of a step; leaves gradients in ``parameters``.
    parameters : those with gradients. changed_tensors : tensors that a pass changes, as running means.
    batch : of the shapes to capture. pool : of the memory, shared by the graphs of a training.
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
    return type(method).step in REPLAYABLE and network in NETWORKS


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
