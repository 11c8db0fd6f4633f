"""State dicts read without running code, and networks built to fit them."""

from __future__ import annotations

import os
import pickle
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor, nn

from wordnet_splits.base.errors import DataError, UnsafeDataError, unknown
from wordnet_splits.base.lazy import need
from wordnet_splits.base.names import listed, printable
from wordnet_splits.base.untrusted import GiB, describe_error, open_untrusted, user_errors

KEY = "#"
"""Separator of a file of weights and the name of a state dict in it."""
WRAPPERS = {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"}
"""Parts that wrappers add to names of tensors: DataParallel, compile and averages, FSDP, checkpointing."""
AVERAGES = "n_averaged"
"""Counter of torch's AveragedModel."""
BATCHES = "num_batches_tracked"
"""Counter of batch norm, which older files lack; no evaluation depends on it."""
RANDOM = "random"
FORCE = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"

LARGEST = 256 * GiB
"""Bytes of a file of weights; the largest published vision models have 25 GB."""
DEEPEST = 4
"""Depth of nested dicts that are searched for state dicts."""
OTHER_FILES = {
    b"version https://git-lfs.github.com/spec/": (
        "a Git LFS pointer, not the weights themselves",
        "fetch the weights: git lfs pull",
    ),
    b"<!doctype html": ("a web page, not weights", "download the file itself"),
    b"<html": ("a web page, not weights", "download the file itself"),
    b"\x1f\x8b": ("compressed by gzip", "decompress it: gunzip FILE"),
}
"""First bytes, in lower case -> description of a file that is not weights, and the remedy."""
LONGEST_START = 256
STATE_ALONE = "save model.state_dict() alone, or as .safetensors"

State = dict[str, Tensor]
Parts = tuple[str, ...]
"""A name of a tensor, split at its dots."""


def read_state(path: str | Path) -> State:
    """Read a state dict from a .safetensors or torch file.

    Parameters
    ----------
    path : the file; ``FILE#KEY`` for one of several state dicts in a file, ``FILE#KEY.KEY`` for one inside
        another dict, ``FILE#PREFIX`` for the tensors whose names begin with a prefix.

    Raises
    ------
    UnsafeDataError : the file holds pickled objects, which could run code.
    DataError : it is not a state dict, or holds several.
    """
    path, key = split_key(path)
    with open_untrusted(path, largest=LARGEST) as file:
        refuse_other_files(file, path)
        if path.suffix == ".safetensors":
            load_file = need("safetensors.torch", "models", where=str(path)).load_file
            with user_errors("is not a safetensors file", where=str(path), hint="copy it again"):
                content = load_file(path)
        else:
            content = load_tensors(file, path, hint="give a file written by torch.save, or .safetensors")
    return check_state(_chosen(content, key, path), path, hint="save model.state_dict(), or use .safetensors")


def split_key(weights: str | Path) -> tuple[Path, str]:
    """Return the file and the key of ``FILE#KEY``; the key is "" if absent."""
    file, _, key = str(weights).rpartition(KEY)
    return (Path(file), key) if file and not Path(weights).is_file() else (Path(weights), "")


def refuse_other_files(file: BinaryIO, path: Path) -> None:
    """Raise DataError for a file that is often in the place of weights, and rewind it."""
    start = file.read(LONGEST_START).lstrip().lower()
    file.seek(0)
    for first_bytes, (kind, hint) in OTHER_FILES.items():
        if start.startswith(first_bytes):
            raise DataError(f"is {kind}", where=str(path), hint=hint)


def _chosen(content: Any, key: str, path: Path) -> Any:
    """Return the only state dict of a checkpoint, or the named one; else the content itself."""
    levels = list(_state_dicts(content))
    if key:
        states = {name: state for level in reversed(levels) for name, state in level.items()}
        prefix = key.replace("/", ".")
        if prefix in states:
            return states[prefix]
        tensors = content if _holds_tensors(content) else {}
        below = {n.removeprefix(f"{prefix}."): t for n, t in tensors.items() if n.startswith(f"{prefix}.")}
        if not below:
            names = [*states, *dict.fromkeys(name.partition(".")[0] for name in tensors)]
            raise unknown("state dict", key, map(printable, names), where=str(path))
        return below
    states = next((level for level in levels if level), {})
    if len(states) > 1:
        names = [printable(name) for name in states]
        choice = f"{path.name}{KEY}{names[0]}"
        raise DataError(
            f"holds {len(states)} state dicts: {listed(names, 5)}",
            where=str(path),
            hint=f"name a state dict, as in --weights {choice} (weights='{choice}')",
        )
    return next(iter(states.values()), content)


def _state_dicts(content: Any) -> Iterator[dict[str, Any]]:
    """Yield the state dicts inside nested dicts, a dict for each depth; names are keys joined by dots."""
    nested = {"": content}
    for _ in range(DEEPEST):
        entries = {
            f"{outer}.{key}" if outer else key: value
            for outer, mapping in nested.items()
            if isinstance(mapping, Mapping)
            for key, value in mapping.items()
            if isinstance(key, str) and isinstance(value, Mapping)
        }
        states = {name: value for name, value in entries.items() if _holds_tensors(value)}
        yield states
        nested = {name: value for name, value in entries.items() if name not in states}


def _holds_tensors(value: Any) -> bool:
    """Return whether a value is a mapping of tensors by name."""
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(isinstance(k, str) and isinstance(v, Tensor) for k, v in value.items())
    )


