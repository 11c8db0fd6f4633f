"""JSON that bears the checksum of its altered content, and the arrays beside it."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from tools.fuzz.made.making import Made, Make, in_bytes
from wordnet_splits.base.digests import digest_json
from wordnet_splits.base.schemas import CHECKSUM


def resealed(change: Callable[[Any], None]) -> Make:
    """Alter a JSON file and give it the checksum that fits, as who means to deceive does."""

    def make(path: Path, rng: Random) -> None:
        content = json.loads(path.read_text("utf-8"))
        change(content)
        content.pop(CHECKSUM, None)
        path.write_text(json.dumps({**content, CHECKSUM: digest_json(content)}), "utf-8")

    return make


def _set(*way: Any, to: Any) -> Make:
    def change(content: Any) -> None:
        *steps, last = way
        for step in steps:
            content = content[step]
        content[last] = to

    return resealed(change)


def _network(key: str, value: Any) -> tuple[str, Make]:
    return "**/model.json", _set("network", key, to=value)


MODEL: Made = {
    "resealed: a million outputs": _network("outputs", 100_000),
    "resealed: 10**18 outputs": _network("outputs", 10**18),
    "resealed: minus five outputs": _network("outputs", -5),
    "resealed: no outputs": _network("outputs", 0),
    "resealed: outputs of text": _network("outputs", "6"),
    "resealed: pictures of 10**9": _network("size", [10**9, 10**9]),
    "resealed: pictures of 1,024": _network("size", [1024, 1024]),
    "resealed: pictures of minus one": _network("size", [-1, 8]),
    "resealed: 10**9 channels": _network("channels", 10**9),
    "resealed: a network that is none": _network("name", "os.system"),
    "resealed: layers": _network("layers", [10**9] * 100),
    "resealed: deviations of zero": ("**/model.json", _set("input", "std", to=[0.0] * 3)),
    "resealed: a mean that is text": ("**/model.json", _set("input", "mean", to="zero")),
    "resealed: classes of another order": (
        "**/model.json",
        resealed(lambda content: content["classes"].reverse()),
    ),
    "resealed: weights elsewhere": ("**/model.json", _set("weights", "file", to="/dev/zero")),
    "resealed: another benchmark": ("**/model.json", _set("benchmark", "name", to="../unknown-cifar")),
}

PACKED: Made = {
    f"resealed: {key} {value!r:.30}": ("**/packed.json", _set("parts", 0, key, to=value))
    for key, value in (
        *(("rows", 10**15), ("rows", -1), ("rows", 1 << 40), ("missing", -1), ("missing", 10**12)),
        *(("shape", [3, 4, 16]), ("shape", [3, 65_535, 65_535]), ("shape", [-3, 8, 8]), ("shape", [])),
        *(("bytes", 1 << 60), ("layout", "files"), ("layout", "../x"), ("view", "fix"), ("spec", 7)),
        *(
            ("group", "../../x"),
            ("group", "gaussian"),
            ("split", ".."),
            ("split", "train"),
            ("source", "lsun"),
        ),
    )
} | {
    "resealed: another benchmark": ("**/packed.json", _set("benchmark", to="unknown-cifar")),
    "resealed: no parts": ("**/packed.json", _set("parts", to=[])),
    "resealed: parts twice": ("**/packed.json", resealed(lambda c: c["parts"].extend(c["parts"]))),
}


def _npy(header: str) -> bytes:
    body = header.encode("latin-1")
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(body)) + body


def _array(shape: str, descr: str = "'<f4'") -> Make:
    return in_bytes(
        lambda: _npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n") + bytes(64)
    )


STORE: Made = {
    "resealed: a huge n": ("**/list.json", _set("n", to=10**15)),
    "resealed: a negative n": ("**/list.json", _set("n", to=-1)),
    "resealed: a key of a path": ("**/list.json", _set("model_key", to="../../x")),
    "resealed: rows of a shard": ("**/00000.json", _set("rows", to=10**15)),
    "an array of 10**18 rows": ("**/logits/*.npy", _array("(1000000000000000000, 6)")),
    "an array of 2**62 columns": ("**/logits/*.npy", _array("(1, 4611686018427387904)")),
    "an array of minus one row": ("**/logits/*.npy", _array("(-1, 6)")),
    "an array of objects": ("**/logits/*.npy", _array("(6,)", "'|O'")),
    "an array of 1,000 axes": ("**/logits/*.npy", _array("(" + "1, " * 1000 + ")")),
    "a header nested 3,000 deep": ("**/logits/*.npy", in_bytes(lambda: _npy("(" * 3000 + ")" * 3000))),
    "a header of a gigabyte": (
        "**/logits/*.npy",
        in_bytes(lambda: b"\x93NUMPY\x02\x00" + struct.pack("<I", 1 << 30) + b"{" * 100),
    ),
}
