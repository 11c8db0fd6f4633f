"""Hooks in a network: its head, whose input is the features, and its stages by resolution."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.metrics.counts import to_numpy

from ..array_checks import refuse_probabilities
from ..arrays import Array, Head

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


def as_tensors(output: Any) -> Any:
    """Return a function's output with its arrays (NumPy, JAX, anything with ``__array__``) as tensors."""
    if isinstance(output, torch.Tensor) or hasattr(output, "logits"):
        return output
    if isinstance(output, dict):
        return {name: as_tensors(value) for name, value in output.items()}
    if isinstance(output, tuple | list):
        return tuple(as_tensors(value) for value in output)
    if not hasattr(output, "__array__"):
        return output
    array = to_numpy(output, where="outputs of the model")
    if array.dtype.kind in "OSUmM":
        raise DataError(f"numbers expected, got {array.dtype}", where="outputs of the model")
    if array.dtype.kind not in "fiu" or array.dtype.itemsize > 8:  # bfloat16 of other libraries among them
        array = array.astype(np.float32)
    return torch.from_numpy(np.array(array))  # a copy: arrays of other libraries are read-only


def features_and_logits(output: Any, where: str) -> tuple[Tensor | None, Tensor]:
    """Return the features (n, D), None where there are none, and logits (n, K) of a function or program.

    Raises
    ------
    DataError : it gives anything else.
    """
    output = as_tensors(output)
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
    head: the last nn.Linear called that outputs the logits. Of two outputs, in either order, the logits are
    the ones that a linear layer gives. Feature maps before a head that is not linear, e.g. a 1 x 1
    convolution, are averaged over their positions.
    """

    def __init__(self, module: nn.Module, head: str | None, name: str) -> None:
        self.module, self.name = module, name
        self.head_name = head
        if head is not None:
            _submodule(module, head, name)
        self.matrix: Head | None = None
        self._checked = False
        self._position = 1

    def prepare(self, x: Tensor) -> Tensor:
        """Return the logits of ``x``; the first call finds the head with them."""
        if self._checked:
            return self(x)[1]
        if self.head_name is None:
            self.head_name, logits, self._position = find_head(self.module, x, self.name)
            output: Tensor | None = logits
        else:
            with torch.no_grad(), capture_outputs(self.module, [self.head_name]) as outputs:
                result = self.module(x)
            output = outputs.get(self.head_name)
            self._position = 0 if _is_pair(result) and _same(output, result[0]) else 1
            logits = logits_of(result, self.name, self._position)
        head = _submodule(self.module, self.head_name, self.name)
        if isinstance(head, nn.Linear) and _same(output, logits):
            weight = head.weight.detach().float().cpu().numpy()
            bias = np.zeros(len(weight), np.float32) if head.bias is None else _numpy(head.bias)
            self.matrix = Head(np.array(weight), bias)
        self._checked = True
        return logits

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return features and logits of a batch."""
        if not self._checked:
            self.prepare(x)
        features: list[Tensor] = []
        head = _submodule(self.module, str(self.head_name), self.name)
        handle = head.register_forward_pre_hook(lambda _, inputs: features.append(inputs[0]))
        try:
            logits = logits_of(self.module(x), self.name, self._position)
        finally:
            handle.remove()
        if not features:
            raise DataError(f"head {self.head_name!r} was not called in the forward pass", where=self.name)
        return pooled(features[-1]), logits


def check_logits(logits: Tensor, where: str) -> None:
    """Raise where values cannot be logits (n, K).

    Raises
    ------
    DataError : a value is NaN or infinite; or every row holds probabilities: in [0, 1], of sum 1.
    """
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


def pooled(maps: Tensor) -> Tensor:
    """Return features (n, D) as they are, or maps (n, D, h, w) averaged over their positions."""
    return maps if maps.ndim == 2 else maps.flatten(2).mean(2) if maps.ndim > 2 else maps.flatten(1)


def find_head(module: nn.Module, x: Tensor, name: str) -> tuple[str, Tensor, int]:
    """Find the nn.Linear whose output is the logits of ``x``.

    Returns
    -------
    The layer's name, the logits (n, K), and their position where the module gives two outputs.

    Raises
    ------
    DataError : no linear layer gives the logits; the linear layers are named.
    """
    linear = [key for key, part in module.named_modules() if isinstance(part, nn.Linear)]
    with torch.no_grad(), capture_outputs(module, linear) as outputs:
        result = module(x)
    order = list(outputs)  # by their last call

    def head_of(logits: Any) -> str | None:
        return next((key for key in reversed(order) if _same(outputs[key], logits)), None)

    if _is_pair(result) and all(isinstance(part, torch.Tensor) for part in result):
        first, second = head_of(result[0]), head_of(result[1])
        if first is not None and (second is None or _gives(module.get_submodule(first), *reversed(result))):
            check_logits(logits_of(result, name, 0), name)
            return first, result[0], 0
    logits = logits_of(result, name)
    check_logits(logits, name)
    key = head_of(logits)
    if key is not None:
        return key, logits, 1
    candidates = ", ".join(order[-4:]) or "there is none"
    outputs_given = "either of the two outputs" if _is_pair(result) else "the logits"
    raise DataError(
        f"no linear layer gives {outputs_given} (linear layers called: {candidates})",
        where=name,
        hint="name the head (head='fc'), leave out a final softmax, or give a function of (features, logits)",
    )


