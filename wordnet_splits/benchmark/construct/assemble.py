"""Assembly of a manifest from classes and images: tables, leaks, fingerprints, counts."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from wordnet_splits.base.errors import Problem
from wordnet_splits.base.names import counted
from wordnet_splits.benchmark.construct.classes import Labels, Membership, build_class_table, labels_of
from wordnet_splits.benchmark.construct.copies import (
    check_once,
    digest_leaks,
    drop_identical,
    drop_near_duplicates,
    near_duplicate_leaks,
    near_duplicate_pairs,
)
from wordnet_splits.benchmark.construct.leak_kinds import Leak, leak_evidence, set_severities
from wordnet_splits.benchmark.construct.selection import Selection
from wordnet_splits.benchmark.manifest import Manifest, Part, fingerprint
from wordnet_splits.benchmark.manifest.carried import pair_table_rows, source_rows
from wordnet_splits.benchmark.manifest.metadata import SCHEMA, check_data
from wordnet_splits.benchmark.manifest.tables import NEARNESS, SPLITS, image_table, inversions
from wordnet_splits.benchmark.recipe import Recipe
from wordnet_splits.datasets.catalog.declarations import Declaration
from wordnet_splits.wordnet.taxonomy import Taxonomy


def assemble(
    membership: Membership,
    leaks_of_classes: Sequence[Leak],
    selections: Sequence[Selection],
    taxonomy: Taxonomy,
    *,
    seed: int,
    missing: Sequence[Problem] = (),
    resampled: bool = False,
    strict: bool = True,
) -> tuple[Manifest, list[Leak]]:
    """Return the manifest of the selected images, and its leaks.

    Parameters
    ----------
    missing : images that a root lacks; ``selections`` do not contain them.
    resampled : whether the seed is not the recipe's.
    strict : raise RecipeError for a leak that the recipe does not name.
    """
    recipe = membership.recipe
    near_duplicates = near_duplicate_pairs(recipe)
    if recipe.drop_leaks:
        drop_identical(selections)
        drop_near_duplicates(selections, near_duplicates)
    labels = labels_of(membership)
    ready = sorted(
        (s for s in selections if s.awaiting is None), key=lambda s: (s.split, s.group.role, s.group.name)
    )
    tables = {(s.split, s.group.name): _table(s, labels) for s in ready}
    check_once(list(tables.values()), recipe.name)
    leaks = [*leaks_of_classes, *digest_leaks(recipe, list(tables.values()))]
    leaks += near_duplicate_leaks(recipe, near_duplicates, list(tables.values()))
    undigested = {s.group.name for s in selections if s.awaiting is not None or len(s.digests) < s.count}
    set_severities(recipe, leaks, unknown_digests=undigested, strict=strict)
    of_leaks = leak_evidence(membership, leaks, taxonomy)
    classes = build_class_table(membership, labels, taxonomy, of_leaks)
    local = any(s.local for s in selections)
    name = recipe.name + (f"@seed={seed}" if resampled else "") + ("@local" if local else "")
    awaiting = sorted({s.awaiting.source for s in selections if s.awaiting is not None})
    declared_datasets = recipe.datasets.by_name
    declarations = {n: declared_datasets[n] for n in recipe.sources_named if n in declared_datasets}
    pair_tables = {n: recipe.table_path(n, recipe.name) for n in recipe.table_names}
    declared, groups = recipe.as_data(), group_rows(recipe, membership, selections, _inverted(classes))
    evaluation = fingerprint.of_evaluation(declared, groups)
    data = {
        "schema": SCHEMA,
        "name": name,
        "version": recipe.version,
        "recipe": declared,
        "about": recipe.about,
        "seed": seed,
        "taxonomy": {"name": "WordNet", "version": taxonomy.version, "hierarchy": recipe.hierarchy},
        "groups": groups,
        **_fingerprints(classes, tables, declarations, pair_tables, evaluation, whole=not awaiting),
        "leaks": [leak.as_dict() for leak in leaks],
        "complete": not missing and not awaiting,
        "missing": [p.as_dict() for p in missing],
        "awaiting": awaiting,
        "provenance": {
            "wordnet-splits": version("wordnet-splits"),
            "python": platform.python_version(),
            "pyarrow": pa.__version__,
        },
    }
    parts: dict[Part, Callable[[], pa.Table]] = {part: partial(_identity, t) for part, t in tables.items()}
    checked = check_data(data, recipe.name)
    return Manifest(checked, classes, parts, declarations=declarations, pair_tables=pair_tables), leaks


def _inverted(classes: pa.Table) -> dict[str, str]:
    """Return a sentence for each far group with classes nearer to ID than the median near class."""
    columns = classes.select(["source", "group", "class_id", "role", NEARNESS])
    sentences: dict[str, list[str]] = {}
    for inversion in inversions(columns.to_pylist()):
        sentences.setdefault(inversion.far, []).append(inversion.sentence())
    return {group: "; ".join(clauses) for group, clauses in sentences.items()}


def _identity(table: pa.Table) -> pa.Table:
    return table


def _fingerprints(
    classes: pa.Table,
    tables: Mapping[Part, pa.Table],
    declarations: Mapping[str, Declaration],
    pair_tables: Mapping[str, Path],
    evaluation: str,
    *,
    whole: bool,
) -> dict[str, Any]:
    of_parts, of_all = fingerprint.of_parts(tables.values())
    in_all = of_all.images if whole else None
    rows = [
        {"split": split, "group": group, **vars(prints)}
        for (split, group), prints in zip(tables, of_parts, strict=True)
    ]
    prints = {
        "classes": fingerprint.of_classes(classes),
        "explanation": fingerprint.of_explanation(classes),
        "evaluation": evaluation,
        "images": rows,
        "images_in_all": in_all,
        "pixels_in_all": of_all.pixels if whole else None,
        "sources": [row.model_dump() for row in source_rows(declarations)],
        "pair_tables": [row.model_dump() for row in pair_table_rows(pair_tables)],
    }
    return {"fingerprint": in_all, "fingerprints": prints}


def _table(selection: Selection, labels: Labels) -> pa.Table:
    group = selection.group
    labelled = group.role in ("id", "csid")
    return image_table(
        source=group.source,
        role=group.role,
        group=group.name,
        split=selection.split,
        view=group.view,
        labels={c: labels.get((group.source, c), -1) if labelled else -1 for c in selection.images},
        images=selection.images,
        digests=selection.digests,
    )


def _left_out(selection: Selection) -> str:
    """Return the number of images left out, with the reasons."""
    reasons = {
        "for showing a class of another role, or of none, besides": selection.mixed,
        "as another set, split or class holds the same picture": selection.copies,
    }
    return "; ".join(f"left out, {why}: {counted(n, 'image')}" for why, n in reasons.items() if n)


def group_rows(
    recipe: Recipe,
    membership: Membership,
    selections: Sequence[Selection],
    inverted: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Return a row for the classes and each split of every group: published, expected, actual, status.

    ``inverted`` has a sentence for each far group with classes nearer to ID than near ones.
    """
    at = {(s.group.name, s.split): s for s in selections}
    rows = []
    for group in recipe.group:
        common = {"group": group.name, "role": group.role, "source": group.source, "view": group.view}
        count = len(membership.groups[group.name])
        published = group.published.get("classes")
        rows.append(
            {**common, "split": "classes", "published": published, "expected": count, "actual": count}
            | {"status": "complete", "note": group.note, "reason": inverted.get(group.name, "")}
            | {"population": None}
        )
        for split in SPLITS:
            if (group.name, split) not in at:
                continue
            selection = at[group.name, split]
            awaiting = selection.awaiting
            actual = None if awaiting else selection.count
            short = actual is not None and actual != selection.expected
            status = (
                f"awaiting {awaiting.source}"
                if awaiting
                else f"missing {(selection.expected or 0) - (actual or 0):,}"
                if short
                else "complete"
            )
            row = {**common, "split": split, "published": group.published.get(split)}
            row |= {"expected": selection.expected, "actual": actual, "status": status, "note": group.note}
            row |= {
                "reason": awaiting.reason if awaiting else _left_out(selection),
                "population": selection.population if selection.local else None,
            }
            rows.append(row)
    return rows
