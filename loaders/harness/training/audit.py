"""Check each part of a training method's loss against the claims that the method makes.

The network is tiny, without dropout, and trained on the embedded digits. Everything is computed late in
training (from epoch 900 of 1,000), after epochs that fill queues, so that parts which begin late are present.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.tabular import Tabular

from ..data.arrays import Array
from .audit_steps import check_inputs, check_kept, check_trained
from .audit_trainer import ALL, LEAST_CHANGE, AuditedTrainer, Finding, recorded_outputs
from .machine import choose_machine, reproducible
from .methods import Batch, Method, get_method
from .methods.interface import HEAD
from .steps import copied, mean_terms, sum_terms

DESCENT_STEPS, DESCENT_RATES = 15, (3e-3, 3e-5)
LEARNING_STEPS = 30
BIAS_SHARE = 1e-5
"""Largest gradient of a bias or a scale that counts as 0, relative to the gradient of the weights."""
SAME_SHARE = 2e-6
"""Largest relative difference between float32 values that count as equal, for batches of equal size."""
RTOL, ATOL, SMALL_SHARE = 1e-4, 1e-5, 0.01
"""Tolerances; the absolute one is at most a small share of the greatest value."""
CHECKS = ("gradient", "per image", "batch", "falls", "changes weights", "oracle", "inputs", "trained", "kept")


@dataclass(frozen=True)
class OracleInputs:
    """Inputs of a step as NumPy arrays; floats are float64.

    Attributes
    ----------
    parameters : the method's fields.
    labels, index : (n,).
    images : each view (n, 3, h, w).
    calls : (features, logits) of each forward pass, in order; without features if only logits were computed.
    draws : random numbers drawn from ``state.generator``, in order.
    heads : name -> {parameter or buffer: array}, the classifier as ``head``.
    state : before the step.
    """

    parameters: Mapping[str, Any]
    labels: Array
    index: Array
    images: tuple[Array, ...]
    calls: tuple[tuple[Array | None, Array], ...]
    draws: tuple[Array, ...]
    heads: Mapping[str, Mapping[str, Array]]
    state: Mapping[str, Any]


Oracle = Callable[[OracleInputs], Mapping[str, Any]]
"""The paper's formula: inputs of a step -> values of each part, before weights."""


