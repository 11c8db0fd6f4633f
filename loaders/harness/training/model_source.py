"""Networks that ``unknown-eval train`` wrote: ``trained:FOLDER``."""

from __future__ import annotations

from wordnet_splits.base.errors import DataError

from ..models.sources.registry import LoadedModel, ModelRequest, register_model_source
from ..models.sources.trained import PREFIX, training_facts
from .checkpoints.files import load_checkpoint


@register_model_source("trained")
def trained_network(name: str, request: ModelRequest) -> LoadedModel:
    """Load a trained network with the classes that it was trained on.

    Raises
    ------
    DataError : a finished model does not exist, or weights are given in addition.
    """
    if request.weights is not None:
        raise DataError("a trained model has weights of its own", where=PREFIX + name)
    module = load_checkpoint(name, trust=request.trust)
    benchmark, run = module.metadata["benchmark"]["name"], module.metadata["run"]
    return LoadedModel(
        f"{benchmark}/{run}",
        module,
        repr(module),
        series=f"{benchmark}/{module.metadata['series']}",
        **training_facts(module),
    )
