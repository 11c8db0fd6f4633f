"""Keys of stored activations, SHA-256 in hex: of model and images; the third is `Transform.key`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from wordnet_splits.base.digests import canonical
from wordnet_splits.datasets.catalog import catalog_names

LIST_COLUMNS = ("source", "image_id", "view")
DIGEST = "digest"
KEYED = {*LIST_COLUMNS, DIGEST}


def model_key(tensors: Mapping[str, Any], architecture: str) -> str:
    """Return the key of a model: every state-dict tensor (name, type, shape, bytes) and the architecture.

    Parameters
    ----------
    tensors : the state dict, torch tensors on any device; the order of names does not matter.
    architecture : how the tensors are connected, e.g. ``repr(module)``: it includes parts without tensors
        (strides, activations, dropout), so that different networks of equal weights do not collide.
    """
    import torch  # keys of images need none of it: stored logits are read without torch

    digest = hashlib.sha256(architecture.encode())
    for name in sorted(tensors):
        digest.update(f"\x1e{name}\x1f".encode())
        for value in _parts(tensors[name]):
            if not isinstance(value, torch.Tensor):  # extra state of a module
                digest.update(repr(value).encode())
                continue
            digest.update(f"{value.dtype}\x1f{tuple(value.shape)}\x1f".encode())
            plain = value.dequantize() if value.is_quantized else value
            flat = plain.detach().cpu().contiguous().reshape(-1)
            digest.update(memoryview(flat.view(torch.uint8).numpy()))
    return digest.hexdigest()


def content_stamp(tensors: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return a stamp of the floating tensors of a state dict; it costs a tenth of a key.

    Torch counts changes of a tensor in place, unless they are made through ``.data``, which change the sum.
    """
    import torch

    stamps: list[tuple[Any, ...]] = []
    for name, value in tensors.items():
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            wide = value.detach() if value.element_size() >= 4 else value.detach().float()
            version = None if value.is_inference() else value._version
            stamps.append((name, value.data_ptr(), tuple(value.shape), version, repr(float(wide.sum()))))
    return stamps


def is_quantised(value: Any) -> bool:
    """Return whether a value of a state dict holds weights of 8 bits or fewer."""
    import torch

    small = (torch.int8, torch.float8_e4m3fn, torch.float8_e5m2)
    tensors = (part for part in _parts(value) if isinstance(part, torch.Tensor))
    return any(part.is_quantized or part.dtype in small for part in tensors)


def _parts(value: Any) -> Iterator[Any]:
    """Yield a value of a state dict, or the parts of a tuple: the packed weights of a quantised layer."""
    if isinstance(value, tuple):
        for part in value:
            yield from _parts(part)
    else:
        yield value


def list_key(table: pa.Table) -> str:
    """Return the key of an ordered list of images: their (source, image_id, view).

    Benchmark, role and label are not part of the key, so that a group shared by two benchmarks has one key.
    For a user's dataset known digests are included, since its name and ids do not identify its images.
    """
    shipped = frozenset(catalog_names())
    columns = {name: table.column(name).to_pylist() for name in table.column_names if name in KEYED}
    digests = columns.pop(DIGEST, [None] * table.num_rows)
    digest = hashlib.sha256()
    for row, pixels in zip(zip(*(columns[name] for name in LIST_COLUMNS), strict=True), digests, strict=True):
        identity = row if pixels is None or row[0] in shipped else (*row, pixels.hex())
        digest.update(canonical(identity).encode() + b"\n")
    return digest.hexdigest()
