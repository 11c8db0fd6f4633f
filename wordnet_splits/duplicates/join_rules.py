"""How the ids of a copy of a dataset follow from the publisher's order: known rules, and guesses by position.

A guess says that image n of a class in a copy is the publisher's n-th (``data/positions.toml``). It is for
users without pixels to compare: pairs are marked as unverified, and nothing frozen depends on them.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from wordnet_splits.base.errors import SourceError

BY_ID: Final = "id"
REASON: Final = "UNVERIFIED guess: the number in its class is the place in the publisher's order"

Labels = Mapping[str, tuple[str, str]]
"""image id -> (class id, split)."""


@dataclass(frozen=True)
class JoinRule:
    """Rule by which ids of a copy contain the position in the publisher's file; see ``data/joins.toml``."""

    copy: str
    publisher: str
    pattern: str
    first: int
    reason: str

    def publisher_id(self, image_id: str) -> str | None:
        """Return the publisher's id of an image of the copy, None if its id does not match."""
        match = re.fullmatch(self.pattern, image_id)
        return match and f"{match['split']}/{int(match['number']) - self.first}"


@cache
def join_rules() -> Mapping[str, JoinRule]:
    """Return copy -> rule."""
    rows = _read_table("joins.toml").items()
    return {copy: JoinRule(copy, r["with"], r["pattern"], r["first"], r["reason"]) for copy, r in rows}


@dataclass(frozen=True)
class PositionGuess:
    """Guess that images of a copy are numbered in the publisher's order within each class.

    Attributes
    ----------
    splits : split of the copy -> split of the publisher.
    first : number of the first image of a class.
    order : layout whose files are in the publisher's order, or ``id`` if sorted ids are.
    """

    copy: str
    publisher: str
    splits: Mapping[str, str]
    first: int
    order: str


@cache
def position_guesses() -> Mapping[str, PositionGuess]:
    """Return copy -> guess."""
    rows = _read_table("positions.toml").items()
    return {copy: PositionGuess(copy, r["with"], r["splits"], r["first"], r["order"]) for copy, r in rows}


def _read_table(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files("wordnet_splits").joinpath(f"data/{name}").read_text("utf-8"))


def position_guess(a: str, b: str) -> PositionGuess:
    """Return the guess about two sources in either order; SourceError if there is none."""
    for guess in position_guesses().values():
        if {guess.copy, guess.publisher} == {a, b}:
            return guess
    pairs = ", ".join(f"{guess.copy} {guess.publisher}" for guess in position_guesses().values())
    raise SourceError("no guess by position is made", where=f"{a} and {b}", hint=f"it is made of {pairs}")


def pair_by_position(
    guess: PositionGuess, copy_labels: Labels, publisher_labels: Labels
) -> Iterator[tuple[str, str, str]]:
    """Yield (id of the copy, id of the publisher, class) of every image of the copy.

    Parameters
    ----------
    copy_labels, publisher_labels : images of both, the latter in the publisher's order.

    Raises
    ------
    SourceError : different numbers of images of a class, or a gap in the numbering.
    """
    numbered = defaultdict(list)
    for image_id, (class_id, split) in copy_labels.items():
        numbered[guess.splits[split], class_id].append((_number(image_id), image_id))
    ordered = defaultdict(list)
    for image_id, (class_id, split) in publisher_labels.items():
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
        for (_, image_id), publisher_id in zip(numbered_ids, ordered_ids, strict=True):
            yield image_id, publisher_id, class_id


def _number(image_id: str) -> int:
    match = re.search(r"\d+$", image_id)
    return int(match[0]) if match else -1
