"""What a network computes before its first draw is the same in every pass: computed twice, then replayed.

The first pass plans: of the modules that return before anything is drawn, the outermost are kept, those whose
output is memory of its own and which leave their inputs as they are, so that nothing else can tell whether
they ran. The second stores their outputs, and later passes get copies of them (what follows may change them
in place). A module with hooks on a part of it runs every time. As everywhere else, a network in evaluation
mode is taken to be a function of its inputs.
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
    """One call of a module, in the order in which calls begin."""

    part: nn.Module
    replayable: bool = False
    output: Tensor | None = None


@dataclass
class Replay:
    """The calls before the first draw of a pass."""

    steps: list[_Step] = field(default_factory=list)
    passes: int = 0
    at: int = 0
    through: bool = False  # past the first draw, or inside a call that is being stored

    def begin(self) -> None:
        """Begin a pass."""
        self.passes += 1
        self.at, self.through = 0, False

    def draws(self) -> None:
        """Note that something is drawn: nothing after this is the same in every pass."""
        self.through = True

    def call(self, part: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Give a module's output, by running it or from the store."""
        if self.through:
            return forward(*args, **kwargs)
        if self.passes == 1:
            return self._plan(part, forward, args, kwargs)
        if self.at == len(self.steps) or self.steps[self.at].part is not part:
            self.through = True  # another way through the network than before: the rest is computed
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
    """Let calls of the modules inside ``module``, all but those that draw, go through a `Replay`."""
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
