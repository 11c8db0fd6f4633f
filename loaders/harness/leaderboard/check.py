"""Check entries of the leaderboard: every metric recomputed, every fingerprint compared."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from wordnet_splits.base.errors import DataError, SplitsError, UnknownNameError
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.leaderboard import read_entry

from ..detectors.registry import get_spec
from ..evaluation.check import CheckedResults, Difference, check_results
from ..evaluation.results import ABOUT, Results
from ..evaluation.rows_from_scores import blocks
from .facts import facts_of, newest_version


@dataclass(frozen=True)
class CheckedEntries(Tabular):
    """The outcome of `check_entries`: that of each folder, by name."""

    folder: str
    entries: tuple[CheckedResults, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        return all(entry.ok for entry in self.entries)

    def rows(self) -> list[dict[str, Any]]:
        """Return one row an entry."""
        return [entry.as_dict() for entry in self.entries]

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as ``check-results --json`` prints it."""
        return {"ok": self.ok, "folder": self.folder, "entries": self.rows()}


def holds_entries(folder: Path) -> bool:
    """Say whether a folder holds folders of results, and is not itself one."""
    return not (folder / ABOUT).exists() and any(folder.glob(f"*/{ABOUT}"))


def check_entries(
    folder: str | Path, *, all_intervals: bool = False, progress: Progress | None = None
) -> CheckedEntries:
    """Recompute every entry below a folder, as `check_results` does, and its fingerprints from the scores.

    Raises
    ------
    DataError : there is no entry, or one is damaged.
    """
    places = sorted(place for place in Path(folder).glob("*/") if not place.name.startswith("."))
    if not places:
        raise DataError("no entries here", where=str(folder), hint="give a folder of folders with entry.json")
    entries = [check_entry(place, all_intervals=all_intervals, progress=progress) for place in places]
    copies = copied_scores(places)
    return CheckedEntries(
        str(folder),
        tuple(
            replace(entry, differences=(*entry.differences, *copies.get(place.name, ())))
            for place, entry in zip(places, entries, strict=True)
        ),
    )


def check_entry(
    folder: Path, *, all_intervals: bool = False, progress: Progress | None = None
) -> CheckedResults:
    """Recompute one entry: its results, and that ``entry.json`` is of them.

    Raises
    ------
    DataError : a table is absent or damaged.
    """
    checked = check_results(folder, all_intervals=all_intervals, progress=progress)
    try:
        return replace(checked, differences=(*checked.differences, *_differences(folder)))
    except SplitsError as error:  # no fingerprints, no row
        refused = Difference("entry", folder.name, "", error.what, "an entry that names its fingerprints")
        return replace(checked, differences=(*checked.differences, refused))


def _differences(folder: Path) -> list[Difference]:
    entry = read_entry(folder)
    held, due = entry.facts.model_dump(), facts_of(folder).model_dump()
    pairs = [("name", entry.name, folder.name), *((key, held[key], due[key]) for key in due)]
    newest = newest_version(entry.facts.benchmark)
    if newest is not None and entry.facts.version > newest:
        pairs.append(("version", entry.facts.version, newest))
    return [Difference("entry", folder.name, key, one, other) for key, one, other in pairs if one != other]


FEATURES_ALONE: Final = {"features", "labels"}
"""What detectors need that score two classifiers on one backbone alike."""


@dataclass(frozen=True)
class ScoredRun:
    """One run of an entry: its author, its model, and the digest of each detector's confidences."""

    entry: str
    by: str
    benchmark: str
    model_key: str
    run: int
    digests: Mapping[str, str]

    def is_copy_of(self, another: ScoredRun) -> bool:
        """Return whether another author's or model's run has the same scores by every detector of both."""
        if self.entry == another.entry or self.benchmark != another.benchmark:
            return False
        if (self.by, self.model_key) == (another.by, another.model_key):
            return False
        shared = self.digests.keys() & another.digests.keys()
        return bool(shared) and all(self.digests[name] == another.digests[name] for name in shared)


def copied_scores(entries: Sequence[Path]) -> dict[str, list[Difference]]:
    """Return the differences of each entry that has a run whose scores are also another author's or model's.

    Runs are compared by the detectors that use more than features. An entry that cannot be read is
    `check_entry`'s to name.
    """
    runs = [run for folder in entries for run in _runs(folder)]
    copies: dict[str, list[Difference]] = {}
    for run in runs:
        origins = sorted({another.entry for another in runs if run.is_copy_of(another)})
        if origins:
            stored = f"equal to those of {', '.join(origins)}"
            difference = Difference("entry", f"run {run.run}", "scores", stored, "scores of its own")
            copies.setdefault(run.entry, []).append(difference)
    return copies


def _runs(folder: Path) -> list[ScoredRun]:
    try:
        entry, results = read_entry(folder), Results.read(folder)
        digests: dict[int, dict[str, str]] = {}
        for (detector, run), table in blocks(results.scores, "scores"):
            confidences = np.sort(table["confidence"].to_numpy())
            if confidences[0] != confidences[-1] and not _of_features(detector):
                content = confidences.astype("<f4").tobytes()
                digests.setdefault(run, {})[detector] = hashlib.blake2b(content, digest_size=16).hexdigest()
    except SplitsError:
        return []
    about = results.about
    return [
        ScoredRun(folder.name, entry.by, about.benchmark, run.model_key, run.run, digests.get(run.run, {}))
        for run in about.runs
    ]


def _of_features(detector: str) -> bool:
    try:
        return set(get_spec(detector.partition("[")[0]).needs) <= FEATURES_ALONE
    except UnknownNameError:
        return False
