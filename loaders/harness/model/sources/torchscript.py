"""TorchScript programs: ``torchscript:FILE``, or a path ending in .ts; loaded only with ``trust_model``."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import torch

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.untrusted import open_untrusted, sha256_of

from ...backend.weights import LARGEST, is_torchscript
from ...plugins import user_errors
from .objects import from_object
from .registry import LoadedModel, ModelRequest, register_model_source, require_trust


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
    require_trust("a TorchScript program", request, where)
    with open_untrusted(path, largest=LARGEST) as file:
        if not is_torchscript(file):
            raise DataError("is not a TorchScript program", where=where, hint="write it with torch.jit.save")
        with user_errors("not a TorchScript program", where=where):
            module = torch.jit.load(file, map_location="cpu")
    loaded = from_object(module, request, where)
    # a frozen program has no tensors by name: the file identifies it
    content = hashlib.sha256(f"{loaded.architecture}{sha256_of(path, largest=LARGEST)}".encode()).hexdigest()
    return replace(loaded, architecture=content, from_file=True)
