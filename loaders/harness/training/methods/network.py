"""A network as a training method sees it: features, logits, its classifier and the method's heads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from wordnet_splits.base.errors import DataError

from ...models.head import find_head
from ...models.hooks import capture_features
from .interface import BACKBONE, HEAD

if TYPE_CHECKING:
    from .interface import Method

HEADS = "method_heads"
"""Name of a method's heads as a child module of the network, and as a prefix in its state dict."""


class Network:
    """A network, its classifier and the method's heads.

    ``model(images)`` returns features (n, D), the classifier's input, and logits (n, K);
    ``model.logits(images)`` the logits alone; ``model.head(features)`` the logits of changed features. Inputs
    are normalised images (n, 3, h, w), as in `Batch.views`.

    Attributes
    ----------
    module : the network with the heads in it.
    facts : of `Method.facts`.
    forwarded, differentiated : numbers of images that passed in a step of training, and with gradients.
    head_name : name of the classifier within the module; a forward pass finds it when needed.
    """

    def __init__(
        self,
        module: nn.Module,
        size: tuple[int, int],
        *,
        head_name: str | None = None,
        facts: Mapping[str, Any] | None = None,
        autocast: torch.dtype | None = None,
    ) -> None:
        self.module, self.size, self.facts, self.autocast = module, size, dict(facts or {}), autocast
        self._head_name = head_name
        self._width: int | None = None
        self.forwarded = self.differentiated = 0

    @property
    def head_name(self) -> str:
        """The classifier's name within the module.

        Raises
        ------
        DataError : no linear layer gives the logits.
        """
        if self._head_name is None:
            device = next(self.module.parameters()).device
            with evaluation_mode(self.module):
                where = type(self.module).__name__
                self._head_name = find_head(
                    self.module, torch.zeros(2, 3, *self.size, device=device), where
                ).name
            if self._head_name is None:
                raise DataError("no linear layer gives the logits", where=where)
        return self._head_name

    @head_name.setter
    def head_name(self, name: str) -> None:
        self._head_name = name

    @property
    def head(self) -> nn.Module:
        """The classifier."""
        return self.module.get_submodule(self.head_name)

    @property
    def width(self) -> int:
        """Number of features."""
        if self._width is None:
            self._width = int(getattr(self.head, "in_features", 0)) or len(self._features_of_zeros())
        return self._width

    @property
    def has_heads(self) -> bool:
        """Whether the method added heads to the network."""
        return HEADS in dict(self.module.named_children())

    @property
    def heads(self) -> Any:
        """The method's heads by name."""
        return self.module.get_submodule(HEADS)

    def __call__(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Return features (n, D) and logits (n, K), float32."""
        name = self.head_name
        with capture_features(self.module, [name], type(self.module).__name__) as features:
            logits = self.logits(images)
        return features[name].float(), logits

    def logits(self, images: Tensor) -> Tensor:
        """Return logits (n, K), float32."""
        self.forwarded += len(images)
        self.differentiated += len(images) * torch.is_grad_enabled()
        images = images.contiguous(memory_format=torch.channels_last)
        with torch.autocast(images.device.type, dtype=self.autocast, enabled=self.autocast is not None):
            logits: Tensor = self.module(images)
        return logits.float()

    def parameters(self) -> dict[str, list[nn.Parameter]]:
        """Return the parameters by group: ``backbone``, ``head`` and the method's heads."""
        groups: dict[str, list[nn.Parameter]] = {BACKBONE: [], HEAD: []}
        head = self.head_name
        for name, parameter in self.module.named_parameters():
            if name.startswith(f"{HEADS}."):
                groups.setdefault(name.split(".")[1], []).append(parameter)
            else:
                groups[HEAD if name.startswith(f"{head}.") else BACKBONE].append(parameter)
        return groups

    def add_heads(self, method: Method, classes: int) -> None:
        """Add the method's heads; one called ``head`` replaces the classifier.

        Raises
        ------
        DataError : a head is not a module, or does not fit the features.
        """
        heads = dict(method.heads(self, classes))
        device = next(self.module.parameters()).device
        for name, head in heads.items():
            if not isinstance(head, nn.Module):
                raise DataError(
                    f"head {name!r} must be an nn.Module, got {type(head).__name__}",
                    where=f"training method {method.name!r}",
                )
            head.to(device)
        if HEAD in heads:
            parent, _, child = self.head_name.rpartition(".")
            width = self.width
            setattr(self.module.get_submodule(parent), child, heads.pop(HEAD))
            self._check_head(method, width, classes)
        if heads:
            self.module.add_module(HEADS, nn.ModuleDict(heads))

    def _check_head(self, method: Method, width: int, classes: int) -> None:
        features = torch.zeros(2, width)
        with evaluation_mode(self.head):
            try:
                shape = tuple(self.head(features).shape)
            except (RuntimeError, TypeError, ValueError) as error:
                if features.is_meta and isinstance(error, NotImplementedError):
                    return  # a checkpoint is read, and a shape depends on values
                raise DataError(
                    f"its head does not take features of width {width}: {str(error).splitlines()[0]}",
                    where=f"training method {method.name!r}",
                ) from None
        if shape != (2, classes):
            raise DataError(
                f"its head gives {shape} for two images where logits {(2, classes)} are expected",
                where=f"training method {method.name!r}",
            )

    def _features_of_zeros(self) -> Tensor:
        device = next(self.module.parameters()).device
        with evaluation_mode(self.module):
            return self(torch.zeros(1, 3, *self.size, device=device))[0][0]


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Put a module in evaluation mode without gradients inside the block."""
    training = module.training
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        module.train(training)