@dataclass(frozen=True)
class MethodAudit(Jsonable, Tabular):
    """The findings about a method; `rows` has one row per part, with a column per check."""

    derived = ("passed",)

    method: str
    findings: tuple[Finding, ...]

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The checks that failed."""
        return tuple(finding for finding in self.findings if finding.passed is False)

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    def rows(self) -> Sequence[Mapping[str, str]]:
        """Return a row per part: ``ok``, ``FAIL`` or ``-`` (does not apply) for each check."""
        words = {True: "ok", False: "FAIL", None: "-"}
        outcomes = {(f.part, f.check): words[f.passed] for f in self.findings}
        parts = dict.fromkeys(f.part for f in self.findings)
        return [
            {"part": part, **{check: outcomes.get((part, check), "-") for check in CHECKS}} for part in parts
        ]


def audit_method(method: Method | str, oracle: Oracle | None = None) -> MethodAudit:
    """Check every part of a method's loss.

    - gradient: reaches the parameter groups that the part claims, and no others.
    - per image: a value depends on its image alone, not on the number of images. Not checked if the part
      claims to depend on the batch or on its order: only an oracle can check that claim.
    - batch: the values of a part that claims to depend on the batch do not depend on its order, and change
      with the bias and the scale of a class, which a softmax or a norm over the batch would cancel.
    - falls: the part, times its weight, falls when it alone is minimised; when the whole loss is, the logit
      of the right class rises.
    - changes weights: a step with the part differs from a step without it, and training differs from
      training with plain cross-entropy.
    - oracle: values equal the outputs of ``oracle`` (`OracleInputs` -> values of each part).
    - inputs: labels, outliers and each view change a part; no two views are equal; random numbers come from
      the generators; batches do not change; renumbering the classes changes no part.
    - trained: all tensors that get a gradient change by it, through the trainer's optimizer alone, at the
      rate of the schedule; every head gets a gradient. Not checked for tensors that the method changes.
    - kept: the state fits a checkpoint, is read, written and not emptied between epochs. Not checked where
      it has no tensor of real numbers, or one that never changes.

    Parameters
    ----------
    method : a method, its name, ``NAME[parameter=value]`` or ``MODULE:NAME``.

    Raises
    ------
    SplitsError : no such method, or its code fails.
    """
    method = method if isinstance(method, Method) else get_method(method)
    machine = choose_machine("cpu")
    with reproducible(machine.device):
        trainer = AuditedTrainer(method)
        before = {id(p): p.detach().clone() for p in trainer.module.parameters()}
        findings = [
            *trainer.train_late(),
            check_trained(trainer, before),
            check_kept(trainer),
            check_inputs(trainer),
            *trainer.check_training(),
            _check_learning(trainer),
        ]
        for part in trainer.present:
            findings += _check_part(trainer, part)
        findings += _check_oracle(trainer, oracle)
    return MethodAudit(method.name, tuple(findings))


def _check_part(trainer: AuditedTrainer, part: str) -> list[Finding]:
    """Return the findings about a part at the present weights, which are restored afterwards."""
    trainer.module.eval()
    gradients = []
    for _ in trainer.classifier_scales():  # all checks are made at the first scale where a gradient arrives
        gradients.append(_check_gradient(trainer, part))
        if gradients[-1].passed:
            break
    findings = [
        gradients[-1] if gradients[-1].passed else gradients[0],
        _check_images(trainer, part),
        _check_batch(trainer, part),
        _check_step(trainer, part),
        _check_descent(trainer, part),
    ]
    trainer.restore_weights()
    return findings


def _check_gradient(trainer: AuditedTrainer, part: str) -> Finding:
    groups, claimed = trainer.model.parameters(), set(trainer.method.parts[part].reaches)
    unknown_groups = sorted(claimed - groups.keys())
    if unknown_groups:
        return Finding(part, "gradient", False, f"there are no parameters {', '.join(unknown_groups)}")
    term = trainer.terms(trainer.batch_of()).get(part)
    if term is None or not term.values.requires_grad:
        return Finding(part, "gradient", False, "it has no gradient: is it detached?")
    if not bool(torch.isfinite(term.values).all()):
        return Finding(part, "gradient", False, "a value is NaN or infinite")
    parameters = [p for group in groups.values() for p in group if p.requires_grad]
    mean = (term.weight if isinstance(term.weight, Tensor) else 1.0) * term.values.mean()
    gradients = torch.autograd.grad(mean, parameters, allow_unused=True)
    nonzero = {
        id(p): g is not None and bool((g != 0).any()) for p, g in zip(parameters, gradients, strict=True)
    }
    reached = {name for name, group in groups.items() if any(nonzero.get(id(p)) for p in group)}
    wrong = [f"does not reach {name}" for name in sorted(claimed - reached)]
    wrong += [f"reaches {name}" for name in sorted(reached - claimed)]
    return Finding(part, "gradient", not wrong, ", ".join(wrong))


def _check_batch(trainer: AuditedTrainer, part: str) -> Finding:
    """Check that a part that depends on the batch ignores its order and is not a softmax over images."""
    if trainer.method.parts[part].depends == "image":
        return Finding(part, "batch", None)
    faults, batch = [], trainer.batch_of()
    with recorded_outputs(trainer.model) as (_, draws):
        values = trainer.terms(batch)[part].values
    for name, head in trainer.model.module.named_modules():
        if not isinstance(head, nn.Linear) or head.bias is None or not values.requires_grad:
            continue
        if len(head.bias) == 1:
            continue
        pair = (weight, bias) = (head.weight, head.bias)
        gradients = torch.autograd.grad(values.mean(), pair, allow_unused=True, retain_graph=True)
        slopes = [torch.zeros_like(p) if g is None else g for p, g in zip(pair, gradients, strict=True)]
        largest, of_biases = (float(slope.abs().max()) for slope in slopes)
        of_scales = (weight.detach() * slopes[0]).sum(1) + bias.detach() * slopes[1]
        what = "bias" if of_biases < BIAS_SHARE * largest else "scale"
        least = BIAS_SHARE * float(weight.detach().norm() * slopes[0].norm())
        if largest > 0 and (what == "bias" or float(of_scales.abs().max()) < least):
            faults.append(
                f"the {what} of an output of {name} has no effect: is dim=0, the batch, normalised?"
            )
    if trainer.method.parts[part].depends == "batch" and not draws:  # draws are made by position
        known = int(batch.known.sum())
        order = torch.cat([torch.arange(known).flip(0), torch.arange(known, len(batch)).flip(0)])
        permuted = trainer.terms(_rows(batch, order))[part].values.detach()
        ordered = (v.detach().flatten().sort()[0] for v in (values, permuted))
        if not torch.allclose(*ordered, rtol=RTOL, atol=ATOL):
            faults.append("permuting the batch changes its values")
    return Finding(part, "batch", not faults, "; ".join(faults))


def _check_images(trainer: AuditedTrainer, part: str) -> Finding:
    """Check that changing an image changes only its own values, or that values do not depend on the order."""
    depends, batch, donor = trainer.method.parts[part].depends, trainer.batch_of(), trainer.batch_of(3)

    def values(changed: Batch) -> Tensor:
        return trainer.terms(changed)[part].values.detach()

    original = values(batch)
    if depends != "image":
        note = f"depends on the {depends}, as the part claims: compare it with an oracle"
        return Finding(part, "per image", None, note)
    if original.ndim == 0:
        return Finding(part, "per image", False, "one number for the batch, not a value per image")
    kinds = {bool(k): int((batch.known == k).sum()) for k in batch.known.unique()}
    allowed = max(1, math.ceil(len(original) / min(kinds.values())))
    touched = 0
    for row in (1, len(batch) - 1):
        mixed = torch.arange(len(batch)) == row
        changed = values(_rows(batch, torch.arange(len(batch)), donor, mixed))
        if changed.shape != original.shape:
            return Finding(part, "per image", False, "the number of values depends on the images")
        atol = SAME_SHARE * float(original.abs().max())
        differs = int((~torch.isclose(changed, original, rtol=SAME_SHARE, atol=atol)).sum())
        touched += differs
        if differs > allowed:
            return Finding(
                part, "per image", False, f"changing one image changes {differs} of {len(original)} values"
            )
    if not touched:
        return Finding(part, "per image", False, "no value depends on its image")
    with recorded_outputs(trainer.model) as (_, draws):
        values(batch)
    if not draws:  # draws are made by position
        fewer = values(
            _rows(batch, torch.arange(len(batch))[batch.known | (torch.arange(len(batch)) % 2 > 0)][1:])
        )
        atol = min(ATOL, SMALL_SHARE * float(original.abs().max()))
        if not torch.isclose(fewer[:, None], original, rtol=RTOL, atol=atol).any(1).all():
            return Finding(part, "per image", False, "a value depends on the number of images")
    return Finding(part, "per image", True)


def _rows(batch: Batch, order: Tensor, donor: Batch | None = None, mask: Tensor | None = None) -> Batch:
    """Return a batch with its rows in another order, or with some rows of another batch."""

    def pick(values: Tensor, other: Tensor) -> Tensor:
        return (
            values[order]
            if mask is None
            else torch.where(mask.view(-1, *(1,) * (values.ndim - 1)), other, values)
        )

    other = donor or batch
    views = tuple(pick(a, b) for a, b in zip(batch.views, other.views, strict=True))
    return Batch(views, pick(batch.labels, other.labels), pick(batch.index, other.index))


def _check_step(trainer: AuditedTrainer, part: str) -> Finding:
    """Return whether the part has a weight in the loss."""
    weight = float(torch.as_tensor(trainer.terms(trainer.batch_of())[part].weight).detach())
    return Finding(part, "changes weights", weight != 0, "" if weight else "its weight in the loss is 0")


def _check_descent(trainer: AuditedTrainer, part: str) -> Finding:
    """Return whether the part falls when it alone is minimised."""
    start, batch = copied(trainer.module.state_dict()), trainer.batch_of()
    for rate in DESCENT_RATES:
        trainer.module.load_state_dict(start)
        optimizer, means = torch.optim.Adam(trainer.module.parameters(), lr=rate), []
        for _ in range(DESCENT_STEPS + 1):
            term = trainer.terms(batch)[part]
            mean = math.copysign(1.0, torch.as_tensor(term.weight).detach()) * term.values.mean()
            means.append(float(mean.detach()))
            if not mean.requires_grad:
                return Finding(part, "falls", False, "it has no gradient")
            optimizer.zero_grad()
            mean.backward()
            optimizer.step()
            if len(means) == 1:
                least = LEAST_CHANGE * float(term.values.detach().abs().mean())
        if min(means[1:]) < means[0] - least:
            return Finding(part, "falls", True)
    return Finding(part, "falls", False, f"stays at {means[0]:.4g}")


def _check_learning(trainer: AuditedTrainer) -> Finding:
    """Return whether minimising the loss makes the right class of the images likelier in evaluation."""
    if not any(HEAD in part.reaches for part in trainer.method.parts.values()):
        return Finding(ALL, "falls", None)
    batch = trainer.batch_of()
    trainer.module.eval()

    def margins() -> Tensor:
        with torch.no_grad():
            logits = trainer.model.logits(batch.images)[batch.known]
        right = logits.gather(1, batch.labels[batch.known, None])[:, 0]
        return (right - logits.mean(1)) / logits.std(1).clamp_min(1e-12)

    before = float(margins().mean())
    optimizer = torch.optim.Adam(trainer.module.parameters(), lr=DESCENT_RATES[0])
    for _ in range(LEARNING_STEPS):
        terms = trainer.terms(batch)
        loss = sum_terms(mean_terms(trainer.method, terms))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    after = float(margins().mean())
    trainer.restore_weights()
    right = bool(after > max(before, 0.0))
    note = f"the logit of the right class goes from {before:.2f} to {after:.2f} deviations above the mean"
    return Finding(ALL, "falls", right, "" if right else note)


def _check_oracle(trainer: AuditedTrainer, oracle: Oracle | None) -> list[Finding]:
    """Return whether the values of each part equal the oracle's."""
    if oracle is None:
        return []
    trainer.module.eval()
    model, batch = trainer.model, trainer.batch_of()
    heads = {HEAD: model.head, **(dict(model.heads.named_children()) if model.has_heads else {})}
    with torch.no_grad(), recorded_outputs(model) as (calls, draws):
        terms = trainer.terms(batch)
    trainer.restore_weights()
    inputs = OracleInputs(
        parameters={
            item.name: getattr(trainer.method, item.name) for item in dataclasses.fields(trainer.method)
        },
        labels=_array(batch.labels),
        index=_array(batch.index),
        images=tuple(_array(view) for view in batch.views),
        calls=tuple((None if f is None else _array(f), _array(logits)) for f, logits in calls),
        draws=tuple(_array(draw) for draw in draws),
        heads={
            name: {key: _array(v) for key, v in head.state_dict().items()} for name, head in heads.items()
        },
        state={key: _array(v) if isinstance(v, Tensor) else v for key, v in trainer.end_state.items()},
    )
    expected, findings = oracle(inputs), []
    for name, term in terms.items():
        values, reference = _array(term.values), np.asarray(expected.get(name, np.nan))
        atol = min(ATOL, SMALL_SHARE * float(np.abs(values).max(initial=0)))
        same = values.shape == reference.shape and np.allclose(values, reference, rtol=RTOL, atol=atol)
        note = "" if same else f"{_first(values)} where the oracle has {_first(reference)}"
        findings.append(Finding(name, "oracle", bool(same), note))
    return findings


def _array(tensor: Tensor) -> Array:
    array: Array = tensor.detach().cpu().numpy()
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _first(values: Array) -> str:
    return f"{values.flat[0]:.4g} of shape {values.shape}" if values.size else f"shape {values.shape}"
