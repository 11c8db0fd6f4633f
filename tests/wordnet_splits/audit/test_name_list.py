"""Audits of class names for zero-shot models: ImageNet's first words by NLTK, mix-ups, files, errors."""

from __future__ import annotations

import csv
from collections import Counter

import pytest

from tests.raising import mentions, raises
from wordnet_splits.audit.name_list import NamesAudit, audit_names
from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.benchmark.manifest.loading import manifest_names
from wordnet_splits.datasets.catalog import load_catalog

IMAGENET = "openood-imagenet1k"
CATALOG = list(load_catalog("imagenet1k"))
FIRST = [item.name.split(",")[0] for item in CATALOG]


def problems(audit: NamesAudit) -> dict[str, set[str]]:
    """Class id -> problems."""
    return {item.class_id: set(item.problems) for item in audit.names}


@pytest.fixture(scope="module")
def first_words() -> NamesAudit:
    return audit_names(FIRST, IMAGENET)


def test_first_words_of_imagenet_as_nltk_reads_them(first_words, nltk_wordnet):
    found = problems(first_words)
    times = Counter(map(str.lower, FIRST))
    assert {c for c, p in found.items() if "collision" in p} == {
        item.class_id for item, name in zip(CATALOG, FIRST, strict=True) if times[name.lower()] > 1
    }
    lemmas: dict[str, set[str]] = {}
    for item in CATALOG:
        synset = nltk_wordnet.synset_from_pos_and_offset("n", int(item.class_id[1:]))
        for lemma in synset.lemma_names():
            lemmas.setdefault(lemma.lower().replace("-", "_"), set()).add(item.class_id)
    for item, name in zip(CATALOG, FIRST, strict=True):
        key = name.lower().replace(" ", "_")
        senses = [f"n{s.offset():08d}" for s in nltk_wordnet.synsets(key, "n")]
        if senses[0] != item.class_id:
            assert found[item.class_id] & {"rare_sense", "later_sense"}, name
        assert ("rare_sense" in found[item.class_id]) <= (len(senses) > 1), name
        assert ("shared" in found[item.class_id]) == (len(lemmas[key.replace("-", "_")]) > 1), name
    assert not any(found[c] & {"mix_up", "other_word"} for c in found)
    proposals = {item.class_id: item.proposal for item in first_words.names}
    assert proposals["n02012849"] == "crane (wading bird)"
    assert not first_words.ok


@pytest.mark.parametrize("benchmark", manifest_names())
def test_names_by_rule_are_distinct_and_pass(benchmark):
    audit = audit_names(None, benchmark)
    assert audit.ok, str(audit)
    assert len({item.name.casefold() for item in audit.names}) == len(audit.names) == audit.known


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["n03773504 missile", "n04008634 missile"], ["collision shared", "collision shared rare_sense"]),
        (["n04355933 sunglasses"], ["shared later_sense"]),  # WordNet has it as a plural of sunglass, too
        (["n01608432 kite", "n02109047 Great Dane"], ["rare_sense", ""]),
        (["n02129604 tiger", "n02704792 amphibian"], ["later_sense", "rare_sense"]),
        (["n01608432 kite (bird of prey)", "n02012849 crane-bird"], ["", ""]),
        (["n03954731 plane"], ["rare_sense"]),
        (["n02825657 bell tower"], ["other_word"]),
        (["n01440764 goldfish", "n01443537 tench, Tinca tinca"], ["mix_up", "mix_up"]),
    ],
)
def test_names_and_their_problems(given, expected):
    names = dict(text.split(" ", 1) for text in given)
    found = {item.class_id: " ".join(item.problems) for item in audit_names(names, IMAGENET).names}
    assert [found[class_id] for class_id in names] == expected


def test_a_list_in_another_order_is_mixed_up(first_words):
    counts = audit_names(FIRST[::-1], IMAGENET).counts
    assert counts["mix_up"] > 900
    assert first_words.counts["mix_up"] == 0


def test_the_command_writes_names_that_it_reads(tmp_path, command):
    (tmp_path / "first.txt").write_text("\n".join(FIRST) + "\n", "utf-8")
    finished = command("audit", "names", "first.txt", "--benchmark", IMAGENET, "--json")
    assert finished.code == 1
    assert finished.json["counts"]["collision"] == 6
    text = command("audit", "names", "first.txt", "--benchmark", IMAGENET, "--out", "page.html").out
    assert mentions(text, "crane (lifting device)", "Cardigan Welsh corgi")
    assert max(map(len, text.splitlines())) <= 100
    assert "maillot (clothing)" in (tmp_path / "page.html").read_text("utf-8")
    assert command("audit", "names", "--benchmark", IMAGENET, "--out", "names.csv").code == 0
    rows = list(csv.DictReader((tmp_path / "names.csv").read_text("utf-8").splitlines()))
    assert rows[134]["name"] == "crane (wading bird)"
    assert command("audit", "names", "names.csv", "--benchmark", IMAGENET).code == 0


@pytest.mark.parametrize(
    ("names", "kind", "naming"),
    [
        (["zero", "one"], DataError, (2, 6)),
        (["a photo of a one"] * 12, DataError, (12, "a photo")),
        ({"7": "seven"}, UnknownNameError, "7"),
        ([], DataError, ()),
        ({"1": 1}, DataError, ()),
    ],
)
def test_bad_lists_are_refused(names, kind, naming):
    with raises(kind, naming=naming):
        audit_names(names, "digits")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["two.txt", "--benchmark", "digits"], (2, 6)),
        (["twice.tsv", "--benchmark", "digits"], "twice.tsv:3"),
        (["two.txt", "--benchmark", "digit"], "digits"),
        (["two.txt", "--benchmark", "digits", "--out", "names.xlsx"], "names.csv"),
        (["words.csv", "--benchmark", "digits"], ("name", "words.csv")),
        (["--benchmark", "digits", "--language", "xx"], "xx"),
    ],
)
def test_bad_input_is_one_line(tmp_path, command, arguments, expected):
    (tmp_path / "two.txt").write_text("zero\none\n")
    (tmp_path / "twice.tsv").write_text("class_id\tname\n0\tzero\n0\tnought\n")
    (tmp_path / "words.csv").write_text("class_id,word\n0,zero\n")
    finished = command("audit", "names", *arguments)
    assert finished.code == 2
    assert mentions(finished.err, expected)
    assert len(finished.err.strip().splitlines()) == 1
