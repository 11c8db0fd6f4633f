"""The proposal for each name of a dataset: synset, confidence, reason, runner-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import check_name
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.propose.common import common_synsets
from wordnet_splits.propose.model import Model, best
from wordnet_splits.propose.reading import read_parsed
from wordnet_splits.propose.reasons import COMMON, Candidate, Explainer
from wordnet_splits.propose.words import parse_name
from wordnet_splits.taxonomy import Taxonomy, load

OFFERED = 8
"""Candidates of a name that are kept."""


@dataclass(frozen=True)
class Proposal:
    """What is proposed for one class.

    ``candidates`` has the best first; where a word of the name is unknown to WordNet, what most other classes
    are comes last, and there may be none. ``confidence``, in [0, 1], is the expected share of right choices
    among proposals of that confidence; ``unsure`` says whether it is too low for a choice without a person,
    or our supplement to WordNet gives the choice: what kind of thing a name is that WordNet lacks is a
    judgement. ``asked`` says whether a person is asked: about the unsure ones, unless another threshold was
    given.
    """

    name: str
    superclass: str
    candidates: tuple[Candidate, ...]
    confidence: float
    asked: bool
    reason: str
    unsure: bool

    @property
    def wnid(self) -> str:
        """The proposed synset, ``""`` where there is none."""
        return self.candidates[0].wnid if self.candidates else ""

    @property
    def runner_up(self) -> str:
        """The second best synset, ``""`` where there is none."""
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
    taxonomy: Taxonomy | None = None,
    model: Model | None = None,
) -> Proposals:
    """Return a synset for each name of a dataset; the names are read together, those of equal words as one.

    Parameters
    ----------
    names : class names or folder names; words joined by blanks, underscores, hyphens or capitals, a
        qualifier after ``/`` or in brackets, alternatives separated by commas.
    superclasses : the superclass of each name, ``""`` where there is none.

    Raises
    ------
    DataError : no names, one that is empty or cannot stand in a table (`check_name`), or not as many
        superclasses as names.

    Examples
    --------
    >>> [p.wnid for p in propose_synsets(["dolphin", "seal", "whale"]).proposals]
    ['n02068974', 'n02076196', 'n02062744']
    """
    above = list(superclasses) if superclasses is not None else [""] * len(names)
    if not names:
        raise DataError("no names", where="propose")
    for class_name in names:
        check_name("class", class_name.strip(), where="propose")
    for superclass in filter(None, map(str.strip, above)):
        check_name("superclass", superclass, where="propose")
    if len(above) != len(names):
        raise DataError(f"{len(above)} superclasses for {len(names)} names", where="propose")
    taxonomy = taxonomy or load()
    model = model or Model.shipped()
    parsed = [parse_name(name) for name in names]
    first: dict[tuple[object, ...], int] = {}
    for n, (name, superclass) in enumerate(zip(parsed, above, strict=True)):
        first.setdefault((*name.content, superclass), n)
    reading = read_parsed([parsed[n] for n in first.values()], [above[n] for n in first.values()], taxonomy)
    pool = reading.pool
    alone, together = model.shares(reading)
    confidence = model.confidence(pool, alone, together)
    order = best(pool, together)
    common = common_synsets(reading, together)
    index = taxonomy.lemma_index()
    offered = []
    for start, stop, more in zip(pool.starts[:-1].tolist(), pool.starts[1:].tolist(), common, strict=True):
        found = []
        for c in order[start : min(stop, start + OFFERED)].tolist():
            wnid, route = taxonomy.wnid(int(pool.node[c])), pool.routes[c]
            senses = index.get(route.lemma, (wnid,))
            sense = senses.index(wnid) + 1 if wnid in senses else 1
            share = float(together[c])
            found.append(Candidate(wnid, share, route.kind, route.lemma, sense, len(senses), route.added))
        own = {candidate.wnid for candidate in found}
        found += [_common(wnid, taxonomy) for node in more if (wnid := taxonomy.wnid(node)) not in own]
        offered.append(tuple(found[:OFFERED]))
    row_of = {key: row for row, key in enumerate(first)}
    rows = [row_of[(*name.content, superclass)] for name, superclass in zip(parsed, above, strict=True)]
    named = [some[0].wnid if some and some[0].kind != COMMON else "" for some in offered]
    explainer = Explainer(taxonomy, [named[r] for r in rows])
    reasons = [explainer.reason(candidates[0] if candidates else None) for candidates in offered]
    sure = confidence.tolist()
    unsure = [
        c < model.ask_below or any(candidate.added for candidate in candidates[:1])
        for c, candidates in zip(sure, offered, strict=True)
    ]
    return Proposals(
        tuple(
            Proposal(
                name=name,
                superclass=superclass,
                candidates=offered[r],
                confidence=sure[r],
                asked=unsure[r],
                reason=reasons[r],
                unsure=unsure[r],
            )
            for name, superclass, r in zip(names, above, rows, strict=True)
        ),
        taxonomy,
    )


def _common(wnid: str, taxonomy: Taxonomy) -> Candidate:
    lemma = taxonomy.lemmas(wnid)[0].lower()
    senses = taxonomy.lemma_index()[lemma]
    return Candidate(wnid, 0.0, COMMON, lemma, senses.index(wnid) + 1, len(senses))
