"""Random draws by a stable hash of image ids: no generator, no state, independent of the order of the ids.

The key of an image is ``blake2b`` over the draw's name, the seed and the image's identity; images are taken
in ascending order of their keys, ties by id. The same ids give the same draw on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from wordnet_splits.base.errors import RecipeError

SEPARATOR = "\x1f"


def sampling_key(draw: str, seed: int, source: str, class_id: str, image_id: str = "") -> bytes:
    """Return the 16-byte sampling key of an image, or of a class when ``image_id`` is empty."""
    text = SEPARATOR.join([draw, str(seed), source, class_id, image_id])
    return blake2b(text.encode(), digest_size=16).digest()


def order_images(draw: str, seed: int, source: str, class_id: str, image_ids: Iterable[str]) -> list[str]:
    """Return the image ids of a class in the order of a draw."""
    prefix = blake2b(SEPARATOR.join([draw, str(seed), source, class_id, ""]).encode(), digest_size=16)

    def sort_key(image_id: str) -> tuple[bytes, str]:
        state = prefix.copy()
        state.update(image_id.encode())
        return state.digest(), image_id

    return sorted(image_ids, key=sort_key)


def order_classes(draw: str, seed: int, source: str, class_ids: Iterable[str]) -> list[str]:
    """Return class ids in the order of a draw."""
    return sorted(class_ids, key=lambda c: (sampling_key(draw, seed, source, c), c))


def draw_classes(draw: str, seed: int, source: str, class_ids: Iterable[str], count: int) -> list[str]:
    """Return the ``count`` classes drawn from ``class_ids``.

    Raises
    ------
    RecipeError : there are fewer than ``count`` classes.
    """
    candidates = order_classes(draw, seed, source, class_ids)
    if count > len(candidates):
        raise RecipeError(
            f"{count} classes to be drawn from {len(candidates)} candidates",
            where=source,
            hint="ask for fewer, or widen the rule",
        )
    return candidates[:count]


def share_total(total: int, draw: str, seed: int, source: str, class_ids: Sequence[str]) -> dict[str, int]:
    """Return each class's part of ``total`` images: equal shares, the rest one each by smallest class key."""
    share, remainder = divmod(total, len(class_ids))
    one_more = set(order_classes(draw, seed, source, class_ids)[:remainder])
    return {c: share + (c in one_more) for c in class_ids}
