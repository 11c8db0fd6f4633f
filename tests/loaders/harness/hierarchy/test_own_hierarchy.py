"""Results on a benchmark whose hierarchy is its own: answers, nearness, mistakes; WordNet is never loaded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from loaders.harness import compare, evaluate_arrays, image_ids, nearness
from loaders.harness.comparison.entries import draws_of
from loaders.harness.comparison.semantics import classes_of, similarities
from loaders.harness.report.mistakes import worst_mistakes
from loaders.harness.results.results import Results
from loaders.harness.training.methods.class_groups import groups_of
from tests.raising import raises
from tests.wordnet_splits.own_tree import KNOWN, PARENTS, TITLE, build_own
from tests.wordnet_splits.toy import Definitions
from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.wordnet.taxonomy import synsets

TRUTH = Definitions(PARENTS)
GROUPS = ("known", "near", "far")


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manifest]:
    def refuse() -> None:
        raise AssertionError("WordNet is loaded")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synsets, "_embedded", refuse)
        folder = build_own(tmp_path_factory.mktemp("own"))
        patch.setenv("WORDNET_SPLITS_MANIFESTS", str(folder.parent))
        yield load_manifest(folder)


@pytest.fixture(scope="module")
def logits(manifest: Manifest) -> dict[str, np.ndarray]:
    """ID images are right; every OOD image is taken for the first class, near ones with more confidence."""
    arrays = {}
    for group, height in zip(GROUPS, (9.0, 6.0, 3.0), strict=True):
        labels = manifest.images("test", group)["label"].to_numpy()
        noise = np.random.default_rng(0).normal(size=(len(labels), len(KNOWN)))
        arrays[group] = noise + height * np.eye(len(KNOWN))[np.maximum(labels, 0)]
    return arrays


@pytest.fixture(scope="module")
def results(manifest: Manifest, logits: dict[str, np.ndarray]) -> Results:
    sets = {group: {"logits": values.astype(np.float32)} for group, values in logits.items()}
    ids = {group: image_ids(manifest, group) for group in logits}
    return evaluate_arrays(sets, "msp", benchmark=manifest, ids=ids)


def test_answers_are_nodes_of_the_hierarchy(results: Results, logits: dict[str, np.ndarray]) -> None:
    named = results.hierarchy(logits=logits, bootstrap=0)
    hierarchy = named.images.hierarchy
    assert TITLE in named.notes[0]
    assert set(hierarchy.wnids) == {a for c in KNOWN for a in TRUTH.up(c)}
    truths = dict(zip(named.images.table["class_id"].to_pylist(), named.images.truth.tolist(), strict=True))
    depth = {c: TRUTH.max_depth(hierarchy.wnids[node]) for c, node in truths.items()}
    shared = {c: {a for a in TRUTH.up(c) if a in hierarchy.wnids} for c in truths}
    assert depth == {c: max(map(TRUTH.max_depth, above)) for c, above in shared.items()}
    assert all(hierarchy.wnids[node] in shared[c] for c, node in truths.items())
    with raises(DataError, naming=TITLE):
        results.hierarchy(logits=logits, tree=True)


def test_comparisons_measure_in_the_hierarchy(results: Results, manifest: Manifest) -> None:
    classes, labels = classes_of(manifest)
    pairs = [(classes["digits", c], labels[n]) for c in "0123456789" for n in range(len(KNOWN))]
    found = similarities(pairs, taxonomy_of(manifest), "distance")
    assert found == {(a, b): TRUTH.distance(a.class_id, b.class_id) for a, b in pairs}
    rho = {(row.measure, row.to): row.rho for row in nearness(results, bootstrap=0).correlations}
    assert rho["path", "nearest"] < -0.5  # near classes, with 2 edges, are the most confident
    assert compare(results, over="subtrees", bootstrap=20).rows()
    (draw,) = draws_of([results])
    (entry,) = draw.entries
    worst = worst_mistakes(entry, manifest, 1)[0]
    true = {name.name: name.class_id for name in classes.values()}[worst.true]
    assert len(worst.path) == 1 + (TRUTH.distance(true, "0") or 0)
    groups = groups_of(manifest, len(KNOWN), target=2)
    assert len(groups["groups"]) == len(KNOWN)
