"""Words and the database's own files: senses and base forms as NLTK's, export byte for byte, reading WNDB."""

from __future__ import annotations

import hashlib
import io
import lzma
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.raising import raises
from tests.wordnet_splits.frozen_answers import digest_of
from tests.wordnet_splits.wordnet.taxonomy.small_wndb import SMALL, write_small_wndb
from tools.facts.wordnet import pack, shipped_files
from tools.wndb_export import export_wndb, wndb_texts
from wordnet_splits.base.errors import TaxonomyError
from wordnet_splits.base.lazy import MissingPackageError
from wordnet_splits.datasets.catalog import catalog_names, load_catalog
from wordnet_splits.wordnet.taxonomy import Taxonomy, wndb
from wordnet_splits.wordnet.taxonomy.lexicon import LemmaIndex

ENDINGS = ("s", "es", "ses", "ves", "xes", "zes", "ches", "shes", "men", "ies")
ODD_WORDS = (
    "",
    "s",
    "ss",
    "men",
    "Dogs",
    "DOG",
    "dog food",
    "dog_food",
    "children's_room",
    "Ås",
    "ß",
    "glasses",
)


def senses_by_nltk(reader: Any, word: str) -> tuple[str, ...]:
    return tuple(f"n{s.offset():08d}" for s in reader.synsets(word, pos="n"))


FROZEN = {
    "base forms": "2da61793d4cecf0b7d718af6b817639e967e94c6a8908e6bfb661df028f7fdf6",
    "senses": "a6a2b03fb6d5bd260edcff1d0ba781014157ea56eb42cf26b7c761dc7c8f9908",
    "lemma index": "d280d6bae74b2bed6b29e97e0555327b78ed561cac3aee1116140ed68f60588d",
}
"""Digests of what NLTK answers."""


@pytest.fixture(scope="module")
def forms(wordnet: Taxonomy) -> list[str]:
    """Every lemma and exception, odd words, and lemmas with every ending that may be taken off."""
    index = wordnet.lemma_index()
    exceptions = wndb.ShippedTexts()["noun.exc"].decode().split()
    forms = [*index, *exceptions, *ODD_WORDS]
    forms += [lemma + ending for at, lemma in enumerate(index) if at % 7 == 0 for ending in ENDINGS]
    forms += [lemma[:-1] + "ies" for lemma in index if lemma.endswith("y")]
    forms += [lemma[:-3] + "men" for lemma in index if lemma.endswith("man")]
    assert len(forms) > 250_000
    return forms


def words_of(wordnet: Taxonomy, sources: Iterable[str]) -> list[str]:
    """Return some lemmas, plurals, odd words and the class names of some sources."""
    lemmas = list(wordnet.lemma_index())
    words = [*lemmas[::8], *(f"{lemma}s" for lemma in lemmas[3::16]), *ODD_WORDS]
    for source in sources:
        for entry in load_catalog(source).classes:
            name = entry.name.replace(" ", "_")
            words += [name, name.upper(), f"{name}s"]
    assert len(words) > 25_000
    return words


def test_base_forms_and_senses_are_as_frozen(wordnet: Taxonomy, forms: list[str]) -> None:
    words = words_of(wordnet, ("caltech256", "cifar100", "food101", "imagenet1k", "places365"))
    assert digest_of(wordnet.morphy(form) for form in forms) == FROZEN["base forms"]
    assert digest_of(wordnet.senses(word) for word in words) == FROZEN["senses"]
    assert digest_of(sorted(wordnet.lemma_index().items())) == FROZEN["lemma index"]


@pytest.mark.oracle
def test_base_forms_of_every_lemma_and_exception_equal_nltk(
    nltk_wordnet: Any, wordnet: Taxonomy, forms: list[str]
) -> None:
    for form in forms:
        assert wordnet.morphy(form) == nltk_wordnet.morphy(form, "n"), form


@pytest.mark.oracle
def test_senses_equal_nltk_in_order(nltk_wordnet: Any, wordnet: Taxonomy) -> None:
    for word in words_of(wordnet, catalog_names()):
        assert wordnet.senses(word) == senses_by_nltk(nltk_wordnet, word), word


@pytest.mark.oracle
def test_lemma_index_equals_nltk(nltk_wordnet: Any, wordnet: Taxonomy) -> None:
    index = wordnet.lemma_index()
    theirs = {
        lemma: tuple(f"n{offset:08d}" for offset in by_pos["n"])
        for lemma, by_pos in nltk_wordnet._lemma_pos_offset_map.items()
        if "n" in by_pos
    }
    assert isinstance(index, LemmaIndex)
    assert len(index) == len(theirs) == 117_798
    assert dict(index) == theirs
    assert "dog" in index
    assert "dogs" not in index
    with pytest.raises(KeyError):
        index["dogs"]