def _gives(layer: Any, features: Tensor, logits: Tensor) -> bool:
    """Return whether a linear layer gives the logits from the features."""
    if features.ndim != 2 or features.shape[1] != layer.in_features:
        return False
    with torch.no_grad():
        return bool(torch.allclose(layer(features), logits, rtol=1e-4, atol=1e-5))


@contextmanager
def capture_outputs(
    module: nn.Module, names: Sequence[str], *, copy: bool = False
) -> Iterator[dict[str, Tensor]]:
    """Collect the outputs of named layers inside the block, in the order of their last calls.

    ``copy``: copy each output, since the next layer may change it in place (``ReLU(inplace)``).
    """
    outputs: dict[str, Tensor] = {}

    def keep(key: str) -> Callable[..., None]:
        def hook(_: nn.Module, __: Any, output: Any) -> None:
            outputs.pop(key, None)
            value = output[0] if isinstance(output, tuple) else output
            outputs[key] = value.clone() if copy else value

        return hook

    handles = [_submodule(module, key, "model").register_forward_hook(keep(key)) for key in names]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


def _submodule(module: nn.Module, key: str, where: str) -> nn.Module:
    try:
        return module.get_submodule(key)
    except AttributeError:
        names = [name for name, _ in module.named_modules() if name]
        raise unknown("layer", key, names, where=where) from None


def _same(a: Tensor | None, b: Any) -> bool:
    """Return whether two tensors are identical or equal."""
    return (
        a is not None
        and isinstance(b, torch.Tensor)
        and a.shape == b.shape
        and (a is b or bool(torch.equal(a, b)))
    )


def _numpy(tensor: Tensor) -> Array:
    return np.array(tensor.detach().float().cpu().numpy())


STAGES = "stages"
"""Name that stands for all stages."""


def find_stages(module: nn.Module, x: Tensor, head: str | None) -> tuple[str, ...]:
    """Return the names of a network's stages, in the order of its forward pass.

    For a ResNet they are ``layer1`` .. ``layer4``. For a network without maps they are the layers before the
    head, the last of each width; none where the head is the first layer.

    Parameters
    ----------
    x : an input batch (n, 3, h, w) of any size. head : the name of the head.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    called = {"weights": False, "head": False}

    def hook_of(name: str, part: nn.Module) -> Callable[..., None]:
        has_weights = any(True for _ in part.parameters())

        def hook(_: nn.Module, __: Any, output: Any) -> None:
            value = output[0] if isinstance(output, tuple) else output
            called["weights"] |= has_weights
            called["head"] |= name == head
            fits = isinstance(value, Tensor) and value.ndim > 1 and len(value) == len(x)
            if called["weights"] and not called["head"] and fits:
                shapes.pop(name, None)
                shapes[name] = tuple(as_maps(value).shape[1:])

        return hook

    handles = [
        part.register_forward_hook(hook_of(name, part)) for name, part in module.named_modules() if name
    ]
    try:
        with torch.no_grad():
            module(x)
    finally:
        for handle in handles:
            handle.remove()
    with_positions = {name: positions for name, (_, positions) in shapes.items() if positions > 1}
    sizes = with_positions or {name: channels for name, (channels, _) in shapes.items()}
    last = {size: name for name, size in sizes.items()}  # the last call of each size
    return tuple(name for name in sizes if last[sizes[name]] == name)


def as_maps(output: Tensor) -> Tensor:
    """Return a layer's output as maps (n, C, positions), a view where possible.

    (n, C, h, w) and (n, h, w, C), told apart by square maps; (n, tokens, C); (n, C) has one position.
    """
    if output.ndim == 3:
        return output.transpose(1, 2)
    if _channels_last(output):
        return output.permute(0, 3, 1, 2).flatten(2)
    return output.unsqueeze(-1).flatten(2)


def _channels_last(output: Tensor) -> bool:
    return output.ndim == 4 and bool(output.shape[1] == output.shape[2] != output.shape[3])


def in_layout_of(maps: Tensor, output: Tensor) -> Tensor:
    """Return maps (n, C, positions) in the layout of an output: the inverse of `as_maps`."""
    if output.ndim == 3:
        return maps.transpose(1, 2)
    if _channels_last(output):
        return maps.transpose(1, 2).reshape(output.shape)
    return maps.reshape(output.shape)


@contextmanager
def replace_maps(module: nn.Module, changes: Mapping[str, Callable[[Tensor], Tensor]]) -> Iterator[None]:
    """Replace the maps (n, C, positions) of layers by functions of them inside the block."""

    def hook_of(change: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
        def hook(_: nn.Module, __: Any, output: Any) -> Any:
            value = output[0] if isinstance(output, tuple) else output
            changed = in_layout_of(change(as_maps(value)), value)
            return (changed, *output[1:]) if isinstance(output, tuple) else changed

        return hook

    handles = [
        module.get_submodule(name).register_forward_hook(hook_of(change)) for name, change in changes.items()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
