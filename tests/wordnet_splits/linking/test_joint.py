"""The votes, counted candidate by candidate and pair by pair, are those of the arrays."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wordnet_splits.linking import propose_synsets
from wordnet_splits.linking.gathering import Graphs
from wordnet_splits.linking.joint_reading import JOINT, read_names
from wordnet_splits.linking.proposals import LEAST_SHARE, MOST_COMMON, common_synsets
from wordnet_splits.linking.reasons import COMMON, NO_NOUN
from wordnet_splits.linking.weights import Model
from wordnet_splits.wordnet.taxonomy import Taxonomy

NAMES = ["seal", "dolphin", "whale", "seal/harbor", "crane", "desk globe"]


@pytest.fixture(scope="module")
def counted():
    taxonomy = Taxonomy.embedded()
    reading = read_names(NAMES, [""] * len(NAMES), taxonomy)
    alone, _ = Model.shipped().shares(reading)
    return taxonomy, reading.pool, alone, reading.joint(alone)


def naive(taxonomy, pool, shares, candidate):
    """Density, mean likeness and category votes of one candidate, other candidate by other candidate."""
    graphs = Graphs(taxonomy)
    group = pool.group[pool.owner]
    members = np.bincount(pool.group)
    own = set(taxonomy.graph.ancestors(int(pool.node[candidate])))
    groups = len(members) - 1
    density, alike = 1 / len(taxonomy), 0.0
    for other in range(len(pool.owner)):
        if group[other] == group[candidate]:
            continue
        vote = shares[other] / members[group[other]] / groups
        for node in own & set(taxonomy.graph.ancestors(int(pool.node[other]))):
            parents = taxonomy.graph.parents(node)
            base = np.mean([graphs.information[p] for p in parents]) if parents else 0.0
            density += vote / graphs.size[node]
            alike += vote * (graphs.information[node] - base)
    return math.log(density), alike


def test_votes_are_those_of_all_pairs(counted):
    taxonomy, pool, shares, table = counted
    for candidate in range(0, len(pool.owner), 3):
        density, alike = naive(taxonomy, pool, shares, candidate)
        assert table[candidate, JOINT.index("density")] == pytest.approx(density)
        assert table[candidate, JOINT.index("alike")] == pytest.approx(alike)


def test_every_name_gives_one_vote(counted):
    _, pool, shares, _ = counted
    assert np.bincount(pool.owner, shares) == pytest.approx(np.ones(len(NAMES)))


def test_sizes_add_up_to_all_synsets():
    taxonomy = Taxonomy.embedded()
    assert Graphs(taxonomy).size[taxonomy.index(taxonomy.root)] == pytest.approx(len(taxonomy))


DEVICES = ("keyboard", "monitor", "printer", "scanner", "laptop", "desk", "stapler", "webcam", "headset")


@pytest.mark.parametrize(
    ("name", "others", "synset"),
    [
        ("mouse", (*DEVICES, "projector"), "mouse.n.04"),
        ("mouse", ("cat", "dog", "rabbit", "hamster"), "mouse.n.01"),
        ("router", (*DEVICES, "projector"), "router.n.02"),
        ("router", ("drill", "sander", "chisel", "lathe", "screwdriver"), "router.n.03"),
        ("slide", ("microscope", "beaker", "pipette", "test tube", "centrifuge", "petri dish"), "slide.n.01"),
        ("slide", ("swing", "seesaw", "jungle gym", "trampoline", "climbing frame"), "slide.n.04"),
        ("crane", ("heron", "stork", "flamingo", "pelican"), "crane.n.05"),
        ("crane", ("bulldozer", "excavator", "forklift", "dump truck"), "crane.n.04"),
    ],
)
def test_a_few_other_names_are_enough_to_decide_between_senses(name, others, synset):
    proposals = propose_synsets([name, *others])
    assert proposals.rows()[0]["synset"] == synset


DOGS = ["beagle", "borzoi", "whippet", "pug", "collie", "komondor"]
FISH = ["salmon", "trout", "herring", "mackerel", "anchovy", "sardine"]


def test_a_name_that_wordnet_lacks_is_offered_what_the_others_are_and_asked(wordnet):
    *_, known, proposal = propose_synsets([*DOGS, "wxyzzy"]).proposals
    assert known.candidates[0].kind == "exact"
    assert {c.kind for c in proposal.candidates} == {COMMON}
    assert 0 < len(proposal.candidates) <= MOST_COMMON
    assert wordnet.name(proposal.wnid) == "dog.n.01"
    assert (proposal.confidence, proposal.asked) == (0.0, True)
    word = wordnet.lemmas(proposal.wnid)[0].replace("_", " ")
    below = sum(wordnet.is_ancestor(proposal.wnid, p.wnid) for p in propose_synsets(DOGS).proposals)
    assert proposal.reason == f"{NO_NOUN}; {below} other classes are below {word!r}"


def test_it_comes_after_what_the_name_itself_leads_to():
    *_, proposal = propose_synsets([*DOGS, "wxyzzy hound"]).proposals
    kinds = [c.kind for c in proposal.candidates]
    assert kinds[0] == "head"
    assert COMMON in kinds
    assert kinds == sorted(kinds, key=lambda kind: kind == COMMON)
    assert len({c.wnid for c in proposal.candidates}) == len(kinds)


@pytest.mark.parametrize("names", [["wxyzzy"], ["beagle", "pug", "wxyzzy"]])
def test_too_few_others_say_nothing(names):
    assert propose_synsets(names).proposals[-1].candidates == ()


def test_where_the_others_have_little_in_common_nothing_is_offered():
    several = ["beagle", "salmon", "piano", "tulip", "castle", "shirt", "moon", "lawyer", "soup", "canoe"]
    assert propose_synsets([*several, "wxyzzy"]).proposals[-1].candidates == ()


def test_only_classes_of_the_same_superclass_count(wordnet):
    above = ["dogs"] * len(DOGS) + ["fish"] * len(FISH) + ["dogs", "fish"]
    *_, dog, fish = propose_synsets([*DOGS, *FISH, "wxyzzy", "vwxyzzy"], above).proposals
    assert wordnet.name(dog.wnid) == "dog.n.01"
    assert fish.wnid
    assert "dog.n.01" not in {wordnet.name(c.wnid) for c in fish.candidates}


def test_the_first_is_above_its_share_of_all_others(wordnet):
    names = [*DOGS, *FISH, "wxyzzy"]
    reading = read_names(names, [""] * len(names), wordnet)
    _, together = Model.shipped().shares(reading)
    first, *rest = common_synsets(reading, together)[-1]
    chosen = [p.wnid for p in propose_synsets(names[:-1]).proposals]
    assert sum(wordnet.is_ancestor(wordnet.wnid(first), w) for w in chosen) >= LEAST_SHARE * len(chosen)
    assert len({first, *rest}) == 1 + len(rest)
    assert np.all([found == () for found in common_synsets(reading, together)[:-1]])
