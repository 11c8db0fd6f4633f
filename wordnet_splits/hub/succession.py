"""Under one version a frozen value never changes: two ``manifest.json`` of one benchmark, compared."""

from __future__ import annotations

from collections.abc import Iterator

from wordnet_splits.manifest import ManifestData


def changed_values(before: ManifestData, after: ManifestData) -> list[str]:
    """Return what ``after`` says otherwise than ``before`` under the same version; nulls may be filled."""
    if before.version != after.version:
        return []
    new = dict(_frozen(after))
    return [what for what, value in _frozen(before) if value is not None and new.get(what) != value]


def _frozen(data: ManifestData) -> Iterator[tuple[str, str | None]]:
    stored = data.fingerprints
    yield "its classes", stored.classes
    for row in stored.images:
        yield f"the images of {row.split}/{row.group}", row.images
        yield f"the pixels of {row.split}/{row.group}", row.pixels
    yield "all images", stored.images_in_all
    yield "all pixels", stored.pixels_in_all
