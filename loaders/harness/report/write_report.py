"""`report`: networks, sets, tables, plots, the worst mistakes, and commands that repeat the evaluation."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from wordnet_splits.base import files
from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.lazy import MissingPackageError
from wordnet_splits.base.plotting import plot_svg
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.datasets.sources import source_info
from wordnet_splits.datasets.sources.by_name import citation_of
from wordnet_splits.datasets.sources.roots import Roots

from ...opening import PackedFolders
from ..comparison.entries import BenchmarkResults, ResultsOrFolder
from ..comparison.side_by_side import Comparison, ComparisonOptions, compare_draws_of
from ..detectors.openood import OPENOOD
from ..evaluation.provenance import has_path, placeholder
from ..hierarchy.named_answers import name_unknowns
from ..results.metadata import NOT_CHOSEN, ResultsMetadata, RunFacts, check_level
from ..results.sentences import lines_below, params_text, sweep_details
from ..results.table import NOTHING, Table
from ..results.tables import tables
from .mistakes import KINDS, Mistake, with_thumbnails, worst_mistakes
from .page import DrawnPlot, Section, inline_svg, page
from .plots import get_plot
from .plots.selection import Selection

MISTAKES = 12
PLOTS = (
    *("risk-coverage", "near-far", "roc", "oscr", "densities", "full-spectrum"),
    *("nearness", "kim-5", "robustness", "recalcati-3"),
)
"""Plots in the order of the page, which lists plots without data at the end."""
MOST_DRAWN = {"densities": 6, "nearness": 6, "risk-coverage": 9, "roc": 9, "oscr": 9}
"""Plot -> most entries in it, a panel or a colour each; the other plots show all."""
COLUMNS = 3
"""Panels side by side."""
MAIN_PLOTS = frozenset({"risk-coverage", "near-far", "roc"})
"""Plots that are open; a click opens the others."""


def report(
    results: Sequence[ResultsOrFolder] | ResultsOrFolder,
    out: str | Path,
    *,
    detectors: Sequence[str] | None = None,
    bootstrap: int = 0,
    over: str = "images",
    cut: int | None = None,
    best: int | None = None,
    mistakes: int = MISTAKES,
    roots: Roots | None = None,
    packed: PackedFolders | None = None,
    store: str | Path | None = None,
) -> Path:
    """Write a self-contained page of HTML, readable without other files and offline.

    Parameters
    ----------
    results : on one benchmark.
    detectors : labels, all by default.
    bootstrap : replicates behind the intervals of the ranking; 0 for none.
    over, cut : what these are over, as of `compare`.
    best : number of models in the plots, the best by the primary metric of the benchmark's paper; all by
        default. Tables hold all models.
    mistakes : number of mistakes of each kind, with thumbnails of available images.
    roots, packed : the folders of the images, as of `UnknownDetectionSet`.
    store : folder of activations, for the section on answers in the hierarchy.

    Raises
    ------
    DataError : results of several benchmarks or draws, or see `compare`. OutputError : the file cannot be
        written.
    MissingPackageError : no matplotlib or jinja2.
    """
    selection = Selection.from_results(results, detectors=detectors, store=store, replicates=bootstrap)
    draw = selection.draw.over(check_level(over, cut, bootstrap), cut)
    selection = replace(selection, draw=draw)
    comparison = compare_draws_of([draw], ComparisonOptions(bootstrap=bootstrap, over=over, cut=cut))
    plots, plot_notes = _plots(selection if best is None else selection.best_models(best), comparison)
    manifest, absent = manifest_of(draw)
    best_row = comparison.rankings[0].entries[0]
    (best_entry,) = [e for e in draw.entries if e.label == (best_row.model, best_row.detector)]
    entry_name = " ".join(part for part in best_entry.label if part)
    worst: list[Mistake] = []
    bibtex = ""
    if manifest is None:
        mistake_notes = [f"Mistakes are not shown: {absent}"]
    else:
        worst = worst_mistakes(best_entry, manifest, mistakes)
        worst, mistake_notes = with_thumbnails(worst, manifest, roots=roots, packed=packed)
        paper, sources = manifest.data.recipe.paper, sorted({row.source for row in manifest.groups})
        cited, by_wordnet = (manifest.name, paper, sources), manifest.own_hierarchy is None
        bibtex = citation_of(*cited, manifest.declarations, by_wordnet=by_wordnet).bibtex
    sweeps = [table for evaluation in draw.results for table in sweep_details(evaluation.results)]
    all_remarks = [
        *draw.notes,
        *(remark for evaluation in draw.results for remark in evaluation.results.about.remarks),
    ]
    missing = missing_lines(draw)
    below = (line for evaluation in draw.results for line in lines_below(evaluation.results))
    sections = [
        Section(
            "Results",
            tables=tuple(_results_tables(draw)),
            lines=(*([] if missing else ["Every ID, near and far image was scored."]), *dict.fromkeys(below)),
        ),
        Section(
            "Comparison",
            tables=tuple(comparison.tables()),
            lines=tuple(note for note in comparison.notes if note not in draw.notes),
        ),
        Section("Missing sets", lines=tuple(missing)),
        _named_unknowns(selection, over),
        Section("Plots", plots=tuple(plot for plot in plots if plot.name in MAIN_PLOTS)),
        Section(
            "Further plots",
            plots=tuple(plot for plot in plots if plot.name not in MAIN_PLOTS),
            lines=tuple(plot_notes),
            folded=True,
        ),
        *(
            Section(
                f"{title}: {entry_name}",
                mistakes=tuple(m for m in worst if m.kind == kind),
                folded=number > 0,
            )
            for number, (kind, title) in enumerate(KINDS.items())
        ),
        Section(
            "Networks, sets, detectors and software",
            tables=(*_overview(draw), *sweeps, environment_table(draw), fingerprints_table(draw)),
            lines=tuple(dict.fromkeys(all_remarks)),
            folded=True,
        ),
        Section(
            "Reproduction",
            lines=(*remarks(draw), *mistake_notes),
            commands=tuple(commands(draw, roots)),
        ),
        Section(
            "Licences and citation",
            tables=() if manifest is None else (licences_table(manifest),),
            lines=(f"Licences and citations are not shown: {absent}",) if absent else (),
            listing=bibtex,
            folded=True,
        ),
    ]
    about = draw.first.about
    facts = f"version {about.version}, images {about.images_fingerprint or 'awaiting a source'}"
    path = Path(out)
    files.write_text(path, page(f"{draw.benchmark}: evaluation report", facts, sections))
    return path


def _named_unknowns(selection: Selection, over: str) -> Section:
    """Return the section on the first network's answers in the hierarchy, empty without activations."""
    title = "Answers in the hierarchy"
    if selection.store is None:
        return Section(title)
    try:
        network = next(selection.first_networks())
        labels = {entry.detector for entry in selection.entries if entry.model == network.model}
        outcome = name_unknowns(
            network.results.results,
            detectors=[label for label in network.results.results.detectors if label in labels],
            run=network.facts.run,
            benchmark=selection.draw.manifest(),
            store=selection.store,
            bootstrap=selection.replicates,
        )
        plots, notes = _drawn([("hierarchy", selection)], "h")
    except SplitsError as error:
        return Section(title, lines=(f"Not shown: {error}",))
    levels = [] if over == "images" else ["The intervals of these answers are over test images."]
    lines = (*levels, *outcome.notes, *notes)
    return Section(title, tables=tuple(outcome.tables()), plots=tuple(plots), lines=lines)


