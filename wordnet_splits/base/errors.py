"""The errors of this project: every message has the problem, its place, and a hint."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from wordnet_splits.base.jsonable import Jsonable

LONGEST_SHOWN: Final = 200
"""Longest part of an unknown name that a message shows, in letters."""
SUGGESTED, LISTED, COMPARED = 4, 12, 2_000
"""Largest numbers of suggested names that hold an unknown one, of names in a hint, and of names to sort."""


class SplitsError(Exception):
    """Base of all errors that a user can cause or meet.

    Parameters
    ----------
    what : the problem, as a single clause.
    where : the file, line, key, source or image concerned.
    hint : the remedy, as an imperative.
    near : names similar to an unknown name.
    """

    kind = "error"
    exit_code = 2

    def __init__(
        self, what: str, *, where: str | None = None, hint: str | None = None, near: Iterable[str] = ()
    ) -> None:
        self.what = what
        self.where = where
        self.hint = hint
        self.near = tuple(near)
        super().__init__(self.line())

    def line(self) -> str:  # not `message`: torch would pass its text by that name to a worker's error
        """Return the error as a single line."""
        text = f"{self.where}: {self.what}" if self.where else self.what
        if self.near:
            text += f"; did you mean {' or '.join(repr(n) for n in self.near)}?"
        if self.hint:
            text += f" ({self.hint})"
        return text

    def within(self, context: str) -> Self:
        """Return the same error with ``context`` before its place."""
        where = f"{context}: {self.where}" if self.where else context
        return type(self)(self.what, where=where, hint=self.hint, near=self.near)

    def as_dict(self) -> dict[str, object]:
        """Return the error as the object that ``--json`` prints under ``error``."""
        return {
            "kind": self.kind,
            "what": self.what,
            "where": self.where,
            "hint": self.hint,
            "near": list(self.near),
        }

    def __reduce__(self) -> tuple[object, ...]:  # keyword-only arguments survive worker processes
        return _rebuild, (type(self), self.what, self.where, self.hint, self.near)


def _rebuild(
    cls: type[SplitsError], what: str, where: str | None, hint: str | None, near: tuple[str, ...]
) -> SplitsError:
    return cls(what, where=where, hint=hint, near=near)


class UnknownNameError(SplitsError):
    """A benchmark, class, source, list, key or word that does not exist."""

    kind = "unknown-name"


class TaxonomyError(SplitsError):
    """A WordNet database that cannot be read, or a synset that is not in it."""

    kind = "taxonomy"


class DataError(SplitsError, ValueError):
    """A table or an argument that is malformed or inconsistent; also a ValueError."""

    kind = "data"


class UnusableError(DataError):
    """A detector, probe or model that these data or this model do not have the inputs for, or that fails."""

    kind = "unusable"


class RecipeError(SplitsError):
    """A recipe that is malformed, contradictory or asks for more than exists."""

    kind = "recipe"


class SourceError(SplitsError):
    """A dataset root that is absent, empty, unreadable or of another dataset."""

    kind = "source"


class MissingImageError(SourceError):
    """An image whose id is known but whose pixels are absent or unreadable under a root."""

    kind = "missing-image"


class UnsafeDataError(SourceError):
    """Dataset content that tries to run code or to leave its folder."""

    kind = "unsafe-data"


class ManifestError(SplitsError):
    """A manifest that is absent, incomplete or does not match its fingerprints."""

    kind = "manifest"


class HubError(SplitsError):
    """A repository of the Hugging Face Hub that is absent, refuses access, or has unexpected contents."""

    kind = "hub"


class HubUnreachableError(HubError):
    """A failure of the network or of a server of the Hub; the contents of the Hub stay unknown."""


class OutputError(SplitsError):
    """An output folder that cannot be written or is in use."""

    kind = "output"


def unknown(
    kind: str, name: object, names: Iterable[str], *, where: str | None = None, near: Iterable[str] = ()
) -> UnknownNameError:
    """Return the error for an unknown ``name`` of a ``kind``, with the most similar of the valid names.

    Parameters
    ----------
    near : valid names to suggest first; names with the initials ``name`` follow, then similar names, else
        names that contain it, and names that begin with it in any case.
    """
    given, valid, similar = str(name), sorted(set(names)), [*near]
    if len(given) <= LONGEST_SHOWN:  # comparing a text of megabytes takes minutes
        similar += [text for text in valid if given and _initials(text) == given.lower()]
        close, holding = (
            difflib.get_close_matches(given.lower(), valid, n=3, cutoff=0.5),
            _holding(given, valid),
        )
        similar += close + [text for text in holding if not close or _plain(text).startswith(_plain(given))]
    near = tuple(dict.fromkeys(similar))
    nearest = []
    if LISTED < len(valid) <= COMPARED and len(given) <= LONGEST_SHOWN:
        nearest = difflib.get_close_matches(given.lower(), valid, n=LISTED, cutoff=0.25)
    more = f", ... ({len(valid):,} in all)" if len(valid) > LISTED else ""
    listed = f"{'nearest' if nearest else 'known'}: {', '.join(nearest or valid[:LISTED])}{more}"
    hint = listed if valid else "there is none"
    quoted = repr(given[:LONGEST_SHOWN]) + ("..." if len(given) > LONGEST_SHOWN else "")
    return UnknownNameError(f"unknown {kind} {quoted}", where=where, near=near, hint=None if near else hint)


def _holding(name: str, valid: Iterable[str]) -> list[str]:
    """Return the names that hold a name of three letters or more, first those that begin with it."""
    part = _plain(name)
    holding = [text for text in valid if len(part) > 2 and part in _plain(text)]
    return sorted(holding, key=lambda text: (not _plain(text).startswith(part), len(text)))[:SUGGESTED]


def _plain(name: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    return "".join(filter(str.isalnum, name.lower()))


def _initials(name: str) -> str:
    """Return the initials of a name of several words: ``oe`` of ``outlier-exposure``."""
    words = re.split(r"[^a-z0-9]+", name.lower())
    return "".join(word[:1] for word in words) if len(words) > 1 else ""


@dataclass(frozen=True)
class Problem(Jsonable):
    """A problem of an image or a benchmark: ``kind`` is missing, unreadable, altered, or of `verify`."""

    kind: str
    source: str
    class_id: str | None
    image_id: str | None
    detail: str
