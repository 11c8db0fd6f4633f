"""Assembly of a manifest from classes and images: tables, leaks, fingerprints, counts."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import Problem
from wordnet_splits.base.names import counted
from wordnet_splits.benchmark.construct.classes import (
    Labels,
    Membership,
    labels_of,
    leak_evidence,
    without_collection,
)
from wordnet_splits.benchmark.construct.leak_kinds import (
    Leak,
    check_once,
    digest_leaks,
    drop_identical,
    drop_near_duplicates,
    near_duplicate_leaks,
    near_duplicate_pairs,
    set_severities,
)
from wordnet_splits.benchmark.construct.selection import Selection
from wordnet_splits.benchmark.hierarchies import taxonomy_row
from wordnet_splits.benchmark.manifest import Manifest, Part
from wordnet_splits.benchmark.manifest.carried import hierarchy_row, pair_table_rows, source_rows
from wordnet_splits.benchmark.manifest.metadata import SCHEMA, check_data
from wordnet_splits.benchmark.manifest.nearness import NEARNESS, inversions, nearness_clauses
from wordnet_splits.benchmark.manifest.tables import (
    SPLITS,
    class_table,
    classes_fingerprint,
    evaluation_fingerprint,
    explanation_fingerprint,
    image_table,
    part_fingerprints,
)
from wordnet_splits.benchmark.recipe import Group, Recipe
from wordnet_splits.benchmark.rules import Key, Verdict, sentence
from wordnet_splits.datasets.catalog import CatalogClass, load_catalog
from wordnet_splits.datasets.catalog.declarations import Sources
from wordnet_splits.wordnet.similarity import pairs as similarity
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
    evaluation = evaluation_fingerprint(declared, groups)
    hierarchy = recipe.own_hierarchy
    carried = {
        "sources": [row.model_dump() for row in source_rows(declarations)],
        "pair_tables": [row.model_dump() for row in pair_table_rows(pair_tables)],
        "hierarchy": hierarchy_row(hierarchy),
    }
    data = {
        "schema": SCHEMA,
        "name": name,
        "version": recipe.version,
        "recipe": declared,
        "about": recipe.about,
        "seed": seed,
        "taxonomy": taxonomy_row(recipe, taxonomy),
        "groups": groups,
        **_fingerprints(classes, tables, carried, evaluation, whole=not awaiting),
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
    parts: dict[Part, Callable[[], pa.Table]] = {part: partial(table.slice) for part, table in tables.items()}
    checked = check_data(data, recipe.name)
    manifest = Manifest(checked, classes, parts, None, declarations, pair_tables, hierarchy)
    return manifest, leaks


def _inverted(classes: pa.Table) -> dict[str, str]:
    """Return a sentence for each far group with classes nearer to ID than the median near class."""
    columns = classes.select(["source", "group", "class_id", "role", NEARNESS])
    sentences: dict[str, list[str]] = {}
    for inversion in inversions(columns.to_pylist()):
        sentences.setdefault(inversion.far, []).append(inversion.sentence())
    return {group: "; ".join(clauses) for group, clauses in sentences.items()}


def _fingerprints(
    classes: pa.Table,
    tables: Mapping[Part, pa.Table],
    carried: Mapping[str, Any],
    evaluation: str,
    *,
    whole: bool,
) -> dict[str, Any]:
    of_parts, of_all = part_fingerprints(tables.values())
    in_all = of_all.images if whole else None
    rows = [
        {"split": split, "group": group, **vars(prints)}
        for (split, group), prints in zip(tables, of_parts, strict=True)
    ]
    prints = {
        "classes": classes_fingerprint(classes),
        "explanation": explanation_fingerprint(classes),
        "evaluation": evaluation,
        "images": rows,
        "images_in_all": in_all,
        "pixels_in_all": of_all.pixels if whole else None,
        **carried,
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
    rows: list[dict[str, Any]] = []
    for group in recipe.group:
        common = {"group": group.name, "role": group.role, "source": group.source, "view": group.view}
        common["note"] = group.note
        count = len(membership.groups[group.name])
        of_classes: dict[str, Any] = {
            "published": group.published.get("classes"),
            "expected": count,
            "actual": count,
        }
        of_classes |= {"reason": inverted.get(group.name, ""), "population": None}
        rows.append({**common, "split": "classes", "status": "complete", **of_classes})
        for split in SPLITS:
            if (selection := at.get((group.name, split))) is None:
                continue
            awaiting, status = selection.awaiting, "complete"
            if awaiting is not None:
                status = f"awaiting {awaiting.source}"
            elif selection.count != selection.expected:
                status = f"missing {(selection.expected or 0) - selection.count:,}"
            row = {**common, "split": split, "status": status, "published": group.published.get(split)}
            row |= {"expected": selection.expected, "actual": None if awaiting else selection.count}
            row["reason"] = awaiting.reason if awaiting else _left_out(selection)
            row["population"] = selection.population if selection.local else None
            rows.append(row)
    return rows


MEASURES = {"distance": "distance", "path": "path", "wup": "wup_wn", "lch": "lch", "mean": "mean"}
"""Similarity measure of each numeric distance column."""


NO_DISTANCE = dict.fromkeys(("own_wnid", "nearest_wnid", "nearest_id", "lcs", *MEASURES))
"""Distance columns of a class that has no synset."""


PAIRS = 512
"""Pairs of synsets compared at a time; memory grows with the square."""


@without_collection()
def build_class_table(
    membership: Membership, labels: Labels, taxonomy: Taxonomy, leaks: Mapping[Key, str] | None = None
) -> pa.Table:
    """Return the class table: every catalog class of every source of the recipe.

    ``leaks`` are clauses about the leaks of classes, to be added to their evidence.
    """
    leaks, datasets = leaks or {}, membership.recipe.datasets
    id_keys = [
        (g.source, c) for g in membership.recipe.groups_with_role("id") for c in membership.groups[g.name]
    ]
    rows: list[dict[str, Any]] = []
    keys: list[Key] = []
    classes: dict[Key, CatalogClass] = {}
    for group in membership.recipe.group:
        catalog = load_catalog(group.source, datasets)
        for class_id in membership.groups[group.name]:
            key = (group.source, class_id)
            keys.append(key)
            classes[key] = catalog[class_id]
            verdict = membership.verdicts[group.name, key]
            label = labels[key] if group.role in ("id", "csid") and key in labels else -1
            rows.append(_row(key, classes[key], group.role, group, label, verdict, membership))
    for source in membership.recipe.sources:
        for item in load_catalog(source, datasets):
            key = (source, item.class_id)
            if key in classes:
                continue
            keys.append(key)
            classes[key] = item
            refusals = [
                _row(key, item, "excluded", g, -1, v, membership) for g, v in membership.refusals.get(key, ())
            ]
            if key in membership.removed:
                group, reason = membership.removed[key]
                row = _row(key, item, "excluded", group, -1, Verdict(False, ()), membership)
                refusals.append(row | {"evidence": reason})
            rows.append(refusals[0] if len(refusals) == 1 else _joined(refusals))
    nearest = nearest_id_pairs(classes, id_keys, taxonomy, datasets)
    for key, row in zip(keys, rows, strict=True):
        row |= nearest.get(key, NO_DISTANCE)
    for key, row, clause in zip(keys, rows, nearness_clauses(rows, taxonomy), strict=True):
        row["evidence"] = f"{clause}; {row['evidence']}"
        leak = leaks.get(key)
        if leak is not None and row["role"] != "excluded":
            row["evidence"] = f"{row['evidence']}; {leak}"
    return class_table(rows)


def _joined(refusals: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Merge the rows of a class that several groups refused: all rules, sentences and evidence."""
    row = dict(refusals[-1])
    row["rule"] = "; ".join(dict.fromkeys(r["rule"] for r in refusals))
    row["evidence"] = "; ".join(r["evidence"] for r in refusals)
    row["via"] = [via for r in refusals for via in r["via"]]
    return row


