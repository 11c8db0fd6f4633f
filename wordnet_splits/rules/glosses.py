"""The operator of definitions: gloss_mentions, for what is typical of a place."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from wordnet_splits.rules.context import Question
from wordnet_splits.rules.evidence import Names, renders
from wordnet_splits.rules.keywords import stopwords
from wordnet_splits.rules.labels import as_word, base_name
from wordnet_splits.rules.model import Expression
from wordnet_splits.rules.registry import operator
from wordnet_splits.rules.verdict import Finding, Key, Via
from wordnet_splits.taxonomy import Taxonomy

LONGEST = 4
"""Words of the longest name that is looked for in a definition."""


@operator("gloss_mentions")
def gloss_mentions(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of the classes whose definition names a class of the operand, or is named in that class's.

    A class is named by the words of its synset and by its own name without what stands after ``/``; the last
    word may be in the plural. Of several definitions the first counts; examples do not.
    """
    taxonomy = ask.context.taxonomy
    called: dict[str, list[tuple[str, Key]]] = defaultdict(list)
    mentioned: dict[str, list[tuple[str, Key]]] = defaultdict(list)
    for key, item in ask.items(test.value):
        for wnid in item.wnids:
            for name in _names([wnid], item.name, taxonomy):
                called[name].append((wnid, key))
            for phrase in phrases(taxonomy.first_definition(wnid), taxonomy):
                mentioned[phrase].append((wnid, key))
    found = {}
    for class_id in ask.candidates:
        own, via, words = ask.key(class_id), [], []
        wnids = sorted(ask.wnids(class_id))
        for wnid in wnids:
            for phrase in sorted(phrases(taxonomy.first_definition(wnid), taxonomy)):
                for _, key in sorted(called.get(phrase, ())):
                    via.append(Via("gloss", wnid, *key))
                    words.append(phrase)
        for name in sorted(_names(wnids, ask.catalog[class_id].name, taxonomy)):
            for other, key in sorted(mentioned.get(name, ())):
                via.append(Via("named-in-gloss", other, *key))
                words.append(name)
        kept = [n for n, v in enumerate(via) if (v.other_source, v.other_class) != own]
        found[class_id] = Finding(
            test, bool(kept), tuple(dict.fromkeys(via[n] for n in kept)), tuple(words[n] for n in kept[:1])
        )
    return found


def phrases(text: str, taxonomy: Taxonomy) -> frozenset[str]:
    """Return every run of up to `LONGEST` words of a text, and each with its last word in the singular."""
    words = re.findall(r"[a-z][a-z'-]*", text.lower().replace("-", "_").replace("_", " "))
    runs = set()
    for start in range(len(words)):
        for stop in range(start + 1, min(start + LONGEST, len(words)) + 1):
            head, last = words[start : stop - 1], words[stop - 1]
            runs |= {"_".join([*head, form]) for form in (last, taxonomy.morphy(last) or last)}
    return frozenset(runs)


def _names(wnids: Iterable[str], name: str, taxonomy: Taxonomy) -> set[str]:
    found = {as_word(lemma) for wnid in wnids for lemma in taxonomy.lemmas(wnid)} | {base_name(name)}
    return {word for word in found if word not in stopwords()}


@renders("gloss_mentions")
def _words(finding: Finding, names: Names) -> str:
    operand = finding.test.value
    if not finding.holds:
        return f"neither the definition of {names.it} names {names.any_of(operand)} nor the other way round"
    first, word = finding.via[0], finding.words[0].replace("_", " ")
    same = [v for v in finding.via if (v.relation, v.wnid) == (first.relation, first.wnid)]
    if first.relation == "gloss":
        return f"the definition of {names.it} names {word!r}, {names.others(operand, same[:1])}"
    return f"the definition of {names.synset(first.wnid)}, {names.others(operand, same)}, names {word!r}"
