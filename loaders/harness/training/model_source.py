"""Trained networks as models of `evaluate`: ``trained:FOLDER``, and `train`, which returns a network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.manifest import Manifest

from ..models.sources.registry import PREFIX, LoadedModel, ModelRequest, register_model_source, training_facts
from ..models.weights import RANDOM
from .checkpoint import load_checkpoint
from .choices import NETWORKS, NetworkKind
from .methods.interface import Method
from .networks import WrappedNetwork, check_outputs
from .recipe import TrainingRecipe, load_recipe
from .runs import train_recipe


@register_model_source("trained")
def trained_network(name: str, request: ModelRequest) -> LoadedModel:
    """Load a trained network with the classes that it was trained on."""
    if request.weights is not None:
        raise DataError("weights must not be given for a trained model", where=PREFIX + name)
    module = load_checkpoint(name, trust=request.trust)
    benchmark, run = module.metadata["benchmark"]["name"], module.metadata["run"]
    return LoadedModel(
        f"{benchmark}/{run}",
        module,
        repr(module),
        series=f"{benchmark}/{module.metadata['series']}",
        **training_facts(module),
    )


def train(
    network: str | nn.Module,
    benchmark: Manifest | str | Path,
    *,
    method: str | Method = "softmax",
    recipe: TrainingRecipe | str = "openood-short",
    seed: int | None = None,
    out: str | Path | None = None,
    **options: Any,
) -> nn.Module:
    """Train a network on a benchmark's ID classes and return it, ready for `evaluate`.

    Parameters
    ----------
    network : a name as in `build_network`, or a module with an output for each ID class, and an additional
        output for outliers if the method has a background class. A copy of the module is trained, starting
        from its weights even if the recipe starts from others.
    method : ``NAME[parameter=value]``, ``MODULE:NAME``, or an instance.
    recipe : the other settings.
    seed : by default the recipe's, else 0.
    out : folder that keeps the model and resumes an interrupted training; by default nothing is kept.
    options : of `train_recipe`: ``epochs``, ``images``, ``roots``, ``device``, ``progress``, ...

    Returns
    -------
    The network in evaluation mode, as of `load_checkpoint`.

    Raises
    ------
    SplitsError : as of `train_recipe`; ``out`` for a module, which cannot be rebuilt from a folder; or
        options that train several networks.
    """
    if not isinstance(network, str | nn.Module):
        raise DataError(f"must be a name or an nn.Module, got {type(network).__name__}", where="network")
    if out is not None and not isinstance(network, str):
        raise DataError(
            "a module cannot be rebuilt from the folder of its model",
            where="out",
            hint="name the network (MODULE:NAME), or leave out and keep the module that is returned",
        )
    trust = bool(options.get("trust_model", False))
    recipe = load_recipe(recipe, trust_model=trust) if isinstance(recipe, str) else recipe
    optimizers = list(options.pop("optimizers", None) or [next(iter(recipe.optimizer))])
    several = {"seeds": "seeds" in options, "sweep": "sweep" in options, "optimizers": len(optimizers) > 1}
    if any(several.values()):
        raise DataError(
            "cannot train several networks: `train` returns one",
            where=next(name for name, given in several.items() if given),
            hint="call `train_recipe`",
        )
    with (
        _named(network) as name,
        TemporaryDirectory() if out is None else nullcontext(str(out)) as folder,
    ):
        arguments: dict[str, Any] = {
            "method": method,
            "network": name,
            "seeds": None if seed is None else [seed],
            "optimizers": optimizers,
            **({} if isinstance(network, str) else {"start": RANDOM}),  # its weights are kept
        }
        (run,) = train_recipe(recipe, benchmark, folder, **{**arguments, **options})
        return load_checkpoint(run.folder, trust=True)


@contextmanager
def _named(network: str | nn.Module) -> Iterator[str]:
    """Give a module a name as a network inside the block."""
    if isinstance(network, str):
        yield network
        return
    name = type(network).__name__.lower()
    name = name if name not in NETWORKS else f"{name}-as-given"

    def copy(outputs: int, channels: int, size: tuple[int, int]) -> nn.Module:
        check_outputs(network, name, outputs, size)
        module = deepcopy(network).to(torch.get_default_device())  # a checkpoint is loaded on "meta"
        return WrappedNetwork(module) if isinstance(module, nn.Sequential) else module

    NETWORKS.add(name, NetworkKind("a module as given in Python", 1, copy))
    try:
        yield name
    finally:
        NETWORKS.remove(name)
