"""Check what a method reads in a step, what it trains, and the state that it keeps between steps."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .audit_trainer import ALL, SCALES, AuditedTrainer, Finding, same_terms
from .methods import Batch, State, Term
from .methods.interface import BACKBONE, HEAD

CHECK = "inputs"

KEPT_SHARE = 0.9
"""Least share of a state's rows, those not all zero, that is left after an epoch's end and a step."""
EPOCH_STATE = "epoch_"
"""Prefix of names in a method's state that may be emptied every epoch."""


def check_trained(trainer: AuditedTrainer, before: Mapping[int, Tensor]) -> Finding:
    """Check the training of parameters (``before`` by their id) and of other tensors with a gradient."""
    held = [p for group in trainer.optimizer.param_groups for p in group["params"]]
    optimised = {id(p) for p in held}
    names = {id(p): f"parameter {name}" for name, p in trainer.module.named_parameters()}
    faults = []
    if len(held) > len(optimised):
        faults.append("the optimizer holds a parameter twice, which makes its steps twice as long")
    if any(group.get("scale", 1.0) < 0 or group.get("maximize") for group in trainer.optimizer.param_groups):
        faults.append("a group of the optimizer ascends: the loss grows")
    if trainer.evaluated_only:
        faults.append("a step computes gradients in evaluation mode alone")
    sizes = {len(trainer.batch_of()), trainer.batch, trainer.data.n_known % trainer.batch}
    for key, (steps, first, tensor) in trainer.differentiated_tensors.items():
        name = names.get(key, f"a tensor of shape {tuple(tensor.shape)} outside the network")
        if steps == 1 and not isinstance(tensor, nn.Parameter):
            if tensor.ndim < 2 or all(len(tensor) % size for size in sizes - {0}):
                faults.append(f"{name} gets a gradient, and is made anew in each step")
        elif key not in optimised:
            faults.append(f"{name} gets a gradient, and the optimizer does not hold it")
        elif torch.equal(tensor, first) or key not in trainer.with_gradient:
            faults.append(f"{name} gets a gradient and does not change by it: is its rate 0?")
    claimed = {name for part in trainer.method.parts.values() for name in part.reaches}
    for name, group in trainer.model.parameters().items():
        changed = [p for p in group if id(p) not in before or not torch.equal(p, before[id(p)])]
        if any(id(p) not in optimised for p in changed):
            faults.append(
                f"{name} changes, and is in no group of the optimizer: the schedule does not reach it"
            )
        reached = any(id(p) in trainer.differentiated_tensors for p in group)
        frozen = not any(p.requires_grad for p in group)
        if group and not reached and name not in {BACKBONE, HEAD} and not (frozen and changed):
            faults.append(f"{name} gets no gradient from any part" + ", and never changes" * frozen)
        elif name in claimed and not changed and reached:
            faults.append(f"{name} does not change")
    aside = {name for name, p in trainer.set_aside.items() if p.requires_grad}
    overwritten = _overwritten(trainer, aside)
    faults += [f"parameter {name} is overwritten: what it learns is lost" for name in overwritten]
    if faults:
        return Finding(ALL, "trained", False, "; ".join(dict.fromkeys(faults)))
    note = f"the method itself changes {', '.join(sorted(aside))}: compare it with an oracle" if aside else ""
    return Finding(ALL, "trained", None if aside else True, note)


def _overwritten(trainer: AuditedTrainer, names: set[str]) -> list[str]:
    """Return the parameters whose values a step or the end of an epoch replaces regardless of the old values.

    Parameters that are reinitialised together with the state (heads for new clusters) are left out.
    """
    faults = []
    for name, parameter in trainer.module.named_parameters():
        for act in (_step_once, _end_epoch) if name in names else ():
            moved, results = True, []
            for factor in (1.0, 2.0):
                trainer.restore_weights()
                start, fresh = parameter.detach() * factor + (factor - 1), trainer.fresh_state()
                parameter.data.copy_(start)
                act(trainer, fresh)
                results.append(parameter.detach().clone())
                moved = moved and not torch.equal(parameter, start)
            renewed = act is _end_epoch and not _equal(fresh, trainer.end_state)
            if moved and torch.equal(*results) and not renewed:
                faults.append(name)
    trainer.restore_weights()
    return list(dict.fromkeys(faults))


