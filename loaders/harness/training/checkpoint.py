"""Trained networks on disk: ``model.pt``, a state dict for ``weights_only=True``, and ``model.json``.

``model.json`` describes the weights: network, recipe, seed, benchmark and its fingerprints, training history,
command, and the SHA-256 of ``model.pt``. Each file is written atomically, the JSON last, so that a folder
with a ``model.json`` is a finished model.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import nn

from wordnet_splits.base import files
from wordnet_splits.base.digests import DIGEST_BYTES
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.text_formats import (
    BenchmarkName,
    Count,
    Sha256,
    StrictModel,
    read_sealed,
    write_sealed,
)
from wordnet_splits.base.untrusted import GiB, read_bytes, require_trusted_name

from ..models.sources.registry import METADATA
from ..models.weights import check_state, load_tensors, load_weights
from .choices import NETWORKS, named_code
from .methods import Method, Network, get_method
from .networks import build_network
from .recipe import TrainingRecipe

SCHEMA = 3
LARGEST_SIDE, MOST_OUTPUTS = 1024, 100_000

Finite = Annotated[float, Field(allow_inf_nan=False)]
Deviation = Annotated[float, Field(gt=0, allow_inf_nan=False)]
InputSide = Annotated[int, Field(ge=1, le=LARGEST_SIDE)]

WEIGHTS, STATE = "model.pt", "training.pt"
STATE_KEYS = {"trainer", "history", "best", "earlier_machines", "request"}
LARGEST = 16 * GiB
AGAIN = "delete it and train again"


def save_checkpoint(folder: Path, weights: Mapping[str, Any], metadata: Mapping[str, Any]) -> Path:
    """Write weights and metadata into ``folder`` and return it; the same weights give the same bytes."""
    blob = _serialised(weights)
    digest = hashlib.sha256(blob).hexdigest()
    files.write_bytes(folder / WEIGHTS, blob)
    description = {"schema": SCHEMA, "weights": {"file": WEIGHTS, "sha256": digest}}
    write_sealed(folder / METADATA, {**metadata, **description})
    return folder


def read_metadata(path: str | Path) -> dict[str, Any]:
    """Return the content of ``model.json``; ``path`` is the folder, ``model.json`` or ``model.pt``."""
    file = _folder(path) / METADATA
    if not file.exists():
        hint = "give a folder that `unknown-eval train` has written, with its training finished"
        raise DataError("no trained model here", where=str(path), hint=hint)
    model = read_sealed(file, TrainedModel, hint="copy the folder again, or train the model again")
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def record_validation(folder: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """Record the validation of a sweep (`ValidationRecord`) in ``model.json`` and return its content."""
    write_sealed(folder / METADATA, {**read_metadata(folder), "validation": dict(record)})
    return read_metadata(folder)


def load_checkpoint(path: str | Path, device: Any = "cpu", *, trust: bool = False) -> nn.Module:
    """Return a trained network in evaluation mode.

    Parameters
    ----------
    path : the folder of the model, its ``model.json`` or its ``model.pt``.
    trust : whether code that ``model.json`` names (a method ``MODULE:NAME``) may be imported.

    The module carries ``metadata`` (the whole ``model.json``), ``classes`` (names in label order),
    ``background`` (the index of a background column, or None) and ``trained_by`` (a `TrainedBy`, or None).
    Input images must be normalised by ``metadata["input"]``, the normalisation of the benchmark's recipe.

    Raises
    ------
    DataError : no model, an altered one, or weights of another SHA-256 or network.
    UnsafeDataError : it names code that the user has not named in this process, without ``trust``.
    """
    file, metadata = _folder(path) / WEIGHTS, read_metadata(path)
    blob = read_bytes(file, largest=LARGEST)
    if hashlib.sha256(blob).hexdigest() != metadata["weights"]["sha256"]:
        raise DataError(
            "the weights differ from the checksum in model.json",
            where=str(file),
            hint="copy both files again, or train again",
        )
    weights = check_state(_deserialised(blob, file), file, hint=AGAIN)
    with torch.device("meta"):  # shapes only: no memory is used until the weights fit
        model, method = build_trained(metadata, str(file), trust=trust)
    module = model.module
    load_weights(module, weights, str(file), assign=True)
    module.trained_by = None if method is None else TrainedBy(method, model)
    module.metadata, module.classes = metadata, tuple(metadata["classes"])
    module.background = metadata["network"]["background"]
    return module.to(device).eval()


def build_from(network: Mapping[str, Any]) -> nn.Module:
    """Return the freshly initialised network that ``metadata["network"]`` describes."""
    return build_network(
        network["name"], network["outputs"], channels=network["channels"], size=tuple(network["size"])
    )


@dataclass(frozen=True)
class TrainedBy:
    """The training method of a network that has heads or outputs of the method."""

    method: Method
    model: Network


def build_trained(metadata: Mapping[str, Any], where: str, *, trust: bool) -> tuple[Network, Method | None]:
    """Return the network of a ``model.json`` with its method's heads, and the method, None without heads."""
    network, record = metadata["network"], metadata.get("method")
    choice = TrainingRecipe.model_validate(metadata["recipe"]).method
    for name in named_code(network["name"], choice.name if record else ""):
        require_trusted_name(name, trusted=trust, where=where)
    model = Network(build_from(network), tuple(network["size"]))
    if record is None:
        return model, None
    method = get_method(choice.name, choice.parameters, where=where)
    model.facts, model.head_name = record["facts"], record["head"]
    model.add_heads(method, network["outputs"])
    return model, method


