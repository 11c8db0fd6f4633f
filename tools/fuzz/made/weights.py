"""Files of weights whose headers lie."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tools.fuzz.made.making import Made, Make, in_bytes
from tools.fuzz.made.pickles import PICKLED, Program


def _tensors(header: object, data: bytes = bytes(64), length: int | None = None) -> tuple[str, Make]:
    def content() -> bytes:
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(text) if length is None else length) + text + data

    return "*.safetensors", in_bytes(content)


def _tensor(shape: list[Any], offsets: list[Any], dtype: Any = "F32") -> dict[str, Any]:
    return {"x": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


def _saved(value: Callable[[], Any]) -> tuple[str, Make]:
    def make(path: Path, rng: Random) -> None:
        import torch

        torch.save(value(), path)

    return "*.pt", make


def _view() -> Any:
    import torch

    return {"x": torch.zeros(1).expand(1 << 40)}


WEIGHTS: Made = {
    "a header of exabytes": _tensors(b"{}", length=1 << 63),
    "a header longer than the file": _tensors(b"{}", length=1 << 30),
    "a header of 90 MB": _tensors(b'{"__metadata__": {"x": "' + b"A" * 90_000_000 + b'"}}'),
    "a header nested 500 deep": _tensors(b'{"x":' * 500 + b"1" + b"}" * 500),
    "a header nested 100,000 deep": _tensors(b"[" * 100_000),
    "a header that is a list": _tensors([1]),
    "a header of noise": _tensors(b"\xff\xfe{"),
    "a tensor of 2**60": _tensors(_tensor([1 << 60], [0, 64])),
    "a tensor of 2**64 and more": _tensors(_tensor([1 << 33, 1 << 33], [0, 64])),
    "a negative shape": _tensors(_tensor([-4, -4], [0, 64])),
    "offsets beyond the end": _tensors(_tensor([16], [1 << 50, (1 << 50) + 64])),
    "offsets in the wrong order": _tensors(_tensor([16], [64, 0])),
    "an unknown type": _tensors(_tensor([16], [0, 64], "O")),
    "a type that is a number": _tensors(_tensor([16], [0, 64], 7)),
    "tensors that overlap": _tensors({**_tensor([16], [0, 64]), "y": _tensor([16], [0, 64])["x"]}),
    "100,000 axes": _tensors(_tensor([1] * 100_000, [0, 4])),
    "integers for keys": _saved(lambda: {1: 2}),
    "a list for weights": _saved(lambda: [1, 2]),
    "a program for weights": _saved(lambda: {"x": Program()}),
    "a view of 2**40 over one number": _saved(_view),
    "a pickle of exabytes": ("*.pt", in_bytes(PICKLED["a string of exabytes"])),
    "a pickle of 2**31 memos": ("*.pt", in_bytes(PICKLED["a memo of 2**31"])),
}
