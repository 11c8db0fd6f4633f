"""What the words of a class name are."""

from __future__ import annotations

import pytest

from wordnet_splits.linking.class_names import parse_name


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
