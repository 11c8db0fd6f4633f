"""The model of proposals: weights of the features, which give shares and the confidence of each choice."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from wordnet_splits.benchmark.rules.keywords import stopwords
from wordnet_splits.linking.candidates import WHOLE, Lemmas, adjectives
from wordnet_splits.linking.class_names import ParsedName
from wordnet_splits.linking.joint_reading import JOINT, Reading
from wordnet_splits.linking.pool import UNARY, Flags, Floats, Indices, Pool
from wordnet_splits.linking.reasons import contradiction

FAMILIAR = (*WHOLE, "related", "within", "apposed", "head")
"""Kinds of routes of a name whose last word is a lemma."""
FOREIGN_SHARE, FEWEST_FOREIGN = 1 / 3, 4
"""Share of unfamiliar names above which a list of so many names or more is taken for another language."""

CLEAR_SHARE = 0.55
"""Smallest share that makes the best candidate's majority clear."""

ROUNDS = 6
"""Rounds of voting; each uses the shares of the previous one."""

SIGNALS = (
    "constant",
    "share",
    "margin",
    "agreed",
    "only",
    "first sense",
    "variant",
    "head",
    "other",
    "left out",
    "count share",
    "strange",
    "many",
    "added",
    "pictured",
    "thing",
    "thing share",
    "thing margin",
    "thing first sense",
    "thing count share",
)
"""Features for the confidence of a choice: log odds of its share, its lead over the runner-up, whether the
name alone gives the same, whether it is the only candidate, the first sense of its lemma, the kind of its
route (``other``: neither the whole name nor its last words), the share of words left out, the share of the
sense, the share of words that WordNet lacks where it lacks the name, the log number of candidates, whether
the choice comes from the supplement, and whether it has images. ``thing`` is 1 for a whole name of a thing
(`Pool.things`), and 0 for a place or an abstraction, which has more senses close to each other; the features
after it repeat the features of the same names for things, else 0."""

_FURTHEST = 6.0


@dataclass(frozen=True, eq=False)
class Model:
    """Weights fitted on hand-made catalogs (`UNARY`; `UNARY` and `JOINT`; `SIGNALS`), and the threshold."""

    unary: Floats
    full: Floats
    signals: Floats
    ask_below: float

    @classmethod
    @cache
    def shipped(cls) -> Model:
        """Return the model in the package."""
        text = (files("wordnet_splits") / "data" / "proposals.toml").read_text(encoding="utf-8")
        return cls.from_dict(tomllib.loads(text))

    @classmethod
    def from_dict(cls, values: Mapping[str, Mapping[str, float]]) -> Model:
        """Return the model of the sections of a TOML file."""
        return cls(
            np.array([values["unary"][name] for name in UNARY]),
            np.array([values["joint"][name] for name in (*UNARY, *JOINT)]),
            np.array([values["confidence"][name] for name in SIGNALS]),
            values["asking"]["below"],
        )

    def as_dict(self) -> dict[str, dict[str, float]]:
        """Return the sections of a TOML file."""
        return {
            "unary": dict(zip(UNARY, self.unary.tolist(), strict=True)),
            "joint": dict(zip((*UNARY, *JOINT), self.full.tolist(), strict=True)),
            "confidence": dict(zip(SIGNALS, self.signals.tolist(), strict=True)),
            "asking": {"below": self.ask_below},
        }

    def shares(self, reading: Reading) -> tuple[Floats, Floats]:
        """Return the shares (m,) of the candidates: by each name alone, and by all names together."""
        alone = joint = reading.pool.softmax(reading.pool.unary @ self.unary)
        for _ in range(ROUNDS):
            scores = reading.joint(joint) @ self.full[len(UNARY) :]
            joint = reading.pool.softmax(reading.pool.unary @ self.full[: len(UNARY)] + scores)
        return alone, joint

    def confidence(self, pool: Pool, alone: Floats, joint: Floats) -> Floats:
        """Return the confidence of the choice for every name, (n,) in [0, 1]; 0 for numbers."""
        confidence = confidence_of(signals(pool, alone, joint), self.signals)
        known = (np.diff(pool.starts) > 0) & ~np.array([name.number for name in pool.names], bool)
        return np.where(known, confidence, 0.0)


def ranked(pool: Pool, shares: Floats) -> Indices:
    """Return the candidates name by name, the greatest share first, ties to the surer route."""
    order: Indices = np.lexsort((np.arange(len(shares)), -np.round(shares, 12), pool.owner))
    return order


