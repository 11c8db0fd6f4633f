"""What a name and the way to a candidate say of it: kinds told by other words, plurals, counted senses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import pytest

from tools.wndb_export import wndb_texts
from wordnet_splits.linking import gathering, propose_synsets
from wordnet_splits.linking.candidates import LONGEST, MOST_TOLD, Lemmas
from wordnet_splits.linking.joint_reading import read_names
from wordnet_splits.linking.pool import UNARY
from wordnet_splits.wordnet.lexicons import sense_counts
from wordnet_splits.wordnet.taxonomy import Taxonomy


@pytest.fixture(scope="module")
def found(wordnet):
    """Return the candidates of a name: synset -> kind, and a feature of each by name."""

    def of(name):
        pool = read_names([name], [""], wordnet, supplemented=False).pool
        names = [wordnet.name(wordnet.wnid(node)) for node in pool.node.tolist()]
        kinds = dict(zip(names, [route.kind for route in pool.routes], strict=True))
        features = {
            n: dict(zip(UNARY, row, strict=True)) for n, row in zip(names, pool.unary.tolist(), strict=True)
        }
        return kinds, features

    return of


@pytest.mark.parametrize("name", ["maple tree", "maple_trees", "Maple-Tree"])
def test_first_words_that_are_a_kind_of_the_last_are_the_noun(name):
    row = propose_synsets([name]).rows()[0]
    assert row["synset"] == "maple.n.02"
    assert row["reason"].startswith("the name is 'maple'")


@pytest.mark.parametrize("name", ["apple pie", "dog house", "tree maple"])
def test_other_first_words_are_not(found, name):
    kinds, _ = found(name)
    assert "apposed" not in kinds.values()


@pytest.mark.parametrize(
    ("name", "synset", "kind"),
    [
        ("stadium/baseball", "ballpark.n.01", "told"),
        ("stadium", "ballpark.n.01", None),
        ("plant/indoor", "houseplant.n.01", "told"),
        ("beef tartare", "steak_tartare.n.01", "holding"),  # tartare by itself is no noun
        ("stained glass", "stained-glass_window.n.01", "longer"),  # a word in ss is no plural
    ],
)
def test_the_kind_of_the_route_to_a_candidate(found, name, synset, kind):
    assert found(name)[0].get(synset) == kind


@pytest.mark.parametrize(
    ("name", "synset", "feature", "value"),
    [
        ("diamond ring", "rings.n.01", "plural", 1),
        ("diamond ring", "hoop.n.02", "plural", 0),
        ("rings", "rings.n.01", "plural", 0),
        ("park", "park.n.02", "count share", math.log(5.5 / 23)),  # of six senses, tagged 13, 5 and 2 times
        ("walrus", "walrus.n.01", "count share", 0),  # its only sense
        ("beef tartare", "beef.n.02", "head first", 1),
        ("cabin/outdoor", "cabin.n.02", "outdoors", 1),  # a building
        ("cabin/outdoor", "cabin.n.01", "outdoors", -1),  # a room
        ("library/exterior", "library.n.05", "outdoors", 1),
        ("library/exterior", "library.n.01", "outdoors", -1),
        ("stadium/baseball", "ballpark.n.01", "aside tells", 1),
    ],
)
def test_a_feature_of_a_candidate(found, name, synset, feature, value):
    assert found(name)[1][synset][feature] == pytest.approx(value)


@pytest.mark.parametrize(
    ("name", "feature", "value"),
    [
        ("apple pie crust", "head first", 0),
        ("library/indoor", "outdoors", 0),
        ("plant/indoor", "aside tells", 0),  # it says where the camera stood
        ("wxyzzy soup", "strange", 0.5),
        ("yo-yo", "strange", 0),  # WordNet has the name
    ],
)
def test_a_feature_of_every_candidate(found, name, feature, value):
    assert {row[feature] for row in found(name)[1].values()} == {value}


def test_words_that_tell_many_kinds_tell_none(found, wordnet):
    dogs = wordnet.descendants("n02084071")
    small = [w for w in dogs if "small" in wordnet.definition(w).split()]
    assert len(small) > MOST_TOLD
    kinds, _ = found("small dog")
    assert "told" not in kinds.values()


def test_another_wordnet_has_no_counts():
    toy = Taxonomy.from_edges(
        {"n2": ["n1"], "n3": ["n1"]}, lemmas={"n1": ["thing"], "n2": ["park"], "n3": ["park"]}
    )
    pool = read_names(["park"], [""], toy).pool
    assert pool.unary[:, UNARY.index("count share")] == pytest.approx([math.log(0.5)] * 2)


def test_the_counts_agree_with_the_index_of_nouns(wordnet):
    """index.noun of WordNet 3.0 says how many senses of a lemma were tagged, and orders them by frequency."""
    counts, index = sense_counts(), wordnet.lemma_index()
    tagged = {}
    for line in wndb_texts()["index.noun"].decode().splitlines():
        if not line.startswith(" "):
            fields = line.split()
            if int(fields[2]) > 1:
                tagged[fields[0]] = int(fields[5 + int(fields[3])])
    assert set(counts) <= set(tagged)
    assert all(len(own) <= len(index[lemma]) for lemma, own in counts.items())
    other = [lemma for lemma, n in tagged.items() if sum(c > 0 for c in counts.get(lemma, ())) != n]
    assert len(other) == 10  # of 15,935: retagged between 3.0 and 3.1
    falling = [lemma for lemma, own in counts.items() if list(own) == sorted(own, reverse=True)]
    assert len(falling) == len(counts) - 4


def test_a_kind_of_the_other_words_counts_by_how_much_it_says(found):
    _, features = found("airplane cabin")
    assert features["cabin.n.03"]["kin context"] > features["cabin.n.01"]["kin context"] >= 0
    assert 0.3 < features["cabin.n.03"]["kin context"] <= 1


class Counting(Mapping[str, tuple[str, ...]]):
    """A lemma index that counts how often it is asked for a word."""

    def __init__(self, index: Mapping[str, tuple[str, ...]]) -> None:
        self._index = index
        self.asked = 0

    def __getitem__(self, lemma: str) -> tuple[str, ...]:
        return self._index[lemma]

    def __contains__(self, lemma: object) -> bool:
        self.asked += 1
        return lemma in self._index

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __len__(self) -> int:
        return len(self._index)


def test_words_are_looked_up_once_however_many_they_are():
    lemmas = Lemmas(Taxonomy.embedded())
    index = lemmas.index = Counting(lemmas.index)
    assert lemmas.of(("man", "of", "war")) == ("man-of-war",)
    assert lemmas.of(("jack", "in", "the", "box")) == ("jack-in-the-box",)
    assert lemmas.of(("half", "hour")) == ("half-hour",)
    before = index.asked
    assert lemmas.of(tuple("abcdefgh")) == ()
    assert len("abcdefgh") == LONGEST
    assert index.asked == before + 1  # not once for each of the 128 ways to set hyphens


def test_every_way_to_set_hyphens_is_found():
    spellings = ("a_b_c", "a_b-c", "a-b_c", "a-b-c")
    toy = Taxonomy.from_edges({"n2": ["n1"]}, lemmas={"n1": ["thing"], "n2": list(spellings)})
    assert Lemmas(toy).of(("a", "b", "c")) == spellings


def test_names_of_equal_words_are_read_once(monkeypatch):
    read = []

    def routes(name, lemmas):
        read.append(name.name)
        return original(name, lemmas)

    original = gathering.routes  # type: ignore[attr-defined]
    monkeypatch.setattr(gathering, "routes", routes)
    names = [f"{word} {n}" for n in range(200) for word in ("heron", "crane", "wxyzzy")]
    found = propose_synsets(names).proposals
    assert read == ["heron 0", "crane 0", "wxyzzy 0"]
    once = propose_synsets(["heron", "crane", "wxyzzy"]).proposals
    assert [p.candidates for p in found[-3:]] == [p.candidates for p in once]
    assert [p.confidence for p in found[-3:]] == [p.confidence for p in once]
    assert "199 other classes have this synset" in found[-3].reason
