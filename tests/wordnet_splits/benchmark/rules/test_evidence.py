from __future__ import annotations

from typing import Any

import pytest

from tests.wordnet_splits.benchmark.rules.toy import PETS, context, judge, load
from wordnet_splits.base.digests import sampling_key as sampling_key
from wordnet_splits.base.names import counted
from wordnet_splits.benchmark.rules import ClassRule, sentence
from wordnet_splits.benchmark.rules.registry import RELATIONS, Finding, Verdict, Via

GROUPS: dict[str, Any] = {"groups": {"id": [("pets", "pug")]}, "roles": {"id": "id"}}


def says(rule: dict[str, Any], class_id: str, source: str = "pets") -> str:
    verdict = judge(rule, source, **GROUPS)[class_id]
    return sentence(verdict, source=source, class_id=class_id, group="near", context=context(**GROUPS))


SENTENCES = [
    (
        {"shares_parent_with": "group:id"},
        "chihuahua",
        "near: chihuahua and the ID class pug share the parent toy dog (n00000011)",
    ),
    ({"shares_parent_with": "group:id"}, "borzoi", "not near: borzoi shares no parent with an ID class"),
    (
        {"below_parent_of": ["n00000012"]},
        "pug",
        "near: pug is below dog (n00000010), a parent of wolfhound (n00000012)",
    ),
    (
        {"below_parent_of": "group:id"},
        "chihuahua",
        "near: chihuahua and the ID class pug share the parent toy dog (n00000011)",
    ),
    (
        {"not": {"below_parent_of": "group:id"}},
        "borzoi",
        "near: borzoi is not at or below a parent of an ID class",
    ),
    ({"subtree": ["n00000010"]}, "pug", "near: pug is below dog (n00000010)"),
    ({"subtree": ["n00000101"]}, "pug", "near: pug is pug (n00000101)"),
    (
        {"subtree": ["n00000020", "n00000030"]},
        "pug",
        "not near: pug is not at or below cat (n00000020) or knife (n00000030)",
    ),
    (
        {"subtree": ["n00000020", "n00000030", "n00000031", "n00000032", "n00000104"]},
        "pug",
        "not near: pug is not at or below any of 5 synsets, the nearest being cat (n00000020), "
        "tabby (n00000104) and knife (n00000030)",
    ),
    (
        {"overlaps": "source:drawer"},
        "cleaver",
        "near: cleaver is below knife (n00000030), the synset of the drawer class knife",
    ),
    (
        {"overlaps": "source:drawer", "senses": "any", "relation": "ancestry"},
        "pug",
        "not near: pug is not a sense of the name of a drawer class, nor a subclass or superclass of one",
    ),
    ({"listed": "list:toys"}, "pug", "near: pug is in the published list toys"),
    ({"not": {"listed": "source:words"}}, "tabby", "near: tabby is not a class of words"),
    (
        {"slice": {"of": ["n00000002"], "half": "second"}},
        "tabby",
        "near: tabby has position 3 (from 0) of the 4 classes below animal (n00000002), in the second half",
    ),
    (
        {"slice": {"of": ["n00000002"], "every": 3, "at": [0, 2]}},
        "chihuahua",
        "not near: chihuahua has position 1 (from 0) of the 4 classes below animal (n00000002), "
        "not in positions 0, 2 of every 3",
    ),
    (
        {"similarity": {"to": "group:id", "measure": "path", "above": 0.5}},
        "chihuahua",
        "not near: chihuahua and the nearest class, the ID class pug, "
        "have the path score 0.3333, less than 0.5",
    ),
    (
        {"similarity": {"to": "group:id", "measure": "path", "below": 0.5}},
        "chihuahua",
        "near: chihuahua and the nearest class, the ID class pug, have the path score 0.3333, less than 0.5",
    ),
    (
        {"similarity": {"to": "group:id", "measure": "lin", "above": 0.5}},
        "chihuahua",
        "near: chihuahua and the nearest class, the ID class pug, "
        "have the lin score 0.5943 (information content from structure, N = 15), at least 0.5",
    ),
    ({"rest": True}, "cloud", "near: cloud is not in an earlier group of pets (group id)"),
    (
        {"all": [{"listed": ["pug", "tabby"]}, {"not": {"subtree": ["n00000010"]}}]},
        "tabby",
        "near: tabby is named in the rule; it is not at or below dog (n00000010)",
    ),
    (
        {"siblings": {"half": "first"}},
        "pug",
        "near: pug has position 0 (from 0) of 2 classes with the parent toy dog (n00000011), "
        "in the first half",
    ),
    (
        {"siblings": {"half": "first"}},
        "cloud",
        "not near: cloud has no synset, and the rule reads WordNet",
    ),
    (
        {"below_one": ["n00000010", "n00000011"]},
        "pug",
        "not near: pug is below several of the synsets: toy dog (n00000011) and dog (n00000010)",
    ),
    (
        {"below_one": ["n00000010", "n00000011"]},
        "borzoi",
        "near: borzoi is below dog (n00000010) and no other of the synsets",
    ),
    (
        {"below_one": ["n00000020"]},
        "pug",
        "not near: pug is not at or below cat (n00000020)",
    ),
    (
        {"slice": {"of": ["n00000010"], "first": 2}},
        "pug",
        "not near: pug has position 2 (from 0) of the 3 classes below dog (n00000010), not in the first 2",
    ),
]


