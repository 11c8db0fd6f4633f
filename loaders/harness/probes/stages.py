"""Probes of several layers: statistics and Gram matrices of maps, logits without their first rank.

``of`` has the names of layers joined by ``+``, or ``stages``, see `model.stages`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import torch
from pydantic import PositiveInt
from torch import Tensor

from wordnet_splits.base.errors import DataError, UnusableError

from ..data.parameters import parameters
from ..models.hooks import STAGES, as_maps, replace_maps
from .registry import ProbeDefaults, register_probe

if TYPE_CHECKING:
    from ..models.model import Model

Statistic = Literal["mean", "sum"]
STATISTICS: Final[dict[str, Any]] = {"mean": lambda maps: maps.mean(-1), "sum": lambda maps: maps.sum(-1)}


@register_probe("layer")
@parameters
class LayerStatistic(ProbeDefaults):
    """A statistic over positions of a layer's output (n, C, h, w); an output (n, C) is unchanged.

    Abdelzad et al. (OODL) sum the maps of an early layer over height and width.

    Attributes
    ----------
    layer : its name within the module, e.g. ``layer1`` or ``layer2.0.conv1``.
    statistic : ``mean`` | ``sum``.
    """

    layer: str = ""
    statistic: Statistic = "mean"

    def __post_init__(self) -> None:
        if not self.layer:
            raise DataError(
                "no layer is named", where="layer", hint="write layer[layer=layer1,statistic=mean]"
            )

    @property
    def layers(self) -> tuple[str, ...]:
        """The layer, as a tuple of length 1."""
        return (self.layer,)

    def __call__(self, model: Model, x: Any) -> Mapping[str, Any]:
        """Return ``maps`` (n, C): the statistic of each of C channels."""
        output = model.layers(x, self.layers)[self.layer]
        if output.ndim < 2:
            raise DataError(f"an output of shape {tuple(output.shape)} has no channels", where=self.layer)
        return {"maps": output if output.ndim == 2 else STATISTICS[self.statistic](output.flatten(2))}


NO_LAYERS = "needs layers of the network, and the model is a function"


@parameters
class _OfLayers(ProbeDefaults):
    """A probe of several layers."""

    of: str = STAGES

    @property
    def layers(self) -> Sequence[str]:
        """Their names."""
        return tuple(self.of.split("+"))

    def require(self, model: Model, x: Any) -> None:
        """Raise UnusableError for a function, or a model without layers before the head."""
        if not model.has_layers:
            raise UnusableError(NO_LAYERS, where=model.name)
        if self.of == STAGES and not model.stages(x):
            raise UnusableError("needs layers before the head, and the model has none", where=model.name)

    def maps(self, model: Model, x: Any) -> dict[str, Tensor]:
        """Return the maps (n, C, positions) of each layer, in the network's order."""
        return {name: as_maps(output).float() for name, output in model.layers(x, self.layers).items()}


@register_probe("stages")
@parameters
class Stages(_OfLayers):
    """The ``mean`` or ``sum`` over positions of each layer's maps, by the layer's name (n, C)."""

    statistic: Statistic = "mean"

    def __call__(self, model: Model, x: Any) -> Mapping[str, Any]:
        """Return the statistic of each channel."""
        return {name: STATISTICS[self.statistic](maps) for name, maps in self.maps(model, x).items()}


@register_probe("gram")
@parameters
class Gram(_OfLayers):
    """Row sums of the Gram matrices of order 1 to ``powers`` of each layer's maps, (n, powers, C).

    Sastry and Oore: the p-th is (F^p F^pT)^(1/p) of maps F (C, positions), powers taken of each element. Its
    rows are summed before the root, as in the authors' code. The sum is a product with a vector, which avoids
    a C x C matrix. Maps are first divided by their greatest value, so that no power overflows.
    """

    powers: PositiveInt = 5

    def __call__(self, model: Model, x: Any) -> Mapping[str, Any]:
        """Return the row sums."""
        return {name: gram_rows(maps, self.powers) for name, maps in self.maps(model, x).items()}


def gram_rows(maps: Tensor, powers: int) -> Tensor:
    """Return the row sums (n, powers, C) of the Gram matrices of maps (n, C, positions)."""
    scale = maps.abs().amax((1, 2), keepdim=True).clamp_min(torch.finfo(maps.dtype).tiny)
    unit, power, rows = maps / scale, torch.ones_like(maps), []
    for p in range(1, powers + 1):
        power = power * unit
        sums = torch.einsum("ncp,np->nc", power, power.sum(1))
        rows.append(sums.sign() * sums.abs() ** (1 / p) * scale[:, 0] ** 2)
    return torch.stack(rows, 1)


@register_probe("rankfeat")
@parameters
class RankFeat(_OfLayers):
    """Logits without the greatest singular component of a layer's maps, averaged over layers.

    Song, Sebe, Wang (NeurIPS 2022): the last two stages of a network, the authors' best choice.
    """

    passes: ClassVar[int] = 2

    @property
    def layers(self) -> Sequence[str]:
        """None: layers are changed in additional passes."""
        return ()

    def changed(self, model: Model, x: Any) -> tuple[str, ...]:
        """Return the layers that are changed, one at a time."""
        names = model.layer_names(x, tuple(self.of.split("+")))
        return names[-2:] if self.of == STAGES else names

    def require(self, model: Model, x: Any) -> None:
        """Raise UnusableError for a model without maps of several channels and positions."""
        super().require(model, x)
        outputs = model.layers(x, self.changed(model, x)).values()
        if any(min(as_maps(output).shape[1:]) < 2 for output in outputs):
            message = "needs maps of several channels and positions, and the model has none"
            raise UnusableError(message, where=model.name)

    def __call__(self, model: Model, x: Any) -> Mapping[str, Any]:
        """Return ``logits`` (n, K)."""
        logits = []
        for name in self.changed(model, x):
            with torch.no_grad(), replace_maps(model.require_module(), {name: without_first_rank}):
                logits.append(model.forward(x)[1])
        return {"logits": torch.stack(logits).mean(0)}


def without_first_rank(maps: Tensor) -> Tensor:
    """Return maps (n, C, P) without their greatest singular component.

    Its right (or left) vector is the last eigenvector of the smaller of the two Gram matrices, which is far
    cheaper than all singular vectors.
    """
    channels, positions = maps.shape[1:]
    if min(channels, positions) < 2:
        raise DataError(
            f"maps of {channels} channels at {positions} positions are their own first rank",
            where="rankfeat",
            hint="name layers before the pooling: rankfeat[layers=layer3+layer4]",
        )
    wide = maps.double()
    if positions <= channels:
        vector = torch.linalg.eigh(wide.transpose(1, 2) @ wide)[1][:, :, -1:]
        rest = wide - (wide @ vector) @ vector.transpose(1, 2)
    else:
        vector = torch.linalg.eigh(wide @ wide.transpose(1, 2))[1][:, :, -1:]
        rest = wide - vector @ (vector.transpose(1, 2) @ wide)
    return rest.to(maps.dtype)
