"""Comparison of the frozen values of two manifests: fingerprints and digests, without reading the tables."""

from __future__ import annotations

from collections.abc import Iterator

from wordnet_splits.benchmark.manifest.metadata import ManifestData

EVALUATION = "the transforms, normalisation, roles or views of its evaluation"
_IN_ALL = ("all images", "all pixels")


def changed_values(before: ManifestData, after: ManifestData) -> list[str]:
    """Return the frozen values of ``before`` that ``after`` changes under the same version.

    Nulls may be filled.
    """
    if before.version != after.version:
        return []
    new = dict(_frozen(after))
    return [subject for subject, value in _frozen(before) if value is not None and new.get(subject) != value]


def contradictions(before: ManifestData, after: ManifestData) -> list[str]:
    """Return the `changed_values` that ``after`` has another value for.

    Unknown and missing images are skipped. Another draw (``NAME@seed=N``, ``NAME@local``) has other classes
    and images: only the other inputs of an evaluation are compared.
    """
    values = dict(_frozen(after))
    changed = [subject for subject in changed_values(before, after) if values.get(subject) is not None]
    if after.name != before.name:
        return [subject for subject in changed if subject == EVALUATION]
    if after.missing:
        short = {(row.split, row.group) for row in after.groups if row.status.startswith("missing")}
        passed = {subject for part in short for subject in _of_part(*part)} | set(_IN_ALL)
        return [subject for subject in changed if subject not in passed]
    return changed


def _of_part(split: str, group: str) -> tuple[str, str]:
    return f"the images of {split}/{group}", f"the pixels of {split}/{group}"


def _frozen(data: ManifestData) -> Iterator[tuple[str, str | None]]:
    stored = data.fingerprints
    yield "its classes", stored.classes
    yield EVALUATION, stored.evaluation
    for row in stored.images:
        yield from zip(_of_part(row.split, row.group), (row.images, row.pixels), strict=True)
    yield from zip(_IN_ALL, (stored.images_in_all, stored.pixels_in_all), strict=True)
    for source in stored.sources:
        yield f"the declaration of {source.name}", source.declaration
        yield f"the catalog of {source.name}", source.catalog
        yield f"the inventory of {source.name}", source.inventory
    if stored.hierarchy is not None:
        yield "the edges of its hierarchy", stored.hierarchy.tree
        yield "the names of its hierarchy's nodes", stored.hierarchy.nodes
    for table in stored.pair_tables:
        yield f"the table {table.name}", table.sha256
