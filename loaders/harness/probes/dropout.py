"""MC-dropout: forward passes with active dropout, whose masks are drawn by each image's generator.

Gal, Ghahramani: Dropout as a Bayesian Approximation (ICML 2016). Other layers stay in evaluation mode. Layers
before the first dropout, whose outputs are equal in every pass, are replayed.

The first pass selects the modules to replay: the outermost modules that return before the first draw, whose
output has its own memory, and that leave their inputs unchanged, so that skipping them has no side effect.
The second pass stores their outputs, and later passes get copies (later layers may change them in place). A
module with hooks on a submodule always runs. A network in evaluation mode is assumed to be a function of its
inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from wordnet_splits.base.errors import UnusableError

from ..data.parameters import parameters
from ..models.hooks import removing
from .registry import ProbeDefaults, register_probe

if TYPE_CHECKING:
    from torch import Generator

    from ..models.model import Model


@dataclass
class _Step:
    """A call of a module; steps are ordered by the start of the call."""

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
            and not any(p._forward_hooks or p._forward_pre_hooks for p in part.modules() if p is not part)
        ):
            step.replayable = True
            del self.steps[inner:]
        return output


def _memory(tensor: Tensor) -> int:
    return int(tensor.untyped_storage().data_ptr())


@contextmanager
def replayed(module: nn.Module, drawing: Sequence[nn.Module]) -> Iterator[Replay]:
    """Route the calls of the submodules, except those that draw, through a `Replay` inside the block."""
    replay = Replay()
    forwards: list[tuple[nn.Module, Any]] = []
    for part in module.modules():
        if part is module or part in drawing or isinstance(part, torch.jit.ScriptModule):
            continue
        forwards.append((part, part.__dict__.get("forward")))
        part.__dict__["forward"] = partial(_call, replay, part, part.forward)
    try:
        yield replay
    finally:
        for part, forward in forwards:
            if forward is None:
                del part.__dict__["forward"]
            else:
                part.__dict__["forward"] = forward


def _call(replay: Replay, part: nn.Module, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return replay.call(part, forward, args, kwargs)


WHOLE = (nn.Dropout,)
NONE = "needs dropout, and the model has no dropout layers"
BY_CHANNEL = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


@register_probe("dropout")
@parameters
class Dropout(ProbeDefaults):
    """Mean softmax, mutual information and variance of ``passes`` forward passes.

    Attributes
    ----------
    passes : number of passes.
    columns : the columns of the softmax, all by default, as in `Odin`.
    """

    passes: PositiveInt = 50  # type: ignore[misc] # overrides a ClassVar
    columns: tuple[int, ...] | None = None

    random: ClassVar[bool] = True

    def require(self, model: Model, x: Any) -> None:
        """Raise UnusableError for a model without dropout."""
        if model.module is None or not _layers(model.module):
            raise UnusableError(NONE, where=model.name, hint="train it with dropout")

    def __call__(self, model: Model, x: Any, generators: Sequence[Generator]) -> Mapping[str, Any]:
        """Return ``logits`` (n, K), the log of the mean softmax, and (n,) ``information`` and ``variance``.

        The information is in nats; the variance of the softmax over passes is the mean of the columns'.
        """
        self.require(model, x)
        passes = []
        module: Any = model.module
        layers = _layers(module)
        with (
            torch.no_grad(),
            replayed(module, layers) as replay,
            _drawing(layers, generators, replay.draws),
        ):
            for _ in range(self.passes):
                replay.begin()
                logits = model.forward(x)[1].double()
                passes.append(
                    torch.log_softmax(logits if self.columns is None else logits[:, self.columns], 1)
                )
        logs = torch.stack(passes)
        mean, variance = logs.exp().mean(0), logs.exp().var(0, correction=0).mean(1)
        log_mean = _log_of_mean(mean)
        information = (logs.exp() * (logs - log_mean)).sum(2).mean(0)
        if self.columns is not None:
            lowest = log_mean.min(1, keepdim=True).values  # of each image: the canary compares other batches
            wide = lowest.repeat(1, logits.shape[1])
            wide[:, self.columns] = log_mean
            log_mean = wide
        return {"logits": log_mean, "information": information.clamp_min(0), "variance": variance}


def _log_of_mean(mean: Tensor) -> Tensor:
    """Return the log of probabilities (n, K); of the greatest as log1p(-others), which never saturates."""
    peak = mean.argmax(1, keepdim=True)
    others = mean.scatter(1, peak, 0.0).sum(1, keepdim=True)
    return mean.clamp_min(1e-300).log().scatter(1, peak, torch.log1p(-others))


def _layers(module: nn.Module) -> list[nn.Module]:
    return [part for part in module.modules() if isinstance(part, (*WHOLE, *BY_CHANNEL)) and part.p > 0]


@contextmanager
def _drawing(
    layers: Sequence[nn.Module], generators: Sequence[Generator], draws: Callable[[], None]
) -> Iterator[None]:
    """Let dropout layers, which are inactive in evaluation mode, drop inside the block."""

    def hook_of(part: Any) -> Callable[..., Tensor]:
        by_channel = isinstance(part, BY_CHANNEL)

        def hook(_: nn.Module, __: Any, output: Tensor) -> Tensor:
            draws()
            shape = (output.shape[1], *(1 for _ in output.shape[2:])) if by_channel else output.shape[1:]
            if part.p == 1:
                return output * 0
            uniform = torch.empty((len(generators), *shape))
            for row, generator in zip(uniform, generators, strict=True):
                row.uniform_(generator=generator)
            mask = uniform.ge_(part.p).to(output.device, output.dtype)  # in place: limited by memory
            return (mask.expand_as(output).mul(output) if by_channel else mask.mul_(output)).div_(1 - part.p)

        return hook

    handles = [part.register_forward_hook(hook_of(part)) for part in layers]
    with removing(handles):
        yield
