"""The tiny network that `audit` trains, with records of its steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from wordnet_splits.base.progress import Silent

from .choices import Constant
from .data import DeviceData, Images, TrainingData, load_training_data
from .machine import choose_machine
from .methods import Batch, Method, Network, State, Term, get_method
from .methods.interface import BACKBONE, HEAD, OUTLIER, Terms
from .recipe import Run, load_recipe
from .steps import copied
from .trainer import Trainer

LATE, EPOCHS, WARM_UP, MAX_WARM_UP = 900, 1000, 2, 90
IMAGES, OUTLIERS, STEP_IMAGES, STEP_OUTLIERS = 96, 48, 12, 6
SCALES = (1.0, 5.0, 25.0, 0.1)
"""Factors of the classifier's weights that are tried until a hinge is active."""
LEAST_CHANGE = 1e-6
DRAWS = ("rand", "randn", "randint", "randperm", "bernoulli", "multinomial", "normal")
ALL = "(all)"


@dataclass(frozen=True)
class Finding:
    """The outcome of checking a part: passed, failed, or None if the check does not apply; and the reason."""

    part: str
    check: str
    passed: bool | None
    note: str = ""


def audit_data(outliers: bool) -> TrainingData:
    """Return some digits, and noise as outliers."""
    data = load_training_data("digits", images=IMAGES)
    noise = torch.Generator().manual_seed(0)
    shape = (OUTLIERS, *data.train.pixels.shape[1:])
    pixels = torch.randint(0, 256, shape, generator=noise, dtype=torch.uint8)
    images = Images(pixels, torch.full((OUTLIERS,), OUTLIER))
    return dataclasses.replace(data, val=None, negatives=images if outliers else None)


class AuditedTrainer(Trainer):
    """A trainer of a tiny network that records the state around the end of each epoch."""

    def __init__(self, method: Method) -> None:
        machine = choose_machine("cpu")
        recipe = load_recipe("digits-demo")
        choice = recipe.optimizer["adam"].model_validate({"rule": "sgd", "lr": 0.01})
        changes: dict[str, Any] = {"schedule": Constant(kind="constant"), "epochs": EPOCHS, "batch": 32}
        changes["augment"] = "crop4-flip"  # so that two random views differ
        recipe = recipe.model_copy(update={**changes, "optimizer": {"sgd": choice}})
        data = DeviceData.from_data(audit_data(method.outliers != "none"), machine.device)
        super().__init__(Run(recipe, recipe.network, "sgd", 0), data, machine, method=method)
        for layer in self.module.modules():
            if isinstance(layer, nn.Dropout):
                layer.p = 0.0
        self.around_end: list[dict[str, Any]] = []
        self.ends: list[list[dict[str, Any]]] = []
        self.first_state = copied(dict(self.method_state))
        self.present: tuple[str, ...] = ()
        self.differentiated_tensors: dict[int, tuple[int, Tensor, Tensor]] = {}
        self.with_gradient: set[int] = set()
        self.set_aside: dict[str, nn.Parameter] = {}
        self.evaluated_only = False
        self._steps_left_to_record = 0

    def end_epoch(self) -> None:
        """Record the state before the method's `after_epoch` and after the next step."""
        self.around_end = [copied(dict(self.method_state))]
        self.ends.append(self.around_end)
        with self._watched_parameters():
            super().end_epoch()
        self._steps_left_to_record = 1

    def _step(self, rows: Tensor, generator: Any, weight: float) -> Tensor:
        numbers = super()._step(rows, generator, weight)
        self.check_loss(numbers, "")
        for group in self.optimizer.param_groups:
            self.with_gradient |= {
                id(p) for p in group["params"] if p.grad is not None and bool(p.grad.any())
            }
        if self._steps_left_to_record:
            self._steps_left_to_record = 0
            self.around_end.append(copied(dict(self.method_state)))
        return numbers

    def train_late(self) -> list[Finding]:
        """Train until every part has appeared; return findings about parts that did not."""
        absent, epochs = list(self.method.parts), 0
        while (absent and epochs < MAX_WARM_UP) or epochs < WARM_UP:
            row = self.train_epoch(LATE + epochs, Silent())
            seen = row.get("parts", dict.fromkeys(self.method.parts, 0.0))
            absent, epochs = [name for name in absent if name not in seen], epochs + 1
        self.present = tuple(name for name in self.method.parts if name not in absent)
        self.epochs_trained = epochs
        self.end_weights, self.end_state = copied(self.module.state_dict()), copied(dict(self.method_state))
        return [Finding(name, "gradient", False, f"not there after {epochs} epochs") for name in absent]

    def _terms(self, batch: Batch) -> Terms:
        modes: list[bool] = []

        def record(module: nn.Module, arguments: Any) -> None:
            if torch.is_grad_enabled():
                modes.append(module.training)

        hook = self.module.register_forward_pre_hook(record)
        try:
            with self._watched_parameters():
                terms = super()._terms(batch)
        finally:
            hook.remove()
        self.evaluated_only |= bool(modes) and not any(modes)
        for tensor in _leaves(terms):
            steps, first = self.differentiated_tensors.get(id(tensor), (0, tensor.detach().clone()))[:2]
            self.differentiated_tensors[id(tensor)] = (steps + 1, first, tensor)
        return terms

    @contextmanager
    def _watched_parameters(self) -> Iterator[None]:
        """Record the parameters that the method itself changes inside the block."""
        before = [(name, p, p.detach().clone()) for name, p in self.module.named_parameters()]
        yield
        self.set_aside.update({name: p for name, p, old in before if not torch.equal(p, old)})

    def check_training(self) -> list[Finding]:
        """Return whether its weights differ from those that plain cross-entropy trains with the same seed."""
        if type(self.method) is type(get_method("softmax")):
            return [Finding(ALL, "changes weights", None, "is plain cross-entropy")]
        plain = AuditedTrainer(get_method("softmax"))
        for epoch in range(self.epochs_trained):
            plain.train_epoch(LATE + epoch, Silent())
        pairs = zip(*(t.model.parameters()[BACKBONE] for t in (self, plain)), strict=True)
        changed = max(float((a - b).detach().abs().max()) for a, b in pairs) > LEAST_CHANGE
        return [Finding(ALL, "changes weights", changed, "" if changed else "as with plain cross-entropy")]

    def restore_weights(self) -> None:
        """Set the weights to those at the end of `train_late`."""
        self.module.load_state_dict(self.end_weights)

    def classifier_scales(self) -> Iterator[float]:
        """Multiply the classifier's weights by each of `SCALES`; the caller restores them."""
        parameters = self.model.parameters()[HEAD]
        original = [p.detach().clone() for p in parameters]
        for scale in SCALES:
            with torch.no_grad():
                for p, value in zip(parameters, original, strict=True):
                    p.copy_(value * scale)
            yield scale

    def batch_of(self, offset: int = 0) -> Batch:
        """Return a batch of ID images, followed by outliers if the method uses outliers."""
        known = (torch.arange(STEP_IMAGES) * 7 + offset) % self.data.n_known
        outliers = self.data.n_known + (torch.arange(STEP_OUTLIERS) * 5 + offset) % OUTLIERS
        rows = known if self.method.outliers == "none" else torch.cat([known, outliers])
        return self.make_batch(rows, torch.Generator().manual_seed(offset))

    def terms(self, batch: Batch) -> dict[str, Term]:
        """Return the terms of a step after `train_late`, always with the same random numbers."""
        for name, buffer in self.module.named_buffers():
            buffer.data.copy_(self.end_weights[name])
        parameters = [(p, p.detach().clone()) for p in self.module.parameters()]
        terms = self.step_from(self.fresh_state(), batch)
        for p, value in parameters:  # undo changes by the step; the "trained" check reports them
            p.data.copy_(value)
        return terms

    def fresh_state(self) -> State:
        """Return a copy of the state after `train_late`, with the same random numbers each time."""
        fresh = State(copied(self.end_state))
        fresh.epoch, fresh.epochs = LATE + self.epochs_trained, EPOCHS
        fresh.generator = torch.Generator().manual_seed(1)
        return fresh

    def step_from(self, state: State, batch: Batch) -> dict[str, Term]:
        """Return the terms of a step, which may change the state and the weights."""
        torch.manual_seed(2)
        with self.user_code():
            terms = self.method.step(self.model, batch, state)
        return {name: term if isinstance(term, Term) else Term(term) for name, term in terms.items()}


