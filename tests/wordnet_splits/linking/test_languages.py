"""Class names in German, by a small lexicon of our own in the format of the Open Multilingual Wordnet."""

from __future__ import annotations

import pytest

from tests.raising import raises
from tests.wordnet_splits.small_lexicon import LEXICON, write_lexicon
from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.datasets.catalog import read_catalog
from wordnet_splits.linking import propose_synsets
from wordnet_splits.linking.catalog_maker import make_catalog
from wordnet_splits.linking.languages import load_language
from wordnet_splits.wordnet.taxonomy import Taxonomy

NOUNS = {
    "Hund": ["dog.n.01"],
    "Katze": ["cat.n.01"],
    "Hamster": ["hamster.n.01"],
    "Ratte": ["rat.n.01"],
    "Löwe": ["lion.n.01"],
    "Maus": ["mouse.n.01", "mouse.n.04"],
    "Drucker": ["printer.n.03", "printer.n.01"],
    "Tastatur": ["keyboard.n.01"],
    "Webcam": ["webcam.n.01"],
    "Modem": ["modem.n.01"],
    "Laptop": ["laptop.n.01"],
    "Scanner": ["scanner.n.02"],
    "Telefon": ["telephone.n.01"],
    "Bank": ["bench.n.01", "depository_financial_institution.n.01"],
    "Boot": ["boat.n.01"],
    "Ruder": ["oar.n.01"],
}
ABOUT = {"name": "few", "language": "de", "version": "1.0"}


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    """A file of WN-LMF; cats have no ILI and an id of OMW, all others an ILI and another id."""
    pytest.importorskip("wn")
    taxonomy = Taxonomy.embedded()
    entries, synsets = [], []
    for lemma, names in NOUNS.items():
        senses = []
        for name in names:
            wnid = taxonomy.find(name)
            omw = name == "cat.n.01"
            synset = f"omw-de-{wnid[1:]}-n" if omw else f"few-{len(synsets)}-n"
            ili = "" if omw else f"i{35545 + taxonomy.index(wnid)}"
            senses.append(f'<Sense id="s{len(synsets)}" synset="{synset}"/>')
            synsets.append(f'<Synset id="{synset}" ili="{ili}" partOfSpeech="n"/>')
        lemma_tag = f'<Lemma writtenForm="{lemma}" partOfSpeech="n"/>'
        entries.append(f'<LexicalEntry id="e{len(entries)}">{lemma_tag}{"".join(senses)}</LexicalEntry>')
    path = tmp_path_factory.mktemp("german") / "few.xml"
    return write_lexicon(path, "\n".join(entries), "\n".join(synsets), **ABOUT)


def chosen(names, language):
    return {row["name"]: row["synset"] for row in propose_synsets(names, language=str(language)).rows()}


def test_names_are_joined_by_ili_and_offset_and_the_translation_is_shown(german):
    proposals = propose_synsets(["Hund", "Katze", "LÖWE", "boot"], language=str(german))
    rows = {row["name"]: row for row in proposals.rows()}
    assert [row["synset"] for row in rows.values()] == ["dog.n.01", "cat.n.01", "lion.n.01", "boat.n.01"]
    assert not any(row["asked"] for row in rows.values())
    assert "'hund'; in English dog, domestic dog, Canis familiaris (dog.n.01)" in rows["Hund"]["reason"]


def test_the_other_names_decide_the_sense_and_an_ambiguous_name_is_asked(german):
    assert chosen(["Hund", "Hamster", "Ratte", "Maus", "Katze"], german)["Maus"] == "mouse.n.01"
    devices = ["Tastatur", "Webcam", "Modem", "Laptop", "Scanner", "Telefon", "Maus"]
    assert chosen(devices, german)["Maus"] == "mouse.n.04"
    bank, *others = propose_synsets(["Bank", "Hund", "Laptop"], language=str(german)).proposals
    assert bank.asked
    assert len(bank.candidates) == 2
    assert not any(p.asked for p in others)


def test_a_compound_is_asked_about_and_an_unknown_name_has_no_synset(german):
    names = ["Hund", "Katze", "Ratte", "Ruderboot", "Rakete", "Löwe"]
    rows = {p.name: p for p in propose_synsets(names, language=str(german)).proposals}
    assert rows["Ruderboot"].asked
    assert "few:1.0 lacks the name, which ends in 'boot'" in rows["Ruderboot"].reason
    assert rows["Rakete"].confidence == 0


def test_the_catalog_keeps_the_translation_as_evidence(german, tmp_path):
    made = make_catalog(["Hund", "Katze", "Löwe"], tmp_path / "mine.tsv", language=str(german))
    assert not made.unsure
    row = read_catalog(made.out)["Hund"]
    assert (row.wnids, row.mapped) == (("n02084071",), "proposed")
    assert "in English dog, domestic dog, Canis familiaris (dog.n.01)" in row.why


def test_an_installed_lexicon_is_read_by_its_code(german, tmp_path, monkeypatch):
    wn = pytest.importorskip("wn")
    monkeypatch.setattr(wn.config, "data_directory", tmp_path / "wn")
    taxonomy = Taxonomy.embedded()
    with raises(TaxonomyError, where="--language", naming=("de", "wn")):
        load_language("de", taxonomy)
    wn.add(german, progress_handler=None)
    by_code, by_file = load_language("de", taxonomy), load_language(str(german), taxonomy)
    assert by_code.lexicon == "few:1.0"
    assert by_code.senses == by_file.senses
    with raises(TaxonomyError, where="--language", naming="xx"):
        load_language("xx", taxonomy)


WITHOUT_A_WORD = (
    '<LexicalEntry id="e"><Lemma partOfSpeech="n"/><Sense id="s" synset="few-1-n"/></LexicalEntry>'
)
SYNSET = '<Synset id="few-1-n" ili="i46360" partOfSpeech="n"/>'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<a/>",
        LEXICON.format(entries="<", synsets="", **ABOUT),
        LEXICON.format(entries=WITHOUT_A_WORD, synsets=SYNSET, **ABOUT),
    ],
)
def test_a_file_that_is_not_wn_lmf_is_refused(tmp_path, text):
    pytest.importorskip("wn")
    path = tmp_path / "bad.xml"
    path.write_text(text)
    with raises(TaxonomyError, where="bad.xml"):
        load_language(str(path), Taxonomy.embedded())


def test_english_needs_no_lexicon():
    assert load_language("en", Taxonomy.embedded()) is None
