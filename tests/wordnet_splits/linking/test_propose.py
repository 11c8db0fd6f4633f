"""Names to synsets: read together, in any order, each choice with a reason."""

from __future__ import annotations

import random

import pytest

from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.linking import propose_synsets
from wordnet_splits.linking.candidates import KINDS, Lemmas, routes
from wordnet_splits.linking.catalog_maker import proposed
from wordnet_splits.linking.class_names import parse_name
from wordnet_splits.linking.reasons import _ROUTES, NO_NOUN
from wordnet_splits.linking.weights import CLEAR_SHARE
from wordnet_splits.wordnet.taxonomy import Taxonomy

BIRDS = ["heron", "stork", "flamingo", "pelican", "swan", "kiwi"]
MACHINES = ["bulldozer", "forklift", "excavator", "winch", "tow truck", "steamroller"]


def chosen(names, superclasses=None):
    """Name -> the synset's NLTK name."""
    return {row["name"]: row["synset"] for row in propose_synsets(names, superclasses).rows()}


@pytest.fixture(scope="module")
def lemmas():
    return Lemmas(Taxonomy.embedded(), supplemented=False)


@pytest.mark.parametrize(
    ("name", "kind", "lemma"),
    [
        ("fried rice", "exact", "fried_rice"),
        ("egg fried rice", "head", "fried_rice"),
        ("brown fried noodle", "head", "noodle"),
        ("oysters", "variant", "oyster"),
        ("head-phones", "variant", "headphone"),
        ("barndoor", "exact", "barndoor"),
        ("childs_room", "variant", "child's_room"),
        ("chimp", "exact", "chimp"),
        ("stadium/football", "qualified", "football_stadium"),
        ("skatepark", "part", "park"),
        ("mountain snowy", "modifier", "mountain"),
        ("giraffee", "spelling", "giraffe"),
        ("tower pisa", "within", "leaning_tower_of_pisa"),
        ("underwater/coral_reef", "aside", "coral_reef"),
        ("mountain path", "related", "mountain_trail"),
    ],
)
def test_how_a_name_leads_to_a_lemma(lemmas, name, kind, lemma):
    found = {route.lemma: route.kind for route in routes(parse_name(name), lemmas)}
    assert found.get(lemma) == kind


def test_the_words_of_every_kind_are_told():
    assert set(_ROUTES) == set(KINDS)


@pytest.mark.parametrize(("others", "synset"), [(BIRDS, "crane.n.05"), (MACHINES, "crane.n.04")])
def test_the_other_names_decide_which_sense_is_meant(others, synset):
    assert chosen([*others, "crane"])["crane"] == synset


@pytest.mark.parametrize(
    ("name", "sure"),
    [
        ("mouse (computer)", False),
        ("mouse (rodent)", True),
        ("jaguar, car", False),
        ("tench, Tinca tinca", True),
        ("clipart/zebra", False),
        ("dinette/vehicle", False),
        ("church/outdoor", True),
        ("n02391049-Chihuahua", False),
        ("n02085620-zebra", False),
        ("n02391049-zebras", True),
        ("04000_Animalia_Chordata_Mammalia_Carnivora_Felidae_Lynx_rufus", True),
    ],
)
def test_names_with_words_of_another_meaning_are_asked_about(name, sure):
    proposal = propose_synsets([*BIRDS, "zebra", "otter", "weasel", name]).proposals[-1]
    assert proposal.must_confirm == proposal.asked == (not sure)
    assert (proposed(proposal).mapped == "proposed") >= (not sure)


def test_superclasses_tell_two_equal_names_apart():
    names = [*BIRDS, *MACHINES, "crane", "crane"]
    above = ["bird"] * len(BIRDS) + ["machine"] * len(MACHINES) + ["bird", "machine"]
    wnids = [p.wnid for p in propose_synsets(names, above).proposals]
    taxonomy = Taxonomy.embedded()
    assert [taxonomy.name(w) for w in wnids[-2:]] == ["crane.n.05", "crane.n.04"]


def test_the_order_of_the_names_does_not_matter():
    names = [*BIRDS, *MACHINES, "crane", "bat", "mouse", "fried rice", "lobster roll", "quickly"]
    shuffled = names[:]
    random.Random(0).shuffle(shuffled)
    first = {row["name"]: row for row in propose_synsets(names).rows()}
    second = {row["name"]: row for row in propose_synsets(shuffled).rows()}
    assert first == second


def test_a_row_has_both_glosses_a_reason_and_a_confidence():
    found = propose_synsets([*BIRDS, "crane"])
    row = found.rows()[-1]
    assert row["gloss"].startswith("large long-necked wading bird")
    assert row["runner_up"]
    assert row["runner_up_gloss"]
    assert row["reason"] == (
        "the name is the noun 'crane'; sense 5 of 5; 3 other classes are below 'wading bird', too"
    )
    assert 0 < row["confidence"] < 1
    assert found.to_table().num_rows == len(found) == 7


