"""Membership of classes in the groups of a recipe, with the evidence.

Groups take classes in file order; a class is offered again only to groups with ``reuse``. A class of no group
is ``excluded`` and keeps the evidence of every rule that refused it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial

from wordnet_splits.base.errors import RecipeError, SplitsError
from wordnet_splits.benchmark.recipe import Group, Recipe
from wordnet_splits.benchmark.rules import Context, Key, Verdict, decide
from wordnet_splits.benchmark.rules.phrases import explain_refusals
from wordnet_splits.benchmark.rules.syntax import ids_listed, rule_text
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.catalog.lists import find_list
from wordnet_splits.wordnet.taxonomy import Taxonomy


@dataclass
class Membership:
    """The classes of every group, with the verdicts of the rules.

    Attributes
    ----------
    groups : class ids of each group.
    verdicts : verdict on each accepted class, by (group, class).
    refusals : groups that refused a class, in file order, with their verdicts.
    removed : classes that ``drop_leaks`` removed, with their group and the reason.
    """

    recipe: Recipe
    groups: dict[str, list[str]] = field(default_factory=dict)
    verdicts: dict[tuple[str, Key], Verdict] = field(default_factory=dict)
    refusals: dict[Key, list[tuple[Group, Verdict]]] = field(default_factory=dict)
    removed: dict[Key, tuple[Group, str]] = field(default_factory=dict)
    context: Context | None = None

    @cached_property
    def rules(self) -> dict[str, str]:
        """The rule of each group as one line."""
        return {g.name: rule_text(g.classes) for g in self.recipe.group}


def decide_membership(recipe: Recipe, seed: int, taxonomy: Taxonomy) -> Membership:
    """Decide the classes of each group.

    Raises
    ------
    RecipeError : a rule refers to a later group, a group takes no class, or a draw asks for too many.
    """
    membership = Membership(recipe)
    context = Context(
        taxonomy=taxonomy,
        hierarchy=recipe.hierarchy,
        roles={g.name: g.role for g in recipe.group},
        draw=recipe.draw,
        seed=seed,
        published=partial(find_list, beside=recipe.folder),
    )
    membership.context = context
    taken_keys: set[Key] = set()
    for group in recipe.group:
        catalog = load_catalog(group.source)
        offered = [c.class_id for c in catalog if group.reuse or (group.source, c.class_id) not in taken_keys]
        try:
            verdicts = decide(group.classes, group.source, offered, context)
        except SplitsError as error:
            raise error.within(recipe.location(group.name)) from None
        accepted = [c for c in offered if verdicts[c].accepted]
        if not accepted:
            raise RecipeError(
                f"the rule takes no class at all: {explain_refusals(group.source, verdicts, context)}",
                where=recipe.location(group.name),
                hint="wider operands or bounds take more"
                if offered
                else "put the group before the one that takes its classes, or say reuse = true",
            )
        for class_id in sorted(ids_listed(group.classes) - {*offered}):
            if (group.source, class_id) in taken_keys:
                raise RecipeError(
                    f"class {class_id!r} is listed, but an earlier group has taken it",
                    where=recipe.location(group.name),
                    hint="take it out of the list, or say reuse = true",
                )
        membership.groups[group.name] = accepted
        for class_id, verdict in verdicts.items():
            key = (group.source, class_id)
            if verdict.accepted:
                membership.verdicts[group.name, key] = verdict
            else:
                membership.refusals.setdefault(key, []).append((group, verdict))
        context.groups[group.name] = [(group.source, c) for c in accepted]
        taken_keys.update(context.groups[group.name])
    return membership
