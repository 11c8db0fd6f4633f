"""Programs saved by ``torch.export.save``: ``exported:FILE``, only where the user trusts them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import fx

from wordnet_splits.errors import DataError, UnsafeDataError
from wordnet_splits.untrusted import opened

from ...arrays import Head
from ...backend.weights import LARGEST, is_torchscript
from ...plugins import in_one_line
from .registry import Loaded, Request, model_source

LINEAR = torch.ops.aten.linear.default
ADDMM = torch.ops.aten.addmm.default


@model_source("exported")
def exported_program(name: str, request: Request) -> Loaded:
    """Load an exported program whose logits come from a linear layer.

    Raises
    ------
    UnsafeDataError : without ``trust_model``: loading may run code.
    DataError : not readable, or no linear head.
    """
    path = Path(name)
    where = f"exported:{path.name}"
    if not request.trust:
        raise UnsafeDataError(
            "an exported program can run code when it is loaded",
            where=where,
            hint="if you trust where it comes from, say so with --trust-model (trust_model=True)",
        )
    with opened(path, largest=LARGEST) as file:
        if is_torchscript(file):
            raise DataError(
                "is a TorchScript program, not one of torch.export",
                where=where,
                hint="export the module with torch.export.save(torch.export.export(...), FILE)",
            )
        with in_one_line("not an exported program", where=where), _quiet():
            program = torch.export.load(file)
    module = program.module()
    architecture = str(program.graph_module.code)
    return Loaded(request.model_id or where, module, architecture, _ExportedNetwork(module, where))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch from logging the traceback of an error that is reported in one line."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


class _ExportedNetwork:
    """The program with its head's input as a second output."""

    head_name: str | None = None

    def __init__(self, module: Any, where: str) -> None:
        copied: dict[Any, Any] = {}
        graph = fx.Graph()
        graph.graph_copy(module.graph, copied)
        output = next(node for node in module.graph.nodes if node.op == "output")
        found = [node for node in output.all_input_nodes if node.target in (LINEAR, ADDMM)]
        if not found:
            raise DataError(
                "no output of the program comes from a linear layer",
                where=where,
                hint="export the module without its final softmax",
            )
        logits = found[0]
        features = logits.args[1 if logits.target is ADDMM else 0]
        graph.output((copied[features], copied[logits]))
        self.module = fx.GraphModule(module, graph)
        self.head_name = str(logits.name)
        self.matrix = self._head(module, logits)

    def _head(self, module: Any, node: Any) -> Head | None:
        """Read the head's tensors, None where the program computes them."""
        if node.target is not LINEAR:
            return None
        held = [n for n in node.args[1:] if n is not None]
        if any(n.op != "get_attr" for n in held):
            return None
        weight, *bias = [_attribute(module, n.target).detach().float().cpu().numpy() for n in held]
        return Head(np.array(weight), np.array(bias[0]) if bias else np.zeros(len(weight), np.float32))

    def __call__(self, x: Any) -> tuple[Any, Any]:
        features, logits = self.module(x)
        return features, logits


def _attribute(module: Any, path: str) -> Any:
    value = module
    for part in path.split("."):
        value = getattr(value, part)
    return value
