"""A list of classes against known ones: published lists recomputed with NLTK, files, errors, output."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.raising import mentions, raises
from tools.facts.published import Published
from wordnet_splits.audit.overlaps import audit_classes
from wordnet_splits.audit.report import LEAKS, LIMITS
from wordnet_splits.audit.thresholds import thresholds
from wordnet_splits.base.errors import DataError
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.catalog.inventory import load_list
from wordnet_splits.wordnet.similarity import pairs as similarity

ANIMAL = "n00015388"
MALTESE, DOG, AXOLOTL, SPOON = "n02085936", "n02084071", "n01632777", "n04284002"


@pytest.fixture(scope="module")
def above(nltk_wordnet: Any) -> Callable[[str], dict[str, int]]:
    """NLTK's ancestors of a wnid, each with the fewest edges up to it; itself at 0."""

    @cache
    def find(wnid: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for up, edges in nltk_wordnet.synset_from_pos_and_offset("n", int(wnid[1:])).hypernym_distances():
            name = f"n{up.offset():08d}"
            found[name] = min(edges, found.get(name, edges))
        return found

    return find


def published(facts: Path, name: str) -> list[str]:
    """Return the wnids of a published list."""
    if name in ("hard", "easy"):
        rows = Published(facts / "ssb/imagenet_osr_splits_winter21.tsv").rows()
        return [wnid for kind, wnid in rows if kind == f"{name}_i21k_classes"]
    if name == "imagenet-ood":
        return [r["wnid"] for r in Published(facts / "field/imagenet_ood/classes.tsv").records()]
    if name in ("test", "auxiliary"):
        rows = Published(facts / "field/pascl_imagenet_extra/classes.tsv").records()
        return [r["wnid"] for r in rows if (r["role"] == "auxiliary_ood_train") == (name == "auxiliary")]
    return [c.class_id for c in load_catalog(name)]


LISTS = [
    ("hard", "imagenet1k", 980, (0, 160, 32)),
    ("easy", "imagenet1k", 1000, (0, 0, 134)),
    ("test", "imagenet1k", 1000, (0, 131, 138)),
    ("imagenet-ood", "imagenet1k", 637, (0, 1, 2)),
    ("test", "auxiliary", 1000, (0, 1000, 10)),
]
"""List, known classes, size of the list, and its classes equal to, below and above a known one."""


@pytest.mark.sampled("oracle", one_in=5)
@pytest.mark.parametrize(("listed", "against", "size", "counts"), LISTS)
def test_the_published_lists_leak_as_counted(facts, listed, against, size, counts):
    found = audit_classes(
        published(facts, listed), against if against == "imagenet1k" else published(facts, against)
    )
    assert found.counts["classes"] == size
    assert tuple(found.counts[r] for r in ("equal", "below", "above")) == counts


@pytest.mark.oracle
@pytest.mark.parametrize(("listed", "against"), [row[:2] for row in LISTS])
def test_the_published_lists_leak_as_nltk_says(facts, above, listed, against):
    classes, known = published(facts, listed), set(published(facts, against))
    found = audit_classes(classes, against if against == "imagenet1k" else sorted(known))
    assert [one.id for one in found.classes] == classes
    assert (found.counts["classes"], found.known) == (len(classes), len(known))
    under = {c: {up: n for up, n in above(c).items() if up in known} for c in classes}
    over: dict[str, dict[str, int]] = {c: {} for c in classes}
    for wnid in known:
        for up, edges in above(wnid).items():
            if edges and up in over:
                over[up][wnid] = edges
    expected = sum(any(under[c].values()) for c in classes), sum(bool(over[c]) for c in classes)
    assert (found.counts["below"], found.counts["above"]) == expected
    assert found.counts["leaking"] == sum(bool(under[c] or over[c]) for c in classes)
    assert found.drops == tuple(c for c in classes if under[c] or over[c])
    for one in found.classes:
        kin = {"below": under[one.id], "above": over[one.id]}
        assert one.kin == len(under[one.id].keys() | over[one.id].keys())
        if one.relation is None:
            assert (one.kin, one.path, one.other, one.edges) == (0, (), None, None)
            continue
        if one.relation == "namesake":  # test_namesakes.py
            assert one.kin == 0
            continue
        fewest = min(n for of_kind in kin.values() for n in of_kind.values())
        assert kin[one.relation][one.other] == one.edges == fewest == len(one.path) - 1
        assert (one.path[0], one.path[-1]) == (one.id, one.other)
        upwards = one.path if one.relation == "below" else one.path[::-1]
        assert all(above(low).get(high) == 1 for low, high in pairwise(upwards))


def test_all_of_pascls_test_classes_lie_below_its_auxiliary_class_animal(facts):
    assert ANIMAL in published(facts, "auxiliary")
    found = audit_classes(published(facts, "test"), [ANIMAL])
    assert {(one.relation, one.other) for one in found.classes} == {("below", ANIMAL)}


KILLER_WHALE, DOLPHINS, CLEAN = "n02071294", "n02068974", "openood-imagenet200-clean:ninco"


@pytest.mark.parametrize(
    ("listed", "known", "relation"),
    [
        ("ninco", KILLER_WHALE, {}),  # its false killer whale is filed under dolphin
        (KILLER_WHALE, "ninco", {}),
        (DOLPHINS, KILLER_WHALE, {DOLPHINS: "above"}),
        ("ninco", DOLPHINS, {"pseudorca_crassidens": "equal", "tursiops_aduncus": "below"}),
        # toothed whale
        ("ninco", "n02066707", {"pseudorca_crassidens": "below", "tursiops_aduncus": "below"}),
        (CLEAN, KILLER_WHALE, {}),  # a group of a benchmark
    ],
)
def test_no_class_lies_below_one_that_is_filed_under_something_wider(listed, known, relation):
    given, against = (which if which in ("ninco", CLEAN) else [which] for which in (listed, known))
    assert {one.id: one.relation for one in audit_classes(given, against).leaking} == relation
    above = {row["class_id"]: row["relation"] for row in thresholds(given, against).rows() if row["relation"]}
    assert above == {c: r for c, r in relation.items() if r != "equal"}


def test_meanings_are_wordnets_and_equal_is_the_same_synset(wordnet):
    found = audit_classes([MALTESE, DOG, AXOLOTL, "spoon"])
    assert [one.relation for one in found.classes] == ["equal", "above", "equal", "above"]
    for one in found.classes:
        own, other = (wordnet.definition(w).partition(";")[0] for w in (one.path[0], one.path[-1]))
        assert (one.gloss, one.other_gloss) == (own, other)
    assert [one.kin for one in found.classes if one.relation == "equal"] == [1, 1]
    assert found.first_sense == ("spoon",)


def test_nearness_is_that_of_every_known_class_in_turn():
    listed = ["n02504013", "n07873807", "n00001740"]
    known = [c.class_id for c in load_catalog("imagenet1k")][::10]
    found = audit_classes(listed, known)
    for one in found.classes:
        pairs = {wnid: similarity.compare_synsets(one.id, wnid) for wnid in sorted(known)}
        best = max(pairs, key=lambda wnid: pairs[wnid].mean)  # the first of equals
        assert (one.nearest, one.mean) == (best, pairs[best].mean)
        assert one.distance == min(pair.distance for pair in pairs.values())
    for measure in ("mean", "distance"):
        values = [getattr(one, measure) for one in found.classes]
        ends = [min(values), *statistics.quantiles(values, n=4, method="inclusive"), max(values)]
        assert list(found.nearness[measure].values()) == pytest.approx(ends)
    assert sum(found.edges.values()) == 3


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("a.txt", "# ours\nn02085936\n\nn02084071\n", {}),
        ("a.txt", "n02085936 Maltese dog, Maltese terrier, Maltese\nn02084071 dog\n", {}),
        ("a.txt", "maltese_dog.n.01\ndog\n", {}),
        ("a.tsv", "# source: x\nimages\twnid\n5\tn02085936\n6\tn02084071\n", {}),
        ("a.tsv", "known\tn02085936\nknown\tn02084071\n", {"column": "2"}),
        ("a.csv", 'Class,note\nMaltese dog,"a, b"\ndog,\n', {}),
        ("a.csv", "mine,note\nn02085936,x\nn02084071,y\n", {"column": "mine"}),
        ("a.json", '["n02085936", "dog"]', {}),
        ("a.json", '{"n02085936": "Maltese dog", "n02084071": "dog"}', {}),
        ("a.json", '{"0": ["n02085936", "Maltese_dog"], "1": ["n02084071", "dog"]}', {}),
        ("a.json", '{"known": ["x", "y", "z"], "unknown": ["n02085936", "dog"]}', {"column": "unknown"}),
        ("a.json", '[{"name": "Maltese dog", "n": 1}, {"name": "dog", "n": 2}]', {}),
    ],
)
def test_files_of_every_kind_hold_the_same_two_classes(tmp_path, name, content, options):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    found = audit_classes(path, **options)
    assert [(one.relation, one.path[0]) for one in found.classes] == [("equal", MALTESE), ("above", DOG)]
    assert found.listed == name


