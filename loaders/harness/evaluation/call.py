"""The networks and options of a call of `evaluate`, for what is computed from its results later."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from wordnet_splits.benchmark.manifest import Manifest

if TYPE_CHECKING:
    from ..models import Model
    from .model_evaluation import EvaluationOptions


@dataclass(frozen=True, eq=False)
class EvaluationCall:
    """A call of `evaluate`; networks are referred to weakly, so that results do not keep them in memory.

    Attributes
    ----------
    networks : for each run, references to its `Model` and to the user's module or function.
    loading : options of `load_model`.
    """

    networks: tuple[tuple[weakref.ref[Any], ...], ...]
    manifest: Manifest
    options: EvaluationOptions
    loading: Mapping[str, Any]

    def network(self, run: int) -> Any:
        """Return the network of a run, None where it is no longer in memory."""
        references = self.networks[run] if run < len(self.networks) else ()
        return next((network for network in (ref() for ref in references) if network is not None), None)

    def arguments(self, run: int) -> dict[str, Any]:
        """Return the arguments with which another call reads the same images through the network of a run."""
        options = self.options
        return {
            "model": self.network(run),
            "benchmark": self.manifest,
            "transform": options.transform,
            "roots": options.roots,
            "packed": options.packed,
            "store": options.store,
            "batch_size": options.batch_size,
            "workers": options.workers,
            **self.loading,
        }


def network_references(model: Model) -> tuple[weakref.ref[Any], ...]:
    """Return weak references to a model and to its module or function."""
    references = []
    for part in (model, model.module, getattr(model.network, "function", None)):
        with suppress(TypeError):  # None, or an object that has no weak references
            references.append(weakref.ref(part))
    return tuple(references)
