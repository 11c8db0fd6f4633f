"""The head of a network, whose input is the features, and the outputs that are logits."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.metrics.counts import to_numpy

from ..data.array_checks import refuse_probabilities
from ..data.arrays import Head, array_of
from .hooks import capture_features, capture_outputs, run_eagerly, submodule

OUTPUTS = ("features", "logits")
"""Keys of a dict that a function may return."""


def logits_of(output: Any, where: str, position: int = 1) -> Tensor:
    """Return the logits (n, K) of an output: itself, its ``logits``, or one of two, by ``position``."""
    if _is_pair(output):
        output = output[position]
    elif isinstance(output, dict):
        output = output.get("logits")
    elif hasattr(output, "logits"):
        output = output.logits
    if not isinstance(output, torch.Tensor) or output.ndim != 2:
        shape = tuple(output.shape) if isinstance(output, torch.Tensor) else type(output).__name__
        raise DataError(
            f"the model gives {shape} where logits (n, K) are expected",
            where=where,
            hint="wrap it in a function that returns (features, logits)",
        )
    return output


def _is_pair(output: Any) -> bool:
    return isinstance(output, tuple | list) and not hasattr(output, "logits") and len(output) == 2


def as_tensors(output: Any, where: str) -> Any:
    """Return a function's output with its arrays (NumPy, JAX, anything with ``__array__``) as tensors."""
    if isinstance(output, torch.Tensor) or hasattr(output, "logits"):
        return output
    if isinstance(output, dict):
        return {name: as_tensors(value, where) for name, value in output.items()}
    if isinstance(output, tuple | list):
        return tuple(as_tensors(value, where) for value in output)
    if not hasattr(output, "__array__"):
        return output
    array = to_numpy(output, where=where)
    if array.dtype.kind in "OSUmM":
        raise DataError(f"outputs must be numbers, got {array.dtype}", where=where)
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:  # e.g. other libraries' bfloat16
        array = array.astype(np.float32)
    return torch.from_numpy(np.array(array))  # a copy: arrays of other libraries are read-only


def features_and_logits(output: Any, where: str) -> tuple[Tensor | None, Tensor]:
    """Return the features (n, D), None if absent, and logits (n, K) from a function's or program's output."""
    output = as_tensors(output, where)
    if _is_pair(output):
        refuse_equal_outputs(output, where)
    if isinstance(output, dict) and not hasattr(output, "logits"):
        for name in output:
            if name not in OUTPUTS:
                raise unknown("output of the model", str(name), OUTPUTS, where=where)
        output = (output["features"], output.get("logits")) if "features" in output else output.get("logits")
    logits = logits_of(output, where)
    if not isinstance(output, tuple | list) or hasattr(output, "logits"):
        return None, logits
    features = output[0]
    if not isinstance(features, Tensor) or features.ndim != 2:
        raise DataError(
            "of two outputs the first has to be features (n, D), the second logits (n, K)", where=where
        )
    return features, logits


class HookedNetwork:
    """A module whose features are captured by a hook before the head.

    ``network(x)`` returns (features (n, D), logits (n, K)). Without a given name, the first call finds the
    head: the last nn.Linear called that outputs the logits. A module without linear layers for its classes is
    used as a function of images: its features are None, unless it returns them. If it returns two outputs, in
    either order, the logits come from a linear layer. Feature maps before a head that is not linear,
    e.g. a 1 x 1 convolution, are averaged over their positions.
    """

    def __init__(self, module: nn.Module, head: str | None, name: str) -> None:
        self.module, self.name = module, name
        self.head_name = head
        if head is not None:
            submodule(module, head, name)
        self.matrix: Head | None = None
        self._checked = False
        self._position = 1

    def prepare(self, x: Tensor) -> tuple[Tensor | None, Tensor]:
        """Return features and logits of ``x``; the first call finds the head with them."""
        if self._checked:
            return self(x)
        found = (
            find_head(self.module, x, self.name)
            if self.head_name is None
            else named_head(self.module, x, self.name, self.head_name)
        )
        self.head_name, self._position = found.name, found.position
        self.matrix = None if found.name is None else _matrix(self.module.get_submodule(found.name))
        self._checked = True
        return found.features, found.logits

    def __call__(self, x: Tensor) -> tuple[Tensor | None, Tensor]:
        """Return features and logits of a batch."""
        if not self._checked:
            self.prepare(x)
        if self.head_name is None:
            with run_eagerly():
                return _of_function(self.module(x), self.name)
        with run_eagerly(), capture_features(self.module, [self.head_name], self.name) as features:
            logits = logits_of(self.module(x), self.name, self._position)
        return _features_of(features, self.head_name, self.name), logits


def _features_of(features: dict[str, Tensor], head: str, where: str) -> Tensor:
    if head not in features:
        raise DataError(f"head {head!r} was not called with a tensor in the forward pass", where=where)
    return features[head]


def _matrix(layer: nn.Module) -> Head | None:
    """Return the weights and biases of a linear layer, None for another layer."""
    if not isinstance(layer, nn.Linear) or layer.weight.is_complex():
        return None
    weight = array_of(layer.weight).copy()
    bias = np.zeros(len(weight), np.float32) if layer.bias is None else array_of(layer.bias).copy()
    return Head(weight, bias)


