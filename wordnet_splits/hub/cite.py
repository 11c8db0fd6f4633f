"""BibTeX entries for a benchmark: its paper, WordNet, the datasets it draws from, and this program."""

from __future__ import annotations

from pathlib import Path

from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.recipe import Recipe
from wordnet_splits.benchmark.resolve import find_recipe
from wordnet_splits.datasets.sources.info import Citation, citation_of


def cite_benchmark(benchmark: Recipe | Manifest | str | Path, *, manifests: Path | None = None) -> Citation:
    """Return the BibTeX entries of a benchmark's paper, WordNet, its sources and this program, each key once.

    The benchmark itself, and the paper that describes it, come first where ``[about]`` names authors or has
    the paper's BibTeX. The sources of its groups and the sources named in its rules follow, sorted by name.

    Parameters
    ----------
    benchmark : a recipe or manifest, or its name, path or address.

    Raises
    ------
    UnknownNameError : no such benchmark; similar names are suggested.
    """
    recipe = find_recipe(benchmark, manifests)
    about = recipe.about
    by_author = {"benchmark": about.bibtex(recipe.name, recipe.title or recipe.name, recipe.version)}
    if about.paper and about.paper.startswith("@"):
        by_author["paper"] = about.paper
    return citation_of(
        recipe.name, recipe.paper, recipe.sources_named, recipe.declarations, by_author=by_author
    )
