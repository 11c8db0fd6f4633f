"""The guess that image n of a renumbered copy is the n-th of its class with the publisher.

``data/positions.toml`` says of which copies. Nothing that is frozen rests on it: it is for those who have no
pixels to compare, and every row says so.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from wordnet_splits.base.errors import SourceError

BY_ID: Final = "id"
REASON: Final = "UNVERIFIED guess: the number in its class is the place in the publisher's order"

Labels = Mapping[str, tuple[str, str]]
"""image id -> (class id, split)."""


@dataclass(frozen=True)
class PositionGuess:
    """Which split of a copy is which of the publisher's, and what has the publisher's order.

    Attributes
    ----------
    first : the number of the first image of a class.
    order : the layout whose files have the publisher's order, or ``id`` where the ids have it.
    """

    copy: str
    publisher: str
    splits: Mapping[str, str]
    first: int
    order: str


@cache
def position_guesses() -> Mapping[str, PositionGuess]:
    """Return the guesses, by the copy that each is about."""
    text = resources.files("wordnet_splits").joinpath("data/positions.toml").read_text("utf-8")
    return {
        name: PositionGuess(name, entry["with"], entry["splits"], entry["first"], entry["order"])
        for name, entry in tomllib.loads(text).items()
    }


def position_guess(a: str, b: str) -> PositionGuess:
    """Return the guess about two sources in either order; SourceError where there is none."""
    for guess in position_guesses().values():
        if {guess.copy, guess.publisher} == {a, b}:
            return guess
    pairs = ", ".join(f"{guess.copy} {guess.publisher}" for guess in position_guesses().values())
    raise SourceError("no guess by position is made", where=f"{a} and {b}", hint=f"it is made of {pairs}")


def paired(guess: PositionGuess, ours: Labels, theirs: Labels) -> Iterator[tuple[str, str, str]]:
    """Yield (id of the copy, id of the publisher, class) of every image of the copy.

    Parameters
    ----------
    ours, theirs : images of the copy and of the publisher, the latter in his order.

    Raises
    ------
    SourceError : a class of which one has more images than the other, or numbers with a gap.
    """
    numbered = defaultdict(list)
    for image_id, (class_id, split) in ours.items():
        numbered[guess.splits[split], class_id].append((_number(image_id), image_id))
    ordered = defaultdict(list)
    for image_id, (class_id, split) in theirs.items():
        ordered[split, class_id].append(image_id)
    for split, class_id in sorted(numbered.keys() | ordered.keys()):
        numbered_ids, ordered_ids = sorted(numbered[split, class_id]), ordered[split, class_id]
        where = f"{guess.copy} and {guess.publisher}, {split} {class_id}"
        if len(numbered_ids) != len(ordered_ids):
            reason = f"{len(numbered_ids):,} images and {len(ordered_ids):,}: no place can be told"
            raise SourceError(reason, where=where, hint="give roots of whole copies")
        if [number for number, _ in numbered_ids] != list(
            range(guess.first, guess.first + len(numbered_ids))
        ):
            reason = f"the numbers do not run from {guess.first} to {guess.first + len(numbered_ids) - 1}"
            raise SourceError(reason, where=where, hint="give the root of a whole copy")
        for (_, image_id), theirs_id in zip(numbered_ids, ordered_ids, strict=True):
            yield image_id, theirs_id, class_id


def _number(image_id: str) -> int:
    match = re.search(r"\d+$", image_id)
    return int(match[0]) if match else -1