def test_names(wordnet: Taxonomy) -> None:
    assert wordnet.name("n02084071") == "dog.n.01"
    assert wordnet.from_name("domestic_dog.n.01") == wordnet.from_name("Dog.n.1") == "n02084071"
    for wrong in ("dog.n.99", "dog.v.01", "dog", "dog.n.", "dog.n.00", "dog.n.-1", "dog.n.¹"):
        with pytest.raises(TaxonomyError):
            wordnet.from_name(wrong)
    with raises(TaxonomyError, near="dog"):
        wordnet.from_name("dogg.n.01")


# ---------------------------------------------------------------------- the database's own files


def test_export_restores_the_database_byte_for_byte(tmp_path: Path) -> None:
    export_wndb(tmp_path)
    for name, expected in wndb.SHA256.items():
        assert hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() == expected
    assert (tmp_path / "lexnames").read_text().splitlines()[5] == "05\tnoun.animal\t1"
    assert len((tmp_path / "lexnames").read_text().splitlines()) == 45
    senses = (tmp_path / "index.sense").read_text().splitlines()
    assert senses == sorted(senses)
    assert "dog%1:05:00:: 02084071 1 0" in senses


@pytest.mark.oracle
def test_nltk_resolves_sense_keys_of_the_export(nltk_wordnet: Any) -> None:
    for lemma in nltk_wordnet.synset_from_pos_and_offset("n", 2084071).lemmas():
        assert nltk_wordnet.lemma_from_key(lemma.key()) == lemma


def test_shipped_arrays_equal_those_rebuilt_from_the_text() -> None:
    texts = wndb_texts()
    rebuilt = pack(wndb.read(texts, "shipped"))
    with (
        (wndb.shipped_folder() / wndb.ARRAYS).open("rb") as file,
        np.load(file, allow_pickle=False) as shipped,
    ):
        assert sorted(shipped.files) == sorted(rebuilt)
        for name, array in rebuilt.items():
            assert shipped[name].dtype == array.dtype
            np.testing.assert_array_equal(shipped[name], array, err_msg=name)


def test_shipped_files_stay_small() -> None:
    sizes = [len(path.read_bytes()) for path in wndb.shipped_folder().iterdir()]
    assert sum(sizes) <= 12e6
    assert "Princeton" in (wndb.shipped_folder() / "LICENSE").read_text()


@pytest.mark.oracle
def test_the_builder_writes_what_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in wndb_texts().items():
        (tmp_path / name).write_bytes(text)
    monkeypatch.setattr(lzma, "compress", lambda text, preset: text)  # 15 s, and no news
    built = shipped_files(tmp_path)
    made, shipped = (
        np.load(io.BytesIO(built[wndb.ARRAYS])),
        np.load(wndb.shipped_folder() / wndb.ARRAYS),
    )
    assert made.files == shipped.files  # the zip around them differs between numpy's versions
    for name in made.files:
        assert made[name].dtype == shipped[name].dtype
        assert np.array_equal(made[name], shipped[name])
    (tmp_path / "noun.exc").write_bytes(b"oxen ox\n")
    with raises(TaxonomyError, where="noun.exc"):
        shipped_files(tmp_path)


def assert_same(a: Taxonomy, b: Taxonomy) -> None:
    assert list(a) == list(b)
    for array in (
        "parent_indptr",
        "parent_indices",
        "child_indptr",
        "child_indices",
        "min_depths",
        "max_depths",
    ):
        np.testing.assert_array_equal(getattr(a.graph, array), getattr(b.graph, array))
    np.testing.assert_array_equal(a.graph.instance, b.graph.instance)
    assert (a.version, a.senses("dogs"), a.morphy("oxen")) == (b.version, b.senses("dogs"), b.morphy("oxen"))
    assert a.gloss("n02084071") == b.gloss("n02084071")
    assert a.tree().parents("n02084071") == b.tree().parents("n02084071") == ("n01317541",)


def test_a_wndb_directory_reads_as_the_embedded_one(wordnet: Taxonomy, tmp_path: Path) -> None:
    for name, text in wndb_texts().items():  # as Debian has them: no lexnames, no index.sense
        (tmp_path / name).write_bytes(text)
    assert_same(Taxonomy.from_wndb(tmp_path), wordnet)