def portable_state(module: nn.Module) -> dict[str, Any]:
    """Return a copy of a state dict on the CPU in contiguous layout, so that bytes depend on values alone."""
    plain = torch.contiguous_format
    return {
        name: tensor.detach().cpu().clone(memory_format=plain) for name, tensor in module.state_dict().items()
    }


def save_state(folder: Path, state: Mapping[str, Any]) -> None:
    """Write the state that an interrupted training continues from (`load_state`), with its SHA-256."""
    blob = _serialised(state)
    files.write_bytes(folder / STATE, blob + hashlib.sha256(blob).digest())


def load_state(folder: Path) -> dict[str, Any] | None:
    """Return the state that `save_state` wrote last, or None."""
    file = folder / STATE
    if not file.exists():
        return None
    data = read_bytes(file, largest=LARGEST)
    blob, checksum = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    if hashlib.sha256(blob).digest() != checksum:
        raise DataError("was altered: its checksum differs", where=str(file), hint=AGAIN)
    state = _deserialised(blob, file)
    if not isinstance(state, dict) or state.keys() | {"earlier_machines"} != STATE_KEYS:
        raise DataError("is not the state of a training", where=str(file), hint=AGAIN)
    return {"earlier_machines": [], **state}


def delete_state(folder: Path) -> None:
    """Remove the file of `save_state`."""
    (folder / STATE).unlink(missing_ok=True)