def test_a_class_that_is_listed_twice_counts_once_and_is_said():
    found = audit_classes([MALTESE, DOG, MALTESE])
    assert [one.id for one in found.classes] == [MALTESE, DOG]
    assert found.counts["repeated"] == 1
    assert "repeated  1 entries, counted once" in str(found)


def test_indices_and_names_of_a_source(tmp_path):
    path = tmp_path / "indices.txt"
    path.write_text("153\n29\n", encoding="utf-8")
    assert [one.id for one in audit_classes(path, of="imagenet1k").classes] == [MALTESE, AXOLOTL]
    assert audit_classes([153], [29], of="imagenet1k").ok
    names = audit_classes(["Aquarium_Fish", "baby"], "imagenet1k", of="cifar100")
    assert [one.id for one in names.classes] == ["aquarium_fish", "baby"]


def test_shipped_lists_and_groups_are_named(facts):
    by_list = audit_classes("openood/imagenet_test_ssb_hard", "imagenet1k")
    assert {one.id for one in by_list.classes} == set(
        load_list("openood/imagenet_test_ssb_hard")["class_id"].to_pylist()
    )
    table = load_manifest("unknown-cifar").classes
    near = [row["class_id"] for row in table.to_pylist() if row["group"] == "cifar-60"]
    found = audit_classes("unknown-cifar:cifar-60", "unknown-cifar:cifar-40")
    assert sorted(one.id for one in found.classes) == sorted(near)
    assert found.known == 40
    counts = audit_classes("gaussian").counts
    assert (counts["classes"], counts["without_synset"], counts["leaking"]) == (1, 1, 0)


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        ("axolotle\ndog\n", (), ("axolotle", "axolotl.n.01", "2")),
        ("n02086723\n", (), ()),
        ("7\n", (), ("--of", "imagenet1k")),
        ("1001\n", ("--of", "imagenet1k"), "1001"),
        ("aple\n", ("--of", "cifar100"), "apple"),
        ("crane\n", ("--of", "imagenet1k"), ("crane", "n02012849", "n03126707")),
        ("", (), ()),
        ("dog\n", ("--against", "gaussian"), "gaussian"),
        ("dog\n", ("--against", "imagenet1kk"), ("imagenet1kk", "imagenet1k")),
        ("dog\n", ("--against", "lists/none.txt"), "lists/none.txt"),
        ("dog\n", ("--against", "unknown-cifar:cifar-4"), "cifar-40"),
        ("dog\n", ("--of", "cifar"), "cifar"),
        ("a\tb\nx\ty\n", ("--column", "3"), "3"),
        ("a\tb\nx\ty\n", ("--column", "c"), "c"),
        ("\x00\udc80", (), ()),
        ("a\t" + "x" * 200_000 + "\nb\tc", (), ()),
        ("dog, cat, horse\n", (), ("mine.txt", "3")),
        ("dog\tcat\n", (), "2"),
        ("dog\n", ("--out", "audit.xls"), ("audit.xls", "audit")),
        ("x" * 200_000, (), ()),
    ],
)
def test_what_is_no_list_is_one_line(command, tmp_path, content, arguments, said):
    path = tmp_path / "mine.txt"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert mentions(command("audit", "list", path, *arguments).error, said)


