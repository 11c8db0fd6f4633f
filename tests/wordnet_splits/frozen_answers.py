"""Answers over all of WordNet, frozen as digests: ``make test`` recomputes ours, `make oracle` asks NLTK."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def digest_of(answers: Iterable[object]) -> str:
    """Return the SHA-256 of answers in order, one line each."""
    digest = hashlib.sha256()
    for answer in answers:
        digest.update(f"{answer!r}\n".encode())
    return digest.hexdigest()
