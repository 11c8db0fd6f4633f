"""One training run, epoch by epoch, with the dataset as uint8 on the device.

Random numbers depend only on the seed and the epoch, so that an interrupted and resumed run, or runs in
another order, give the same bytes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.progress import Task
from wordnet_splits.base.untrusted import user_errors
from wordnet_splits.metrics import gamma_minus, gamma_plus

from ..data.arrays import array_of
from .checkpoint import build_from, portable_state
from .choices import AUGMENTATIONS
from .data import DeviceData
from .machine import Machine, average_buffers, average_gradients, gathered, share_of, summed
from .methods import image_operations
from .methods.interface import Batch, Data, Method, State, Terms
from .methods.network import Network, evaluation_mode
from .optimizers import make_optimizer
from .recipe import Run
from .starting import Start, load_start, only_trained
from .steps import (
    Cost,
    GradientGraph,
    copied,
    derive_seed,
    epoch_batches,
    is_replayable,
    known_probabilities,
    loss_of,
)

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
EVALUATION_BATCH = 500
TIMED_STEPS = 20
LOSS_SECONDS = 2.0
"""Seconds between updates of the displayed loss."""


class Trainer:
    """A network with its optimizer, advanced epoch by epoch.

    Parameters
    ----------
    run : the model to train.
    data : on ``machine``'s device.
    start : weights to start from, None for a network initialised from the seed.
    method : by default the recipe's method.
    """

    def __init__(
        self,
        run: Run,
        data: DeviceData,
        machine: Machine,
        start: Start | None = None,
        *,
        method: Method | None = None,
    ) -> None:
        recipe = run.recipe
        self.run, self.recipe, self.data, self.machine = run, recipe, data, machine
        self.ranks = machine.ranks
        self.method = method = method or recipe.build_method()
        self.network = data.facts.describe_network(run.network, background=method.background)
        torch.manual_seed(derive_seed(run.seed, "initialisation"))
        self.module = build_from(self.network)
        self.model = Network(self.module, data.facts.size, autocast=AUTOCAST.get(machine.precision))
        facts = Data(
            labels=data.pool.labels[: data.n_known],
            n_outliers=data.n_negatives,
            classes=data.facts.classes,
            extract=self._extract,
            manifest=data.facts.manifest,
            normalise=data.facts.normalise,
        )
        with user_errors("the heads cannot be made", where=f"training method {method.name!r}"):
            self.model.facts = method.facts(facts)
            self.model.add_heads(method, self.network["outputs"])
        self.new_classifier = start is None or load_start(self.model, start)
        self.module.to(machine.device, memory_format=torch.channels_last)
        choice = recipe.optimizer[run.optimizer]
        groups = only_trained(self.model, method.parameter_groups(self.model), recipe.trained_layers)
        self.optimizer = make_optimizer(choice.rule, groups, choice.settings)
        self._trained = [p for group in self.optimizer.param_groups for p in group["params"]]
        self.scaler = torch.amp.GradScaler(machine.device.type, enabled=machine.precision == "fp16")
        augment = getattr(image_operations, AUGMENTATIONS[recipe.augment])
        self.views = method.views(partial(augment, margin=recipe.margin) if recipe.margin else augment)
        self._timed, self._known, self._forwarded, self._differentiated = 0, 0, 0, 0
        self._sizes: set[int] = set()
        self._graph: GradientGraph | None = None
        self._first_step_end = 0.0
        self.announce: Callable[[Cost], None] = lambda cost: None
        self.accumulate = recipe.accumulate or 1
        self.batch = math.ceil(recipe.batch / self.accumulate)
        self.samples = len(data.pool) if method.outliers == "mixed" else data.n_known
        self.steps, self._number = math.ceil(self.samples / self.batch), 0
        if limit := recipe.trial and recipe.trial.steps:
            self.steps = min(self.steps, limit * self.accumulate)
            self.data = data.validated_on(limit * recipe.batch)
        self.method_data, self.method_state = facts, State()
        self._begin_epoch(-1)
        with self.user_code():
            method.setup(self.model, facts, self.method_state)
        self.average = copied(self.module.state_dict()) if recipe.ema else {}
        self._pool = torch.cuda.graph_pool_handle() if self.replays else None

    @property
    def replays(self) -> bool:
        """Whether the gradients of a step are recorded as a CUDA graph once an epoch, and replayed."""
        on_gpu = self.machine.device.type == "cuda" and self.machine.precision == "float32"
        one_pass_per_step = self.ranks.world == 1 and self.accumulate == 1
        return on_gpu and one_pass_per_step and is_replayable(self.method, self.run.network)

    def _begin_epoch(self, epoch: int, *rank: int) -> None:
        """Seed the random numbers of an epoch, equal on all ranks or a rank's: dropout, the method's own."""
        torch.manual_seed(derive_seed(self.run.seed, "dropout", epoch, *rank))
        generator = torch.Generator().manual_seed(derive_seed(self.run.seed, "method", epoch, *rank))
        self.method_state.epoch, self.method_state.epochs = max(epoch, 0), self.recipe.epochs
        self.method_state.generator = generator
        self._stale = True

    def user_code(self) -> AbstractContextManager[None]:
        """Return a context manager that reports errors as errors of the method."""
        return user_errors("its code failed", where=f"training method {self.method.name!r}")

    def train_epoch(self, epoch: int, task: Task) -> dict[str, Any]:
        """Train one epoch, counted from 0, and return its rate (at the end) and mean loss."""
        self._begin_epoch(epoch, *([self.ranks.rank] if self.ranks.world > 1 else []))
        generator = torch.Generator().manual_seed(derive_seed(self.run.seed, "batches", epoch))
        data, recipe = self.data, self.recipe
        batches = epoch_batches(
            data.n_known,
            data.n_negatives,
            self.method.outliers,
            self.batch,
            recipe.negatives_per_known,
            generator,
        )
        if self.ranks.world > 1:  # views of each rank's own; the order of images is drawn above
            batches, views = iter(list(batches)), ("views", epoch, self.ranks.rank)
            generator = torch.Generator().manual_seed(derive_seed(self.run.seed, *views))
        base = recipe.optimizer[self.run.optimizer].lr
        self.module.train()
        names, began = list(self.method.parts), time.monotonic()
        updates = math.ceil(self.steps / self.accumulate)
        total = torch.zeros(1 + 2 * len(names), dtype=torch.float64, device=self.machine.device)
        last, samples, rate, shown = torch.zeros_like(total), 0.0, base, time.monotonic()
        hint = "lower the learning rate, or train in float32 (--precision float32)"
        check_loss = partial(self.check_loss, where=f"{self.run.name}, epoch {epoch + 1}: ", hint=hint)
        for number, rows in enumerate(islice(batches, self.steps)):
            rate = base * recipe.schedule.factor(
                epoch * updates + number // self.accumulate, updates, recipe.epochs
            )
            for group in self.optimizer.param_groups:
                group["lr"] = rate * group.get("scale", 1.0)
            self._number, (share, weight) = number, share_of(rows, data.n_known, self.ranks)
            known = int((share < data.n_known).sum())
            self._sizes = {len(share), known, len(share) - known} - {0}
            images = weight * len(rows) / self.ranks.world  # a repeated image counts once
            numbers = self._step(share.to(self.machine.device), generator, weight)
            last = torch.where(torch.isfinite(last[0]), numbers, last)  # then the first that is not finite
            total += images * numbers
            samples += images
            note, now = "", time.monotonic()
            if now - shown >= LOSS_SECONDS:  # rarely: reading the loss waits for the device
                shown, note = now, self._note(epoch, total.tolist(), samples, now - began)
                if self.ranks.world == 1:
                    check_loss(last)
            self._time_step(share)
            task.advance(len(rows), note=note)
        samples = round(summed(torch.tensor(samples, dtype=torch.float64), self.ranks).item())
        mean, *sums = summed(total, self.ranks).tolist()
        mean /= samples
        average_buffers([*self.module.buffers(), *self.average.values()], self.ranks)
        task.advance(0, note=self._note(epoch, [mean * samples, *sums], samples, time.monotonic() - began))
        check_loss(summed(last, self.ranks))
        self.end_epoch()
        row = {"rate": rate, "loss": mean}
        if len(names) == 1:
            return row
        return {**row, "parts": self._part_means(sums)}

    def check_loss(self, numbers: Tensor, where: str, hint: str | None = None) -> None:
        """Raise DataError if the loss of a step, with its parts as `_step` returns them, is not finite."""
        loss, *parts = numbers.tolist()
        if not math.isfinite(loss):
            means = zip(self.method.parts, parts[::2], strict=True)
            names = [f"part {name!r}" for name, value in means if not math.isfinite(value)]
            what = f"the {' and '.join(names) or 'sum'} of its loss is {loss}"
            raise DataError(what, where=f"{where}training method {self.method.name!r}", hint=hint)

    def end_epoch(self) -> None:
        """Let the method update its state, with equal random numbers on all ranks."""
        if self.ranks.world > 1:
            self._begin_epoch(self.method_state.epoch)
        with self.user_code():
            self.method.after_epoch(self.model, self.method_data, self.method_state)

    def _note(self, epoch: int, totals: list[float], samples: float, seconds: float) -> str:
        """Return the progress: mean loss, its parts if it has several, and images per second."""
        note = f"epoch {epoch + 1} of {self.recipe.epochs}, loss {totals[0] / samples:.3g}"
        parts = self._part_means(totals[1:])
        if len(self.method.parts) > 1:
            note += f" ({', '.join(f'{name} {value:.3g}' for name, value in parts.items())})"
        return f"{note}, {samples / max(seconds, 1e-9):,.0f} images/s"

    def _part_means(self, sums: list[float]) -> dict[str, float]:
        """Return the mean of each part; ``sums`` alternates a part's sum and its number of images."""
        columns = zip(self.method.parts, sums[::2], sums[1::2], strict=True)
        return {name: value / count for name, value, count in columns if count}

    def _time_step(self, rows: Tensor) -> None:
        """Announce the cost after `TIMED_STEPS` steps; the first one, which sets up, is not timed."""
        if self._timed > TIMED_STEPS:
            return
        self._timed, self._known = self._timed + 1, self._known + int((rows < self.data.n_known).sum())
        self._forwarded += self.model.forwarded
        self._differentiated += self.model.differentiated
        if self._timed == 1:
            self._first_step_end = time.monotonic()
        elif self._timed == TIMED_STEPS + 1:
            seconds = (time.monotonic() - self._first_step_end) / TIMED_STEPS * self.steps
            images = self._forwarded, self._differentiated
            self.announce(Cost(seconds, *(count / self._known for count in images)))

    def _step(self, rows: Tensor, generator: Any, weight: float) -> Tensor:
        """Take a step, in which this rank's gradient has ``weight``; return the numbers of `_gradients`."""
        batch = self.make_batch(rows, generator)
        if self._pool is not None and len(batch) == self.batch:
            numbers = self._replayed(batch)
        else:
            numbers = self._gradients(batch, weight * self._share_of_step())
        if (self._number + 1) % self.accumulate == 0 or self._number + 1 == self.steps:
            average_gradients(self._trained, self.ranks)
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self._update_average()
        return numbers

    def _replayed(self, batch: Batch) -> Tensor:
        """Return the numbers of `_gradients`, computed by the graph of the epoch."""
        if self._graph is None or self._stale:  # the computation of a method may depend on the epoch
            state = [value for value in self.method_state.values() if isinstance(value, Tensor)]
            changed = [*self.module.buffers(), *state]
            warm = self._graph is not None
            self._graph = GradientGraph(self._gradients, self._trained, changed, batch, self._pool, warm=warm)
            self._stale = False
        return self._graph.replay(batch)

    def _gradients(self, batch: Batch, weight: float = 1.0) -> Tensor:
        """Add the gradients of a batch, and return its loss, then the mean of each part and 1, or 0 and 0."""
        self.model.forwarded = self.model.differentiated = 0
        terms = self._terms(batch)
        with self.user_code():
            means, loss = loss_of(self.method, terms, self._sizes)
        if self._number % self.accumulate == 0:
            self.optimizer.zero_grad()
        with self.user_code():
            self.scaler.scale(loss * weight).backward()
        numbers = [loss.detach()]
        for name in self.method.parts:
            present = name in means
            numbers += [
                means[name].values.detach() if present else loss.new_zeros(()),
                loss.new_full((), present),
            ]
        return torch.stack(numbers)

    def _terms(self, batch: Batch) -> Terms:
        """Return the parts of the loss of a batch."""
        with self.user_code():
            return self.method.step(self.model, batch, self.method_state)

    def _share_of_step(self) -> float:
        """Return the share of a step's images in the batch whose gradients are added up."""
        batch, first = self.batch, self._number - self._number % self.accumulate
        images = min(batch, self.samples - self._number * batch)
        return images / min(self.accumulate * batch, self.samples - first * batch)

    def _update_average(self) -> None:
        decay = self.recipe.ema
        if decay is not None:
            for name, value in self.module.state_dict().items():
                average = self.average[name]
                if average.is_floating_point():
                    average.lerp_(value, 1 - decay)
                else:
                    average.copy_(value)

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Replace the weights with their moving average, if any, inside the block."""
        if not self.average:
            yield
            return
        weights = copied(self.module.state_dict())
        self.module.load_state_dict(self.average)
        try:
            yield
        finally:
            self.module.load_state_dict(weights)

    def kept_weights(self) -> dict[str, Any]:
        """Return a copy of the weights to keep: the moving average, if any."""
        with self.averaged():
            return portable_state(self.module)

    def make_batch(self, rows: Tensor, generator: Any) -> Batch:
        """Return the batch of some rows of the pool, each view by its transform."""
        pixels = self.data.pool.pixels[rows]
        views = tuple(self._normalise(view(pixels, generator)) for view in self.views)
        return Batch(views, self.data.pool.labels[rows], rows)

    def _normalise(self, pixels: Tensor) -> Tensor:
        return self.data.facts.normalise(pixels).contiguous(memory_format=torch.channels_last)

    def _extract(self, outliers: bool = False) -> tuple[Tensor, Tensor]:
        """Return features and logits of the ID images, or of the outliers, in evaluation mode."""
        n_known, pixels = self.data.n_known, self.data.pool.pixels
        with evaluation_mode(self.module):
            batches = (pixels[n_known:] if outliers else pixels[:n_known]).split(EVALUATION_BATCH)
            batches = (self._normalise(self.data.facts.centre(part)) for part in batches)
            features, logits = zip(*map(self.model, batches), strict=True)
        return torch.cat(features), torch.cat(logits)

    def validate(self) -> dict[str, Any]:
        """Return loss (cross-entropy) and accuracy on ID val, and the gammas if they or negatives are used.

        Without external val images, ``gamma_minus`` and ``gamma`` have the value None (Palechor eq. 7).
        """
        val, background = self.data.val, self.method.background
        if val is None:
            return {}
        with self.averaged():
            logits = self._evaluate(val.pixels)
        probabilities = known_probabilities(logits, background=background)
        accuracy = float((probabilities.argmax(1) == val.labels).double().mean())
        metrics = {"val_loss": float(functional.cross_entropy(logits, val.labels)), "val_accuracy": accuracy}
        if self.method.outliers == "none" and self.recipe.select != "gamma":
            return metrics
        plus = gamma_plus(array_of(probabilities.gather(1, val.labels[:, None])[:, 0]))
        minus = None
        if self.data.val_negatives is not None:
            with self.averaged():
                logits = self._evaluate(self.data.val_negatives.pixels)
            outliers = known_probabilities(logits, background=background)
            highest = array_of(outliers.max(1).values)
            minus = gamma_minus(highest, classes=outliers.shape[1], background=background)
        gamma = None if minus is None else (plus + minus) / 2
        return {**metrics, "gamma_plus": plus, "gamma_minus": minus, "gamma": gamma}

    def _evaluate(self, pixels: Tensor) -> Tensor:
        """Return logits (n, outputs) in evaluation mode."""
        self.module.eval()
        with torch.no_grad():
            return torch.cat([self.model.logits(self._normalise(p)) for p in pixels.split(EVALUATION_BATCH)])

    def release(self) -> None:
        """Free the memory of the graph, which other trainings cannot use."""
        self._graph = None

    def state(self) -> dict[str, Any]:
        """Return the state for `restore`, as tensors and plain values."""
        return {
            "weights": portable_state(self.module),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "method": gathered(copied(dict(self.method_state), "cpu"), self.ranks),
            "average": copied(self.average, "cpu"),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        self.module.load_state_dict(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        self.method_state.clear()
        self.method_state.update(copied(state["method"][self.ranks.rank], self.machine.device))
        self.average = copied(state["average"], self.machine.device)

    def method_record(self) -> dict[str, Any] | None:
        """Return the ``method`` of ``model.json``: None if evaluation needs the network alone."""
        if type(self.method).heads is Method.heads and not self.method.outputs:
            return None
        return {"head": self.model.head_name, "facts": self.model.facts}