@pytest.mark.parametrize("verb", ["list", "thresholds"])
@pytest.mark.parametrize("arguments", [("--of", "nope"), ("--column", "2")])
def test_what_is_of_a_file_is_refused_without_one(command, verb, arguments):
    assert mentions(command("audit", verb, "food101", *arguments).error, ("food101", "imagenet1k"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[[[]]]", ()),
        ("7", ()),
        ("[true]", ()),
        ('{"a": ["x", "y", "z"], "b": []}', "--column"),
        ('[{"mine": "dog"}]', "--column"),
        ("[", ()),
    ],
)
def test_what_is_no_list_of_json_is_one_line(tmp_path, content, said):
    path = tmp_path / "mine.json"
    path.write_text(content, encoding="utf-8")
    with raises(DataError, where="mine.json") as error:
        audit_classes(path)
    assert mentions(str(error.value), said)


def test_the_command_says_what_leaks_and_ends_with_one(command):
    done = command("audit", "list", "ssb-hard")
    assert (done.code, done.err) == (1, "")
    lines = done.out.splitlines()
    assert lines[0] == "ssb-hard against imagenet1k: 1,000 and 1,000 classes"
    assert max(map(len, lines)) <= 80
    assert "and 172 more" in lines
    assert tuple(lines[-len(LIMITS) :]) == LIMITS
    found = command("audit", "list", "ssb-hard", "--json").json
    assert {"list", "against", "classes", "nearness", "counts", "drop"} <= found.keys()
    assert len(found["drop"]) == found["counts"]["leaking"] == 192
    assert [c["id"] for c in found["classes"] if c["relation"] in LEAKS] == found["drop"]
    assert len(command("audit", "list", "ssb-hard", "--all").out.splitlines()) > 192
    assert found == json.loads(json.dumps(audit_classes("ssb-hard").as_dict()))


def test_a_clean_list_ends_with_nought_and_meanings_are_shown(command, tmp_path):
    (tmp_path / "clean.txt").write_text("algebra\n", encoding="utf-8")
    clean = command("audit", "list", "clean.txt")
    assert (clean.code, clean.err) == (0, "")
    assert "a clean version drops 0" in clean.out
    (tmp_path / "dog.txt").write_text("dog\n", encoding="utf-8")
    shown = command("audit", "list", "dog.txt", "--glosses")
    assert shown.code == 1
    assert "dog (dog.n.01) above n02110341 (dalmatian)" in shown.out
    assert "dog.n.01 > dalmatian.n.02" in shown.out
    assert "a member of the genus Canis" in shown.out


def test_the_result_prints_as_a_table_of_eighty_columns():
    listed = ["n01440764", *(item.class_id for item in load_catalog("imagenet21k"))][::50]
    lines = str(audit_classes(listed, "imagenet1k")).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("n01440764") and "equal" in line for line in lines)
