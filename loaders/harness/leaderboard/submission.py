"""Entries of a leaderboard: submit results that recompute, and write a model's values for the Hub."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.metadata import version
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Final

from wordnet_splits.base import files
from wordnet_splits.base.errors import DataError, OutputError, SplitsError
from wordnet_splits.base.files import write_text
from wordnet_splits.base.lazy import need
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.text_formats import validate, write_sealed
from wordnet_splits.base.untrusted import sha256_of
from wordnet_splits.benchmark.manifest.loading import shipped_folder
from wordnet_splits.hub.entries import (
    ENTRY,
    HUB_METRIC,
    HUB_ROLES,
    LeaderboardEntry,
    hub_task,
)
from wordnet_splits.remote import Address, parse_address

from ..comparison.entries import NamedResults
from ..report.write_report import with_bootstrap
from ..results.check import check_results
from ..results.entries import facts_of
from ..results.metadata import ResultsMetadata
from ..results.results import ABOUT, TABLES

EVAL_RESULTS: Final = ".eval_results"
MEAN: Final = "(mean)"
"""Group of the rows that are means over the sets of a role."""


def write_hub_results(results: NamedResults, hub: str, folder: Path, *, url: str = "") -> list[Path]:
    """Write the results that the Hub shows on a model's page; return the files.

    ``.eval_results/BENCHMARK-DETECTOR.yaml`` has the AUROC of near and of far sets, each the mean over the
    sets and over the runs of the model.

    Parameters
    ----------
    hub : the dataset repository with the benchmark, ``ORG/NAME``.
    folder : of the model's repository.
    url : of a paper or of code, named as the source.
    """
    address, yaml = parse_address(hub, where="hub"), need("yaml", "hub", where=EVAL_RESULTS)
    if address != Address(address.repo):
        raise DataError("the repository must be given without tag or benchmark", where=hub, hint="ORG/NAME")
    about = results.results.about
    if len(about.models) > 1:
        raise DataError(
            f"results for the Hub must have one model, got {len(about.models)}",
            where=results.name,
            hint="evaluate and submit each model separately",
        )
    values = list(_values(results))
    if not values:
        raise DataError(
            "cannot find the AUROC of a near or far set", where=results.name, hint="evaluate with detectors"
        )
    runs = f"mean of {len(about.runs)} runs" if len(about.runs) > 1 else "one run"
    suffix = f"{runs}, version {about.version}, wordnet-splits {version('wordnet-splits')}"
    texts = {}
    for detector in dict.fromkeys(detector for detector, _, _ in values):
        slug = re.sub(r"[^a-z0-9]+", "-", detector.lower()).strip("-")
        entries = [
            {
                "dataset": {"id": address.repo, "task_id": hub_task(about.benchmark, role)},
                "value": value,
                **({"source": {"url": url}} if url else {}),
                "notes": f"detector {detector}, {suffix}",
            }
            for name, role, value in values
            if name == detector
        ]
        path = f"{EVAL_RESULTS}/{about.benchmark}-{slug}.yaml"
        if path in texts:
            raise DataError(
                f"two detectors would be written to {path}", where=results.name, hint="leave one out"
            )
        texts[path] = str(yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=1000))
    for path, text in texts.items():
        write_text(folder / path, text)
    return [folder / path for path in texts]


def _values(results: NamedResults) -> Iterator[tuple[str, str, float]]:
    """Yield detector, role and the mean over the runs, in the order of the results."""
    runs: dict[tuple[str, str], list[float]] = {}
    for (detector, _, metric, group, role), values in results.values.items():
        if (metric, group) == (HUB_METRIC, MEAN) and role in HUB_ROLES:
            runs.setdefault((detector, role), []).extend(values)
    for (detector, role), values in runs.items():
        if all(map(isfinite, values)):
            yield detector, role, fmean(values)


MAX_ENTRY_SIZE = 50 << 20
"""Bytes of all files of an entry, which a repository takes without complaint."""


def submit(
    results: str | Path,
    *,
    by: str,
    name: str | None = None,
    url: str = "",
    note: str = "",
    outliers: str = "",
    commands: Sequence[str] = (),
    to: str | Path | None = None,
    hub: str | None = None,
    model_repo: str | Path | None = None,
    progress: Progress | bool | None = None,
) -> Path:
    """Check results, write them with ``entry.json`` as an entry of the leaderboard, and return its folder.

    Parameters
    ----------
    results : a folder that `Results.write` wrote.
    by : name or account of the submitter.
    url : of a paper or of code.
    note : one sentence, shown with the
        entry.
    outliers : the outlier images that the networks were trained on; by default read from the training records
        of ``trained:`` models that are still in their folders.
    name : of the entry; by default the folder's.
    commands : the commands that were run; by default the recorded one, without the folders of images.
    to : the folder of entries; by default ``manifests/results`` of this checkout.
    hub, model_repo : for `write_hub_results`: the benchmark's repository and the folder of the model's.
    progress : as of `evaluate`.

    Raises
    ------
    DataError : the results do not recompute, are not on a benchmark, or do not record how a model was made;
        only one of ``hub`` and ``model_repo`` is given, or, with both, the results are of several models.
    OutputError : another entry has that name, they are too large, or nothing can be written there.
    """
    folder = Path(results)
    entry_name = folder.resolve().name if name is None else name
    if (hub is None) != (model_repo is None):
        raise DataError(
            "hub and model_repo must be given together",
            where="submit",
            hint="as in --hub ORG/NAME --model-repo DIR: the benchmark's repository, the model's folder",
        )
    checked = check_results(folder, all_intervals=True, progress=progress)
    if not checked.ok:
        message = f"{len(checked.differences):,} values differ from values recomputed from the scores"
        raise DataError(message, where=str(folder), hint=f"see `unknown-eval recompute --check {folder}`")
    evaluation = NamedResults.from_results(folder)
    about = evaluation.results.about
    if about.custom_sets:
        raise DataError(
            "cannot be submitted: the sets were given in Python",
            where=str(folder),
            hint="evaluate on a benchmark",
        )
    unrecorded = [run for run in about.runs if run.weights.kind in ("python", "arrays")]
    if unrecorded and not commands:
        model, origin = unrecorded[0].model, str(unrecorded[0].weights).removeprefix("as ")
        raise DataError(
            f"the model {model} was {origin}, so its results do not record how it was made",
            where=str(folder),
            hint="give the commands that were run: --commands FILE, or commands=[...]",
        )
    entry = {
        "schema": 1,
        "name": entry_name,
        "by": by,
        "url": url,
        "note": note,
        "outliers": outliers or trained_on_outliers(about),
        "commands": list(commands) or [with_bootstrap(about)],
        "facts": facts_of(folder).model_dump(mode="json"),
    }
    validate(LeaderboardEntry, entry, where=f"entry {entry_name}")
    entries = shipped_folder() / "results" if to is None else Path(to)
    if to is None and not entries.is_dir():
        hint = "give --out DIR"
        raise OutputError("cannot find a checkout of wordnet-splits", where=str(entries), hint=hint)
    target = entries / entry_name
    names = [name for name in (*TABLES, ABOUT) if (folder / name).exists()]
    size = sum((folder / name).stat().st_size for name in names)
    if size > MAX_ENTRY_SIZE:
        message = f"an entry must have at most {MAX_ENTRY_SIZE >> 20} MiB, got {size / (1 << 20):,.0f}"
        raise OutputError(message, where=str(folder), hint="submit fewer detectors or runs")
    if hub is not None and model_repo is not None:
        write_hub_results(evaluation, hub, Path(model_repo), url=url)
    if target.resolve() == folder.resolve():
        write_sealed(target / ENTRY, entry)
        return target
    with files.locked(target, busy="another entry of that name is being written"):
        if target.exists() and _digest(target) != _digest(folder):
            raise OutputError("holds a different entry", where=str(target), hint="choose another --name")
        with files.replacing_folder(target) as part:
            for file_name in names:
                shutil.copyfile(folder / file_name, part / file_name)
            write_sealed(part / ENTRY, entry)
    return target


def trained_on_outliers(about: ResultsMetadata) -> str:
    """Return the outliers that `train` trained the networks of results on; "" where none are recorded."""
    benchmarks: dict[str, None] = {}
    for run in about.runs:
        if not run.weights.folder:
            continue
        from ..training.checkpoint import read_metadata  # needs torch, which results of arrays do not

        with suppress(SplitsError):  # the folder is on another machine or was moved
            trained = read_metadata(run.weights.folder)
            if trained["outliers"] != "none":
                benchmarks[trained["benchmark"]["name"]] = None
    return ", ".join(f"external training images of {name}" for name in benchmarks)


def _digest(folder: Path) -> str | None:
    return sha256_of(folder / ABOUT, largest=MAX_ENTRY_SIZE) if (folder / ABOUT).exists() else None