def _row(
    key: Key,
    item: CatalogClass,
    role: str,
    group: Group,
    label: int,
    verdict: Verdict,
    membership: Membership,
) -> dict[str, Any]:
    context = membership.context
    assert context is not None
    return {
        "source": key[0],
        "class_id": key[1],
        "name": item.name,
        "wnids": item.wnids,
        "role": role,
        "group": "" if role == "excluded" else group.name,
        "label": label,
        "rule": membership.rules[group.name],
        "via": verdict.via,
        "evidence": sentence(verdict, source=key[0], class_id=key[1], group=group.name, context=context),
    }


def nearest_id_pairs(
    classes: Mapping[Key, CatalogClass], id_keys: Sequence[Key], taxonomy: Taxonomy, datasets: Sources
) -> dict[Key, dict[str, object]]:
    """Return the distance columns of each class that has a synset.

    The pair has the greatest ``mean`` of all synset pairs with an ID class other than
    itself, ties to the smaller (nearest_id, own_wnid, nearest_wnid).
    """
    catalogs = {source: load_catalog(source, datasets) for source, _ in id_keys}
    id_pairs = sorted({(c, wnid, source) for source, c in id_keys for wnid in catalogs[source][c].wnids})
    wnids = sorted({w for item in classes.values() for w in item.wnids})
    if not id_pairs or not wnids:
        return {}
    scores = similarity.similarity_matrix("mean", wnids, [wnid for _, wnid, _ in id_pairs], taxonomy)
    nearest_columns = scores.argmax(axis=1)  # ties: the first, which has the smallest class, then synset
    row_of = {w: n for n, w in enumerate(wnids)}
    columns_of: dict[Key, list[int]] = {}
    for column, (class_id, _, source) in enumerate(id_pairs):
        columns_of.setdefault((source, class_id), []).append(column)
    nearest_by_key: dict[Key, tuple[str, str, str]] = {}
    for key, item in classes.items():
        nearest = []
        for wnid in item.wnids:
            row, column = row_of[wnid], nearest_columns[row_of[wnid]]
            score = scores[row, column]
            if key in columns_of:
                others = scores[row].copy()
                others[columns_of[key]] = -1.0
                column = others.argmax()
                score = others[column]
            nearest.append((-score, id_pairs[column][0], wnid, id_pairs[column][1]))
        if nearest and min(nearest)[0] <= 0:
            nearest_by_key[key] = min(nearest)[1:]
    pairs = sorted({f[1:] for f in nearest_by_key.values()})
    compared: dict[tuple[str, str], dict[str, object]] = {}
    for start in range(0, len(pairs), PAIRS):
        compared |= _compare_pairs(pairs[start : start + PAIRS], taxonomy)
    return {
        key: {
            "own_wnid": class_wnid,
            "nearest_wnid": nearest,
            "nearest_id": nearest_id,
            **compared[class_wnid, nearest],
        }
        for key, (nearest_id, class_wnid, nearest) in nearest_by_key.items()
    }


def _compare_pairs(
    pairs: Sequence[tuple[str, str]], taxonomy: Taxonomy
) -> dict[tuple[str, str], dict[str, object]]:
    """Return the LCS and the measures of each pair of synsets, as of `similarity.compare_synsets`."""
    (rows, row), (columns, column) = (
        np.unique([pair[side] for pair in pairs], return_inverse=True) for side in (0, 1)
    )
    rows, columns, at = rows.tolist(), columns.tolist(), (row, column)
    matrices = similarity.similarity_matrices((*MEASURES.values(), "lcs"), rows, columns, taxonomy)
    values = {name: matrices[measure][at].tolist() for name, measure in MEASURES.items()}
    values["lcs"] = [taxonomy.wnid(node) for node in matrices["lcs"][at].tolist()]
    of_pairs = zip(*values.values(), strict=True)
    return {pair: dict(zip(values, row, strict=True)) for pair, row in zip(pairs, of_pairs, strict=True)}
