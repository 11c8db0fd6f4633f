"""Mine negative words from WordNet: nouns at least a margin of edges away from every ID class.

NegLabel (Jiang et al., ICLR 2024, section 3.2) takes the nouns and adjectives whose text embeddings are least
similar to the ID names' embeddings; it ignores meaning, so that some words are ID classes. Here WordNet
selects the candidates, and the order is by distance, or by NegLabel's rule on given embeddings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from wordnet_splits.audit.class_list import ClassListLike, ListedClass, hierarchy_of_lists, load_class_list
from wordnet_splits.audit.thresholds import nearest_classes
from wordnet_splits.base.digests import order_classes
from wordnet_splits.base.errors import DataError
from wordnet_splits.base.names import check_counts
from wordnet_splits.base.untrusted import user_errors
from wordnet_splits.negatives.words import audit_negatives
from wordnet_splits.wordnet.taxonomy import Taxonomy

DRAW = "negatives"
"""Name of the draw that orders words of the same distance."""
BELOW = "physical entity"
PERCENTILE = 5.0
"""NegLabel's percentile of the distances to the ID names, robust to a few outliers."""
Embed = Callable[[Sequence[str]], npt.NDArray[Any]]
"""Words -> their text embeddings (n, d)."""


def mine_negatives(
    known: ClassListLike = "imagenet1k",
    *,
    margin: int = 4,
    count: int | None = None,
    below: str = BELOW,
    blind: Sequence[str] | str = (),
    embed: Embed | None = None,
    percentile: float = PERCENTILE,
    seed: int = 0,
    taxonomy: Taxonomy | str | None = None,
    manifests: Path | None = None,
) -> list[str]:
    """Return nouns of WordNet that are far from every ID class, as negative words.

    A noun is a candidate if its first sense is a kind of ``below``, is not an instance (Lake Superior), is
    ``margin`` edges or more from every ID class, and is related to no ID class (`audit_negatives`).

    Parameters
    ----------
    known : the ID classes, as of `audit_classes`; those without a confirmed synset exclude only words that
        name them.
    margin : least number of edges.
    count : number of words, by default all candidates.
    below : a noun, synset or wnid.
    blind : OOD sets whose class names are left out, as of `audit_negatives`.
    embed : text encoder. With it, the candidates with the largest `neglabel_distance` are taken; without it,
        the farthest in edges, ties by a stable hash of the word and ``seed``.
    percentile : of the cosine distances to the ID names.

    Returns
    -------
    The words, first the farthest, with blanks for underscores.

    Raises
    ------
    DataError : ID classes of another hierarchy than WordNet or without any synset; ``margin``, ``count`` or
        ``percentile`` out of range; fewer candidates than ``count``, or ``embed`` fails, or gives embeddings
        of another shape, zero or not finite.
    """
    _check_numbers(margin, 1 if count is None else count, percentile)
    taxonomy = hierarchy_of_lists(known, taxonomy=taxonomy, manifests=manifests)
    if not taxonomy.is_wordnet:
        message = f"words are mined from WordNet, and the classes are in {taxonomy.title}"
        raise DataError(message, where=str(known), hint="check a list of words with `audit negatives`")
    allowed = taxonomy.descendants(taxonomy.find(below))
    first_senses = {
        word.replace("_", " "): senses[0]
        for word, senses in taxonomy.lemma_index().items()
        if senses[0] in allowed and not _is_instance(senses[0], taxonomy)
    }
    classes = [ListedClass(wnid, wnid, (wnid,)) for wnid in dict.fromkeys(first_senses.values())]
    known_classes = load_class_list(known, taxonomy, manifests=manifests).as_known(taxonomy)
    nearest = nearest_classes("distance", classes, known_classes, taxonomy)
    distances = {word: int(nearest[wnid][1]) for word, wnid in first_senses.items()}
    far = [word for word, edges in distances.items() if edges >= margin]
    candidates = []
    if far:
        report = audit_negatives(far, known, ood=blind, taxonomy=taxonomy, manifests=manifests)
        candidates = [word.word for word in report.words if word.relation is None and not word.names]
    if len(candidates) < (count or 1):
        raise DataError(
            f"cannot mine {count or 1:,} words: {len(candidates):,} nouns are {margin} edges or more from "
            "every class",
            hint=f"give a smaller margin or count, or a wider noun than {below!r}",
        )
    ordered = order_classes(DRAW, seed, known_classes.name, candidates)
    if embed is None:
        ordered.sort(key=lambda word: -distances[word])
    else:
        names = [item.name for item in known_classes.classes]
        word_rows, name_rows = _embeddings(embed, ordered, names)
        scores = dict(zip(ordered, neglabel_distance(word_rows, name_rows, percentile), strict=True))
        ordered.sort(key=lambda word: -scores[word])
    return ordered[:count]


def _check_numbers(margin: object, count: object, percentile: object) -> None:
    check_counts(margin=margin, count=count)
    if not isinstance(percentile, Real) or not 0 <= float(percentile) <= 100:
        raise DataError(f"percentile must be between 0 and 100, got {percentile!r}")


def _embeddings(embed: Embed, words: Sequence[str], names: Sequence[str]) -> list[npt.NDArray[Any]]:
    """Return a text encoder's embeddings of words and of ID names, both (n, d)."""
    embeddings = []
    for texts in (words, names):
        with user_errors("the text encoder failed", where="embed"):
            rows = np.asarray(embed(texts))
        if rows.dtype.kind not in "fiu" or rows.ndim != 2 or len(rows) != len(texts):
            what = f"embeddings must be real numbers ({len(texts)}, d), got {rows.shape} of {rows.dtype}"
            raise DataError(what, where="embed")
        bad = np.flatnonzero(~np.isfinite(rows).all(axis=1) | ~rows.any(axis=1))
        if len(bad):
            what = f"embeddings must be finite and not zero, got another for {texts[bad[0]]!r}"
            raise DataError(what, where="embed")
        embeddings.append(rows)
    if len(widths := {rows.shape[1] for rows in embeddings}) > 1:
        what = f"embeddings must have one width, got {' and '.join(map(str, sorted(widths)))}"
        raise DataError(what, where="embed")
    return embeddings


def neglabel_distance(
    words: npt.NDArray[Any], names: npt.NDArray[Any], percentile: float = PERCENTILE
) -> npt.NDArray[np.float64]:
    """Return the percentile of 1 - cosine similarity of each word to the ID names (NegLabel, eq. 4-5).

    Parameters
    ----------
    words : (n, d) embeddings.
    names : (K, d) embeddings.
    """
    rows_of_both = (rows.astype(np.float64) for rows in (words, names))  # norms overflow in half precision
    word_units, name_units = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in rows_of_both)
    distances: npt.NDArray[np.float64] = np.percentile(1 - word_units @ name_units.T, percentile, axis=1)
    return distances


def _is_instance(wnid: str, taxonomy: Taxonomy) -> bool:
    """Return whether a synset is an instance of another, as Lake Superior is an instance of lake."""
    node = taxonomy.index(wnid)
    graph = taxonomy.graph
    return bool(graph.instance[graph.parent_indptr[node] : graph.parent_indptr[node + 1]].any())