def _plots(selection: Selection, comparison: Comparison) -> tuple[list[DrawnPlot], list[str]]:
    rank = {(row["model"], row["detector"]): n for n, row in enumerate(comparison.rows())}
    ranked = tuple(sorted(selection.entries, key=lambda entry: rank[entry.label]))
    selection = replace(selection, draw=replace(selection.draw, entries=ranked))
    return _drawn(((name, _best_entries(selection, MOST_DRAWN.get(name))) for name in PLOTS), "p")


def _best_entries(selection: Selection, most: int | None) -> Selection:
    """Return at most ``most`` of the ranked entries: the best of each model, then the second best."""
    ranked = selection.entries
    if most is None or len(ranked) <= most:
        return selection
    place = {e.label: sum(o.model == e.model for o in ranked[:n]) for n, e in enumerate(ranked)}
    entries = tuple(sorted(ranked, key=lambda entry: place[entry.label])[:most])
    note = f"The {most} best of {len(ranked)} detectors of models, as many of each model where possible."
    left_out = f"{selection.left_out} {note}".strip()
    return replace(selection, draw=replace(selection.draw, entries=entries), left_out=left_out)


def _drawn(kinds: Iterable[tuple[str, Selection]], letter: str) -> tuple[list[DrawnPlot], list[str]]:
    """Return plots by name, with ids that begin with a letter, and sentences on those that are not drawn."""
    drawn, notes = [], []
    for number, (name, selection) in enumerate(kinds):
        try:
            plot = replace(get_plot(name).plot(selection), columns=COLUMNS)
            prefix = f"{letter}{number}-"
            svg = inline_svg(plot_svg(plot, prefix), prefix, plot.title)
            drawn.append(DrawnPlot(name, plot.title, svg, len(plot.panels), plot.notes))
        except MissingPackageError:
            raise
        except SplitsError as error:
            notes.append(f"Not drawn: {name}: {error}")
    return drawn, notes


