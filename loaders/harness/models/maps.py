"""Feature maps of a network's layers: their layout, their replacement, and stages by resolution."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from .hooks import removing, run_eagerly

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
    with removing(handles), torch.no_grad(), run_eagerly():
        module(x)
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
