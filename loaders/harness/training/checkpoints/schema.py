"""The schema of ``model.json``, which describes a trained network; imports no torch."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from wordnet_splits.base.schemas import BenchmarkName, Count, Sha256, StrictModel

from .choices import NETWORKS
from .recipe import TrainingRecipe

SCHEMA = 3
LARGEST_SIDE, MOST_OUTPUTS = 1024, 100_000

Finite = Annotated[float, Field(allow_inf_nan=False)]
Deviation = Annotated[float, Field(gt=0, allow_inf_nan=False)]
InputSide = Annotated[int, Field(ge=1, le=LARGEST_SIDE)]


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
    """Means and standard deviations, of pixels in [0, 1], that images are normalised by."""

    mean: list[Finite] = Field(min_length=3, max_length=3)
    std: list[Deviation] = Field(min_length=3, max_length=3)


class StartRecord(StrictModel):
    """The run whose weights were trained further."""

    run: str
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


class WeightsRecord(StrictModel):
    """The file of the weights and its SHA-256."""

    file: Literal["model.pt"]
    sha256: Sha256


class TrainedModel(StrictModel):
    """The whole of ``model.json``.

    Attributes
    ----------
    code : ``MODULE:NAME`` and the digest of its file, of a method and a network of a user.
    outliers : how outliers were trained with. method : of methods with heads or outputs, None for others.
    recipe, optimizer, seed, start : settings of the training. network, classes, input : outputs and inputs.
    run, series : name of the run, and the name shared by a model's seeds.
    machine : machine of the last epochs; ``earlier_machines``: other machines, of the epochs before.
    history : every epoch; ``selected`` is the epoch whose weights were kept.
    command : the command line, None from Python.
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
    method: MethodRecord | None = None
    code: list[str] | None = None
    command: str | None
    weights: WeightsRecord

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        network, background = self.network, self.network.background is not None
        if len(self.classes) + background != network.outputs:
            raise ValueError(f"{len(self.classes)} classes of a network with {network.outputs} outputs")
        if self.optimizer not in self.recipe.optimizer:
            raise ValueError(f"the recipe has no optimizer {self.optimizer!r}")
        if self.run != f"{self.series}-s{self.seed}":
            raise ValueError("the run is not named for its series and seed")
        if [row.epoch for row in self.history] != list(range(1, self.epochs_trained + 1)):
            raise ValueError("the history is not of the epochs trained")
        if self.selected != dict(enumerate(self.history, 1)).get(self.selected_epoch):
            raise ValueError("the epoch selected is not that of the history")
        return self