def _results_tables(draw: BenchmarkResults) -> Iterator[Table]:
    """Yield the tables of each evaluation, which names its models if there are several."""
    for evaluation in draw.results:
        models = f"{', '.join(evaluation.labels.values())}: " if len(draw.results) > 1 else ""
        for table in tables(evaluation.results):
            yield replace(table, title=f"{models}{table.title}")


def _overview(draw: BenchmarkResults) -> Iterator[Table]:
    """Yield the networks, the sets with their numbers of images, and the detectors."""
    rows = []
    for about in (evaluation.results.about for evaluation in draw.results):
        for run in about.runs:
            used = run.class_map
            classes = "all" if used is None else f"{used.columns} of {used.of} ({used.mapping})"
            transforms = " | ".join(dict.fromkeys(run.transforms.values()))
            name, weights, key = given_name(about, run), str(run.weights), run.model_key[:12]
            rows.append((name, weights, run.device, transforms, classes, key))
    columns = ("model", "weights", "device", "transform", "classes", "key")
    yield Table("Networks", columns, tuple(rows))
    sets = draw.entries[0].scored()[0]
    counts = tuple(
        (name, score_set.role, f"{len(score_set.confidence):,}") for name, score_set in sets.items()
    )
    yield Table("Sets of test images that were scored", ("group", "role", "images"), counts)
    detectors = []
    for entry in draw.entries:
        name = " ".join(part for part in entry.label if part)
        for evaluation, number in entry.runs:
            facts = evaluation.results.about.detector(entry.detector, number)
            detectors.append((name, params_text(facts.params), facts.chosen_on or "given"))
    yield Table("Detectors", ("detector", "parameters", "chosen on"), tuple(dict.fromkeys(detectors)))


def given_name(about: ResultsMetadata, run: RunFacts) -> str:
    """Return the user's name of a network, with the name of the run if the model has several."""
    is_single = len(about.runs_of(run.model)) == 1
    return run.model if is_single or run.name == run.model else f"{run.model}: {run.name}"


REBUILT = (
    "Recorded by the evaluation, without options of models such as --mapping. Replace words in capitals: "
    "SOURCE_ROOT is the folder of a dataset (a store of `wordnet-splits pack`, --packed PACKED, takes the "
    "place of all), WEIGHTS the folder of a file of weights."
)
IN_PYTHON = (
    "The sets were given in Python, so no command repeats the evaluation: replace each ... by the model, the "
    "datasets or the arrays, which results do not record."
)


