"""Programs saved by ``torch.export.save``: ``exported:FILE``, loaded only with ``trust_model``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from wordnet_splits.base.errors import DataError, UnsafeDataError
from wordnet_splits.base.untrusted import open_untrusted

from ...backend.weights import LARGEST, is_torchscript
from ...plugins import user_errors
from .programs import ProgramNetwork
from .registry import LoadedModel, ModelRequest, register_model_source


@register_model_source("exported")
def exported_program(name: str, request: ModelRequest) -> LoadedModel:
    """Load an exported program that returns logits, or features and logits.

    Raises
    ------
    UnsafeDataError : without ``trust_model``: loading may run code.
    DataError : not readable, or its output is neither.
    """
    path = Path(name)
    where = f"exported:{path.name}"
    if not request.trust:
        raise UnsafeDataError(
            "an exported program can run code when it is loaded",
            where=where,
            hint="if you trust where it comes from, say so with --trust-model (trust_model=True)",
        )
    with open_untrusted(path, largest=LARGEST) as file:
        if is_torchscript(file):
            raise DataError(
                "is a TorchScript program, not one of torch.export",
                where=where,
                hint="export the module with torch.export.save(torch.export.export(...), FILE)",
            )
        with user_errors("not an exported program", where=where), _quiet():
            program = torch.export.load(file)
    module = program.module()
    architecture = str(program.graph_module.code)
    return LoadedModel(
        request.model_id or where, module, architecture, ProgramNetwork(program, module, where)
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch from logging the traceback of an error that is reported in one line."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