@pytest.mark.oracle
def test_an_nltk_reader_reads_as_the_embedded_one(nltk_wordnet: Any, wordnet: Taxonomy) -> None:
    assert_same(Taxonomy.from_nltk(nltk_wordnet), wordnet)


def test_a_missing_nltk_corpus_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    nltk = pytest.importorskip("nltk", reason="pip install '.[nltk]'")
    from nltk.corpus import LazyCorpusLoader
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    monkeypatch.setattr(nltk.data, "path", [])
    absent = LazyCorpusLoader("wordnet", WordNetCorpusReader, None)
    monkeypatch.setattr("nltk.corpus.wordnet", absent)
    with raises(TaxonomyError, where="nltk", naming=("nltk.downloader", "wordnet")):
        Taxonomy.from_nltk()
    monkeypatch.setitem(sys.modules, "nltk", None)
    with raises(MissingPackageError, where="Taxonomy.from_nltk", naming="nltk"):
        Taxonomy.from_nltk()


def test_a_small_database(tmp_path: Path) -> None:
    taxonomy = Taxonomy.from_wndb(write_small_wndb(tmp_path))
    assert (taxonomy.version, list(taxonomy)) == ("9.9", ["n00000010", "n00000100"])
    assert taxonomy.parents("n00000100") == ("n00000010",)
    assert not taxonomy.graph.instance.any()
    assert taxonomy.lemmas("n00000100") == ("Dog", "hound")
    assert taxonomy.senses("DOGGES") == ("n00000100",)
    assert taxonomy.gloss("n00000100") == "barks"  # although its line is not at byte 100


@pytest.mark.parametrize(
    ("name", "old", "new", "where"),
    [
        (
            "data.noun",
            "00000010 n 0000 @i",
            "00000011 n 0000 @i",
            "data.noun",
        ),
        ("data.noun", " n 01 entity", " v 01 entity", "data.noun line 2"),
        ("data.noun", " 003 @", " 009 @", "data.noun line 3"),
        ("data.noun", "00000100 05", "-0000100 05", "data.noun line 3"),
        ("data.noun", " 02 Dog", " zz Dog", "data.noun line 3"),
        ("data.noun", "00000100 05", "00000001 05", "data.noun"),
        (
            "index.noun",
            "0 00000100  \nentity",
            "0 00000101  \nentity",
            "index.noun line 1",
        ),
        ("index.noun", "dog n 1", "dog n many", "index.noun line 1"),
        ("index.noun", "dog n", "dug n", "index.noun"),
    ],
)
def test_a_malformed_database_is_refused_with_its_line(
    tmp_path: Path, name: str, old: str, new: str, where: str
) -> None:
    text = SMALL[name].replace(old, new, 1)
    assert text != SMALL[name]
    with raises(TaxonomyError, where=where):
        Taxonomy.from_wndb(write_small_wndb(tmp_path, **{name: text}))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["data.noun", "index.noun", "noun.exc"]), st.integers(0, 260), st.text(max_size=4))
def test_no_edit_of_a_database_escapes_the_error_family(
    tmp_path: Path, name: str, at: int, text: str
) -> None:
    old = SMALL[name]
    edited = {**SMALL, name: old[: at % len(old)] + text + old[at % len(old) + 2 :]}
    for file, content in edited.items():
        (tmp_path / file).write_bytes(content.encode("utf-8", "surrogatepass"))
    try:
        taxonomy = Taxonomy.from_wndb(tmp_path)
    except TaxonomyError:
        return
    for wnid in taxonomy:
        assert taxonomy.from_name(taxonomy.name(wnid)) == wnid
        assert taxonomy.ancestors(wnid)
        assert isinstance(taxonomy.gloss(wnid), str)


def test_an_empty_or_cut_database_is_refused(tmp_path: Path) -> None:
    with raises(TaxonomyError, where="data.noun"):
        Taxonomy.from_wndb(write_small_wndb(tmp_path, **{"data.noun": ""}))
    with raises(TaxonomyError, where="data.noun"):
        Taxonomy.from_wndb(write_small_wndb(tmp_path, **{"data.noun": SMALL["data.noun"][:-9]}))
    (tmp_path / "noun.exc").unlink()
    with raises(TaxonomyError, where="noun.exc"):
        Taxonomy.from_wndb(tmp_path)


def test_what_has_no_text_says_so(toy: Taxonomy) -> None:
    with raises(TaxonomyError, where="hound"):
        toy.gloss("hound")
    assert (toy.definition("hound"), toy.first_definition("hound"), toy.examples("hound")) == ("", "", ())
