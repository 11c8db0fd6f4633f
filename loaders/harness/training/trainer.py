"""One training run, epoch by epoch, with the dataset as uint8 on the device.

Random numbers depend only on the seed and the epoch, so that an interrupted and resumed run, or runs in
another order, give the same bytes.

Several runs are a plain loop: five copies of the small CNN stacked with ``torch.func.vmap`` took twice as
long on a CPU thread (4.3 s against 2.2 s for a step of 5 x 128 images).
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.progress import Task
from wordnet_splits.metrics import gamma_minus, gamma_plus

from ..backend.devices import deterministic_kernels
from ..checkpoints.choices import LOSSES
from ..checkpoints.files import build_from, portable_state
from ..checkpoints.recipe import TrainingRecipe
from .data import Images, TrainingData, augmentation
from .losses import NEGATIVE, bind_loss, known_probabilities
from .optimizers import make_optimizer

Precision = Literal["float32", "bf16", "fp16"]
AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
EVALUATION_BATCH = 500
TRIAL_STEPS = 3
LOSS_SECONDS = 2.0
"""Seconds between updates of the displayed loss."""


@dataclass(frozen=True)
class Run:
    """One model to train: recipe, network, one of the recipe's optimizers, seed."""

    recipe: TrainingRecipe
    network: str
    optimizer: str
    seed: int

    @property
    def series(self) -> str:
        """Name that the seeds of one model share, e.g. ``kim-cifar-resnet20-e20-n5000``."""
        recipe = self.recipe
        optimizer = f"-{self.optimizer}" if len(recipe.optimizer) > 1 else ""
        epochs = f"-e{recipe.epochs}" if recipe.shortened else ""
        images = f"-n{recipe.images}" if recipe.images else ""
        return f"{recipe.name}-{self.network}{optimizer}{epochs}{images}"

    @property
    def name(self) -> str:
        """Name of the run and of its folder."""
        return f"{self.series}-s{self.seed}"


@dataclass(frozen=True)
class Machine:
    """Device and precision of a run; equal machines give equal bytes."""

    device: Any
    precision: Precision

    def as_dict(self) -> dict[str, Any]:
        """Return the record for the checkpoint."""
        cuda = self.device.type == "cuda"
        return {
            "device": torch.cuda.get_device_name(self.device) if cuda else "cpu",
            "precision": self.precision,
            "threads": None if cuda else torch.get_num_threads(),
            "torch": str(torch.__version__),
        }


@dataclass(frozen=True)
class DeviceData:
    """A benchmark's images on the device, knowns and negatives in one pool; shared by all runs."""

    facts: TrainingData
    pool: Images
    n_known: int
    val: Images | None
    val_negatives: Images | None

    @classmethod
    def of(cls, data: TrainingData, device: Any) -> DeviceData:
        """Move a benchmark's images to a device; negatives, labelled -1, follow the knowns."""
        images = data.train
        if data.negatives is not None:
            if data.negatives.pixels.shape[1:] != images.pixels.shape[1:]:
                raise DataError("negatives and knowns differ in size", hint="resize the negatives")
            labels = torch.full_like(data.negatives.labels, NEGATIVE)
            pixels = torch.cat([images.pixels, data.negatives.pixels])
            images = Images(pixels, torch.cat([images.labels, labels]))
        val, negatives = (None if s is None else s.to(device) for s in (data.val, data.val_negatives))
        return cls(data, images.to(device), len(data.train), val, negatives)

    @property
    def n_negatives(self) -> int:
        """Number of negatives."""
        return len(self.pool) - self.n_known


def derive_seed(seed: int, *purpose: object) -> int:
    """Return a 63-bit seed for one purpose, e.g. ``derive_seed(0, "epoch", 3)``."""
    text = "\x1f".join(str(part) for part in (seed, *purpose))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


@contextmanager
def reproducible(device: Any) -> Iterator[None]:
    """Use deterministic kernels, and restore torch's settings and random state afterwards."""
    with (
        torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
        deterministic_kernels(),
    ):
        yield


