"""The hierarchy that decides a benchmark: WordNet, or the one that its recipe or datasets declare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wordnet_splits.base.errors import RecipeError
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.manifest.metadata import OWN
from wordnet_splits.benchmark.recipe import Recipe
from wordnet_splits.datasets.catalog import load_catalog
from wordnet_splits.datasets.catalog.table import CATALOGS
from wordnet_splits.wordnet.taxonomy import Taxonomy, load


def taxonomy_of(benchmark: Recipe | Manifest, wordnet: Taxonomy | str | None = None) -> Taxonomy:
    """Return the whole graph that decides a benchmark: its own hierarchy, else WordNet.

    Parameters
    ----------
    wordnet : another WordNet, or its place as of `wordnet_splits.wordnet.taxonomy.load`; the embedded WordNet
        3.0 by default.

    Raises
    ------
    RecipeError : another WordNet for a benchmark with its own hierarchy, or two hierarchies.
    TaxonomyError, DataError : the hierarchy is malformed or absent.
    """
    own = benchmark.own_hierarchy
    if own is not None and wordnet is not None:
        raise RecipeError(
            f"another WordNet cannot decide it: its hierarchy is {own.label}",
            where=benchmark.name,
            hint="leave out --wordnet",
        )
    if own is not None:
        return own.taxonomy()
    return load(wordnet)


def taxonomy_row(recipe: Recipe, taxonomy: Taxonomy) -> dict[str, str]:
    """Return ``taxonomy`` of ``manifest.json``: name, version, and the edges that rules follow."""
    own = recipe.own_hierarchy
    name, edges = ("WordNet", recipe.edges) if own is None else (own.label, OWN)
    return {"name": name, "version": taxonomy.version, "hierarchy": edges}


def require_placed(recipe: Recipe, groups: Mapping[str, Iterable[str]]) -> None:
    """Raise RecipeError for a class of an ID group that is at no node of the recipe's own hierarchy.

    Parameters
    ----------
    groups : class ids of each group.
    """
    datasets = recipe.datasets
    if datasets.hierarchy is None:
        return
    for group in recipe.groups_with_role("id"):
        catalog, declaration = load_catalog(group.source, datasets), datasets.find(group.source)
        file = CATALOGS / f"{group.source}.tsv" if declaration is None else declaration.catalog_file
        for class_id in groups[group.name]:
            if not catalog[class_id].wnids:
                raise RecipeError(
                    f"class {class_id!r} is at no node of {datasets.hierarchy.taxonomy().title}",
                    where=f"{recipe.location(group.name)}: {file.name}, line {catalog.line(class_id)}",
                    hint="write its node into the column wnids of the catalog, or add a node with its id",
                )
