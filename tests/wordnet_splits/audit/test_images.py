"""What pictures say of an audited list: digests as in the manifests, and what NINCO's file says was kept."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tools.facts.published import Published
from wordnet_splits.audit.overlaps import audit_classes
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog.inventory import load_list


def kept(facts: Path, dataset: str) -> Counter[str]:
    """Return NINCO's count of pictures of each wnid of a dataset, read from its own file."""
    text = Published(facts / "ninco/NINCO_popular_datasets_subsamples.csv.gz").body.decode()
    lines = [line for line in text.splitlines() if line.endswith(f",{dataset}")]
    return Counter(found[1] for line in lines if (found := re.search(r"(n\d{8})_\d+\.", line)))


@pytest.mark.parametrize(
    ("dataset", "sample"),
    [
        ("SSB_hard", "ninco/ssb_hard"),
        ("SSB_easy", "ninco/ssb_easy"),
        ("ImageNet_1k_OOD_400_ood", "ninco/pascl"),
        ("COOD", "ninco/cood"),
        ("360OpenSet", "ninco/openset360"),
    ],
)
def test_the_pictures_kept_are_those_of_nincos_file(facts, dataset, sample):
    theirs = kept(facts, dataset)
    found = audit_classes(sorted(theirs), images=True)
    assert found.images is not None
    relations = {one.id: one.relation or "none" for one in found.classes}
    expected: Counter[str] = Counter()
    for wnid, count in theirs.items():
        expected[relations[wnid]] += count
    (own,) = (one for one in found.images.samples if one.name == sample)
    assert own.by_relation == expected
    assert own.kept == theirs.total() == len(load_list(sample))
    assert all(row.kept >= theirs[row.id] for row in found.images.classes)
    assert [row.relation for row in found.images.classes] == [one.relation for one in found.classes]


def test_equal_digests_are_those_of_the_manifests_tables():
    found = audit_classes("unknown-cifar:cifar-60", "unknown-cifar:cifar-40", images=True).images
    assert found is not None
    manifest = load_manifest("unknown-cifar")
    known = set(manifest.images(group="cifar-40")["digest"].to_pylist())
    own = manifest.images(group="cifar-60").select(["class_id", "digest"]).to_pylist()
    same = Counter(row["class_id"] for row in own if row["digest"] in known)
    assert same.total() == 1
    assert {row.id: row.same for row in found.classes if row.same} == same
    assert Counter({row.id: row.images for row in found.classes}) == Counter(row["class_id"] for row in own)
    assert found.known_digests == len(known)
    assert found.samples == ()  # the known classes are not ImageNet-1K's: nobody looked for them


def test_a_list_of_pictures_counts_its_own(facts):
    found = audit_classes("openood/cifar10_test_cifar100", "cifar10", images=True).images
    assert found is not None
    counts = Counter(load_list("openood/cifar10_test_cifar100")["class_id"].to_pylist())
    assert {row.id: row.images for row in found.classes} == counts


def test_of_a_class_by_name_nothing_is_known():
    found = audit_classes(["algebra"], images=True).images
    assert found is not None
    (row,) = found.classes
    assert (row.images, row.digests, row.same, row.kept) == (None, 0, 0, 0)
    assert found.samples == ()


def test_the_command_says_it_and_json_has_every_class(command):
    done = command("audit", "list", "ssb-hard", "--images")
    assert done.code == 1
    assert "ninco/ssb_hard kept 208: 192 none, 11 below, 2 namesake, 3 above" in done.out
    assert "images     none known by name" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    found = command("audit", "list", "ssb-hard", "--images", "--json").json
    assert found == json.loads(json.dumps(audit_classes("ssb-hard", images=True).as_dict()))
    assert len(found["images"]["classes"]) == 1000
    assert "images" not in command("audit", "list", "ssb-hard", "--json").json
