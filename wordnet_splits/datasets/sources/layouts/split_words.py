"""Splits in the names of folders and files: ``train``, ``valid``, ``test_seen``, ``instances_val2017.json``.

Names with further words are separate splits: ``test_seen`` and ``test_unseen``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Final, NamedTuple

from wordnet_splits.datasets.sources.layouts.layout import ALL

SPLIT_WORDS: Final = {
    **{word: word for word in ("train", "training", "val", "dev", "test", "testing", "eval", "evaluation")},
    **dict.fromkeys(("valid", "validation"), "val"),
}
"""Word in the name of a file or folder -> name of the split."""
USUAL: Final = frozenset({"instances", "annotations", "coco", "partial", "data", "shard"})
"""Words of file names that do not affect the split."""

_BETWEEN = re.compile(r"[-_.\s]+")
_NUMBERED = re.compile(r"([a-z]+)(\d*)")
_YEAR = re.compile(r"(19|20)\d\d")


class SplitName(NamedTuple):
    """The split in a name, a value of `SPLIT_WORDS`, and the other words in order.

    The first ``before`` of the words in ``more`` precede the word of the split.
    """

    kind: str
    more: tuple[str, ...] = ()
    before: int = 0

    def without(self, shared: frozenset[str]) -> str:
        """Return the name of the split without the words that all names share."""
        words = [*self.more[: self.before], self.kind, *self.more[self.before :]]
        return "_".join(word for word in words if word == self.kind or word not in shared)


def parse_split(name: str) -> SplitName | None:
    """Return the split in the name of a folder, or of a file without its extension; None without one.

    The number of a shard and all later words are ignored.
    """
    words = [word for word in _BETWEEN.split(name.lower()) if word]
    for at, word in enumerate(words):
        match = _NUMBERED.fullmatch(word)
        if match and match[1] in SPLIT_WORDS:
            before = [word for word in words[:at] if word not in USUAL]
            after = [match[2]] if _YEAR.fullmatch(match[2]) else []
            for word in words[at + 1 :]:
                if word[0].isdigit():
                    break
                after += [word] if word not in USUAL else []
            return SplitName(SPLIT_WORDS[match[1]], (*before, *after), len(before))
    return None


def splits_of(paths: Iterable[PurePath]) -> dict[PurePath, str]:
    """Return the split in the name of each file, else of the nearest folder above it; `ALL` without one.

    Words that all these names have are left out: ``instances_train2017.json`` and ``instances_val2017.json``
    are ``train`` and ``val``.
    """
    found = {path: _nearest(path) for path in paths}
    names = [set(name.more) for name in found.values() if name is not None]
    shared = frozenset(set.intersection(*names)) if names else frozenset()
    return {path: ALL if name is None else name.without(shared) for path, name in found.items()}


def _nearest(path: PurePath) -> SplitName | None:
    names = (path.stem, *(folder.name for folder in path.parents))
    return next((split for name in names if (split := parse_split(name)) is not None), None)
