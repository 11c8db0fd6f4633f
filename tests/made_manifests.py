"""Manifests that no recipe made: what is not said of them is filled in, so that they fit the schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from wordnet_splits.benchmark.manifest import Manifest, Part
from wordnet_splits.benchmark.manifest.metadata import SCHEMA, check_data
from wordnet_splits.benchmark.manifest.tables import CLASS_SCHEMA, evaluation_fingerprint, images_fingerprint


def made_manifest(
    rows: Iterable[Mapping[str, Any]],
    parts: Mapping[Part, Callable[[], pa.Table]],
    *,
    classes: pa.Table | None = None,
    name: str = "made",
    fingerprint: str = "f" * 64,
) -> Manifest:
    """Return a manifest of group rows (group, role and split are needed) and their tables."""
    about = {"source": "made", "view": "raw", "published": None, "expected": None, "note": ""}
    about |= {"reason": "", "population": None}
    counts = {part: read().num_rows for part, read in parts.items()}
    groups = [
        {**about, "status": "complete", "actual": counts.get((row["split"], row["group"])), **row}
        for row in rows
    ]
    awaiting = sorted({row["source"] for row in groups if row["status"].startswith("awaiting")})
    in_all = None if awaiting else fingerprint
    data = {
        "schema": SCHEMA,
        "name": name,
        "version": 3,
        "recipe": {"name": name},
        "seed": 0,
        "taxonomy": {"name": "WordNet", "version": "3.0", "hierarchy": "wordnet"},
        "groups": groups,
        "fingerprint": in_all,
        "fingerprints": {
            "classes": "0" * 64,
            "explanation": "0" * 64,
            "evaluation": evaluation_fingerprint({"name": name}, groups),
            "images": [
                {"split": split, "group": group, **vars(images_fingerprint([read()]))}
                for (split, group), read in parts.items()
            ],
            "images_in_all": in_all,
            "pixels_in_all": None,
        },
        "leaks": [],
        "complete": not awaiting,
        "missing": [],
        "awaiting": awaiting,
        "provenance": {},
    }
    return Manifest(check_data(data, name), classes or CLASS_SCHEMA.empty_table(), dict(parts))


def altered(manifest: Manifest, **changes: Any) -> Manifest:
    """Return a manifest with other values of some top-level fields of ``manifest.json``."""
    data = check_data({**manifest.data.as_dict(), **changes}, manifest.name)
    parts = {(row.split, row.group) for row in data.fingerprints.images}
    kept = {part: read for part, read in manifest.parts.items() if part in parts}
    return Manifest(data, manifest.classes, dict(kept), manifest.folder)
