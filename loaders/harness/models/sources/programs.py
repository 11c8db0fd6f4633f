"""Programs in files: of torch.export and TorchScript, which need trust, and ONNX models."""

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
from torch import Tensor

from wordnet_splits.base.digests import digest_json
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.lazy import need
from wordnet_splits.base.untrusted import (
    GiB,
    open_untrusted,
    path_below,
    read_bytes,
    require_trust,
    sha256_of,
    user_errors,
)

from ..head import OUTPUTS, features_and_logits
from ..loading import from_object
from ..weights import LARGEST, is_torchscript
from .first_batch import FirstBatch, exported_has_loops, onnx_has_loops, torchscript_loops
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
    """Load an exported program that returns logits, (features, logits) or a dict of both."""
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
    """Load a program of ``torch.jit.save`` that returns logits, or features and logits."""
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


LARGEST_GRAPH = 2 * GiB
"""Largest ONNX file, in bytes (protobuf's limit); larger weights are in files next to it."""
DTYPES = {1: np.float32, 10: np.float16, 11: np.float64}
"""ONNX's number of an element type -> NumPy's type."""


@register_model_source("onnx", ".onnx")
def onnx_model(name: str, request: ModelRequest) -> LoadedModel:
    """Load an ONNX model whose only output is the logits, or with outputs ``features`` and ``logits``."""
    path = Path(name)
    where = f"onnx:{path.name}"
    if request.weights is not None:
        raise DataError("an ONNX model has weights of its own", where=where)
    onnx = need("onnx", "onnx", where=where)
    runtime = need("onnxruntime", "onnx", where=where)
    content = read_bytes(path, largest=LARGEST_GRAPH)
    with user_errors("not an ONNX model", where=where):
        model = onnx.load_model_from_string(content)
    files = {tensor_file for tensor in _tensors(model.graph) for tensor_file in _external_files(tensor)}
    digests = {file: sha256_of(path_below(path.parent, file), largest=LARGEST) for file in sorted(files)}
    graph = _Graph(model.graph, where)
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = torch.get_num_threads()
    options.add_session_config_entry(
        "session.model_external_initializers_file_folder_path", str(path.resolve().parent)
    )
    available = runtime.get_available_providers()
    wanted = ["CUDAExecutionProvider"] if request.device == "cuda" else []
    providers = [provider for provider in (*wanted, "CPUExecutionProvider") if provider in available]
    with user_errors("onnxruntime cannot load it", where=where):
        session = runtime.InferenceSession(content, options, providers=providers)
    architecture = digest_json({"onnx": sha256_of(path, largest=LARGEST_GRAPH), "files": digests})
    network = OnnxNetwork(session, runtime.RunOptions(), graph)
    loaded = LoadedModel(request.model_id or where, None, architecture, network)
    if not onnx_has_loops(model):
        return loaded
    first = FirstBatch("onnx", path, request.deadline, where)
    return replace(loaded, trial=partial(network.compute_first, first), deadline=request.deadline)


def _tensors(graph: Any) -> Iterator[Any]:
    """Yield the stored tensors of a graph and of the graphs inside its nodes."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)


def _external_files(tensor: Any) -> list[str]:
    return [entry.value for entry in tensor.external_data if entry.key == "location"]


class _Graph:
    """The input and outputs of an ONNX graph."""

    def __init__(self, graph: Any, where: str) -> None:
        self.where = where
        initializers = {tensor.name for tensor in graph.initializer}
        inputs = [value for value in graph.input if value.name not in initializers]
        if len(inputs) != 1:
            input_names = ", ".join(value.name for value in inputs) or "none"
            raise DataError(f"takes {len(inputs)} inputs ({input_names}), not images alone", where=where)
        self._read_input(inputs[0])
        names = [value.name for value in graph.output]
        self.outputs: tuple[str, ...] = OUTPUTS if set(OUTPUTS) <= set(names) else tuple(names)
        if len(names) != 1 and self.outputs != OUTPUTS:
            raise DataError(
                f"its {len(names)} outputs must include features and logits, got {', '.join(names)}",
                where=where,
                hint="export a model that returns logits alone, or name two outputs features and logits",
            )

    def _read_input(self, value: Any) -> None:
        tensor = value.type.tensor_type
        shape = [dimension.dim_value for dimension in tensor.shape.dim]  # 0: any
        self.input, dtype = str(value.name), DTYPES.get(tensor.elem_type)
        self.channels_last = len(shape) == 4 and shape[3] == 3 and shape[1] != 3
        if dtype is None or len(shape) != 4 or (shape[1] not in (0, 3) and not self.channels_last):
            sides = " x ".join(str(side or "any") for side in shape)
            raise DataError(
                f"its input {value.name} is {sides}, of ONNX's type {tensor.elem_type}",
                where=self.where,
                hint="export a model of float images (n, 3, h, w)",
            )
        self.dtype = dtype
        height, width = shape[1:3] if self.channels_last else shape[2:]
        self.size = (height, width) if height and width else None
        self.limits = BatchLimits(shape[0], shape[0]) if shape[0] else BatchLimits(1, MANY)


class OnnxNetwork:
    """A session of onnxruntime: features (n, D), where the graph has them, and logits (n, K) of a batch."""

    def __init__(self, session: Any, options: Any, graph: _Graph) -> None:
        self.session, self.options, self.graph = session, options, graph

    def __call__(self, x: Tensor) -> tuple[Tensor | None, Tensor]:
        """Return features, where there are any, and logits of images (n, 3, h, w)."""
        graph = self.graph
        if graph.size is not None and graph.size != tuple(x.shape[2:]):
            (height, width), sides = graph.size, " x ".join(map(str, x.shape[2:]))
            square = f"--transform resize-{height} (transform='resize-{height}')"
            transform = square if height == width else "--transform MODULE:FUNCTION"
            raise DataError(
                f"takes images of {height} x {width}, and the transform gives {sides}",
                where=graph.where,
                hint=f"say how they are resized: {transform}",
            )
        return graph.limits.call(self._run, x)

    def compute_first(self, first: FirstBatch, x: Tensor) -> None:
        """Compute the first images of a batch in another process."""
        first.compute(self._images(self.graph.limits.padded(x)), name=self.graph.input)

    def stop(self) -> None:
        """End the batch that another thread computes."""
        self.options.terminate = True
        self.options = type(self.options)()

    def _images(self, x: Tensor) -> Any:
        images = x.detach().cpu().numpy().astype(self.graph.dtype)
        return np.ascontiguousarray(images.transpose(0, 2, 3, 1)) if self.graph.channels_last else images

    def _run(self, x: Tensor) -> Outputs:
        arrays = self.session.run(list(self.graph.outputs), {self.graph.input: self._images(x)}, self.options)
        tensors = [torch.from_numpy(np.array(array, dtype=np.float32)) for array in arrays]
        return features_and_logits(
            dict(zip(OUTPUTS[-len(tensors) :], tensors, strict=True)), self.graph.where
        )
