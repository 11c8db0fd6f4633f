"""Other people's sets of ImageNet's kin beside our rules: Recalcati's, TIN-597, SSB-hard, NINCO."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from wordnet_splits.catalog import load_catalog
from wordnet_splits.catalog.check import naive_sense
from wordnet_splits.rules import ClassRule, Context, decide
from wordnet_splits.similarity import similarity
from wordnet_splits.taxonomy import Taxonomy

Figure = tuple[str, str, int | None, int, str]
"""Paper, what is counted, published, ours, and why they differ or how to read them."""

RECALCATI, OPENOOD = "recalcati", "openood"
IMAGENET = "imagenet1k"
CUTS = (("T40", 0.60, 56), ("T45", 0.55, 90), ("T50", 0.50, 140))
REMOVED = 203
"""Classes of the 800 beside Tiny ImageNet's that TIN-597 leaves out (OpenOOD v1.5)."""

COMMON = (
    "The paper does not list its common classes: ours are those whose synset has a word equal to a Places "
    "name, without what stands after its slash."
)
SIMILAR = (
    "The paper's map of Places365 is not in it (what their Hub dataset has of it, we could not fetch), nor "
    "how it scales Leacock-Chodorow: our reading divides by its maximum, with our catalog's map or the first "
    "sense of each name. Which Wu-Palmer is unsaid, too: `mean` takes `wup_wn`, `mean_nltk` that of NLTK."
)
TIN597 = (
    "OpenOOD does not publish its rule. Ours drops what is, or lies above or below, a class of CIFAR-10 or "
    "CIFAR-100 by our catalogs: precision {precision:.3f}, recall {recall:.3f}."
)
SCENES = (
    "Two things to count: classes with a word equal to a Places name, without what stands after its slash; "
    "and scenes, indoor and outdoor apart, whose synset by our map is that of a class."
)
KIN = (
    "No paper counts this: overlapping is, or lies above or below, an ImageNet-1K class; near lies below "
    "a parent of one, or is it; far is the rest with a synset."
)


def figures(taxonomy: Taxonomy) -> Iterator[Figure]:
    """Yield every figure of these sets."""
    yield from _recalcati(taxonomy)
    yield from _tin597(taxonomy)
    for source in ("ssb-hard", "ninco"):
        yield from _kin(source, taxonomy)


def _accepted(rule: dict[str, Any], source: str, classes: Sequence[str], taxonomy: Taxonomy) -> set[str]:
    verdicts = decide(ClassRule.model_validate(rule), source, classes, Context(taxonomy))
    return {c for c, verdict in verdicts.items() if verdict.accepted}


def _recalcati(taxonomy: Taxonomy) -> Iterator[Figure]:
    ids = [c.class_id for c in load_catalog(IMAGENET)]
    common = _accepted({"shares_name_with": "source:places365"}, IMAGENET, ids, taxonomy)
    yield RECALCATI, "common classes of ImageNet-1K and Places365", 32, len(common), COMMON
    first_senses = {
        sense for c in load_catalog("places365") if (sense := naive_sense(c, taxonomy)) is not None
    }
    catalog_synsets = {wnid for c in load_catalog("places365") for wnid in c.wnids}
    for map_name, synsets in (("our map", catalog_synsets), ("first senses", first_senses)):
        for measure, label in (("mean", map_name), ("mean_nltk", f"{map_name}, NLTK's Wu-Palmer")):
            nearest = similarity.similarity_matrix(measure, ids, sorted(synsets), taxonomy).max(axis=1)
            for name, bound, published in CUTS:
                count = int(np.count_nonzero(nearest >= bound))
                yield RECALCATI, f"ID classes of ImageNet-1K at {name}, {label}", published, count, SIMILAR


def _tin597(taxonomy: Taxonomy) -> Iterator[Figure]:
    tiny = {c.class_id for c in load_catalog("tiny-imagenet")}
    kept_ids = {c.class_id for c in load_catalog("openood-tin597")}
    offered = [c.class_id for c in load_catalog(IMAGENET) if c.class_id not in tiny]
    removed = set(offered) - kept_ids
    near = [{"overlaps": f"source:{name}", "relation": "ancestry"} for name in ("cifar10", "cifar100")]
    dropped = _accepted({"any": near}, IMAGENET, offered, taxonomy)
    yield OPENOOD, "classes that TIN-597 leaves out of the 800", REMOVED, len(removed), ""
    shared = len(dropped & removed)
    why = TIN597.format(precision=shared / len(dropped), recall=shared / len(removed))
    yield OPENOOD, "TIN-597: classes that our ancestry rule drops", REMOVED, len(dropped), why
    yield OPENOOD, "TIN-597: classes dropped by both", None, shared, why
    same_name = _accepted({"shares_name_with": "source:places365"}, IMAGENET, sorted(kept_ids), taxonomy)
    scenes = [c for c in load_catalog("places365") if kept_ids.intersection(c.wnids)]
    yield OPENOOD, "TIN-597: classes of the name of a scene of Places365", None, len(same_name), SCENES
    yield OPENOOD, "TIN-597: scenes of Places365 with the synset of a class", None, len(scenes), SCENES


def _kin(source: str, taxonomy: Taxonomy) -> Iterator[Figure]:
    ids = [c.class_id for c in load_catalog(source)]
    rule = {"overlaps": f"source:{IMAGENET}", "relation": "ancestry"}
    equal = _accepted(rule, source, ids, taxonomy)
    left = [c.class_id for c in load_catalog(source) if c.class_id not in equal and c.wnids]
    near = _accepted({"below_parent_of": f"source:{IMAGENET}"}, source, left, taxonomy)
    yield OPENOOD, f"{source}: classes overlapping with ImageNet-1K", None, len(equal), KIN
    yield OPENOOD, f"{source}: classes near ImageNet-1K", None, len(near), KIN
    yield OPENOOD, f"{source}: classes far from ImageNet-1K", None, len(left) - len(near), KIN
    unmapped = len(ids) - len(equal) - len(left)
    if unmapped:
        yield OPENOOD, f"{source}: classes without a synset", None, unmapped, KIN
