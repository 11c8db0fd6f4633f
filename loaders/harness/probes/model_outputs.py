"""Outputs that only some models have: of zero-shot classifiers, and of networks of a training method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from pydantic import PositiveFloat, PositiveInt
from torch.nn import functional

from wordnet_splits.base.errors import DataError, UnusableError
from wordnet_splits.base.untrusted import user_errors

from ..data.arrays import COSINE_SCALE
from ..data.parameters import parameters
from .registry import ProbeDefaults, register_probe

if TYPE_CHECKING:
    from ..models.model import Model


@register_probe("cosine")
@parameters
class Cosine(ProbeDefaults):
    """The factor between the logits of a zero-shot classifier and cosine similarities."""

    def require(self, model: Model, x: Any) -> None:
        """Raise UnusableError unless the model is a zero-shot classifier."""
        _require_zero_shot(model)

    def __call__(self, model: Model, x: Any) -> Mapping[str, Any]:
        """Return ``scale`` (n,), the same for every image."""
        self.require(model, x)
        return {"scale": torch.full((len(x),), COSINE_SCALE)}


@register_probe("negatives")
@parameters
class Negatives(ProbeDefaults):
    """Log sums of exp(100 cosine / T) over groups of the negative words of a zero-shot classifier.

    Attributes
    ----------
    groups : number of groups.
    T : temperature.
    """

    groups: PositiveInt = 100
    T: PositiveFloat = 1.0

    def require(self, model: Model, x: Any) -> None:
        """Raise UnusableError unless the model is a zero-shot classifier with negative words."""
        _require_zero_shot(model)
        if not model.words:
            raise UnusableError("needs a zero-shot classifier with negative words", where=model.name)

    def __call__(self, model: Model, x: Any) -> Mapping[str, Any]:
        """Return ``log_sums`` (n, groups)."""
        from ..models.vision_language import group_log_sums

        self.require(model, x)
        module = model.require_module()
        features = model.shared(x, "zero-shot features", lambda: model.forward(x)[0])
        similarities = COSINE_SCALE * functional.normalize(features, dim=1) @ module.negatives.T
        return {"log_sums": group_log_sums(similarities, self.groups, self.T)}


def _require_zero_shot(model: Model) -> None:
    from ..models.vision_language import ZeroShot

    if not isinstance(model.module, ZeroShot):
        raise UnusableError("needs a zero-shot classifier, see loaders.harness.zero_shot", where=model.name)


@register_probe("method")
@parameters
class MethodOutput(ProbeDefaults):
    """One of `loaders.harness.training.methods.Method.outputs`, by default the first."""

    output: str = ""

    passes: ClassVar[int] = 1

    def require(self, model: Model, x: Any) -> None:
        """Raise UnusableError for a model that no training method gives this output."""
        trained = getattr(model.module, "trained_by", None)
        if trained is None or not trained.method.outputs:
            message = "needs an output of a training method, and the model has none"
            raise UnusableError(message, where=model.name)
        outputs = trained.method.outputs
        if self.output and self.output not in outputs:
            names = ", ".join(outputs)
            message = f"needs an output {self.output!r}, and method {trained.method.name!r} gives {names}"
            raise UnusableError(message, where=model.name)

    def __call__(self, model: Model, x: Any) -> Mapping[str, Any]:
        """Return ``value`` (n,)."""
        self.require(model, x)
        trained = model.require_module().trained_by
        where = f"training method {trained.method.name!r}"
        name = self.output or trained.method.outputs[0]
        with user_errors(f"its output {name!r} failed", where=where):
            values = trained.method.confidences(trained.model, x)
        if name not in values or tuple(values[name].shape) != (len(x),):
            shape = tuple(values[name].shape) if name in values else "missing"
            raise DataError(f"its output {name!r} is {shape}, not one value per image", where=where)
        if values[name].is_complex():
            raise DataError(
                f"its output {name!r} must be real numbers, got {values[name].dtype}", where=where
            )
        return {"value": values[name].detach()}
