"""The names that our supplement adds to WordNet."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tools.proposals.measure import SETS
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.linking import propose_synsets
from wordnet_splits.linking.candidates import SUPPLEMENT, added_to, supplement
from wordnet_splits.linking.catalog_maker import proposed
from wordnet_splits.linking.class_names import parse_name
from wordnet_splits.linking.joint_reading import read_names
from wordnet_splits.linking.reasons import _ADDED
from wordnet_splits.wordnet.taxonomy import Taxonomy

TAXONOMY = Taxonomy.embedded()


def test_a_name_stands_once_and_is_written_as_it_is_looked_up():
    rows = [line.split("\t") for line in SUPPLEMENT.read_text(encoding="utf-8").splitlines()[4:]]
    names = [name for _, some in rows for name in some.split()]
    assert len(names) == len(set(names)) == len(supplement())
    assert [synsets for synsets, _ in rows] == sorted({synsets for synsets, _ in rows})
    assert [some for _, some in rows if some.split() != sorted(some.split())] == []
    assert [n for n in names if ["_".join(p) for p in parse_name(n).phrases] != [n]] == []


def test_the_page_counts_the_names_of_our_catalogs_that_are_in_it():
    names = [item.name for source in SETS for item in load_catalog(source)]
    inside = [n for n in names if any("_".join(p) in supplement() for p in parse_name(n).phrases)]
    page = (Path(__file__).parents[3] / "docs" / "evidence" / "linking.md").read_text(encoding="utf-8")
    assert f"{len(inside)} of the {len(names):,} names above are in it" in page


def test_every_synset_exists_and_stands_once_in_its_row():
    known = {TAXONOMY.name(wnid) for wnid in TAXONOMY.wnids}
    assert {s for synsets in supplement().values() for s in synsets} <= known
    assert [n for n, synsets in supplement().items() if not 0 < len(set(synsets)) == len(synsets) <= 3] == []


def test_no_row_repeats_a_sense_that_wordnet_has():
    senses = {
        name: {TAXONOMY.name(wnid) for wnid in TAXONOMY.lemma_index().get(name, ())} for name in supplement()
    }
    assert [name for name, synsets in supplement().items() if senses[name] & set(synsets)] == []


@pytest.mark.parametrize(
    ("name", "synset"),
    [
        ("balancebike", "bicycle.n.01"),
        ("Balance-Bikes", "bicycle.n.01"),
        ("balance bike", "bicycle.n.01"),
        ("red balance bike", "bicycle.n.01"),
    ],
)
def test_a_name_that_wordnet_lacks_is_filed_by_the_supplement(name, synset):
    (row,) = propose_synsets([name]).rows()
    assert row["synset"] == synset
    assert row["reason"].endswith(_ADDED)


def test_a_noun_of_wordnet_may_have_a_sense_more():
    offered = {TAXONOMY.name(c.wnid): c.added for c in propose_synsets(["superman"]).proposals[0].candidates}
    assert offered["demigod.n.01"] is False
    assert {n for n, added in offered.items() if added} == set(supplement()["superman"])


def test_senses_of_other_versions_are_numbered_otherwise_and_get_nothing():
    toy = Taxonomy.from_edges(
        {"n1": [], "n2": ["n1"]}, lemmas={"n1": ["thing"], "n2": ["bicycle"]}, version="toy"
    )
    assert added_to(toy) == {}
    assert added_to(TAXONOMY)["balance_bike"] == [TAXONOMY.index("n02834778")]


def test_what_the_supplement_files_is_asked_about_and_marked_as_proposed():
    (proposal,) = propose_synsets(["balance bike"]).proposals
    assert proposal.asked
    decision = proposed(replace(proposal, asked=False))  # as with a threshold of one's own
    assert (decision.wnids, decision.mapped) == (("n02834778",), "proposed")
    assert proposed(propose_synsets(["bicycle"]).proposals[0]).mapped == "exact"


def test_a_name_filed_elsewhere_than_its_head_noun_stays_behind_that():
    synsets = supplement()["train_interior"]
    head = "inside.n.01"
    (proposal,) = propose_synsets(["train interior"]).proposals
    names = [TAXONOMY.name(c.wnid) for c in proposal.candidates]
    assert names[0] == head
    assert set(names[1:]) >= set(synsets)
    wnids = {TAXONOMY.name(c.wnid): c.wnid for c in proposal.candidates}
    assert not any(TAXONOMY.is_ancestor(wnids[head], wnids[s]) for s in synsets)


def test_a_name_that_picks_a_sense_of_its_head_noun_goes_before_it():
    assert supplement()["airplane_cabin"][0] == "cabin.n.03"
    alone = read_names(["airplane cabin"], [""], TAXONOMY, supplemented=False).pool
    assert not any(route.added for route in alone.routes)
    (proposal,) = propose_synsets(["airplane cabin"]).proposals
    assert TAXONOMY.name(proposal.wnid) == "cabin.n.03"
