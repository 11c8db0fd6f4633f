"""The classes of a benchmark: their groups, with the evidence, and the class table with distances to ID.

Groups take classes in file order; a class is offered again only to groups with ``reuse``. A class of no group
is ``excluded`` and keeps the evidence of every rule that refused it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import RecipeError, SplitsError
from wordnet_splits.benchmark.manifest.tables import class_table, nearness_clauses
from wordnet_splits.benchmark.recipe import Group, Recipe
from wordnet_splits.benchmark.rules import Context, Key, Verdict, decide, sentence
from wordnet_splits.benchmark.rules.phrases import explain_refusals
from wordnet_splits.benchmark.rules.syntax import ids_listed, rule_text
from wordnet_splits.datasets.catalog import CatalogClass, load_catalog
from wordnet_splits.datasets.catalog.declarations import Sources
from wordnet_splits.datasets.catalog.inventory import find_list
from wordnet_splits.wordnet.similarity import pairs as similarity
from wordnet_splits.wordnet.taxonomy import Taxonomy


@dataclass
class Membership:
    """The classes of every group, with the verdicts of the rules.

    Attributes
    ----------
    groups : class ids of each group.
    verdicts : verdict on each accepted class, by (group, class).
    refusals : groups that refused a class, in file order, with their verdicts.
    removed : classes that ``drop_leaks`` removed, with their group and the reason.
    """

    recipe: Recipe
    groups: dict[str, list[str]] = field(default_factory=dict)
    verdicts: dict[tuple[str, Key], Verdict] = field(default_factory=dict)
    refusals: dict[Key, list[tuple[Group, Verdict]]] = field(default_factory=dict)
    removed: dict[Key, tuple[Group, str]] = field(default_factory=dict)
    context: Context | None = None

    @cached_property
    def rules(self) -> dict[str, str]:
        """The rule of each group in a single line."""
        return {g.name: rule_text(g.classes) for g in self.recipe.group}


@contextmanager
def _without_collection() -> Iterator[None]:
    """Pause the garbage collector: a class table makes half a million objects, and no cycles.

    Afterwards the new objects count as old ones, since a collection of half a million young objects takes
    longer than the pause saves.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@_without_collection()
def decide_membership(recipe: Recipe, seed: int, taxonomy: Taxonomy) -> Membership:
    """Decide the classes of each group.

    Raises
    ------
    RecipeError : a rule refers to a later group, a group is empty, or a draw is too large.
    """
    membership = Membership(recipe)
    find_catalog = partial(load_catalog, sources=recipe.datasets)
    context = Context(
        taxonomy=taxonomy,
        hierarchy=recipe.hierarchy,
        roles={g.name: g.role for g in recipe.group},
        draw=recipe.draw,
        seed=seed,
        catalog=find_catalog,
        published=partial(find_list, recipe_folder=recipe.folder),
    )
    membership.context = context
    taken_keys: set[Key] = set()
    for group in recipe.group:
        catalog = find_catalog(group.source)
        offered = [c.class_id for c in catalog if group.reuse or (group.source, c.class_id) not in taken_keys]
        try:
            verdicts = decide(group.classes, group.source, offered, context)
        except SplitsError as error:
            raise error.within(recipe.location(group.name)) from None
        accepted = [c for c in offered if verdicts[c].accepted]
        if not accepted:
            raise RecipeError(
                f"the rule takes no class at all: {explain_refusals(group.source, verdicts, context)}",
                where=recipe.location(group.name),
                hint="wider operands or bounds take more"
                if offered
                else "put the group before the one that takes its classes, or say reuse = true",
            )
        for class_id in sorted(ids_listed(group.classes) - {*offered}):
            if (group.source, class_id) in taken_keys:
                raise RecipeError(
                    f"class {class_id!r} is listed, but an earlier group has taken it",
                    where=recipe.location(group.name),
                    hint="take it out of the list, or say reuse = true",
                )
        membership.groups[group.name] = accepted
        for class_id, verdict in verdicts.items():
            key = (group.source, class_id)
            if verdict.accepted:
                membership.verdicts[group.name, key] = verdict
            else:
                membership.refusals.setdefault(key, []).append((group, verdict))
        context.groups[group.name] = [(group.source, c) for c in accepted]
        taken_keys.update(context.groups[group.name])
    return membership


