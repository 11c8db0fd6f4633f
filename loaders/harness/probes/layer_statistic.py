"""The mean or the sum over positions of one layer's maps, from the forward pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from wordnet_splits.base.errors import DataError, unknown

from .registry import register_probe

if TYPE_CHECKING:
    from ..model import Model

STATISTICS: Final[dict[str, Any]] = {"mean": lambda maps: maps.mean(-1), "sum": lambda maps: maps.sum(-1)}


@register_probe("layer")
@dataclass(frozen=True)
class LayerStatistic:
    """A statistic over positions of the output (n, C, h, w) of one layer; an output (n, C) is unchanged.

    Abdelzad et al. (OODL) sum the maps of one early layer over height and width.

    Attributes
    ----------
    layer : its name within the module, e.g. ``layer1`` or ``layer2.0.conv1``.
    statistic : ``mean`` | ``sum``.
    """

    layer: str = ""
    statistic: str = "mean"

    kind: ClassVar[str]
    gradients: ClassVar[bool] = False
    passes: ClassVar[int] = 0
    random: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.statistic not in STATISTICS:
            raise unknown("statistic", self.statistic, STATISTICS, where="layer")
        if not self.layer:
            raise DataError(
                "no layer is named", where="layer", hint="write layer[layer=layer1,statistic=mean]"
            )

    @property
    def layers(self) -> tuple[str, ...]:
        """The one layer."""
        return (self.layer,)

    def __call__(self, model: Model, x: Any) -> Mapping[str, Any]:
        """Return ``maps`` (n, C): the statistic of each of C channels."""
        output = model.layers(x, self.layers)[self.layer]
        if output.ndim < 2:
            raise DataError(f"an output of shape {tuple(output.shape)} has no channels", where=self.layer)
        return {"maps": output if output.ndim == 2 else STATISTICS[self.statistic](output.flatten(2))}
