"""Names that WordNet lacks are offered what most of the other classes are."""

from __future__ import annotations

import numpy as np
import pytest

from wordnet_splits.linking import propose_synsets
from wordnet_splits.linking.common import OFFERED, SHARE, common_synsets
from wordnet_splits.linking.joint_reading import read_names
from wordnet_splits.linking.reasons import COMMON, NO_NOUN
from wordnet_splits.linking.weights import Model
from wordnet_splits.wordnet.taxonomy import Taxonomy

DOGS = ["beagle", "borzoi", "whippet", "pug", "collie", "komondor"]
FISH = ["salmon", "trout", "herring", "mackerel", "anchovy", "sardine"]


@pytest.fixture(scope="module")
def taxonomy():
    return Taxonomy.embedded()


def test_a_name_that_wordnet_lacks_is_offered_what_the_others_are_and_asked(taxonomy):
    *_, known, proposal = propose_synsets([*DOGS, "wxyzzy"]).proposals
    assert known.candidates[0].kind == "exact"
    assert {c.kind for c in proposal.candidates} == {COMMON}
    assert 0 < len(proposal.candidates) <= OFFERED
    assert taxonomy.name(proposal.wnid) == "dog.n.01"
    assert (proposal.confidence, proposal.asked) == (0.0, True)
    word = taxonomy.lemmas(proposal.wnid)[0].replace("_", " ")
    below = sum(taxonomy.is_ancestor(proposal.wnid, p.wnid) for p in propose_synsets(DOGS).proposals)
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


def test_only_classes_of_the_same_superclass_count(taxonomy):
    above = ["dogs"] * len(DOGS) + ["fish"] * len(FISH) + ["dogs", "fish"]
    *_, dog, fish = propose_synsets([*DOGS, *FISH, "wxyzzy", "vwxyzzy"], above).proposals
    assert taxonomy.name(dog.wnid) == "dog.n.01"
    assert fish.wnid
    assert "dog.n.01" not in {taxonomy.name(c.wnid) for c in fish.candidates}


def test_the_first_is_above_its_share_of_all_others(taxonomy):
    names = [*DOGS, *FISH, "wxyzzy"]
    reading = read_names(names, [""] * len(names), taxonomy)
    _, together = Model.shipped().shares(reading)
    first, *rest = common_synsets(reading, together)[-1]
    chosen = [p.wnid for p in propose_synsets(names[:-1]).proposals]
    assert sum(taxonomy.is_ancestor(taxonomy.wnid(first), w) for w in chosen) >= SHARE * len(chosen)
    assert len({first, *rest}) == 1 + len(rest)
    assert np.all([found == () for found in common_synsets(reading, together)[:-1]])