MEASURES = {"distance": "distance", "path": "path", "wup": "wup_wn", "lch": "lch", "mean": "mean"}
"""Similarity measure of each numeric distance column."""

NO_DISTANCE = dict.fromkeys(("own_wnid", "nearest_wnid", "nearest_id", "lcs", *MEASURES))
"""Distance columns of a class that has no synset."""

PAIRS = 512
"""Pairs of synsets compared at a time; memory grows with the square."""


Labels = Mapping[Key, int]
"""Label of each class that the classifier has an output for."""


def labels_of(membership: Membership) -> Labels:
    """Return the labels of the classes of labelled ID groups and of ``csid`` groups, see `number_classes`."""
    recipe = membership.recipe
    id_groups = [group for group in recipe.groups_with_role("id") if group.labelled]
    return number_classes(
        [(group.source, membership.groups[group.name]) for group in id_groups],
        [(group.source, membership.groups[group.name]) for group in recipe.groups_with_role("csid")],
        recipe.datasets,
    )


def number_classes(
    id_groups: Iterable[tuple[str, Iterable[str]]],
    csid_groups: Iterable[tuple[str, Iterable[str]]],
    datasets: Sources,
) -> Labels:
    """Return the label of every class of some groups, each a source and its classes.

    Labels are 0..K-1 in the publishers' order, groups in the given order. ``csid`` classes have the label of
    the ID class with the same synset.
    """
    labels: dict[Key, int] = {}
    by_wnid: dict[str, int] = {}
    for source, classes in id_groups:
        catalog = load_catalog(source, datasets)
        for class_id in sorted(classes, key=lambda c: catalog[c].index):
            labels.setdefault((source, class_id), len(labels))
            for wnid in catalog[class_id].wnids:
                by_wnid.setdefault(wnid, labels[source, class_id])
    for source, classes in csid_groups:
        catalog = load_catalog(source, datasets)
        for class_id in classes:
            id_labels = [by_wnid[w] for w in catalog[class_id].wnids if w in by_wnid]
            if id_labels:
                labels[source, class_id] = id_labels[0]
    return labels


@_without_collection()
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
    placed: set[Key] = set()
    for group in membership.recipe.group:
        catalog = load_catalog(group.source, datasets)
        for class_id in membership.groups[group.name]:
            key = (group.source, class_id)
            placed.add(key)
            verdict = membership.verdicts[group.name, key]
            label = labels[key] if group.role in ("id", "csid") and key in labels else -1
            rows.append(_row(key, catalog[class_id], group.role, group, label, verdict, membership))
    for source in membership.recipe.sources:
        for item in load_catalog(source, datasets):
            key = (source, item.class_id)
            if key in placed:
                continue
            refusals = [
                _row(key, item, "excluded", g, -1, v, membership) for g, v in membership.refusals.get(key, ())
            ]
            if key in membership.removed:
                group, reason = membership.removed[key]
                row = _row(key, item, "excluded", group, -1, Verdict(False, ()), membership)
                refusals.append(row | {"evidence": reason})
            rows.append(refusals[0] if len(refusals) == 1 else _joined(refusals))
    classes = {(r["source"], r["class_id"]): load_catalog(r["source"], datasets)[r["class_id"]] for r in rows}
    nearest = nearest_id_pairs(classes, id_keys, taxonomy, datasets)
    for row in rows:
        row |= nearest.get((row["source"], row["class_id"]), NO_DISTANCE)
    for row, clause in zip(rows, nearness_clauses(rows, taxonomy), strict=True):
        row["evidence"] = f"{clause}; {row['evidence']}"
        leak = leaks.get((row["source"], row["class_id"]))
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
    """Return the LCS and the measures of each pair of synsets, as of `similarity.compare`."""
    (rows, row), (columns, column) = (
        np.unique([pair[side] for pair in pairs], return_inverse=True) for side in (0, 1)
    )
    rows, columns, at = rows.tolist(), columns.tolist(), (row, column)
    matrices = similarity.similarity_matrices((*MEASURES.values(), "lcs"), rows, columns, taxonomy)
    values = {name: matrices[measure][at].tolist() for name, measure in MEASURES.items()}
    values["lcs"] = [taxonomy.wnid(node) for node in matrices["lcs"][at].tolist()]
    of_pairs = zip(*values.values(), strict=True)
    return {pair: dict(zip(values, row, strict=True)) for pair, row in zip(pairs, of_pairs, strict=True)}
