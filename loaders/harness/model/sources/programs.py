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

import numpy as np
import torch
from torch import Tensor, fx

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.untrusted import open_untrusted, sha256_of

from ...arrays import Head, array_of
from ...backend.head import refuse_equal_outputs
from ...backend.weights import LARGEST, is_torchscript
from ...plugins import require_trust, user_errors
from .first_batch import FirstBatch, exported_has_loops, torchscript_loops
from .objects import from_object
from .registry import LoadedModel, ModelRequest, register_model_source

LINEAR = torch.ops.aten.linear.default
ADDMM = torch.ops.aten.addmm.default
MANY = 1 << 31


@dataclass(frozen=True)
class BatchLimits:
    """Least and greatest batch size of a program; both are equal for a fixed size."""

    least: int
    most: int

    @classmethod
    def of(cls, program: Any) -> BatchLimits:
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
        least, most = (_whole(end, default) for end, default in ((ranges.lower, 1), (ranges.upper, MANY)))
        return cls(max(least, 1), max(most, 1))

    def call(self, function: Callable[[Tensor], Any], x: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs of a batch of any size: in parts, the last padded, the padding dropped."""
        outputs = []
        for start in range(0, max(len(x), 1), self.most):
            part = x[start : start + self.most]
            outputs.append([tensor[: len(part)] for tensor in function(self.padded(part))])
        return tuple(torch.cat(parts) for parts in zip(*outputs, strict=True))

    def padded(self, x: Tensor) -> Tensor:
        """Return the first images of a batch, as many as the program takes, the last repeated."""
        part = x[: self.most]
        padding = self.least - len(part)
        return torch.cat([part, part[-1:].expand(padding, *part.shape[1:])]) if padding > 0 else part


def _whole(end: Any, otherwise: int) -> int:
    """Return an end of a range as a number, ``otherwise`` for sympy's infinities."""
    return min(int(end), MANY) if getattr(end, "is_Integer", isinstance(end, int)) else otherwise


class ProgramNetwork:
    """A program with its features, which it returns or which are the input of its last linear layer.

    Raises
    ------
    DataError : its output is neither logits nor features and logits, or a softmax.
    """

    head_name: str | None = None

    def __init__(self, program: Any, module: Any, where: str) -> None:
        self.limits, self.where = BatchLimits.of(program), where
        copied: dict[Any, Any] = {}
        graph = fx.Graph()
        graph.graph_copy(module.graph, copied)
        output = next(node for node in module.graph.nodes if node.op == "output")
        outputs = _leaves(output.args[0])
        if len(outputs) not in (1, 2):
            raise DataError(
                f"the program has {len(outputs)} outputs",
                where=where,
                hint="export a module that returns logits, or features and logits",
            )
        logits, pair = outputs[-1], outputs
        if len(outputs) == 2 and _is_head_of(outputs[0], outputs[1]):
            logits, pair = outputs[0], outputs[::-1]
        if "softmax" in str(logits.target):
            raise DataError(
                "no output of the program comes from a linear layer",
                where=where,
                hint="export the module without its final softmax",
            )
        linear = logits.target in (LINEAR, ADDMM)
        before = logits.args[1 if logits.target is ADDMM else 0] if linear else None
        features = pair[0] if len(outputs) == 2 else before
        kept_nodes = [node for node in (features, logits) if node is not None]
        graph.output(tuple(copied[node] for node in kept_nodes))
        self.module = fx.GraphModule(module, graph)
        self.head_name = str(logits.name) if linear else None
        self.matrix = _head(module, logits) if linear and features is before else None
        self.unnamed_pair = len(outputs) == 2 and not (linear and features is before)

    def __call__(self, x: Tensor) -> tuple[Tensor | None, Tensor]:
        """Return features, where there are any, and logits of a batch."""
        *features, logits = self.limits.call(self.module, x)
        if logits.ndim != 2:
            shape = tuple(logits.shape)
            raise DataError(f"the program gives {shape} where logits (n, K) are expected", where=self.where)
        if self.unnamed_pair:
            refuse_equal_outputs((features[0], logits), self.where)
        return (features[0] if features else None), logits


def _is_head_of(logits: Any, features: Any) -> bool:
    """Return whether a linear layer gives the first of two outputs, and none, or the same one, the second."""
    if logits.target not in (LINEAR, ADDMM):
        return False
    return features.target not in (LINEAR, ADDMM) or features in logits.args


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in _leaves(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in _leaves(item)]
    return [] if value is None else [value]


def _head(module: Any, node: Any) -> Head | None:
    """Return the head from its tensors, None where the program computes them."""
    if node.target is not LINEAR:
        return None
    parameters = [n for n in node.args[1:] if n is not None]
    if any(n.op != "get_attr" for n in parameters):
        return None
    weight, *bias = [array_of(_attribute(module, n.target)) for n in parameters]
    return Head(np.array(weight), np.array(bias[0]) if bias else np.zeros(len(weight), np.float32))


def _attribute(module: Any, path: str) -> Any:
    value = module
    for part in path.split("."):
        value = getattr(value, part)
    return value


@register_model_source("exported", ".pt2")
def exported_program(name: str, request: ModelRequest) -> LoadedModel:
    """Load an exported program that returns logits, or features and logits in either order.

    Raises
    ------
    UnsafeDataError : without ``trust_model``: loading may run code.
    DataError : not readable, or its output is neither.
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
    network = ProgramNetwork(program, module, where)
    first = FirstBatch("exported", path, request.deadline, where)
    trial = partial(_compute_first, first, network.limits) if exported_has_loops(program) else None
    return LoadedModel(request.model_id or where, module, architecture, network, trial=trial)


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
        trial = partial(_compute_first, first, BatchLimits(1, MANY)) if loops else None
        with user_errors("not a TorchScript program", where=where):
            module = torch.jit.load(file, map_location="cpu")
    loaded = from_object(module, request, where)
    # a frozen program has no tensors by name: the file identifies it
    content = hashlib.sha256(f"{loaded.architecture}{sha256_of(path, largest=LARGEST)}".encode()).hexdigest()
    return replace(loaded, architecture=content, trial=trial)
