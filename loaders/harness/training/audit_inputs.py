"""Check which inputs of a step a training method reads: labels, outliers, and each view of the images."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ..methods import Batch
from .audit_trainer import ALL, AuditedTrainer, Finding

CHECK = "inputs"


def check_inputs(trainer: AuditedTrainer) -> Finding:
    """Return whether views differ, and whether some part depends on labels, on outliers and on each view."""
    weights, state = trainer.snapshot()
    trainer.module.eval()
    batch = trainer.batch_of()
    faults = [
        f"views {first + 1} and {second + 1} are equal"
        for second, view in enumerate(batch.views)
        for first, other in enumerate(batch.views[:second])
        if torch.equal(view, other)
    ]
    unread = _changed_inputs(batch, trainer.batch_of(3))
    for _ in trainer.classifier_scales():
        before = trainer.terms(batch, state, weights)
        for name, changed in list(unread.items()):
            after = trainer.terms(changed, state, weights)
            if before.keys() != after.keys() or any(
                not torch.equal(before[part].values, after[part].values) for part in before
            ):
                del unread[name]
        if not unread:
            break
    trainer.module.load_state_dict(weights)
    faults += [f"no part reads {name}" for name in unread]
    return Finding(ALL, CHECK, not faults, "; ".join(faults))


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
