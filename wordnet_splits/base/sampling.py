"""Draws by a stable hash of the image id: no generator, no seed state, no dependence on order.

The key of an image is ``blake2b`` over the draw's name, the seed and the image's identity; images are
taken in ascending key order, ties by id.  Anyone with the ids makes the same draw.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from wordnet_splits.base.errors import RecipeError

SEPARATOR = "\x1f"


def key(draw: str, seed: int, source: str, class_id: str, image_id: str = "") -> bytes:
    """Return the 16-byte sampling key of an image, or of a class when ``image_id`` is empty."""
    text = SEPARATOR.join([draw, str(seed), source, class_id, image_id])
    return blake2b(text.encode(), digest_size=16).digest()


def ordered(draw: str, seed: int, source: str, class_id: str, image_ids: Iterable[str]) -> list[str]:
    """Return the image ids of one class in the order in which a draw takes them."""
    prefix = blake2b(SEPARATOR.join([draw, str(seed), source, class_id, ""]).encode(), digest_size=16)

    def keyed(image_id: str) -> tuple[bytes, str]:
        state = prefix.copy()
        state.update(image_id.encode())
        return state.digest(), image_id

    return [image_id for _, image_id in sorted(map(keyed, image_ids))]


class First:
    """The image ids of one class that a draw takes first, from ids that stream past.

    Parameters
    ----------
    most : how many to keep, None for all; up to about twice as many are held on the way.
    """

    def __init__(self, draw: str, seed: int, source: str, class_id: str, most: int | None) -> None:
        self._of = (draw, seed, source, class_id)
        self._most = most
        self._ids: list[str] = []

    def add(self, image_ids: Iterable[str]) -> None:
        """See more ids of the class."""
        self._ids += image_ids
        if self._most is not None and len(self._ids) > 2 * self._most + 64:
            self._ids = self.ids()

    def ids(self) -> list[str]:
        """Return the first ids in the order of the draw; in the order seen where all are kept."""
        return self._ids if self._most is None else ordered(*self._of, self._ids)[: self._most]


def order_classes(draw: str, seed: int, source: str, class_ids: Iterable[str]) -> list[str]:
    """Return class ids in the order in which a draw takes them."""
    return sorted(class_ids, key=lambda c: (key(draw, seed, source, c), c))


def draw_classes(draw: str, seed: int, source: str, class_ids: Iterable[str], count: int) -> list[str]:
    """Return the ``count`` classes drawn from ``class_ids``.

    Raises
    ------
    RecipeError : there are fewer classes than asked for.
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
    """Split ``total`` images over the classes: equal shares, the rest one each by smallest class key."""
    share, rest = divmod(total, len(class_ids))
    favoured = set(order_classes(draw, seed, source, class_ids)[:rest])
    return {c: share + (c in favoured) for c in class_ids}
