"""What the papers publish beside what our rules give, each difference explained in a sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wordnet_splits.build.membership import Membership, decide_membership
from wordnet_splits.catalog import load_catalog
from wordnet_splits.catalog.inventory import load_list
from wordnet_splits.recipe import load_recipe
from wordnet_splits.reports.keyword_switches import SWITCHES, keyword_switches
from wordnet_splits.rules import ClassRule, Context, decide
from wordnet_splits.taxonomy import Taxonomy, load

KIM, PALECHOR = "kim2023", "palechor2023"
ROLE_OF_LABEL = {-1: "negative", -2: "unknown"}
"""The published lists' labels below 0; every other label is a known class."""

NO_MAP = "The paper's map from CIFAR-100 names to synsets is unpublished."
OTHER_MAP = "Depends on hand choices among senses, so it is no target; shown to bound the default."
ARITHMETIC = (
    "The paper subtracts 200 and 394 from 1,000; on WordNet 3.0's full graph one class fewer lies below."
)
VARIANTS = (
    "Variant kinds are fixed from the paper's table 4; the paper's own list of variants is unpublished."
)


@dataclass(frozen=True)
class FidelityRow:
    """One published figure and ours; ``why`` is empty where they are equal."""

    paper: str
    what: str
    published: int | None
    ours: int
    why: str = ""


def fidelity(taxonomy: Taxonomy | None = None) -> list[FidelityRow]:
    """Return every comparison of rule-made classes with published figures."""
    taxonomy = taxonomy or load()
    rows = [*_tiny_imagenet(taxonomy), *_near_candidates(taxonomy), *_protocols(taxonomy), *_far(taxonomy)]
    return [r if r.published != r.ours else FidelityRow(r.paper, r.what, r.published, r.ours) for r in rows]


def _tiny_imagenet(taxonomy: Taxonomy) -> Iterator[FidelityRow]:
    candidates = [c.class_id for c in load_catalog("tiny-imagenet")]
    for senses, published, why in (("any", 42, NO_MAP), ("catalog", None, OTHER_MAP)):
        rule = ClassRule.model_validate(
            {"overlaps": "source:cifar100", "senses": senses, "relation": "self-or-below"}
        )
        verdicts = decide(rule, "tiny-imagenet", candidates, Context(taxonomy))
        dropped = sum(v.accepted for v in verdicts.values())
        yield FidelityRow(KIM, f"Tiny ImageNet classes dropped, {senses} sense", published, dropped, why)


def _near_candidates(taxonomy: Taxonomy) -> Iterator[FidelityRow]:
    candidates = [c.class_id for c in load_catalog("imagenet1k")]
    known = {c.class_id for c in load_catalog("tiny-imagenet")}
    rule = ClassRule.model_validate({"below_parent_of": "source:tiny-imagenet"})
    offered = [c for c in candidates if c not in known]
    near = sum(v.accepted for v in decide(rule, "imagenet1k", offered, Context(taxonomy)).values())
    yield FidelityRow(KIM, "near candidates of ImageNet-200", 406, near, ARITHMETIC)
    yield FidelityRow(KIM, "external ImageNet classes", 394, len(offered) - near, ARITHMETIC)


def _protocols(taxonomy: Taxonomy) -> Iterator[FidelityRow]:
    for name in ("osc-p1", "osc-p2", "osc-p3"):
        recipe = load_recipe(name)
        membership = decide_membership(recipe, recipe.seed, taxonomy)
        listed = published_classes(f"openset-imagenet/{name.removeprefix('osc-')}_test")
        for group in recipe.group:
            published = group.published["classes"]
            yield FidelityRow(
                PALECHOR, f"{name} {group.name} classes", published, len(membership.groups[group.name])
            )
        yield FidelityRow(
            PALECHOR,
            f"{name} classes in another role than in the published list",
            0,
            differing_classes(membership, listed),
        )


def published_classes(list_name: str) -> dict[str, str]:
    """Return the role (known, negative, unknown) of every class of a published open-set list."""
    table = load_list(list_name)
    pairs = zip(table.column("class_id").to_pylist(), table.column("label").to_pylist(), strict=True)
    return {class_id: ROLE_OF_LABEL.get(label, "known") for class_id, label in pairs}


def differing_classes(membership: Membership, published: dict[str, str]) -> int:
    """Count the classes that are in another group here than in a published list, or in only one of them."""
    ours = {c: group for group, classes in membership.groups.items() for c in classes}
    return sum(ours.get(c) != published.get(c) for c in ours.keys() | published.keys())


def _far(taxonomy: Taxonomy) -> Iterator[FidelityRow]:
    published = {"food101": 32, "caltech256": 45, "places365": 82}
    (row,) = keyword_switches(tuple(published), "imagenet1k", switches=SWITCHES[:1], taxonomy=taxonomy)
    for source, count in row.counts().items():
        yield FidelityRow(KIM, f"{source} classes kept as far-OOD", published[source], count, VARIANTS)
    images = row.images["caltech256"]
    if images is not None:
        yield FidelityRow(KIM, "caltech256 images kept as far-OOD", 4792, images, VARIANTS)
