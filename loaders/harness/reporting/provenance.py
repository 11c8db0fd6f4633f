"""Where the numbers of a report come from: software, seeds, fingerprints, licences and citations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.catalog.declarations import using_sources
from wordnet_splits.manifest import Manifest
from wordnet_splits.sources import source_info
from wordnet_splits.sources.citation import citation_of

from ..comparison.entries import Draw
from ..evaluation.schema import About
from ..evaluation.table import NOTHING, Table

ORDER = ("date", "wordnet-splits", "commit", "python", "torch")
UNRECORDED = "not recorded: evaluated before results kept it"
_SEED = re.compile(r"-s(\d+)$")


def environment_table(draw: Draw) -> Table:
    """Return the software, devices and seeds of each evaluation, a column for each."""
    facts = [_facts(evaluation.results.about) for evaluation in draw.results]
    named = dict.fromkeys(name for each in facts for name in each)
    first = [name for name in ORDER if name in named]
    rows = tuple(
        (name, *(each.get(name, NOTHING) for each in facts)) for name in dict.fromkeys((*first, *named))
    )
    titles = [evaluation.name for evaluation in draw.results] if len(facts) > 1 else ["value"]
    return Table("Software, devices and seeds", ("", *titles), rows)


def _facts(about: About) -> dict[str, str]:
    facts = dict(about.software) or dict.fromkeys(ORDER, UNRECORDED)
    devices = ", ".join(dict.fromkeys(run.device for run in about.runs if run.device))
    facts["device"] = devices or "none: arrays that were computed elsewhere"
    seeds = [match[1] for run in about.runs if (match := _SEED.search(run.name))]
    facts["training seeds"] = ", ".join(dict.fromkeys(seeds)) or "not recorded"
    options = about.options
    facts["bootstrap"] = (
        f"{options.replicates:,} replicates, seed {options.seed}" if options.replicates else "none"
    )
    return facts


def fingerprints_table(draw: Draw) -> Table:
    """Return the fingerprints that two evaluations of one benchmark share."""
    about = draw.first.about
    rows = [("version", str(about.version))]
    rows += [(name, value or "none: a source is awaited") for name, value in _fingerprints(about).items()]
    return Table(f"Fingerprints of {about.benchmark}", ("", "value"), tuple(rows))


def _fingerprints(about: About) -> Mapping[str, str | None]:
    """Return the fingerprints; that of carried sources only where there are any."""
    return {n: value for n, value in about.fingerprints.items() if value or n != "sources"}


def missing_lines(draw: Draw) -> Iterator[str]:
    """Yield a sentence on every set that was not scored whole, or that nothing is missing."""
    lines = [
        f"{row.group} ({row.role}): {row.scored:,} of {_count(row.expected)} images scored, {row.status}."
        for evaluation in draw.results
        for row in evaluation.results.about.missing
    ]
    yield from dict.fromkeys(lines or ["Nothing: every ID, near and far image was scored."])


def _count(expected: int | None) -> str:
    return "an unknown number of" if expected is None else f"{expected:,}"


def licences_table(manifest: Manifest) -> Table:
    """Return the sources with images in a benchmark, and their licences."""
    groups: dict[str, dict[str, None]] = {}
    for row in manifest.groups:
        if row.split != "classes":
            groups.setdefault(row.source, {})[row.group] = None
    with using_sources(manifest.declarations):
        rows = []
        for name, of_source in sorted(groups.items()):
            info = source_info(name)
            rows.append((name, info.title, ", ".join(of_source), info.licence or "not stated", info.url))
    return Table("Sources of the images", ("source", "title", "sets", "licence", "address"), tuple(rows))


def bibtex_of(manifest: Manifest) -> str:
    """Return the BibTeX entries of a benchmark, the sources of its images and this program."""
    sources = sorted({row.source for row in manifest.groups})
    return citation_of(manifest.name, manifest.data.recipe.paper, sources, manifest.declarations).bibtex


def manifest_of(draw: Draw) -> tuple[Manifest | None, str]:
    """Return the benchmark, or None and a sentence that says why it is not here."""
    try:
        return draw.manifest(), ""
    except SplitsError as error:
        return None, f"Licences and citations are not shown: {error}"
