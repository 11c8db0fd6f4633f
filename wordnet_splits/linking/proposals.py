"""The proposal for each name of a dataset: synset, confidence, reason, runner-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import check_name
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.linking.class_names import ParsedName, name_of_node, names_of_nodes, parse_names
from wordnet_splits.linking.gathering import Graphs
from wordnet_splits.linking.joint_reading import Reading, graphs_of, read_parsed
from wordnet_splits.linking.languages import load_language
from wordnet_splits.linking.pool import UNARY, Floats
from wordnet_splits.linking.reasons import COMMON, Candidate, Explainer, contradiction
from wordnet_splits.linking.weights import Model, is_adjective, looks_foreign, needs_confirmation, ranked
from wordnet_splits.wordnet.lexicons import ENGLISH
from wordnet_splits.wordnet.taxonomy import Taxonomy, load
from wordnet_splits.wordnet.taxonomy.identifiers import Identified

MOST_COMMON = 5
"""Most synsets that are offered for a name that WordNet lacks."""
LEAST_SHARE = 1 / 8
"""Least share of the classes below the first synset that is offered; without one no synset is offered."""
FEWEST_CLASSES = 3
"""Fewest classes below each synset that is offered."""
LEAST_INFORMATION = 5.0
"""Least information of a synset in nats: it is above fewer than one noun in 150."""


def common_synsets(reading: Reading, shares: Floats) -> list[tuple[int, ...]]:
    """Return the nodes to offer after the candidates of each name that has a word that WordNet lacks.

    They are ancestors of the best candidates of the other names, or of other names in the superclass.
    """
    pool = reading.pool
    counts = np.diff(pool.starts)
    strange = np.zeros(len(counts), bool)
    strange[pool.owner] = pool.unary[:, UNARY.index("strange")] > 0
    unknown = np.flatnonzero(strange | (counts == 0)).tolist()
    offered: list[tuple[int, ...]] = [()] * len(counts)
    if not unknown:
        return offered
    has = np.flatnonzero((counts > 0) & ~strange)
    best = pool.node[ranked(pool, shares)[pool.starts[has]]].tolist()
    families: dict[str, list[int]] = {}
    for name, node in zip(has.tolist(), best, strict=True):
        families.setdefault(reading.superclasses[name], []).append(node)
    graphs = graphs_of(pool.taxonomy)
    of_family: dict[str, tuple[int, ...]] = {}
    for name in unknown:
        family = reading.superclasses[name]
        if family not in of_family:
            of_family[family] = _most_informative(families.get(family, []), graphs) or _most_informative(
                best, graphs
            )
        offered[name] = of_family[family]
    return offered


def _most_informative(nodes: Sequence[int], graphs: Graphs) -> tuple[int, ...]:
    """Return synsets above nodes: each adds most information about them, the lowest of equals."""
    below: dict[int, list[int]] = {}
    for n, node in enumerate(nodes):
        for above in graphs.ancestors(node):
            if above != node:
                below.setdefault(above, []).append(n)
    # at least every ancestor's, though a child of two parents counts half below each
    information = {node: float(graphs.information[graphs.ancestors(node)].max()) for node in below}
    below = {
        node: names
        for node, names in below.items()
        if len(names) >= FEWEST_CLASSES and information[node] >= LEAST_INFORMATION
    }
    covered = np.zeros(len(nodes))
    synsets: list[int] = []
    while below and len(synsets) < MOST_COMMON:
        gains = {
            node: float(np.maximum(information[node] - covered[names], 0).sum())
            for node, names in below.items()
        }
        best = max(gains, key=lambda node: (round(gains[node], 9), len(graphs.ancestors(node)), -node))
        names = below.pop(best)
        if not synsets and len(names) < LEAST_SHARE * len(nodes):
            break
        covered[names] = np.maximum(covered[names], information[best])
        synsets.append(best)
    return tuple(synsets)


OFFERED = 8
"""Most candidates of a proposal."""
ADJECTIVE = "more often an adjective or adverb than a noun"
NUMBER = "a number is more often a position in a list than a noun"
OTHERWISE = "but {!r} is another noun"
FOREIGN = "more than a third of the names contain no noun of {}: are they in another language (--language)?"
UNKNOWN_IDENTIFIER = "the identifier has no noun, or several"


@dataclass(frozen=True)
class Proposal:
    """The proposal for one class.

    ``candidates`` may be empty; the best comes first, and common synsets of the other classes last, for names
    with a word that WordNet lacks. ``confidence``, in [0, 1], is the expected share of right choices among
    proposals of that confidence. ``must_confirm``: a person must confirm the choice whatever its confidence
    (`wordnet_splits.linking.weights.needs_confirmation`). ``unsure``: that, or the confidence is too low.
    ``asked``: a person is asked, by default about unsure classes. ``language``: the name's language, ``""``
    for English and for identifiers.
    """

    name: str
    superclass: str
    candidates: tuple[Candidate, ...]
    confidence: float
    asked: bool
    reason: str
    unsure: bool
    must_confirm: bool = False
    language: str = ""

    @property
    def wnid(self) -> str:
        """The proposed synset, ``""`` for none."""
        return self.candidates[0].wnid if self.candidates else ""

    @property
    def runner_up(self) -> str:
        """The second best synset, ``""`` for none."""
        return self.candidates[1].wnid if len(self.candidates) > 1 else ""


@dataclass(frozen=True)
class Proposals(Tabular):
    """The proposals for all names of a dataset, in their order."""

    proposals: tuple[Proposal, ...]
    taxonomy: Taxonomy

    def __len__(self) -> int:
        return len(self.proposals)

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the fields of each, with the synset's name and both glosses."""
        return [
            {
                "name": p.name,
                "superclass": p.superclass,
                "wnid": p.wnid,
                "synset": self.taxonomy.name(p.wnid) if p.wnid else "",
                "gloss": self.taxonomy.definition(p.wnid) if p.wnid else "",
                "confidence": round(p.confidence, 4),
                "asked": p.asked,
                "reason": p.reason,
                "runner_up": p.runner_up,
                "runner_up_gloss": self.taxonomy.definition(p.runner_up) if p.runner_up else "",
            }
            for p in self.proposals
        ]


