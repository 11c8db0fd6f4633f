"""Programs of torch.export (``exported:FILE``) and TorchScript (``torchscript:FILE``), which need trust."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.untrusted import open_untrusted, sha256_of
from wordnet_splits.base.user_code import require_trust, user_errors

from ..head import features_and_logits
from ..weights import LARGEST, is_torchscript
from .first_batch import FirstBatch, exported_has_loops, torchscript_loops
from .objects import from_object
from .registry import LoadedModel, ModelRequest, register_model_source

MANY = 1 << 31
Outputs = tuple[Tensor | None, Tensor]
"""Features, None if absent, and logits."""


@dataclass(frozen=True)
class BatchLimits:
    """Least and greatest batch size of a program; both are equal for a fixed size."""

    least: int
    most: int

    @classmethod
    def from_program(cls, program: Any) -> BatchLimits:
        """Read the limits from the first dimension of the first input."""
        names = program.graph_signature.user_inputs
        nodes = [node for node in program.graph.nodes if node.op == "placeholder" and node.name in names]
        shape = getattr(nodes[0].meta.get("val"), "shape", ()) if nodes else ()
        if not shape:
            return cls(1, MANY)
        if isinstance(shape[0], int):
            return cls(shape[0], shape[0])
        ranges = getattr(program, "range_constraints", {}).get(shape[0].node.expr)
        if ranges is None:
            return cls(1, MANY)
        least, most = (  # sympy's infinities are not integers
            min(int(end), MANY) if getattr(end, "is_Integer", isinstance(end, int)) else default
            for end, default in ((ranges.lower, 1), (ranges.upper, MANY))
        )
        return cls(max(least, 1), max(most, 1))

    def call(self, function: Callable[[Tensor], Outputs], x: Tensor) -> Outputs:
        """Return features and logits of a batch of any size, computed in parts of the program's size."""
        features: list[Tensor] = []
        logits: list[Tensor] = []
        for start in range(0, max(len(x), 1), self.most):
            part = x[start : start + self.most]
            part_features, part_logits = function(self.padded(part))
            logits.append(part_logits[: len(part)])
            if part_features is not None:
                features.append(part_features[: len(part)])
        return (torch.cat(features) if features else None), torch.cat(logits)

    def padded(self, x: Tensor) -> Tensor:
        """Return the first images of a batch, as many as the program takes; the last is repeated."""
        part = x[: self.most]
        padding = self.least - len(part)
        return torch.cat([part, part[-1:].expand(padding, *part.shape[1:])]) if padding > 0 else part


@register_model_source("exported", ".pt2")
def exported_program(name: str, request: ModelRequest) -> LoadedModel:
    """Load an exported program that returns logits, (features, logits) or a dict of both.

    Raises
    ------
    UnsafeDataError : without ``trust_model``: loading may run code.
    DataError : not readable.
    """
    path = Path(name)
    where = f"exported:{path.name}"
    require_trust("an exported program can run code when it is loaded", trusted=request.trust, where=where)
    with open_untrusted(path, largest=LARGEST) as file:
        if is_torchscript(file):
            raise DataError(
                "is a TorchScript program, not one of torch.export",
                where=where,
                hint="name the file .ts or .pt, or export the module with torch.export.save",
            )
        with user_errors("not an exported program", where=where), _quiet():
            program = torch.export.load(file)
    module = program.module()
    architecture = str(program.graph_module.code)
    limits = BatchLimits.from_program(program)

    def network(x: Tensor) -> Outputs:
        return limits.call(lambda part: features_and_logits(module(part), where), x)

    loaded = LoadedModel(request.model_id or where, module, architecture, network)
    if not exported_has_loops(program):
        return loaded
    first = FirstBatch("exported", path, request.deadline, where)
    return replace(loaded, trial=partial(_compute_first, first, limits), deadline=request.deadline)


def _compute_first(first: FirstBatch, limits: BatchLimits, x: Tensor) -> None:
    images = limits.padded(x).detach().cpu()
    first.compute(images.float().numpy(), dtype=str(images.dtype).removeprefix("torch."))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch from logging the traceback of an error that is reported in one line."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@register_model_source("torchscript", ".ts", ".torchscript")
def torchscript_program(name: str, request: ModelRequest) -> LoadedModel:
    """Load a program of ``torch.jit.save`` that returns logits, or features and logits.

    Raises
    ------
    UnsafeDataError : without ``trust_model``: it is code. DataError : not readable, or weights are given.
    """
    path = Path(name)
    where = f"torchscript:{path.name}"
    if request.weights is not None:
        raise DataError("a TorchScript program has weights of its own", where=where)
    require_trust("a TorchScript program can run code when it is loaded", trusted=request.trust, where=where)
    with open_untrusted(path, largest=LARGEST) as file:
        if not is_torchscript(file):
            raise DataError("is not a TorchScript program", where=where, hint="write it with torch.jit.save")
        first = FirstBatch("torchscript", path, request.deadline, where)
        loops, runs_as_loaded = torchscript_loops(file)
        if runs_as_loaded:
            first.load()
        with user_errors("not a TorchScript program", where=where):
            module = torch.jit.load(file, map_location="cpu")
    loaded = from_object(module, request, where)
    # a frozen program has no tensors by name: the file identifies it
    content = hashlib.sha256(f"{loaded.architecture}{sha256_of(path, largest=LARGEST)}".encode()).hexdigest()
    loaded = replace(loaded, architecture=content)
    if not loops:
        return loaded
    trial = partial(_compute_first, first, BatchLimits(1, MANY))
    return replace(loaded, trial=trial, deadline=request.deadline)
