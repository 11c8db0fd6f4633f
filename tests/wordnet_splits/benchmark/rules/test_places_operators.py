"""The operators that Recalcati's benchmarks need, on all of ImageNet-1K, against NLTK."""

from __future__ import annotations

import re

import pytest

from wordnet_splits.benchmark.rules import ClassRule, Context, Verdict, decide, sentence
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.wordnet.taxonomy import Taxonomy

PLACES = "source:places365"
OPERATORS = ("shares_name_with", "part_whole_with", "gloss_mentions")


@pytest.fixture(scope="module")
def decided(wordnet: Taxonomy) -> dict[str, dict[str, Verdict]]:
    ids = [c.class_id for c in load_catalog("imagenet1k")]
    rules = {name: ClassRule.model_validate({name: PLACES}) for name in OPERATORS}
    return {name: decide(rule, "imagenet1k", ids, Context(wordnet)) for name, rule in rules.items()}


def test_the_common_classes_are_those_whose_words_are_names(
    decided: dict[str, dict[str, Verdict]], wordnet: Taxonomy
) -> None:
    names = {c.name.split("/")[0].lower() for c in load_catalog("places365")}
    theirs = {
        c.class_id
        for c in load_catalog("imagenet1k")
        if {lemma.lower() for lemma in wordnet.lemmas(c.class_id)} & names
    }
    ours = decided["shares_name_with"]
    assert {c for c, verdict in ours.items() if verdict.accepted} == theirs
    assert len(theirs) == 32  # as many as Recalcati et al. removed
    assert all(bool(v.via) == v.accepted for v in ours.values())


def test_parts_and_wholes_are_inherited_by_the_candidate(
    decided: dict[str, dict[str, Verdict]], wordnet: Taxonomy
) -> None:
    places = {wnid for c in load_catalog("places365") for wnid in c.wnids}
    ours = decided["part_whole_with"]
    theirs = set()
    for class_id in ours:
        above = wordnet.ancestors(class_id)
        reached = {w for a in above for related in (wordnet.parts, wordnet.wholes) for w in related(a)}
        theirs |= {class_id} if reached & places else set()
    assert {c for c, verdict in ours.items() if verdict.accepted} == theirs
    assert theirs


def test_a_definition_that_names_a_place_is_found(
    decided: dict[str, dict[str, Verdict]], wordnet: Taxonomy
) -> None:
    """Every word found is in the text; and a name that stands in it as it is is always found."""
    ours = decided["gloss_mentions"]
    names = {c.name.split("/")[0].replace("_", "[ -]") for c in load_catalog("places365")}
    any_place = re.compile(rf"(?<![\w'-])({'|'.join(sorted(names, key=len, reverse=True))})(?![\w'-])")
    for class_id, verdict in ours.items():
        definition = wordnet.definition(class_id).partition(";")[0].strip().lower()
        if any_place.search(definition):
            assert verdict.accepted, class_id
        for via, word in zip(verdict.via[:1], verdict.findings[0].words, strict=True):
            where = definition if via.relation == "gloss" else wordnet.definition(str(via.wnid)).lower()
            assert word.split("_")[0][:3] in where, class_id
    assert 0 < sum(v.accepted for v in ours.values()) < 500


def test_the_evidence_says_what_was_found(decided: dict[str, dict[str, Verdict]], wordnet: Taxonomy) -> None:
    def said(operator: str, class_id: str) -> str:
        return sentence(
            decided[operator][class_id],
            source="imagenet1k",
            class_id=class_id,
            group="g",
            context=Context(wordnet),
        )

    barn, poster, goldfish = "n02793495", "n03388549", "n01443537"
    assert said("shares_name_with", barn) == (
        "g: the lemma 'barn' of barn is the name of the places365 class barn"
    )
    assert (
        said("shares_name_with", goldfish) == "not g: no lemma of goldfish is the name of a places365 class"
    )
    whole = said("part_whole_with", poster)
    assert whole.startswith("g: bed (n02818832), 1 edge above four-poster, is a part, member or substance of")
    assert "bedroom (n02821627), the synset of the places365 classes" in whole
    assert said("gloss_mentions", goldfish) == (
        "g: the definition of goldfish mentions 'aquarium', the places365 class aquarium"
    )
    refused = next(c for c, verdict in decided["gloss_mentions"].items() if not verdict.accepted)
    assert "nor the reverse" in said("gloss_mentions", refused)
