"""Replay of the outputs that a network computes before its first random draw, equal in every pass.

The first pass plans: of the modules that return before the first draw, the outermost are selected whose
output has its own memory and which leave their inputs unchanged, so that skipping them has no side effect.
The second pass stores their outputs, and later passes get copies (later layers may change them in place). A
module with hooks on a submodule always runs. A network in evaluation mode is assumed to be a function of its
inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn


@dataclass
class _Step:
    """One call of a module, in the order in which calls start."""

    part: nn.Module
    replayable: bool = False
    output: Tensor | None = None


@dataclass
class Replay:
    """The calls before the first draw of a pass."""

    steps: list[_Step] = field(default_factory=list)
    passes: int = 0
    at: int = 0
    through: bool = False  # after the first draw, or inside a call that is being stored

    def begin(self) -> None:
        """Begin a pass."""
        self.passes += 1
        self.at, self.through = 0, False

    def draws(self) -> None:
        """Note a random draw: later outputs differ between passes."""
        self.through = True

    def call(self, part: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Return a module's output, computed or replayed."""
        if self.through:
            return forward(*args, **kwargs)
        if self.passes == 1:
            return self._plan(part, forward, args, kwargs)
        if self.at == len(self.steps) or self.steps[self.at].part is not part:
            self.through = True  # a different path than before: compute the rest
            return forward(*args, **kwargs)
        step = self.steps[self.at]
        self.at += 1
        if not step.replayable:
            return forward(*args, **kwargs)
        if step.output is None:
            self.through = True
            output = forward(*args, **kwargs)
            self.through = False
            step.output = output.clone()
            return output
        return step.output.clone()

    def _plan(self, part: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        step = _Step(part)
        self.steps.append(step)
        inner = len(self.steps)
        arguments = [*args, *kwargs.values()]
        tensors = [value for value in arguments if isinstance(value, Tensor)]
        comparable = all(isinstance(value, Tensor | int | float | str | None) for value in arguments)
        tracked = comparable and not any(value.is_inference() for value in tensors)
        versions = [value._version for value in tensors] if tracked else []
        output = forward(*args, **kwargs)
        if (
            tracked
            and not self.through
            and isinstance(output, Tensor)
            and versions == [value._version for value in tensors]
            and _memory(output) not in map(_memory, tensors)
            and not _watched_inside(part)
        ):
            step.replayable = True
            del self.steps[inner:]
        return output


def _memory(tensor: Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())


def _watched_inside(module: nn.Module) -> bool:
    inner = (part for part in module.modules() if part is not module)
    return any(part._forward_hooks or part._forward_pre_hooks for part in inner)


@contextmanager
def replayed(module: nn.Module, drawing: Sequence[nn.Module]) -> Iterator[Replay]:
    """Route the calls of the submodules, except those that draw, through a `Replay` inside the block."""
    replay = Replay()
    forwards: list[tuple[nn.Module, Any]] = []
    for part in module.modules():
        if part is module or part in drawing or isinstance(part, torch.jit.ScriptModule):
            continue
        forwards.append((part, part.__dict__.get("forward")))
        part.__dict__["forward"] = _through(replay, part, part.forward)
    try:
        yield replay
    finally:
        for part, forward in forwards:
            if forward is None:
                del part.__dict__["forward"]
            else:
                part.__dict__["forward"] = forward


def _through(replay: Replay, part: nn.Module, forward: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        return replay.call(part, forward, args, kwargs)

    return call