def _serialised(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def _deserialised(blob: bytes, where: Path) -> Any:
    return load_tensors(io.BytesIO(blob), where, hint=AGAIN)


def _folder(path: str | Path) -> Path:
    path = Path(path)
    return path.parent if path.name in (WEIGHTS, METADATA) else path


class NetworkRecord(StrictModel):
    """Arguments of `networks.build_network`; ``background`` is the index of a background output."""

    name: str
    outputs: int = Field(ge=1, le=MOST_OUTPUTS)
    background: int | None
    channels: Literal[1, 3]
    size: list[InputSide] = Field(min_length=2, max_length=2)

    @model_validator(mode="after")
    def _known(self) -> Self:
        if ":" not in self.name and self.name not in NETWORKS:
            raise ValueError(f"unknown network {self.name!r}")
        if self.background not in (None, self.outputs - 1):
            raise ValueError("the background output is not the last")
        return self


class PartRecord(StrictModel):
    """Images that were trained or validated with, and their fingerprints."""

    split: str
    group: str
    rows: Count
    images: Sha256 | None
    pixels: Sha256 | None


class BenchmarkRecord(StrictModel):
    """The benchmark: name, version and fingerprints."""

    name: BenchmarkName
    version: int
    fingerprint: Sha256 | None
    parts: list[PartRecord]


class InputRecord(StrictModel):
    """Means and deviations, of pixels in [0, 1], that images are normalised by, and the recipe's geometry."""

    mean: list[Finite] = Field(min_length=3, max_length=3)
    std: list[Deviation] = Field(min_length=3, max_length=3)
    resize: str | None = None


class StartRecord(StrictModel):
    """The weights that were trained further.

    Attributes
    ----------
    run : name of a run.
    source : published weights (``torchvision:resnet50/IMAGENET1K_V1``), or a file's name.
    sha256 : of a run's ``model.pt``; of other weights over every tensor (`reproducibility.model_key`).
    """

    run: str | None = None
    source: str | None = None
    sha256: Sha256


class MachineRecord(StrictModel):
    """The machine that computed a model; equal machines give equal bytes."""

    ranks: int | None = Field(default=None, ge=2)
    device: str
    precision: Literal["float32", "bf16", "fp16"]
    threads: int | None
    torch: str


class EarlierMachine(MachineRecord):
    """Machine that computed the epochs up to ``last_epoch``, before another machine resumed the run."""

    last_epoch: int = Field(ge=1)


class EpochRecord(StrictModel):
    """One epoch: the rate at its end, the mean loss and its parts (unweighted), and validation, if any."""

    epoch: int = Field(ge=1)
    rate: Finite
    loss: Finite
    parts: dict[str, Finite] | None = None
    val_loss: Finite | None = None
    val_accuracy: Finite | None = None
    gamma_plus: Finite | None = None
    gamma_minus: Finite | None = None
    gamma: Finite | None = None


class MethodRecord(StrictModel):
    """Name of the classifier, and the facts about the data that the method's heads need (`Method.facts`)."""

    head: str
    facts: dict[str, Any]


class ValidationRecord(StrictModel):
    """Values of the parameters of a sweep (`parameter_sweep`), and the AURC that one is chosen by."""

    parameters: dict[str, bool | int | float | str]
    criterion: str
    parts: list[PartRecord]
    aurc: Finite


class WeightsRecord(StrictModel):
    """The file of the weights and its SHA-256."""

    file: Literal["model.pt"]
    sha256: Sha256


class TrainedModel(StrictModel):
    """The whole of ``model.json``.

    Attributes
    ----------
    code : ``MODULE:NAME`` and the digest of its file, of a method and a network of a user.
    outliers : how outliers were trained with.
    revision : of the method's loss and defaults (`Method.revision`), None for the first.
    method : of methods with heads or outputs, None for others.
    recipe, optimizer, seed, start : settings of the training.
    network, classes, input : outputs and inputs.
    run, series : name of the run, and the name shared by a model's seeds.
    machine : machine of the last epochs; ``earlier_machines``: other machines, of the epochs before.
    history : every epoch; ``selected`` is the epoch whose weights were kept.
    command : the command line, None from Python.
    validation : of the last sweep that the run was part of, None without one.
    """

    version: Literal[3] = Field(alias="schema")
    recipe: TrainingRecipe
    network: NetworkRecord
    optimizer: str
    seed: int
    benchmark: BenchmarkRecord
    classes: list[str] = Field(min_length=1)
    input: InputRecord
    start: StartRecord | None
    machine: MachineRecord
    earlier_machines: list[EarlierMachine] | None = Field(default=None, min_length=1)
    run: str
    series: str
    epochs_trained: int = Field(ge=1)
    selected_epoch: int = Field(ge=1)
    selected: EpochRecord
    history: list[EpochRecord] = Field(min_length=1)
    outliers: Literal["none", "mixed", "beside"]
    revision: int | None = Field(default=None, ge=2)
    method: MethodRecord | None = None
    code: list[str] | None = None
    command: str | None
    validation: ValidationRecord | None = None
    weights: WeightsRecord

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        network, background = self.network, self.network.background is not None
        if len(self.classes) + background != network.outputs:
            raise ValueError(f"{len(self.classes)} classes do not fit a network of {network.outputs} outputs")
        if self.optimizer not in self.recipe.optimizer:
            raise ValueError(f"the recipe has no optimizer {self.optimizer!r}")
        if self.run != f"{self.series}-s{self.seed}":
            raise ValueError("run must be the series and the seed")
        if [row.epoch for row in self.history] != list(range(1, self.epochs_trained + 1)):
            raise ValueError("history must have one row for each epoch")
        if self.selected != dict(enumerate(self.history, 1)).get(self.selected_epoch):
            raise ValueError("selected must be the row of selected_epoch")
        return self
