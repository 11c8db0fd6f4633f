"""Probes of zero-shot classifiers: the scale of their logits, and similarities to negative words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from pydantic import PositiveFloat, PositiveInt
from torch.nn import functional

from ..arrays import COSINE_SCALE
from .registry import ProbeDefaults, register_probe, require

if TYPE_CHECKING:
    from ..models import Model

NOT_ZERO_SHOT = "needs a zero-shot classifier, see loaders.harness.zero_shot"


@register_probe("cosine")
@dataclass(frozen=True)
class Cosine(ProbeDefaults):
    """The factor between the logits of a zero-shot classifier and cosine similarities."""

    layers: ClassVar[tuple[str, ...]] = ()

    def lacks(self, model: Model, x: Any) -> str:
        """Return why the model cannot be probed, or ""."""
        return "" if _zero_shot(model) else NOT_ZERO_SHOT

    def __call__(self, model: Model, x: Any) -> Mapping[str, Any]:
        """Return ``scale`` (n,), the same for every image."""
        require(self, model, x)
        return {"scale": torch.full((len(x),), COSINE_SCALE)}


@register_probe("negatives")
@dataclass(frozen=True)
class Negatives(ProbeDefaults):
    """Log sums of exp(100 cosine / T) over groups of the negative words of a zero-shot classifier.

    Attributes
    ----------
    groups : number of groups. T : temperature.
    """

    groups: PositiveInt = 100
    T: PositiveFloat = 1.0

    layers: ClassVar[tuple[str, ...]] = ()

    def lacks(self, model: Model, x: Any) -> str:
        """Return why the model cannot be probed, or ""."""
        if not _zero_shot(model):
            return NOT_ZERO_SHOT
        return "" if model.words else "needs a zero-shot classifier with negative words"

    def __call__(self, model: Model, x: Any) -> Mapping[str, Any]:
        """Return ``log_sums`` (n, groups)."""
        from ..models.vision_language import group_log_sums

        require(self, model, x)
        module = model.require_module()
        features = model.shared(x, "zero-shot features", lambda: model.forward(x)[0])
        similarities = COSINE_SCALE * functional.normalize(features, dim=1) @ module.negatives.T
        return {"log_sums": group_log_sums(similarities, self.groups, self.T)}


def _zero_shot(model: Model) -> bool:
    from ..models.vision_language import ZeroShot

    return isinstance(model.module, ZeroShot)
