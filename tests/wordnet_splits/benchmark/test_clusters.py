"""Clusters of the classes of every shipped benchmark, and of those without any."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.clusters import subtree_clusters
from wordnet_splits.benchmark.manifest.loading import manifest_names, shipped_folder
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.metrics.summary import OOD_ROLES
from wordnet_splits.wordnet.taxonomy.subtrees import SHARE


@pytest.mark.parametrize("name", manifest_names(shipped_folder()))
def test_every_ood_class_of_a_shipped_benchmark_has_a_cluster(name: str) -> None:
    manifest = load_manifest(name)
    classes: dict[str, dict[tuple[str, str], list[str]]] = {}
    for row in manifest.classes.to_pylist():
        if row["role"] in OOD_ROLES:
            of_group = classes.setdefault(row["group"], {})
            of_group[row["source"], row["class_id"]] = row["wnids"] or []
    clusters = subtree_clusters(manifest)
    assert {group: set(found.of) for group, found in clusters.items()} == {
        group: set(of_group) for group, of_group in classes.items()
    }
    for group, found in clusters.items():
        sizes = Counter(found.of.values())
        assert (found.problem is None) == (len(sizes) > 1 and all(classes[group].values()))
        if found.problem is None:
            alone = {root for key, root in found.of.items() if root in classes[group][key]}
            most = max(1, int(SHARE * len(found.of)))
            assert all(count <= most for root, count in sizes.items() if root not in alone), (group, sizes)


def test_groups_of_one_class_or_without_synsets_say_why() -> None:
    manifest = load_manifest("unknown-cifar")
    clusters = subtree_clusters(manifest)
    without = [group for group, found in clusters.items() if found.problem is not None]
    assert without
    first = next(n for n, row in enumerate(manifest.classes.to_pylist()) if row["role"] in OOD_ROLES)
    single = subtree_clusters(replace(manifest, classes=manifest.classes.slice(first, 1)))
    ((_, found),) = single.items()
    assert (len(found.of), found.problem is None) == (1, False)


def test_cuts_go_further_down_and_0_is_refused() -> None:
    manifest = load_manifest("rungs-cifar100")
    numbers = [len({*subtree_clusters(manifest, cut=cut)["rung-1"].of.values()}) for cut in range(1, 9)]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1]
    with raises(DataError):
        subtree_clusters(manifest, cut=0)
