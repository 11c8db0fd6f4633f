"""The confidence that a training method computes itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data.arrays import Array, Arrays
from ..data.parameters import parameters
from .registry import register


@register("output", needs=("method[output={name}]/value",))
@parameters
class Output:
    """An output of the model's training method (ConfBranch's confidence), by default its first."""

    name: str = ""

    def score(self, state: Any, data: Arrays) -> Array:
        """Return the confidence (n,)."""
        return np.asarray(data[f"method[output={self.name}]/value"])
