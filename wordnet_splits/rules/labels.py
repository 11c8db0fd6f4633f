"""The operator that compares words with names: shares_name_with (Recalcati et al., common classes)."""

from __future__ import annotations

from collections import defaultdict

from wordnet_splits.rules.context import Question
from wordnet_splits.rules.evidence import Names, renders
from wordnet_splits.rules.model import Expression
from wordnet_splits.rules.registry import operator
from wordnet_splits.rules.verdict import Finding, Key, Via


def base_name(name: str) -> str:
    """Return a class name as a lemma is written: without what stands after ``/``, lower case, underscored."""
    return name.split("/")[0].strip().replace(" ", "_").replace("-", "_").lower()


def as_word(lemma: str) -> str:
    """Return a lemma as names are compared with it."""
    return lemma.replace("-", "_").lower()


@operator("shares_name_with")
def shares_name_with(test: Expression, ask: Question) -> dict[str, Finding]:
    """True of the classes one of whose synsets has a lemma equal to the name of a class of the operand.

    Case, hyphens and what stands after ``/`` in a name do not count. A word of another sense counts, too: it
    is the label that is compared.
    """
    named: dict[str, list[Key]] = defaultdict(list)
    for key, item in ask.items(test.value):
        named[base_name(item.name)].append(key)
    taxonomy = ask.context.taxonomy
    found = {}
    for class_id in ask.candidates:
        via, words = [], []
        for wnid in sorted(ask.wnids(class_id)):
            for lemma in taxonomy.lemmas(wnid):
                for source, other in named.get(as_word(lemma), ()):
                    if (source, other) != ask.key(class_id):
                        via.append(Via("name", wnid, source, other))
                        words.append(lemma)
        found[class_id] = Finding(test, bool(via), tuple(via), tuple(words[:1]))
    return found


@renders("shares_name_with")
def _words(finding: Finding, names: Names) -> str:
    operand = finding.test.value
    if not finding.holds:
        return f"no word of {names.it} is the name of {names.any_of(operand)}"
    word = finding.words[0].replace("_", " ")
    return f"the word {word!r} of {names.it} is the name of {names.others(operand, finding.via)}"