def test_a_word_that_is_no_noun_gets_nothing_and_is_asked():
    (proposal,) = propose_synsets(["wxyzzy"]).proposals
    assert (proposal.wnid, proposal.runner_up, proposal.confidence) == ("", "", 0.0)
    assert proposal.asked
    assert proposal.reason == NO_NOUN


@pytest.mark.parametrize("number", ["0", "1", "10", "1.0", "-1", "100", "1,000", "٣"])
def test_a_number_is_no_class_unless_a_person_says_so(number):
    proposal, *_ = propose_synsets([number, *BIRDS]).proposals
    assert (proposal.confidence, proposal.asked, proposal.must_confirm) == (0.0, True, True)
    decision = proposed(proposal)
    assert (decision.wnids, decision.mapped) == ((), "")


def test_names_that_only_a_number_tells_apart_are_asked_about():
    proposals = propose_synsets(["crane_1", "crane_2", "heron_3", *BIRDS[1:]]).proposals
    assert [p.must_confirm for p in proposals] == [True, True, False, *[False] * len(BIRDS[1:])]


def test_a_folder_of_inaturalist_is_its_species():
    ranks = "04486_Animalia_Chordata_Mammalia_Carnivora_Felidae_"
    found = chosen([f"{ranks}Lynx_rufus", f"{ranks}Lynx_blorfii", "tiger", "lion"])
    assert found[f"{ranks}Lynx_rufus"] == "bobcat.n.01"
    assert found[f"{ranks}Lynx_blorfii"] == "lynx.n.02"


@pytest.mark.parametrize("name", ["n02084071", "n02084071-whatever", "dog.n.01"])
def test_a_synset_in_the_name_is_taken(name):
    (proposal,) = propose_synsets([name]).proposals
    assert proposal.wnid == "n02084071"


@pytest.mark.parametrize("name", ["n99999999", "dog.n.99"])
def test_a_synset_that_does_not_exist_is_not_taken(name):
    proposal, *_ = propose_synsets([name, "teapot"]).proposals
    assert proposal.wnid in ("", "n02084071")
    assert _ROUTES["synset"] not in proposal.reason


def test_a_toy_taxonomy_does():
    toy = Taxonomy.from_edges(
        {"n2": ["n1"], "n3": ["n2"], "n4": ["n2"]},
        lemmas={"n1": ["thing"], "n2": ["animal"], "n3": ["seal"], "n4": ["walrus"]},
    )
    assert [p.wnid for p in propose_synsets(["seals", "walrus"], taxonomy=toy).proposals] == ["n3", "n4"]


@pytest.mark.parametrize(
    ("names", "above"),
    [([], None), (["dog", " "], None), (["dog"], [])],
)
def test_mistakes(names, above):
    with raises(DataError, where="propose"):
        propose_synsets(names, above)


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        (["mac & cheese", "fish & chips", "pizza", "salad"], {"mac & cheese"}),  # filed by the supplement
        (["air fryer", "toaster oven", "salad", "bread"], {"air fryer"}),
        (["LEGO brick", "teddy bear", "doll", "yo-yo"], {"LEGO brick"}),
        (
            ["light switch", "toaster", "plug and switch", "xyzzy switch", "Lego switch"],
            {"plug and switch", "xyzzy switch", "Lego switch"},
        ),
        (["harbor seal", "dolphin", "spotted dolphin"], {"spotted dolphin"}),  # rather a species
        (["normal", "pneumonia", "tuberculosis"], {"normal"}),
        (["delicious", "pizza", "salad"], {"delicious"}),
        (["Boot", "Auto", "Hund", "Katze", "Flugzeug"], {"Boot", "Auto", "Hund", "Katze", "Flugzeug"}),
    ],
)
def test_a_name_that_is_not_an_english_noun_as_a_whole_is_asked_about(names, asked):
    proposals = propose_synsets(names).proposals
    assert {p.name for p in proposals if p.must_confirm} == asked
    assert {p.name for p in proposals if p.asked} >= asked


def test_a_sense_without_a_clear_majority_is_asked_about():
    _, seal = propose_synsets(["crane", "seal"]).proposals
    share = seal.candidates[0].share
    assert 0.5 < share < CLEAR_SHARE
    assert seal.confidence == pytest.approx(share)
    assert seal.asked


def test_an_ampersand_is_read_as_and():
    dish, _ = propose_synsets(["fish & chips", "salad"]).proposals
    assert Taxonomy.embedded().name(dish.wnid) == "fish_and_chips.n.01"


def test_the_reason_says_why_a_confident_choice_is_asked_about():
    reasons = [p.reason for p in propose_synsets(["normal", "pneumonia"]).proposals]
    assert ["adjective" in reason for reason in reasons] == [True, False]
    assert all(
        "another language" in p.reason for p in propose_synsets(["Boot", "Hund", "Katze", "Auto"]).proposals
    )
