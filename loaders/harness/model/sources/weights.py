"""State dicts from files that cannot run code, and networks made to fit them."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from wordnet_splits.errors import DataError, UnsafeDataError
from wordnet_splits.lazy import need

NESTED = ("state_dict", "model_state_dict", "model", "net")
PREFIXES = ("module.", "_orig_mod.")
RANDOM = "random"
FORCE = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"

State = dict[str, Any]


def read_state(path: Path) -> State:
    """Read a state dict from a .safetensors file or a torch file; names are stripped of wrappers' prefixes.

    Raises
    ------
    UnsafeDataError : the file holds pickled objects, which could run code. DataError : it is no state dict.
    """
    if not path.is_file():
        raise DataError("no such file of weights", where=str(path), hint="give --weights FILE")
    if path.suffix == ".safetensors":
        content = need("safetensors.torch", "models", where=str(path)).load_file(path)
    else:
        content = _read_torch(path)
    for key in NESTED:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
            break
    state = dict(content) if isinstance(content, Mapping) else {}
    if not state or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise DataError(
            "not a state dict", where=str(path), hint="save model.state_dict(), or convert to .safetensors"
        )
    for prefix in PREFIXES:
        if all(name.startswith(prefix) for name in state):
            state = {name.removeprefix(prefix): value for name, value in state.items()}
    return state


@contextmanager
def tensors_only() -> Iterator[None]:
    """Have libraries that read weights by themselves read tensors only, while inside."""
    before = os.environ.get(FORCE)
    os.environ[FORCE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[FORCE]
        else:
            os.environ[FORCE] = before


def _read_torch(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        reason = str(error).splitlines()[0]
        raise UnsafeDataError(
            f"the file holds more than tensors; unpickling it could run code ({reason})",
            where=str(path),
            hint="save model.state_dict() alone, or as .safetensors",
        ) from None
    except Exception as error:  # what is no torch file at all fails in a dozen ways
        raise DataError(
            f"cannot be read: {type(error).__name__} {str(error).partition(chr(10))[0]}",
            where=str(path),
            hint="give a file written by torch.save, or .safetensors",
        ) from None


def keep_published_head(options: Mapping[str, Any], where: str) -> None:
    """Refuse to change the number of classes of published weights: the head would be random."""
    if "num_classes" in options:
        raise DataError(
            "num_classes together with published weights would leave the head random",
            where=where,
            hint="give a file with --weights; its number of classes is found",
        )


def is_file(weights: str | None) -> bool:
    """Say whether weights are given as a file, not as a name."""
    return weights is not None and (os.sep in weights or Path(weights).is_file())


def fill(module: Any, state: State, where: str) -> Any:
    """Load ``state`` into ``module`` and return it; every tensor must have its place.

    Raises
    ------
    DataError : tensors missing, left over or of another shape, the first of them named.
    """
    own = module.state_dict()
    missing = sorted(set(own) - set(state))
    spare = sorted(set(state) - set(own))
    shapes = [k for k in sorted(set(own) & set(state)) if own[k].shape != state[k].shape]
    if missing or spare or shapes:
        told = [
            f"{len(names)} {what} ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"
            for what, names in (("missing", missing), ("left over", spare), ("of another shape", shapes))
            if names
        ]
        raise DataError(
            f"the weights do not fit the model: {'; '.join(told)}", where=where, hint="check the model's name"
        )
    module.load_state_dict(state)
    return module


def build_to_fit(build: Callable[..., Any], state: State, options: Mapping[str, Any], where: str) -> Any:
    """Return ``build(**options)`` filled with ``state``, with as many classes as its head has rows."""
    module = build(**options)
    own = module.state_dict()
    off = [k for k in own if k in state and own[k].shape != state[k].shape]
    rows = {tuple(state[k].shape)[:1] for k in off}
    if (
        "num_classes" not in options
        and len(rows) == 1
        and all(own[k].shape[1:] == state[k].shape[1:] for k in off)
    ):
        module = build(**{**options, "num_classes": int(next(iter(rows))[0])})
    return fill(module, state, where)
