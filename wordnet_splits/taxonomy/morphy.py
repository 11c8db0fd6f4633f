"""Base forms of nouns: WordNet's morphy, as NLTK applies it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

SUFFIXES: tuple[tuple[str, str], ...] = (
    ("s", ""),
    ("ses", "s"),
    ("ves", "f"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("men", "man"),
    ("ies", "y"),
)
"""Noun endings and what replaces them: morphy(7WN), the "ves" rule as NLTK adds it."""


def base_forms(
    form: str, is_lemma: Callable[[str], bool], exceptions: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the lemmas that ``form`` can be a form of, itself first, in NLTK's order.

    An exception (``noun.exc``) replaces the suffix rules; the rules are applied once.

    Parameters
    ----------
    form : a lower-case word, spaces as underscores.
    is_lemma : whether a string is a lemma of the database.
    exceptions : irregular form -> its base forms.
    """
    candidates = exceptions.get(form)
    if candidates is None:
        candidates = tuple(form[: -len(old)] + new for old, new in SUFFIXES if form.endswith(old))
    return tuple(dict.fromkeys(word for word in (form, *candidates) if is_lemma(word)))


def parse_exceptions(text: str) -> dict[str, tuple[str, ...]]:
    """Return the content of ``noun.exc``: irregular form -> base forms."""
    lines = (line.split() for line in text.splitlines())
    return {words[0]: tuple(words[1:]) for words in lines if words}