def remarks(draw: BenchmarkResults) -> list[str]:
    """Return sentences on the parts that commands and calls leave open."""
    abouts = [evaluation.results.about for evaluation in draw.results]
    from_python = [bool(about.custom_sets) for about in abouts]
    lines = [*([] if all(from_python) else [REBUILT]), *([IN_PYTHON] if any(from_python) else [])]
    named = {
        "Given in Python, so no command evaluates them": [
            run.model
            for about in abouts
            for run in about.runs
            if run.weights.kind == "python" and not about.custom_sets
        ],
        "Metrics of a session, so no command computes them": [
            facts.name for about in abouts for facts in about.metrics if not has_path(facts)
        ],
        "Objects in Python, for which MODULE:NAME of the object stands": [
            facts.detector
            for about in abouts
            for facts in about.detectors
            if facts.foreign is not None and facts.foreign.protocol == OPENOOD
        ],
    }
    found = {text: ", ".join(dict.fromkeys(names)) for text, names in named.items() if names}
    return [*lines, *(f"{text}: {names}." for text, names in found.items())]


def commands(draw: BenchmarkResults, roots: Roots | None = None) -> Iterator[str]:
    """Yield the commands that repeat the evaluations, with the folders of datasets if they are known."""
    for evaluation in draw.results:
        about = evaluation.results.about
        if about.custom_sets or all(run.weights.kind != "python" for run in about.runs):
            command = with_bootstrap(about)
            for source, folder in (roots or {}).items():
                command = command.replace(placeholder(source), shlex.quote(f"{source}={folder}"))
            yield command
        if Path(evaluation.name).is_dir():
            yield shlex.join(["unknown-eval", "recompute", "--check", evaluation.name])


def with_bootstrap(about: ResultsMetadata) -> str:
    """Return the recorded command with the bootstrap of the results."""
    options = about.options
    if not options.replicates:
        return about.command
    given: dict[str, object] = {"bootstrap": options.replicates, "seed_boot": options.seed}
    given |= options.model_dump(include={"over", "cut"})
    if about.custom_sets:
        arguments = "".join(f", {name}={value!r}" for name, value in given.items())
        return f"{about.command.removesuffix(')')}{arguments})"
    return about.command + "".join(f" --{name.replace('_', '-')} {value}" for name, value in given.items())


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
    names = [", ".join(evaluation.labels.values()) for evaluation in draw.results]
    if len({*names}) < len(names):
        names = [evaluation.name for evaluation in draw.results]
    titles = names if len(facts) > 1 else ["value"]
    return Table("Software, devices and seeds", ("", *titles), rows)


def _facts(about: ResultsMetadata) -> dict[str, str]:
    facts = dict(about.software) or dict.fromkeys(ORDER, UNRECORDED)
    devices = ", ".join(dict.fromkeys(run.device for run in about.runs if run.device))
    facts["device"] = devices or "none: arrays that were computed elsewhere"
    seeds = [match[1] for run in about.runs if (match := _SEED.search(run.name))]
    facts["training seeds"] = ", ".join(dict.fromkeys(seeds)) or "not recorded"
    options = about.options
    drawn = f"{options.replicates:,} replicates, seed {options.seed}, over {options.over}"
    facts["bootstrap"] = drawn if options.replicates else "none"
    return facts


def fingerprints_table(draw: BenchmarkResults) -> Table:
    """Return the fingerprints that all evaluations of a benchmark share."""
    about = draw.first.about
    rows = [("version", str(about.version))]
    fingerprints = {name: value for name, value in about.fingerprints.items() if value or name != "sources"}
    rows += [(name, value or "none: a source is awaited") for name, value in fingerprints.items()]
    return Table(f"Fingerprints of {about.benchmark}", ("", "value"), tuple(rows))


def missing_lines(draw: BenchmarkResults) -> list[str]:
    """Return a sentence on every set that was not scored whole."""
    lines: dict[str, None] = {}
    for row in (row for evaluation in draw.results for row in evaluation.results.about.missing):
        expected = "an unknown number of" if row.expected is None else f"{row.expected:,}"
        scored = "" if row.status == NOT_CHOSEN else f"{row.scored:,} of {expected} images scored, "
        lines[f"{row.group} ({row.role}): {scored}{row.status}."] = None
    return list(lines)


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


def manifest_of(draw: BenchmarkResults) -> tuple[Manifest | None, str]:
    """Return the benchmark, or None and the reason why it is not available."""
    try:
        return draw.manifest(), ""
    except SplitsError as error:
        return None, str(error)
