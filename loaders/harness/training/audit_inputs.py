"""Check which inputs of a step a training method reads: labels, outliers, and each view of the images."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .audit_trainer import ALL, AuditedTrainer, Finding, same_terms
from .methods import Batch

CHECK = "inputs"


def check_inputs(trainer: AuditedTrainer) -> Finding:
    """Check that views differ, and that the parts depend on labels, outliers and each view."""
    weights, state = trainer.snapshot()
    trainer.module.eval()
    batch = trainer.batch_of()
    with _restored_generators():
        faults = [*_faults_of_views(trainer), *_faults_of_step(trainer, batch, state, weights)]
    unread = _changed_inputs(batch, trainer.batch_of(3))
    for _ in trainer.classifier_scales():
        before = trainer.terms(batch, state, weights)
        for name, changed in list(unread.items()):
            if not same_terms(before, trainer.terms(changed, state, weights)):
                del unread[name]
        if not unread:
            break
    trainer.module.load_state_dict(weights)
    faults += [f"no part reads {name}" for name in unread]
    return Finding(ALL, CHECK, not faults, "; ".join(faults))


def _faults_of_views(trainer: AuditedTrainer) -> list[str]:
    """Return which views are equal, change their images in place, or ignore their generator."""
    faults = [
        f"views {first + 1} and {second + 1} are equal"
        for seed in range(3)
        for views in [trainer.batch_of(seed).views]
        for second in range(len(views))
        for first in range(second)
        if torch.equal(views[first], views[second])
    ]
    pixels = trainer.data.pool.pixels[:32]
    for number, view in enumerate(trainer.views, 1):
        results = []
        for seed in range(2):
            _seed_globally(seed)
            images = pixels.clone()
            with trainer.user_code():
                results.append(view(images, torch.Generator().manual_seed(0)).clone())
            if not torch.equal(images, pixels):
                faults.append(f"view {number} changes its images in place")
        if not torch.equal(*results):
            faults.append(f"view {number} draws random numbers that are not of its generator")
    return list(dict.fromkeys(faults))


def _faults_of_step(
    trainer: AuditedTrainer, batch: Batch, state: Mapping[str, Any], weights: Mapping[str, Tensor]
) -> list[str]:
    """Return faults: a step changes its batch, uses other random generators, or depends on class numbers."""
    faults, given = [], _copy(batch)
    _seed_globally(0)
    before = trainer.terms(given, state, weights)
    tensors = zip(
        (*batch.views, batch.labels, batch.index), (*given.views, given.labels, given.index), strict=True
    )
    if not all(torch.equal(old, new) for old, new in tensors):
        return ["a step changes its batch in place"]
    _seed_globally(1)
    if not same_terms(before, trainer.terms(batch, state, weights)):
        return ["a step draws random numbers that are not of state.generator"]
    head, classes = trainer.model.head, len(trainer.data.facts.classes)
    plain = isinstance(head, nn.Linear) and not (trainer.model.has_heads or state or trainer.model.facts)
    if plain and head.out_features >= classes:
        numbers = torch.randperm(classes, generator=torch.Generator().manual_seed(0))
        order = torch.cat([numbers.argsort(), torch.arange(classes, head.out_features)])
        labels = torch.where(batch.known, numbers[batch.labels.clamp_min(0)], batch.labels)
        for p in head.parameters():
            p.data.copy_(p.detach()[order])
        renumbered = trainer.terms(replace(batch, labels=labels), state, weights)
        trainer.module.load_state_dict(weights)
        for name, term in before.items():
            if not torch.allclose(term.values, renumbered[name].values, rtol=1e-3, atol=1e-4):
                faults.append(f"{name} depends on the numbers of the classes")
    return faults


def _seed_globally(seed: int) -> None:
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


@contextmanager
def _restored_generators() -> Iterator[None]:
    """Restore the global generators of NumPy and Python afterwards."""
    states = np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        np.random.set_state(states[0])
        random.setstate(states[1])


def _copy(batch: Batch) -> Batch:
    return Batch(tuple(v.clone() for v in batch.views), batch.labels.clone(), batch.index.clone())


def _changed_inputs(batch: Batch, donor: Batch) -> dict[str, Batch]:
    """Return the batch with each input changed, by the name of the input."""
    known, changed = batch.known, {}
    for number, view in enumerate(batch.views):
        new = _where(known, donor.views[number].roll(1, 0), view)
        views = (*batch.views[:number], new, *batch.views[number + 1 :])
        changed["the images" if len(views) == 1 else f"view {number + 1}"] = replace(batch, views=views)
    labels, index = batch.labels.clone(), batch.index.clone()
    labels[known], index[known] = labels[known].roll(1), index[known].roll(1)
    changed["the labels"] = replace(batch, labels=labels, index=index)
    if not bool(known.all()):
        views = tuple(_where(~known, new, old) for new, old in zip(donor.views, batch.views, strict=True))
        changed["the outliers"] = replace(batch, views=views)
    return changed


def _where(rows: Tensor, new: Tensor, old: Tensor) -> Tensor:
    """Return ``new`` where the mask ``rows`` (n,) is true, else ``old``."""
    return torch.where(rows.view(-1, *(1,) * (old.ndim - 1)), new, old)
