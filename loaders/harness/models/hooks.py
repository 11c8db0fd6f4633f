"""Inputs, outputs and feature maps of a network's layers, captured and replaced by hooks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from wordnet_splits.base.errors import DataError, unknown


def submodule(module: nn.Module, key: str, where: str) -> nn.Module:
    """Return a layer by its name; UnknownNameError names the layers."""
    try:
        return module.get_submodule(key)
    except AttributeError:
        names = [name for name, _ in module.named_modules() if name]
        raise unknown("layer", key, names, where=where) from None


def run_eagerly() -> AbstractContextManager[Any]:
    """Return a context that runs modules without ``torch.compile``.

    Compiled code does not call hooks that were added later. Before PyTorch 2.6 the context has no effect.
    """
    if "torch._dynamo" not in sys.modules:  # nothing was compiled, and the import takes seconds
        return nullcontext()
    set_stance = getattr(torch.compiler, "set_stance", None)
    return nullcontext() if set_stance is None else set_stance("force_eager")


@contextmanager
def removing(handles: Sequence[RemovableHandle]) -> Iterator[None]:
    """Remove hooks at the end of the block."""
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


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

    handles = [submodule(module, key, "model").register_forward_hook(keep(key)) for key in names]
    with removing(handles):
        yield outputs


@contextmanager
def capture_features(
    module: nn.Module, names: Sequence[str], where: str, *, pool: bool = True
) -> Iterator[dict[str, Tensor]]:
    """Collect copies of the inputs of named layers, at their last calls, as features (n, D)."""
    features: dict[str, Tensor] = {}

    def keep(key: str) -> Callable[..., None]:
        def hook(layer: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any]) -> None:
            value = inputs[0] if inputs else next(iter(named.values()), None)
            if isinstance(value, Tensor) and (pool or value.ndim == 2):
                features[key] = value.clone() if value.ndim == 2 else pooled(value, layer, where)

        return hook

    handles = [
        submodule(module, key, where).register_forward_pre_hook(keep(key), with_kwargs=True) for key in names
    ]
    with removing(handles):
        yield features


def pooled(maps: Tensor, layer: nn.Module, where: str) -> Tensor:
    """Return the input of a layer as features (n, D): maps and tokens are averaged over their positions."""
    if maps.ndim == 2:
        return maps
    axis = _feature_axis(tuple(maps.shape), layer)
    if axis is None:
        raise DataError(
            f"cannot find the axis of the features in the head's input of shape {tuple(maps.shape)}",
            where=where,
            hint="name the linear layer itself (head='head.fc'), or give a function of (features, logits)",
        )
    return maps.movedim(axis, 1).flatten(2).mean(2)


def _feature_axis(shape: tuple[int, ...], layer: nn.Module) -> int | None:
    """Return the axis of the features in a layer's input, by its weights, else by square maps; or None."""
    for part in layer.modules():
        linear, channels = getattr(part, "in_features", None), getattr(part, "in_channels", None)
        if linear is not None and shape[-1] == linear and isinstance(layer, nn.Linear):
            return len(shape) - 1
        if channels is not None and shape[1:2] == (channels,):
            return 1
        width = linear or channels or getattr(part, "num_features", None)
        width = width or getattr(part, "normalized_shape", (None,))[-1]
        axes = [axis for axis in range(1, len(shape)) if shape[axis] == width]
        if axes:
            return axes[0] if len(axes) == 1 else None
    if len(shape) == 4 and len(set(shape[1:])) == 2:
        return 1 if shape[2] == shape[3] else 3 if shape[1] == shape[2] else None
    return None


STAGES = "stages"
"""Name for all stages together."""


def find_stages(module: nn.Module, x: Tensor, head: str | None) -> tuple[str, ...]:
    """Return the names of a network's stages, in the order of its forward pass.

    For a ResNet they are ``layer1`` .. ``layer4``. For a network without maps they are the layers before the
    head, the last of each width; none where the head is the first layer.
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
    with removing(handles), torch.no_grad(), run_eagerly():
        module(x)
    with_positions = {name: positions for name, (_, positions) in shapes.items() if positions > 1}
    sizes = with_positions or {name: channels for name, (channels, _) in shapes.items()}
    last = {size: name for name, size in sizes.items()}  # the last call of each size
    return tuple(name for name in sizes if last[sizes[name]] == name)


def as_maps(output: Tensor) -> Tensor:
    """Return a layer's output as maps (n, C, positions), a view where possible.

    Layouts: (n, C, h, w) or (n, h, w, C), distinguished by square maps; (n, tokens, C); (n, C): one position.
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
    """Apply functions to the maps (n, C, positions) of layers inside the block."""

    def hook_of(change: Callable[[Tensor], Tensor]) -> Callable[..., Any]:
        def hook(_: nn.Module, __: Any, output: Any) -> Any:
            value = output[0] if isinstance(output, tuple) else output
            changed = in_layout_of(change(as_maps(value)), value)
            return (changed, *output[1:]) if isinstance(output, tuple) else changed

        return hook

    handles = [
        module.get_submodule(name).register_forward_hook(hook_of(change)) for name, change in changes.items()
    ]
    with removing(handles):
        yield
