"""Identifiers in place of class names, and other WordNets: sense keys, a lexicon of `wn`, WordNet 3.1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.raising import raises
from wordnet_splits.base.errors import DataError, TaxonomyError, UnknownNameError
from wordnet_splits.wordnet.taxonomy import Taxonomy, wndb
from wordnet_splits.wordnet.taxonomy.identifiers import identify, load_other_wordnet, read_ids, sense_keys

from ...small_lexicon import SYNSETS

OEWN_AND_ILI = {
    "03494245": "i54629",  # hand tool
    "03497643": "i54645",  # hard disc
    "03499379": "i54655",  # harmonica
    "03500383": "i54659",  # harp
    "03502782": "i54674",  # hat
    "03504106": "i54681",  # hatchet
    "03505601": "i54692",  # hayfork
    "03507344": "i54704",  # headboard
}
"""Identifier in Open English WordNet -> the ILI that it gives (src/yaml/noun.artifact.yaml)."""


@pytest.fixture(scope="module")
def taxonomy():
    return Taxonomy.embedded()


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        ("i46360", "ILI"),
        ("dog%1:05:00::", "sense key"),
        ("02084071-n", "OMW"),
        ("omw-fr-02084071-n", "OMW"),
        ("wn:02084071n", "OMW"),
        ("oewn-02086723-n", "Open English WordNet"),
        ("omw-en31-02086723-n", "WordNet 3.1"),
    ],
)
def test_identifiers_of_wordnets_are_read_and_the_reason_names_their_scheme(name, scheme):
    from wordnet_splits.linking import propose_synsets

    (proposal,) = propose_synsets([name]).proposals
    assert proposal.wnid == "n02084071"
    assert not proposal.asked
    assert proposal.reason.startswith(f"{scheme}: ")


def test_open_english_wordnet_and_the_ili_agree(taxonomy):
    by_offset = [identify(f"oewn-{offset}-n", taxonomy, {}) for offset in OEWN_AND_ILI]
    by_ili = [identify(ili, taxonomy, {}) for ili in OEWN_AND_ILI.values()]
    assert [i.wnid for i in by_offset] == [i.wnid for i in by_ili]
    assert all(i.wnid for i in by_ili)
    assert identify("i100000", taxonomy, {}).wnid == "n11944196"
    assert identify("i35545", taxonomy, {}).wnid == "n00001740"


def test_wnids_of_31_are_read_where_30_lacks_one():
    from wordnet_splits.linking import propose_synsets

    names = ["n02086723", "n03502782_hat", "n03499379"]
    assert [p.wnid for p in propose_synsets(names).proposals] == ["n02084071", "n03497657", "n03494278"]
    of_30 = ["n02084071", "n03497657"]
    assert [p.wnid for p in propose_synsets(of_30).proposals] == of_30


@pytest.mark.parametrize(
    ("names", "named"),
    [
        (["Q144", "Q146", "dog"], ("2", "3", "Q144")),
        (["/m/0bt9lr", "m_01yrx"], "/m/0bt9lr"),
        (["bn:00015267n"], "bn:00015267n"),
        (["n99999999", "n02084071", "n99999998"], ("2", "3", "3.0")),
        (["oewn-92468965-n"], ()),
    ],
)
def test_a_list_of_unknown_identifiers_is_refused_once_with_its_scheme(names, named: object):
    from wordnet_splits.linking import propose_synsets

    with raises(DataError, where="names", naming=named):
        propose_synsets(names)


def test_a_few_unknown_identifiers_are_asked_about_and_car_models_are_names():
    from wordnet_splits.linking import propose_synsets

    rows = {p.name: p for p in propose_synsets(["i46360", "hat", "Q7", "i8", "oewn-92468965-n"]).proposals}
    assert rows["Q7"].asked
    assert rows["Q7"].confidence == 0
    assert "Wikidata item" in rows["Q7"].reason
    assert rows["oewn-92468965-n"].asked
    assert "ILI" not in rows["i8"].reason


def test_a_table_resolves_every_scheme_and_names(taxonomy, tmp_path):
    from wordnet_splits.linking import propose_synsets

    table = tmp_path / "map.tsv"
    table.write_text(
        "# mine\nid\twnid\nQ144\tn02084071\n/m/01yrx\tcat.n.01\nbn:1\ti54655\nfoo\t03497657-n\n"
        "x\t00001740-a\n"
    )
    ids = read_ids(table, taxonomy)
    assert ids == {"Q144": "n02084071", "/m/01yrx": "n02121620", "bn:1": "n03494278", "foo": "n03497657"}
    proposals = propose_synsets(["wd:Q144", "m_01yrx", "bn:1", "foo"], ids=ids).proposals
    assert [p.wnid for p in proposals] == list(ids.values())
    assert not any(p.asked for p in proposals)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("Q144\tn02084071\nQ146 n02121620\n", "map.tsv, line 2"),
        ("Q144\tn99999999\n", "map.tsv, line 1"),
        ("Q144\tn02084071\nQ146\tkitty\n", "map.tsv, line 2"),
        ("# nothing\n", "map.tsv"),
    ],
)
def test_a_malformed_table_is_refused_with_its_line(taxonomy, tmp_path, text, where: str):
    table = tmp_path / "map.tsv"
    table.write_text(text)
    with raises(DataError, where=where):
        read_ids(table, taxonomy)


def test_an_audit_reads_identifiers_and_refuses_those_without_a_synset(taxonomy):
    from wordnet_splits.audit.class_list import load_class_list

    classes = load_class_list(["oewn-02086723-n", "i54655", "hat"], taxonomy).classes
    assert [item.wnids for item in classes] == [("n02084071",), ("n03494278",), ("n03497657",)]
    with raises(UnknownNameError, where="list", naming=("--ids", "MAP.tsv")):
        load_class_list(["Q144", "Q146"], taxonomy)


def test_an_identifier_of_two_synsets_has_none(tmp_path, taxonomy):
    path = tmp_path / "ids.tsv"
    path.write_text("item\tsynset\nQ1\tn02084071\nQ1\tn02121620\nQ2\tdog.n.01\nQ2\tn02084071\n")
    assert read_ids(path, taxonomy) == {"Q1": "", "Q2": "n02084071"}


def test_only_the_first_line_of_a_table_may_be_a_heading(tmp_path, taxonomy):
    path = tmp_path / "ids.tsv"
    path.write_text("Q1\tdog\nQ2\tcat\nQ3\tn02084071\n")
    with raises(DataError, where="ids.tsv, line 2", naming="cat"):
        read_ids(path, taxonomy)


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
    assert there.path_up(dog, there.root) == (dog, "oewn-2-n", "oewn-1-n")
    assert (there.title, there.name(dog), there.find("dog#2")) == ("oewn 2024", "dog#1", frump)
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
    with raises(TaxonomyError, naming=given):
        load_other_wordnet(given)
