"""Authors and terms of published benchmarks: from ``[about]``, or this project's for shipped benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from wordnet_splits.base.about import ASKED_TO_PUBLISH, LICENCE_REF, About, Author, licences
from wordnet_splits.base.errors import ManifestError
from wordnet_splits.base.lazy import need
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.recipe import Recipe, is_shipped, load_recipe
from wordnet_splits.benchmark.resolve import find_recipe
from wordnet_splits.datasets.sources.by_name import Citation, citation_of

CITATION: Final = "CITATION.cff"
HOME: Final = "https://pypi.org/project/wordnet-splits"
KEYWORDS: Final = ("out-of-distribution detection", "open-set recognition", "WordNet", "benchmark")
PROJECT: Final = About(
    authors=(Author(name="The wordnet-splits developers", organisation=True),),
    licence="Apache-2.0",
    url=HOME,
    date="2026-11-20",
    biases="Near and far follow WordNet's senses and hypernyms of English nouns, or the lists of a paper. "
    "Classes and images are those that the publishers of the sources chose, with their biases.",
    personal_information="Tables have no pixels and no personal data; images of the sources may show people.",
    use_cases="Not for training on test groups, nor for choosing parameters on them.",
    social_impact="Classifiers that detect unknown images are safer to use; a good score proves no safety.",
)
"""Authors, terms and responsible-AI statements of the shipped benchmarks."""


def keywords_of(*manifests: Manifest) -> list[str]:
    """Return the keywords of benchmarks, without WordNet if none is decided by it."""
    has_wordnet = any(manifest.own_hierarchy is None for manifest in manifests)
    return [word for word in KEYWORDS if word != "WordNet" or has_wordnet]


def about_of(manifest: Manifest) -> About:
    """Return the ``[about]`` of a benchmark; a shipped benchmark without it gets this project's."""
    about = manifest.data.about
    return PROJECT if not about.as_dict() and is_shipped(load_recipe(manifest)) else about


def check_attributed(manifest: Manifest, metadata: Mapping[str, Any]) -> None:
    """Raise ManifestError for a benchmark without licence or authors.

    Parameters
    ----------
    metadata : metadata of the ``README.md`` next to the benchmarks; its ``license`` counts as the licence.
    """
    absent = [key for key in ASKED_TO_PUBLISH if key in about_of(manifest).absent]
    if "license" in metadata and "licence" in absent:
        absent.remove("licence")
    if absent:
        raise ManifestError(
            f"its recipe has no {' and no '.join(absent)} in [about]",
            where=str(manifest.folder or manifest.name),
            hint='add them, as in licence = "CC-BY-4.0" and authors = [{ name = "Ada Lovelace" }], '
            "and build again",
        )


def licence_address(licence: str) -> str:
    """Return the address of a licence with an SPDX identifier, in any case; of another one the text."""
    spdx = {name.lower(): name for name in licences()}.get(licence.lower())
    return f"https://spdx.org/licenses/{spdx}.html" if spdx else licence


def front_matter(manifests: Sequence[Manifest]) -> dict[str, Any]:
    """Return a card's metadata on the authors and terms of benchmarks, without duplicates."""
    abouts = [about_of(manifest) for manifest in manifests]
    names = list(dict.fromkeys(about.licence for about in abouts if about.licence))
    ids = list(dict.fromkeys((name in licences() and licences()[name].hub) or "other" for name in names))
    metadata: dict[str, Any] = {}
    if ids:
        metadata["license"] = ids[0] if len(ids) == 1 else ids
    if "other" in ids:
        others = [name for name in names if name not in licences() or not licences()[name].hub]
        metadata["license_name"] = ", ".join(name.removeprefix(LICENCE_REF).lower() for name in others)
    authors = list(dict.fromkeys(author for about in abouts for author in about.authors))
    if authors:
        metadata["authors"] = [
            {"name": author.full_name, **({"orcid": author.orcid} if author.orcid else {})}
            for author in authors
        ]
    if dates := [about.date for about in abouts if about.date]:
        metadata["date_published"] = max(dates)
    return metadata


def citation_cff(manifests: Sequence[Manifest], name: str, url: str | None) -> str:
    """Return the text of ``CITATION.cff`` for a benchmark, or for a repository with a reference to each.

    Parameters
    ----------
    name : name of the repository.
    url : address where it is published, if any; a benchmark's own address takes precedence.
    """
    yaml = need("yaml", "hub", where=CITATION)
    works = [_cff_work(manifest, url) for manifest in manifests]
    message = "If you use this dataset, cite it and the sources that `wordnet-splits cite` prints."
    head: dict[str, Any] = {"cff-version": "1.2.0", "message": message}
    if len(works) == 1:
        head |= works[0]
    else:
        authors = [author for work in works for author in work["authors"]]
        unique = [author for n, author in enumerate(authors) if author not in authors[:n]]
        head |= {"title": name, "type": "dataset", "authors": unique, "references": works}
        head |= {"url": url} if url else {}
    head["keywords"] = keywords_of(*manifests)
    text = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=1000)
    return str(text)


def _cff_work(manifest: Manifest, url: str | None) -> dict[str, Any]:
    about = about_of(manifest)
    work = {
        "title": load_recipe(manifest).title or manifest.name,
        "type": "dataset",
        "authors": [_cff_author(author) for author in about.authors],
        "version": str(manifest.version),
        "date-released": about.date,
        "doi": about.doi,
        "url": about.url or url,
        "license": about.licence if about.licence in licences() else None,
        "abstract": about.description,
    }
    return {key: value for key, value in work.items() if value}


def _cff_author(author: Author) -> dict[str, str]:
    if author.organisation:
        return {"name": author.name}
    family, given = author.family_and_given
    keys = {"family-names": family, "given-names": given, "affiliation": author.affiliation}
    if author.orcid:
        keys["orcid"] = f"https://orcid.org/{author.orcid}"
    return {key: value for key, value in keys.items() if value}


def cite_benchmark(benchmark: Recipe | Manifest | str | Path, *, manifests: Path | None = None) -> Citation:
    """Return the BibTeX entries of a benchmark's paper, WordNet, its sources and this program, each key once.

    WordNet is left out for a benchmark with its own hierarchy. The benchmark itself, and the paper that
    describes it, come first where ``[about]`` names authors or has the paper's BibTeX. The sources of its
    groups and the sources named in its rules follow, sorted by name.

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
    named, by_wordnet = (recipe.name, recipe.paper), recipe.own_hierarchy is None
    datasets = recipe.sources_named, recipe.declarations
    return citation_of(*named, *datasets, by_author=by_author, by_wordnet=by_wordnet)