def propose_synsets(
    names: Sequence[str],
    superclasses: Sequence[str] | None = None,
    *,
    taxonomy: Taxonomy | str | None = None,
    model: Model | None = None,
    language: str = ENGLISH,
    ids: Mapping[str, str] | None = None,
) -> Proposals:
    """Return a synset for each name of a dataset, reading all names together; equal names count once.

    Parameters
    ----------
    names : class names or folder names; words joined by blanks, underscores, hyphens or capitals, a
        qualifier after ``/`` or in brackets, alternatives separated by commas.
    superclasses : the superclass of each name, ``""`` for none.
    taxonomy : WordNet 3.0 by default; a custom hierarchy, by the names of whose nodes the classes are linked.
    language : the language of the names, as of `wordnet_splits.linking.languages.load_language`.
    ids : wnids of names or identifiers, as `read_ids` (`wordnet_splits.wordnet.taxonomy.identifiers`) returns
        them.

    Raises
    ------
    DataError : no names, a name that is empty or not allowed in a table (`check_name`), another number of
        superclasses than names, or identifiers without a synset.
    TaxonomyError, MissingPackageError : the language cannot be read.

    Examples
    --------
    >>> [p.wnid for p in propose_synsets(["dolphin", "seal", "whale"]).proposals]
    ['n02068974', 'n02076196', 'n02062744']
    """
    above = list(superclasses) if superclasses is not None else [""] * len(names)
    if not names:
        raise DataError("names must not be empty", where="propose")
    for class_name in names:
        check_name("class", class_name.strip(), where="propose")
    for superclass in filter(None, map(str.strip, above)):
        check_name("superclass", superclass, where="propose")
    if len(above) != len(names):
        raise DataError(f"{len(names)} superclasses expected, got {len(above)}", where="propose")
    taxonomy = load(taxonomy)
    model = model or Model.shipped()
    nouns = load_language(language, taxonomy)
    identified = parse_names(names, taxonomy, ids)
    parsed = [name for name, _ in identified]
    keys = [
        (*name.content, known, superclass)
        for (name, known), superclass in zip(identified, above, strict=True)
    ]
    position: dict[tuple[object, ...], int] = {}
    for n, key in enumerate(keys):
        position.setdefault(key, n)
    rows = {key: row for row, key in enumerate(position)}  # names of equal words share a row
    distinct = list(position.values())
    reading = read_parsed([parsed[n] for n in distinct], [above[n] for n in distinct], taxonomy, nouns=nouns)
    alone, joint = model.shares(reading)
    confidences = model.confidence(reading.pool, alone, joint).tolist()
    candidates = _candidates(reading, joint)
    numbered = _told_apart_by_numbers(names, keys)
    must_confirm = [
        confirm or keys[n] in numbered
        for n, confirm in zip(distinct, needs_confirmation(reading, joint).tolist(), strict=True)
    ]
    unsure = [
        confirm or (confidence < model.ask_below and not (row and row[0].kind == "synset"))
        for row, confidence, confirm in zip(candidates, confidences, must_confirm, strict=True)
    ]
    best = [row[0].wnid if row and row[0].kind != COMMON else "" for row in candidates]
    explainer = Explainer(taxonomy, [best[rows[key]] for key in keys], nouns.lexicon if nouns else "")
    reasons = _reasons(reading, candidates, explainer, [identified[n][1] for n in distinct])
    return Proposals(
        tuple(
            Proposal(
                name=name,
                superclass=superclass,
                candidates=candidates[rows[key]],
                confidence=confidences[rows[key]],
                asked=unsure[rows[key]],
                reason=reasons[rows[key]],
                unsure=unsure[rows[key]],
                must_confirm=must_confirm[rows[key]],
                language="" if nouns is None or known else language,
            )
            for name, superclass, key, (_, known) in zip(names, above, keys, identified, strict=True)
        ),
        taxonomy,
    )


