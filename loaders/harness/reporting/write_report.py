"""`report`: what was run on what, every table and plot, the worst mistakes, and how to repeat it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from wordnet_splits.base import files
from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.lazy import MissingPackageError
from wordnet_splits.base.plotting import plot_svg
from wordnet_splits.manifest import Manifest
from wordnet_splits.sources.roots import Roots

from ...opening import PackedFolders
from ..comparison.entries import Draw, Entry, Given
from ..comparison.side_by_side import Comparison, compare_draws_of
from ..evaluation.schema import ResultTables
from ..evaluation.sweeps import everything
from ..evaluation.tables import Table, lines_below, tables
from ..plots import get_plot
from ..plots.selection import Subject
from .commands import commands, params_of, remarks
from .mistakes import KINDS, Mistake, with_pictures, worst_mistakes
from .page import Drawn, Section, inline_svg, page

MISTAKES = 12
PLOTS = (
    *("risk-coverage", "roc", "oscr", "densities", "near-far", "full-spectrum"),
    *("nearness", "kim-5", "robustness", "recalcati-3"),
)
"""In the order of the page; those that the results have nothing for are named below the others."""
PER_DETECTOR = frozenset({"densities", "nearness"})
MOST_PANELS = 6
"""Detectors that get a panel each; all are in the other pictures."""


def report(
    results: Sequence[Given] | Given,
    out: str | Path,
    *,
    detectors: Sequence[str] | None = None,
    bootstrap: int = 0,
    mistakes: int = MISTAKES,
    roots: Roots | None = None,
    packed: PackedFolders | None = None,
) -> Path:
    """Write one page of HTML that needs no other file and no network.

    Parameters
    ----------
    results : on one benchmark. detectors : labels, all by default.
    bootstrap : replicates behind the intervals of the ranking; 0 for none.
    mistakes : of each kind that are shown, with thumbnails where the images are at hand.
    roots, packed : where they are, as of `UnknownDetectionSet`.

    Raises
    ------
    DataError : results of several benchmarks or draws. OutputError : the file cannot be written.
    MissingPackageError : no matplotlib or jinja2.
    """
    given = [results] if isinstance(results, Given) else list(results)
    subject = Subject.of(given, detectors=detectors, replicates=bootstrap)
    held = [source.tables for source in subject.draw.sources]
    compared = compare_draws_of([subject.draw], bootstrap=bootstrap)
    pictures, notes = _pictures(subject, compared)
    found, of, missing = _mistakes(subject, compared, mistakes, roots, packed)
    about = subject.draw.first.about
    sections = [
        Section(
            "What was run on what", tables=(*_what(subject.draw), *_swept(held)), lines=_remarks(subject.draw)
        ),
        Section(
            "Results",
            tables=tuple(table for one in held for table in tables(one)),
            lines=tuple(dict.fromkeys(line for one in held for line in lines_below(one))),
        ),
        Section(
            "Comparison",
            tables=tuple(compared.tables()),
            lines=tuple(n for n in compared.notes if n not in subject.draw.notes),
        ),
        Section("Plots", pictures=tuple(pictures), lines=tuple(notes)),
        *(
            Section(f"{title}: {of}", mistakes=tuple(one for one in found if one.kind == kind))
            for kind, title in KINDS.items()
        ),
        Section(
            "How to repeat it",
            lines=(*remarks(subject.draw), *missing),
            commands=tuple(commands(subject.draw)),
        ),
    ]
    facts = f"version {about.version}, images {about.images_fingerprint or 'awaiting a source'}"
    path = Path(out)
    files.write_text(path, page(f"{subject.benchmark}: what it does not know", facts, sections))
    return path


def _pictures(subject: Subject, compared: Comparison) -> tuple[list[Drawn], list[str]]:
    best = list(dict.fromkeys(row["detector"] for row in compared.rows()))[:MOST_PANELS]
    entries = tuple(entry for entry in subject.entries if entry.detector in best)
    few = replace(subject, draw=replace(subject.draw, entries=entries))
    drawn, notes = [], []
    for number, what in enumerate(PLOTS):
        try:
            picture = get_plot(what).picture(few if what in PER_DETECTOR else subject)
            prefix = f"p{number}-"
            svg = inline_svg(plot_svg(picture, prefix), prefix, picture.title)
            drawn.append(Drawn(what, picture.title, svg, len(picture.panels), picture.notes))
        except MissingPackageError:
            raise
        except SplitsError as error:
            notes.append(f"Not drawn: {what}: {error}")
    return drawn, notes


def _mistakes(
    subject: Subject,
    compared: Comparison,
    most: int,
    roots: Roots | None,
    packed: PackedFolders | None,
) -> tuple[list[Mistake], str, list[str]]:
    """Return the mistakes of the best entry, its name, and what could not be shown."""
    best = compared.rankings[0].entries[0]
    (entry,) = [one for one in subject.entries if one.label == (best.model, best.detector)]
    name = " ".join(part for part in entry.label if part)
    try:
        manifest: Manifest = subject.draw.manifest()
    except SplitsError as error:
        return [], name, [f"Mistakes are not shown: {error}"]
    found, notes = with_pictures(worst_mistakes(entry, manifest, most), manifest, roots=roots, packed=packed)
    return found, name, notes


def _what(draw: Draw) -> Iterator[Table]:
    """Yield the networks, and the sets with their numbers of images."""
    rows = []
    for source in draw.sources:
        for run in source.tables.about.runs:
            used = run.class_map
            classes = "all" if used is None else f"{used.columns} of {used.of} ({used.mapping})"
            transforms = " | ".join(dict.fromkeys(run.transforms.values()))
            rows.append((run.name, run.weights, run.device, transforms, classes, run.model_key[:12]))
    columns = ("model", "weights", "device", "transform", "classes", "key")
    yield Table("Networks", columns, tuple(rows))
    sets = draw.entries[0].scored()[0].sets
    counts = tuple((name, part.role, f"{len(part.confidence):,}") for name, part in sets.items())
    yield Table("Sets of test images that were scored", ("group", "role", "images"), counts)
    yield Table("Detectors", ("detector", "parameters", "chosen on"), tuple(dict.fromkeys(_parameters(draw))))


def _swept(held: Sequence[ResultTables]) -> Iterator[Table]:
    """Yield every value that sweeps tried, where the comparison has but the chosen ones."""
    for results in held:
        yield from everything(results)


def _parameters(draw: Draw) -> Iterator[tuple[str, str, str]]:
    for entry in draw.entries:
        for detector, params, chosen_on in _used(entry):
            yield detector, params, chosen_on or "given"


def _used(entry: Entry) -> Iterator[tuple[str, str, str]]:
    for source, number in entry.runs:
        row = next(iter(source.tables.rows(detector=entry.detector, run=number)))
        values = ", ".join(f"{key}={value}" for key, value in params_of(source, row).items())
        yield " ".join(part for part in entry.label if part), values, row["chosen_on"] or ""


def _remarks(draw: Draw) -> tuple[str, ...]:
    notes = list(draw.notes)
    for source in draw.sources:
        notes += source.tables.about.remarks
    return tuple(dict.fromkeys(notes))