def same_terms(first: Mapping[str, Term], second: Mapping[str, Term]) -> bool:
    """Return whether two steps have equal parts."""
    return first.keys() == second.keys() and all(
        torch.equal(term.values, second[name].values) and bool(term.weight == second[name].weight)
        for name, term in first.items()
    )


def _leaves(terms: Terms) -> Iterator[Tensor]:
    """Yield the tensors that get a gradient from the parts of a loss."""
    values = [value for term in terms.values() for value in (term if isinstance(term, Term) else (term,))]
    nodes = [value.grad_fn for value in values if isinstance(value, Tensor)]
    seen: set[Any] = set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        nodes.extend(function for function, _ in node.next_functions)


@contextmanager
def recorded_outputs(model: Network) -> Iterator[tuple[list[Any], list[Tensor]]]:
    """Collect (features, logits) of forward passes, and draws from a generator, inside the block."""
    calls: list[Any] = []
    draws: list[Tensor] = []

    class Recording(Network):
        def __call__(self, images: Tensor) -> tuple[Tensor, Tensor]:
            features, logits = super().__call__(images)
            calls[-1] = (features, logits)
            return features, logits

        def logits(self, images: Tensor) -> Tensor:
            logits = super().logits(images)
            calls.append((None, logits))
            return logits

    def recording(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def draw(*arguments: Any, **options: Any) -> Tensor:
            value = function(*arguments, **options)
            if options.get("generator") is not None:
                draws.append(value)
            return value

        return draw

    with ExitStack() as stack:
        for name in DRAWS:
            stack.enter_context(mock.patch.object(torch, name, recording(getattr(torch, name))))
        model.__class__ = Recording
        try:
            yield calls, draws
        finally:
            model.__class__ = Network
