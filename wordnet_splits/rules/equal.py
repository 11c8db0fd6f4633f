"""When two classes that share a synset are one class."""

from __future__ import annotations

from typing import Protocol

from wordnet_splits.rules.keywords import folded_lemma


class Mapped(Protocol):
    """A class as a catalog or a list maps it to synsets."""

    @property
    def name(self) -> str:
        """Return the publisher's name."""

    @property
    def covers(self) -> tuple[str, ...]:
        """Return the synsets whose hyponyms are all of this class: none where they are wider than it."""


def are_same_class(a: Mapped, b: Mapped) -> bool:
    """Say whether two classes that share a synset are one class.

    Not where both are mapped to something wider than their names mean, and these differ: *ramen* and *hot and
    sour soup* are both filed under soup.
    """
    return bool(a.covers or b.covers) or folded_name(a.name) == folded_name(b.name)


def folded_name(name: str) -> str:
    """Return the name of a class as it is compared with lemmas and other names."""
    return folded_lemma(name.replace(" ", "_"))
