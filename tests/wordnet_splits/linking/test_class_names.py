"""What the words of a class name are."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.raising import raises
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import MAX_NAME_LETTERS
from wordnet_splits.datasets.catalog import read_catalog
from wordnet_splits.linking import propose_synsets
from wordnet_splits.linking.candidates import Lemmas, routes
from wordnet_splits.linking.catalog_maker import make_catalog
from wordnet_splits.linking.class_names import Words, parse_name
from wordnet_splits.linking.classes import listed_classes
from wordnet_splits.wordnet.taxonomy import load


@pytest.mark.parametrize(
    ("name", "phrases", "asides"),
    [
        ("fried_rice", [("fried", "rice")], []),
        ("  Fried Rice ", [("fried", "rice")], []),
        ("FriedRice", [("fried", "rice")], []),
        ("001.ak47", [("ak47",)], []),
        ("251.airplanes-101", [("airplanes",)], []),
        ("church/outdoor", [("church",)], [("outdoor",)]),
        ("/a/airfield", [("airfield",)], []),
        ("crane (bird)", [("crane",)], [("bird",)]),
        ("tench, Tinca tinca", [("tench",), ("tinca", "tinca")], []),
        ("child’s room", [("child's", "room")], []),
        ("crème brûlée", [("creme", "brulee")], []),
        ("pin\u0303ata", [("pinata",)], []),  # as macOS writes file names
        ("がぎ", [("がぎ",)], []),  # its marks are no accents
        ("猫", [("猫",)], []),
        ("hot\u00a0dog", [("hot", "dog")], []),
        ("hot\u3000dog (toy\u202fdog)", [("hot", "dog")], [("toy", "dog")]),
        ("CD", [("cd",)], []),
        ("747", [("747",)], []),
        ("!!!", [], []),
    ],
)
def test_a_name_is_taken_apart(name, phrases, asides):
    parsed = parse_name(name)
    assert (list(parsed.phrases), list(parsed.asides)) == (phrases, asides)
    assert parsed.name == name


@pytest.mark.parametrize(
    ("name", "synset"),
    [("n02084071", "n02084071"), ("n02084071-dog", "n02084071"), ("dog.n.01", "dog.n.01"), ("dog", "")],
)
def test_a_synset_in_the_name_is_seen(name, synset):
    assert parse_name(name).synset == synset


class Counting(Lemmas):
    """Lemmas that count the letters that are looked up."""

    def of(self, words: Words) -> tuple[str, ...]:
        """Count, then look up."""
        letters[0] += sum(map(len, words))
        return super().of(words)


letters: Counter[int] = Counter()


@pytest.fixture(scope="module")
def lemmas() -> Lemmas:
    return Counting(load())


def looked_up(name: str, lemmas: Lemmas) -> int:
    letters.clear()
    routes(parse_name(name), lemmas)
    return letters[0]


@pytest.mark.parametrize("unit", ["qz", "dog", "qzx-qz-", "ab.", "Qxz"])
def test_a_name_twice_as_long_takes_twice_the_letters(lemmas: Lemmas, unit: str) -> None:
    short, long = (looked_up(f"{unit * (n // len(unit))}q", lemmas) for n in (400, 800))
    assert long <= 2.5 * short + 1_000


def test_a_long_word_is_still_cut_and_spelt_as_before(lemmas: Lemmas) -> None:
    def found(name: str) -> dict[str, str]:
        return {route.lemma: route.kind for route in routes(parse_name(name), lemmas)}

    assert found("videostore")["store"] == "part"
    assert found("electroencephalogreph")["electroencephalograph"] == "spelling"
    longest = max(lemmas.index, key=len)
    assert found(longest.replace("_", " ") + "s")[longest] == "variant"


def test_a_name_that_is_too_long_is_refused_wherever_it_comes_from(tmp_path: Path) -> None:
    good, bad = "z" * MAX_NAME_LETTERS, "z" * (MAX_NAME_LETTERS + 1)
    limits = (MAX_NAME_LETTERS + 1, MAX_NAME_LETTERS)
    assert propose_synsets([good]).proposals[0].wnid == ""
    for names, above in (([bad], None), (["dog"], [bad])):
        with raises(DataError, where="propose", naming=limits):
            propose_synsets(names, above)
    for text in (bad, f"dog\t{bad}"):
        with raises(DataError, where="names", naming=limits):
            listed_classes([text])
    head = "class_id\tindex\tname\tsuperclass\twnids\tmapped\twhy\tcount_all\tcount_group\n"
    for row in (f"{bad}\t0\tdog\t", f"dog\t0\t{bad}\t", f"dog\t0\tdog\t{bad}"):
        (tmp_path / "own.tsv").write_text(f"{head}{row}\tn02084071\texact\t\t\t\n", "utf-8")
        with raises(DataError, where="own.tsv:2", naming=limits):
            read_catalog(tmp_path / "own.tsv")


def test_wnids_are_named_by_the_first_word_that_no_other_class_has(tmp_path: Path) -> None:
    wnids = ["n02123394", "n02012849", "n03126707"]  # cat, bird and machine
    make_catalog([*wnids, "teapot"], tmp_path / "mine.tsv")
    made = read_catalog(tmp_path / "mine.tsv").classes
    assert [c.class_id for c in made] == [*wnids, "teapot"]
    assert [c.name for c in made] == ["Persian cat", *wnids[1:], "teapot"]