def refuse_complex(values: Tensor, name: str, where: str) -> None:
    """Raise DataError for outputs that are complex numbers, whose imaginary parts would be lost."""
    if values.is_complex():
        raise DataError(
            f"the model gives {name} of {str(values.dtype).removeprefix('torch.')} numbers",
            where=where,
            hint="return real numbers, such as their absolute values",
        )


def check_logits(logits: Tensor, where: str) -> None:
    """Raise where values cannot be logits (n, K)."""
    refuse_complex(logits, "logits", where)
    values = logits.detach().float()
    bad = int((~torch.isfinite(values)).any(dim=1).sum())
    if bad:
        raise DataError(
            f"the model gives NaN or infinite logits for {bad} of {len(values)} inputs",
            where=where,
            hint="check the model's weights and its transform",
        )
    refuse_probabilities(
        values.cpu().numpy(),
        where=where,
        hint="leave out the model's final softmax, or name the layer before it (--head)",
    )


class FoundHead(NamedTuple):
    """The head of a network, and its outputs for the images that it was found with.

    Attributes
    ----------
    name : of the layer; None where no linear layer has an output for each class.
    position : of the logits among two outputs.
    """

    name: str | None
    position: int
    features: Tensor | None
    logits: Tensor


def find_head(module: nn.Module, x: Tensor, where: str) -> FoundHead:
    """Find the nn.Linear whose output is the logits of ``x``."""
    linear = [key for key, part in module.named_modules() if isinstance(part, nn.Linear)]
    with (
        torch.no_grad(),
        run_eagerly(),
        capture_features(module, linear, where, pool=False) as features,
        capture_outputs(module, linear) as outputs,
    ):
        result = module(x)
    order = list(outputs)  # ordered by the last call

    def head_of(logits: Any) -> str | None:
        return next((key for key in reversed(order) if _same(outputs[key], logits)), None)

    position = 1
    if _is_pair(result):
        first, second = head_of(result[0]), head_of(result[1])
        if first is not None and (second is None or _gives(module.get_submodule(first), *reversed(result))):
            position = 0
        key = (first, second)[position]
        if key is None or not _gives(module.get_submodule(key), result[1 - position], result[position]):
            refuse_equal_outputs(result, where)
    logits = logits_of(result, where, position)
    check_logits(logits, where)
    key = head_of(logits)
    if key is not None:
        return FoundHead(key, position, features[key], logits)
    widths = set(map(_width, result if _is_pair(result) else [logits]))
    if widths.isdisjoint(map(_width, outputs.values())):
        return FoundHead(None, position, *_of_function(result, where))
    candidates = ", ".join(order[-4:])
    outputs_given = "either of the two outputs" if _is_pair(result) else "the logits"
    raise DataError(
        f"no linear layer gives {outputs_given} (linear layers called: {candidates})",
        where=where,
        hint="name the head (head='fc'), leave out a final softmax, or give a function of (features, logits)",
    )


def named_head(module: nn.Module, x: Tensor, where: str, name: str) -> FoundHead:
    """Return the features before a named layer, and the logits (if there are two outputs, the layer's)."""
    with (
        torch.no_grad(),
        run_eagerly(),
        capture_features(module, [name], where) as features,
        capture_outputs(module, [name]) as outputs,
    ):
        result = module(x)
    position = 1
    if _is_pair(result):
        output = outputs.get(name)
        given = [_same(output, part) for part in result]
        wide = [_width(output) == _width(part) for part in result]  # a step follows it, e.g. a mean
        position = 0 if given[0] or (not given[1] and wide == [True, False]) else 1
        if not any(given):
            refuse_equal_outputs(result, where)
    logits = logits_of(result, where, position)
    return FoundHead(name, position, _features_of(features, name, where), logits)


def _of_function(output: Any, where: str) -> tuple[Tensor | None, Tensor]:
    """Return features, None unless the module returns a pair, and logits of a module without a head."""
    return features_and_logits(output, where) if _is_pair(output) else (None, logits_of(output, where))


def refuse_equal_outputs(outputs: Any, where: str) -> None:
    """Raise DataError if two outputs have equal shapes, so that only their order identifies the logits."""
    first, second = outputs
    if getattr(first, "shape", ()) == getattr(second, "shape", None):
        raise DataError(
            f"cannot identify the logits: both outputs have shape {tuple(first.shape)}",
            where=where,
            hint='return the logits alone or {"features": ..., "logits": ...}, or name the head (--head)',
        )


def _gives(layer: Any, features: Tensor, logits: Tensor) -> bool:
    """Return whether a linear layer gives the logits from the features."""
    if features.ndim != 2 or features.shape[1] != layer.in_features:
        return False
    with torch.no_grad():
        return bool(torch.allclose(layer(features), logits, rtol=1e-4, atol=1e-5))


def _width(output: Any) -> int:
    """Return the size of the last axis of a tensor, 0 for anything else."""
    return int(output.shape[-1]) if isinstance(output, Tensor) and output.ndim > 1 else 0


def _same(a: Tensor | None, b: Any) -> bool:
    """Return whether two tensors are identical or equal."""
    return (
        a is not None
        and isinstance(b, torch.Tensor)
        and a.shape == b.shape
        and (a is b or bool(torch.equal(a, b)))
    )
