"""The sentences below the tables of results, and the values that sweeps tried."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from wordnet_splits.base.errors import SplitsError
from wordnet_splits.base.text_formats import parse_json
from wordnet_splits.metrics import METRICS, spread
from wordnet_splits.metrics.uncertainty import FEW_AT_OOD_QUANTILE, FEW_CLUSTERS, FEW_IN_TAIL

from .clusters import KINDS, cut_text
from .metadata import DISJOINT, NOT_CHOSEN
from .metric_rows import MEAN, POOLED
from .scores import MODEL, ResultTables
from .table import NOTHING, Table

Row = dict[str, Any]
MAX_ROWS = 300
"""Largest number of values listed in a page."""


def sweeps_of(results: ResultTables) -> dict[tuple[str, int], list[Row]]:
    """Return the values tried by sweeps, by detector and run, in the order of the trials."""
    sweeps: dict[tuple[str, int], list[Row]] = {}
    for row in results.sweeps.to_pylist():
        sweeps.setdefault((row["detector"], row["run"]), []).append(row)
    return sweeps


def best_of(rows: Sequence[Row]) -> Row | None:
    """Return the first row with the highest AUROC; None if every row lacks an AUROC."""
    return max((row for row in rows if row["auroc"] is not None), key=lambda row: row["auroc"], default=None)


def sweep_summary(results: Iterable[ResultTables], detectors: Container[str]) -> list[Table]:
    """Return how many values each sweep tried, the chosen values, and the best and worst AUROC."""
    cells, rows = [], []
    for tables in results:
        models = _models(tables)
        for (detector, run), trials in sweeps_of(tables).items():
            best = best_of(trials)
            if best is None or detector not in detectors:
                continue
            aurocs = [row["auroc"] for row in trials if row["auroc"] is not None]
            worst, counts = min(aurocs), (len(trials), len(trials) - len(aurocs))
            model, params = models.get((detector, run), ""), best["params"]
            names, ends = (model, detector, str(run)), (_percent(best["auroc"]), _percent(worst))
            cells.append((*names, *map(str, counts), params_text(params_of(params)), *ends))
            rows.append(
                {
                    "model": model,
                    "detector": detector,
                    "run": run,
                    "tried": counts[0],
                    "not_usable": counts[1],
                    "chosen": params_of(params),
                    "on": best["on"],
                    "best": best["auroc"],
                    "worst": worst,
                }
            )
    columns = ("model", "detector", "run", "tried", "not usable", "chosen", "best", "worst")
    title = "Values chosen by sweeps: AUROC on validation images, in %"
    criteria = dict.fromkeys(str(row["on"]) for row in rows)
    notes = tuple(f"Chosen by {criterion}." for criterion in criteria if criterion.endswith(DISJOINT))
    return [Table(title, columns, tuple(cells), tuple(rows), notes)] if cells else []


def sweep_details(results: ResultTables) -> list[Table]:
    """Return every value tried, with its AUROC or the reason why it has none."""
    models = _models(results)
    cells = []
    for (detector, run), trials in sweeps_of(results).items():
        best = best_of(trials)
        for row in trials:
            outcome = "chosen" if row is best else row["reason"] or ""
            model = models.get((detector, run), "")
            values = params_text(params_of(row["params"]))
            cells.append((model, detector, str(run), values, _percent(row["auroc"]), outcome))
    columns = ("model", "detector", "run", "values", "AUROC", "outcome")
    criteria = dict.fromkeys(row["on"] for row in results.sweeps.to_pylist())
    notes = [f"Chosen by {criterion}." for criterion in criteria]
    if len(cells) > MAX_ROWS:
        notes.append(f"And {len(cells) - MAX_ROWS:,} more: sweeps.parquet has all.")
    title = "Values tried by sweeps: AUROC on validation images, in %"
    return [Table(title, columns, tuple(cells[:MAX_ROWS]), notes=tuple(notes))] if cells else []


def params_text(params: Mapping[str, Any]) -> str:
    """Return parameters as text."""
    return ", ".join(f"{key}={value}" for key, value in params.items())


def params_of(params: str) -> dict[str, Any]:
    """Return the parameters of a row, parsed from untrusted JSON."""
    try:
        values = parse_json(params, where="params")
    except SplitsError:
        return {"": params}
    return values if isinstance(values, dict) else {"": params}


def _models(results: ResultTables) -> dict[tuple[str, int], str]:
    models = {facts.run: facts.model for facts in results.about.runs}
    return {(facts.detector, facts.run): models[facts.run] for facts in results.about.detectors}


def _percent(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.2f}"


DIGITS = 2


def lines_below(results: ResultTables) -> list[str]:
    """Return the sentences printed below the tables.

    They name the models and the runs that the tables average, the parameter values chosen by sweeps, the sets
    that `aurc_unknown` pools and those missing from it, the units that intervals are over, the calibration of
    the classifier, AURC at the stated prevalences, and the correlation of AUROC with nearness.
    """
    return [
        *(_model_line(results, model) for model in results.about.models),
        *_sweep_lines(results),
        *composition_lines(results),
        *_interval_lines(results),
        *_calibration_lines(results),
        *_summary_lines(results),
    ]


def _model_line(results: ResultTables, model: str) -> str:
    runs = results.about.runs_of(model)
    transforms = dict.fromkeys(words for run in runs for words in run.transforms.values() if words)
    weights = [str(run.weights) for run in runs if len(runs) == 1 and str(run.weights)]
    facts = [
        *(f"weights {origin}" for origin in weights),
        *(f"transform {words}" for words in transforms),
        *(f"on {device}" for device in dict.fromkeys(run.device for run in runs) if device),
    ]
    if len(runs) > 1:
        names = ", ".join(run.name.removeprefix(model).lstrip("-/ ") for run in runs)
        facts.insert(0, f"mean over {len(runs)} runs and their spread ({names})")
    return f"Model {model}: {'; '.join(facts) or 'one run'}."


def _sweep_lines(results: ResultTables) -> Iterator[str]:
    """Yield the parameter values that a sweep chose for each detector and run."""
    models = {facts.run: facts.model for facts in results.about.runs}
    by_detector: dict[tuple[str, str, str], dict[int, str]] = {}
    for facts in results.about.detectors:
        if facts.chosen_on is not None:
            key = (models[facts.run], facts.detector, facts.chosen_on)
            by_detector.setdefault(key, {})[facts.run] = params_text(facts.params)
    for (model, detector, criterion), by_run in by_detector.items():
        values = " | ".join(by_run.values()) if len(set(by_run.values())) > 1 else next(iter(by_run.values()))
        of_model = f" of {model}" if len(results.about.models) > 1 else ""
        yield f"Chosen for {detector}{of_model} by {criterion}: {values}."


def composition_lines(results: ResultTables) -> list[str]:
    """Return sentences on the sets that `aurc_unknown` pools and those that are missing from it."""
    pooled, missing = results.about.composition, results.about.missing
    sizes = ", ".join(f"{name} {n:,}" for name, n in pooled.sets.items())
    share = f"{pooled.prevalence:.1%} OOD"
    lines = [f"AURC+OOD pools {sizes}: {pooled.n_id:,} ID and {pooled.n_ood:,} OOD images, {share}."]
    if not_chosen := ", ".join(f"{row.group} ({row.role})" for row in missing if row.status == NOT_CHOSEN):
        lines.append(f"Not chosen (groups=, --group): {not_chosen}.")
    for row in missing:
        if row.status == NOT_CHOSEN:
            continue
        total = "" if row.expected is None else f" of {row.expected:,}"
        why = f" ({row.status})" if row.status.startswith("awaiting") else ""
        lines.append(f"Missing: {row.group} ({row.role}), {row.scored:,}{total} images scored{why}.")
    if missing:
        lines.append(
            "So this AURC+OOD is over other images than the benchmark's and is compared with no paper's."
        )
    return lines


def _interval_lines(results: ResultTables) -> Iterator[str]:
    """Yield the units that intervals are over, and the sets that have one or few of these."""
    options, sets = results.about.options, results.about.clusters
    if not options.replicates:
        return
    title, over = f"Intervals (lo, hi): {100 * options.level:g}%, over", options.over
    several = {group: count for group, count in sets.items() if not isinstance(count, str)}
    if over == "images":
        yield f"{title} test images of the same classes."
    else:
        sizes = ", ".join(f"{group} {count.number:,}" for group, count in several.items())
        units = f"{sum(count.number for count in several.values()):,} {KINDS[over]}{cut_text(options.cut)}"
        yield f"{title} {units} ({sizes}); of ID values over test images."
    effective = {group: count.effective for group, count in several.items()}
    if few := ", ".join(f"{group} {n:.3g}" for group, n in effective.items() if n < FEW_CLUSTERS):
        yield f"Fewer than {FEW_CLUSTERS} {over} of equal size, so intervals may miss their level: {few}."
    reasons = (
        [f"{FEW_AT_OOD_QUANTILE} {over}"] if any(n < FEW_AT_OOD_QUANTILE for n in effective.values()) else []
    )
    if tails := "; ".join(_scarce_tails(results)):
        reasons.append(f"{FEW_IN_TAIL} OOD images beyond the threshold: {tails}")
    if reasons:
        yield (
            "Intervals of fpr95_ood_positive, detection_error_ood_positive and ccr_at_fpr may miss their "
            f"level with fewer than {', or '.join(reasons)}."
        )
    if kept := ", ".join(f"{group} ({why})" for group, why in sets.items() if group not in several):
        yield f"Not generalised to other {over}, kept in means and pools: {kept}."


def _scarce_tails(results: ResultTables) -> Iterator[str]:
    """Yield the shares of sets, beyond a threshold at a quantile of OOD scores, that are few images."""
    sets: dict[float, dict[str, None]] = {}
    for metric in METRICS.entries().values():
        if (tail := metric.ood_tail) is not None:
            for row in results.rows(metric=metric.name):
                if row["lo"] is not None and row["group"] != MEAN and row["n_ood"] * tail < FEW_IN_TAIL:
                    sets.setdefault(tail, {})[row["group"]] = None
    shares: dict[str, list[str]] = {}
    for tail in sorted(sets, reverse=True):
        shares.setdefault(", ".join(sets[tail]), []).append(f"{100 * tail:g}%")
    yield from (f"{' and '.join(tails)} of {groups}" for groups, tails in shares.items())


CALIBRATION = (
    ("ECE", "ece", 100, "%"),
    ("with bins of equal mass", "ece_equal_mass", 100, "%"),
    ("Brier score", "brier_score", 1, ""),
    ("NLL", "nll", 1, ""),
)
"""Title, metric, factor and unit of the values in the line on calibration."""


def _calibration_lines(results: ResultTables) -> Iterator[str]:
    """Yield the calibration of each classifier on all ID test images."""
    for model in results.about.models:
        cells = []
        for title, metric, factor, unit in CALIBRATION:
            rows = results.rows(metric=metric, group=POOLED, role="id", detector=MODEL, model=model)
            if rows:
                cells.append(f"{title} {format_cell([row['value'] for row in rows], factor, 'sd')}{unit}")
        if cells:
            yield f"Calibration of {model} on ID test images: {', '.join(cells)}."


def _summary_lines(results: ResultTables) -> Iterator[str]:
    """Yield AURC at the stated prevalences, and the correlation of AUROC with nearness."""
    for share in results.about.options.prevalences:
        values = _by_detector(results, f"aurc_unknown[prevalence={share:g}]", 1000)
        if values:
            yield f"AURC+OOD x 1000 if {share:.0%} were OOD: {values}."
    if trend := _by_detector(results, "nearness_trend", 1):
        scope = f"rank correlation over OOD classes{_outside_hierarchy(results)}"
        yield f"AUROC against similarity to the nearest ID class ({scope}): {trend}."


def _outside_hierarchy(results: ResultTables) -> str:
    """Return how many OOD classes are not in the hierarchy and so have no similarity; "" for none."""
    sizes = {
        (row["group"], row["class_id"]): (row["similarity"], row["n_ood"])
        for row in results.by_class.select(["group", "class_id", "similarity", "n_ood"]).to_pylist()
    }
    unmapped = [n_ood for similarity, n_ood in sizes.values() if similarity is None]
    if not unmapped:
        return ""
    return f"; not in the hierarchy, left out: {len(unmapped):,} of {len(sizes):,} ({sum(unmapped):,} images)"


def _by_detector(results: ResultTables, metric: str, factor: float) -> str:
    name_models = len(results.about.models) > 1
    values: dict[str, list[float]] = {}
    for row in results.rows(metric=metric, group=POOLED):
        name = f"{row['model']} {row['detector']}" if name_models else row["detector"]
        values.setdefault(name, []).append(row["value"])
    cells = {name: format_cell(of_runs, factor, "sd") for name, of_runs in values.items()}
    return ", ".join(f"{name} {cell}" for name, cell in cells.items() if cell != NOTHING)


def format_cell(values: Sequence[float], factor: float, spread_kind: str) -> str:
    """Return the mean over runs, with the spread if there are several runs; a dash without a value."""
    if not values or any(np.isnan(values)):
        return NOTHING
    digits = DIGITS if factor > 1 else DIGITS + 2
    runs = spread(np.array(values) * factor, ddof=0 if spread_kind == "variance" else 1)
    text = f"{runs.mean:.{digits}f}"
    if runs.n == 1:
        return text
    return (
        f"{text} ({runs.sd**2:.{digits}f})" if spread_kind == "variance" else f"{text}±{runs.sd:.{digits}f}"
    )