def _told_apart_by_numbers(
    names: Sequence[str], keys: Sequence[tuple[object, ...]]
) -> set[tuple[object, ...]]:
    """Return the keys of several names that differ in their numbers, as ``class_1`` and ``class_2``."""
    numbers: dict[tuple[object, ...], set[str]] = {}
    for name, key in zip(names, keys, strict=True):
        numbers.setdefault(key, set()).add("".join(filter(str.isdigit, name)))
    return {key for key, found in numbers.items() if len(found) > 1}


def _reasons(
    reading: Reading,
    candidates: Sequence[Sequence[Candidate]],
    explainer: Explainer,
    identified: Sequence[Identified | None],
) -> list[str]:
    taxonomy = reading.pool.taxonomy
    foreign = [FOREIGN.format(reading.lemmas.lexicon)] if looks_foreign(reading.pool) else []
    if not taxonomy.is_wordnet:
        foreign = [text.partition(":")[0] for text in foreign]

    def against(name: ParsedName, row: Sequence[Candidate]) -> str:
        return contradiction(name, row[0].kind, row[0].wnid, reading.lemmas) if row and row[0].share else ""

    def nodes(name: ParsedName, row: Sequence[Candidate]) -> int:
        if taxonomy.is_wordnet or not row or row[0].kind != "synset":
            return 0
        return len(names_of_nodes(taxonomy).get(name_of_node(name.name, taxonomy), ()))

    return [
        f"{known.scheme}: {explainer.reason(row[0]) if row else UNKNOWN_IDENTIFIER}"
        if known
        else "; ".join(
            [
                explainer.reason(row[0] if row else None),
                *[f"it is a name of {n} nodes" for n in [nodes(name, row)] if n > 1],
                *[OTHERWISE.format(words) for words in [against(name, row)] if words],
                *[NUMBER] * name.number,
                *[ADJECTIVE] * is_adjective(name, reading.lemmas),
                *foreign,
            ]
        )
        for row, name, known in zip(candidates, reading.pool.names, identified, strict=True)
    ]


def _candidates(reading: Reading, shares: Floats) -> list[tuple[Candidate, ...]]:
    """Return the best candidates of each name, then the common synsets offered for it."""
    pool, taxonomy, index = reading.pool, reading.pool.taxonomy, reading.lemmas.index
    order, starts = ranked(pool, shares), pool.starts.tolist()
    offered = []
    for start, stop, common in zip(starts[:-1], starts[1:], common_synsets(reading, shares), strict=True):
        row = []
        for c in order[start : min(stop, start + OFFERED)].tolist():
            wnid, route = taxonomy.wnid(int(pool.node[c])), pool.routes[c]
            senses = index.get(route.lemma, (wnid,))
            sense = senses.index(wnid) + 1 if wnid in senses else 1
            share = float(shares[c])
            row.append(Candidate(wnid, share, route.kind, route.lemma, sense, len(senses), route.added))
        wnids = {candidate.wnid for candidate in row}
        for wnid in map(taxonomy.wnid, common):
            if wnid not in wnids:
                lemma = taxonomy.lemmas(wnid)[0].lower()
                senses = taxonomy.lemma_index()[lemma]
                row.append(Candidate(wnid, 0.0, COMMON, lemma, senses.index(wnid) + 1, len(senses)))
        offered.append(tuple(row[:OFFERED]))
    return offered
