"""Errors that tests expect: by class, place and the values that they must name, never by their wording."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from wordnet_splits.base.errors import SplitsError

E = TypeVar("E", bound=SplitsError)


@contextmanager
def raises(
    kind: type[E] | tuple[type[E], ...], *, where: object = None, naming: object = (), near: str | None = None
) -> Iterator[pytest.ExceptionInfo[E]]:
    """Expect an error of the project.

    Parameters
    ----------
    where : the place of the error or its end, such as the name of a file below ``tmp_path``.
    naming : values of the test, such as names and numbers, that the message must contain.
    near : a name that the error must suggest.
    """
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    if where is not None:
        assert is_at(error, where), f"at {error.where!r}, not {where!r}: {error}"
    assert mentions(str(error), naming), f"does not mention {naming!r}: {error}"
    if near is not None:
        assert near in error.near, f"does not suggest {near!r}: {error}"


def is_at(error: SplitsError, place: object) -> bool:
    """Return whether the place of an error is ``place`` or ends with it."""
    return re.search(whole(place) + "$", error.where or "") is not None


def mentions(text: str, *values: object) -> bool:
    """Return whether a text contains all values, tuples of them included, each as a whole word."""
    several = (
        value for given in values for value in (given if isinstance(given, (tuple, list)) else [given])
    )
    return all(re.search(whole(value), text) for value in several)


def whole(value: object) -> str:
    """Return the regular expression of a value that is not a part of a word."""
    text = str(value)
    before = r"(?<!\w)" if re.match(r"\w", text) else ""
    after = r"(?!\w)" if re.search(r"\w\Z", text) else ""
    return before + re.escape(text) + after
