"""Trained networks on disk: ``model.pt``, a state dict for ``weights_only=True``, and ``model.json``.

``model.json`` says what the weights are: network, recipe, seed, benchmark and its fingerprints, the history
of the training, the command, and the SHA-256 of ``model.pt``. Both are written in one step each, the JSON
last, so that a folder with a ``model.json`` is a finished model.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from wordnet_splits.errors import DataError, OutputError

from . import networks

Module = Any  # torch.nn.Module
SCHEMA = 1
WEIGHTS, METADATA, STATE = "model.pt", "model.json", "training.pt"


def save_checkpoint(folder: Path, weights: Mapping[str, Any], metadata: Mapping[str, Any]) -> Path:
    """Write weights and metadata into ``folder`` and return it; the same weights give the same bytes."""
    blob = _serialised(weights)
    document = {
        "schema": SCHEMA,
        **metadata,
        "weights": {"file": WEIGHTS, "sha256": hashlib.sha256(blob).hexdigest()},
    }
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
    write_bytes(folder / WEIGHTS, blob)
    write_bytes(folder / METADATA, text.encode())
    return folder


def read_metadata(path: str | Path) -> dict[str, Any]:
    """Return the content of ``model.json``, given its folder, itself or the ``model.pt`` beside it.

    Raises
    ------
    DataError : there is none, or it is not of this schema.
    """
    file = _folder(path) / METADATA
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = "give a folder that `unknown-eval train` has written, with its training finished"
        raise DataError("no trained model here", where=str(path), hint=hint) from None
    except (OSError, ValueError) as error:
        raise DataError(f"cannot be read: {error}", where=str(file), hint="train it again") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise DataError(f"not a model of schema {SCHEMA}", where=str(file), hint="train it with this version")
    return document


def load_checkpoint(path: str | Path, device: Any = "cpu") -> Module:
    """Return a trained network in evaluation mode.

    Parameters
    ----------
    path : the folder of the model, its ``model.json`` or its ``model.pt``.

    The module carries ``metadata`` (the whole ``model.json``), ``classes`` (names in label order) and
    ``background`` (the index of a background column, or None). It takes images normalised as
    ``metadata["input"]`` says, which is what the benchmark's recipe says.

    Raises
    ------
    DataError : no model, weights of another SHA-256 or another network.
    """
    folder, metadata = _folder(path), read_metadata(path)
    try:
        blob = (folder / WEIGHTS).read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", where=str(folder / WEIGHTS)) from None
    if hashlib.sha256(blob).hexdigest() != metadata["weights"]["sha256"]:
        raise DataError(
            "the weights are not those that model.json describes",
            where=str(folder / WEIGHTS),
            hint="copy both files again, or train again",
        )
    weights = _deserialised(blob, folder / WEIGHTS)
    with torch.random.fork_rng(devices=[]):  # initialising must not move the caller's random numbers
        module = build_from(metadata["network"])
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        raise DataError(f"the weights do not fit the network: {error}", where=str(folder)) from None
    module.metadata, module.classes = metadata, tuple(metadata["classes"])
    module.background = metadata["network"]["background"]
    return module.to(device).eval()


def build_from(network: Mapping[str, Any]) -> Module:
    """Return the freshly initialised network that ``metadata["network"]`` describes."""
    return networks.build(
        network["name"], network["outputs"], channels=network["channels"], size=tuple(network["size"])
    )


def portable(module: Module) -> dict[str, Any]:
    """Return a copy of a state dict on the CPU in plain layout, so that bytes depend on values alone."""
    plain = torch.contiguous_format
    return {
        name: tensor.detach().cpu().clone(memory_format=plain) for name, tensor in module.state_dict().items()
    }


def save_state(folder: Path, state: Mapping[str, Any]) -> None:
    """Write what a killed training needs to go on from here (`load_state`)."""
    write_bytes(folder / STATE, _serialised(state))


def load_state(folder: Path) -> dict[str, Any] | None:
    """Return what `save_state` wrote last, None where there is nothing.

    Raises
    ------
    DataError : the file is damaged.
    """
    file = folder / STATE
    if not file.exists():
        return None
    state: dict[str, Any] = _deserialised(file.read_bytes(), file)
    return state


def drop_state(folder: Path) -> None:
    """Remove what `save_state` wrote."""
    (folder / STATE).unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file in one step: a kill leaves the old one or the new one."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise OutputError(
            f"cannot be written: {error.strerror or error}",
            where=str(path),
            hint="check that the folder may be written to and has space left",
        ) from None


def _serialised(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def _deserialised(blob: bytes, where: Path) -> Any:
    try:
        return torch.load(io.BytesIO(blob), map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError, ValueError, KeyError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(f"damaged: {reason}", where=str(where), hint="delete it and train again") from None


def _folder(path: str | Path) -> Path:
    path = Path(path)
    return path.parent if path.name in (WEIGHTS, METADATA) else path
