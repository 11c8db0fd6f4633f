"""Check entries of the leaderboard: every metric recomputed, every fingerprint compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import DataError, SplitsError
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.leaderboard import read_entry

from ..evaluation.check import CheckedResults, Difference, check_results
from ..evaluation.results import ABOUT
from .copies import copied_scores
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
