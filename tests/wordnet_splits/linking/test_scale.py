"""What a list of 100,000 names may cost, in counts: no time is measured here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wordnet_splits.linking import gathering, propose_synsets
from wordnet_splits.linking.candidates import LONGEST, Lemmas
from wordnet_splits.wordnet.taxonomy import Taxonomy


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
