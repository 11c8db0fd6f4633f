"""Weights that a run starts from: published ones, a file's, or those of another run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from wordnet_splits.base.errors import DataError
from wordnet_splits.datasets.catalog import load_catalog

from ..models.class_map import LabelSpace, class_map
from ..models.loading import WEIGHTS, load_model
from ..models.reproducibility import model_key
from ..models.sources.registry import METADATA, PREFIX
from ..models.weights import RANDOM, State, load_weights, named_as, read_state, split_key
from .checkpoint import WEIGHTS as RUN_WEIGHTS
from .checkpoint import load_checkpoint, portable_state
from .choices import LIBRARIES
from .data import TrainingData
from .methods import Network
from .methods.network import HEADS
from .recipe import VARIANTS, Run, TrainingRecipe, recipe_names, series_of

FORMS = "torchvision:NAME/WEIGHTS, timm:NAME, a weights file, trained:FOLDER, a series of runs in --out"


@dataclass(frozen=True)
class Start:
    """Weights to start from.

    Attributes
    ----------
    source : name for messages.
    weights : the state dict.
    record : ``start`` of ``model.json``.
    has_classes : whether the outputs are the benchmark's classes in label order, None where unknown.
    notes : sentences on how the weights were trained.
    """

    source: str
    weights: State
    record: dict[str, str]
    has_classes: bool | None
    notes: tuple[str, ...] = ()

    def describe(self, *, new_classifier: bool) -> str:
        """Return a message about what a run starts from."""
        words = "with its classifier"
        if new_classifier:
            words = "with a new classifier for these classes"
        elif self.has_classes is None:
            words = "with its classifier, whose outputs are taken as these classes in label order"
        text = f"starts from {self.source} (SHA-256 {self.record['sha256'][:12]}), {words}"
        return "; ".join((text, *self.notes))


def open_start(
    run: Run, network: Mapping[str, Any], data: TrainingData, folder: Path, start: str | None
) -> Start | None:
    """Return the weights that a run starts from, None for new weights.

    Parameters
    ----------
    network : record of the run's network.
    folder : folder of the benchmark's runs.
    start : ``torchvision:NAME`` or ``torchvision:NAME/WEIGHTS``, ``timm:NAME``, a file of a state dict
        (``FILE#KEY`` for one of several), ``trained:FOLDER`` of a run (or its ``model.pt``), a series of runs
        in ``folder`` (the run with the same seed), or ``random`` for new weights. By default the recipe's,
        where a name of a recipe means its series with the same network.

    Raises
    ------
    DataError : no such weights, or a run of a different network. Errors of `load_model` and `read_state`.
    """
    wanted = run.recipe.start if start is None else start
    if wanted is None or wanted == RANDOM:
        return None
    wanted = _run_of_file(wanted)
    prefix, colon, name = wanted.partition(":")
    if colon and prefix in LIBRARIES:
        return _published(prefix, name, data)
    file, key = split_key(wanted)
    if wanted.startswith(PREFIX):
        return _from_run(Path(name), network, data)
    if file.is_file() or file.suffix.lower() in WEIGHTS:
        state = read_state(wanted)
        return Start(wanted, state, _record(f"{file.name}#{key}" if key else file.name, state), None)
    series = wanted if start is not None else series_of(wanted, run.network)
    model = folder / f"{series}-s{run.seed}"
    if not (model / METADATA).exists():
        first = f"train it first (--recipe {_recipe_of(wanted)}), or " if start is None else ""
        raise DataError(
            f"training recipe {run.recipe.name!r} starts from {model.name!r}, which does not exist",
            where=str(folder),
            hint=f"{first}give --start: {FORMS} (RUN of RUN-s{run.seed}), or random",
        )
    return _from_run(model, network, data)


def with_start(recipe: TrainingRecipe, start: str) -> TrainingRecipe:
    """Return the recipe for weights in place of its own start, noted in its name and in ``differs``.

    Its key ``start`` stays: `open_start` gets the weights as a parameter of their own.
    """
    own, start = recipe.start or RANDOM, _run_of_file(start)
    if start == own:
        return recipe
    file, key = split_key(start)
    if start.startswith(PREFIX):
        start = Path(start.removeprefix(PREFIX)).name
    elif file.is_file() or file.suffix.lower() in WEIGHTS:
        start = f"{file.name}#{key}" if key else file.name
    initial = {RANDOM: "initial weights"}
    note = f"starts from {initial.get(start, start)} in place of {initial.get(own, own)}"
    return recipe.with_note(f"from {start}", note)


def _run_of_file(start: str) -> str:
    """Return ``trained:FOLDER`` for the ``model.pt`` of a run, whose ``model.json`` tells its classes."""
    file = Path(start)
    is_run = file.name == RUN_WEIGHTS and (file.parent / METADATA).is_file()
    return f"{PREFIX}{file.parent}" if is_run else start


def _recipe_of(name: str) -> str:
    """Return the recipe of a name, ``csi/short`` of ``csi-short``."""
    stem, _, variant = name.rpartition("-")
    return f"{stem}/{variant}" if variant in VARIANTS and name not in recipe_names() else name


def _from_run(folder: Path, network: Mapping[str, Any], data: TrainingData) -> Start:
    module = load_checkpoint(folder)
    metadata = module.metadata
    if metadata["network"]["name"] != network["name"]:
        raise DataError(
            f"{metadata['run']!r} has a different network, {metadata['network']['name']!r}",
            where=str(folder.parent),
            hint=f"give a run of this network, or --network {metadata['network']['name']}",
        )
    record = {"run": metadata["run"], "sha256": metadata["weights"]["sha256"]}
    return Start(metadata["run"], portable_state(module), record, _are_classes(metadata["classes"], data))


def _published(library: str, name: str, data: TrainingData) -> Start:
    """Return published weights, which the library's ordinary client fetches."""
    name, _, weights = name.partition("/") if library == "torchvision" else (name, "", "")
    try:
        model = load_model(f"{library}:{name}", weights=weights or None, device="cpu")
    except DataError as error:
        if type(error) is not DataError:
            raise
        hint = "give them as a file: --start FILE"
        raise DataError(error.what, where=error.where, hint=hint) from None
    names: Sequence[str] | None = model.classes
    if names is None and model.source_of_classes:
        names = [entry.class_id for entry in load_catalog(model.source_of_classes)]
    notes: tuple[str, ...] = ()
    if model.own_normalise not in (None, data.normalise):
        notes = ("its inputs were normalised by another mean and deviation than this benchmark's",)
    assert isinstance(model.module, nn.Module)
    state = portable_state(model.module)
    has_classes = None if names is None else _are_classes(names, data)
    return Start(model.name, state, _record(model.name, state), has_classes, notes)


def _record(source: str, state: State) -> dict[str, str]:
    """Return the record of weights without a ``model.json``: the SHA-256 is over names, shapes and values."""
    return {"source": source, "sha256": model_key(state, "")}


def _are_classes(names: Sequence[str], data: TrainingData) -> bool:
    """Return whether names or wnids, one per output, are the benchmark's classes in label order."""
    if list(names) == list(data.classes):
        return True
    if data.manifest is None or len(names) != len(data.classes):
        return False
    of = data.manifest
    space = LabelSpace.of(of.classes, of.declarations, of.own_hierarchy)
    try:
        return class_map(space, len(names), classes=names).columns == tuple(range(len(names)))
    except DataError:
        return False


def only_trained(
    model: Network, groups: list[dict[str, Any]], layers: Sequence[str] | None
) -> list[dict[str, Any]]:
    """Return an optimizer's parameter groups without frozen layers, which get no gradient.

    The classifier, the method's heads and the named layers are trained; all are without names.

    Raises
    ------
    DataError : a name that no layer has.
    """
    if layers is None:
        return groups
    head, names = f"{model.head_name}.", [name for name, _ in model.module.named_parameters()]
    for layer in layers:
        if not any(name.startswith(f"{layer}.") for name in names):
            tops = ", ".join(dict.fromkeys(name.partition(".")[0] for name in names))
            raise DataError(f"no layer of the network is called {layer!r}", hint=f"its layers: {tops}")
    prefixes = (head, HEADS, *(f"{layer}." for layer in layers))
    for name, parameter in model.module.named_parameters():
        parameter.requires_grad_(name.startswith(prefixes))
    trained = [{**g, "params": [p for p in g["params"] if p.requires_grad]} for g in groups]
    return [group for group in trained if group["params"]]


def load_start(model: Network, start: Start) -> bool:
    """Load the weights to start from, and return whether the classifier is left as initialised.

    The classifier is loaded if its shapes fit and its outputs are not known to be other classes; so are heads
    of the method that both networks have. Every other tensor must fit.

    Raises
    ------
    DataError : the weights belong to a different network.
    """
    own = model.module.state_dict()
    heads = {name: value for name, value in own.items() if name.startswith(HEADS)}
    names = own.keys() - heads.keys()
    state = named_as({name: t for name, t in start.weights.items() if not name.startswith(HEADS)}, names)
    new = start.has_classes is False or any(n not in state or state[n].shape != own[n].shape for n in names)
    if new:
        head = f"{model.head_name}."
        state = {name: value for name, value in state.items() if not name.startswith(head)}
        state |= {name: own[name] for name in names if name.startswith(head)}
    else:
        heads |= {name: start.weights[name] for name in heads if name in start.weights}
    load_weights(model.module, {**state, **heads}, start.source)
    return new
