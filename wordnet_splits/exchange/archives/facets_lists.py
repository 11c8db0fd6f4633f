"""The lists of the authors' dataset of Recalcati et al.: lines ``OODNESS SET NUMBER PATH``.

Whether a class is ID is said line by line. T1 and T2 cut one score at two places, so that only their lists
together say which group a class belongs to; ``data/exchange/facets.toml`` says how.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import printable
from wordnet_splits.base.text_formats import read_toml
from wordnet_splits.base.untrusted import read_text
from wordnet_splits.exchange.entries import LARGEST, ListEntry, label_of
from wordnet_splits.exchange.resolve import class_of

TABLE: Final = Path(__file__).parent.parent.parent / "data" / "exchange" / "facets.toml"
SPLITS: Final = ("val", "test")
FOLDER: Final = "FACETS OOD Detection"
HINT: Final = "give the folder of GrainsPolito/FACETS_Datasets, or its folder FACETS OOD Detection"


@dataclass(frozen=True)
class FacetsSet:
    """A set of images: our source, how its ids look, and its groups by OODness in T1 and T2."""

    source: str
    id: str
    groups: Mapping[str, str]


@dataclass(frozen=True)
class FacetsList:
    """The two files of a benchmark below the dataset's folder, and our benchmark in its place."""

    name: str
    like: str
    val: str
    test: str

    def path(self, base: Path, split: str) -> Path:
        """Return where the list of a split lies."""
        return base / (self.val if split == "val" else self.test)


@cache
def facets_lists() -> tuple[FacetsList, ...]:
    """Return the benchmarks of the dataset, T1 first."""
    return tuple(FacetsList(name, **row) for name, row in _table()["lists"].items())


@cache
def facets_sets() -> Mapping[str, FacetsSet]:
    """Return the sets by name."""
    return {name: FacetsSet(**row) for name, row in _table()["sets"].items()}


def counterparts() -> Mapping[str, str]:
    """Return the groups of the rule-made counterpart whose classes are in a group of another name here."""
    groups: dict[str, str] = _table()["counterparts"]
    return groups


def _table() -> Any:
    return read_toml(TABLE)


def read_facets(path: Path) -> dict[str, list[ListEntry]]:
    """Return the lines of every benchmark: group, source, and class and image id where it is one of ours.

    A line whose path names no image of ours has only that path, and its set for a group.

    Raises
    ------
    DataError : not the dataset, a line that cannot be, or lines that contradict each other.
    """
    base = _base(path)
    judged = _Judged()
    entries_by_benchmark = {
        benchmark.name: [
            entry
            for split in SPLITS
            for entry in _lines(benchmark.path(base, split), split, benchmark.name, judged)
        ]
        for benchmark in facets_lists()
    }
    groups = judged.groups()
    return {
        name: [
            entry._replace(group=groups[entry.group, entry.class_id]) if entry.class_id else entry
            for entry in entries
        ]
        for name, entries in entries_by_benchmark.items()
    }


def _base(path: Path) -> Path:
    if not path.is_dir():
        reason = "is no folder" if path.exists() else "no such folder"
        raise DataError(reason, where=printable(path), hint=HINT)
    list_files = [benchmark.path(Path(), split) for benchmark in facets_lists() for split in SPLITS]
    base = next((b for b in (path, path / FOLDER) if any((b / file).exists() for file in list_files)), None)
    if base is None:
        raise DataError(f"holds no list such as {FOLDER}/{list_files[0]}", where=printable(path), hint=HINT)
    for file in list_files:
        if not (base / file).exists():
            reason = f"no file {file}, and only T1 and T2 together tell a score of 2 from one of 3"
            raise DataError(reason, where=printable(base), hint=HINT)
    return base


class _Judged:
    """What the lines say of classes: the OODness in each benchmark, and the number in the set's own order."""

    def __init__(self) -> None:
        self._ood: dict[tuple[str, str], dict[str, str]] = {}
        self._classes: dict[tuple[str, str], str] = {}
        self._numbers: dict[tuple[str, str], str] = {}

    def add(self, benchmark: str, of_set: str, class_id: str, ood: str, number: str, where: str) -> None:
        """Note a line; DataError where it contradicts an earlier one."""
        earlier = self._ood.setdefault((of_set, class_id), {}).setdefault(benchmark, ood)
        if earlier != ood:
            raise DataError(f"class {class_id} of {of_set} is both ID and OOD in {benchmark}", where=where)
        if self._classes.setdefault((of_set, number), class_id) != class_id:
            earlier_value = self._classes[of_set, number]
            raise DataError(f"class {number} of {of_set} is {earlier_value} and {class_id}", where=where)
        if self._numbers.setdefault((of_set, class_id), number) != number:
            earlier_value = self._numbers[of_set, class_id]
            raise DataError(
                f"class {class_id} of {of_set} has the numbers {earlier_value} and {number}", where=where
            )

    def groups(self) -> dict[tuple[str, str | None], str]:
        """Return the group of each class of a set; DataError where T1 and T2 do not go together."""
        names = [benchmark.name for benchmark in facets_lists()]
        groups: dict[tuple[str, str | None], str] = {}
        for (of_set, class_id), oodness in self._ood.items():
            if missing := [name for name in names if name not in oodness]:
                present = " and ".join(name for name in names if name in oodness)
                reason = f"class {class_id} of {of_set} is in the lists of {present} and not of {missing[0]}"
                raise DataError(reason, hint="one of the files is not whole: fetch the dataset again")
            group = facets_sets()[of_set].groups.get("".join(oodness[name] for name in names))
            if group is None:
                words = (f"{'OOD' if oodness[name] == '1' else 'ID'} in {name}" for name in names)
                raise DataError(f"class {class_id} of {of_set} cannot be {' and '.join(words)}")
            groups[of_set, class_id] = group
        return groups


def _lines(file: Path, split: str, benchmark: str, judged: _Judged) -> Iterator[ListEntry]:
    text, shown = read_text(file, largest=LARGEST), printable(file)
    if not text.strip():
        raise DataError("is empty", where=shown, hint="fetch the dataset again")
    sets = facets_sets()
    for number, line in enumerate(text.splitlines(), 1):
        cells, where = line.split(), f"{shown}, line {number}"
        if not cells:
            continue
        if len(cells) != 4:
            reason = f"{len(cells)} words, not OODNESS SET NUMBER PATH"
            raise DataError(
                reason, where=where, hint="one of the files is not whole: fetch the dataset again"
            )
        ood, of_set, index, path = cells
        if ood not in ("0", "1"):
            raise DataError(f"OODness {printable(ood)!r} is neither 0 nor 1", where=where)
        if of_set not in sets:
            raise DataError(f"{printable(of_set)!r} is none of the sets {', '.join(sets)}", where=where)
        class_id, image_id = _image(sets[of_set], path)
        entry = ListEntry(split, sys.intern(of_set), path)
        if class_id is not None:
            judged.add(benchmark, of_set, class_id, ood, str(label_of(index, where)), where)
            entry = entry._replace(source=sets[of_set].source, class_id=class_id, image_id=image_id)
        yield entry


def _image(of_set: FacetsSet, path: str) -> tuple[str | None, str | None]:
    """Return class and image id of a path, which may begin anywhere above the class's folder."""
    parts = path.rpartition(".")[0].split("/")
    for start in range(len(parts)):
        image_id = "/".join(parts[start:])
        if re.fullmatch(of_set.id, image_id) and (class_id := class_of(of_set.source, image_id)):
            return class_id, image_id
    return None, None
