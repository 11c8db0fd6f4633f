"""Other WordNets: sense keys against NLTK's, a lexicon of `wn` that the test writes, and real WordNet 3.1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.wordnet.taxonomy import Taxonomy, wndb
from wordnet_splits.wordnet.taxonomy.identifiers import load_other_wordnet, sense_keys

from ...small_lexicon import SYNSETS


def test_a_lexicon_of_wn_is_a_taxonomy_mapped_by_sense_keys(lexicon: str, wordnet: Taxonomy) -> None:
    found = load_other_wordnet(lexicon)
    there = found.taxonomy
    assert found.name == "oewn-2024"
    assert len(there) == len(SYNSETS)
    dog, frump = (found.synset(wordnet.find(name)) for name in ("dog.n.01", "frump.n.01"))
    assert dog is not None
    assert frump is not None
    assert there.lemmas(dog) == ("dog", "domestic_dog")
    assert there.senses("dog") == (dog, frump)
    assert there.gloss(dog) == "it barks"
    assert [there.name(wnid) for wnid in there.path_up(dog, there.root)] == [
        "dog.n.01",
        "animal.n.01",
        "entity.n.01",
    ]
    rex = there.find("rex")
    assert there.parents(rex) == (dog,)
    assert there.wholes(rex, "member") == (there.find("pack"),)
    assert found.synset(wordnet.find("cat.n.01")) is None  # not in it


@pytest.mark.oracle
def test_the_keys_are_nltks(nltk_wordnet: Any) -> None:
    keys = sense_keys(wndb.ShippedTexts()["data.noun"])
    for word in ("dog", "crane", "Polish_monetary_unit", "Band_Aid", "1530s", "ice_cream"):
        for synset in nltk_wordnet.synsets(word, "n"):
            for lemma in synset.lemmas():
                assert keys[lemma.key()] == f"n{synset.offset():08d}"


def test_synsets_of_31_are_those_of_its_own_index_of_senses(real_data: Path, wordnet: Taxonomy) -> None:
    folder = real_data / "wordnet-3.1"
    if not folder.is_dir():
        pytest.skip(f"WordNet 3.1 is not at {folder}")
    other = load_other_wordnet(folder)
    assert other.name == "wordnet-3.1"
    lines = (folder / "index.sense").read_text(encoding="utf-8").splitlines()
    published = {key: f"n{offset}" for key, offset, *_ in map(str.split, lines) if "%1:" in key}
    assert published.items() <= other.keys.items()
    assert len(other.keys) - len(published) == 8  # data.noun has these words twice, in two spellings of case
    assert other.taxonomy.name(str(other.synset(wordnet.find("dog.n.01")))) == "dog.n.01"
    assert other.synset("n02084071") == "n02086723"


@pytest.mark.parametrize("given", ["nowhere", "oewn:1066"])
def test_what_is_no_wordnet_says_what_is(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wn = pytest.importorskip("wn")
    monkeypatch.setattr(wn.config, "data_directory", tmp_path / "wn")
    with pytest.raises(TaxonomyError) as caught:
        load_other_wordnet(given)
    assert "oewn:2024" in str(caught.value)
