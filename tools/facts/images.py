"""A split's images as facts files list them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Inventory:
    """A split's images: image_id -> class_id, and digests of all images or of none."""

    classes: Mapping[str, str]
    origin: str
    digests: Mapping[str, bytes] | None = None


def unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return image_id -> class_id, refusing an id that occurs twice."""
    pairs = list(pairs)
    twice = [i for i, n in Counter(i for i, _ in pairs).items() if n > 1]
    if twice:
        raise ValueError(f"{len(twice)} image ids occur twice, the first is {twice[0]}")
    return dict(pairs)


def stem(name: str) -> str:
    return name.rpartition(".")[0]
