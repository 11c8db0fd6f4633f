"""The figures of the papers and the published class lists, from the shipped catalogs."""

from __future__ import annotations

from typing import Any

import pytest

from wordnet_splits.benchmark.rules import ClassRule, Context, Verdict, decide, sentence
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.wordnet.taxonomy import Taxonomy

Groups = dict[str, set[str]]
Plan = list[tuple[str, str, dict[str, Any]]]


def build(plan: Plan, **known: Any) -> tuple[Groups, Context, dict[tuple[str, str], Verdict]]:
    """Let groups take classes in order; also return the last verdict on every class."""
    context = Context(Taxonomy.embedded(), draw="test", **known)
    last: dict[tuple[str, str], Verdict] = {}
    for name, source, rule in plan:
        held = {key for keys in context.groups.values() for key in keys}
        offered = [c.class_id for c in load_catalog(source) if (source, c.class_id) not in held]
        verdicts = decide(ClassRule.model_validate(rule), source, offered, context)
        last |= {(source, c): verdict for c, verdict in verdicts.items()}
        context.groups[name] = [(source, c) for c in offered if verdicts[c].accepted]
    return {name: {c for _, c in keys} for name, keys in context.groups.items()}, context, last


def test_kims_tiny_imagenet_loses_42_classes_in_any_sense() -> None:
    overlaps = {"overlaps": "source:cifar100", "senses": "any", "relation": "self-or-below"}
    rule = {"all": [{"listed": "source:tiny-imagenet"}, {"not": overlaps}]}
    groups, context, verdicts = build([("tin158", "imagenet1k", rule)])
    assert len(groups["tin158"]) == 158
    dropped = {c.class_id for c in load_catalog("tiny-imagenet")} - groups["tin158"]
    assert len(dropped) == 42
    by_name = {"candle": "lamp", "koala": "possum", "water tower": "tank"}  # found by another sense only
    for name, cifar in by_name.items():
        class_id = next(c.class_id for c in load_catalog("imagenet1k") if c.name == name)
        assert class_id in dropped
        assert [via.other_class for via in verdicts["imagenet1k", class_id].via] == [cifar]
        text = sentence(
            verdicts["imagenet1k", class_id],
            source="imagenet1k",
            class_id=class_id,
            group="tin158",
            context=context,
        )
        assert text.endswith(f"a sense of the name of the cifar100 class {cifar}")


KIM_IMAGENET: Plan = [
    ("imagenet-200", "imagenet1k", {"listed": "source:tiny-imagenet"}),
    ("near", "imagenet1k", {"below_parent_of": "group:imagenet-200"}),
    ("external", "imagenet1k", {"not": {"below_parent_of": "group:imagenet-200"}}),
]


def test_the_external_classes_do_not_grow_by_the_candidates_left_undrawn() -> None:
    drawn: Plan = [
        KIM_IMAGENET[0],
        ("near", "imagenet1k", {**KIM_IMAGENET[1][2], "draw": 200}),
        KIM_IMAGENET[2],
    ]
    groups, context, verdicts = build(drawn)
    assert {name: len(classes) for name, classes in groups.items()} == {
        "imagenet-200": 200,
        "near": 200,
        "external": 395,
    }
    everything, _, _ = build(KIM_IMAGENET)
    assert groups["near"] < everything["near"]
    assert groups["external"] == everything["external"]
    for (source, class_id), verdict in verdicts.items():
        text = sentence(verdict, source=source, class_id=class_id, group="g", context=context)
        assert load_catalog(source)[class_id].name in text


def test_lsun_overlaps_cifar_by_name_where_the_authors_kept_it() -> None:
    rule = {"keyword_overlap": {"with": "source:cifar100", "nodes": "subtree", "match": "lemma"}}
    groups, _, verdicts = build([("overlapping", "lsun", rule)])
    assert "bridge" in groups["overlapping"]
    assert [via.relation for via in verdicts["lsun", "bridge"].via[:2]] == ["keyword", "equal"]
    assert verdicts["lsun", "bridge"].via[1].other_class == "bridge"


@pytest.mark.parametrize("source", ["food101", "caltech256", "places365"])
def test_every_keyword_verdict_reads_as_a_sentence(source: str) -> None:
    rule = {"not": {"keyword_overlap": {"with": "source:imagenet1k"}}}
    _, context, verdicts = build([("far", source, rule)])
    for (_, class_id), verdict in verdicts.items():
        text = sentence(verdict, source=source, class_id=class_id, group="far", context=context)
        if not load_catalog(source)[class_id].wnids:
            assert text.endswith("has no synset, and the rule reads WordNet")
            continue
        assert text.startswith("far: no keyword of " if verdict.accepted else "not far: the keyword ")
        assert load_catalog(source)[class_id].name.replace("_", " ") in text
        if not verdict.accepted:
            assert "imagenet1k class" in text
            keywords, relatives = verdict.via[::2], verdict.via[1::2]
            assert {via.relation for via in keywords} == {"keyword"}
            assert {via.relation for via in relatives} <= {"equal", "sibling", "ancestor", "descendant"}
            several = f"(the closest of {len(keywords)} matches)"
            assert (several in text) == (len(keywords) > 1)
