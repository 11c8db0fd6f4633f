"""What an entry of the leaderboard says of its results: ``entry.json`` beside the tables.

Who submitted it, and how it is repeated, is the word of its author. Everything else is read from the results
and the benchmark by `facts_of`, when it is written as when it is checked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from wordnet_splits.errors import UnknownNameError
from wordnet_splits.fields import BenchmarkName, Count, Name, Role, Sha256
from wordnet_splits.manifest import Manifest, load_manifest
from wordnet_splits.manifest.fingerprint import of_rows
from wordnet_splits.sealed import read_sealed
from wordnet_splits.untrusted import sha256_of

from ..evaluation.about import About, AboutPart
from ..evaluation.results import ABOUT, LARGEST_FILE, Results

ENTRY: Final = "entry.json"
SEEN: Final = ("group", "source", "image_id", "class_id", "role", "label")
"""What the fingerprint of scored images covers, in the order in which they are sorted."""

Text = Annotated[str, Field(max_length=2000)]


class ScoredSet(AboutPart):
    """One test set.

    Attributes
    ----------
    scored, expected : its images, and how many the benchmark has; None where that is not known.
    seen : fingerprint of the images scored.
    listed : the benchmark's fingerprint of the set, None where the benchmark is not at hand.
    """

    group: Name
    role: Role
    scored: Count
    expected: Count | None
    seen: Sha256
    listed: Sha256 | None


class Network(AboutPart):
    """One run of a model, and the fingerprint of its weights."""

    model: Text
    model_key: Text


class Facts(AboutPart):
    """What the results and the benchmark say themselves.

    Attributes
    ----------
    about : SHA-256 of ``about.json``, which holds those of the tables.
    classes : the benchmark's fingerprint of its classes. images : of all its images; None while some await
        their source, or where the benchmark is not at hand.
    sets : every test set, by name, those that should have been scored and were not among them.
    """

    benchmark: BenchmarkName
    version: Count
    about: Sha256
    classes: Sha256 | None
    images: Sha256 | None
    sets: Annotated[tuple[ScoredSet, ...], Field(min_length=1)]
    networks: Annotated[tuple[Network, ...], Field(min_length=1)]
    detectors: Annotated[tuple[Text, ...], Field(min_length=1)]


class LeaderboardEntry(AboutPart):
    """``entry.json``.

    Attributes
    ----------
    name : of its folder. by : who submitted it. url : of a paper or of code. note : one sentence.
    commands : what was run, line by line.
    """

    schema_: Literal[1] = Field(alias="schema")
    name: Name
    by: Annotated[Text, Field(min_length=1)]
    url: Text = ""
    note: Text = ""
    commands: Annotated[tuple[Text, ...], Field(min_length=1)]
    facts: Facts


def read_entry(folder: str | Path) -> LeaderboardEntry:
    """Read the entry of a folder of results.

    Raises
    ------
    DataError : there is none, or it is malformed or was altered.
    """
    return read_sealed(Path(folder) / ENTRY, LeaderboardEntry, hint="submit the results again")


def facts_of(folder: str | Path) -> Facts:
    """Return what results and their benchmark say of themselves.

    Raises
    ------
    DataError : the results cannot be read, or were altered.
    """
    results = Results.read(folder)
    manifest = _benchmark_of(results)
    about = results.about
    seen: dict[str, list[dict[str, Any]]] = {}
    for row in results.predictions.select(list(SEEN)).group_by(list(SEEN)).aggregate([]).to_pylist():
        seen.setdefault(row["group"], []).append(row)
    roles = {row.group: row.role for row in about.missing} | {
        group: rows[0]["role"] for group, rows in seen.items()
    }
    sets = []
    for group in sorted(roles):
        rows = sorted(seen.get(group, []), key=lambda row: [str(row[name]) for name in SEEN])
        sets.append(
            ScoredSet.model_validate(
                {
                    "group": group,
                    "role": roles[group],
                    "scored": len(rows),
                    "expected": _expected(manifest, about, group, len(rows)),
                    "seen": of_rows(rows),
                    "listed": _listed(manifest, group),
                }
            )
        )
    return Facts(
        benchmark=about.benchmark,
        version=about.version,
        about=sha256_of(Path(folder) / ABOUT, largest=LARGEST_FILE),
        classes=None if manifest is None else manifest.data.fingerprints.classes,
        images=about.images_fingerprint,
        sets=tuple(sets),
        networks=tuple(Network(model=run.model, model_key=run.model_key) for run in about.runs),
        detectors=results.detectors,
    )


def _benchmark_of(results: Results) -> Manifest | None:
    """Return the benchmark of results in the version that they name, None where it is not at hand."""
    try:
        manifest = load_manifest(results.about.benchmark)
    except UnknownNameError:
        return None
    return manifest if manifest.version == results.about.version else None


def _expected(manifest: Manifest | None, about: About, group: str, scored: int) -> int | None:
    """Return how many images the benchmark has; without it results know of those they lack."""
    if manifest is not None:
        rows = [row for row in manifest.groups if (row.split, row.group) == ("test", group)]
        return rows[0].expected if rows else None
    return next((row.expected for row in about.missing if row.group == group), scored)


def _listed(manifest: Manifest | None, group: str) -> str | None:
    if manifest is None or ("test", group) not in manifest.parts:
        return None
    return manifest.images_fingerprint(("test", group))
