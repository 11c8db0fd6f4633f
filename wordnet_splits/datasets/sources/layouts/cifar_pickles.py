"""CIFAR as its publisher packs it: Python 2 pickles of 10,000 to 50,000 images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import numpy as np

from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import SourceError
from wordnet_splits.base.untrusted import LONGEST_NAME, check_link, open_untrusted
from wordnet_splits.datasets.sources.layouts.matched_images import Listing, MatchedImages
from wordnet_splits.datasets.sources.layouts.unpickle import LARGEST_FILE, load_pickle
from wordnet_splits.datasets.sources.layouts.walk import bases

SIDE = 32
_CHANNELS = 3
LARGEST_LABEL = 1 << 16
_PICKLE = b"\x80"  # the first byte of every pickle since protocol 2


class PickleNames(NamedTuple):
    """Names of the files of a CIFAR dataset, and of their keys."""

    folder: str
    batches: Mapping[str, tuple[str, ...]]  # publisher's split -> files
    label_key: str
    meta: str
    meta_key: str


class _Batch(NamedTuple):
    file: str
    data: Pixels  # (n, 3072), channel by channel
    labels: Sequence[int]
    names: Sequence[str]


def find_pickles(source: str, root: Path, *, names: PickleNames) -> Pickles | None:
    """Return the folder at or directly in ``root`` that has a batch, None without one."""
    layouts = (Pickles(source, root, base, names) for base in bases(root, names.folder))
    return next((layout for layout in layouts if layout.paths), None)


class Pickles(MatchedImages):
    """The pickles in a folder; ``paths`` maps file name -> path of the batches that are present."""

    name = "pickle"

    def __init__(self, source: str, root: Path, folder: Path, names: PickleNames) -> None:
        super().__init__(source, root)
        self._folder, self._names = folder, names
        files = [file for batch in names.batches.values() for file in batch]
        self.paths = {file: folder / file for file in files if (folder / file).is_file()}

    def is_unambiguous(self) -> bool:
        """Return whether a batch begins like a pickle: other datasets may have a file ``train``, too."""
        for path in self.paths.values():
            with open_untrusted(path, largest=LARGEST_FILE, error=SourceError) as stream:
                if stream.read(1) == _PICKLE:
                    return True
        return False

    def listing(self, split: str) -> Listing:
        """Return the images of the batches of ``split`` that are there."""
        batches = self._batches(split)
        labels = [label for batch in batches for label in batch.labels]
        names = [PurePosixPath(n).stem for b in batches for n in b.names or [""] * len(b.labels)]
        class_ids = self.cached("classes", self._labels)
        classes = [class_ids[n] if 0 <= n < len(class_ids) else None for n in labels]
        files = [batch.file for batch in batches for _ in batch.labels]

        def describe(index: int) -> str:
            if classes[index] is None:
                return f"{files[index]}: label {labels[index]}"
            return f"{split}/{classes[index]}/{names[index] or '(no name)'}"

        return Listing(classes, describe, names)

    def pixels(self, split: str, index: int) -> Pixels:
        """Return an image, uint8 (32, 32, 3)."""
        for batch in self._batches(split):
            if index < len(batch.labels):
                planes = batch.data[index].reshape(_CHANNELS, SIDE, SIDE)
                return np.ascontiguousarray(planes.transpose(1, 2, 0))
            index -= len(batch.labels)
        raise KeyError(index)

    def _batches(self, split: str) -> list[_Batch]:
        files = (file for file in self._names.batches[split] if file in self.paths)
        return self.cached(f"batches {split}", lambda: [self._read(file) for file in files])

    def _labels(self) -> tuple[str, ...]:
        """Return the class of each label: by the copy's own meta file, or the publisher's without one."""
        path = self._folder / self._names.meta
        if not path.exists():
            return self.class_ids
        names = [_text(name) for name in _list(self._load(path), self._names.meta_key, path)]
        if sorted(names) != sorted(self.class_ids):
            raise _not_a_batch(path, "its classes are not the published ones")
        return tuple(names)

    def _read(self, file: str) -> _Batch:
        path = self.paths[file]
        batch = self._load(path)
        if self._names.label_key not in batch or "data" not in batch:
            raise _not_a_batch(path, f"its keys are {', '.join(sorted(batch)) or 'none'}"[:200])
        data = batch["data"]
        if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2:
            raise _not_a_batch(path, "its data are not rows of bytes")
        labels = _list(batch, self._names.label_key, path)
        names = [_text(name) for name in _list(batch, "filenames", path)] if "filenames" in batch else []
        if data.shape != (len(labels), _CHANNELS * SIDE * SIDE) or len(names) not in (0, len(labels)):
            raise _not_a_batch(path, f"{len(labels)} labels, {len(names)} names, data of shape {data.shape}")
        if not all(isinstance(label, int) and abs(label) < LARGEST_LABEL for label in labels):
            raise _not_a_batch(path, "a label is not a whole number")
        return _Batch(file, data, labels, names)

    def _load(self, path: Path) -> dict[str, Any]:
        if path.is_symlink():
            check_link(path, self.root)
        loaded = load_pickle(path)
        if not isinstance(loaded, dict):
            raise _not_a_batch(path, "it is not a dictionary")
        return {_text(key): value for key, value in loaded.items()}


def _list(batch: Mapping[str, Any], key: str, path: Path) -> Sequence[Any]:
    value = batch.get(key)
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return [int(number) for number in value]
    if not isinstance(value, list):
        raise _not_a_batch(path, f"{key!r} is not a list")
    return value


def _text(value: object) -> str:
    """Return a name; in copies written by Python 3 names are bytes."""
    if isinstance(value, bytes):
        return value[:LONGEST_NAME].decode("latin-1")
    return value[:LONGEST_NAME] if isinstance(value, str) else f"({type(value).__name__})"


def _not_a_batch(path: Path, why: str) -> SourceError:
    return SourceError(f"not a batch of CIFAR: {why}", where=str(path), hint="fetch the dataset again")
