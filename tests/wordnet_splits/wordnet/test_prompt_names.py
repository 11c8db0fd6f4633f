"""Names of classes for a text encoder: known collisions, the order of classes, glosses, another language."""

from __future__ import annotations

import random

import pytest

from tests.raising import raises
from tests.wordnet_splits.small_lexicon import write_lexicon
from wordnet_splits.audit.name_list import audit_names
from wordnet_splits.base.errors import DataError, TaxonomyError
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.wordnet.prompt_names import Nouns, folded, nouns_of, prompt_names
from wordnet_splits.wordnet.taxonomy import Taxonomy

IMAGENET = [(item.name, item.wnids) for item in load_catalog("imagenet1k")]


@pytest.fixture(scope="module")
def names(wordnet):
    """Class id -> name by the rule, of ImageNet-1K."""
    ids = [item.class_id for item in load_catalog("imagenet1k")]
    return dict(zip(ids, prompt_names(IMAGENET, Nouns(wordnet)), strict=True))


@pytest.mark.parametrize(
    ("class_id", "name"),
    [
        ("n02012849", "crane (wading bird)"),
        ("n03126707", "crane (lifting device)"),
        ("n02113186", "Cardigan Welsh corgi"),
        ("n02963159", "cardigan (garment)"),
        ("n03710637", "maillot (clothing)"),
        ("n03710721", "maillot (swimming costume)"),
        ("n03773504", "missile (rocket)"),  # a synonym of projectile
        ("n04008634", "projectile"),
        ("n03954731", "carpenter's plane"),  # planes are aircraft, more often
        ("n03793489", "computer mouse"),
        ("n13133613", "ear (fruit)"),
        ("n04355933", "sunglass (convex lens)"),
        ("n04356056", "dark glasses"),
        ("n01608432", "kite (hawk)"),  # as often the toy
        ("n02276258", "admiral (butterfly)"),
        ("n03804744", "nail (fastener)"),
        ("n03803284", "muzzle (restraint)"),
        ("n03929660", "pick (plectrum)"),  # its hypernym is a device
        ("n02704792", "amphibious vehicle"),
        ("n02088238", "basset hound"),
        ("n02112137", "chow chow"),  # WordNet lists food first
        ("n03028079", "church"),  # the group is no photo
        ("n02129604", "tiger"),  # the person is a figure of speech
        ("n07714990", "broccoli"),  # the plant looks alike
        ("n02119022", "red fox"),  # a fox, though there is a plant
        ("n02442845", "mink (mammal)"),  # a coat, but no carnivore in common words
        ("n01440764", "tench"),
    ],
)
def test_names_of_imagenet(names, class_id, name):
    assert names[class_id] == name


def test_only_qualified_names_differ_from_the_first_word(names, wordnet):
    firsts = {item.class_id: item.name.split(",")[0] for item in load_catalog("imagenet1k")}
    synonyms = {
        class_id: {folded(w.replace("_", " ")) for w in wordnet.lemmas(class_id)} for class_id in names
    }
    changed = {class_id for class_id, name in names.items() if name != firsts[class_id]}
    assert len(changed) == 134
    assert all(names[c].startswith(f"{firsts[c]} (") or folded(names[c]) in synonyms[c] for c in changed)
    assert len({folded(name).rstrip("es") for name in names.values()}) == 1000


def test_names_do_not_depend_on_the_order_of_classes(names, wordnet):
    shuffled = random.Random(0).sample(IMAGENET, len(IMAGENET))
    by_class = dict(zip(shuffled, prompt_names(shuffled, Nouns(wordnet)), strict=True))
    assert [by_class[item] for item in IMAGENET] == list(names.values())


def test_definitions_tell_classes_of_one_kind_apart(wordnet):
    foxes = [wordnet.find(name) for name in ("red_fox.n.02", "red_fox.n.03")]
    named = prompt_names([("red fox", foxes[:1]), ("red_fox", foxes[1:])], Nouns(wordnet))
    assert named == [f"red fox ({wordnet.first_definition(wnid)})" for wnid in foxes]


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([("bank", ()), ("Bank", ())], ["bank", "Bank"]),  # left for the caller, who refuses them
        ([("church/indoor", ()), ("church/outdoor", ())], ["church (indoor)", "church (outdoor)"]),
        ([("crane", ()), ("crane", ("crane.n.05",))], ["crane", "crane (wading bird)"]),
        ([("bedroom", ("bedroom.n.01",)), ("bedchamber", ("bedroom.n.01",))], ["bedroom", "bedchamber"]),
        ([("n02084071", ("dog.n.01",)), ("plane", ())], ["dog", "plane"]),
    ],
)
def test_classes_without_synsets_with_asides_and_with_wnids_for_names(wordnet, classes, expected):
    given = [(name, tuple(map(wordnet.find, synsets))) for name, synsets in classes]
    assert prompt_names(given, Nouns(wordnet)) == expected


def test_another_taxonomy_has_no_tagged_texts():
    small = Taxonomy.from_edges(
        {"thing": [], "bird": ["thing"], "tool": ["thing"], "a": ["bird"], "b": ["tool"]},
        lemmas={"a": ["crane"], "b": ["crane"]},
    )
    classes = [("crane", ["a"]), ("crane", ["b"]), ("bird", ["bird"])]
    assert prompt_names(classes, Nouns(small)) == ["crane (bird)", "crane (tool)", "bird"]


def test_names_of_another_language(tmp_path, wordnet):
    pytest.importorskip("wn")
    words = {"grue": ["crane.n.05", "crane.n.04"], "échassier": ["wading_bird.n.01"], "chien": ["dog.n.01"]}
    words |= {"appareil": ["device.n.01"], "clebs": ["dog.n.01"]}
    pairs = [(word, wordnet.find(name)[1:]) for word, names in words.items() for name in names]
    synsets = {offset: f'<Synset id="omw-fr-{offset}-n" ili="" partOfSpeech="n"/>' for _, offset in pairs}
    entries = [
        f'<LexicalEntry id="e{n}"><Lemma writtenForm="{word}" partOfSpeech="n"/>'
        f'<Sense id="s{n}" synset="omw-fr-{offset}-n"/></LexicalEntry>'
        for n, (word, offset) in enumerate(pairs)
    ]
    about = {"name": "few", "language": "fr", "version": "1"}
    path = write_lexicon(tmp_path / "fr.xml", "\n".join(entries), "\n".join(synsets.values()), **about)
    french = nouns_of(str(path), wordnet)
    classes = [("crane", "crane.n.05"), ("crane", "crane.n.04"), ("clebs", "dog.n.01"), ("cat", "cat.n.01")]
    given = [(name, [wordnet.find(synset)]) for name, synset in classes]
    assert prompt_names(given, french) == ["grue (échassier)", "grue (appareil)", "clebs", ""]
    with raises(TaxonomyError, where="--language", naming="xx"):
        nouns_of("xx", wordnet)
    torch = pytest.importorskip("torch")
    from loaders.harness import zero_shot

    with raises(DataError, where="digits", naming=6):  # none of its classes has a word in the lexicon
        zero_shot(torch.nn.Flatten(), len, "digits", language=str(path))  # type: ignore[arg-type]
    with raises(DataError, where="digits"):
        audit_names(None, "digits", language=str(path))
    assert [item.name for item in audit_names(None, "openood-cifar10", language=str(path)).names] == ["chien"]