def epoch_batches(
    n_known: int, n_negatives: int, mode: str, batch: int, ratio: int, generator: Any
) -> Iterator[Tensor]:
    """Yield the rows of the pool of each step of one epoch (knowns first in the pool, then negatives).

    ``none``: shuffled knowns. ``mixed``: knowns and negatives shuffled together. ``beside``: ``batch`` knowns
    and ``ratio * batch`` negatives, which are reshuffled when all have been used.
    """
    if mode == "beside":
        needed = ratio * n_known
        rounds = [
            torch.randperm(n_negatives, generator=generator) for _ in range(math.ceil(needed / n_negatives))
        ]
        outliers = (n_known + torch.cat(rounds)[:needed]).split(ratio * batch)
        knowns = torch.randperm(n_known, generator=generator).split(batch)
        yield from (torch.cat(pair) for pair in zip(knowns, outliers, strict=True))
    else:
        rows = n_known + (n_negatives if mode == "mixed" else 0)
        yield from torch.randperm(rows, generator=generator).split(batch)


class Trainer:
    """A network with its optimizer, advanced epoch by epoch.

    Parameters
    ----------
    run : the model to train. data : on ``machine``'s device. weights : a state dict to start from, None for a
        network initialised from the seed.
    """

    def __init__(
        self, run: Run, data: DeviceData, machine: Machine, weights: Mapping[str, Any] | None = None
    ) -> None:
        recipe = run.recipe
        self.run, self.recipe, self.data, self.machine = run, recipe, data, machine
        self.loss = LOSSES[recipe.loss.name]
        self.network = describe_network(run, data.facts)
        torch.manual_seed(derive_seed(run.seed, "initialisation"))
        self.module = build_from(self.network)
        if weights is not None:
            self.module.load_state_dict(weights)
        self.module.to(machine.device, memory_format=torch.channels_last)
        choice = recipe.optimizer[run.optimizer]
        self.optimizer = make_optimizer(choice.rule, self.module.parameters(), choice.settings)
        self.scaler = torch.amp.GradScaler(machine.device.type, enabled=machine.precision == "fp16")
        counts = _output_counts(data, self.network["outputs"])
        self.criterion = bind_loss(recipe.loss.name, counts, recipe.loss.parameters)
        self.augment = augmentation(recipe.augment)
        samples = len(data.pool) if self.loss.negatives == "mixed" else data.n_known
        self.steps = math.ceil(samples / recipe.batch)

    def train_epoch(self, epoch: int, task: Task) -> dict[str, Any]:
        """Train one epoch, counted from 0, and return its rate (at the end) and mean loss."""
        torch.manual_seed(derive_seed(self.run.seed, "dropout", epoch))
        generator = torch.Generator().manual_seed(derive_seed(self.run.seed, "batches", epoch))
        data, recipe = self.data, self.recipe
        batches = epoch_batches(
            data.n_known,
            data.n_negatives,
            self.loss.negatives,
            recipe.batch,
            recipe.negatives_per_known,
            generator,
        )
        base = recipe.optimizer[self.run.optimizer].lr
        self.module.train()
        total, samples, rate = torch.zeros((), dtype=torch.float64), 0, base
        total, shown = total.to(self.machine.device), time.monotonic()
        for number, rows in enumerate(batches):
            step = epoch * self.steps + number
            rate = base * recipe.schedule.factor(step, self.steps, recipe.epochs)
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            total += len(rows) * self._step(rows.to(self.machine.device), generator)
            samples += len(rows)
            note, now = "", time.monotonic()
            if now - shown >= LOSS_SECONDS:  # rarely: reading the loss waits for the device
                shown, note = now, self._note(epoch, float(total) / samples)
            task.advance(len(rows), note=note)
        mean = float(total) / samples
        task.advance(0, note=self._note(epoch, mean))
        if not math.isfinite(mean):
            raise DataError(
                f"the loss of epoch {epoch + 1} is {mean}",
                where=self.run.name,
                hint="lower the learning rate, or train in float32 (--precision float32)",
            )
        return {"rate": rate, "loss": mean}

    def _note(self, epoch: int, loss: float) -> str:
        return f"epoch {epoch + 1} of {self.recipe.epochs}, loss {loss:.3g}"

    def seconds_per_epoch(self) -> float:
        """Return the approximate seconds per epoch, measured over a few steps, which change the network."""
        rows = torch.arange(min(self.recipe.batch, len(self.data.pool))).to(self.machine.device)
        if self.loss.negatives == "beside":
            rows = torch.cat([rows, torch.full_like(rows, self.data.n_known)])
        began, generator = 0.0, torch.Generator().manual_seed(0)
        self.module.train()
        for step in range(TRIAL_STEPS + 1):  # the first step includes set-up
            if step == 1:
                began = time.monotonic()
            float(self._step(rows, generator))
        return (time.monotonic() - began) / TRIAL_STEPS * self.steps

    def _step(self, rows: Tensor, generator: Any) -> Tensor:
        pixels = self.augment(self.data.pool.pixels[rows], generator)
        logits = self._logits(pixels)
        loss = self.criterion(logits, self.data.pool.labels[rows])
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def _logits(self, pixels: Tensor) -> Tensor:
        images = self.data.facts.normalise(pixels).contiguous(memory_format=torch.channels_last)
        dtype = AUTOCAST.get(self.machine.precision)
        with torch.autocast(self.machine.device.type, dtype=dtype, enabled=dtype is not None):
            logits = self.module(images)
        return logits.float()

    def validate(self) -> dict[str, Any]:
        """Return loss (cross-entropy) and accuracy on ID val, and the gammas where the loss has negatives.

        ``gamma_minus`` and ``gamma`` need external val images and are None without them (Palechor eq. 7).
        """
        val, metrics = self.data.val, {}
        if val is None:
            return {}
        logits = self._evaluate(val.pixels)
        background = self.loss.background
        probabilities = known_probabilities(logits, background=background)
        metrics["val_loss"] = float(functional.cross_entropy(logits, val.labels))
        metrics["val_accuracy"] = float((probabilities.argmax(1) == val.labels).double().mean())
        if self.loss.negatives == "none":
            return metrics
        plus = gamma_plus(_numpy(probabilities.gather(1, val.labels[:, None])[:, 0]))
        minus = None
        if self.data.val_negatives is not None:
            outliers = known_probabilities(
                self._evaluate(self.data.val_negatives.pixels), background=background
            )
            highest = _numpy(outliers.max(1).values)
            minus = gamma_minus(highest, classes=outliers.shape[1], background=background)
        gamma = None if minus is None else (plus + minus) / 2
        return {**metrics, "gamma_plus": plus, "gamma_minus": minus, "gamma": gamma}

    def _evaluate(self, pixels: Tensor) -> Tensor:
        """Return logits (n, outputs) in evaluation mode."""
        self.module.eval()
        with torch.no_grad():
            return torch.cat([self._logits(part) for part in pixels.split(EVALUATION_BATCH)])

    def state(self) -> dict[str, Any]:
        """Return the state for `restore`, as tensors and plain values."""
        return {
            "weights": portable_state(self.module),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        self.module.load_state_dict(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])


def describe_network(run: Run, data: TrainingData) -> dict[str, Any]:
    """Return the part of the metadata that `checkpoints.files.build_from` rebuilds the network from."""
    background = LOSSES[run.recipe.loss.name].background
    classes = len(data.classes)
    return {
        "name": run.network,
        "outputs": classes + background,
        "background": classes if background else None,
        "channels": 1 if data.grey else 3,
        "size": list(data.size),
    }


def _output_counts(data: DeviceData, outputs: int) -> Tensor:
    """Return the number of training samples of each output; negatives count for the background class."""
    labels = data.pool.labels.cpu()
    labels = torch.where(labels == NEGATIVE, outputs - 1, labels) if data.n_negatives else labels
    return torch.bincount(labels, minlength=outputs)


def _numpy(tensor: Tensor) -> np.ndarray[Any, Any]:
    return np.asarray(tensor.float().cpu().numpy())