@pytest.mark.parametrize(("rule", "class_id", "text"), SENTENCES)
def test_evidence_reads_as_a_sentence(rule: dict[str, Any], class_id: str, text: str) -> None:
    assert says(rule, class_id) == text


@pytest.mark.parametrize(
    ("with_", "class_id", "text"),
    [
        (
            "group:id",
            "toys",
            "near: the keyword 'toy' (variant: plural) of toys matches toy dog (n00000011) as 'toy dog', "
            "a superclass of the ID class pug",
        ),
        (
            "group:id",
            "chihuahuas/indoor",
            "near: the keyword 'chihuahua' (variant: plural) of chihuahuas/indoor matches "
            "Chihuahua (n00000102), "
            "a sibling of the ID class pug under toy dog (n00000011)",
        ),
        (
            "group:id",
            "pug",
            "near: the keyword 'pug' of pug matches pug (n00000101), which is the ID class pug",
        ),
        (
            "group:id",
            "knife",
            "not near: no keyword of knife matches an ID class, or a sibling, superclass or subclass of one",
        ),
    ],
)
def test_keyword_evidence_names_keyword_lemma_and_relation(with_: str, class_id: str, text: str) -> None:
    assert says({"keyword_overlap": {"with": with_}}, class_id, "words") == text


def test_a_draw_is_told_by_rank_and_of_its_stratum() -> None:
    rule = {"subtree": ["n00000010"], "draw": 1}
    texts = sorted(says(rule, c) for c in ("pug", "chihuahua", "borzoi"))
    assert texts[0].endswith("is below dog (n00000010); selected by the seeded draw (rank 1 of 3; 1 taken)")
    ranks = sorted(text.partition(" (rank ")[2][0] for text in texts[1:])
    assert ranks == ["2", "3"]
    assert all(text.startswith("not near: not selected by the seeded draw (rank ") for text in texts[1:])
    within = [says({"draw": 1, "within": "superclass"}, c) for c in PETS]
    assert "not near: not selected by the seeded draw (rank 2 of 3 in dogs; 1 taken)" in within
    assert "near: selected by the seeded draw (rank 1 of 3 in others; 1 taken)" in within


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [(1, "edge", "1 edge"), (0, "edge", "0 edges"), (2, "class", "2 classes"), (1000, "edge", "1,000 edges")],
)
def test_nouns_agree_with_their_number(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text


def test_a_sentence_names_three_of_many_classes_and_their_number_and_via_has_all() -> None:
    dogs = [("pets", c) for c in ("borzoi", "chihuahua", "pug", "tabby")]
    groups: dict[str, Any] = {"groups": {"id": dogs}, "roles": {"id": "id"}}
    finding = Finding(
        ClassRule.model_validate({"below_parent_of": "group:id"}),
        True,
        tuple(Via("ancestor", "n00000002", source, class_id, 2.0) for source, class_id in dogs),
    )
    text = sentence(
        Verdict(True, (finding,)), source="pets", class_id="pug", group="near", context=context(**groups)
    )
    assert text.endswith("a parent of the ID classes borzoi, chihuahua and pug (4 in all)")


def test_a_class_without_synsets_is_told_apart() -> None:
    rule = {"similarity": {"to": "group:id", "measure": "path", "above": 0.5}}
    assert "has no synset" in says(rule, "cloud")


@pytest.mark.parametrize("rule", [rule for rule, _, _ in SENTENCES])
def test_every_class_of_every_rule_has_a_sentence(rule: dict[str, Any]) -> None:
    for item in load("pets"):
        text = says(rule, item.class_id)
        assert item.name in text
        assert not any(mark in text for mark in ("None", "{", "}", "  "))


@pytest.mark.parametrize("rule", [rule for rule, _, _ in SENTENCES])
def test_relations_are_those_of_the_class_table(rule: dict[str, Any]) -> None:
    for verdict in judge(rule, **GROUPS).values():
        assert {via.relation for via in verdict.via} <= set(RELATIONS)
