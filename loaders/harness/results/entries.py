"""Entries of a leaderboard: the fingerprints of their results and benchmarks, and their check."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from wordnet_splits.base.errors import DataError, SplitsError, UnknownNameError
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.base.text_formats import validate, write_sealed
from wordnet_splits.base.untrusted import sha256_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.tables import rows_fingerprint
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.hub.entries import ENTRY, Facts, read_entry

from .check import CheckedResults, Difference, check_results
from .metadata import ResultsMetadata
from .results import ABOUT, MAX_FILE_SIZE, Results

IMAGE_COLUMNS: Final = ("group", "source", "image_id", "class_id", "role", "label")
"""Columns of the fingerprint of scored images, in sorting order."""


def facts_of(folder: str | Path) -> Facts:
    """Return the facts of results and their benchmark.

    Raises
    ------
    DataError : the results cannot be read, were altered, or have names that an entry may not have; or image
        scores were left out and the ``entry.json`` with the list of scored images is missing.
    """
    results = Results.read(folder)
    about, manifest = results.about, _newest(results.about.benchmark)
    if manifest is not None and manifest.version != about.version:
        manifest = None
    facts = {
        "benchmark": about.benchmark,
        "version": about.version,
        "about": sha256_of(Path(folder) / ABOUT, largest=MAX_FILE_SIZE),
        "classes": None if manifest is None else manifest.data.fingerprints.classes,
        "images": about.images_fingerprint,
        "evaluation": about.evaluation_fingerprint,
        "sources": about.sources_fingerprint,
        "sets": _scored_sets(results, manifest)
        if results.has_scores
        else [row.model_dump() for row in read_entry(Path(folder)).facts.sets],
        "networks": [{"model": run.model, "model_key": run.model_key} for run in about.runs],
        "detectors": results.detectors,
    }
    return validate(Facts, facts, where=f"facts of {folder}")


def renew_entry(folder: str | Path) -> Path:
    """Rewrite ``entry.json`` of an entry with the facts of its present results."""
    entry = read_entry(Path(folder)).model_copy(update={"facts": facts_of(folder)})
    path = Path(folder) / ENTRY
    write_sealed(path, entry.model_dump(mode="json", by_alias=True))
    return path


def _scored_sets(results: Results, manifest: Manifest | None) -> list[dict[str, Any]]:
    about, columns = results.about, list(IMAGE_COLUMNS)
    images: dict[str, list[dict[str, Any]]] = {}
    for row in results.scores.select(columns).to_pylist():
        images.setdefault(row["group"], []).append(row)
    roles = {row.group: row.role for row in about.missing}  # of ID, near and far sets
    if manifest is not None:
        roles |= {g.group: g.role for g in manifest.groups if (g.split, g.role) == ("test", "csid")}
    roles |= {group: rows[0]["role"] for group, rows in images.items()}
    sets = []
    for group in sorted(roles):
        rows = sorted(images.get(group, []), key=lambda row: [str(row[name]) for name in columns])
        sets.append(
            {
                "group": group,
                "role": roles[group],
                "scored": len(rows),
                "expected": _expected(manifest, about, group, len(rows)),
                "seen": rows_fingerprint(rows),
                "listed": None
                if manifest is None or ("test", group) not in manifest.parts
                else manifest.images_fingerprint(("test", group)),
            }
        )
    return sets


def _newest(benchmark: str) -> Manifest | None:
    """Return the newest version of a benchmark, None if the benchmark is not available."""
    try:
        return load_manifest(benchmark)
    except UnknownNameError:
        return None


def _expected(manifest: Manifest | None, about: ResultsMetadata, group: str, scored: int) -> int | None:
    """Return how many images the benchmark has; without it, as far as the results record missing ones."""
    if manifest is not None:
        rows = [row for row in manifest.groups if (row.split, row.group) == ("test", group)]
        return rows[0].expected if rows else None
    return next((row.expected for row in about.missing if row.group == group), scored)


@dataclass(frozen=True)
class CheckedEntries(Tabular):
    """The outcome of `check_entries`, sorted by the name of the entry's folder."""

    folder: str
    entries: tuple[CheckedResults, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing differs."""
        return all(entry.ok for entry in self.entries)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each entry."""
        return [entry.as_dict() for entry in self.entries]

    def as_dict(self) -> dict[str, Any]:
        """Return the outcome as ``recompute --check --json`` prints it."""
        return {"ok": self.ok, "folder": self.folder, "entries": self.rows()}


def holds_entries(folder: Path) -> bool:
    """Return whether a folder holds folders of results, and is not itself one."""
    return not (folder / ABOUT).exists() and any(folder.glob(f"*/{ABOUT}"))


def check_entries(
    folder: str | Path,
    *,
    share: tuple[int, int] = (1, 1),
    all_intervals: bool = False,
    progress: Progress | bool | None = None,
) -> CheckedEntries:
    """Recompute every entry below a folder, as `check_results` does, and its fingerprints from the scores.

    Parameters
    ----------
    share : (i, n), to check the i-th of n shares alone: every n-th entry.

    Raises
    ------
    DataError : the folder has zero entries, or an entry is damaged.
    """
    folders = sorted(path for path in Path(folder).glob("*/") if not path.name.startswith("."))
    if not folders:
        raise DataError("no entries here", where=str(folder), hint="give a folder of folders with entry.json")
    index, shares = share
    checked = folders[index - 1 :: shares]
    if not checked:
        raise DataError(f"share {index} of {shares} holds none of {len(folders)} entries", where=str(folder))
    entries = [check_entry(path, all_intervals=all_intervals, progress=progress) for path in checked]
    return CheckedEntries(str(folder), tuple(entries))


def check_entry(
    folder: Path, *, all_intervals: bool = False, progress: Progress | bool | None = None
) -> CheckedResults:
    """Recompute an entry and the facts in its ``entry.json``; DataError for an absent or damaged table."""
    checked = check_results(folder, all_intervals=all_intervals, progress=progress)
    try:
        differences = _fact_differences(folder)
    except SplitsError as error:  # no fingerprints, no row
        expected = "an entry that names its fingerprints"
        differences = [Difference("entry", folder.name, "", error.what, expected)]
    return replace(checked, differences=(*checked.differences, *differences))


def _fact_differences(folder: Path) -> list[Difference]:
    entry = read_entry(folder)
    stored, expected = entry.facts.model_dump(), facts_of(folder).model_dump()
    pairs = [("name", entry.name, folder.name), *((key, stored[key], expected[key]) for key in expected)]
    newest = _newest(entry.facts.benchmark)
    if newest is not None and entry.facts.version > newest.version:
        pairs.append(("version", entry.facts.version, newest.version))
    return [Difference("entry", folder.name, key, a, b) for key, a, b in pairs if a != b]
