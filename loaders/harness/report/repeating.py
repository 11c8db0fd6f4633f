"""How to repeat the numbers of a report: commands, software, seeds, fingerprints, licences and citations."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.datasets.sources import source_info
from wordnet_splits.datasets.sources.info import citation_of

from ..comparison.entries import BenchmarkResults
from ..detectors.openood import OPENOOD
from ..evaluation.command import has_path
from ..results.evaluated_sets import NOT_CHOSEN
from ..results.metadata import MissingSet, ResultsMetadata
from ..results.table import NOTHING, Table

REBUILT = (
    "Recorded by the evaluation, without options of models such as --mapping. Replace the words in "
    "capitals: SOURCE_ROOT is the folder of a dataset (a store of `wordnet-splits pack`, --packed PACKED, "
    "takes the place of all), WEIGHTS the folder of a file of weights."
)
IN_PYTHON = (
    "The sets were given in Python, which no command line can: in the place of each ... stand the model, the "
    "datasets or the arrays, which results do not record."
)


def remarks(draw: BenchmarkResults) -> list[str]:
    """Return sentences on the parts that commands and calls leave open."""
    abouts = [evaluation.results.about for evaluation in draw.results]
    from_python = [bool(about.custom_sets) for about in abouts]
    lines = [*([] if all(from_python) else [REBUILT]), *([IN_PYTHON] if any(from_python) else [])]
    in_session = [facts.name for about in abouts for facts in about.metrics if not has_path(facts)]
    if in_session:
        names = ", ".join(dict.fromkeys(in_session))
        lines.append(f"Defined in a session, so no command computes them: the metrics {names}.")
    objects = [
        facts.detector
        for about in abouts
        for facts in about.detectors
        if facts.foreign is not None and facts.foreign.protocol == OPENOOD
    ]
    if objects:
        names = ", ".join(dict.fromkeys(objects))
        lines.append(f"Objects in Python, for which MODULE:NAME of the object stands: {names}.")
    return lines


def commands(draw: BenchmarkResults) -> Iterator[str]:
    """Yield the commands that repeat the evaluations."""
    for evaluation in draw.results:
        yield with_bootstrap(evaluation.results.about)
        if Path(evaluation.name).is_dir():
            yield shlex.join(["unknown-eval", "check-results", evaluation.name])


def with_bootstrap(about: ResultsMetadata) -> str:
    """Return the recorded command with the bootstrap of the results."""
    replicates, seed = about.options.replicates, about.options.seed
    if not replicates:
        return about.command
    if about.custom_sets:
        return f"{about.command.removesuffix(')')}, bootstrap={replicates}, seed_boot={seed})"
    return f"{about.command} --bootstrap {replicates} --seed-boot {seed}"


ORDER = ("date", "wordnet-splits", "commit", "python", "torch")
UNRECORDED = "not recorded: evaluated before results kept it"
_SEED = re.compile(r"-s(\d+)$")


def environment_table(draw: BenchmarkResults) -> Table:
    """Return the software, devices and seeds of each evaluation, a column for each."""
    facts = [_facts(evaluation.results.about) for evaluation in draw.results]
    named = dict.fromkeys(name for each in facts for name in each)
    first = [name for name in ORDER if name in named]
    rows = tuple(
        (name, *(each.get(name, NOTHING) for each in facts)) for name in dict.fromkeys((*first, *named))
    )
    titles = [evaluation.name for evaluation in draw.results] if len(facts) > 1 else ["value"]
    return Table("Software, devices and seeds", ("", *titles), rows)


def _facts(about: ResultsMetadata) -> dict[str, str]:
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


def fingerprints_table(draw: BenchmarkResults) -> Table:
    """Return the fingerprints that all evaluations of a benchmark share."""
    about = draw.first.about
    rows = [("version", str(about.version))]
    rows += [(name, value or "none: a source is awaited") for name, value in _fingerprints(about).items()]
    return Table(f"Fingerprints of {about.benchmark}", ("", "value"), tuple(rows))


def _fingerprints(about: ResultsMetadata) -> Mapping[str, str | None]:
    """Return the fingerprints, without ``sources`` if the benchmark carries none."""
    return {n: value for n, value in about.fingerprints.items() if value or n != "sources"}


def missing_lines(draw: BenchmarkResults) -> Iterator[str]:
    """Yield a sentence on every set that was not scored whole, or that nothing is missing."""
    lines = [
        f"{row.group} ({row.role}): {_scored(row)}{row.status}."
        for evaluation in draw.results
        for row in evaluation.results.about.missing
    ]
    yield from dict.fromkeys(lines or ["Nothing: every ID, near and far image was scored."])


def _scored(row: MissingSet) -> str:
    if row.status == NOT_CHOSEN:
        return ""
    expected = "an unknown number of" if row.expected is None else f"{row.expected:,}"
    return f"{row.scored:,} of {expected} images scored, "


def licences_table(manifest: Manifest) -> Table:
    """Return the sources with images in a benchmark, and their licences."""
    groups: dict[str, dict[str, None]] = {}
    for row in manifest.groups:
        if row.split != "classes":
            groups.setdefault(row.source, {})[row.group] = None
    rows = []
    for name, of_source in sorted(groups.items()):
        info = source_info(name, manifest.datasets)
        rows.append((name, info.title, ", ".join(of_source), info.licence or "not stated", info.url))
    return Table("Sources of the images", ("source", "title", "sets", "licence", "address"), tuple(rows))


def bibtex_of(manifest: Manifest) -> str:
    """Return the BibTeX entries of a benchmark, the sources of its images and this program."""
    sources = sorted({row.source for row in manifest.groups})
    return citation_of(manifest.name, manifest.data.recipe.paper, sources, manifest.declarations).bibtex


def manifest_of(draw: BenchmarkResults) -> tuple[Manifest | None, str]:
    """Return the benchmark, or None and a sentence with the reason why it is not available."""
    try:
        return draw.manifest(), ""
    except SplitsError as error:
        return None, f"Licences and citations are not shown: {error}"
