"""Probes of an input moved a step along a gradient: ODIN's logits, and Mahalanobis confidences of layers.

Liang, Li, Srikant: Enhancing the Reliability of Out-of-distribution Image Detection in Neural Networks
(ICLR 2018), eq. 2, with the step divided by the normalisation's standard deviation per channel, as in the
authors' code: a step of eps is then the same in pixels of [0, 1] for every channel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from pydantic import NonNegativeFloat, PositiveFloat
from torch import Tensor

from wordnet_splits.base.errors import UnusableError

from ..data.arrays import FittedArrays
from ..data.parameters import parameters
from ..models.hooks import as_maps, capture_outputs
from .registry import ProbeDefaults, register_probe
from .stages import NO_LAYERS

if TYPE_CHECKING:
    from ..models.model import Model

STD = "the standard deviations that the input was normalised by"


@register_probe("odin")
@parameters
class Odin(ProbeDefaults):
    """Logits at x' = x - eps sign(-g) / std, g the gradient of log softmax(z(x)/T) at the predicted class.

    Attributes
    ----------
    T : temperature, positive.
    eps : step, in units of pixels in [0, 1]; 0 gives the logits of x itself.
    columns : the columns of the softmax, all by default; the columns of the class map if the benchmark has
        fewer classes than the model. The stored logits always have every column.
    """

    T: PositiveFloat = 1000.0
    eps: NonNegativeFloat = 0.0014
    columns: tuple[int, ...] | None = None

    gradients: ClassVar[bool] = True
    passes: ClassVar[int] = 2

    def require(self, model: Model, x: Any) -> None:
        """Raise UnusableError for a model without gradients, or inputs of an unknown scale."""
        if not model.has_gradients(x):
            message = "needs gradients of the logits, which this model does not give"
            raise UnusableError(message, where=model.name)
        require_scale(model, x)

    def __call__(self, model: Model, x: Any) -> Mapping[str, Any]:
        """Return ``logits`` (n, K) of the perturbed batch."""
        sign = model.shared(x, ("odin", self.T, self.columns), lambda: self.direction(model, x))
        with torch.no_grad():
            return {"logits": model.forward(step(model, x, self.eps * sign))[1]}

    def direction(self, model: Model, x: Any) -> Any:
        """Return sign(-g) of a batch, which does not depend on eps."""
        with torch.enable_grad():
            inputs = x.detach().clone().requires_grad_(True)
            logits = model.forward(inputs)[1]
            if self.columns is not None:
                logits = logits[:, list(self.columns)]
            label = logits.argmax(dim=1, keepdim=True)
            peak = torch.log_softmax(logits.float() / self.T, dim=1).gather(1, label)
            (gradient,) = torch.autograd.grad(
                peak.sum(), inputs
            )  # rows are independent: the gradient of each
        return (-gradient).sign()


def require_scale(model: Model, x: Any) -> Sequence[float]:
    """Return the standard deviation of each channel that the input was normalised by.

    Raises
    ------
    UnusableError : they are unknown, or of another number of channels.
    """
    hint = "give std= with custom image sets, else Transform(..., std=...): one for each channel"
    if model.std is None:
        raise UnusableError(f"needs {STD}: give std=, 1 without normalisation", where=model.name, hint=hint)
    channels, std = x.shape[1], model.std
    if len(std) != channels and len(set(std)) == 1:  # equal in all channels: a single one will do
        std = std[:1]
    if len(std) not in (1, channels):
        message = f"needs a standard deviation for each of {channels} channels: {len(std)} are given"
        raise UnusableError(message, where=model.name, hint=hint)
    return std


def step(model: Model, x: Any, pixels: Any) -> Any:
    """Return x minus a step in units of pixels in [0, 1], whatever the normalisation of the input."""
    std = require_scale(model, x)
    return x - pixels / torch.tensor(std, dtype=x.dtype, device=x.device).view(1, -1, *[1] * (x.ndim - 2))


@register_probe("mahalanobis_step")
@parameters
class MahalanobisStep(ProbeDefaults):
    """Minus the squared distance to the nearest class mean, by layer, at x + eps sign(its gradient) / std.

    Attributes
    ----------
    state : for each layer ``LAYER/centre`` (D,), ``LAYER/whiten`` (D, R), ``LAYER/means`` (C, R), of the
        means of its maps over positions.
    eps : step, as in `Odin`. One pass gives the gradients of all layers; each layer then needs another pass.
    """

    state: FittedArrays
    eps: NonNegativeFloat = 0.0014

    gradients: ClassVar[bool] = True
    passes: ClassVar[int] = 2

    def require(self, model: Model, x: Any) -> None:
        """Raise UnusableError for a function, or inputs of an unknown scale."""
        if not model.has_layers:
            raise UnusableError(NO_LAYERS, where=model.name)
        require_scale(model, x)

    def __call__(self, model: Model, x: Any) -> Mapping[str, Any]:
        """Return the confidence (n,) of each layer by its name."""
        module = model.require_module()
        names = [key.rpartition("/")[0] for key in self.state if key.endswith("/centre")]
        with torch.enable_grad(), capture_outputs(module, names, copy=True) as outputs:
            inputs = x.detach().clone().requires_grad_(True)
            model.forward(inputs)
            signs = [
                torch.autograd.grad(self._confidence(name, outputs[name]).sum(), inputs, retain_graph=True)[
                    0
                ].sign()
                for name in names
            ]
        confidences = {}
        for name, sign in zip(names, signs, strict=True):
            with torch.no_grad(), capture_outputs(module, [name], copy=True) as stepped:
                model.forward(step(model, x, -self.eps * sign))
            confidences[name] = self._confidence(name, stepped[name])
        return confidences

    def _confidence(self, name: str, output: Tensor) -> Tensor:
        features = as_maps(output).double().mean(2)
        centre, whiten, means = (
            torch.from_numpy(self.state[f"{name}/{part}"]).to(features.device)
            for part in ("centre", "whiten", "means")
        )
        points = (features - centre) @ whiten
        squared = points.square().sum(1, keepdim=True) + means.square().sum(1) - 2 * points @ means.T
        return -squared.amin(1)
