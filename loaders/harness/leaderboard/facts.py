"""The facts of an entry of the leaderboard, from its results and their benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from wordnet_splits.base.errors import UnknownNameError
from wordnet_splits.base.schemas import validate
from wordnet_splits.base.untrusted import sha256_of
from wordnet_splits.finding import load_manifest
from wordnet_splits.leaderboard import Facts, read_entry
from wordnet_splits.manifest import Manifest
from wordnet_splits.manifest.fingerprint import of_rows

from ..evaluation.results import ABOUT, MAX_FILE_SIZE, Results
from ..evaluation.schema import About

IMAGE_COLUMNS: Final = ("group", "source", "image_id", "class_id", "role", "label")
"""Columns of the fingerprint of scored images, in sorting order."""


def facts_of(folder: str | Path) -> Facts:
    """Return the facts of results and their benchmark.

    Raises
    ------
    DataError : the results cannot be read, were altered, or have names that an entry may not have; or the
        scores of images were left out and there is no ``entry.json`` that says which images were scored.
    """
    results = Results.read(folder)
    manifest = _benchmark_of(results)
    about = results.about
    facts = {
        "benchmark": about.benchmark,
        "version": about.version,
        "about": sha256_of(Path(folder) / ABOUT, largest=MAX_FILE_SIZE),
        "classes": None if manifest is None else manifest.data.fingerprints.classes,
        "images": about.images_fingerprint,
        "evaluation": about.evaluation_fingerprint,
        "sources": about.sources_fingerprint,
        "sets": _scored_sets(results, manifest) if results.has_scores else _recorded_sets(Path(folder)),
        "networks": [{"model": run.model, "model_key": run.model_key} for run in about.runs],
        "detectors": results.detectors,
    }
    return validate(Facts, facts, where=f"facts of {folder}")


def _recorded_sets(folder: Path) -> list[dict[str, Any]]:
    """Return the sets that ``entry.json`` records, for an entry that keeps its tables without scores."""
    return [row.model_dump() for row in read_entry(folder).facts.sets]


def _scored_sets(results: Results, manifest: Manifest | None) -> list[dict[str, Any]]:
    about, columns = results.about, list(IMAGE_COLUMNS)
    images: dict[str, list[dict[str, Any]]] = {}
    for row in results.predictions.select(columns).group_by(columns).aggregate([]).to_pylist():
        images.setdefault(row["group"], []).append(row)
    roles = {row.group: row.role for row in about.missing}
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
                "seen": of_rows(rows),
                "listed": _listed(manifest, group),
            }
        )
    return sets


def newest_version(benchmark: str) -> int | None:
    """Return the newest version of a benchmark, None where the benchmark is not at hand."""
    try:
        return load_manifest(benchmark).version
    except UnknownNameError:
        return None


def _benchmark_of(results: Results) -> Manifest | None:
    """Return the benchmark of results in the version that they name, None where it is not at hand."""
    try:
        manifest = load_manifest(results.about.benchmark)
    except UnknownNameError:
        return None
    return manifest if manifest.version == results.about.version else None


def _expected(manifest: Manifest | None, about: About, group: str, scored: int) -> int | None:
    """Return how many images the benchmark has; without it, as far as the results record missing ones."""
    if manifest is not None:
        rows = [row for row in manifest.groups if (row.split, row.group) == ("test", group)]
        return rows[0].expected if rows else None
    return next((row.expected for row in about.missing if row.group == group), scored)


def _listed(manifest: Manifest | None, group: str) -> str | None:
    if manifest is None or ("test", group) not in manifest.parts:
        return None
    return manifest.images_fingerprint(("test", group))
