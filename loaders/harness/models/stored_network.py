"""A network that replaces a model with stored features and logits, for postprocessors of OpenOOD."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor, nn

from wordnet_splits.base.errors import DataError

from ..data.arrays import Arrays, Head

HINT = "it needs the network itself: take ours of that name, or write it as a probe (register_probe)"


class Rows(Tensor):
    """A tensor that stays on the processor, where stored arrays are: OpenOOD's code calls ``.cuda()``."""

    def cuda(self, *_: Any, **__: Any) -> Rows:  # type: ignore[override,unused-ignore] # torch's types vary
        """Return the tensor itself."""
        return self


class StoredNetwork(nn.Module):
    """Maps the features of a batch to its stored logits; anything else is refused."""

    def __init__(self, head: Head | None) -> None:
        super().__init__()
        self._head = head
        self._batch: tuple[Tensor, Tensor] | None = None
        self.training = False

    def remember(self, data: Arrays, inputs: str) -> dict[str, Tensor]:
        """Return a batch {"data", "label"} of stored arrays, whose logits `forward` returns from now on."""
        rows, logits = (
            torch.from_numpy(np.array(data[name], dtype=np.float32)).as_subclass(Rows)
            for name in (inputs, "logits")
        )
        self._batch = (rows, logits)
        labels = np.array(data["labels"]) if "labels" in data else np.full(len(rows), -1)
        return {"data": rows, "label": torch.from_numpy(labels.astype(np.int64)).as_subclass(Rows)}

    def forward(
        self, x: Tensor, return_feature: bool = False, return_feature_list: bool = False
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Return the stored logits of the current batch, and with ``return_feature`` its features."""
        if return_feature_list:
            _refuse("asks for the features of every layer")
        if x.requires_grad:
            _refuse("takes gradients with respect to images")
        if self._batch is None or not _is_same(x, self._batch[0]):
            _refuse("calls the network on other inputs than the batch it was given")
        rows, logits = self._batch
        return (logits, rows) if return_feature else logits

    def get_fc(self) -> tuple[Any, Any]:
        """Return the weights (K, d) and the bias (K,) of the head, as arrays."""
        if self._head is None:
            raise DataError("needs the weights of a linear head, and this model has none", where="net.get_fc")
        return np.array(self._head.weight), np.array(self._head.bias)

    def train(self, mode: bool = True) -> StoredNetwork:
        """Refuse training mode: no layer is run."""
        if mode:
            _refuse("sets the network to training mode")
        return self

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            raise AttributeError(f"net.{name} is not stored; {HINT}") from None


def _is_same(x: Tensor, rows: Tensor) -> bool:
    return x is rows or (x.shape == rows.shape and x.dtype == rows.dtype and x.data_ptr() == rows.data_ptr())


def _refuse(problem: str) -> NoReturn:
    raise DataError(problem, hint=HINT)
