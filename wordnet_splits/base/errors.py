"""One family of errors: every message says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

LONGEST: Final = 200
"""Letters of an unknown name that a message shows."""


_MEMORY: Final = (
    "out of memory",
    "not enough memory",
    "allocate memory",
    "failed to launch worker thread",
    "can't start new thread",
)
"""Words of libraries that raise something else than MemoryError where memory or address space is short."""


class SplitsError(Exception):
    """Base of every error a user can cause or meet.

    Parameters
    ----------
    what : one clause saying what is wrong.
    where : the file, line, key, source or image concerned.
    hint : what to do about it.
    near : names close to one that was not found.
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
        """Return the error as one line."""
        text = f"{self.where}: {self.what}" if self.where else self.what
        if self.near:
            text += f"; did you mean {' or '.join(repr(n) for n in self.near)}?"
        if self.hint:
            text += f" ({self.hint})"
        return text

    def within(self, place: str) -> Self:
        """Return the same error with ``place`` put before where it is."""
        where = f"{place}: {self.where}" if self.where else place
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
    """A WordNet database that cannot be read, or a synset it does not hold."""

    kind = "taxonomy"


class DataError(SplitsError, ValueError):
    """A table or an argument that is malformed or inconsistent; also a ValueError, as elsewhere in Python."""

    kind = "data"


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
    """A repository of the Hugging Face Hub that is absent, refuses, or holds what it should not."""

    kind = "hub"


class HubUnreachableError(HubError):
    """The network, or a server of the Hub, fails: nothing is known of what the Hub holds."""


class OutputError(SplitsError):
    """An output folder that cannot be written or is in use."""

    kind = "output"


def out_of_memory(error: BaseException) -> bool:
    """Return whether an error of any library means that memory or address space is exhausted.

    Such an error says nothing about the file that was being read.
    """
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    return any(words in str(error).lower() for words in _MEMORY)


def check_memory(error: Exception, where: str) -> None:
    """Raise MemoryError, naming ``where``, if ``error`` is `out_of_memory`: the file may be sound."""
    if out_of_memory(error):
        lines = str(error).splitlines() or ["no memory"]
        raise MemoryError(f"{where}: {lines[0]}") from error


def unknown(what: str, name: str, known: Iterable[str], *, where: str | None = None) -> UnknownNameError:
    """Build the error for an unknown ``name`` of kind ``what``, offering the nearest known names."""
    known = sorted(set(known))
    # no name is that long, and comparing a text of megabytes takes minutes
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5) if len(name) <= LONGEST else []
    listed = (
        f"known: {', '.join(known[:12])}{', ...' if len(known) > 12 else ''}" if known else "there is none"
    )
    hint = None if near else listed
    shown = repr(name[:LONGEST]) + ("..." if len(name) > LONGEST else "")
    return UnknownNameError(f"unknown {what} {shown}", where=where, near=near, hint=hint)


@dataclass(frozen=True)
class Problem:
    """One thing wrong: ``kind`` is missing, unreadable, altered, or a verify finding."""

    kind: str
    source: str
    class_id: str | None
    image_id: str | None
    detail: str

    def as_dict(self) -> dict[str, str | None]:
        """Return the problem as ``--json`` prints it."""
        return dict(vars(self))