def signals(pool: Pool, alone: Floats, joint: Floats) -> Floats:
    """Return the `SIGNALS` of the choice for each name, (n, ``len(SIGNALS)``)."""
    n = len(pool.names)
    table = np.zeros((n, len(SIGNALS)))
    table[:, 0] = 1.0
    counts = np.diff(pool.starts)
    has = np.flatnonzero(counts)
    if not len(has):
        return table
    order = ranked(pool, joint)
    best = order[pool.starts[has]]
    second = order[np.minimum(pool.starts[has] + 1, len(order) - 1)]
    share = joint[best]
    rest = np.where(counts[has] > 1, joint[second], 0.0)
    near_one = np.clip(share, 1e-9, 1 - 1e-9)
    table[has, 1] = np.clip(np.log(near_one / (1 - near_one)), -_FURTHEST, _FURTHEST)
    table[has, 2] = share - rest
    table[has, 3] = ranked(pool, alone)[pool.starts[has]] == best
    table[has, 4] = counts[has] == 1
    table[has, 5] = pool.unary[best, UNARY.index("first sense")]
    kinds = [pool.routes[c].kind for c in best.tolist()]
    table[has, 6] = [kind in ("variant", "qualified") for kind in kinds]
    table[has, 7] = [kind == "head" for kind in kinds]
    table[has, 8] = [kind not in ("synset", "exact", "variant", "qualified", "head") for kind in kinds]
    table[has, 9] = pool.unary[best, UNARY.index("left out")]
    table[has, 10] = pool.unary[best, UNARY.index("count share")]
    table[has, 11] = pool.unary[best, UNARY.index("strange")]
    table[has, 12] = np.log(counts[has])
    table[has, 13] = [pool.routes[c].added for c in best.tolist()]
    table[has, 14] = pool.unary[best, UNARY.index("imagenet")]
    thing = np.zeros(n)
    thing[has] = pool.things[best] & np.array([kind in WHOLE for kind in kinds])
    for column, name in enumerate(SIGNALS[15:], 15):
        table[:, column] = thing * table[:, SIGNALS.index(name.removeprefix("thing ")) if " " in name else 0]
    return table


def confidence_of(table: Floats, weights: Floats) -> Floats:
    """Return the confidence for rows of `SIGNALS`, (n,); at most a share that is below `CLEAR_SHARE`."""
    confidence, share = (1.0 / (1.0 + np.exp(-logits)) for logits in (table @ weights, table[:, 1]))
    return np.where(share < CLEAR_SHARE, np.minimum(confidence, share), confidence)


def needs_confirmation(reading: Reading, shares: Floats) -> Flags:
    """Return the names, (n,), whose choice a person must confirm whatever its confidence.

    These are a choice from the supplement to WordNet; a name that is not a lemma as a whole, unless its last
    words name the kind of thing (`_is_compound`); a name whose other words mean another thing
    (`contradiction`); a single word that is more often an adjective than a noun (*normal*); a number; a name
    of several nodes in a hierarchy other than WordNet, on which no confidence is fitted; and all names of a
    list if more than `FOREIGN_SHARE` match no lemma, as in another language.
    """
    pool = reading.pool
    filled = np.flatnonzero(np.diff(pool.starts))
    confirm = np.zeros(len(pool.names), bool)
    for n, best in zip(filled.tolist(), ranked(pool, shares)[pool.starts[filled]].tolist(), strict=True):
        route = pool.routes[best]
        whole = sum(other.kind in WHOLE for other in pool.routes[pool.starts[n] : pool.starts[n + 1]])
        compound = route.kind == "head" and not (whole or pool.living[best])
        known = route.kind in WHOLE or (compound and _is_compound(pool.names[n], reading.lemmas))
        wnid = pool.taxonomy.wnid(int(pool.node[best]))
        against = contradiction(pool.names[n], route.kind, wnid, reading.lemmas)
        shared = whole > 1 and not pool.taxonomy.is_wordnet  # the confidence is WordNet's
        confirm[n] = route.added or not known or bool(against) or shared
    confirm |= [name.number for name in pool.names]
    confirm |= [is_adjective(name, reading.lemmas) for name in pool.names]
    return confirm | looks_foreign(pool)


def _is_compound(name: ParsedName, lemmas: Lemmas) -> bool:
    """Return whether a name is a compound of known common words (*light switch*).

    Names in other languages are not: their head may come first. A brand means another thing than its head
    (*LEGO brick*), and so may words that a preposition or *and* joins (*mac & cheese*).
    """
    words = [word for phrase in name.phrases for word in phrase]
    initials = re.search("[A-Z]{2}", name.name) and not name.name.isupper()
    return (
        lemmas.english
        and not initials
        and not any(word in stopwords() or not lemmas.has_word(word) or lemmas.proper(word) for word in words)
    )


def looks_foreign(pool: Pool) -> bool:
    """Return whether too few names lead to a lemma for a list of English nouns."""
    familiar = np.zeros(len(pool.names), bool)
    familiar[pool.owner[[route.kind in FAMILIAR for route in pool.routes]]] = True
    return len(familiar) >= FEWEST_FOREIGN and float((~familiar).mean()) > FOREIGN_SHARE


def is_adjective(name: ParsedName, lemmas: Lemmas) -> bool:
    """Return whether a name is an English word that is more often an adjective or adverb than a noun."""
    return (
        lemmas.english
        and lemmas.taxonomy.is_wordnet
        and not name.asides
        and [len(phrase) for phrase in name.phrases] == [1]
        and name.phrases[0][0] in adjectives()
    )
