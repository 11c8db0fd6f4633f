"""Classes that bear the name of a known one, or that WordNet defines by one: no kin of it, and not clear."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.raising import raises
from tests.wordnet_splits.command import Command
from tools.facts.published import Published
from wordnet_splits.audit.overlaps import audit_classes
from wordnet_splits.audit.report import Audit
from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.wordnet.taxonomy import Taxonomy

LISTS = {"SSB-hard": (808, 22, 5), "SSB-easy": (866, 45, 0), "PASCL": (731, 31, 4)}
"""Classes that do not leak, namesakes by name, and by definition."""


@pytest.fixture(scope="module")
def found(facts: Path) -> dict[str, Audit]:
    rows = Published(facts / "ssb/imagenet_osr_splits_winter21.tsv").rows()
    easy = [wnid for kind, wnid in rows if kind == "easy_i21k_classes"]
    records = Published(facts / "field/pascl_imagenet_extra/classes.tsv").records()
    pascl = [r["wnid"] for r in records if r["role"] != "auxiliary_ood_train"]
    return {
        "SSB-hard": audit_classes("ssb-hard"),
        "SSB-easy": audit_classes(easy),
        "PASCL": audit_classes(pascl),
    }


@pytest.mark.parametrize("name", LISTS)
def test_namesakes_are_the_clear_classes_with_a_lemma_of_a_known_one(
    name: str, found: dict[str, Audit], wordnet: Taxonomy
) -> None:
    def lemmas(wnid: str) -> set[str]:
        return {lemma.casefold().replace("-", "_") for lemma in wordnet.lemmas(wnid)}

    known = {lemma for item in load_catalog("imagenet1k") for lemma in lemmas(item.class_id)}
    clear = [one for one in found[name].classes if one not in found[name].leaking]
    shared = {one.id for one in clear if lemmas(one.id) & known}
    by_name = {one.id for one in found[name].namesakes if not one.by_definition}
    assert by_name == shared
    counts = found[name].counts
    assert (len(clear), len(by_name), counts["by_definition"]) == LISTS[name]
    assert counts["namesake"] == len(found[name].namesakes) == len(by_name) + counts["by_definition"]
    assert not set(found[name].drops) & {one.id for one in found[name].namesakes}


def test_the_distance_is_of_the_shortest_way(found: dict[str, Audit], wordnet: Taxonomy) -> None:
    for one in found["SSB-hard"].namesakes:
        a, b = (wordnet.ancestors(wnid) for wnid in (one.id, one.other))
        assert one.edges == len(one.path) - 1 == min(a[up] + b[up] for up in a.keys() & b.keys())
        assert (one.path[0], one.path[-1]) == (one.id, one.other)


def test_the_closest_are_the_same_thing_under_two_synsets(found: dict[str, Audit], wordnet: Taxonomy) -> None:
    close = {wordnet.name(one.id) for one in found["SSB-hard"].namesakes if one.edges <= 4}
    named = ("red_fox.n.02", "kit_fox.n.02", "great_white_heron.n.02", "ox.n.02", "boar.n.02", "palace.n.01")
    assert {*named} <= close
    names = {wordnet.name(one.id) for one in found["PASCL"].namesakes}
    assert {"tabby.n.02", "echidna.n.01", "tree_toad.n.01"} <= names


@pytest.mark.parametrize(
    ("listed", "known", "by_definition"),
    [
        ("pullet.n.02", "hen.n.02", True),  # a young hen
        ("cockerel.n.01", "cock.n.05", True),  # a young domestic cock
        ("brood_hen.n.01", "hen.n.02", True),  # a domestic hen, and the known one is female
        ("jetliner.n.01", "airliner.n.01", True),  # both carry passengers, and both are airplanes
        ("hen.n.01", "hen.n.02", False),
        ("zebu.n.01", "ox.n.01", None),  # a domesticated ox: neither sex nor age
        ("clipper.n.02", "schooner.n.02", None),  # both used in former times
        ("hen.n.02", "pullet.n.02", None),  # a hen is no pullet
    ],
)
def test_sex_and_young_are_read_from_definitions(
    listed: str, known: str, by_definition: bool | None, wordnet: Taxonomy
) -> None:
    (one,) = audit_classes([wordnet.find(listed)], [wordnet.find(known)]).classes
    assert one.relation == (None if by_definition is None else "namesake")
    assert one.by_definition is bool(by_definition)
    assert one.kin == 0


def test_namesakes_under_different_roots_are_refused() -> None:
    lemmas = {"b_crane": ("bird_crane", "crane"), "m_crane": ("machine_crane", "crane")}
    split = Taxonomy.from_edges({"b_crane": ("bird",), "m_crane": ("machine",)}, lemmas=lemmas)
    with raises(TaxonomyError, naming=("b_crane", "m_crane", "2")):
        audit_classes(["bird_crane"], ["machine_crane"], taxonomy=split)


def test_a_class_below_a_known_one_is_below_it_whatever_its_name() -> None:
    (one,) = audit_classes(["n02077923"], ["n02076196"]).classes  # sea lion, seal
    assert (one.relation, one.by_definition) == ("below", False)


def test_what_is_filed_under_something_wider_goes_by_its_own_name(wordnet: Taxonomy) -> None:
    newt, snail = wordnet.senses("triton")[1], wordnet.senses("triton")[0]
    assert [one.relation for one in audit_classes([newt], [snail]).classes] == ["namesake"]
    found = {one.id: one.relation for one in audit_classes("ninco", [snail]).classes}
    assert found["triturus_marmoratus"] is None  # filed under newt, which is also called triton


def test_the_command_counts_namesakes_apart_and_is_negative(command: Command, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("red_fox.n.02\npullet.n.02\nalgebra\n", encoding="utf-8")
    done = command("audit", "list", str(tmp_path / "list.txt"), "--json")
    assert done.code == 1
    rows = {one["id"]: one for one in done.json["classes"]}
    assert rows["red_fox.n.02"]["relation"] == "namesake"
    assert rows["red_fox.n.02"]["edges"] == len(rows["red_fox.n.02"]["path"]) - 1 == 2
    assert done.json["counts"]["leaking"] == 0
    assert done.json["drop"] == []
    assert (done.json["ok"], done.json["counts"]["namesake"]) == (False, 2)
    shown = command("audit", "list", str(tmp_path / "list.txt"), "--glosses").out
    assert "red_fox.n.02 > fox.n.01 > red_fox.n.03" in shown