def _equal(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Return whether the tensors of two states are equal."""
    pairs = [(value, second.get(name)) for name, value in first.items() if isinstance(value, Tensor)]
    return all(isinstance(new, Tensor) and torch.equal(old, new) for old, new in pairs)


def _step_once(trainer: AuditedTrainer, state: State) -> None:
    trainer.step_from(state, trainer.batch_of())


def _end_epoch(trainer: AuditedTrainer, state: State) -> None:
    torch.manual_seed(2)
    with trainer.user_code():
        trainer.method.after_epoch(trainer.model, trainer.method_data, state)


def check_kept(trainer: AuditedTrainer) -> Finding:
    """Return whether the state can be saved, is written and read, and is not emptied between epochs."""
    state = trainer.end_state
    if not state:
        return Finding(ALL, "kept", None)
    faults = []
    if not _is_resumable(state):
        faults.append("its state is not of tensors and plain values, so that a checkpoint cannot keep it")
    if any(len(around) == 2 and _emptied(*around) for around in trainer.ends):
        faults.append("a tensor of its state is emptied when an epoch ends")
    first = dict(_float_tensors(trainer.first_state))
    tensors, constant = dict(_float_tensors(state)), False
    for name, tensor in tensors.items():
        start = first.get(name)
        if start is not None and torch.equal(tensor, start):
            constant = True  # correct for some methods: no check can decide
            if name in state and tensor.ndim and not bool(tensor.any()):
                faults.append(f"state[{name!r}] stays zero")
            continue
        if not name.startswith(EPOCH_STATE) and not _is_read(trainer, name):
            faults.append(f"no part reads state[{name!r}], which changes")
        if start is not None and start.shape == tensor.shape and tensor.ndim > 1:
            same = int((tensor == start).flatten(1).all(1).sum())
            if same and len(tensor) == trainer.data.n_known:
                faults.append(f"state[{name!r}] has a row per image, and {same} never change")
    trainer.restore_weights()
    passed = False if faults else True if tensors and not constant else None
    return Finding(ALL, "kept", passed, "; ".join(faults))


def _is_resumable(state: Mapping[str, Any]) -> bool:
    """Return whether a checkpoint can hold the state, and training be resumed from it."""
    buffer = io.BytesIO()
    try:
        torch.save(dict(state), buffer)
        buffer.seek(0)
        torch.load(buffer, weights_only=True)
    except Exception:  # objects fail to be saved or read in many ways
        return False
    return True


def _is_read(trainer: AuditedTrainer, name: str) -> bool:
    """Return whether a part depends on a tensor, at once or in the step after the end of the epoch."""

    def two_steps(scale: float, changed: bool) -> list[dict[str, Term]]:
        trainer.restore_weights()
        for p in trainer.model.parameters()[HEAD]:
            p.data.mul_(scale)
        fresh = trainer.fresh_state()
        if changed:
            tensor = dict(_float_tensors(fresh))[name]
            tensor.add_(torch.rand(tensor.shape, generator=torch.Generator().manual_seed(3)).to(tensor))
        first = trainer.step_from(fresh, trainer.batch_of())
        _end_epoch(trainer, fresh)
        return [first, trainer.step_from(fresh, trainer.batch_of())]

    return any(
        not same_terms(*terms)
        for scale in SCALES
        for terms in zip(two_steps(scale, changed=False), two_steps(scale, changed=True), strict=True)
    )


def _float_tensors(value: Any, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
    """Yield the name and the value of each tensor of real numbers in a state."""
    if isinstance(value, Tensor):
        if value.is_floating_point():
            yield prefix, value
    elif isinstance(value, Mapping | list):
        for key, part in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _float_tensors(part, f"{prefix}.{key}" if prefix else str(key))


def _emptied(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether a float tensor lost rows."""
    left = dict(_float_tensors(after))
    for name, old in _float_tensors(before):
        if name.startswith(EPOCH_STATE) or name not in left:
            continue
        rows = [
            int((t.reshape(len(t), -1) != 0).any(1).sum()) if t.ndim and len(t) else 0
            for t in (old, left[name])
        ]
        if rows[0] > 1 and rows[1] < KEPT_SHARE * rows[0]:
            return True
    return False


def check_inputs(trainer: AuditedTrainer) -> Finding:
    """Check that views differ, and that the parts depend on labels, outliers and each view."""
    trainer.module.eval()
    batch = trainer.batch_of()
    with _restored_generators():
        faults = [*_faults_of_views(trainer), *_faults_of_step(trainer, batch)]
    unread = _changed_inputs(batch, trainer.batch_of(3))
    for _ in trainer.classifier_scales():
        before = trainer.terms(batch)
        for name, changed in list(unread.items()):
            if not same_terms(before, trainer.terms(changed)):
                del unread[name]
        if not unread:
            break
    trainer.restore_weights()
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


def _faults_of_step(trainer: AuditedTrainer, batch: Batch) -> list[str]:
    """Return faults: a step changes its batch, uses other random generators, or depends on class numbers."""
    faults, given = [], _copy(batch)
    _seed_globally(0)
    before = trainer.terms(given)
    tensors = zip(
        (*batch.views, batch.labels, batch.index), (*given.views, given.labels, given.index), strict=True
    )
    if not all(torch.equal(old, new) for old, new in tensors):
        return ["a step changes its batch in place"]
    _seed_globally(1)
    if not same_terms(before, trainer.terms(batch)):
        return ["a step draws random numbers that are not of state.generator"]
    head, classes = trainer.model.head, len(trainer.data.facts.classes)
    plain = isinstance(head, nn.Linear) and not (
        trainer.model.has_heads or trainer.end_state or trainer.model.facts
    )
    if plain and head.out_features >= classes:
        numbers = torch.randperm(classes, generator=torch.Generator().manual_seed(0))
        order = torch.cat([numbers.argsort(), torch.arange(classes, head.out_features)])
        labels = torch.where(batch.known, numbers[batch.labels.clamp_min(0)], batch.labels)
        for p in head.parameters():
            p.data.copy_(p.detach()[order])
        renumbered = trainer.terms(replace(batch, labels=labels))
        trainer.restore_weights()
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