def check_state(content: Any, path: Path, *, hint: str) -> State:
    """Return the content of a file as a state dict."""
    state = dict(content) if isinstance(content, Mapping) else {}
    if not state or not all(isinstance(k, str) and isinstance(v, Tensor) for k, v in state.items()):
        raise DataError("not a state dict", where=str(path), hint=hint)
    for name, value in state.items():
        # a view with strides of 0 can claim any shape over one number, and networks are built to that shape
        strided = value.layout == torch.strided and not value.is_meta  # a meta tensor has no values
        if not strided or value.untyped_storage().nbytes() < value.nbytes:
            raise DataError(f"tensor {printable(name)!r} is not whole", where=str(path), hint=hint)
    return state


def load_tensors(file: BinaryIO, path: Path, *, hint: str) -> Any:
    """Read a file of ``torch.save``, tensors and plain values only; ``path`` is for messages.

    Raises
    ------
    UnsafeDataError : it holds pickled objects, or is a program. DataError : it cannot be read.
    """
    if is_torchscript(file):
        raise UnsafeDataError("is a TorchScript program, which is code", where=str(path), hint=STATE_ALONE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickle protocols
            return torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise UnsafeDataError(
            "holds more than tensors; unpickling it could run code", where=str(path), hint=STATE_ALONE
        ) from None
    except MemoryError:
        raise
    except Exception as error:  # other files fail in many ways
        raise DataError(f"cannot be read: {describe_error(error)}", where=str(path), hint=hint) from None


def is_torchscript(file: BinaryIO) -> bool:
    """Return whether a file is a TorchScript archive, and rewind it."""
    return archive_kind(file) == "torchscript"


def archive_kind(file: BinaryIO) -> str:
    """Return ``torchscript``, ``exported`` (torch.export), or "" for any other file, and rewind it."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = {name.rpartition("/")[2] for name in archive.namelist()}
    except (
        zipfile.BadZipFile,
        ValueError,
        OSError,
        NotImplementedError,
    ):  # NotImplementedError: unsupported compression
        return ""
    finally:
        file.seek(0)
    if "archive_format" in names or "serialized_exported_program.json" in names:
        return "exported"
    return "torchscript" if "constants.pkl" in names else ""


@contextmanager
def tensors_only() -> Iterator[None]:
    """Make libraries read only tensors from files of weights inside the block."""
    before = os.environ.get(FORCE)
    os.environ[FORCE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[FORCE]
        else:
            os.environ[FORCE] = before


def refuse_num_classes(options: Mapping[str, Any], where: str) -> None:
    """Raise where ``num_classes`` is set for published weights: the head would be random."""
    if "num_classes" in options:
        raise DataError(
            "num_classes together with published weights would leave the head random",
            where=where,
            hint="give a file with --weights; its number of classes is found",
        )


def download_error(name: str, error: Exception, where: str) -> DataError:
    """Return the error of published weights that could not be downloaded."""
    hint = "give a file with --weights, or --weights random"
    return DataError(f"{name} cannot be fetched: {describe_error(error)}", where=where, hint=hint)


def is_weights_file(weights: str | None) -> bool:
    """Return whether weights are given as a file, not as a name."""
    return weights is not None and (os.sep in weights or split_key(weights)[0].is_file())


def named_as(state: State, expected: Collection[str]) -> State:
    """Return a state dict with the names that a network expects, as far as wrappers make the difference.

    The parts in `WRAPPERS` are ignored anywhere in a name, and so is any prefix that all names have, such as
    ``model.``. A counter of averages is left out, and missing counters of batches are 0.
    """
    kept = [name for name in state if name in expected or name.rpartition(".")[2] != AVERAGES]
    own, wanted = ({_unwrapped(name): name for name in names} for names in (kept, expected))
    if len(own) < len(kept) or len(wanted) < len(expected):
        return state  # two names differ only in wrappers
    outer, inner = _common_parts(own), _common_parts(wanted)
    renamed = {wanted.get((*inner, *parts[len(outer) :]), name): state[name] for parts, name in own.items()}
    counters = [name for name in expected if name.rpartition(".")[2] == BATCHES]
    return {name: torch.zeros((), dtype=torch.long) for name in counters} | renamed


def _unwrapped(name: str) -> Parts:
    return tuple(part for part in name.split(".") if part not in WRAPPERS)


def _common_parts(names: Iterable[Parts]) -> Parts:
    """Return the parts that all names begin with."""
    columns = zip(*(parts[:-1] for parts in names), strict=False)
    return tuple(column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns))


def load_weights(module: nn.Module, state: State, where: str, *, assign: bool = False) -> nn.Module:
    """Load ``state`` into ``module``, tensor by tensor, and return it.

    ``assign``: use the tensors themselves, as needed for a module on the meta device.
    """
    expected = module.state_dict()
    state = named_as(state, expected)
    missing = sorted(set(expected) - set(state))
    unexpected = sorted(set(state) - set(expected))
    common = sorted(set(expected) & set(state))
    misshapen = [k for k in common if expected[k].shape != state[k].shape]
    unlike = [k for k in common if expected[k].is_floating_point() and not _has_its_values(state[k])]
    if missing or unexpected or misshapen or unlike:
        problems = [
            f"{len(names)} {kind} ({listed(names, 3)})"
            for kind, names in (
                ("missing", missing),
                ("left over", unexpected),
                ("of another shape", misshapen),
                ("quantised or complex", unlike),
            )
            if names
        ]
        prefixes = [f"FILE{KEY}{prefix}" for prefix in _fitting_prefixes(state, expected)]
        raise DataError(
            f"the weights do not fit the model: {'; '.join(problems)}",
            where=where,
            hint=f"name a network: {' or '.join(prefixes)}" if prefixes else "check the model's name",
        )
    with user_errors("the weights do not fit the model", where=where):
        module.load_state_dict(state, assign=assign)
    return module


def _fitting_prefixes(state: State, expected: Collection[str]) -> list[str]:
    """Return the prefixes, as ``student``, below which a state dict has all tensors of a network."""
    needed = [name for name in expected if name.rpartition(".")[2] != BATCHES]
    end = f".{needed[0]}" if needed else ""
    prefixes = [name.removesuffix(end) for name in state if end and name.endswith(end)]
    return [prefix for prefix in prefixes if all(f"{prefix}.{name}" in state for name in needed)]


def _has_its_values(tensor: Tensor) -> bool:
    """Return whether a float tensor can take the values, without a scale or an imaginary part."""
    return bool(tensor.is_floating_point() and tensor.dtype.itemsize > 1)


def build_with_weights(
    build: Callable[..., nn.Module], state: State, options: Mapping[str, Any], where: str
) -> nn.Module:
    """Return ``build(**options)`` with the weights ``state``, and as many classes as rows in their head."""
    module = build(**options)
    expected = module.state_dict()
    state = named_as(state, expected)
    misshapen = [k for k in expected if k in state and expected[k].shape != state[k].shape]
    rows = {tuple(state[k].shape)[:1] for k in misshapen}
    if (
        "num_classes" not in options
        and len(rows) == 1
        and all(expected[k].shape[1:] == state[k].shape[1:] for k in misshapen)
    ):
        module = build(**{**options, "num_classes": int(next(iter(rows))[0])})
    return load_weights(module, state, where)
